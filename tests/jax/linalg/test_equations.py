"""Sylvester's and Lyapunov's equations: residuals, SciPy, derivatives."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from derivatives import check_derivatives

from lapax import linalg


def entries(seed: int, *shape: int, dtype: type = np.float64) -> np.ndarray:
    rng, dtype = np.random.default_rng(seed), np.dtype(dtype)
    a = rng.standard_normal(shape)
    if dtype.kind == "c":
        a = a + 1j * rng.standard_normal(shape)
    return a.astype(dtype)


def norm(a: np.ndarray) -> np.ndarray:
    return np.linalg.norm(np.asarray(a), axis=(-2, -1))


def adjoint(a: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(a, -1, -2))


def test_sylvester_and_lyapunov_have_small_residuals(dtype: np.dtype) -> None:
    a, b, q = (entries(i, 3, *s, dtype=dtype) for i, s in enumerate([(4, 4), (3, 3), (4, 3)]))
    x = linalg.solve_sylvester(a, b, q)
    assert x.dtype == dtype
    eps = np.finfo(dtype).eps
    ratio = norm(a @ x + x @ b - q) / (eps * 4 * (norm(a) + norm(b)) * norm(x))
    assert np.all(ratio < 30)
    q = entries(3, 4, 4, dtype=dtype)
    x = linalg.solve_continuous_lyapunov(a, q)
    ratio = norm(a @ x + x @ adjoint(a) - q) / (eps * 4 * 2 * norm(a) * norm(x))
    assert np.all(ratio < 30)


@pytest.mark.parametrize("method", ["direct", "bilinear"])
def test_discrete_lyapunov_is_scipys(method: str) -> None:
    with jax.enable_x64():
        a, q = entries(0, 3, 4, 4, dtype=complex), entries(1, 4, 4, dtype=complex)
        x = linalg.solve_discrete_lyapunov(a, q, method)
        for i in range(3):
            theirs = scipy.linalg.solve_discrete_lyapunov(a[i], q, method)
            np.testing.assert_allclose(x[i], theirs, atol=1e-12 * norm(theirs))


def test_adversarial_kinds_are_no_worse_than_scipys() -> None:
    with jax.enable_x64():
        n = 5
        grades = 10.0 ** np.arange(n)
        kinds = {
            "graded": grades[:, None] * entries(0, n, n) / grades,
            "nearly singular": np.diag([1e-9, 1, 2, 3, 4]) + 1e-3 * entries(1, n, n),
            "defective": np.eye(n) + np.eye(n, k=1),
            "repeated": 2 * np.eye(n),
            "rotations": np.kron(np.eye(3), [[1, 9], [-9, 1]])[:n, :n],
        }
        truth = entries(2, n, n)
        a = np.stack(list(kinds.values()))
        computed = np.asarray(linalg.solve_continuous_lyapunov(a, a @ truth + truth @ adjoint(a)))
        for (name, a), x in zip(kinds.items(), computed, strict=True):
            q = a @ truth + truth @ a.T
            theirs = scipy.linalg.solve_continuous_lyapunov(a, q)
            residuals = [norm(a @ y + y @ a.T - q) / norm(a) / norm(y) for y in (x, theirs)]
            assert residuals[0] < max(10 * residuals[1], 1e-15), name


def test_derivatives_of_two_orders() -> None:
    with jax.enable_x64():
        a, b, q = entries(0, 3, 3, dtype=complex), entries(1, 2, 2, dtype=complex), entries(2, 3, 2)
        check_derivatives(linalg.solve_sylvester, a, b + 4 * np.eye(2), q + 0j)
        check_derivatives(
            lambda a, q: linalg.solve_discrete_lyapunov(a / 4, q, "bilinear"), a.real, a.imag
        )


def test_nan_stays_in_its_matrix_and_vmap_is_the_batch() -> None:
    with jax.enable_x64():
        a, q = entries(0, 3, 4, 4), entries(1, 3, 4, 4)
        broken = a.copy()
        broken[1, 2, 2] = np.nan
        x = np.asarray(linalg.solve_lyapunov(broken, q))
        assert np.isnan(x[1]).all()
        one_by_one = jax.vmap(linalg.solve_lyapunov)(a, q)
        np.testing.assert_allclose(x[::2], one_by_one[::2], rtol=1e-10)


def test_small_orders_and_errors() -> None:
    assert linalg.solve_sylvester(jnp.zeros((0, 0)), jnp.eye(2), jnp.zeros((0, 2))).shape == (0, 2)
    np.testing.assert_allclose(linalg.solve_sylvester([[1]], [[2]], [[6]]), [[2]])
    assert linalg.solve_discrete_lyapunov(jnp.zeros((0, 0)), jnp.zeros((0, 0))).shape == (0, 0)
    with pytest.raises(ValueError, match="solve_sylvester: q: expected 2 columns, got 3"):
        linalg.solve_sylvester(jnp.eye(3), jnp.eye(2), jnp.ones((3, 3)))
    with pytest.raises(ValueError, match="solve_continuous_lyapunov: q: expected 3 rows, got 2"):
        linalg.solve_continuous_lyapunov(jnp.eye(3), jnp.eye(2))
    with pytest.raises(ValueError, match="solve_discrete_lyapunov: method: expected one of"):
        linalg.solve_discrete_lyapunov(jnp.eye(3), jnp.eye(3), "schur")
