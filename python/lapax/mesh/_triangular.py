"""op(A) X = B on tiles for a triangular A, by block columns of A whatever op is.

With op the identity each X(k) is subtracted from what is left (right-looking); with a transpose,
whose block rows are A's block columns, X(k) takes what the solved ones give (left-looking). So A
is never transposed over the mesh.
"""

from __future__ import annotations

import jax.numpy as jnp

from lapax.mesh._layout import Array, Tile
from lapax.mesh._panels import (
    adjoint,
    column_panel,
    loop,
    own_row_block,
    row_block,
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
