"""Times on a device that works while the host queues the next call, a GPU: of calls queued behind
each other, as programs call them. `measure` has those of the CPU, one after another."""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Program = Callable[[], Any]

TURNS, FEWEST_TURNS = 9, 3
BURST = 0.01
"""What a program takes in a turn, at least: many calls of a small one, which takes microseconds."""
COPIED = 1 << 28
"""The bytes that are copied to measure the rate: several times what a cache holds."""


def take_turns(
    programs: Sequence[Program],
    seconds: float,
    wait: Callable[[Any], Any] = jax.block_until_ready,
) -> list[list[float]]:
    """Seconds of a call of each program, in TURNS turns, or fewer where these take so long.

    A program whose call takes `seconds` is called once more, and no more than that.
    """
    first = [of_calls(program, 1, wait) for program in programs]
    calls = [max(1, int(BURST / one)) for one in first]
    times: list[list[float]] = [[] for _ in programs]
    start = time.perf_counter()
    for turn in range(TURNS):
        late = time.perf_counter() - start > seconds
        if turn >= FEWEST_TURNS and late:
            break
        for program, count, one, found in zip(programs, calls, first, times, strict=True):
            if turn == 0 or one < seconds:
                found.append(of_calls(program, count, wait))
    return times


def of_calls(
    program: Program, calls: int, wait: Callable[[Any], Any] = jax.block_until_ready
) -> float:
    """Seconds of a call, of so many that are queued behind each other."""
    start = time.perf_counter()
    for _ in range(calls):
        result = program()
    wait(result)
    return (time.perf_counter() - start) / calls


@functools.cache
def launch() -> float:
    """Seconds of the smallest program, one kernel: no call takes less."""
    return _of_copy(jnp.zeros(1, np.float32))


@functools.cache
def copy_rate() -> float:
    """Bytes per second, read and written, of a copy on the device."""
    source = jnp.zeros(COPIED // 4, np.float32)
    return 2 * source.nbytes / _of_copy(source)


def _of_copy(source: jax.Array) -> float:
    copy = jax.jit(lambda x: x + 1).lower(source).compile()
    jax.block_until_ready(copy(source))
    return statistics.median(take_turns([lambda: copy(source)], 0.1)[0])


def floor(arrays: Sequence[Any]) -> float:
    """Seconds in which a launch reads or writes these once."""
    return launch() + float(sum(x.nbytes for x in arrays)) / copy_rate()
