"""Calls from several Python threads and devices, on pools of every size, without a hang."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import lapax
from programs import FUNCTIONS, Operands, assert_close, operands, run_python, tolerance

F64 = np.dtype(np.float64)


def test_four_python_threads_at_once():
    problems = [operands(np.dtype(np.float32), n=24, batch=(32,), seed=i) for i in range(4)]
    names = ("cholesky", "solve", "lower")
    with lapax.installed():
        functions = {
            name: jax.jit(lambda *o, name=name: FUNCTIONS[name](Operands(*o))) for name in names
        }
        alone = [[np.asarray(functions[name](*o)) for name in names] for o in problems]

        def work(i):
            return [[np.asarray(functions[n](*problems[i])) for n in names] for _ in range(20)]

        with ThreadPoolExecutor(4) as pool:
            together = list(pool.map(work, range(4)))
    for expected, runs in zip(alone, together, strict=True):
        for run in runs:
            for x, y in zip(run, expected, strict=True):
                assert x.tobytes() == y.tobytes()


def test_eight_devices_at_once():
    assert len(jax.devices()) == 8
    o = operands(np.dtype(np.float32), n=16, batch=(8, 16))
    mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
    sharding = NamedSharding(mesh, PartitionSpec("x"))
    with lapax.installed():
        solve = jax.jit(lambda *o: FUNCTIONS["solve"](Operands(*o)))
        whole = np.asarray(solve(*o))
        spread = solve(*(jax.device_put(x, sharding) for x in o))
        separate = [solve(*(jax.device_put(x[i], jax.devices()[i]) for x in o)) for i in range(8)]
    assert len(spread.sharding.device_set) == 8
    assert np.asarray(spread).tobytes() == whole.tobytes()
    assert np.stack([np.asarray(x) for x in separate]).tobytes() == whole.tobytes()
    assert_close(whole, np.linalg.solve(o.a, o.b), tolerance(np.dtype(np.float32), 16))


CONCURRENT = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=1"
import hashlib
from concurrent.futures import ThreadPoolExecutor
import jax, jax.numpy as jnp, numpy as np, lapax
lapax.install()
rng = np.random.default_rng(0)
a = rng.standard_normal((64, 40, 40)).astype(np.float32) + 40 * np.eye(40, dtype=np.float32)
b = rng.standard_normal((64, 40, 3)).astype(np.float32)
# Sixteen independent calls, large enough for XLA to run them concurrently inside one program.
several = jax.jit(lambda a, b: [jnp.linalg.solve(a + i, b) for i in range(16)])
one = jax.jit(jnp.linalg.solve)
def call(i):
    if i % 10 == 0:
        return [np.asarray(x).tobytes() for x in several(a, b)]
    return np.asarray(one(a + i % 7, b)).tobytes()
alone = [call(i) for i in range(70)]
with ThreadPoolExecutor(16) as pool:
    together = list(pool.map(call, range(200)))
print(sum(x == alone[i % 70] for i, x in enumerate(together)))
print(hashlib.sha256(b"".join(x for x in alone if isinstance(x, bytes))).hexdigest())
"""


@pytest.fixture(scope="module")
def concurrent():
    """The output of 200 concurrent calls by the size of XLA's pool."""
    return {
        size: run_python(CONCURRENT, NPROC=str(size), PJRT_NPROC=str(size)).split()
        for size in (1, 2, 5)
    }


@pytest.mark.parametrize("size", [1, 2, 5])
def test_two_hundred_concurrent_calls_do_not_hang(concurrent, size):
    assert concurrent[size][0] == "200"


def test_same_bits_for_every_pool_size(concurrent):
    assert len({digest for _, digest in concurrent.values()}) == 1
