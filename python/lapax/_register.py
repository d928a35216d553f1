"""Registration of liblapax's handlers with JAX, once, when the package is imported.

JAX queues registrations until a platform has a backend, so importing lapax creates none.
"""

from __future__ import annotations

import ctypes
from typing import Any

import jax

from lapax import _jax_private
from lapax._jax_private import jaxlib_cpu_targets
from lapax._table import Target, targets


def register() -> None:
    """Every target under "lapax." + name, on the CPU also by its bare name where jaxlib has none.

    jaxlib's own names are left to jaxlib: XLA refuses a second handler for a name, and then JAX
    has no CPU backend at all.
    """
    taken = jaxlib_cpu_targets()
    for target in targets("cpu"):
        mine = taken is not None and target.name not in taken
        names = [target.jax_name, target.name] if mine else [target.jax_name]
        for name in names:
            jax.ffi.register_ffi_target(name, _capsule(target), platform="cpu")
            jax.ffi.register_ffi_target_as_batch_partitionable(name)
    for target in targets("cuda"):
        # JAX keeps them until its plugin for CUDA is there, whose handlers have the bare names.
        jax.ffi.register_ffi_target(target.jax_name, _stages(target), platform="CUDA")
        jax.ffi.register_ffi_target_as_batch_partitionable(target.jax_name)


_taken: set[str] = set()
"""jaxlib's names that are lapax's in this process: none, or all that the table holds."""


def take_over() -> None:
    """Serves jaxlib's own names on the CPU. Nothing undoes it, and doing it twice does no more.

    Raises RuntimeError once JAX has a CPU backend, which keeps the handlers it was made with.
    """
    if _taken:
        return
    theirs = jaxlib_cpu_targets() or ()
    shared = {t.name: _capsule(t) for t in targets("cpu") if t.name in theirs}
    if not _jax_private.replace_cpu_handlers(shared):
        raise RuntimeError(
            "lapax.install(takeover=True) comes too late: JAX already has a CPU backend, which "
            "keeps jaxlib's handlers. Call it before the first array, jax.devices() or compiled "
            "function; lapax.install() without takeover works at any time"
        )
    _taken.update(shared)
    _jax_private.forget_scipy()  # The table holds every LAPACK target of jaxlib's.


def taken_over() -> bool:
    """Whether jaxlib's names are lapax's in this process."""
    return bool(_taken)


def export_safety_checks() -> list[jax.export.DisabledSafetyCheck]:
    """For `jax.export.export(…, disabled_checks=lapax.export_safety_checks())`.

    JAX exports only custom calls it guarantees itself, unless each other name is let through; this
    lets through every name that lapax registers. Programs call such names where they call
    `lapax.ffi`, or are exported in `lapax.exporting(names="lapax")`; a process that runs one must
    `import lapax` too.
    """
    allow = jax.export.DisabledSafetyCheck.custom_call
    return [allow(name) for target in targets() for name in (target.jax_name, target.name)]


def _capsule(target: Target) -> Any:
    return jax.ffi.pycapsule(ctypes.c_void_p(target.handler))


def _stages(target: Target) -> dict[str, Any]:
    stages = {"execute": _capsule(target)}
    if target.initialize is not None:
        stages["initialize"] = jax.ffi.pycapsule(ctypes.c_void_p(target.initialize))
    return stages
