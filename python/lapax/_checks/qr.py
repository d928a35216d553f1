"""Residual ratios of QR factors: see the comment of each op for its equation."""

from __future__ import annotations

from typing import Any

import numpy as np

from lapax._checks.equations import (
    Array,
    Attrs,
    Check,
    Size,
    adjoint,
    keep,
    norm,
    normal,
    scaled,
    unless,
    wide,
)

# geqrf: A = Q·R, Q = H₁⋯H_k of reflectors below the diagonal, R on and above it with a real one.


def _geqrf_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, _: Attrs
) -> tuple[Array, ...]:
    return (normal(rng, dtype, (*size.batch, size.m, size.n)),)


def _geqrf_ratios(args: tuple[Array, ...], _: Attrs, rets: list[Array]) -> Array:
    (a,), (qr, tau) = args, rets
    (m, n), q = a.shape[-2:], _q(qr, tau)
    error = q @ np.triu(wide(qr)) - wide(a)
    unitary = scaled(adjoint(q) @ q - np.eye(m), np.ones(()), m, a)
    real = np.all(np.diagonal(qr, axis1=-2, axis2=-1).imag == 0, axis=-1)
    return unless(real, np.maximum(scaled(error, norm(wide(a)), max(m, n), a), unitary))


def _q(a: Array, tau: Array) -> Array:
    """H₁⋯H_t, square, from stored reflectors."""
    m = a.shape[-2]
    q = np.broadcast_to(np.eye(m, dtype=wide(a).dtype), (*a.shape[:-2], m, m)).copy()
    for i in reversed(range(tau.shape[-1])):
        v = wide(a[..., i:, i : i + 1])
        v[..., :1, :] = 1
        q[..., i:, :] -= tau[..., i, None, None] * v @ (adjoint(v) @ q[..., i:, :])
    return q


def _reflector_flops(size: Size, _: Attrs) -> float:
    m, n, k = size.m, size.n, min(size.m, size.n)
    return 4 * m * n * k - 2 * (m + n) * k**2 + 4 * k**3 / 3


# qr: A = Q·R with Q's columns orthonormal, R upper trapezoidal with a real diagonal.


def _qr_ratios(args: tuple[Array, ...], _: Attrs, rets: list[Array]) -> Array:
    (a,), (q, r) = args, rets
    (m, n), c = a.shape[-2:], q.shape[-1]
    error = scaled(wide(q) @ wide(r) - wide(a), norm(wide(a)), max(m, n), a)
    gram = adjoint(wide(q)) @ wide(q) - np.eye(c)
    real = np.all(np.diagonal(r, axis1=-2, axis2=-1).imag == 0, axis=-1)
    upper = np.all(np.tril(r, -1) == 0, axis=(-2, -1))
    return unless(real & upper, np.maximum(error, scaled(gram, np.ones(()), m, a)))


def _qr_flops(size: Size, attrs: Attrs) -> float:
    return 2 * _reflector_flops(size, attrs)


def _qr_columns(size: Size, _: Attrs) -> dict[str, int]:
    return {"c": min(size.m, size.n)}


# qr_r: R of A = Q·R alone, so that AᴴA = RᴴR for ‖A − Q·R‖ ≤ c·max(m, n)·u·‖A‖ and some unitary Q.


def _qr_r_ratios(args: tuple[Array, ...], _: Attrs, rets: list[Array]) -> Array:
    (a,), (r,) = args, rets
    gram = adjoint(wide(a)) @ wide(a)
    scale = norm(wide(a)) * norm(adjoint(wide(a)))
    error = scaled(adjoint(wide(r)) @ wide(r) - gram, scale, max(a.shape[-2:]), a)
    real = np.all(np.diagonal(r, axis1=-2, axis2=-1).imag == 0, axis=-1)
    upper = np.all(np.tril(r, -1) == 0, axis=(-2, -1))
    return unless(real & upper, error)


# geqp3: A·P = Q·R; columns with a number come first, here the last one.


def _geqp3_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, _: Attrs
) -> tuple[Array, ...]:
    jpvt = np.zeros((*size.batch, size.n), np.int32)
    jpvt[..., size.n - 1 :] = 1
    return normal(rng, dtype, (*size.batch, size.m, size.n)), jpvt


def _geqp3_ratios(args: tuple[Array, ...], attrs: Attrs, rets: list[Array]) -> Array:
    (a, _), (qr, jpvt, tau) = args, rets
    n = a.shape[-1]
    permutation = np.all(np.sort(jpvt, axis=-1) == np.arange(1, n + 1), axis=-1)
    fixed = np.all(jpvt[..., :1] == n, axis=-1)
    columns = np.clip(jpvt - 1, 0, max(n - 1, 0))[..., None, :]
    moved = np.take_along_axis(a, columns, axis=-1)
    return unless(permutation & fixed, _geqrf_ratios((moved,), attrs, [qr, tau]))


# orgqr: the first n columns of H₁⋯H_t, t ≤ n ≤ m; the upper triangle is not read.


def _orgqr_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, _: Attrs
) -> tuple[Array, ...]:
    m, n = max(size.m, size.n), min(size.m, size.n)
    return _reflectors(rng, dtype, (*size.batch, m, n), n - n // 4)


def _reflectors(
    rng: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...], t: int
) -> tuple[Array, ...]:
    """t reflectors in columns of that shape, and their factors; NaN elsewhere."""
    h, tau = np.linalg.qr(normal(rng, np.dtype(np.result_type(dtype, np.float64)), shape), "raw")
    row, column = np.indices(shape[-2:])
    a = keep(h.swapaxes(-1, -2).astype(dtype), (row > column) & (column < t))
    return a, tau[..., :t].astype(dtype)


def _orgqr_ratios(args: tuple[Array, ...], _: Attrs, rets: list[Array]) -> Array:
    (a, tau), (q,) = args, rets
    m, n = a.shape[-2:]
    return scaled(wide(q) - _q(a, tau)[..., :n], np.ones(()), m, a)


# ormqr: op(Q)·C or C·op(Q), Q = H₁⋯H_t of the order of C on that side.


def _ormqr_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, attrs: Attrs
) -> tuple[Array, ...]:
    r = _order(size, attrs)
    a, tau = _reflectors(rng, dtype, (*size.batch, r, r), r - r // 4)
    return a, tau, normal(rng, dtype, (*size.batch, size.m, size.n))


def _ormqr_ratios(args: tuple[Array, ...], attrs: Attrs, rets: list[Array]) -> Array:
    (a, tau, c), (product,) = args, rets
    q = _q(a, tau)
    q = adjoint(q) if attrs["transpose"] else q
    error = wide(product) - (q @ wide(c) if attrs["left"] else wide(c) @ q)
    return scaled(error, norm(wide(c)), max(c.shape[-2:]), a)


def _ormqr_flops(size: Size, attrs: Attrs) -> float:
    r = _order(size, attrs)
    t = r - r // 4
    return 2 * size.m * size.n / max(r, 1) * t * (2 * r - t)


def _order(size: Size, attrs: Attrs) -> int:
    return size.m if attrs["left"] else size.n


CHECKS = {
    "geqrf": Check(_geqrf_inputs, _geqrf_ratios, _reflector_flops, rectangular=True),
    "qr": Check(_geqrf_inputs, _qr_ratios, _qr_flops, dims=_qr_columns, rectangular=True),
    "qr_r": Check(
        _geqrf_inputs, _qr_r_ratios, _reflector_flops, dims=_qr_columns, rectangular=True
    ),
    "geqp3": Check(_geqp3_inputs, _geqp3_ratios, _reflector_flops, rectangular=True),
    "orgqr": Check(_orgqr_inputs, _orgqr_ratios, _reflector_flops, rectangular=True),
    "ormqr": Check(_ormqr_inputs, _ormqr_ratios, _ormqr_flops, rectangular=True),
}
