"""Pivoted and partial Cholesky factors of positive semidefinite matrices (xPSTRF)."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.lax.linalg import triangular_solve

from lapax._settings import own_settings
from lapax.linalg._arguments import Array, adjoint, check_square, operation, real_dtype
from lapax.linalg._definite import phi

__all__ = ["PivotedCholesky", "pivoted_cholesky"]


class PivotedCholesky(NamedTuple):
    """A ≈ factor·factorᴴ."""

    factor: Array
    """L [..., n, rank], its rows in the order of those of A; columns after the rank found are zero.
    `L[pivots]` is lower trapezoidal."""
    pivots: Array
    """int32 [..., n]: the rows in the order of elimination, those that were not in their own."""
    rank: Array
    """int32 [...]: the number of columns that are not zero."""


@operation("a")
def pivoted_cholesky(
    a: Array, rank: int | None = None, tol: float | None = None
) -> PivotedCholesky:
    """Cholesky factor of a positive semidefinite matrix with diagonal pivoting.

    `a` [..., n, n] is read as its lower triangle says where both differ. At each step the largest
    diagonal element of what is left, A − L·Lᴴ, is the pivot, until `rank` columns (n of them by
    default) are there or the pivot is at most `tol`, n·ε·max(diag A) by default. The trace of what
    is left bounds its norm. Work is O(n·rank²), and of A only the diagonal and the columns of
    pivots are read: Harbrecht, Peters & Schneider 2012, On the low-rank approximation by the
    pivoted Cholesky decomposition; Higham 1990, for the error and the rank.

    The derivative is that with pivots and rank held: with P the pivots, L = A[:, P]·L_P⁻ᴴ, where
    L_P·L_Pᴴ = A[P, P] is the factor of the pivots. NaN where NaN is met. Raises ValueError unless A
    is square, `rank` between 0 and n, and `tol` not negative.

    >>> pivoted_cholesky(4 * eye(2)).factor  # [[2, 0], [0, 2]]
    """
    check_square("pivoted_cholesky", a=a)
    n = a.shape[-1]
    columns = n if rank is None else rank
    if not 0 <= columns <= n:
        raise ValueError(f"pivoted_cholesky: rank: expected from 0 to {n}, got {rank}")
    if tol is not None and not tol >= 0:
        raise ValueError(f"pivoted_cholesky: tol: expected at least 0, got {tol!r}")
    lower = jnp.tril(a, -1)
    diagonal = jnp.diagonal(a, axis1=-2, axis2=-1).real
    whole = lower + adjoint(lower) + diagonal[..., None] * jnp.eye(n, dtype=diagonal.dtype)
    if columns == 0:
        pivots = jnp.broadcast_to(jnp.arange(n, dtype=jnp.int32), a.shape[:-1])
        return PivotedCholesky(whole[..., :0], pivots, jnp.zeros(a.shape[:-2], jnp.int32))
    return PivotedCholesky(*_factored(columns, tol, whole))


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _factored(columns: int, tol: float | None, a: Array) -> tuple[Array, Array, Array]:
    n, real = a.shape[-1], real_dtype(a.dtype)
    remaining = jnp.diagonal(a, axis1=-2, axis2=-1).real
    if tol is None:
        limit = n * float(np.finfo(a.dtype).eps) * jnp.max(remaining, -1)
    else:
        limit = jnp.full(a.shape[:-2], tol, real)

    def column(j: Array, state: tuple[Array, Array, Array, Array]) -> tuple[Array, ...]:
        factor, remaining, step, found = state
        eligible = jnp.where(step < n, -jnp.inf, remaining)
        pivot = jnp.argmax(eligible, -1)[..., None]
        largest = jnp.take_along_axis(eligible, pivot, -1)
        # NaN is above the limit: it is eliminated, and seen in the factor.
        goes_on = (found == j) & ~(largest[..., 0] <= limit)
        row = jnp.take_along_axis(factor, pivot[..., None], -2)
        of_a = jnp.take_along_axis(a, pivot[..., None], -1)[..., 0]
        new = (of_a - (factor @ adjoint(row))[..., 0]) / jnp.sqrt(largest)
        is_pivot = jnp.arange(n) == pivot
        new = jnp.where(is_pivot, jnp.sqrt(largest), jnp.where(step < n, 0, new))
        new = jnp.where(goes_on[..., None], new, 0)
        return (
            factor.at[..., j].set(new),
            remaining - (new.real**2 + new.imag**2),
            jnp.where(is_pivot & goes_on[..., None], j, step),
            found + goes_on,
        )

    step = jnp.full(a.shape[:-1], n, jnp.int32)
    found = jnp.zeros(a.shape[:-2], jnp.int32)
    state = (jnp.zeros((*a.shape[:-1], columns), a.dtype), remaining, step, found)
    factor, _, step, found = jax.lax.fori_loop(0, columns, column, state)
    return factor, jnp.argsort(step, -1).astype(jnp.int32), found


@_factored.defjvp
@own_settings()
def _(columns: int, tol: float | None, primals: tuple[Array], tangents: tuple[Array]) -> Any:
    ((a,), (da,)) = primals, tangents
    factor, pivots, found = _factored(columns, tol, a)
    chosen = pivots[..., :columns]
    kept = jnp.arange(columns) < found[..., None]
    # Columns that are zero get a one on the diagonal of the triangular factor, and no change.
    square = jnp.take_along_axis(factor, chosen[..., :, None], -2)
    square = jnp.where(kept[..., :, None], square, jnp.eye(columns, dtype=a.dtype))
    da = jnp.take_along_axis(da, chosen[..., None, :], -1) * kept[..., None, :]
    dsquare = jnp.take_along_axis(da, chosen[..., :, None], -2) * kept[..., :, None]
    left = triangular_solve(square, dsquare, left_side=True, lower=True)
    h = phi(_right_solve(square, left))
    dfactor = _right_solve(square, da) - factor @ adjoint(h)
    return (factor, pivots, found), (dfactor, _no_change(pivots), _no_change(found))


def _right_solve(square: Array, b: Array) -> Array:
    """B·L⁻ᴴ."""
    return triangular_solve(square, b, lower=True, transpose_a=True, conjugate_a=True)


def _no_change(x: Array) -> np.ndarray[Any, Any]:
    """The derivative of integers."""
    return np.zeros(x.shape, jax.dtypes.float0)
