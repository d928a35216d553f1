"""jax.experimental.sparse on lapax: products of BCSR matrices, and lapax.ffi's own."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import sparse

import lapax
from programs import assert_close, custom_calls, tolerance

TARGET = "lapax.cpu_csr_sparse_dense_ffi"
REFUSED = (ValueError, jax.errors.JaxRuntimeError)
"""INVALID_ARGUMENT as JAX versions raise it."""


def numbers(rng, dtype, shape):
    if np.dtype(dtype).kind == "i":
        return rng.integers(-9, 10, shape).astype(dtype)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def problem(dtype, m=7, k=5, n=3):
    """A matrix of which two thirds are zeros, with an empty row, a vector and a matrix."""
    rng = np.random.default_rng(3)
    dense = numbers(rng, dtype, (m, k)) * (rng.random((m, k)) < 1 / 3).astype(dtype)
    dense[m // 2] = 0
    return dense, numbers(rng, dtype, (k,)), numbers(rng, dtype, (k, n))


def close(got, expected, dtype):
    if np.dtype(dtype).kind == "i":
        np.testing.assert_array_equal(got, expected)
    else:
        assert_close(got, expected, tolerance(np.dtype(dtype), 5))


def test_products_equal_dense_ones(dtype):
    dense, v, x = problem(dtype)
    a = sparse.BCSR.fromdense(dense)
    for rhs in (v, x, x[:, :1], x[:, :0]):
        product = lambda a, rhs: a @ rhs  # noqa: E731
        with lapax.installed():
            assert custom_calls(product, a, rhs) == [TARGET]
            got = jax.jit(product)(a, rhs)
        assert custom_calls(product, a, rhs) == [TARGET.removeprefix("lapax.")]
        close(got, dense @ rhs, dtype)
        close(got, jax.jit(product)(a, rhs), dtype)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float64, np.complex128])
def test_integers_and_wide_indices(dtype, index):
    dense, v, x = problem(dtype)
    with jax.enable_x64(True):
        a = sparse.BCSR.fromdense(dense, index_dtype=index)
        assert a.indices.dtype == a.indptr.dtype == index
        for rhs in (v, x):
            with lapax.installed():
                assert custom_calls(lambda a, b: a @ b, a, rhs) == [TARGET]
                got = jax.jit(lambda a, b: a @ b)(a, rhs)
            assert got.dtype == dtype
            close(got, dense @ rhs, dtype)


def test_padding_is_not_read():
    dense, v, _ = problem(np.float32)
    a = sparse.BCSR.fromdense(dense, nse=30)
    with lapax.installed():
        assert_close(jax.jit(lambda a, v: a @ v)(a, v), dense @ v, tolerance(np.dtype("f4"), 5))
        traced = jax.jit(lambda d, v: sparse.BCSR.fromdense(d, nse=30) @ v)
        assert_close(traced(dense, v), dense @ v, tolerance(np.dtype("f4"), 5))


def test_gradients_equal_stock(dtype):
    dense, v, x = problem(dtype)
    a = sparse.BCSR.fromdense(dense)

    def loss(data, rhs):
        b = sparse.BCSR((data, a.indices, a.indptr), shape=a.shape)
        return jnp.sum(jnp.abs(b @ rhs) ** 2)

    gradient = jax.grad(loss, argnums=(0, 1))
    for rhs in (v, x):
        expected, calls = jax.jit(gradient)(a.data, rhs), custom_calls(gradient, a.data, rhs)
        with lapax.installed():
            got = jax.jit(gradient)(a.data, rhs)
            assert custom_calls(gradient, a.data, rhs) == [f"lapax.{call}" for call in calls]
        assert calls
        assert_close(got, expected, 10 * tolerance(dtype, 5))


def test_vmap_equals_stock(dtype):
    dense, _, x = problem(dtype)
    a = sparse.BCSR.fromdense(dense)
    product = jax.jit(jax.vmap(lambda column: a @ column, in_axes=1, out_axes=1))
    with lapax.installed():
        assert_close(product(x), dense @ x, tolerance(dtype, 5))


def test_a_large_product_is_spread_over_the_pool():
    rng = np.random.default_rng(0)
    rows, n, per_row = 30_000, 32, 8
    indptr = np.arange(0, rows * per_row + 1, per_row, dtype=np.int32)
    indices = rng.integers(0, rows, rows * per_row).astype(np.int32)
    data, x = numbers(rng, "f4", indices.shape), numbers(rng, "f4", (rows, n))
    a = sparse.BCSR((data, indices, indptr), shape=(rows, rows))
    chain = jax.jit(lambda a, x: [a @ (s * x) for s in range(1, 20)])
    expected = [np.asarray(y) for y in chain(a, x)]
    with lapax.installed():
        # Independent calls, which XLA runs side by side, and what depends on them.
        for _ in range(5):
            assert_close(chain(a, x), expected, tolerance(np.dtype("f4"), per_row))
        power = jax.jit(lambda a, x: a @ (a @ (a @ x)))(a, x)
    assert_close(power, jax.jit(lambda a, x: a @ (a @ (a @ x)))(a, x), 1e-5)


@pytest.mark.parametrize("rows", [2, 100_000])
def test_indices_that_are_none_are_refused(rows):
    """Also where the error comes from a thread of the pool, after the handler has returned."""
    n = 64
    indptr = np.arange(rows + 1, dtype=np.int32)
    indices = np.zeros(rows, np.int32)
    data, x = np.ones(rows, np.float32), np.ones((4, n), np.float32)
    product = jax.jit(lambda *a: sparse.BCSR(a[:3], shape=(rows, 4)) @ a[3])
    with lapax.installed():
        assert product(data, indices, indptr, x).shape == (rows, n)
        for wrong in (4, -1):
            indices[-1] = wrong
            text = rf"argument 2 `indices`: expected 0 to 3 at {rows - 1}, got {wrong}"
            with pytest.raises(REFUSED, match=f"INVALID_ARGUMENT.*{text}"):
                jax.block_until_ready(product(data, indices, indptr, x))
        indices[-1], indptr[1:3] = 0, (2, 1)
        text = rf"argument 1 `indptr`: expected 2 to {rows} at 2, got 1"
        with pytest.raises(REFUSED, match=text):
            jax.block_until_ready(product(data, indices, indptr, x))


def csr(dtype=np.float32, index=np.int32):
    dense, v, x = problem(dtype)
    with jax.enable_x64(True):
        a = sparse.BCSR.fromdense(dense, index_dtype=index)
        return dense, v, x, [np.asarray(y) for y in (a.data, a.indptr, a.indices)]


def test_the_typed_function_takes_vectors_matrices_and_batches(dtype):
    dense, v, x, a = csr(dtype)
    product = lapax.ffi.csr_sparse_dense
    assert_close(product(*a, v), dense @ v, tolerance(dtype, 5))
    assert_close(product(*a, x), dense @ x, tolerance(dtype, 5))
    twice = [np.stack([y, y]) for y in (*a, v)]
    assert_close(product(*twice), np.stack([dense @ v] * 2), tolerance(dtype, 5))
    mapped = jax.vmap(product, in_axes=(None, None, None, 1), out_axes=1)
    assert custom_calls(mapped, *a, x) == [TARGET]
    assert_close(mapped(*a, x), dense @ x, tolerance(dtype, 5))
    scaled = jax.vmap(lambda s: product(s * a[0], a[1], a[2], x))(np.arange(3).astype(dtype))
    assert_close(scaled, np.stack([s * (dense @ x) for s in range(3)]), tolerance(dtype, 5))


def test_the_typed_function_says_what_does_not_fit():
    _, v, x, (data, indptr, indices) = csr()
    product = lapax.ffi.csr_sparse_dense
    for wrong, error, text in [
        ((data, indptr, indices, x[None]), ValueError, "argument 3 `rhs`: expected f32"),
        ((data, indptr, indices[1:], v), ValueError, "argument 2 `indices`: expected i32"),
        ((data, indptr[:0], indices, v), ValueError, "expected at least one element in indptr"),
        ((data, indptr.astype(np.int16), indices, v), TypeError, "expected i32 or i64, got i16"),
        ((data, indptr, indices, v.astype(np.int32)), TypeError, "argument 3 `rhs`: expected f32"),
        ((data.astype(np.float16), indptr, indices, v), TypeError, "data has dtype float16"),
    ]:
        with pytest.raises(error, match=text):
            product(*wrong)
    with pytest.raises(NotImplementedError, match=r"jax\.experimental\.sparse"):
        jax.grad(lambda v: product(data, indptr, indices, v).sum())(v)
