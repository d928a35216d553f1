"""Functions of matrices that are given for numbers, and trigonometric and hyperbolic ones."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from derivatives import check_derivatives
from papers import entries

from lapax import linalg
from lapax.linalg import _triangular


@pytest.mark.parametrize("name", ["cosm", "sinm", "tanm", "coshm", "sinhm", "tanhm"])
def test_trigonometric_and_hyperbolic_functions_are_scipys(name: str) -> None:
    with jax.enable_x64():
        a = (
            entries(7, 3, 4, 4)
            if name in ("cosm", "sinm", "tanm")
            else entries(7, 3, 4, 4) * 1j + 1
        )
        computed = np.asarray(getattr(linalg, name)(a))
        assert computed.dtype == a.dtype
        for x, one in zip(computed, a, strict=True):
            theirs = getattr(scipy.linalg, name)(one)
            assert np.linalg.norm(x - theirs) < 1e-11 * np.linalg.norm(theirs)


def test_function_of_numbers_is_the_function_of_matrices() -> None:
    with jax.enable_x64():
        chain = 3 * np.eye(4) + np.eye(4, k=1)
        a = np.stack(
            [entries(10, 4, 4), np.kron(np.eye(2), [[3, 1], [0, 3]]), 2 * np.eye(4), chain]
        )
        x, error = linalg.funm(a, jnp.exp, disp=False)
        np.testing.assert_allclose(x[:3], scipy.linalg.expm(a[:3]), atol=1e-12)
        np.testing.assert_array_equal(error > 1e-3, [False, True, False, True])
        assert np.isnan(x[3]).all()


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("batch", [1, 9])
@pytest.mark.parametrize("n", [1, 2, 7, 30, 70])
def test_recurrence_is_the_same_by_target_and_by_superdiagonals(n: int, batch: int, dtype) -> None:
    with jax.enable_x64():
        z = entries(13, 2, batch, n, n) + 1j * entries(14, 2, batch, n, n)
        t, g = (z / n + np.diag(np.arange(n) % 5 + 1.0)).astype(dtype)
        computed = _triangular.parlett(t, np.triu(g))
        expected = _triangular._parlett_by_superdiagonals(np.triu(t), np.triu(g))
        limit = 1e3 * np.finfo(dtype).eps * np.max(np.abs(expected))
        np.testing.assert_allclose(computed, expected, rtol=0, atol=limit)


@pytest.mark.parametrize("n", [3, 8, 20])
def test_function_is_the_same_wherever_a_matrix_stands(n: int) -> None:
    """With close eigenvalues in some, which take rounds of their own, and long chains in one."""
    with jax.enable_x64():
        a = entries(15, 60, n, n) / np.sqrt(n)
        a[::3] = np.eye(n) + 0.01 * a[::3]
        a[1] = np.eye(n) + np.eye(n, k=1)
        x = np.asarray(linalg.funm(a, jnp.exp))
        others = np.arange(60) != 1
        exact = scipy.linalg.expm(a[others])
        limit = 5e3 * np.finfo(float).eps * np.linalg.norm(exact, axis=(1, 2), keepdims=True)
        assert (np.abs(x[others] - exact) < limit).all()
        assert np.isnan(x[1]).all()
        by_vmap = jax.vmap(lambda one: linalg.funm(one, jnp.exp))(a)
        np.testing.assert_array_equal(by_vmap, x)
        order = np.random.default_rng(0).permutation(60)
        np.testing.assert_array_equal(linalg.funm(a[order], jnp.exp), x[order])


def test_hermitian_functions_and_roots() -> None:
    with jax.enable_x64():
        z = entries(11, 2, 4, 4) + 1j * entries(12, 2, 4, 4)
        a = z @ np.conj(np.swapaxes(z, -1, -2)) + np.eye(4)
        np.testing.assert_allclose(linalg.funmh(a, jnp.log), linalg.logm(a), atol=1e-12)
        root = linalg.inverse_pth_root(a, 4)
        product = np.linalg.matrix_power(root, 4) @ a
        np.testing.assert_allclose(product, np.broadcast_to(np.eye(4), (2, 4, 4)), atol=1e-12)
        check_derivatives(lambda a: linalg.inverse_pth_root(a, 2), a[0])
        repeated = np.diag([1.0, 1, 1, 2])
        check_derivatives(lambda a: linalg.inverse_pth_root(a, 2), repeated, second=False)
        assert np.isnan(linalg.inverse_pth_root(-a, 2)).all()


def test_precision_is_that_of_the_matrix() -> None:
    with jax.enable_x64():
        a = entries(3, 3, 3).astype(np.float32)
        for func in (jnp.sin, lambda x: x * np.float64(2)):
            assert linalg.funm(a, func).dtype == np.complex64


def test_derivative_of_a_general_function() -> None:
    with jax.enable_x64():
        a = entries(4, 3, 3) + 4 * np.eye(3) + 1j * entries(5, 3, 3)
        check_derivatives(lambda a: linalg.funm(a, jnp.exp), a, second=False)
        close = np.diag([1, 1 + 1e-9, 2]) + 0.1 * np.eye(3, k=2)
        _, derivative = jax.jvp(lambda a: linalg.funmh(a, jnp.exp), (close,), (np.ones((3, 3)),))
        hermitian = (close + close.T) / 2
        exact = scipy.linalg.expm_frechet(hermitian, np.ones((3, 3)), compute_expm=False)
        limit = 1e3 * np.finfo(float).eps * np.max(np.abs(exact))
        np.testing.assert_allclose(derivative, exact, rtol=0, atol=limit)


def test_empty_and_errors() -> None:
    assert linalg.cosm(jnp.zeros((2, 0, 0))).shape == (2, 0, 0)
    with pytest.raises(ValueError, match=r"funm: A: expected shape \[..., n, n\], got \[2, 3\]"):
        linalg.funm(jnp.ones((2, 3)), jnp.exp)
    with pytest.raises(ValueError, match="inverse_pth_root: p: expected a positive number, got 0"):
        linalg.inverse_pth_root(jnp.eye(2), 0)
