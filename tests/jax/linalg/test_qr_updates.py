"""qr_update, qr_insert and qr_delete: the decomposition of the matrix that NumPy changes."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from derivatives import check_derivatives

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


@pytest.mark.parametrize("n", [1, 3, 32, 33])
def test_updates_of_square_matrices(dtype: np.dtype, n: int) -> None:
    """The small ones are decomposed anew, in a batch and under vmap alike."""
    a = np.stack([matrix(n, n, dtype=dtype, seed=seed) for seed in (0, 1, 2)])
    u, v = (np.stack([matrix(n, 2, dtype=dtype, seed=s + k) for k in range(3)]) for s in (3, 6))
    a[1], u[1] = 1, 0
    q, r = linalg.qr(a)
    found = linalg.qr_update(q, r, u, v)
    for k in range(3):
        check([x[k] for x in found], a[k] + u[k] @ v[k].conj().T, True)
    for x, y in zip(jax.vmap(linalg.qr_update)(q, r, u, v), found, strict=True):
        np.testing.assert_array_equal(x, y)


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


def test_derivatives() -> None:
    with jax.enable_x64(True):

        def both(factors: Any) -> jax.Array:
            return jnp.concatenate([jnp.ravel(x) for x in factors])

        def changed(q: Any, r: Any, u: Any, v: Any) -> jax.Array:
            return both(linalg.qr_update(q, r, u, v))

        q, r = (np.asarray(x) for x in linalg.qr(matrix(5, 3)))
        check_derivatives(changed, q, r, matrix(5), matrix(3), second=False)
        for dtype in ("f8", "c16"):
            q, r = (np.asarray(x) for x in linalg.qr(matrix(4, 4, dtype=np.dtype(dtype))))
            u, v = (matrix(4, dtype=np.dtype(dtype), seed=seed) for seed in (1, 2))
            check_derivatives(changed, q, r, u, v, second=False)
        q, r = (np.asarray(x) for x in linalg.qr(matrix(5, 3), mode="economic"))
        check_derivatives(lambda q, r: both(linalg.qr_delete(q, r, 1)), q, r, second=False)


@pytest.mark.parametrize("mode", ["full", "economic"])
def test_the_place_may_be_traced(mode: str) -> None:
    with jax.enable_x64(True):
        q, r = linalg.qr(matrix(6, 3), mode=mode)
        for which, new in (("row", matrix(2, 3)), ("col", matrix(6, 2))):
            insert = jax.jit(partial(linalg.qr_insert, which=which))
            delete = jax.jit(partial(linalg.qr_delete, p=2, which=which))
            for k in (0, 1, -2):
                plain = linalg.qr_insert(q, r, new, k, which), linalg.qr_delete(q, r, k, 2, which)
                traced = insert(q, r, new, k), delete(q, r, k)
                jax.tree.map(partial(np.testing.assert_allclose, atol=1e-14), traced, plain)
            assert all(np.isnan(x).all() for x in (*insert(q, r, new, 9), *delete(q, r, -9)))
            if mode == "economic":
                continue
            several = jax.vmap(lambda k, w=which, x=new: linalg.qr_insert(q, r, x, k, w))
            factors = several(jnp.array([2, 0]))
            for i, place in enumerate((2, 0)):
                for x, y in zip(factors, linalg.qr_insert(q, r, new, place, which), strict=True):
                    np.testing.assert_allclose(x[i], y, atol=1e-14)


@pytest.mark.parametrize("mode", ["full", "economic"])
def test_a_batch_is_a_loop_and_a_nan_stays_in_its_matrix(mode: str) -> None:
    with jax.enable_x64(True):
        a = matrix(2, 6, 3)
        q, r = linalg.qr(a, mode=mode)
        u, v = np.array(matrix(2, 6, 2)), matrix(2, 3, 2)
        u[1, 3] = np.nan
        calls = [
            lambda q, r, u, v: linalg.qr_update(q, r, u, v),
            lambda q, r, u, v: linalg.qr_insert(q, r, u, 2, "col"),
            lambda q, r, u, v: linalg.qr_delete(q, r, 2, 2),
            lambda q, r, u, v: linalg.qr_insert(q, r, v.mT, 2),
            lambda q, r, u, v: linalg.qr_delete(q, r, 0, 2, "col"),
        ]
        for i, call in enumerate(calls[:3] if mode == "economic" else calls[::3]):
            together = call(q, r, u, v)
            if i == 0:
                mapped = jax.vmap(call)(q, r, u, v)
                jax.tree.map(partial(np.testing.assert_allclose, atol=1e-14), together, mapped)
            for b in range(2):
                alone = call(q[b], r[b], u[b], v[b])
                for x, y in zip(together, alone, strict=True):
                    np.testing.assert_allclose(x[b], y, atol=1e-13)
                spoilt = b == 1 and (i == 0 or (mode == "economic" and i == 1))
                assert np.isnan(alone[1]).any() == spoilt


def test_more_columns_than_rows() -> None:
    """An economic decomposition becomes one whose Q is square."""
    with jax.enable_x64(True):
        a, u = matrix(5, 4), matrix(5, 3, seed=1)
        q, r = linalg.qr(a, mode="economic")
        check(linalg.qr_insert(q, r, u, 1, "col"), np.insert(a, [1], u, axis=1), True)
        assert [x.shape for x in linalg.qr_delete(q, r, 0, 5)] == [(0, 0), (0, 4)]
        for k, p in ((0, 2), (1, 3)):
            check(linalg.qr_delete(q, r, k, p), np.delete(a, range(k, k + p), 0), True)
        wide = matrix(3, 5)
        q, r = linalg.qr(wide)
        check(linalg.qr_insert(q, r, u.T, 2), np.insert(wide, [2] * 3, u.T, axis=0), False)
        check(linalg.qr_delete(q, r, 1, 2, "col"), np.delete(wide, [1, 2], axis=1), False)
        check(linalg.qr_delete(q, r, 1, 1), np.delete(wide, 1, axis=0), False)
        check(
            linalg.qr_update(q, r, u[:3, 0], u[:, 1]),
            wide + np.outer(u[:3, 0], u[:, 1].conj()),
            False,
        )


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_what_is_degenerate_stays_orthogonal(scale: float) -> None:
    """Zeros, units, and a deleted row that alone has a direction."""
    with jax.enable_x64(True):
        a = np.zeros((6, 3))
        a[0, 0], a[1, 1], a[2:, 2] = scale, scale, scale * np.arange(4)
        for mode in ("full", "economic"):
            q, r = linalg.qr(a, mode=mode)
            economic = mode == "economic"
            for k, p in ((0, 1), (0, 2), (1, 3)):
                found = linalg.qr_delete(q, r, k, p)
                check(found, np.delete(a, range(k, k + p), axis=0), economic)
            zero = np.zeros(6)
            check(linalg.qr_update(q, r, zero, np.ones(3)), a, economic)
            check(linalg.qr_update(q, r, a[:, 2], np.ones(3)), a + a[:, 2:], economic)
            u = np.stack([zero, a[:, 1], a[:, 2] * (1 + 1e-15)], -1)
            found = linalg.qr_insert(q, r, u, 1, "col")
            check(found, np.insert(a, [1], u, axis=1), economic)


def test_places_are_those_of_each_matrix() -> None:
    a = np.random.default_rng(3).standard_normal((3, 5, 4)).astype(np.float32)
    (q, r), places = np.linalg.qr(a, "complete"), np.array([0, 3, -2])
    row = np.ones(4, np.float32)
    inserted, deleted = linalg.qr_insert(q, r, row, places), linalg.qr_delete(q, r, places)
    for i, k in enumerate(places.tolist()):
        for got, expected in (
            (inserted, linalg.qr_insert(q[i], r[i], row, k)),
            (deleted, linalg.qr_delete(q[i], r[i], k)),
        ):
            for x, y in zip(got, expected, strict=True):
                np.testing.assert_allclose(x[i], y, atol=1e-5)


def test_nothing_is_decomposed_anew() -> None:
    """There are no products of two matrices, and no decomposition."""
    q, r = jnp.eye(40, 20), jnp.eye(20)
    for f in (
        lambda: linalg.qr_update(q, r, q[:, 0], r[0]),
        lambda: linalg.qr_insert(q, r, r[0], 3),
        lambda: linalg.qr_insert(q, r, q[:, 0], 3, "col"),
        lambda: linalg.qr_delete(q, r, 3),
        lambda: linalg.qr_delete(q, r, 3, 1, "col"),
    ):
        cost = jax.jit(f).lower().as_text()
        assert "custom_call" not in cost
        for line in cost.splitlines():
            if "dot_general" in line:
                assert "x1x" in line or "x1>" in line, line


def test_misuse_is_said() -> None:
    q, r = np.eye(4, 2, dtype=np.float32), np.eye(2, dtype=np.float32)
    with pytest.raises(ValueError, match="qr_update: u: expected 4 rows, got 3"):
        linalg.qr_update(q, r, np.ones(3, np.float32), np.ones(2, np.float32))
    with pytest.raises(ValueError, match="qr_insert: k: expected -4 to 4, got 5"):
        linalg.qr_insert(q, r, np.ones(2, np.float32), 5)
    with pytest.raises(ValueError, match="qr_delete: k, p: expected p ≥ 1 of 2 from k on"):
        linalg.qr_delete(q, r, 1, 2, "col")
    with pytest.raises(ValueError, match="qr_delete: R: expected 2 rows, got 4"):
        linalg.qr_delete(q, np.eye(4, 2, dtype=np.float32), 0)
