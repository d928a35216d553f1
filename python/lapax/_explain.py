"""explain(): the custom calls of a program, read from what JAX lowers it to.

Which kernel of liblapax serves a call is what `lapax_route` says of its sizes on this processor.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax

from lapax import _jax_private as private
from lapax._install import is_installed, left_to_jax
from lapax._register import taken_over
from lapax._route import Typed, route
from lapax._table import Target, targets


@dataclass(frozen=True)
class Call:
    """A custom call, or an operation of linear algebra that XLA expands itself."""

    target: str
    """The name in the program."""
    by: str
    """Whose code answers: "lapax", "jaxlib", "XLA", or "another library"."""
    args: tuple[str, ...]
    """The operands' types, such as "f64[3,5,5]"."""
    op: str | None
    """Of the table of lapax's targets; None where it has no such target."""
    route: str | None
    """The kernel of lapax that serves it on this processor, as docs/routes.md names it; None where
    there is one way, or it is not lapax's on the CPU."""
    what: str | None
    """What that kernel is."""
    function: str
    """Where in the program it is, by JAX's names: "jit(f)/jit(solve)/lu"."""
    source: str | None
    """The line of Python that asked for it, "file:line"."""
    loop: bool = False
    """Whether a loop runs it, as often as the loop turns."""

    def __str__(self) -> str:
        parts = [f"{self.target} of {', '.join(self.args)}: {self.by}"]
        if self.route is not None:
            parts.append(f"{self.route} ({(self.what or '').rstrip('.')})")
        if self.loop:
            parts.append("in a loop")
        return f"{', '.join(parts)}\n    {self.function}" + (
            f", {self.source}" if self.source else ""
        )


class Explanation(tuple[Call, ...]):
    """The calls of a program in the order in which it makes them."""

    platform: str
    left: tuple[str, ...]
    """What was left to JAX when it was lowered, as `lapax.left_to_jax()` says it."""
    installed: bool

    def __new__(
        cls, calls: Sequence[Call], platform: str, left: tuple[str, ...], installed: bool
    ) -> Explanation:
        """The calls, and what was in force."""
        made = super().__new__(cls, calls)
        made.platform, made.left, made.installed = platform, left, installed
        return made

    def __repr__(self) -> str:
        number = f"{len(self)} custom call{'' if len(self) == 1 else 's'}"
        head = f"{number} on {self.platform}, lapax {'' if self.installed else 'not '}installed"
        lines = [head, *(f"left to JAX: {line}" for line in self.left), *map(str, self)]
        return "\n".join(lines)


def explain(
    function: Callable[..., Any], /, *args: Any, platform: str | None = None, **kwargs: Any
) -> Explanation:
    """Which custom calls a function of JAX makes of these arguments, and what answers each.

    The function is traced and lowered as `jax.jit` does it under what is installed now, and is not
    run: `print(lapax.explain(f, x))` before and after `lapax.install()` shows what changes.

    Args:
        function: any that `jax.jit` takes, or a jitted one.
        args: its arguments: arrays, or `jax.ShapeDtypeStruct`s in their place.
        platform: "cpu" or "cuda"; by default that of JAX's default device. A GPU is not needed.
        kwargs: its arguments by name.

    Returns:
        A tuple of `Call`s that prints one call in two lines. Functions that a program calls several
        times count each time, what is in a loop once.

    Raises:
        ValueError: another platform.
        Whatever the function and JAX raise.
    """
    if platform is not None and platform not in ("cpu", "cuda"):
        raise ValueError(f'explain: platform: expected "cpu" or "cuda", got {platform!r}')
    traced = (function if hasattr(function, "trace") else jax.jit(function)).trace(*args, **kwargs)
    where = platform or {"gpu": "cuda"}.get(jax.default_backend(), jax.default_backend())
    lowered = traced.lower(lowering_platforms=(where,))
    module: Any = lowered.compiler_ir("stablehlo")
    functions = {_text(op, "sym_name"): op for op in module.body.operations}
    calls = list(_calls(functions["main"], functions, where, "", loop=False))
    return Explanation(calls, where, left_to_jax(), is_installed())


_EXPANDED = ("stablehlo.cholesky", "stablehlo.triangular_solve")
"""Linear algebra that is no custom call: XLA makes loops of it."""


def _calls(
    operation: Any, functions: Mapping[str, Any], platform: str, caller: str, *, loop: bool
) -> Iterator[Call]:
    """Those of an operation, of what it holds and of the functions that it calls.

    `caller` is the location of the call that it is in: operations in functions may lack their own.
    """
    name, location = operation.operation.name, str(operation.location)
    if '":' not in location:
        location = caller or location
    if name == "stablehlo.custom_call":
        target = _text(operation, "call_target_name")
        yield _call(operation, target, platform, location, loop)
    elif name in _EXPANDED:
        yield _call(operation, name, platform, location, loop)
    elif name == "func.call":
        called = functions[str(operation.attributes["callee"]).removeprefix("@").strip('"')]
        yield from _calls(called, functions, platform, location, loop=loop)
    inside = loop or name == "stablehlo.while"
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from _calls(inner, functions, platform, caller, loop=inside)


def _call(operation: Any, name: str, platform: str, location: str, loop: bool) -> Call:
    types, results = (
        [_type(str(value.type)) for value in side]
        for side in (operation.operands, operation.results)
    )
    bare = name.removeprefix("lapax.")
    known = targets(platform) if platform in ("cpu", "cuda") else ()
    target = next((target for target in known if target.name == bare), None)
    by = _by(name, target, platform)
    answer = None
    if target is not None and by == "lapax" and platform == "cpu":
        answer = route(target, types, results, _attributes(operation))
    function, source = _place(location)
    return Call(
        target=name,
        by=by,
        args=tuple(f"{dtype}[{','.join(map(str, shape))}]" for dtype, shape in types),
        op=None if target is None else target.signature.op,
        route=None if answer is None else answer["route"],
        what=None if answer is None else answer["what"],
        function=function,
        source=source,
        loop=loop,
    )


def _by(name: str, target: Target | None, platform: str) -> str:
    if name in _EXPANDED:
        return "XLA"
    if name.startswith(("lapax.", "lapax_")):
        return "lapax"
    theirs = (private.jaxlib_cpu_targets() or ()) if platform == "cpu" else ()
    if target is not None and platform == "cpu" and (name not in theirs or taken_over()):
        return "lapax"
    return "jaxlib" if target is not None or name in theirs else "another library"


_ELEMENTS = {"i1": "bool", "complex<f32>": "c64", "complex<f64>": "c128"} | {
    f"{mlir}{bits}": f"{ours}{bits}"
    for mlir, ours in (("i", "i"), ("ui", "u"))
    for bits in (8, 16, 32, 64)
}
"""MLIR's element types as the table spells them, where it does not spell them as MLIR."""


def _type(text: str) -> Typed:
    """`tensor<3x5xf64>` as ("f64", (3, 5)); what is no tensor by its own name."""
    match = re.fullmatch(r"tensor<((?:[\d?]+x)*)([^,]+)(?:,.*)?>", text)
    if match is None:
        return text, ()
    sizes = match[1].split("x")[:-1]
    return _ELEMENTS.get(match[2], match[2]), tuple(s if s == "?" else int(s) for s in sizes)


def _text(operation: Any, attribute: str) -> str:
    return str(operation.attributes[attribute]).strip('"')


def _attributes(operation: Any) -> dict[str, int]:
    """The numbers among a typed call's attributes: `76 : ui8`, `true`."""
    if "mhlo.backend_config" not in operation.attributes:
        return {}
    text = str(operation.attributes["mhlo.backend_config"])
    words = {"true": 1, "false": 0}
    found = re.findall(r"(\w+) = (true|false|-?\d+)\b", text)
    return {name: words[value] if value in words else int(value) for name, value in found}


def _place(location: str) -> tuple[str, str | None]:
    """JAX's name of an operation, and the first line that is not of lapax's own functions."""
    name = re.match(r'loc\("([^"]*)"', location)
    lines = re.findall(r'"([^"]+)":(\d+)', location)
    package = str(Path(__file__).parent)
    others = [(file, line) for file, line in lines if not file.startswith(package)]
    file, line = (others or lines or [(None, None)])[0]
    return name[1] if name else location, None if file is None else f"{file}:{line}"
