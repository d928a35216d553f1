"""Up- and downdates of Cholesky factors; pivoted and partial factors."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from ratios import LIMIT, adjoint, norm, ratio

from lapax import linalg
from programs import custom_calls, operands

N, K = 5, 2


def changed(dtype, batch=(2,), n=N):
    """C, W and S = Cᴴ·C + W·Wᴴ."""
    o = operands(np.dtype(dtype), n=n, batch=batch)
    return adjoint(np.linalg.cholesky(o.s)), o.b, o.s + o.b @ adjoint(o.b)


@pytest.mark.parametrize("lower", [False, True])
def test_update_and_back(dtype, lower):
    c, w, s = changed(dtype)
    c = adjoint(c) if lower else c
    up = np.asarray(linalg.cholesky_update(c, w, lower=lower))
    product = up @ adjoint(up) if lower else adjoint(up) @ up
    assert ratio(s - product, norm(s), dtype) < LIMIT
    np.testing.assert_array_equal(up, np.tril(up) if lower else np.triu(up))
    down = np.asarray(linalg.cholesky_downdate(up, w, lower=lower))
    assert ratio(down - c, norm(s) / norm(c), dtype) < LIMIT


def test_the_target_serves_every_column():
    c, w, _ = changed("f4")
    assert custom_calls(linalg.cholesky_update, c, w) == ["lapax.cu_cholesky_update_ffi"]
    mapped = jax.vmap(linalg.cholesky_update, (0, None))
    assert custom_calls(mapped, c, w[0]) == ["lapax.cu_cholesky_update_ffi"]


def test_one_vector_and_none():
    c, w, _ = changed("f4", batch=())
    one = linalg.cholesky_update(c, w[:, 0])
    np.testing.assert_allclose(one, linalg.cholesky_update(c, w[:, :1]), rtol=1e-6)
    twice = linalg.cholesky_update(one, w[:, 1])
    np.testing.assert_allclose(twice, linalg.cholesky_update(c, w), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(linalg.cholesky_update(c, w[:, :0]), c)
    assert linalg.cholesky_downdate(np.zeros((0, 0)), np.zeros(0)).shape == (0, 0)
    np.testing.assert_allclose(linalg.cholesky_downdate([[5]], [3]), [[4]])


def test_a_downdate_says_that_definiteness_is_lost():
    """Just inside, on the border, outside, singular, NaN; others in the batch are not touched."""
    with jax.enable_x64(True):
        c = np.broadcast_to(np.eye(3), (5, 3, 3)).copy()
        c[3, 1, 1] = 0
        w = np.zeros((5, 3, 1))
        w[:, 1, 0] = [np.sqrt(1 - 1e-12), 1, 2, 0.5, np.nan]
        down = np.asarray(linalg.cholesky_downdate(c, w))
        assert np.isnan(down).any((-1, -2)).tolist() == [False, True, True, True, True]
        # 1 − (1 − 10⁻¹²), as the rounded w has it.
        left = (1 - w[0, 1, 0]) * (1 + w[0, 1, 0])
        np.testing.assert_allclose(down[0], np.diag([1, np.sqrt(left), 1]), rtol=1e-12)


def test_a_downdate_nearly_to_singular():
    """Graded rows: errors stay those of A, divided by 1 − ‖p‖²."""
    with jax.enable_x64(True):
        c, w, _ = changed("f8", batch=(), n=8)
        c = c * 10.0 ** -np.arange(8)
        p = w[:, 0] / np.linalg.norm(w[:, 0]) * np.sqrt(1 - 1e-6)
        down = np.asarray(linalg.cholesky_downdate(c, c.T @ p))
        exact = c.T @ (np.eye(8) - np.outer(p, p)) @ c
        assert ratio(down.T @ down - exact, norm(c.T @ c), "f8") < LIMIT


@pytest.mark.parametrize("function", [linalg.cholesky_update, linalg.cholesky_downdate])
@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_derivatives(dtype, function):
    with jax.enable_x64(True):
        c, w, _ = changed(dtype, batch=(), n=3)
        # Tangents of a complex factor's diagonal are real: it is a function of the others.
        diagonal, strict = np.diag(c).real, np.triu(c, 1)

        @jax.jit
        def of_parts(diagonal, strict, w):
            return function(jnp.triu(strict, 1) + diagonal * jnp.eye(3), w)

        check_grads(of_parts, (diagonal, strict, w / 4), 1)


def semidefinite(dtype, n, rank, batch=(2,)):
    o = operands(np.dtype(dtype), n=n, batch=batch, seed=1)
    g = o.a[..., :rank]
    return g @ adjoint(g)


def test_pivoted_factor_of_full_rank(dtype):
    s = operands(dtype, n=N, batch=(2,)).s
    r = linalg.pivoted_cholesky(s)
    factor = np.asarray(r.factor)
    assert ratio(s - factor @ adjoint(factor), norm(s), dtype) < LIMIT
    np.testing.assert_array_equal(r.rank, [N, N])
    rows = np.take_along_axis(factor, np.asarray(r.pivots)[..., None], -2)
    np.testing.assert_array_equal(rows, np.tril(rows))
    diagonal = np.diagonal(rows, 0, -2, -1).real
    np.testing.assert_array_equal(diagonal, -np.sort(-diagonal, -1))
    np.testing.assert_array_equal(np.sort(r.pivots, -1), [range(N)] * 2)


@pytest.mark.parametrize("dtype", ["f4", "c8"])
def test_rank_is_found_and_bounded(dtype):
    a = semidefinite(dtype, 6, 3)
    r = linalg.pivoted_cholesky(a)
    np.testing.assert_array_equal(r.rank, [3, 3])
    np.testing.assert_array_equal(r.factor[..., 3:], 0)
    assert ratio(a - np.asarray(r.factor) @ adjoint(r.factor), norm(a), dtype) < LIMIT
    partial = linalg.pivoted_cholesky(a, 2)
    np.testing.assert_allclose(partial.factor, r.factor[..., :2], rtol=1e-5, atol=1e-6)
    assert linalg.pivoted_cholesky(a, tol=1e9).rank.tolist() == [0, 0]
    assert linalg.pivoted_cholesky(a, 0).factor.shape == (2, 6, 0)


def test_pivoted_factor_of_difficult_matrices():
    a = np.stack([np.zeros((3, 3)), np.diag([1, -1, 2]), np.full((3, 3), np.nan), np.ones((3, 3))])
    r = linalg.pivoted_cholesky(a)
    np.testing.assert_array_equal(np.asarray(r.rank)[[0, 1, 3]], [0, 2, 1])
    np.testing.assert_array_equal(r.pivots[1], [2, 0, 1])
    assert np.isnan(r.factor).any((-1, -2)).tolist() == [False, False, True, False]
    assert linalg.pivoted_cholesky(np.zeros((0, 0))).rank == 0
    np.testing.assert_array_equal(linalg.pivoted_cholesky([[4]]).factor, [[2]])


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_derivative_of_a_factor_of_low_rank(dtype):
    with jax.enable_x64(True):
        g = operands(np.dtype(dtype), n=4, batch=(), seed=1).a[:, :2]

        @jax.jit
        def factor(g):
            return linalg.pivoted_cholesky(g @ g.conj().T, 3).factor

        check_grads(factor, (g,), 1)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda c, w: linalg.cholesky_update(w, w), "cholesky_update: c: expected shape"),
        (lambda c, w: linalg.cholesky_downdate(c, w[:, :3]), "cholesky_downdate: w: expected"),
        (lambda c, w: linalg.pivoted_cholesky(w), "pivoted_cholesky: a: expected shape"),
        (lambda c, w: linalg.pivoted_cholesky(c, 9), "rank: expected from 0 to 5, got 9"),
        (lambda c, w: linalg.pivoted_cholesky(c, tol=-1), "tol: expected at least 0, got -1"),
    ],
)
def test_misuse(call, text):
    c, w, _ = changed("f4")
    with pytest.raises(ValueError, match=text):
        call(c, w)
