"""Attributes as callers write them, turned into the NumPy scalars that XLA puts on the wire."""

from __future__ import annotations

import enum
import functools
import keyword
import operator
from typing import Any

import numpy as np

from lapax._table import Attr, ops

AttrValue = np.generic | str
"""An attribute on the wire: a NumPy scalar of the attribute's type, or a string."""

_SCALARS: dict[str, type[np.generic]] = {
    "bool": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
    "f32": np.float32,
    "f64": np.float64,
    "c64": np.complex64,
    "c128": np.complex128,
}


@functools.cache
def enums() -> dict[str, type[enum.IntEnum]]:
    """Enumerations of the table by class name: attribute `trans_x` is the class `TransX`.

    An attribute name with different codes in two ops has one class per op, as in `GetrfMode`.
    """
    return {
        class_name(op, attr): enum.IntEnum(  # type: ignore[misc]
            class_name(op, attr),
            {_member(code.name): code.code for code in attr.codes},
            module="lapax.ffi",
        )
        for op, members in ops().items()
        for attr in members[0].signature.attrs
        if attr.codes
    }


def class_name(op: str, attr: Attr) -> str:
    """The name of the enumeration of an attribute with codes."""
    name = _camel(attr.name)
    return name if attr.name not in _ambiguous() else _camel(op) + name


def encode(op: str, attr: Attr, value: Any) -> AttrValue:
    """`value` as the wire scalar of `attr`.

    An enumerated attribute takes a member of its class, its name ("Lower"), its letter ("L") or
    its code (76). Raises TypeError for another kind of value, and ValueError for one that the
    attribute's type cannot hold or that is not among the names.
    """
    if attr.codes and isinstance(value, str):
        for code in attr.codes:
            if value.lower() in (code.name.lower(), code.letter.lower()):
                return np.uint8(code.code)
        names = ", ".join(f'"{code.name}" or "{code.letter}"' for code in attr.codes)
        raise ValueError(f"{op}: {attr.name}: expected {names}; got {value!r}")
    if attr.type == "string":
        if not isinstance(value, str):
            raise TypeError(f"{op}: {attr.name}: expected a str, got {value!r}")
        return value
    try:
        return _scalar(_SCALARS[attr.type], value)
    except TypeError:
        raise TypeError(
            f"{op}: {attr.name}: expected {attr.type}, got {value!r} of {type(value).__name__}"
        ) from None
    except OverflowError:
        raise ValueError(f"{op}: {attr.name}: {value!r} does not fit {attr.type}") from None


def plain(value: AttrValue) -> Any:
    """A wire value as JSON for the library: complex numbers as [re, im]."""
    if isinstance(value, np.complexfloating):
        return [float(value.real), float(value.imag)]
    return value.item() if isinstance(value, np.generic) else value


def _scalar(kind: type[np.generic], value: Any) -> np.generic:
    if issubclass(kind, np.bool_):
        if not isinstance(value, bool | np.bool_):
            raise TypeError
        return np.bool_(value)
    if isinstance(value, bool | np.bool_):
        raise TypeError
    if issubclass(kind, np.integer):
        exact = operator.index(value)
        bounds = np.iinfo(kind)
        if not bounds.min <= exact <= bounds.max:
            raise OverflowError
        return kind(exact)
    if isinstance(value, str):
        raise TypeError
    number = complex(value)
    if issubclass(kind, np.complexfloating):
        return kind(number)
    if number.imag != 0:
        raise TypeError
    return kind(number.real)


@functools.cache
def _ambiguous() -> frozenset[str]:
    """Attribute names that have different codes in two ops."""
    codes: dict[str, set[tuple[Any, ...]]] = {}
    for members in ops().values():
        for attr in members[0].signature.attrs:
            if attr.codes:
                codes.setdefault(attr.name, set()).add(attr.codes)
    return frozenset(name for name, variants in codes.items() if len(variants) > 1)


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def _member(name: str) -> str:
    return name + "_" if keyword.iskeyword(name) else name
