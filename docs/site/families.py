"""Pages of lapax.linalg: one for each family, its functions from their docstrings."""

from __future__ import annotations

import functools
import importlib
import inspect
import operator
from collections.abc import Iterator
from typing import NamedTuple

import titles
from lapax import _render

MODULE = importlib.import_module("lapax.linalg")
INDEX = "linalg/index.md"


class Family(NamedTuple):
    """A module of lapax.linalg, and what users have of it."""

    page: str
    title: str
    about: str
    names: list[str]


@functools.cache
def families() -> tuple[Family, ...]:
    """By their titles."""
    found = []
    for home, names in _render.families().items():
        module = home.rpartition(".")[2].strip("_")
        about = inspect.getdoc(importlib.import_module(home)) or ""
        page = f"linalg/{module.replace('_', '-')}.md"
        found.append(Family(page, titles.title(module), about, names))
    return tuple(sorted(found, key=lambda family: family.title.lower()))


def jax_own() -> list[str]:
    """Names that are JAX's."""
    mine = {name for family in families() for name in family.names}
    return [name for name in MODULE.__all__ if name not in mine]


def anchor(fragment: str) -> tuple[str, str]:
    """The page and fragment of a function by its name, or the first page."""
    for family in families():
        if fragment in family.names:
            return family.page, f"#{identifier(fragment)}"
    return INDEX, ""


def identifier(name: str) -> str:
    """What mkdocstrings calls a function; an alias is documented as what it names."""
    return f"lapax.linalg.{name}"


def pages() -> Iterator[tuple[str, str]]:
    """Paths and texts."""
    yield INDEX, _index()
    for family in families():
        parts = [f"# {family.title}", plain(family.about)]
        for name in family.names:
            parts.append(_entry(name))
        yield family.page, "\n\n".join(filter(None, parts)) + "\n"


def _entry(name: str) -> str:
    target = operator.attrgetter(name)(MODULE)
    if target.__name__ != name.rpartition(".")[2]:
        link = f"[`{target.__name__}`](#{identifier(target.__name__)})"
        return f"## {name} {{ #{identifier(name)} }}\n\nAnother name of {link}."
    return f"::: {identifier(name)}"


def _index() -> str:
    lines = [f"# lapax.linalg\n\n{plain(inspect.getdoc(MODULE) or '')}\n"]
    lines.append("\n| family | | functions |\n|---|---|---|\n")
    for family in families():
        page = family.page.removeprefix("linalg/")
        names = " ".join(f"[`{name}`]({page}#{identifier(name)})" for name in family.names)
        lines.append(f"| [{family.title}]({page}) | {_sentence(family.about)} | {names} |\n")
    own = " ".join(f"`{name}`" for name in jax_own())
    lines.append(f"| JAX's own | As in jax.scipy.linalg | {own} |\n")
    lines.append(
        "\n[SciPy's own tests](../scipy-conformance.md) are counted on these and on JAX's.\n"
    )
    return "".join(lines)


def _sentence(about: str) -> str:
    """The first one, without its point."""
    first = " ".join(about.partition("\n\n")[0].split()).partition(". ")[0]
    return plain(first.rstrip("."))


def plain(text: str) -> str:
    """A docstring as a paragraph of Markdown: signs of its own are escaped."""
    return (
        text.replace("*", r"\*").replace("|", r"\|").replace("_", r"\_")
        if "`" not in text
        else text
    )
