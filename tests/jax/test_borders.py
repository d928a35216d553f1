"""Both sides of every border between two kernels are right; the sizes are found by asking.

`LAPAX_BORDERS=full` visits all of them; without it, each border of a routine is visited with one
of the scalars that have it, and what takes long is left to the full run.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import os
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
import pytest

import lapax
from lapax import _library, check
from lapax._table import ops

FULL = os.environ.get("LAPAX_BORDERS") == "full"
DTYPES = {"f32": np.float32, "c64": np.complex64, "f64": np.float64, "c128": np.complex128}
BATCHES = (1, 3, 4, 8, 17) if FULL else (1, 5)
"""On both sides of the batches that go through lanes, of all sizes and of large ones."""
EACH, STEP, LARGEST = 132, 37, 1300
"""Orders are looked at one by one, then in steps, between which at most one border is found."""
FLOPS = 1e12 if FULL else 4e7
"""The work of one call up to which it is made, where it is not a routine's only border."""

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "routes.md"
ROUTINES = [line[3:] for line in PAGE.read_text().splitlines() if line.startswith("## ")]

MODES: dict[str, dict[str, Any]] = {
    "syevd": {"mode": "V"},
    "gees": {"mode": "V"},
    "geev": {"compute_right": "V"},
    "svd": {"full_matrices": False},
    "gesdd": {"mode": "S"},
    "gesvd": {"mode": "S"},
    "trsm": {"side": "L"},
    "triangular_solve": {"side": "L"},
    "ormqr": {"left": True},
    "syevd_values": {"mode": "N"},
    "svd_all": {"full_matrices": True},
    "gesdd_all": {"mode": "A"},
    "gesdd_values": {"mode": "N"},
    "gesvd_all": {"mode": "A"},
    "gesvd_values": {"mode": "N"},
}
"""What a routine's call asks for, where its op has other modes, too."""

Shape = tuple[Callable[[int], tuple[int, int]], Callable[[int], Sequence[int]]]
"""From an order to the m and n of a case, and to the sizes that the route depends on."""


def shapes(routine: str) -> list[Shape]:
    known = _library.route({"routine": routine, "dtype": "f64", "batch": 1, "sizes": [1]})
    match tuple(known["sizes"]):
        case ("n",):
            return [(lambda n: (n, n), lambda n: [n])]
        case ("n", "active"):
            return [(lambda n: (n, n), lambda n: [n, n])]
        case ("n", "nrhs"):
            return [
                (lambda n: (n, 1), lambda n: [n, 1]),
                (lambda n: (n, 7), lambda n: [n, 7]),
                (lambda n: (n, n), lambda n: [n, n]),
            ]
        case ("m", "n"):
            return [
                (lambda n: (n, n), lambda n: [n, n]),
                (lambda n: (3 * n + 1, n), lambda n: [3 * n + 1, n]),
                (lambda n: (n, 2 * n), lambda n: [n, 2 * n]),
            ]
        case ("m", "t"):
            return [(lambda n: (n, n), lambda n: [n, n - n // 4])]
        case ("r", "others", "p", "t"):
            return [
                (lambda n: (n, n), lambda n: [n, n, n, n - n // 4]),
                (lambda n: (n, 3), lambda n: [n, 3, n, n - n // 4]),
            ]
        # The diagonals beside the main one are those of the checks' cases.
        case ("lower", "upper", "n", "nrhs"):
            return [(lambda n: (n, 1), lambda n: [2, 1, n, 1])]
        case ("beside", "n", "nrhs"):
            return [(lambda n: (n, 1), lambda n: [2, n, 1])]
        case ("beside", "n"):
            return [(lambda n: (n, n), lambda n: [2, n])]
    raise AssertionError(f"{routine} has sizes {known['sizes']}, which no shape here has")


def borders(way: Callable[[int], str]) -> Iterator[int]:
    """The orders whose route is not that of the order before."""
    looked = [*range(1, EACH), *range(EACH, LARGEST, STEP)]
    for below, above in itertools.pairwise(looked):
        if way(below) == way(above):
            continue
        while above - below > 1:
            middle = (below + above) // 2
            below, above = (middle, above) if way(middle) == way(below) else (below, middle)
        yield above


def cases(routine: str) -> Iterator[tuple[str, int, tuple[int, int]]]:
    """Scalar, batch, and m and n on both sides of each border."""
    served = _scalars(routine)
    for number, (case_sizes, route_sizes) in enumerate(shapes(routine)):
        for batch in BATCHES:
            visited: set[int] = set()
            # Another scalar comes first each time, so that a border of all is not always one's.
            turn = (number + batch) % len(served)
            for dtype in served[turn:] + served[:turn]:
                way = functools.partial(_way, routine, dtype, batch, route_sizes)
                for border in borders(way):
                    if FULL or border not in visited:
                        visited.add(border)
                        yield from ((dtype, batch, case_sizes(n)) for n in (border - 1, border))
            if not visited:
                # Whatever the order, such a batch goes one way.
                yield served[turn], batch, case_sizes(8)


def _op(routine: str) -> str:
    return routine if routine in ops() else routine.rpartition("_")[0]


def _scalars(routine: str) -> list[str]:
    """The scalars of a routine, those of an op of its own for complex matrices included."""
    op = _op(routine)
    names = [name for name in (op, f"{op}_complex") if name in ops()]
    kinds = {dtype for name in names for target in ops()[name] for dtype in target.dtypes}
    return [name for name in DTYPES if name in kinds]


def _way(
    routine: str, dtype: str, batch: int, sizes: Callable[[int], Sequence[int]], n: int
) -> str:
    request = {"routine": routine, "dtype": dtype, "batch": batch, "sizes": [*sizes(n)]}
    return str(_library.route(request)["route"])


@pytest.mark.parametrize("routine", ROUTINES)
def test_both_sides_of_borders(routine: str) -> None:
    op = _op(routine)
    wanted = MODES.get(routine, {})
    of_op = [
        mode
        for mode in check.modes(ops()[op][0].signature)
        if all(mode[name] == _code(value) for name, value in wanted.items())
    ]
    visited, left = 0, 0
    for turn, (dtype, batch, (m, n)) in enumerate(dict.fromkeys(cases(routine))):
        here = f"{op}_complex" if op in ("gees", "geev") and dtype[0] == "c" else op
        case = check.case(
            here,
            DTYPES[dtype],
            n,
            m=m if check.CHECKS[here].rectangular else None,
            batch=(batch,),
            attrs=of_op[turn % len(of_op)],
        )
        if routine == "qr_all":
            case = dataclasses.replace(case, dims={"c": m})
        if case.flops > FLOPS and visited:
            left += 1
            continue
        visited += 1
        with jax.enable_x64(True):
            results = lapax.ffi_call(here, *case.args, **case.attrs, **case.dims)
        ratio = case.ratio(jax.tree.leaves(results))
        assert ratio < check.LIMIT, (dtype, batch, m, n, case.attrs, ratio)
    print(f"{routine}: {visited} sizes at borders, {left} left to LAPAX_BORDERS=full")
    assert visited


def _code(value: Any) -> Any:
    return np.uint8(ord(value)) if isinstance(value, str) else value
