"""eig, schur and hessenberg on row-major targets: answers, and which calls stay with LAPACK's."""

from __future__ import annotations

import contextlib
import functools
import re

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
import pytest
from jax.lax import linalg

import lapax
from programs import assert_close, custom_calls, operands, tolerance

F32 = np.dtype(np.float32)


def general(dtype, n, batch):
    """No larger than 1 in the mean."""
    return operands(np.dtype(dtype), n=n, batch=batch).a / n


def adjoint(a):
    return np.asarray(a).conj().swapaxes(-1, -2)


def assert_unitary(q, close):
    one = np.eye(q.shape[-1], dtype=q.dtype)
    assert_close(adjoint(q) @ q, np.broadcast_to(one, q.shape), close)


SHAPES = [(1, (1,)), (1, (9,)), (2, ()), (4, (17,)), (31, (2, 3)), (40, (3,)), (130, ())]
"""Orders and batches: in lanes, one by one, in blocks."""


@pytest.mark.parametrize(("n", "batch"), SHAPES)
def test_eigenvectors(n, batch, dtype):
    a = general(dtype, n, batch)
    with lapax.installed():
        w, v = map(np.asarray, jax.jit(jnp.linalg.eig)(a))
        alone = np.asarray(jax.jit(jnp.linalg.eigvals)(a))
    close = tolerance(np.dtype(dtype), n)
    assert_close(a @ v, v * w[..., None, :], close)
    assert_close(np.linalg.norm(v, axis=-2), np.ones_like(w.real), close)
    # Eigenvalues move with the root of the rounding error where two are near each other.
    assert_close(np.sort_complex(w), np.sort_complex(alone), 50 * close)
    for power in (1, 2):
        trace = np.trace(np.linalg.matrix_power(a, power), axis1=-2, axis2=-1)
        for values in (w, alone):
            assert_close((values**power).sum(-1), trace.astype(w.dtype), n * close)


@pytest.mark.parametrize(("n", "batch"), SHAPES)
def test_schur_form(n, batch, dtype):
    a = general(dtype, n, batch)
    with lapax.installed():
        t, z = map(np.asarray, jax.jit(linalg.schur)(a))
    close = tolerance(np.dtype(dtype), n)
    assert_close(z @ t @ adjoint(z), a, close)
    assert_unitary(z, close)
    assert not np.tril(t, -1 if a.dtype.kind == "c" else -2).any()


def hessenberg(a):
    return jsl.hessenberg(a, calc_q=True)


@pytest.mark.parametrize(("n", "batch"), SHAPES)
def test_hessenberg_form(n, batch, dtype):
    a = general(dtype, n, batch)
    stock = hessenberg(a)
    with lapax.installed():
        h, q = map(np.asarray, jax.jit(hessenberg)(a))
        eager = hessenberg(a)
        mapped = jax.vmap(hessenberg)(np.stack([a, a]))
        alone = jsl.hessenberg(a)
    close = tolerance(np.dtype(dtype), n)
    assert_close(q @ h @ adjoint(q), a, close)
    assert_unitary(q, close)
    assert_close(alone, h, close)
    for other in (stock, eager, [x[1] for x in mapped]):
        for ours, theirs in zip((h, q), other, strict=True):
            assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
            np.testing.assert_array_equal(ours == 0, theirs == 0)
            assert_close(ours, theirs, n * close)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_hessenberg_form_of_a_bad_matrix(value, dtype):
    n = 5
    a = general(dtype, n, (6,))
    a[2, 1, 3] = value
    others = np.arange(6) != 2
    with lapax.installed():
        h, q = map(np.asarray, hessenberg(a))
    np.testing.assert_array_equal(np.isnan(h[2]), np.triu(np.ones((n, n)), -1) == 1)
    assert np.all(np.isnan(q[2, 1:, 1:]))
    for border in (q[2, 0], q[2, :, 0]):
        np.testing.assert_array_equal(border, np.eye(n)[0])
    assert np.all(np.isfinite(h[others]))
    assert np.all(np.isfinite(q[others]))


def test_the_hessenberg_form_has_no_derivative_as_in_jax():
    a = general(F32, 5, ())
    for block in (lapax.installed(), contextlib.nullcontext()):
        with block, pytest.raises(NotImplementedError, match="hessenberg"):
            jax.jvp(hessenberg, (a,), (a,))


@pytest.mark.parametrize("n", [3, 40])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_bad_matrix_is_nan_and_leaves_the_others_alone(value, n, dtype):
    a = general(dtype, n, (6,))
    bad = a.copy()
    bad[2, n - 1, 0] = value
    others = np.arange(6) != 2

    def results(a):
        return jax.tree.leaves((jnp.linalg.eig(a), jnp.linalg.eigvals(a), linalg.schur(a)))

    with lapax.installed():
        good, spoilt = (map(np.asarray, jax.jit(results)(x)) for x in (a, bad))
    for x, y in zip(good, spoilt, strict=True):
        assert x[others].tobytes() == y[others].tobytes()
        assert np.all(np.isfinite(x))
        assert np.all(np.isnan(y[2]))


def test_empty_matrices(dtype):
    with lapax.installed():
        for shape in ((2, 0, 0), (0, 3, 3)):
            a = np.zeros(shape, dtype)
            w, v = jnp.linalg.eig(a)
            assert (w.shape, v.shape) == (shape[:-1], shape)
            assert jnp.linalg.eigvals(a).shape == shape[:-1]
            assert [x.shape for x in linalg.schur(a)] == [shape, shape]
            assert [x.shape for x in jsl.hessenberg(a, calc_q=True)] == [shape, shape]


PROGRAMS = {
    "eig": (jnp.linalg.eig, "lapax_eig"),
    "eig of a batch": (jax.vmap(jnp.linalg.eig), "lapax_eig"),
    "eigvals": (jnp.linalg.eigvals, "lapax_eigvals"),
    "schur": (linalg.schur, "lapax_schur"),
    "hessenberg": (hessenberg, "lapax_hess"),
    "hessenberg without q": (lambda a: jsl.hessenberg(a), "lapack_sgehrd_ffi"),
    "left eigenvectors": (linalg.eig, "lapack_sgeev_ffi"),
    "schur without vectors": (
        functools.partial(linalg.schur, compute_schur_vectors=False),
        "lapack_sgees_ffi",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_calls(name):
    function, call = PROGRAMS[name]
    with lapax.installed():
        assert custom_calls(function, general(F32, 4, (3,))) == [f"lapax.{call}"]


def test_exported_programs_call_by_jaxlib_s_names():
    a = general(F32, 4, (3,))
    with lapax.installed(), lapax.exporting():
        for function, call in (
            (jnp.linalg.eig, "lapack_sgeev_ffi"),
            (linalg.schur, "lapack_sgees_ffi"),
            (hessenberg, "lapack_sgehrd_ffi"),
        ):
            program = jax.export.export(jax.jit(function))(a)
            assert call in program.mlir_module()
            assert not re.search(r"custom_call @\"?lapax", program.mlir_module())


def test_derivatives():
    a = general(F32, 5, ())

    def function(a):
        return jnp.abs(jnp.linalg.eigvals(a)).sum()

    expected = jax.grad(function)(a)
    with lapax.installed():
        assert_close(jax.grad(function)(a), expected, tolerance(F32, 40))
