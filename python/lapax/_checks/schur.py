"""Residual ratios of Schur forms: A = Z·T·Zᴴ, T (quasi-)triangular with standard 2×2 blocks.

Without Z, what orthogonal similarity keeps is compared: the trace and the Frobenius norm.
"""

from __future__ import annotations

import numpy as np

from lapax._checks.equations import (
    Array,
    Attrs,
    Check,
    Size,
    adjoint,
    code_is,
    norm,
    roundoff,
    scaled,
    unless,
    wide,
)
from lapax._checks.hessenberg import departure, square


def _gees_ratios(args: tuple[Array, ...], attrs: Attrs, rets: list[Array]) -> Array:
    (a,), (t, z, wr, wi, sdim, info) = args, rets
    return _ratios(a, attrs, t, z, wr + 1j * wi, unless((sdim == 0) & (info == 0), _standard(t)))


def _gees_complex_ratios(args: tuple[Array, ...], attrs: Attrs, rets: list[Array]) -> Array:
    (a,), (t, z, w, sdim, info) = args, rets
    return _ratios(a, attrs, t, z, w, unless((sdim == 0) & (info == 0), _triangular(t)))


def _schur_ratios(args: tuple[Array, ...], _: Attrs, rets: list[Array]) -> Array:
    (a,), (t, z) = args, rets
    valid = _triangular(t) if a.dtype.kind == "c" else _standard(t)
    return np.maximum(valid, _decomposition(a, t, z))


def _triangular(t: Array) -> Array:
    """0 where T is triangular, inf elsewhere."""
    triangular = np.all(np.tril(t, -1) == 0, axis=(-2, -1))
    return unless(triangular, np.zeros(triangular.shape))


def _standard(t: Array) -> Array:
    """0 where T is quasi-triangular with blocks in LAPACK's standard form, inf elsewhere."""
    below, above = _diagonal(t, -1), _diagonal(t, 1)
    same = _diagonal(t, 0)[..., 1:] == _diagonal(t, 0)[..., :-1]
    blocks = (below == 0) | (same & (np.sign(below) == -np.sign(above)))
    apart = (below[..., 1:] == 0) | (below[..., :-1] == 0)
    hessenberg = np.all(np.tril(t, -2) == 0, axis=(-2, -1))
    return unless(hessenberg & blocks.all(-1) & apart.all(-1), np.zeros(hessenberg.shape))


def _diagonal(x: Array, offset: int) -> Array:
    return np.diagonal(x, offset, -2, -1)


def _ratios(a: Array, attrs: Attrs, t: Array, z: Array, w: Array, valid: Array) -> Array:
    n = a.shape[-1]
    size = norm(wide(a))
    diagonal = wide(_diagonal(t, 0))
    # Eigenvalues are those of the diagonal blocks: d ± i·√−(b·c).
    product = _diagonal(wide(t), -1) * _diagonal(wide(t), 1)
    beside = np.zeros((*product.shape[:-1], 1))
    squares = np.concatenate([product, beside], -1) + np.concatenate([beside, product], -1)
    expected = diagonal + 1j * np.sqrt(np.abs(squares))
    both = np.abs(w - expected), np.abs(w - expected.conj())
    difference = np.minimum(*both) if a.dtype.kind != "c" else np.abs(w - diagonal)
    ratio = np.maximum(valid, _over(difference.max(-1, initial=0.0), n, size, a))
    if code_is(attrs, "mode", "V"):
        return np.maximum(ratio, _decomposition(a, t, z))
    trace = np.abs(diagonal.sum(-1) - _diagonal(wide(a), 0).sum(-1))
    length = np.abs(np.linalg.norm(wide(t), axis=(-2, -1)) - np.linalg.norm(wide(a), axis=(-2, -1)))
    return np.maximum(ratio, _over(np.maximum(trace, length), n, size, a))


def _decomposition(a: Array, t: Array, z: Array) -> Array:
    error = wide(z) @ wide(t) @ adjoint(wide(z)) - wide(a)
    return np.maximum(scaled(error, norm(wide(a)), a.shape[-1], a), departure(wide(z), a))


def _over(error: Array, n: int, size: Array, like: Array) -> Array:
    """error / (n·size·u), 0 for an empty matrix."""
    return np.asarray(error / (n * size * roundoff(like)) if n else np.zeros(error.shape))


def _flops(size: Size, attrs: Attrs) -> float:
    # Golub and Van Loan, Matrix Computations, section 7.5: with Z, and without.
    return (25 if code_is(attrs, "mode", "V") else 10) * size.n**3


CHECKS = {
    "gees": Check(square, _gees_ratios, _flops),
    "gees_complex": Check(square, _gees_complex_ratios, _flops),
    "schur": Check(square, _schur_ratios, lambda size, attrs: 25 * size.n**3),
}
