"""Polar decomposition and singular values of a sharded matrix, with derivatives.

Both rules are those of A = W S Vᴴ in terms of the k×k matrices of the cotangents between W and V,
k the smaller dimension; nothing larger than A is made for them.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec

from lapax._settings import own_settings
from lapax.mesh import _polar
from lapax.mesh._grids import Grid
from lapax.mesh._layout import Array, Share, Tile, cut_alike
from lapax.mesh._orthogonal import qr
from lapax.mesh._placing import Place, cut_for, inexact, operands, run, swapped
from lapax.mesh._products import hermitian, product
from lapax.mesh._spectra import eigh_of


class Polar(NamedTuple):
    """A = U H."""

    u: Array
    h: Array


class SVD(NamedTuple):
    """A = U diag(s) Vᴴ."""

    u: Array
    s: Array
    vh: Array


@own_settings()
def polar(a: Any, *, sharding: Any = None, block: int | None = None) -> Polar:
    """A = U H: U [m, n] with orthonormal columns (rows, if m < n), H [n, n] positive semidefinite.

    `a` is [m, n] in f32, f64, c64 or c128. U is divided as A is, H's columns as A's are. On what A
    takes to zero U does so, too. `sharding` is A's, where it is not known, `block` the largest
    block. Raises ValueError for other shapes and dtypes and where no mesh is known. Derivative, of
    full rank: with A = W S Vᴴ and σ(i, j) = s(i) + s(j), that of U is W [(P - Pᴴ)/σ] Vᴴ for
    P = Wᴴ dA V and what W or V leaves of dA over s, that of H is V [(S P + Pᴴ S)/σ] Vᴴ (Higham,
    Functions of Matrices, 8.3), and Vᴴ dH = Wᴴ dA on what A takes to zero. QDWH (Nakatsukasa and
    Higham 2013).
    """
    (a,) = inexact("polar", a=a)
    if a.shape[0] >= a.shape[1]:
        return Polar(*_polar_of((False, sharding, block), a))
    u, h = _polar_of((True, _turned("polar", sharding, a), block), jnp.conj(a.T))
    return Polar(jnp.conj(u.T), h)


@own_settings()
def svd(a: Any, *, sharding: Any = None, block: int | None = None) -> SVD:
    """The thin decomposition A = U diag(s) Vᴴ, s descending.

    `a` is [m, n] in f32, f64, c64 or c128; U is divided as A is, the values are on each device.
    From A = U' H = U' V diag(s) Vᴴ, with U from QR of U' V, which completes it where A's rank is
    less. `sharding` is A's, where it is not known, `block` the largest block. Raises ValueError for
    other shapes and dtypes and where no mesh is known. Derivative, for m ≥ n: with P = Uᴴ dA V and
    F(i, j) = 1 / (s(j)² - s(i)²), ds = Re diag P, dV = V [F ∘ (S P + Pᴴ S)] and dU = U [F ∘ (P S +
    S Pᴴ) + i Im diag P / S] + (dA V - U P) / S; not finite where values repeat, and that of vectors
    is for functions that do not depend on their phases (Townsend, Differentiating the singular
    value decomposition, 2016). Source: Nakatsukasa and Higham 2013.
    """
    (a,) = inexact("svd", a=a)
    if a.shape[0] < a.shape[1]:
        u, s, vh = svd(jnp.conj(a.T), sharding=_turned("svd", sharding, a), block=block)
        return SVD(jnp.conj(vh.T), s, jnp.conj(u.T))
    return SVD(*_svd_of((sharding, block), a))


def _turned(function: str, sharding: Any, a: Array) -> PartitionSpec:
    """The sharding of A's transpose."""
    _, (share,) = operands(function, sharding, a=a)
    return _spec(swapped(share))


def _spec(share: Share) -> PartitionSpec:
    return PartitionSpec(share.rows or None, share.cols or None)


@jax.tree_util.register_static
@dataclass(frozen=True)
class _Shape:
    """Where A [m, n], m ≥ n, lies, and matrices of A's rows and of its columns alone."""

    grid: Grid
    a: Share
    m: int
    n: int

    @property
    def tall(self) -> bool:
        return self.m > self.n

    @property
    def of_columns(self) -> Share:
        """Of an n by n matrix."""
        return Share((), self.a.cols) if self.tall else self.a

    @property
    def of_rows(self) -> Share:
        """Of an m by m matrix."""
        return Share((), self.a.rows)

    def inner(
        self, rule: Any, *matrices: Array, values: tuple[Array, ...], **options: Any
    ) -> Array:
        """`rule(M, Mᴴ, …, *values)` of n by n matrices."""
        share = self.of_columns
        cut = cut_for(self.grid, self.n, share.rows, share.cols)
        rows, cols = self.grid.rows(cut), self.grid.cols(cut)
        place, adjoint = Place(rows, cols, share), Place(rows, cols, swapped(share), "C")
        ins = (place, adjoint) * len(matrices) + (None,) * len(values)
        arrays = [x for matrix in matrices for x in (matrix, matrix)]
        (result,) = run(rule, self.grid.mesh, ins, (place,), *arrays, *values, **options)
        return result


def _shape(function: str, sharding: Any, a: Array) -> _Shape:
    grid, (share,) = operands(function, sharding, a=a)
    return _Shape(grid, share, *a.shape)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _polar_of(options: tuple[Any, ...], a: Array) -> tuple[Array, Array]:
    return _polar_forward(options, a)[0]


@own_settings()
def _polar_forward(options: tuple[Any, ...], a: Array) -> tuple[tuple[Array, Array], Any]:
    """U and H of A = U H, or with `left` of A = H U."""
    left, sharding, block = options
    it = _shape("polar", sharding, a)
    u = _unitary(it, a, block)
    if left:
        h = product(it.grid, (a, it.a), (u, it.a), it.of_rows, trans_y="C")
        h = hermitian(it.grid, h, it.of_rows)
        return (u, h), (u, _right(it, u, a), it)
    h = _right(it, u, a)
    return (u, h), (u, h, it)


def _unitary(it: _Shape, a: Array, block: int | None) -> Array:
    grid, share = it.grid, it.a
    cols = cut_for(grid, it.n, share.cols, *([] if it.tall else [share.rows]), block=block)
    rows = cut_alike(it.m, grid.parts(share.rows), cols.block) if it.tall else cols
    place = Place(grid.rows(rows), grid.cols(cols), share)
    (u,) = run(_polar.unitary, grid.mesh, (place,), (place,), a, turned=grid.rows(cols))
    return u


def _right(it: _Shape, u: Array, a: Array) -> Array:
    h = product(it.grid, (u, it.a), (a, it.a), it.of_columns, trans_x="C")
    return hermitian(it.grid, h, it.of_columns)


@own_settings()
def _polar_backward(options: tuple[Any, ...], residual: Any, cts: Any) -> tuple[Array]:
    """With C = Wᴴ Ū V and T the Hermitian part of H̄ between the vectors of H, Ā is
    (W Q + Ū V / S) Vᴴ for Q = (C - Cᴴ)/σ + 2 S T/σ - C/S, where the terms over S are those of
    m > n; with `left` S comes from the right, and what T leaves of H̄ W is added twice."""
    (left, *_), (u, h, it) = options, residual
    grid, a, small = it.grid, it.a, it.of_columns
    of_u, of_h = jnp.conj(cts[0]), jnp.conj(cts[1])
    s, v = eigh_of((_spec(small), True), h)
    w = product(grid, (u, a), (v, small), a)
    e = product(grid, (of_u, a), (v, small), a)
    c = product(grid, (w, a), (e, a), small, trans_x="C")
    vectors, lies, of_rows = (w, a, it.of_rows) if left else (v, small, small)
    of_h = hermitian(grid, of_h, of_rows)
    along = product(grid, (of_h, of_rows), (vectors, lies), lies)
    t = product(grid, (vectors, lies), (along, lies), small, trans_x="C")
    q = it.inner(_polar_inner, c, t, values=(s,), left=left, tall=it.tall)
    outer = product(grid, (w, a), (q, small), a)
    if it.tall:
        outer = outer + e * _inverse(s).astype(e.dtype)
    if left:
        outer = outer + 2 * along
    return (jnp.conj(product(grid, (outer, a), (v, small), a, trans_y="C")),)


def _polar_inner(
    c: Tile, c_adjoint: Tile, t: Tile, _: Tile, s: Array, *, left: bool, tall: bool
) -> tuple[Tile]:
    row, col = _of_rows_and_columns(c, s)
    over = _inverse(row + col).astype(c.x.dtype)
    both = 2 * t.x * over
    q = (c.x - c_adjoint.x) * over + (both * col - 2 * t.x if left else row * both)
    return (c._replace(x=q - c.x * _inverse(col) if tall else q),)


_polar_of.defvjp(_polar_forward, _polar_backward)


def _of_rows_and_columns(a: Tile, s: Array) -> tuple[Array, Array]:
    """s by rows and by columns of a tile."""
    row, col = (jnp.minimum(dim.indices(), len(s) - 1) for dim in (a.rows, a.cols))
    return s[row][:, None], s[col]


def _inverse(s: Array) -> Array:
    """0 of 0."""
    return jnp.where(s == 0, 0, 1 / jnp.where(s == 0, 1, s))


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _svd_of(options: tuple[Any, int | None], a: Array) -> tuple[Array, Array, Array]:
    result: tuple[Array, Array, Array] = _svd_forward(options, a)[0]
    return result


@own_settings()
def _svd_forward(options: tuple[Any, int | None], a: Array) -> tuple[Any, Any]:
    sharding, block = options
    it = _shape("svd", sharding, a)
    u = _unitary(it, a, block)
    s, v = eigh_of((_spec(it.of_columns), True), _right(it, u, a))
    s = jnp.maximum(s, 0)
    w = product(it.grid, (u, it.a), (v, it.of_columns), it.a)
    w, _ = qr(w, sharding=_spec(it.a), block=block)
    return (w, s, jnp.conj(v.T)), (w, s, v, it)


@own_settings()
def _svd_backward(options: tuple[Any, int | None], residual: Any, cts: Any) -> tuple[Array]:
    """With C = Uᴴ Ū and D = Vᴴ V̄, Ā is (U P + Ū / S) Vᴴ for P = [F ∘ (C - Cᴴ)] S +
    S [F ∘ (D - Dᴴ)] + s̄ + i Im diag C / S - C/S, where the terms over S are those of m > n."""
    u, s, v, it = residual
    grid, a, small = it.grid, it.a, it.of_columns
    of_u = jnp.conj(cts[0])
    c = product(grid, (u, a), (of_u, a), small, trans_x="C")
    d = product(grid, (v, small), (cts[2], swapped(small)), small, trans_x="C", trans_y="T")
    p = it.inner(_svd_inner, c, d, values=(s, cts[1]), tall=it.tall)
    outer = product(grid, (u, a), (p, small), a)
    if it.tall:
        outer = outer + of_u * _inverse(s).astype(of_u.dtype)
    return (jnp.conj(product(grid, (outer, a), (v, small), a, trans_y="C")),)


def _svd_inner(
    c: Tile, c_adjoint: Tile, d: Tile, d_adjoint: Tile, s: Array, of_s: Array, *, tall: bool
) -> tuple[Tile]:
    row, col = _of_rows_and_columns(c, s)
    diagonal = c.rows.positions()[:, None] == c.cols.positions()
    gap = jnp.where(diagonal, 1, (col - row) * (col + row)).astype(c.x.dtype)
    p = ((c.x - c_adjoint.x) * col + row * (d.x - d_adjoint.x)) / gap
    on_it = _of_rows_and_columns(c, of_s)[1].astype(c.x.dtype)
    if jnp.iscomplexobj(c.x):
        on_it = on_it + 1j * c.x.imag * _inverse(col)
    p = jnp.where(diagonal, on_it, p)
    return (c._replace(x=p - c.x * _inverse(col) if tall else p),)


_svd_of.defvjp(_svd_forward, _svd_backward)
