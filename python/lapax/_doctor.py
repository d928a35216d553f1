"""`python -m lapax doctor`: what is here, and whether every registered target computes."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import platform
import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import jax
import numpy as np

from lapax import _backend, _library, _selection, _unknown, check
from lapax._call import ffi_call
from lapax._install import is_installed, left_to_jax
from lapax._lowering import numpy_dtype
from lapax._supported import NEWEST_JAX, OLDEST_JAX
from lapax._table import Target, targets

_SIZES = ((1, ()), (5, (3,)), (33, ()))
"""Self-tested n and batch: smallest, small batched, larger than one block."""

_FEATURES = ("avx2", "fma", "avx512f", "avx512dq", "asimd", "sve")
"""Instruction sets that the kernels choose between, as Linux spells them."""


def run(*, verbose: bool = False, as_json: bool = False) -> int:
    """Prints the report; returns 0 where every target passed, 1 otherwise.

    `verbose` adds what was looked for where there is no GPU; `as_json` is the whole as one object.
    """
    device = _device()
    facts = _facts(device, verbose or as_json)
    if as_json:
        tests = [] if isinstance(device, str) else list(_tests(device))
        passed = bool(tests) and all(test.passed for test in tests)
        rows = [dataclasses.asdict(test) | {"passed": test.passed} for test in tests]
        report = {"facts": list(facts), "limit": check.LIMIT, "tests": rows, "passed": passed}
        print(json.dumps(report, indent=1))
        return 0 if passed else 1
    for label, value in facts:
        print(f"{label + ':':<16}{value}")
    if isinstance(device, str):
        print("\nno self-test can run without a CPU device")
        return 1
    print(f"\n{'target':<{_NAME}}{'dtype':<12}{'residual':>9}  (limit {check.LIMIT:g})")
    failures = 0
    for test in _tests(device):
        failures += not test.passed
        print(test.line())
    print(f"\n{failures} of the self-tests failed" if failures else "\nall self-tests passed")
    return 1 if failures else 0


_NAME = 36
"""The columns of a target's name; the longest has 33."""


@dataclasses.dataclass(frozen=True)
class _Test:
    """What came of a target for one dtype."""

    target: str
    dtype: str
    residual: float | None = None
    """The largest, over every mode and size."""
    error: str | None = None

    @property
    def passed(self) -> bool:
        return self.residual is not None and self.residual < check.LIMIT

    def line(self) -> str:
        head = f"{self.target:<{_NAME}}{self.dtype:<12}"
        if self.residual is None:
            return f"{head}   failed: {self.error}"
        return f"{head}{self.residual:>9.3g}{'' if self.passed else '  FAILED'}"


def _device() -> jax.Device | str:
    """The first CPU device, or why there is none: JAX_PLATFORMS may name other platforms alone."""
    try:
        return jax.devices("cpu")[0]
    except (RuntimeError, AssertionError) as error:  # JAX asserts that there is any backend.
        platforms = jax.config.jax_platforms
        reason = str(error) or "JAX has no backend"
        return f"no CPU device (JAX_PLATFORMS is {platforms!r}): {reason}"


def _facts(device: jax.Device | str, verbose: bool) -> Iterator[tuple[str, str]]:
    yield "lapax", f"{_library.version()}, {_library.path()}"
    yield "python", f"{platform.python_version()} on {platform.platform()}"
    for package in ("jax", "jaxlib", "numpy"):
        yield package, metadata.version(package)
    yield "checked jax", f"{OLDEST_JAX} to {NEWEST_JAX}"
    yield from _left_to_jax()
    yield "cpu features", " ".join(_cpu_features()) or "unknown"
    found = [device] if isinstance(device, str) else map(str, jax.devices("cpu"))
    yield "devices", ", ".join(found)
    yield "targets", ", ".join(f"{len(targets(p))} on {p}" for p in ("cpu", "cuda"))
    for backend in _backend.backends():
        yield "backend", _described(backend)
    yield "in force", _in_force()
    yield from _cuda(verbose)
    yield (
        "installed",
        "yes" if is_installed() else "no (lapax.install() in a program does that, or LAPAX=1)",
    )


def _left_to_jax() -> Iterator[tuple[str, str]]:
    """What install() leaves to JAX, and why: what is installed here, else what it would be."""
    try:
        left = list(left_to_jax() if is_installed() else _would_leave())
    except ValueError as error:
        left = [f"unknown: {error}"]
    if not left and not _unknown.is_known():
        left = ["nothing: all that was looked at fits, and answers are JAX's"]
    for line in left:
        yield "left to jax", line


def _would_leave() -> Iterator[str]:
    yield from _unknown.lines(_unknown.found(None))
    yield from _selection.chosen().said


def _cuda(verbose: bool) -> Iterator[tuple[str, str]]:
    """The kernels of this liblapax, the driver, and from where NVIDIA's libraries were loaded.

    Where no driver answers, that is all there is to say, but to who is `verbose`.
    """
    found = _library.cuda()
    if found is None or not found["kernels"]:
        yield "cuda", "no kernels in this liblapax: jaxlib's handlers serve GPUs"
        return
    driver, kernels = found["driver"], f"{found['kernels']} modules of kernels"
    if "error" in driver and not verbose:
        yield "cuda", f"{kernels}, CPU only here: {driver['error']}"
        return
    yield "cuda", kernels
    yield "cuda driver", f"CUDA {driver['version']}" if "version" in driver else driver["error"]
    reason = _library.cuda_unfit()
    if reason is not None:
        yield "cuda in use", f"jaxlib's: {reason}"
    for library in found["libraries"]:
        yield library["name"], library.get("error") or library["file"] or "an unknown file"


def _described(backend: _backend.Backend) -> str:
    """A backend's name and, of a LAPACK, which library it is."""
    if backend.integer_bits is None:
        return backend.name
    files = {"LAPACK": backend.lapack, "BLAS": backend.blas}
    places = ", ".join(f"{part} in {file or 'an unknown file'}" for part, file in files.items())
    return f"{backend.name}: {places}, {backend.integer_bits}-bit integers"


def _in_force() -> str:
    """The backend's name, or why no target can run."""
    try:
        return f"{_backend.backend()} (lapax.set_backend or LAPAX_CPU_BACKEND changes that)"
    except ValueError as error:
        return f"none: {error}"


def _cpu_features() -> list[str]:
    """Those of `_FEATURES` that this machine has; empty where it cannot be known."""
    with contextlib.suppress(OSError):
        flags = set(re.findall(r"[\w.]+", Path("/proc/cpuinfo").read_text()))
        return [feature for feature in _FEATURES if feature in flags]
    return ["asimd"] if platform.machine() in ("arm64", "aarch64") else []


def _tests(device: jax.Device) -> Iterator[_Test]:
    for target in targets("cpu"):
        for dtype in target.dtypes:
            yield _tested(device, target, dtype)


def _tested(device: jax.Device, target: Target, dtype: str) -> _Test:
    named = _Test(target.name, str(numpy_dtype(dtype)))
    try:
        # As a residual may be NaN, `max` alone would pass it over.
        residual = float(np.max(_residuals(device, target, dtype)))
    except Exception as error:  # A broken target is what is looked for: report it and go on.
        return dataclasses.replace(named, error=str(error))
    if np.isnan(residual):
        return dataclasses.replace(named, error="its residual is NaN")
    return dataclasses.replace(named, residual=residual)


def _residuals(device: jax.Device, target: Target, dtype: str) -> list[float]:
    """One residual per mode and one per size, from a single program: compiling is what costs."""
    modes = check.modes(target.signature)
    cases = []
    for i in range(max(len(modes), len(_SIZES))):
        (n, batch), mode = _SIZES[i % len(_SIZES)], modes[i % len(modes)]
        cases.append(
            check.case(target.signature.op, numpy_dtype(dtype), n, batch=batch, attrs=mode)
        )

    def program(operands: list[tuple[jax.Array, ...]]) -> list[list[jax.Array]]:
        return [
            jax.tree.leaves(ffi_call(target.name, *args, **case.attrs, **case.dims))
            for args, case in zip(operands, cases, strict=True)
        ]

    with jax.default_device(device), jax.enable_x64(True):
        results = jax.jit(program)([case.args for case in cases])
    return [case.ratio(map(np.asarray, rets)) for case, rets in zip(cases, results, strict=True)]
