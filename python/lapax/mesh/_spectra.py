"""Polar decomposition, eigenvalues and singular values of a sharded matrix."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec

from lapax.mesh import _jacobi, _polar
from lapax.mesh._layout import Array, Share, Tile, cut_alike
from lapax.mesh._orthogonal import qr
from lapax.mesh._placing import (
    Grid,
    Place,
    check_square,
    cut_for,
    inexact,
    operands,
    run,
    swapped,
)
from lapax.mesh._products import hermitian, product


class Polar(NamedTuple):
    """A = U H."""

    u: Array
    h: Array


def polar(a: Any, *, sharding: Any = None, block: int | None = None) -> Polar:
    """A = U H: U [m, n] with orthonormal columns (rows, if m < n), H [n, n] positive semidefinite.

    `a` is [m, n] in f32, f64, c64 or c128. U is divided as A is, H's columns as A's are. On what A
    takes to zero U does so, too. `sharding` is A's, where it is not known, `block` the largest
    block. Raises ValueError for other shapes and dtypes and where no mesh is known. There is no
    derivative. QDWH (Nakatsukasa and Higham 2013).
    """
    (a,) = inexact("polar", a=a)
    return Polar(*_polar_of((sharding, block), a))


def _without_derivative(function: str, *_: Any) -> Any:
    raise NotImplementedError(f"{function} has no derivative")


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _polar_of(options: tuple[Any, int | None], a: Array) -> tuple[Array, Array]:
    sharding, block = options
    grid, (share,) = operands("polar", sharding, a=a)
    m, n = a.shape
    trans, of_a = ("N", share) if m >= n else ("C", swapped(share))
    cols = cut_for(grid, min(m, n), of_a.cols, *([of_a.rows] if m == n else []), block=block)
    rows = cols
    if m != n:
        rows = cut_alike(max(m, n), grid.parts(of_a.rows), grid.common, cols.block)
    place = Place(grid.rows(rows), grid.cols(cols), of_a, trans)
    (u,) = run(_polar.unitary, grid.mesh, (place,), (place,), a, turned=grid.rows(cols))
    of_h = share if m == n else Share((), share.cols)
    h = product(grid, (u, share), (a, share), of_h, trans_x="C")
    return u, hermitian(grid, h, of_h)


_polar_of.defvjp(
    functools.partial(_without_derivative, "polar"), functools.partial(_without_derivative, "polar")
)


class Eigh(NamedTuple):
    """A V = V diag(eigenvalues)."""

    eigenvalues: Array
    eigenvectors: Array


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
    return Eigh(*_eigh_of((sharding, False), a))


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _eigh_of(options: tuple[Any, bool], a: Array) -> tuple[Array, Array]:
    return _eigh_forward(options, a)[0]


def _eigh_forward(options: tuple[Any, bool], a: Array) -> tuple[tuple[Array, Array], Any]:
    sharding, descending = options
    grid, (share,) = operands("eigh", sharding, a=a)
    every = grid.of_columns()
    half = 2 * every.parts(every.col_axes)
    pieces = cut_for(every, len(a), share.rows, share.cols).pieces
    block = -(-len(a) // pieces // half)
    cut = cut_alike(len(a), pieces, half, max(block, 1))
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


_eigh_of.defvjp(_eigh_forward, _eigh_backward)


class SVD(NamedTuple):
    """A = U diag(s) Vᴴ."""

    u: Array
    s: Array
    vh: Array


def svd(a: Any, *, sharding: Any = None, block: int | None = None) -> SVD:
    """The thin decomposition A = U diag(s) Vᴴ, s descending.

    `a` is [m, n] in f32, f64, c64 or c128; U is divided as A is, the values are on each device.
    From A = U' H = U' V diag(s) Vᴴ, with U from QR of U' V, which completes it where A's rank is
    less. `sharding` is A's, where it is not known, `block` the largest block. Raises ValueError for
    other shapes and dtypes and where no mesh is known. There is no derivative. Source: Nakatsukasa
    and Higham 2013.
    """
    (a,) = inexact("svd", a=a)
    _, (share,) = operands("svd", sharding, a=a)
    turned = PartitionSpec(share.cols or None, share.rows or None)
    if a.shape[0] < a.shape[1]:
        u, s, vh = svd(jnp.conj(a.T), sharding=turned, block=block)
        return SVD(jnp.conj(vh.T), s, jnp.conj(u.T))
    return SVD(*_svd_of((sharding, block), a))


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _svd_of(options: tuple[Any, int | None], a: Array) -> tuple[Array, Array, Array]:
    sharding, block = options
    grid, (share,) = operands("svd", sharding, a=a)
    spec = PartitionSpec(share.rows or None, share.cols or None)
    u, h = polar(a, sharding=spec, block=block)
    of_h = share if a.shape[0] == a.shape[1] else Share((), share.cols)
    h_spec = PartitionSpec(of_h.rows or None, of_h.cols or None)
    s, v = _eigh_of((h_spec, True), h)
    q, _ = qr(product(grid, (u, share), (v, of_h), share), sharding=spec, block=block)
    return q, jnp.maximum(s, 0), jnp.conj(v.T)


_svd_of.defvjp(
    functools.partial(_without_derivative, "svd"), functools.partial(_without_derivative, "svd")
)
