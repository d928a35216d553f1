"""Square root and sign of matrices: residuals, the papers' matrices, derivatives."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import scipy.linalg
from derivatives import check_derivatives
from papers import N, check_accuracy, entries, matrices

from lapax import linalg


def test_papers_matrices_have_the_exact_root() -> None:
    with jax.enable_x64():
        computed = linalg.sqrtm(np.stack(list(matrices().values())))
        check_accuracy(np.asarray(computed), scipy.linalg.sqrtm, mpmath.sqrt)


def test_root_squares_to_the_matrix(dtype: np.dtype) -> None:
    a = (entries(2, 3, 4, 4) + 4 * np.eye(4)).astype(dtype)
    x = np.asarray(linalg.sqrtm(a, real=True))
    assert x.dtype == dtype
    size = np.linalg.norm(x, axis=(1, 2)) ** 2
    residual = np.linalg.norm(x @ x - a, axis=(1, 2))
    assert np.all(residual < 30 * 4 * np.finfo(dtype).eps * size)


@pytest.mark.parametrize("f", [linalg.sqrtm, linalg.logm])
def test_real_matrices_of_which_some_have_complex_functions(f) -> None:
    """Bits do not depend on where a matrix stands, nor on vmap."""
    with jax.enable_x64():
        a = np.stack([entries(30, N, N) + k * np.eye(N) for k in (8, 0, -3, 8)])
        a[3] += a[3].T
        x = np.asarray(f(a))
        inverse = (lambda x: x @ x) if f is linalg.sqrtm else scipy.linalg.expm
        back, size = inverse(x), np.abs(inverse(np.abs(x))).max((1, 2), keepdims=True)
        assert np.all(np.abs(back - a) < 1e-13 * size)
        assert np.all(x[3].imag == 0)
        negative = [np.sum((w.imag == 0) & (w.real < 0)) for w in np.linalg.eigvals(a)]
        assert min(negative) == 0 < max(negative)
        # Conjugate eigenvalues have conjugate functions, and negative ones those above the axis.
        np.testing.assert_array_equal(np.trace(x, axis1=1, axis2=2).imag > 0.1, np.sign(negative))
        np.testing.assert_array_equal(x, f(a[::-1])[::-1])
        np.testing.assert_array_equal(x, jax.vmap(f)(a))


def test_singular_operands() -> None:
    with jax.enable_x64():
        a = np.array([np.diag([2, 0]), np.zeros((2, 2)), [[1, 2], [3, 6]], [[0, 1], [0, 0]]])
        x = np.asarray(linalg.sqrtm(a))
        np.testing.assert_allclose(x[:3] @ x[:3], a[:3], atol=1e-14)
        assert np.isnan(x[3]).any()


def test_real_result_is_nan_where_the_root_is_complex() -> None:
    with jax.enable_x64():
        a = np.stack([-np.eye(2), [[1, -2], [2, 1]]])
        x = np.asarray(linalg.sqrtm(a, real=True))
        assert np.isnan(x[0]).all()
        np.testing.assert_allclose(x[1] @ x[1], a[1], atol=1e-14)


def test_sign_squares_to_one_and_commutes() -> None:
    with jax.enable_x64():
        kinds = np.stack([entries(3, N, N), np.diag([1.0, 1, -2, -2, 3]) + np.eye(N, k=1)])
        s = np.asarray(linalg.signm(kinds))
        size = np.linalg.norm(s, axis=(1, 2), keepdims=True)
        assert np.all(np.abs(s @ s - np.eye(N)) < 1e-13 * size**2)
        assert np.all(np.abs(s @ kinds - kinds @ s) < 1e-13 * size * np.abs(kinds).max())


def test_derivatives() -> None:
    with jax.enable_x64():
        a = entries(4, 3, 3) + 4 * np.eye(3) + 1j * entries(5, 3, 3)
        check_derivatives(linalg.sqrtm, a)
        b = np.diag([1.0, -2, 3]) + entries(6, 3, 3) / 2
        check_derivatives(linalg.signm, b, second=False, step=1e-4)


@pytest.mark.parametrize("f", [linalg.sqrtm, linalg.signm])
def test_nan_stays_in_its_matrix(f) -> None:
    with jax.enable_x64():
        a = entries(13, 3, 4, 4) + 4 * np.eye(4)
        broken = a.copy()
        broken[1, 0, 3] = np.nan
        x = np.asarray(f(broken))
        assert np.isnan(x[1]).all()
        np.testing.assert_allclose(x[::2], np.asarray(f(a))[::2], rtol=1e-13)


def test_empty_and_errors() -> None:
    assert linalg.sqrtm(jnp.zeros((2, 0, 0))).shape == (2, 0, 0)
    assert linalg.signm(jnp.zeros((0, 0))).shape == (0, 0)
    with pytest.raises(ValueError, match=r"sqrtm: A: expected shape \[..., n, n\], got \[2, 3\]"):
        linalg.sqrtm(jnp.ones((2, 3)))
