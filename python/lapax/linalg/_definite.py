"""Positive definite matrices by their Cholesky factor: A = L·Lᴴ, or Uᴴ·U where `lower` is False.

Solution, log-determinant and what else one factor gives, with derivatives from the same factor.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
from jax.lax.linalg import triangular_solve

from lapax._settings import own_settings
from lapax.linalg._arguments import (
    Array,
    adjoint,
    check_square,
    operation,
    real_dtype,
    right_hand_sides,
    same_batch,
)
from lapax.linalg._targets import by_target

__all__ = [
    "SolveLogdet",
    "cho_factor",
    "cho_solve",
    "cholesky_of_inverse",
    "solve_logdet",
    "tri_inverse",
]


class SolveLogdet(NamedTuple):
    """What one Cholesky factor of A gives with right-hand sides b."""

    solution: Array
    """A⁻¹·b, in the form of b."""
    logdet: Array
    """log det A, real [...]."""
    quadratic: Array
    """bᴴ·A⁻¹·b, real [...], or [..., k] of the columns of b."""
    mahalanobis: Array
    """Its square root, the Mahalanobis distance; its derivative at b = 0 is NaN."""
    factor: Array
    """L, lower triangular, of A + jitter·I = L·Lᴴ."""
    jitter: Array
    """What was added to the diagonal, real [...]; zero where nothing was."""


class _Retry(NamedTuple):
    """Jitter of the attempts after the first: `first`·`growth`ᵏ times the mean of the diagonal."""

    first: float
    growth: float
    attempts: int


@operation("a", "b")
def solve_logdet(
    a: Array, b: Array, *, jitter: float = 0.0, growth: float = 10.0, attempts: int = 6
) -> SolveLogdet:
    """Solution of A·x = b and log det A from one Cholesky factor.

    Also the quadratic form bᴴ·A⁻¹·b, its root and the factor, which cost nothing more.

    `a` [..., n, n] is positive definite and read as its Hermitian part (A + Aᴴ)/2; `b` is one
    vector [n] or [..., n, k]. What does not depend on b has the batch of `a` alone.

    A matrix that is not positive definite gives NaN, unless `jitter` is positive: then it is
    factored anew with jitter·growthᵏ times the mean of its diagonal added to the diagonal, k = 0,
    1, … below `attempts`, until there is a factor. All results are those of the matrix with what
    was added, which `jitter` of the result reports. One with NaN or infinite elements is not tried
    again.

    Raises ValueError where shapes do not fit, `jitter` is negative, `growth` is not above 1 or
    `attempts` not at least 1.

    The derivative needs no other factor: with H = L⁻¹·dA·L⁻ᴴ, d log det A = tr H,
    dx = A⁻¹·(db − dA·x), d(bᴴ·x) = 2·Re(xᴴ·db) − xᴴ·dA·x, dL = L·Φ(H), where Φ is the lower
    triangle with half the diagonal (Murray 2016, arXiv:1602.07527). What was added counts as a
    constant.

    Cost: n³/3, and 2n² for each right-hand side.

    >>> solve_logdet(2 * eye(2), ones(2)).solution  # [0.5, 0.5]
    """
    check_square("solve_logdet", a=a)
    if jitter < 0 or growth <= 1 or attempts < 1:
        raise ValueError(
            "solve_logdet: expected jitter at least 0, growth above 1 and attempts at least 1, "
            f"got {jitter}, {growth} and {attempts}"
        )
    columns, restore = right_hand_sides("solve_logdet", b, a.shape[-1], b.ndim == 1)
    same_batch("solve_logdet", a=(a, 2), b=(columns, 2))
    retry = _Retry(jitter, growth, attempts if jitter > 0 else 0)
    factor, added, logdet, x, quadratic = _from_one_factor(retry, a, columns)
    if b.ndim == 1:
        quadratic = quadratic[..., 0]
    return SolveLogdet(restore(x), logdet, quadratic, jnp.sqrt(quadratic), factor, added)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _from_one_factor(retry: _Retry, a: Array, b: Array) -> tuple[Array, Array, Array, Array, Array]:
    if retry.attempts == 0 and a.shape[:-2] == np.broadcast_shapes(a.shape[:-2], b.shape[:-2]):
        right = jnp.broadcast_to(b, (*a.shape[:-2], *b.shape[-2:]))
        x, factor, logdet = _posv_factor(a, right)
        added = jnp.zeros(a.shape[:-2], real_dtype(a.dtype))
    else:
        factor, added = _factor(_hermitian_part(a), retry)
        x, logdet = _lh_solve(factor, _l_solve(factor, b)), _logdet(factor)
    # Not below zero, as ‖L⁻¹·b‖² is not: that has as large an error, and takes another solve.
    quadratic = jnp.maximum(jnp.sum(b.conj() * x, -2).real, 0)
    return factor, added, logdet, x, quadratic


def _factor_and_solve(a: Array, b: Array) -> tuple[Array, Array, Array]:
    """x, L and log det A of the Hermitian part."""
    factor = jnp.linalg.cholesky(a)
    return _lh_solve(factor, _l_solve(factor, b)), factor, _logdet(factor)


_posv_factor = by_target("posv_factor", _factor_and_solve, like=None, uplo="Lower", symmetrize=True)
"""In one call, which takes half as long as those of the composition: us for 1000 systems of order
3, 1000 of 8, 300 of 16, 100 of 32, and one of 64 and 256: 29, 104, 92, 134, 15 and 142 beside 66,
261, 211, 294, 48 and 276 (f64, one right-hand side, two cores of Zen 5)."""


def _logdet(factor: Array) -> Array:
    return 2 * jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1).real).sum(-1)


def _hermitian_part(a: Array) -> Array:
    return (a + adjoint(a)) / 2


@_from_one_factor.defjvp
@own_settings()
def _(retry: _Retry, primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> Any:
    (a, b), (da, db) = primals, tangents
    results = _from_one_factor(retry, a, b)
    factor, added, _, x, _ = results
    da = _hermitian_part(da)
    h = triangular_solve(
        factor, _l_solve(factor, da), lower=True, transpose_a=True, conjugate_a=True
    )
    dlogdet = jnp.trace(h, axis1=-2, axis2=-1).real
    dax = da @ x
    dx = _lh_solve(factor, _l_solve(factor, db - dax))
    dquadratic = jnp.sum(x.conj() * (2 * db - dax), -2).real
    return results, (factor @ phi(h), jnp.zeros_like(added), dlogdet, dx, dquadratic)


def _factor(a: Array, retry: _Retry) -> tuple[Array, Array]:
    """L and what was added to the diagonal; matrices that have a factor keep it in the loop."""
    n, real = a.shape[-1], real_dtype(a.dtype)
    factor = jnp.linalg.cholesky(a, symmetrize_input=False)
    added = jnp.zeros(a.shape[:-2], real)
    if retry.attempts == 0 or n == 0:
        return factor, added
    finite = jnp.isfinite(a).all((-2, -1))
    mean = jnp.trace(a, axis1=-2, axis2=-1).real / n
    unit = retry.first * jnp.where(mean > 0, mean, 1)

    def to_retry(factor: Array) -> Array:
        return jnp.isnan(factor[..., 0, 0]) & finite

    def unfinished(state: tuple[Array, Array, Array]) -> Array:
        return (state[0] < retry.attempts) & jnp.any(to_retry(state[2]))

    def attempt(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        k, added, factor = state
        again = to_retry(factor)
        added = jnp.where(again, unit * jnp.power(jnp.asarray(retry.growth, real), k), added)
        shift = added[..., None, None] * jnp.eye(n, dtype=real)
        tried = jnp.linalg.cholesky(a + shift, symmetrize_input=False)
        return k + 1, added, jnp.where(again[..., None, None], tried, factor)

    _, added, factor = jax.lax.while_loop(unfinished, attempt, (jnp.int32(0), added, factor))
    return factor, added


def phi(h: Array) -> Array:
    """The lower triangle with half the diagonal, of which Φ + Φᴴ is a Hermitian H."""
    n = h.shape[-1]
    return jnp.tril(h) * (1 - jnp.eye(n, dtype=real_dtype(h.dtype)) / 2)


def _l_solve(factor: Array, b: Array) -> Array:
    """L⁻¹·b."""
    factor, b = same_batch("triangular", factor=(factor, 2), b=(b, 2))
    return triangular_solve(factor, b, left_side=True, lower=True)


def _lh_solve(factor: Array, b: Array) -> Array:
    """L⁻ᴴ·b."""
    factor, b = same_batch("triangular", factor=(factor, 2), b=(b, 2))
    return triangular_solve(
        factor, b, left_side=True, lower=True, transpose_a=True, conjugate_a=True
    )


def cho_factor(
    a: Array,
    lower: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
    *,
    compute_dtype: object = None,
) -> tuple[Array, bool]:
    """Cholesky factor of A [..., n, n] for `cho_solve`, and whether it is the lower one.

    Only the triangle that `lower` names is read; the other one of the factor is zero. NaN where A
    is not positive definite. The derivative is JAX's (Murray 2016, arXiv:1602.07527).

    Cost: n³/3.

    >>> cho_factor(array([[4., 2], [2, 5]]))[0]  # [[2, 1], [0, 2]]
    """
    del overwrite_a, check_finite
    lower = bool(lower)
    return _cho_factor(a, lower, compute_dtype=compute_dtype), lower


def cho_solve(
    c_and_lower: tuple[Array, bool],
    b: Array,
    overwrite_b: bool = False,
    check_finite: bool = True,
    *,
    compute_dtype: object = None,
) -> Array:
    """Solution of A·x = b with the factor of `cho_factor`, by two triangular systems (xPOTRS).

    `b` is one vector [n] or [..., n, k]. The other triangle of the factor is not read. The
    derivative is that of the triangular systems. Raises ValueError where shapes do not fit.

    Cost: 2n² for each right-hand side.

    >>> cho_solve((2 * eye(2), False), array([4., 8]))  # [1, 2]
    """
    del overwrite_b, check_finite
    c, lower = c_and_lower
    result: Array = _cho_solve(c, b, bool(lower), compute_dtype=compute_dtype)
    return result


@operation("a")
def _cho_factor(a: Array, lower: bool) -> Array:
    check_square("cho_factor", a=a)
    # JAX differentiates as if A changed in both triangles alike.
    strict = jnp.tril(a, -1) if lower else jnp.triu(a, 1)
    main = jnp.where(jnp.eye(a.shape[-1], dtype=bool), a.real.astype(a.dtype), 0)
    factor: Array = jsl.cho_factor(strict + adjoint(strict) + main, lower=lower)[0]
    return factor


@operation("c", "b")
def _cho_solve(c: Array, b: Array, lower: bool) -> Array:
    check_square("cho_solve", c=c)
    columns, restore = right_hand_sides("cho_solve", b, c.shape[-1], b.ndim == 1)
    c, columns = same_batch("cho_solve", c=(c, 2), b=(columns, 2))
    return restore(jsl.cho_solve((c, lower), columns))


@operation("a")
def cholesky_of_inverse(a: Array, *, lower: bool = True) -> Array:
    """Cholesky factor of A⁻¹ without A⁻¹: of a precision matrix, the `scale_tril`.

    `a` [..., n, n] is positive definite and read as its Hermitian part. With J the exchange matrix
    and J·A·J = C·Cᴴ, A = U·Uᴴ for the upper triangular U = J·C·J, and L = U⁻ᴴ. The result is L of
    A⁻¹ = L·Lᴴ, or Lᴴ where `lower` is False. NaN where A is not positive definite. Derivatives are
    those of JAX's Cholesky and triangular solve. Raises ValueError unless A is square.

    Cost: 4n³/3.

    >>> cholesky_of_inverse(4 * eye(2))  # [[0.5, 0], [0, 0.5]]
    """
    check_square("cholesky_of_inverse", a=a)
    flipped = jnp.linalg.cholesky(a[..., ::-1, ::-1])
    inverse = jsl.solve_triangular(flipped, _identity(a), lower=True)[..., ::-1, ::-1]
    return adjoint(inverse) if lower else inverse


@operation("a")
def tri_inverse(a: Array, *, lower: bool = False, unit_diagonal: bool = False) -> Array:
    """Inverse of a triangular matrix A [..., n, n] (xTRTRI).

    Only the triangle that `lower` names is read, without the diagonal where `unit_diagonal` says
    that it is all ones. NaN where there is a zero on the diagonal. The derivative is
    −A⁻¹·dA·A⁻¹, from JAX's triangular solve. Raises ValueError unless A is square.

    Cost: at most n³.

    >>> tri_inverse(array([[2., 0], [0, 4]]))  # [[0.5, 0], [0, 0.25]]
    """
    check_square("tri_inverse", a=a)
    inverse = jsl.solve_triangular(a, _identity(a), lower=lower, unit_diagonal=unit_diagonal)
    if unit_diagonal:
        return inverse
    singular = jnp.any(jnp.diagonal(a, axis1=-2, axis2=-1) == 0, -1)
    return jnp.where(singular[..., None, None], jnp.nan, inverse)


def _identity(a: Array) -> Array:
    """An identity matrix for each matrix."""
    return jnp.broadcast_to(jnp.eye(a.shape[-1], dtype=a.dtype), a.shape)
