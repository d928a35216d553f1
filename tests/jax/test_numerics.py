"""Outcomes that JAX derives from `info`: one bad matrix in a batch is NaN and no other changes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lapax
from programs import FUNCTIONS, Operands

BAD = 2
"""Which matrix of the batch is spoilt."""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, np.nan) for name in ("cholesky", "lu_factor", "solve", "inv", "lower")),
        *((name, np.inf) for name in ("cholesky", "lu_factor", "solve")),
    ],
)
def test_a_bad_matrix_leaves_the_others_alone(name, value, dtype, batch):
    function = jax.jit(lambda *o: FUNCTIONS[name](Operands(*o)))
    spoilt = Operands(*(x.copy() for x in batch))
    for x in spoilt:
        x[BAD, 1, 0] = value
        x[BAD, 0, 1:2] = value
    others = np.arange(6) != BAD
    with lapax.installed():
        good, bad = np.asarray(function(*batch)), np.asarray(function(*spoilt))
    assert good[others].tobytes() == bad[others].tobytes()
    assert not np.all(np.isfinite(bad[BAD]))
    assert np.all(np.isfinite(good))


def test_a_matrix_that_is_not_positive_definite_is_nan(dtype, batch):
    s = batch.s.copy()
    s[BAD] = -s[BAD]
    with lapax.installed():
        lower = np.asarray(jnp.linalg.cholesky(s))
    rows, columns = np.tril_indices(5)
    assert np.all(np.isnan(lower[BAD][rows, columns]))
    assert np.all(np.isfinite(lower[np.arange(6) != BAD]))


def test_a_singular_matrix_has_an_lu(dtype):
    a = np.zeros((2, 3, 3), dtype)
    a[1] = np.eye(3)
    expected = jax.lax.linalg.lu(a)
    with lapax.installed():
        got = jax.lax.linalg.lu(a)
        determinant = np.asarray(jnp.linalg.det(a))
    for x, y in zip(got, expected, strict=True):
        np.testing.assert_array_equal(x, y)
    np.testing.assert_array_equal(determinant, np.array([0, 1], dtype))


def test_same_bits_wherever_a_matrix_stands(dtype, batch):
    order = np.array([3, 1, 5, 0, 2, 4])
    with lapax.installed():
        for name in ("cholesky", "solve", "lower"):
            function = jax.jit(lambda *o, name=name: FUNCTIONS[name](Operands(*o)))
            whole = np.asarray(function(*batch))
            moved = np.asarray(function(*(x[order] for x in batch)))
            alike = [np.asarray(function(*(x[[i] * 9] for x in batch))) for i in range(6)]
            assert whole[order].tobytes() == moved.tobytes()
            # Also in a larger batch; one of fewer than four is computed in another way.
            assert all(part.tobytes() == part[0].tobytes() * 9 for part in alike)
            assert whole.tobytes() == np.stack([part[0] for part in alike]).tobytes()
