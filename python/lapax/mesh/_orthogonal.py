"""QR and least squares of a sharded matrix, with derivatives."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec

from lapax._settings import own_settings
from lapax.mesh import _cholesky, _qr, _triangular, _tsqr
from lapax.mesh._factors import triangular_solve
from lapax.mesh._grids import Grid
from lapax.mesh._layout import Array, Cut, Share, Tile, cut_alike
from lapax.mesh._placing import (
    Place,
    check_choice,
    check_rows,
    cut_for,
    inexact,
    operands,
    run,
    swapped,
)
from lapax.mesh._products import kept, matmul, multiply


class QR(NamedTuple):
    """A = Q R."""

    q: Array
    r: Array


@jax.tree_util.register_static
@dataclass(frozen=True)
class _Shape:
    """Where A [m, n], Q [m, k] and R [k, n] lie, k = min(m, n), and how they are cut."""

    grid: Grid
    a: Share
    m: Cut
    n: Cut
    k: Cut

    @property
    def q(self) -> Share:
        fits = self.k.size % self.grid.parts(self.a.cols) == 0
        return Share(self.a.rows, self.a.cols if fits else ())

    @property
    def r(self) -> Share:
        fits = self.k.size % self.grid.parts(self.a.rows) == 0
        return Share(self.a.rows if fits else (), self.a.cols)

    def place(self, rows: Cut, cols: Cut, share: Share) -> Place:
        return Place(self.grid.rows(rows), self.grid.cols(cols), share)

    @property
    def places(self) -> tuple[Place, Place, Place]:
        """Of A, Q and R."""
        return (
            self.place(self.m, self.n, self.a),
            self.place(self.m, self.k, self.q),
            self.place(self.k, self.n, self.r),
        )


def _shape(function: str, options: tuple[Any, int | None], a: Array) -> _Shape:
    sharding, block = options
    grid, (share,) = operands(function, sharding, a=a)
    m, n = a.shape
    smaller = min(m, n)
    fitting = [axes for axes in share if smaller % grid.parts(axes) == 0]
    k = cut_for(grid, smaller, *fitting, block=block)
    rows = k if m == smaller else cut_alike(m, grid.parts(share.rows), k.block)
    cols = k if n == smaller else cut_alike(n, grid.parts(share.cols), k.block)
    return _Shape(grid, share, rows, cols, k)


@own_settings()
def qr(
    a: Any, *, mode: str = "reduced", sharding: Any = None, block: int | None = None
) -> QR | Array:
    """A = Q R: Q [m, k] with orthonormal columns, R [k, n] upper triangular, k = min(m, n).

    `a` is [m, n] in f32, f64, c64 or c128. Q and R are divided as A is, where that divides them.
    R's diagonal is real and not negative. `mode` "r" gives R alone. Where each device has n rows or
    more each makes its own R and these are combined in pairs (TSQR; Demmel, Grigori, Hoemmen and
    Langou 2012); otherwise by panels (ScaLAPACK's pxgeqrf). `sharding` is A's, where it is not
    known, `block` the largest block. Raises ValueError for other shapes, dtypes and modes, and
    where no mesh is known. Derivative, for m ≥ n and full rank: [Q̄ + Q (S + Sᴴ)] R⁻ᴴ with S
    the upper triangle of R̄ Rᴴ - Qᴴ Q̄ with half the diagonal (Walter and Lehmann 2018).
    """
    check_choice("qr", "mode", mode, ("reduced", "r"))
    (a,) = inexact("qr", a=a)
    q, r = _qr_of((mode, sharding, block), a)
    return r if q is None else QR(q, r)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _qr_of(options: tuple[Any, ...], a: Array) -> tuple[Array | None, Array]:
    mode, sharding, block = options
    it = _shape("qr", (sharding, block), a)
    of_a, _, of_r = it.places
    if mode == "r" and not _tsqr.fits(it.grid, it.a, it.m, it.n.size):
        (r,) = run(_qr.only_r, it.grid.mesh, (of_a,), (of_r,), a, rows_of_r=of_r.rows)
        return None, r
    q, r = _both(it, a)
    return (None if mode == "r" else q), r


def _both(it: _Shape, a: Array) -> tuple[Array, Array]:
    if _tsqr.fits(it.grid, it.a, it.m, it.n.size):
        return _tsqr.qr(it.grid, it.a, it.q, it.r, a)
    of_a, of_q, of_r = it.places
    options = {"rows_of_r": of_r.rows, "cols_of_q": of_q.cols}
    q, r = run(_qr.qr, it.grid.mesh, (of_a,), (of_q, of_r), a, **options)
    return q, r


@own_settings()
def _qr_forward(options: tuple[Any, ...], a: Array) -> tuple[tuple[Array | None, Array], Any]:
    mode, sharding, block = options
    if a.shape[0] < a.shape[1]:
        raise ValueError(
            f"qr: a: expected at least {a.shape[1]} rows for a derivative, got {a.shape[0]}"
        )
    it = _shape("qr", (sharding, block), a)
    q, r = _both(it, a)
    return (None if mode == "r" else q, r), (q, r, it)


@own_settings()
def _qr_backward(options: tuple[Any, ...], residual: Any, cts: Any) -> tuple[Array]:
    q, r, it = residual
    of_q = jnp.zeros_like(q) if cts[0] is None else jnp.conj(cts[0])
    of_r = jnp.conj(cts[1])
    mesh, (_, place_q, _) = it.grid.mesh, it.places
    square = it.place(it.k, it.k, it.r)
    adjoint_q = Place(it.grid.rows(it.k), it.grid.cols(it.m), swapped(it.q), "C")
    adjoint_r = Place(square.rows, square.cols, swapped(it.r), "C")
    (half,) = run(_half, mesh, (square, adjoint_r, adjoint_q, place_q), (square,), of_r, r, q, of_q)
    (inner,) = run(
        _turned, mesh, (place_q, square, adjoint_r, place_q), (place_q,), q, half, half, of_q
    )
    adjoint_a = Place(it.grid.rows(it.n), it.grid.cols(it.m), swapped(it.a), "C")
    (out,) = run(_right, mesh, (square, adjoint_q), (adjoint_a,), r, inner)
    return (jnp.conj(out),)


def _half(of_r: Tile, r_adjoint: Tile, q_adjoint: Tile, of_q: Tile) -> tuple[Tile]:
    """The upper triangle of R̄ Rᴴ - Qᴴ Q̄, with half the diagonal, which is real."""
    both = multiply(of_r, r_adjoint)
    both = kept(both._replace(x=both.x - multiply(q_adjoint, of_q).x), "upper")
    diagonal = both.rows.positions()[:, None] == both.cols.positions()
    return (both._replace(x=jnp.where(diagonal, both.x.real.astype(both.x.dtype) / 2, both.x)),)


def _turned(q: Tile, half: Tile, half_adjoint: Tile, of_q: Tile) -> tuple[Tile]:
    whole = half._replace(x=half.x + half_adjoint.x)
    return (of_q._replace(x=of_q.x + multiply(q, whole).x),)


def _right(r: Tile, inner_adjoint: Tile) -> tuple[Tile]:
    """The adjoint of M R⁻ᴴ is R⁻¹ Mᴴ."""
    r = _cholesky.with_identity(r)
    return _triangular.solve_triangular(r, inner_adjoint, lower=False)


_qr_of.defvjp(_qr_forward, _qr_backward)


@own_settings()
def lstsq(a: Any, b: Any, *, sharding: Any = None, block: int | None = None) -> Array:
    """The X of least norm among those of least ‖A X - B‖, for an A of full rank.

    `a` is [m, n] and `b` [m, k] or [m], in f32, f64, c64 or c128; X is divided as A's columns and
    B's columns are. By QR of A, of Aᴴ where m < n; large or not finite where A's rank is less.
    `sharding` is A's, where it is not known, `block` the largest block. Raises ValueError for other
    shapes and dtypes and where no mesh is known. Its derivative is that of its parts.
    """
    a, b = inexact("lstsq", a=a, b=b)
    check_rows("lstsq", "b", b, a.shape[0])
    _, (share, _) = operands("lstsq", sharding, a=a, b=b)
    spec = PartitionSpec(share.rows or None, share.cols or None)
    turned = PartitionSpec(share.cols or None, share.rows or None)
    if a.shape[0] < a.shape[1]:
        q, r = qr(jnp.conj(a.T), sharding=turned, block=block)
        y = triangular_solve(r, b, trans="C", block=block)
        return matmul(q, y, sharding=turned)
    q, r = qr(a, sharding=spec, block=block)
    return triangular_solve(r, matmul(jnp.conj(q.T), b), block=block)
