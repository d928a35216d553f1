"""The charts of the performance pages and the numbers of the README, all from these pages' tables.

`python docs/site/figures.py` writes docs/images/*.svg (by matplotlib, `pip install 'lapax[bench]'`)
and the README's table. Each picture says in its description what it was drawn from, by which a test
sees whether it is current.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import unescape

ROOT = Path(__file__).resolve().parents[2]
PAGE, GPU, README = "docs/performance.md", "docs/gpu-results.md", "README.md"
IMAGES = "docs/images"
BEGIN, END = "<!-- numbers:begin -->\n", "<!-- numbers:end -->\n"

PALETTE = ("#1f6f8b", "#e07a3f", "#5b8c5a", "#8a5a9e", "#c2a13a", "#7a7a7a")
GREY = "#8c8c8c"
"""Readable on white and on a dark page; the pictures have a white ground of their own."""

SIZES = 5
"""The columns of sizes in a table by size, after the functions and the dtypes."""

Table = list[list[str]]
"""Cells, the head first."""


def table(page: str, heading: str, index: int = 0) -> Table:
    """The table of that index below a heading of a page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    section = re.split(r"^## ", text, flags=re.MULTILINE)
    (found,) = [it for it in section if it.startswith(f"{heading}\n")]
    blocks = re.findall(r"(?:^\|.*\n)+", found, re.MULTILINE)
    lines = [
        [it.strip() for it in line.strip("|").split("|")] for line in blocks[index].split("\n")
    ]
    return [line for line in lines if line != [""] and set(line[0]) != {"-"}]


def plain(words: str) -> str:
    """Without the signs of Markdown."""
    return words.replace("`", "")


def number(cell: str) -> float:
    """NaN where there is none."""
    return math.nan if cell == "-" else float(cell)


def by_size(heading: str, index: int = 0) -> Table:
    """A table by size, only of f32 and f64, without what follows the sizes."""
    head, *lines = table(PAGE, heading, index)
    return [row[: 2 + SIZES] for row in (head, *(it for it in lines if it[1] == "f32 f64"))]


def ratios_on_gpu() -> Table:
    """The ratios in the table of GPUs' times."""
    head, *lines = table(GPU, "Times")
    cells = [[name, *(_bracketed(it) for it in row)] for name, *row in lines]
    return [head, *cells]


def _bracketed(cell: str) -> str:
    found = re.search(r"\(([\d.]+)\)$", cell)
    return found[1] if found else "-"


DATA: dict[str, Callable[[], list[Table]]] = {
    "sizes": lambda: [by_size("By size")],
    "processors": lambda: [
        by_size("By size"), by_size("By processor"), by_size("By processor", 1)
    ],
    "functions": lambda: [table(PAGE, "By function")],
    "cores": lambda: [table(PAGE, "More cores")],
    "gpu": lambda: [ratios_on_gpu()],
}  # fmt: skip
"""What each picture is drawn from."""

PROCESSORS = ("Xeon, AVX-512", "EPYC Zen 5, AVX-512", "EPYC Zen 3, AVX2")


def description(name: str) -> str:
    """The data of a picture as one line."""
    return " / ".join("; ".join(" | ".join(row) for row in it) for it in DATA[name]())


def described(name: str) -> str:
    """What the picture that is there was drawn from."""
    text = (ROOT / IMAGES / f"{name}.svg").read_text(encoding="utf-8")
    found = re.search(r"<dc:description>(.*?)</dc:description>", text, re.DOTALL)
    return unescape(found[1]) if found else ""


def numbers() -> str:
    """The README's table of six numbers."""
    sizes = {row[0]: row for row in by_size("By size")}
    linear = next(row for name, row in sizes.items() if "`lu`" in name)
    spectral = next(row for name, row in sizes.items() if "`eigh`" in name)
    alone = {row[0]: row for row in table(PAGE, "By function")}
    head, *lines = ratios_on_gpu()
    column = head.index("128 × 64")
    (qr,) = [row for row in lines if row[0] == "`qr`"]
    rows = (
        ("`solve`, 86,268 systems of order 3, f32", alone["`solve_3x3`"][2]),
        ("the gradient of these", alone["`grad_solve_3x3`"][2]),
        (f"{spectral[0]}, 10,000 matrices of n = 3 to 8", spectral[2]),
        (f"{linear[0]}, 1,000 matrices of n = 32", linear[4]),
        ("the same, one matrix of n = 256 to 2048", linear[6]),
        ("`qr`, 64 matrices of 193 × 128, f32, on an NVIDIA H200", qr[column]),
    )
    lines = [f"| {what} | **{float(ratio):.3g}** |\n" for what, ratio in rows]
    head = "| two cores of a Xeon with AVX-512 | stock JAX's time / lapax's |\n|---|---|\n"
    return head + "".join(lines)


def with_numbers(readme: str) -> str:
    """The README with this table."""
    before, _, rest = readme.partition(BEGIN)
    return before + BEGIN + numbers() + END + rest.partition(END)[2]


def draw_sizes(figure: Any, tables: Sequence[Table]) -> Any:
    """Bars of all families side by side, size by size."""
    (head, *lines), *_ = tables
    page = figure.Figure(figsize=(9.6, 3.9), layout="constrained")
    axes = page.subplots()
    width = 0.86 / len(lines)
    for i, (row, colour) in enumerate(zip(lines, PALETTE, strict=True)):
        heights = [number(it) for it in row[2:]]
        places = [j + (i - (len(lines) - 1) / 2) * width for j in range(len(heights))]
        axes.bar(places, heights, width * 0.92, color=colour, label=plain(row[0]))
        for place, height in zip(places, heights, strict=True):
            axes.text(place, height * 1.04, f"{height:g}", ha="center", va="bottom", fontsize=7)
    axes.set_xticks(range(SIZES), head[2:])
    axes.set(yscale="log", ylabel="stock JAX's time / lapax's", ylim=(0.9, 45))
    _ratios(axes.yaxis, (1, 2, 5, 10, 20))
    axes.axhline(1, color="black", linewidth=1)
    axes.legend(ncols=2, fontsize=8, frameon=False, loc="upper right")
    return page


def draw_processors(figure: Any, tables: Sequence[Table]) -> Any:
    """A panel for each family, a line for each processor."""
    families = [row[0] for row in tables[0][1:]]
    page = figure.Figure(figsize=(9.6, 5.2), layout="constrained")
    panels = page.subplots(2, 3, sharex=True, sharey=True)
    for axes, family in zip(panels.flat, families, strict=True):
        for label, colour, (_, *lines) in zip(PROCESSORS, PALETTE, tables, strict=False):
            (row,) = [it for it in lines if it[0] == family]
            axes.plot(range(SIZES), [number(it) for it in row[2:]], "o-", color=colour, label=label)
        axes.set_title("\n".join(_halves(plain(family))), fontsize=9)
        axes.axhline(1, color="black", linewidth=1)
        axes.set_yscale("log")
        _ratios(axes.yaxis, (1, 2, 5, 10, 20, 40))
        axes.set_xticks(range(SIZES), [_short(it) for it in tables[0][0][2:]], fontsize=8)
    page.legend(*panels[0, 0].get_legend_handles_labels(), ncols=3, loc="outside lower center")
    page.supylabel("stock JAX's time / lapax's", fontsize=9)
    return page


def draw_functions(figure: Any, tables: Sequence[Table]) -> Any:
    """A line from the smallest ratio to the mean of each function, and that to MKL."""
    (_, *lines), *_ = tables
    page = figure.Figure(figsize=(9.6, 6), layout="constrained")
    axes = page.subplots()
    for i, (_, _, mean, least, _, _, mkl, _) in enumerate(lines):
        axes.plot([number(least), number(mean)], [i, i], "-", color=PALETTE[0], linewidth=3)
        axes.plot(number(mean), i, "o", color=PALETTE[0], label="mean" if i == 0 else None)
        small = "smallest" if i == 0 else None
        axes.plot(number(least), i, "|", color=PALETTE[0], markersize=10, label=small)
        besides = "MKL's time / lapax's, mean" if i == 0 else None
        axes.plot(number(mkl), i, "D", color=PALETTE[1], label=besides)
    axes.set_yticks(range(len(lines)), [plain(row[0]) for row in lines])
    axes.invert_yaxis()
    axes.set(xscale="log", xlabel="stock JAX's time / lapax's")
    _ratios(axes.xaxis, (1, 2, 5, 10, 20, 50))
    axes.axvline(1, color="black", linewidth=1)
    axes.grid(axis="x", alpha=0.3)
    axes.legend(loc="upper right", fontsize=9)
    return page


def draw_cores(figure: Any, tables: Sequence[Table]) -> Any:
    """Times over cores, with stock JAX's on all of them."""
    (head, *lines), *_ = tables
    cores = [int(it.split()[0]) for it in head[1:-1]]
    page = figure.Figure(figsize=(9.6, 4.6), layout="constrained")
    axes = page.subplots()
    for i, row in enumerate(lines):
        colour = f"C{i}"
        times = [number(it) for it in row[1:]]
        axes.plot(cores, times[:-1], "o-", color=colour, label=plain(row[0]))
        axes.plot(cores[-1] * 1.25, times[-1], "x", color=colour)
    axes.set(xscale="log", yscale="log", xlabel="cores", ylabel="milliseconds")
    axes.set_xticks([*cores, cores[-1] * 1.25], [*map(str, cores), "stock,\n16"])
    axes.set_xticks([], minor=True)
    _ratios(axes.yaxis, (10, 20, 50, 100, 200, 500))
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    return page


def draw_gpu(figure: Any, tables: Sequence[Table]) -> Any:
    """Ratios of programs by size, as a coloured table."""
    (head, *lines), *_ = tables
    page = figure.Figure(figsize=(9.6, 7), layout="constrained")
    axes = page.subplots()
    grid = [[math.log2(number(it)) for it in row[1:]] for row in lines]
    axes.imshow(grid, cmap="BrBG", vmin=-8, vmax=8, aspect="auto")
    for i, row in enumerate(lines):
        for j, cell in enumerate(row[1:]):
            strong = cell != "-" and abs(grid[i][j]) > 5
            colour = "white" if strong else "black"
            axes.text(j, i, cell, ha="center", va="center", fontsize=8, color=colour)
    axes.set_xticks(range(len(head) - 1), head[1:], fontsize=8)
    axes.set_yticks(range(len(lines)), [plain(row[0]) for row in lines], fontsize=8)
    axes.set(xlabel="order × batch")
    return page


def _ratios(axis: Any, ticks: Sequence[float]) -> None:
    """Ticks of a logarithmic axis as plain numbers."""
    axis.set_ticks(ticks, [f"{it:g}" for it in ticks])
    axis.set_ticks([], minor=True)


def _halves(words: str) -> list[str]:
    """Two lines of a title that is long."""
    parts = words.split(", ")
    middle = (len(parts) + 1) // 2
    return [", ".join(parts[:middle]), ", ".join(parts[middle:])] if len(parts) > 2 else [words]


def _short(sizes: str) -> str:
    return sizes.removeprefix("n = ").replace("256 to 2048", "256…")


DRAW: dict[str, Callable[[Any, Sequence[Table]], Any]] = {
    "sizes": draw_sizes,
    "processors": draw_processors,
    "functions": draw_functions,
    "cores": draw_cores,
    "gpu": draw_gpu,
}


def main() -> None:
    """Draws every picture and writes the README's numbers."""
    import matplotlib
    from matplotlib import figure

    matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "lapax", "font.size": 10}
    matplotlib.rcParams["font.family"] = ["sans-serif"]
    matplotlib.rcParams["axes.spines.top"] = matplotlib.rcParams["axes.spines.right"] = False
    folder = ROOT / IMAGES
    folder.mkdir(exist_ok=True)
    for name, draw in DRAW.items():
        about = {"Date": None, "Creator": None, "Description": description(name)}
        draw(figure, DATA[name]()).savefig(folder / f"{name}.svg", metadata=about)
    readme = ROOT / README
    readme.write_text(with_numbers(readme.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
