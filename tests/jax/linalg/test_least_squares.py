"""lstsq, pinv, pinvh and matrix_rank: SciPy's answers, and derivatives at deficient rank."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from jax.test_util import check_grads
from scipys import as_followed

from lapax import linalg

SHAPES = [(7, 4, 4), (7, 4, 2), (4, 6, 2)]


def matrix(m: int, n: int, rank: int, dtype: Any = np.float64, seed: int = 0) -> np.ndarray:
    """Of the given rank, with singular values from 1 to 1/2."""
    rng = np.random.default_rng(seed)

    def orthonormal(size: int) -> np.ndarray:
        g = rng.standard_normal((2, size, rank))
        return np.linalg.qr(g[0] + 1j * g[1] if np.dtype(dtype).kind == "c" else g[0])[0]

    return ((orthonormal(m) * np.linspace(1, 0.5, rank)) @ orthonormal(n).conj().T).astype(dtype)


def ratio(error: Any, *scales: Any) -> float:
    """‖error‖ / (ε·n·scales), LAPACK's residual ratio."""
    error = np.asarray(error)
    scale = max(error.shape[-1], 1) * np.prod([np.linalg.norm(s) for s in scales])
    return float(np.linalg.norm(error) / (np.finfo(error.dtype).eps * scale))


@pytest.mark.parametrize("driver", ["gelsd", "gelsy"])
def test_least_squares_satisfies_the_normal_equations(dtype: np.dtype, driver: str) -> None:
    """Aᴴ·r = 0, and x is orthogonal to A's null space."""
    for rank in (4, 2):
        a, b = matrix(7, 4, rank, dtype), matrix(7, 3, 3, dtype, seed=1)
        x, _, found, _ = linalg.lstsq(a, b, 1e-5, lapack_driver=driver)
        assert x.dtype == dtype
        assert int(found) == rank
        x = np.asarray(x)
        assert ratio(a.conj().T @ (b - a @ x), a, a, x) < 30
        null = scipy.linalg.null_space(a, rcond=1e-5)
        assert ratio(null.conj().T @ x, x) < 30


@as_followed
@pytest.mark.parametrize("driver", [None, "gelsy"])
@pytest.mark.parametrize("shape", SHAPES)
def test_least_squares_is_scipys(shape: tuple[int, int, int], driver: str | None) -> None:
    a, b = matrix(*shape), matrix(shape[0], 3, 3, seed=1)
    with jax.enable_x64(True):
        for right in (b, b[:, 0]):
            found = linalg.lstsq(a, right, 1e-10, lapack_driver=driver)
            expected = scipy.linalg.lstsq(a, right, 1e-10, lapack_driver=driver)
            for ours, theirs in zip(found[:3], expected[:3], strict=True):
                assert ours.shape == np.shape(theirs)
                np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-13)
            if driver is None:
                np.testing.assert_allclose(found[3], expected[3], atol=1e-14)
            else:
                assert found[3] is None


def test_batches_broadcast_and_keep_not_a_number_to_themselves() -> None:
    with jax.enable_x64(True):
        a = np.stack([matrix(5, 3, 3), np.full((5, 3), np.nan), matrix(5, 3, 2)])
        b = matrix(5, 2, 2, seed=1)
        for driver in (None, "gelsy"):
            x, _, rank, _ = linalg.lstsq(a, b, 1e-10, lapack_driver=driver)
            for i in (0, 2):
                alone = linalg.lstsq(a[i], b, 1e-10, lapack_driver=driver)
                np.testing.assert_allclose(x[i], alone[0], atol=1e-14)
                assert rank[i] == alone[2] == (3, 0, 2)[i]
            assert np.isnan(x[1]).all()
            mapped = jax.vmap(lambda a, d=driver: linalg.lstsq(a, b, 1e-10, lapack_driver=d)[0])(a)
            np.testing.assert_allclose(mapped, x, atol=1e-14)
        inverse = linalg.pinv(a)
        assert np.isnan(inverse[1]).all()
        np.testing.assert_allclose(inverse[2], scipy.linalg.pinv(a[2]), atol=1e-14)
        hermitian = a.swapaxes(-1, -2) @ a
        inverse = linalg.pinvh(hermitian)
        assert np.isnan(inverse[1]).all()
        np.testing.assert_allclose(inverse[2], scipy.linalg.pinvh(hermitian[2]), atol=1e-13)


def test_pseudo_inverse_satisfies_penroses_conditions(dtype: np.dtype) -> None:
    for m, n, rank in ((6, 4, 2), (4, 6, 4)):
        a = matrix(m, n, rank, dtype)
        p, found = linalg.pinv(a, return_rank=True)
        assert int(found) == rank
        assert p.dtype == dtype
        p = np.asarray(p)
        assert ratio(a @ p @ a - a, a, a, p) < 30
        assert ratio(p @ a @ p - p, p, p, a) < 30
        assert ratio((a @ p).conj().T - a @ p, a, p) < 30
        assert ratio((p @ a).conj().T - p @ a, a, p) < 30
        h = a.conj().T @ a
        p, found = linalg.pinvh(np.tril(h), return_rank=True)
        assert int(found) == rank
        p = np.asarray(p)
        assert ratio(h @ p @ h - h, h, h, p) < 30
        assert ratio(p @ h @ p - p, p, p, h) < 30


def test_tolerances_are_scipys() -> None:
    with jax.enable_x64(True):
        a = np.diag([1.0, 1e-3, 1e-6, 0])
        for given in ({"atol": 1e-4}, {"rtol": 1e-2}, {"atol": 1e-7, "rtol": 1e-7}, {}):
            for ours, theirs in (
                (linalg.pinv, scipy.linalg.pinv),
                (linalg.pinvh, scipy.linalg.pinvh),
            ):
                found, rank = ours(a, return_rank=True, **given)
                expected, expected_rank = theirs(a, return_rank=True, **given)
                np.testing.assert_allclose(found, expected, rtol=1e-12)
                assert rank == expected_rank
        np.testing.assert_allclose(linalg.pinvh(np.triu(a), lower=False), scipy.linalg.pinv(a))


@pytest.mark.parametrize("hermitian", [False, True])
def test_rank_is_numpys(hermitian: bool) -> None:
    with jax.enable_x64(True):
        graded = np.diag(10.0 ** -np.arange(0, 20, 2))
        batch = np.stack([graded, np.zeros_like(graded), np.ones_like(graded), np.eye(10)])
        for given in ({}, {"tol": 1e-5}, {"rtol": 1e-9}):
            expected = np.linalg.matrix_rank(batch, hermitian=hermitian, **given)
            np.testing.assert_array_equal(
                linalg.matrix_rank(batch, hermitian=hermitian, **given), expected
            )


def of_rank_two(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of A = F·G of constant rank, which F and G say without a constraint."""
    return jax.jit(lambda f, g, *rest: function(f @ g, *rest))


@pytest.mark.parametrize(("driver", "m"), [(None, 4), ("gelsy", 2)])
def test_solution_has_a_derivative_at_deficient_rank(driver: str | None, m: int) -> None:
    with jax.enable_x64(True):
        f, g, b = matrix(m, 2, 2, complex), matrix(2, 3, 2, complex), matrix(m, 2, 2, complex)
        solution = of_rank_two(lambda a, b: linalg.lstsq(a, b, 1e-8, lapack_driver=driver)[0])
        check_grads(solution, (f, g, b), order=1, rtol=1e-6, atol=1e-6)


def test_pseudo_inverses_have_derivatives_at_deficient_rank() -> None:
    with jax.enable_x64(True):
        f, g = matrix(4, 2, 2, complex), matrix(2, 3, 2, complex)
        check_grads(of_rank_two(linalg.pinv), (f, g), order=1, rtol=1e-6, atol=1e-6)
        hermitian = jax.jit(lambda f: linalg.pinvh(f @ f.conj().T, lower=False))
        check_grads(hermitian, (f,), order=1, rtol=1e-6, atol=1e-6)


def test_second_derivative_at_repeated_singular_values() -> None:
    with jax.enable_x64(True):
        b, direction = jnp.arange(3.0), matrix(3, 2, 2)

        def slope(a: jax.Array) -> jax.Array:
            return jax.jvp(lambda a: linalg.lstsq(a, b)[0], (a,), (direction,))[1]

        check_grads(slope, (jnp.eye(3, 2),), order=1, modes=["fwd"], rtol=1e-6, atol=1e-6)


def test_empty_and_zero_operands() -> None:
    for m, n in ((0, 3), (3, 0), (1, 1)):
        a = np.zeros((m, n), np.float32)
        for driver in (None, "gelsy"):
            x, _, rank, _ = linalg.lstsq(a, np.ones((m, 2), np.float32), lapack_driver=driver)
            np.testing.assert_array_equal(x, np.zeros((n, 2)))
            assert int(rank) == 0
        np.testing.assert_array_equal(linalg.pinv(a), np.zeros((n, m)))
        assert int(linalg.matrix_rank(a)) == 0
    assert linalg.pinvh(np.zeros((0, 0), np.float32)).shape == (0, 0)


def test_misuse_is_said() -> None:
    a = np.ones((3, 2), np.float32)
    with pytest.raises(ValueError, match=r"lstsq: b: expected shape \[..., 3\], got \[2\]"):
        linalg.lstsq(a, np.ones(2, np.float32))
    with pytest.raises(ValueError, match="lstsq: lapack_driver: expected one of"):
        linalg.lstsq(a, np.ones(3, np.float32), lapack_driver="gels")
    with pytest.raises(ValueError, match="pinv: atol: expected a number ≥ 0, got -1"):
        linalg.pinv(a, atol=-1)
    with pytest.raises(ValueError, match=r"pinvh: a: expected shape \[..., n, n\]"):
        linalg.pinvh(a)
    with pytest.raises(ValueError, match="matrix_rank: expected tol or rtol"):
        linalg.matrix_rank(a, 1.0, rtol=1.0)
