"""U of the polar decomposition A = U H on tiles, by dynamically weighted Halley iterations (QDWH).

X ← (b/c) X + (a - b/c)/√c Q1 Q2ᴴ with [√c X; I] = [Q1; Q2] R while c is large, and then
X ← (b/c) X + (a - b/c) X (I + c XᴴX)⁻¹ by Cholesky (Nakatsukasa, Bai and Gygi 2010; Nakatsukasa and
Higham 2013). The weights follow from a lower bound of the smallest singular value alone, which is
taken to be ε, so that the number of iterations is known: six in double precision, five in single.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np

from lapax.mesh import _cholesky, _qr, _triangular
from lapax.mesh._layout import Array, Cut, Dim, Tile
from lapax.mesh._panels import loop
from lapax.mesh._products import multiply_adjoint, multiply_by_adjoint

SAFE = 100.0
"""Up to this c the Cholesky form is backward stable (Nakatsukasa and Higham 2013, section 4.1)."""

Weights = list[tuple[float, float, float]]


def weights(epsilon: float) -> tuple[Weights, Weights]:
    """(a, b, c) of the iterations by QR and of those by Cholesky."""
    found: Weights = []
    least = epsilon
    while abs(1 - least) > 10 * epsilon and len(found) < 10:
        d = (4 * (1 - least**2) / least**4) ** (1 / 3)
        root = math.sqrt(1 + d)
        a = root + math.sqrt(8 - 4 * d + 8 * (2 - least**2) / (least**2 * root)) / 2
        b = (a - 1) ** 2 / 4
        c = a + b - 1
        found.append((a, b, c))
        least = min(1.0, least * (a + b * least**2) / (1 + c * least**2))
    return [w for w in found if w[2] > SAFE], [w for w in found if w[2] <= SAFE]


def unitary(a: Tile, *, turned: Dim) -> tuple[Tile]:
    """U [m, n], m ≥ n; `turned` divides rows as A's columns are cut. On what A takes to zero U is
    zero, too."""
    x, rows, cols = a
    norm = jnp.sqrt(cols.sum(rows.sum(jnp.sum(jnp.abs(x / _largest(a)) ** 2)))) * _largest(a)
    x = x / jnp.where(norm == 0, 1, norm).astype(x.dtype)
    by_qr, by_cholesky = weights(float(np.finfo(x.dtype).eps))
    for chosen, step in ((by_qr, _by_qr), (by_cholesky, _by_cholesky)):
        table = jnp.asarray(chosen, x.real.dtype)
        body = lambda i, x, step=step, table=table: step(a, x, turned, table[i])  # noqa: E731
        x = loop(0, len(chosen), body, x)
    return (a._replace(x=x),)


def _largest(a: Tile) -> Array:
    largest = a.cols.max(a.rows.max(jnp.max(jnp.abs(a.x))))
    return jnp.where(largest == 0, 1, largest)


def _by_qr(a: Tile, x: Array, turned: Dim, weight: Array) -> Array:
    """The rows of X and, below, those of the identity are one matrix without padding."""
    p, b, c = weight
    _, rows, cols = a
    identity = (turned.positions()[:, None] == cols.positions()).astype(x.dtype)
    blocks, block = rows.cut.blocks + turned.cut.blocks, rows.block
    tall = Dim(Cut(blocks * block, 1, block, blocks), rows.digits)
    whole = Dim(Cut(cols.cut.padded, 1, block, cols.cut.blocks), cols.digits)
    stack = jnp.concatenate([jnp.sqrt(c).astype(x.dtype) * x, identity])
    factored = _qr.factor(Tile(stack, tall, whole))
    q = _qr.q_of(factored, jnp.ones((cols.cut.padded,), x.dtype), whole).x
    q1, q2 = Tile(q[: rows.here], rows, cols), Tile(q[rows.here :], turned, cols)
    product = multiply_by_adjoint(q1, q2, cols).x
    new = (b / c).astype(x.dtype) * x + ((p - b / c) / jnp.sqrt(c)).astype(x.dtype) * product
    # Rounding puts something into padding.
    real = (rows.indices() < rows.cut.size)[:, None] & (cols.indices() < cols.cut.size)
    return jnp.where(real, new, 0)


def _by_cholesky(a: Tile, x: Array, turned: Dim, weight: Array) -> Array:
    p, b, c = weight
    it = a._replace(x=x)
    z = multiply_adjoint(it, it, turned)
    identity = (turned.positions()[:, None] == a.cols.positions()).astype(x.dtype)
    z = z._replace(x=identity + c.astype(x.dtype) * z.x)
    (w,) = _cholesky.cholesky(z)
    y = _triangular.solve_from_right(it, w, adjoint_of_w=True)
    y = _triangular.solve_from_right(y, w, adjoint_of_w=False)
    return (b / c).astype(x.dtype) * x + (p - b / c).astype(x.dtype) * y.x
