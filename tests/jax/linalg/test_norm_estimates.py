"""onenormest and the condition numbers from factors."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse.linalg

from lapax import linalg


def matrices(dtype, n=12, batch=20):
    g = np.random.default_rng(0).standard_normal((2, batch, n, n))
    a = g[0] + (1j * g[1] if np.dtype(dtype).kind == "c" else 0)
    return a.astype(dtype)


def exact_rcond(a):
    inverse = np.linalg.inv(np.asarray(a).astype(complex))
    return 1 / (np.abs(a).sum(-2).max(-1) * np.abs(inverse).sum(-2).max(-1))


def test_estimates_are_attained_bounds(dtype):
    a = matrices(dtype)
    estimate, v, w = jax.jit(lambda a: linalg.onenormest(a, compute_v=True, compute_w=True))(a)
    norms = np.abs(a).sum(-2).max(-1)
    rounding = 100 * np.finfo(dtype).eps
    assert (estimate <= norms * (1 + rounding)).all()
    assert (estimate >= norms / 3).all()
    assert np.mean(estimate / norms) > 0.9
    np.testing.assert_allclose(np.abs(v).sum(-1), 1, rtol=rounding)
    np.testing.assert_allclose(np.abs(w).sum(-1), estimate, rtol=rounding)
    np.testing.assert_allclose(np.einsum("...ij,...j", a, v), w, rtol=rounding, atol=rounding)
    for i in (0, 7):
        np.testing.assert_array_equal(estimate[i], linalg.onenormest(a[i]))


def test_exact_on_matrices_without_cancellation():
    with jax.enable_x64(True):
        a = np.abs(matrices(np.float64, batch=3))
        np.testing.assert_allclose(linalg.onenormest(a), np.abs(a).sum(-2).max(-1))
        for i in range(3):
            assert linalg.onenormest(a[i]) == pytest.approx(scipy.sparse.linalg.onenormest(a[i]))


def test_condition_numbers(dtype):
    a = matrices(dtype)
    a[0] *= np.logspace(0, -4, a.shape[-1])
    a[1] = 0
    norms = np.abs(a).sum(-2).max(-1)
    definite = a @ a.conj().swapaxes(-1, -2) + np.eye(a.shape[-1], dtype=dtype)
    of_definite = np.abs(definite).sum(-2).max(-1)
    upper = np.triu(a) + 4 * np.eye(a.shape[-1], dtype=dtype)

    @jax.jit
    def all_of(a, definite, upper):
        return (
            linalg.lu_rcond(linalg.lu_factor(a), norms),
            linalg.cho_rcond(linalg.cho_factor(definite), of_definite),
            linalg.cho_rcond(linalg.cho_factor(definite, lower=True), of_definite),
            linalg.triangular_rcond(upper),
            linalg.triangular_rcond(upper.mT, lower=True),
        )

    lu, by_upper, by_lower, of_upper, of_lower = all_of(a, definite, upper)
    assert lu[1] == 0
    for found, matrix in (
        (lu[2:], a[2:]),
        (lu[:1], a[:1]),
        (by_upper, definite),
        (by_lower, definite),
        (of_upper, upper),
        (of_lower, np.swapaxes(upper, -1, -2)),
    ):
        exact = exact_rcond(matrix)
        assert (found >= exact * 0.99).all()
        assert (found <= exact * 3).all()
        assert np.mean(found / exact) < 1.15


def test_unit_diagonals_empty_and_nan():
    with jax.enable_x64(True):
        a = np.tril(matrices(np.float64, batch=1)[0])
        exact = exact_rcond(np.tril(a, -1) + np.eye(len(a)))
        assert linalg.triangular_rcond(a, True, True) == pytest.approx(exact, rel=2)
        assert linalg.triangular_rcond(np.diag([1.0, 0.0])) == 0
        assert linalg.triangular_rcond(np.zeros((0, 0))) == 1
        assert linalg.onenormest(np.zeros((0, 0))) == 0
        pair = np.stack([np.eye(2), np.full((2, 2), np.nan)])
        found = linalg.lu_rcond(linalg.lu_factor(pair), np.array([1.0, np.nan]))
        np.testing.assert_array_equal(found, [1, np.nan])


def test_derivative_is_that_of_the_vector():
    with jax.enable_x64(True):
        a = jnp.asarray(matrices(np.float64, batch=1)[0])
        direction = jnp.asarray(matrices(np.float64, batch=2)[1])
        _, tangent = jax.jvp(linalg.onenormest, (a,), (direction,))
        step = 1e-6
        up, down = (linalg.onenormest(a + sign * step * direction) for sign in (1, -1))
        np.testing.assert_allclose(tangent, (up - down) / (2 * step), rtol=1e-6)


def test_misuse():
    a = np.eye(3, dtype=np.float32)
    for call, text in (
        (lambda: linalg.onenormest(a[:2]), r"onenormest: A: expected shape \[..., n, n\]"),
        (lambda: linalg.onenormest(a, t=0), "onenormest: t: expected a number ≥ 1, got 0"),
        (
            lambda: linalg.lu_rcond(linalg.lu_factor(a), np.ones(2, np.float32)),
            r"lu_rcond: anorm: expected shape \[\], got \[2\]",
        ),
    ):
        with pytest.raises(ValueError, match=text):
            call()
