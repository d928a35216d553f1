"""Which rows there are, in which order, and which of them are too large for this machine."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from lapax import _sides, check
from lapax._bench import goals
from lapax._bench.functions import FUNCTIONS, Function
from lapax._bench.rows import Row
from lapax._checks import CHECKS
from lapax._checks.equations import Array, Size
from lapax._install import installed
from lapax._lowering import numpy_dtype
from lapax._table import targets

SCALARS = ("f32", "f64", "c64", "c128")

SIZES = (
    *((n, 1) for n in (1, 2, 3, 4, 8, 16, 32, 64, 128)),
    (1, 1_000_000),
    (4, 1_000_000),
    (3, 100),
    (32, 30),
)
"""n and batch, besides those that a goal names: work from microseconds to seconds a call."""

QUICK_ORDERS = (4, 16, 32, 64, 256)
"""Of those that a goal names."""

QUICK_SIZES = ((4, 1),)

RECTANGLES = ((4, 10_000), (16, 1_000), (64, 30), (256, 1))
"""n and batch of 4n × n and n × 4n matrices."""

MEMORY_SHARE = 8
"""A row's arrays may take an eighth of the machine's memory: both sides, copies and checks."""

LARGEST_FLOPS = 3e11
"""Real flops of one call: `eig` of 2048, 2.5·10¹¹, takes stock JAX ten seconds; a row is five."""

LARGE_FLOPS = 2e9
"""Rows above it come last, where a run that is out of time leaves them out."""


@dataclass(frozen=True)
class Prepared:
    """The programs of a row, compiled, and what their answers are checked against."""

    args: tuple[Array, ...]
    ours: Any
    theirs: Any
    """None where JAX has nothing to compare with."""
    check: Any
    """The residual ratio of a list of results."""
    idle: bool = False
    """Whether lapax has no part in its side: the other is the same program."""


class Job(Protocol):
    """A row before it is measured."""

    @property
    def row(self) -> Row:
        """What is known of it without a measurement."""

    def prepare(self) -> Prepared:
        """Compiles both sides."""


@dataclass(frozen=True)
class TargetJob:
    """A target in one dtype at one size."""

    job: _sides.Job

    @property
    def row(self) -> Row:
        """Flops of a batch, as the op's check counts them."""
        job = self.job
        cost = 4 if job.variant.dtype.startswith("c") else 1
        size, mode = Size(job.n, job.n), check.modes(job.target.signature)[0]
        known = CHECKS[job.op]
        flops = known.flops(size, known.attrs(size) | mode) * job.batch * cost
        return Row(
            "target", job.target.name, job.op, job.op, job.variant.dtype, job.n, job.n, job.batch,
            flops=flops,
        )  # fmt: skip

    def prepare(self) -> Prepared:
        """Compiles the call of either target."""
        case = self.job.case()
        ours = _sides.program(self.job.target.jax_name, self.job, case)
        return Prepared(case.args, ours, _sides.stock(self.job, case), case.ratio)


@dataclass(frozen=True)
class FunctionJob:
    """A function as users call it, in one dtype at one size."""

    function: Function
    dtype: str
    size: Size

    @property
    def row(self) -> Row:
        """Flops of a batch, as the function counts them."""
        cost = 4 if self.dtype.startswith("c") else 1
        name, size = self.function.name, self.size
        return Row(
            "jax", name, name, self.function.family, self.dtype, size.m, size.n, size.count,
            flops=self.function.flops(size) * size.count * cost,
        )  # fmt: skip

    def prepare(self) -> Prepared:
        """Compiles the function without lapax and with it."""
        dtype, rng = numpy_dtype(self.dtype), np.random.default_rng(0)
        args = self.function.inputs(rng, dtype, self.size)
        theirs = _compiled(self.function, args)
        with installed():
            ours = _compiled(self.function, args)
        return Prepared(
            args, ours, theirs, lambda rets: self._ratio(args, rets), idle=not ours.calls_lapax()
        )

    def _ratio(self, args: tuple[Array, ...], rets: list[Array]) -> float:
        with np.errstate(all="ignore"):
            ratios = self.function.ratios(args, rets)
        # A NaN is no small ratio; np.max keeps it.
        return float(np.max(ratios, initial=0.0))


@dataclass(frozen=True)
class _Program:
    compiled: Any
    operands: tuple[jax.Array, ...]

    def __call__(self) -> Any:
        return self.compiled(*self.operands)

    def answer(self) -> list[Array]:
        return [np.asarray(leaf) for leaf in jax.tree.leaves(self())]

    def calls_lapax(self) -> bool:
        return 'custom_call_target="lapax' in self.compiled.as_text()


def _compiled(function: Function, args: tuple[Array, ...]) -> _Program:
    operands = tuple(map(jnp.asarray, args))
    return _Program(jax.jit(function.call).lower(*operands).compile(), operands)


def plan(only: frozenset[str] = frozenset(), quick: bool = False) -> list[Job]:
    """The rows to measure: functions first, those of the goals before others, the costly last.

    `only`: names of kinds, functions, targets, ops, families and dtypes; a row has to be named in
    each of these that a word is about. ValueError for a word that names nothing.
    """
    jobs = [*_function_jobs(quick), *_target_jobs(quick)]
    filtered = select([job.row for job in jobs], only)
    chosen = [job for job, wanted in zip(jobs, filtered, strict=True) if wanted]
    return sorted(chosen, key=lambda job: job.row.flops > LARGE_FLOPS)


def select(rows: Iterable[Row], only: frozenset[str]) -> list[bool]:
    """Which rows `only` names; ValueError for a word that names nothing in any row."""
    rows = list(rows)
    words = [({row.kind}, {row.name, row.op, row.family}, {row.dtype}) for row in rows]
    known = set().union(*(group for row in words for group in row))
    if only - known:
        unknown, names = ", ".join(sorted(only - known)), ", ".join(sorted(known))
        raise ValueError(f"--only: unknown {unknown}; of {names}")
    groups = [set().union(*(row[i] for row in words)) for i in range(3)]
    return [
        all(not only & group or only & mine for group, mine in zip(groups, row, strict=True))
        for row in words
    ]


def too_large(row: Row, memory: int) -> str:
    """Why a row is not measured on a machine of so many bytes; "" where it is."""
    largest = numpy_dtype(row.dtype).itemsize * row.m * row.n * row.batch
    # About three arrays in and out, for two sides, the copies and the check in double precision.
    needed = 12 * largest
    if needed > memory // MEMORY_SHARE:
        return f"arrays of {needed >> 20} MiB exceed 1/{MEMORY_SHARE} of memory"
    if row.flops > LARGEST_FLOPS:
        return f"{row.flops:.1e} flops exceed {LARGEST_FLOPS:.0e}"
    return ""


def memory() -> int:
    """Bytes of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _function_jobs(quick: bool) -> list[Job]:
    """Point by point over all functions, so that a run out of time has something of each."""
    ranked: list[tuple[int, Job]] = []
    for function in FUNCTIONS:
        for dtype in function.dtypes:
            ranked += enumerate(_jobs_of(function, dtype, quick))
    return [job for _, job in sorted(ranked, key=lambda pair: pair[0])]


def _jobs_of(function: Function, dtype: str, quick: bool) -> list[FunctionJob]:
    if function.points:
        return [_square(function, dtype, n, batch) for n, batch in function.points]
    goal = goals.points(function.family)
    if quick:
        small = [(n, batch) for n, batch in goal if n in QUICK_ORDERS]
        points = [*small, *QUICK_SIZES] if dtype == "f64" else []
        return [_square(function, dtype, n, batch) for n, batch in points]
    rectangles = [
        FunctionJob(function, dtype, Size(m, n, (batch,)))
        for short, batch in RECTANGLES
        for m, n in ((4 * short, short), (short, 4 * short))
    ]
    squares = [_square(function, dtype, n, batch) for n, batch in (*goal, *SIZES)]
    return [*squares, *(rectangles if function.rectangular else [])]


def _square(function: Function, dtype: str, n: int, batch: int) -> FunctionJob:
    return FunctionJob(function, dtype, Size(n, n, (batch,)))


def _target_jobs(quick: bool) -> list[Job]:
    points = goals.points("linear")
    sizes = points[1:2] if quick else (*points, *SIZES)
    return [
        TargetJob(_sides.Job(target, variant, n, batch))
        for target in targets("cpu")
        for dtype in target.dtypes
        if (variant := target.signature.variant(dtype)) is not None
        if not quick or dtype == "f64"
        for n, batch in sizes
    ]
