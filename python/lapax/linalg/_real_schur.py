"""Order in real Schur forms, whose blocks have one row, or two for a pair of complex eigenvalues.

Neighbours T₁₁ (p×p) and T₂₂ (q×q) are exchanged directly (xLAEXC; Bai & Demmel 1993, On swapping
diagonal blocks in real Schur form): with T₁₁·X − X·T₂₂ = T₁₂, the columns of [−X; I] span the
invariant subspace of the eigenvalues of T₂₂, and the Q of their QR factorization brings these to
the front. Blocks are not brought to xLANV2's form afterwards: their diagonals may differ.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from lapax.linalg._arguments import Array

_WINDOW = 4
"""Rows of the largest two neighbours."""


def real_eigenvalues(t: Array) -> tuple[Array, Array]:
    """Real and imaginary parts of the eigenvalues of T [..., n, n], in their order."""
    heads = _heads(t)
    tails = jnp.roll(heads, 1, -1)
    own = jnp.diagonal(t, axis1=-2, axis2=-1)
    after = jnp.roll(own, -1, -1)
    product = _padded(jnp.diagonal(t, 1, -2, -1)) * _padded(jnp.diagonal(t, -1, -2, -1))
    imaginary = jnp.sqrt(jnp.maximum(-(((own - after) / 2) ** 2) - product, 0))
    mean = (own + after) / 2
    real = jnp.where(heads, mean, jnp.where(tails, jnp.roll(mean, 1, -1), own))
    return real, jnp.where(heads, imaginary, jnp.where(tails, -jnp.roll(imaginary, 1, -1), 0))


def pairs_together(t: Array, chosen: Array) -> Array:
    """Both of a pair where one is chosen."""
    heads = _heads(t)
    tails = jnp.roll(heads, 1, -1)
    before, after = jnp.roll(chosen, 1, -1), jnp.roll(chosen, -1, -1)
    return chosen | (heads & after) | (tails & before)


@functools.partial(jnp.vectorize, signature="(n,n),(n,n),(n)->(n,n),(n,n)")
def reordered(t: Array, z: Array, chosen: Array) -> tuple[Array, Array]:
    """The same factorization with the blocks first whose rows are chosen, in O(n) an exchange."""
    n = t.shape[-1]
    margin = _WINDOW - 2
    t = jnp.pad(t, ((0, margin), (0, margin)))
    z = jnp.pad(z, ((0, 0), (0, margin)))
    chosen = jnp.pad(chosen, (0, margin))
    index = jnp.arange(n + margin)

    def wrong(t: Array, chosen: Array) -> Array:
        """Of each row whether it begins a block that is not chosen before one that is."""
        heads = _heads(t)
        next_ = jnp.where(heads, jnp.roll(chosen, -2), jnp.roll(chosen, -1))
        return next_ & ~chosen & ~jnp.roll(heads, 1) & (index < n - 1)

    def exchange(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        t, z, chosen = state
        k = jnp.argmax(wrong(t, chosen))
        heads = _heads(t)
        p = 1 + heads[k].astype(k.dtype)
        q = 1 + heads[k + p].astype(k.dtype)
        turn = _exchange(jax.lax.dynamic_slice(t, (k, k), (_WINDOW, _WINDOW)), p, q)
        rows = jax.lax.dynamic_slice_in_dim(t, k, _WINDOW, 0)
        t = jax.lax.dynamic_update_slice_in_dim(t, turn.T @ rows, k, 0)
        t, z = (
            jax.lax.dynamic_update_slice_in_dim(
                x, jax.lax.dynamic_slice_in_dim(x, k, _WINDOW, 1) @ turn, k, 1
            )
            for x in (t, z)
        )
        below = (index >= k + q) & (index < k + p + q)
        t = jnp.where(below[:, None] & (index >= k) & (index < k + q), 0, t)
        moved = (index >= k) & (index < k + q)
        return t, z, jnp.where(below, False, chosen | moved)

    def unsorted(state: tuple[Array, Array, Array]) -> Array:
        return jnp.any(wrong(state[0], state[2]))

    t, z, _ = jax.lax.while_loop(unsorted, exchange, (t, z, chosen))
    return t[:n, :n], z[:, :n]


def _exchange(window: Array, p: Array, q: Array) -> Array:
    """The orthogonal 4×4 matrix that brings the q rows after the first p before them."""
    i, j = jnp.arange(_WINDOW)[:, None], jnp.arange(_WINDOW)
    x = _sylvester(window, p, q)
    identity = jnp.eye(_WINDOW, dtype=window.dtype)
    subspace = jnp.where(i < p, -jnp.pad(x, ((0, 2), (0, 2))), (i == p + j).astype(x.dtype))
    columns = jnp.where(j < q, subspace, jnp.where(j < p + q, i == j - q, identity))
    turn, _ = jnp.linalg.qr(columns)
    return jnp.where((i >= p + q) | (j >= p + q), identity, turn)


def _sylvester(window: Array, p: Array, q: Array) -> Array:
    """X of T₁₁·X − X·T₂₂ = T₁₂ as the first p rows and q columns of a 2×2 matrix, else zero."""
    row, column = jnp.arange(2)[:, None], jnp.arange(2)
    t11 = jnp.where((row < p) & (column < p), window[:2, :2], 0)
    after = jax.lax.dynamic_slice(window, (p, p), (2, 2))
    t22 = jnp.where((row < q) & (column < q), after, 0)
    inside = (row < p) & (column < q)
    t12 = jnp.where(inside, jax.lax.dynamic_slice(window, (0, p), (2, 2)), 0)
    eye = jnp.eye(2, dtype=window.dtype)
    system = jnp.kron(t11, eye) - jnp.kron(eye, t22.T)
    used = inside.ravel()
    system = jnp.where(used[:, None] & used, system, jnp.eye(4, dtype=window.dtype))
    x: Array = jnp.linalg.solve(system, t12.ravel())
    return x.reshape(2, 2)


def _heads(t: Array) -> Array:
    """Of each row whether a block of two begins there."""
    return _padded(jnp.diagonal(t, -1, -2, -1) != 0)


def _padded(x: Array) -> Array:
    """With a zero at the end."""
    return jnp.concatenate([x, jnp.zeros_like(x, shape=(*x.shape[:-1], 1))], -1)
