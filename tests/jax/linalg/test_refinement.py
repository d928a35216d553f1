"""solve_refined: factors in half the precision, solutions in the whole."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from lapax import linalg


def of_condition(condition, n=40, dtype=np.float64, seed=0):
    g = np.random.default_rng(seed).standard_normal((4, n, n))
    g = g[:2] + 1j * g[2:] if np.dtype(dtype).kind == "c" else g[:2]
    u, v = (np.linalg.qr(x)[0] for x in g)
    return (u * np.logspace(0, -np.log10(condition), n)) @ v


def backward_error(a, x, b):
    norm = np.abs(a).sum(-1).max(-1)
    residual = np.abs(b - a @ np.asarray(x)).max()
    return residual / (norm * np.abs(x).max() + np.abs(b).max())


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_full_precision_whatever_the_condition(dtype):
    """Up to 10⁶ plain refinement arrives, at 10¹⁰ GMRES, at 10¹⁵ the decomposition in f64."""
    with jax.enable_x64(True):
        a = np.stack([of_condition(c, dtype=dtype) for c in (10, 1e6, 1e10, 1e15)])
        b = a @ np.ones((40, 2))
        found = jax.jit(lambda a, b: linalg.solve_refined(a, b, full=True))(a, b)
        assert found.x.dtype == dtype
        for i in range(4):
            error = backward_error(a[i], found.x[i], b[i])
            assert error < 40 * np.finfo(dtype).eps
            assert found.backward_error[i] == pytest.approx(error, rel=0.5)
        assert 1 <= found.iterations[0] <= 3
        assert found.iterations[1] > found.iterations[0]
        np.testing.assert_allclose(found.x[0], 1, rtol=1e-13)


def test_without_gmres_and_with_factors_of_the_same_precision():
    with jax.enable_x64(True):
        a = of_condition(1e10)
        b = a @ np.ones(40)
        for options in ({"gmres": False}, {"factor_dtype": np.float64}):
            x = linalg.solve_refined(a, b, **options)
            assert x.shape == (40,)
            assert backward_error(a, x, b) < 40 * np.finfo(float).eps
        single = linalg.solve_refined(a.astype(np.float32), b.astype(np.float32))
        assert single.dtype == np.float32


def test_magnitudes_that_f32_does_not_have():
    with jax.enable_x64(True):
        a = of_condition(10, n=5)
        np.testing.assert_allclose(linalg.solve_refined(a, 1e-200 * a.sum(1)), 1e-200, rtol=1e-12)
        np.testing.assert_allclose(linalg.solve_refined(1e-60 * a, a.sum(1)), 1e60, rtol=1e-12)


def test_one_of_a_batch_cannot_be_solved():
    with jax.enable_x64(True):
        a = np.stack([np.eye(3), np.full((3, 3), np.nan), np.zeros((3, 3))])
        x = linalg.solve_refined(a, np.ones((3, 1)))
        np.testing.assert_array_equal(x[0], 1)
        assert not np.isfinite(x[1:]).any()


def test_derivatives_and_vmap():
    with jax.enable_x64(True):
        a, b = jnp.asarray(of_condition(10, n=4)), jnp.arange(4.0)
        plain = partial(linalg.solve_refined, gmres=False)
        check_grads(plain, (a, b), order=2, modes=["rev"])
        many = jnp.stack([a, 2 * a])
        np.testing.assert_allclose(
            jax.vmap(plain, (0, None))(many, b)[1], np.linalg.solve(2 * a, b)
        )
        gradient = jax.grad(lambda a: jnp.sum(linalg.solve_refined(a, b) ** 2))(a)
        expected = jax.grad(lambda a: jnp.sum(jnp.linalg.solve(a, b) ** 2))(a)
        np.testing.assert_allclose(gradient, expected, rtol=1e-11)


def test_empty_and_misuse():
    assert linalg.solve_refined(np.zeros((2, 0, 0)), np.zeros((0, 3))).shape == (2, 0, 3)
    for options, a, text in (
        ({}, np.ones((2, 3)), r"solve_refined: a: expected shape \[..., n, n\]"),
        ({"factor_dtype": np.complex64}, np.eye(3), "factor_dtype: expected one of the kind of"),
    ):
        with pytest.raises(ValueError, match=text):
            linalg.solve_refined(a, np.ones(3), **options)
