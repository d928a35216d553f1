"""The finite-horizon regulator against the optimum of the whole quadratic problem."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from derivatives import check_derivatives

from lapax import linalg

M, INPUTS, STEPS = 3, 2, 4


def problem() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    a, c = rng.standard_normal((2, STEPS, M, M))
    b = rng.standard_normal((STEPS, M, INPUTS))
    q = c @ np.swapaxes(c, -1, -2) + np.eye(M)
    r = np.tile(np.diag([1.0, 2]), (STEPS, 1, 1))
    return [a, b, q, r, np.eye(M), b / 8]


def test_inputs_are_optimal() -> None:
    with jax.enable_x64():
        a, b, q, r, final, s = problem()
        gains, costs = map(np.asarray, linalg.finite_horizon_lqr(a, b, q, r, final, s))
        start = np.array([1.0, -2, 3])

        def cost(inputs: jax.Array) -> jax.Array:
            x, total = jnp.asarray(start), 0.0
            for t in range(STEPS):
                u = inputs[t]
                total += x @ q[t] @ x + 2 * x @ s[t] @ u + u @ r[t] @ u
                x = a[t] @ x + b[t] @ u
            return total + x @ final @ x

        x, inputs = start, []
        for t in range(STEPS):
            inputs.append(-gains[t] @ x)
            x = a[t] @ x + b[t] @ inputs[-1]
        value, slope = jax.jit(jax.value_and_grad(cost))(jnp.stack(inputs))
        np.testing.assert_allclose(value, start @ costs[0] @ start, rtol=1e-12)
        assert np.max(np.abs(slope)) < 1e-12 * value


def test_long_horizon_is_the_algebraic_equation() -> None:
    with jax.enable_x64():
        a, b, q, r, final, _ = (x[0] if x.ndim == 3 else x for x in problem())
        batch = np.stack([a, a / 2])
        gains, costs = linalg.finite_horizon_lqr(batch, b, q, r, final, steps=200)
        assert gains.shape == (2, 200, INPUTS, M)
        for i in range(2):
            x = scipy.linalg.solve_discrete_are(batch[i], b, q, r)
            np.testing.assert_allclose(costs[i, 0], x, rtol=1e-10)


def test_derivatives_of_two_orders() -> None:
    with jax.enable_x64():
        check_derivatives(lambda *x: linalg.finite_horizon_lqr(*x)[1], *problem()[:5])


def test_errors_say_what_was_expected() -> None:
    a, b, q, r, final, _ = problem()
    with pytest.raises(ValueError, match="finite_horizon_lqr: b: expected 4 steps, got 3"):
        linalg.finite_horizon_lqr(a, b[1:], q, r, final)
    with pytest.raises(ValueError, match=r"a: expected shape \[..., T, m, n\], got \[3, 3\]"):
        linalg.finite_horizon_lqr(a[0], b, q, r, final)
