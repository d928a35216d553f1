"""examples/kalman_smoother.py: one block-tridiagonal solve is what the recursions give."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

EXAMPLE = Path(__file__).parents[3] / "examples" / "kalman_smoother.py"
SPEC = importlib.util.spec_from_file_location("kalman_smoother", EXAMPLE)
kalman = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(kalman)


def test_blocks_and_recursion_agree() -> None:
    with jax.enable_x64(True):
        y, log_noise = jnp.asarray(kalman.simulate(60)), jnp.log(jnp.array([0.7, 0.2]))
        got, expected = (
            (jax.jit(smoother)(log_noise, y), kalman.likelihood(smoother)(log_noise, y))
            for smoother in (kalman.by_blocks, kalman.by_recursion)
        )
    for a, b in zip(*map(jax.tree.leaves, (got, expected)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)


def test_likelihood_is_largest_near_the_noise_that_was_simulated() -> None:
    with jax.enable_x64(True):
        y = jnp.asarray(kalman.simulate(2000, q=0.5, r=0.3))
        q, r = np.exp(kalman.fit(y))
    assert abs(q - 0.5) < 0.05
    assert abs(r - 0.3) < 0.01
