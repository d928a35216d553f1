"""Vectors of a matrix alone, in batches, under vmap and in shards: the same up to rounding."""

from __future__ import annotations

import functools
import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.lax import linalg
from jax.sharding import NamedSharding, PartitionSpec

import lapax

COUNT = 8
"""Matrices: one on each of eight devices, or four on each of two."""


def spread(dtype: np.dtype, m: int, n: int) -> np.ndarray:
    """Matrices H·diag(k, …, 1)·G with reflectors H and G, whose singular values are one apart."""
    rng = np.random.default_rng(m + 100 * n)
    k = min(m, n)
    left, right = reflector(rng, dtype, m), reflector(rng, dtype, n)
    return ((left[..., :k] * np.arange(k, 0, -1)) @ right[..., :k, :]).astype(dtype)


def reflector(rng: np.random.Generator, dtype: np.dtype, n: int) -> np.ndarray:
    v = rng.standard_normal((COUNT, n, 1))
    if dtype.kind == "c":
        v = v + 1j * rng.standard_normal((COUNT, n, 1))
    adjoint = v.conj().swapaxes(-1, -2)
    return np.eye(n) - 2 * v @ adjoint / (adjoint @ v)


def hermitian(dtype: np.dtype, n: int) -> np.ndarray:
    """Eigenvalues that are one apart."""
    h = reflector(np.random.default_rng(n), dtype, n)
    return ((h * (np.arange(n) - n / 3)) @ h.conj().swapaxes(-1, -2)).astype(dtype)


def ways(function, a):
    """The results for the batch as a whole, and in other ways to the same."""
    jitted = jax.jit(function)
    yield "batch", jitted(a)
    yield "vmap", jax.jit(jax.vmap(function))(a)
    for count in (1, 2, 3):
        parts = [jitted(a[i : i + count]) for i in range(0, COUNT, count)]
        yield f"{count} at a time", jax.tree.map(lambda *x: np.concatenate(x), *parts)
    yield "alone", jax.tree.map(lambda *x: np.stack(x), *[jitted(x) for x in a])
    yield "map", jax.jit(lambda a: jax.lax.map(function, a))(a)
    for devices in (2, 8):
        mesh = jax.make_mesh((devices,), ("batch",), devices=jax.devices()[:devices])
        sharding = NamedSharding(mesh, PartitionSpec("batch"))
        yield f"{devices} devices", jitted(jax.device_put(a, sharding))


def assert_phases(vectors, dtype):
    """The first component of at least 0.4869/√n is real and positive."""
    v = np.asarray(vectors)
    size = np.abs(v) * np.sqrt(v.shape[-2])
    margin = 100 * v.shape[-2] * np.finfo(dtype).eps
    first = np.argmax(size >= 0.4869, axis=-2)[..., None, :]
    chosen = np.take_along_axis(v, first, axis=-2)
    near = np.any(np.abs(size - 0.4869) < margin, axis=-2, keepdims=True)
    assert np.all(near | ((chosen.real > 0) & (chosen.imag == 0)))


def assert_largest_real(vectors, dtype):
    """The first component of the largest, give or take 128 roundings, is real and positive."""
    v = np.asarray(vectors)
    size = np.abs(v)
    largest = size.max(axis=-2, keepdims=True)
    eps = np.finfo(dtype).eps
    first = np.argmax(size >= largest * (1 - 136 * eps), axis=-2)[..., None, :]
    chosen = np.take_along_axis(v, first, axis=-2)
    near = np.abs(chosen) < largest * (1 - 120 * eps)
    assert np.all(near | ((chosen.real > 0) & (chosen.imag == 0)))


FEW = ("1 at a time", "2 at a time", "3 at a time", "alone", "map", "8 devices")
"""Ways by batches of less than four."""


def assert_one_answer(function, a, n, *, vectors, exact=False, rule=assert_phases):
    with lapax.installed():
        found = {name: jax.tree.map(np.asarray, x) for name, x in ways(function, a)}
    expected = found["batch"]
    if exact and 17 <= n <= 32:
        # One by one, an iteration may find the eigenvalues in another order.
        found = {name: x for name, x in found.items() if name not in FEW}
    for name, results in found.items():
        rule(jax.tree.leaves(results)[vectors], a.dtype)
        for x, y in zip(jax.tree.leaves(results), jax.tree.leaves(expected), strict=True):
            if exact:
                assert x.tobytes() == y.tobytes(), name
            else:
                np.testing.assert_allclose(
                    x, y, rtol=0, atol=30 * n * n * np.finfo(a.dtype).eps, err_msg=name
                )


@pytest.mark.parametrize("n", [1, 2, 3, 4, 8, 12, 17, 30, 33, 50])
def test_eigenvectors_of_hermitian_matrices(n, dtype):
    assert_one_answer(jnp.linalg.eigh, hermitian(dtype, n), n, vectors=1)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize(
    ("m", "n"), [(1, 1), (2, 2), (3, 5), (5, 3), (8, 8), (20, 17), (12, 30), (33, 33), (60, 40)]
)
def test_singular_vectors(m, n, full, dtype):
    k = min(m, n)

    def first(a):
        u, s, vt = jnp.linalg.svd(a, full_matrices=full)
        return u[..., :k], s, vt[..., :k, :]

    assert_one_answer(first, spread(dtype, m, n), max(m, n), vectors=0)


def general(dtype: np.dtype, n: int) -> np.ndarray:
    rng = np.random.default_rng(n)
    a = rng.standard_normal((COUNT, n, n))
    if dtype.kind == "c":
        a = a + 1j * rng.standard_normal((COUNT, n, n))
    return a.astype(dtype)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 12, 17, 30, 33, 60])
def test_general_matrices(n, dtype):
    a = general(dtype, n)

    def eig(a):
        return tuple(jnp.linalg.eig(a))

    assert_one_answer(eig, a, n, vectors=1, exact=True, rule=assert_largest_real)
    assert_one_answer(linalg.schur, a, n, vectors=1, exact=True)


@pytest.mark.skipif(
    "enable_eigvec_derivs" not in inspect.signature(linalg.eig).parameters,
    reason="this JAX has no derivative of eigenvectors",
)
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("n", [4, 7, 20])
@pytest.mark.parametrize("double", [np.float64, np.complex128])
def test_derivatives_of_eigenvectors(n, left, double):
    """JAX's rule takes it that the largest component of a vector is real."""
    a, da = general(np.dtype(double), n)[:2]

    def vectors(a):
        return linalg.eig(
            a,
            compute_left_eigenvectors=left,
            compute_right_eigenvectors=not left,
            enable_eigvec_derivs=True,
        )[1]

    step = 1e-6
    with lapax.installed(), jax.enable_x64(True):
        found = jax.jvp(vectors, (a,), (da,))[1]
        differences = (vectors(a + step * da) - vectors(a - step * da)) / (2 * step)
        np.testing.assert_allclose(found, differences, rtol=0, atol=1e-6 * np.abs(found).max())


@pytest.mark.parametrize("n", [2, 5, 12, 33])
def test_jaxlibs_targets_have_the_same_phases(n, dtype):
    """Left eigenvectors, and what is not row-major."""
    a = general(dtype, n)
    both = functools.partial(
        linalg.eig, compute_left_eigenvectors=True, compute_right_eigenvectors=True
    )
    for side in (1, 2):
        assert_one_answer(
            lambda a: tuple(both(a)), a, n, vectors=side, exact=True, rule=assert_largest_real
        )
    with lapax.installed():
        whole = jax.jit(linalg.schur)(a)[0]
        alone = jax.jit(functools.partial(linalg.schur, compute_schur_vectors=False))(a)[0]
    np.testing.assert_array_equal(whole, alone)
