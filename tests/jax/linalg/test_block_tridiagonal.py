"""Block-tridiagonal matrices against dense ones, SciPy's banded solver and finite differences."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from lapax import linalg

LIMIT = 30.0
"""LAPACK's own tests accept a ratio below it."""


def normal(rng: np.random.Generator, dtype: Any, *shape: int) -> np.ndarray:
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def adjoint(a: np.ndarray) -> np.ndarray:
    return a.conj().swapaxes(-1, -2)


def dense(diagonal: np.ndarray, off_diagonal: np.ndarray) -> np.ndarray:
    """The matrix that is meant, in double precision."""
    *batch, count, n, _ = diagonal.shape
    wide = np.result_type(diagonal.dtype, np.float64)
    a = np.zeros((*batch, count, n, count, n), wide)
    half = np.tril(diagonal.astype(wide), -1)
    own = half + adjoint(half) + np.where(np.eye(n, dtype=bool), diagonal.real, 0)
    for i in range(count):
        a[..., i, :, i, :] = own[..., i, :, :]
        if i + 1 < count:
            a[..., i + 1, :, i, :] = off_diagonal[..., i, :, :]
            a[..., i, :, i + 1, :] = adjoint(off_diagonal[..., i, :, :])
    return a.reshape(*batch, count * n, count * n)


def blocks(a: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The blocks of a dense matrix inside the band."""
    *batch, order, _ = a.shape
    cut = a.reshape(*batch, order // n, n, order // n, n).swapaxes(-3, -2)
    own = [cut[..., i, i, :, :] for i in range(order // n)]
    below = [cut[..., i + 1, i, :, :] for i in range(order // n - 1)]
    empty = np.zeros((*batch, 0, n, n), a.dtype)
    return np.stack(own, -3), np.stack(below, -3) if below else empty


def definite(
    dtype: Any, count: int, n: int, batch: tuple[int, ...] = (), kind: str = "random"
) -> tuple[np.ndarray, np.ndarray]:
    """L·Lᴴ of a random L of blocks, with NaN in what must not be read."""
    rng = np.random.default_rng(count * 100 + n)
    order = count * n
    position = np.repeat(np.arange(count), n)
    band = (position[:, None] - position[None, :] <= 1) & np.tri(order, dtype=bool)
    lower = np.where(band, normal(rng, dtype, *batch, order, order), 0).astype(np.complex128)
    lower[..., np.arange(order), np.arange(order)] = n + rng.random((*batch, order))
    scale = np.ones(order)
    if kind == "graded":
        scale = 2.0 ** -np.linspace(0, 20, order)
    if kind == "nearly singular":
        lower[..., -1, -1] = np.sqrt(order * np.finfo(dtype).eps) * 10
    a = scale[:, None] * (lower @ adjoint(lower)) * scale
    a = a if np.dtype(dtype).kind == "c" else a.real
    diagonal, off_diagonal = (x.astype(dtype) for x in blocks(a, n))
    return np.where(np.tri(n, dtype=bool), diagonal, np.nan).astype(dtype), off_diagonal


def ratio(error: np.ndarray, scale: np.ndarray, dtype: Any) -> float:
    """The largest ‖error‖ / (scale·ε·order) of a batch; a NaN is no number below a limit."""
    order = max(error.shape[-2], 1)
    return float(np.max(norm(error) / (scale * np.finfo(dtype).eps * order), initial=0.0))


def norm(a: np.ndarray) -> np.ndarray:
    return np.abs(a).sum(-1).max(-1, initial=0.0)


@jax.jit
def everything(diagonal, off_diagonal, b):
    factor = linalg.block_tridiagonal_cholesky(diagonal, off_diagonal)
    return {
        "factor": factor,
        "solve": linalg.block_tridiagonal_solve(diagonal, off_diagonal, b, return_logdet=True),
        "cho_solve": {
            sweeps: linalg.block_tridiagonal_cho_solve(factor, b, sweeps=sweeps)
            for sweeps in ("both", "forward", "backward")
        },
        "logdet": linalg.block_tridiagonal_logdet(diagonal, off_diagonal),
        "inverse": linalg.block_tridiagonal_inverse(diagonal, off_diagonal),
        "product": linalg.block_tridiagonal_matmul(diagonal, off_diagonal, b),
    }


KINDS = {(4, 3): ("random", "graded", "nearly singular"), (3, 9): ("random",), (1, 1): ("random",)}


@pytest.mark.parametrize(("count", "n"), KINDS)
def test_residual_ratios(dtype: np.dtype, count: int, n: int) -> None:
    batch = (5,) if n == 3 else ()
    for kind in KINDS[count, n]:
        diagonal, off_diagonal = definite(dtype, count, n, batch, kind)
        b = normal(np.random.default_rng(1), dtype, *batch, count, n, 2)
        got = jax.tree.map(np.asarray, everything(diagonal, off_diagonal, b))
        a, flat = dense(diagonal, off_diagonal), (*batch, count * n, 2)
        size = norm(a)

        own, below = got["factor"]
        assert np.array_equal(own, np.tril(own)), kind
        lower = np.tril(dense(own, below))
        upper = adjoint(lower)
        assert ratio(lower @ upper - a, size, dtype) < LIMIT, kind
        systems = {"both": lower @ upper, "forward": lower, "backward": upper}
        for sweeps, matrix in systems.items():
            x = got["cho_solve"][sweeps].reshape(flat)
            error = matrix @ x - b.reshape(flat)
            # Each triangular system has a small residual.
            scale = (norm(lower) * norm(upper) if sweeps == "both" else norm(matrix)) * norm(x)
            assert ratio(error, scale, dtype) < LIMIT, (kind, sweeps)
        x, logdet = got["solve"]
        x = x.reshape(flat)
        assert ratio(a @ x - b.reshape(flat), size * norm(x), dtype) < LIMIT, kind
        assert np.array_equal(got["logdet"].dtype, np.finfo(dtype).dtype)

        exact = np.linalg.inv(a)
        condition = size * norm(exact)
        assert ratio((logdet - np.linalg.slogdet(a)[1])[..., None, None], condition, dtype) < LIMIT
        np.testing.assert_allclose(got["logdet"], logdet, rtol=1e-4)
        for s, expected in zip(got["inverse"], blocks(exact, n), strict=True):
            error = np.abs(s - expected).max((-3, -2, -1), initial=0.0)
            bound = condition * norm(exact) * np.finfo(dtype).eps * count * n
            assert np.all(error < LIMIT * bound), kind
        s = got["inverse"][0]
        assert np.array_equal(s, adjoint(s)), kind
        product = a @ b.reshape(flat)
        assert (
            ratio(got["product"].reshape(flat) - product, size * norm(b.reshape(flat)), dtype)
            < LIMIT
        ), kind


def test_scipys_banded_solver_agrees() -> None:
    count, n = 6, 2
    with jax.enable_x64(True):
        diagonal, off_diagonal = definite(np.complex128, count, n)
        b = normal(np.random.default_rng(1), np.complex128, count, n)
        x = linalg.block_tridiagonal_solve(diagonal, off_diagonal, b)
    a, order = dense(diagonal, off_diagonal), count * n
    banded = np.zeros((2 * n, order), a.dtype)
    for k in range(2 * n):
        banded[k, : order - k] = np.diagonal(a, -k)
    expected = scipy.linalg.solveh_banded(banded, b.ravel(), lower=True)
    np.testing.assert_allclose(np.asarray(x).ravel(), expected, rtol=1e-12)


def test_batch_is_a_loop_and_vmap_is_a_batch() -> None:
    diagonal, off_diagonal = definite(np.float32, 4, 3, (5,))
    b = normal(np.random.default_rng(1), np.float32, 5, 4, 3)
    solve = linalg.block_tridiagonal_solve
    together = solve(diagonal, off_diagonal, b)
    mapped = jax.vmap(solve)(diagonal, off_diagonal, b)
    np.testing.assert_array_equal(mapped, together)
    for i in range(5):
        alone = solve(diagonal[i], off_diagonal[i], b[i])
        np.testing.assert_allclose(alone, together[i], rtol=1e-4)
    # One matrix for all right-hand sides, and one right-hand side for all matrices.
    shared = solve(diagonal[0], off_diagonal[0], b[..., None])[..., 0]
    np.testing.assert_allclose(shared[0], together[0], rtol=1e-4)
    np.testing.assert_allclose(
        solve(diagonal, off_diagonal, b[0])[1], solve(diagonal[1], off_diagonal[1], b[0]), rtol=1e-4
    )


@pytest.mark.parametrize("n", [3, 9])
def test_what_is_not_definite_or_not_finite_stays_in_its_matrix(n: int) -> None:
    diagonal, off_diagonal = definite(np.float32, 4, n, (5,))
    b = np.ones((5, 4, n, 2), np.float32)
    clean = jax.tree.map(np.asarray, everything(diagonal, off_diagonal, b))
    diagonal[1, 2, 1, 1] = -1
    off_diagonal[2, 1, 0, 0] = np.nan
    diagonal[4] = off_diagonal[4] = 0
    got = jax.tree.map(np.asarray, everything(diagonal, off_diagonal, b))
    for name in ("factor", "solve", "logdet", "inverse"):
        for x, expected in zip(*map(jax.tree.leaves, (got[name], clean[name])), strict=True):
            np.testing.assert_array_equal(x[[0, 3]], expected[[0, 3]], err_msg=name)
            read = np.tri(n, dtype=bool) if name == "factor" else True
            bad = np.where(read, x[[1, 2, 4]], np.nan) if x.ndim > 1 else x[[1, 2, 4]]
            assert np.isnan(bad).all(), name


def parts(tree: Any) -> jax.Array:
    """The real and imaginary parts of all leaves."""
    leaves = [jnp.ravel(x) for x in jax.tree.leaves(tree)]
    return jnp.concatenate([part(x) for x in leaves for part in (jnp.real, jnp.imag)])


def check_derivatives(f: Any, arrays: tuple[np.ndarray, ...], *, second: bool) -> None:
    """jvp, vjp and, where asked for, jvp of vjp along a random direction against differences."""
    rng = np.random.default_rng(5)
    v = tuple(normal(rng, x.dtype, *x.shape) for x in arrays)
    step = 1e-3
    values = jax.jit(lambda *arrays: parts(f(*arrays)))
    at = {
        k: values(*(x + k * step * w for x, w in zip(arrays, v, strict=True))) for k in range(-2, 3)
    }
    c = normal(rng, np.float64, at[0].size)

    @jax.jit
    def derivatives(arrays, v):
        def slope(*arrays):
            tangents = jax.vjp(values, *arrays)[1](c)
            return sum(jnp.sum(x * w).real for x, w in zip(tangents, v, strict=True))

        change = jax.jvp(values, arrays, v)[1]
        curvature = jax.jvp(slope, arrays, v)[1] if second else jnp.zeros(())
        return change, slope(*arrays), curvature

    change, slope, curvature = derivatives(arrays, v)
    first = (8 * (at[1] - at[-1]) - (at[2] - at[-2])) / (12 * step)
    np.testing.assert_allclose(change, first, atol=1e-7 * np.abs(first).max())
    np.testing.assert_allclose(slope, c @ change, rtol=1e-9)
    if second:
        twice = (16 * (at[1] + at[-1]) - (at[2] + at[-2]) - 30 * at[0]) / (12 * step**2)
        np.testing.assert_allclose(curvature, c @ twice, rtol=1e-4)


@pytest.mark.parametrize("kind", [np.float64, np.complex128])
def test_derivatives_of_the_solution_and_the_determinant(kind: Any) -> None:
    with jax.enable_x64(True):
        diagonal, off_diagonal = map(np.nan_to_num, definite(kind, 3, 2))
        b = normal(np.random.default_rng(1), kind, 3, 2)

        def value(diagonal, off_diagonal, b):
            return linalg.block_tridiagonal_solve(diagonal, off_diagonal, b, return_logdet=True)

        check_derivatives(value, (diagonal, off_diagonal, b), second=True)


def test_derivatives_of_the_factor_and_the_inverse() -> None:
    with jax.enable_x64(True):
        diagonal, off_diagonal = map(np.nan_to_num, definite(np.complex128, 3, 2))
        b = normal(np.random.default_rng(1), np.complex128, 3, 2)

        def value(diagonal, off_diagonal, b):
            factor = linalg.block_tridiagonal_cholesky(diagonal, off_diagonal)
            half = linalg.block_tridiagonal_cho_solve(factor, b, sweeps="backward")
            other = linalg.block_tridiagonal_cho_solve(factor, half, sweeps="forward")
            both = linalg.block_tridiagonal_cho_solve(factor, other)
            inverse = linalg.block_tridiagonal_inverse(diagonal, off_diagonal)
            return factor, both, inverse, linalg.block_tridiagonal_logdet(diagonal, off_diagonal)

        check_derivatives(value, (diagonal, off_diagonal, b), second=False)


def test_gradient_factors_once() -> None:
    diagonal, off_diagonal = definite(np.float32, 4, 3)
    b = np.ones((4, 3), np.float32)

    def likelihood(diagonal, off_diagonal, b):
        x, logdet = linalg.block_tridiagonal_solve(diagonal, off_diagonal, b, return_logdet=True)
        return jnp.sum(x * b) + logdet

    program = jax.jit(jax.value_and_grad(likelihood, (0, 1, 2)))
    compiled = program.lower(diagonal, off_diagonal, b).compile().as_text()
    calls = [line.split('"')[1] for line in compiled.splitlines() if "custom_call_target=" in line]
    assert sorted(calls) == [
        "lapax.lapax_block_tridiagonal_cho_solve",
        "lapax.lapax_block_tridiagonal_inverse",
        "lapax.lapax_block_tridiagonal_solve",
    ]


def test_samples_have_the_inverse_as_covariance() -> None:
    diagonal, off_diagonal = definite(np.float32, 3, 2, (2,))
    key, count = jax.random.key(0), 20_000
    samples = linalg.block_tridiagonal_sample(key, diagonal, off_diagonal, shape=(count,))
    assert samples.shape == (count, 2, 3, 2)
    flat = np.asarray(samples, np.float64).reshape(count, 2, 6)
    covariance = np.einsum("sbi,sbj->bij", flat, flat) / count
    exact = np.linalg.inv(dense(diagonal, off_diagonal))
    variances = np.einsum("bii->bi", exact)
    deviation = np.sqrt((exact**2 + variances[:, :, None] * variances[:, None, :]) / count)
    assert np.all(np.abs(covariance - exact) < 5 * deviation)


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (1, 2)])
def test_nothing_and_a_single_block(shape: tuple[int, int]) -> None:
    count, n = shape
    diagonal = np.broadcast_to(np.eye(n, dtype=np.float32) * 2, (count, n, n))
    off_diagonal = np.zeros((max(count - 1, 0), n, n), np.float32)
    b = np.ones((count, n), np.float32)
    x, logdet = linalg.block_tridiagonal_solve(diagonal, off_diagonal, b, return_logdet=True)
    np.testing.assert_allclose(x, b / 2, rtol=1e-6)
    np.testing.assert_allclose(logdet, count * n * np.log(2), rtol=1e-6)
    factor = linalg.block_tridiagonal_cholesky(diagonal, off_diagonal)
    assert [a.shape for a in factor] == [diagonal.shape, off_diagonal.shape]


def test_half_precision_is_computed_in_a_wider_one() -> None:
    diagonal, off_diagonal = (jnp.asarray(a, jnp.bfloat16) for a in definite(np.float32, 4, 3))
    b = jnp.ones((4, 3), jnp.bfloat16)
    with pytest.raises(ValueError, match="compute_dtype"):
        linalg.block_tridiagonal_solve(diagonal, off_diagonal, b)
    x = linalg.block_tridiagonal_solve(diagonal, off_diagonal, b, compute_dtype=jnp.float32)
    wide = (a.astype(jnp.float32) for a in (diagonal, off_diagonal, b))
    expected = linalg.block_tridiagonal_solve(*wide).astype(jnp.bfloat16)
    np.testing.assert_array_equal(x, expected)


def test_misuse_is_told() -> None:
    diagonal, off_diagonal = np.ones((4, 3, 3), np.float32), np.ones((3, 3, 3), np.float32)
    b = np.ones((4, 3), np.float32)
    cases = {
        "solve: diagonal: expected shape [..., nblocks, n, n], got [3, 3]": (
            lambda: linalg.block_tridiagonal_solve(diagonal[0], off_diagonal, b)
        ),
        "cholesky: off_diagonal: expected shape [..., 3, 3, 3], got [4, 3, 3]": (
            lambda: linalg.block_tridiagonal_cholesky(diagonal, diagonal)
        ),
        "solve: b: expected shape [..., 4, 3], got [3, 4]": (
            lambda: linalg.block_tridiagonal_solve(diagonal, off_diagonal, b.T)
        ),
        "matmul: x: expected shape [..., 4, 3, k], got [2, 3, 1]": (
            lambda: linalg.block_tridiagonal_matmul(diagonal, off_diagonal, np.ones((2, 3, 1)))
        ),
        "cho_solve: sweeps: expected one of 'both', 'forward', 'backward', got 'half'": (
            lambda: linalg.block_tridiagonal_cho_solve((diagonal, off_diagonal), b, sweeps="half")
        ),
        "logdet: batch dimensions do not broadcast: diagonal [2], off_diagonal [3]": (
            lambda: linalg.block_tridiagonal_logdet(np.ones((2, 4, 3, 3)), np.ones((3, 3, 3, 3)))
        ),
    }
    for text, call in cases.items():
        with pytest.raises(ValueError, match=re.escape(f"block_tridiagonal_{text}")):
            call()
