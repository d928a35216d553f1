"""JAX's settings under which the package's own programs are traced, whatever a user's are."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import jax


@contextlib.contextmanager
def own_settings() -> Iterator[None]:
    """Also a decorator, of what JAX calls later: rules of derivatives, and of lowering.

    A user's `jax_numpy_dtype_promotion="strict"` and `jax_numpy_rank_promotion="raise"` are for the
    user's own operations. Of a GPU the default precision of products is shorter than float32.
    """
    with (
        jax.default_matmul_precision("highest"),
        jax.numpy_dtype_promotion("standard"),
        jax.numpy_rank_promotion("allow"),
    ):
        yield
