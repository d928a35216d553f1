"""What one step of a blocked algorithm moves: a panel of columns, a block of rows, rows by number.

Each is a masked sum over one axis of the grid, so that who owns what may depend on the step, and
the program of all steps is one. `window` is the part of a tile that is still worked on: its last
rows and columns, from block `top` and `left` of the device on.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from lapax.mesh._layout import Array, Dim

PHASES = 4
"""Into how many loops the steps are divided, each on what is left at its start. With windows of
whole, 3/4, 1/2 and 1/4 a factorisation does 0.47 n³ of the 0.33 n³ that are needed of n³ in a
single loop, and more loops only lengthen the program: 8 would do 0.40."""
PHASE_ROWS = 250
"""A loop for fewer rows takes longer to compile (0.3 s for LU on one core) than it saves."""


def phases(dim: Dim, group: int) -> Iterator[tuple[int, int]]:
    """The steps from, to of each loop, in multiples of `group`, which divides the blocks."""
    groups = dim.cut.blocks // group
    count = max(1, min(PHASES, groups, dim.cut.padded // PHASE_ROWS))
    borders = [groups * i // count * group for i in range(count + 1)]
    yield from itertools.pairwise(borders)


def loop(start: int, stop: int, body: Callable[[Array, Any], Any], carry: Any) -> Any:
    return lax.fori_loop(start, stop, body, carry)


def column_panel(x: Array, cols: Dim, k: Array, left: int = 0) -> Array:
    """Block column k of a window, to all devices of each row of the grid."""
    return cols.sum(own_column_panel(x, cols, k, left))


def own_column_panel(x: Array, cols: Dim, k: Array, left: int = 0) -> Array:
    """Block column k where it lies, zero elsewhere."""
    return jnp.where(k % cols.parts == cols.me(), _slice(x, cols, k, left, 1), 0)


def row_block(x: Array, rows: Dim, k: Array, top: int = 0) -> Array:
    """Block row k of a window, to all devices of each column of the grid."""
    return rows.sum(own_row_block(x, rows, k, top))


def own_row_block(x: Array, rows: Dim, k: Array, top: int = 0) -> Array:
    """Block row k where it lies, zero elsewhere."""
    return jnp.where(k % rows.parts == rows.me(), _slice(x, rows, k, top, 0), 0)


def set_column_panel(x: Array, panel: Array, cols: Dim, k: Array, left: int = 0) -> Array:
    return _update(x, panel, cols, k, left, 1)


def set_row_block(x: Array, block: Array, rows: Dim, k: Array, top: int = 0) -> Array:
    return _update(x, block, rows, k, top, 0)


def _slice(x: Array, dim: Dim, k: Array, first: int, axis: int) -> Array:
    start = (k // dim.parts - first) * dim.block
    return lax.dynamic_slice_in_dim(x, start, dim.block, axis)


def _update(x: Array, part: Array, dim: Dim, k: Array, first: int, axis: int) -> Array:
    part = jnp.where(k % dim.parts == dim.me(), part, _slice(x, dim, k, first, axis))
    start = (k // dim.parts - first) * dim.block
    return lax.dynamic_update_slice_in_dim(x, part, start, axis)


def across(panel: Array, rows: Dim, cols: Dim, top: int = 0, left: int = 0) -> Array:
    """A panel's rows, dealt over the rows of the grid, dealt over its columns instead."""
    blocks = panel.reshape(-1, rows.block, panel.shape[1])
    wanted = jnp.arange(left, cols.blocks_here) * cols.parts + cols.me()
    mine = (wanted % rows.parts == rows.me()) & (wanted // rows.parts >= top)
    found = blocks[jnp.clip(wanted // rows.parts - top, 0, len(blocks) - 1)]
    found = rows.sum(jnp.where(mine[:, None, None], found, 0))
    return found.reshape(-1, panel.shape[1])


def places(positions: Array, rows: Dim) -> tuple[Array, Array]:
    """Which of these positions are this device's, and its numbers for them (else out of range)."""
    block = positions // rows.block
    mine = (block % rows.parts == rows.me()) & (positions < rows.cut.padded) & (positions >= 0)
    here = block // rows.parts * rows.block + positions % rows.block
    return mine, jnp.where(mine, here, rows.here)


def rows_at(x: Array, positions: Array, rows: Dim) -> Array:
    """The rows at these positions, to all devices of each column of the grid."""
    mine, here = places(positions, rows)
    return rows.sum(jnp.where(mine[:, None], x[jnp.minimum(here, rows.here - 1)], 0))


def set_rows_at(x: Array, positions: Array, new: Array, rows: Dim) -> Array:
    _, here = places(positions, rows)
    return x.at[here].set(new, mode="drop")


def moved_rows(x: Array, rows: Dim, sources: Array, to: Dim) -> Array:
    """Rows at the positions that `sources` has for each position of `to`; zero where out of range.

    One block of each destination at a time, so that no device holds more than its share besides.
    """

    def body(t: Array, out: Array) -> Array:
        wanted = lax.dynamic_slice_in_dim(sources, t * (to.parts * to.block), to.parts * to.block)
        mine, here = places(wanted, rows)
        found = jnp.where(mine[:, None], x[jnp.minimum(here, rows.here - 1)], 0)
        if to.parts > 1:
            found = lax.psum_scatter(found, to.axes, scatter_dimension=0, tiled=True)
        return lax.dynamic_update_slice_in_dim(out, found, t * to.block, 0)

    out: Array = loop(0, to.blocks_here, body, jnp.zeros((to.here, x.shape[1]), x.dtype))
    return out


def common(*parts: int) -> int:
    return math.lcm(*parts)


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
