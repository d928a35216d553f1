"""P A = L U on tiles with partial pivoting, rows staying where they are.

A row that became the pivot of step j is marked j and no longer changes; it holds row j of L and U.
Swapping rows instead would send 2n² / columns of the grid words more from each device, and solving,
inverses and determinants need no row moved. What it costs is that the window shrinks in columns
alone: 1.25 n³ of the 0.67 n³ that are needed. The panel is in all columns of the grid, so that the
search for a pivot is one message along a column of it (Golub and Van Loan, 3.4; pxgetrf's is two).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from lapax.mesh._cholesky import with_identity
from lapax.mesh._layout import Array, Dim, Tile
from lapax.mesh._panels import (
    column_panel,
    common,
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


class _State(NamedTuple):
    """`order`: of which step each row here is the pivot, the padded size if of none yet;
    `pivots`: the row of each step; both by position."""

    window: Array
    order: Array
    pivots: Array


def lu(a: Tile) -> tuple[Tile, Array]:
    """L below U in the rows as they are, and the position of each step's pivot."""
    a = with_identity(a)
    x, rows, cols = a
    size = rows.cut.padded
    order = jnp.full((rows.here,), size, jnp.int32)
    pivots = jnp.zeros((size,), jnp.int32)
    for start, stop in phases(cols, common(rows.parts, cols.parts)):
        left = start // cols.parts
        window = x[:, left * cols.block :]
        state = loop(start, stop, _step(a, left), _State(window, order, pivots))
        order, pivots = state.order, state.pivots
        x = lax.dynamic_update_slice(x, state.window, (0, left * cols.block))
    return a._replace(x=x), pivots


def _step(a: Tile, left: int) -> Any:
    _, rows, cols = a
    block, position = rows.block, cols.positions()[left * cols.block :]

    def step(k: Array, state: _State) -> _State:
        panel = column_panel(state.window, cols, k, left)
        panel, order, factors, chosen = _factored(panel, state.order, rows, k * block)
        old = rows_at(state.window, chosen, rows)
        right = position >= (k + 1) * block
        u12 = triangular(factors, jnp.where(right, old, 0), lower=True, unit=True)
        l21 = jnp.where((order == rows.cut.padded)[:, None], panel, 0)
        window = set_rows_at(state.window - l21 @ u12, chosen, jnp.where(right, u12, old), rows)
        window = set_column_panel(window, panel, cols, k, left)
        pivots = lax.dynamic_update_slice_in_dim(state.pivots, chosen, k * block, 0)
        return _State(window, order, pivots)

    return step


def _factored(
    panel: Array, order: Array, rows: Dim, first: Array
) -> tuple[Array, Array, Array, Array]:
    """The panel from column `first` on factorised, the order with its pivots, their rows and where.

    Rows of padding are the pivots of columns of padding alone, also where a column is zero.
    """
    position, padded, width = rows.positions(), rows.cut.padded, panel.shape[1]
    padding = rows.cut.index(position) == rows.cut.size
    real = panel.real.dtype

    def column(j: Array, carry: tuple[Array, Array, Array, Array]) -> Any:
        panel, order, factors, chosen = carry
        x = lax.dynamic_index_in_dim(panel, j, 1, keepdims=False)
        of_padding = rows.cut.index(first + j) == rows.cut.size
        fit = (order == padded) & jnp.where(of_padding, position == first + j, ~padding)
        score = jnp.where(fit, jnp.abs(x.real) + jnp.abs(x.imag), jnp.asarray(-1, real))
        best = jnp.argmax(score)
        row, where = _winner(panel[best], score[best], position[best], rows)
        pivot = row[j]
        order = jnp.where(position == where, first + j, order)
        left = (order == padded) & (pivot != 0)
        multiplier = jnp.where(left, x / jnp.where(pivot == 0, 1, pivot), 0)
        later = jnp.arange(width) > j
        panel = panel - multiplier[:, None] * jnp.where(later, row, 0)
        x = jnp.where(order == padded, multiplier, x)
        panel = lax.dynamic_update_index_in_dim(panel, x, j, 1)
        factors = lax.dynamic_update_index_in_dim(factors, row, j, 0)
        return panel, order, factors, chosen.at[j].set(where)

    factors = jnp.zeros((width, width), panel.dtype)
    chosen = jnp.zeros((width,), jnp.int32)
    panel, order, factors, chosen = loop(0, width, column, (panel, order, factors, chosen))
    return panel, order, factors, chosen


def _winner(row: Array, score: Array, position: Array, rows: Dim) -> tuple[Array, Array]:
    """The row of the largest score in this column of the grid, and its position: one message."""
    if rows.parts == 1:
        return row, position
    message = jnp.concatenate([_bits(score), _bits(position), _bits(row)])
    all_of_them = lax.all_gather(message, rows.axes)
    scores = _from_bits(all_of_them[:, : _words(score)], score)
    best = all_of_them[jnp.argmax(scores[:, 0])]
    rest = best[_words(score) :]
    return _from_bits(rest[1:], row), _from_bits(rest[:1], position)[0]


def _words(x: Array) -> int:
    """32-bit words of one element."""
    return x.dtype.itemsize // 4


def _bits(x: Array) -> Array:
    """As 32-bit words."""
    if jnp.iscomplexobj(x):
        x = jnp.stack([x.real, x.imag], -1)
    return lax.bitcast_convert_type(x, jnp.uint32).reshape(-1)


def _from_bits(words: Array, like: Array) -> Array:
    """Elements of `like`'s dtype, along the last dimension."""
    real = like.real.dtype
    split = (-1, 2) if real.itemsize == 8 else (-1,)
    x = lax.bitcast_convert_type(words.reshape(*words.shape[:-1], *split), real)
    if jnp.iscomplexobj(like):
        x = x.reshape(*x.shape[:-1], -1, 2)
        x = lax.complex(x[..., 0], x[..., 1])
    return x


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


def in_order(a: Tile, pivots: Array) -> tuple[Array, Tile]:
    """The rows of A by step, and L below U with theirs in that order: A[permutation] = L U."""
    x, rows, _ = a
    index = jnp.arange(rows.cut.size, dtype=jnp.int32)
    permutation = rows.cut.index(pivots[rows.cut.position(index)]).astype(jnp.int32)
    return permutation, a._replace(x=moved_rows(x, rows, pivots, rows))


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
