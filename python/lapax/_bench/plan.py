"""Which rows there are, in which order, and which of them are too large for this machine."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from lapax import _sides, check
from lapax._bench import goals
from lapax._bench import linalg as of_linalg
from lapax._bench.functions import FUNCTIONS, Function
from lapax._bench.rows import Row
from lapax._checks import CHECKS
from lapax._checks.equations import Array, Size
from lapax._install import installed
from lapax._lowering import numpy_dtype
from lapax._supported import jaxlib_waits_for_its_batches
from lapax._table import targets

SCALARS = ("f32", "f64", "c64", "c128")

SIZES = (
    *((n, 1) for n in (1, 4, 16, 64, 128)),
    (1, 1_000_000),
    (4, 1_000_000),
    (3, 100),
    (32, 30),
)
"""n and batch, besides those that a goal names: work from microseconds to seconds a call."""

LOOPED = (1, 2, 3, 4, 8, 16, 32)
"""n of single matrices in a loop inside one program."""

LOOP_CALLS, LEAST_CALLS = 4000, 100
"""Such calls of order 1, which take 0.2 us each; fewer of larger orders, but so many at least."""

TARGET_SIZES = ((4, 10_000), (32, 1_000), (128, 30), (512, 1))
"""n and batch of the rows of targets, which functions call at all sizes."""

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
    calls: int = 1
    """How often either program calls what the row is about."""


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
            self.function.kind, name, name, self.function.family, self.dtype, size.m, size.n,
            size.count, flops=self.function.flops(size) * size.count * cost,
        )  # fmt: skip

    def prepare(self) -> Prepared:
        """Compiles the function without lapax and with it."""
        dtype, rng = numpy_dtype(self.dtype), np.random.default_rng(0)
        args = self.function.inputs(rng, dtype, self.size)
        theirs = self._theirs(args)
        with installed():
            ours = compiled(self.function, args)
        return Prepared(
            args,
            ours,
            theirs,
            lambda rets: self._ratio(args, rets),
            idle=self.function.kind != "linalg" and not ours.calls_lapax(),
        )

    def _theirs(self, args: tuple[Array, ...]) -> _Program | None:
        function = self.function
        if function.kind == "linalg":
            if function.today is None or self.size.n > function.today_most:
                return None
            function = dataclasses.replace(function, call=function.today)
        return compiled(function, args)

    def _ratio(self, args: tuple[Array, ...], rets: list[Array]) -> float:
        with np.errstate(all="ignore"):
            ratios = self.function.ratios(args, rets)
        # A NaN is no small ratio; np.max keeps it.
        return float(np.max(ratios, initial=0.0))


@dataclass(frozen=True)
class LoopJob(FunctionJob):
    """A function of a single matrix, called over and over inside one program.

    A call from Python takes 5 us and more, of which a kernel of small order is a tenth; the loop
    itself takes a few tenths of a microsecond a call.
    """

    @property
    def row(self) -> Row:
        """That of one call."""
        return dataclasses.replace(super().row, kind="loop")

    def prepare(self) -> Prepared:
        """Compiles the loop without lapax and with it."""
        calls = max(LOOP_CALLS // self.size.n, LEAST_CALLS)
        loop = dataclasses.replace(self.function, call=_loop(self.function.call, calls))
        prepared = FunctionJob(loop, self.dtype, self.size).prepare()
        return dataclasses.replace(prepared, calls=calls)


def _loop(call: Callable[..., Any], calls: int) -> Callable[..., Any]:
    """The results of the last of so many calls, each of which waits for the one before."""

    def program(*args: jax.Array) -> Any:
        def again(_: jax.Array, carry: tuple[tuple[jax.Array, ...], Any]) -> Any:
            (first, *others), before = carry
            # It is 1, which the compiler cannot know; a determinant may be 1e30 and more.
            numbers = [x.ravel()[0].real for x in jax.tree.leaves(before) if x.dtype.kind in "fc"]
            one = 1 + jnp.clip(sum(numbers), -1, 1) * 1e-30
            args = (first * one.astype(first.real.dtype), *others)
            return args, call(*args)

        results = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(call, *args))
        return jax.lax.fori_loop(0, calls, again, (args, results))[1]

    return program


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


def compiled(function: Function, args: tuple[Array, ...]) -> _Program:
    operands = tuple(map(jnp.asarray, args))
    return _Program(jax.jit(function.call).lower(*operands).compile(), operands)


def plan(only: frozenset[str] = frozenset(), quick: bool = False) -> list[Job]:
    """The rows to measure: functions first, those of the goals before others, the costly last.

    `only`: names of kinds, functions, targets, ops, families and dtypes; a row has to be named in
    each of these that a word is about. ValueError for a word that names nothing.
    """
    jobs = [*_function_jobs(quick), *_linalg_jobs(quick), *_target_jobs(quick)]
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


def never_returns(row: Row) -> str:
    """Why stock JAX's side of a row may wait for ever; "" where it does not."""
    side_by_side = row.name == "grad_solve_3x3" or row.condition == "concurrent"
    jaxlib = metadata.version("jaxlib")
    if side_by_side and jaxlib_waits_for_its_batches(jaxlib):
        return f"calls of jaxlib {jaxlib} that run side by side can wait for each other for ever"
    return ""


def memory() -> int:
    """Bytes of this machine."""
    if not hasattr(os, "sysconf"):  # Windows does not say: as much as every machine has.
        return 8 * 2**30
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
    loops = [LoopJob(function, dtype, Size(n, n, (1,))) for n in LOOPED]
    return [*squares, *loops, *(rectangles if function.rectangular else [])]


def _linalg_jobs(quick: bool) -> list[Job]:
    return [
        _square(function, dtype, n, batch)
        for function in of_linalg.FUNCTIONS
        for dtype in function.dtypes
        for n, batch in (function.points[:1] if quick else function.points)
    ]


def _square(function: Function, dtype: str, n: int, batch: int) -> FunctionJob:
    return FunctionJob(function, dtype, Size(function.rows or n, n, (batch,)))


def _target_jobs(quick: bool) -> list[Job]:
    sizes = TARGET_SIZES[:1] if quick else TARGET_SIZES
    return [
        TargetJob(_sides.Job(target, variant, n, batch))
        for target in targets("cpu")
        for dtype in target.dtypes
        if (variant := target.signature.variant(dtype)) is not None
        if not quick or dtype == "f64"
        for n, batch in sizes
    ]
