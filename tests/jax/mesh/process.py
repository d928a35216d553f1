"""One of several processes over loopback: `process.py NUMBER PROCESSES PORT [leave]`.

Solves on two devices of its own and those of the others, and prints how far its own shards are off.
With `leave` the last process ends without a word between two calls.
"""

from __future__ import annotations

import os
import sys

NUMBER, PROCESSES, PORT = map(int, sys.argv[1:4])
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"

import jax  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import NamedSharding, PartitionSpec  # noqa: E402

from lapax import mesh  # noqa: E402

LOST_AFTER = 10 if "leave" in sys.argv[4:] else 100
"""Seconds without a sign of life; 100 is the default."""

jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(
    f"127.0.0.1:{PORT}",
    PROCESSES,
    NUMBER,
    initialization_timeout=60,
    heartbeat_timeout_seconds=LOST_AFTER,
)

N = 36
rng = np.random.default_rng(0)
A = rng.standard_normal((N, N)).astype(np.float32)
S = A @ A.T + N * np.eye(N, dtype=np.float32)
B = rng.standard_normal(N).astype(np.float32)
GRID = jax.make_mesh((PROCESSES, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)


def put(x, *spec):
    sharding = NamedSharding(GRID, PartitionSpec(*spec))
    return jax.make_array_from_callback(x.shape, sharding, lambda index: x[index])


def check(name, got, expected):
    """This process's shards, against one process's answer."""
    error = max(
        np.abs(np.asarray(shard.data) - expected[shard.index]).max()
        for shard in got.addressable_shards
    )
    print(name, error / np.abs(expected).max(), flush=True)


s, b = put(S, "x", "y"), put(B, "x")
check("solve", mesh.solve(s, b, assume_a="pos", block=5), np.linalg.solve(S, B))
if "leave" in sys.argv[4:]:
    if NUMBER == PROCESSES - 1:
        os._exit(1)
    check("after", mesh.solve(s, b, assume_a="pos", block=5), np.linalg.solve(S, B))
gradient = jax.grad(lambda a: mesh.solve(a, b, block=5).sum())(put(A, "x", "y"))
y = np.linalg.solve(A.T, np.ones(N))
check("gradient", gradient, -np.outer(y, np.linalg.solve(A, B)))
