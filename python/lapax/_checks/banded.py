"""Residual ratios of banded systems: see the comment of each op for its equation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lapax._checks.equations import (
    Array,
    Attrs,
    Check,
    Size,
    code_is,
    norm,
    normal,
    roundoff,
    scaled,
    unless,
    wide,
)

# A(i, j) is ab[u + i - j, j]; what lies outside of A is not read. m is the order, n the number of
# right-hand sides.

_LOWER, _UPPER = 2, 1
"""Diagonals below and above the main one of the general matrices."""
_BESIDE = 2
"""Those beside it of Hermitian ones."""


def _outside(ab: Array, upper: int, value: float) -> Array:
    """ab with a value where no element of the matrix stands."""
    row, column = np.indices(ab.shape[-2:])
    i = column + row - upper
    return np.where((i >= 0) & (i < ab.shape[-1]), ab, ab.dtype.type(value))


def _diagonals(ab: Array, upper: int) -> Iterator[tuple[slice, slice, Array]]:
    """Of each diagonal, the rows and columns that it spans, and its elements."""
    n = ab.shape[-1]
    for p in range(ab.shape[-2]):
        below = p - upper
        columns = slice(max(0, -below), min(n, n - below))
        if columns.start < columns.stop:
            rows = slice(columns.start + below, columns.stop + below)
            yield rows, columns, ab[..., p, columns]


def _product(ab: Array, upper: int, x: Array) -> Array:
    y = np.zeros_like(x)
    for rows, columns, a in _diagonals(ab, upper):
        y[..., rows, :] += a[..., None] * x[..., columns, :]
    return y


def _whole(ab: Array, upper: int) -> Array:
    """All diagonals of the Hermitian matrix of which ab has those of one triangle."""
    beside, n = ab.shape[-2] - 1, ab.shape[-1]
    whole = np.zeros((*ab.shape[:-2], 2 * beside + 1, n), ab.dtype)
    for rows, columns, a in _diagonals(ab, upper):
        below = rows.start - columns.start
        whole[..., beside + below, columns] = a if below else a.real
        if below:
            whole[..., beside - below, rows] = a.conj()
    return whole


def _general_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, _: Attrs
) -> tuple[Array, ...]:
    ab = normal(rng, dtype, (*size.batch, _LOWER + _UPPER + 1, size.m))
    ab[..., _UPPER, :] += 6
    return _outside(ab, _UPPER, np.nan), normal(rng, dtype, (*size.batch, size.m, size.n))


def _definite(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, attrs: Attrs, order: int
) -> tuple[Array, int]:
    upper = 0 if code_is(attrs, "uplo", "L") else _BESIDE
    ab = normal(rng, dtype, (*size.batch, _BESIDE + 1, order))
    ab[..., upper, :] = 12
    return _outside(ab, upper, np.nan), upper


def _definite_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, attrs: Attrs
) -> tuple[Array, ...]:
    ab, _ = _definite(rng, dtype, size, attrs, size.m)
    return ab, normal(rng, dtype, (*size.batch, size.m, size.n))


def _factor_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, attrs: Attrs
) -> tuple[Array, ...]:
    return (_definite(rng, dtype, size, attrs, size.n)[0],)


def _upper(ab: Array, attrs: Attrs) -> int:
    return 0 if code_is(attrs, "uplo", "L") else ab.shape[-2] - 1


def _solve_ratios(args: tuple[Array, ...], attrs: Attrs, rets: list[Array]) -> Array:
    """‖A·X − B‖ / (‖A‖·‖X‖·u)."""
    (ab, b), x = args, wide(rets[0])
    upper = ab.shape[-2] - 1 - int(attrs["l"])
    ab = wide(_outside(ab, upper, 0))
    size = norm(ab) * norm(x)
    return scaled(_product(ab, upper, x) - wide(b), size, 1, args[0])


def _definite_ratios(args: tuple[Array, ...], attrs: Attrs, rets: list[Array]) -> Array:
    """The same."""
    (ab, b), x = args, wide(rets[0])
    upper = _upper(ab, attrs)
    whole = _whole(wide(_outside(ab, upper, 0)), upper)
    size = norm(whole) * norm(x)
    return scaled(_product(whole, ab.shape[-2] - 1, x) - wide(b), size, 1, args[0])


def _factor_ratios(args: tuple[Array, ...], attrs: Attrs, rets: list[Array]) -> Array:
    """‖A − L·Lᴴ‖ / (n·‖A‖·u), column by column of the band, and zeros outside."""
    (ab,), (factor,) = args, rets
    upper, n = _upper(ab, attrs), ab.shape[-1]
    lower = _whole(wide(_outside(ab, upper, 0)), upper)[..., ab.shape[-2] - 1 :, :]
    product = _gram(factor, upper)
    outside = np.all(_outside(factor, upper, 0) == factor, axis=(-2, -1))
    error = np.abs(product - lower).sum(-2).max(-1, initial=0.0)
    size = norm(lower) * max(n, 1) * roundoff(ab)
    return unless(outside, error / np.where(size > 0, size, 1))


def _gram(factor: Array, upper: int) -> Array:
    """The diagonals of L·Lᴴ on and below the main one."""
    f = wide(factor)
    lower = np.zeros_like(f)
    for rows, columns, a in _diagonals(f, upper):
        below = abs(rows.start - columns.start)
        lower[..., below, : f.shape[-1] - below] = a if upper == 0 else a.conj()
    product, n = np.zeros_like(lower), lower.shape[-1]
    for c in range(lower.shape[-2]):
        for d in range(c, min(lower.shape[-2], n)):
            # L(k + d, k)·conj(L(k + c, k)) is of element (k + d, k + c).
            product[..., d - c, c : n - (d - c)] += (
                lower[..., d, : n - d] * lower[..., c, : n - d].conj()
            )
    return product


def _cho_solve_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, attrs: Attrs
) -> tuple[Array, ...]:
    """A factor with a large diagonal, which is well conditioned."""
    return _definite_inputs(rng, dtype, size, attrs)


def _cho_solve_ratios(args: tuple[Array, ...], attrs: Attrs, rets: list[Array]) -> Array:
    (factor, b), x = args, wide(rets[0])
    upper, beside = _upper(factor, attrs), factor.shape[-2] - 1
    f = _outside(factor, upper, 0)
    lower = _gram(f, upper)
    whole = _whole(lower, 0)
    size = norm(whole) * norm(x)
    return scaled(_product(whole, beside, x) - wide(b), size, 1, args[0])


def _flops(size: Size, _: Attrs) -> float:
    return size.m * (_LOWER * (1 + 2 * (_LOWER + _UPPER)) + 2 * size.n * (2 * _LOWER + _UPPER + 1))


def _factor_flops(size: Size, _: Attrs) -> float:
    return size.n * (_BESIDE + 1) ** 2


def _definite_flops(size: Size, _: Attrs) -> float:
    return size.m * ((_BESIDE + 1) ** 2 + 4 * size.n * (_BESIDE + 1))


def _cho_solve_flops(size: Size, _: Attrs) -> float:
    return 4 * size.m * size.n * (_BESIDE + 1)


CHECKS = {
    "solve_banded": Check(
        _general_inputs, _solve_ratios, _flops, attrs=lambda _: {"l": _LOWER}, rectangular=True
    ),
    "solveh_banded": Check(_definite_inputs, _definite_ratios, _definite_flops, rectangular=True),
    "cholesky_banded": Check(_factor_inputs, _factor_ratios, _factor_flops),
    "cho_solve_banded": Check(
        _cho_solve_inputs, _cho_solve_ratios, _cho_solve_flops, rectangular=True
    ),
}
