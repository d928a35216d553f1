"""qr_update, qr_insert and qr_delete: the decomposition of the matrix that NumPy changes."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
import scipy.linalg
from jax.test_util import check_grads

from lapax import linalg


def matrix(*shape: int, dtype: Any = np.complex128, seed: int = 0) -> np.ndarray:
    g = np.random.default_rng(seed).standard_normal((2, *shape))
    return (g[0] + 1j * g[1] if np.dtype(dtype).kind == "c" else g[0]).astype(dtype)


def check(factors: Any, a: np.ndarray, economic: bool) -> None:
    """Shapes, ‖A − Q·R‖, ‖1 − QᴴQ‖, and R's lower triangle."""
    q, r = map(np.asarray, factors)
    m, n = a.shape[-2:]
    k = min(m, n) if economic else m
    assert (q.shape, r.shape) == ((m, k), (k, n))
    assert q.dtype == r.dtype == a.dtype
    limit = 30 * m * np.finfo(a.dtype).eps
    assert np.linalg.norm(a - q @ r) < limit * np.linalg.norm(a)
    assert np.linalg.norm(np.eye(k) - q.conj().T @ q) < limit
    assert not np.tril(r, -1).any()


@pytest.mark.parametrize("mode", ["full", "economic"])
def test_updates_of_rank_one_and_two(dtype: np.dtype, mode: str) -> None:
    a = matrix(5, 3, dtype=dtype)
    q, r = linalg.qr(a, mode=mode)
    u, v = matrix(5, 2, dtype=dtype, seed=1), matrix(3, 2, dtype=dtype, seed=2)
    check(linalg.qr_update(q, r, u, v), a + u @ v.conj().T, mode == "economic")
    in_range = a @ np.ones(3, dtype)
    changed = linalg.qr_update(q, r, in_range, v[:, 0])
    check(changed, a + np.outer(in_range, v[:, 0].conj()), mode == "economic")


@pytest.mark.parametrize("mode", ["full", "economic"])
@pytest.mark.parametrize("which", ["row", "col"])
def test_rows_and_columns_are_inserted_and_deleted(mode: str, which: str) -> None:
    economic, axis = mode == "economic", 0 if which == "row" else 1
    with jax.enable_x64(True):
        a = matrix(6, 3)
        q, r = linalg.qr(a, mode=mode)
        several = matrix(2, 3, seed=1) if which == "row" else matrix(6, 2, seed=1)
        one = several[0] if which == "row" else several[:, 0]
        size = a.shape[axis]
        for k in (0, 2, size, -1):
            place = k if k >= 0 else k + size
            expected = np.insert(a, [place] * 2, several, axis=axis)
            check(linalg.qr_insert(q, r, several, k, which), expected, economic)
            theirs = scipy.linalg.qr_insert(q, r, one, k, which)
            check(linalg.qr_insert(q, r, one, k, which), theirs[0] @ theirs[1], economic)
        for k, p in ((0, 2), (-2, 1)):
            theirs = scipy.linalg.qr_delete(q, r, k, p, which)
            check(linalg.qr_delete(q, r, k, p, which), theirs[0] @ theirs[1], economic)


def test_a_column_in_the_range_is_refused_by_rcond_alone() -> None:
    with jax.enable_x64(True):
        a = matrix(6, 3)
        q, r = linalg.qr(a, mode="economic")
        u = np.stack([a @ np.ones(3), matrix(6, seed=1)])[..., None]
        check(linalg.qr_insert(q, r, u[0], 1, "col"), np.insert(a, [1], u[0], axis=1), True)
        inserted = linalg.qr_insert(q, r, u, 1, "col", rcond=1e-8)
        assert np.isnan(inserted[1][0]).all()
        check([x[1] for x in inserted], np.insert(a, [1], u[1], axis=1), True)


def test_an_update_has_derivatives() -> None:
    with jax.enable_x64(True):
        q, r = np.linalg.qr(matrix(4, 2))
        update = jax.jit(lambda u, v: linalg.qr_update(q, r, u, v))
        check_grads(update, (matrix(4), matrix(2)), order=1, rtol=1e-6, atol=1e-6)


def test_misuse_is_said() -> None:
    q, r = np.eye(4, 2, dtype=np.float32), np.eye(2, dtype=np.float32)
    with pytest.raises(ValueError, match="qr_update: u: expected 4 rows, got 3"):
        linalg.qr_update(q, r, np.ones(3, np.float32), np.ones(2, np.float32))
    with pytest.raises(ValueError, match="qr_insert: k: expected -4 to 4, got 5"):
        linalg.qr_insert(q, r, np.ones(2, np.float32), 5)
    with pytest.raises(ValueError, match="qr_delete: p: expected at least 2 rows to be left of 4"):
        linalg.qr_delete(q, r, 0, 3)
    with pytest.raises(ValueError, match="qr_delete: k, p: expected p ≥ 1 of 2 from k on"):
        linalg.qr_delete(q, r, 1, 2, "col")
    with pytest.raises(ValueError, match="qr_delete: R: expected 2 rows, got 4"):
        linalg.qr_delete(q, np.eye(4, 2, dtype=np.float32), 0)
