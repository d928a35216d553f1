"""A panel of LU by partial pivoting, in inner blocks.

Each column takes one message along a column of the grid, with the pivot's row in its inner block
(pxgetf2's are two, with all of the row), and each inner block one more with the rest of its pivots'
rows, so that what is sent for n columns is n times the inner block for each device, not the block.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from lapax.mesh._layout import Array, Dim, inner
from lapax.mesh._panels import loop, rows_at, set_rows_at, triangular

Factored = tuple[Array, Array, Array, Array]


def factored(panel: Array, order: Array, rows: Dim, first: Array) -> Factored:
    """The panel from column `first` on factorised, the order with its pivots, their rows, where."""
    width = panel.shape[1]
    narrow = inner(width)
    if narrow == width:
        return _narrow(panel, order, rows, first)

    def step(i: Array, carry: Factored) -> Factored:
        panel, order, factors, chosen = carry
        start = i * narrow
        part = lax.dynamic_slice_in_dim(panel, start, narrow, 1)
        part, order, l11, found = _narrow(part, order, rows, first + start)
        panel = lax.dynamic_update_slice_in_dim(panel, part, start, 1)
        pivot_rows = rows_at(panel, found, rows)
        right = jnp.arange(width) >= start + narrow
        u12 = triangular(l11, jnp.where(right, pivot_rows, 0), lower=True, unit=True)
        l21 = jnp.where((order == rows.cut.padded)[:, None], part, 0)
        pivot_rows = jnp.where(right, u12, pivot_rows)
        panel = set_rows_at(panel - l21 @ u12, found, pivot_rows, rows)
        factors = lax.dynamic_update_slice_in_dim(factors, pivot_rows, start, 0)
        return panel, order, factors, lax.dynamic_update_slice_in_dim(chosen, found, start, 0)

    factors = jnp.zeros((width, width), panel.dtype)
    chosen = jnp.zeros((width,), jnp.int32)
    result: Factored = loop(0, width // narrow, step, (panel, order, factors, chosen))
    return result


def _narrow(panel: Array, order: Array, rows: Dim, first: Array) -> Factored:
    """As `factored`, column by column.

    Rows of padding are the pivots of columns of padding alone, also where a column is zero.
    """
    position, padded, width = rows.positions(), rows.cut.padded, panel.shape[1]
    padding = rows.cut.index(position) == rows.cut.size
    real = panel.real.dtype

    def column(j: Array, carry: Factored) -> Factored:
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
    message = jnp.concatenate([bits(score), bits(position), bits(row)])
    all_of_them = rows.gather(message[None], 0)
    scores = from_bits(all_of_them[:, : _words(score)], score)
    best = all_of_them[jnp.argmax(scores[:, 0])]
    rest = best[_words(score) :]
    return from_bits(rest[1:], row), from_bits(rest[:1], position)[0]


def _words(x: Array) -> int:
    """32-bit words of one element."""
    return x.dtype.itemsize // 4


def bits(x: Array) -> Array:
    """As 32-bit words."""
    if jnp.iscomplexobj(x):
        x = jnp.stack([x.real, x.imag], -1)
    return lax.bitcast_convert_type(x, jnp.uint32).reshape(-1)


def from_bits(words: Array, like: Array) -> Array:
    """Elements of `like`'s dtype, along the last dimension."""
    real = like.real.dtype
    split = (-1, 2) if real.itemsize == 8 else (-1,)
    x = lax.bitcast_convert_type(words.reshape(*words.shape[:-1], *split), real)
    if jnp.iscomplexobj(like):
        x = x.reshape(*x.shape[:-1], -1, 2)
        x = lax.complex(x[..., 0], x[..., 1])
    return x
