"""Toeplitz and circulant systems beside SciPy's, by residuals, and their derivatives."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from jax.test_util import check_grads

from lapax import linalg


def general(dtype, *shape, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal(shape)
    return (a + 1j * rng.standard_normal(shape) if dtype.kind == "c" else a).astype(dtype)


C16, F8 = np.dtype("c16"), np.dtype("f8")


@pytest.mark.parametrize(
    "shapes", [((4,), None), ((2, 1, 3), (4,)), ((0,), (2,)), ((), ()), ((1,), (3,))]
)
def test_toeplitz_is_scipys(shapes):
    c, r = (
        None if shape is None else general(C16, *shape, seed=i) for i, shape in enumerate(shapes)
    )
    with jax.enable_x64(True):
        np.testing.assert_array_equal(linalg.toeplitz(c, r), scipy.linalg.toeplitz(c, r))


def test_entries_keep_their_dtype():
    assert linalg.toeplitz([1, 2, 3]).dtype == jnp.asarray(1).dtype
    np.testing.assert_array_equal(linalg.circulant([1, 2, 3]), scipy.linalg.circulant([1, 2, 3]))
    batch = general(F8, 2, 4).astype(np.float32)
    np.testing.assert_array_equal(linalg.circulant(batch), scipy.linalg.circulant(batch))


@pytest.mark.parametrize(("m", "n"), [(5, 5), (7, 3), (2, 6), (1, 1), (0, 2), (3, 0)])
def test_products(m, n):
    c, r, x = general(C16, 2, m), general(F8, n), general(F8, n, 3)
    with jax.enable_x64(True):
        product = jax.jit(linalg.matmul_toeplitz)
        for first, vectors in ((c, x), (c.real, x), (c, x[:, 0])):
            expected = scipy.linalg.toeplitz(first, r) @ vectors
            found = product((first, r), vectors)
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, atol=1e-14)


def residual_ratio(t, x, b):
    """‖b - T·x‖ / (n·‖T‖·‖x‖·ε), the largest of a batch, in the one-norm."""
    t, x, b = (np.asarray(a).astype(np.complex128) for a in (t, x, b))
    size = np.abs(t).sum(-2).max(-1) * np.abs(x).sum(-2).max(-1)
    return (np.abs(b - t @ x).sum(-2).max(-1) / size).max() / t.shape[-1]


@pytest.mark.parametrize(
    "kind", ["decaying", "moving average", "identity", "graded right-hand sides"]
)
def test_residuals(dtype, kind):
    n = 24
    c = {"decaying": 0.9 ** np.arange(n), "identity": np.eye(n)[0]}.get(
        kind, [2.1, 1] + [0] * (n - 2)
    )
    c, r = np.asarray(c, dtype), np.asarray(c, dtype)
    if dtype.kind == "c":
        r = r * np.exp(0.3j * np.arange(n)).astype(dtype)
    b = general(dtype, 3, n, 2)
    if kind.startswith("graded"):
        b *= np.logspace(0, -20, n)[:, None].astype(b.real.dtype)
    x = linalg.solve_toeplitz((c, r), b)
    assert x.dtype == dtype
    assert residual_ratio(scipy.linalg.toeplitz(c, r), x, b) < 30 * np.finfo(dtype).eps


@pytest.mark.parametrize(
    "shapes", [((5,), (5,)), ((2, 3, 5), (5, 4)), ((3, 5), (2, 3, 5, 1)), ((1,), (1,))]
)
@pytest.mark.parametrize("with_row", [False, True])
def test_solutions_are_scipys(shapes, with_row):
    c, b = general(C16, *shapes[0]), general(F8, *shapes[1])
    c[..., 0] += 4
    given = (c, general(F8, *shapes[0], seed=1)) if with_row else c
    with jax.enable_x64(True):
        expected = scipy.linalg.solve_toeplitz(given, b)
        np.testing.assert_allclose(linalg.solve_toeplitz(given, b), expected, rtol=1e-12)


def test_a_batch_is_a_loop_and_a_map():
    c, b = general(F8, 3, 4) + 4 * np.eye(4)[0], general(F8, 3, 4, 2)
    with jax.enable_x64(True):
        batch = linalg.solve_toeplitz(c, b)
        loop = [linalg.solve_toeplitz(*pair) for pair in zip(c, b, strict=True)]
        close = 30 * np.finfo(F8).eps * np.abs(batch).max()
        np.testing.assert_allclose(batch, np.stack(loop), rtol=0, atol=close)
        mapped = jax.vmap(linalg.solve_toeplitz)(c, b)
        np.testing.assert_allclose(mapped, batch, rtol=0, atol=close)


def test_what_has_no_solution_is_nan_alone():
    first_minor, second_minor = [0, 1, 2.0], [2, 2, 1.0]
    c = np.array([first_minor, [3, 1, 0.5], second_minor, [np.nan, 1, 1]])
    x = linalg.solve_toeplitz(c, np.ones(3))
    assert np.isnan(x).tolist() == [[True] * 3, [False] * 3, [True] * 3, [True] * 3]


def test_derivatives_of_toeplitz_systems():
    with jax.enable_x64(True):
        c, r = general(F8, 2, 4) + 4 * np.eye(4)[0], general(F8, 4, seed=1)
        check_grads(lambda *cr: linalg.matmul_toeplitz(cr, r), (c, r), order=1)
        check_grads(lambda c, r, b: linalg.solve_toeplitz((c, r), b), (c, r, r), order=1)
        c = jnp.asarray(c[0] + 1j * np.arange(4))
        check_grads(linalg.solve_toeplitz, (c, general(C16, 4, 2)), order=1)


AXES = [
    ((4,), (4,), {}),
    ((4,), (4, 3, 2), {}),
    ((2, 1, 4), (3, 4), {"baxis": 1}),
    ((2, 1, 4), (3, 4), {"baxis": 1, "outaxis": -1}),
    ((2, 4, 1), (4, 3), {"caxis": 1}),
    ((0,), (0, 2), {}),
]


@pytest.mark.parametrize(("c_shape", "b_shape", "axes"), AXES)
def test_circulant_systems(c_shape, b_shape, axes):
    c, b = general(F8, *c_shape), general(C16, *b_shape, seed=1)
    with jax.enable_x64(True):
        for right in (b, b.real):
            expected = scipy.linalg.solve_circulant(c, right, **axes)
            found = linalg.solve_circulant(c, right, **axes)
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_circulant_residuals(dtype):
    c, b = general(dtype, 3, 16), general(dtype, 3, 16)
    x = linalg.solve_circulant(c, b, baxis=-1, outaxis=-1)
    c_matrix = scipy.linalg.circulant(c)
    assert residual_ratio(c_matrix, x[..., None], b[..., None]) < 30 * np.finfo(dtype).eps


def test_singular_circulant_systems():
    c, b = np.array([[1, 1, 0, 0], [3, 1, 0, 0.0]]), np.arange(1.0, 5)
    with jax.enable_x64(True):
        x = linalg.solve_circulant(c, b, outaxis=-1)
        assert np.isnan(x).tolist() == [[True] * 4, [False] * 4]
        least = linalg.solve_circulant(c, b, singular="lstsq", outaxis=-1)
        np.testing.assert_allclose(
            least[0], scipy.linalg.lstsq(scipy.linalg.circulant(c[0]), b)[0], atol=1e-14
        )
        np.testing.assert_allclose(least[1], x[1], rtol=1e-14)
        assert np.isnan(linalg.solve_circulant(c[1], b, tol=4.0)).all()


def test_derivatives_of_circulant_systems():
    with jax.enable_x64(True):
        c, b = general(F8, 4) + 4 * np.eye(4)[0], general(F8, 2, 4)
        check_grads(lambda c, b: linalg.solve_circulant(c, b, baxis=1), (c, b), order=1)
        b = jnp.arange(4.0)
        gradient = jax.grad(lambda b: linalg.solve_circulant([1.0, 1, 0, 0], b, "lstsq").sum())(b)
        expected = np.linalg.pinv(scipy.linalg.circulant([1, 1, 0, 0])).sum(0)
        np.testing.assert_allclose(gradient, expected, atol=1e-14)


def test_half_precision_is_computed_in_another():
    c = jnp.asarray([2, 1, 0.5], jnp.bfloat16)
    with pytest.raises(ValueError, match="compute_dtype"):
        linalg.solve_toeplitz(c, c)
    x = linalg.solve_toeplitz(c, c, compute_dtype=jnp.float32)
    assert x.dtype == jnp.bfloat16
    np.testing.assert_allclose(x.astype(jnp.float32), [1, 0, 0], atol=1e-2)


WRONG = [
    (
        lambda: linalg.toeplitz(np.ones((2, 3)), np.ones((3, 3))),
        r"toeplitz: batch .* c \[2\], r \[3\]",
    ),
    (lambda: linalg.matmul_toeplitz(np.ones(3), np.ones(4)), r"matmul_toeplitz: x: .*\[4\]"),
    (
        lambda: linalg.solve_toeplitz((np.ones(3), np.ones(2)), np.ones(3)),
        "r: expected 3 entries, got 2",
    ),
    (lambda: linalg.solve_toeplitz((np.ones(3),), np.ones(3)), "c_or_cr: expected c or .* got 1"),
    (lambda: linalg.solve_toeplitz(np.ones(3), np.ones((4, 1))), r"b: expected shape .*\[4, 1\]"),
    (
        lambda: linalg.solve_circulant(np.ones(3), np.ones(4)),
        "b: expected 3 entries along baxis=0, got 4",
    ),
    (
        lambda: linalg.solve_circulant(np.ones(3), np.ones(3), "x"),
        "singular: expected one of .*'x'",
    ),
]


@pytest.mark.parametrize(("call", "text"), WRONG)
def test_misuse_is_named(call, text):
    with pytest.raises(ValueError, match=text):
        call()
