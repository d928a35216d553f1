"""`make test-gpu`: whether lapax's CUDA targets are right on this machine's GPU, in ten minutes.

    python tests/gpu/correct.py [NAME…]        # what is named alone, as the lines name it

For each program: that its calls are lapax's, that its answers are right for every dtype and several
sizes, and the same from four threads at once; then that a CUDA graph is right in every call, that
calls on two streams do not disturb each other, that a host callback is called, and that running out
of memory is an error. Prints a line each; the exit status is 1 where one failed, 2 without a GPU.
"""

from __future__ import annotations

import concurrent.futures
import functools
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

# Graphs of two kernels and more, so that small programs are captured.
os.environ["XLA_FLAGS"] = "--xla_gpu_graph_min_graph_size=1 " + os.environ.get("XLA_FLAGS", "")

import jax
import numpy as np

import lapax
from programs import (
    LIMIT,
    PROGRAMS,
    Program,
    captured,
    hermitian,
    sorted_by_host,
    two_streams,
)

SIZES = ((1, 1), (3, 100), (17, 5), (32, 8), (33, 3), (128, 4), (256, 2), (300, 1))
"""n and batch: smallest, many small, own kernels and cuSOLVER, one large."""

ORDER = 4096
"""Of a matrix whose decomposition takes more scratch than XLA's rounding of sizes hides."""


def main() -> int:
    """Runs everything; returns the exit status."""
    try:
        device = jax.devices("cuda")[0]
    except RuntimeError as error:
        print(f"no GPU, nothing tested: {error}")
        return 2
    print(f"{device.device_kind}, jax {jax.__version__}, lapax {lapax.__version__}")
    checks: dict[str, Callable[[Any], list[str]]] = {
        program.name: functools.partial(problems, program) for program in PROGRAMS
    }
    checks |= OF_DEVICE
    names = sys.argv[1:] or list(checks)
    if unknown := [name for name in names if name not in checks]:
        print(f"nothing is named {', '.join(unknown)}; there are {', '.join(checks)}")
        return 2
    lapax.install()
    jax.config.update("jax_enable_x64", True)
    failures = 0
    for name in names:
        start = time.monotonic()
        found = checks[name](device)
        failures += bool(found)
        verdict = "; ".join(found) or "right"
        print(f"{name:<28}{time.monotonic() - start:6.1f} s  {verdict}", flush=True)
    return 1 if failures else 0


def problems(
    program: Program,
    device: Any,
    sizes: Sequence[tuple[int, int]] = SIZES,
    dtypes: Sequence[str] | None = None,
) -> list[str]:
    """What is wrong with a program's answers, for every dtype and size."""
    rng = np.random.default_rng(0)
    found = []
    for name in dtypes or program.dtypes:
        for n, batch in sizes:
            at = f"{name} n={n} batch={batch}"
            operands = program.operands(rng, np.dtype(name), n, batch)
            try:
                found += [f"{at}: {text}" for text in _run(program, operands, device)]
            except Exception as error:  # Whatever goes wrong is what is looked for.
                found.append(f"{at}: {error}")
    return found


def _run(program: Program, operands: list[Any], device: Any) -> list[str]:
    on_device = [jax.device_put(x, device) for x in operands]
    compiled = jax.jit(program.function).lower(*on_device).compile()
    text = compiled.as_text()
    # XLA may know what a call for a matrix of one number answers.
    on_gpu = device.platform == "gpu" and operands[0].shape[-1] > 1
    targets = program.called(operands) if on_gpu else ()
    found = [f"{name} is not lapax's" for name in targets if f"lapax.{name}" not in text]

    def answer(_: int) -> list[Any]:
        return [np.asarray(x) for x in jax.tree.leaves(compiled(*on_device))]

    first = answer(0)
    ratio = program.residual(operands, first)
    if not ratio < LIMIT:
        found.append(f"residual {ratio:.3g}")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for again in pool.map(answer, range(8)):
            same = all(
                np.array_equal(x, y, equal_nan=True) for x, y in zip(first, again, strict=True)
            )
            right = same if program.fixed else program.residual(operands, again) < LIMIT
            if not right:
                found.append("another answer from another thread")
                break
    return found


def _capture(device: Any) -> list[str]:
    """What is wrong with a CUDA graph that is run again with other operands."""
    run, cpu = jax.jit(captured), jax.devices("cpu")[0]
    rng = np.random.default_rng(1)
    for call in range(5):
        pivots = rng.integers(-1, 4, (30, 4)).astype(np.int32)
        found, expected = (run(jax.device_put(pivots, place)) for place in (device, cpu))
        for got, right in zip(found, expected, strict=True):
            if not np.array_equal(got, right):
                return [f"call {call} is wrong"]
    return []


def _streams(device: Any) -> list[str]:
    """What is wrong with two calls of one program that run at once, each with its scratch."""
    rng = np.random.default_rng(2)
    alone, both = jax.jit(lambda a: two_streams(a)[0]), jax.jit(two_streams)
    for n, batch in ((20, 500), (200, 1), (600, 1)):
        matrices = [
            jax.device_put(hermitian(rng, np.dtype(np.float32), n, batch)[0], device)
            for _ in range(2)
        ]
        expected = [np.asarray(x) for a in matrices for x in alone(a)]
        for call in range(20):
            found = [np.asarray(x) for results in both(*matrices) for x in results]
            if not all(map(np.array_equal, expected, found)):
                return [f"call {call} of n={n} batch={batch} has another answer"]
    return []


def _callback(device: Any) -> list[str]:
    """What is wrong with a function of the host's, called from four threads and failing."""
    run = jax.jit(sorted_by_host)
    x = np.random.default_rng(3).random(1000)

    def wrong(_: int) -> bool:
        return not np.array_equal(run(jax.device_put(x, device)), np.sort(x))

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        if any(pool.map(wrong, range(40))):
            return ["another answer than NumPy's"]
    try:
        jax.block_until_ready(run(jax.device_put(-x, device)))
    except jax.errors.JaxRuntimeError as error:
        return [] if "a negative number" in str(error) else [str(error)]
    return ["no error where the function raised one"]


def _memory(device: Any) -> list[str]:
    """What is wrong with a call for whose scratch there is no memory, and with the next one."""
    a = hermitian(np.random.default_rng(4), np.dtype(np.float32), ORDER, 1)[0]
    a = jax.device_put(a, device)
    run = jax.jit(lambda a: jax.lax.linalg.eigh(a, symmetrize_input=False)).lower(a).compile()
    expected = [np.asarray(x) for x in run(a)]
    needs = run.memory_analysis()
    left = needs.temp_size_in_bytes + needs.output_size_in_bytes + a.nbytes // 4
    free = device.memory_stats()["largest_free_block_bytes"]
    ballast = jax.numpy.zeros(((free - left) >> 20, 1 << 20), np.uint8, device=device)
    found = []
    try:
        jax.block_until_ready(run(a))
        found.append("no error, though there was no memory for scratch")
    except jax.errors.JaxRuntimeError as error:
        if not ("RESOURCE_EXHAUSTED" in str(error) and "cusolver_syevd_ffi" in str(error)):
            found.append(str(error))
    ballast.delete()
    if not all(map(np.array_equal, expected, run(a))):
        found.append("another answer after an error")
    return found


OF_DEVICE: dict[str, Callable[[Any], list[str]]] = {
    "captured": _capture,
    "two streams": _streams,
    "host callback": _callback,
    "out of memory": _memory,
}
"""What there is to be seen of a device besides programs' answers."""


if __name__ == "__main__":
    sys.exit(main())
