"""A = Q R on tiles by Householder reflectors in panels: Q = Π (I - V(k) T(k) V(k)ᴴ).

Schreiber and Van Loan's compact WY form (1989), T from the Gram matrix of V (Puglisi 1992). Column
i is reflected onto row i as users number them, wherever padding puts either; columns of padding are
zero and take no row. As with LU the panel is in all columns of the grid, and a column of it takes
one message: what it has with the others, and the row that it goes to. R's diagonal is made real and
not negative, so that Q and R do not depend on the mesh.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from lapax.mesh._layout import Array, Cut, Dim, Tile
from lapax.mesh._panels import (
    adjoint,
    column_panel,
    common,
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


def _tops(a: Tile, start: int) -> int:
    """How many block rows of each device are done at a block column."""
    _, rows, cols = a
    index = min(cols.cut.next_index(start * cols.block), rows.cut.size)
    position = index // rows.cut.piece * rows.cut.padded_piece + index % rows.cut.piece
    return min(position // (rows.block * rows.parts), rows.blocks_here)


def factor(a: Tile) -> Factored:
    """Of any shape; rows and columns are in blocks of one size."""
    x, rows, cols = a
    largest = jnp.max(jnp.abs(x))
    for dim in (rows, cols):
        largest = lax.pmax(largest, dim.axes) if dim.parts > 1 else largest
    scale = jnp.where(largest == 0, 1, largest).astype(x.dtype)
    x = x / scale
    t = jnp.zeros((cols.cut.blocks, cols.block, cols.block), x.dtype)
    for start, stop in phases(cols, common(rows.parts, cols.parts)):
        top, left = _tops(a, start) * rows.block, start // cols.parts
        if top >= rows.here:
            break
        window = x[top:, left * cols.block :]
        window, t = loop(start, stop, _step(a, top, left), (window, t))
        x = lax.dynamic_update_slice(x, window, (top, left * cols.block))
    return Factored(a._replace(x=x), t, scale)


def _step(a: Tile, top: int, left: int) -> Any:
    _, rows, cols = a
    block, steps = cols.block, _steps(a)[top:]
    position = cols.positions()[left * block :]

    def step(k: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        window, t = carry
        panel = column_panel(window, cols, k, left)
        panel, v, tau = _reflected(panel, steps, rows, cols.cut, k * block, top)
        right = jnp.where(position >= (k + 1) * block, window, 0)
        gram, products = _split(rows.sum(adjoint(v) @ jnp.concatenate([v, right], 1)), block)
        tk = _compact(gram, tau)
        window = window - v @ (adjoint(tk) @ products)
        column = k * block + jnp.arange(block)
        panel = jnp.where(steps[:, None] > column, v, panel)
        return set_column_panel(window, panel, cols, k, left), t.at[k].set(tk)

    return step


def _split(x: Array, at: int) -> tuple[Array, Array]:
    return x[:, :at], x[:, at:]


def _compact(gram: Array, tau: Array) -> Array:
    """T = (I + diag(τ) striu(VᴴV))⁻¹ diag(τ)."""
    inner = jnp.eye(len(tau), dtype=gram.dtype) + tau[:, None] * jnp.triu(gram, 1)
    return triangular(inner, jnp.diag(tau), lower=False, unit=True)


def _reflected(
    panel: Array, steps: Array, rows: Dim, cut: Cut, first: Array, top: int
) -> tuple[Array, Array, Array]:
    """R of the panel's columns, their V and τ.

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
        inner, row = message
        alpha, norm = row[j], jnp.sqrt(inner[j].real)
        size = jnp.abs(alpha)
        phase = jnp.where(size == 0, 1, alpha / jnp.where(size == 0, 1, size).astype(x.dtype))
        beta = -phase * norm
        nothing = (norm == 0) | (index >= count)
        pivot = jnp.where(nothing, 1, alpha - beta)
        new = jnp.where(here, 1, jnp.where(nothing, 0, x / pivot))
        t = jnp.where(nothing, 0, 1 + size / jnp.where(nothing, 1, norm)).astype(x.dtype)
        known = (inner - jnp.conj(beta) * row) / jnp.conj(pivot)
        later = jnp.where(jnp.arange(width) > j, t * known, 0)
        panel = panel - new[:, None] * later
        y = jnp.where(here & ~nothing, beta, y)
        panel = lax.dynamic_update_index_in_dim(panel, y, j, 1)
        v = lax.dynamic_update_index_in_dim(v, new, j, 1)
        return panel, v, tau.at[j].set(t)

    zero = jnp.zeros((width,), panel.dtype)
    panel, v, tau = loop(0, width, column, (panel, jnp.zeros_like(panel), zero))
    return panel, v, tau


def _reflectors(it: Factored, k: Array, steps: Array) -> Array:
    """V of block column k, to all devices of each row of the grid."""
    x, _, cols = it.packed
    column = k * cols.block + jnp.arange(cols.block)
    panel = jnp.where(steps[:, None] > column, column_panel(x, cols, k), 0)
    return jnp.where(steps[:, None] == column, 1, panel)


def apply(it: Factored, b: Tile, *, adjoint_of_q: bool) -> Tile:
    """Q B or Qᴴ B; B's rows are cut as A's."""
    _, rows, cols = it.packed
    steps, count = _steps(it.packed), cols.cut.blocks

    def step(i: Array, x: Array) -> Array:
        k = i if adjoint_of_q else count - 1 - i
        v = _reflectors(it, k, steps)
        t = it.t[k]
        return x - v @ ((adjoint(t) if adjoint_of_q else t) @ rows.sum(adjoint(v) @ x))

    return b._replace(x=loop(0, count, step, b.x))


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
    """The first columns of Q, as many as `to` has indices."""
    _, rows, _ = it.packed
    row, col = rows.indices()[:, None], to.indices()
    unit = (row == col) & (row < rows.cut.size)
    unit = jnp.where(unit, phase[to.positions()], 0)
    return apply(it, Tile(unit, rows, to), adjoint_of_q=False)


def qr(a: Tile, *, rows_of_r: Dim, cols_of_q: Dim) -> tuple[Tile, Tile]:
    it = factor(a)
    r, phase = r_of(it, rows_of_r)
    return q_of(it, phase, cols_of_q), r


def only_r(a: Tile, *, rows_of_r: Dim) -> tuple[Tile]:
    return (r_of(factor(a), rows_of_r)[0],)
