"""Interpolative and random low-rank decompositions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from lapax.linalg import interpolative


def low_rank(dtype, shape=(30, 20), rank=4, noise=0.0, batch=()):
    g = np.random.default_rng(3).standard_normal((4, *batch, max(shape), rank))
    u = g[0] + (1j * g[1] if np.dtype(dtype).kind == "c" else 0)
    v = g[2] + (1j * g[3] if np.dtype(dtype).kind == "c" else 0)
    a = u[..., : shape[0], :] @ v[..., : shape[1], :].swapaxes(-1, -2)
    return (a + noise * np.random.default_rng(4).standard_normal(a.shape)).astype(dtype)


@pytest.mark.parametrize("rand", [True, False])
def test_columns_and_coefficients_make_the_matrix(dtype, rand):
    a = low_rank(dtype, batch=(3,))
    tolerance = 200 * np.finfo(dtype).eps * np.abs(a).max()
    idx, proj = jax.jit(lambda a: interpolative.interp_decomp(a, 4, rand))(a)
    assert (idx.shape, proj.shape) == ((3, 20), (3, 4, 16))
    np.testing.assert_array_equal(np.sort(idx, -1), np.tile(np.arange(20), (3, 1)))
    skeleton = interpolative.reconstruct_skel_matrix(a, 4, idx)
    np.testing.assert_array_equal(skeleton[1], a[1][:, idx[1, :4]])
    again = interpolative.reconstruct_matrix_from_id(skeleton, idx, proj)
    np.testing.assert_allclose(again, a, atol=tolerance)
    by_matrix = skeleton @ interpolative.reconstruct_interp_matrix(idx, proj)
    np.testing.assert_allclose(by_matrix, a, atol=tolerance)
    assert np.abs(proj).max() < 20
    u, s, v = interpolative.id_to_svd(skeleton, idx, proj)
    np.testing.assert_allclose(s, np.linalg.svd(a, compute_uv=False)[:, :4], rtol=1e-3)
    np.testing.assert_allclose((u * s[:, None]) @ v.conj().swapaxes(-1, -2), a, atol=tolerance)


@pytest.mark.parametrize("rand", [True, False])
def test_singular_values_of_noisy_matrices(rand):
    with jax.enable_x64(True):
        a = low_rank(np.float64, (60, 50), 5, noise=1e-3)
        u, s, v = jax.jit(lambda a: interpolative.svd(a, 5, rand))(a)
        exact = np.linalg.svd(a, compute_uv=False)
        best = exact[5]
        assert np.linalg.norm(a - (u * s) @ v.T, 2) < (1.1 if rand else 10) * best
        np.testing.assert_allclose(s, exact[:5], rtol=1e-4)
        np.testing.assert_allclose(u.T @ u, np.eye(5), atol=1e-12)
        np.testing.assert_allclose(v.T @ v, np.eye(5), atol=1e-12)


def test_precision_in_place_of_a_rank():
    with jax.enable_x64(True):
        a = low_rank(np.float64, (12, 10), 3, noise=1e-9)
        assert interpolative.estimate_rank(a, 1e-6) == 3
        k, _, proj = interpolative.interp_decomp(a, 1e-6)
        assert (k, proj.shape) == (3, (3, 7))
        assert interpolative.svd(a, 1e-6)[1].shape == (3,)
        np.testing.assert_array_equal(
            interpolative.estimate_rank(np.stack([a, 0 * a]), 1e-6), [3, 1]
        )
        with pytest.raises(ValueError, match="estimate_rank: the shape of its result depends"):
            jax.jit(lambda a: interpolative.interp_decomp(a, 1e-6))(a)


def test_spectral_norms_and_keys():
    with jax.enable_x64(True):
        a = low_rank(np.float64, batch=(2,))
        norms = np.linalg.norm(a, 2, axis=(-2, -1))
        found = interpolative.estimate_spectral_norm(a)
        assert (found <= norms * (1 + 1e-12)).all()
        np.testing.assert_allclose(found, norms, rtol=1e-2)
        found = interpolative.estimate_spectral_norm_diff(a, 2 * a, rng=jax.random.key(1))
        np.testing.assert_allclose(found, norms, rtol=1e-2)
        assert interpolative.estimate_spectral_norm(0 * a[0]) == 0
        noisy = low_rank(np.float64, (60, 50), 5, noise=0.1)
        first, second, other = (interpolative.svd(noisy, 3, rng=key)[1] for key in (7, 7, 8))
        np.testing.assert_array_equal(first, second)
        assert (first != other).any()


def test_derivatives_hold_the_choice():
    with jax.enable_x64(True):
        a = jnp.asarray(low_rank(np.float64, (7, 6), 3, noise=1e-2))
        check_grads(lambda a: interpolative.interp_decomp(a, 3)[1], (a,), order=1)
        exact = jnp.asarray(low_rank(np.float64, (7, 6), 3))
        gradient = jax.grad(lambda a: interpolative.svd(a, 3)[1].sum())(exact)
        u, _, vh = np.linalg.svd(exact)
        np.testing.assert_allclose(gradient, u[:, :3] @ vh[:3], atol=1e-10)


def test_nan_stays_in_its_matrix_and_misuse():
    a = np.stack([low_rank(np.float32), np.full((30, 20), np.nan, np.float32)])
    s = interpolative.svd(a, 4)[1]
    assert np.isfinite(s[0]).all()
    assert np.isnan(s[1]).all()
    for call, text in (
        (
            lambda: interpolative.interp_decomp(a, 21),
            "interp_decomp: rank: expected 1 to 20, got 21",
        ),
        (lambda: interpolative.svd(a[0, 0], 1), r"svd: A: expected shape \[..., m, n\]"),
        (lambda: interpolative.estimate_rank(a[0], 2.0), "eps: expected a number between 0 and 1"),
        (lambda: interpolative.estimate_spectral_norm(a, its=0), "its: expected a number ≥ 1"),
    ):
        with pytest.raises(ValueError, match=text):
            call()
