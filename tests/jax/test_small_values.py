"""Small values of diagonal, bidiagonal and graded matrices, beside those that mpmath finds."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

import lapax

BATCHES = (1, 3, 5, 17)
"""One matrix, few, and lanes that are filled in part and more than once."""

ROUNDINGS = 64
"""What a value may be off from the one that the matrix, as it is stored, has."""


def singular_values(a: np.ndarray) -> list[np.ndarray]:
    """By every route: with vectors, and alone."""
    return [np.asarray(jnp.linalg.svd(a)[1]), np.asarray(jnp.linalg.svd(a, compute_uv=False))]


def eigenvalues(a: np.ndarray) -> list[np.ndarray]:
    """By every route, the largest first.

    XLA's own mean of a matrix and its adjoint would flush denormal numbers before lapax has them.
    """
    both = [
        np.asarray(jnp.linalg.eigh(a, symmetrize_input=False)[0]),
        np.asarray(jnp.linalg.eigvalsh(a, symmetrize_input=False)),
    ]
    return [w[..., ::-1] for w in both]


def exact(a: np.ndarray, symmetric: bool) -> list[mpmath.mpf]:
    """The values of one real matrix, the largest first."""
    with mpmath.workdps(150):
        matrix = mpmath.matrix(a.real.astype(np.float64).tolist())
        function = mpmath.eigsy if symmetric else mpmath.svd_r
        values = function(matrix, True) if symmetric else function(matrix, compute_uv=False)
        return sorted((abs(x) if not symmetric else x for x in values), reverse=True)


def check(a: np.ndarray, routes: Callable[[np.ndarray], list[np.ndarray]], symmetric: bool) -> None:
    """Relative errors of the values of a matrix, in batches of it."""
    expected = exact(a, symmetric)
    info = np.finfo(a.dtype)
    for batch in BATCHES:
        with lapax.installed():
            found = routes(np.broadcast_to(a, (batch, *a.shape)))
        for values in (row for route in found for row in route):
            for value, x in zip(values, expected, strict=True):
                error = abs(mpmath.mpf(float(value)) - x)
                # Below the normal range a rounding is the least number.
                rounding = max(abs(x) * float(info.eps) / 2, float(info.smallest_subnormal))
                assert error <= ROUNDINGS * rounding, (batch, float(value), mpmath.nstr(x, 9))


def sizes(dtype: np.dtype, least: int) -> np.ndarray:
    """From 1 down to 10 to the power of `least` in float32, and of six times that in float64."""
    exponent = least if dtype in (np.float32, np.complex64) else 6 * least
    return 10.0 ** np.linspace(0, exponent, 6)


@pytest.mark.parametrize("least", [-30, -44])
@pytest.mark.parametrize("turned", [False, True])
def test_diagonal(dtype: np.dtype, least: int, turned: bool) -> None:
    diagonal = sizes(dtype, least)
    if dtype in (np.float64, np.complex128) and least == -44:
        diagonal = 10.0 ** np.linspace(0, -320, 6)
    a = np.diag(diagonal[::-1] if turned else diagonal).astype(dtype)
    check(a, singular_values, symmetric=False)
    check(a, eigenvalues, symmetric=True)


@pytest.mark.parametrize("size", [1, 100, 1e4])
def test_the_least_number_beside_large_ones(dtype: np.dtype, size: float) -> None:
    a = np.diag([size, size / 100, float(np.finfo(dtype).smallest_subnormal)]).astype(dtype)
    check(a, singular_values, symmetric=False)
    check(a, eigenvalues, symmetric=True)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("n", [2, 3, 6, 9])
def test_bidiagonal(dtype: np.dtype, n: int, lower: bool, turned: bool) -> None:
    generator = np.random.default_rng(n)
    size = np.resize(sizes(dtype, -8), n)
    size = np.sort(size) if turned else np.sort(size)[::-1]
    d, e = generator.uniform(1, 2, n) * size, generator.uniform(1, 2, n - 1) * size[:-1]
    a = (np.diag(d) + np.diag(e, 1)).astype(dtype)
    check(a.T.copy() if lower else a, singular_values, symmetric=False)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("n", [2, 3, 6, 9, 12])
def test_graded_and_tridiagonal(dtype: np.dtype, n: int, turned: bool) -> None:
    """D·(I + N/4)·D for a graded D and a tridiagonal N, which determines its eigenvalues."""
    # Of diagonals that differ by more, LAPACK too loses the smaller ones.
    size = np.logspace(0, -4 if dtype in (np.float32, np.complex64) else -6, n)
    size = size[::-1] if turned else size
    inner = np.eye(n) + np.diag([0.25] * (n - 1), 1) + np.diag([0.25] * (n - 1), -1)
    a = (size[:, None] * inner * size).astype(dtype)
    check(a, eigenvalues, symmetric=True)


def test_that_stock_has_these(dtype: np.dtype) -> None:
    """The promise is LAPACK's own."""
    least = -30 if dtype in (np.float32, np.complex64) else -180
    a = np.diag([1, 0.01, 10.0**least]).astype(dtype)
    for values in (jnp.linalg.svd(a)[1], jnp.linalg.eigvalsh(a)[::-1]):
        np.testing.assert_allclose(values, np.diag(a).real, rtol=1e-6)
    assert jax.default_backend() == "cpu"
