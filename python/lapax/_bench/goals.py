"""The ratios to stock JAX that lapax is to reach on two cores, and how far measured rows are."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lapax._bench.rows import NOISY, Row, geometric_mean


@dataclass(frozen=True)
class SizeClass:
    """Sizes whose geometric mean has a goal."""

    points: tuple[tuple[int, int], ...]
    """n and batch; a small tridiagonal system has TRIDIAGONAL_BATCH."""
    goals: dict[str, float]
    """By family, for f32 and f64."""
    complex_share: float | None
    """What of it c64 and c128 are to reach, where that is a goal."""


def _by_family(*goals: float) -> dict[str, float]:
    return dict(zip(FAMILIES, goals, strict=True))


FAMILIES = ("linear", "qr", "spectral", "nonsymmetric", "values", "tridiagonal")

CLASSES: dict[str, SizeClass] = {
    "n = 3, 4, 8": SizeClass(
        ((3, 10_000), (4, 10_000), (8, 10_000)), _by_family(15, 10, 8, 4, 8, 10), 0.5
    ),
    "n = 16": SizeClass(((16, 4_000),), _by_family(10, 8, 6, 3, 8, 10), 0.5),
    "n = 32": SizeClass(((32, 1_000),), _by_family(6, 5, 3, 2.2, 6, 8), 0.5),
    "n = 64, 128": SizeClass(((64, 200), (128, 30)), _by_family(3, 4, 2.2, 2, 4, 5), None),
    "n = 256 to 2048": SizeClass(
        ((256, 1), (512, 1), (1024, 1), (2048, 1)), _by_family(2.5, 3, 1.5, 1.5, 3, 2), None
    ),
}

TRIDIAGONAL_BATCH, LARGEST_SMALL = 10_000, 32
"""The batch of tridiagonal systems up to an order."""

BATCHED_SOLVE = {"solve_3x3": 20.0, "grad_solve_3x3": 8.0}
"""jax#36927: 86,268 systems of order 3, single precision."""

BESIDE_MKL = 1.0
"""MKL's time over lapax's, on as many threads."""


@dataclass(frozen=True)
class Reached:
    """A goal beside the geometric mean of the rows that it is about."""

    family: str
    sizes: str
    dtypes: str
    goal: float
    mean: float
    at_floor: float
    """What the mean would be if every call took no longer than its floor."""
    rows: int
    left_out: int
    """Rows that other work on the machine disturbed."""

    @property
    def met(self) -> bool:
        """False also where nothing was measured."""
        return self.mean >= self.goal


def points(family: str, *, of: Iterable[SizeClass] = CLASSES.values()) -> list[tuple[int, int]]:
    """Every n and batch that a goal of the family names."""
    sizes = [point for one in of for point in one.points]
    if family != "tridiagonal":
        return sizes
    return [(n, TRIDIAGONAL_BATCH if n <= LARGEST_SMALL else batch) for n, batch in sizes]


def reached(rows: Sequence[Row]) -> list[Reached]:
    """Each goal that a row is about, with the mean reached."""
    rows = [row for row in rows if row.kind == "jax" and row.condition == "quiet"]
    found = []
    for family in FAMILIES:
        mine = [row for row in rows if row.family == family]
        for label, sizes in CLASSES.items():
            wanted = points(family, of=[sizes])
            square = [row for row in mine if row.m == row.n and (row.n, row.batch) in wanted]
            for dtypes, share in (("f32", "f64"), 1.0), (("c64", "c128"), sizes.complex_share):
                if share is not None:
                    of_dtypes = [row for row in square if row.dtype in dtypes]
                    goal = sizes.goals[family] * share
                    found.append(_reached(family, label, " ".join(dtypes), goal, of_dtypes))
        found.append(_reached(family, "beside MKL", "f32 f64", BESIDE_MKL, mine, "mkl"))
    for name, goal in BATCHED_SOLVE.items():
        of_name = [row for row in rows if row.name == name]
        found.append(_reached(name, "n = 3", "f32", goal, of_name))
    return [one for one in found if one.rows + one.left_out]


def _reached(
    family: str, sizes: str, dtypes: str, goal: float, rows: Sequence[Row], beside: str = "theirs"
) -> Reached:
    """Of the rows that have a time in the column `beside`."""
    pairs = [(row, getattr(row, beside)) for row in rows]
    measured = [(row, theirs) for row, theirs in pairs if not math.isnan(theirs / row.ours)]
    quiet = [(row, theirs) for row, theirs in measured if not row.spread > NOISY]
    mean = geometric_mean(theirs / row.ours for row, theirs in quiet)
    at_floor = geometric_mean(theirs / row.floor for row, theirs in quiet)
    left_out = len(measured) - len(quiet)
    return Reached(family, sizes, dtypes, goal, mean, at_floor, len(quiet), left_out)
