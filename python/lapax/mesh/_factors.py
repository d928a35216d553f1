"""Cholesky and LU of a sharded matrix, and triangular systems, with their derivatives."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from lapax._settings import own_settings
from lapax.mesh import _cholesky, _lu, _triangular
from lapax.mesh._layout import Array, Tile
from lapax.mesh._placing import (
    System,
    as_columns,
    check_choice,
    inexact,
    on_shares,
    run,
    system,
)
from lapax.mesh._products import hermitian, kept, multiply, product


@own_settings()
def cholesky(a: Any, *, sharding: Any = None, block: int | None = None) -> Array:
    """L of A = L Lᴴ for a Hermitian positive definite A, of which the lower triangle is read.

    `a` is [n, n] in f32, f64, c64 or c128, sharded over a mesh of any number of axes; L is divided
    as A is. NaN throughout where A is not positive definite. `sharding` is A's, where it is not
    known (under jit with automatic sharding); `block` is the largest block. Raises ValueError for
    other shapes and dtypes and where no mesh is known. Derivative: L̄ ↦ L⁻ᴴ Φ(Lᴴ L̄) L⁻¹, its
    Hermitian part, as if all of A were read (Murray, arXiv:1602.07527). Source: ScaLAPACK's pxpotrf
    (Choi et al., LAPACK working note 80).
    """
    (a,) = inexact("cholesky", a=a)
    return _cholesky_of((sharding, block), a)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _cholesky_of(options: tuple[Any, ...], a: Array) -> Array:
    return _cholesky_forward(options, a)[0]


@own_settings()
def _cholesky_forward(options: tuple[Any, ...], a: Array) -> tuple[Array, Any]:
    it = system("cholesky", options, a, a)
    place = it.place_a
    (factor,) = run(_cholesky.cholesky, it.grid.mesh, (place,), (place,), a)
    return factor, (factor, it)


@own_settings()
def _cholesky_backward(options: tuple[Any, ...], residual: Any, ct: Array) -> tuple[Array]:
    """With real inner products, so of conj(ct): W = L⁻ᴴ Φ(Lᴴ ct) L⁻¹ is solved for from the left,
    and from the right as the adjoint of a solve from the left."""
    factor, it = residual
    place, adjoint, mesh = it.place_a, it.transposed_a("C"), it.grid.mesh
    (half,) = run(
        _half_of_gradient, mesh, (place, adjoint, place), (place,), factor, factor, jnp.conj(ct)
    )
    (whole,) = run(_with_adjoint, mesh, (place, adjoint), (place,), factor, half)
    return (jnp.conj(hermitian(it.grid, whole, it.a)),)


def _half_of_gradient(factor: Tile, adjoint: Tile, ct: Tile) -> tuple[Tile]:
    """L⁻ᴴ Φ(Lᴴ L̄): the lower triangle with half the diagonal, which is real."""
    inner = kept(multiply(adjoint, ct), "lower")
    diagonal = inner.rows.positions()[:, None] == inner.cols.positions()
    inner = inner._replace(x=jnp.where(diagonal, inner.x.real.astype(ct.x.dtype) / 2, inner.x))
    factor = _cholesky.with_identity(factor)
    return _triangular.solve_triangular(factor, inner, lower=True, trans="C")


def _with_adjoint(factor: Tile, half: Tile) -> tuple[Tile]:
    factor = _cholesky.with_identity(factor)
    return _triangular.solve_triangular(factor, half, lower=True, trans="C")


_cholesky_of.defvjp(_cholesky_forward, _cholesky_backward)


@own_settings()
def triangular_solve(
    a: Any,
    b: Any,
    *,
    lower: bool = False,
    trans: str = "N",
    unit_diagonal: bool = False,
    sharding: Any = None,
    block: int | None = None,
) -> Array:
    """X of op(A) X = B for a triangular A; `trans` "N", "T" or "C" is op.

    `a` is [n, n], of which one triangle is read, and `b` [n, k] or [n], in f32, f64, c64 or c128; X
    is divided as B is. `sharding` is A's, where it is not known, `block` the largest block. Raises
    ValueError for other shapes, dtypes and `trans`, and where no mesh is known. Derivative:
    B̄ = op(A)⁻ᵀ X̄ and Ā = -B̄ Xᵀ, or its transpose, in the triangle.
    """
    check_choice("triangular_solve", "trans", trans, ("N", "T", "C"))
    a, b = inexact("triangular_solve", a=a, b=b)
    return _triangular_of((bool(lower), trans, bool(unit_diagonal), sharding, block), a, b)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _triangular_of(options: tuple[Any, ...], a: Array, b: Array) -> Array:
    return _triangular_forward(options, a, b)[0]


def _solved(it: System, a: Array, b: Array, **options: Any) -> Array:
    ins = (it.place_a, it.place_b)
    (x,) = run(_solve_padded, it.grid.mesh, ins, (it.place_b,), a, as_columns(b), **options)
    return x.reshape(b.shape)


def _solve_padded(a: Tile, b: Tile, **options: Any) -> tuple[Tile]:
    return _triangular.solve_triangular(_cholesky.with_identity(a), b, **options)


@own_settings()
def _triangular_forward(options: tuple[Any, ...], a: Array, b: Array) -> tuple[Array, Any]:
    lower, trans, unit, sharding, block = options
    it = system("triangular_solve", (sharding, block), a, b)
    x = _solved(it, a, b, lower=lower, trans=trans, unit=unit)
    return x, (a, x, it)


@own_settings()
def _triangular_backward(options: tuple[Any, ...], residual: Any, ct: Array) -> tuple[Array, Array]:
    (lower, trans, unit, *_), (a, x, it) = options, residual
    conjugated = jnp.conj if trans == "C" else lambda y: y
    # op(A)⁻ᵀ: of a transpose A⁻¹, of an adjoint conj(A)⁻¹.
    y = conjugated(
        _solved(it, a, conjugated(ct), lower=lower, trans="T" if trans == "N" else "N", unit=unit)
    )
    left, right = (y, x) if trans == "N" else (x, y)
    keep = ("strictly " if unit else "") + ("lower" if lower else "upper")
    gradient = outer(it, left, right, keep)
    return conjugated(gradient), y


_triangular_of.defvjp(_triangular_forward, _triangular_backward)


def outer(it: System, x: Array, y: Array, keep: str = "all", trans: str = "T") -> Array:
    """-X op(Y), divided as A."""
    x, y = (as_columns(z) for z in (x, y))
    return product(it.grid, (x, it.b), (y, it.b), it.a, trans_y=trans, scale=-1.0, keep=keep)


class LU(NamedTuple):
    """A[permutation] = L U."""

    permutation: Array
    l: Array  # noqa: E741  The matrix's name.
    u: Array


@own_settings()
def lu(a: Any, *, pivoting: str = "partial", sharding: Any = None, block: int | None = None) -> LU:
    """A[permutation] = L U with row pivoting: L unit lower, U upper triangular.

    `a` is [n, n] in f32, f64, c64 or c128; L and U are divided as A is, the permutation is on each
    device. U is singular where A is. `pivoting` "partial" takes the largest of each column, in a
    message for each; "tournament" as many rows as a block has columns, in log₂ of the grid's rows
    messages for each block, with |L| not bounded by 1 but of that order (CALU; Grigori, Demmel and
    Xiang 2011). `sharding` is A's, where it is not known, `block` the largest block. Raises
    ValueError for other shapes, dtypes and `pivoting` and where no mesh is known. Derivative:
    L⁻ᴴ [tril(Lᴴ L̄, -1) + triu(Ū Uᴴ)] U⁻ᴴ, rows permuted back (de Hoog, Anderssen and Lukas 2011).
    Source: Golub and Van Loan, Matrix Computations, 3.4.
    """
    check_choice("lu", "pivoting", pivoting, _lu.PIVOTING)
    (a,) = inexact("lu", a=a)
    return LU(*_lu_of((pivoting, sharding, block), a))


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _lu_of(options: tuple[Any, ...], a: Array) -> tuple[Array, Array, Array]:
    return _lu_forward(options, a)[0]


@own_settings()
def _lu_forward(options: tuple[Any, ...], a: Array) -> tuple[tuple[Array, Array, Array], Any]:
    pivoting, sharding, block = options
    it = system("lu", (sharding, block), a, a)
    place = it.place_a
    outs = (None, place, None)
    p, packed, pivots = run(_lu.lu_in_order, it.grid.mesh, (place,), outs, a, pivoting=pivoting)
    lower, upper = on_shares(_triangles, it.grid.mesh, it.a, 2, packed)
    return (p, lower, upper), (lower, upper, pivots, it)


def _triangles(row: Array, col: Array, packed: Array) -> tuple[Array, Array]:
    one = jnp.where(row == col, 1, 0).astype(packed.dtype)
    return jnp.where(row > col, packed, one), jnp.where(row <= col, packed, 0)


@own_settings()
def _lu_backward(options: tuple[Any, ...], residual: Any, cts: Any) -> tuple[Array]:
    lower, upper, pivots, it = residual
    _, of_lower, of_upper = cts
    place, adjoint, mesh = it.place_a, it.transposed_a("C"), it.grid.mesh
    (inner,) = run(
        _lu_inner,
        mesh,
        (adjoint, place, place, adjoint),
        (place,),
        *(lower, jnp.conj(of_lower), jnp.conj(of_upper), upper),
    )
    (right,) = run(_lu_right, mesh, (place, adjoint), (place,), upper, inner)
    (whole,) = run(_lu_left, mesh, (place, adjoint, None), (place,), lower, right, pivots)
    return (jnp.conj(whole),)


def _lu_inner(l_adjoint: Tile, of_lower: Tile, of_upper: Tile, u_adjoint: Tile) -> tuple[Tile]:
    low = kept(multiply(l_adjoint, of_lower), "strictly lower")
    return (low._replace(x=low.x + kept(multiply(of_upper, u_adjoint), "upper").x),)


def _lu_right(upper: Tile, inner_adjoint: Tile) -> tuple[Tile]:
    """The adjoint of M U⁻ᴴ is U⁻¹ Mᴴ."""
    upper = _cholesky.with_identity(upper)
    return _triangular.solve_triangular(upper, inner_adjoint, lower=False)


def _lu_left(lower: Tile, right: Tile, pivots: Array) -> tuple[Tile]:
    lower = _cholesky.with_identity(lower)
    (x,) = _triangular.solve_triangular(lower, right, lower=True, trans="C", unit=True)
    return (_lu.rows_back(x, pivots),)


_lu_of.defvjp(_lu_forward, _lu_backward)
