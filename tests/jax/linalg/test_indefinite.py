"""ldl and solve with an assumed structure, beside SciPy's, under jit, vmap and grad."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from jax.test_util import check_grads

import lapax.linalg

LIMIT = 30


def symmetric(dtype, n, batch=(), hermitian=True, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((*batch, n, n))
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.standard_normal((*batch, n, n))
    across = a.conj() if hermitian else a
    return (a + across.swapaxes(-1, -2)).astype(dtype)


def adversarial(n=24):
    """Real symmetric matrices by name."""
    rng = np.random.default_rng(1)
    a = symmetric("float64", n)
    graded = np.exp2(-40.0 * np.arange(n) / n)
    low = rng.standard_normal((n, n // 3))
    return {
        "zero diagonal": a - np.diag(np.diag(a)),
        "graded": graded[:, None] * a * graded,
        "rank deficient": low @ np.diag(rng.choice([-1, 1], n // 3)) @ low.T,
        "zero": np.zeros((n, n)),
        "exchange": np.eye(n)[::-1],
        "tridiagonal": np.eye(n, k=1) + np.eye(n, k=-1),
    }


def residual(a, factors, hermitian=True):
    """‖L·D·Lᴴ − A‖₁ / (n·‖A‖₁·u), or inf where L or D has another form."""
    outer, d, perm = map(np.asarray, factors)
    n = a.shape[-1]
    across = (lambda x: x.conj().T) if hermitian else (lambda x: x.T)
    own = outer[perm]
    triangular = np.array_equal(own, np.tril(own)) or np.array_equal(own, np.triu(own))
    unit = np.array_equal(np.diag(own), np.ones(n))
    blocks = np.array_equal(d, np.tril(np.triu(d, -1), 1))
    beside = np.diag(d, -1) != 0
    if not (triangular and unit and blocks and not np.any(beside[1:] & beside[:-1])):
        return np.inf
    u = np.finfo(a.dtype).eps / 2
    error = np.abs(outer @ d @ across(outer) - a).sum(0).max()
    return error / max(n * np.abs(a).sum(0).max() * u, np.finfo(a.dtype).tiny)


def test_residuals(dtype):
    for n, hermitian, lower in ((2, False, True), (5, True, False), (110, True, True)):
        a = symmetric(dtype, n, hermitian=hermitian)
        keep = np.tril if lower else np.triu
        given = keep(a) + np.where(keep(np.ones_like(a)) == 0, np.nan, 0).astype(dtype)
        factors = lapax.linalg.ldl(given, lower, hermitian)
        assert residual(a, factors, hermitian) < LIMIT, (n, hermitian)
        lu, d, perm = scipy.linalg.ldl(a, lower, hermitian)
        assert [x.shape for x in factors] == [lu.shape, d.shape, perm.shape]


@pytest.mark.parametrize("name", adversarial())
def test_adversarial(name):
    a = adversarial()[name]
    with jax.enable_x64(True):
        factors = lapax.linalg.ldl(a)
    assert residual(a, factors) < LIMIT
    values, inertia = np.linalg.eigvalsh(a), np.linalg.eigvalsh(np.asarray(factors[1]))
    clear = np.abs(values) > 1e-8 * np.abs(values).max(initial=0)
    if clear.all():
        assert (values > 0).sum() == (inertia > 0).sum()


def test_batches_are_loops_and_nan_stays_in_its_matrix():
    a = symmetric("float32", 7, (2, 3))
    a[1, 1, 3, 3] = np.nan
    batched = lapax.linalg.ldl(a)
    mapped = jax.vmap(jax.vmap(lapax.linalg.ldl))(a)
    for i in np.ndindex(2, 3):
        one = lapax.linalg.ldl(a[i])
        for x, y, z in zip(one, batched, mapped, strict=True):
            np.testing.assert_array_equal(x, y[i])
            np.testing.assert_array_equal(x, z[i])
        assert np.isfinite(one[1]).all() == (i != (1, 1))


@pytest.mark.parametrize(("lower", "hermitian"), [(True, True), (False, True), (True, False)])
def test_derivatives_of_factors(lower, hermitian):
    with jax.enable_x64(True):
        # Its factors have blocks of both orders, and no pivot is near to another choice.
        a = symmetric("complex128", 5, hermitian=hermitian, seed=3)
        a[np.arange(3), np.arange(3)] *= 0.02

        @jax.jit
        def factors(a):
            return lapax.linalg.ldl(a, lower, hermitian)[:2]

        assert np.any(np.diag(np.asarray(factors(a)[1]), -1) != 0)
        check_grads(factors, (a,), 1, atol=1e-5, rtol=1e-5)


STRUCTURES = [
    "general",
    "diagonal",
    "tridiagonal",
    "upper triangular",
    "lower triangular",
    "sym",
    "her",
    "sym",
    "her",
    "pos",
    "pos",
]
KINDS = ["complex128", "float32", "float64", "complex64"]
"""So that every scalar meets a structure, and sym and her have complex ones."""


def system(structure, kind, n):
    a = symmetric(kind, n, hermitian=structure != "sym") + 2 * n * np.eye(n)
    if structure in ("sym", "her"):
        a = a - np.diag(np.arange(n) % 2 * 4 * n)
    if structure == "general":
        a = a + np.triu(a, 2)
    if structure == "diagonal":
        a = np.diag(np.diag(a))
    if structure == "tridiagonal":
        a = np.tril(np.triu(a, -1), 1)
    if structure.endswith("triangular"):
        a = np.triu(a) if structure.startswith("upper") else np.tril(a)
    return a.astype(kind)


@pytest.mark.parametrize(
    ("structure", "kind"), list(zip(STRUCTURES, itertools.cycle(KINDS), strict=False))
)
def test_solve(structure, kind):
    triangles = (False, True) if structure in ("sym", "her", "pos") else (False,)
    with jax.enable_x64(kind in ("float64", "complex128")):
        a = system(structure, kind, 6)
        b = np.random.default_rng(0).standard_normal((6, 2)).astype(kind)
        u = np.finfo(kind).eps / 2
        for lower, transposed in itertools.product(triangles, (False, True)):
            x = lapax.linalg.solve(a, b, lower, assume_a=structure, transposed=transposed)
            assert x.dtype == kind
            op = a.T if transposed else a
            size = np.abs(op).sum(1).max() * np.abs(x).max()
            assert np.abs(op @ x - b).max() / (6 * size * u) < LIMIT, (lower, transposed)
        one = lapax.linalg.solve(a, b[:, 0], assume_a=structure)
        np.testing.assert_allclose(one, np.linalg.solve(a, b[:, 0]), rtol=1e3 * u)


@pytest.mark.parametrize("structure", ["sym", "her", "pos", "tridiagonal", "diagonal"])
def test_derivatives_of_solutions(structure):
    with jax.enable_x64(True):
        a = system(structure, "complex128" if structure in ("sym", "her") else "float64", 4)
        b = np.random.default_rng(2).standard_normal((2, 4, 2))

        def solution(a, b):
            return lapax.linalg.solve(a, b, assume_a=structure)

        check_grads(solution, (a, b), 1, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("structure", ["general", "her", "pos", "upper triangular"])
def test_inverses(structure):
    a = np.stack([system(structure, "complex64", 5) * scale for scale in (1, 2)])
    x = lapax.linalg.inv(a, assume_a=structure)
    np.testing.assert_allclose(x, np.linalg.inv(a), rtol=1e-4, atol=1e-5)


def test_batches_of_systems():
    a = np.stack([system("her", "float32", 5) * scale for scale in (1, 2, 3)])
    b = np.arange(10, dtype=np.float32).reshape(5, 2)
    x = lapax.linalg.solve(a, b, assume_a="her")
    assert x.shape == (3, 5, 2)
    loop = [lapax.linalg.solve(one, b, assume_a="her") for one in a]
    np.testing.assert_array_equal(x, np.stack(loop))
    mapped = jax.vmap(lambda a: lapax.linalg.solve(a, b[:, 0], assume_a="her"))(a)
    np.testing.assert_allclose(mapped, x[..., 0], rtol=1e-5)
    indefinite = lapax.linalg.solve(np.stack([a[0], -a[0]]), b, assume_a="pos")
    assert np.isnan(indefinite[1]).all()


@pytest.mark.parametrize("b", [3.0, [3.0, 4.0], np.ones((3, 2)), np.ones((1, 2))])
def test_one_number(b):
    for a in (2.0, [[2.0]]):
        x = lapax.linalg.solve(a, b)
        np.testing.assert_allclose(x, scipy.linalg.solve(a, b), rtol=1e-6)
        assert x.shape == scipy.linalg.solve(a, b).shape


def test_misuse_is_named():
    a = np.eye(3, dtype=np.float32)
    with pytest.raises(ValueError, match=r"ldl: A: expected shape \[\.\.\., n, n\], got \[2, 3\]"):
        lapax.linalg.ldl(a[:2])
    with pytest.raises(ValueError, match=r"solve: assume_a: expected one of .* got 'triangular'"):
        lapax.linalg.solve(a, a, assume_a="triangular")
    with pytest.raises(ValueError, match=r"solve: b: expected shape \[\.\.\., 3, k\]"):
        lapax.linalg.solve(a, np.ones((2, 2), np.float32), assume_a="sym")
    with pytest.raises(ValueError, match="ldl: arrays of dtype float16"):
        lapax.linalg.ldl(a.astype(np.float16))
    half = lapax.linalg.solve(
        a.astype(np.float16), np.ones(3, np.float16), assume_a="sym", compute_dtype="float32"
    )
    assert half.dtype == jnp.float16
