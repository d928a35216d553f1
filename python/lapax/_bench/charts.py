"""PNG charts of measured rows, by matplotlib (the extra lapax[bench]), loaded only here."""

from __future__ import annotations

import importlib
import io
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from lapax._bench.rows import Row, geometric_mean

LIMITS = (-3.0, 5.0)
"""log₂ of the ratios at the ends of the colours: 1/8 and 32."""


class MissingError(Exception):
    """matplotlib is not installed."""


def draw(rows: Sequence[Row]) -> dict[str, bytes]:
    """Charts of the `jax` rows by name: ratios over n × batch per family, Gflop/s over n.

    Raises MissingError where matplotlib is not installed.
    """
    try:
        figure = importlib.import_module("matplotlib.figure")
    except ImportError as error:
        raise MissingError(
            "no charts: matplotlib is missing; pip install 'lapax[bench]'"
        ) from error
    quiet = [row for row in rows if row.kind == "jax" and row.condition == "quiet" and row.quiet]
    images = {}
    for family in dict.fromkeys(row.family for row in quiet):
        square = [row for row in quiet if row.family == family and row.m == row.n]
        if square:
            images[f"ratio-{family.replace(' ', '-')}"] = _ratios(figure, family, square)
    for name in dict.fromkeys(row.name for row in quiet):
        of_name = (row for row in quiet if row.name == name and row.m == row.n)
        double = [row for row in of_name if row.dtype == "f64"]
        if double:
            images[f"rate-{name}"] = _rates(figure, name, double)
    return images


def _ratios(figure: Any, family: str, rows: Sequence[Row]) -> bytes:
    """A heat map: the geometric mean over functions and dtypes at each n and batch."""
    orders = sorted({row.n for row in rows})
    batches = sorted({row.batch for row in rows})
    grid = np.full((len(batches), len(orders)), math.nan)
    page = figure.Figure(figsize=(7, 4), layout="constrained")
    axes = page.subplots()
    for i, batch in enumerate(batches):
        for j, n in enumerate(orders):
            mean = geometric_mean(r.ratio for r in rows if (r.n, r.batch) == (n, batch))
            if not math.isnan(mean):
                grid[i, j] = math.log2(mean)
                axes.text(j, i, f"{mean:.2g}", ha="center", va="center", fontsize=8)
    axes.imshow(grid, cmap="RdYlGn", vmin=LIMITS[0], vmax=LIMITS[1], origin="lower", aspect="auto")
    axes.set_xticks(range(len(orders)), map(str, orders))
    axes.set_yticks(range(len(batches)), map(str, batches))
    axes.set(xlabel="n", ylabel="batch", title=f"{family}: time of stock JAX over lapax's")
    return _png(page)


def _rates(figure: Any, name: str, rows: Sequence[Row]) -> bytes:
    """Gflop/s at the largest batch of each n, of both sides and of the floor."""
    largest = {row.n: row for row in sorted(rows, key=lambda row: row.batch)}
    chosen = [largest[n] for n in sorted(largest)]
    page = figure.Figure(figsize=(7, 4), layout="constrained")
    axes = page.subplots()
    orders = [row.n for row in chosen]
    sides = {
        "lapax": [row.ours for row in chosen],
        "stock": [row.theirs for row in chosen],
        "floor": [row.floor for row in chosen],
    }
    for label, times in sides.items():
        rates = [row.flops / time / 1e9 for row, time in zip(chosen, times, strict=True)]
        axes.plot(orders, rates, "k--" if label == "floor" else "o-", label=label)
    axes.set(xscale="log", yscale="log", xlabel="n", ylabel="Gflop/s", title=f"{name}, f64")
    axes.legend()
    return _png(page)


def _png(page: Any) -> bytes:
    buffer = io.BytesIO()
    page.savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()
