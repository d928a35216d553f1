"""Chosen rows on a busy machine, from several threads, on one core and on all, in a plain loop;
what compiling them takes, and their memory.

What has to be set before JAX starts its threads, and what counts memory, runs in a child process
(`python -c` of CHILD), which prints its row as JSON.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import numpy as np

from lapax._bench import machine, measure
from lapax._bench.functions import FUNCTIONS
from lapax._bench.measure import Program
from lapax._bench.plan import FunctionJob, never_returns, plan, select
from lapax._bench.rows import Row, spread
from lapax._checks.equations import Size
from lapax._install import installed
from lapax._lowering import numpy_dtype

CONDITIONS = {
    "neighbour": "beside one busy process",
    "contended": "beside a busy process per core",
    "concurrent": "called by four Python threads at once",
    "threads": "on one core and on all, in processes of their own",
    "plain": "in a loop without rests, on the default allocator, each side in its own process",
    "compile": "for the time from a new shape to a program, each side in its own process",
    "memory": "for the memory that a call adds, in processes of their own",
}

BUSY = {"neighbour": 1, "contended": machine.cores()}
"""How many processes keep the machine busy under these."""

OF_LINUX = {"threads", "memory"}
"""Elsewhere a process cannot be kept to some cores, nor its memory be asked for."""

CHOSEN = ("cholesky", "lu_factor", "solve", "inv", "qr", "eigh", "svd")
POINTS = ((4, 10_000), (32, 1_000), (256, 1))
"""n and batch: lanes, the largest order in lanes, and one matrix over all cores."""

SIDES = ("lapax", "stock")

CALLERS = 4
"""Python threads of a concurrent row."""

TURNS = 3
"""Processes of each side, in turns: a row has the median of their times."""

SHAPES = 4
"""Orders, one after another, that a function is compiled for before the median is taken: what the
first costs besides, such as imports, comes before."""

CHILD_SECONDS = 300
"""How long a child may take, most of it importing and compiling."""

RETURN_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "131072"}
"""glibc then returns every freed array to the system, so that a call's own arrays are counted."""

CHILD = """
import os, sys
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(sys.argv[1])])
from lapax._bench import conditions
conditions.child(*sys.argv[2:])
"""


def measured(wanted: Sequence[str], only: frozenset[str], seconds: float) -> Iterator[Row]:
    """The chosen rows that `only` names, under each condition wanted."""
    jobs = _jobs(only)
    for condition in wanted:
        if condition in OF_LINUX and sys.platform != "linux":
            for job in jobs:
                yield dataclasses.replace(job.row, condition=condition, skipped="Linux counts that")
        elif condition in BUSY:
            with _busy(BUSY[condition]):
                rows = [measure.measured(job, seconds) for job in jobs]
            yield from (dataclasses.replace(row, condition=condition) for row in rows)
        elif condition == "concurrent":
            with ThreadPoolExecutor(CALLERS) as pool:
                for job in jobs:
                    row = dataclasses.replace(job.row, condition=condition)
                    if why := never_returns(row):
                        yield dataclasses.replace(row, skipped=why)
                        continue
                    row = measure.measured(job, seconds, lambda side: _callers(pool, side))
                    yield _of_all_callers(row)
        elif condition == "threads":
            for cores in sorted({1, machine.cores()}):
                for job in jobs:
                    yield _timed_on(cores, job, seconds)
        elif condition == "memory":
            yield from map(_memory, jobs)
        else:
            for job in jobs:
                yield _by_sides(condition, job, seconds)


def child(name: str, dtype: str, n: str, batch: str, what: str) -> None:
    """Prints the times of a chosen row, `what` being seconds, or as `what` says: "memory lapax" the
    bytes that lapax adds, "plain stock 0.3" seconds of a call of stock JAX's, "compile lapax" those
    of compiling."""
    job = _job(name, dtype, int(n), int(batch))
    kind, *rest = what.split()
    with jax.enable_x64(True):
        jax.jit(jax.numpy.linalg.cholesky).lower(np.eye(2, dtype=np.float32))
        if kind == "memory":
            print(json.dumps(_added_bytes(job, *rest)))
        elif kind == "plain":
            print(json.dumps(_in_a_loop(job, rest[0], float(rest[1]))))
        elif kind == "compile":
            print(json.dumps(_compiling(job, *rest)))
        else:
            print(json.dumps(dataclasses.asdict(measure.measured(job, float(what)))))


def _jobs(only: frozenset[str]) -> list[FunctionJob]:
    jobs = [_job(name, "f64", n, batch) for name in CHOSEN for n, batch in POINTS]
    # A word may name a row that is not among the chosen.
    rows = [job.row for job in (*jobs, *plan())]
    wanted = select(rows, only)[: len(jobs)]
    return [job for job, chosen in zip(jobs, wanted, strict=True) if chosen]


def _job(name: str, dtype: str, n: int, batch: int) -> FunctionJob:
    (function,) = (function for function in FUNCTIONS if function.name == name)
    return FunctionJob(function, dtype, Size(n, n, (batch,)))


@contextlib.contextmanager
def _busy(count: int) -> Iterator[None]:
    """Processes that compute all the time."""
    command = [sys.executable, "-S", "-c", "while True: pass"]
    processes = [subprocess.Popen(command) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _callers(pool: ThreadPoolExecutor, side: Program) -> Program:
    """All threads call once."""

    def call(_: int) -> None:
        jax.block_until_ready(side())

    return lambda: list(pool.map(call, range(CALLERS)))


class _ChildError(Exception):
    """Why a child printed nothing."""


def _of_all_callers(row: Row) -> Row:
    """Times are those of all calls together, so are the floor and the flops."""
    work = {name: CALLERS * getattr(row, name) for name in ("copy", "compute", "flops")}
    return dataclasses.replace(row, condition="concurrent", **work)


def _timed_on(cores: int, job: FunctionJob, seconds: float) -> Row:
    condition = f"threads={cores}"
    try:
        found = _in_child(cores, job, str(seconds))
    except _ChildError as error:
        return dataclasses.replace(job.row, condition=condition, skipped=str(error))
    return Row(**found | {"condition": condition})


def _memory(job: FunctionJob) -> Row:
    cores, row = machine.cores(), dataclasses.replace(job.row, condition="memory")
    try:
        ours, theirs = (_in_child(cores, job, f"memory {side}") for side in SIDES)
    except _ChildError as error:
        return dataclasses.replace(row, skipped=str(error))
    failed = measure.wrong([ours["residual"], theirs["residual"]])
    row = dataclasses.replace(row, residual=ours["residual"], failed=failed)
    return row if failed else dataclasses.replace(row, ours=ours["bytes"], theirs=theirs["bytes"])


def _by_sides(condition: str, job: FunctionJob, seconds: float) -> Row:
    """Both sides in turns, each time in a process of its own."""
    cores, row = machine.cores(), dataclasses.replace(job.row, condition=condition)
    found: dict[str, list[dict[str, Any]]] = {side: [] for side in SIDES}
    try:
        for _ in range(TURNS):
            for side, results in found.items():
                results.append(_in_child(cores, job, f"{condition} {side} {seconds}"))
    except _ChildError as error:
        return dataclasses.replace(row, skipped=str(error))
    residuals = [max(turn["residual"] for turn in results) for results in found.values()]
    row = dataclasses.replace(row, residual=residuals[0], failed=measure.wrong(residuals))
    if row.failed:
        return row
    ours, theirs = ([turn["seconds"] for turn in results] for results in found.values())
    return dataclasses.replace(
        row,
        ours=statistics.median(ours),
        theirs=statistics.median(theirs),
        spread=max(map(spread, (ours, theirs))),
    )


def _in_a_loop(job: FunctionJob, who: str, seconds: float) -> dict[str, float]:
    """The median of the times of calls, one right after another."""
    prepared = job.prepare()
    side = prepared.ours if who == "lapax" else prepared.theirs
    residual = prepared.check(side.answer())
    times: list[float] = []
    last = time.perf_counter() + seconds
    while time.perf_counter() < last or len(times) < TURNS:
        start = time.perf_counter()
        jax.block_until_ready(side())
        times.append(time.perf_counter() - start)
    return {"seconds": statistics.median(times), "residual": residual}


def _compiling(job: FunctionJob, who: str, *_: str) -> dict[str, float]:
    """The median of the times for shapes that are new, from tracing on."""
    times, residual = [], math.nan
    with contextlib.nullcontext() if who == "stock" else installed():
        for order in range(job.size.n, job.size.n + 1 + SHAPES):
            size = Size(order, order, job.size.batch)
            args = job.function.inputs(np.random.default_rng(0), numpy_dtype(job.dtype), size)
            start = time.perf_counter()
            program = jax.jit(job.function.call).lower(*args).compile()
            times.append(time.perf_counter() - start)
            if order == job.size.n:
                answer = [np.asarray(leaf) for leaf in jax.tree.leaves(program(*args))]
                residual = float(np.max(job.function.ratios(args, answer), initial=0.0))
    return {"seconds": statistics.median(times[1:]), "residual": residual}


def _in_child(cores: int, job: FunctionJob, what: str) -> dict[str, Any]:
    row = job.row
    words = [str(cores), row.name, row.dtype, str(row.n), str(row.batch), what]
    command = [sys.executable, "-c", CHILD, *words]
    environment = os.environ | (RETURN_MEMORY if what.startswith("memory") else {})
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=CHILD_SECONDS, env=environment
        )
    except subprocess.TimeoutExpired as error:
        raise _ChildError(f"the child took more than {CHILD_SECONDS} s") from error
    if done.returncode:
        raise _ChildError(f"the child failed: {' '.join(done.stderr.split()[-12:])}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _added_bytes(job: FunctionJob, who: str) -> dict[str, float]:
    """How far above its operands a first call of one side raises the process's memory.

    Linux counts: writing 5 to clear_refs sets the high-water mark VmHWM to what is used now. Code
    that is read in from a library's file when it is first run, RssFile, is not the call's own.
    """
    prepared = job.prepare()
    side = prepared.ours if who == "lapax" else prepared.theirs
    Path("/proc/self/clear_refs").write_text("5")
    before, code_before = _kept("VmHWM", "RssFile")
    rets = jax.block_until_ready(side())
    after, code_after = _kept("VmHWM", "RssFile")
    added = after - before - (code_after - code_before)
    answer = [np.asarray(leaf) for leaf in jax.tree.leaves(rets)]
    return {"bytes": max(added, os.sysconf("SC_PAGE_SIZE")), "residual": prepared.check(answer)}


def _kept(*names: str) -> list[int]:
    """Bytes, of those that Linux counts for this process by these names."""
    lines = Path("/proc/self/status").read_text().splitlines()
    counts = dict(line.split(":", 1) for line in lines)
    return [1024 * int(counts[name].split()[0]) for name in names]
