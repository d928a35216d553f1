"""qr, rq, qr_multiply and tria: SciPy's factors in each mode, and derivatives of R alone."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from jax.test_util import check_grads

from lapax import linalg

SHAPES = [(5, 3), (3, 5), (4, 4)]


def matrix(m: int, n: int, dtype: Any = np.complex128, seed: int = 0) -> np.ndarray:
    g = np.random.default_rng(seed).standard_normal((2, m, n))
    return (g[0] + 1j * g[1] if np.dtype(dtype).kind == "c" else g[0]).astype(dtype)


def flat(results: Any) -> list[Any]:
    return jax.tree.leaves(results if isinstance(results, tuple) else (results,))


def same(ours: Any, theirs: Any) -> None:
    for x, y in zip(flat(ours), flat(theirs), strict=True):
        assert x.shape == y.shape
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("mode", ["full", "r", "economic", "raw"])
@pytest.mark.parametrize("pivoting", [False, True])
def test_qr_is_scipys_in_each_mode(mode: str, pivoting: bool) -> None:
    with jax.enable_x64(True):
        for shape in SHAPES:
            a = matrix(*shape)
            ours = linalg.qr(a, mode=mode, pivoting=pivoting)
            same(ours, scipy.linalg.qr(a, mode=mode, pivoting=pivoting))


def test_residuals_of_graded_and_deficient_matrices(dtype: np.dtype) -> None:
    """‖A − Q·R‖ and ‖1 − QᴴQ‖, as LAPACK's xQRT01 divides them."""
    a = matrix(6, 4, dtype)
    eps = np.finfo(dtype).eps
    kinds = [a * 10.0 ** -np.arange(0, 12, 3), a @ np.ones((4, 4)), np.zeros((6, 4)), a]
    batch = np.stack([kind.astype(dtype) for kind in kinds])
    for positive in (False, True):
        q, r = map(np.asarray, linalg.qr(batch, mode="economic", positive_diagonal=positive))
        assert q.dtype == dtype
        size = np.linalg.norm(batch, axis=(-2, -1))
        assert (np.linalg.norm(batch - q @ r, axis=(-2, -1)) <= 30 * 6 * eps * size).all()
        gram = q.conj().swapaxes(-1, -2) @ q
        assert np.linalg.norm(gram - np.eye(4)) < 30 * 6 * eps
        if positive:
            diagonal = np.diagonal(r, axis1=-2, axis2=-1)
            assert (diagonal.real >= 0).all()
            assert (diagonal.imag == 0).all()


def test_positive_diagonal_is_cholesky() -> None:
    with jax.enable_x64(True):
        for m, n in ((5, 3), (4, 4)):
            a = matrix(m, n)
            (r,) = linalg.qr(a, mode="r", positive_diagonal=True)
            expected = scipy.linalg.cholesky(a.conj().T @ a)
            np.testing.assert_allclose(r[:n], expected, atol=1e-12)
        factors = jax.jit(lambda a: linalg.qr(a, mode="economic", positive_diagonal=True))
        check_grads(factors, (matrix(4, 3),), order=1, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("mode", ["full", "economic", "r"])
def test_rq_is_scipys_up_to_phases(mode: str) -> None:
    with jax.enable_x64(True):
        for shape in SHAPES:
            a = matrix(*shape)
            ours, theirs = linalg.rq(a, mode=mode), scipy.linalg.rq(a, mode=mode)
            for x, y in zip(flat(ours), flat(theirs), strict=True):
                assert x.shape == y.shape
            np.testing.assert_allclose(np.abs(flat(ours)[0]), np.abs(flat(theirs)[0]), atol=1e-13)
            if mode != "r":
                r, q = map(np.asarray, ours)
                np.testing.assert_allclose(r @ q, a, atol=1e-13)
                np.testing.assert_allclose(q @ q.conj().T, np.eye(len(q)), atol=1e-13)
                assert not np.tril(r, r.shape[1] - r.shape[0] - 1).any()


@pytest.mark.parametrize("mode", ["left", "right"])
def test_products_with_q_are_scipys(mode: str) -> None:
    with jax.enable_x64(True):
        for m, n in SHAPES[:2]:
            a, k = matrix(m, n), min(m, n)
            c = matrix(k, 2, seed=1) if mode == "left" else matrix(2, m, seed=1)
            vector = c[:, 0] if mode == "left" else c[0]
            for options in ({}, {"conjugate": True}, {"pivoting": True}):
                ours = linalg.qr_multiply(a, c, mode, **options)
                same(ours, scipy.linalg.qr_multiply(a, c, mode, **options))
            same(linalg.qr_multiply(a, vector, mode), scipy.linalg.qr_multiply(a, vector, mode))
            if mode == "left" and m > n:
                longer = np.concatenate([c, np.zeros((m - n, 2))])
                read = linalg.qr_multiply(a, longer, mode, overwrite_c=True)
                same(read, scipy.linalg.qr_multiply(a, longer, mode, overwrite_c=True))
        product = jax.jit(lambda a, c: linalg.qr_multiply(a, c, "right")[0])
        check_grads(product, (matrix(4, 2), matrix(2, 4)), order=1, rtol=1e-6, atol=1e-6)


def test_stacked_blocks_give_the_square_root_of_the_sum(dtype: np.dtype) -> None:
    a, b = matrix(2, 4, dtype), matrix(4, 4, dtype, seed=1)
    b[:, 1] = 0
    for blocks in ((a, b), (a,), (b,)):
        r = np.asarray(linalg.tria(*blocks))
        lower = np.asarray(linalg.tria(*(x.conj().T for x in blocks), lower=True))
        total = sum(x.conj().T @ x for x in blocks)
        assert r.dtype == dtype
        assert (np.diag(r).real >= 0).all()
        limit = 30 * 4 * np.finfo(dtype).eps * np.linalg.norm(total)
        assert np.linalg.norm(r.conj().T @ r - total) < limit
        np.testing.assert_allclose(lower, r.conj().T, atol=limit)
    several = linalg.tria(np.stack([a, 2 * a, np.nan * a]), b)
    np.testing.assert_allclose(several[0], linalg.tria(a, b), atol=limit)
    assert np.isnan(several[2]).any()


def test_stacked_blocks_have_a_derivative_where_one_is_deficient() -> None:
    with jax.enable_x64(True):
        f, g, b = matrix(4, 1), matrix(1, 3), matrix(4, 3)
        both = jax.jit(lambda f, g, b: linalg.tria(f @ g, b, lower=True))
        check_grads(both, (f, g, b), order=1, rtol=1e-6, atol=1e-6)

        def known_state(x: jax.Array) -> jax.Array:
            return linalg.tria(jnp.zeros((3, 3)), jnp.pad(x, ((0, 0), (1, 0))))

        check_grads(jax.jit(known_state), (matrix(3, 2),), order=1, rtol=1e-6, atol=1e-6)


def test_stacked_blocks_of_deficient_rank_have_a_derivative_of_their_sum() -> None:
    with jax.enable_x64(True):

        def total(x: jax.Array, y: jax.Array) -> jax.Array:
            r = linalg.tria(jnp.stack([0 * x, x, 2 * x, y], axis=1))
            return r.conj().T @ r

        x, y = matrix(5, 2, float).T
        check_grads(jax.jit(total), (x, y), order=1, rtol=1e-6, atol=1e-6)
        slope = jax.jit(lambda x: jax.jvp(lambda x: total(x, y), (x,), (y,))[1])
        check_grads(slope, (x,), order=1, modes=["fwd"], rtol=1e-6, atol=1e-6)


def test_empty_operands() -> None:
    for m, n in ((0, 3), (3, 0)):
        a = np.zeros((2, m, n), np.float32)
        for mode in ("full", "economic", "raw"):
            same(
                linalg.qr(a, mode=mode, pivoting=True)[-1],
                np.broadcast_to(np.arange(n, dtype=np.int32), (2, n)),
            )
        q, r = linalg.qr(a)
        np.testing.assert_array_equal(q, np.broadcast_to(np.eye(m), (2, m, m)))
        assert r.shape == a.shape
        same(linalg.rq(a[0]), scipy.linalg.rq(a[0]))
    assert linalg.tria(np.zeros((0, 2), np.float32)).shape == (2, 2)


def test_misuse_is_said() -> None:
    a = np.ones((3, 2), np.float32)
    with pytest.raises(ValueError, match="qr: mode: expected one of 'full', 'r'"):
        linalg.qr(a, mode="reduced")
    with pytest.raises(ValueError, match="qr: positive_diagonal: expected one of False"):
        linalg.qr(a, mode="raw", positive_diagonal=True)
    with pytest.raises(ValueError, match="qr_multiply: c: expected 3 columns, got 2"):
        linalg.qr_multiply(a, a)
    with pytest.raises(ValueError, match=r"tria: blocks\[1\]: expected 2 columns, got 3"):
        linalg.tria(a, a.T)
    with pytest.raises(ValueError, match="tria: expected at least one block"):
        linalg.tria()
