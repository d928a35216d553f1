"""Balanced matrices, and real and complex forms of eigen- and Schur decompositions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from jax.test_util import check_grads

from lapax import linalg

RNG = np.random.default_rng(0)
REAL = RNG.standard_normal((3, 5, 5))


def sparse_and_graded(share):
    """20 matrices of order 6 with this share of nonzeros, scaled by powers of ten."""
    a = RNG.standard_normal((20, 6, 6)) * (RNG.random((20, 6, 6)) < share)
    powers = 10.0 ** RNG.integers(-9, 9, (20, 6, 2))
    return a * powers[:, :, :1] * powers[:, None, :, 1]


FAR_APART = [[1, 1e-3, 0, 1e4], [1e-2, -2, 1e-5, 1e-12], [0, 1e4, 3, 1e-15], [1e4, 0, 1e-14, 1e-8]]

KINDS = {
    "isolated eigenvalues": sparse_and_graded(0.25),
    "graded": sparse_and_graded(1.0),
    "zero": np.zeros((1, 6, 6)),
    "diagonal": np.diag(np.arange(6.0))[None],
    "triangular": np.tril(np.ones((1, 6, 6))),
    "sizes far apart": scipy.linalg.block_diag(FAR_APART, np.ones((2, 2)))[None],
}


@pytest.mark.parametrize(
    ("factor", "options"),
    [(1, {}), (1 + 2j, {}), (1, {"permute": False}), (1, {"scale": False})],
)
def test_balanced_matrices_are_lapacks(factor, options):
    a = np.concatenate(list(KINDS.values())) * factor
    with jax.enable_x64(True):
        b, (s, p) = linalg.matrix_balance(a, **options, separate=True)
    assert s.dtype == np.float64
    for i in range(len(a)):
        with np.errstate(invalid="ignore"):  # SciPy converts factors as if they were indices.
            expected, (factors, permutation) = scipy.linalg.matrix_balance(
                a[i], **options, separate=True
            )
        np.testing.assert_array_equal(b[i], expected)
        np.testing.assert_array_equal(s[i], factors)
        np.testing.assert_array_equal(p[i], permutation)


@pytest.mark.parametrize("dtype", ["float32", "complex128"], indirect=True)
def test_the_transformation_of_balancing(dtype):
    a = (REAL * 10.0 ** np.arange(-4, 6, 2)).astype(dtype)
    b, t = jax.vmap(linalg.matrix_balance)(a)
    assert (b.dtype, t.dtype) == (dtype, np.finfo(dtype).dtype)
    assert len(np.unique(t)) > 3
    np.testing.assert_array_equal(t @ b, a @ np.asarray(t))


def test_what_is_not_finite_is_nan_alone():
    a = np.array([[[1, np.inf], [2, 3]], [[1000, 1], [1000, 0]], [[np.nan, 1], [1, 1]]])
    b, t = linalg.matrix_balance(a)
    assert np.isnan(b).all(axis=(1, 2)).tolist() == [True, False, True]
    np.testing.assert_array_equal(t[1], [[1, 0], [0, 32]])


@pytest.mark.parametrize("n", [0, 1])
def test_balance_of_the_smallest(n):
    b, (s, p) = linalg.matrix_balance(np.ones((2, n, n)), separate=True)
    np.testing.assert_array_equal(b, np.ones((2, n, n)))
    np.testing.assert_array_equal(s, np.ones((2, n)))
    np.testing.assert_array_equal(p, np.zeros((2, n)))


def test_derivative_of_balancing():
    with jax.enable_x64(True):
        a = jnp.asarray(REAL[0] * 10.0 ** np.arange(5)).at[1, 3].set(0)
        b, t = linalg.matrix_balance(a)
        b_dot = jax.jvp(lambda a: linalg.matrix_balance(a)[0], (a,), (a.T,))[1]
        np.testing.assert_array_equal(t @ b_dot, a.T @ t)
        gradient = jax.grad(lambda a: jnp.vdot(b, linalg.matrix_balance(a)[0]))(a)
        np.testing.assert_allclose(jnp.vdot(gradient, a.T), jnp.vdot(b, b_dot), rtol=1e-13)


def test_complex_schur_forms(dtype):
    if dtype.kind == "c":
        t, z = scipy.linalg.schur(REAL.astype(dtype), output="complex")
    else:
        t, z = scipy.linalg.schur(REAL.astype(dtype))
    triangular, vectors = linalg.rsf2csf(t, z)
    assert triangular.dtype == np.result_type(dtype, np.complex64)
    np.testing.assert_array_equal(np.tril(triangular, -1), 0)
    limit = 30 * 5 * np.finfo(dtype).eps
    expected, expected_vectors = scipy.linalg.rsf2csf(t, z)
    assert np.abs(triangular - expected).max() < limit * np.abs(expected).max()
    assert np.abs(vectors - expected_vectors).max() < limit
    adjoint = np.conj(np.swapaxes(vectors, -1, -2))
    assert np.abs(vectors @ triangular @ adjoint - REAL).max() < limit * np.abs(REAL).max()
    assert np.abs(vectors @ adjoint - np.eye(5)).max() < limit


@pytest.mark.parametrize("n", [0, 1])
def test_schur_forms_of_the_smallest(n):
    t, z = linalg.rsf2csf(np.ones((n, n)), np.ones((n, n)))
    assert t.shape == z.shape == (n, n)


def test_derivative_of_the_schur_form():
    t, z = scipy.linalg.schur(REAL[0])
    inside = np.triu(np.ones((5, 5), bool)) | (t != 0)
    with jax.enable_x64(True):
        whole = jax.jit(lambda t, z: linalg.rsf2csf(jnp.where(inside, t, 0), z))
        check_grads(whole, (jnp.asarray(t), jnp.asarray(z)), order=1)


def test_real_forms_of_eigenvectors():
    w, v = np.linalg.eig(REAL)
    with jax.enable_x64(True):
        wr, vr = jax.jit(linalg.cdf2rdf)(w, v)
        expected, expected_vectors = scipy.linalg.cdf2rdf(w, v)
        np.testing.assert_array_equal(wr, expected)
        np.testing.assert_allclose(vr, expected_vectors, atol=1e-15)
        np.testing.assert_allclose(REAL @ vr, vr @ wr, atol=1e-13)


def test_derivatives_of_real_forms():
    def of_parts(x, y):
        w = jnp.stack([x[0] + 0j, x[1] + 1j * x[2], x[1] - 1j * x[2]])
        v = jnp.stack([y[0] + 0j, y[1] + 1j * y[2], y[1] - 1j * y[2]], axis=-1)
        return linalg.cdf2rdf(w, v)

    with jax.enable_x64(True):
        y = jnp.asarray(REAL[0, :3, :3])
        check_grads(jax.jit(of_parts), (y[0], y), order=1)


def test_real_eigenvalues_stay():
    wr, vr = linalg.cdf2rdf(np.arange(3.0), np.eye(3))
    np.testing.assert_array_equal(wr, np.diag(np.arange(3)))
    np.testing.assert_array_equal(vr, np.eye(3))


def test_numbers_without_a_pair_are_nan_alone():
    w = np.array([[1 + 1j, 1], [1 + 1j, 1 - 1j]])
    wr, vr = linalg.cdf2rdf(w, np.eye(2))
    for found in (wr, vr):
        assert np.isnan(found).tolist() == [[[True] * 2] * 2, [[False] * 2] * 2]


WRONG = [
    (lambda: linalg.matrix_balance(np.ones((2, 3))), r"matrix_balance: A: .*n, n\], got \[2, 3\]"),
    (lambda: linalg.rsf2csf(np.eye(2), np.eye(3)), "rsf2csf: Z: expected 2 rows, got 3"),
    (lambda: linalg.cdf2rdf(np.ones(()), np.eye(2)), r"cdf2rdf: w: expected shape .*, got \[\]"),
    (lambda: linalg.cdf2rdf(np.ones(3), np.ones((3, 2))), r"cdf2rdf: v: .*n, n\], got \[3, 2\]"),
    (lambda: linalg.cdf2rdf(np.ones(3), np.eye(4)), "cdf2rdf: w: expected 4 eigenvalues, got 3"),
]


@pytest.mark.parametrize(("call", "text"), WRONG)
def test_misuse_is_named(call, text):
    with pytest.raises(ValueError, match=text):
        call()
