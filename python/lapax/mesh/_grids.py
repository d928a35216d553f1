"""Which devices of a mesh divide rows, and which columns."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from jax.sharding import AbstractMesh, Mesh, PartitionSpec

from lapax.mesh._layout import Cut, Digit, Dim, Share

AnyMesh = Mesh | AbstractMesh


@dataclass(frozen=True)
class Grid:
    """A mesh with the digits of devices that divide rows and those that divide columns."""

    mesh: AnyMesh
    row_digits: tuple[Digit, ...]
    col_digits: tuple[Digit, ...]

    def parts(self, axes: tuple[str, ...]) -> int:
        return math.prod(self.mesh.shape[axis] for axis in axes)

    @property
    def row_parts(self) -> int:
        return math.prod(digit.size for digit in self.row_digits)

    @property
    def col_parts(self) -> int:
        return math.prod(digit.size for digit in self.col_digits)

    @property
    def common(self) -> int:
        """What blocks are a multiple of, so that they divide over rows and over columns alike."""
        return math.lcm(self.row_parts, self.col_parts)

    def rows(self, cut: Cut) -> Dim:
        return Dim(cut, self.row_digits)

    def cols(self, cut: Cut) -> Dim:
        return Dim(cut, self.col_digits)

    def of_rows(self) -> Grid:
        """The same mesh, all of it dividing rows."""
        return Grid(self.mesh, _whole(self.mesh, tuple(self.mesh.axis_names)), ())

    def of_columns(self) -> Grid:
        """The same mesh, all of it dividing columns."""
        return Grid(self.mesh, (), _whole(self.mesh, tuple(self.mesh.axis_names)))


LONG = 2
"""Up to this ratio of its sides a grid is left as the mesh has it: with 4 by 2 of 8 devices n²/4 +
n²/2 words are 6 % more than with a square, which there is none of."""


def grid_of(mesh: AnyMesh, share: Share) -> Grid:
    """As the axes of the mesh have it; of a long one an axis is divided between rows and columns,
    as what is sent grows with n²/rows + n²/columns."""
    rows, cols = (_whole(mesh, axes) for axes in _row_and_col_axes(mesh, share))
    grid = Grid(mesh, rows, cols)
    if _ratio(grid) <= LONG:
        return grid
    if grid.row_parts > grid.col_parts:
        found = (Grid(mesh, more, (*cols, less)) for more, less in _divided(rows))
    else:
        found = (Grid(mesh, (*rows, less), more) for more, less in _divided(cols))
    # Of two alike that with fewer rows, as more of what is sent along columns is sums.
    return min((grid, *found), key=lambda grid: (_ratio(grid), grid.row_parts))


def _row_and_col_axes(mesh: AnyMesh, share: Share) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """One axis for columns and the others for rows, so that a sharding of the usual kind changes
    owners within rows or columns alone."""
    names = tuple(mesh.axis_names)
    if len(names) == 1:
        return () if share.cols else names, share.cols
    used = [axis for axis in names if axis in share.cols and axis not in share.rows]
    free = [axis for axis in names if axis not in share.rows]
    col = (used or free or list(names))[-1]
    return tuple(axis for axis in names if axis != col), (col,)


def _whole(mesh: AnyMesh, axes: tuple[str, ...]) -> tuple[Digit, ...]:
    return tuple(Digit(axis, mesh.shape[axis], mesh.shape[axis]) for axis in axes)


def _ratio(grid: Grid) -> float:
    sides = grid.row_parts, grid.col_parts
    return max(sides) / min(sides)


def _divided(digits: tuple[Digit, ...]) -> Iterator[tuple[tuple[Digit, ...], Digit]]:
    """These without the last part of one, and that part, in each way that there is."""
    for i, (axis, whole) in enumerate((digit.axis, digit.whole) for digit in digits):
        for size in (size for size in range(2, whole) if whole % size == 0):
            first, last = Digit(axis, whole, whole // size, size), Digit(axis, whole, size)
            yield (*digits[:i], first, *digits[i + 1 :]), last


def default_spec(shape: tuple[int, ...], mesh: AnyMesh) -> PartitionSpec:
    """Over both kinds of axes, where they divide.

    Under jit with automatic sharding nobody can say while tracing how an array is sharded.
    """
    entries = [
        axes if axes and size % math.prod(mesh.shape[axis] for axis in axes) == 0 else None
        for size, axes in zip(shape, _row_and_col_axes(mesh, Share((), ())), strict=False)
    ]
    return PartitionSpec(*entries)
