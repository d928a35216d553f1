"""Banded systems and factors against SciPy, and by residual ratios; derivatives; spectra."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg as sl
from jax.test_util import check_grads

from lapax import linalg

LIMIT = 30


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def normal(rng: np.random.Generator, dtype: Any, *shape: int) -> np.ndarray:
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def dense(ab: np.ndarray, upper: int) -> np.ndarray:
    """The matrix, one alone."""
    bands, n = ab.shape
    a = np.zeros((n, n), ab.dtype)
    for p in range(bands):
        for j in range(n):
            if 0 <= j + p - upper < n:
                a[j + p - upper, j] = ab[p, j]
    return a


def hermitian(ab: np.ndarray, lower: bool) -> np.ndarray:
    half = dense(ab, 0 if lower else len(ab) - 1)
    strict = half - np.diag(np.diag(half))
    return strict + strict.conj().T + np.diag(np.diag(half).real)


def definite(
    rng: np.random.Generator, dtype: Any, beside: int, n: int, lower: bool, *batch: int
) -> np.ndarray:
    """Diagonally dominant, with NaN where nothing is to be read."""
    ab = normal(rng, dtype, *batch, beside + 1, n)
    ab[..., 0 if lower else beside, :] = 5 * beside + 1
    return outside(ab, 0 if lower else beside, np.nan)


def outside(ab: np.ndarray, upper: int, value: float) -> np.ndarray:
    row = np.arange(ab.shape[-2])[:, None] - upper + np.arange(ab.shape[-1])
    return np.where((row >= 0) & (row < ab.shape[-1]), ab, np.asarray(value, ab.dtype))


def ratio(a: np.ndarray, x: np.ndarray, b: np.ndarray) -> float:
    eps = np.finfo(x.dtype).eps / 2
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    a, x, b = (y.astype(wide) for y in (a, x, b))
    norm = np.linalg.norm(a, 1) * np.linalg.norm(x.reshape(len(a), -1), 1)
    return float(np.linalg.norm((a @ x - b).reshape(len(a), -1), 1) / (norm * eps))


BANDS = [(0, 0), (1, 1), (2, 1), (0, 3), (9, 12)]


@pytest.mark.parametrize("bands", BANDS)
def test_solve_banded_is_scipys(bands: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    lower, upper = bands
    for dtype in (np.float64, np.complex128):
        ab = normal(rng, dtype, lower + upper + 1, 7)
        for b in (normal(rng, dtype, 7), normal(rng, dtype, 7, 3)):
            x = linalg.solve_banded(bands, ab, b)
            np.testing.assert_allclose(x, sl.solve(dense(ab, upper), b), rtol=1e-9, atol=1e-9)


def test_residuals_in_all_dtypes(dtype: Any) -> None:
    rng = np.random.default_rng(2)
    n = 40
    ab = outside(normal(rng, dtype, 4, n), 1, np.nan)
    b = normal(rng, dtype, n, 2)
    x = np.asarray(linalg.solve_banded((2, 1), ab, b))
    assert x.dtype == b.dtype
    assert ratio(dense(ab, 1), x, b) < LIMIT
    for lower in (False, True):
        ab = definite(rng, dtype, 2, n, lower)
        a = hermitian(ab, lower)
        x = np.asarray(linalg.solveh_banded(ab, b, lower=lower))
        assert ratio(a, x, b) < LIMIT
        factor = np.asarray(linalg.cholesky_banded(ab, lower=lower))
        half = dense(factor, 0 if lower else 2)
        product = half @ half.conj().T if lower else half.conj().T @ half
        eps = np.finfo(dtype).eps / 2
        error = np.linalg.norm(product - a, 1) / (n * np.linalg.norm(a, 1) * eps)
        assert error < LIMIT
        assert ratio(a, np.asarray(linalg.cho_solve_banded((factor, lower), b)), b) < LIMIT


def test_batches_are_loops_and_broadcast() -> None:
    rng = np.random.default_rng(3)
    ab, b = normal(rng, np.float64, 3, 1, 4, 9), normal(rng, np.float64, 5, 9, 2)
    x = linalg.solve_banded((1, 2), ab, b)
    assert x.shape == (3, 5, 9, 2)
    for i, j in np.ndindex(3, 5):
        alone = linalg.solve_banded((1, 2), ab[i, 0], b[j])
        np.testing.assert_allclose(x[i, j], alone, rtol=1e-10, atol=1e-10)
    mapped = jax.vmap(lambda ab: linalg.solve_banded((1, 2), ab, b[0]))(ab[:, 0])
    np.testing.assert_array_equal(mapped, linalg.solve_banded((1, 2), ab[:, 0], b[0]))
    h = definite(rng, np.float64, 2, 9, True, 6)
    whole = linalg.solveh_banded(h, b[:1], lower=True)
    factor = linalg.cholesky_banded(h, lower=True)
    by_factor = linalg.cho_solve_banded((factor, True), b[:1])
    for i in range(6):
        np.testing.assert_allclose(whole[i], sl.solve(hermitian(h[i], True), b[0]), atol=1e-12)
    np.testing.assert_allclose(by_factor, whole, atol=1e-12)


@pytest.mark.parametrize("sides", [(5,), (5, 4), (2, 3, 5, 4)])
def test_batches_of_bandwidths(sides: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    ab, b, bands = (
        normal(rng, float, 2, 3, 3, 5),
        normal(rng, float, *sides),
        ([2, 1, 0], [0, 1, 2]),
    )
    x = jax.jit(lambda ab, b: linalg.solve_banded(bands, ab, b))(ab, b)
    np.testing.assert_allclose(x, sl.solve_banded(bands, ab, b), rtol=1e-9)
    with pytest.raises(ValueError, match="solve_banded: ab: expected 4 rows, l \\+ u \\+ 1, got 3"):
        linalg.solve_banded(([2, 1, 1], [0, 1, 2]), ab, b)
    with pytest.raises(ValueError, match=r"solve_banded: batch .*: l_and_u \[2\], ab \[2, 3\]"):
        linalg.solve_banded(([2, 1], [0, 1]), ab, b)


def test_what_has_no_solution_is_nan_alone() -> None:
    rng = np.random.default_rng(4)
    ab, h = normal(rng, np.float64, 5, 3, 6), definite(rng, np.float64, 1, 6, False, 5)
    ab[1], h[2, 1, 3] = 0, -1
    ab[3, 1, 2] = np.nan
    b = np.ones((6, 1))
    for batch in (slice(None), slice(1, 4)):
        x = np.isnan(np.asarray(linalg.solve_banded((1, 1), ab[batch], b)))
        some = [False, True, False, True, False][batch]
        assert x.any((-2, -1)).tolist() == some
        x = np.isnan(np.asarray(linalg.solveh_banded(h[batch], b)))
        assert x.all((-2, -1)).tolist() == [False, False, True, False, False][batch]
        f = np.isnan(np.asarray(linalg.cholesky_banded(h[batch])))
        assert f[:, 1].all(-1).tolist() == [False, False, True, False, False][batch]


@pytest.mark.parametrize("kind", ["graded", "nearly singular", "zero", "1 x 1", "0 x 0"])
def test_kinds(kind: str) -> None:
    rng = np.random.default_rng(5)
    n = {"1 x 1": 1, "0 x 0": 0}.get(kind, 30)
    ab = normal(rng, np.float64, 4, n)
    b = normal(rng, np.float64, n)
    if kind == "graded":
        ab *= 2.0 ** -np.arange(n)
    if kind == "nearly singular":
        ab[:, -1] = 1e-15 * ab[:, -1]
    if kind == "zero":
        ab *= 0
    x = np.asarray(linalg.solve_banded((2, 1), ab, b))
    assert x.shape == (n,)
    if kind == "zero":
        assert np.isnan(x).all()
    elif n:
        assert ratio(dense(ab, 1), x, b) < LIMIT


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_derivatives(dtype: Any) -> None:
    rng = np.random.default_rng(6)
    ab = outside(normal(rng, dtype, 2, 4, 5), 1, 0)
    ab[:, 1] += 4
    b = normal(rng, dtype, 2, 5, 2)
    solve = jax.jit(lambda ab, b: linalg.solve_banded((2, 1), ab, b))
    check_grads(solve, (ab, b), 2 if dtype == np.float64 else 1, atol=1e-5, rtol=1e-5)
    for lower in (False, True):
        h = outside(definite(rng, dtype, 2, 5, lower), 0 if lower else 2, 0)

        @jax.jit
        def both(h: Any, b: Any, lower: bool = lower) -> Any:
            factor = linalg.cholesky_banded(h, lower=lower)
            x = linalg.solveh_banded(h, b, lower=lower)
            return factor, x, linalg.cho_solve_banded((factor, lower), b)

        check_grads(both, (h, b[0]), 1, atol=1e-5, rtol=1e-5)


def test_cholesky_derivative_is_the_dense_one() -> None:
    rng = np.random.default_rng(7)
    h = outside(definite(rng, np.complex128, 3, 8, True), 0, 0)
    dh = outside(normal(rng, np.complex128, 4, 8), 0, np.nan)
    _, got = jax.jvp(lambda h: linalg.cholesky_banded(h, lower=True), (h,), (dh,))
    _, expected = jax.jvp(jnp.linalg.cholesky, (hermitian(h, True),), (hermitian(dh, True),))
    np.testing.assert_allclose(dense(np.asarray(got), 0), expected, atol=1e-12)


def test_cost_is_linear_in_the_order() -> None:
    """What is traced for a large order has no operand that is larger than the band."""
    ab = jax.ShapeDtypeStruct((3, 10**6), np.float32)
    b = jax.ShapeDtypeStruct((10**6,), np.float32)
    for of in (
        lambda ab, b: linalg.solve_banded((1, 1), ab, b).sum(),
        lambda ab, b: linalg.solveh_banded(ab, b).sum(),
        lambda ab, b: linalg.cholesky_banded(ab).sum(),
    ):
        jaxpr = str(jax.make_jaxpr(jax.grad(of))(ab, b))
        assert "1000000,1000000" not in jaxpr


def test_compute_dtype() -> None:
    ab, b = jnp.ones((1, 3), jnp.bfloat16), jnp.ones(3, jnp.bfloat16)
    with pytest.raises(ValueError, match="cho_solve_banded: arrays of dtype bfloat16"):
        linalg.cho_solve_banded((ab, True), b)
    x = linalg.cho_solve_banded((ab, True), b, compute_dtype=np.float32)
    assert x.dtype == jnp.bfloat16


def test_order_zero_without_diagonals() -> None:
    factor = linalg.cholesky_banded(np.ones((0, 0)))
    assert factor.shape == (0, 0)
    for b in (np.ones(0), np.ones((0, 2))):
        assert linalg.cho_solve_banded((factor, True), b).shape == b.shape
        assert linalg.solveh_banded(factor, b).shape == b.shape


def test_errors_name_function_and_argument() -> None:
    ab, b = jnp.ones((3, 5)), jnp.ones(4)
    with pytest.raises(ValueError, match="solve_banded: ab: expected 4 rows, l \\+ u \\+ 1, got 3"):
        linalg.solve_banded((1, 2), ab, b)
    with pytest.raises(ValueError, match="solve_banded: l_and_u: expected no negative number"):
        linalg.solve_banded((-1, 3), ab, b)
    with pytest.raises(ValueError, match=r"solveh_banded: b: expected shape \[..., 5\], got \[4\]"):
        linalg.solveh_banded(ab, b)
    with pytest.raises(ValueError, match="cholesky_banded: ab: expected at least one diagonal"):
        linalg.cholesky_banded(jnp.ones((0, 5)))
