"""eigh and svd on row-major targets: their answers, and which calls stay with LAPACK's."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.lax import linalg

import lapax
from lapax import _jax_private as private
from programs import assert_close, custom_calls, emitted_calls, operands, tolerance

F32 = np.dtype(np.float32)


def general(dtype, m, n, batch):
    """No larger than 1 in the mean."""
    a = operands(np.dtype(dtype), n=max(m, n), batch=batch).a
    return a[..., :m, :n] / max(m, n)


def hermitian(dtype, n, batch):
    a = general(dtype, n, n, batch)
    return a + a.conj().swapaxes(-1, -2)


def adjoint(a):
    return np.asarray(a).conj().swapaxes(-1, -2)


SHAPES = [(1, (1,)), (1, (9,)), (3, ()), (4, (17,)), (31, (2, 3)), (40, (3,)), (70, ()), (200, ())]
"""Orders and batches: in lanes, one by one, in blocks, on threads."""


@pytest.mark.parametrize("uplo", ["L", "U"])
@pytest.mark.parametrize(("n", "batch"), SHAPES)
def test_eigenvectors(n, batch, uplo, dtype):
    a = hermitian(dtype, n, batch)
    with lapax.installed():
        w, v = jax.jit(functools.partial(jnp.linalg.eigh, UPLO=uplo))(a)
        alone = jax.jit(functools.partial(jnp.linalg.eigvalsh, UPLO=uplo))(a)
    w, v = np.asarray(w), np.asarray(v)
    close = tolerance(np.dtype(dtype), n)
    assert_close(a @ v, v * w[..., None, :], close)
    assert_close(adjoint(v) @ v, np.broadcast_to(np.eye(n, dtype=v.dtype), v.shape), close)
    assert_close(w, np.linalg.eigvalsh(a), close)
    assert_close(alone, np.linalg.eigvalsh(a), close)


@pytest.mark.parametrize("uplo", ["L", "U"])
def test_the_other_triangle_is_not_read(uplo, dtype):
    a = hermitian(dtype, 5, (7,))
    rows, columns = np.triu_indices(5, 1) if uplo == "L" else np.tril_indices(5, -1)
    stored = a.copy()
    stored[..., rows, columns] = np.nan
    with lapax.installed():
        v, w = linalg.eigh(stored, lower=uplo == "L", symmetrize_input=False)
    assert_close(a @ v, v * w[..., None, :], tolerance(np.dtype(dtype), 5))


RECTANGLES = [
    *((1, 1, (9,)), (3, 3, ()), (5, 3, (7,)), (3, 5, (7,))),
    *((40, 33, (2,)), (33, 70, ()), (200, 210, ())),
]


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize(("m", "n", "batch"), RECTANGLES)
def test_singular_vectors(m, n, batch, full, dtype):
    a = general(dtype, m, n, batch)
    with lapax.installed():
        u, s, vt = jax.jit(functools.partial(jnp.linalg.svd, full_matrices=full))(a)
        alone = jax.jit(functools.partial(jnp.linalg.svd, compute_uv=False))(a)
    k, close = min(m, n), tolerance(np.dtype(dtype), max(m, n))
    u, s, vt = map(np.asarray, (u, s, vt))
    sides = (m, n) if full else (k, k)
    assert (u.shape[-2:], vt.shape[-2:]) == ((m, sides[0]), (sides[1], n))
    assert_close((u[..., :k] * s[..., None, :]) @ vt[..., :k, :], a, close)
    for unitary in (u, adjoint(vt)):
        one = np.eye(unitary.shape[-1], dtype=u.dtype)
        gram = adjoint(unitary) @ unitary
        assert_close(gram, np.broadcast_to(one, gram.shape), close)
    assert_close(s, np.linalg.svd(a, compute_uv=False), close)
    assert_close(alone, np.linalg.svd(a, compute_uv=False), close)


@pytest.mark.parametrize("n", [3, 40])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_bad_matrix_is_nan_and_leaves_the_others_alone(value, n, dtype):
    a = hermitian(dtype, n, (6,))
    bad = a.copy()
    bad[2, n - 1, 0] = bad[2, 0, n - 1] = value
    others = np.arange(6) != 2

    def results(a):
        return jax.tree.leaves(
            (
                linalg.eigh(a),
                jnp.linalg.eigvalsh(a),
                jnp.linalg.svd(a),
                jnp.linalg.svd(a, compute_uv=False),
            )
        )

    with lapax.installed():
        good, spoilt = (map(np.asarray, jax.jit(results)(x)) for x in (a, bad))
    for x, y in zip(good, spoilt, strict=True):
        assert x[others].tobytes() == y[others].tobytes()
        assert np.all(np.isfinite(x))
        assert np.all(np.isnan(y[2]))


def test_empty_matrices(dtype):
    with lapax.installed():
        w, v = jnp.linalg.eigh(np.zeros((2, 0, 0), dtype))
        assert (w.shape, v.shape) == ((2, 0), (2, 0, 0))
        for m, n in ((3, 0), (0, 3), (0, 0)):
            u, s, vt = jnp.linalg.svd(np.zeros((2, m, n), dtype))
            assert (s.shape, u.shape, vt.shape) == ((2, 0), (2, m, m), (2, n, n))
            assert_close(adjoint(u) @ u, np.broadcast_to(np.eye(m, dtype=dtype), u.shape), 1e-6)
            assert jnp.linalg.svd(np.zeros((2, m, n), dtype), compute_uv=False).shape == (2, 0)
        assert jnp.linalg.eigvalsh(np.zeros((0, 3, 3), dtype)).shape == (0, 3)


PROGRAMS = {
    "eigh": (linalg.eigh, "lapax.lapax_eigh"),
    "eigh of a batch": (jax.vmap(jnp.linalg.eigh), "lapax.lapax_eigh"),
    "eigvalsh": (jnp.linalg.eigvalsh, "lapax.lapax_eigvalsh"),
    "svd": (jnp.linalg.svd, "lapax.lapax_svd"),
    "svdvals": (functools.partial(jnp.linalg.svd, compute_uv=False), "lapax.lapax_svdvals"),
    "pinv": (jnp.linalg.pinv, "lapax.lapax_svd"),
    "norm": (functools.partial(jnp.linalg.norm, ord=2, axis=(-2, -1)), "lapax.lapax_svdvals"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_calls(name):
    function, call = PROGRAMS[name]
    with lapax.installed():
        assert custom_calls(function, hermitian(F32, 4, (3,))) == [call]


def test_a_part_and_another_algorithm_stay_with_lapack():
    a = hermitian(F32, 4, (3,))
    with lapax.installed():
        part = functools.partial(linalg.eigh, subset_by_index=(1, 3))
        assert custom_calls(part, a) == ["lapax.lapax_eigh_subset"]
        part = functools.partial(linalg.svd, subset_by_index=(0, 2), full_matrices=False)
        assert custom_calls(part, a) == ["lapax.lapax_svd_subset"]
        # Of those that this JAX has.
        for algorithm in linalg.SvdAlgorithm:
            other = functools.partial(linalg.svd, algorithm=algorithm)
            by_steps = algorithm.name in ("QR", "JACOBI")
            call = "lapax.lapack_sgesvd_ffi" if by_steps else "lapax.lapax_svd"
            assert custom_calls(other, a) == [call], algorithm


def test_exported_programs_call_by_jaxlib_s_names():
    a = hermitian(F32, 4, (3,))
    with lapax.installed(), lapax.exporting():
        for function, call in (
            (linalg.eigh, "lapack_ssyevd_ffi"),
            (linalg.svd, "lapack_sgesdd_ffi"),
        ):
            program = jax.export.export(jax.jit(function))(a)
            assert emitted_calls(program.mlir_module()) == [call]
    assert private.jaxlib_cpu_targets() >= {"lapack_ssyevd_ffi", "lapack_sgesdd_ffi"}
