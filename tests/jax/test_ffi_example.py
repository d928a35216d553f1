"""The example with which JAX introduced ffi_call, on the CPU, in every way its users write it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import lapax  # noqa: F401  The import registers the target.
from programs import custom_calls, run_python

NAME = "cu_lu_pivots_to_permutation"
PIVOTS = np.array([[1, 2, 2], [2, 1, 3], [0, 3, 3], [3, 3, 2]], np.int32)
PERMUTATIONS = np.array([[1, 2, 0, 3], [2, 1, 3, 0], [0, 3, 1, 2], [3, 0, 2, 1]], np.int32)


def permutation(pivots, size=4, **attributes):
    out = jax.ShapeDtypeStruct((*pivots.shape[:-1], size), np.int32)
    return jax.ffi.ffi_call(NAME, out, vmap_method="broadcast_all")(pivots, **attributes)


def expected(pivots, size=4):
    """The identity after the swaps i ↔ pivots[i]."""
    order = list(range(size))
    for i, j in enumerate(pivots):
        order[i], order[j] = order[j], order[i]
    return order


def test_the_expected_permutations():
    np.testing.assert_array_equal(PERMUTATIONS, [expected(p) for p in PIVOTS])


@pytest.mark.parametrize("attributes", [{}, {"permutation_size": np.int32(4)}])
@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_one_and_many(transform, attributes):
    function = transform(lambda p: permutation(p, **attributes))
    np.testing.assert_array_equal(function(PIVOTS), PERMUTATIONS)
    np.testing.assert_array_equal(function(PIVOTS[1]), PERMUTATIONS[1])
    np.testing.assert_array_equal(function(PIVOTS[:, None]), PERMUTATIONS[:, None])


def test_the_attribute_is_checked_against_the_result():
    with pytest.raises(Exception, match="permutation_size") as raised:
        jax.block_until_ready(
            jax.jit(lambda p: permutation(p, permutation_size=np.int32(5)))(PIVOTS)
        )
    assert "INVALID_ARGUMENT" in str(raised.value)
    assert NAME in str(raised.value)


def test_a_result_that_is_too_short_is_refused():
    with pytest.raises(Exception, match=NAME) as raised:
        jax.jit(lambda p: permutation(p, size=2))(PIVOTS).block_until_ready()
    assert "INVALID_ARGUMENT" in str(raised.value)


@pytest.mark.parametrize("attributes", [{}, {"permutation_size": np.int32(4)}])
def test_vmap_is_one_call(attributes):
    mapped = jax.vmap(lambda p: permutation(p, **attributes))
    assert custom_calls(mapped, PIVOTS) == [NAME]
    np.testing.assert_array_equal(mapped(PIVOTS), PERMUTATIONS)
    twice = jax.vmap(mapped)
    assert custom_calls(twice, PIVOTS.reshape(2, 2, 3)) == [NAME]
    np.testing.assert_array_equal(twice(PIVOTS.reshape(2, 2, 3)).reshape(4, 4), PERMUTATIONS)


def test_inside_custom_jvp():
    @jax.custom_jvp
    def permuted(x, pivots):
        return x[permutation(pivots)]

    @permuted.defjvp
    def _(primals, tangents):
        x, pivots = primals
        return permuted(x, pivots), permuted(tangents[0], pivots)

    x = jnp.arange(4.0)
    weights = jnp.array([1.0, 10.0, 100.0, 1000.0])
    gradient = jax.jit(jax.grad(lambda x: jnp.dot(weights, permuted(x, PIVOTS[1]))))(x)
    np.testing.assert_array_equal(gradient[PERMUTATIONS[1]], weights)
    mapped = jax.vmap(permuted, in_axes=(None, 0))(x, PIVOTS)
    np.testing.assert_array_equal(mapped, PERMUTATIONS.astype(np.float32))


def test_in_a_branch_of_platform_dependent():
    def function(pivots):
        return jax.lax.platform_dependent(
            pivots,
            cpu=lambda p: permutation(p, permutation_size=np.int32(4)),
            cuda=lambda p: permutation(p),
        )

    np.testing.assert_array_equal(jax.jit(function)(PIVOTS), PERMUTATIONS)
    np.testing.assert_array_equal(jax.vmap(function)(PIVOTS), PERMUTATIONS)

    def default(pivots):
        return jax.lax.platform_dependent(
            pivots, cuda=permutation, default=lambda p: jnp.pad(p, ((0, 0), (0, 1)))
        )

    assert custom_calls(default, PIVOTS) == []


def test_with_a_sharded_batch():
    mesh = jax.make_mesh((4,), ("batch",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
    sharding = NamedSharding(mesh, PartitionSpec("batch"))
    pivots = jax.device_put(PIVOTS, sharding)
    np.testing.assert_array_equal(jax.jit(permutation)(pivots), PERMUTATIONS)
    mapped = jax.jit(
        jax.shard_map(
            permutation, mesh=mesh, in_specs=sharding.spec, out_specs=sharding.spec, check_vma=False
        )
    )
    compiled = mapped.lower(pivots).compile().as_text()
    assert "all-gather" not in compiled
    assert NAME in compiled
    np.testing.assert_array_equal(mapped(pivots), PERMUTATIONS)


def test_after_the_backend_exists():
    code = f"""
import jax, numpy as np
jax.devices()
import lapax
out = jax.ShapeDtypeStruct((4,), np.int32)
print(jax.ffi.ffi_call({NAME!r}, out)(np.array([2, 1, 3], np.int32)).tolist())
"""
    assert run_python(code).strip() == "[2, 1, 3, 0]"
