"""Block-tridiagonal matrices without symmetry against dense ones, and finite differences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from derivatives import check_derivatives
from ratios import LIMIT, adjoint, norm, ratio

from lapax import linalg


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def blocks(
    *batch: int, count: int, n: int, dtype: Any = np.float64, seed: int = 0
) -> tuple[np.ndarray, ...]:
    """Lower, diagonal and upper ones; those on the diagonal dominate as wholes."""
    rng = np.random.default_rng(seed)

    def normal(count: int) -> np.ndarray:
        x = rng.standard_normal((2, *batch, count, n, n))
        return np.asarray(x[0] + 1j * x[1] if np.dtype(dtype).kind == "c" else x[0])

    shift = 6 * max(n, 1) * np.eye(n)[::-1]
    lower, own, upper = normal(max(count - 1, 0)), normal(count) + shift, normal(max(count - 1, 0))
    return lower.astype(dtype), own.astype(dtype), upper.astype(dtype)


def dense(lower: np.ndarray, diagonal: np.ndarray, upper: np.ndarray) -> np.ndarray:
    *batch, count, n, _ = diagonal.shape
    a = np.zeros((*batch, count, n, count, n), np.result_type(diagonal, np.float64))
    for i in range(count):
        a[..., i, :, i, :] = diagonal[..., i, :, :]
        if i + 1 < count:
            a[..., i + 1, :, i, :] = lower[..., i, :, :]
            a[..., i, :, i + 1, :] = upper[..., i, :, :]
    return a.reshape(*batch, count * n, count * n)


def op(a: np.ndarray, trans: int) -> np.ndarray:
    return [a, a.swapaxes(-1, -2), adjoint(a)][trans]


def solve(lower: Any, diagonal: Any, upper: Any, b: Any, trans: int = 0) -> Any:
    factor = linalg.block_tridiagonal_lu(lower, diagonal, upper)
    return linalg.block_tridiagonal_lu_solve(factor, b, trans=trans)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize(("batch", "count", "n"), [(1, 6, 5), (5, 4, 3), (2, 1, 4), (5, 2, 17)])
def test_residuals(dtype: Any, batch: int, count: int, n: int) -> None:
    a = blocks(batch, count=count, n=n, dtype=dtype)
    b = blocks(batch, count=count, n=n, dtype=dtype, seed=1)[1][..., :2]
    factor = linalg.block_tridiagonal_lu(*a)
    assert factor.lu.dtype == dtype
    assert factor.pivots.dtype == np.int32
    for trans in range(3):
        x = linalg.block_tridiagonal_lu_solve(factor, b, trans=trans)
        assert x.dtype == dtype
        flat = [np.reshape(np.asarray(y), (batch, count * n, 2)) for y in (x, b)]
        whole = op(dense(*a), trans)
        error = whole @ flat[0] - flat[1]
        assert ratio(error, norm(whole) * norm(flat[0]), dtype) < LIMIT


def test_forms_of_b_and_batches() -> None:
    a, b = blocks(3, count=4, n=2), np.ones((4, 2))
    one = tuple(x[1] for x in a)
    x = solve(*one, b)
    assert x.shape == (4, 2)
    np.testing.assert_allclose(dense(*one) @ np.ravel(x), np.ravel(b), atol=1e-13)
    np.testing.assert_allclose(solve(*a, b)[1], x, atol=1e-14)
    np.testing.assert_allclose(solve(*one, np.ones((3, 4, 2, 1)))[2, ..., 0], x, atol=1e-14)
    mapped = jax.vmap(lambda *a: solve(*a, b))(*a)
    np.testing.assert_allclose(mapped, solve(*a, b), atol=1e-14)
    jax.tree.map(
        np.testing.assert_array_equal,
        jax.jit(linalg.block_tridiagonal_lu)(*a),
        jax.vmap(linalg.block_tridiagonal_lu)(*a),
    )


def test_what_has_no_factors_stays_in_its_matrix() -> None:
    lower, diagonal, upper = (np.array(x) for x in blocks(5, count=3, n=3))
    clean = solve(lower, diagonal, upper, np.ones((3, 3)))
    diagonal[1, 0], diagonal[3, 2, 1] = 0, np.nan
    factor = linalg.block_tridiagonal_lu(lower, diagonal, upper)
    x = linalg.block_tridiagonal_lu_solve(factor, np.ones((3, 3)))
    assert np.isnan(factor.lu[1]).all()
    assert np.isnan(x[1]).all()
    assert np.isnan(x[3]).all()
    np.testing.assert_array_equal(x[::2], clean[::2])


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_derivatives(dtype: Any) -> None:
    a = blocks(count=3, n=2, dtype=dtype)
    b = blocks(count=3, n=2, dtype=dtype, seed=1)[1]
    for trans in (0, 2) if dtype == np.complex128 else (0, 1):
        check_derivatives(lambda *x, t=trans: solve(*x, trans=t), *a, b, second=trans == 0)


def test_a_derivative_solves_with_the_same_factors_in_linear_time() -> None:
    count = 100_000
    shapes = [(k, 1, 1) for k in (count - 1, count, count - 1)]
    a = [jax.ShapeDtypeStruct(shape, np.float64) for shape in shapes]

    def value(*a: Any) -> jax.Array:
        return jnp.sum(solve(*a, jnp.ones((count, 1))) ** 2)

    text = jax.jit(jax.grad(value, (0, 1, 2))).lower(*a).as_text()
    assert len(re.findall(r"lapax_block_tridiagonal_lu(?!_)", text)) == 1
    assert f"{count}x{count}" not in text


def test_empty() -> None:
    for count, n in ((0, 3), (3, 0), (1, 2)):
        a = blocks(count=count, n=n)
        assert solve(*a, np.ones((count, n))).shape == (count, n)


def test_errors_name_function_and_argument() -> None:
    lower, diagonal, upper = blocks(count=3, n=2)
    factor = linalg.block_tridiagonal_lu(lower, diagonal, upper)
    for call, text in (
        (
            lambda: linalg.block_tridiagonal_lu(lower[:1], diagonal, upper),
            r"block_tridiagonal_lu: lower: expected shape \[..., 2, 2, 2\], got \[1, 2, 2\]",
        ),
        (
            lambda: linalg.block_tridiagonal_lu(lower, diagonal[0], upper),
            "block_tridiagonal_lu: diagonal: expected shape",
        ),
        (
            lambda: linalg.block_tridiagonal_lu_solve(factor, np.ones((2, 2))),
            r"block_tridiagonal_lu_solve: b: expected shape \[..., 3, 2\], got \[2, 2\]",
        ),
        (
            lambda: linalg.block_tridiagonal_lu_solve(factor, np.ones((3, 2)), trans=3),
            "block_tridiagonal_lu_solve: trans: expected one of 0, 1, 2, got 3",
        ),
    ):
        with pytest.raises(ValueError, match=text):
            call()
