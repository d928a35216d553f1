"""Which code computes on the CPU: lapax's own, or a LAPACK library that liblapax was built with."""

from __future__ import annotations

from typing import NamedTuple

from lapax import _library


class Backend(NamedTuple):
    """One CPU backend of this liblapax."""

    name: str
    """`faer`, lapax's own code, or `lapack`."""
    lapack: str | None = None
    """The file that holds the LAPACK library, which is liblapax itself where it is linked into it;
    None for `faer`, or where the system does not tell."""
    blas: str | None = None
    """The file that holds its BLAS, likewise."""
    integer_bits: int | None = None
    """32 or 64, the width of the LAPACK library's integers; None for `faer`."""


def backends() -> tuple[Backend, ...]:
    """The CPU backends that this liblapax was built with."""
    return tuple(Backend(**fields) for fields in _library.backends())


def backend() -> str:
    """The name of the CPU backend in force.

    It is the one that `set_backend` named last, in any thread; before that the one that the
    environment variable LAPAX_CPU_BACKEND names; without either `faer`. Raises ValueError where
    LAPAX_CPU_BACKEND names no backend, or one that this liblapax was built without.
    """
    return _named(_library.backend())


def set_backend(name: str) -> None:
    """Computes on another CPU backend from the next call of a target on, in every thread.

    Compiled functions stay valid: the choice is read at each call. `faer` is lapax's own code;
    `lapack` is the LAPACK library that liblapax was built with, if it was. What LAPACK lacks is
    lapax's own code on both. Raises ValueError where there is no such backend; the choice then
    stays as it was.
    """
    _named(_library.set_backend(name))


def _named(answer: dict[str, str]) -> str:
    if "error" in answer:
        raise ValueError(answer["error"])
    return answer["backend"]
