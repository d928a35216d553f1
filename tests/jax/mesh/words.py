"""What programs on up to 64 devices send: `words.py`, the table of docs/mesh.md.

Compiled alone. In multiples of n²/√P words for each device, the order of what any algorithm must
send with that memory (Ballard, Demmel, Holtz and Schwartz 2011).
"""

from __future__ import annotations

import functools
import math
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=64"

import jax
import numpy as np
from jax.sharding import NamedSharding
from sharded import P, mesh_of

from lapax import mesh

N = 16_384
FUNCTIONS = {
    "cholesky": mesh.cholesky,
    "lu": mesh.lu,
    "lu by tournament": functools.partial(mesh.lu, pivoting="tournament"),
    "qr": functools.partial(mesh.qr, mode="r"),
    "qr with Q": mesh.qr,
    "matmul": lambda a: mesh.matmul(a, a),
}
SHAPES = ((2, 1), (2, 2), (4, 2), (8, 1), (4, 4), (16, 1), (2, 16), (8, 4), (8, 8), (64, 1))


def words(function, shape):
    a = jax.ShapeDtypeStruct(
        (N, N), np.float32, sharding=NamedSharding(mesh_of(shape), P("x", "y"))
    )
    return mesh.count(jax.jit(function).lower(a).compile()).total


print("| |", " | ".join(f"{rows}×{cols}" for rows, cols in SHAPES), "|")
print("|---" + "|--:" * len(SHAPES) + "|")
for name, function in FUNCTIONS.items():
    ratios = [words(function, shape) * math.sqrt(math.prod(shape)) / N**2 for shape in SHAPES]
    print(f"| `{name}` |", " | ".join(f"{ratio:.1f}" for ratio in ratios), "|", flush=True)
