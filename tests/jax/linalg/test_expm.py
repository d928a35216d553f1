"""The exponential of matrices against 60 digits, SciPy, finite differences and itself in a loop."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import scipy.linalg
from derivatives import check_derivatives

from lapax import linalg


def exact(a: np.ndarray) -> np.ndarray:
    with mpmath.workdps(60):
        value = mpmath.expm(mpmath.matrix(a.tolist()), method="taylor")
        return np.array(value.tolist()).astype(a.dtype)


def relative(x: np.ndarray, y: np.ndarray) -> float:
    return float(np.max(np.abs(x - y)) / np.max(np.abs(y)))


def matrices() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    n = 5
    entries = rng.standard_normal((n, n))
    return {
        "of norm 1e-3": entries * 1e-3,
        "of norm 3": entries,
        "of norm 30": entries * 10,
        "upper triangular": np.triu(entries) * 20,
        "lower triangular": np.tril(entries) * 20,
        "diagonal": np.diag(rng.standard_normal(n) * 50),
        "defective": np.eye(n) + np.eye(n, k=1) * 1e3,
        "nilpotent": np.eye(n, k=1) * 1e5,
        "nilpotent, of norm 1e300": np.eye(n) * 0 + np.eye(n, k=4) * 1e300,
        "overscaled": np.kron(np.eye(3), np.array([[1, 1e6], [0, -1]]))[:n, :n],
        "stiff": np.pad([[-131, 19, 18], [-390, 56, 54], [-387, 57, 52]], (0, 2)) * 1.0,
        "zero": np.zeros((n, n)),
    }


def test_papers_matrices_have_the_exact_exponential() -> None:
    with jax.enable_x64():
        kinds = matrices()
        computed = np.asarray(linalg.expm(np.stack(list(kinds.values()))))
        for (name, a), x in zip(kinds.items(), computed, strict=True):
            truth = exact(a)
            ours, theirs = relative(x, truth), relative(scipy.linalg.expm(a), truth)
            assert ours < max(10 * theirs, 1e-14), f"{name}: {ours:.1e}, SciPy {theirs:.1e}"


def test_exponential_of_minus_a_is_the_inverse(dtype: np.dtype) -> None:
    rng = np.random.default_rng(1)
    a = rng.standard_normal((6, 5, 5)).astype(dtype)
    if dtype.kind == "c":
        a = a + 1j * rng.standard_normal(a.shape).astype(dtype)
    x, y = linalg.expm(a), linalg.expm(-a)
    assert x.dtype == dtype
    scale = 5 * np.linalg.norm(x, axis=(1, 2)) * np.linalg.norm(y, axis=(1, 2))
    residual = np.linalg.norm(x @ y - np.eye(5), axis=(1, 2))
    assert np.all(residual < 30 * np.finfo(dtype).eps * scale)


def test_norm_beyond_any_float_is_scaled() -> None:
    with jax.enable_x64():
        rotation = np.array([[0, 3.0], [-3.0, 0]]) * 2.0**40
        decaying = np.diag([-1e300, -5.0])
        x = linalg.expm(np.stack([rotation, decaying]))
        np.testing.assert_allclose(x[0] @ x[0].T, np.eye(2), atol=1e-3)
        np.testing.assert_allclose(x[1], np.diag([0, np.exp(-5)]), rtol=1e-15)


def test_nan_and_infinity_stay_in_their_matrix() -> None:
    with jax.enable_x64():
        a = np.random.default_rng(2).standard_normal((3, 4, 4))
        broken = a.copy()
        broken[0, 1, 2], broken[2, 0, 0] = np.nan, np.inf
        x = np.asarray(linalg.expm(broken))
        assert np.isnan(x[[0, 2]]).all()
        np.testing.assert_array_equal(x[1], linalg.expm(a)[1])


def test_empty_and_one_by_one() -> None:
    with jax.enable_x64():
        assert linalg.expm(np.zeros((2, 0, 0))).shape == (2, 0, 0)
        assert linalg.expm(np.zeros((0, 2, 2))).shape == (0, 2, 2)
        np.testing.assert_allclose(linalg.expm([[3]]), [[np.exp(3)]], rtol=1e-15)


def test_derivatives_of_two_orders() -> None:
    with jax.enable_x64():
        a, b = np.random.default_rng(3).standard_normal((2, 2, 3, 3))
        check_derivatives(linalg.expm, a + 1j * b)


def test_frechet_and_condition_are_scipys() -> None:
    with jax.enable_x64():
        a, e = np.random.default_rng(4).standard_normal((2, 3, 4, 4))
        x, derivative = linalg.expm_frechet(a, e)
        batched = jax.vmap(lambda a, e: linalg.expm_frechet(a, e, compute_expm=False), (0, None))
        np.testing.assert_allclose(batched(a, e[0])[0], derivative[0], rtol=1e-12)
        conditions = linalg.expm_cond(a[:, :2, :2])
        for i in range(3):
            theirs = scipy.linalg.expm_frechet(a[i], e[i])
            assert relative(x[i], theirs[0]) < 1e-13
            assert relative(derivative[i], theirs[1]) < 1e-13
            assert relative(conditions[i], scipy.linalg.expm_cond(a[i, :2, :2])) < 1e-12


def test_action_on_vectors_is_the_exponentials() -> None:
    with jax.enable_x64():
        a = np.random.default_rng(5).standard_normal((3, 4, 4))
        a *= np.array([1e-3, 1, 30])[:, None, None]
        a[2] -= 60 * np.eye(4)
        b = np.random.default_rng(6).standard_normal((4, 2))
        expected = scipy.linalg.expm(a) @ b
        size = np.linalg.norm(expected, axis=(1, 2), keepdims=True)
        assert np.all(np.abs(linalg.expm_multiply(a, b) - expected) < 1e-12 * size)
        a[0, 0, 1] = np.nan
        x = np.asarray(linalg.expm_multiply(a, b))
        np.testing.assert_array_equal(np.isnan(x).all((1, 2)), [True, False, False])
        check_derivatives(linalg.expm_multiply, a[1, :3, :3], b[:3, 0], second=False)


def test_errors_say_what_was_expected() -> None:
    with pytest.raises(ValueError, match=r"expm: A: expected shape \[..., n, n\], got \[2, 3\]"):
        linalg.expm(jnp.ones((2, 3)))
    with pytest.raises(ValueError, match="expm_frechet: E: expected order 2, got 3"):
        linalg.expm_frechet(jnp.eye(2), jnp.eye(3))
    with pytest.raises(ValueError, match="expm_frechet: method: expected one of"):
        linalg.expm_frechet(jnp.eye(2), jnp.eye(2), method="taylor")
