"""pytest plugin of cases.py: what tests run on the CPU is compiled for an H200 as well.

Each program with linear algebra in it; the line `test, outcome` of the file that --cases names says
"compiled", "nothing to compile", or the first line of the first error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import h200
import jax
import pytest
from jax._src import core
from jax._src.interpreters import pxla
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

import lapax
from lapax import _jax_private as private

_programs: list[Any] = []
"""What the test under way has compiled for the CPU."""

_outcomes: dict[str, str] = {}
"""Programs, as text, and what became of them."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cases", required=True, help="the file for the outcomes")
    parser.addoption("--lapax", action="store_true", help="with lapax installed")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--lapax"):
        lapax.install()
    lower = pxla.lower_sharding_computation

    def recording(program: Any, *args: Any, **params: Any) -> Any:
        if isinstance(program, ClosedJaxpr):
            _programs.append(program)
        return lower(program, *args, **params)

    pxla.lower_sharding_computation = recording


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    _programs.clear()
    try:
        return (yield)
    finally:
        outcome = _outcome()
        with open(item.config.getoption("--cases"), "a", encoding="utf-8") as file:
            file.write(f"{item.nodeid.partition('::')[2]}\t{outcome}\n")


def _outcome() -> str:
    found = "nothing to compile"
    for program in [program for program in _programs if _is_linear_algebra(program.jaxpr)]:
        text = str(program)
        if text not in _outcomes:
            _outcomes[text] = _compile(program)
        found = _outcomes[text]
        if found != "compiled":
            break
    return found


def _is_linear_algebra(jaxpr: Any) -> bool:
    names = {primitive.name for primitive in private.linalg_primitives().values()}
    return any(
        equation.primitive.name in names
        or equation.primitive.name.startswith(("lapax", "eigh_values"))
        for equation in _equations(jaxpr)
    )


def _equations(jaxpr: Any) -> Iterator[Any]:
    for equation in jaxpr.eqns:
        yield equation
        for inner in core.jaxprs_in_params(equation.params):
            yield from _equations(inner)


def _compile(program: Any) -> str:
    there = h200.sharding()
    avals = [jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=there) for x in program.in_avals]
    try:
        jax.jit(jaxpr_as_fun(program)).lower(*avals).compile()
    except Exception as error:  # Whatever goes wrong is what is looked for.
        return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
    return "compiled"
