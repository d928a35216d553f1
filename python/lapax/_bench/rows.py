"""A row of the benchmark, the statistics over rows, and their CSV. Knows nothing of JAX."""

from __future__ import annotations

import csv
import dataclasses
import itertools
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TextIO

import numpy as np

NOISY = 0.5
"""Spread above which a row's times say more about other work on the machine than about the row."""


Subject = tuple[str, str, str, int, int, int, str]
"""Kind, name, dtype, m, n, batch and condition."""


class UnavailableError(Exception):
    """Why there is no such column, or why a row has nothing in it."""


@dataclass(frozen=True)
class Row:
    """One measurement of both sides; NaN is what was not measured."""

    kind: str
    """"jax": a function as users call it, after and before install(); "loop": one that a program
    calls over and over; "linalg": one of lapax.linalg beside today's code; "target": a
    custom call."""
    name: str
    """The function or the target."""
    op: str
    family: str
    dtype: str
    m: int
    n: int
    batch: int
    condition: str = "quiet"
    """quiet, neighbour, contended, concurrent, threads=1, …, plain, compile or memory."""
    ours: float = math.nan
    """Seconds; bytes where the condition is memory."""
    theirs: float = math.nan
    """The same of stock JAX."""
    mkl: float = math.nan
    """Seconds of MKL."""
    lapack: float = math.nan
    """Seconds of lapax on the LAPACK library that it was built with."""
    scipy: float = math.nan
    """Seconds of SciPy, called once for the batch."""
    spread: float = math.nan
    """Interquartile range over median, the larger one of the two sides."""
    copy: float = math.nan
    """Seconds to copy every operand and result once; 0 in a loop."""
    compute: float = math.nan
    """Seconds that the flops take at the measured rate of XLA's matrix product."""
    flops: float = math.nan
    residual: float = math.nan
    failed: str = ""
    """Who gave a wrong answer; there are no times then."""
    skipped: str = ""
    """Why nothing was measured."""

    @property
    def subject(self) -> Subject:
        """What is measured, and in which condition."""
        return self.kind, self.name, self.dtype, self.m, self.n, self.batch, self.condition

    @property
    def ratio(self) -> float:
        """How many times faster (or smaller) lapax is."""
        return self.theirs / self.ours

    @property
    def to_mkl(self) -> float:
        """How many times faster lapax is than MKL."""
        return self.mkl / self.ours

    @property
    def to_lapack(self) -> float:
        """How many times faster lapax's own code is than its LAPACK backend."""
        return self.lapack / self.ours

    @property
    def to_scipy(self) -> float:
        """How many times faster lapax is than SciPy."""
        return self.scipy / self.ours

    @property
    def floor(self) -> float:
        """The larger one of the two lower bounds."""
        return max(self.copy, self.compute)

    @property
    def ruled_by(self) -> str:
        """Which bound that is."""
        return "copy" if self.copy >= self.compute else "flops"

    @property
    def quiet(self) -> bool:
        """Whether a ratio is there and other work did not disturb it."""
        return (self.ratio > 0 or self.to_scipy > 0) and not self.spread > NOISY


def spread(times: Sequence[float]) -> float:
    """Interquartile range over median."""
    first, middle, third = np.quantile(times, (0.25, 0.5, 0.75))
    return float((third - first) / middle)


def geometric_mean(values: Iterable[float]) -> float:
    """NaN of nothing."""
    logarithms = [math.log(value) for value in values]
    return math.exp(statistics.fmean(logarithms)) if logarithms else math.nan


def write_csv(file: TextIO, rows: Iterable[Row], machine: Mapping[str, str]) -> None:
    """`# name: value` of the machine, then one line per row below the names of the fields."""
    file.writelines(f"# {name}: {value}\n" for name, value in machine.items())
    writer = csv.DictWriter(file, [field.name for field in dataclasses.fields(Row)])
    writer.writeheader()
    writer.writerows(map(dataclasses.asdict, rows))


def read_csv(file: TextIO) -> tuple[list[Row], dict[str, str]]:
    """The rows and the machine that `write_csv` wrote; ValueError for other columns."""
    kinds = {"int": int, "float": float, "str": str}
    parse = {field.name: kinds[str(field.type)] for field in dataclasses.fields(Row)}
    lines = file.readlines()
    about = list(itertools.takewhile(lambda line: line.startswith("# "), lines))
    machine = dict(line[2:].rstrip().split(": ", 1) for line in about)
    reader = csv.DictReader(lines[len(about) :])
    if list(reader.fieldnames or ()) != list(parse):
        raise ValueError(f"not the columns of a benchmark: {reader.fieldnames}")
    rows = [Row(**{name: parse[name](text) for name, text in line.items()}) for line in reader]
    return rows, machine
