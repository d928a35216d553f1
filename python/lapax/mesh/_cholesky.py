"""A = L Lᴴ on tiles: L(k,k) from A(k,k), L(:,k) = A(:,k) L(k,k)⁻ᴴ, A -= L(:,k) L(:,k)ᴴ.

Golub and Van Loan, Matrix Computations, 4.2.6, with the panel gathered along rows and, as the
right operand of the update, sent along columns (ScaLAPACK's pxpotrf).
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from lapax.mesh._layout import Array, Tile
from lapax.mesh._panels import (
    across,
    adjoint,
    column_panel,
    loop,
    phases,
    row_block,
    set_column_panel,
    triangular,
)


def with_identity(a: Tile) -> Tile:
    """One on the diagonal where there is padding; rows and columns are cut alike."""
    rows, cols = a.rows.positions(), a.cols.positions()
    padding = a.rows.cut.index(rows) == a.rows.cut.size
    return a._replace(x=jnp.where(padding[:, None] & (rows[:, None] == cols), 1, a.x))


def cholesky(a: Tile) -> tuple[Tile]:
    """L of the Hermitian matrix whose lower triangle is read; NaN if that is not definite."""
    a = with_identity(a)
    x, rows, cols = a
    good = jnp.array(True)
    for start, stop in phases(rows.cut):
        corner = start * rows.strip, start * cols.strip
        window = x[corner[0] :, corner[1] :]
        window, good = loop(start, stop, _step(a, start), (window, good))
        x = lax.dynamic_update_slice(x, window, corner)
    lower = rows.positions()[:, None] >= cols.positions()
    return (a._replace(x=jnp.where(good, jnp.where(lower, x, 0), jnp.nan)),)


def _step(a: Tile, start: int) -> Any:
    _, rows, cols = a
    block, position = rows.block, rows.positions()[start * rows.strip :]

    def step(k: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        window, good = carry
        panel = column_panel(window, cols, k, start)
        l11 = jnp.linalg.cholesky(row_block(panel, rows, k, start))
        below = jnp.where(position[:, None] >= (k + 1) * block, panel, 0)
        l21 = adjoint(triangular(l11, adjoint(below), lower=True))
        window = window - l21 @ adjoint(across(l21, rows, cols, start, start))
        panel = jnp.where(position[:, None] >= (k + 1) * block, l21, panel)
        panel = _with_rows(panel, l11, position, k * block)
        good = good & jnp.all(jnp.isfinite(l11))
        return set_column_panel(window, panel, cols, k, start), good

    return step


def _with_rows(panel: Array, block: Array, position: Array, first: Array) -> Array:
    """The panel with this block in the rows from position `first` on, where they are here."""
    inside = position - first
    row = jnp.clip(inside, 0, len(block) - 1)
    return jnp.where(((inside >= 0) & (inside < len(block)))[:, None], block[row], panel)
