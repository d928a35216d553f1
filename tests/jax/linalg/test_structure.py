"""bandwidth, issymmetric, ishermitian and norm beside SciPy's."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from jax.test_util import check_grads

from lapax import linalg

NAN, INF = math.nan, math.inf


def general(dtype, *shape):
    rng = np.random.default_rng(0)
    a = rng.standard_normal(shape)
    return (a + 1j * rng.standard_normal(shape) if dtype.kind == "c" else a).astype(dtype)


MATRICES = {
    "zero": np.zeros((3, 3)),
    "wide": np.triu(np.ones((2, 5)), 1),
    "tall, lower triangular": np.tril(np.ones((4, 2))),
    "Hessenberg": np.triu(np.ones((4, 4)), -1),
    "NaN in a corner": np.array([[1, NAN], [0, 1]]),
    "complex": np.tril(np.ones((3, 3)), 1) * 1j,
    "integers": np.eye(4, k=-2, dtype=np.int8),
    "no rows": np.zeros((0, 3)),
    "one": np.ones((1, 1)),
}


@pytest.mark.parametrize("name", MATRICES)
def test_bandwidth(name):
    a = MATRICES[name]
    assert linalg.bandwidth(a) == scipy.linalg.bandwidth(a)


def test_bandwidths_of_a_batch_under_jit_and_vmap():
    a = np.stack([np.triu(np.ones((3, 4)), k) for k in (-2, 0, 1)])
    for function in (jax.jit(linalg.bandwidth), jax.vmap(linalg.bandwidth)):
        lower, upper = function(a)
        np.testing.assert_array_equal(lower, [2, 0, 0])
        np.testing.assert_array_equal(upper, [3, 3, 3])


SYMMETRIC = {
    "symmetric": np.array([[1, 2], [2, 3.0]]),
    "Hermitian": np.array([[1, 2j], [-2j, 3]]),
    "symmetric and complex": np.array([[1, 2j], [2j, 3]]),
    "complex diagonal": np.array([[1j, 0], [0, 1]]),
    "nearly": np.array([[1, 2], [2 + 1e-9, 3]]),
    "NaN on the diagonal": np.array([[NAN, 2], [2, 3]]),
    "NaN on a complex diagonal": np.array([[NAN + 0j, 2], [2, 3]]),
    "NaN twice": np.array([[1, NAN], [NAN, 3]]),
    "infinite": np.array([[1, INF], [INF, 3]]),
    "infinities of two signs": np.array([[1, INF], [-INF, 3]]),
    "of order 0": np.zeros((0, 0)),
}


@pytest.mark.parametrize("bounds", [{}, {"atol": 1e-8}, {"rtol": 1e-8}, {"atol": 0.0, "rtol": 0.0}])
@pytest.mark.parametrize("name", SYMMETRIC)
def test_symmetry(name, bounds):
    a = SYMMETRIC[name]
    with jax.enable_x64(True):
        assert linalg.issymmetric(a, **bounds) == scipy.linalg.issymmetric(a, **bounds)
        assert linalg.ishermitian(a, **bounds) == scipy.linalg.ishermitian(a, **bounds)


def test_integers_are_compared_as_such():
    a = np.array([[0, 2**24 + 1], [2**24, 0]], np.int32)
    assert not linalg.issymmetric(a)
    assert linalg.issymmetric(a, atol=1)


def test_symmetry_of_a_batch_is_traced():
    a = np.stack([np.ones((2, 2)), np.array([[1, 2], [3, 4.0]])])
    np.testing.assert_array_equal(jax.jit(linalg.issymmetric)(a), [True, False])
    np.testing.assert_array_equal(jax.vmap(linalg.ishermitian)(a), [True, False])


ORDERS = [None, "fro", "nuc", 1, -1, 2, -2, INF, -INF]


@pytest.mark.parametrize("ord", ORDERS)
def test_matrix_norms(ord):
    a = general(np.dtype("c16"), 2, 3, 4)
    with jax.enable_x64(True):
        found = linalg.norm(a, ord, axis=(2, 0), keepdims=True)
        np.testing.assert_allclose(
            found, scipy.linalg.norm(a, ord, axis=(2, 0), keepdims=True), rtol=1e-14
        )
        np.testing.assert_allclose(linalg.norm(a[0], ord), scipy.linalg.norm(a[0], ord), rtol=1e-14)


@pytest.mark.parametrize("ord", [None, 0, 1, 2, 3, 0.5, -1, -2, INF, -INF])
def test_vector_norms(ord):
    a = general(np.dtype("f8"), 3, 4)
    a[0, 0] = 0
    with jax.enable_x64(True), np.errstate(divide="ignore"):
        np.testing.assert_allclose(
            linalg.norm(a, ord, axis=0), scipy.linalg.norm(a, ord, axis=0), rtol=1e-14
        )


def test_the_norm_without_arguments_is_of_all_entries(dtype):
    a = general(dtype, 2, 3, 4)
    expected = np.sqrt(np.sum(np.abs(a).astype(np.float64) ** 2))
    assert linalg.norm(a).dtype == np.finfo(dtype).dtype
    assert abs(float(linalg.norm(a)) - expected) < 30 * np.finfo(dtype).eps * expected
    assert linalg.norm(a, keepdims=True).shape == (1, 1, 1)


@pytest.mark.parametrize("size", [1e-37, 1.0, 1e20, 1e38])
def test_norms_neither_over_nor_underflow(size):
    a = (np.array([3, 4j]) * (size / 4)).astype(np.complex64)
    for ord, expected in {2: 5, 3: (27 + 64) ** (1 / 3), -3: (27**-1 + 64**-1) ** (-1 / 3)}.items():
        np.testing.assert_allclose(linalg.norm(a, ord), expected * (size / 4), rtol=1e-6)


def test_the_norm_of_nothing():
    nothing = np.zeros((0, 3))
    assert linalg.norm(nothing) == 0
    assert linalg.norm(nothing, 2) == 0
    assert linalg.norm(nothing, -2) == INF
    np.testing.assert_array_equal(linalg.norm(nothing, axis=0), np.zeros(3))


def test_nan_stays_in_its_vector():
    a = np.ones((3, 4))
    a[1, 2] = NAN
    for ord in (2, 3, INF):
        assert np.isnan(linalg.norm(a, ord, axis=1)).tolist() == [False, True, False]


@pytest.mark.parametrize("ord", [None, "nuc", 2, 1])
def test_derivatives_of_matrix_norms(ord):
    with jax.enable_x64(True):
        a = jnp.asarray(general(np.dtype("c16"), 3, 2))
        check_grads(lambda a: linalg.norm(a, ord), (a,), order=1)


def test_derivatives_of_vector_norms():
    with jax.enable_x64(True):
        a = jnp.asarray(general(np.dtype("f8"), 4))
        check_grads(lambda a: linalg.norm(a, 3) * linalg.norm(a, -1), (a,), order=1)
        np.testing.assert_array_equal(jax.grad(linalg.norm)(jnp.zeros(3)), np.zeros(3))


def test_half_precision_is_computed_in_another():
    a = jnp.full(300, 300, jnp.float16)
    with pytest.raises(ValueError, match="compute_dtype"):
        linalg.norm(a)
    found = linalg.norm(a, compute_dtype=jnp.float32)
    assert found.dtype == jnp.float16
    np.testing.assert_allclose(found, 300 * math.sqrt(300), rtol=1e-3)


WRONG = [
    (lambda: linalg.bandwidth(np.ones(3)), r"bandwidth: a: expected shape .*, got \[3\]"),
    (lambda: linalg.issymmetric(np.ones((2, 3))), r"issymmetric: a: .*n, n\], got \[2, 3\]"),
    (lambda: linalg.ishermitian(np.ones(3)), r"ishermitian: a: .*n, n\], got \[3\]"),
    (lambda: linalg.norm(np.ones((2, 2)), 3), "norm: ord: expected one of .*, got 3"),
    (lambda: linalg.norm(np.ones(2), "fro"), "norm: ord: expected a number .*, got 'fro'"),
    (lambda: linalg.norm(np.ones((2, 2, 2)), 2), r"norm: a: .*, got shape \[2, 2, 2\]"),
    (lambda: linalg.norm(np.ones((2, 2)), axis=2), "norm: axis: expected .*, got 2"),
    (lambda: linalg.norm(np.ones((2, 2)), axis=(0, -2)), r"norm: axis: .*, got \(0, -2\)"),
]


@pytest.mark.parametrize(("call", "text"), WRONG)
def test_misuse_is_named(call, text):
    with pytest.raises(ValueError, match=text):
        call()
