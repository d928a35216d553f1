"""Derivatives of lapax's functions under settings by which users forbid JAX to promote."""

from __future__ import annotations

import ast
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import lapax
import lapax.linalg
import lapax.mesh
from programs import operands

SOURCES = sorted(
    path
    for name in ("linalg", "mesh")
    for path in (Path(lapax.__file__).parent / name).glob("*.py")
)


def rules(tree):
    """The functions that are given to defjvp and defvjp."""
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            if any(getattr(it, "attr", "") == "defjvp" for it in node.decorator_list):
                yield node
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "defvjp":
            yield from (functions[name.id] for name in node.args)


def test_rules_of_derivatives_have_settings_of_their_own():
    """JAX calls them where it likes, not within the function that they belong to."""
    found = [(path.name, rule) for path in SOURCES for rule in rules(ast.parse(path.read_text()))]
    assert len(found) > 40
    without = [
        f"{file}: {rule.name}"
        for file, rule in found
        if "own_settings()" not in map(ast.unparse, rule.decorator_list)
    ]
    assert without == []


@pytest.mark.parametrize(
    "function",
    [
        lapax.linalg.logm,
        lambda a: lapax.linalg.polar(a)[0],
        lambda a: lapax.linalg.eig(a)[1],
        lambda a: lapax.linalg.eigh(a + a.conj().T, jnp.eye(4, dtype=a.dtype))[1],
    ],
    ids=["logm", "polar", "eig", "eigh"],
)
def test_gradients_where_nothing_is_promoted(function):
    with jax.enable_x64(True):
        a = jnp.asarray(operands(np.dtype(np.complex128), n=4, batch=()).a)
        gradient = jax.grad(lambda a: jnp.sum(jnp.abs(function(a)) ** 4))
        expected = gradient(a)
        with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
            np.testing.assert_allclose(gradient(a), expected, rtol=1e-10)


def test_gradients_over_a_mesh_where_nothing_is_promoted():
    mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    o = operands(np.dtype(np.complex64), n=6, batch=())
    a = jax.device_put(o.a, NamedSharding(mesh, PartitionSpec("x", "y")))
    gradient = jax.grad(lambda a: lapax.mesh.slogdet(a).logabsdet + lapax.mesh.inv(a).real.sum())
    expected = gradient(a)
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        np.testing.assert_allclose(gradient(a), expected, rtol=1e-4)
