"""Square root, sign, logarithm, powers, and functions given for numbers."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import scipy.linalg
from derivatives import check_derivatives

from lapax import linalg

N = 5


def entries(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def exact(a: np.ndarray, f: Callable) -> np.ndarray:
    """f(A) by eigenvectors in 200 digits, of A with its eigenvalues moved apart by 1e-60."""
    with mpmath.workdps(200):
        moved = mpmath.matrix(a.tolist()) + mpmath.mpf(10) ** -60 * mpmath.matrix(
            entries(9, *a.shape).tolist()
        )
        w, v = mpmath.eig(moved)
        value = v * mpmath.diag([f(x) for x in w]) * mpmath.inverse(v)
        return np.array(value.tolist()).astype(complex)


def matrices() -> dict[str, np.ndarray]:
    """None has an eigenvalue on the negative real axis, where 60 digits choose a side."""
    a = entries(0, N, N)
    spread = np.triu(np.full((N, N), 3e4), 1) + np.diag([0.32346, 0.30089, 0.3221, 0.30744, 0.31])
    grades = 10.0 ** np.arange(N)
    return {
        "positive definite": a @ a.T,
        "complex": a + 1j * entries(1, N, N),
        "of Al-Mohy and Higham, experiment 1": spread,
        "defective": np.eye(N) / 2 + np.eye(N, k=1),
        "defective, of large norm": np.eye(N) / 2 + np.eye(N, k=1) * 1e3,
        "nearly singular": np.diag([1, 1e-12, 1e-80, 3, 5]) + np.triu(np.abs(a), 1),
        "graded": grades[:, None] * (np.eye(N) + a / 9) / grades,
        "beside the branch cut": np.diag([-1 + 1e-9j, -1 - 1e-9j, -2 + 1e-9j, 1, 2])
        + np.eye(N, k=1),
        "triangular": np.triu(np.abs(a) + 0.1),
    }


FUNCTIONS = {
    "sqrtm": (linalg.sqrtm, scipy.linalg.sqrtm, mpmath.sqrt),
    "logm": (linalg.logm, scipy.linalg.logm, mpmath.log),
    "power 0.3": (
        lambda a: linalg.fractional_matrix_power(a, 0.3),
        lambda a: scipy.linalg.fractional_matrix_power(a, 0.3),
        lambda x: x ** mpmath.mpf(0.3),
    ),
    "power -1.7": (
        lambda a: linalg.fractional_matrix_power(a, -1.7),
        lambda a: scipy.linalg.fractional_matrix_power(a, -1.7),
        lambda x: x ** mpmath.mpf(-1.7),
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_papers_matrices_are_as_near_the_truth_as_scipys(name: str) -> None:
    ours, theirs, of_number = FUNCTIONS[name]
    kinds = matrices()
    ratios = []
    with jax.enable_x64():
        computed = np.asarray(ours(np.stack(list(kinds.values()))))
        for (kind, a), x in zip(kinds.items(), computed, strict=True):
            truth = exact(a, of_number)
            errors = [np.linalg.norm(y - truth) / np.linalg.norm(truth) for y in (x, theirs(a))]
            ratios.append(errors[0] / max(errors[1], 1e-16))
            assert errors[0] < max(30 * errors[1], 1e-13), (
                f"{kind}: {errors[0]:.1e} {errors[1]:.1e}"
            )
    assert np.median(ratios) < 3


def test_round_trips_in_four_dtypes(dtype: np.dtype) -> None:
    a = (entries(2, 3, 4, 4) + 4 * np.eye(4)).astype(dtype)
    limit = 30 * 4 * np.finfo(dtype).eps
    x = np.asarray(linalg.sqrtm(a, real=True))
    assert x.dtype == dtype
    size = np.linalg.norm(x, axis=(1, 2)) ** 2
    assert np.all(np.linalg.norm(x @ x - a, axis=(1, 2)) < limit * size)
    x = np.asarray(linalg.logm(a, real=True))
    assert x.dtype == dtype
    back = scipy.linalg.expm(x.astype(complex))
    assert np.all(np.linalg.norm(back - a, axis=(1, 2)) < limit * np.linalg.norm(a, axis=(1, 2)))


def test_singular_operands() -> None:
    with jax.enable_x64():
        a = np.array([np.diag([2, 0]), np.zeros((2, 2)), [[1, 2], [3, 6]], [[1, 1], [0, 0]]])
        root = np.asarray(linalg.sqrtm(a))
        np.testing.assert_allclose(root @ root, a, atol=1e-14)
        power = np.asarray(linalg.fractional_matrix_power(a, 0.2))
        np.testing.assert_allclose(np.linalg.matrix_power(power, 5), a, atol=1e-13)
        assert np.isnan(linalg.sqrtm([[0, 1], [0, 0]])).any()
        inverse = np.asarray(linalg.fractional_matrix_power(a, -0.5))
        assert np.isnan(inverse[[0, 1, 3]]).all()
        logarithm = np.asarray(linalg.logm(a))
        np.testing.assert_allclose(scipy.linalg.expm(logarithm), a, atol=1e-14)
        np.testing.assert_array_equal(linalg.fractional_matrix_power(a, 2), a @ a)


def test_real_results_are_nan_where_they_are_complex() -> None:
    with jax.enable_x64():
        a = np.stack([-np.eye(2), [[1, -2], [2, 1]], np.eye(2), np.eye(2)])
        x = np.asarray(linalg.sqrtm(a, real=True))
        assert np.isnan(x[0]).all()
        np.testing.assert_allclose(x[1] @ x[1], a[1], atol=1e-14)
        np.testing.assert_allclose(linalg.logm(a)[0], np.pi * 1j * np.eye(2))


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
        check_derivatives(linalg.logm, a, second=False)
        check_derivatives(lambda a: linalg.fractional_matrix_power(a, 0.4), a, second=False)
        b = np.diag([1.0, -2, 3]) + entries(6, 3, 3) / 2
        check_derivatives(linalg.signm, b, second=False, step=1e-4)
        check_derivatives(lambda a: linalg.funm(a, jnp.exp), a, second=False)


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


def test_nan_stays_in_its_matrix() -> None:
    with jax.enable_x64():
        a = entries(13, 3, 4, 4) + 4 * np.eye(4)
        broken = a.copy()
        broken[1, 0, 3] = np.nan
        for f in (linalg.sqrtm, linalg.logm, linalg.signm):
            x = np.asarray(f(broken))
            assert np.isnan(x[1]).all()
            np.testing.assert_allclose(x[::2], np.asarray(f(a))[::2], rtol=1e-13)


def test_empty_and_errors() -> None:
    empty = jnp.zeros((2, 0, 0))
    for f in (linalg.sqrtm, linalg.logm, linalg.signm, linalg.cosm):
        assert f(empty).shape == (2, 0, 0)
    with pytest.raises(ValueError, match=r"logm: A: expected shape \[..., n, n\], got \[2, 3\]"):
        linalg.logm(jnp.ones((2, 3)))
    with pytest.raises(ValueError, match="inverse_pth_root: p: expected a positive number, got 0"):
        linalg.inverse_pth_root(jnp.eye(2), 0)
