"""Polar decomposition and singular values of one matrix over many devices."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sharded import DTYPES, FULL, LIMIT, MESHES, SPECS, Case, P, norm1, ratio, wide

from lapax import mesh

CASES = [Case((2, 2), 24, DTYPES[2], P("x", "y"), 6)]
if FULL:
    CASES = [
        Case(shape, 24, dtype, SPECS[(i + j) % len(SPECS)], 6)
        for i, shape in enumerate(MESHES)
        for j, dtype in enumerate(DTYPES)
    ]


@pytest.mark.parametrize(("m", "n", "rank"), [(31, 31, 31), (40, 24, 24), (24, 40, 10)])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_polar_and_svd(case, m, n, rank):
    size = max(m, n)
    with case.x64:
        a = case.random(m, rank) @ case.random(rank, n, seed=1)
        u, h = map(wide, mesh.polar(case.put(a), block=6))
        assert ratio(u @ h - wide(a), norm1(a), case, size) < LIMIT
        assert ratio(h - h.conj().T, norm1(a), case, size) < LIMIT
        assert np.linalg.eigvalsh(h).min() > -LIMIT * size * np.finfo(case.dtype).eps * norm1(a)
        if rank == min(m, n):
            inner = u.conj().T @ u if m >= n else u @ u.conj().T
            assert ratio(inner - np.eye(rank), 1, case, size) < LIMIT
        u, s, vh = map(wide, mesh.svd(case.put(a), block=6))
        assert (np.diff(s.real) <= 0).all()
        assert ratio((u * s) @ vh - wide(a), norm1(a), case, size) < LIMIT
        for q in (u, vh.conj().T):
            assert ratio(q.conj().T @ q - np.eye(q.shape[1]), 1, case, size) < LIMIT


def polar_of_one_device(a):
    u, s, vh = jnp.linalg.svd(a, full_matrices=False)
    return u @ vh, (vh.conj().T * s) @ vh


def of_polar(factors, case):
    u, h = factors
    x, y = case.random(*u.shape, seed=1), case.random(*h.shape, seed=2)
    return jnp.sum((u * x).real) + jnp.sum((h * y).real)


def of_svd(factors, case):
    """Does not depend on the phases of vectors."""
    u, s, vh = factors
    x, weights = case.random(u.shape[0], vh.shape[1], seed=1), jnp.arange(len(s)) / 3
    return jnp.sum((((u * weights) @ vh) * x).real) + jnp.sum(s * jnp.cos(weights))


RULES = {
    "polar": (of_polar, mesh.polar, polar_of_one_device),
    "svd": (of_svd, mesh.svd, lambda a: jnp.linalg.svd(a, full_matrices=False)),
}


SOME = [("polar", 8, 12, DTYPES[3]), ("polar", 9, 9, DTYPES[1]), ("svd", 12, 8, DTYPES[3])]
ALL = [
    (name, *shape, dtype)
    for name, shape, dtype in itertools.product(RULES, [(9, 9), (12, 8), (8, 12)], DTYPES[1::2])
]


@pytest.mark.parametrize(("name", "m", "n", "dtype"), ALL if FULL else SOME)
def test_gradients(name, m, n, dtype):
    """Those of one device, and differences."""
    case = Case((2, 2), min(m, n), dtype, P("x", "y"), None)
    scalar, sharded, single = RULES[name]
    with case.x64:
        a, direction = case.random(m, n), case.random(m, n, seed=3)
        put = case.put(a)
        got = jax.grad(lambda a: scalar(sharded(a), case))(put)
        assert got.sharding.is_equivalent_to(put.sharding, 2)
        right = jax.grad(lambda a: scalar(single(a), case))(jnp.asarray(a))
        assert np.abs(got - right).max() < 1e-10 * np.abs(right).max()
        step = 1e-5
        ahead, behind = (scalar(sharded(case.put(a + s * direction)), case) for s in (step, -step))
        slope = np.sum(np.asarray(got) * direction).real
        assert abs((ahead - behind) / (2 * step) - slope) < 1e-6 * norm1(got)
