"""The ratios to stock JAX that lapax is to reach on two cores, and how far measured rows are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lapax._bench.rows import Row, geometric_mean

CLASSES: dict[str, tuple[tuple[int, int], ...]] = {
    "n = 3, 4, 8": ((3, 10_000), (4, 10_000), (8, 10_000)),
    "n = 16": ((16, 4_000),),
    "n = 32": ((32, 1_000),),
}
"""n and batch of each size class; a tridiagonal system has TRIDIAGONAL_BATCH everywhere."""

TRIDIAGONAL_BATCH = 10_000

GOALS: dict[str, tuple[float, float, float]] = {
    "linear": (15, 10, 6),
    "qr": (10, 8, 5),
    "spectral": (8, 6, 3),
    "nonsymmetric": (4, 3, 2.2),
    "values": (8, 8, 6),
    "tridiagonal": (10, 10, 8),
}
"""By family and class, for f32 and f64."""

COMPLEX_SHARE = 0.5
"""What of a goal c64 and c128 are to reach."""

BATCHED_SOLVE = {"solve_3x3": 20.0, "grad_solve_3x3": 8.0}
"""jax#36927: 86,268 systems of order 3, single precision."""


@dataclass(frozen=True)
class Reached:
    """A goal beside the geometric mean of the rows that it is about."""

    family: str
    sizes: str
    dtypes: str
    goal: float
    mean: float
    rows: int
    left_out: int
    """Rows that other work on the machine disturbed."""

    @property
    def met(self) -> bool:
        """False also where nothing was measured."""
        return self.mean >= self.goal


def points(family: str) -> list[tuple[int, int]]:
    """Every n and batch that a goal of the family names."""
    sizes = [point for points in CLASSES.values() for point in points]
    return [(n, TRIDIAGONAL_BATCH) for n, _ in sizes] if family == "tridiagonal" else sizes


def reached(rows: Sequence[Row]) -> list[Reached]:
    """Each goal that a row is about, with the mean reached."""
    rows = [row for row in rows if row.kind == "jax" and row.condition == "quiet"]
    found = []
    for family, goals in GOALS.items():
        for (label, sizes), goal in zip(CLASSES.items(), goals, strict=True):
            orders = {n for n, _ in sizes}
            wanted = {point for point in points(family) if point[0] in orders}
            for dtypes, share in (("f32", "f64"), 1.0), (("c64", "c128"), COMPLEX_SHARE):
                about = [
                    row
                    for row in rows
                    if row.family == family and row.dtype in dtypes
                    if row.m == row.n and (row.n, row.batch) in wanted
                ]
                found.append(_reached(family, label, " ".join(dtypes), goal * share, about))
    for name, goal in BATCHED_SOLVE.items():
        about = [row for row in rows if row.name == name]
        found.append(_reached(name, "n = 3", "f32", goal, about))
    return [one for one in found if one.rows + one.left_out]


def _reached(family: str, sizes: str, dtypes: str, goal: float, about: Sequence[Row]) -> Reached:
    measured = [row for row in about if not math.isnan(row.ratio)]
    quiet = [row.ratio for row in measured if row.quiet]
    left_out = len(measured) - len(quiet)
    return Reached(family, sizes, dtypes, goal, geometric_mean(quiet), len(quiet), left_out)
