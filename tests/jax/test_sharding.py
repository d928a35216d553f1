"""A sharded batch stays where it is: each device calls the target on its shard."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import lapax
from programs import FUNCTIONS, Operands, assert_close, compiled_calls, operands, tolerance

F32 = np.dtype(np.float32)
P = PartitionSpec


def mesh_of(devices, kind=AxisType.Auto):
    return jax.make_mesh(
        (devices,), ("batch",), axis_types=(kind,), devices=jax.devices()[:devices]
    )


def sharded(o, mesh):
    return Operands(*(jax.device_put(x, NamedSharding(mesh, P("batch"))) for x in o))


@pytest.mark.parametrize("shardy", [True, False], ids=["shardy", "gspmd"])
@pytest.mark.parametrize("name", ["cholesky", "solve", "inv", "lu", "cho_solve", "adjoint"])
@pytest.mark.parametrize("devices", [2, 8])
def test_installed_functions_do_not_gather(devices, name, shardy):
    o = operands(F32, n=4, batch=(8,))
    expected = FUNCTIONS[name](o)
    before = jax.config.jax_use_shardy_partitioner
    jax.config.update("jax_use_shardy_partitioner", shardy)
    try:
        with lapax.installed():
            function = jax.jit(lambda *o: FUNCTIONS[name](Operands(*o)))
            compiled = function.lower(*sharded(o, mesh_of(devices))).compile()
            got = compiled(*sharded(o, mesh_of(devices)))
    finally:
        jax.config.update("jax_use_shardy_partitioner", before)
    check_local(compiled.as_text(), 8 // devices)
    assert len(jax.tree.leaves(got)[0].sharding.device_set) == devices
    assert not jax.tree.leaves(got)[0].is_fully_replicated
    assert_close(got, expected, tolerance(F32, 4))


def check_local(text, local):
    """No collectives, and every call of lapax is on the local part of the batch."""
    assert "all-gather" not in text
    assert "all-reduce" not in text
    calls = [(name, shapes) for name, shapes in compiled_calls(text) if name.startswith("lapax.")]
    assert calls
    for name, shapes in calls:
        assert {int(size) for size in re.findall(r"\[(\d+)", shapes)} == {local}, (name, shapes)


@pytest.mark.parametrize("devices", [2, 8])
def test_ops_do_not_gather(devices):
    # Shards of a batch of four or more compute as the whole batch does.
    o = sharded(operands(F32, n=4, batch=(32,)), mesh_of(devices))

    def program(a, s, b):
        lu, ipiv, _ = lapax.ffi.getrf(a)
        root, _ = lapax.ffi.potrf(s, uplo="L")
        x = lapax.ffi.trsm(a, b, side="L", uplo="U", trans_x="N", diag="N")
        permutation = lapax.ffi.lu_pivots_to_permutation(ipiv - 1, p=4)
        updated, _ = lapax.ffi.cholesky_update(jnp.swapaxes(root, -1, -2), b[..., 0])
        return lu, permutation, root, x, updated

    compiled = jax.jit(program).lower(*o).compile()
    check_local(compiled.as_text(), 32 // devices)
    called = {name for name, _ in compiled_calls(compiled.as_text())}
    assert len(called) == 5
    for got, expected in zip(compiled(*o), program(*map(np.asarray, o)), strict=True):
        assert np.asarray(got).tobytes() == np.asarray(expected).tobytes()


def test_cholesky_update_and_permutation_do_not_gather_when_installed():
    rng = np.random.default_rng(0)
    r = np.triu(rng.standard_normal((8, 4, 4)) + 4 * np.eye(4)).astype(np.float32)
    w = rng.standard_normal((8, 4)).astype(np.float32)
    sharding = NamedSharding(mesh_of(2), P("batch"))
    with lapax.installed():
        update = jax.jit(jax.vmap(jax.lax.linalg.cholesky_update))
        args = [jax.device_put(x, sharding) for x in (r, w)]
        check_local(update.lower(*args).compile().as_text(), 4)
        pivots = jax.device_put(np.zeros((8, 3), np.int32), sharding)
        convert = jax.jit(lambda p: jax.lax.linalg.lu_pivots_to_permutation(p, 4))
        check_local(convert.lower(pivots).compile().as_text(), 4)


def test_a_sharded_matrix_dimension_is_gathered_and_right():
    o = operands(F32, n=4, batch=(2,))
    sharding = NamedSharding(mesh_of(2), P(None, "batch"))
    a = jax.device_put(o.a, sharding)
    np.testing.assert_array_equal(jax.jit(lapax.ffi.getrf)(a).lu, lapax.ffi.getrf(o.a).lu)


def test_shard_map_with_an_operand_that_does_not_vary():
    o = operands(F32, n=4, batch=(8,))
    mesh = mesh_of(2)

    def local(b):
        a = jnp.broadcast_to(o.a[0], (b.shape[0], 4, 4))
        return lapax.ffi.trsm(a, b, side="L", uplo="L", trans_x="N", diag="N")

    mapped = jax.jit(jax.shard_map(local, mesh=mesh, in_specs=P("batch"), out_specs=P("batch")))
    got = mapped(o.b)
    check_local(mapped.lower(o.b).compile().as_text(), 4)
    assert_close(got, np.linalg.solve(np.tril(o.a[0]), o.b), tolerance(F32, 4))


def test_explicit_sharding_is_in_the_type():
    o = operands(F32, n=4, batch=(8,))
    mesh = mesh_of(2, AxisType.Explicit)
    with jax.set_mesh(mesh):
        a, b = (jax.device_put(x, NamedSharding(mesh, P("batch"))) for x in (o.a, o.b))
        types = []

        @jax.jit
        def program(a, b):
            lu, ipiv, info = lapax.ffi.getrf(a)
            types.extend(jax.typeof(x).sharding.spec for x in (lu, ipiv, info))
            return jax.vmap(
                lambda a, b: lapax.ffi.trsm(a, b, side="L", uplo="L", trans_x="N", diag="N")
            )(lu, b)

        compiled = program.lower(a, b).compile()
        check_local(compiled.as_text(), 4)
        assert [tuple(spec)[:1] for spec in types] == [("batch",)] * 3
        with pytest.raises(ValueError, match="must not be sharded along its last 2 dimensions"):
            lapax.ffi.getrf(jax.device_put(o.a, NamedSharding(mesh, P(None, "batch"))))
        replicated = jax.device_put(o.b, NamedSharding(mesh, P()))
        with pytest.raises(ValueError, match="must have the same batch sharding"):
            lapax.ffi.trsm(a, replicated, side="L", uplo="L", trans_x="N", diag="N")
