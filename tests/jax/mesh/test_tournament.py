"""Tournament pivoting: what partial pivoting is tested by, growth, and what is sent."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from sharded import CASES, DTYPES, FULL, LIMIT, SPECS, Case, P, mesh_of, norm1, ratio, wide

from lapax import mesh
from lapax.mesh import count

each_case = pytest.mark.parametrize("case", CASES if FULL else CASES[1:6:2], ids=str)


@each_case
def test_lu_and_its_solve(case):
    with case.x64:
        a, b = case.random(case.n, case.n), case.random(case.n, 2, seed=1)
        factors = mesh.lu(case.put(a), pivoting="tournament", block=case.block)
        check(a, *factors, case)
        x = mesh.solve(case.put(a), case.put(b), pivoting="tournament", block=case.block)
        assert ratio(wide(a) @ wide(x) - wide(b), norm1(a) * norm1(x), case) < LIMIT


def check(a, permutation, lower, upper, case):
    """‖A[p] - L U‖ in multiples of ‖|L| |U|‖, which is the bound for any pivots (Higham, Accuracy
    and Stability, 9.3): how far that is above ‖A‖ is the growth."""
    lower, upper = wide(lower), wide(upper)
    assert sorted(permutation) == list(range(case.n))
    assert not np.triu(lower, 1).any()
    assert not np.tril(upper, -1).any()
    assert (np.diag(lower) == 1).all()
    size = max(norm1(np.abs(lower) @ np.abs(upper)), 1e-30)
    assert ratio(lower @ upper - wide(a)[np.asarray(permutation)], size, case) < LIMIT


N = 40


GROWTH = 1.9 ** (N - 1)


def wilkinson():
    """On which partial pivoting's U grows to 2^(n-1), nearly: to GROWTH, without ties."""
    a = np.tril(-0.9 * np.ones((N, N)), -1) + np.eye(N)
    a[:, -1] = 1
    return a


def kahan():
    s, c = np.sin(1.2), np.cos(1.2)
    return s ** np.arange(N)[:, None] * (np.eye(N) - c * np.triu(np.ones((N, N)), 1))


def grcar():
    return np.tril(np.triu(np.ones((N, N)), -1), 3) - 2 * np.eye(N, k=-1)


def nearly_singular(rng):
    a = rng.standard_normal((N, N))
    a[:, -1] = a[:, :-1].sum(1) + 1e-12
    return a


RNG = np.random.default_rng(5)
KINDS = {
    "wilkinson": wilkinson(),
    "kahan": kahan().T,
    "grcar": grcar(),
    "nearly singular": nearly_singular(RNG),
    "graded": 10.0 ** -np.arange(N)[::-1, None] * RNG.standard_normal((N, N)),
    "graded columns": 10.0 ** -np.arange(N) * RNG.standard_normal((N, N)),
    "of rank 11": RNG.standard_normal((N, 11)) @ RNG.standard_normal((11, N)),
    "zero": np.zeros((N, N)),
    "column of zeros": np.where(np.arange(N) == 3, 0, RNG.standard_normal((N, N))),
}


@pytest.mark.parametrize("kind", KINDS)
def test_adversarial_kinds(kind):
    """On three rows, which is no power of two, and with padding."""
    case = Case((3, 2), N, DTYPES[1], SPECS[1], 6)
    with case.x64:
        a = KINDS[kind]
        check(a, *mesh.lu(case.put(a), pivoting="tournament", block=6), case)


def test_growth():
    """Partial pivoting's is all that it can be for Wilkinson's matrix; both are small for what is
    not made to be bad."""
    case = Case((4, 2), N, DTYPES[1], P(), 8)
    growth = lambda a, u: np.abs(u).max() / np.abs(a).max()  # noqa: E731
    with case.x64:
        bad, good = KINDS["wilkinson"], case.random(N, N)
        assert np.isclose(growth(bad, mesh.lu(case.put(bad), block=8).u), GROWTH)
        _, lower, upper = mesh.lu(case.put(good), pivoting="tournament", block=8)
        assert growth(good, upper) < N
        # The rows that were not chosen are no multiple of 1, as partial pivoting's are.
        assert 1 < np.abs(lower).max() < 2**8


def test_slogdet_inv_and_not_a_number():
    case = Case((4, 2), 24, DTYPES[3], P("x", "y"), 8)
    with case.x64:
        a = case.random(24, 24)
        sign, logarithm = mesh.slogdet(case.put(a), pivoting="tournament", block=8)
        expected = np.linalg.slogdet(a)
        assert abs(sign - expected[0]) < 1e-12
        assert abs(logarithm - expected[1]) < 1e-12
        x = mesh.inv(case.put(a), pivoting="tournament", block=8)
        assert ratio(a @ wide(x) - np.eye(24), norm1(a) * norm1(x), case) < LIMIT
        a[3, 5] = np.nan
        assert np.isnan(mesh.slogdet(case.put(a), pivoting="tournament", block=8).logabsdet)
        assert np.isnan(mesh.solve(case.put(a), case.put(a), pivoting="tournament", block=8)).any()


def test_gradient():
    case = Case((4, 2), 24, DTYPES[1], P("x", "y"), 8)
    with case.x64:
        a = case.random(24, 24)
        got = jax.grad(lambda a: mesh.slogdet(a, pivoting="tournament", block=8)[1])(case.put(a))
        assert np.abs(got - np.linalg.inv(a).T).max() < 1e-10 * np.abs(got).max()


def test_messages():
    """Two rounds among four rows for each block, where partial pivoting has one for each column."""
    n, block, grid = 512, 32, mesh_of((4, 2))
    a = jax.ShapeDtypeStruct((n, n), jnp.float32, sharding=NamedSharding(grid, P("x", "y")))

    def messages(pivoting):
        program = jax.jit(lambda a: mesh.slogdet(a, pivoting=pivoting, block=block)).lower(a)
        return count(program.compile()).messages

    steps = n // block
    assert messages("tournament") == messages("partial") | {
        "collective-permute": 2 * steps,
        "all-gather": messages("partial")["all-gather"] - n,
    }


def test_misuse():
    case = Case((1, 2), 6, DTYPES[0], P(), None)
    a = case.put(case.random(6, 6))
    for function in (
        mesh.lu,
        mesh.inv,
        mesh.slogdet,
        mesh.det,
        lambda a, **k: mesh.solve(a, a, **k),
    ):
        with pytest.raises(ValueError, match="pivoting: expected one of 'partial', 'tournament'"):
            function(a, pivoting="full")
