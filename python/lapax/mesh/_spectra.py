"""Eigenvalues of a sharded Hermitian matrix, with their derivative."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from lapax._settings import own_settings
from lapax.mesh import _jacobi
from lapax.mesh._grids import Grid
from lapax.mesh._layout import Array, Share, Tile, cut_alike
from lapax.mesh._placing import (
    Place,
    check_square,
    cut_for,
    inexact,
    operands,
    run,
    swapped,
)
from lapax.mesh._products import hermitian, product


class Eigh(NamedTuple):
    """A V = V diag(eigenvalues)."""

    eigenvalues: Array
    eigenvectors: Array


@own_settings()
def eigh(a: Any, *, sharding: Any = None) -> Eigh:
    """Eigenvalues, ascending, and vectors of the Hermitian part of A.

    `a` is [n, n] in f32, f64, c64 or c128; V is divided as A is, the eigenvalues are on each
    device. `sharding` is A's, where it is not known. Raises ValueError for other shapes and dtypes
    and where no mesh is known. Derivative: V [diag(λ̄) + F ∘ VᴴV̄] Vᴴ with F(i, j) = 1 / (λ(j) -
    λ(i)), its Hermitian part; not finite where values repeat. One-sided block Jacobi (see
    `_jacobi`).
    """
    (a,) = inexact("eigh", a=a)
    check_square("eigh", "a", a)
    return Eigh(*eigh_of((sharding, False), a))


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def eigh_of(options: tuple[Any, bool], a: Array) -> tuple[Array, Array]:
    return _eigh_forward(options, a)[0]


@own_settings()
def _eigh_forward(options: tuple[Any, bool], a: Array) -> tuple[tuple[Array, Array], Any]:
    sharding, descending = options
    grid, (share,) = operands("eigh", sharding, a=a)
    every = grid.of_columns()
    half = 2 * every.col_parts
    pieces = cut_for(every, len(a), share.rows, share.cols).pieces
    cut = cut_alike(len(a), pieces, half * -(-(len(a) // pieces) // half))
    rows, cols = every.rows(cut), every.cols(cut)
    place, adjoint = Place(rows, cols, share), Place(rows, cols, swapped(share), "C")
    values, vectors = run(
        _jacobi.eigh, grid.mesh, (place, adjoint), (None, place), a, a, descending=descending
    )
    return (values, vectors), (values, vectors, _Residual(grid, share))


@jax.tree_util.register_static
class _Residual(NamedTuple):
    grid: Grid
    share: Share


@own_settings()
def _eigh_backward(options: tuple[Any, bool], residual: Any, cts: Any) -> tuple[Array]:
    values, vectors, (grid, share) = residual
    of_values, of_vectors = cts[0], jnp.conj(cts[1])
    v = (vectors, share)
    inner = product(grid, v, (of_vectors, share), share, trans_x="C")
    cut = cut_for(grid, len(values), share.rows, share.cols)
    place = Place(grid.rows(cut), grid.cols(cut), share)
    ins = (place, None, None)
    (inner,) = run(_eigh_inner, grid.mesh, ins, (place,), inner, values, of_values)
    left = product(grid, v, (inner, share), share)
    whole = product(grid, (left, share), v, share, trans_y="C")
    return (jnp.conj(hermitian(grid, whole, share)),)


def _eigh_inner(inner: Tile, values: Array, of_values: Array) -> tuple[Tile]:
    row, col = inner.rows.indices()[:, None], inner.cols.indices()
    at = jnp.minimum(row, len(values) - 1), jnp.minimum(col, len(values) - 1)
    gap = jnp.where(row == col, 1, values[at[1]] - values[at[0]])
    off = inner.x / gap.astype(inner.x.dtype)
    return (inner._replace(x=jnp.where(row == col, of_values[at[0]].astype(off.dtype), off)),)


eigh_of.defvjp(_eigh_forward, _eigh_backward)
