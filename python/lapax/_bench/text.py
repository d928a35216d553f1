"""What the benchmark prints: lines of rows, means, goals, and a progress bar."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Iterator, Sequence

from lapax import check
from lapax._bench.goals import Reached
from lapax._bench.rows import NOISY, Row, geometric_mean

BAR = 24
"""Characters of the progress bar."""

HEAD = (
    f"{'name':<30}{'dtype':<6}{'m×n':>10}{'batch':>9}{'lapax':>11}{'stock':>11}{'ratio':>8}"
    f"{'spread':>8}{'floor':>11}{'by':>6}{'Gflop/s':>9}{'residual':>10}"
)


def head(row: Row) -> str:
    """What the row is about."""
    condition = "" if row.condition == "quiet" else f" {row.condition}"
    shape = f"{row.m}×{row.n}"
    return f"{row.name:<30}{row.dtype:<6}{shape:>10}{row.batch:>9}{condition}"


def line(row: Row) -> str:
    """The row as a line of the table."""
    if row.skipped:
        return f"{head(row)}  skipped: {row.skipped}"
    if row.failed:
        return f"{head(row)}  FAILED: wrong answer of {row.failed}, limit {check.LIMIT:g}"
    ratio = "-" if math.isnan(row.ratio) else f"{row.ratio:.2f}"
    start = f"{head(row)}{amount(row, row.ours):>11}{amount(row, row.theirs):>11}{ratio:>8}"
    if row.condition in ("memory", "compile"):
        return start
    return (
        f"{start}"
        f"{row.spread:>8.0%}{duration(row.floor):>11}{row.ruled_by:>6}"
        f"{row.flops / row.ours / 1e9:>9.2f}{row.residual:>10.2g}"
        + ("" if math.isnan(row.mkl) else f"  MKL {duration(row.mkl)}")
        + ("" if math.isnan(row.lapack) else f"  LAPACK {duration(row.lapack)}")
        + ("" if math.isnan(row.scipy) else f"  SciPy {duration(row.scipy)}")
    )


def amount(row: Row, value: float) -> str:
    """Seconds of a row, or its bytes."""
    if row.condition == "memory" and not math.isnan(value):
        return f"{value / 2**20:.1f} MiB"
    return duration(value)


def duration(seconds: float) -> str:
    """With a unit that suits it; "-" for NaN."""
    if math.isnan(seconds):
        return "-"
    if seconds < 1e-6:
        return f"{seconds * 1e9:.0f} ns"
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} us"


def skipped(row: Row, why: str) -> Row:
    """The row without a measurement."""
    return dataclasses.replace(row, skipped=why)


def summary(rows: Sequence[Row]) -> Iterator[str]:
    """The geometric mean of each function's and op's ratios, without the disturbed rows."""
    for key in dict.fromkeys((row.kind, row.op, row.condition) for row in rows):
        kind, name, condition = key
        name += "" if condition == "quiet" else f" ({condition})"
        measured = [
            row for row in rows if (row.kind, row.op, row.condition) == key and row.ratio > 0
        ]
        quiet = [row.ratio for row in measured if row.quiet]
        out = len(measured) - len(quiet)
        left_out = f", {out} left out: spread over {NOISY:.0%}, is the machine busy?" if out else ""
        if quiet:
            mean = geometric_mean(quiet)
            yield f"{kind} {name}: geometric mean of {len(quiet)} ratios {mean:.2f}{left_out}"
        elif measured:
            yield f"{kind} {name}: no geometric mean{left_out}"
    skips = sum(bool(row.skipped) for row in rows)
    if skips:
        yield f"{skips} of {len(rows)} rows skipped, each with its reason above"


def goals(reached: Sequence[Reached]) -> Iterator[str]:
    """Each goal beside what was reached."""
    for one in reached:
        mark = "met" if one.met else "MISSED" if one.rows else "not measured"
        left_out = f", {one.left_out} left out" if one.left_out else ""
        yield (
            f"goal {one.family:<15}{one.sizes:<17}{one.dtypes:<9}"
            f"{one.mean:7.2f} of {one.goal:4g}  {mark} "
            f"(at the floor {one.at_floor:.2f}; {one.rows} rows{left_out})"
        )


def progress(done: int, total: int, what: str) -> None:
    """A bar on stderr that the next call overwrites; a line per hundred rows without a terminal."""
    filled = BAR * done // max(total, 1)
    bar = f"[{'#' * filled}{'.' * (BAR - filled)}] {done}/{total} {what}"
    if sys.stderr.isatty():
        print(f"\r\x1b[K{bar if what else ''}", end="", file=sys.stderr, flush=True)
    elif what and done % 100 == 0:
        print(bar, file=sys.stderr, flush=True)
