"""P A = L U on tiles with row pivoting, rows staying where they are.

A row that became the pivot of step j is marked j and no longer changes; it holds row j of L and U.
Swapping rows instead would send 2n² / columns of the grid words more from each device, and solving,
inverses and determinants need no row moved. What it costs is that the window shrinks in columns
alone: 1.25 n³ of the 0.67 n³ that are needed. The panel is in all columns of the grid, so that
pivots are sought along a column of it alone (Golub and Van Loan, 3.4).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from lapax.mesh import _partial, _tournament
from lapax.mesh._cholesky import with_identity
from lapax.mesh._layout import Array, Dim, Tile
from lapax.mesh._panels import (
    column_panel,
    loop,
    moved_rows,
    own_row_block,
    phases,
    rows_at,
    set_column_panel,
    set_row_block,
    set_rows_at,
    triangular,
)
from lapax.mesh._triangular import transposed

PIVOTING = ("partial", "tournament")


class _State(NamedTuple):
    """`order`: of which step each row here is the pivot, the padded size if of none yet;
    `pivots`: the row of each step; both by position. `upper`: U in order, where that is wanted."""

    window: Array
    order: Array
    pivots: Array
    upper: Array | None


def lu(a: Tile, *, pivoting: str = "partial") -> tuple[Tile, Array]:
    """L below U in the rows as they are, and the position of each step's pivot."""
    return _eliminated(a, pivoting, None)[:2]


def lu_in_order(a: Tile, *, pivoting: str) -> tuple[Array, Tile, Array]:
    """The rows of A by step, L below U with theirs in that order, A[permutation] = L U, and the
    position of each step's pivot.

    Of U each step has its rows in all of a column of the grid, so that L's alone are moved.
    """
    packed, pivots, upper = _eliminated(a, pivoting, jnp.zeros_like(a.x))
    assert upper is not None, "as it was given"
    x, rows, cols = packed
    parts = []
    for start, stop in phases(cols.cut):
        part = x[:, start * cols.strip : stop * cols.strip]
        parts.append(moved_rows(part, rows, pivots, rows, start))
    below = rows.positions()[:, None] // rows.block > cols.positions() // cols.block
    x = jnp.where(below, jnp.concatenate(parts, 1), upper)
    index = jnp.arange(rows.cut.size, dtype=jnp.int32)
    permutation = rows.cut.index(pivots[rows.cut.position(index)]).astype(jnp.int32)
    return permutation, packed._replace(x=x), pivots


def _eliminated(a: Tile, pivoting: str, upper: Array | None) -> tuple[Tile, Array, Array | None]:
    a = with_identity(a)
    x, rows, cols = a
    size = rows.cut.padded
    order = jnp.full((rows.here,), size, jnp.int32)
    pivots = jnp.zeros((size,), jnp.int32)
    factored = {"partial": _partial.factored, "tournament": _tournament.factored}[pivoting]
    for start, stop in phases(cols.cut):
        at = (0, start * cols.strip)
        right = None if upper is None else upper[:, at[1] :]
        state = _State(x[:, at[1] :], order, pivots, right)
        window, order, pivots, right = loop(start, stop, _step(a, start, factored), state)
        x = lax.dynamic_update_slice(x, window, at)
        upper = None if upper is None else lax.dynamic_update_slice(upper, right, at)
    return a._replace(x=x), pivots, upper


def _step(a: Tile, start: int, factored: Any) -> Any:
    _, rows, cols = a
    block, position = rows.block, cols.positions()[start * cols.strip :]

    def step(k: Array, state: _State) -> _State:
        panel = column_panel(state.window, cols, k, start)
        panel, order, factors, chosen = factored(panel, state.order, rows, k * block)
        old = rows_at(state.window, chosen, rows)
        right = position >= (k + 1) * block
        u12 = triangular(factors, jnp.where(right, old, 0), lower=True, unit=True)
        l21 = jnp.where((order == rows.cut.padded)[:, None], panel, 0)
        window = set_rows_at(state.window - l21 @ u12, chosen, jnp.where(right, u12, old), rows)
        window = set_column_panel(window, panel, cols, k, start)
        pivots = lax.dynamic_update_slice_in_dim(state.pivots, chosen, k * block, 0)
        upper = state.upper
        if upper is not None:
            row = set_column_panel(jnp.where(right, u12, 0), factors, cols, k, start)
            upper = set_row_block(upper, row, rows, k)
        return _State(window, order, pivots, upper)

    return step


def solve(a: Tile, pivots: Array, b: Tile, *, trans: str = "N") -> tuple[Tile]:
    """X of op(A) X = B from `lu`'s results."""
    if trans == "N":
        return (_backward(a, pivots, _forward(a, pivots, b)),)
    return (_backward_transposed(a, pivots, _forward_transposed(a, pivots, b, trans), trans),)


def _here(rows: Dim, pivots: Array) -> Array:
    """The step of each row here."""
    steps = jnp.zeros_like(pivots).at[pivots].set(jnp.arange(len(pivots), dtype=pivots.dtype))
    return steps[rows.positions()]


def _diagonal(panel: Array, pivots: Array, rows: Dim, k: Array) -> tuple[Array, Array]:
    chosen = lax.dynamic_slice_in_dim(pivots, k * rows.block, rows.block)
    return rows_at(panel, chosen, rows), chosen


def _forward(a: Tile, pivots: Array, b: Tile) -> Tile:
    """Y of L Y = P B, row j of it in the row of pivot j."""
    _, rows, cols = a
    order = _here(rows, pivots)

    def step(k: Array, x: Array) -> Array:
        panel = column_panel(a.x, cols, k)
        both, chosen = _diagonal(panel, pivots, rows, k)
        xk = triangular(both, rows_at(x, chosen, rows), lower=True, unit=True)
        left = order >= (k + 1) * rows.block
        return set_rows_at(x - jnp.where(left[:, None], panel, 0) @ xk, chosen, xk, rows)

    return b._replace(x=loop(0, rows.cut.blocks, step, b.x))


def _backward(a: Tile, pivots: Array, y: Tile) -> Tile:
    """X of U X = Y; rows of Y as `_forward` leaves them, those of X in order."""
    _, rows, cols = a
    order, count = _here(rows, pivots), rows.cut.blocks

    def step(i: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        k, (y, x) = count - 1 - i, carry
        panel = column_panel(a.x, cols, k)
        both, chosen = _diagonal(panel, pivots, rows, k)
        xk = triangular(both, rows_at(y, chosen, rows), lower=False)
        left = order < k * rows.block
        y = y - jnp.where(left[:, None], panel, 0) @ xk
        return y, set_row_block(x, xk, rows, k)

    return y._replace(x=loop(0, count, step, (y.x, jnp.zeros_like(y.x)))[1])


def _forward_transposed(a: Tile, pivots: Array, b: Tile, trans: str) -> Tile:
    """Z of op(U) Z = B, row j of it in the row of pivot j."""
    _, rows, cols = a
    order = _here(rows, pivots)

    def step(k: Array, z: Array) -> Array:
        panel = column_panel(a.x, cols, k)
        both, chosen = _diagonal(panel, pivots, rows, k)
        solved = order < k * rows.block
        known = transposed(jnp.where(solved[:, None], panel, 0), trans) @ z
        zk = rows.sum(own_row_block(b.x, rows, k) - known)
        return set_rows_at(z, chosen, triangular(both, zk, lower=False, trans=trans), rows)

    return b._replace(x=loop(0, rows.cut.blocks, step, jnp.zeros_like(b.x)))


def _backward_transposed(a: Tile, pivots: Array, z: Tile, trans: str) -> Tile:
    """X = Pᵀ W of op(L) W = Z, which is W where the pivots are."""
    _, rows, cols = a
    order, count = _here(rows, pivots), rows.cut.blocks

    def step(i: Array, w: Array) -> Array:
        k = count - 1 - i
        panel = column_panel(a.x, cols, k)
        both, chosen = _diagonal(panel, pivots, rows, k)
        solved = order >= (k + 1) * rows.block
        known = transposed(jnp.where(solved[:, None], panel, 0), trans) @ w
        wk = rows_at(w, chosen, rows) - rows.sum(known)
        wk = triangular(both, wk, lower=True, trans=trans, unit=True)
        return set_rows_at(w, chosen, wk, rows)

    return z._replace(x=loop(0, count, step, z.x))


def log_determinant(a: Tile, pivots: Array) -> tuple[Array, Array]:
    """The sign of det A and the logarithm of its absolute value, from `lu`'s results."""
    x, rows, cols = a
    order = _here(rows, pivots)
    on_diagonal = order[:, None] == cols.positions()
    # One element of each column is on the diagonal.
    diagonal = cols.sum(rows.sum(_scattered(jnp.where(on_diagonal, x, 0).sum(0), cols)))
    magnitude = jnp.abs(diagonal)
    signs = diagonal / jnp.where(magnitude == 0, 1, magnitude).astype(x.dtype)
    sign = jnp.prod(signs) * _parity(pivots).astype(x.dtype)
    return sign, jnp.sum(jnp.log(magnitude))


def _scattered(x: Array, dim: Dim) -> Array:
    return jnp.zeros((dim.cut.padded,), x.dtype).at[dim.positions()].set(x)


def _parity(permutation: Array) -> Array:
    """(-1)^(size - cycles): the least element of each one's cycle by doubling steps."""
    size = len(permutation)

    def double(_: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        least, jump = carry
        return jnp.minimum(least, least[jump]), jump[jump]

    identity = jnp.arange(size, dtype=permutation.dtype)
    least, _ = loop(0, max(size - 1, 1).bit_length(), double, (identity, permutation))
    cycles = jnp.sum(least == identity)
    return 1 - 2 * ((size - cycles) % 2)


def identity(a: Tile) -> Tile:
    """The identity, in tiles as A's."""
    row, col = a.rows.positions()[:, None], a.cols.positions()
    return a._replace(x=(row == col).astype(a.x.dtype))


def inverse(a: Tile, pivots: Array) -> tuple[Tile]:
    return solve(a, pivots, identity(a))


def rows_back(x: Tile, pivots: Array) -> Tile:
    """Pᵀ X: row j in the row of pivot j."""
    rows = x.rows
    steps = jnp.zeros_like(pivots).at[pivots].set(jnp.arange(len(pivots), dtype=pivots.dtype))
    return x._replace(x=moved_rows(x.x, rows, steps, rows))
