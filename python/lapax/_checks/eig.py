"""Residual ratios of eigenvalues and eigenvectors: A·V = V·W, Uᴴ·A = W·Uᴴ, columns of norm one
with a real component of 0.4869/√n or more; conjugates adjacent, positive imaginary part first.

The traces of A and A² are those of the eigenvalues in any case.
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
from lapax._checks.hessenberg import square


def _geev_ratios(args: tuple[Array, ...], attrs: Attrs, rets: list[Array]) -> Array:
    (a,), (wr, wi, vl, vr, info) = args, rets
    w = wide(wr) + 1j * wide(wi)
    return unless(_paired(w) & (info == 0), _ratios(a, attrs, w, vl, vr))


def _paired(w: Array) -> Array:
    """Whether conjugates are adjacent, the one with positive imaginary part first."""
    first = np.cumsum(w.imag != 0, axis=-1) % 2 == 1
    follows = w[..., 1:] == w[..., :-1].conj()
    pairs = np.all(~first | (w.imag >= 0), axis=-1)
    return np.asarray(pairs & np.all(~(first & (w.imag != 0))[..., :-1] | follows, axis=-1))


def _geev_complex_ratios(args: tuple[Array, ...], attrs: Attrs, rets: list[Array]) -> Array:
    (a,), (w, vl, vr, info) = args, rets
    return unless(info == 0, _ratios(a, attrs, wide(w), vl, vr))


def _eig_ratios(args: tuple[Array, ...], attrs: Attrs, rets: list[Array]) -> Array:
    (a,), (w, v) = args, rets
    values = _eigvals_ratios(args, attrs, [w])
    if a.shape[-1] == 0:
        return values
    return np.maximum(values, _residual(wide(a), wide(w), wide(v), norm(wide(a)), a))


def _eigvals_ratios(args: tuple[Array, ...], _: Attrs, rets: list[Array]) -> Array:
    (a,), (w,) = args, rets
    sound = a.dtype.kind == "c" or _paired(w)
    return unless(np.asarray(sound), _traces(a, wide(w)))


def _ratios(a: Array, attrs: Attrs, w: Array, vl: Array, vr: Array) -> Array:
    matrix, ratio = wide(a), _traces(a, w)
    if a.shape[-1] == 0:
        return ratio
    size = norm(matrix)
    if code_is(attrs, "compute_right", "V"):
        ratio = np.maximum(ratio, _residual(matrix, w, wide(vr), size, a))
    if code_is(attrs, "compute_left", "V"):
        ratio = np.maximum(ratio, _residual(adjoint(matrix), w.conj(), wide(vl), size, a))
    return ratio


def _traces(a: Array, w: Array) -> Array:
    """How far the traces of A and A² are from the sums of the eigenvalues and their squares."""
    matrix, n = wide(a), a.shape[-1]
    ratio = np.zeros(a.shape[:-2])
    if n == 0:
        return ratio
    size = norm(matrix)
    for power, product in ((1, matrix), (2, matrix @ matrix)):
        trace = np.abs(np.trace(product, axis1=-2, axis2=-1) - (w**power).sum(-1))
        ratio = np.maximum(ratio, trace / (n * size**power * roundoff(a)))
    return ratio


def _residual(a: Array, w: Array, v: Array, size: Array, like: Array) -> Array:
    """‖A·V − V·W‖ / (n·‖A‖·u); inf where a column is not as it is to be normalised."""
    moduli = np.abs(v)
    margin = 16 * v.shape[-1] * roundoff(like)
    unit = np.abs(np.linalg.norm(v, axis=-2) - 1) <= margin
    # lapax's is the first such component, LAPACK's that of largest modulus.
    large = moduli * np.sqrt(v.shape[-2]) >= 0.4869 - margin
    real = np.any(large & (v.imag == 0), axis=-2)
    error = scaled(a @ v - v * w[..., None, :], size, v.shape[-1], like)
    return unless(np.all(unit & real, axis=-1), error)


def _flops(size: Size, attrs: Attrs) -> float:
    return _flops_of(
        sum(code_is(attrs, name, "V") for name in ("compute_left", "compute_right")), size
    )


def _flops_of(wanted: int, size: Size) -> float:
    # Golub and Van Loan, Matrix Computations, section 7.5: the Schur form; then n³/3 for the
    # vectors of T and n³ for their product with Z, both doubled.
    return (25 + 4 * wanted if wanted else 10) * size.n**3


CHECKS = {
    "geev": Check(square, _geev_ratios, _flops),
    "geev_complex": Check(square, _geev_complex_ratios, _flops),
    "eig": Check(square, _eig_ratios, lambda size, attrs: _flops_of(1, size)),
    "eigvals": Check(square, _eigvals_ratios, lambda size, attrs: _flops_of(0, size)),
}
