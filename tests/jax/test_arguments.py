"""Arguments of eigh and svd that JAX refuses on the CPU and lapax serves."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.lax import linalg

import lapax
from programs import assert_close, operands, tolerance

IMPLEMENTATIONS = list(getattr(linalg, "EighImplementation", ()))
RANGES = [(0, 7), (0, 1), (2, 5), (6, 7), (3, 3)]


@pytest.fixture
def installed():
    with lapax.installed():
        yield


@pytest.mark.parametrize("subset", RANGES)
def test_eigh_subset(installed, dtype, subset):
    a = operands(np.dtype(dtype), n=7, batch=(2,)).s
    start, stop = subset
    w, v = np.linalg.eigvalsh(a)[:, start:stop], linalg.eigh(a, subset_by_index=subset)[0]
    got = linalg.eigh(a, subset_by_index=subset)[1]
    assert v.shape == (2, 7, stop - start)
    assert_close(got, w, tolerance(np.dtype(dtype), 7))
    assert_close(a @ np.asarray(v), np.asarray(v) * w[:, None, :], tolerance(np.dtype(dtype), 7))
    gram = np.asarray(v).conj().swapaxes(1, 2) @ np.asarray(v)
    identity = np.broadcast_to(np.eye(stop - start), gram.shape)
    assert_close(gram, identity.astype(dtype), tolerance(np.dtype(dtype), 7))
    values = jax.jit(lambda a: linalg.eigh(a, subset_by_index=subset)[1])(a)
    assert_close(values, w, tolerance(np.dtype(dtype), 7))


@pytest.mark.parametrize("subset", [(0, 5), (0, 1), (1, 4), (4, 5), (2, 2)])
@pytest.mark.parametrize("shape", [(2, 7, 5), (5, 7)])
def test_svd_subset(installed, dtype, shape, subset):
    rng = np.random.default_rng(0)
    a = rng.standard_normal(shape).astype(dtype)
    start, stop = subset
    u, s, vh = linalg.svd(a, full_matrices=False, subset_by_index=subset)
    expected = np.linalg.svd(a, compute_uv=False)[..., start:stop]
    assert u.shape == (*shape[:-1], stop - start)
    assert vh.shape == (*shape[:-2], stop - start, shape[-1])
    assert_close(s, expected, tolerance(np.dtype(dtype), 7))
    left = a @ np.asarray(vh).conj().swapaxes(-1, -2)
    assert_close(left, np.asarray(u) * expected[..., None, :], tolerance(np.dtype(dtype), 7))
    values = linalg.svd(a, full_matrices=False, compute_uv=False, subset_by_index=subset)
    assert_close(values, expected, tolerance(np.dtype(dtype), 7))


@pytest.mark.parametrize("n", [40, 200])
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_a_part_of_large_matrices(installed, dtype, n, uplo):
    a = operands(np.dtype(dtype), n=n, batch=()).s
    close, part = tolerance(np.dtype(dtype), n), (n // 2, n // 2 + 3)
    expected = np.linalg.eigvalsh(a)[slice(*part)]
    stored = np.tril(a) if uplo == "L" else np.triu(a)
    pick = functools.partial(linalg.eigh, lower=uplo == "L", symmetrize_input=False)
    v, w = map(np.asarray, pick(stored, subset_by_index=part))
    assert_close(w, expected, close)
    assert_close(a @ v, v * w, close)
    u, s, vh = map(
        np.asarray,
        linalg.svd(stored[: n - 3], full_matrices=False, subset_by_index=part),
    )
    assert_close(stored[: n - 3] @ vh.conj().T, u * s, close)
    assert_close(u.conj().T @ u, np.eye(3, dtype=u.dtype), close)


def test_numpy_svd_subset(installed):
    a = operands(np.dtype(np.float32), n=6, batch=()).a
    u, s, vh = jnp.linalg.svd(a, full_matrices=False, subset_by_index=(0, 2))
    best = np.linalg.svd(a)
    rank2 = best[0][:, :2] * best[1][:2] @ best[2][:2]
    assert_close((u * s) @ vh, rank2, tolerance(np.dtype(np.float32), 6))


def test_vmap_and_empty(installed):
    a = operands(np.dtype(np.float32), n=6, batch=(4,)).s
    pick = lambda a: linalg.eigh(a, subset_by_index=(1, 3))  # noqa: E731
    for got, expected in zip(jax.vmap(pick)(a), pick(a), strict=True):
        np.testing.assert_array_equal(got, expected)
    empty = linalg.svd(np.ones((3, 0), np.float32), full_matrices=False, subset_by_index=(0, 0))
    assert [x.shape for x in empty] == [(3, 0), (0,), (0, 0)]


@pytest.mark.parametrize("subset", [(0, 8), (5, 9)])
def test_a_range_outside_is_refused(installed, subset):
    a = np.eye(7, dtype=np.float32)
    with pytest.raises(ValueError, match=r"^eigh: subset_by_index .* is not within \(0, 7\)"):
        linalg.eigh(a, subset_by_index=subset)


@pytest.mark.parametrize("algorithm", list(linalg.SvdAlgorithm))
@pytest.mark.parametrize("compute_uv", [True, False])
def test_svd_algorithms(installed, dtype, algorithm, compute_uv):
    a = operands(np.dtype(dtype), n=6, batch=(3,)).a
    got = linalg.svd(a, algorithm=algorithm, compute_uv=compute_uv)
    s = got[1] if compute_uv else got
    assert_close(s, np.linalg.svd(a, compute_uv=False), tolerance(np.dtype(dtype), 6))
    if compute_uv:
        u, s, vh = map(np.asarray, got)
        assert_close(u * s[:, None, :] @ vh, a, tolerance(np.dtype(dtype), 6))


@pytest.mark.skipif(not IMPLEMENTATIONS, reason="this JAX has no argument `implementation`")
def test_eigh_implementations(installed, dtype):
    a = operands(np.dtype(dtype), n=6, batch=(3,)).s
    for implementation in IMPLEMENTATIONS:
        v, w = map(np.asarray, linalg.eigh(a, implementation=implementation))
        assert_close(a @ v, v * w[:, None, :], tolerance(np.dtype(dtype), 6))


def test_stock_still_refuses():
    with pytest.raises(NotImplementedError, match="subset_by_index"):
        linalg.eigh(np.eye(3, dtype=np.float32), subset_by_index=(0, 1))
    with pytest.raises(NotImplementedError, match="Jacobi"):
        linalg.svd(np.eye(3, dtype=np.float32), algorithm=linalg.SvdAlgorithm.JACOBI)
