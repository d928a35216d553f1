"""Cholesky, LU, systems, inverses and determinants of one matrix over many devices."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from sharded import CASES, DTYPES, FULL, LIMIT, SPECS, Case, P, mesh_of, norm1, ratio, wide

import lapax
from lapax import mesh
from programs import compiled_calls

# A program takes about a second to compile.
each_case = pytest.mark.parametrize("case", CASES, ids=str)
some_cases = pytest.mark.parametrize("case", CASES if FULL else CASES[2:4], ids=str)


def definite(case, condition=1e2):
    n = case.n
    q = np.linalg.qr(wide(case.random(n, n)))[0]
    a = (q * np.geomspace(1, 1 / condition, n)) @ q.conj().T
    return ((a + a.conj().T) / 2).astype(case.dtype)


def spread(matrix, case, condition):
    """With singular values from 1 to 1 / condition."""
    u, _, v = np.linalg.svd(wide(matrix))
    return ((u * np.geomspace(1, 1 / condition, case.n)) @ v).astype(case.dtype)


@each_case
def test_cholesky_and_its_solve(case):
    with case.x64:
        a, b = definite(case), case.random(case.n, 3, seed=1)
        got = mesh.cholesky(case.put(a), block=case.block)
        factor = wide(got)
        assert got.dtype == case.dtype
        assert got.sharding.is_equivalent_to(case.put(a).sharding, 2)
        assert not np.triu(factor, 1).any()
        assert ratio(factor @ factor.conj().T - wide(a), norm1(a), case) < LIMIT
        x = mesh.solve(case.put(a), case.put(b), assume_a="pos", block=case.block)
        assert x.sharding.is_equivalent_to(case.put(b).sharding, 2)
        assert ratio(wide(a) @ wide(x) - wide(b), norm1(a) * norm1(x), case) < LIMIT


@each_case
def test_lu_and_its_solve(case):
    with case.x64:
        a, b = case.random(case.n, case.n), case.random(case.n, seed=1)
        permutation, lower, upper = mesh.lu(case.put(a), block=case.block)
        assert lower.sharding.is_equivalent_to(case.put(a).sharding, 2)
        lower, upper = wide(lower), wide(upper)
        assert sorted(permutation) == list(range(case.n))
        assert np.abs(lower).max() <= np.sqrt(2) * (1 + np.finfo(case.dtype).eps)
        assert not np.triu(lower, 1).any()
        assert not np.tril(upper, -1).any()
        assert (np.diag(lower) == 1).all()
        assert ratio(lower @ upper - wide(a)[permutation], norm1(a), case) < LIMIT
        x = mesh.solve(case.put(a), case.put(b), block=case.block)
        assert ratio(wide(a) @ wide(x) - wide(b), norm1(a) * norm1(x), case) < LIMIT


@some_cases
def test_inv_and_slogdet(case):
    with case.x64:
        a = spread(case.random(case.n, case.n), case, 10)
        x = mesh.inv(case.put(a), block=case.block)
        assert ratio(wide(a) @ wide(x) - np.eye(case.n), norm1(a) * norm1(x), case) < LIMIT
        sign, logarithm = mesh.slogdet(case.put(a), block=case.block)
        expected = np.linalg.slogdet(wide(a))
        limit = LIMIT * case.n * np.finfo(case.dtype).eps * norm1(a) * norm1(np.linalg.inv(a))
        assert abs(sign - expected[0]) < limit
        assert abs(logarithm - expected[1]) < limit


@some_cases
def test_triangular_solve(case):
    with case.x64:
        a = np.tril(case.random(case.n, case.n)) + case.n * np.eye(case.n, dtype=case.dtype)
        b = case.random(case.n, 2, seed=1)
        lower, trans = (case.n % 2 == 0), "NTC"[case.n % 3]
        stored = a if lower else a.T
        x = wide(
            mesh.triangular_solve(
                case.put(stored), case.put(b), lower=lower, trans=trans, block=case.block
            )
        )
        op = {"N": stored, "T": stored.T, "C": stored.conj().T}[trans]
        assert ratio(wide(op) @ x - wide(b), norm1(op) * norm1(x), case) < LIMIT


@pytest.mark.parametrize(("lower", "trans"), [(False, "N"), (True, "T"), (False, "C")])
def test_every_kind_of_triangular_system(lower, trans):
    case = Case((2, 2), 22, DTYPES[2], SPECS[0], 3)
    a = case.random(22, 22) / 22
    b = case.random(22, 4, seed=1)
    x = mesh.triangular_solve(
        case.put(a), case.put(b), lower=lower, trans=trans, unit_diagonal=True, block=3
    )
    kept = np.tril(a, -1) if lower else np.triu(a, 1)
    kept = wide(kept + np.eye(22))
    op = {"N": kept, "T": kept.T, "C": kept.conj().T}[trans]
    assert ratio(op @ wide(x) - wide(b), norm1(op) * norm1(x), case) < LIMIT


def test_ill_conditioned_systems():
    case = Case((2, 2), 48, DTYPES[0], SPECS[0], 6)
    b = case.random(48, 8, seed=1)
    a = spread(case.random(48, 48), case, 1e7)
    x = mesh.solve(case.put(a), case.put(b), block=6)
    assert ratio(wide(a) @ wide(x) - b, norm1(a) * norm1(x), case) < LIMIT
    s = definite(case, 1e5)
    x = mesh.solve(case.put(s), case.put(b), assume_a="pos", block=6)
    assert ratio(wide(s) @ wide(x) - b, norm1(s) * norm1(x), case) < LIMIT


@pytest.mark.parametrize("rank", [0, 20])
def test_lu_of_a_singular_matrix(rank):
    """On a mesh with padding, so that a column of zeros must not take a row of padding."""
    case = Case((2, 2), 31, DTYPES[0], SPECS[1], 4)
    a = case.random(31, rank) @ case.random(rank, 31, seed=1)
    permutation, lower, upper = mesh.lu(case.put(a), block=4)
    assert sorted(permutation) == list(range(31))
    assert ratio(wide(lower) @ wide(upper) - a[permutation], max(norm1(a), 1e-30), case) < LIMIT
    if rank == 0:
        sign, logarithm = mesh.slogdet(case.put(a), block=4)
        assert (sign, logarithm) == (0, -np.inf)


def test_what_is_not_definite_or_not_a_number_gives_nan():
    case = Case((2, 2), 22, DTYPES[0], SPECS[0], 3)
    a = definite(case)
    for entry in (np.nan, -1.0):
        bad = a.copy()
        bad[20, 20] = entry
        assert np.isnan(mesh.cholesky(case.put(bad), block=3)).all()
        assert np.isnan(
            mesh.solve(case.put(bad), case.put(a[:, :2]), assume_a="pos", block=3)
        ).all()
    bad = a.copy()
    bad[3, 5] = np.nan
    assert np.isnan(mesh.solve(case.put(bad), case.put(a[:, :2]), block=3)).any()
    assert np.isnan(mesh.slogdet(case.put(bad), block=3).logabsdet)


@pytest.mark.parametrize("spec", SPECS[::2], ids=str)
def test_matmul(spec):
    case = Case((4, 2), 40, DTYPES[2], spec, None)
    a, b = case.random(40, 40), case.random(40, 24, seed=1)
    c = mesh.matmul(case.put(a), case.put(b))
    assert ratio(wide(c) - wide(a) @ wide(b), norm1(a) * norm1(b), case) < LIMIT


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit], ids=str)
def test_under_jit(kind):
    case = Case((4, 2), 24, DTYPES[0], P("x", "y"), 3)
    devices = mesh_of((4, 2), kind)
    a, b = definite(case), case.random(24, seed=1)
    put_a = jax.device_put(a, NamedSharding(devices, P("x", "y")))
    put_b = jax.device_put(b, NamedSharding(devices, P("x")))

    def program(a, b):
        return mesh.solve(a, 2 * mesh.solve(a, b), assume_a="pos")

    with jax.set_mesh(devices):
        got = jax.jit(program)(put_a, put_b)
    x = np.linalg.solve(wide(a), 2 * np.linalg.solve(wide(a), b))
    np.testing.assert_allclose(got, x, rtol=0, atol=1e-2 * np.abs(x).max())
    assert got.sharding.is_equivalent_to(put_b.sharding, 1)


def test_blocks_are_lapaxs_when_installed():
    case = Case((2, 2), 24, DTYPES[0], P("x", "y"), 6)
    a = definite(case)
    with lapax.installed():
        program = jax.jit(lambda a: mesh.cholesky(a, block=6)).lower(case.put(a)).compile()
        factor = wide(program(case.put(a)))
    called = {name for name, _ in compiled_calls(program.as_text())}
    assert called == {"lapax.lapax_cholesky", "lapax.lapax_triangular_solve"}
    assert ratio(factor @ factor.T - wide(a), norm1(a), case) < LIMIT


def test_sharding_is_taken_from_the_argument():
    case = Case((4, 2), 24, DTYPES[0], P("y", "x"), None)
    a = case.put(definite(case))
    got = jax.jit(lambda a: mesh.cholesky(a, sharding=a_sharding))
    a_sharding = a.sharding
    assert got(a).sharding.is_equivalent_to(a.sharding, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda a: mesh.solve(a, a[:5]), "solve: b: expected 6 rows, got 5"),
        (lambda a: mesh.cholesky(a[:4]), r"cholesky: a: expected shape \[n, n\], got \[4, 6\]"),
        (lambda a: mesh.cholesky(a[0]), r"cholesky: a: expected shape \[m, n\], got \[6\]"),
        (lambda a: mesh.lu(a[:0, :0]), "lu: a: expected no empty dimension"),
        (lambda a: mesh.solve(a, a, assume_a="banded"), "assume_a: expected one of 'gen'"),
        (lambda a: mesh.triangular_solve(a, a, trans="H"), "trans: expected one of 'N'"),
        (lambda a: mesh.inv(a.astype(jnp.bfloat16)), "inv: expected float32.*got bfloat16"),
        (lambda a: mesh.inv(np.eye(3)), "inv: a: expected an array sharded over a mesh"),
    ],
)
def test_misuse(call, message):
    case = Case((1, 2), 6, DTYPES[0], P(), None)
    with pytest.raises(ValueError, match=message):
        call(case.put(case.random(6, 6)))


def test_second_derivatives_say_so():
    case = Case((1, 2), 6, DTYPES[0], P(), None)
    a = case.put(definite(case))
    first = jax.grad(lambda a: mesh.solve(a, a[0]).sum())
    with pytest.raises(NotImplementedError, match="expected a first derivative in reverse"):
        jax.grad(lambda a: first(a).sum())(a)


def relative(got, expected):
    return np.abs(wide(got) - wide(expected)).max() / np.abs(wide(expected)).max()


GRADIENTS = {
    "cholesky": (mesh.cholesky, jnp.linalg.cholesky),
    "solve": (
        lambda a: mesh.solve(a, a[:, :2] * a[:, :2]),
        lambda a: jnp.linalg.solve(a, a[:, :2] ** 2),
    ),
    "pos": (
        lambda a: mesh.solve(a, jnp.sin(a[0].real), assume_a="pos"),
        # jax.scipy.linalg.solve(assume_a="pos") has another gradient of complex matrices.
        lambda a: jnp.linalg.solve((a + a.conj().T) / 2, jnp.sin(a[0].real).astype(a.dtype)),
    ),
    "inv": (mesh.inv, jnp.linalg.inv),
    "slogdet": (lambda a: mesh.slogdet(a)[1], lambda a: jnp.linalg.slogdet(a)[1]),
    "sign": (
        lambda a: mesh.slogdet(a + 1j * jnp.cos(3 * a))[0],
        lambda a: jnp.linalg.slogdet(a + 1j * jnp.cos(3 * a))[0],
    ),
    "lu": (lambda a: mesh.lu(a)[1:], lambda a: jax.scipy.linalg.lu(a)[1:]),
    "matmul": (lambda a: mesh.matmul(a, jnp.sin(a)), lambda a: a @ jnp.sin(a)),
    "lower": (
        lambda a: mesh.triangular_solve(a, a[:, :2], lower=True, trans="C"),
        lambda a: jax.lax.linalg.triangular_solve(
            a, a[:, :2], left_side=True, lower=True, transpose_a=True, conjugate_a=True
        ),
    ),
}


@pytest.mark.parametrize("name", GRADIENTS if FULL else ("cholesky", "pos", "slogdet", "lu"))
def test_gradients_are_those_of_one_device(name):
    dtype = DTYPES[3] if name != "sign" else DTYPES[1]
    case = Case((2, 2), 12, dtype, P("x", "y"), None)
    sharded, single = GRADIENTS[name]
    with case.x64:
        a = definite(case, 10)

        def scalar(function):
            def value(a):
                total = 0.0
                for i, x in enumerate(jax.tree.leaves(function(a))):
                    weights = case.random(*x.shape, seed=i + 2)
                    total += jnp.sum((x * weights).real) + jnp.sum((x * weights).imag) / 2
                return total

            return value

        got = jax.grad(scalar(sharded))(case.put(a))
        assert relative(got, jax.grad(scalar(single))(jnp.asarray(a))) < 1e-10
