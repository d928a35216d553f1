"""The matrix exponential by scaling and squaring.

On the CPU a target computes it. What is written out here is for other platforms, and for what is
derived from it: exp(A) = r(2⁻ˢA)^(2ˢ), r the diagonal Padé approximant of one degree for all
matrices of a batch: 13 in double precision, 7 in single precision, whose products a lower degree
would only save for matrices of small norm. Each matrix has its own s, the smallest for which the
backward error is below the unit roundoff by the norms of its powers (Al-Mohy and Higham, SIAM J.
Matrix Anal. Appl. 31, 2009, Algorithm 6.1 with bounds of ‖A⁸‖ and ‖A¹⁰‖ for the norms themselves).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lapax.linalg._arguments import check_choice, check_square, operation, real_dtype, same_batch
from lapax.linalg._frechet import frechet, primary_function
from lapax.linalg._products import (
    all_or_nan,
    block_triangular,
    diagonal,
    one_norm,
    product,
    with_diagonal,
)
from lapax.linalg._targets import by_target

__all__ = ["expm", "expm_cond", "expm_frechet"]

Array = jax.Array


@operation("A")
def expm(A: Any) -> Any:
    """exp(A) = Σ Aᵏ/k!, of A [..., n, n].

    Triangular matrices have the exact exponentials of their diagonals, and of the diagonals next
    to these. Any norm is scaled; what overflows is infinite or NaN in that matrix alone.

    Derivative: Fréchet, the derivative of the approximant itself (Al-Mohy and Higham, SIAM J.
    Matrix Anal. Appl. 30, 2009); of every order.

    Raises ValueError unless A is square.
    Source: Al-Mohy and Higham, SIAM J. Matrix Anal. Appl. 31, 2009.

    Cost: at most six products of matrices and a system of order n, and a product for each time that
    A is halved. The error is that of the condition of exp in the norms of A and its powers, see
    `expm_cond`.

    >>> expm(array([[0., 1], [0, 0]]))  # [[1, 1], [0, 1]]
    """
    check_square("expm", A=A)
    return exponential(A)


@operation("A", "E")
def expm_frechet(
    A: Any,
    E: Any,
    method: str | None = None,
    compute_expm: bool = True,
    check_finite: bool = True,
) -> Any:
    """exp(A) and its Fréchet derivative L(A, E), of A and E [..., n, n].

    L is the part of exp(A + E) - exp(A) that is linear in E. `compute_expm=False` gives L alone.
    `method` is "SPS", "blockEnlarge" or None, which compute the same here.

    Derivative: of every order. Raises ValueError unless A and E are square of one size.
    Source: Al-Mohy and Higham, SIAM J. Matrix Anal. Appl. 30, 2009.

    Cost: about three times that of `expm`.

    >>> expm_frechet(zeros((2, 2)), eye(2))[1]  # [[1, 0], [0, 1]]
    """
    check_choice("expm_frechet", "method", method, (None, "SPS", "blockEnlarge"))
    check_square("expm_frechet", A=A, E=E)
    if A.shape[-1] != E.shape[-1]:
        raise ValueError(f"expm_frechet: E: expected order {A.shape[-1]}, got {E.shape[-1]}")
    a, e = same_batch("expm_frechet", A=(A, 2), E=(E, 2))
    derivative = frechet(expm_derivative, a, e)
    return (exponential(a), derivative) if compute_expm else derivative


@operation("A")
def expm_cond(A: Any, check_finite: bool = True) -> Any:
    """The relative condition number of exp at A [..., n, n]: ‖K‖₂·‖A‖/‖exp(A)‖, of shape [...].

    K is the n²×n² matrix of the Fréchet derivative; norms of A and exp(A) are Frobenius'. The cost
    is that of n² derivatives and of the singular values of K: for small n.

    Raises ValueError unless A is square.
    Source: Higham, Functions of Matrices, SIAM 2008, section 3.1.

    The derivative is that of the formula.

    >>> expm_cond(eye(1))  # 1
    """
    check_square("expm_cond", A=A)
    n, batch = A.shape[-1], A.shape[:-2]
    if n == 0:
        return jnp.zeros(batch, real_dtype(A.dtype))
    units = jnp.eye(n * n, dtype=A.dtype).reshape(n * n, *([1] * len(batch)), n, n)
    a, units = same_batch("expm_cond", A=(A, 2), unit=(units, 2))
    images = frechet(expm_derivative, a, units)
    matrix = jnp.moveaxis(images, 0, -3).reshape(*batch, n * n, n * n)
    norms = [jnp.linalg.norm(x, axis=(-2, -1)) for x in (A, exponential(A))]
    return jnp.linalg.norm(matrix, 2, axis=(-2, -1)) * norms[0] / norms[1]


class _Approximant(NamedTuple):
    degree: int
    theta: float
    """The norm of 2⁻ˢA up to which the backward error is below the unit roundoff."""


# θ of Higham, SIAM J. Matrix Anal. Appl. 26, 2005, tables 2.3 and 2.1 (for u = 2⁻²⁴); that of
# degree 13 as the paper of 2009 corrects it.
_APPROXIMANTS = {4: _Approximant(7, 3.925724783138660), 8: _Approximant(13, 4.25)}


def _written_out(a: Array) -> Array:
    return _scaled_and_squared(a, exact_diagonals=True)


exponential_value = by_target("expm", _written_out)
"""exp(A) without the rule of its derivative."""


def expm_derivative(a: Array, e: Array) -> Array:
    """L(A, E), the derivative of the approximant."""

    def exponential_near(a: Array) -> Array:
        return _scaled_and_squared(a, exact_diagonals=False)

    derivative: Array = jax.jvp(exponential_near, (a,), (e,))[1]
    return derivative


def exponential_and_derivative(a: Array, e: Array) -> tuple[Array, Array]:
    """exp(A) and L(A, E): blocks of exp([[A, E], [0, A]]), one call (Mathias 1996).

    E is scaled to the norm of A by a power of two, as how often is halved depends on the whole.
    """
    n = a.shape[-1]
    real = real_dtype(a.dtype)
    limit = np.finfo(real).maxexp - 1
    shift = jnp.clip(_exponent(one_norm(a)) - _exponent(one_norm(e)), -limit, limit)
    both = exponential_value(block_triangular(a, e * _power_of_two(shift, real)))
    return both[..., :n, :n], both[..., :n, n:] * _power_of_two(-shift, real)


exponential = primary_function(exponential_value, expm_derivative)
"""exp of [..., n, n] in one of the four scalars, differentiable."""


def _scaled_and_squared(a: Array, exact_diagonals: bool) -> Array:
    """exp(A). The diagonals of triangular matrices are made exact, or left as they come."""
    if a.shape[-1] == 0:
        return a
    real = real_dtype(a.dtype)
    approximant = _APPROXIMANTS[real.itemsize]
    exponent = jax.lax.stop_gradient(_exponent(one_norm(a)))
    normal = a * _power_of_two(-exponent, real)
    normal2 = product(normal, normal)
    normal4 = product(normal2, normal2)
    powers = [normal2, normal4, product(normal4, normal2)]
    squarings = jax.lax.stop_gradient(_squarings(normal, powers, exponent, approximant))
    unit = _power_of_two(exponent - squarings, real)
    for i, times in enumerate((2, 4, 6)):
        for _ in range(times):  # One by one: 2⁶ᵏ may overflow where the power vanishes.
            powers[i] = powers[i] * unit
    odd, even = _numerator(normal * unit, powers, approximant.degree)
    result = jnp.linalg.solve(even - odd, even + odd)
    triangles = _triangles(a) if exact_diagonals else None

    def square(i: Any, result: Array) -> Array:
        squared = product(result, result)
        if triangles is not None:
            squared = _exact_diagonals(squared, a, squarings - i - 1, triangles)
        return jnp.where((i < squarings)[..., None, None], squared, result)

    if triangles is not None:
        result = _exact_diagonals(result, a, squarings, triangles)
    result = jax.lax.fori_loop(0, jnp.max(squarings, initial=0), square, result)
    return all_or_nan(jnp.all(jnp.isfinite(a), axis=(-2, -1)), result)


def _exponent(x: Array) -> Array:
    """The k with 2ᵏ⁻¹ ≤ x < 2ᵏ, at most 1023 or 127; 0 where x is 0, infinite or NaN."""
    limit = np.finfo(x.dtype).maxexp - 1
    exponent = jnp.minimum(jnp.frexp(x)[1], limit)
    return jnp.where(jnp.isfinite(x) & (x > 0), exponent, 0)


def _power_of_two(exponent: Array, dtype: Any) -> Array:
    """2ᵏ, exact, to be multiplied with matrices."""
    return jnp.ldexp(jnp.ones((), dtype), exponent)[..., None, None]


def _squarings(
    normal: Array, powers: list[Array], exponent: Array, approximant: _Approximant
) -> Array:
    """s, of `normal` = 2⁻ᵏA, its powers 2, 4 and 6, and k."""
    degree, theta = approximant
    norm2, norm4, norm6 = map(one_norm, powers)
    d4, d6 = norm4 ** (1 / 4), norm6 ** (1 / 6)
    d8 = jnp.minimum(norm4**2, norm2 * norm6) ** (1 / 8)
    etas = [jnp.maximum(d6, d8)]
    if degree == 13:
        etas.append(jnp.maximum(d8, (norm4 * norm6) ** (1 / 10)))
    else:
        etas.append(jnp.maximum(d4, d6))
    eta = jnp.minimum(*etas)
    small = eta == 0
    scaled = jnp.where(small, 0, jnp.maximum(exponent + _exponent(eta / theta), 0))
    return scaled + _more_squarings(normal, exponent - scaled, degree)


def _more_squarings(normal: Array, exponent: Array, degree: int) -> Array:
    """ℓ of the paper's (3.11) for X = 2ᵏ·normal: what ‖|X|^(2m+1)‖ asks for beyond the norms of
    powers, which cancellation makes small."""
    real = normal.real.dtype
    m = degree
    c = math.factorial(m) ** 2 / (math.factorial(2 * m) * math.factorial(2 * m + 1))
    magnitudes = jnp.abs(normal)

    def multiply(_: Any, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        row, logarithm = carry
        row = jnp.einsum("...i,...ij->...j", row, magnitudes, precision="highest")
        largest = jnp.max(row, axis=-1)
        scale = jnp.where(largest > 0, largest, 1)
        logarithm = logarithm + jnp.where(largest > 0, jnp.log2(scale), -jnp.inf)
        return row / scale[..., None], logarithm

    start = (jnp.ones(normal.shape[:-1], real), jnp.zeros(normal.shape[:-2], real))
    logarithm = jax.lax.fori_loop(0, 2 * m + 1, multiply, start)[1]
    norm = one_norm(normal)
    of_norm = jnp.log2(jnp.where(norm > 0, norm, 1))
    roundoff = np.finfo(real).eps / 2
    excess = math.log2(c / roundoff) + logarithm + 2 * m * exponent - of_norm
    more = jnp.ceil(jnp.where(jnp.isfinite(excess), excess, 0) / (2 * m))
    return jnp.maximum(more, 0).astype(exponent.dtype)


def _numerator(x: Array, powers: list[Array], degree: int) -> tuple[Array, Array]:
    """The odd and the even part of the approximant's numerator at X, of X², X⁴, X⁶."""
    m, factorial = degree, math.factorial
    scale = factorial(m) / factorial(2 * m)
    b = [scale * factorial(2 * m - k) / (factorial(k) * factorial(m - k)) for k in range(m + 1)]
    one = jnp.eye(x.shape[-1], dtype=x.dtype)
    x2, x4, x6 = powers
    odd = b[7] * x6 + b[5] * x4 + b[3] * x2 + b[1] * one
    even = b[6] * x6 + b[4] * x4 + b[2] * x2 + b[0] * one
    if degree == 13:
        odd = odd + product(x6, b[13] * x6 + b[11] * x4 + b[9] * x2)
        even = even + product(x6, b[12] * x6 + b[10] * x4 + b[8] * x2)
    return product(x, odd), even


def _triangles(a: Array) -> tuple[Array, Array]:
    """Which matrices are upper triangular, and which lower."""
    zero = a == 0
    above = jnp.triu(jnp.ones(a.shape[-2:], bool))
    return jnp.all(zero | above, axis=(-2, -1)), jnp.all(zero | above.T, axis=(-2, -1))


def _exact_diagonals(
    result: Array, a: Array, halvings: Array, triangles: tuple[Array, Array]
) -> Array:
    """exp(2⁻ʰA) of triangular A with three diagonals by their formulas (code fragment 2.1)."""
    upper, lower = (x[..., None, None] for x in triangles)
    a = a * _power_of_two(-halvings, a.real.dtype)
    values = diagonal(a)
    quotients = _divided_differences(values[..., :-1], values[..., 1:])
    exact = with_diagonal(result, jnp.exp(values))
    above = with_diagonal(exact, quotients * jnp.diagonal(a, 1, -2, -1), 1)
    below = with_diagonal(exact, quotients * jnp.diagonal(a, -1, -2, -1), -1)
    return jnp.where(upper, above, jnp.where(lower, below, result))


def _divided_differences(x: Array, y: Array) -> Array:
    """(eˣ - eʸ)/(x - y), and eˣ where x = y."""
    half = (y - x) / 2
    near = jnp.abs(half) < 1
    inside = jnp.where(near & (half != 0), half, 1)
    close = jnp.exp((x + y) / 2) * jnp.where(half == 0, 1, jnp.sinh(inside) / inside)
    return jnp.where(near, close, (jnp.exp(y) - jnp.exp(x)) / jnp.where(near, 1, 2 * half))
