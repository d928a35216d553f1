"""A page for each op of `lapax.ffi`: facts of the table, its docstring, an example that is run."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator

import examples
import functions
import titles
from lapax import _checks, _functions, _render
from lapax._table import Target, ops, targets

INDEX = "operations/index.md"


def pages(routines: set[str]) -> Iterator[tuple[str, str]]:
    """Paths and texts; `routines` are those that docs/routes.md has a section of."""
    yield INDEX, _index()
    for op in ops():
        yield f"operations/{op}.md", _page(op, routines)


def families() -> dict[str, list[str]]:
    """The ops by the module that checks them, which is the family."""
    modules = {name: it for name, it in vars(_checks).items() if hasattr(it, "CHECKS")}
    return {
        titles.title(name): [op for op in ops() if op in it.CHECKS] for name, it in modules.items()
    }


def _index() -> str:
    lines = [
        "# Operations",
        "",
        "Each function of `lapax.ffi`, the typed side of the [targets](../targets.md): any number",
        "of leading batch dimensions, `jit`, `vmap` and sharding, every wrong call refused before",
        "anything runs. They have no derivatives: `jax.numpy.linalg` under",
        "[install()](../install.md) and [lapax.linalg](../linalg/index.md) do.",
    ]
    for family, names in sorted(families().items()):
        lines += ["", f"## {family}", "", "| op | | |", "|---|---|---|"]
        for op in names:
            target = ops()[op][0]
            lines.append(f"| [`{op}`]({op}.md) | {_brief(target)} | `{_render.call(target)}` |")
    return "\n".join(lines) + "\n"


def _page(op: str, routines: set[str]) -> str:
    members = ops()[op]
    head, sections = _sections(_functions.documentation(op))
    summary, _, rest = head.partition("\n\n")
    form = _render.call(members[0]).replace(" → ", "\n    → ")
    parts = [f"# {op}", _escaped(summary), f"```text\n{op}{form}\n```"]
    parts += [_escaped(rest)] if rest else []
    for title, lines in sections.items():
        if title in ("Args", "Returns"):
            heading = "Arguments" if title == "Args" else "Results"
            parts.append(f"## {heading}\n\n" + _operands(lines))
    dimensions = re.search(r"^Dimensions: (.*)$", _functions.documentation(op), re.MULTILINE)
    if dimensions:
        parts.append(f"Dimensions: {_escaped(dimensions[1])}")
    dtypes = re.search(r"^Dtypes: (.*)\.$", _functions.documentation(op), re.MULTILINE)
    parts.append(f"Dtypes: {dtypes[1] if dtypes else ''}.")
    parts.append(
        "A dtype or keyword that is not among these is a TypeError; shapes and attributes that do "
        "not fit are a ValueError, which lists every mismatch."
    )
    parts.append("## Example\n\n" + _example(op))
    parts.append("## Targets\n\n" + _targets(op))
    called = list(dict.fromkeys(it for t in _all(op) for it in functions.callers(t.name)))
    if called:
        listed = ", ".join(f"`{it}`" for it in called)
        parts.append(
            f"Called under `install()` by {listed}: [function by function](../functions.md)."
        )
    if op in routines:
        parts.append(f"Which kernel serves a call: [routes](../routes.md#{op}).")
    return "\n\n".join(parts) + "\n"


def _all(op: str) -> list[Target]:
    """The op's targets, of platforms whose attributes differ, too."""
    return [target for target in targets() if target.signature.op == op]


def _targets(op: str) -> str:
    lines = ["| platform | target | dtypes | |", "|---|---|---|---|"]
    for target in _all(op):
        by_name = "" if target in ops()[op] else f"by name alone: `{_render.call(target)}`"
        row = (target.platform, f"`{target.name}`", " ".join(target.dtypes), by_name)
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def _sections(documentation: str) -> tuple[str, dict[str, list[str]]]:
    """What stands before the first section, and the lines of each."""
    head, *rest = re.split(r"^(Args|Returns|Raises):\n", documentation, flags=re.MULTILINE)
    names, bodies = rest[::2], rest[1::2]
    sections = {}
    for name, body in zip(names, bodies, strict=True):
        sections[name] = [it.strip() for it in body.splitlines() if it.startswith("    ")]
    return head.strip(), sections


def _operands(lines: list[str]) -> str:
    rows = ["| name | |", "|---|---|"]
    for line in lines:
        name, _, what = line.partition(": ")
        what = re.sub(r"(\[[^\]]*\])", r"`\1`", what.rstrip("."))
        rows.append(f"| `{name}` | {what.replace('|', chr(92) + '|')} |")
    return "\n".join(rows)


def _brief(target: Target) -> str:
    return _escaped(" ".join(target.doc.strip().split("\n\n")[0].split()))


def _escaped(text: str) -> str:
    """Signs that Markdown would take for its own, outside of code."""
    parts = re.split(r"(`[^`]*`)", text)
    plain = (re.sub(r"([*_|\[\]])", r"\\\1", it) if it[:1] != "`" else it for it in parts)
    return "".join(plain)


def _example(op: str) -> str:
    code = examples.code(op)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, f"example of {op}", "exec"), {})
    if not printed.getvalue().strip():
        raise ValueError(f"the example of {op} prints nothing")
    return f"```python\n{code}\n```\n\n```text\n{printed.getvalue().rstrip()}\n```"


def missing() -> set[str]:
    """Ops without an example."""
    return set(ops()) - set(examples.EXAMPLES)
