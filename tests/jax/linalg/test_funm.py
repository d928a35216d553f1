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


def test_empty_and_errors() -> None:
    assert linalg.cosm(jnp.zeros((2, 0, 0))).shape == (2, 0, 0)
    with pytest.raises(ValueError, match=r"funm: A: expected shape \[..., n, n\], got \[2, 3\]"):
        linalg.funm(jnp.ones((2, 3)), jnp.exp)
    with pytest.raises(ValueError, match="inverse_pth_root: p: expected a positive number, got 0"):
        linalg.inverse_pth_root(jnp.eye(2), 0)
