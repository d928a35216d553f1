"""A panel of LU by tournament pivoting (CALU; Grigori, Demmel and Xiang, SIAM J. Matrix Anal. Appl.
32, 2011).

Each device chooses as many of its rows as the panel has columns, by LU of these, and pairs choose
from theirs until all have the same; then all rows are divided by U of the chosen ones. So a panel
takes log₂ of the grid's rows messages, where partial pivoting takes one for each column. With H of
these rounds, |L| ≤ 2^(bH) in a panel of b columns and the growth is at most 2^(n(H+1)-1), where
partial pivoting's is 2^(n-1); for both it is about n^(2/3) in what is met.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from lapax.mesh._layout import Array, Dim
from lapax.mesh._panels import places, set_rows_at
from lapax.mesh._partial import Factored, bits, from_bits


class _Candidates(NamedTuple):
    """Rows, and their positions; past the end for none."""

    rows: Array
    positions: Array


def factored(panel: Array, order: Array, rows: Dim, first: Array) -> Factored:
    """As `_partial.factored`. NaN where rows were lost, as they may be where others are NaN."""
    padded = rows.cut.padded
    columns = (first + jnp.arange(panel.shape[1])).astype(jnp.int32)
    position = rows.positions()
    fit = (order == padded) & (rows.cut.index(position) < rows.cut.size)
    # Padding, last in its block, takes its own rows.
    real = rows.cut.index(columns) < rows.cut.size

    def best(candidates: _Candidates) -> _Candidates:
        return _best(candidates, real, padded)

    def better(x: _Candidates, y: _Candidates) -> _Candidates:
        return best(_Candidates(*(jnp.concatenate(pair) for pair in zip(x, y, strict=True))))

    mine = best(_Candidates(panel, jnp.where(fit, position, padded)))
    chosen = _of_all(mine, rows, better)
    lu, _, permutation = lax.linalg.lu(chosen.rows)
    where = jnp.where(real, chosen.positions[permutation], columns)
    factors = jnp.where(real[:, None], lu, jnp.eye(len(lu), dtype=lu.dtype))
    factors = jnp.where(jnp.any(where == padded), jnp.nan, factors)
    order = order.at[places(where, rows)[1]].set(columns, mode="drop")
    panel = jnp.where((order == padded)[:, None], _divided(panel, factors), panel)
    return set_rows_at(panel, where, factors, rows), order, factors, where


def _best(candidates: _Candidates, real: Array, padded: int) -> _Candidates:
    """As many of these rows as there are columns that are not padding, in the order of pivots.

    Rows that are none are zero and after the others, so that a column of zeros takes none of them.
    """
    missing = max(len(real) - len(candidates.positions), 0)
    x = jnp.pad(candidates.rows, ((0, missing), (0, 0)))
    positions = jnp.pad(candidates.positions, (0, missing), constant_values=padded)
    order = jnp.argsort(positions == padded, stable=True)
    x = jnp.where((positions < padded)[:, None], x, 0)[order]
    _, _, permutation = lax.linalg.lu(x)
    top = permutation[: len(real)]
    positions = jnp.where(real, positions[order][top], padded)
    return _Candidates(jnp.where((positions < padded)[:, None], x[top], 0), positions)


def _of_all(
    mine: _Candidates, dim: Dim, better: Callable[[_Candidates, _Candidates], _Candidates]
) -> _Candidates:
    """Of all parts', in pairs whose distance doubles, so that all have the same.

    Parts past the largest power of two give theirs to one of the first, and get back what it has.
    """
    me, power = dim.me(), 1 << (dim.parts.bit_length() - 1)
    extra = [(power + i, i) for i in range(dim.parts - power)]
    x = mine
    if extra:
        x = _either(me < len(extra), better(x, _sent(x, dim, extra)), x)
    for step in (1 << i for i in range(power.bit_length() - 1)):
        other = _sent(x, dim, [(i, i ^ step) for i in range(power)])
        first = (me & step) == 0
        x = better(_either(first, x, other), _either(first, other, x))
    if extra:
        x = _either(me < power, x, _sent(x, dim, [(to, start) for start, to in extra]))
    return x


def _either(first: Array, x: _Candidates, y: _Candidates) -> _Candidates:
    return _Candidates(*(jnp.where(first, *pair) for pair in zip(x, y, strict=True)))


def _sent(x: _Candidates, dim: Dim, pairs: list[tuple[int, int]]) -> _Candidates:
    message = jnp.concatenate([bits(x.positions), bits(x.rows)])
    got = dim.sent(message, pairs)
    count = len(x.positions)
    rows = from_bits(got[count:], x.rows).reshape(x.rows.shape)
    return _Candidates(rows, from_bits(got[:count], x.positions))


def _divided(panel: Array, factors: Array) -> Array:
    """The panel times U⁻¹, where U's diagonal is zero with one instead: what is left there is
    rounding, as the chosen rows have the others' span."""
    diagonal = jnp.eye(len(factors), dtype=bool)
    u = jnp.where(diagonal & (factors == 0), 1, jnp.triu(factors))
    return lax.linalg.triangular_solve(u, panel, left_side=False, lower=False)
