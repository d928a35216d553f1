"""Residual ratios of LU factors: see the comment of each op for its equation."""

from __future__ import annotations

import math
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

# getrf: P·A = L·U with row swaps i ↔ ipiv[i], 1-based; |re|+|im| of no multiplier exceeds its
# pivot's, hence |l| ≤ √2.


def _getrf_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, _: Attrs
) -> tuple[Array, ...]:
    return (normal(rng, dtype, (*size.batch, size.m, size.n)),)


def _getrf_ratios(args: tuple[Array, ...], _: Attrs, rets: list[Array]) -> Array:
    (a,), (lu, ipiv, info) = args, rets
    (m, n), k = a.shape[-2:], ipiv.shape[-1]
    swaps = ipiv.astype(np.int64) - 1
    inside = np.all((np.arange(k) <= swaps) & (swaps < m), axis=-1)
    perm = _swapped(np.clip(swaps, 0, max(m - 1, 0)), m)
    lower = np.tril(wide(lu)[..., :, :k], -1) + np.eye(m, k)
    upper = np.triu(wide(lu)[..., :k, :])
    error = lower @ upper - np.take_along_axis(wide(a), perm[..., None], axis=-2)
    bounded = np.all(np.abs(lower) <= math.sqrt(2) * (1 + 16 * roundoff(a)), axis=(-2, -1))
    return unless(inside & bounded & (info == 0), scaled(error, norm(wide(a)), n, a))


def _getrf_flops(size: Size, _: Attrs) -> float:
    m, n, k = size.m, size.n, min(size.m, size.n)
    return 2 * m * n * k - (m + n) * k**2 + 2 * k**3 / 3


# lu: the same factors, with 0-based swaps and the permutation that they make.


def _lu_ratios(args: tuple[Array, ...], attrs: Attrs, rets: list[Array]) -> Array:
    lu, pivots, perm = rets
    m = perm.shape[-1]
    same = np.all(perm == _swapped(np.clip(pivots, 0, max(m - 1, 0)), m), axis=-1)
    info = np.zeros(lu.shape[:-2], np.int32)
    return unless(same, _getrf_ratios(args, attrs, [lu, pivots + 1, info]))


# lu_solve: op(A)·X = B from the factors, A's row perm[i] being row i of L·U.


def _lu_solve_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, _: Attrs
) -> tuple[Array, ...]:
    n = size.m
    lu = normal(rng, dtype, (*size.batch, n, n)) / max(n, 1) + 2 * np.eye(n)
    perm = rng.permuted(np.broadcast_to(np.arange(n, dtype=np.int32), (*size.batch, n)), axis=-1)
    return lu.astype(dtype), perm, normal(rng, dtype, (*size.batch, n, size.n))


def _lu_solve_ratios(args: tuple[Array, ...], attrs: Attrs, rets: list[Array]) -> Array:
    (lu, perm, b), x = args, wide(rets[0])
    n = lu.shape[-1]
    product = (np.tril(wide(lu), -1) + np.eye(n)) @ np.triu(wide(lu))
    a = np.empty_like(product)
    np.put_along_axis(a, perm[..., None], product, axis=-2)
    if not code_is(attrs, "trans_x", "N"):
        a = a.swapaxes(-1, -2)
    if code_is(attrs, "trans_x", "C"):
        a = a.conj()
    return scaled(a @ x - wide(b), norm(a) * norm(x), n, lu)


def _lu_solve_flops(size: Size, _: Attrs) -> float:
    return 2 * size.m**2 * size.n


# solve, and inv, whose B is the identity: A·X = B by factors that are not kept.


def _solve_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, _: Attrs
) -> tuple[Array, ...]:
    n, nrhs = size.m, size.n
    return normal(rng, dtype, (*size.batch, n, n)), normal(rng, dtype, (*size.batch, n, nrhs))


def _solve_ratios(args: tuple[Array, ...], _: Attrs, rets: list[Array]) -> Array:
    (a, b), (x,) = args, rets
    return scaled(wide(a) @ wide(x) - wide(b), norm(wide(a)) * norm(wide(x)), a.shape[-1], a)


def _solve_flops(size: Size, _: Attrs) -> float:
    return 2 * size.m**3 / 3 + 2 * size.m**2 * size.n


def _inv_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, _: Attrs
) -> tuple[Array, ...]:
    return (normal(rng, dtype, (*size.batch, size.m, size.m)),)


def _inv_ratios(args: tuple[Array, ...], attrs: Attrs, rets: list[Array]) -> Array:
    identity = np.broadcast_to(np.eye(args[0].shape[-1]), args[0].shape)
    return _solve_ratios((args[0], identity), attrs, rets)


def _inv_flops(size: Size, _: Attrs) -> float:
    return 2 * size.m**3


# slogdet: det(A) = sign·exp(logabs). LU is the determinant of A + E, ‖E‖ ≤ c·n·ε·‖A‖, hence
# |Δ log|det|| and |Δ sign| ≤ c·n·ε·‖A‖·‖A⁻¹‖, beside the rounding of logabs itself.


def _slogdet_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, _: Attrs
) -> tuple[Array, ...]:
    return (normal(rng, dtype, (*size.batch, size.m, size.m)),)


def _slogdet_ratios(args: tuple[Array, ...], _: Attrs, rets: list[Array]) -> Array:
    (a,), (sign, logabs) = args, rets
    n = a.shape[-1]
    exact = np.linalg.slogdet(wide(a))
    condition = norm(wide(a)) * norm(np.linalg.inv(wide(a))) if n else np.zeros(sign.shape)
    scale = max(n, 1) * roundoff(a) * (condition + np.abs(exact.logabsdet) + 1)
    error = np.abs(wide(sign) - exact.sign) + np.abs(logabs - exact.logabsdet)
    return np.asarray(error / scale)


def _slogdet_flops(size: Size, _: Attrs) -> float:
    return 2 * size.m**3 / 3


# lu_pivots_to_permutation: swaps i ↔ pivots[i] in order, 0-based, on the identity of length p = m.


def _permutation_inputs(
    rng: np.random.Generator, _: np.dtype[Any], size: Size, _attrs: Attrs
) -> tuple[Array, ...]:
    return (rng.integers(np.arange(size.n), size.m, (*size.batch, size.n), dtype=np.int32),)


def _permutation_ratios(args: tuple[Array, ...], _: Attrs, rets: list[Array]) -> Array:
    (pivots,), (perm,) = args, rets
    same = np.all(perm == _swapped(pivots, perm.shape[-1]), axis=-1)
    return unless(same, np.zeros(same.shape))


def _swapped(swaps: Array, length: int) -> Array:
    """The identity permutation of `length` after the swaps i ↔ swaps[i], in order."""
    perm = np.broadcast_to(np.arange(length), (*swaps.shape[:-1], length)).copy()
    for i in range(swaps.shape[-1]):
        other = swaps[..., i : i + 1]
        there = np.take_along_axis(perm, other, axis=-1)
        np.put_along_axis(perm, other, perm[..., i : i + 1].copy(), axis=-1)
        perm[..., i : i + 1] = there
    return perm


CHECKS = {
    "getrf": Check(_getrf_inputs, _getrf_ratios, _getrf_flops, rectangular=True),
    "lu": Check(_getrf_inputs, _lu_ratios, _getrf_flops, rectangular=True),
    "lu_solve": Check(_lu_solve_inputs, _lu_solve_ratios, _lu_solve_flops, rectangular=True),
    "solve": Check(_solve_inputs, _solve_ratios, _solve_flops, rectangular=True),
    "inv": Check(_inv_inputs, _inv_ratios, _inv_flops),
    "slogdet": Check(_slogdet_inputs, _slogdet_ratios, _slogdet_flops),
    "lu_pivots_to_permutation": Check(
        _permutation_inputs,
        _permutation_ratios,
        lambda size, attrs: 0.0,
        dims=lambda size, attrs: {"p": size.m},
    ),
}
