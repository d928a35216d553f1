"""Residual ratios of Cholesky factors: see the comment of each op for its equation."""

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
    definite,
    keep,
    norm,
    normal,
    scaled,
    triangle,
    unless,
    wide,
)

# potrf: A = L·Lᴴ or Uᴴ·U from the named triangle; the other one is passed through.


def _potrf_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, attrs: Attrs
) -> tuple[Array, ...]:
    a = definite(rng, dtype, size).astype(dtype)
    return (keep(a, triangle(a, lower=code_is(attrs, "uplo", "L"))),)


def _potrf_ratios(args: tuple[Array, ...], attrs: Attrs, rets: list[Array]) -> Array:
    (a,), (factor, info) = args, rets
    lower = code_is(attrs, "uplo", "L")
    named = triangle(a, lower=lower)
    half = np.where(triangle(a, lower=lower, strict=True), wide(a), 0)
    diagonal = np.where(np.eye(a.shape[-1], dtype=bool), wide(a).real, 0)
    whole = half + adjoint(half) + diagonal
    f = np.where(named, wide(factor), 0)
    error = (f @ adjoint(f) if lower else adjoint(f) @ f) - whole
    untouched = np.all(named | np.isnan(factor), axis=(-2, -1))
    return unless(untouched & (info == 0), scaled(error, norm(whole), a.shape[-1], a))


# cholesky: A = L·Lᴴ from the lower triangle, zero above the diagonal.


def _cholesky_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, _: Attrs
) -> tuple[Array, ...]:
    return _potrf_inputs(rng, dtype, size, {"uplo": ord("L")})


def _cholesky_ratios(args: tuple[Array, ...], _: Attrs, rets: list[Array]) -> Array:
    (a,), (factor,) = args, rets
    named = triangle(a, lower=True)
    zeros = np.all(named | (factor == 0), axis=(-2, -1))
    info = np.zeros(zeros.shape, np.int32)
    passed = [np.where(named, factor, np.nan), info]
    return unless(zeros, _potrf_ratios(args, {"uplo": ord("L")}, passed))


# cholesky_update: R′ᴴ·R′ = Rᴴ·R + w·wᴴ, R and R′ upper triangular; the second result is scratch.


def _update_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, _: Attrs
) -> tuple[Array, ...]:
    r = adjoint(np.linalg.cholesky(definite(rng, dtype, size)))
    return np.triu(r).astype(dtype), normal(rng, dtype, (*size.batch, size.n))


def _update_ratios(args: tuple[Array, ...], _: Attrs, rets: list[Array]) -> Array:
    r, w = (wide(x) for x in args)
    updated = wide(np.triu(rets[0]))
    expected = adjoint(r) @ r + w[..., :, None] * w[..., None, :].conj()
    error = adjoint(updated) @ updated - expected
    return scaled(error, norm(expected), r.shape[-1], args[0])


CHECKS = {
    "potrf": Check(_potrf_inputs, _potrf_ratios, lambda size, attrs: size.n**3 / 3),
    "cholesky": Check(_cholesky_inputs, _cholesky_ratios, lambda size, attrs: size.n**3 / 3),
    "cholesky_update": Check(_update_inputs, _update_ratios, lambda size, attrs: 3 * size.n**2),
}
