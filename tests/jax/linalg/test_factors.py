"""lu, lu_factor, lu_solve, svd, svdvals and polar: SciPy's answers in each form."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from jax.test_util import check_grads

from lapax import linalg

SHAPES = [(5, 3), (3, 5), (4, 4)]


def matrix(*shape: int, dtype: Any = np.complex128, seed: int = 0) -> np.ndarray:
    g = np.random.default_rng(seed).standard_normal((2, *shape))
    return (g[0] + 1j * g[1] if np.dtype(dtype).kind == "c" else g[0]).astype(dtype)


@pytest.mark.parametrize("options", [{}, {"permute_l": True}, {"p_indices": True}])
def test_lu_is_scipys(options: dict[str, bool]) -> None:
    with jax.enable_x64(True):
        for shape in SHAPES:
            a = matrix(2, *shape)
            ours, theirs = linalg.lu(a, **options), scipy.linalg.lu(a, **options)
            for x, y in zip(ours, theirs, strict=True):
                assert x.shape == y.shape
                assert x.dtype == y.dtype
                np.testing.assert_allclose(x, y, atol=1e-13)


def test_lu_solves_in_each_form() -> None:
    with jax.enable_x64(True):
        a = matrix(3, 4, 4)
        factors = linalg.lu_factor(a)
        for trans, operand in enumerate((a, a.swapaxes(-1, -2), a.conj().swapaxes(-1, -2))):
            for b in (matrix(4), matrix(4, 4), matrix(3, 4, 2)):
                x = np.asarray(linalg.lu_solve(factors, b, trans))
                expected = np.linalg.solve(operand, b[:, None] if b.ndim == 1 else b)
                np.testing.assert_allclose(x, expected[..., 0] if b.ndim == 1 else expected)
        solve = jax.jit(lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b))
        check_grads(solve, (a[0], matrix(4)), order=1, rtol=1e-6, atol=1e-6)


def test_singular_values_are_scipys() -> None:
    with jax.enable_x64(True):
        for shape in SHAPES:
            a = matrix(*shape)
            for full in (True, False):
                u, s, vh = map(np.asarray, linalg.svd(a, full))
                for x, y in zip((u, s, vh), scipy.linalg.svd(a, full), strict=True):
                    assert x.shape == y.shape
                k = len(s)
                np.testing.assert_allclose((u[:, :k] * s) @ vh[:k], a, atol=1e-13)
            np.testing.assert_allclose(linalg.svdvals(a), scipy.linalg.svdvals(a))
            np.testing.assert_allclose(linalg.svd(a, compute_uv=False), s)


@pytest.mark.parametrize("side", ["left", "right"])
def test_polar_residuals(dtype: np.dtype, side: str) -> None:
    """‖A − U·P‖ and ‖1 − UᴴU‖; P is Hermitian with no negative eigenvalue."""
    eps = np.finfo(dtype).eps
    for m, n in SHAPES[:2]:
        general = matrix(m, n, dtype=dtype)
        for a in (general, general * dtype.type(1e-3) ** np.arange(n), np.ones_like(general)):
            a = a.astype(dtype)
            u, p = map(np.asarray, linalg.polar(a, side))
            assert u.dtype == p.dtype == dtype
            size = np.linalg.norm(a)
            product = u @ p if side == "right" else p @ u
            assert np.linalg.norm(product - a) < 30 * 5 * eps * size
            gram = u.conj().T @ u if m > n else u @ u.conj().T
            assert np.linalg.norm(gram - np.eye(min(m, n))) < 30 * 5 * eps
            assert np.linalg.norm(p - p.conj().T) < 30 * 5 * eps * size
            assert np.linalg.eigvalsh(p).min() > -30 * 5 * eps * size


def test_polar_is_scipys_and_keeps_not_a_number_to_itself() -> None:
    with jax.enable_x64(True):
        a = matrix(3, 4, 3)
        a[1] = np.nan
        for side in ("left", "right"):
            ours = linalg.polar(a, side)
            for i in (0, 2):
                for x, y in zip(ours, scipy.linalg.polar(a[i], side), strict=True):
                    np.testing.assert_allclose(x[i], y, atol=1e-13)
            assert np.isnan(ours[0][1]).all()


@pytest.mark.parametrize(("side", "m", "n"), [("right", 4, 2), ("left", 2, 3)])
def test_polar_has_derivatives(side: str, m: int, n: int) -> None:
    with jax.enable_x64(True):
        both = jax.jit(lambda a: linalg.polar(a, side))
        check_grads(both, (matrix(m, n),), order=1, rtol=1e-6, atol=1e-6)
        semidefinite = jax.jit(lambda f, g: linalg.polar(f @ g, side)[1])
        operands = (matrix(4, 2), matrix(2, 3))
        check_grads(semidefinite, operands, order=1, rtol=1e-6, atol=1e-6)


def test_polar_has_derivatives_where_singular_values_repeat() -> None:
    with jax.enable_x64(True):
        check_grads(jax.jit(linalg.polar), (jnp.eye(3),), order=1, rtol=1e-6, atol=1e-6)


def test_empty_operands() -> None:
    for m, n in ((0, 3), (3, 0)):
        a = np.zeros((m, n), np.float32)
        for options in ({}, {"permute_l": True}, {"p_indices": True}):
            ours, theirs = linalg.lu(a, **options), scipy.linalg.lu(a, **options)
            assert [x.shape for x in ours] == [x.shape for x in theirs]
        u, s, vh = linalg.svd(a)
        assert (u.shape, s.shape, vh.shape) == ((m, m), (0,), (n, n))
        u, p = linalg.polar(a)
        assert (u.shape, p.shape) == ((m, n), (n, n))


def test_misuse_is_said() -> None:
    a = np.ones((3, 2), np.float32)
    with pytest.raises(ValueError, match="polar: side: expected one of 'right', 'left', got 'up'"):
        linalg.polar(a, "up")
    with pytest.raises(ValueError, match=r"lu_solve: lu_and_piv: expected shape \[..., n, n\]"):
        linalg.lu_solve((a, np.zeros(2, np.int32)), np.ones(3))
    with pytest.raises(ValueError, match="lu_solve: trans: expected one of 0, 1, 2, got 3"):
        linalg.lu_solve((np.eye(2), np.zeros(2, np.int32)), np.ones(2), 3)
