"""Random sketches of matrices."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from lapax.linalg._arguments import Array, check_matrix, operation, random_key

__all__ = ["clarkson_woodruff_transform"]


@operation("input_matrix", jit=False)
def clarkson_woodruff_transform(
    input_matrix: Any, sketch_size: int, rng: Any = None, *, seed: Any = None
) -> Array:
    """S·A with a random sparse S that nearly keeps the norms of A's columns and their combinations.

    Each column of S [sketch_size, m] has one entry, ±1, in a random row (CountSketch: Clarkson and
    Woodruff, Low-rank approximation and regression in input sparsity time, 2013). `input_matrix`
    has shape [..., m, n], the result [..., sketch_size, n]; a batch shares S.

    `rng`, or `seed` in its place, is a key of jax.random, or an integer that makes one: the same
    one gives the same S, which is not SciPy's. Raises ValueError without it, and where
    `input_matrix` is not a matrix. Linear in `input_matrix`, so that its derivative is S.

    Cost: an addition for each entry of A.

    >>> clarkson_woodruff_transform(ones((8, 3)), 4, 0).shape  # (4, 3)
    """
    check_matrix("clarkson_woodruff_transform", input_matrix=input_matrix)
    given = seed if rng is None else rng
    if given is None:
        raise ValueError("clarkson_woodruff_transform: rng: expected a key or an integer, got None")
    key_of_rows, key_of_signs = jax.random.split(random_key(given))
    m = input_matrix.shape[-2]
    rows = jax.random.randint(key_of_rows, (m,), 0, sketch_size)
    signs = jax.random.rademacher(key_of_signs, (m,), input_matrix.dtype)
    shape = (*input_matrix.shape[:-2], sketch_size, input_matrix.shape[-1])
    signed = signs[:, None] * input_matrix
    return jnp.zeros(shape, input_matrix.dtype).at[..., rows, :].add(signed)
