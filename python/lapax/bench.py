"""`python -m lapax bench`: lapax timed beside stock JAX in one process.

A `jax` row is a function that users call, compiled once with lapax installed and once without; a
`loop` row is the same called over and over inside one program; a `linalg` row is a function of
lapax.linalg beside the JAX code that people write today; a `target` row is a custom call of
liblapax and jaxlib's of the same contract, or JAX's own program where jaxlib has none. Both sides
take turns, and a row has times only if both answers passed their residual check. The floor is the
larger one of copying operands and results once, and the flops at the rate of XLA's matrix product,
both measured here.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from lapax import check
from lapax._bench import (
    charts,
    conditions,
    goals,
    lapack,
    machine,
    mkl,
    page,
    report,
    scipy_side,
    text,
)
from lapax._bench.measure import Other, Program, measured
from lapax._bench.plan import Job, Prepared, memory, never_returns, plan, too_large
from lapax._bench.rows import Row, Subject, UnavailableError, read_csv, write_csv

MINUTES = 55.0
QUICK_MINUTES = 2.5


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table; returns 1 where an answer of lapax was wrong, else 0."""
    parser = _parser()
    options = parser.parse_args(argv)
    if source := options.markdown or options.linalg or options.notes:
        # The page names no folder of one machine.
        name = source.name if source.is_absolute() else source.as_posix()
        with source.open(newline="", encoding="utf-8") as file:
            rows, about = read_csv(file)
        if options.notes:
            wanted = report.notes(rows)
        else:
            wanted = (page.markdown if options.markdown else page.linalg)(rows, about, name)
        print(wanted, end="")
        return 0
    try:
        jobs = plan(options.only, options.quick)
        _require_rows(jobs, options)
        options.out.mkdir(parents=True, exist_ok=True)
    except ValueError as error:
        parser.error(str(error))
    except OSError as error:
        parser.error(f"--out: {options.out} cannot be made: {error.strerror}")
    if why := machine.busy():
        print(f"the machine is busy ({why}): times are not to be trusted", file=sys.stderr)
    # Stock JAX prepares jaxlib's handlers when it lowers a call of one of them.
    jax.jit(jnp.linalg.cholesky).lower(np.eye(2, dtype=np.float32))
    try:
        earlier = _earlier(options.after) if options.after else []
    except (OSError, ValueError) as error:
        parser.error(f"--after: {error}")
    minutes = options.minutes or (QUICK_MINUTES if options.quick else MINUTES)
    with jax.default_device(jax.devices("cpu")[0]), jax.enable_x64(True):
        before = {row.subject: row for row in earlier}
        seconds, others = 0.08 if options.quick else 0.3, _others(options.other)
        rows = _run(jobs, seconds, 60 * minutes, others, before)
        rows += _under_conditions(options)
    here = {row.subject for row in rows}
    rows += [row for row in earlier if row.subject not in here]
    print("\n".join(text.summary(rows)))
    print("\n".join(text.goals(goals.reached(rows))))
    _write(options.out, rows)
    # A row that stock JAX gets wrong has no times, but is no failure of lapax.
    failures = sum(not row.skipped and not row.residual < check.LIMIT for row in rows)
    if failures:
        print(f"{failures} of {len(rows)} rows FAILED", file=sys.stderr)
    return 1 if failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lapax bench", description=__doc__)
    parser.add_argument(
        "--only",
        type=lambda words: frozenset(words.split(",")),
        default=frozenset(),
        metavar="jax,lu_factor,f64",
        help="only these kinds (jax, loop, target), functions, targets, ops, families and dtypes",
    )
    parser.add_argument("--quick", action="store_true", help="fewer sizes, under three minutes")
    parser.add_argument(
        "--minutes", type=float, help=f"the rows' time; {MINUTES:g}, or {QUICK_MINUTES:g} if quick"
    )
    parser.add_argument(
        "--with",
        dest="other",
        action="append",
        default=[],
        choices=OTHERS,
        help=f"also MKL from PyPI, from n = {mkl.SMALLEST}: it is called in a loop over the batch; "
        "or lapax on the LAPACK library that it was built with; or SciPy beside lapax.linalg; more "
        "than one if given again",
    )
    for name, what in conditions.CONDITIONS.items():
        parser.add_argument(f"--{name}", action="store_true", help=f"also chosen rows {what}")
    parser.add_argument("--all", action="store_true", help="all of these")
    parser.add_argument(
        "--after",
        type=Path,
        metavar="CSV",
        help="only what an earlier run on this machine left out, for want of time or because the "
        "machine was busy; its other rows are taken over",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("out/bench"), help="folder of rows.csv, index.html, *.png"
    )
    parser.add_argument(
        "--markdown", type=Path, metavar="CSV", help="only print docs/performance.md from such rows"
    )
    parser.add_argument(
        "--linalg",
        type=Path,
        metavar="CSV",
        help="only print docs/performance-linalg.md from such rows",
    )
    parser.add_argument(
        "--notes",
        type=Path,
        metavar="CSV",
        help="only print the tables of docs/performance-notes.md",
    )
    return parser


OTHERS: dict[str, Callable[[], Other]] = {
    "mkl": mkl.load,
    "lapack": lapack.load,
    "scipy": scipy_side.load,
}
"""What makes the programs of a column, by its name."""


def _require_rows(jobs: Sequence[Job], options: argparse.Namespace) -> None:
    """Raises ValueError where nothing would be measured, and says what leaves nothing."""
    if jobs or _wanted(options):
        return
    words = ",".join(sorted(options.only))
    count = len(plan(options.only)) if options.quick else 0
    rest = f"; without --quick there are {count}" if count else ""
    raise ValueError(f"no row is all of {words}{rest}")


def _others(names: Sequence[str]) -> dict[str, Other]:
    """The columns that are wanted and can be had; says on stderr why another one cannot."""
    found = {}
    for name in names:
        try:
            found[name] = _or_why_not(OTHERS[name]())
        except UnavailableError as error:
            print(f"--with {name}: {error}", file=sys.stderr)
    return found


def _or_why_not(make: Other) -> Other:
    def maker(row: Row, prepared: Prepared) -> Program | None:
        try:
            return make(row, prepared)
        except UnavailableError as error:
            print(f"{text.head(row)}: {error}", file=sys.stderr)
            return None

    return maker


def _earlier(file: Path) -> list[Row]:
    """The rows of a run on this machine; ValueError where something of it is another."""
    with file.open(newline="", encoding="utf-8") as lines:
        rows, about = read_csv(lines)
    for name, now in machine.about().items():
        if (then := about.get(name)) != now:
            raise ValueError(f"{file} is of {name} {then}, and here it is {now}")
    return rows


def _run(
    jobs: Sequence[Job],
    seconds: float,
    budget: float,
    others: Mapping[str, Other],
    before: Mapping[Subject, Row],
) -> list[Row]:
    rows, limit, end = [], memory(), time.perf_counter() + budget
    print(text.HEAD, flush=True)
    for number, job in enumerate(jobs, 1):
        row = job.row
        known, late = before.get(row.subject), time.perf_counter() > end
        if known and (known.quiet or late):
            rows.append(known)
            continue
        why = too_large(row, limit) or never_returns(row)
        if late:
            why = f"the run's {budget / 60:g} minutes were over"
        text.progress(number - 1, len(jobs), text.head(row))
        rows.append(text.skipped(row, why) if why else measured(job, seconds, others=others))
        text.progress(number, len(jobs), "")
        print(text.line(rows[-1]), flush=True)
    return rows


def _wanted(options: argparse.Namespace) -> list[str]:
    return [name for name in conditions.CONDITIONS if options.all or getattr(options, name)]


def _under_conditions(options: argparse.Namespace) -> list[Row]:
    rows = []
    for row in conditions.measured(_wanted(options), options.only, 0.1 if options.quick else 0.3):
        print(text.line(row), flush=True)
        rows.append(row)
    return rows


def _write(folder: Path, rows: Sequence[Row]) -> None:
    about = machine.about()
    with (folder / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        write_csv(file, rows, about)
    images: dict[str, bytes] = {}
    try:
        images = charts.draw(rows)
    except charts.MissingError as error:
        print(error, file=sys.stderr)
    for name, image in images.items():
        (folder / f"{name}.png").write_bytes(image)
    page = folder / "index.html"
    page.write_text(report.html(rows, about, images), encoding="utf-8")
    print(f"wrote rows.csv, index.html and {len(images)} charts into {folder}", file=sys.stderr)
