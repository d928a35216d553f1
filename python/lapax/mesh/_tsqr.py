"""A = Q R of a tall and skinny matrix: each device has an R of its rows, and pairs combine
theirs until each has that of all.

Demmel, Grigori, Hoemmen and Langou, SIAM J. Sci. Comput. 34 (2012)."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from lapax.mesh._grids import Grid
from lapax.mesh._layout import Array, Cut, Dim, Share, Tile
from lapax.mesh._placing import Place, run, whole_cut


def _rows(grid: Grid, share: Share, m: int) -> Dim:
    """All devices divide the rows."""
    every = grid.of_rows()
    return every.rows(whole_cut(every, every.row_parts, m, share.rows))


def fits(grid: Grid, share: Share, m: Cut, n: int) -> bool:
    """Whether there are several devices and each has n rows or more."""
    rows = _rows(grid, share, m.size)
    cut = rows.cut
    # Each piece is one block, of which the last strip alone is short.
    last = cut.piece - rows.strip * (rows.parts - 1)
    return rows.parts > 1 and cut.pieces * max(last, 0) >= n


def qr(grid: Grid, share: Share, to_q: Share, to_r: Share, a: Array) -> tuple[Array, Array]:
    """Q and R, divided so."""
    every, (m, n) = grid.of_rows(), a.shape
    rows = _rows(grid, share, m)
    here = whole_cut(every, 1, n, share.cols, to_q.cols)
    small = whole_cut(every, every.row_parts, n, to_r.rows)
    cols_of_r = whole_cut(every, 1, n, to_r.cols)
    ins = (Place(rows, every.cols(here), share),)
    outs = (
        Place(rows, every.cols(here), to_q),
        Place(every.rows(small), every.cols(cols_of_r), to_r),
    )
    q, r = run(_local, grid.mesh, ins, outs, a, places=outs)
    return q, r


def _local(a: Tile, *, places: tuple[Place, Place]) -> tuple[Tile, Tile]:
    x, rows, cols = a
    # Padding last, where reflectors of the rows before it leave it zero.
    order = jnp.argsort(rows.indices() == rows.cut.size, stable=True)
    wide = jnp.nonzero(cols.indices() < cols.cut.size, size=cols.cut.size)[0]
    q, r = jnp.linalg.qr(x[order][:, wide])
    q2, r = _combined(r, rows.axes, rows.parts)
    size = jnp.abs(jnp.diagonal(r))
    phase = jnp.where(size == 0, 1, jnp.diagonal(r) / jnp.where(size == 0, 1, size).astype(x.dtype))
    r = jnp.conj(phase)[:, None] * r
    on_diagonal = jnp.eye(len(r), dtype=bool)
    r = jnp.where(on_diagonal, r.real.astype(r.dtype), r)
    q = jnp.zeros_like(x).at[order[:, None], wide].set(q @ (q2 * phase))
    return Tile(q, rows, cols), _tile_of(r, places[1])


def _tile_of(r: Array, place: Place) -> Tile:
    """This device's strips of a matrix that each device has."""
    rows, cols = place.rows, place.cols
    r = jnp.pad(r, ((0, 1), (0, 1)))
    return Tile(r[rows.indices()[:, None], cols.indices()], rows, cols)


def _combined(r: Array, axes: tuple[str, ...], parts: int) -> tuple[Array, Array]:
    """Of all devices' R: this device's block of the Q of the stack of them, and the R of it.

    Devices past the largest power of two give theirs to one of the first, and get back what it has.
    """
    me, n = lax.axis_index(axes), len(r)
    power = 1 << (parts.bit_length() - 1)
    extra = [(power + i, i) for i in range(parts - power)]
    back = [(to, start) for start, to in extra]
    block = jnp.eye(n, dtype=r.dtype)
    if extra:
        both, merged = jnp.linalg.qr(jnp.concatenate([r, lax.ppermute(r, axes, extra)]))
        block = jnp.where(me < power, both[:n], lax.ppermute(both[n:], axes, back))
        r = merged
    q = jnp.eye(n, dtype=r.dtype)
    for step in (1 << i for i in range(power.bit_length() - 1)):
        other = lax.ppermute(r, axes, [(i, i ^ step) for i in range(power)])
        first = (me & step) == 0
        both, r = jnp.linalg.qr(
            jnp.concatenate([jnp.where(first, r, other), jnp.where(first, other, r)])
        )
        q = q @ jnp.where(first, both[:n], both[n:])
    if extra:
        q, r = (jnp.where(me < power, x, lax.ppermute(x, axes, back)) for x in (q, r))
    return block @ q, r
