"""The functions of `lapax.ffi`, one per op, made from the table: signature, types and docs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import jax
from jax.typing import ArrayLike

from lapax._attributes import class_name, enums
from lapax._call import ffi_call, result_type
from lapax._lowering import numpy_dtype
from lapax._table import Attr, Operand, Signature, Target, ops

_ATTR_TYPES: dict[str, type] = {
    "bool": bool,
    "string": str,
    "f32": float,
    "f64": float,
    "c64": complex,
    "c128": complex,
}
"""Python types of attributes; the others are integers."""


def functions() -> dict[str, Callable[..., Any]]:
    """The typed function of each op by name."""
    return {op: _function(op, members) for op, members in ops().items()}


def annotation(op: str, attr: Attr) -> str:
    """The Python type of an attribute's keyword, as a stub spells it."""
    kind = _ATTR_TYPES.get(attr.type, int).__name__
    if attr.codes:
        kind = f"{class_name(op, attr)} | str | int"
    return f"{kind} | None" if attr.optional else kind


def returns(op: str) -> str:
    """The result type of an op's function, as a stub spells it."""
    rets = ops()[op][0].signature.variants[0].rets
    return "Array" if len(rets) == 1 else result_type(op).__name__


def documentation(op: str) -> str:
    """The function's docstring: shapes, dtypes, attributes, errors and targets."""
    members = ops()[op]
    signature = members[0].signature
    lines = [signature.doc.strip(), "", "Args:"]
    lines += _operands(members, "args")
    lines += [
        f"    {dim}: size of that dimension of the result; may be missing where one size fits."
        for dim in signature.free_dims
    ]
    lines += [f"    {_attribute(op, attr)}" for attr in signature.attrs]
    lines += ["", "Returns:"]
    lines += _operands(members, "rets")
    derived = [f"{dim.name} = {dim.formula}" for dim in signature.dims if dim.formula]
    if derived or signature.requires:
        lines += ["", f"Dimensions: {'; '.join([*derived, *signature.requires])}."]
    lines += ["", f"Dtypes: {', '.join(_dtypes(members))}."]
    lines += ["", "Raises:"]
    lines += ["    TypeError: a dtype or keyword that is not among these."]
    lines += ["    ValueError: shapes or attributes that do not fit; lists every mismatch."]
    lines += ["", f"Targets: {', '.join(f'{t.name} ({t.platform})' for t in members)}."]
    return "\n".join(lines)


def _function(op: str, members: tuple[Target, ...]) -> Callable[..., Any]:
    signature = members[0].signature

    @functools.wraps(ffi_call)
    def call(*args: ArrayLike, **options: Any) -> Any:
        try:
            bound = declared.bind(*args, **options)
        except TypeError as error:
            raise TypeError(f"{op}: {error}; its signature is {op}{_brief(declared)}") from None
        return ffi_call(op, *bound.args, **bound.kwargs)

    declared = _python_signature(op, signature)
    del call.__wrapped__
    call.__name__ = call.__qualname__ = op
    call.__module__ = "lapax.ffi"
    call.__doc__ = documentation(op)
    call.__signature__ = declared  # type: ignore[attr-defined]
    call.__annotations__ = {name: p.annotation for name, p in declared.parameters.items()}
    call.__annotations__["return"] = declared.return_annotation
    return call


def _python_signature(op: str, signature: Signature) -> inspect.Signature:
    """The arrays, positional or by name; then free dimensions and attributes, by name only."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [
        inspect.Parameter(arg.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=ArrayLike)
        for arg in signature.variants[0].args
    ]
    parameters += [
        inspect.Parameter(dim, keyword, default=None, annotation=int | None)
        for dim in signature.free_dims
    ]
    # Python wants no order among keyword-only parameters with and without a default.
    for attr in signature.attrs:
        default = None if attr.optional else inspect.Parameter.empty
        kind: Any = _ATTR_TYPES.get(attr.type, int)
        if attr.codes:
            kind = enums()[class_name(op, attr)] | str | int
        kind = kind | None if attr.optional else kind
        parameters.append(inspect.Parameter(attr.name, keyword, default=default, annotation=kind))
    rets = signature.variants[0].rets
    result = jax.Array if len(rets) == 1 else result_type(op)
    return inspect.Signature(parameters, return_annotation=result)


def _brief(declared: inspect.Signature) -> str:
    """The signature without annotations, for error texts."""
    empty = inspect.Parameter.empty
    bare = [p.replace(annotation=empty) for p in declared.parameters.values()]
    return str(inspect.Signature(bare))


def _operands(members: tuple[Target, ...], side: str) -> list[str]:
    """`a: [*b, n, n].` or, where there are fewer dtypes than of the op, `info: int32 [*b].`"""
    variants = [variant for target in members for variant in target.signature.variants]
    columns: Iterator[tuple[Operand, ...]] = zip(*(getattr(v, side) for v in variants), strict=True)
    lines = []
    for column in columns:
        dtypes = dict.fromkeys(operand.dtype for operand in column)
        fewer = len(dtypes) < len({variant.dtype for variant in variants})
        fixed = f"{' or '.join(str(numpy_dtype(name)) for name in dtypes)} " if fewer else ""
        lines.append(f"    {column[0].name}: {fixed}[{', '.join(['*b', *column[0].form])}].")
    return lines


def _attribute(op: str, attr: Attr) -> str:
    if attr.codes:
        values = ", ".join(f'"{code.name}" or "{code.letter}"' for code in attr.codes)
        text = f"{attr.name}: {class_name(op, attr)}, {values}"
    else:
        text = f"{attr.name}: {attr.type}"
    return f"{text}; optional." if attr.optional else f"{text}."


def _dtypes(members: tuple[Target, ...]) -> list[str]:
    names = (name for target in members for name in target.dtypes)
    return [str(numpy_dtype(name)) for name in dict.fromkeys(names)]
