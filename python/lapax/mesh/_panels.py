"""What one step of a blocked algorithm moves: a panel of columns, a block of rows, rows by number.

All devices have a strip of every block, so that panels are gathered and the program of all steps is
one; what depends on values, such as which rows are pivots, is a masked sum over one axis of the
grid. `window` is the part of a tile that is still worked on: its last rows and columns, from block
`top` and `left` on.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from lapax.mesh._layout import Array, Cut, Dim

PHASES = 4
"""Into how many loops the steps are divided, each on what is left at its start. With windows of
whole, 3/4, 1/2 and 1/4 a factorisation does 0.47 n³ of the 0.33 n³ that are needed of n³ in a
single loop, and more loops only lengthen the program: 8 would do 0.40."""
PHASE_ROWS = 250
"""A loop for fewer rows takes longer to compile (0.3 s for LU on one core) than it saves."""


def phases(cut: Cut) -> Iterator[tuple[int, int]]:
    """The blocks from, to of each loop."""
    count = max(1, min(PHASES, cut.blocks, cut.padded // PHASE_ROWS))
    yield from itertools.pairwise(cut.blocks * i // count for i in range(count + 1))


def loop(start: int, stop: int, body: Callable[[Array, Any], Any], carry: Any) -> Any:
    return lax.fori_loop(start, stop, body, carry)


def column_panel(x: Array, cols: Dim, k: Array, left: int = 0) -> Array:
    """Block column k of a window, to all devices of each row of the grid."""
    return cols.gather(_strip(x, cols, k, left, 1), 1)


def row_block(x: Array, rows: Dim, k: Array, top: int = 0) -> Array:
    """Block row k of a window, to all devices of each column of the grid."""
    return rows.gather(_strip(x, rows, k, top, 0), 0)


def own_column_panel(x: Array, cols: Dim, k: Array) -> Array:
    """Block column k with this device's strip, zero elsewhere."""
    return _in_block(_strip(x, cols, k, 0, 1), cols, 1)


def own_row_block(x: Array, rows: Dim, k: Array) -> Array:
    """Block row k with this device's strip, zero elsewhere."""
    return _in_block(_strip(x, rows, k, 0, 0), rows, 0)


def set_column_panel(x: Array, panel: Array, cols: Dim, k: Array, left: int = 0) -> Array:
    return set_strip(x, _of_block(panel, cols, 1), cols, k, 1, left)


def set_row_block(x: Array, block: Array, rows: Dim, k: Array, top: int = 0) -> Array:
    return set_strip(x, _of_block(block, rows, 0), rows, k, 0, top)


def set_strip(x: Array, strip: Array, dim: Dim, k: Array, axis: int, first: int = 0) -> Array:
    """With this device's strip of block k."""
    return lax.dynamic_update_slice_in_dim(x, strip, (k - first) * dim.strip, axis)


def _strip(x: Array, dim: Dim, k: Array, first: int, axis: int) -> Array:
    return lax.dynamic_slice_in_dim(x, (k - first) * dim.strip, dim.strip, axis)


def _of_block(block: Array, dim: Dim, axis: int) -> Array:
    return lax.dynamic_slice_in_dim(block, dim.me() * dim.strip, dim.strip, axis)


def _in_block(strip: Array, dim: Dim, axis: int) -> Array:
    shape = list(strip.shape)
    shape[axis] = dim.block
    zero = jnp.zeros(shape, strip.dtype)
    return lax.dynamic_update_slice_in_dim(zero, strip, dim.me() * dim.strip, axis)


def across(panel: Array, rows: Dim, cols: Dim, top: int = 0, left: int = 0) -> Array:
    """A panel's rows, dealt over the rows of the grid, dealt over its columns instead."""
    if cols.parts == 1:
        strips = rows.gather(panel.reshape(-1, rows.strip, panel.shape[1]), 1)
        return strips.reshape(-1, panel.shape[1])[(left - top) * cols.block :]
    return rows_at(panel, cols.positions()[left * cols.strip :], rows, top)


def places(positions: Array, rows: Dim) -> tuple[Array, Array]:
    """Which of these positions are this device's, and its numbers for them (else out of range)."""
    block, inside = positions // rows.block, positions % rows.block
    mine = (inside // rows.strip == rows.me()) & (positions < rows.cut.padded) & (positions >= 0)
    here = block * rows.strip + inside % rows.strip
    return mine, jnp.where(mine, here, rows.here)


def rows_at(x: Array, positions: Array, rows: Dim, top: int = 0) -> Array:
    """The rows of a window at these positions, to all devices of each column of the grid."""
    mine, here = places(positions, rows)
    here = jnp.clip(here - top * rows.strip, 0, len(x) - 1)
    return rows.sum(jnp.where(mine[:, None], x[here], 0))


def set_rows_at(x: Array, positions: Array, new: Array, rows: Dim) -> Array:
    _, here = places(positions, rows)
    return x.at[here].set(new, mode="drop")


def moved_rows(x: Array, rows: Dim, sources: Array, to: Dim, first: int = 0) -> Array:
    """Rows at the positions that `sources` has for each position of `to`; zero where out of range,
    and before the block `first`.

    One block of the result at a time, so that no device holds more than its share besides.
    """

    def body(k: Array, out: Array) -> Array:
        wanted = lax.dynamic_slice_in_dim(sources, k * to.block, to.block)
        mine, here = places(wanted, rows)
        found = jnp.where(mine[:, None], x[jnp.minimum(here, rows.here - 1)], 0)
        return set_strip(out, to.scatter(found, 0), to, k, 0)

    out: Array = loop(first, to.cut.blocks, body, jnp.zeros((to.here, x.shape[1]), x.dtype))
    return out


def adjoint(x: Array) -> Array:
    return jnp.conj(jnp.swapaxes(x, -1, -2))


def triangular(a: Array, b: Array, lower: bool, trans: str = "N", unit: bool = False) -> Array:
    """op(a)⁻¹ b of one block, by the device's own function."""
    return jax.lax.linalg.triangular_solve(
        a,
        b,
        left_side=True,
        lower=lower,
        transpose_a=trans != "N",
        conjugate_a=trans == "C",
        unit_diagonal=unit,
    )
