"""`make bench-gpu`: lapax beside jaxlib on this machine's GPU, in ten minutes.

    python tests/gpu/bench.py [NAME…]        # these programs alone

Each program is compiled with and without lapax and run in turns; medians over the turns, of as many
calls queued at once as take a few milliseconds. A row prints only where both answers are right.
"""

from __future__ import annotations

import contextlib
import statistics
import sys
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import lapax
from lapax._bench import queued
from programs import LIMIT, PROGRAMS, Program

SIZES = ((4, 10_000), (16, 2_000), (32, 1_000), (64, 256), (128, 64), (32, 1), (128, 1), (1024, 1))
ENOUGH = 3.0
"""Seconds of a row after which the fewest turns will do."""


def main() -> int:
    """Prints the table; returns the exit status, 2 without a GPU."""
    try:
        device = jax.devices("cuda")[0]
    except RuntimeError as error:
        print(f"no GPU, nothing measured: {error}")
        return 2
    print(f"{device.device_kind}, jax {jax.__version__}, lapax {lapax.__version__}, f32 or c64")
    print(f"{'program':<28}{'n':>6}{'batch':>8}{'jaxlib µs':>12}{'lapax µs':>12}{'ratio':>8}")
    wrong = 0
    names = sys.argv[1:] or [program.name for program in PROGRAMS]
    for program in [program for program in PROGRAMS if program.name in names]:
        for n, batch in SIZES:
            line = _row(program, n, batch, device)
            wrong += "wrong" in line
            print(f"{program.name:<28}{n:>6}{batch:>8}{line}", flush=True)
    return 1 if wrong else 0


def _row(program: Program, n: int, batch: int, device: Any) -> str:
    operands = program.operands(np.random.default_rng(0), np.dtype(program.dtypes[0]), n, batch)
    on_device = [jax.device_put(x, device) for x in operands]
    sides = []
    # lapax first: a device that jaxlib's call has spoilt says nothing about lapax.
    for name, engine in (("lapax", lapax.installed()), ("jaxlib", contextlib.nullcontext())):
        try:
            with engine:
                side = _compiled(program, on_device)
            ratio = program.residual(operands, [np.asarray(x) for x in jax.tree.leaves(side())])
        except Exception as error:  # A program that one side does not have is no row.
            return f"  {name}: {str(error).splitlines()[0][:70]}"
        if not ratio < LIMIT:
            return f"  {name}'s answer is wrong: residual {ratio:.3g}"
        sides.append(side)
    times = queued.take_turns(sides, ENOUGH)
    now, before = (1e6 * statistics.median(found) for found in times)
    return f"{before:>12.1f}{now:>12.1f}{before / now:>8.2f}"


def _compiled(program: Program, operands: list[Any]) -> Callable[[], Any]:
    compiled = jax.jit(program.function).lower(*operands).compile()
    jax.block_until_ready(compiled(*operands))
    return lambda: compiled(*operands)


if __name__ == "__main__":
    sys.exit(main())
