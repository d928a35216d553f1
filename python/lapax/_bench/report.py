"""Reports of measured rows: one self-contained HTML page, and tables in Markdown."""

from __future__ import annotations

import base64
import html as escape
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lapax._bench import goals, text
from lapax._bench.rows import Row, geometric_mean

GOAL_COLUMNS = (
    "family", "sizes", "dtypes", "reached", "goal", "", "at the floor", "rows", "left out",
)  # fmt: skip
FAMILY_COLUMNS = (
    "kind", "name", "condition", "rows", "ratio", "smallest", "time / floor", "MKL / lapax",
    "smallest", "LAPACK / lapax", "smallest", "SciPy / lapax", "smallest",
)  # fmt: skip
SLOWER_COLUMNS = (
    "kind", "name", "dtype", "m × n", "batch", "condition", "lapax", "stock", "MKL", "floor",
    "stock / lapax", "MKL / lapax",
)  # fmt: skip
ROW_COLUMNS = (
    "kind", "name", "dtype", "m", "n", "batch", "condition", "lapax", "stock", "ratio", "MKL",
    "LAPACK", "SciPy", "spread", "floor", "by", "residual", "",
)  # fmt: skip

NOISE, MKL_LEAST = 0.95, 0.8
"""Ratios to stock JAX and to MKL below which a row is listed as one in which these are faster."""

STYLE = """
body { font: 14px system-ui, sans-serif; margin: 2em; }
table { border-collapse: collapse; margin: 1em 0; }
th, td { border: 1px solid #ccc; padding: 2px 8px; text-align: right; }
img { max-width: 48%; }
"""


def html(rows: Sequence[Row], machine: Mapping[str, str], images: Mapping[str, bytes]) -> str:
    """The page; `images` are PNGs by name."""
    about = "".join(f"<li>{_text(name)}: {_text(value)}</li>" for name, value in machine.items())
    pictures = "".join(
        f'<img alt="{_text(name)}" src="data:image/png;base64,{base64.b64encode(png).decode()}"/>'
        for name, png in images.items()
    )
    return (
        "<!DOCTYPE html>\n"
        f'<html lang="en"><head><meta charset="utf-8"/><title>lapax bench</title>'
        f"<style>{STYLE}</style></head><body><h1>lapax beside stock JAX</h1><ul>{about}</ul>"
        f"<h2>Goals</h2>{_table(GOAL_COLUMNS, _goals(rows))}"
        f"<h2>Functions and ops</h2>{_table(FAMILY_COLUMNS, _families(rows))}"
        f"<h2>Charts</h2><div>{pictures}</div>"
        f"<h2>Rows</h2>{_table(ROW_COLUMNS, map(_cells, rows))}</body></html>\n"
    )


def notes(rows: Sequence[Row]) -> str:
    """The tables of docs/performance-notes.md."""
    return (
        f"## Goals\n\n{pipes(GOAL_COLUMNS, _goals(rows))}\n"
        f"## Functions and ops\n\nGeometric means; the time over the floor is a median.\n\n"
        f"{pipes(FAMILY_COLUMNS, _families(rows))}"
    )


@dataclass(frozen=True)
class Mean:
    """What the undisturbed rows of a function or an op are in one condition; NaN is unknown."""

    kind: str
    name: str
    condition: str
    rows: int
    ratio: float
    """The geometric mean of stock JAX's time over lapax's, and the smallest one."""
    least: float
    floors: float
    """The median of lapax's time over the floor."""
    mkl: float
    mkl_least: float
    lapack: float
    lapack_least: float
    scipy: float
    scipy_least: float


def means(rows: Sequence[Row]) -> Iterator[Mean]:
    """One for each kind, function or op, and condition that has undisturbed rows."""
    for key in dict.fromkeys((row.kind, row.op, row.condition) for row in rows):
        quiet = [row for row in rows if (row.kind, row.op, row.condition) == key and row.quiet]
        floors = [row.ours / row.floor for row in quiet if row.floor > 0]
        if quiet:
            yield Mean(
                *key,
                len(quiet),
                *mean_and_least(row.ratio for row in quiet),
                statistics.median(floors) if floors else math.nan,
                *mean_and_least(row.to_mkl for row in quiet),
                *mean_and_least(row.to_lapack for row in quiet),
                *mean_and_least(row.to_scipy for row in quiet),
            )


def slower(rows: Sequence[Row]) -> str:
    """How many rows are below 1, and those that are below what noise explains."""
    quiet = [row for row in rows if row.quiet and row.condition not in ("memory", "compile")]
    stock = [row for row in quiet if row.ratio < 1]
    besides = sorted((row for row in quiet if row.to_mkl < MKL_LEAST), key=lambda row: row.to_mkl)
    shown = sorted((row for row in stock if row.ratio < NOISE), key=lambda row: row.ratio)
    others = [row for row in besides if row.ratio >= NOISE]
    return (
        f"Stock JAX is faster in {len(stock)} of {len(quiet)} rows, with a ratio below {NOISE:g} "
        f"in {len(shown)}, and MKL with one below {MKL_LEAST:g} in {len(besides)}. Those:\n\n"
        f"{pipes(SLOWER_COLUMNS, map(_slower_cells, [*shown, *others]))}"
    )


def _slower_cells(row: Row) -> tuple[str, ...]:
    what = (row.kind, row.name, row.dtype, f"{row.m} × {row.n}", str(row.batch), row.condition)
    times = (row.ours, row.theirs, row.mkl, row.floor)
    return (*what, *map(text.duration, times), *map(ratio, (row.ratio, row.to_mkl)))


def _goals(rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    for one in goals.reached(rows):
        mark = "met" if one.met else "missed" if one.rows else "not measured"
        mean, bound = (f"{x:.1f}" if one.rows else "-" for x in (one.mean, one.at_floor))
        figures = (mean, f"{one.goal:g}", mark, bound)
        yield one.family, one.sizes, one.dtypes, *figures, str(one.rows), str(one.left_out)


def _families(rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    for one in means(rows):
        floor = "-" if math.isnan(one.floors) else f"{one.floors:.1f}"
        others = (
            one.mkl, one.mkl_least, one.lapack, one.lapack_least, one.scipy, one.scipy_least,
        )  # fmt: skip
        yield (
            one.kind, one.name, one.condition, str(one.rows),
            ratio(one.ratio), ratio(one.least), floor, *map(ratio, others),
        )  # fmt: skip


def mean_and_least(ratios: Iterable[float]) -> tuple[float, float]:
    known = [it for it in ratios if not math.isnan(it)]
    return geometric_mean(known), min(known, default=math.nan)


def _cells(row: Row) -> tuple[str, ...]:
    what = (row.kind, row.name, row.dtype, str(row.m), str(row.n), str(row.batch), row.condition)
    note = row.skipped or (f"wrong answer of {row.failed}" if row.failed else "")
    if note:
        return (*what, *[""] * (len(ROW_COLUMNS) - len(what) - 1), note)
    floor = text.duration(row.floor)
    times = (text.amount(row, row.ours), text.amount(row, row.theirs))
    others = map(text.duration, (row.mkl, row.lapack, row.scipy))
    rest = (*others, _percent(row.spread), floor, row.ruled_by)
    return (*what, *times, f"{row.ratio:.2f}", *rest, f"{row.residual:.2g}", note)


def ratio(value: float) -> str:
    """Two places; "-" for NaN."""
    return "-" if math.isnan(value) else f"{value:.2f}"


def _percent(share: float) -> str:
    return "-" if math.isnan(share) else f"{share:.0%}"


def _table(columns: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{_text(column)}</th>" for column in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in line) + "</tr>" for line in lines
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def pipes(columns: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    table = [columns, ["---"] * len(columns), *lines]
    return "".join(f"| {' | '.join(line)} |\n" for line in table)


def _text(words: str) -> str:
    return escape.escape(words)
