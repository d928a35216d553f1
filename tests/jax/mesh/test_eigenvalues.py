"""Eigenvalues of one matrix over many devices."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sharded import CASES, DTYPES, FULL, LIMIT, Case, P, norm1, ratio, wide

from lapax import mesh

each_case = pytest.mark.parametrize("case", CASES if FULL else CASES[2:5], ids=str)


def hermitian(case):
    a = case.random(case.n, case.n)
    return (a + a.conj().T) / 2


def check_eigh(a, values, vectors, case):
    values, vectors = wide(values).real, wide(vectors)
    scale = max(norm1(a), 1e-30)
    assert (np.diff(values) >= 0).all()
    assert ratio(wide(a) @ vectors - vectors * values, scale, case) < LIMIT
    assert ratio(vectors.conj().T @ vectors - np.eye(case.n), 1, case) < LIMIT


@each_case
def test_eigh(case):
    with case.x64:
        a = hermitian(case)
        values, vectors = mesh.eigh(case.put(a))
        assert vectors.sharding.is_equivalent_to(case.put(a).sharding, 2)
        check_eigh(a, values, vectors, case)


@pytest.mark.parametrize("dtype", DTYPES[:2])
def test_repeated_and_zero_eigenvalues(dtype):
    case = Case((2, 2), 31, dtype, P(), None)
    q = np.linalg.qr(case.random(31, 31))[0]
    of_rank_ten = np.append(np.linspace(1, 60, 10), np.zeros(21))
    with case.x64:
        for values in (np.zeros(31), np.repeat([1.0, -1.0, 0.0], [10, 11, 10]), of_rank_ten):
            a = ((q * values) @ q.T).astype(dtype)
            a = (a + a.T) / 2
            check_eigh(a, *mesh.eigh(case.put(a)), case)


def test_not_a_number():
    case = Case((2, 2), 31, DTYPES[0], P(), None)
    a = hermitian(case)
    a[3, 4] = a[4, 3] = np.nan
    values, vectors = mesh.eigh(case.put(a))
    assert np.isnan(values).all()
    assert np.isnan(vectors).all()


def test_gradient_is_that_of_one_device():
    case = Case((2, 2), 12, DTYPES[3], P("x", "y"), None)
    with case.x64:
        a = hermitian(case)
        weights = case.random(12, 12, seed=1)

        def value(eigh):
            def of(a):
                values, vectors = eigh(a)
                # Does not depend on the phases of vectors.
                inner = jnp.abs(weights @ vectors) ** 2
                return jnp.sum(values * jnp.arange(12.0)) + jnp.sum(inner * jnp.arange(12.0))

            return of

        got = jax.grad(value(mesh.eigh))(case.put(a))
        right = jax.grad(value(jnp.linalg.eigh))(jnp.asarray(a))
        assert np.abs(got - right).max() < 1e-10 * np.abs(right).max()


def test_misuse():
    case = Case((2, 2), 12, DTYPES[0], P("x", "y"), None)
    with pytest.raises(ValueError, match=r"eigh: a: expected shape \[n, n\], got \[12, 6\]"):
        mesh.eigh(case.put(case.random(12, 6)))
