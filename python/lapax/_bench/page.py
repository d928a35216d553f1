"""docs/performance.md and performance-linalg.md, for users, from measured rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from lapax._bench import goals, report
from lapax._bench.goals import Reached
from lapax._bench.report import Mean, mean_and_least, pipes, ratio
from lapax._bench.rows import Row

TEMPLATE = Path(__file__).with_name("performance.template")
"""What the page says besides figures, with a line `<!-- name -->` where each table stands."""
LINALG = TEMPLATE.with_name("performance-linalg.template")

FUNCTIONS = {
    "linear": "`lu`, `cholesky`, `solve`, `inv`, `solve_triangular`",
    "qr": "`qr`",
    "spectral": "`eigh`, `svd`",
    "nonsymmetric": "`eig`, `eigvals`, `schur`, `hessenberg`",
    "values": "`eigvalsh`, `svdvals`",
    "tridiagonal": "`tridiagonal_solve`",
}
"""A family by its functions."""

CONDITIONS = {
    "neighbour": "beside a busy process",
    "contended": "beside one per core",
    "concurrent": "from four threads",
    "plain": "in a plain loop",
    "compile": "compiling",
    "memory": "memory",
}
"""The heads of columns; those of `threads=…` say how many cores."""


def markdown(rows: Sequence[Row], machine: Mapping[str, str], source: str) -> str:
    """The page from the rows in the file `source`."""
    return text(
        source,
        goals.reached(rows),
        list(report.means(rows)),
        report.slower(rows),
        machine,
    )


def text(
    source: str,
    reached: Sequence[Reached],
    means: Sequence[Mean],
    slower: str,
    machine: Mapping[str, str],
) -> str:
    """The template with its tables."""
    tables = {
        "sizes": sizes(reached),
        "functions": _functions(means),
        "conditions": _conditions(means),
        "targets": _targets(means),
        "slower": slower,
        "machine": _list(machine),
    }
    head = f"<!-- python -m lapax bench --markdown {source} > docs/performance.md -->\n\n"
    return head + _filled(TEMPLATE, tables)


def linalg(rows: Sequence[Row], machine: Mapping[str, str], source: str) -> str:
    """docs/performance-linalg.md from the rows in the file `source`."""
    quiet = [row for row in rows if (row.kind, row.condition) == ("linalg", "quiet") and row.quiet]
    lines = []
    for name in dict.fromkeys(row.name for row in quiet):
        batches = [row for row in quiet if row.name == name and row.batch > 1]
        single = [row for row in quiet if row.name == name and row.batch == 1]
        cells = [
            *mean_and_least(row.ratio for row in batches),
            *mean_and_least(row.to_scipy for row in batches),
            *mean_and_least(row.ratio for row in single),
            *mean_and_least(row.to_scipy for row in single),
        ]
        lines.append((f"`{name}`", str(len(batches) + len(single)), *map(ratio, cells)))
    pairs = ((of, other) for of in ("batches", "single") for other in ("JAX", "SciPy"))
    columns = [it for of, other in pairs for it in (f"{of}: {other}", "smallest")]
    tables = {"functions": pipes(("function", "rows", *columns), lines), "machine": _list(machine)}
    head = f"<!-- python -m lapax bench --linalg {source} > docs/performance-linalg.md -->\n\n"
    return head + _filled(LINALG, tables)


def _list(machine: Mapping[str, str]) -> str:
    return "".join(f"- {name}: {value}\n" for name, value in machine.items())


def _filled(template: Path, tables: Mapping[str, str]) -> str:
    page = template.read_text(encoding="utf-8")
    for name, table in tables.items():
        page = page.replace(f"<!-- {name} -->\n", table)
    return page


def sizes(reached: Iterable[Reached]) -> str:
    """A line for each family and pair of dtypes, a column for each class of sizes."""
    found = {(one.family, one.dtypes, one.sizes): one for one in reached if one.rows}
    columns = [*goals.CLASSES, "beside MKL"]
    lines = []
    for family, functions in FUNCTIONS.items():
        for dtypes in ("f32 f64", "c64 c128"):
            cells = [found.get((family, dtypes, column)) for column in columns]
            if any(cells):
                shown = (f"{one.mean:.1f}" if one else "-" for one in cells)
                lines.append((functions, dtypes, *shown))
    return pipes(("functions", "dtypes", *columns), lines)


def _functions(means: Iterable[Mean]) -> str:
    found = {(one.kind, one.name): one for one in means if one.condition == "quiet"}
    columns = (
        "function", "rows", "mean", "smallest", "in a loop: mean", "smallest", "beside MKL: mean",
        "smallest",
    )  # fmt: skip
    lines = []
    for (kind, name), one in found.items():
        if kind == "jax":
            loop = found.get(("loop", name))
            figures = (one.ratio, one.least, *((loop.ratio, loop.least) if loop else ()))
            cells = [*map(ratio, figures), *([] if loop else ["-", "-"])]
            besides = (ratio(one.mkl), ratio(one.mkl_least))
            lines.append((f"`{name}`", str(one.rows), *cells, *besides))
    return pipes(columns, lines)


def _conditions(means: Iterable[Mean]) -> str:
    found = {(one.condition, one.name): one for one in means if one.condition != "quiet"}
    columns = dict.fromkeys(condition for condition, _ in found)
    lines = []
    for name in dict.fromkeys(name for _, name in found):
        cells = (found.get((column, name)) for column in columns)
        lines.append((f"`{name}`", *(ratio(one.ratio) if one else "-" for one in cells)))
    return pipes(("function", *map(_condition, columns)), lines)


def _condition(name: str) -> str:
    cores = name.removeprefix("threads=")
    if cores == name:
        return CONDITIONS[name]
    return f"{cores} core" if cores == "1" else f"{cores} cores"


def _targets(means: Iterable[Mean]) -> str:
    lines: Iterator[Sequence[str]] = (
        (f"`{one.name}`", str(one.rows), ratio(one.ratio), ratio(one.least))
        for one in means
        if (one.kind, one.condition) == ("target", "quiet")
    )
    return pipes(("op", "rows", "mean", "smallest"), lines)
