"""Logarithm and powers of matrices: round trips, the papers' matrices, derivatives."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import scipy.linalg
from derivatives import check_derivatives
from papers import check_accuracy, entries, matrices

from lapax import linalg


@pytest.mark.filterwarnings("ignore::Warning:scipy")
def test_papers_matrices_have_the_exact_logarithm() -> None:
    with jax.enable_x64():
        computed = linalg.logm(np.stack(list(matrices().values())))
        check_accuracy(np.asarray(computed), scipy.linalg.logm, mpmath.log)


def test_papers_matrices_have_the_exact_power() -> None:
    with jax.enable_x64():
        kinds = np.stack(list(matrices().values()))
        check_accuracy(
            np.asarray(linalg.fractional_matrix_power(kinds, -1.7)),
            lambda a: scipy.linalg.fractional_matrix_power(a, -1.7),
            lambda x: x ** mpmath.mpf(-1.7),
        )
        assert np.isnan(linalg.fractional_matrix_power(np.zeros_like(kinds), -1.7)).all()


def test_exponential_of_the_logarithm_is_the_matrix(dtype: np.dtype) -> None:
    a = (entries(2, 3, 4, 4) + 4 * np.eye(4)).astype(dtype)
    x = np.asarray(linalg.logm(a, real=True))
    assert x.dtype == dtype
    error = np.linalg.norm(scipy.linalg.expm(x.astype(complex)) - a, axis=(1, 2))
    assert np.all(error < 30 * 4 * np.finfo(dtype).eps * np.linalg.norm(a, axis=(1, 2)))


def test_singular_operands_and_the_branch_cut() -> None:
    with jax.enable_x64():
        a = np.array([np.diag([2, 0]), np.zeros((2, 2)), [[1, 2], [3, 6]], -np.eye(2)])
        power = np.asarray(linalg.fractional_matrix_power(a, 0.2))
        np.testing.assert_allclose(np.linalg.matrix_power(power, 5), a, atol=1e-13)
        np.testing.assert_array_equal(linalg.fractional_matrix_power(a, 2), a @ a)
        logarithm = np.asarray(linalg.logm(a))
        np.testing.assert_allclose(scipy.linalg.expm(logarithm), a, atol=1e-14)
        np.testing.assert_allclose(logarithm[3], np.pi * 1j * np.eye(2))
        assert np.isnan(linalg.logm(a, real=True)[3]).all()


def test_derivatives() -> None:
    with jax.enable_x64():
        a = entries(4, 3, 3) + 4 * np.eye(3) + 1j * entries(5, 3, 3)
        check_derivatives(linalg.logm, a, second=False)
        check_derivatives(lambda a: linalg.fractional_matrix_power(a, 0.4), a, second=False)


def test_nan_stays_in_its_matrix() -> None:
    with jax.enable_x64():
        a = np.stack(list(matrices().values()))
        broken = a.copy()
        broken[1, 0, 3] = np.nan
        x, whole = np.asarray(linalg.logm(broken)), np.asarray(linalg.logm(a))
        assert np.isnan(x[1]).all()
        np.testing.assert_allclose(x[::2], whole[::2], rtol=1e-12)


def test_empty_and_errors() -> None:
    assert linalg.logm(jnp.zeros((2, 0, 0))).shape == (2, 0, 0)
    with pytest.raises(ValueError, match=r"logm: A: expected shape \[..., n, n\], got \[2, 3\]"):
        linalg.logm(jnp.ones((2, 3)))
