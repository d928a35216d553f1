"""Eigenvectors of a Hermitian matrix by one-sided Jacobi rotations of block columns.

B = A + 3‖A‖ I is definite with a condition of about 2, so that orthogonal columns B V = U Λ are
eigenvectors themselves, once normalised. Each device holds two block columns; a sweep takes each
pair of blocks to one device once, in the order of Brent and Luk (1985), which makes them orthogonal
by its own `eigh` of their Gram matrix. Larger values go to the block with the smaller number, so
that the last rotations are small and the vectors all but sorted (Hari 2005). What is sent is n²
words for each sweep, always to a neighbour; no step depends on the values but for the number of
sweeps, which is what spectral divide and conquer, whose halves have sizes that the values decide,
has against it here.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from lapax.mesh._layout import Array, Dim, Tile
from lapax.mesh._panels import adjoint, loop

SWEEPS = 30
"""Six to nine are taken, and up to 19 where two thirds of the values are equal."""
ROUNDING = 8.0
"""Times √n·ε: the cosines of a sweep that is the last one. Their squares are what a sweep leaves
(5e-5, 3e-10, 6e-15 for n = 61 on 2×2), but not where values are equal: such columns turn by any
angle, which mixes what is orthogonal to others already with what is not yet. A sweep before the
last one leaves 9e-10 for n = 31 of rank 10."""
SETTLED = 0.1
"""Times √ε: the cosines of a result, at most; NaN never has them."""
SHIFT = 3.0
"""Times an estimate of ‖A‖ that is at least half of it."""


class _State(NamedTuple):
    x: Array
    numbers: Array
    off: Array
    sweep: Array


def eigh(a: Tile, a_adjoint: Tile, *, descending: bool) -> tuple[Array, Tile]:
    """Eigenvalues in order and their vectors, by columns over all devices; rows are not divided."""
    x, rows, cols = a
    x = (x + a_adjoint.x) / 2
    largest = _max(jnp.max(jnp.abs(x)), cols)
    largest = jnp.where(largest == 0, 1, largest)
    x = x / largest
    norm = _norm(x, cols)
    row, col = rows.positions()[:, None], cols.positions()
    padding = cols.cut.index(col) == cols.cut.size
    # Beyond all others, so that padding comes last.
    shift = jnp.where(padding, 4 * SHIFT, SHIFT) * jnp.where(norm == 0, 1, norm)
    x = x + jnp.where(row == col, shift, 0).astype(x.dtype)
    x = _orthogonal(x, cols)
    lengths = jnp.sqrt(jnp.sum(jnp.abs(x) ** 2, 0))
    x = x / lengths.astype(x.dtype)
    values = lax.all_gather(lengths, cols.axes, tiled=True)
    # Of padding there are padded - size, the largest.
    order = jnp.argsort(values)[: cols.cut.size]
    order = order[::-1] if descending else order
    values = (values[order] - SHIFT * jnp.where(norm == 0, 1, norm)) * largest
    return values, Tile(_sorted(x, order, cols), rows, cols)


def _max(x: Array, cols: Dim) -> Array:
    largest: Array = lax.pmax(x, cols.axes)
    return largest


def _norm(x: Array, cols: Dim) -> Array:
    """Of a Hermitian matrix, from below, by eight steps of the power method."""
    at = cols.positions()

    def step(_: Array, v: Array) -> Array:
        w = cols.sum(x @ v[at])
        length = jnp.sqrt(jnp.sum(jnp.abs(w) ** 2))
        return jnp.where(length == 0, v, w / length.astype(w.dtype))

    start = jnp.cos(1.0 + jnp.arange(cols.cut.padded) ** 2 % 101).astype(x.dtype)
    v = loop(0, 8, step, start)
    w = cols.sum(x @ v[at])
    return jnp.sqrt(jnp.sum(jnp.abs(w) ** 2) / jnp.sum(jnp.abs(v) ** 2))


def _orthogonal(x: Array, cols: Dim) -> Array:
    epsilon = float(np.finfo(x.dtype).eps)
    limit, rounding = SETTLED * epsilon**0.5, ROUNDING * len(x) ** 0.5 * epsilon
    devices = cols.parts
    me = cols.me()

    def sweep(state: _State) -> _State:
        start = (state.x, state.numbers, jnp.zeros_like(state.off))
        x, numbers, off = loop(0, max(2 * devices - 1, 1), round_, start)
        return _State(x, numbers, _max(off, cols), state.sweep + 1)

    def round_(_: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        x, numbers, off = carry
        x, seen = _rotated(x, numbers)
        if devices > 1:
            x, numbers = _passed_on(x, numbers, cols)
        return x, numbers, jnp.maximum(off, seen)

    def more(state: _State) -> Array:
        again: Array = (state.off > rounding) & (state.sweep < SWEEPS)
        return again

    numbers = jnp.stack([2 * me, 2 * me + 1]).astype(jnp.int32)
    infinite = jnp.asarray(jnp.inf, x.real.dtype)
    state = lax.while_loop(more, sweep, _State(x, numbers, infinite, jnp.int32(0)))
    found: Array = jnp.where(state.off <= limit, state.x, jnp.nan)
    return found


def _rotated(x: Array, numbers: Array) -> tuple[Array, Array]:
    """Both block columns made orthogonal, and the largest cosine between two columns before."""
    gram = adjoint(x) @ x
    length = jnp.sqrt(jnp.diagonal(gram).real)
    cosine = jnp.abs(gram) / (length[:, None] * length)
    seen = jnp.max(jnp.where(jnp.eye(len(gram), dtype=bool), 0, cosine))
    _, v = jnp.linalg.eigh(gram, symmetrize_input=False)
    v = jnp.where(numbers[0] < numbers[1], v[:, ::-1], v)
    return x @ v, seen


def _passed_on(x: Array, numbers: Array, cols: Dim) -> tuple[Array, Array]:
    """Left blocks to the next device and right ones to the one before; the first left block stays.

    Device 0 sends its right block to the next one's left, the last keeps its left as its right.
    """
    devices, me = cols.parts, cols.me()
    half = x.shape[1] // 2
    up = [(i, i + 1) for i in range(devices - 1)]
    down = [(i + 1, i) for i in range(devices - 1)]

    def passed(left: Array, right: Array) -> tuple[Array, Array]:
        from_before = lax.ppermute(jnp.where(me == 0, right, left), cols.axes, up)
        from_after = lax.ppermute(right, cols.axes, down)
        return (
            jnp.where(me == 0, left, from_before),
            jnp.where(me == devices - 1, jnp.where(me == 0, right, left), from_after),
        )

    left, right = passed(x[:, :half], x[:, half:])
    first, second = passed(numbers[0], numbers[1])
    return jnp.concatenate([left, right], 1), jnp.stack([first, second])


def _sorted(x: Array, order: Array, cols: Dim) -> Array:
    """Column i of the result is the one whose number is order[i], counted over the devices.

    A few columns of each device at a time, which together are no more than a share.
    """
    here, devices = cols.here, cols.parts
    width = -(-here // devices)
    order = jnp.append(order, devices * here)
    positions = jnp.arange(cols.cut.padded)
    index = cols.cut.index(positions)
    # Of each device, in the order of its blocks.
    wanted = order[index].reshape(cols.cut.blocks, devices, cols.strip)
    wanted = jnp.swapaxes(wanted, 0, 1).reshape(devices, here)

    def step(t: Array, out: Array) -> Array:
        start = jnp.minimum(t * width, here - width)
        numbers = lax.dynamic_slice_in_dim(wanted, start, width, 1).reshape(-1)
        mine = numbers // here == cols.me()
        found = jnp.where(mine, x[:, numbers % here], 0)
        found = lax.psum_scatter(found, cols.axes, scatter_dimension=1, tiled=True)
        return lax.dynamic_update_slice_in_dim(out, found, start, 1)

    out: Array = loop(0, -(-here // width), step, jnp.zeros_like(x))
    return out
