"""Compiled programs: what they send, what they hold, and how long they take to compile."""

from __future__ import annotations

import functools
import pathlib
import re
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from sharded import FULL, P, mesh_of

from lapax import mesh
from lapax.mesh import count
from lapax.mesh._model import above_bound, exchanged, factorisation, table, words_table

BOTH = P("x", "y")
FACTORISATIONS = {
    "cholesky": mesh.cholesky,
    "lu": mesh.lu,
    "lu by tournament": functools.partial(mesh.lu, pivoting="tournament"),
    "qr": functools.partial(mesh.qr, mode="r"),
}


def compiled(function, shape, n, spec=BOTH):
    a = jax.ShapeDtypeStruct((n, n), np.float32, sharding=NamedSharding(mesh_of(shape), spec))
    return jax.jit(function).lower(a).compile()


@pytest.mark.parametrize(
    "spec", [P("x", "y"), P("y", "x"), P(("x", "y")), P(None, ("y", "x"))], ids=str
)
def test_one_exchange_each_way(spec):
    """Redistribution is by all-to-all alone, and XLA adds none of its own."""
    n, block, sharding = 64, 8, NamedSharding(mesh_of((4, 2)), spec)
    program = compiled(lambda a: mesh.cholesky(a, sharding=sharding, block=block), (4, 2), n, spec)
    counts = count(program)
    assert counts.messages["all-to-all"] == 2
    assert "collective-permute" not in counts.messages
    assert counts.words["all-to-all"] == 2 * 7 / 8 * n * n / 8
    grid = (2, 4) if spec == P("y", "x") else (4, 2)
    model = factorisation("cholesky", n, *grid, block, phases=1)
    assert counts.total == model.words + counts.words["all-to-all"]


@pytest.mark.parametrize("name", FACTORISATIONS)
@pytest.mark.parametrize("block", [32, 64] if FULL else [64])
@pytest.mark.parametrize("shape", [(2, 2), (4, 2)] if FULL else [(4, 2)], ids=str)
def test_share_and_words(shape, block, name):
    """No array above a device's share and some block columns, and few words above the bound.

    The bound's order holds for any algorithm that has no more memory (Ballard, Demmel, Holtz and
    Schwartz 2011).
    """
    n, devices = 2048, shape[0] * shape[1]
    program = compiled(lambda a: FACTORISATIONS[name](a, block=block), shape, n)
    counts = count(program)
    assert counts.largest <= n * n / devices + 2 * n * block
    assert counts.total <= 4 * n * n / np.sqrt(devices)
    model = factorisation(name, n, *shape, block)
    assert abs(counts.total / (model.words + exchanged(name, n, *shape)) - 1) < 0.03
    assert abs(counts.flops / model.flops - 1) < 0.03


@pytest.mark.parametrize("name", FACTORISATIONS)
def test_words_on_up_to_64_devices(name):
    """By the model, which the compiled programs are compared with."""
    for devices in (2, 4, 6, 8, 12, 16, 24, 32, 36, 48, 64):
        for rows in (i for i in range(1, devices + 1) if devices % i == 0):
            assert above_bound(name, 16_384, (rows, devices // rows)) <= 4


# The compiler takes half a minute for 64 devices.
@pytest.mark.skipif(not FULL, reason="LAPAX_MESH is not full")
def test_words_on_64_devices():
    script = pathlib.Path(__file__).with_name("words.py")
    found = subprocess.run(
        [sys.executable, script, *FACTORISATIONS], capture_output=True, text=True, check=True
    )
    lines = [line.split("|") for line in found.stdout.splitlines()]
    assert len(lines) == 2 * len(FACTORISATIONS)
    for *_, counted, modelled in lines:
        assert float(counted) <= 4
        assert abs(float(counted) / float(modelled) - 1) < 0.03


def test_the_page_has_the_models_tables():
    page = (pathlib.Path(__file__).parents[3] / "docs/mesh.md").read_text()
    assert table() in page
    assert words_table() in page


def test_a_gradient_is_divided_too():
    """No device gathers a matrix for it, whatever automatic sharding makes of what is between."""
    n, grid = 256, mesh_of((2, 2))
    a = jax.ShapeDtypeStruct((n, n), np.float32, sharding=NamedSharding(grid, BOTH))
    b = jax.ShapeDtypeStruct((n,), np.float32, sharding=NamedSharding(grid, P("x")))

    def value(a, b):
        return jnp.sum(mesh.solve(a, b, assume_a="pos") ** 2)

    program = jax.jit(jax.grad(value)).lower(a, b).compile()
    counts = count(program)
    assert program.output_shardings.is_equivalent_to(a.sharding, 2)
    assert counts.largest <= n * n / 4


EVERY = {
    **FACTORISATIONS,
    "both of qr": mesh.qr,
    "triangular_solve": lambda a: mesh.triangular_solve(a, a, lower=True),
    "transposed": lambda a: mesh.triangular_solve(a, a, trans="C"),
    "solve": lambda a: mesh.solve(a, a),
    "pos": lambda a: mesh.solve(a, a, assume_a="pos"),
    "inv": mesh.inv,
    "slogdet": mesh.slogdet,
    "lstsq": lambda a: mesh.lstsq(a, a),
    "polar": mesh.polar,
    "eigh": mesh.eigh,
    "svd": mesh.svd,
    "matmul": lambda a: mesh.matmul(a, a),
    "gradient of solve": jax.grad(lambda a: mesh.solve(a, a).sum()),
    "gradient of svd": jax.grad(lambda a: mesh.svd(a).s.sum()),
}


@pytest.mark.parametrize("name", EVERY)
def test_programs_do_not_grow_with_n(name):
    """As many operations for n = 10⁵ as for 10³, but for functions of arrays that happen to have
    one shape and are one."""

    def operations(n):
        a = jax.ShapeDtypeStruct((n, n), np.float32, sharding=NamedSharding(mesh_of((2, 2)), BOTH))
        text = jax.jit(EVERY[name]).lower(a).as_text()
        return len(re.findall(r"\bstablehlo\.\w+", text))

    assert operations(100_000) < 1.05 * operations(1000)


@pytest.mark.parametrize("name", EVERY if FULL else ["cholesky"])
def test_compile_time_does_not_grow_with_n(name):
    def seconds(n):
        jax.clear_caches()
        start = time.process_time()
        compiled(EVERY[name], (2, 2), n)
        return time.process_time() - start

    seconds(1000)
    small, large = (min(seconds(n) for _ in range(2)) for n in (1000, 100_000))
    assert large < 1.5 * small


def test_counts_of_a_known_program():
    """Two of each in a loop of five, by hand."""
    devices = mesh_of((4, 2))

    def local(x):
        def body(_, x):
            x = x + jax.lax.psum(x @ x, "x")
            return jax.lax.all_gather(x, "y").sum(0) + jax.lax.all_to_all(
                x, ("x", "y"), 0, 0, tiled=True
            )

        return jax.lax.fori_loop(0, 5, body, x)

    function = jax.shard_map(
        local, mesh=devices, in_specs=P(("x", "y")), out_specs=P(("x", "y")), check_vma=False
    )
    counts = count(jax.jit(function).lower(jax.ShapeDtypeStruct((64, 8), jnp.float32)).compile())
    assert counts.words["all-reduce"] == 5 * 64 * 2 * 3 / 4
    assert counts.words["all-gather"] == 5 * 128 / 2
    assert counts.words["all-to-all"] == 5 * 64 * 7 / 8
    assert counts.messages == {"all-reduce": 5, "all-gather": 5, "all-to-all": 5}
    assert counts.flops == 5 * 2 * 8**3
