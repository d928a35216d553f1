"""Whose sharding, which tiles, one program: what every function of `lapax.mesh` does first."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec

from lapax._settings import own_settings
from lapax.mesh import _layout
from lapax.mesh._grids import AnyMesh, Grid, default_spec, grid_of
from lapax.mesh._layout import Array, Cut, Dim, Share, Tile


def inexact(function: str, **arrays: Any) -> list[Array]:
    """The arrays in their common inexact dtype; integers count as the default float.

    Raises ValueError for 16-bit dtypes, for empty arrays, for a first one that is no matrix and
    others that are neither matrix nor vector.
    """
    given = [jnp.asarray(a) for a in arrays.values()]
    numbers = [a for a in given if jnp.issubdtype(a.dtype, np.inexact)]
    dtype = jnp.result_type(*numbers) if numbers else jnp.result_type(float)
    if dtype.itemsize < 4:
        raise ValueError(
            f"{function}: expected float32, float64, complex64 or complex128, got {dtype}"
        )
    for i, (name, a) in enumerate(zip(arrays, given, strict=True)):
        if a.ndim != 2 and (i == 0 or a.ndim != 1):
            shapes = "[m, n]" if i == 0 else "[n, k] or [n]"
            raise ValueError(f"{function}: {name}: expected shape {shapes}, got {list(a.shape)}")
        if 0 in a.shape:
            raise ValueError(
                f"{function}: {name}: expected no empty dimension, got {list(a.shape)}"
            )
    return [a.astype(dtype) for a in given]


def operands(function: str, sharding: Any, **arrays: Array) -> tuple[Grid, list[Share]]:
    """The grid that the first array's sharding suggests, and the sharding of each.

    `sharding` is the first one's, where it is known. Raises ValueError where no mesh is known, and
    where a sharding does not divide.
    """
    first, *_ = arrays
    meshes = [_mesh(a, sharding if name == first else None) for name, a in arrays.items()]
    mesh = next((mesh for mesh in meshes if mesh is not None), None)
    if mesh is None:
        raise ValueError(
            f"{function}: {first}: expected an array sharded over a mesh of devices, got one on "
            f"{getattr(arrays[first], 'sharding', 'no mesh')}: use jax.device_put with a "
            "NamedSharding, pass sharding=, or use jax.set_mesh"
        )
    shares = [
        _share(function, name, a, mesh, sharding if name == first else None)
        for name, a in arrays.items()
    ]
    return grid_of(mesh, shares[0]), shares


def _mesh(a: Array, sharding: Any) -> AnyMesh | None:
    if isinstance(sharding, NamedSharding):
        return sharding.mesh
    if not isinstance(a, jax.core.Tracer) and isinstance(a.sharding, NamedSharding):
        return a.sharding.mesh
    for mesh in (jax.typeof(a).sharding.mesh, jax.sharding.get_abstract_mesh()):
        if not mesh.empty:
            return mesh
    return None


def _share(function: str, name: str, a: Array, mesh: AnyMesh, sharding: Any) -> Share:
    spec = tuple(_spec(a, mesh, sharding))
    share = Share(*(_axes(entry) for entry in spec + (None,) * (2 - len(spec))))
    for size, axes in zip(a.shape, share, strict=False):
        parts = math.prod(mesh.shape[axis] for axis in axes)
        if size % parts:
            raise ValueError(
                f"{function}: {name}: expected a sharding that divides {list(a.shape)}, got "
                f"{parts} parts of {size}"
            )
    return share


def _spec(a: Array, mesh: AnyMesh, sharding: Any) -> PartitionSpec:
    if isinstance(sharding, NamedSharding):
        return sharding.spec
    if isinstance(sharding, PartitionSpec):
        return sharding
    if not isinstance(a, jax.core.Tracer):
        return a.sharding.spec if isinstance(a.sharding, NamedSharding) else PartitionSpec()
    spec: PartitionSpec = jax.typeof(a).sharding.spec
    if any(entry is not None for entry in spec):
        return spec
    explicit = jax.sharding.AxisType.Explicit
    if not mesh.empty and all(kind == explicit for kind in mesh.axis_types):
        return PartitionSpec()
    return default_spec(a.shape, mesh)


def _axes(entry: Any) -> tuple[str, ...]:
    if entry is None or entry is PartitionSpec.UNCONSTRAINED:
        return ()
    return entry if isinstance(entry, tuple) else (entry,)


@dataclass(frozen=True)
class Place:
    """An array of a program: tiles of `rows` by `cols`, outside in the user's sharding, or, without
    a `share`, one array of all devices' tiles, [devices · rows.here, cols.here].

    With `trans` "T" or "C" the tiles and the share are those of the array's transpose or adjoint,
    which no device needs another one for.
    """

    rows: Dim
    cols: Dim
    share: Share | None = None
    trans: str = "N"

    @property
    def spec(self) -> PartitionSpec:
        if self.share is None:
            return PartitionSpec(tuple(dict.fromkeys(self.rows.axes + self.cols.axes)))
        rows, cols = self.share
        if self.trans != "N":
            rows, cols = cols, rows
        return PartitionSpec(rows or None, cols or None)

    def tiles(self) -> Place:
        return Place(self.rows, self.cols)


REPLICATED = None
"""The place of a small array that each device holds."""


def run(
    function: Callable[..., Any],
    mesh: AnyMesh,
    ins: tuple[Place | None, ...],
    outs: tuple[Place | None, ...],
    *arrays: Array,
    **options: Any,
) -> tuple[Array, ...]:
    """`function(*tiles, **options)`, which returns tiles, on each device of the mesh."""
    with own_settings():
        items = tuple(sorted(options.items()))
        results: tuple[Array, ...] = _once(function, mesh, ins, outs, items, *arrays)
    return results


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1, 2, 3, 4))
def _once(*arguments: Any) -> tuple[Array, ...]:
    """`_run`, whose derivative nobody takes: public functions have rules made of others, and those
    of their rules would go through loops over steps."""
    results: tuple[Array, ...] = _run(*arguments)
    return results


@_once.defjvp
@own_settings()
def _twice(*_: Any) -> Any:
    raise NotImplementedError("lapax.mesh: expected a first derivative in reverse, got another one")


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3, 4))
def _run(
    function: Callable[..., Any],
    mesh: AnyMesh,
    ins: tuple[Place | None, ...],
    outs: tuple[Place | None, ...],
    options: tuple[tuple[str, Any], ...],
    *arrays: Array,
) -> tuple[Array, ...]:
    def local(*shares: Array) -> tuple[Array, ...]:
        tiles = [_entered(x, place) for x, place in zip(shares, ins, strict=True)]
        results = function(*tiles, **dict(options))
        return tuple(_left(x, place) for x, place in zip(results, outs, strict=True))

    return jax.shard_map(
        local,
        mesh=mesh,
        in_specs=tuple(place.spec if place else PartitionSpec() for place in ins),
        out_specs=tuple(place.spec if place else PartitionSpec() for place in outs),
        check_vma=False,
    )(*arrays)


def _entered(x: Array, place: Place | None) -> Array | Tile:
    if place is None:
        return x
    if place.trans != "N":
        x = x.T if place.trans == "T" else jnp.conj(x.T)
    if place.share is None:
        return Tile(x, place.rows, place.cols)
    return _layout.enter(x, place.share, place.rows, place.cols)


def _left(x: Array | Tile, place: Place | None) -> Array:
    if not isinstance(x, Tile) or place is None or place.share is None:
        return x.x if isinstance(x, Tile) else x
    x = _layout.leave(x, place.share)
    return x if place.trans == "N" else x.T if place.trans == "T" else jnp.conj(x.T)


def cut_for(grid: Grid, size: int, *divided: tuple[str, ...], block: int | None = None) -> Cut:
    """A dimension that users divide over these axes, in blocks for rows and columns of the grid."""
    pieces = math.lcm(*(grid.parts(axes) for axes in divided))
    return _layout.cut(size, pieces, grid.common, block)


def whole_cut(grid: Grid, parts: int, size: int, *divided: tuple[str, ...]) -> Cut:
    """A dimension that no algorithm steps through, such as right-hand sides, in as few blocks as
    so many parts allow."""
    pieces = math.lcm(*(grid.parts(given) for given in divided))
    piece = -(-size // (pieces * parts)) * parts
    return _layout.cut_alike(size, pieces, piece)


def swapped(share: Share) -> Share:
    """That of the transpose."""
    return Share(share.cols, share.rows)


def as_columns(x: Array) -> Array:
    """A vector as a matrix of one column."""
    return x[:, None] if x.ndim == 1 else x


def check_square(function: str, name: str, a: Array) -> None:
    if a.shape[0] != a.shape[1]:
        raise ValueError(f"{function}: {name}: expected shape [n, n], got {list(a.shape)}")


def check_rows(function: str, name: str, b: Array, rows: int) -> None:
    if b.shape[0] != rows:
        raise ValueError(f"{function}: {name}: expected {rows} rows, got {b.shape[0]}")


def check_choice(function: str, name: str, value: Any, choices: tuple[Any, ...]) -> None:
    if value not in choices:
        expected = ", ".join(map(repr, choices))
        raise ValueError(f"{function}: {name}: expected one of {expected}, got {value!r}")


@jax.tree_util.register_static
@dataclass(frozen=True)
class System:
    """A X = B: where A and B lie and how they are cut."""

    grid: Grid
    a: Share
    b: Share
    cut: Cut
    columns: Cut

    @property
    def place_a(self) -> Place:
        return Place(self.grid.rows(self.cut), self.grid.cols(self.cut), self.a)

    @property
    def place_b(self) -> Place:
        return Place(self.grid.rows(self.cut), self.grid.cols(self.columns), self.b)

    def transposed_a(self, trans: str) -> Place:
        """Of an array that lies as A, whose transpose or adjoint is wanted."""
        rows, cols = self.grid.rows(self.cut), self.grid.cols(self.cut)
        return Place(rows, cols, swapped(self.a), trans)


def system(function: str, options: tuple[Any, int | None], a: Array, b: Array) -> System:
    """With A's sharding, where it is not known, and the largest block.

    Raises ValueError unless A is square and has as many rows as B.
    """
    sharding, block = options
    check_square(function, "a", a)
    check_rows(function, "b", b, a.shape[0])
    grid, (of_a, of_b) = operands(function, sharding, a=a, b=b)
    cut = cut_for(grid, a.shape[0], of_a.rows, of_a.cols, of_b.rows, block=block)
    width = b.shape[1] if b.ndim == 2 else 1
    return System(grid, of_a, of_b, cut, whole_cut(grid, grid.col_parts, width, of_b.cols))


def on_shares(
    function: Callable[..., Any], mesh: AnyMesh, share: Share, outs: int, *arrays: Array
) -> tuple[Array, ...]:
    """`function(row, col, *shares)` of arrays that are divided alike, and of the indices of their
    rows [m, 1] and columns [n]; its results are divided so too."""
    results: tuple[Array, ...] = _on_shares(function, mesh, share, outs, *arrays)
    return results


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _on_shares(
    function: Callable[..., Any], mesh: AnyMesh, share: Share, outs: int, *arrays: Array
) -> tuple[Array, ...]:
    def local(*shares: Array) -> tuple[Array, ...]:
        row, col = (
            (lax.axis_index(axes) if axes else 0) * size + jnp.arange(size)
            for axes, size in zip(share, shares[0].shape, strict=True)
        )
        results: tuple[Array, ...] = function(row[:, None], col, *shares)
        return results

    spec = PartitionSpec(share.rows or None, share.cols or None)
    specs = tuple(spec for _ in arrays), tuple(spec for _ in range(outs))
    return jax.shard_map(local, mesh=mesh, in_specs=specs[0], out_specs=specs[1], check_vma=False)(
        *arrays
    )
