"""Block-cyclic layout: where each block of a matrix lies, and the exchange from and to a user's.

A dimension is cut into equal pieces, as many as all users' shares of it have in common; each piece
is padded at its end to whole blocks, and block i of the padded dimension belongs to part i mod
`parts` of the grid. So each share holds equally many blocks for every part, and going over is one
all-to-all of equal chunks for any size; ScaLAPACK's layout is that of one piece (Choi et al.,
LAPACK working note 95). What is factorised where is not known here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

Array = jax.Array

BLOCK = 256
"""The largest block. Panels cost n·b² flops on each device, which is 3bP/2n of the 2n³/3P that LU
shares out: 4 % at n = 10⁵ on 64 devices; and each block step waits for a few messages, so that
fewer and larger ones hide latency. ScaLAPACK's guide says 64, Lewis et al. (2022) took 256 to
1024 on TPUs."""
SMALL_BLOCK = 32
"""Down to this one the block shrinks so that each part has four blocks, and all have something left
to do until the last quarter; a product with fewer columns than this no longer runs at full rate."""


@dataclass(frozen=True)
class Cut:
    """`size` indices in `pieces` equal pieces, each padded to `piece_blocks` blocks."""

    size: int
    pieces: int
    block: int
    piece_blocks: int

    @property
    def piece(self) -> int:
        return self.size // self.pieces

    @property
    def padded_piece(self) -> int:
        return self.block * self.piece_blocks

    @property
    def blocks(self) -> int:
        return self.pieces * self.piece_blocks

    @property
    def padded(self) -> int:
        return self.blocks * self.block

    def position(self, index: Array) -> Array:
        """Where an index lies in the padded dimension."""
        return index // self.piece * self.padded_piece + index % self.piece

    def index(self, position: Array) -> Array:
        """What lies at a position; `size` if that is padding."""
        inside: Array = position % self.padded_piece
        index = position // self.padded_piece * self.piece + inside
        return jnp.where(inside < self.piece, index, self.size)

    def next_index(self, position: int) -> int:
        """The first index at a position or after it."""
        inside = min(position % self.padded_piece, self.piece)
        return position // self.padded_piece * self.piece + inside


def cut(size: int, pieces: int, parts: int, block: int | None = None) -> Cut:
    """`size` indices for grids of any number of parts that divides `parts`.

    Pieces are padded by less than one index for each of their blocks. A `block` that is given is a
    largest one.
    """
    piece = size // pieces
    if block is None:
        block = min(BLOCK, max(SMALL_BLOCK, -(-size // (4 * parts))))
    groups = -(-piece // (parts * block))
    return Cut(size, pieces, -(-piece // (parts * groups)), parts * groups)


def cut_alike(size: int, pieces: int, parts: int, block: int) -> Cut:
    """`size` indices in blocks of exactly this size."""
    return Cut(size, pieces, block, parts * -(-(size // pieces) // (parts * block)))


@dataclass(frozen=True)
class Dim:
    """A cut dimension whose blocks are dealt over mesh axes of these sizes."""

    cut: Cut
    axes: tuple[str, ...]
    sizes: tuple[int, ...]

    @property
    def block(self) -> int:
        return self.cut.block

    @property
    def parts(self) -> int:
        return math.prod(self.sizes)

    @property
    def blocks_here(self) -> int:
        return self.cut.blocks // self.parts

    @property
    def here(self) -> int:
        return self.blocks_here * self.block

    def me(self) -> Array | int:
        """Which part this device is."""
        return lax.axis_index(self.axes) if self.axes else 0

    def positions(self) -> Array:
        """The positions of this device's indices."""
        blocks = jnp.arange(self.blocks_here, dtype=jnp.int32) * self.parts + self.me()
        inside = jnp.arange(self.block, dtype=jnp.int32)
        return jnp.ravel(blocks[:, None] * self.block + inside)

    def indices(self) -> Array:
        """This device's indices; `size` where there is padding."""
        return self.cut.index(self.positions())

    def sum(self, x: Array) -> Array:
        return lax.psum(x, self.axes) if self.parts > 1 else x


class Share(NamedTuple):
    """A user's sharding: the mesh axes that each dimension is divided over, in order."""

    rows: tuple[str, ...]
    cols: tuple[str, ...]


class Tile(NamedTuple):
    """One device's blocks of a matrix, [rows.here, cols.here]."""

    x: Array
    rows: Dim
    cols: Dim


def enter(x: Array, share: Share, rows: Dim, cols: Dim) -> Tile:
    """From this device's share of the user's sharding to its blocks: one all-to-all, or none."""
    used = share.rows + share.cols
    size = dict(zip(rows.axes + cols.axes, rows.sizes + cols.sizes, strict=True))
    x = _padded(_padded(x, rows.cut, 0), cols.cut, 1)
    k, j = x.shape[0] // (rows.parts * rows.block), x.shape[1] // (cols.parts * cols.block)
    x = x.reshape(k, *rows.sizes, rows.block, j, *cols.sizes, cols.block)
    names = ["k", *rows.axes, "row", "j", *cols.axes, "col"]
    # Along an axis that the user does not divide over, each device has what it needs.
    for axis in (name for name in tuple(names) if name in size and name not in used):
        x = lax.dynamic_index_in_dim(x, lax.axis_index(axis), names.index(axis), keepdims=False)
        names.remove(axis)
    x = _exchanged(x, names, used, size)
    names = [*used, "k", "row", "j", "col"]
    order = [*share.rows, "k", "row", *share.cols, "j", "col"]
    x = jnp.transpose(x, [names.index(name) for name in order])
    return Tile(x.reshape(rows.here, cols.here), rows, cols)


def leave(tile: Tile, share: Share) -> Array:
    """From this device's blocks to its share: one all-to-all, or none, and a gather along those
    axes alone that the user does not divide over."""
    x, rows, cols = tile
    used = share.rows + share.cols
    size = dict(zip(rows.axes + cols.axes, rows.sizes + cols.sizes, strict=True))
    shares = [[size[axis] for axis in axes] for axes in share]
    k, j = (
        dim.blocks_here // math.prod(divided)
        for dim, divided in zip((rows, cols), shares, strict=True)
    )
    x = x.reshape(*shares[0], k, rows.block, *shares[1], j, cols.block)
    x = _exchanged(x, [*share.rows, "k", "row", *share.cols, "j", "col"], used, size)
    names = [*used, "k", "row", "j", "col"]
    for axis in (axis for axis in size if axis not in used):
        x = lax.all_gather(x, axis)
        names.insert(0, axis)
    order = ["k", *rows.axes, "row", "j", *cols.axes, "col"]
    x = jnp.transpose(x, [names.index(name) for name in order])
    x = x.reshape(k * rows.parts * rows.block, j * cols.parts * cols.block)
    return _cropped(_cropped(x, rows.cut, 0), cols.cut, 1)


def _exchanged(x: Array, names: list[str], used: tuple[str, ...], size: dict[str, int]) -> Array:
    """Brings the dimensions named by `used` to the front and exchanges them: the chunk for device d
    goes there, and chunk s is from device s."""
    rest = [name for name in names if name not in used]
    x = jnp.transpose(x, [names.index(name) for name in [*used, *rest]])
    if math.prod(size[axis] for axis in used) == 1:
        return x
    shape = x.shape
    x = x.reshape(-1, *shape[len(used) :])
    x = lax.all_to_all(x, used, 0, 0, tiled=True)
    return x.reshape(shape)


def _padded(x: Array, cut: Cut, axis: int) -> Array:
    x = jnp.moveaxis(x, axis, 0)
    x = x.reshape(-1, cut.piece, *x.shape[1:])
    x = jnp.pad(x, [(0, 0), (0, cut.padded_piece - cut.piece), *[(0, 0)] * (x.ndim - 2)])
    return jnp.moveaxis(x.reshape(-1, *x.shape[2:]), 0, axis)


def _cropped(x: Array, cut: Cut, axis: int) -> Array:
    x = jnp.moveaxis(x, axis, 0)
    x = x.reshape(-1, cut.padded_piece, *x.shape[1:])[:, : cut.piece]
    return jnp.moveaxis(x.reshape(-1, *x.shape[2:]), 0, axis)
