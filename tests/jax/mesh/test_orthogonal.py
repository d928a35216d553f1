"""QR, tall and skinny ones too, and least squares of one matrix over many devices."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sharded import CASES, DTYPES, FULL, LIMIT, SPECS, Case, P, norm1, ratio, wide

from lapax import mesh

each_case = pytest.mark.parametrize("case", CASES if FULL else CASES[2:5], ids=str)


def check_qr(a, q, r, case):
    q, r, size = wide(q), wide(r), max(a.shape)
    assert not np.tril(r, -1).any()
    assert (np.diag(r).imag == 0).all()
    assert (np.diag(r).real >= 0).all()
    assert ratio(q @ r - wide(a), max(norm1(a), 1e-30), case, size) < LIMIT
    assert ratio(q.conj().T @ q - np.eye(q.shape[1]), 1, case, size) < LIMIT


@each_case
def test_qr_by_panels(case):
    """Square, tall and wide by turns."""
    with case.x64:
        m = case.n + 3 * (case.n % 3 - 1) if case.n > 5 else case.n
        a = case.random(m, case.n)
        q, r = mesh.qr(case.put(a), block=case.block)
        check_qr(a, q, r, case)


@pytest.mark.parametrize(
    ("shape", "spec"), [((2, 2), SPECS[3]), ((4, 2), SPECS[0]), ((3, 1), SPECS[1])]
)
def test_tall_and_skinny(shape, spec):
    case = Case(shape, 6, DTYPES[2], spec, None)
    a = case.random(128 if spec != P() else 71, 6)
    text = jax.jit(mesh.qr).lower(case.put(a)).as_text()
    assert "while" not in text
    check_qr(a, *mesh.qr(case.put(a)), case)


@pytest.mark.parametrize("rank", [0, 9])
def test_rank_deficient(rank):
    case = Case((2, 2), 22, DTYPES[0], P("x", "y"), 3)
    a = case.random(22, rank) @ case.random(rank, 22, seed=1)
    check_qr(a, *mesh.qr(case.put(a), block=3), case)


def test_not_a_number():
    case = Case((2, 2), 22, DTYPES[0], P("x", "y"), 3)
    a = case.random(22, 22)
    a[20, 1] = np.nan
    assert np.isnan(mesh.qr(case.put(a), mode="r", block=3)).any()


@pytest.mark.parametrize(("m", "n"), [(40, 24), (24, 40)])
def test_lstsq(m, n):
    case = Case((2, 2), 24, DTYPES[3], P("x", "y"), None)
    with case.x64:
        a, b = case.random(m, n), case.random(m, 2, seed=1)
        x = wide(mesh.lstsq(case.put(a), case.put(b)))
        expected = np.linalg.lstsq(a, b)[0]
        assert np.abs(x - expected).max() < 1e-12 * np.abs(expected).max()
        if m < n and not FULL:
            return
        weights = case.random(n, 2, seed=2)
        value = lambda solve: lambda a: jnp.sum((solve(a) * weights).real)  # noqa: E731
        got = jax.grad(value(lambda a: mesh.lstsq(a, case.put(b))))(case.put(a))
        right = jax.grad(value(lambda a: jnp.linalg.pinv(a) @ b))(jnp.asarray(a))
        assert np.abs(got - right).max() < 1e-11 * np.abs(right).max()


def positive(q, r):
    """With a real diagonal of R that is not negative."""
    sign = jnp.sign(jnp.diagonal(r).real)
    return q * sign, r * sign[:, None]


def test_gradient_is_that_of_one_device():
    case = Case((2, 2), 12, DTYPES[3], P("x", "y"), 3)
    with case.x64:
        a = case.random(16, 12)
        weights = case.random(16, 12, seed=1), case.random(12, 12, seed=2)

        def value(factors):
            return sum(jnp.sum((x * w).real) for x, w in zip(factors, weights, strict=True))

        got = jax.grad(lambda a: value(mesh.qr(a, block=3)))(case.put(a))
        right = jax.grad(lambda a: value(positive(*jnp.linalg.qr(a))))(jnp.asarray(a))
        assert np.abs(got - right).max() < 1e-11 * np.abs(right).max()


def test_mode_r_and_misuse():
    case = Case((2, 2), 12, DTYPES[0], P("x", "y"), None)
    a = case.put(case.random(12, 12))
    r = mesh.qr(a, mode="r")
    np.testing.assert_allclose(np.abs(r), np.abs(np.linalg.qr(a)[1]), atol=1e-4)
    assert r.sharding.is_equivalent_to(a.sharding, 2)
    with pytest.raises(ValueError, match="qr: mode: expected one of 'reduced', 'r', got 'full'"):
        mesh.qr(a, mode="full")
    with pytest.raises(ValueError, match="lstsq: b: expected 12 rows, got 11"):
        mesh.lstsq(a, np.zeros(11, np.float32))
    with pytest.raises(ValueError, match="at least 12 rows for a derivative, got 8"):
        jax.grad(lambda a: mesh.qr(a, mode="r").sum())(case.put(case.random(8, 12)))
