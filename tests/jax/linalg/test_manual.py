"""docs/linalg.md, which docstrings make: examples are right, and cost and derivative are said."""

from __future__ import annotations

import ast
import inspect
import re

import jax
import numpy as np
import pytest

import lapax.linalg

OWN = [
    name
    for name in lapax.linalg.__all__
    if inspect.isfunction(getattr(lapax.linalg, name))
    and getattr(lapax.linalg, name).__module__.startswith("lapax.")
]
NAMES = {
    **vars(jax.numpy),
    "key": jax.random.key,
    **{name: getattr(lapax.linalg, name) for name in lapax.linalg.__all__},
}

OF_THE_ENTRIES = {"_forms", "_special", "_structure", "_toeplitz"}
"""Families of what is looked at or put together: their cost is that of the entries."""


def text(name):
    return inspect.getdoc(getattr(lapax.linalg, name))


def example(name):
    """The expression, and what it is."""
    found = re.search(r"^>>> (.+(?:\n\.\.\. .+)*)", text(name), re.MULTILINE)
    assert found is not None, "expected a line with >>>"
    code, _, value = found[1].replace("\n...", "\n").partition("  # ")
    return code, ast.literal_eval(value)


@pytest.mark.parametrize("name", OWN)
def test_examples_are_right(name):
    code, expected = example(name)
    # A user's settings are not for what lapax does by JAX.
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        got = np.asarray(eval(code, NAMES))
    assert got.shape == np.shape(expected)
    np.testing.assert_allclose(got, expected, atol=1e-5)


def says(name, pattern):
    """Whether the text has it, or that of a function which it names for the rest."""
    if re.search(pattern, text(name)):
        return True
    others = re.findall(r"(?:[Aa]s|[Ss]ee|of) `(\w+)`", text(name))
    return any(re.search(pattern, text(other)) for other in others if other in OWN)


@pytest.mark.parametrize("name", OWN)
def test_cost_and_derivative_are_said(name):
    home = getattr(lapax.linalg, name).__module__.rpartition(".")[2]
    if home not in OF_THE_ENTRIES:
        assert says(name, r"[Cc]osts?\b|O\(|time is|Work is|operations")
    if home not in ("_special", "_structure"):
        assert says(name, r"erivative|ifferentiab|Linear in")
