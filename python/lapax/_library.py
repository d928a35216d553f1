"""liblapax through ctypes: where it is, its version, its raw table and its shape inference.

Nothing here knows JAX, and nothing here knows what a signature means.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

OVERRIDE = "LAPAX_LIBRARY"
"""Environment variable: the path of a liblapax to use instead of the packaged one."""

_PLACES = ("_native/lapax/*", "*")
_SUFFIXES = (".so", ".dylib", ".dll")


class LibraryError(ImportError):
    """liblapax is missing, no shared library, not liblapax, or for another processor."""


class RawTarget(NamedTuple):
    """One row of the library's table, undecoded."""

    name: str
    platform: str
    handler: int
    """Address of the XLA FFI handler."""
    signature: str
    """JSON."""
    initialize: int | None
    """Address of the handler of the initialize stage, None where there is none."""


class _Target(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("platform", ctypes.c_char_p),
        ("handler", ctypes.c_void_p),
        ("signature", ctypes.c_char_p),
        ("initialize", ctypes.c_void_p),
    )


def path() -> Path:
    """The library in use: LAPAX_LIBRARY where it is set, else the one inside the package.

    Raises LibraryError where there is none.
    """
    override = os.environ.get(OVERRIDE)
    if override:
        chosen = Path(override)
        if not chosen.is_file():
            raise LibraryError(f"{OVERRIDE} names {chosen}, which is not a file")
        return chosen
    package = Path(__file__).parent
    found = sorted(
        file
        for place in _PLACES
        for file in package.glob(place)
        if file.suffix in _SUFFIXES and file.is_file()
    )
    if not found:
        raise LibraryError(
            f"liblapax was not found; searched {package / '_native' / 'lapax'} and {package}. "
            f"Install lapax with `pip install .`, or set {OVERRIDE} to the library's path"
        )
    return found[0]


def version() -> str:
    """The version of the library, which is that of the package."""
    return _text(loaded().lapax_version())


def raw_targets() -> Iterator[RawTarget]:
    """The rows of the table, in the library's order."""
    library = loaded()
    for i in range(library.lapax_target_count()):
        row = library.lapax_target_at(i).contents
        if row.struct_size < ctypes.sizeof(_Target):
            raise LibraryError(
                f"{path()}: a target of {row.struct_size} bytes, "
                f"expected at least {ctypes.sizeof(_Target)}: the library is older than the package"
            )
        yield RawTarget(
            _text(row.name),
            _text(row.platform),
            row.handler,
            _text(row.signature),
            row.initialize,
        )


def infer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Shape inference of one call by the code that checks the call at run time.

    `request` is {"target", "platform", "args": [{"dtype", "shape"}], "attrs", "dims"}; the answer
    is {"rets": [{"dtype", "shape"}]} or {"error": every mismatch in one text}.
    """
    answer: dict[str, Any] = _decoded(loaded().lapax_infer(json.dumps(request).encode()))
    return answer


def route(request: Mapping[str, Any]) -> dict[str, Any]:
    """The kernel that serves a call on this processor.

    `request` is {"routine", "dtype", "batch", "sizes"}; the answer is {"route", "what", "sizes"}
    or {"error"}.
    """
    answer: dict[str, Any] = _decoded(loaded().lapax_route(json.dumps(request).encode()))
    return answer


def backends() -> list[dict[str, Any]]:
    """The CPU backends built in: {"name"}, and of a LAPACK {"lapack", "blas", "integer_bits"}."""
    answer: list[dict[str, Any]] = _decoded(loaded().lapax_backends())
    return answer


def backend() -> dict[str, str]:
    """The CPU backend in force: {"backend": name} or {"error": sentence}."""
    answer: dict[str, str] = _decoded(loaded().lapax_backend())
    return answer


def set_backend(name: str) -> dict[str, str]:
    """Chooses the CPU backend; the answer is that of `backend`."""
    answer: dict[str, str] = _decoded(loaded().lapax_set_backend(name.encode()))
    return answer


def cuda_kernels() -> int:
    """How many modules of CUDA kernels were built in; 0 where there was no nvcc."""
    number: int = loaded().lapax_cuda_kernels()
    return number


def cuda_unfit() -> str | None:
    """Why this machine's NVIDIA driver cannot run the CUDA kernels; None where it can, or there is
    no driver. Starts nothing on the GPU.
    """
    reason = loaded().lapax_cuda_unfit()
    return None if reason is None else _text(reason)


def cuda() -> dict[str, Any] | None:
    """What CUDA's targets will find: {"kernels", "driver", "libraries"}; opens the libraries.

    None for a liblapax without targets on CUDA.
    """
    answer: dict[str, Any] | None = _decoded(loaded().lapax_cuda())
    return answer


def cuda_choices(gpu: str | None) -> dict[str, Any]:
    """Up to which orders ops on CUDA are done by kernels of their own, on GPUs of a compute
    capability such as "9.0", or on any.

    The answer is {"choices": {op: {"batches": {dtype: order or None}, "alone", "measured", "why"}}}
    or {"error"}.
    """
    request = json.dumps({"gpu": gpu}).encode()
    answer: dict[str, Any] = _decoded(loaded().lapax_cuda_choices(request))
    return answer


def _decoded(answer: int | None) -> Any:
    """What a JSON text says that the library made for its caller, who frees it."""
    if not answer:
        raise MemoryError("liblapax returned no answer")
    try:
        return json.loads(_text(ctypes.cast(answer, ctypes.c_char_p).value))
    finally:
        loaded().lapax_free(answer)


@functools.cache
def loaded() -> Any:
    """The library with its C signatures declared; loaded once, never closed."""
    file = path()
    try:
        library = ctypes.CDLL(str(file))
    except OSError as error:
        raise LibraryError(f"{file} cannot be loaded: {error}") from error
    try:
        library.lapax_target_count.restype = ctypes.c_size_t
        library.lapax_target_count.argtypes = ()
        library.lapax_target_at.restype = ctypes.POINTER(_Target)
        library.lapax_target_at.argtypes = (ctypes.c_size_t,)
        library.lapax_unfit.restype = ctypes.c_char_p
        library.lapax_unfit.argtypes = ()
        library.lapax_version.restype = ctypes.c_char_p
        library.lapax_version.argtypes = ()
        # void* and not char*: ctypes would copy a char* and lose the pointer that must be freed.
        library.lapax_infer.restype = ctypes.c_void_p
        library.lapax_infer.argtypes = (ctypes.c_char_p,)
        library.lapax_route.restype = ctypes.c_void_p
        library.lapax_route.argtypes = (ctypes.c_char_p,)
        library.lapax_backends.restype = ctypes.c_void_p
        library.lapax_backends.argtypes = ()
        library.lapax_backend.restype = ctypes.c_void_p
        library.lapax_backend.argtypes = ()
        library.lapax_set_backend.restype = ctypes.c_void_p
        library.lapax_set_backend.argtypes = (ctypes.c_char_p,)
        library.lapax_callback_new.restype = ctypes.c_int64
        library.lapax_callback_new.argtypes = (ctypes.c_void_p,) * 3
        library.lapax_callback_release.restype = None
        library.lapax_callback_release.argtypes = (ctypes.c_int64,)
        library.lapax_callback_held.restype = ctypes.c_int
        library.lapax_callback_held.argtypes = (ctypes.c_int64,)
        library.lapax_callback_handler.restype = ctypes.c_void_p
        library.lapax_callback_handler.argtypes = (ctypes.c_int,)
        library.lapax_callback_device_handler.restype = ctypes.c_void_p
        library.lapax_callback_device_handler.argtypes = ()
        library.lapax_cuda_kernels.restype = ctypes.c_size_t
        library.lapax_cuda_kernels.argtypes = ()
        library.lapax_cuda_unfit.restype = ctypes.c_char_p
        library.lapax_cuda_unfit.argtypes = ()
        library.lapax_cuda.restype = ctypes.c_void_p
        library.lapax_cuda.argtypes = ()
        library.lapax_cuda_choices.restype = ctypes.c_void_p
        library.lapax_cuda_choices.argtypes = (ctypes.c_char_p,)
        library.lapax_free.restype = None
        library.lapax_free.argtypes = (ctypes.c_void_p,)
    except AttributeError as error:
        raise LibraryError(f"{file} is not liblapax: {error}") from error
    reason = library.lapax_unfit()
    if reason is not None:
        raise LibraryError(f"{file}: {_text(reason)}")
    return library


def _text(value: bytes | None) -> str:
    if value is None:
        raise LibraryError(f"{path()}: a NULL string where a text was expected")
    return value.decode()
