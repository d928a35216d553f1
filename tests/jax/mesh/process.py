"""One of several processes over loopback: `process.py NUMBER PROCESSES PORT [leave|stop]`.

Solves on a mesh of four devices, as many of which are its own as others leave, and prints how far
its own shards are off. With `leave` the last process ends without a word between two calls; with
`stop` it lives, but does nothing any more.
"""

from __future__ import annotations

import os
import signal
import sys
import time

NUMBER, PROCESSES, PORT = map(int, sys.argv[1:4])
FAULT = "".join(sys.argv[4:])
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={4 // PROCESSES}"

import jax  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import NamedSharding, PartitionSpec  # noqa: E402

from lapax import mesh  # noqa: E402

LOST_AFTER = int(os.environ["LOST_AFTER"]) if FAULT else 100
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
GRID = jax.make_mesh((2, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)


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
check("solve", mesh.solve(s, b, assume_a="pos", block=6), np.linalg.solve(S, B))
if FAULT:
    if NUMBER == PROCESSES - 1:
        if FAULT == "leave":
            os._exit(1)
        os.kill(os.getpid(), signal.SIGSTOP)
    print("lost", time.time(), flush=True)
    check("after", mesh.solve(s, b, assume_a="pos", block=6), np.linalg.solve(S, B))
gradient = jax.grad(lambda a: mesh.solve(a, b, block=6).sum())(put(A, "x", "y"))
y = np.linalg.solve(A.T, np.ones(N))
check("gradient", gradient, -np.outer(y, np.linalg.solve(A, B)))
