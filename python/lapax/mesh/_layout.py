"""Block-cyclic layout: where each block of a matrix lies, and the exchange from and to a user's.

A dimension is cut into equal pieces, as many as all users' shares of it have in common; each piece
is padded at its end to whole blocks, which are what algorithms step through, and each block is
dealt out in strips, one for each part of the grid. So all devices have as much of every block:
sending one to all is an all-gather, which sends half of what a sum over zeros does and needs no
owner that depends on the step; and each share holds equally many strips for every part, so that
going over is one all-to-all of equal chunks for any size. Strips of one piece are ScaLAPACK's
blocks (Choi et al., LAPACK working note 95). What is factorised where is not known here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Array = jax.Array

BLOCK = 256
"""The largest block. Panels cost n²·b flops on each row of the grid, which is 3b·columns/2n of what
LU shares out: 3 % at n = 10⁵ on 8×8 devices; and each block step waits for a few messages, so that
fewer and larger ones hide latency. ScaLAPACK's guide says 64, Lewis et al. (2022) took 256 to
1024 on TPUs."""
SMALL_BLOCK = 32
"""Down to this one the block shrinks with n, so that panels cost no more than 3/8 of what is shared
out; a product with fewer columns than this no longer runs at full rate."""
GRANULE = 8
"""Larger blocks are multiples of it, so that they have a divisor of 17 to 32 for their own blocks
(`inner`)."""


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

    A `block` that is given is a largest one, but for rounding to a multiple of the parts.
    """
    piece = size // pieces
    if block is None:
        block = min(BLOCK, max(SMALL_BLOCK, -(-size // (4 * parts))))
    even = -(-piece // -(-piece // block))
    granule = parts if even <= SMALL_BLOCK else math.lcm(parts, GRANULE)
    return cut_alike(size, pieces, -(-even // granule) * granule)


def cut_alike(size: int, pieces: int, block: int) -> Cut:
    """`size` indices in blocks of exactly this size."""
    return Cut(size, pieces, block, -(-(size // pieces) // block))


def inner(block: int) -> int:
    """The blocks of a block: the largest divisor of it that is no larger than a small one."""
    return max(i for i in range(1, min(block, SMALL_BLOCK) + 1) if block % i == 0)


@dataclass(frozen=True)
class Digit:
    """A device's number along a mesh axis of `whole` devices, over `stride` and modulo `size`."""

    axis: str
    whole: int
    size: int
    stride: int = 1

    def me(self) -> Array:
        return lax.axis_index(self.axis) // self.stride % self.size


@dataclass(frozen=True)
class Dim:
    """A cut dimension whose blocks are dealt over devices that differ in these digits in strips."""

    cut: Cut
    digits: tuple[Digit, ...]

    @property
    def block(self) -> int:
        return self.cut.block

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(digit.size for digit in self.digits)

    @property
    def parts(self) -> int:
        return math.prod(self.sizes)

    @property
    def strip(self) -> int:
        """What each part has of a block."""
        return self.block // self.parts

    @property
    def here(self) -> int:
        return self.cut.blocks * self.strip

    def me(self) -> Array:
        """Which part this device is."""
        me = jnp.int32(0)
        for digit in self.digits:
            me = me * digit.size + digit.me()
        return me

    def positions(self) -> Array:
        """The positions of this device's indices."""
        blocks = jnp.arange(self.cut.blocks, dtype=jnp.int32) * self.block
        inside = self.me() * self.strip + jnp.arange(self.strip, dtype=jnp.int32)
        return jnp.ravel(blocks[:, None] + inside)

    def indices(self) -> Array:
        """This device's indices; `size` where there is padding."""
        return self.cut.index(self.positions())

    @property
    def axes(self) -> tuple[str, ...]:
        """The mesh axes that a message among the parts is along."""
        return tuple(dict.fromkeys(digit.axis for digit in self.digits))

    @property
    def groups(self) -> list[list[int]] | None:
        """Of numbers along `axes`, those of all parts in order; none where that is all of them."""
        if all(digit.size == digit.whole for digit in self.digits):
            return None
        shape: list[int] = []
        order: dict[Digit, int] = {}
        for axis in self.axes:
            (digit,) = (digit for digit in self.digits if digit.axis == axis)
            order[digit] = len(shape) + 1
            shape += [digit.whole // (digit.size * digit.stride), digit.size, digit.stride]
        mine = [order[digit] for digit in self.digits]
        others = [i for i in range(len(shape)) if i not in mine]
        numbers = np.arange(math.prod(shape)).reshape(shape).transpose(others + mine)
        groups: list[list[int]] = numbers.reshape(-1, self.parts).tolist()
        return groups

    def sum(self, x: Array) -> Array:
        if self.parts == 1:
            return x
        total: Array = lax.psum(x, self.axes, axis_index_groups=self.groups)
        return total

    def max(self, x: Array) -> Array:
        if self.parts == 1:
            return x
        largest: Array = lax.pmax(x, self.axes, axis_index_groups=self.groups)
        return largest

    def gather(self, strip: Array, axis: int) -> Array:
        """A block of which each part has its strip, to all of them."""
        if self.parts == 1:
            return strip
        block: Array = lax.all_gather(
            strip, self.axes, axis=axis, tiled=True, axis_index_groups=self.groups
        )
        return block

    def scatter(self, block: Array, axis: int) -> Array:
        """This part's strip of the sum of all parts' blocks."""
        if self.parts == 1:
            return block
        strip: Array = lax.psum_scatter(
            block, self.axes, scatter_dimension=axis, tiled=True, axis_index_groups=self.groups
        )
        return strip

    def sent(self, x: Array, pairs: list[tuple[int, int]]) -> Array:
        """What a part of each pair sends to the other one; zero where there is none."""
        groups = self.groups or [list(range(self.parts))]
        every = [(group[start], group[to]) for group in groups for start, to in pairs]
        got: Array = lax.ppermute(x, self.axes, every)
        return got


class Share(NamedTuple):
    """A user's sharding: the mesh axes that each dimension is divided over, in order."""

    rows: tuple[str, ...]
    cols: tuple[str, ...]


class Tile(NamedTuple):
    """One device's strips of a matrix, [rows.here, cols.here]."""

    x: Array
    rows: Dim
    cols: Dim


def enter(x: Array, share: Share, rows: Dim, cols: Dim) -> Tile:
    """From this device's share of the user's sharding to its strips: one all-to-all, or none."""
    of_rows, of_cols = (_digits(axes, rows, cols) for axes in share)
    used = of_rows + of_cols
    x = _padded(_padded(x, rows.cut, 0), cols.cut, 1)
    k, j = x.shape[0] // rows.block, x.shape[1] // cols.block
    x = x.reshape(k, *rows.sizes, rows.strip, j, *cols.sizes, cols.strip)
    names: list[_Name] = ["k", *rows.digits, "row", "j", *cols.digits, "col"]
    # Along an axis that the user does not divide over, each device has what it needs.
    for digit in (digit for digit in rows.digits + cols.digits if digit not in used):
        x = lax.dynamic_index_in_dim(x, digit.me(), names.index(digit), keepdims=False)
        names.remove(digit)
    x = _exchanged(x, names, used, share)
    names = [*used, "k", "row", "j", "col"]
    order: list[_Name] = [*of_rows, "k", "row", *of_cols, "j", "col"]
    x = jnp.transpose(x, [names.index(name) for name in order])
    return Tile(x.reshape(rows.here, cols.here), rows, cols)


def leave(tile: Tile, share: Share) -> Array:
    """From this device's strips to its share: one all-to-all, or none, and a gather along those
    axes alone that the user does not divide over."""
    x, rows, cols = tile
    of_rows, of_cols = (_digits(axes, rows, cols) for axes in share)
    used = of_rows + of_cols
    shares = [[digit.size for digit in digits] for digits in (of_rows, of_cols)]
    k, j = (
        dim.cut.blocks // math.prod(divided)
        for dim, divided in zip((rows, cols), shares, strict=True)
    )
    x = x.reshape(*shares[0], k, rows.strip, *shares[1], j, cols.strip)
    x = _exchanged(x, [*of_rows, "k", "row", *of_cols, "j", "col"], used, share)
    names = [*used, "k", "row", "j", "col"]
    for digit in (digit for digit in rows.digits + cols.digits if digit not in used):
        x = Dim(rows.cut, (digit,)).gather(x[None], 0)
        names.insert(0, digit)
    order = ["k", *rows.digits, "row", "j", *cols.digits, "col"]
    x = jnp.transpose(x, [names.index(name) for name in order])
    x = x.reshape(k * rows.block, j * cols.block)
    return _cropped(_cropped(x, rows.cut, 0), cols.cut, 1)


_Name = Digit | str


def _digits(axes: tuple[str, ...], rows: Dim, cols: Dim) -> list[Digit]:
    """What a user's axes consist of."""
    every = sorted(rows.digits + cols.digits, key=lambda digit: -digit.stride)
    return [digit for axis in axes for digit in every if digit.axis == axis]


def _exchanged(x: Array, names: list[_Name], used: list[Digit], share: Share) -> Array:
    """Brings the dimensions named by `used` to the front and exchanges them: the chunk for device d
    goes there, and chunk s is from device s."""
    rest = [name for name in names if name not in used]
    x = jnp.transpose(x, [names.index(name) for name in [*used, *rest]])
    if math.prod(digit.size for digit in used) == 1:
        return x
    shape = x.shape
    x = x.reshape(-1, *shape[len(used) :])
    x = lax.all_to_all(x, share.rows + share.cols, 0, 0, tiled=True)
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
