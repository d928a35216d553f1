"""One computation compiled twice in one process, by stock JAX and by JAX on lapax, and compared."""

from __future__ import annotations

import os
import re
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import jax
import numpy as np

import lapax
from lapax._supported import jaxlib_waits_for_its_batches

THREADS = 4
"""More than the calls of a program here that run side by side."""

# With two threads the gradient's two solves would wait for ever. No thread has started yet.
if jaxlib_waits_for_its_batches(metadata.version("jaxlib")):
    os.environ.setdefault("PJRT_NPROC", str(max(THREADS, os.cpu_count() or THREADS)))

ENGINES = ("stock JAX", "lapax")
COLOURS = dict(zip(ENGINES, ("#8c8c8c", "#1f6f8b"), strict=True))


class Pair:
    """`function` compiled for the shapes of `args`, once per engine."""

    def __init__(self, function: Callable[..., Any], *args: Any) -> None:
        with lapax.installed():
            ours = _compiled(function, args)
        if not re.search(r'custom_call_target="lapax\.', ours.as_text()):
            raise RuntimeError("the program compiled under lapax.installed() calls no lapax target")
        self.programs = dict(zip(ENGINES, (_compiled(function, args), ours), strict=True))
        self.seconds: dict[str, list[float]] = {engine: [] for engine in ENGINES}

    def run(self, engine: str, *args: Any) -> Any:
        """The result of one engine's program, waited for; its time is recorded."""
        start = time.perf_counter()
        result = jax.block_until_ready(self.programs[engine](*args))
        self.seconds[engine].append(time.perf_counter() - start)
        return result

    def median(self, engine: str) -> float:
        """Median seconds of an engine's runs so far."""
        return statistics.median(self.seconds[engine])


def _compiled(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    # A new function object each time: nothing that JAX cached for the other engine is reused.
    return jax.jit(lambda *operands: function(*operands)).lower(*args).compile()


@dataclass(frozen=True)
class Row:
    """One line of the table: a computation, its times and how far the two answers are apart."""

    what: str
    stock_seconds: float
    lapax_seconds: float
    difference: str

    @classmethod
    def of(cls, what: str, pair: Pair, difference: str) -> Row:
        stock, ours = (pair.median(engine) for engine in ENGINES)
        return cls(what, stock, ours, difference)

    @property
    def ratio(self) -> float:
        """How many times faster lapax is."""
        return self.stock_seconds / self.lapax_seconds


def table(rows: list[Row]) -> str:
    """The rows as a markdown table, which is also readable in a terminal."""
    head = ("computation (median)", *ENGINES, "ratio", "largest difference")
    cells = [
        (
            row.what,
            f"{row.stock_seconds * 1e3:.2f} ms",
            f"{row.lapax_seconds * 1e3:.2f} ms",
            f"{row.ratio:.2f}×",
            row.difference,
        )
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    rule = tuple("-" * width for width in widths)
    return "\n".join(
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        + " |"
        for line in (head, rule, *cells)
    )


def largest_difference(one: Any, other: Any) -> float:
    """The largest absolute difference between two trees of arrays of the same structure."""
    return max(
        float(np.max(np.abs(np.asarray(x) - np.asarray(y))))
        for x, y in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    )


def progress(text: str, *, last: bool = False) -> None:
    """One line on stderr that the next call overwrites; on a pipe only the last one is printed."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="\n" if last else "", file=sys.stderr, flush=True)
    elif last:
        print(text, file=sys.stderr, flush=True)


def output_folder() -> Path:
    """`out/` at the root of the repository, made where it is missing."""
    folder = Path(__file__).resolve().parent.parent / "out"
    folder.mkdir(exist_ok=True)
    return folder
