"""C = A B on tiles: the sum over k of block column k of A times block row k of B (SUMMA).

Van de Geijn and Watts, LAPACK working note 96."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from lapax._settings import own_settings
from lapax.mesh._grids import Grid
from lapax.mesh._layout import Array, Dim, Share, Tile
from lapax.mesh._panels import (
    adjoint,
    column_panel,
    loop,
    row_block,
    set_strip,
)
from lapax.mesh._placing import (
    Place,
    check_rows,
    cut_for,
    inexact,
    operands,
    run,
    swapped,
    whole_cut,
)


def multiply(a: Tile, b: Tile) -> Tile:
    """A B, where A's columns are cut as B's rows."""

    def step(k: Array, c: Array) -> Array:
        return c + column_panel(a.x, a.cols, k) @ row_block(b.x, b.rows, k)

    zero = jnp.zeros((a.rows.here, b.cols.here), a.x.dtype)
    return Tile(loop(0, a.cols.cut.blocks, step, zero), a.rows, b.cols)


def multiply_by_adjoint(a: Tile, b: Tile, cols: Dim) -> Tile:
    """A Bᴴ, where both have the same columns; `cols` is cut as B's rows."""

    def step(k: Array, c: Array) -> Array:
        part = a.x @ adjoint(row_block(b.x, b.rows, k))
        return set_strip(c, a.cols.scatter(part, 1), cols, k, 1)

    zero = jnp.zeros((a.rows.here, cols.here), a.x.dtype)
    return Tile(loop(0, b.rows.cut.blocks, step, zero), a.rows, cols)


def multiply_adjoint(a: Tile, b: Tile, rows: Dim) -> Tile:
    """Aᴴ B, where both have the same rows; `rows` is cut as A's columns."""

    def step(k: Array, c: Array) -> Array:
        part = adjoint(column_panel(a.x, a.cols, k)) @ b.x
        return set_strip(c, a.rows.scatter(part, 0), rows, k, 0)

    zero = jnp.zeros((rows.here, b.cols.here), a.x.dtype)
    return Tile(loop(0, a.cols.cut.blocks, step, zero), rows, b.cols)


def kept(a: Tile, which: str) -> Tile:
    """All of a matrix, or a triangle of it."""
    row, col = a.rows.indices()[:, None], a.cols.indices()
    keep = {
        "all": jnp.array(True),
        "lower": row >= col,
        "upper": row <= col,
        "strictly lower": row > col,
        "strictly upper": row < col,
    }[which]
    return a._replace(x=jnp.where(keep, a.x, 0))


def product(
    grid: Grid,
    x: tuple[Array, Share],
    y: tuple[Array, Share],
    to: Share,
    *,
    trans_x: str = "N",
    trans_y: str = "N",
    scale: float = 1.0,
    keep: str = "all",
) -> Array:
    """scale · op(X) op(Y), or a triangle of it, divided as `to`.

    The derivatives of others are made of these; it has none itself.
    """
    (a, of_a), (b, of_b) = x, y
    (m, k), n = a.shape, b.shape[1]
    if trans_x != "N":
        of_a, (m, k) = swapped(of_a), (k, m)
    if trans_y != "N":
        of_b, n = swapped(of_b), b.shape[0]
    rows = whole_cut(grid, grid.row_parts, m, of_a.rows, to.rows)
    inner = cut_for(grid, k, of_a.cols, of_b.rows)
    cols = whole_cut(grid, grid.col_parts, n, of_b.cols, to.cols)
    ins = (
        Place(grid.rows(rows), grid.cols(inner), of_a, trans_x),
        Place(grid.rows(inner), grid.cols(cols), of_b, trans_y),
    )
    out = Place(grid.rows(rows), grid.cols(cols), to)
    (result,) = run(_scaled, grid.mesh, ins, (out,), a, b, scale=scale, keep=keep)
    return result


def _scaled(a: Tile, b: Tile, *, scale: float, keep: str) -> tuple[Tile]:
    c = multiply(a, b)
    return (kept(c._replace(x=c.x * jnp.asarray(scale, c.x.dtype)), keep),)


def hermitian(grid: Grid, a: Array, share: Share) -> Array:
    """(A + Aᴴ) / 2."""
    cut = cut_for(grid, len(a), share.rows, share.cols)
    rows, cols = grid.rows(cut), grid.cols(cut)
    ins = (Place(rows, cols, share), Place(rows, cols, swapped(share), "C"))
    (mean,) = run(_mean, grid.mesh, ins, ins[:1], a, a)
    return mean


def _mean(a: Tile, b: Tile) -> tuple[Tile]:
    return (a._replace(x=(a.x + b.x) / 2),)


@own_settings()
def matmul(a: Any, b: Any, *, sharding: Any = None) -> Array:
    """C = A B of sharded matrices, without a device that holds more than its share of any of them.

    XLA's own partitioning of a product of two matrices that are both divided over both axes gathers
    whole block rows and columns, √P shares of each. `a` is [m, k], `b` [k, n] or [k], in f32, f64,
    c64 or c128; C is divided as A's rows and B's columns are. `sharding` is A's, where it is not
    known. Raises ValueError for other shapes and dtypes and where no mesh is known. SUMMA (van de
    Geijn and Watts, LAPACK working note 96). Ā = C̄ Bᵀ, B̄ = Aᵀ C̄.
    """
    a, b = inexact("matmul", a=a, b=b)
    check_rows("matmul", "b", b, a.shape[1])
    if b.ndim == 1:
        return _matmul(sharding, a, b[:, None])[:, 0]
    return _matmul(sharding, a, b)


@jax.tree_util.register_static
@dataclass(frozen=True)
class _Product:
    grid: Grid
    a: Share
    b: Share
    to: Share


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _matmul(sharding: Any, a: Array, b: Array) -> Array:
    return _matmul_forward(sharding, a, b)[0]


@own_settings()
def _matmul_forward(sharding: Any, a: Array, b: Array) -> tuple[Array, Any]:
    grid, (of_a, of_b) = operands("matmul", sharding, a=a, b=b)
    free = not set(of_a.rows) & set(of_b.cols)
    to = Share(of_a.rows, of_b.cols if free else ())
    return product(grid, (a, of_a), (b, of_b), to), (a, b, _Product(grid, of_a, of_b, to))


@own_settings()
def _matmul_backward(_: Any, residual: Any, ct: Array) -> tuple[Array, Array]:
    a, b, it = residual
    grid, of_a, of_b, to = it.grid, it.a, it.b, it.to
    return (
        product(grid, (ct, to), (b, of_b), of_a, trans_y="T"),
        product(grid, (a, of_a), (ct, to), of_b, trans_x="T"),
    )


_matmul.defvjp(_matmul_forward, _matmul_backward)
