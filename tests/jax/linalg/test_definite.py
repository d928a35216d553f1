"""Positive definite matrices: one factor, its solutions and derivatives, retries with jitter."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from jax.test_util import check_grads
from ratios import LIMIT, adjoint, norm, ratio

from lapax import linalg
from programs import custom_calls, operands


def test_one_factor_gives_all(dtype):
    o = operands(dtype, n=5, batch=(3,))
    r = linalg.solve_logdet(o.s, o.b)
    exact = np.linalg.solve(o.s.astype("c16"), o.b)
    factor = np.asarray(r.factor)
    assert ratio(o.s - factor @ adjoint(factor), norm(o.s), dtype) < LIMIT
    assert ratio(o.b - o.s @ r.solution, norm(o.s) * norm(r.solution), dtype) < LIMIT
    np.testing.assert_array_equal(factor, np.tril(factor))
    rtol = 30 * np.finfo(dtype).eps
    np.testing.assert_allclose(r.logdet, np.linalg.slogdet(o.s.astype("c16"))[1], rtol=rtol)
    quadratic = np.sum(o.b.conj() * exact, -2).real
    np.testing.assert_allclose(r.quadratic, quadratic, rtol=rtol)
    np.testing.assert_allclose(r.mahalanobis, np.sqrt(quadratic), rtol=rtol)
    assert r.logdet.dtype == r.quadratic.dtype == r.jitter.dtype == np.finfo(dtype).dtype
    np.testing.assert_array_equal(r.jitter, np.zeros(3))


def test_batches_are_loops():
    with jax.enable_x64(True):
        o = operands(np.dtype("f8"), n=5, batch=(2, 3))
        many = linalg.solve_logdet(o.s, o.b[0, 0])
        mapped = jax.vmap(linalg.solve_logdet, (0, None))(o.s[:, 0], o.b[0, 0])
        one = linalg.solve_logdet(o.s[1, 0], o.b[0, 0])
        vector = linalg.solve_logdet(o.s[1, 0], o.b[0, 0, :, 0])
        for name in linalg.SolveLogdet._fields:
            all_, expected = np.asarray(getattr(many, name)), np.asarray(getattr(one, name))
            np.testing.assert_allclose(all_[1, 0], expected, rtol=1e-12, atol=1e-15)
            np.testing.assert_allclose(getattr(mapped, name)[1], expected, rtol=1e-12, atol=1e-15)
        assert vector.solution.shape == (5,)
        assert vector.quadratic.shape == vector.mahalanobis.shape == ()
        np.testing.assert_allclose(vector.quadratic, one.quadratic[0], rtol=1e-12)


def test_one_factorization_for_value_and_gradient():
    o = operands(np.dtype("f4"), n=5, batch=(2,))

    def likelihood(a, b):
        r = linalg.solve_logdet(a, b)
        return jnp.sum(r.quadratic) + jnp.sum(r.logdet)

    calls = custom_calls(jax.value_and_grad(likelihood, (0, 1)), o.s, o.b)
    assert sum("posv_factor" in call for call in calls) == 1
    assert not any("potrf" in call or "cholesky" in call for call in calls)


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_derivatives(dtype):
    with jax.enable_x64(True):
        o = operands(np.dtype(dtype), n=3, batch=(2,))
        check_grads(jax.jit(linalg.solve_logdet), (o.s, o.b), 1)
        gradient = jax.jit(jax.grad(lambda a: jnp.sum(linalg.solve_logdet(a, o.b).logdet)))(o.s)
        # JAX's gradient of a real function is the conjugate of the mathematical one.
        np.testing.assert_allclose(gradient, np.linalg.inv(o.s).conj(), rtol=1e-12, atol=1e-14)


def test_second_derivative():
    with jax.enable_x64(True):
        o = operands(np.dtype("f8"), n=3, batch=())

        def value(a, b):
            r = linalg.solve_logdet(a, b)
            return r.logdet + jnp.sum(r.quadratic) + jnp.sum(r.factor**2)

        check_grads(jax.jit(jax.grad(value, (0, 1))), (o.s, o.b), 1)


def test_retry_with_growing_jitter():
    """Definite, singular, indefinite, zero, hopeless, NaN: each on its own."""
    with jax.enable_x64(True):
        a = np.stack(
            [
                np.diag([2.0, 3, 4]),
                np.ones((3, 3)),
                np.diag([1.0, 1, -1e-7]),
                np.zeros((3, 3)),
                np.diag([1.0, -2, 1]),
                np.full((3, 3), np.nan),
            ]
        )
        b = np.ones(3)
        r = linalg.solve_logdet(a, b, jitter=1e-8)
        np.testing.assert_array_equal(r.jitter[0], 0)
        np.testing.assert_allclose(r.jitter[1], 1e-8)
        np.testing.assert_allclose(r.jitter[2], 1e-6 * (2 - 1e-7) / 3)
        np.testing.assert_allclose(r.jitter[3], 1e-8)
        added = np.asarray(r.jitter)[:, None, None] * np.eye(3)
        expected = np.linalg.solve((a + added)[:4], np.broadcast_to(b[:, None], (4, 3, 1)))[..., 0]
        np.testing.assert_allclose(r.solution[:4], expected, rtol=1e-6)
        assert np.isnan(r.solution[4:]).all()
        assert np.isnan(linalg.solve_logdet(a, b).logdet[2:]).all()
        gradient = jax.grad(lambda a: jnp.sum(linalg.solve_logdet(a, b, jitter=1e-8).logdet))(a)
        np.testing.assert_allclose(gradient[:4], np.linalg.inv((a + added)[:4]), rtol=1e-6)


def test_nan_and_empty_and_one():
    o = operands(np.dtype("f4"), n=5, batch=(3,))
    s = o.s.copy()
    s[1, 2, 2] = -1
    for result in (*linalg.solve_logdet(s, o.b)[:5], linalg.cholesky_of_inverse(s)):
        assert np.isnan(result[1]).any()
        assert np.isfinite(result[::2]).all()
    assert linalg.solve_logdet(np.zeros((0, 0)), np.zeros((0, 2)), jitter=1e-6).logdet == 0
    np.testing.assert_allclose(linalg.solve_logdet([[4]], [2]).solution, [0.5])


@pytest.mark.parametrize("lower", [False, True])
def test_cho_factor_and_solve(dtype, lower):
    o = operands(dtype, n=5, batch=(2,))
    triangle = np.tril(o.s) if lower else np.triu(o.s)
    c, is_lower = linalg.cho_factor(triangle, lower=lower)
    assert is_lower is lower
    expected = np.stack([np.triu(scipy.linalg.cholesky(s)) for s in o.s])
    expected = adjoint(expected) if lower else expected
    assert ratio(c - expected, norm(expected), dtype) < LIMIT
    x = linalg.cho_solve((c, lower), o.b)
    assert ratio(o.b - o.s @ x, norm(o.s) * norm(x), dtype) < LIMIT
    shared = linalg.cho_solve((c[0], lower), o.b)
    np.testing.assert_allclose(shared[0], x[0], rtol=30 * np.finfo(dtype).eps)
    assert linalg.cho_solve((c, lower), o.b[0, :, 0]).shape == (2, 5)


@pytest.mark.parametrize("lower", [False, True])
def test_factor_of_the_inverse(dtype, lower):
    o = operands(dtype, n=5, batch=(2,))
    factor = np.asarray(linalg.cholesky_of_inverse(o.s, lower=lower))
    inverse = factor @ adjoint(factor) if lower else adjoint(factor) @ factor
    assert ratio(o.s @ inverse - np.eye(5), norm(o.s) * norm(inverse), dtype) < LIMIT
    np.testing.assert_array_equal(factor, np.tril(factor) if lower else np.triu(factor))


def test_triangular_inverse(dtype):
    o = operands(dtype, n=5, batch=(2,))
    for lower in (False, True):
        part = np.tril(o.a) if lower else np.triu(o.a)
        inverse = linalg.tri_inverse(o.a, lower=lower)
        assert ratio(part @ inverse - np.eye(5), norm(part) * norm(inverse), dtype) < LIMIT
        unit = part - part * np.eye(5) + np.eye(5)
        inverse = linalg.tri_inverse(o.a / 5, lower=lower, unit_diagonal=True)
        part = (unit - np.eye(5)) / 5 + np.eye(5)
        assert ratio(part @ inverse - np.eye(5), norm(part) * norm(inverse), dtype) < LIMIT
    singular = np.stack([np.eye(2), np.diag([1.0, 0])])
    assert np.isnan(linalg.tri_inverse(singular)).all((-1, -2)).tolist() == [False, True]


def test_derivatives_of_compositions():
    with jax.enable_x64(True):
        o = operands(np.dtype("f8"), n=3, batch=())

        def both(a, b):
            factor = linalg.cholesky_of_inverse(a)
            return factor, linalg.cho_solve(linalg.cho_factor(a), b), linalg.tri_inverse(a)

        check_grads(jax.jit(both), (o.s, o.b), 1)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda s, b: linalg.solve_logdet(b, b), r"solve_logdet: a: expected .* got \[5, 2\]"),
        (lambda s, b: linalg.solve_logdet(s, b[1:]), r"solve_logdet: b: expected .* got \[4, 2\]"),
        (lambda s, b: linalg.solve_logdet(s, b, jitter=-1.0), "jitter at least 0"),
        (lambda s, b: linalg.cho_solve((s, True), b[1:]), "cho_solve: b"),
        (lambda s, b: linalg.cho_factor(b), "cho_factor: a"),
        (lambda s, b: linalg.tri_inverse(b), "tri_inverse: a"),
        (lambda s, b: linalg.cholesky_of_inverse(b), "cholesky_of_inverse: a"),
        (lambda s, b: linalg.cho_factor(s.astype("f2")), "cho_factor: .* compute_dtype"),
    ],
)
def test_misuse(call, text):
    o = operands(np.dtype("f4"), n=5, batch=())
    with pytest.raises(ValueError, match=text):
        jax.jit(call)(o.s, o.b)
