"""The CS decomposition of unitary matrices in 2 × 2 blocks.

X = U·CS·Vᴴ with U = diag(U₁, U₂) and V = diag(V₁, V₂), by Van Loan's way ("Computing the CS and
the generalized singular value decompositions", Numer. Math. 46 (1985)): the cosines from the
singular values of X₁₁; the sines from the QR decomposition of X₂₁·V₁, whose columns are orthogonal;
and where sines are small, and those columns not orthogonal to the precision of their own length,
from the singular values of that part of R. All shapes depend on p and q alone: what Van Loan splits
by value is masked.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from lapax._settings import own_settings
from lapax.linalg._arguments import (
    Array,
    adjoint,
    check_matrix,
    check_square,
    operation,
    real_dtype,
    same_batch,
)
from lapax.linalg._qr import with_positive_diagonal

__all__ = ["cossin"]

# Where cosine and sine are equal: above it the sine is the smaller one.
EQUAL = 0.5**0.5


@operation("X")
def cossin(
    X: Array | tuple[Array, Array, Array, Array],
    p: int | None = None,
    q: int | None = None,
    separate: bool = False,
    swap_sign: bool = False,
    compute_u: bool = True,
    compute_vh: bool = True,
) -> Any:
    """The CS decomposition X = U·CS·Vᴴ of unitary matrices, as scipy.linalg.cossin.

    With r = min(p, m−p, q, m−q), C = cos θ and S = sin θ, all of r elements, and identities of the
    sizes that are left, CS is

        [I  0  0 | 0  0  0]
        [0  C  0 | 0 −S  0]
        [0  0  0 | 0  0 −I]
        [0  0  0 | I  0  0]
        [0  S  0 | 0  C  0]
        [0  0  I | 0  0  0]

    Args:
        X: [..., m, m], unitary, or a tuple of its blocks x11 [..., p, q], x12, x21, x22.
        p: rows of x11, 0 < p < m, if X is one array. Default 1 where q is given.
        q: columns of x11, 0 < q < m, likewise.
        separate: returns (U₁, U₂), θ, (V₁ᴴ, V₂ᴴ).
        swap_sign: the minus signs stand in the lower left block.
        compute_u: otherwise U is empty.
        compute_vh: otherwise Vᴴ is empty.

    Returns:
        U [..., m, m], CS [..., m, m], real, Vᴴ [..., m, m]; θ [..., r] rises from 0 to π/2.

    θ has a derivative, dθ = C·dS − S·dC with dC and dS of U₁ᴴ·dX₁₁·V₁ and U₂ᴴ·dX₂₁·V₁, with
    `compute_u=False, compute_vh=False`; with vectors NotImplementedError is raised. Raises
    ValueError where sizes do not match.

    Cost: O(m³).

    >>> cossin(eye(2), 1, 1, separate=True)[1]  # [0]
    """
    blocks = _blocks(X, p, q)
    sizes = _sizes(blocks)
    (u1, u2), theta, (v1h, v2h) = _decomposed(*blocks, sizes, swap_sign, compute_u or compute_vh)
    empty = jnp.zeros((*theta.shape[:-1], 0, 0), u1.dtype)
    u = (u1, u2) if compute_u else (empty, empty)
    vh = (v1h, v2h) if compute_vh else (empty, empty)
    if separate:
        return u, theta, vh
    c11, c12, c21, c22 = _middle(theta, sizes, swap_sign)
    return _diagonal(*u), jnp.block([[c11, c12], [c21, c22]]), _diagonal(*vh)


class Sizes(NamedTuple):
    """p, q and m; r, and the sizes of the identities: in the blocks 11, 12, 21 and 22."""

    p: int
    q: int
    m: int
    r: int
    n11: int
    n12: int
    n21: int
    n22: int


def _blocks(X: Any, p: int | None, q: int | None) -> list[Array]:
    if p or q:
        p, q = 1 if p is None else p, 1 if q is None else q
        if isinstance(X, tuple):
            raise ValueError("cossin: X: expected one array with p and q, got a tuple")
        check_square("cossin", X=X)
        m = X.shape[-1]
        for name, size in (("p", p), ("q", q)):
            if not 0 < size < m:
                raise ValueError(f"cossin: {name}: expected 0 < {name} < {m}, got {size}")
        return [X[..., :p, :q], X[..., :p, q:], X[..., p:, :q], X[..., p:, q:]]
    count = len(X) if isinstance(X, tuple) or X.ndim else "a number"
    if count != 4:
        raise ValueError(f"cossin: X: expected four blocks without p and q, got {count}")
    named = dict(zip(("x11", "x12", "x21", "x22"), map(jnp.atleast_2d, X), strict=True))
    check_matrix("cossin", **named)
    return same_batch("cossin", **{name: (block, 2) for name, block in named.items()})


def _sizes(blocks: list[Array]) -> Sizes:
    x11, x12, x21, x22 = blocks
    (p, q), (rows, columns) = x11.shape[-2:], x22.shape[-2:]
    for name, block, shape in (("x12", x12, (p, columns)), ("x21", x21, (rows, q))):
        if block.shape[-2:] != shape:
            raise ValueError(
                f"cossin: {name}: expected shape [..., {shape[0]}, {shape[1]}], "
                f"got {list(block.shape)}"
            )
    m = p + rows
    if m != q + columns or 0 in (p, q, rows, columns):
        raise ValueError(
            "cossin: X: expected four blocks of a square matrix, none empty, "
            f"got {m} rows and {q + columns} columns"
        )
    r = min(p, rows, q, columns)
    return Sizes(
        p, q, m, r, min(p, q) - r, min(p, columns) - r, min(rows, q) - r, min(rows, columns) - r
    )


@partial(jax.custom_jvp, nondiff_argnums=(4, 5, 6))
def _decomposed(
    x11: Array, x12: Array, x21: Array, x22: Array, sizes: Sizes, swap_sign: bool, vectors: bool
) -> tuple[tuple[Array, Array], Array, tuple[Array, Array]]:
    """U₁ and U₂, θ, V₁ᴴ and V₂ᴴ, whether or not the vectors are asked for."""
    del vectors
    count = sizes.n11 + sizes.r
    u1, c, v1h = jnp.linalg.svd(x11, full_matrices=True)

    # The largest sine is first for a while: columns of V₁ and U₂ are in reverse order.
    v1 = adjoint(v1h)[..., ::-1]
    u2, triangle = _positive_qr((-x21 if swap_sign else x21) @ v1)
    small = c[..., ::-1] > EQUAL
    turn_u, s, turn_v = _small_sines(
        triangle[..., sizes.n21 : sizes.n21 + sizes.r, sizes.n21 :], small
    )
    u2 = _turned(u2, turn_u, sizes.n21)[..., ::-1]
    v1 = _turned(v1, turn_v, sizes.n21)[..., ::-1]

    # X₁₁·V₁ = U₁·C·Z, whose columns are orthogonal enough: where V₁ was turned cosines are large.
    turn, triangle = _positive_qr(c[..., None].astype(x11.dtype) * turn_v[..., ::-1, ::-1])
    u1 = _turned(u1, turn, 0)
    c = jnp.where(small[..., ::-1], jnp.real(_diagonal_of(triangle)), c)
    theta = jnp.arctan2(s[..., ::-1], c[..., sizes.n11 : count])

    _, c12, _, c22 = (
        jnp.swapaxes(x, -1, -2).astype(x11.dtype) for x in _middle(theta, sizes, swap_sign)
    )
    v2h = c12 @ (adjoint(u1) @ x12) + c22 @ (adjoint(u2) @ x22)
    return (u1, u2), theta, (adjoint(v1), v2h)


@_decomposed.defjvp
@own_settings()
def _decomposed_jvp(
    sizes: Sizes, swap_sign: bool, vectors: bool, primals: Any, tangents: Any
) -> Any:
    if vectors:
        raise NotImplementedError(
            "cossin: U and V have no derivative: pass compute_u=False and compute_vh=False for "
            "that of the angles"
        )
    results = _decomposed(*primals, sizes, swap_sign, vectors)
    (u1, u2), theta, (v1h, _) = results
    dx11, _, dx21, _ = tangents

    def slope(u: Array, at: int, dx: Array) -> Array:
        """The diagonal of Uᴴ·dX·V₁ where there is an angle."""
        u, v = u[..., at : at + sizes.r], adjoint(v1h)[..., sizes.n11 : sizes.n11 + sizes.r]
        return jnp.real(jnp.sum(jnp.conj(u) * (dx @ v), axis=-2))

    ds = slope(u2, sizes.n22, -dx21 if swap_sign else dx21)
    dtheta = jnp.cos(theta) * ds - jnp.sin(theta) * slope(u1, sizes.n11, dx11)
    none_u, _, none_v = jax.tree.map(jnp.zeros_like, results)
    return results, (none_u, dtheta, none_v)


def _positive_qr(a: Array) -> tuple[Array, Array]:
    """The full QR decomposition with a diagonal of R that is not negative."""
    return with_positive_diagonal(*jax.lax.linalg.qr(a, full_matrices=True))


def _small_sines(triangle: Array, small: Array) -> tuple[Array, Array, Array]:
    """The singular value decomposition of the last part of R, where the sines are small.

    Before it R is diagonal, and its vectors are those of the identity: for the decomposition its
    diagonal is replaced by values above all sines, that differ by one. R is [r, r + n₁₁], and the
    last columns belong to sines of zero.
    """
    r, columns = triangle.shape[-2:]
    rows = small[..., :r]
    above = jnp.where(rows, 0, r + 1 - jnp.arange(r)).astype(triangle.dtype)
    part = jnp.where(rows[..., :, None] & small[..., None, :], triangle, 0)
    u, s, vh = jnp.linalg.svd(part + above[..., None] * jnp.eye(r, columns, dtype=triangle.dtype))
    s = jnp.where(rows, s, jnp.real(_diagonal_of(triangle)))
    return _within(u, rows), s, _within(adjoint(vh), small)


def _within(turn: Array, small: Array) -> Array:
    """A unitary matrix in the part where sines are small, the identity outside of it."""
    both = small[..., :, None] & small[..., None, :]
    return jnp.where(both, turn, jnp.eye(small.shape[-1], dtype=turn.dtype))


def _turned(vectors: Array, turn: Array, first: int) -> Array:
    """Columns from `first` on multiplied by a square matrix of their number."""
    columns = slice(first, first + turn.shape[-1])
    return vectors.at[..., columns].set(vectors[..., columns] @ turn)


def _middle(theta: Array, sizes: Sizes, swap_sign: bool) -> tuple[Array, Array, Array, Array]:
    """The four blocks of CS."""
    p, q, m, r, n11, n12, n21, n22 = sizes
    dtype = real_dtype(theta.dtype)
    batch = theta.shape[:-1]
    c, s = (x[..., None] * jnp.eye(r, dtype=dtype) for x in (jnp.cos(theta), jnp.sin(theta)))

    def block(rows: int, columns: int, at: tuple[int, int], middle: Array, ones: Any) -> Array:
        """`middle` at a place, and ones on the diagonal from another one on."""
        row, column, count, sign = ones
        empty = jnp.zeros((*batch, rows, columns), dtype)
        empty = empty.at[..., at[0] : at[0] + r, at[1] : at[1] + r].set(middle)
        i = jnp.arange(count)
        return empty.at[..., row + i, column + i].set(sign)

    upper, lower = (1, -1) if swap_sign else (-1, 1)
    return (
        block(p, q, (n11, n11), c, (0, 0, n11, 1)),
        block(p, m - q, (n11, n22), upper * s, (n11 + r, n22 + r, n12, upper)),
        block(m - p, q, (n22, n11), lower * s, (n22 + r, n11 + r, n21, lower)),
        block(m - p, m - q, (n22, n22), c, (0, 0, n22, 1)),
    )


def _diagonal(a: Array, b: Array) -> Array:
    """The matrix with two blocks on its diagonal."""
    upper = jnp.zeros((*a.shape[:-1], b.shape[-1]), a.dtype)
    lower = jnp.zeros((*b.shape[:-1], a.shape[-1]), a.dtype)
    return jnp.concatenate(
        [jnp.concatenate([a, upper], axis=-1), jnp.concatenate([lower, b], axis=-1)], axis=-2
    )


def _diagonal_of(a: Array) -> Array:
    diagonal: Array = jnp.diagonal(a, axis1=-2, axis2=-1)
    return diagonal
