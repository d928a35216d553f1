"""Residual ratios of symmetric indefinite factors: see the comment of each op for its equation."""

from __future__ import annotations

from typing import Any

import numpy as np

from lapax._checks.equations import (
    Array,
    Attrs,
    Check,
    Size,
    adjoint,
    code_is,
    keep,
    norm,
    normal,
    scaled,
    triangle,
    unless,
    wide,
)

# ldl: A(p, p) = L·D·Lᴴ, or L·D·Lᵀ of symmetric matrices; L's elements are bounded.


def _across(a: Array, attrs: Attrs) -> Array:
    return adjoint(a) if attrs["hermitian"] else a.swapaxes(-1, -2)


def _matrix(rng: np.random.Generator, dtype: np.dtype[Any], size: Size, attrs: Attrs) -> Array:
    """A matrix with its two triangles, apart from zero."""
    n = size.m
    a = normal(rng, dtype, (*size.batch, n, n))
    shift = np.eye(n) * rng.choice([-3, 3], n) * max(n, 1) ** 0.5
    return np.asarray((a + _across(a, attrs)) / 2 + shift).astype(dtype)


def _inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, attrs: Attrs
) -> tuple[Array, ...]:
    a = _matrix(rng, dtype, Size(size.n, size.n, size.batch), attrs)
    return (keep(a, triangle(a, lower=code_is(attrs, "uplo", "L"))),)


def _whole(a: Array, attrs: Attrs) -> Array:
    """The matrix whose named triangle is stored."""
    strict = triangle(a, lower=code_is(attrs, "uplo", "L"), strict=True)
    half = np.where(strict, wide(a), 0)
    return np.asarray(half + _across(half, attrs) + np.where(np.eye(a.shape[-1]), wide(a), 0))


def _product(factors: Array, e: Array, permutation: Array, attrs: Attrs) -> Array:
    """P·L·D·Lᴴ·Pᵀ."""
    n = factors.shape[-1]
    lower = np.tril(wide(factors), -1) + np.eye(n)
    below = np.eye(n, k=-1) * wide(e)[..., None, :]
    d = np.eye(n) * wide(factors) + below + _across(below, attrs)
    placed = np.empty_like(lower)
    np.put_along_axis(placed, permutation[..., None].astype(np.int64), lower, axis=-2)
    return np.asarray(placed @ d @ _across(placed, attrs))


def _ratios(args: tuple[Array, ...], attrs: Attrs, rets: list[Array]) -> Array:
    (a,), (factors, e, permutation) = args, rets
    n, whole = a.shape[-1], _whole(args[0], attrs)
    rows = np.all(np.sort(permutation, axis=-1) == np.arange(n), axis=-1)
    zeros = np.all(triangle(a, lower=True) | (factors == 0), axis=(-2, -1))
    bounded = np.all(np.abs(np.tril(factors, -1)) < 4, axis=(-2, -1))
    safe = np.where(rows[..., None], permutation, np.arange(n))
    error = _product(factors, e, safe, attrs) - whole
    return unless(rows & zeros & bounded, scaled(error, norm(whole), n, a))


# ldl_solve: A·X = B with A = P·L·D·Lᴴ·Pᵀ; D has blocks of both orders.


def _solve_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, _: Attrs
) -> tuple[Array, ...]:
    n = size.m
    lower = np.tril(normal(rng, dtype, (*size.batch, n, n)), -1) / max(n, 1)
    e = np.zeros((*size.batch, n), dtype)
    e[..., : n - 1 : 3] = 2
    factors = lower + np.eye(n) * np.where(np.arange(n) % 2 == 0, 1, -1)
    rows = np.broadcast_to(np.arange(n, dtype=np.int32), (*size.batch, n))
    b = normal(rng, dtype, (*size.batch, n, size.n))
    return factors.astype(dtype), e, rng.permuted(rows, axis=-1), b


def _solve_ratios(args: tuple[Array, ...], attrs: Attrs, rets: list[Array]) -> Array:
    factors, e, permutation, b = args
    return _system_ratios(_product(factors, e, permutation, attrs), b, rets[0])


def _system_ratios(a: Array, b: Array, x: Array) -> Array:
    return scaled(a @ wide(x) - wide(b), norm(a) * norm(wide(x)), a.shape[-1], b)


CHECKS = {
    "ldl": Check(_inputs, _ratios, lambda size, attrs: size.n**3 / 3),
    "ldl_solve": Check(
        _solve_inputs, _solve_ratios, lambda size, attrs: 2 * size.m**2 * size.n, rectangular=True
    ),
}
