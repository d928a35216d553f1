"""Inverse, square root and inverse square root of positive semidefinite matrices."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from ratios import LIMIT, adjoint, norm, ratio

from lapax import linalg
from programs import operands

FUNCTIONS = [linalg.psd_inverse, linalg.psd_sqrt, linalg.psd_inverse_sqrt]


def test_of_well_conditioned_matrices(dtype):
    s = operands(dtype, n=5, batch=(2,)).s
    inverse, root, inverse_root = (np.asarray(f(s)) for f in FUNCTIONS)
    condition = norm(s) * norm(inverse)
    assert ratio(s @ inverse - np.eye(5), condition, dtype) < LIMIT
    assert ratio(root @ root - s, norm(s), dtype) < LIMIT
    assert ratio(inverse_root @ s @ inverse_root - np.eye(5), condition, dtype) < LIMIT
    assert ratio(root - adjoint(root), norm(root), dtype) < LIMIT


def test_of_singular_matrices(dtype):
    """The Moore-Penrose inverse, from a rank of three of five; a zero matrix; an indefinite one."""
    g = operands(dtype, n=5, batch=(), seed=1).a[:, :3]
    s = (g @ adjoint(g)).astype(dtype)
    a = np.stack([s, np.zeros_like(s), np.diag([4, 1, -1, 0, 0]).astype(dtype)])
    inverse, root, inverse_root = (np.asarray(f(a, rtol=1e-4)) for f in FUNCTIONS)
    # f32 has 10⁻⁷ of errors beside a cut-off of 10⁻⁴, and the smooth cut-off 10⁻⁴ to the fourth.
    expected = np.linalg.pinv(s.astype("c16"), rcond=1e-4)
    np.testing.assert_allclose(inverse[0], expected, rtol=0, atol=1e-4 * norm(expected))
    np.testing.assert_allclose(root[0] @ root[0], s, rtol=0, atol=1e-5 * norm(s))
    whitened = inverse_root[0] @ s @ inverse_root[0]
    np.testing.assert_allclose(whitened, expected @ s, rtol=0, atol=1e-3)
    for f in (inverse, root, inverse_root):
        np.testing.assert_array_equal(f[1], 0)
    np.testing.assert_allclose(np.diag(inverse[2]), [0.25, 1, 0, 0, 0], rtol=1e-5)
    np.testing.assert_allclose(np.diag(root[2]), [2, 1, 0, 0, 0], rtol=1e-5)


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_derivatives_with_a_cut_off_in_the_spectrum(dtype):
    with jax.enable_x64(True):
        s = operands(np.dtype(dtype), n=3, batch=()).s
        check_grads(jax.jit(lambda a: [f(a, rtol=0.4) for f in FUNCTIONS]), (s,), 1)


def test_derivatives_at_repeated_and_zero_eigenvalues():
    """d(A⁻¹) = −A⁻¹·dA·A⁻¹ at A = I; X with X·A^½ + A^½·X = dA; and a gradient at rank one."""
    with jax.enable_x64(True):
        identity, direction = jnp.eye(3), jnp.array([[1.0, 2, 0], [2, 0, 3], [0, 3, -1]])
        factors = (-1, 0.5, -0.5)
        tangents = [jax.jvp(f, (identity,), (direction,))[1] for f in FUNCTIONS]
        for factor, tangent in zip(factors, tangents, strict=True):
            np.testing.assert_allclose(tangent, factor * direction, rtol=1e-12, atol=1e-14)
        for f in FUNCTIONS:
            gradient = jax.grad(lambda a, f=f: jnp.sum(f(a, rtol=1e-6)))(jnp.ones((3, 3)))
            assert np.isfinite(gradient).all()
            assert np.abs(gradient).max() < 10


def test_nan_batch_empty_and_misuse():
    s = operands(np.dtype("f4"), n=3, batch=(3,)).s
    s[1, 0, 0] = np.nan
    for f in FUNCTIONS:
        assert np.isnan(f(s)).any((-1, -2)).tolist() == [False, True, False]
        np.testing.assert_allclose(jax.vmap(f)(s)[2], f(s[2]), rtol=1e-4, atol=1e-5)
        assert f(np.zeros((0, 0))).shape == (0, 0)
        with pytest.raises(ValueError, match=f"{f.__name__}: a: expected shape"):
            f(s[:, :2])
    with pytest.raises(ValueError, match=r"psd_sqrt: rtol: expected a positive number, got 0"):
        linalg.psd_sqrt(s, rtol=0)
