"""Residual ratios of block-tridiagonal matrices: see the comment of each op for its equation."""

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
    roundoff,
    scaled,
    triangle,
    unless,
    wide,
)

# A case of size m × n has m blocks of order n, but not many more than ROWS rows, as it is compared
# with a dense matrix.
ROWS = 64
SIDES = 2


def _band(rng: np.random.Generator, dtype: np.dtype[Any], size: Size) -> tuple[Array, Array]:
    """A in double precision. Its own blocks are at least 3, which two neighbours' are less than."""
    n, count = size.n, min(size.m, max(ROWS // max(size.n, 1), 2))
    diagonal = 3 * definite(rng, dtype, Size(n, n, (*size.batch, count)))
    off = normal(rng, dtype, (*size.batch, max(count - 1, 0), n, n))
    return diagonal, wide(off) / (4 + 4 * np.sqrt(n))


def _lower(diagonal: Array) -> Array:
    """With NaN above the diagonal of each block."""
    return keep(diagonal, triangle(diagonal, lower=True))


def _matrix_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, _: Attrs
) -> tuple[Array, ...]:
    diagonal, off = _band(rng, dtype, size)
    return _lower(diagonal.astype(dtype)), off.astype(dtype)


def _factor_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, _: Attrs
) -> tuple[Array, ...]:
    band = _band(rng, dtype, size)
    diagonal, off = _blocks(np.linalg.cholesky(_dense(*band)), band[0])
    return _lower(diagonal.astype(dtype)), off.astype(dtype)


def _sides(
    rng: np.random.Generator, dtype: np.dtype[Any], a: tuple[Array, ...]
) -> tuple[Array, ...]:
    return *a, normal(rng, dtype, (*a[0].shape[:-1], SIDES))


def _solve_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, attrs: Attrs
) -> tuple[Array, ...]:
    return _sides(rng, dtype, _matrix_inputs(rng, dtype, size, attrs))


def _cho_solve_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, attrs: Attrs
) -> tuple[Array, ...]:
    return _sides(rng, dtype, _factor_inputs(rng, dtype, size, attrs))


def _triangle(diagonal: Array, off: Array) -> Array:
    """The lower triangle whose blocks are given, as a dense matrix."""
    *batch, count, n, _ = diagonal.shape
    own = np.where(triangle(diagonal, lower=True), wide(diagonal), 0)
    a = np.zeros((*batch, count, n, count, n), own.dtype)
    for i in range(count):
        a[..., i, :, i, :] = own[..., i, :, :]
        if i + 1 < count:
            a[..., i + 1, :, i, :] = off[..., i, :, :]
    return a.reshape(*batch, count * n, count * n)


def _dense(diagonal: Array, off: Array) -> Array:
    """The Hermitian matrix whose lower blocks are given."""
    a = _triangle(diagonal, off)
    strict = np.where(triangle(a, lower=True, strict=True), a, 0)
    return np.asarray(strict + adjoint(strict) + np.where(np.eye(a.shape[-1]) > 0, a.real, 0))


def _blocks(a: Array, like: Array) -> tuple[Array, Array]:
    """The blocks of a dense matrix on its diagonal and below it."""
    *batch, count, n, _ = like.shape
    cut = a.reshape(*batch, count, n, count, n).swapaxes(-3, -2)
    own, below = np.arange(count), np.arange(max(count - 1, 0))
    return cut[..., own, own, :, :], cut[..., below + 1, below, :, :]


def _flat(x: Array) -> Array:
    return x.reshape(*x.shape[:-3], x.shape[-3] * x.shape[-2], x.shape[-1])


# block_tridiagonal_cholesky: A = L·Lᴴ, L's diagonal blocks zero above their diagonals.


def _factor_ratios(args: tuple[Array, ...], _: Attrs, rets: list[Array]) -> Array:
    a, (diagonal, off) = _dense(*args), rets
    lower = _triangle(diagonal, off)
    zeros = np.all(triangle(diagonal, lower=True) | (diagonal == 0), axis=(-3, -2, -1))
    error = lower @ adjoint(lower) - a
    return unless(zeros, scaled(error, norm(a), a.shape[-1], args[0]))


# block_tridiagonal_cho_solve: L·Lᴴ·X = B, L·X = B or Lᴴ·X = B.


def _cho_solve_ratios(args: tuple[Array, ...], attrs: Attrs, rets: list[Array]) -> Array:
    lower, b, x = _triangle(*args[:2]), _flat(args[2]), _flat(rets[0])
    upper = adjoint(lower)
    if code_is(attrs, "sweeps", "B"):
        return _system_ratios(lower @ upper, norm(lower) * norm(upper), b, x)
    a = lower if code_is(attrs, "sweeps", "F") else upper
    return _system_ratios(a, norm(a), b, x)


def _system_ratios(a: Array, size: Array, b: Array, x: Array) -> Array:
    return scaled(a @ wide(x) - wide(b), size * norm(wide(x)), a.shape[-1], b)


# block_tridiagonal_solve: A·X = B, the factor and ln det(A), whose error is at most about
# n·u·‖A‖·‖A⁻¹‖ beside its own rounding.


def _solve_ratios(args: tuple[Array, ...], attrs: Attrs, rets: list[Array]) -> Array:
    a, (x, *factor, logdet) = _dense(*args[:2]), rets
    n = a.shape[-1]
    exact, condition = np.linalg.slogdet(a).logabsdet, _condition(a)
    scale = max(n, 1) * roundoff(args[0]) * (condition + np.abs(exact) + 1)
    solution = _system_ratios(a, norm(a), _flat(args[2]), _flat(x))
    ratios = np.maximum(solution, _factor_ratios(args[:2], attrs, factor))
    return np.asarray(np.maximum(ratios, np.abs(logdet - exact) / scale))


def _condition(a: Array) -> Array:
    return norm(a) * norm(np.linalg.inv(a)) if a.size else np.zeros(a.shape[:-2])


# block_tridiagonal_inverse: the blocks of A⁻¹ for A = L·Lᴴ; the error of an inverse is its
# condition times u.


def _inverse_ratios(args: tuple[Array, ...], _: Attrs, rets: list[Array]) -> Array:
    lower = _triangle(*args)
    a = lower @ adjoint(lower)
    exact = np.linalg.inv(a) if a.size else a
    error = np.zeros(a.shape[:-2])
    for got, expected in zip(rets, _blocks(exact, args[0]), strict=True):
        error = np.maximum(error, np.abs(got - expected).max((-3, -2, -1), initial=0.0))
    if not a.size:
        return error
    scale = a.shape[-1] * roundoff(args[0]) * _condition(a) * norm(exact)
    hermitian = np.all(rets[0] == adjoint(rets[0]), axis=(-3, -2, -1))
    return unless(hermitian, error / scale)


# block_tridiagonal_lu: A = L·U with S on L's diagonal, E below it and G above U's ones.


def _general_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, _: Attrs
) -> tuple[Array, ...]:
    """Blocks on the diagonal dominate; their own rows are not in the order of the largest."""
    diagonal, lower = _band(rng, dtype, size)
    upper = normal(rng, dtype, lower.shape) / (4 + 4 * np.sqrt(size.n))
    return lower.astype(dtype), diagonal[..., ::-1, :].astype(dtype), upper.astype(dtype)


def _joined(lower: Array, diagonal: Array, upper: Array) -> Array:
    """The dense matrix of these blocks."""
    *batch, count, n, _ = diagonal.shape
    dtype = np.result_type(*map(wide, (lower, diagonal, upper)))
    a = np.zeros((*batch, count, n, count, n), dtype)
    for i in range(count):
        a[..., i, :, i, :] = diagonal[..., i, :, :]
        if i + 1 < count:
            a[..., i + 1, :, i, :] = lower[..., i, :, :]
            a[..., i, :, i + 1, :] = upper[..., i, :, :]
    return a.reshape(*batch, count * n, count * n)


def _pivot_blocks(lu: Array, pivots: Array) -> Array:
    """S of its factors and the rows that were swapped."""
    n = lu.shape[-1]
    s = (np.tril(wide(lu), -1) + np.eye(n)) @ np.triu(wide(lu))
    for j in reversed(range(n)):
        other = np.broadcast_to(pivots[..., j, None, None], (*s.shape[:-2], 1, n))
        there = np.take_along_axis(s, other, -2)
        np.put_along_axis(s, other, s[..., j, None, :].copy(), -2)
        s[..., j, :] = there[..., 0, :]
    return np.asarray(s)


def _product_of_factors(lower: Array, lu: Array, pivots: Array, upper: Array) -> Array:
    s = _pivot_blocks(lu, pivots)
    ones = np.broadcast_to(np.eye(s.shape[-1]), s.shape)
    return np.asarray(_joined(lower, s, 0 * upper) @ _joined(0 * lower, ones, upper))


def _lu_ratios(args: tuple[Array, ...], _: Attrs, rets: list[Array]) -> Array:
    a, (lu, pivots, upper) = _joined(*args), rets
    n = lu.shape[-1]
    rows = np.arange(n)
    sound = np.all((pivots >= rows) & (pivots < max(n, 1)), axis=(-2, -1))
    bounded = np.all(np.abs(np.tril(lu, -1)) < 1.5, axis=(-3, -2, -1))
    safe = np.where((pivots >= rows) & (pivots < n), pivots, rows)
    error = _product_of_factors(args[0], lu, safe, upper) - a
    return unless(sound & bounded, scaled(error, norm(a), a.shape[-1], args[1]))


# block_tridiagonal_lu_solve: op(A)·X = B for A = L·U.


def _lu_solve_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, attrs: Attrs
) -> tuple[Array, ...]:
    lower, diagonal, upper = _general_inputs(rng, dtype, size, attrs)
    n = diagonal.shape[-1]
    # Any factors do: a unit lower triangle with small numbers, and an upper one that dominates.
    lu = np.tril(diagonal, -1) / (4 * max(n, 1)) + np.triu(diagonal) / 4 + 3 * np.eye(n)
    pivots = np.minimum(np.arange(n) + 1, max(n - 1, 0)).astype(np.int32)
    pivots = np.broadcast_to(pivots, diagonal.shape[:-1]).copy()
    b = normal(rng, dtype, (*diagonal.shape[:-1], SIDES))
    return lower, lu.astype(dtype), pivots, upper, b


def _lu_solve_ratios(args: tuple[Array, ...], attrs: Attrs, rets: list[Array]) -> Array:
    a = _product_of_factors(*args[:4])
    if not code_is(attrs, "trans", "N"):
        a = a.swapaxes(-1, -2)
    if code_is(attrs, "trans", "C"):
        a = a.conj()
    return _system_ratios(a, norm(a), _flat(args[4]), _flat(rets[0]))


def _factor_flops(size: Size, _: Attrs) -> float:
    return size.m * size.n**3 * 7 / 3


def _sweeps_flops(size: Size, attrs: Attrs) -> float:
    return size.m * size.n**2 * SIDES * (6 if code_is(attrs, "sweeps", "B") else 3)


def _solve_flops(size: Size, attrs: Attrs) -> float:
    return _factor_flops(size, attrs) + size.m * size.n**2 * SIDES * 6


def _inverse_flops(size: Size, _: Attrs) -> float:
    return size.m * size.n**3 * 8


CHECKS = {
    "block_tridiagonal_cholesky": Check(
        _matrix_inputs, _factor_ratios, _factor_flops, rectangular=True
    ),
    "block_tridiagonal_cho_solve": Check(
        _cho_solve_inputs, _cho_solve_ratios, _sweeps_flops, rectangular=True
    ),
    "block_tridiagonal_solve": Check(_solve_inputs, _solve_ratios, _solve_flops, rectangular=True),
    "block_tridiagonal_lu": Check(
        _general_inputs,
        _lu_ratios,
        lambda size, _: size.m * size.n**3 * 14 / 3,
        rectangular=True,
    ),
    "block_tridiagonal_lu_solve": Check(
        _lu_solve_inputs,
        _lu_solve_ratios,
        lambda size, _: size.m * size.n**2 * SIDES * 6,
        rectangular=True,
    ),
    "block_tridiagonal_inverse": Check(
        _factor_inputs, _inverse_ratios, _inverse_flops, rectangular=True
    ),
}
