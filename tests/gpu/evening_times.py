"""The steps of `evening.py` that take times: beside stock JAX and other libraries, and a heat map.

What is timed are the functions of lapax's benchmark.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import math
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

import lapax
from lapax import _choices, check
from lapax._bench import queued
from lapax._bench.functions import FUNCTIONS, Function
from lapax._bench.plan import SCALARS, compiled
from lapax._checks.equations import Size
from lapax._lowering import numpy_dtype

Line = dict[str, Any]
Piece = tuple[str, Callable[[], Line]]

TINY = ((3, 2),)
"""n and batch of all pieces of a dry run, but for the few that need others."""

MAPPED = ("solve", "cholesky", "qr", "eigh", "svd")
ORDERS, BATCHES = (2, 4, 8, 16, 32, 64, 128, 256, 512), (1, 10, 100, 1000, 10_000, 100_000)
"""Of the heat map."""

IN_REGISTERS, BETWEEN = (4, 16, 32), (1, 1000)
"""The orders at which one kernel takes over from another in `cuda/src`, and the batches at which
these and those of the table of choices are looked at from both sides."""

LONGEST = 0.3
"""Seconds of a call of the heat map; a batch ten times as large is not tried after longer ones."""

SHARE_OF_MEMORY = 64
"""A heat map's operand may have this part of the GPU's memory."""


# Times beside stock JAX, the floor, and other libraries.


def points(options: Any) -> Iterator[tuple[Function, str, int, int]]:
    """Functions of lapax's benchmark at the sizes of `bench`, first f32, slow families last."""
    if options.dry:
        yield from ((it, SCALARS[0], *TINY[0]) for it in FUNCTIONS if it.name in MAPPED)
        return
    sizes = importlib.import_module("bench").SIZES
    known = sorted(FUNCTIONS, key=lambda it: it.family in ("nonsymmetric", "host callback"))
    for dtype in SCALARS:
        for at, function in itertools.product(range(len(sizes)), known):
            own = function.points or sizes
            if at < len(own) and dtype in function.dtypes:
                yield function, dtype, *own[at]


def of_rows(options: Any) -> Iterator[Piece]:
    """lapax and stock JAX in turns."""
    for function, dtype, n, batch in points(options):
        yield (
            f"{function.name} {dtype} {n} {batch}",
            functools.partial(_row, function, dtype, n, batch),
        )


def _row(function: Function, dtype: str, n: int, batch: int) -> Line:
    args = _operands(function, dtype, n, batch)
    line = {"name": function.name, "dtype": dtype, "n": n, "batch": batch}
    with lapax.installed():
        sides = [compiled(function, args)]
    answer = sides[0].answer()
    line["residual"] = _ratio(function, args, answer)
    if not line["residual"] < check.LIMIT:
        return line | {"wrong": f"residual {line['residual']:.3g}"}
    line["calls lapax"] = sides[0].calls_lapax()
    try:
        sides.append(compiled(function, args))
        ratio = _ratio(function, args, sides[1].answer())
    except Exception as error:  # What stock JAX lacks is no failure of lapax.
        line["stock fails"], ratio = (str(error).splitlines() or [""])[0][:200], math.inf
    if not ratio < check.LIMIT:
        line.setdefault("stock fails", f"residual {ratio:.3g}")
        del sides[1:]
    times = queued.take_turns(sides, 0.3)
    line |= dict(zip(("lapax", "stock"), map(statistics.median, times), strict=False))
    return line | {"floor": queued.floor([*args, *answer])}


def _operands(function: Function, dtype: str, n: int, batch: int) -> tuple[Any, ...]:
    size = Size(function.rows or n, n, (batch,))
    return function.inputs(np.random.default_rng(0), numpy_dtype(dtype), size)


def _ratio(function: Function, args: Any, answer: list[Any]) -> float:
    with np.errstate(all="ignore"):
        return float(np.max(function.ratios(args, answer), initial=0.0))


@dataclass(frozen=True)
class Library:
    """One that has NumPy's names: where its arrays are, and how its work is waited for."""

    linalg: Any
    put: Callable[[Any], Any]
    get: Callable[[Any], Any]
    wait: Callable[[Any], Any]


def torch() -> Library:
    """Raises ImportError where it is not installed."""
    it = importlib.import_module("torch")
    return Library(
        it.linalg, lambda x: it.from_numpy(x).cuda(), lambda x: x.cpu().numpy(),
        lambda _: it.cuda.synchronize(),
    )  # fmt: skip


def cupy() -> Library:
    """Raises ImportError where it is not installed."""
    it = importlib.import_module("cupy")
    return Library(it.linalg, it.asarray, it.asnumpy, lambda _: it.cuda.Device().synchronize())


def numpy() -> Library:
    """What stands for the others in a dry run."""
    return Library(np.linalg, np.asarray, np.asarray, lambda _: None)


OPTIONS: dict[str, dict[str, Any]] = {
    "svd": {"full_matrices": False},
    "solve_triangular": {"upper": False},
}
"""What makes a library's function that of the benchmark."""


def of_library(load: Callable[[], Library], options: Any) -> Iterator[Piece]:
    """The functions that the library has by the same names."""
    try:
        library = numpy() if options.dry else load()
    except ImportError as error:
        why = f"not installed: {error}"
        yield "the library", lambda: {"left": why}
        return
    for function, dtype, n, batch in points(options):
        if function.kind == "jax" and hasattr(library.linalg, function.name):
            work = functools.partial(_of_library, library, function, dtype, n, batch)
            yield f"{function.name} {dtype} {n} {batch}", work


def _of_library(library: Library, function: Function, dtype: str, n: int, batch: int) -> Line:
    args = _operands(function, dtype, n, batch)
    operands = [library.put(x) for x in args]
    call = functools.partial(
        getattr(library.linalg, function.name), *operands, **OPTIONS.get(function.name, {})
    )
    found = call()
    answer = [library.get(x) for x in (found if isinstance(found, tuple) else [found])]
    if function.name == "lu_factor":
        answer[1] = answer[1] - 1  # LAPACK's pivots.
    line = {"name": function.name, "dtype": dtype, "n": n, "batch": batch}
    ratio = _ratio(function, args, answer)
    if not ratio < check.LIMIT:
        return line | {"left": f"its answer has residual {ratio:.3g}"}
    return line | {"seconds": statistics.median(queued.take_turns([call], 0.3, library.wait)[0])}


# The heat map.


def of_heat(options: Any) -> Iterator[Piece]:
    """f32, from small batches on."""
    orders, batches = ((2, 4), (3,)) if options.dry else (ORDERS, BATCHES)
    table = _choices.table(_choices.gpu())
    chosen = {table[op]["batches"]["f32"] for op in MAPPED if op in table}
    borders = [n for it in (*IN_REGISTERS, *filter(None, chosen)) for n in (it, it + 1)]
    places = [*itertools.product(batches, orders)]
    if not options.dry:
        places += itertools.product(BETWEEN, sorted({*borders} - {*orders}))
    slow: set[tuple[str, int]] = set()
    known = [function for name in MAPPED for function in FUNCTIONS if function.name == name]
    for (batch, n), function in itertools.product(places, known):
        work = functools.partial(_heat, function, n, batch, slow)
        yield f"{function.name} {n} {batch}", work


def _heat(function: Function, n: int, batch: int, slow: set[tuple[str, int]]) -> Line:
    line = {"name": function.name, "n": n, "batch": batch}
    if (function.name, n) in slow:
        return line | {"left": f"a tenth of it takes {LONGEST:g} s"}
    memory = (jax.devices()[0].memory_stats() or {}).get("bytes_limit", math.inf)
    if 4 * n * n * batch > memory / SHARE_OF_MEMORY:
        return line | {"left": f"a matrix of more than 1/{SHARE_OF_MEMORY} of memory"}
    args = _tiled(function, n, batch)
    with lapax.installed():
        side = compiled(function, args)
    results = jax.block_until_ready(side())
    seconds = statistics.median(queued.take_turns([side], 0.1)[0])
    if seconds > LONGEST:
        slow.add((function.name, n))
    floor = queued.floor([*args, *jax.tree.leaves(results)])
    return line | {"lapax": seconds, "floor": floor}


def _tiled(function: Function, n: int, batch: int) -> tuple[Any, ...]:
    """Operands of which a hundred are different: that many are made quickly."""
    few = _operands(function, "f32", n, min(batch, 100))
    return tuple(np.tile(x, (batch // len(x), *[1] * (x.ndim - 1))) for x in few)
