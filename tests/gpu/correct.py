"""`make test-gpu`: whether lapax's CUDA targets are right on this machine's GPU, in ten minutes.

For each program: that its calls are lapax's, that its answers are right for every dtype and several
sizes, and the same from four threads at once; then that a CUDA graph is right in every call, that
calls on two streams do not disturb each other, that a host callback is called, and that running out
of memory is an error. Prints a line each; the exit status is 1 where one failed, 2 without a GPU.
"""

from __future__ import annotations

import concurrent.futures
import os
import sys
import time
from typing import Any

# Graphs of two kernels and more, so that small programs are captured.
os.environ["XLA_FLAGS"] = "--xla_gpu_graph_min_graph_size=1 " + os.environ.get("XLA_FLAGS", "")

import jax
import numpy as np

import lapax
from programs import (
    DTYPES,
    LIMIT,
    PROGRAMS,
    Program,
    captured,
    hermitian,
    sorted_by_host,
    two_streams,
)

SIZES = ((1, 1), (3, 100), (17, 5), (32, 8), (33, 3), (128, 4), (300, 1))
"""n and batch: smallest, many small, own kernels and cuSOLVER, one large."""


def main() -> int:
    """Runs everything; returns the exit status."""
    try:
        device = jax.devices("cuda")[0]
    except RuntimeError as error:
        print(f"no GPU, nothing tested: {error}")
        return 2
    print(f"{device.device_kind}, jax {jax.__version__}, lapax {lapax.__version__}")
    lapax.install()
    jax.config.update("jax_enable_x64", True)
    failures = 0
    for program in PROGRAMS:
        start = time.monotonic()
        problems = _problems(program, device)
        failures += bool(problems)
        verdict = "; ".join(problems) or "right"
        print(f"{program.name:<20}{time.monotonic() - start:6.1f} s  {verdict}", flush=True)
    graph = _capture(device)
    print(f"{'captured':<20}          {graph or 'right in every call'}")
    streams = _streams(device)
    print(f"{'two streams':<20}          {streams or 'the same as one after the other'}")
    callback = _callback(device)
    print(f"{'host callback':<20}          {callback or 'right, or an error'}")
    problem = _memory(device)
    print(f"{'out of memory':<20}          {problem or 'an error, as it should be'}")
    return 1 if failures or graph or streams or callback or problem else 0


def _problems(program: Program, device: Any) -> list[str]:
    rng = np.random.default_rng(0)
    problems = []
    for name in DTYPES[: 2 if program.real_only else 4]:
        for n, batch in SIZES:
            at = f"{name} n={n} batch={batch}"
            operands = program.operands(rng, np.dtype(name), n, batch)
            try:
                problems += [f"{at}: {text}" for text in _run(program, operands, device)]
            except Exception as error:  # Whatever goes wrong is what is looked for.
                problems.append(f"{at}: {error}")
    return problems


def _run(program: Program, operands: list[Any], device: Any) -> list[str]:
    on_device = [jax.device_put(x, device) for x in operands]
    compiled = jax.jit(program.function).lower(*on_device).compile()
    text = compiled.as_text()
    problems = [f"{name} is not lapax's" for name in program.targets if f"lapax.{name}" not in text]

    def answer(_: int) -> list[Any]:
        return [np.asarray(x) for x in jax.tree.leaves(compiled(*on_device))]

    first = answer(0)
    ratio = program.residual(operands, first)
    if not ratio < LIMIT:
        problems.append(f"residual {ratio:.3g}")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for again in pool.map(answer, range(8)):
            same = all(
                np.array_equal(x, y, equal_nan=True) for x, y in zip(first, again, strict=True)
            )
            right = same if program.fixed else program.residual(operands, again) < LIMIT
            if not right:
                problems.append("another answer from another thread")
                break
    return problems


def _capture(device: Any) -> str | None:
    """What is wrong with a CUDA graph that is run again with other operands."""
    run, cpu = jax.jit(captured), jax.devices("cpu")[0]
    rng = np.random.default_rng(1)
    for call in range(5):
        pivots = rng.integers(-1, 4, (30, 4)).astype(np.int32)
        found, expected = (run(jax.device_put(pivots, place)) for place in (device, cpu))
        for got, right in zip(found, expected, strict=True):
            if not np.array_equal(got, right):
                return f"call {call} is wrong"
    return None


def _streams(device: Any) -> str | None:
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
                return f"call {call} of n={n} batch={batch} has another answer"
    return None


def _callback(device: Any) -> str | None:
    """What is wrong with a function of the host's, called from four threads and failing."""
    run = jax.jit(sorted_by_host)
    x = np.random.default_rng(3).random(1000)

    def wrong(_: int) -> bool:
        return not np.array_equal(run(jax.device_put(x, device)), np.sort(x))

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        if any(pool.map(wrong, range(40))):
            return "another answer than NumPy's"
    try:
        jax.block_until_ready(run(jax.device_put(-x, device)))
    except jax.errors.JaxRuntimeError as error:
        return None if "a negative number" in str(error) else str(error)
    return "no error where the function raised one"


def _memory(device: Any) -> str | None:
    """What is wrong with a call for which there is no memory."""
    stats = device.memory_stats() or {}
    limit = stats.get("bytes_limit")
    if limit is None:
        return None
    n = int((limit / 4) ** 0.5)
    try:
        a = jax.device_put(np.eye(n, dtype=np.float32), device)
        jax.block_until_ready(jax.numpy.linalg.eigh(a))
    except jax.errors.JaxRuntimeError as error:
        known = ("RESOURCE_EXHAUSTED", "Out of memory", "out of memory")
        return None if any(word in str(error) for word in known) else str(error)
    return None


if __name__ == "__main__":
    sys.exit(main())
