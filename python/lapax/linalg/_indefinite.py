"""Symmetric and Hermitian matrices that need not be definite, and systems of known structure.

Pᵀ·A·P = L·D·Lᴴ with blocks of order 1 and 2 in D, by rook pivoting: Ashcraft, Grimes & Lewis,
"Accurate symmetric indefinite linear equation solvers" (SIAM J. Matrix Anal. Appl. 20, 1998).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lapax._call import ffi_call
from lapax._settings import own_settings
from lapax.linalg._arguments import (
    Array,
    adjoint,
    check_choice,
    check_square,
    operation,
    right_hand_sides,
    same_batch,
)

__all__ = ["inv", "ldl", "solve"]


@operation("A")
def ldl(
    A: Any,
    lower: bool = True,
    hermitian: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> tuple[Array, Array, Array]:
    """Factors of a symmetric or Hermitian matrix that need not be definite: A = L·D·Lᴴ.

    Args:
        A: [..., n, n], of which one triangle is read.
        lower: whether that is the lower one, and L is lower triangular up to its rows' order;
            else both are upper.
        hermitian: whether A = Aᴴ is meant, else A = Aᵀ; the same for real matrices.
        overwrite_a, check_finite: taken and ignored.

    Returns:
        `lu` [..., n, n], which is triangular with ones on its diagonal as `lu[perm]`; `d`
        [..., n, n], block-diagonal with blocks of order 1 and 2; `perm` [..., n], int32. A
        singular matrix has blocks of d that are singular. Where A is not finite, neither are they.

    Raises ValueError where A is not square.

    The inertia of A is that of d. Derivative: with M = L⁻¹·dA·L⁻ᴴ in the order of `perm`, which
    stays, dD is the part of M in the blocks of D, and dL = L·X where X·D is the part of M below
    them; not finite where D is singular.

    Cost: n³/3.

    >>> ldl(-eye(2))[1]  # [[-1, 0], [0, -1]]
    """
    del overwrite_a, check_finite
    check_square("ldl", A=A)
    n = A.shape[-1]
    # The upper triangle, read from its end, is the lower one of the matrix read from its end.
    a = A if lower else jnp.flip(A, (-1, -2))
    outer, d, permutation = _ldl(a, bool(hermitian))
    placed = jnp.take_along_axis(outer, jnp.argsort(permutation)[..., None], axis=-2)
    if lower:
        return placed, d, permutation
    last = jnp.asarray(n - 1, permutation.dtype)
    return jnp.flip(placed, (-1, -2)), jnp.flip(d, (-1, -2)), last - jnp.flip(permutation, -1)


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _ldl(a: Array, hermitian: bool) -> tuple[Array, Array, Array]:
    """L, lower triangular, D and the permutation."""
    factors, e, permutation = ffi_call("ldl", a, uplo="L", hermitian=hermitian)
    n = a.shape[-1]
    below = jnp.where(jnp.eye(n, k=-1, dtype=bool), e[..., None, :], 0)
    d = jnp.where(jnp.eye(n, dtype=bool), factors, below + _across(below, hermitian))
    return jnp.tril(factors, -1) + jnp.eye(n, dtype=a.dtype), d, permutation


@_ldl.defjvp
@own_settings()
def _ldl_jvp(hermitian: bool, primals: Any, tangents: Any) -> Any:
    (a,), (a_dot,) = primals, tangents
    lower, d, permutation = _ldl(a, hermitian)
    strict = jnp.tril(a_dot, -1)
    a_dot = strict + _across(strict, hermitian) + _diagonal(a_dot, hermitian)
    rows = permutation[..., None]
    moved = jnp.take_along_axis(a_dot, rows, axis=-2)
    moved = jnp.take_along_axis(moved, permutation[..., None, :], axis=-1)
    left = _unit_solve(lower, moved)
    m = _across(_unit_solve(lower, _across(left, hermitian)), hermitian)
    # Where rows i and j of D share a block.
    block = (jnp.eye(a.shape[-1], dtype=bool)) | (d != 0)
    x = jnp.where(block, 0, jnp.tril(m, -1)) @ _inverse(d)
    where = np.zeros(permutation.shape, jax.dtypes.float0)
    return (lower, d, permutation), (lower @ x, jnp.where(block, m, 0), where)


def _unit_solve(lower: Array, b: Array) -> Array:
    return jax.lax.linalg.triangular_solve(lower, b, left_side=True, lower=True, unit_diagonal=True)


def _inverse(d: Array) -> Array:
    """The inverse of D, block by block."""
    n = d.shape[-1]
    diagonal = jnp.diagonal(d, axis1=-2, axis2=-1)
    if n == 1:
        return jnp.reciprocal(d)
    below = jnp.diagonal(d, -1, axis1=-2, axis2=-1)
    above = jnp.diagonal(d, 1, axis1=-2, axis2=-1)
    zero = jnp.zeros_like(diagonal[..., :1])
    pair = below != 0
    first = jnp.concatenate([pair, zero != 0], -1)
    second = jnp.concatenate([zero != 0, pair], -1)
    determinant = diagonal[..., :-1] * diagonal[..., 1:] - below * above
    of_pair = jnp.where(pair, determinant, 1)
    # A pair's inverse has the elements of its diagonal in the other order.
    other = jnp.where(
        first,
        jnp.concatenate([diagonal[..., 1:] / of_pair, zero], -1),
        jnp.concatenate([zero, diagonal[..., :-1] / of_pair], -1),
    )
    own = 1 / jnp.where(first | second, 1, diagonal)
    inverse = jnp.where(first | second, other, own)[..., None] * jnp.eye(n, dtype=d.dtype)
    pad = [(0, 0)] * (d.ndim - 2)
    for k, side in ((-1, below), (1, above)):
        row = jnp.where(pair, -side / of_pair, 0)
        part = row[..., None] * jnp.eye(n - 1, dtype=d.dtype)
        inverse += jnp.pad(part, [*pad, *([(1, 0), (0, 1)] if k < 0 else [(0, 1), (1, 0)])])
    return inverse


def _across(a: Array, hermitian: bool) -> Array:
    return adjoint(a) if hermitian else jnp.swapaxes(a, -1, -2)


def _diagonal(a: Array, hermitian: bool) -> Array:
    a = a.real.astype(a.dtype) if hermitian else a
    return jnp.where(jnp.eye(a.shape[-1], dtype=bool), a, 0)


_Solve = Callable[[Any, Array], Any]

_STRUCTURES = {
    None: "general",
    "gen": "general",
    "general": "general",
    "banded": "general",
    "diagonal": "diagonal",
    "tridiagonal": "tridiagonal",
    "upper triangular": "upper triangular",
    "lower triangular": "lower triangular",
    "sym": "symmetric",
    "symmetric": "symmetric",
    "her": "hermitian",
    "hermitian": "hermitian",
    "pos": "positive definite",
    "positive definite": "positive definite",
}
"""The names that a structure has, and the one that is used here."""


@operation("a", "b")
def solve(
    a: Any,
    b: Any,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    assume_a: str | None = None,
    transposed: bool = False,
) -> Array:
    """The solution of A·x = b, by a factorisation for the structure that A is known to have.

    Args:
        a: [..., n, n], or a number.
        b: [n], one right-hand side for all systems, or [..., n, k]; of any shape where A is 1×1.
        lower: whether of a symmetric, Hermitian or positive definite matrix the lower triangle is
            read; else the upper one.
        overwrite_a, overwrite_b, check_finite: taken and ignored.
        assume_a: None or "general" (LU); "diagonal", "tridiagonal", "upper triangular", "lower
            triangular", of which nothing else is read; "symmetric" or "sym" (A = Aᵀ) and
            "hermitian" or "her", of which one triangle is read (LU of the whole matrix; `ldl` has
            other factors); "positive definite" or "pos" (Cholesky). "banded" is solved as a
            general one; see `solve_banded`.
        transposed: whether Aᵀ·x = b is meant.

    Returns:
        x, in the form of b with the batch of a: not finite where A is singular, NaN where one that
        is to be positive definite is not.

    Raises ValueError for a structure that has no name here, and shapes that do not fit.

    Derivative: dx = A⁻¹·(db − dA·x), from the same factors, where dA is read as A is.

    Cost: 2n³/3, n³/3 for positive definite matrices, and 2n² for each right-hand side; O(n) for
    what is tridiagonal or diagonal.

    >>> solve(2 * eye(2), ones(2))  # [0.5, 0.5]
    """
    del overwrite_a, overwrite_b, check_finite
    a, b = jnp.atleast_2d(a), jnp.atleast_1d(b)
    check_square("solve", a=a)
    check_choice("solve", "assume_a", assume_a, tuple(_STRUCTURES))
    if a.size == 1 and b.shape[-2:][0] != 1:
        x: Array = solve(a, b.reshape(1, -1), lower, assume_a=assume_a, transposed=transposed)
        return x.reshape(b.shape)
    b, as_given = right_hand_sides("solve", b, a.shape[-1], vector=b.ndim == 1)
    a, b = same_batch("solve", a=(a, 2), b=(b, 2))
    return as_given(_solution(_STRUCTURES[assume_a], a, b, lower, transposed))


@operation("a")
def inv(
    a: Any,
    overwrite_a: bool = False,
    check_finite: bool = True,
    *,
    assume_a: str | None = None,
    lower: bool = False,
) -> Array:
    """The inverse of A: `solve` with the identity on the right, and its arguments.

    Args:
        a: [..., n, n].
        overwrite_a, check_finite: taken and ignored.
        assume_a, lower: the structure of A, and which triangle is read, as for `solve`.

    Returns:
        [..., n, n]: not finite where A is singular, NaN where one that is to be positive definite
        is not.

    Raises ValueError where A is not square, and for a structure that has no name here.

    Derivative: d(A⁻¹) = -A⁻¹·dA·A⁻¹.

    Cost: 2n³, and as `solve` for other structures.

    >>> inv(2 * eye(2))  # [[0.5, 0], [0, 0.5]]
    """
    del overwrite_a, check_finite
    check_square("inv", a=a)
    check_choice("inv", "assume_a", assume_a, tuple(_STRUCTURES))
    if _STRUCTURES[assume_a] == "general":
        x: Array = jnp.linalg.inv(a)
    else:
        b = jnp.broadcast_to(jnp.eye(a.shape[-1], dtype=a.dtype), a.shape)
        x = _solution(_STRUCTURES[assume_a], a, b, lower, transposed=False)
    return x


def _solution(structure: str, a: Array, b: Array, lower: bool, transposed: bool) -> Any:
    """X of A·X = B, or Aᵀ·X = B."""
    if structure in ("symmetric", "hermitian", "positive definite"):
        strict = jnp.tril(a, -1) if lower else jnp.triu(a, 1)
        hermitian = structure != "symmetric"
        whole = strict + _across(strict, hermitian) + _diagonal(a, hermitian)
        if structure == "positive definite":
            return _solve_definite(a, whole, b, lower, transposed)
        # L·D·Lᴴ takes 2 to 7 times as long as LU for batches of 3 to 32, and 1.2, 1.7 and 2.2 times
        # for one matrix of 64, 256 and 1024 (f64, Zen 5): its pivots are sought in two directions.
        return jnp.linalg.solve(jnp.swapaxes(whole, -1, -2) if transposed else whole, b)
    if transposed:
        a = jnp.swapaxes(a, -1, -2)
    if structure == "diagonal":
        return b / jnp.diagonal(a, axis1=-2, axis2=-1)[..., None]
    if structure == "tridiagonal":
        return _solve_tridiagonal(a, b)
    if structure.endswith("triangular"):
        below = (structure == "lower triangular") != transposed
        return jax.lax.linalg.triangular_solve(a, b, left_side=True, lower=below)
    return jnp.linalg.solve(a, b)


def _solve_definite(a: Array, whole: Array, b: Array, lower: bool, transposed: bool) -> Array:
    """By the factor of the triangle that is read, where it stands: to make the whole matrix first
    takes as long as the rest. `whole` is read by derivatives alone."""
    a = jax.lax.stop_gradient(a)
    factor = jax.lax.linalg.cholesky(a if lower else adjoint(a), symmetrize_input=False)
    if not lower:
        factor = adjoint(factor)
    triangle = functools.partial(
        jax.lax.linalg.triangular_solve, factor, left_side=True, lower=lower
    )

    def by_factor(_: Any, b: Array) -> Array:
        if lower:
            return triangle(triangle(b), transpose_a=True, conjugate_a=True)
        return triangle(triangle(b, transpose_a=True, conjugate_a=True))

    def by_conjugate(matvec: Any, b: Array) -> Array:
        return jnp.conj(by_factor(matvec, jnp.conj(b)))

    if transposed:
        return _linear_solve(jnp.conj(whole), b, by_conjugate, by_factor)
    return _linear_solve(whole, b, by_factor, by_conjugate)


def _linear_solve(a: Array, b: Array, solve: _Solve, transposed: _Solve) -> Array:
    x: Array = jax.lax.custom_linear_solve(lambda x: a @ x, b, solve, transposed)
    return x


def _solve_tridiagonal(a: Array, b: Array) -> Array:
    pad = [(0, 0)] * (a.ndim - 2)
    dl = jnp.pad(jnp.diagonal(a, -1, axis1=-2, axis2=-1), [*pad, (1, 0)])
    du = jnp.pad(jnp.diagonal(a, 1, axis1=-2, axis2=-1), [*pad, (0, 1)])
    d = jnp.diagonal(a, axis1=-2, axis2=-1)
    return jax.lax.linalg.tridiagonal_solve(dl, d, du, b)
