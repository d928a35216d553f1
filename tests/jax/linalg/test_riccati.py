"""Riccati equations: CAREX and DAREX as SciPy stores them, residuals, derivatives."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from derivatives import check_derivatives

from lapax import linalg

STORED = """
import pickle, sys
from scipy.linalg.tests import test_solvers
care, dare = test_solvers.TestSolveContinuousAre, test_solvers.TestSolveDiscreteAre
limits = [None if decimal is None else 1.5 * 10.0**-decimal for decimal in care.min_decimal]
sys.stdout.buffer.write(pickle.dumps([(care.cases, limits), (dare.cases, dare.max_tol)]))
"""
"""In a process of its own, as SciPy's test files want their own configuration of pytest."""


@pytest.fixture(scope="module")
def stored() -> Any:
    done = subprocess.run([sys.executable, "-c", STORED], stdout=subprocess.PIPE, check=True)
    return pickle.loads(done.stdout)


ORDER, INPUTS = 9, 4
"""The cases are filled up to one shape by a stable part of their own, for one compilation."""


def adjoint(a: Any) -> Any:
    return np.conj(np.swapaxes(a, -1, -2))


def filled(a: Any, by: float, rows: int, columns: int) -> np.ndarray:
    a = np.atleast_2d(a)
    larger = by * np.eye(rows, columns, dtype=complex)
    larger[: a.shape[0], :] = 0
    larger[:, : a.shape[1]] = 0
    larger[: a.shape[0], : a.shape[1]] = a
    return larger


def small(stored: Any) -> list[tuple[int, list[np.ndarray], float]]:
    """Number, coefficients and limit of each case that SciPy solves, of the shape or below."""
    return [
        (j, [np.atleast_2d(x) for x in case[:4]], limit)
        for j, (case, limit) in enumerate(zip(*stored, strict=True))
        if not case[4] and len(case[0]) <= ORDER and np.atleast_2d(case[1]).shape[1] <= INPUTS
    ]


def batch(found: Any, pole: float) -> list[np.ndarray]:
    shapes = [(pole, ORDER, ORDER), (0, ORDER, INPUTS), (1, ORDER, ORDER), (1, INPUTS, INPUTS)]
    columns = zip(*(case for _, case, _ in found), strict=True)
    return [
        np.stack([filled(x, *shape) for x in column])
        for column, shape in zip(columns, shapes, strict=True)
    ]


def test_carex_residuals_are_within_scipys_limits(stored: Any) -> None:
    with jax.enable_x64():
        found = small(stored[0])
        computed = np.asarray(linalg.solve_continuous_are(*batch(found, -1)))
        assert len(found) == 11
        for (j, (a, b, q, r), limit), x in zip(found, computed, strict=True):
            x = x[: len(a), : len(a)]
            gain = np.linalg.solve(r, adjoint(x @ b))
            residual = x @ a + adjoint(a) @ x + q - x @ b @ gain
            assert np.max(np.abs(residual)) < limit, f"case {j}"


def test_darex_residuals_are_within_scipys_limits(stored: Any) -> None:
    with jax.enable_x64():
        found = small(stored[1])
        computed = np.asarray(linalg.solve_discrete_are(*batch(found, 0)))
        assert len(found) == 18
        for (j, (a, b, q, r), limit), x in zip(found, computed, strict=True):
            x = x[: len(a), : len(a)]
            gain = np.linalg.solve(r + adjoint(b) @ x @ b, adjoint(b) @ x @ a)
            residual = adjoint(a) @ x @ a - x + q - adjoint(a) @ x @ b @ gain
            assert np.max(np.abs(residual)) < limit, f"case {j}"


def problem(dtype: type, *batch: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)

    def random(*shape: int) -> np.ndarray:
        return rng.standard_normal((*batch, *shape)).astype(dtype)

    c, d = random(3, 3), random(2, 2)
    return {
        "a": random(3, 3),
        "b": random(3, 2),
        "q": adjoint(c) @ c + np.eye(3, dtype=dtype),
        "r": adjoint(d) @ d + np.eye(2, dtype=dtype),
        "e": random(3, 3) / 4 + np.eye(3, dtype=dtype),
        "s": random(3, 2) / 8,
    }


@pytest.mark.parametrize("solve", [linalg.solve_continuous_are, linalg.solve_discrete_are])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_generalised_equations_have_small_residuals(solve: Any, dtype: type) -> None:
    with jax.enable_x64(dtype is np.float64):
        given = problem(dtype, 3)
        x = np.asarray(solve(**given))
    assert x.dtype == dtype
    a, b, q, r, e, s = given.values()
    xa, xb, xe = x @ a, x @ b, x @ e
    if solve is linalg.solve_continuous_are:
        right, weight = adjoint(b) @ xe + adjoint(s), r
        terms = [adjoint(e) @ xa, adjoint(a) @ xe, q]
    else:
        right, weight = adjoint(b) @ xa + adjoint(s), r + adjoint(b) @ xb
        terms = [adjoint(a) @ xa, -adjoint(e) @ xe, q]
    gain = np.linalg.solve(weight, right)
    terms.append(-adjoint(right) @ gain)
    loop = np.linalg.eigvals(np.linalg.solve(e, a - b @ gain))
    stable = loop.real < 0 if solve is linalg.solve_continuous_are else np.abs(loop) < 1
    assert np.all(stable)
    size = sum(np.linalg.norm(term, axis=(1, 2)) for term in terms)
    ratio = np.linalg.norm(sum(terms), axis=(1, 2)) / (3 * np.finfo(dtype).eps * size)
    assert np.all(ratio < 30)


def test_what_cannot_be_solved_is_nan_alone() -> None:
    with jax.enable_x64():
        given = problem(np.float64, 3)
        # Ferrante and Ntogramatzidis, arXiv:1505.04861: no solution.
        given["a"][0] = [[1, -1, 1], [0, 1, 1], [0, 0, 1]]
        given["b"][0] = [[1, 0], [1, 0], [0, 1]]
        given["q"][0] = np.full((3, 3), -2) + np.diag([8, -1, -1.9])
        given["r"][0] = np.diag([-10, 0.1])
        given["e"][0], given["s"][0] = np.eye(3), 0
        given["a"][2, 0, 1] = np.nan
        x = np.asarray(linalg.solve_continuous_are(**given))
        np.testing.assert_array_equal(np.isnan(x).all((1, 2)), [True, False, True])
        assert np.isfinite(x[1]).all()

        # Of its eigenvalues on the axis rounding left half on either side in this form.
        alone = [given[name][0] for name in "abqr"]
        assert np.isnan(linalg.solve_continuous_are(*alone)).all()


def test_derivatives_of_two_orders() -> None:
    with jax.enable_x64():
        a, b, q, r, e, s = problem(np.float64).values()
        check_derivatives(linalg.solve_continuous_are, a, b, q, r, e, s)
        check_derivatives(linalg.solve_discrete_are, a, b, q, r, second=False)


def test_numbers_are_matrices() -> None:
    for solve in (linalg.solve_continuous_are, linalg.solve_discrete_are):
        x = solve(-0.5, [[2.0]], 3, 1.0, e=1.0, s=0.25)
        np.testing.assert_array_equal(x, solve(*([[c]] for c in (-0.5, 2.0, 3.0, 1.0, 1.0, 0.25))))
        assert x.shape == (1, 1)


def test_errors_say_what_was_expected() -> None:
    one = jnp.eye(2)
    with pytest.raises(ValueError, match=r"solve_continuous_are: r: expected shape \[..., n, n\]"):
        linalg.solve_continuous_are(one, one, one, jnp.ones((2, 3)))
    with pytest.raises(ValueError, match="solve_discrete_are: s: expected 2 columns, got 1"):
        linalg.solve_discrete_are(one, one, one, one, s=jnp.ones((2, 1)))
