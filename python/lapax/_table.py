"""The library's table of targets as immutable Python objects; every fact is the library's."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lapax import _library


@dataclass(frozen=True, slots=True)
class Dim:
    """A dimension of a target's operands: read off a shape, or given by a formula of others."""

    name: str
    formula: str | None = None


@dataclass(frozen=True, slots=True)
class Code:
    """One value of an enumerated attribute: the byte on the wire and its name."""

    code: int
    name: str

    @property
    def letter(self) -> str:
        """The byte as LAPACK's character, for example "L"."""
        return chr(self.code)


@dataclass(frozen=True, slots=True)
class Attr:
    """An attribute: `type` is "bool", "i8" … "u64", "f32", "f64", "c64", "c128" or "string"."""

    name: str
    type: str
    optional: bool = False
    codes: tuple[Code, ...] = ()


@dataclass(frozen=True, slots=True)
class Operand:
    """An argument or a result; `dims` come after the batch dimensions that all operands share."""

    name: str
    dtype: str
    dims: tuple[str, ...]
    alias: int | None = None
    """For a result: the argument it may share memory with."""
    optional: bool = False
    """Whether the last of `dims` may be missing: a vector where a matrix may stand."""
    alone: bool = False
    """Whether it is one number for the whole batch, without batch dimensions."""

    @property
    def form(self) -> tuple[str, ...]:
        """The dims as they are written, "n?" for one that may be missing."""
        return (*self.dims[:-1], f"{self.dims[-1]}?") if self.optional else self.dims


@dataclass(frozen=True, slots=True)
class Variant:
    """The operands of a target for one dtype of the first argument, or one more of another."""

    dtype: str
    args: tuple[Operand, ...]
    rets: tuple[Operand, ...]

    def ranks(self, shapes: Sequence[Sequence[Any]]) -> list[int]:
        """How many of each argument's dimensions are its own; the others are batch dimensions."""
        batch = len(shapes[0]) - len(self.args[0].dims)
        return [
            len(arg.dims) - (arg.optional and len(shape) < batch + len(arg.dims))
            for arg, shape in zip(self.args, shapes, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class Signature:
    """What a target takes and returns."""

    op: str
    family: str
    doc: str
    layout: str
    """"column": matrices (operands with two dims) are column-major; "row": all is row-major."""
    dims: tuple[Dim, ...]
    requires: tuple[str, ...]
    attrs: tuple[Attr, ...]
    variants: tuple[Variant, ...]
    not_on_cuda: str | None = None
    """Why the op has no target on CUDA, where it has none."""

    @property
    def free_dims(self) -> tuple[str, ...]:
        """Dimensions of results that no argument fixes: the caller gives them."""
        fixed = {dim for operand in self.variants[0].args for dim in operand.dims}
        derived = {dim.name for dim in self.dims if dim.formula is not None}
        wanted = [dim for operand in self.variants[0].rets for dim in operand.dims]
        return tuple(dict.fromkeys(d for d in wanted if d not in fixed and d not in derived))

    def variant(self, *dtypes: str) -> Variant | None:
        """The first variant whose first arguments have these dtypes."""
        return next(
            (v for v in self.variants if dtypes == tuple(a.dtype for a in v.args[: len(dtypes)])),
            None,
        )


@dataclass(frozen=True, slots=True)
class Target:
    """A custom-call target that liblapax answers."""

    name: str
    """The canonical name; inside JAX it is registered as "lapax." + name."""
    platform: str
    """"cpu" or "CUDA"."""
    dtypes: tuple[str, ...]
    """Element types of its first argument, for example ("f64",)."""
    signature: Signature
    doc: str
    captured: bool
    """Whether XLA may record its calls into a command buffer (a CUDA graph)."""
    handler: int = field(repr=False, compare=False)
    """Address of the XLA FFI handler in this process."""
    initialize: int | None = field(repr=False, compare=False)
    """Address of the handler of its initialize stage, None where it has none."""

    @property
    def jax_name(self) -> str:
        """The name it is registered under inside JAX, where jaxlib owns the canonical one."""
        return f"lapax.{self.name}"


def targets(platform: str | None = None) -> tuple[Target, ...]:
    """The targets of liblapax, in the library's order.

    `platform`: "cpu" or "cuda", upper or lower case; None for all.
    Raises ValueError for a platform that is neither.
    """
    if platform is None:
        return _all()
    if platform.lower() not in ("cpu", "cuda"):
        raise ValueError(f'platform: expected "cpu" or "cuda", got {platform!r}')
    return tuple(t for t in _all() if t.platform.lower() == platform.lower())


def ops() -> dict[str, tuple[Target, ...]]:
    """The targets by op, that is by name without precision and vendor prefix.

    A target on CUDA is among them where it is called as the op's targets on the CPU are; others
    have jaxlib's form there, and are called by their own names.
    """
    grouped: dict[str, list[Target]] = {}
    for target in targets("cpu"):
        grouped.setdefault(target.signature.op, []).append(target)
    for target in targets("cuda"):
        members = grouped.get(target.signature.op, [])
        if members and _form(members[0].signature) == _form(target.signature):
            members.append(target)
    return {op: tuple(members) for op, members in grouped.items()}


def _form(signature: Signature) -> Any:
    """What a caller has to know of a signature, without element types."""
    variant = signature.variants[0]
    sides = (variant.args, variant.rets)
    required = [attr for attr in signature.attrs if not attr.optional]
    return required, [[(o.name, o.form, o.alias) for o in side] for side in sides]


@functools.cache
def _all() -> tuple[Target, ...]:
    return tuple(map(_target, _library.raw_targets()))


def _target(raw: _library.RawTarget) -> Target:
    try:
        data = json.loads(raw.signature)
        signature, captured = _signature(data), data["captured"]
    except (KeyError, TypeError, ValueError) as error:
        raise _library.LibraryError(
            f"{_library.path()}: the signature of {raw.name} cannot be read: {error!r}"
        ) from error
    dtypes = tuple(dict.fromkeys(variant.dtype for variant in signature.variants))
    return Target(
        raw.name,
        raw.platform,
        dtypes,
        signature,
        signature.doc,
        captured,
        raw.handler,
        raw.initialize,
    )


def _signature(data: Mapping[str, Any]) -> Signature:
    return Signature(
        op=data["op"],
        family=data["family"],
        doc=data["doc"],
        layout=data["layout"],
        dims=tuple(Dim(d["name"], d.get("formula")) for d in data["dims"]),
        requires=tuple(data.get("requires", ())),
        attrs=tuple(map(_attr, data["attrs"])),
        variants=tuple(
            Variant(v["dtype"], _operands(v["args"]), _operands(v["rets"]))
            for v in data["variants"]
        ),
        not_on_cuda=data.get("not_on_cuda"),
    )


def _attr(data: Mapping[str, Any]) -> Attr:
    codes = tuple(Code(c["code"], c["name"]) for c in data.get("codes", ()))
    return Attr(data["name"], data["type"], data.get("optional", False), codes)


def _operands(data: Iterable[Mapping[str, Any]]) -> tuple[Operand, ...]:
    return tuple(
        Operand(
            o["name"],
            o["dtype"],
            tuple(o["dims"]),
            o.get("alias"),
            o.get("optional", False),
            o.get("alone", False),
        )
        for o in data
    )
