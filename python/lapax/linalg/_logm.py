"""The logarithm and fractional powers of a matrix, by inverse scaling and squaring.

On the Schur form T: log T = 2ˢ·log(I + X) with X = T^(1/2ˢ) - I, from s square roots, as many in
each matrix as make the backward error of the Padé approximant r of log(1 + x) smaller than the unit
roundoff by the norms of powers of X (Al-Mohy and Higham, SIAM J. Sci. Comput. 34, 2012). r is the
Gauss-Legendre sum Σ w_j·X·(I + x_j·X)⁻¹ of one degree for all matrices. Diagonals and first
superdiagonals of X, of the logarithm and of powers come from their formulas, so that nothing
cancels. T^t = exp(t·log T).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lapax.linalg._arguments import check_square, operation
from lapax.linalg._expm import exponential_value
from lapax.linalg._frechet import primary_function
from lapax.linalg._products import (
    all_or_nan,
    computed_where,
    diagonal,
    one_norm,
    product,
    with_diagonal,
)
from lapax.linalg._sqrtm import of_complex, real_part
from lapax.linalg._triangular import derivative_through_schur, square_root, through_schur

__all__ = ["fractional_matrix_power", "logm"]

Array = jax.Array


@operation("A")
def logm(A: Any, *, real: bool = False) -> Any:
    """The principal logarithm X of A [..., n, n]: exp(X) = A, eigenvalues with imaginary part in
    (-π, π].

    The result is complex; with `real=True` that of real A is real, and NaN where it is not. At an
    eigenvalue 0 there is no logarithm: as in SciPy, 10⁻²⁰ stands for it.

    Derivative: by the block formula; of every order where A has no eigenvalue on the negative real
    axis.

    Raises ValueError unless A is square.
    Source: Al-Mohy and Higham, SIAM J. Sci. Comput. 34, 2012.

    Cost: that of `schur`, and O(n³) for each square root and each of up to seven systems, four
    times as much where a real A has eigenvalues that are negative or complex.

    >>> logm(eye(2)).real  # [[0, 0], [0, 0]]
    """
    check_square("logm", A=A)
    value = logarithm(A)
    return real_part(value, A) if real else value


@operation("A")
def fractional_matrix_power(A: Any, t: float, *, real: bool = False) -> Any:
    """The principal power Aᵗ of A [..., n, n] for a real number t, which is static.

    For integers t it is a product of As or of inverses, real for real A; else exp(t·log A), which
    is complex, or with `real=True` real for real A, and NaN where it is not. Singular matrices have
    powers t > 0 unless 0 is a defective eigenvalue, and NaN for t < 0.

    Derivative: by the block formula, not in t; of every order where A has no eigenvalue on the
    negative real axis.

    Raises ValueError unless A is square.
    Source: Higham and Lin, SIAM J. Matrix Anal. Appl. 34, 2013, for the diagonals and the split
    of t; the power itself by the logarithm.

    Cost: that of `logm` and `expm`.

    >>> fractional_matrix_power(4 * eye(2), 0.5).real  # [[2, 0], [0, 2]]
    """
    check_square("fractional_matrix_power", A=A)
    if t == int(t):
        return jnp.linalg.matrix_power(A, int(t))
    return of_complex(_power(float(t)), A, real)


class _Approximant(NamedTuple):
    degree: int
    theta: float
    """The norm of X up to which the backward error is below the unit roundoff."""


# θ: the x with Σ |c_k|·xᵏ⁻¹ = u for the series exp(r(x)) - 1 - x = Σ c_k·xᵏ, by 80 digits.
_APPROXIMANTS = {4: _Approximant(4, 0.390016), 8: _Approximant(7, 0.247960)}
_ROOTS = 100
"""More than any matrix of finite numbers needs: the eigenvalue 2⁻¹⁰⁷⁴ takes 12."""


def _logarithm_of_triangular(t: Array) -> Array:
    return _logarithm(_nonzero(t, 1e-20))


def _nonzero(t: Array, instead: float) -> Array:
    """T with `instead` for zeros on its diagonal, whose imaginary zeros lose their sign."""
    values = diagonal(t) + 0
    return with_diagonal(t, jnp.where(values == 0, instead, values))


def _logarithm(t: Array) -> Array:
    """log T of a triangular T without zeros on the diagonal; of a real one without negative numbers
    there."""
    n = t.shape[-1]
    good = jnp.all(jnp.isfinite(t), axis=(-2, -1))
    t = jnp.where(good[..., None, None], t, jnp.eye(n, dtype=t.dtype))
    values = diagonal(t)
    logarithms = _log(values)
    root, halvings = _roots(t, logarithms)
    unit = jnp.ldexp(jnp.ones((), t.real.dtype), -halvings)[..., None]
    x = with_diagonal(root, _expm1(logarithms * unit))
    above = jnp.diagonal(t, 1, -2, -1)
    x = with_diagonal(x, above * _power_quotients(values, logarithms, unit), 1)
    result = _log_of_one_plus(x) / unit[..., None]
    result = with_diagonal(result, logarithms)
    result = with_diagonal(result, above * _log_quotients(values, logarithms), 1)
    return all_or_nan(good, result)


def _roots(t: Array, logarithms: Array) -> tuple[Array, Array]:
    """T^(1/2ˢ) and s, for each matrix its own."""
    theta = _APPROXIMANTS[t.real.dtype.itemsize].theta

    def unfinished(root: Array, halvings: Array) -> Array:
        unit = jnp.ldexp(jnp.ones((), t.real.dtype), -halvings)[..., None]
        x = with_diagonal(root, _expm1(logarithms * unit))

        def too_large(which: Array) -> Array:
            y = jnp.where(which[..., None, None], x, 0)
            y2 = product(y, y)
            y3 = product(y2, y)
            powers = [y2, y3, product(y2, y2), product(y3, y2)]
            d = [one_norm(power) ** (1 / k) for k, power in enumerate(powers, 2)]
            pairs = [jnp.maximum(d[i], d[i + 1]) for i in range(3)]
            return functools.reduce(jnp.minimum, [one_norm(y), *pairs]) > theta

        # Each norm of a power is between these two: the products are seldom needed.
        large = jnp.max(jnp.abs(diagonal(x)), axis=-1, initial=0) > theta
        between = ~large & (one_norm(x) > theta)
        return computed_where(between, too_large, large) & (halvings < _ROOTS)

    def take(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        root, halvings, open_ = state
        root = jnp.where(open_[..., None, None], square_root(root), root)
        halvings = halvings + open_
        return root, halvings, open_ & unfinished(root, halvings)

    none = jnp.zeros(t.shape[:-2], jnp.int32)
    start = (t, none, unfinished(t, none))
    root, halvings, _ = jax.lax.while_loop(lambda state: jnp.any(state[2]), take, start)
    return root, halvings


def _log_of_one_plus(x: Array) -> Array:
    """Σ w_j·X·(I + x_j·X)⁻¹ of triangular X."""
    degree = _APPROXIMANTS[x.real.dtype.itemsize].degree
    nodes, weights = np.polynomial.legendre.leggauss(degree)
    shape = (degree, *([1] * x.ndim))
    real = x.real.dtype
    nodes, weights = (y.reshape(shape).astype(real) for y in ((nodes + 1) / 2, weights / 2))
    shifted = jnp.eye(x.shape[-1], dtype=x.dtype) + nodes * x
    terms = jax.lax.linalg.triangular_solve(
        shifted, jnp.broadcast_to(x, shifted.shape), left_side=True
    )
    return jnp.sum(weights * terms, axis=0)


def _log(z: Array) -> Array:
    """log z, accurate near 1, where the logarithm of |z| cancels."""
    if not jnp.iscomplexobj(z):
        return jnp.log(z)
    x, y = z.real, z.imag
    near = (jnp.abs(x - 1) < 0.5) & (jnp.abs(y) < 0.5)
    close = 0.5 * jnp.log1p(jnp.where(near, (x - 1) * (x + 1) + y * y, 0))
    return jax.lax.complex(jnp.where(near, close, jnp.log(jnp.abs(z))), jnp.arctan2(y, x))


def _expm1(z: Array) -> Array:
    """eᶻ - 1, accurate near 0."""
    if not jnp.iscomplexobj(z):
        return jnp.expm1(z)
    x, y = z.real, z.imag
    real = jnp.expm1(x) * jnp.cos(y) - 2 * jnp.sin(y / 2) ** 2
    return jax.lax.complex(real, jnp.exp(x) * jnp.sin(y))


def _half_log_of_ratio(values: Array, logarithms: Array) -> tuple[Array, Array, Array]:
    """(log b - log a)/2 for neighbours a, b on the diagonal, b - a, and where a = b.

    Where they are close it is atanh((b - a)/(b + a)) + πi·(what the branch cut adds), by Higham,
    Functions of Matrices, (11.28).
    """
    a, b = values[..., :-1], values[..., 1:]
    difference = b - a
    half = (logarithms[..., 1:] - logarithms[..., :-1]) / 2
    close = jnp.abs(difference) < jnp.abs(a + b) / 2
    ratio = jnp.where(close, difference / jnp.where(close, a + b, 1), 0)
    inverse = 0.5 * _log((1 + ratio) / (1 - ratio))
    small = jnp.abs(ratio) < 1e-2
    inverse = jnp.where(small, _atanh_series(ratio), inverse)
    if jnp.iscomplexobj(half):
        turns = jnp.round(half.imag / math.pi) * math.pi
        inverse += jax.lax.complex(jnp.zeros_like(turns), turns)
    half = jnp.where(close, inverse, half)
    return half, difference, difference == 0


def _atanh_series(z: Array) -> Array:
    """Σ z^(2k+1)/(2k+1), for |z| < 0.01 to 10⁻¹⁸."""
    square = z * z
    return z * (1 + square * (1 / 3 + square * (1 / 5 + square * (1 / 7 + square / 9))))


def _log_quotients(values: Array, logarithms: Array) -> Array:
    """(log b - log a)/(b - a) for neighbours on the diagonal, and 1/a where a = b."""
    half, difference, same = _half_log_of_ratio(values, logarithms)
    return jnp.where(same, 1 / values[..., 1:], 2 * half / jnp.where(same, 1, difference))


def _power_quotients(values: Array, logarithms: Array, t: Any) -> Array:
    """(bᵗ - aᵗ)/(b - a) for neighbours on the diagonal (Higham and Lin, 2011, (5.6))."""
    half, difference, same = _half_log_of_ratio(values, logarithms)
    a, b = logarithms[..., :-1] * t, logarithms[..., 1:] * t
    half = half * t
    near = jnp.abs(half) < 1
    inside = jnp.where(near, half, 0)
    sinh = (_expm1(inside) - _expm1(-inside)) / 2
    powers = jnp.where(near, 2 * jnp.exp((a + b) / 2) * sinh, jnp.exp(b) - jnp.exp(a))
    derivative = t * jnp.exp(b - logarithms[..., 1:])
    return jnp.where(same, derivative, powers / jnp.where(same, 1, difference))


def _power_of_triangular(t: Array, exponent: float) -> Array:
    """Tᵗ = Tᵏ·exp((t - k)·log T), k being t without its fraction."""
    whole = math.trunc(exponent)
    rest = exponent - whole
    singular = jnp.any(diagonal(t) == 0, axis=-1)
    nonzero = _nonzero(t, float(np.finfo(t.real.dtype).tiny))
    result = exponential_value(rest * _logarithm(nonzero))
    values = diagonal(nonzero)
    logarithms = _log(values)
    quotients = _power_quotients(values, logarithms, rest)
    result = with_diagonal(result, jnp.exp(rest * logarithms))
    result = with_diagonal(result, jnp.diagonal(t, 1, -2, -1) * quotients, 1)
    if whole > 0:
        result = product(jnp.linalg.matrix_power(t, whole), result)
    for _ in range(-whole):
        result = jax.lax.linalg.triangular_solve(t, result, left_side=True)
    return all_or_nan(~singular, result) if exponent < 0 else result


def _has_real_logarithm(t: Array) -> Array:
    """Whether it is triangular, without blocks, and no number on the diagonal is negative."""
    blocks = jnp.any(jnp.diagonal(t, -1, -2, -1) != 0, axis=-1)
    return ~(blocks | jnp.any(diagonal(t) < 0, axis=-1))


def _logarithm_value(a: Array) -> Array:
    return through_schur(_logarithm_of_triangular, a, _has_real_logarithm)


def _logarithm_derivative(a: Array, e: Array) -> Array:
    return derivative_through_schur(_logarithm_of_triangular, a, e)


logarithm = primary_function(_logarithm_value, _logarithm_derivative)
"""Of real or complex [..., n, n], complex and differentiable."""


@functools.lru_cache(maxsize=256)
def _power(exponent: float) -> Callable[[Array], Array]:
    """The differentiable power of complex matrices, the same object for the same exponent."""

    def of_triangular(t: Array) -> Array:
        return _power_of_triangular(t, exponent)

    def value(a: Array) -> Array:
        return through_schur(of_triangular, a)

    def derivative(a: Array, e: Array) -> Array:
        return derivative_through_schur(of_triangular, a, e)

    power: Callable[[Array], Array] = primary_function(value, derivative)
    return power
