"""vmap is one call with a larger batch; derivatives are stock's and those of finite differences."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lapax
from programs import FUNCTIONS, Operands, assert_close, custom_calls, operands, tolerance

DIFFERENTIABLE = ["cholesky", "solve", "inv", "slogdet", "lu_solve", "cho_solve", "lower", "unit"]


def scalar(name):
    """A real function of all entries of the result, different for each entry."""

    def loss(*o):
        leaves = jax.tree.leaves(FUNCTIONS[name](Operands(*o)))
        weights = (jnp.cos(jnp.arange(x.size, dtype=x.real.dtype)).reshape(x.shape) for x in leaves)
        return sum(
            jnp.sum(w * x.real + 2 * w * x.imag) for w, x in zip(weights, leaves, strict=True)
        )

    return loss


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_equal_stock(name, dtype, batch):
    gradient = jax.grad(scalar(name), argnums=(0, 1, 2))
    expected = jax.jit(gradient)(*batch)
    with lapax.installed():
        got = jax.jit(gradient)(*batch)
        calls = custom_calls(gradient, *batch)
    assert calls
    assert all(call.startswith("lapax.") for call in calls)
    assert_close(got, expected, 10 * tolerance(dtype, 5))


@pytest.mark.parametrize("kind", [np.float64, np.complex128])
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_equal_finite_differences(name, kind):
    with jax.enable_x64(True), lapax.installed():
        loss, point = jax.jit(scalar(name)), operands(np.dtype(kind), n=4, batch=(2,))
        direction = operands(np.dtype(kind), n=4, batch=(2,), seed=1)
        h = 1e-6
        steps = [[h * d for d in direction], [-h * d for d in direction]]
        there, back = ([x + d for x, d in zip(point, step, strict=True)] for step in steps)
        difference = (loss(*there) - loss(*back)) / (2 * h)
        gradient = jax.jit(jax.grad(scalar(name), argnums=(0, 1, 2)))(*point)
        # JAX's gradient g of a real function of complex x: df = Re Σ g·dx.
        derivative = sum(jnp.sum((g * d).real) for g, d in zip(gradient, direction, strict=True))
        np.testing.assert_allclose(derivative, difference, rtol=1e-7)


def test_second_derivatives_equal_stock():
    o = operands(np.dtype(np.float32), n=3, batch=())
    hessian = jax.jit(jax.hessian(lambda s: jnp.linalg.slogdet(jnp.linalg.cholesky(s))[1]))
    expected = hessian(o.s)
    with lapax.installed():
        assert_close(hessian(o.s), expected, 1e-4)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_vmap_makes_the_same_calls_as_one_problem(name, dtype, batch):
    def one(*o):
        return FUNCTIONS[name](Operands(*o))

    with lapax.installed():
        single = custom_calls(one, *(x[0] for x in batch))
        mapped = custom_calls(jax.vmap(one), *batch)
        twice = custom_calls(jax.vmap(jax.vmap(one)), *(x[:, None] for x in batch))
        got, expected = jax.vmap(one)(*batch), one(*batch)
    assert single == mapped == twice
    assert_close(got, expected, tolerance(dtype, 5))


def test_vmap_over_one_operand():
    o = operands(np.dtype(np.float32), n=4, batch=(3,))
    with lapax.installed():
        solve = lambda b: jnp.linalg.solve(o.a[0], b)  # noqa: E731
        got = jax.vmap(solve)(o.b)
    assert_close(got, np.linalg.solve(o.a[0], o.b), tolerance(np.dtype(np.float32), 4))


@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0), (1, 1), (2, 0)])
def test_cholesky_update_under_vmap_is_one_call(axes):
    rng = np.random.default_rng(1)
    rs = np.triu(rng.standard_normal((3, 4, 4)) + 4 * np.eye(4)).astype(np.float32)
    ws = rng.standard_normal((3, 4)).astype(np.float32)
    rows = [
        (rs[i if axes[0] is not None else 0], ws[i if axes[1] is not None else 0]) for i in range(3)
    ]
    single = jax.lax.linalg.cholesky_update
    expected = np.stack([single(*row) for row in rows])
    stacked = [
        x[0] if axis is None else np.moveaxis(x, 0, axis)
        for x, axis in zip((rs, ws), axes, strict=True)
    ]
    update = jax.vmap(single, in_axes=axes)
    with lapax.installed():
        assert custom_calls(update, *stacked) == ["lapax.cu_cholesky_update_ffi"]
        got = np.asarray(update(*stacked))
    gram, expected_gram = (x.swapaxes(-1, -2) @ x for x in (got, expected))
    assert_close(gram, expected_gram, tolerance(np.dtype(np.float32), 4))


def test_scan_cond_and_remat():
    o = operands(np.dtype(np.float32), n=3, batch=(4,))

    def loss(s):
        def step(total, matrix):
            root = jax.checkpoint(jnp.linalg.cholesky)(matrix)
            return total + jax.lax.cond(total >= 0, jnp.sum, jnp.prod, root), None

        return jax.lax.scan(step, 0.0, s)[0]

    both = jax.jit(jax.value_and_grad(loss))
    expected = both(o.s)
    with lapax.installed():
        assert_close(both(o.s), expected, 1e-4)
