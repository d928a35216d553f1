"""op(A) X = B on tiles for a triangular A, by block columns of A whatever op is.

With op the identity each X(k) is subtracted from what is left (right-looking); with a transpose,
whose block rows are A's block columns, X(k) takes what the solved ones give (left-looking). So A
is never transposed over the mesh.
"""

from __future__ import annotations

import jax.numpy as jnp

from lapax.mesh._layout import Array, Tile
from lapax.mesh._panels import (
    across,
    adjoint,
    column_panel,
    loop,
    own_column_panel,
    own_row_block,
    row_block,
    set_column_panel,
    set_row_block,
    triangular,
)


def transposed(panel: Array, trans: str) -> Array:
    return panel.T if trans == "T" else adjoint(panel)


def solve_triangular(
    a: Tile, b: Tile, *, lower: bool, trans: str = "N", unit: bool = False
) -> tuple[Tile]:
    """X of op(A) X = B; padding of A has ones on the diagonal. B's rows are cut as A's."""
    rows, cols, block = a.rows, a.cols, a.rows.block
    count = rows.cut.blocks
    position = rows.positions()
    forward = lower == (trans == "N")

    def step(i: Array, x: Array) -> Array:
        k = i if forward else count - 1 - i
        panel = column_panel(a.x, cols, k)
        diagonal = row_block(panel, rows, k)
        if trans == "N":
            xk = triangular(diagonal, row_block(x, rows, k), lower, trans, unit)
            left = position >= (k + 1) * block if lower else position < k * block
            return set_row_block(x - jnp.where(left[:, None], panel, 0) @ xk, xk, rows, k)
        solved = position < k * block if forward else position >= (k + 1) * block
        known = transposed(jnp.where(solved[:, None], panel, 0), trans) @ x
        xk = rows.sum(own_row_block(x, rows, k) - known)
        return set_row_block(x, triangular(diagonal, xk, lower, trans, unit), rows, k)

    return (b._replace(x=loop(0, count, step, b.x)),)


def solve_from_right(b: Tile, w: Tile, *, adjoint_of_w: bool) -> Tile:
    """X of X Wᴴ = B or X W = B for a lower W, whose rows and columns are cut as B's columns."""
    cols, block = b.cols, b.cols.block
    count, position = cols.cut.blocks, cols.positions()

    def step(i: Array, x: Array) -> Array:
        k = i if adjoint_of_w else count - 1 - i
        if adjoint_of_w:
            row = row_block(w.x, w.rows, k)
            diagonal = column_panel(row, cols, k)
            known = x @ adjoint(jnp.where(position < k * block, row, 0))
        else:
            panel = column_panel(w.x, w.cols, k)
            diagonal = row_block(panel, w.rows, k)
            turned = across(panel, w.rows, cols)
            known = x @ jnp.where((position >= (k + 1) * block)[:, None], turned, 0)
        xk = cols.sum(own_column_panel(x, cols, k) - known)
        trans = "N" if adjoint_of_w else "C"
        xk = adjoint(triangular(diagonal, adjoint(xk), True, trans))
        return set_column_panel(x, xk, cols, k)

    return b._replace(x=loop(0, count, step, b.x))
