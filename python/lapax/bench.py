"""`python -m lapax bench`: every CPU target of liblapax timed beside jaxlib's in one process.

A row is a target, a dtype and a size. Both sides are `jax.jit` of the same `jax.ffi.ffi_call` (same
layouts and aliases, another name) and take turns; where jaxlib has no target, JAX's own program for
the primitive is the other side. A row has times only if both answers passed `lapax.check`.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import functools
import math
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lapax import check
from lapax._sides import Job, program, stock
from lapax._table import targets

SIZES = (
    (1, 10_000),
    (3, 10_000),
    (8, 10_000),
    (16, 4_000),
    (32, 1_000),
    (64, 200),
    (128, 30),
    (256, 1),
    (512, 1),
    (1024, 1),
)
"""n and batch: work for a few to some hundred milliseconds a call."""

QUICK_SIZES = ((3, 10_000), (16, 1_000), (64, 100), (256, 1))

NOISY = 0.5
"""Spread above which a row's times say more about other work on the machine than about the row."""

Program = Callable[..., Any]


@dataclass(frozen=True)
class Row:
    """The measurement of one target at one size; times in seconds."""

    target: str
    op: str
    dtype: str
    n: int
    batch: int
    ours: float
    theirs: float
    """NaN where JAX has nothing to compare with."""
    spread: float
    """Interquartile range over median, the larger one of the two sides."""
    floor: float
    """Copying every operand and result once, or the flops at the rate of XLA's matrix product:
    the larger one, both measured here."""
    flops: float
    residual: float
    failed: str = ""
    """Who gave a wrong answer; the times are NaN then."""

    @property
    def ratio(self) -> float:
        """How many times faster lapax is."""
        return self.theirs / self.ours


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table; returns 1 where an answer was wrong, else 0."""
    parser = _parser()
    options = parser.parse_args(argv)
    try:
        jobs = _plan(options.only, options.quick)
    except ValueError as error:
        parser.error(str(error))
    # Stock JAX prepares jaxlib's handlers when it lowers a call of one of them.
    jax.jit(jnp.linalg.cholesky).lower(np.eye(2, dtype=np.float32))
    with jax.default_device(jax.devices("cpu")[0]), jax.enable_x64(True):
        rows = _run(jobs, options.quick)
    for op in dict.fromkeys(row.op for row in rows):
        _summarise(op, [row for row in rows if row.op == op and row.ratio > 0])
    if options.csv:
        _write_csv(options.csv, rows)
    # A row that stock JAX gets wrong has no times, but is no failure of lapax.
    failures = sum(not row.residual < check.LIMIT for row in rows)
    if failures:
        print(f"{failures} of {len(rows)} rows FAILED", file=sys.stderr)
    return 1 if failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lapax bench", description=__doc__)
    parser.add_argument(
        "--only",
        type=lambda text: frozenset(text.split(",")),
        default=frozenset(),
        metavar="getrf,f64",
        help="only these ops, targets and dtypes",
    )
    parser.add_argument("--quick", action="store_true", help="fewer sizes, about two minutes")
    parser.add_argument("--csv", metavar="PATH", help="also write the rows there")
    return parser


# What is measured.


def _plan(only: frozenset[str], quick: bool) -> list[Job]:
    """The rows to measure. Raises ValueError for a word of `only` that names nothing."""
    variants = [(t, v) for t in targets("cpu") for d in t.dtypes if (v := t.signature.variant(d))]
    names = {name for t, _ in variants for name in (t.name, t.signature.op)}
    dtypes = {v.dtype for _, v in variants}
    if only - names - dtypes:
        known = ", ".join(sorted(names | dtypes))
        raise ValueError(f"--only: unknown {', '.join(sorted(only - names - dtypes))}; of {known}")
    return [
        Job(target, variant, n, batch)
        for target, variant in variants
        if not only & names or only & {target.name, target.signature.op}
        if not only & dtypes or variant.dtype in only
        for n, batch in (QUICK_SIZES if quick else SIZES)
    ]


def _run(jobs: list[Job], quick: bool) -> list[Row]:
    seconds = 0.15 if quick else 0.6
    rates = functools.cache(_matmul_rate)
    rows = []
    print(_HEAD, flush=True)
    for number, job in enumerate(jobs, 1):
        where = f"{job.target.name} {job.variant.dtype} n={job.n} batch={job.batch}"
        _progress(f"[{number}/{len(jobs)}] {where}")
        rows.append(_measured(job, rates, seconds))
        _progress("")
        print(_line(rows[-1]), flush=True)
    return rows


def _measured(job: Job, rates: Callable[[np.dtype[Any]], float], seconds: float) -> Row:
    case = job.case()
    sides = {"lapax": program(job.target.jax_name, job, case)}
    other = stock(job, case)
    if other is not None:
        sides["stock"] = other
    answers = {who: side.answer() for who, side in sides.items()}
    residuals = {who: case.ratio(rets) for who, rets in answers.items()}
    wrong = {who: ratio for who, ratio in residuals.items() if not ratio < check.LIMIT}
    failed = ", ".join(f"{who} (residual {ratio:.3g})" for who, ratio in wrong.items())
    sources = [*case.args, *answers["lapax"]]
    copies = [np.empty_like(x) for x in sources]

    def copy() -> None:
        for destination, source in zip(copies, sources, strict=True):
            np.copyto(destination, source)

    # A wrong answer has no time: a single turn of nothing stands for it.
    times = [[math.nan]] * 3 if failed else _take_turns([*sides.values(), copy], seconds)
    medians = [statistics.median(t) for t in times]
    dtype = case.args[0].dtype
    # Integers have no rate of their own to be measured against.
    counted = case.flops and np.issubdtype(dtype, np.inexact)
    real = np.finfo(dtype).dtype if counted else np.dtype(np.float32)
    return Row(
        target=job.target.name,
        op=job.op,
        dtype=job.variant.dtype,
        n=job.n,
        batch=job.batch,
        ours=medians[0],
        theirs=math.nan if other is None else medians[1],
        spread=max(map(_spread, times[: len(sides)])),
        floor=max(medians[-1], case.flops / rates(real)),
        flops=case.flops,
        residual=residuals["lapax"],
        failed=failed,
    )


def _spread(times: Sequence[float]) -> float:
    first, middle, third = np.quantile(times, (0.25, 0.5, 0.75))
    return float((third - first) / middle)


def _take_turns(programs: Sequence[Program], seconds: float) -> list[list[float]]:
    """Times of each program: A, B, C, A, B, C, … for about `seconds`, at least five rounds."""
    times: list[list[float]] = [[] for _ in programs]
    end = time.perf_counter() + seconds
    while len(times[0]) < 5 or (time.perf_counter() < end and len(times[0]) < 1000):
        for run, taken in zip(programs, times, strict=True):
            start = time.perf_counter()
            jax.block_until_ready(run())
            taken.append(time.perf_counter() - start)
    return times


def _matmul_rate(dtype: np.dtype[Any]) -> float:
    """Floating-point operations per second of XLA's real matrix product."""
    n = 1024
    a = jnp.asarray(np.random.default_rng(0).standard_normal((n, n)), dtype)
    product = jax.jit(jnp.matmul).lower(a, a).compile()
    product(a, a).block_until_ready()
    return 2 * n**3 / statistics.median(_take_turns([lambda: product(a, a)], 0.3)[0])


# What is printed.

_HEAD = (
    f"{'target':<28}{'dtype':<6}{'n':>5}{'batch':>7}{'lapax':>11}{'stock':>11}{'ratio':>7}"
    f"{'spread':>8}{'floor':>11}{'Gflop/s':>9}{'residual':>10}"
)


def _line(row: Row) -> str:
    head = f"{row.target:<28}{row.dtype:<6}{row.n:>5}{row.batch:>7}"
    if row.failed:
        return f"{head}  FAILED: wrong answer of {row.failed}, limit {check.LIMIT:g}"
    stock = "-" if math.isnan(row.theirs) else _time(row.theirs)
    ratio = "-" if math.isnan(row.theirs) else f"{row.ratio:.2f}"
    return (
        f"{head}{_time(row.ours):>11}{stock:>11}{ratio:>7}{row.spread:>7.0%} "
        f"{_time(row.floor):>11}{row.flops / row.ours / 1e9:>9.2f}{row.residual:>10.2g}"
    )


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} us"


def _progress(text: str) -> None:
    """One line on stderr that the next call overwrites."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
    elif text:
        print(text, file=sys.stderr, flush=True)


def _summarise(op: str, rows: Sequence[Row]) -> None:
    """The geometric mean of the ratios, without the rows that other work disturbed."""
    quiet = [row.ratio for row in rows if row.spread <= NOISY]
    disturbed = (
        f", {len(rows) - len(quiet)} left out: spread over {NOISY:.0%}, is the machine busy?"
    )
    left_out = disturbed if len(quiet) < len(rows) else ""
    if quiet:
        mean = math.exp(statistics.fmean(map(math.log, quiet)))
        print(f"{op}: geometric mean of {len(quiet)} ratios {mean:.2f}{left_out}")
    elif rows:
        print(f"{op}: no geometric mean{left_out}")


def _write_csv(path: str, rows: Sequence[Row]) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in dataclasses.fields(Row)])
        writer.writeheader()
        writer.writerows(map(dataclasses.asdict, rows))
