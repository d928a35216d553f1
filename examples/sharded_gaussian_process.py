"""The likelihood of a Gaussian process whose kernel matrix no device holds, and its gradient.

    python examples/sharded_gaussian_process.py                       all devices of this host
    python examples/sharded_gaussian_process.py --processes 2 --process 0 --coordinator host0:9911
    python examples/sharded_gaussian_process.py --processes 2 --process 1 --coordinator host0:9911

The second form is one command per host, or per process. On a cluster that JAX knows, such as one of
SLURM, `srun python examples/sharded_gaussian_process.py --cluster` needs no numbers. The kernel
matrix is made where it lies, each device its share of it.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from lapax import mesh

TRUTH = {"length": 0.2, "noise": 0.1}
LOST_AFTER = 20
"""Seconds after which the others give up a process that no longer answers."""


class Found(NamedTuple):
    """What `main` found."""

    likelihood: jax.Array
    gradient: dict[str, jax.Array]
    elements: int
    """Of the kernel matrix on each device."""


def devices_as_grid() -> Mesh:
    """All devices, of all processes, as near to a square as their number allows."""
    count = jax.device_count()
    rows = max(i for i in range(1, count + 1) if count % i == 0 and i * i <= count)
    return jax.make_mesh(
        (rows, count // rows), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2
    )


def kernel(parameters: dict[str, jax.Array], x: jax.Array, sharding: NamedSharding) -> jax.Array:
    """Of points x [n, 2]."""
    square = sum((x[:, None, i] - x[None, :, i]) ** 2 for i in range(x.shape[1]))
    a = jnp.exp(-square / (2 * parameters["length"] ** 2))
    i = jnp.arange(len(x))
    a = a + jnp.where(i[:, None] == i, parameters["noise"] ** 2, 0)
    return jax.lax.with_sharding_constraint(a, sharding)


def log_likelihood(
    parameters: dict[str, jax.Array], x: jax.Array, y: jax.Array, sharding: NamedSharding
) -> jax.Array:
    """Per point, but for a constant: -½ (yᵀ A⁻¹ y + log det A) / n, with A = L Lᵀ."""
    factor = mesh.cholesky(kernel(parameters, x, sharding), sharding=sharding)
    half = mesh.triangular_solve(factor, y, lower=True, sharding=sharding)
    i = jnp.arange(len(x))
    diagonal = jnp.sum(jnp.where(i[:, None] == i, factor, 0), 1)
    return -(half @ half / 2 + jnp.sum(jnp.log(diagonal))) / len(x)


def main(points: int) -> Found:
    grid = devices_as_grid()
    points -= points % jax.device_count()
    sharding = NamedSharding(grid, PartitionSpec("x", "y"))
    everywhere = NamedSharding(grid, PartitionSpec())

    @jax.jit
    def data() -> tuple[jax.Array, jax.Array]:
        x, noise = jax.random.uniform(jax.random.key(0), (points, 2)), TRUTH["noise"]
        y = jnp.sin(6 * x[:, 0]) * jnp.cos(4 * x[:, 1])
        return x, y + noise * jax.random.normal(jax.random.key(1), (points,))

    x, y = jax.jit(data, out_shardings=(everywhere, everywhere))()
    start = {name: jnp.asarray(2 * value, jnp.float32) for name, value in TRUTH.items()}
    function = jax.jit(
        jax.value_and_grad(lambda parameters, x, y: log_likelihood(parameters, x, y, sharding))
    )
    likelihood, gradient = function(start, x, y)
    return Found(likelihood, gradient, points * points // jax.device_count())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--process", type=int, default=0)
    parser.add_argument("--coordinator", default="127.0.0.1:9911")
    parser.add_argument("--cluster", action="store_true", help="ask JAX who takes part")
    options = parser.parse_args()
    if options.cluster:
        jax.distributed.initialize(heartbeat_timeout_seconds=LOST_AFTER)
    elif options.processes > 1:
        jax.distributed.initialize(
            options.coordinator,
            options.processes,
            options.process,
            heartbeat_timeout_seconds=LOST_AFTER,
        )
    found = main(options.points)
    if jax.process_index() == 0:
        print(f"log-likelihood per point {found.likelihood:.4f}")
        print("gradient", {name: f"{value:.4f}" for name, value in found.gradient.items()})
        print(f"{found.elements:,} elements of the kernel matrix on each of {jax.device_count()}")
