"""`python -m lapax export` and `paths`: what a program outside Python needs.

A program is StableHLO whose linear algebra calls targets by the names under which liblapax
registers them in other hosts: jaxlib's own, or lapax's for what jaxlib lacks.
"""

from __future__ import annotations

import ctypes
import importlib
import inspect
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.export
import numpy as np

from lapax import _library
from lapax._install import exporting
from lapax._jax_private import stablehlo_of_version, stablehlo_versions
from lapax._register import export_safety_checks

INCLUDE = Path(__file__).parent / "include"
"""The folder of lapax.h."""

PKGCONFIG = INCLUDE.with_name("pkgconfig")
"""That of lapax.pc."""

CMAKE = INCLUDE.with_name("cmake")
"""That of lapaxConfig.cmake."""

_DTYPES = {
    **{name: name for name in ("bool", "bfloat16")},
    **{
        f"{short}{bits}": f"{long}{bits}"
        for short, long, widths in (
            ("f", "float", (16, 32, 64)),
            ("i", "int", (8, 16, 32, 64)),
            ("u", "uint", (8, 16, 32, 64)),
            ("c", "complex", (64, 128)),
        )
        for bits in widths
    },
}


def program(function: Callable[..., Any], args: Sequence[Any], *, platform: str = "cpu") -> str:
    """The function as StableHLO text, for these arguments: arrays or shapes with dtypes.

    Calls by names that lapax registers are let through besides those that JAX guarantees. Raises
    what the function raises, and what JAX raises of it.
    """
    with exporting():
        exported = jax.export.export(
            jax.jit(function), platforms=(platform,), disabled_checks=export_safety_checks()
        )(*args)
    text: str = str(exported.mlir_module())
    return text


def portable(text: str, version: str) -> bytes:
    """StableHLO text as a portable artifact of a version such as "1.9.0".

    Raises ValueError where this jaxlib cannot write that version, or the program needs a later one.
    """
    oldest, newest = stablehlo_versions()
    if not _in_order(oldest, version, newest):
        raise ValueError(f"expected a StableHLO version from {oldest} to {newest}, got {version!r}")
    return stablehlo_of_version(text, version)


def _in_order(*versions: str) -> bool:
    """Whether these are versions, and in order."""
    if not all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions):
        return False
    return list(versions) == sorted(versions, key=_numbers)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def readable_version(plugin: Path) -> str:
    """The StableHLO version to write for a PJRT plugin: the one that it says it reads, or the
    newest that this jaxlib writes where that is older.

    Raises ValueError where the file is no plugin or does not say.
    """
    try:
        get = ctypes.CDLL(str(plugin)).GetPjrtApi
    except (OSError, AttributeError) as error:
        raise ValueError(f"{plugin} is no PJRT plugin: {error}") from error
    get.restype = ctypes.POINTER(_Api)
    api = get().contents
    args = _AttributesArgs(struct_size=ctypes.sizeof(_AttributesArgs))
    if api.plugin_attributes(ctypes.byref(args)):
        raise ValueError(f"{plugin} does not tell its attributes")
    for i in range(args.count):
        value = args.attributes[i]
        name = ctypes.string_at(value.name, value.name_size).decode()
        if name == "stablehlo_current_version":
            parts = ctypes.cast(value.value, ctypes.POINTER(ctypes.c_int64))
            stated = ".".join(str(parts[k]) for k in range(value.value_size))
            return min(stated, stablehlo_versions()[1], key=_numbers)
    raise ValueError(f"{plugin} does not say which StableHLO it reads")


def shape(text: str) -> jax.ShapeDtypeStruct:
    """`f64[3,5,5]` as a shape.

    Raises ValueError where it is none.
    """
    match = re.fullmatch(r"(\w+)\[((?:[0-9]+(?:, *[0-9]+)*)?)\]", text)
    if not match or match[1] not in _DTYPES:
        known = ", ".join(sorted(_DTYPES))
        raise ValueError(
            f"expected dtype[sizes], such as f64[3,5,5], got {text!r}; dtypes: {known}"
        )
    sizes = tuple(map(int, match[2].split(","))) if match[2] else ()
    if any(size > np.iinfo(np.int64).max for size in sizes):
        raise ValueError(f"expected sizes below 2**63, got {text!r}")
    return jax.ShapeDtypeStruct(sizes, jax.numpy.dtype(_DTYPES[match[1]]))


def function(path: str) -> Callable[..., Any]:
    """`package.module.name` or `module:name` as the object it names.

    Raises ValueError where there is none, whatever its module raises, or it cannot be called.
    """
    module, _, name = path.rpartition(":" if ":" in path else ".")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except Exception as error:
        raise ValueError(f"no function {path}: {type(error).__name__}: {error}") from error
    if not callable(found):
        raise ValueError(f"{path} is not a function")
    chosen: Callable[..., Any] = found
    return chosen


def require_fitting(path: str, function: Callable[..., Any], count: int) -> None:
    """Raises ValueError where the function says that it does not take so many arguments."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # Some functions do not say what they take.
        return
    try:
        signature.bind(*range(count))
    except TypeError as error:
        raise ValueError(
            f"{path} takes ({', '.join(signature.parameters)}), got {count} arrays: {error}"
        ) from error


def needs_64_bits(args: Sequence[Any]) -> bool:
    """Whether JAX must be told to keep 64-bit numbers of these arrays or shapes."""
    return any(np.dtype(a.dtype).itemsize >= (16 if a.dtype.kind == "c" else 8) for a in args)


def compile_flags() -> str:
    """What a C compiler needs to find lapax.h."""
    return f"-I{INCLUDE}"


def link_flags() -> str:
    """What a linker needs to link with the library, and to find it again at run time."""
    folder = _library.path().resolve().parent
    return f"-L{folder} -llapax -Wl,-rpath,{folder}"


class _NamedValue(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("name", ctypes.c_void_p),
        ("name_size", ctypes.c_size_t),
        ("type", ctypes.c_int),
        ("value", ctypes.c_void_p),
        ("value_size", ctypes.c_size_t),
    )


class _AttributesArgs(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_NamedValue)),
        ("count", ctypes.c_size_t),
    )


class _Api(ctypes.Structure):
    """The beginning of PJRT_Api, the same in all versions."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("version_size", ctypes.c_size_t),
        ("version_extension", ctypes.c_void_p),
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
        ("error_destroy", ctypes.c_void_p),
        ("error_message", ctypes.c_void_p),
        ("error_get_code", ctypes.c_void_p),
        ("plugin_initialize", ctypes.c_void_p),
        (
            "plugin_attributes",
            ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_AttributesArgs)),
        ),
    )
