"""examples/sharded_gaussian_process.py finds what one device does, and holds but shares of it."""

from __future__ import annotations

import importlib.util
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from sharded import P

from lapax.mesh import count

PATH = pathlib.Path(__file__).parents[3] / "examples" / "sharded_gaussian_process.py"
POINTS = 96


def load():
    spec = importlib.util.spec_from_file_location("sharded_gaussian_process", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_likelihood_and_gradient():
    example = load()
    found = example.main(POINTS)
    noise = example.TRUTH["noise"]
    x = jax.random.uniform(jax.random.key(0), (POINTS, 2))
    y = jnp.sin(6 * x[:, 0]) * jnp.cos(4 * x[:, 1])
    y = y + noise * jax.random.normal(jax.random.key(1), (POINTS,))

    def on_one_device(parameters):
        square = ((x[:, None] - x[None]) ** 2).sum(-1)
        a = jnp.exp(-square / (2 * parameters["length"] ** 2))
        a = a + parameters["noise"] ** 2 * jnp.eye(POINTS)
        half = y @ jnp.linalg.solve(a, y) / 2
        return -(half + jnp.linalg.slogdet(a)[1] / 2) / POINTS

    start = {name: 2 * value for name, value in example.TRUTH.items()}
    likelihood, gradient = jax.value_and_grad(on_one_device)(start)
    assert found.elements == POINTS**2 // jax.device_count()
    np.testing.assert_allclose(found.likelihood, likelihood, rtol=1e-3)
    for name, value in gradient.items():
        np.testing.assert_allclose(found.gradient[name], value, rtol=1e-2)


def test_memory_of_20_000_points():
    """Compiled alone: no array above a share and a block of rows, ten shares in all."""
    example, n = load(), 20_000
    grid = example.devices_as_grid()
    sharding, everywhere = NamedSharding(grid, P("x", "y")), NamedSharding(grid, P())

    def operand(*shape):
        return jax.ShapeDtypeStruct(shape, np.float32, sharding=everywhere)

    function = jax.jit(
        jax.value_and_grad(lambda *operands: example.log_likelihood(*operands, sharding))
    )
    parameters = dict.fromkeys(example.TRUTH, operand())
    program = function.lower(parameters, operand(n, 2), operand(n)).compile()
    share = n * n // jax.device_count()
    assert count(program).largest <= share + 256 * n
    assert program.memory_analysis().temp_size_in_bytes <= 10 * 4 * share
