"""install(): JAX's functions compute on lapax with stock's answers, and it can be undone."""

from __future__ import annotations

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.interpreters import batching, mlir

import lapax
from lapax import _jax_private as private
from programs import FUNCTIONS, Operands, assert_close, custom_calls, run_python, tolerance


def jitted(function):
    return jax.jit(lambda *o: function(Operands(*o)))


def snapshot():
    """Every rule that install() may touch, by identity."""
    primitives = private.linalg_primitives().values()
    entries = {p.name: private.lowering_entry(p, "cpu") for p in primitives}
    batchers = {p.name: batching.fancy_primitive_batchers.get(p) for p in primitives}
    return entries, batchers


@pytest.mark.parametrize("name", FUNCTIONS)
def test_equals_stock(name, dtype, batch):
    function = FUNCTIONS[name]
    expected = jitted(function)(*batch)
    with lapax.installed():
        calls = custom_calls(lambda *o: function(Operands(*o)), *batch)
        got = jitted(function)(*batch)
    assert calls
    assert all(call.startswith("lapax.") for call in calls)
    assert_close(got, expected, tolerance(dtype, 5))


@pytest.mark.parametrize("shape", [(0, 5, 5), (4, 0, 0), (0, 0), (1, 1)])
def test_edge_shapes(shape):
    a = np.ones(shape, np.float32)
    with lapax.installed():
        for function in (jnp.linalg.cholesky, jnp.linalg.inv, jnp.linalg.det):
            got, name = np.asarray(function(a)), function.__name__
            lapax.uninstall()
            expected = np.asarray(function(a))
            lapax.install()
            np.testing.assert_array_equal(got, expected, err_msg=name)


def test_rectangular_lu(dtype):
    rng = np.random.default_rng(0)
    for m, n in ((7, 3), (3, 7)):
        a = rng.standard_normal((2, m, n)).astype(dtype)
        expected = jax.lax.linalg.lu(a)
        with lapax.installed():
            lu, pivots, permutation = jax.lax.linalg.lu(a)
        assert_close(lu, expected[0], tolerance(dtype, 7))
        np.testing.assert_array_equal(pivots, expected[1])
        np.testing.assert_array_equal(permutation, expected[2])


def test_cholesky_update_equals_stock():
    for kind in (np.float32, np.float64):
        with jax.enable_x64(kind is np.float64):
            rng = np.random.default_rng(0)
            r = np.triu(rng.standard_normal((6, 6)) + 6 * np.eye(6)).astype(kind)
            w = rng.standard_normal(6).astype(kind)
            expected = jax.lax.linalg.cholesky_update(r, w)
            with lapax.installed():
                calls = custom_calls(jax.lax.linalg.cholesky_update, r, w)
                got = jax.lax.linalg.cholesky_update(r, w)
            assert calls == ["lapax.cu_cholesky_update_ffi"]
            gram, expected_gram = (np.asarray(x).T @ np.asarray(x) for x in (got, expected))
            assert_close(gram, expected_gram, tolerance(np.dtype(kind), 6))


def test_pivots_to_permutation_without_a_loop():
    pivots = np.array([[2, 1, 3], [0, 2, 2]], np.int32)
    convert = lambda p: jax.lax.linalg.lu_pivots_to_permutation(p, 5)  # noqa: E731
    expected = convert(pivots)
    with lapax.installed():
        text = jax.jit(convert).lower(pivots).as_text()
        got = convert(pivots)
    assert "while" not in text
    assert "lapax.cu_lu_pivots_to_permutation" in text
    np.testing.assert_array_equal(got, expected)
    assert got.dtype == expected.dtype


def test_what_lapax_does_not_serve_stays_with_jax():
    a = np.eye(3, dtype=np.float16)
    with lapax.installed():
        assert custom_calls(lambda x: jax.lax.linalg.triangular_solve(x, x), a) == []
        np.testing.assert_array_equal(jax.lax.linalg.triangular_solve(a, a), a)


def test_a_call_by_name_is_not_renamed():
    a = np.eye(3, dtype=np.float32)
    out = (jax.ShapeDtypeStruct(a.shape, a.dtype), jax.ShapeDtypeStruct((), np.int32))

    def both(x):
        first, _ = jax.ffi.ffi_call("lapack_spotrf_ffi", out)(x, uplo=np.uint8(ord("L")))
        return jnp.linalg.cholesky(first)

    with lapax.installed():
        assert custom_calls(both, a) == ["lapack_spotrf_ffi", "lapax.lapax_cholesky"]


def test_compiled_functions_are_compiled_again():
    traced = []

    @jax.jit
    def cholesky(a):
        traced.append(lapax.is_installed())
        return jnp.linalg.cholesky(a)

    a = np.eye(3, dtype=np.float32)
    cholesky(a)
    lapax.install()
    cholesky(a)
    cholesky(a)
    lapax.uninstall()
    cholesky(a)
    assert traced == [False, True, False]


def test_uninstall_restores_every_rule():
    before = snapshot()
    lapax.install()
    assert snapshot() != before
    lapax.uninstall()
    assert snapshot() == before
    with pytest.raises(NotImplementedError, match="cholesky_update"):
        jax.vmap(jax.lax.linalg.cholesky_update)(jnp.ones((2, 3, 3)), jnp.ones((2, 3)))


def test_install_twice_is_install_once():
    before = snapshot()
    lapax.install()
    once = snapshot()
    lapax.install()
    assert snapshot() == once
    lapax.uninstall()
    assert snapshot() == before
    lapax.uninstall()
    assert snapshot() == before


def test_blocks_nest():
    before = snapshot()
    with lapax.installed():
        with lapax.installed():
            assert lapax.is_installed()
        assert lapax.is_installed()
    assert snapshot() == before
    lapax.install()
    with lapax.installed():
        pass
    assert lapax.is_installed()
    with lapax.installed():
        lapax.uninstall()
        assert snapshot() == before
    assert snapshot() == before


def test_a_block_ends_when_it_raises():
    with pytest.raises(ZeroDivisionError), lapax.installed():
        raise ZeroDivisionError
    assert not lapax.is_installed()


def test_a_rule_set_by_somebody_else_survives_uninstall():
    primitive = jax.lax.linalg.cholesky_p
    stock = private.lowering_entry(primitive, "cpu")
    lapax.install()
    mlir.register_lowering(primitive, stock.rule, platform="cpu")
    theirs = private.lowering_entry(primitive, "cpu")
    lapax.uninstall()
    try:
        assert private.lowering_entry(primitive, "cpu") is theirs
    finally:
        mlir._platform_specific_lowerings["cpu"][primitive] = stock


def test_a_failing_install_changes_nothing(monkeypatch):
    before = snapshot()
    monkeypatch.setattr(private, "has_batching_rule", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        lapax.install()
    assert not lapax.is_installed()
    assert snapshot() == before


def test_install_and_compile_from_many_threads():
    before = snapshot()
    a = np.eye(4, dtype=np.float32) * 4
    failures = []

    def work(seed: int) -> None:
        try:
            for i in range(5):
                with lapax.installed():
                    x = jax.jit(lambda x, i=i: jnp.linalg.cholesky(x) + (seed * 10 + i))(a)
                np.testing.assert_array_equal(x, 2 * np.eye(4) + seed * 10 + i)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert snapshot() == before


@pytest.mark.parametrize("first", ["install", "backend"])
def test_install_before_and_after_the_backend(first):
    code = f"""
import jax, jax.numpy as jnp, numpy as np, lapax
if {first!r} == "backend":
    jax.devices()
lapax.install()
a = np.array([[4.0, 2.0], [2.0, 5.0]], np.float32)
print("lapax.lapax_cholesky" in jax.jit(jnp.linalg.cholesky).lower(a).as_text())
print(np.abs(np.asarray(jnp.linalg.cholesky(a)) - [[2, 0], [1, 2]]).max() < 1e-6)
"""
    assert run_python(code).split() == ["True", "True"]
