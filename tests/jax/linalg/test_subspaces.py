"""orth, null_space, subspace_angles, orthogonal_procrustes and the truncated decompositions."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from jax.test_util import check_grads

from lapax import linalg


def matrix(*shape: int, dtype: Any = np.complex128, seed: int = 0) -> np.ndarray:
    g = np.random.default_rng(seed).standard_normal((2, *shape))
    return (g[0] + 1j * g[1] if np.dtype(dtype).kind == "c" else g[0]).astype(dtype)


def of_rank_two(m: int, n: int) -> np.ndarray:
    return matrix(m, 2) @ matrix(2, n, seed=1)


def projection(basis: Any) -> Any:
    return basis @ basis.conj().swapaxes(-1, -2)


def test_bases_are_scipys() -> None:
    with jax.enable_x64(True):
        for a in (of_rank_two(5, 3), of_rank_two(3, 5), np.zeros((3, 2)), np.eye(3)):
            for ours, theirs in (
                (linalg.orth, scipy.linalg.orth),
                (linalg.null_space, scipy.linalg.null_space),
            ):
                found, expected = ours(a), theirs(a)
                assert found.shape == expected.shape
                np.testing.assert_allclose(projection(found), projection(expected), atol=1e-14)
        assert linalg.orth(np.diag([1, 1e-3]), rcond=1e-2).shape == (2, 1)


def test_bases_have_a_static_size_under_jit() -> None:
    with jax.enable_x64(True):
        a = np.stack([of_rank_two(4, 3), matrix(4, 3), np.full((4, 3), np.nan)])
        q = jax.jit(lambda a: linalg.orth(a, size=2))(a)
        z = jax.jit(lambda a: linalg.null_space(a, size=2))(a)
        np.testing.assert_allclose(projection(q[0]), projection(linalg.orth(a[0])), atol=1e-14)
        np.testing.assert_allclose(z[0, :, :1], linalg.null_space(a[0]), atol=1e-14)
        np.testing.assert_array_equal(z[:2, :, 1:], 0)
        np.testing.assert_array_equal(z[1], 0)
        assert np.isnan(q[1:]).all()
        assert np.isnan(z[2]).all()
        with pytest.raises(ValueError, match="orth: the shape of its result depends on values"):
            jax.jit(linalg.orth)(a)
        with pytest.raises(ValueError, match=r"null_space: .* the batch has those of \[2, 3\]"):
            linalg.null_space(a)


def test_bases_have_derivatives_at_deficient_rank() -> None:
    """Of the projection, which does not depend on the choice of the basis."""
    with jax.enable_x64(True):
        factors = (matrix(4, 2), matrix(2, 3, seed=1))

        @jax.jit
        def projections(f: jax.Array, g: jax.Array) -> Any:
            a = f @ g
            both = linalg.orth(a, size=3), linalg.null_space(a, size=2)
            return [projection(basis) for basis in both]

        check_grads(projections, factors, order=1, rtol=1e-6, atol=1e-6)


def test_angles_are_scipys() -> None:
    with jax.enable_x64(True):
        for a, b in (
            (matrix(5, 2), matrix(5, 3, seed=1)),
            (matrix(5, 3), matrix(5, 3) + 1e-9 * matrix(5, 3, seed=1)),
            (np.eye(4)[:, :2], np.eye(4)[:, 1:]),
            (of_rank_two(5, 3), matrix(5, 3, seed=2)),
            (matrix(5, 3, seed=2), of_rank_two(5, 4)),
        ):
            expected = scipy.linalg.subspace_angles(a, b)
            found = np.asarray(linalg.subspace_angles(a, b))
            np.testing.assert_allclose(found[: len(expected)], expected, atol=1e-14)
            assert len(found) == min(a.shape[1], b.shape[1])
            assert np.isnan(found[len(expected) :]).all()
        several = linalg.subspace_angles(matrix(2, 5, 2), matrix(5, 3, seed=1))
        alone = linalg.subspace_angles(matrix(2, 5, 2)[1], matrix(5, 3, seed=1))
        np.testing.assert_allclose(several[1], alone, atol=1e-14)


def test_angles_have_derivatives() -> None:
    with jax.enable_x64(True):
        angles = jax.jit(linalg.subspace_angles)
        check_grads(angles, (matrix(5, 2), matrix(5, 3, seed=1)), order=1, rtol=1e-5, atol=1e-5)
        near = matrix(5, 2) + 0.1 * matrix(5, 2, seed=1)
        check_grads(angles, (matrix(5, 2), near), order=1, rtol=1e-5, atol=1e-5)


def test_procrustes(dtype: np.dtype) -> None:
    limit = 30 * 5 * np.finfo(dtype).eps
    a, b = matrix(2, 5, 3, dtype=dtype), matrix(5, 3, dtype=dtype, seed=1)
    rotation, scale = map(np.asarray, linalg.orthogonal_procrustes(a, b))
    assert rotation.dtype == dtype
    for i in range(2):
        expected, expected_scale = scipy.linalg.orthogonal_procrustes(a[i], b)
        np.testing.assert_allclose(rotation[i], expected, atol=limit)
        np.testing.assert_allclose(scale[i], expected_scale, rtol=limit)


def test_procrustes_has_a_derivative_where_values_repeat() -> None:
    with jax.enable_x64(True):
        eye = jnp.eye(3, dtype=complex)
        both = jax.jit(linalg.orthogonal_procrustes)
        check_grads(lambda a: both(a, eye)[0], (eye,), order=1, rtol=1e-6, atol=1e-6)


def test_truncated_decompositions_are_the_best_of_their_rank(dtype: np.dtype) -> None:
    limit = 30 * 5 * np.finfo(dtype).eps
    a = matrix(2, 5, 4, dtype=dtype)
    u, s, vh = map(np.asarray, linalg.truncated_svd(a, 2))
    assert u.dtype == dtype
    full = np.linalg.svd(a, full_matrices=False)
    np.testing.assert_allclose(s, full[1][:, :2], rtol=limit)
    best = (full[0][..., :2] * full[1][:, None, :2]) @ full[2][:, :2]
    np.testing.assert_allclose((u * s[:, None]) @ vh, best, atol=10 * limit)
    h = a + 0
    h = h[:, :4] - 2 * np.eye(4, dtype=dtype) + h[:, :4].conj().swapaxes(-1, -2)
    w, v = map(np.asarray, linalg.truncated_eigh(np.tril(h), 2))
    values = np.linalg.eigvalsh(h)
    for i in range(2):
        expected = values[i][np.argsort(-np.abs(values[i]))[:2]]
        np.testing.assert_allclose(w[i], expected, atol=10 * limit)
    np.testing.assert_allclose(h @ v, v * w[:, None], atol=10 * limit)


def test_truncation_by_tolerance() -> None:
    with jax.enable_x64(True):
        a = np.diag([1, 1e-2, 1e-4, 0])
        for k in (None, 3):
            u, s, vh = linalg.truncated_svd(a, k, 1e-3)
            assert s.shape == (k or 4,)
            np.testing.assert_allclose(s[:2], [1, 1e-2])
            assert not s[2:].any()
            assert not u[:, 2:].any()
            assert not vh[2:].any()
            w, v = linalg.truncated_eigh(-a, k, 1e-3)
            np.testing.assert_allclose(w[:2], [-1, -1e-2])
            assert not w[2:].any()
            assert not v[:, 2:].any()


def test_truncated_decompositions_have_derivatives() -> None:
    """Of what is kept, while what is dropped repeats: zeros of deficient rank."""
    with jax.enable_x64(True):
        f, g = matrix(5, 2), matrix(2, 4, seed=1)

        @jax.jit
        def low_rank(f: jax.Array, g: jax.Array) -> Any:
            u, s, vh = linalg.truncated_svd(f @ g, 3, 1e-8)
            return (u * s) @ vh, s, jnp.real(u * u.conj()), projection(vh.conj().T)

        check_grads(low_rank, (f, g), order=1, rtol=1e-5, atol=1e-5)
        dropped = jax.jit(lambda a: linalg.truncated_svd(a, 2))
        check_grads(
            dropped, (matrix(4, 3, dtype=float),), order=1, modes=["rev"], rtol=1e-5, atol=1e-5
        )

        @jax.jit
        def semidefinite(f: jax.Array) -> Any:
            w, v = linalg.truncated_eigh(projection(f), 3, 1e-8)
            return w, projection(v), jnp.real(v * v.conj())

        check_grads(semidefinite, (f,), order=1, rtol=1e-5, atol=1e-5)


def test_misuse_is_said() -> None:
    a = np.ones((3, 2), np.float32)
    with pytest.raises(ValueError, match="truncated_svd: k: expected 0 to 2, got 3"):
        linalg.truncated_svd(a, 3)
    with pytest.raises(ValueError, match="truncated_eigh: tol: expected a number ≥ 0, got -1"):
        linalg.truncated_eigh(np.eye(2, dtype=np.float32), tol=-1)
    with pytest.raises(ValueError, match="subspace_angles: B: expected 3 rows, got 2"):
        linalg.subspace_angles(a, a.T)
    with pytest.raises(ValueError, match=r"orthogonal_procrustes: B: expected shape \[..., 3, 2\]"):
        linalg.orthogonal_procrustes(a, a.T)
    with pytest.raises(ValueError, match="orth: size: expected a number ≥ 0, got -1"):
        linalg.orth(a, size=-1)
