"""Vectors that a program does not use are not computed, and nothing else changes."""

from __future__ import annotations

import functools
import re

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import lapax
from programs import (
    assert_close,
    compiled_calls,
    custom_calls,
    operands,
    run_python,
    tolerance,
)

F32 = np.dtype(np.float32)
V, N, A, S = (ord(letter) for letter in "VNAS")


BY_ROWS = {
    "lapax_eig": [N, V],
    "lapax_eigh": [V],
    "lapax_eigvals": [N, N],
    "lapax_eigvalsh": [N],
    "lapax_schur": [V],
    "lapax_svdvals": [N],
}
"""The job codes of LAPACK that row-major targets stand for."""


def modes(function, *args):
    """The job codes of the calls in a program, in order."""
    found = []
    for name, call in re.findall(
        r"stablehlo\.custom_call @\"?(?:lapax\.)?(\w+)(.*)",
        jax.jit(function).lower(*args).as_text(),
    ):
        codes = re.findall(r"(?:mode|compute_left|compute_right) = (\d+)", call)
        if name == "lapax_svd":
            codes = [A if "full_matrices = true" in call else S]
        found += BY_ROWS.get(name, map(int, codes))
    return found


def hermitian(dtype, batch=(3,), n=6):
    return operands(np.dtype(dtype), n=n, batch=batch).s


VALUES = {
    "eigvalsh": jnp.linalg.eigvalsh,
    "eigvalsh_upper": functools.partial(jnp.linalg.eigvalsh, UPLO="U"),
    "scipy": functools.partial(jsl.eigh, eigvals_only=True),
    "discarded": lambda a: jax.lax.linalg.eigh(a)[1],
    "hermitian_svd": functools.partial(jnp.linalg.svd, compute_uv=False, hermitian=True),
    "two_norm": functools.partial(jnp.linalg.norm, ord=2, axis=(-2, -1)),
    "nuclear_norm": functools.partial(jnp.linalg.norm, ord="nuc", axis=(-2, -1)),
    "cond": jnp.linalg.cond,
}


@pytest.mark.parametrize("name", VALUES)
def test_values_alone(name, dtype):
    a = hermitian(dtype)
    expected = VALUES[name](a)
    with lapax.installed():
        assert modes(VALUES[name], a) == [N]
        got = VALUES[name](a)
    assert_close(got, expected, tolerance(np.dtype(dtype), 6))


def test_used_vectors_are_computed():
    a = hermitian(F32)
    with lapax.installed():
        assert modes(jnp.linalg.eigh, a) == [V]
        assert modes(lambda a: jnp.linalg.eigh(a)[1], a) == [V]
        assert modes(lambda a: jnp.linalg.svd(a)[0], a) == [A]
        assert modes(lambda a: jnp.linalg.svd(a, full_matrices=False)[2], a) == [S]


def test_other_decompositions():
    a = operands(F32, n=5, batch=(2,)).a
    cases = {
        "svd": (lambda a: jnp.linalg.svd(a)[1], [N]),
        "eig": (lambda a: jnp.linalg.eig(a)[0], [N, N]),
        "eig_left": (lambda a: jax.lax.linalg.eig(a)[1], [V, N]),
        "eig_both": (lambda a: jax.lax.linalg.eig(a), [V, V]),
        "schur": (lambda a: jax.lax.linalg.schur(a)[0], [N]),
        "schur_vectors": (lambda a: jax.lax.linalg.schur(a)[1], [V]),
    }
    for name, (function, expected) in cases.items():
        with lapax.installed():
            assert modes(function, a) == expected, name
            # Eagerly, nothing is dropped: the vectors are computed and thrown away.
            assert_close(jax.jit(function)(a), function(a), tolerance(F32, 5))


R_ALONE = {
    "numpy": lambda a: jnp.linalg.qr(a, mode="r"),
    "scipy": lambda a: jsl.qr(a, mode="r")[0],
    "second": lambda a: jnp.linalg.qr(a)[1],
    "complete": lambda a: jnp.linalg.qr(a, mode="complete")[1],
}


@pytest.mark.parametrize("name", R_ALONE)
@pytest.mark.parametrize("shape", [(4, 2), (8, 4), (2, 5), (40, 30), (300, 20), (5, 9, 3)])
def test_r_alone(name, shape, dtype):
    rng = np.random.default_rng(3)
    a = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    a = (a if np.dtype(dtype).kind == "c" else a.real).astype(dtype)
    function = jax.jit(R_ALONE[name])
    expected = function(a)
    with lapax.installed():
        assert custom_calls(function, a) == ["lapax.lapax_qr_r"]
        assert_close(function(a), expected, 4 * tolerance(np.dtype(dtype), 40))


def test_r_alone_takes_no_memory_for_q():
    a = jax.ShapeDtypeStruct((1000, 4), F32)
    with lapax.installed():
        for function in R_ALONE.values():
            memory = jax.jit(function).lower(a).compile().memory_analysis()
            assert memory.temp_size_in_bytes + memory.output_size_in_bytes <= 2 * 1000 * 4 * 4


def test_r_alone_inside_programs():
    a = operands(F32, n=4, batch=(3, 2)).a.reshape(3, 8, 4)
    r = R_ALONE["numpy"]
    step = lambda c, x: (r(jnp.concatenate([c, x])), None)  # noqa: E731
    filtered = lambda a: jax.lax.scan(step, a[0, :4], a)[0]  # noqa: E731

    def while_loop(a):
        body = lambda state: (state[0] + 1, r(jnp.concatenate([state[1], a[0]])))  # noqa: E731
        return jax.lax.while_loop(lambda state: state[0] < a[0, 0, 0] + 9, body, (0, a[0, :4]))[1]

    programs = {
        "scan": filtered,
        "while": while_loop,
        "fori": lambda a: jax.lax.fori_loop(
            0, 3, lambda i, c: r(jnp.concatenate([c, a[i]])), r(a[0])
        ),
        "map": lambda a: jax.lax.map(r, a),
        "cond": lambda a: jax.lax.cond(a[0, 0, 0] > 0, r, lambda a: a[..., :4, :], a),
        "vmap": jax.vmap(r),
        "jit": jax.jit(lambda a: jax.jit(jnp.linalg.qr)(a)[1]),
        "checkpoint": jax.checkpoint(r),
    }
    for name, program in programs.items():
        expected = jax.jit(program)(a)
        traced = str(jax.make_jaxpr(program)(a))
        with lapax.installed():
            assert set(custom_calls(program, a)) == {"lapax.lapax_qr_r"}, name
            assert_close(jax.jit(program)(a), expected, 4 * tolerance(F32, 8))
            assert str(jax.make_jaxpr(program)(a)) == traced, name


def test_derivatives_of_r_use_q():
    a = operands(F32, n=6, batch=()).a[:, :3]
    function = lambda a: jnp.sin(R_ALONE["numpy"](a)).sum()  # noqa: E731
    expected, hessian = jax.grad(function)(a), jax.hessian(function)(a)
    with lapax.installed():
        assert custom_calls(jax.grad(function), a)[0] == "lapax.lapax_qr"
        assert_close(jax.grad(function)(a), expected, tolerance(F32, 40))
        assert_close(jax.hessian(function)(a), hessian, tolerance(F32, 40))
        saved = jax.checkpoint(jax.jit(function))
        assert_close(jax.grad(saved)(a), expected, tolerance(F32, 40))


def test_r_alone_of_a_dropped_program():
    a = operands(F32, n=5, batch=(3,)).a
    function = R_ALONE["second"]
    expected, tangent = function(a), jax.jvp(function, (a,), (a,))[1]
    with lapax.installed():
        alone, one = dropped(function, a), dropped(function, a[0])
        assert custom_calls(alone, a) == ["lapax.lapax_qr_r"]
        assert_close(alone(a), expected, tolerance(F32, 20))
        assert_close(jax.jvp(alone, (a,), (a,))[1], tangent, tolerance(F32, 40))
        assert custom_calls(jax.vmap(one), a) == ["lapax.lapax_qr_r"]
        assert_close(jax.vmap(one)(a), expected, tolerance(F32, 20))
        with lapax.exporting():
            assert custom_calls(alone, a)[0] == "lapack_sgeqrf_ffi"
    assert_close(alone(a), expected, tolerance(F32, 20))


def test_calls_that_xla_drops():
    """Q is a call of its own there, after that which finds its reflectors."""
    a = operands(F32, n=6, batch=()).a
    programs = {
        "pivoted": lambda a: jsl.qr(a, mode="r", pivoting=True),
        "hessenberg": jsl.hessenberg,
    }
    with lapax.installed():
        for name, program in programs.items():
            text = jax.jit(program).lower(a).compile().as_text()
            targets = [target for target, _ in compiled_calls(text)]
            assert targets in (["lapax.lapack_sgeqp3_ffi"], ["lapax.lapack_sgehrd_ffi"]), name


@pytest.mark.parametrize("shape", [(10, 4), (4, 10), (6, 6), (2, 9, 3), (60, 12), (12, 60)])
@pytest.mark.parametrize("side", [0, 2])
def test_one_side_of_an_svd(side, shape):
    """The larger side is not made in full where nobody reads it."""
    a = jnp.asarray(np.random.default_rng(4).standard_normal(shape), F32)
    m, n = shape[-2:]

    def function(a):
        vectors = jnp.abs(jnp.linalg.svd(a)[side])
        # Of the larger side, those that belong to singular values: others are any basis.
        return vectors[..., : min(m, n)] if side == 0 else vectors[..., : min(m, n), :]

    larger = 0 if m >= n else 2
    expected = jax.jit(function)(a)
    with lapax.installed():
        assert modes(function, a) == [A if side == larger else S]
        assert_close(jax.jit(function)(a), expected, 4 * tolerance(F32, 60))
        assert_close(jax.jit(jax.vmap(function))(a[None]), expected[None], 4 * tolerance(F32, 60))


def test_derivatives_of_one_side_of_an_svd_use_both():
    a = jnp.asarray(np.random.default_rng(5).standard_normal((30, 10)), F32)
    function = lambda a: jnp.linalg.svd(a, full_matrices=False)[2]  # noqa: E731
    weights = jnp.sin(jnp.arange(100.0)).reshape(10, 10)
    weighed = lambda a: (function(a) ** 2 * weights).sum()  # noqa: E731
    expected, values = jax.grad(weighed)(a), jnp.abs(function(a))
    with lapax.installed():
        assert_close(jax.grad(weighed)(a), expected, 40 * tolerance(F32, 40))
        alone = dropped(function, a)
        assert_close(jnp.abs(alone(a)), values, 4 * tolerance(F32, 40))
    assert_close(jnp.abs(alone(a)), values, 4 * tolerance(F32, 40))


def test_derivatives_use_the_vectors():
    a = hermitian(F32, batch=())
    function = lambda a: jnp.sin(jnp.linalg.eigvalsh(a)).sum()  # noqa: E731
    expected = jax.grad(function)(a)
    hessian = jax.hessian(function)(a[:3, :3])
    with lapax.installed():
        assert modes(jax.grad(function), a) == [V]
        assert_close(jax.grad(function)(a), expected, tolerance(F32, 40))
        assert_close(jax.hessian(function)(a[:3, :3]), hessian, tolerance(F32, 40))
        # A program whose vectors were dropped before it is differentiated.
        saved = jax.checkpoint(jax.jit(function))
        assert_close(jax.grad(saved)(a), expected, tolerance(F32, 40))


def dropped(function, *args):
    """The function as a program whose unused results JAX has dropped already."""
    from jax.interpreters import partial_eval

    closed = jax.make_jaxpr(function)(*args)
    jaxpr, _ = partial_eval.dce_jaxpr(getattr(closed, "jaxpr", closed), [True])
    return lambda *args: jax.core.eval_jaxpr(jaxpr, closed.consts, *args)[0]


def test_a_dropped_program_is_a_function_like_any():
    a = hermitian(F32)
    function = lambda a: jax.lax.linalg.eigh(a)[1]  # noqa: E731
    expected = function(a)
    tangent = jax.jvp(function, (a,), (a,))[1]
    with lapax.installed():
        values = dropped(function, a)
        one = dropped(function, a[0])
        assert_close(values(a), expected, tolerance(F32, 6))
        assert_close(jax.jvp(values, (a,), (a,))[1], tangent, tolerance(F32, 40))
        assert_close(jax.vmap(one)(a), expected, tolerance(F32, 6))
        assert modes(jax.vmap(one), a) == [N]
    # It goes on working where lapax is no longer installed.
    assert custom_calls(values, a) == ["lapack_ssyevd_ffi"]
    assert_close(values(a), expected, tolerance(F32, 6))


def test_inside_control_flow():
    a = hermitian(F32)

    def scanned(a):
        return jax.lax.scan(lambda c, x: (c, jnp.linalg.eigh(x).eigenvalues), 0, a)[1]

    def branched(a):
        return jax.lax.cond(a[0, 0, 0] > 0, jnp.linalg.eigvalsh, lambda a: a[..., 0], a)

    with lapax.installed():
        for function in (scanned, branched, jax.vmap(jnp.linalg.eigvalsh)):
            assert modes(function, a) == [N]
            assert_close(function(a), np.linalg.eigvalsh(a), tolerance(F32, 6))


def test_a_sharded_batch_stays_sharded():
    a = hermitian(F32, batch=(8,))
    sharding = NamedSharding(Mesh(np.array(jax.devices()), ("x",)), PartitionSpec("x"))
    with lapax.installed():
        compiled = jax.jit(jnp.linalg.eigvalsh).lower(jax.device_put(a, sharding)).compile()
        got = compiled(jax.device_put(a, sharding))
    assert "all-gather" not in compiled.as_text()
    assert got.sharding.is_equivalent_to(sharding, got.ndim)
    assert_close(got, np.linalg.eigvalsh(a), tolerance(F32, 6))


def test_failure_is_nan():
    a = hermitian(F32)
    a[1, 2, 2] = np.nan
    with lapax.installed():
        w = np.asarray(jnp.linalg.eigvalsh(a))
    assert np.isnan(w[1]).all()
    assert np.isfinite(w[[0, 2]]).all()


def test_symbolic_shapes():
    b, n = jax.export.symbolic_shape("b, n")
    with lapax.installed(), lapax.exporting():
        program = jax.export.export(jax.jit(jnp.linalg.eigvalsh))(
            jax.ShapeDtypeStruct((b, n, n), F32)
        )
    a = hermitian(F32)
    assert_close(program.call(a), np.linalg.eigvalsh(a), tolerance(F32, 6))


def test_no_vectors_in_memory():
    """The program for values holds no second matrix beside LAPACK's own."""
    a = jax.ShapeDtypeStruct((256, 256), F32)
    with lapax.installed():
        sizes = [
            jax.jit(f).lower(a).compile().memory_analysis().output_size_in_bytes
            for f in (jnp.linalg.eigvalsh, jnp.linalg.eigh)
        ]
    assert sizes[0] < sizes[1] / 100


def test_stock_rules_are_back_after_uninstall():
    a = hermitian(F32)
    with lapax.installed():
        assert modes(jnp.linalg.eigvalsh, a) == [N]
    assert modes(jnp.linalg.eigvalsh, a) == [V]


def test_under_disable_jit():
    code = """
import jax, numpy as np, lapax
lapax.install()
a = np.diag([3.0, 1.0, 2.0]).astype(np.float32)
with jax.disable_jit():
    print(np.asarray(jax.numpy.linalg.eigvalsh(a)).round(5).tolist())
"""
    assert run_python(code).strip() == "[1.0, 2.0, 3.0]"
