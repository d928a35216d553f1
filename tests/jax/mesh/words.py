"""`words.py NAME…`: what factorisations send on meshes of 64 devices, of n²/√P, and the model's."""

from __future__ import annotations

import functools
import math
import os
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=64"

import jax
import numpy as np
from jax.sharding import NamedSharding
from sharded import P, mesh_of

from lapax import mesh
from lapax.mesh._model import above_bound

N = 4096
FACTORISATIONS = {
    "cholesky": mesh.cholesky,
    "lu": mesh.lu,
    "lu by tournament": functools.partial(mesh.lu, pivoting="tournament"),
    "qr": functools.partial(mesh.qr, mode="r"),
}

for name in sys.argv[1:]:
    for shape in ((8, 8), (64, 1)):
        sharding = NamedSharding(mesh_of(shape), P("x", "y"))
        a = jax.ShapeDtypeStruct((N, N), np.float32, sharding=sharding)
        counted = mesh.count(jax.jit(FACTORISATIONS[name]).lower(a).compile()).total
        ratio = counted * math.sqrt(math.prod(shape)) / N**2
        print(f"{name}|{shape[0]}|{shape[1]}|{ratio}|{above_bound(name, N, shape)}", flush=True)
