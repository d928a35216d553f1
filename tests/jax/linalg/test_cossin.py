"""cossin: SciPy's factors, small and equal angles, blocks of all shapes, and the angles' slope."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from jax.test_util import check_grads

from lapax import linalg

# m, p and q with none and each of the four identities, and swap_sign.
CASES = [
    (4, 2, 2, False),
    (4, 2, 2, True),
    (7, 5, 5, True),
    (7, 6, 2, True),
    (7, 2, 6, False),
    (7, 1, 2, False),
]


def unitary(m: int, seed: int = 0) -> np.ndarray:
    g = np.random.default_rng(seed).standard_normal((2, m, m))
    return np.linalg.qr(g[0] + 1j * g[1])[0]


def with_angles(theta: list[float]) -> np.ndarray:
    """A unitary matrix of four equal blocks with these angles."""
    r = len(theta)
    c, s = np.diag(np.cos(theta)), np.diag(np.sin(theta))
    u = scipy.linalg.block_diag(unitary(r, 1), unitary(r, 2))
    vh = scipy.linalg.block_diag(unitary(r, 3), unitary(r, 4))
    return u @ np.block([[c, -s], [s, c]]) @ vh


def errors(x: np.ndarray, u: np.ndarray, cs: np.ndarray, vh: np.ndarray) -> list[float]:
    """‖X − U·CS·Vᴴ‖, ‖1 − UᴴU‖ and ‖1 − VᴴV‖ over m·ε."""
    eye = np.eye(x.shape[-1])
    differences = (x - u @ cs @ vh, eye - u.conj().T @ u, eye - vh.conj().T @ vh)
    return [np.linalg.norm(d) / (len(x) * np.finfo(x.dtype).eps) for d in differences]


@pytest.mark.parametrize(("m", "p", "q", "swap_sign"), CASES)
def test_blocks_of_all_shapes(m: int, p: int, q: int, swap_sign: bool) -> None:
    with jax.enable_x64(True):
        for x in (unitary(m), np.eye(m) + 0j, np.eye(m)[::-1] + 0j):
            u, cs, vh = map(np.asarray, linalg.cossin(x, p, q, swap_sign=swap_sign))
            assert max(errors(x, u, cs, vh)) < 30
            expected = scipy.linalg.cossin(x, p, q, swap_sign=swap_sign)[1]
            np.testing.assert_allclose(cs, expected, atol=1e-14)
            assert not u[:p, p:].any()
            assert not vh[q:, :q].any()


def test_small_equal_and_right_angles(dtype: np.dtype) -> None:
    """Where columns of X₂₁·V₁ are not orthogonal to the precision of their own length."""
    eps = float(np.finfo(dtype).eps)
    for theta in (
        [0, eps, 10 * eps**0.5, 10 * eps**0.5],
        [np.pi / 4] * 4,
        [np.pi / 4 - 2 * eps, np.pi / 4, np.pi / 4 + 2 * eps, 1],
        [np.pi / 2, np.pi / 2 - eps**0.5, eps**0.5, eps**0.5],
        [0, 0, np.pi / 2, np.pi / 2],
    ):
        x = with_angles(theta)
        x = (x if dtype.kind == "c" else scipy.linalg.polar(x.real)[0]).astype(dtype)
        u, cs, vh = map(np.asarray, linalg.cossin(x, 4, 4))
        assert u.dtype == vh.dtype == dtype
        assert max(errors(x, u, cs, vh)) < 30
        if dtype.kind == "c":
            found = np.arctan2(np.diag(cs[4:, :4]), np.diag(cs[:4, :4]))
            assert np.abs(found - np.sort(theta)).max() < 30 * 8 * eps


def test_parts_batches_and_not_a_number() -> None:
    with jax.enable_x64(True):
        x = np.stack([unitary(5, seed) for seed in range(3)])
        x[1] = np.nan
        (u1, u2), theta, (v1h, v2h) = linalg.cossin(x, 2, 3, separate=True)
        blocks = (x[..., :2, :3], x[..., :2, 3:], x[..., 2:, :3], x[..., 2:, 3:])
        for i in (0, 2):
            alone = linalg.cossin(x[i], 2, 3)
            of_blocks = linalg.cossin(tuple(block[i] for block in blocks))
            np.testing.assert_allclose(scipy.linalg.block_diag(u1[i], u2[i]), alone[0], atol=1e-13)
            np.testing.assert_allclose(
                scipy.linalg.block_diag(v1h[i], v2h[i]), alone[2], atol=1e-13
            )
            expected = scipy.linalg.cossin(x[i], 2, 3, separate=True)[1]
            np.testing.assert_allclose(theta[i], expected, atol=1e-14)
            np.testing.assert_allclose(of_blocks[1], alone[1], atol=1e-14)
        assert np.isnan(theta[1]).all()


def test_angles_have_a_derivative() -> None:
    with jax.enable_x64(True):
        turn = unitary(6, 1)
        x, skew = jnp.asarray(unitary(6)), jnp.asarray(turn - turn.conj().T)

        @jax.jit
        def angles(t: jax.Array) -> jax.Array:
            turned = x @ jax.scipy.linalg.expm(t * skew)
            options = {"separate": True, "compute_u": False, "compute_vh": False}
            return linalg.cossin(turned, 3, 2, **options)[1]

        check_grads(angles, (jnp.asarray(0.1),), order=1, rtol=1e-5, atol=1e-5)
        with pytest.raises(NotImplementedError, match="cossin: U and V have no derivative"):
            jax.grad(lambda x: jnp.sum(linalg.cossin(x, 3, 2)[1]))(x.real)


def test_misuse_is_said() -> None:
    x = np.eye(4, dtype=np.float32)
    with pytest.raises(ValueError, match="cossin: p: expected 0 < p < 4, got 4"):
        linalg.cossin(x, 4, 2)
    with pytest.raises(ValueError, match=r"cossin: X: expected shape \[..., n, n\]"):
        linalg.cossin(x[:2], 1, 1)
    with pytest.raises(ValueError, match="cossin: X: expected four blocks without p and q, got 2"):
        linalg.cossin((x, x))
    with pytest.raises(ValueError, match=r"cossin: X: expected four blocks .*, got a number"):
        linalg.cossin(12j)
    with pytest.raises(ValueError, match=r"cossin: x12: expected shape \[..., 2, 2\]"):
        linalg.cossin((x[:2, :2], x[:1, :2], x[:2, :2], x[:2, :2]))
