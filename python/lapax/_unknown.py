"""A JAX that is newer than lapax was checked on: what of lapax is used there, and what JAX keeps.

Each hook of `_jax_private` is looked at, then `_trial` compares answers in a process of its own,
since a call that no longer fits may end its process, and since it needs a backend.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import warnings
from typing import Literal, NamedTuple, cast, get_args

import jax

from lapax import _cuda, _library, _trial
from lapax import _jax_private as private
from lapax._hooks import Part
from lapax._supported import NEWEST_JAX, OLDEST_JAX, is_checked

VARIABLE = "LAPAX_UNKNOWN_JAX"
"""The environment variable that says the mode."""

Mode = Literal["check", "trust", "leave"]

SPARSE = _trial.SPARSE


class Left(NamedTuple):
    """What is left to JAX, and why; nothing on a JAX that lapax was checked on."""

    parts: dict[Part, list[str]]
    families: dict[str, str]
    """By primitive, and `SPARSE`."""


def is_known() -> bool:
    """Whether lapax was checked on this JAX."""
    return is_checked(jax.__version__)


def left(argument: Mode | None) -> Left:
    """What this JAX leaves to be left; warns of it once in a process.

    Raises ValueError for a mode that there is not.
    """
    left_to_jax = found(argument)
    said = Left(dict(left_to_jax.parts), left_to_jax.families)
    if Part.CUDA in said.parts and not _has_cuda():
        del said.parts[Part.CUDA]
    _say(lines(said))
    return left_to_jax


def found(argument: Mode | None) -> Left:
    """The same without a warning."""
    mode, source = _mode(argument)
    return Left({}, {}) if is_known() else _found(mode, source)


def lines(found: Left) -> list[str]:
    """What is left and why, for users."""
    parts = [f"{part.value} ({'; '.join(why)})" for part, why in found.parts.items()]
    return [*parts, *(f"{family} ({why})" for family, why in found.families.items())]


def _mode(argument: Mode | None) -> tuple[Mode, str]:
    """The mode and who asks for it."""
    source = "install: unknown_jax" if argument is not None else VARIABLE
    mode = argument if argument is not None else os.environ.get(VARIABLE) or "check"
    if mode not in get_args(Mode):
        known = ", ".join(map(repr, get_args(Mode)))
        raise ValueError(f"{source}: expected one of {known}, got {mode!r}")
    return cast(Mode, mode), source


def _found(mode: Mode, source: str) -> Left:
    if mode == "leave":
        return Left({Part.RULES: [f"{source} is 'leave'"]}, {})
    parts, families = without_hooks()
    if mode == "trust" or Part.RULES in parts:
        return Left(parts, families)
    tried = _tried()
    for part, why in tried.parts.items():
        parts.setdefault(part, []).extend(why)
    if _library.cuda_kernels():
        reason = f"its answers are not compared beforehand: {VARIABLE}=trust uses it"
        parts.setdefault(Part.CUDA, []).append(reason)
    return Left(parts, families | tried.families)


def without_hooks() -> Left:
    """What the hooks that do not fit leave to JAX."""
    parts: dict[Part, list[str]] = {}
    for hook in private.HOOKS.values():
        problem = None if private.is_sparse(hook) else hook.problem
        if problem is not None:
            for part in hook.serves:
                parts.setdefault(part, []).append(problem)
    if Part.BY_NAME in parts and not private.can_initialize_lapack():
        parts.setdefault(Part.RULES, []).append("jaxlib's LAPACK cannot be made ready")
    why = parts.pop(Part.EIGH_SVD, [])
    return Left(parts, {family: "; ".join(why) for family in ("eigh", "svd") if why})


def _has_cuda() -> bool:
    """Whether JAX has its plugin for CUDA. To ask the driver would start it."""
    plugins = ("jax_cuda13_plugin", "jax_cuda12_plugin")
    return any(importlib.util.find_spec(plugin) is not None for plugin in plugins)


@functools.cache
def _tried() -> Left:
    """What a trial leaves to JAX; made once in a process."""
    outcome = _trial.outcome()
    parts = {Part[name]: why for name, why in outcome["parts"].items()}
    return Left(parts, outcome["families"])


_said: set[str] = set()
"""Of what users have been told in this process."""


def _say(left_to_jax: list[str]) -> None:
    new = [line for line in left_to_jax if line not in _said]
    if not new:
        return
    _said.update(new)
    warnings.warn(
        f"lapax was checked on jax {OLDEST_JAX} to {NEWEST_JAX}, and this is {jax.__version__}. "
        f"Left to JAX: {'; '.join(new)}",
        RuntimeWarning,
        stacklevel=_cuda.stacklevel(),
    )


def say_of_sparse() -> None:
    """Warns of what of SPARSE does not fit, which is known once somebody imported it."""
    if not is_known():
        _say(lines(Left(without_sparse_hooks(), {})))


def without_sparse_hooks() -> dict[Part, list[str]]:
    """As `without_hooks`, once SPARSE has been imported."""
    hooks = [hook for hook in private.HOOKS.values() if private.is_sparse(hook)]
    why = [hook.problem for hook in hooks if hook.problem is not None]
    return {Part.SPARSE: why} if why else {}


def not_fused(error: Exception) -> None:
    """Warns of a program in which nothing is put together."""
    _say([f"{Part.FUSED.value} ({type(error).__name__}: {error})"])
