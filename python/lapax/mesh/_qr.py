"""A = Q R on tiles by Householder reflectors in panels: Q = Π (I - V(k) T(k) V(k)ᴴ).

Schreiber and Van Loan's compact WY form (1989), T from the Gram matrix of V (Puglisi 1992). Column
i is reflected onto row i as users number them, wherever padding puts either; columns of padding are
zero and take no row. As with LU the panel is in all columns of the grid, in inner blocks, and a
column of it takes one message: what it has with the others, and the row that it goes to. R's
diagonal is made real and not negative, so that Q and R do not depend on the mesh.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from lapax.mesh._layout import Array, Cut, Dim, Tile, inner
from lapax.mesh._panels import (
    adjoint,
    column_panel,
    loop,
    moved_rows,
    phases,
    places,
    set_column_panel,
    triangular,
)


class Factored(NamedTuple):
    """R where rows have been reached, V below; each block column's T; what A was divided by."""

    packed: Tile
    t: Array
    scale: Array


def _steps(a: Tile) -> Array:
    """The position of the column that is reflected onto each row here; past the end for none."""
    _, rows, cols = a
    index = rows.indices()
    reached = index < min(rows.cut.size, cols.cut.size)
    return jnp.where(reached, cols.cut.position(index), cols.cut.padded)


def _done(a: Tile, start: int, cut: Cut) -> int:
    """How many blocks of rows, or of Q's columns, are done with before a block column."""
    index = min(a.cols.cut.next_index(start * a.cols.block), cut.size)
    position = index // cut.piece * cut.padded_piece + index % cut.piece
    return min(position // cut.block, cut.blocks)


def factor(a: Tile) -> Factored:
    """Of any shape; rows and columns are in blocks of one size."""
    x, rows, cols = a
    largest = cols.max(rows.max(jnp.max(jnp.abs(x))))
    scale = jnp.where(largest == 0, 1, largest).astype(x.dtype)
    x = x / scale
    t = jnp.zeros((cols.cut.blocks, cols.block, cols.block), x.dtype)
    for start, stop in phases(cols.cut):
        corner = _done(a, start, rows.cut) * rows.strip, start * cols.strip
        if corner[0] >= rows.here:
            break
        window = x[corner[0] :, corner[1] :]
        window, t = loop(start, stop, _step(a, corner[0], start), (window, t))
        x = lax.dynamic_update_slice(x, window, corner)
    return Factored(a._replace(x=x), t, scale)


def _step(a: Tile, top: int, start: int) -> Any:
    """`top` counts rows of this device."""
    _, rows, cols = a
    block, steps = cols.block, _steps(a)[top:]
    position = cols.positions()[start * cols.strip :]

    def step(k: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        window, t = carry
        panel = column_panel(window, cols, k, start)
        panel, v, tau = _reflected(panel, steps, rows, cols.cut, k * block, top)
        window, tk = _updated(window, position >= (k + 1) * block, v, tau, rows)
        column = k * block + jnp.arange(block)
        panel = jnp.where(steps[:, None] > column, v, panel)
        return set_column_panel(window, panel, cols, k, start), t.at[k].set(tk)

    return step


def _updated(x: Array, right: Array, v: Array, tau: Array, rows: Dim) -> tuple[Array, Array]:
    """The columns `right` of X times (I - V T Vᴴ)ᴴ, and T."""
    both = jnp.concatenate([v, jnp.where(right, x, 0)], 1)
    gram, products = jnp.split(rows.sum(adjoint(v) @ both), [v.shape[1]], 1)
    t = _compact(gram, tau)
    return x - v @ (adjoint(t) @ products), t


def _compact(gram: Array, tau: Array) -> Array:
    """T = (I + diag(τ) striu(VᴴV))⁻¹ diag(τ)."""
    factor = jnp.eye(len(tau), dtype=gram.dtype) + tau[:, None] * jnp.triu(gram, 1)
    return triangular(factor, jnp.diag(tau), lower=False, unit=True)


def _reflected(
    panel: Array, steps: Array, rows: Dim, cut: Cut, first: Array, top: int
) -> tuple[Array, Array, Array]:
    """R of the panel's columns, their V and τ, by inner blocks."""
    width = panel.shape[1]
    narrow = inner(width)
    if narrow == width:
        return _narrow(panel, steps, rows, cut, first, top)

    def step(i: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        panel, v, tau = carry
        start = i * narrow
        part = lax.dynamic_slice_in_dim(panel, start, narrow, 1)
        part, w, t = _narrow(part, steps, rows, cut, first + start, top)
        panel = lax.dynamic_update_slice_in_dim(panel, part, start, 1)
        panel, _ = _updated(panel, jnp.arange(width) >= start + narrow, w, t, rows)
        v = lax.dynamic_update_slice_in_dim(v, w, start, 1)
        return panel, v, lax.dynamic_update_slice_in_dim(tau, t, start, 0)

    zero = jnp.zeros((width,), panel.dtype)
    panel, v, tau = loop(0, width // narrow, step, (panel, jnp.zeros_like(panel), zero))
    return panel, v, tau


def _narrow(
    panel: Array, steps: Array, rows: Dim, cut: Cut, first: Array, top: int
) -> tuple[Array, Array, Array]:
    """As `_reflected`, column by column.

    With x what is left of a column, α its entry in the row that it goes to and β = -α/|α| ‖x‖:
    v = (x - β e) / (α - β) and τ = 1 + |α| / ‖x‖ (Golub and Van Loan, 5.1.13).
    """
    width = panel.shape[1]
    count = min(rows.cut.size, cut.size)

    def column(j: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        panel, v, tau = carry
        step, index = first + j, cut.index(first + j)
        here = (steps == step) & (index < count)
        y = lax.dynamic_index_in_dim(panel, j, 1, keepdims=False)
        x = jnp.where(steps >= step, y, 0)
        mine, at = places(rows.cut.position(jnp.minimum(index, count - 1))[None], rows)
        row = jnp.where(mine & (index < count), panel[jnp.clip(at - top, 0, len(panel) - 1)], 0)
        message = rows.sum(jnp.concatenate([jnp.conj(x)[None] @ panel, row], 0))
        dots, row = message
        alpha, norm = row[j], jnp.sqrt(dots[j].real)
        size = jnp.abs(alpha)
        phase = jnp.where(size == 0, 1, alpha / jnp.where(size == 0, 1, size).astype(x.dtype))
        beta = -phase * norm
        nothing = (norm == 0) | (index >= count)
        pivot = jnp.where(nothing, 1, alpha - beta)
        new = jnp.where(here, 1, jnp.where(nothing, 0, x / pivot))
        t = jnp.where(nothing, 0, 1 + size / jnp.where(nothing, 1, norm)).astype(x.dtype)
        known = (dots - jnp.conj(beta) * row) / jnp.conj(pivot)
        later = jnp.where(jnp.arange(width) > j, t * known, 0)
        panel = panel - new[:, None] * later
        y = jnp.where(here & ~nothing, beta, y)
        panel = lax.dynamic_update_index_in_dim(panel, y, j, 1)
        v = lax.dynamic_update_index_in_dim(v, new, j, 1)
        return panel, v, tau.at[j].set(t)

    zero = jnp.zeros((width,), panel.dtype)
    panel, v, tau = loop(0, width, column, (panel, jnp.zeros_like(panel), zero))
    return panel, v, tau


def _reflectors(packed: Array, cols: Dim, k: Array, steps: Array) -> Array:
    """V of block column k, to all devices of each row of the grid."""
    column = k * cols.block + jnp.arange(cols.block)
    panel = jnp.where(steps[:, None] > column, column_panel(packed, cols, k), 0)
    return jnp.where(steps[:, None] == column, 1, panel)


def r_of(it: Factored, to: Dim) -> tuple[Tile, Array]:
    """R with its rows cut as `to`, and the phases that made its diagonal real, of each of its rows
    by position."""
    x, rows, cols = it.packed
    index = to.cut.index(jnp.arange(to.cut.padded))
    sources = jnp.where(index < to.cut.size, rows.cut.position(index), rows.cut.padded)
    if to.cut != rows.cut:
        x = moved_rows(x, rows, sources, to)
    row, col = to.indices()[:, None], cols.indices()
    real = row < to.cut.size
    x = jnp.where((row <= col) & real, x, 0)
    on_diagonal = jnp.sum(jnp.where(row == col, jnp.where(real, x, 0), 0), 1)
    diagonal = cols.sum(on_diagonal)
    size = jnp.abs(diagonal)
    phase = jnp.where(size == 0, 1, diagonal / jnp.where(size == 0, 1, size).astype(x.dtype))
    whole = jnp.zeros((to.cut.padded,), x.dtype).at[to.positions()].set(phase)
    x = x * jnp.conj(phase)[:, None] * it.scale
    # What rounding leaves of the imaginary part.
    x = jnp.where(row == col, x.real.astype(x.dtype), x)
    return Tile(x, to, cols), to.sum(whole)


def q_of(it: Factored, phase: Array, to: Dim) -> Tile:
    """The first columns of Q, as many as `to` has indices.

    From the last reflectors to the first, as none but these changes the first rows and columns.
    """
    _, rows, cols = it.packed
    row, col = rows.indices()[:, None], to.indices()
    unit = (row == col) & (row < rows.cut.size)
    q = jnp.where(unit, phase[to.positions()], 0)
    for start, stop in reversed(list(phases(cols.cut))):
        top, left = (_done(it.packed, start, dim.cut) * dim.strip for dim in (rows, to))
        if top >= rows.here:
            continue
        window = loop(0, stop - start, _back(it, top, stop), q[top:, left:])
        q = lax.dynamic_update_slice(q, window, (top, left))
    return Tile(q, rows, to)


def _back(it: Factored, top: int, stop: int) -> Any:
    x, rows, cols = it.packed
    steps = _steps(it.packed)[top:]

    def step(i: Array, window: Array) -> Array:
        k = stop - 1 - i
        v = _reflectors(x[top:], cols, k, steps)
        return window - v @ (it.t[k] @ rows.sum(adjoint(v) @ window))

    return step


def qr(a: Tile, *, rows_of_r: Dim, cols_of_q: Dim) -> tuple[Tile, Tile]:
    it = factor(a)
    r, phase = r_of(it, rows_of_r)
    return q_of(it, phase, cols_of_q), r


def only_r(a: Tile, *, rows_of_r: Dim) -> tuple[Tile]:
    return (r_of(factor(a), rows_of_r)[0],)
