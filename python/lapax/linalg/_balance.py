"""Balancing of matrices, as LAPACK's xGEBAL does it.

What it returns is exact: rows and columns change places, and are scaled by powers of two.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lapax.linalg._arguments import Array, check_square, operation, real_dtype
from lapax.linalg._structure import root_of_squares

__all__ = ["matrix_balance"]

_WORTH_IT = 0.95
"""A row and its column are scaled where the sum of their norms falls below this much of it: the
factor of Parlett and Reinsch (1969), which LAPACK keeps."""


@operation("A")
def matrix_balance(
    A: Any,
    permute: bool = True,
    scale: bool = True,
    separate: bool = False,
    overwrite_a: bool = False,
) -> tuple[Array, Any]:
    """B = T⁻¹·A·T with rows and columns of B about equal in norm, T a permuted diagonal matrix.

    `permute` first looks for eigenvalues that stand alone: rows, then columns, that are zero beside
    the diagonal go to the end and to the beginning. `scale` multiplies the columns between by
    powers of two and divides the rows, so that the 2-norms of each column and its row come together
    (James, Langou and Lowery, On matrix balancing and eigenvector computation, 2014, as in LAPACK
    since 3.5.0). Eigenvalues stay what they are, and are computed more accurately.

    `A` and B have shape [..., n, n]. T has the same and is real; with `separate` it is a tuple of
    the factors s and the permutation p, both [..., n]: B[i, j] = A[p[i], p[j]]·s[j]/s[i]. A matrix
    with an entry that is not finite gives NaN, and p as it is found. Raises ValueError where `A`
    is not square.

    T does not change with A but in jumps: its derivative is 0, and dB = T⁻¹·dA·T.

    Cost: O(n²) for each of a few sweeps.

    >>> matrix_balance(array([[1., 64], [1, 1]]))[0]  # [[1, 8], [8, 1]]
    """
    check_square("matrix_balance", A=A)
    n = A.shape[-1]
    real = real_dtype(A.dtype)
    if A.size == 0:
        s, p = jnp.ones(A.shape[:-1], real), jnp.broadcast_to(jnp.arange(n), A.shape[:-1])
    else:
        find = jnp.vectorize(lambda a: _found(a, permute, scale), signature="(n,n)->(n),(n)")
        s, p = find(jax.lax.stop_gradient(A))
    rows = jnp.take_along_axis(A, p[..., :, None], axis=-2)
    b = jnp.take_along_axis(rows, p[..., None, :], axis=-1) * _quotient(
        s[..., None, :], s[..., :, None]
    )
    finite = jnp.all(jnp.isfinite(A), axis=(-2, -1))[..., None]
    b, s = jnp.where(finite[..., None], b, jnp.nan), jnp.where(finite, s, jnp.nan)
    if separate:
        return b, (s, p)
    return b, jnp.where(jnp.arange(n)[:, None] == p[..., None, :], s[..., None, :], 0)


class _Block(NamedTuple):
    """A permutation, and which of its rows and columns are not isolated: first to last."""

    p: Array
    first: Array
    last: Array

    @property
    def inside(self) -> Array:
        """Whether each index belongs to it."""
        index = jnp.arange(self.p.size)
        return (self.first <= index) & (index <= self.last)


def _found(a: Array, permute: bool, scale: bool) -> tuple[Array, Array]:
    """Factors and permutation of one matrix."""
    n = a.shape[0]
    block = _Block(jnp.arange(n), jnp.asarray(0), jnp.asarray(n - 1))
    if permute:
        nonzero = (a != 0) & ~jnp.eye(n, dtype=bool)
        block = _isolated(nonzero, block, rows=True)
        block = _isolated(nonzero.T, block, rows=False)
    if not scale:
        return jnp.ones(n, real_dtype(a.dtype)), block.p
    return _factors(jnp.abs(a[block.p][:, block.p]), block.inside), block.p


def _isolated(nonzero: Array, block: _Block, rows: bool) -> _Block:
    """The block without the rows that are zero in it, which go to its end, or without such columns,
    which go to its beginning.

    Lines of `nonzero` are the rows or the columns. The order is LAPACK's since 3.11: rows from the
    last to the first, columns from the first to the last, and again while any has moved.
    """
    n = nonzero.shape[0]

    def look(step: Array, state: tuple[_Block, Array]) -> tuple[_Block, Array]:
        (p, first, last), moved = state
        i, inside = n - 1 - step if rows else step, state[0].inside
        alone = inside[i] & (first < last) & ~jnp.any(nonzero[p[i]][p] & inside)
        end = last if rows else first
        p = jnp.where(alone, p.at[i].set(p[end]).at[end].set(p[i]), p)
        if rows:
            return _Block(p, first, last - alone), moved | alone
        return _Block(p, first + alone, last), moved | alone

    def sweep(state: tuple[_Block, Array]) -> tuple[_Block, Array]:
        again: tuple[_Block, Array] = jax.lax.fori_loop(0, n, look, (state[0], jnp.asarray(False)))
        return again

    found, _ = jax.lax.while_loop(lambda state: state[1], sweep, (block, jnp.asarray(True)))
    return found


def _factors(a: Array, inside: Array) -> Array:
    """Powers of two that balance the block `inside` a matrix of absolute values."""
    n = a.shape[0]
    info = np.finfo(a.dtype)
    smallest, largest = info.tiny / info.eps, info.eps / info.tiny
    index = jnp.arange(n)

    def balance(i: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        s, changed = state
        column, row = a[:, i] * _quotient(s[i], s), a[i] * _quotient(s, s[i])
        c, r = (root_of_squares(jnp.where(inside, line, 0), (0,))[0] for line in (column, row))
        f, together = _power(c, r, jnp.max(column), jnp.max(row), 2 * smallest, largest / 2)
        worth = inside[i] & (c > 0) & (r > 0) & (together < _WORTH_IT * (c + r))
        too_small = (f < 1) & (s[i] < 1) & (f * s[i] <= smallest)
        too_large = (f > 1) & (s[i] > 1) & (s[i] >= largest / f)
        worth &= ~too_small & ~too_large
        return jnp.where((index == i) & worth, s * f, s), changed | worth

    def sweep(state: tuple[Array, Array]) -> tuple[Array, Array]:
        again: tuple[Array, Array] = jax.lax.fori_loop(
            0, n, balance, (state[0], jnp.asarray(False))
        )
        return again

    start = (jnp.ones(n, a.dtype), jnp.asarray(True))
    return jax.lax.while_loop(lambda state: state[1], sweep, start)[0]


def _quotient(s: Array, t: Array) -> Array:
    """s/t, finite: it may overflow beside an entry that is 0, which stays 0."""
    return jnp.minimum(s / t, np.finfo(s.dtype).max)


def _power(
    c: Array, r: Array, c_max: Array, r_max: Array, smallest: float, largest: float
) -> tuple[Array, Array]:
    """The power of two f that brings f·c and r/f together, and their sum.

    No intermediate result leaves what lies between `smallest` and `largest`; `c_max` and `r_max`
    are the largest entries of the whole column and row.
    """

    def raise_column(f: Array) -> Array:
        small = jnp.minimum(r / f / 2, r_max / f) > smallest
        return (c * f < r / f / 2) & (jnp.maximum(f, jnp.maximum(c, c_max) * f) < largest) & small

    def raise_row(f: Array) -> Array:
        small = jnp.minimum(f, jnp.minimum(c / 2, c_max) * f) > smallest
        return (c * f / 2 >= r / f) & (jnp.maximum(r, r_max) / f < largest) & small

    f = jax.lax.while_loop(raise_column, lambda f: f * 2, jnp.ones_like(c))
    f = jax.lax.while_loop(raise_row, lambda f: f / 2, f)
    return f, c * f + r / f
