"""Products and norms of batches of matrices, in the full precision of their dtype."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

Array = jax.Array


def product(a: Array, b: Array) -> Array:
    """A·B, where the platform's default would be a shorter format, too."""
    c: Array = jnp.matmul(a, b, precision=jax.lax.Precision.HIGHEST)
    return c


def one_norm(a: Array) -> Array:
    """The largest sum of a column's absolute values: [..., m, n] to [...]."""
    norm: Array = jnp.max(jnp.sum(jnp.abs(a), axis=-2), axis=-1, initial=0)
    return norm


def diagonal(a: Array) -> Array:
    """The diagonal of each matrix: [..., n, n] to [..., n]."""
    values: Array = jnp.diagonal(a, axis1=-2, axis2=-1)
    return values


def with_diagonal(a: Array, values: Array, offset: int = 0) -> Array:
    """Each matrix with one of its diagonals replaced by values [..., n - |offset|]."""
    before = (max(-offset, 0), max(offset, 0))
    padding = [(0, 0)] * (values.ndim - 1)
    by_row = jnp.pad(values, [*padding, before])
    return jnp.where(jnp.eye(a.shape[-1], k=offset, dtype=bool), by_row[..., None], a)


def block_triangular(a: Array, e: Array) -> Array:
    """[[A, E], [0, A]]."""
    return jnp.block([[a, e], [jnp.zeros_like(a), a]])


def all_or_nan(good: Array, a: Array) -> Array:
    """The matrices that are good ([...] of bool), and NaN for the others."""
    return jnp.where(good[..., None, None], a, jnp.nan)


def computed_where(which: Array, found: Callable[[Array], Array], otherwise: Array) -> Array:
    """`found(which)` where `which` ([...] of bool) says so, not computed where that is nowhere.

    A loop that runs once or never: vmap would make both branches of a condition run. What costs
    time in `found` has to depend on its argument: XLA computes the rest before the loop.
    """

    def body(state: tuple[Array, Array]) -> tuple[Array, Array]:
        left, value = state
        chosen = left.reshape(left.shape + (1,) * (value.ndim - left.ndim))
        return jnp.zeros_like(left), jnp.where(chosen, found(left), value)

    return jax.lax.while_loop(lambda state: jnp.any(state[0]), body, (which, otherwise))[1]
