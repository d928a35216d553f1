"""Measures rows: checks both answers, then lets the sides take turns."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import math
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lapax import check
from lapax._bench.plan import Job, Prepared
from lapax._bench.rows import Row, spread
from lapax._lowering import numpy_dtype

Program = Callable[[], Any]

Other = Callable[[Row, Prepared], Program | None]
"""Makes the program of another column, MKL's or the LAPACK backend's; None where it has none."""

ROUNDS = (5, 1000)
"""The fewest turns of a row, unless they take PATIENCE times its share of time, and the most."""

PATIENCE = 6

UNSETTLED = 0.02
"""Above which a row goes on to PATIENCE times its share: see `settled`."""


def measured(
    job: Job,
    seconds: float,
    around: Callable[[Program], Program] | None = None,
    others: Mapping[str, Other] = MappingProxyType({}),
) -> Row:
    """The row of a job with its times, of about `seconds`, if both answers are right.

    `around` makes of either side the program that is timed; `others` are the columns besides, by
    the names of the row's fields.
    """
    keep_freed_memory()
    row, prepared = job.row, job.prepare()
    if prepared.idle:
        return dataclasses.replace(row, skipped="lapax has no part in it")
    sides = [prepared.ours] if prepared.theirs is None else [prepared.ours, prepared.theirs]
    answers = [side.answer() for side in sides]
    residuals = [prepared.check(answer) for answer in answers]
    row = dataclasses.replace(row, residual=residuals[0], failed=wrong(residuals))
    if row.failed:
        return row
    # What a loop works on stays in the nearest cache, and NumPy's call takes longer than the copy.
    looped = prepared.calls > 1
    copy = copying([] if looped else [*prepared.args, *answers[0]])
    timed = sides if around is None else [around(side) for side in sides]
    made = {name: make(row, prepared) for name, make in others.items()}
    besides = {name: other for name, other in made.items() if other is not None}
    times = take_turns([*timed, *besides.values(), copy], seconds)
    medians = [statistics.median(taken) / prepared.calls for taken in times[:-1]]
    row = dataclasses.replace(
        row,
        ours=medians[0],
        theirs=medians[1] if len(sides) == 2 else math.nan,
        spread=max(map(spread, times[: len(sides)])),
        copy=0.0 if looped else statistics.median(times[-1]),
        compute=row.flops / matmul_rate(_real(prepared, row)),
    )
    columns: dict[str, Any] = dict(zip(besides, medians[len(sides) :], strict=True))
    return dataclasses.replace(row, **columns)


def wrong(residuals: Sequence[float]) -> str:
    """Whose answers are wrong; "" where none is. The second residual is that of stock JAX."""
    named = zip(("lapax", "stock"), residuals, strict=False)
    return ", ".join(f"{who} (residual {r:.3g})" for who, r in named if not r < check.LIMIT)


def copying(sources: Sequence[np.ndarray[Any, Any]]) -> Program:
    """Copies each array once."""
    copies = [np.empty_like(x) for x in sources]

    def copy() -> None:
        for destination, source in zip(copies, sources, strict=True):
            np.copyto(destination, source)

    return copy


@functools.cache
def keep_freed_memory() -> None:
    """Lets glibc keep what this process frees: no side pays for pages that another gave back.

    Otherwise a result of some megabytes takes its pages from the system anew in some calls and in
    others not, which of them depends on what else was freed: `inv` of 10,000 8 x 8 took 550 us and,
    with 1600 page faults, 950; stock JAX's of 1000 32 x 32 9.3 ms with 4000 faults, 6.9 without.
    """
    trim_threshold, map_threshold, all_of_it = -1, -3, 2**30
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(trim_threshold, all_of_it)
        mallopt(map_threshold, all_of_it)


def take_turns(programs: Sequence[Program], seconds: float) -> list[list[float]]:
    """Times of each program: A, B, C, then B, C, A, … for about `seconds`.

    Longer where their medians are not certain yet, whichever of them is the larger one: calls of
    10 us had ratios from 0.75 to 1.3 by five turns, where twenty show 1.0.

    Each turn starts when the threads of the one before are at rest, and runs untimed at first, so
    that no program pays for what another left in the caches, or for a core that has to wake up.
    Another begins each time: where one was always the first, its calls of 20 us took 2 to 20 %
    longer than those of its equal in third place.
    """
    fewest, most = ROUNDS
    times: list[list[float]] = [[] for _ in programs]
    start = time.perf_counter()
    for turn in range(most):
        passed = time.perf_counter() - start
        enough = turn >= fewest and settled(times)
        if turn and passed > (seconds if enough else PATIENCE * seconds):
            break
        for place in range(len(programs)):
            at = (turn + place) % len(programs)
            come_to_rest()
            times[at].append(_warm(programs[at]))
    return times


def settled(times: Sequence[Sequence[float]]) -> bool:
    """Whether the medians are certain to UNSETTLED.

    The interquartile range of so many times, over the root of their number, is about the standard
    error of their median: 0.93 times it where they are normal.
    """
    return all(spread(taken) < UNSETTLED * math.sqrt(len(taken)) for taken in times)


def _warm(run: Program) -> float:
    """The mean time of the calls of a burst, after untimed ones.

    A burst takes 2 ms, and has at least five calls where these take no longer than 20 ms: after
    another program `lu` of 10,000 8 x 8, 13 MB, took 1450, 860, 820, 740, 690 and at last 610 us,
    as its operands and results came back into the last cache.

    A call of more than a second needs no other before it.

    Calls of less than 20 us are warmed up for 20 ms: glibc seems to take that long to come to terms
    with the aligned blocks that XLA asks for, unless a routine takes 32 KB for itself in each call,
    whereupon glibc puts its lists in order. `hessenberg` of 2 x 2, f64, took 8.5 us up to the 30th
    call after jaxlib's, whose xGEHRD does so, 7.2 up to the 1000th and 6.7 from then on; jaxlib's
    own 6.6 from the tenth on.
    """
    burst, calls, patience, short, long = 2e-3, 5, 2e-2, 2e-5, 1.0
    began, count, passed = time.perf_counter(), 0, 0.0
    while count == 0 or passed < (
        burst if count >= calls and passed >= count * short else patience
    ):
        jax.block_until_ready(run())
        count += 1
        passed = time.perf_counter() - began
    if passed > long:
        return passed
    count = min(count, max(calls, math.ceil(count * burst / passed)))
    began = time.perf_counter()
    for _ in range(count):
        jax.block_until_ready(run())
    return (time.perf_counter() - began) / count


def come_to_rest() -> None:
    """Waits until no thread of this process works: OpenBLAS's spin for 90 ms after their work.

    Linux counts the time of a thread that runs by ticks, of 4 ms where they are longest.
    """
    sample, patience = 0.010, 0.3
    start = time.perf_counter()
    while True:
        worked, began = time.process_time(), time.perf_counter()
        time.sleep(sample)
        now = time.perf_counter()
        if time.process_time() - worked < 0.2 * (now - began) or now - start > patience:
            return


@functools.cache
def matmul_rate(dtype: np.dtype[Any]) -> float:
    """Floating-point operations per second of XLA's real matrix product."""
    n = 1024
    a = jnp.asarray(np.random.default_rng(0).standard_normal((n, n)), dtype)
    product = jax.jit(jnp.matmul).lower(a, a).compile()
    product(a, a).block_until_ready()
    return 2 * n**3 / statistics.median(take_turns([lambda: product(a, a)], 0.3)[0])


def _real(prepared: Prepared, row: Row) -> np.dtype[Any]:
    """The real type of the row's arithmetic; integers have no rate of their own: single's."""
    dtype = prepared.args[0].dtype if row.kind == "target" else numpy_dtype(row.dtype)
    return np.dtype(np.finfo(dtype).dtype if np.issubdtype(dtype, np.inexact) else np.float32)
