"""The steps of `evening.py`, each in a process of its own: JSON lines of what was found.

    python tests/gpu/evening_steps.py STEP,… LINES SHARE SHARES --seconds NUMBER [--dry]

A piece of work is a name and a function whose result is a line: {"wrong": …} where something is
not right, {"left": …} where it does not apply, else figures. What is run is lapax's own table of
targets, the programs of `programs`, and the functions of lapax's benchmark.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import itertools
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from evening import ABSENT, LOST

import lapax
from lapax import _choices, check
from lapax._bench import queued
from lapax._bench.functions import FUNCTIONS, Function
from lapax._bench.plan import SCALARS, compiled
from lapax._call import ffi_call
from lapax._checks import CHECKS
from lapax._checks.equations import Size
from lapax._lowering import numpy_dtype
from lapax._table import Target, ops, targets

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


def main() -> int:
    """Runs the pieces of steps that are not done; returns the exit status."""
    parser = argparse.ArgumentParser()
    parser.add_argument("steps", type=lambda names: names.split(","))
    parser.add_argument("lines", type=Path)
    parser.add_argument("share", type=int)
    parser.add_argument("shares", type=int)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    device = jax.devices()[0]
    if device.platform != ("cpu" if options.dry else "gpu"):
        print(f"no GPU, but {device.device_kind}")
        return ABSENT
    jax.config.update("jax_enable_x64", True)
    text = options.lines.read_text(encoding="utf-8") if options.lines.exists() else ""
    known = [json.loads(line) for line in text.splitlines()]
    begun = {(line["step"], line["begin"]) for line in known if "begin" in line}
    with options.lines.open("a", encoding="utf-8") as file:
        _write(file, about(device))
        for step in options.steps:
            pieces = PIECES[step](options)
            for name, work in itertools.islice(pieces, options.share, None, options.shares):
                if (step, name) in begun:
                    continue
                if time.monotonic() > end:
                    late = "the step's time was over"
                    _write(file, {"step": step, "piece": name, "left": late})
                    continue
                _write(file, {"step": step, "begin": name})
                line, lost = _done(work)
                _write(file, {"step": step, "piece": name, **line})
                if lost:
                    return LOST
    return 0


def _done(work: Callable[[], Line]) -> tuple[Line, bool]:
    """What was found, and whether the device does no more after it."""
    try:
        line = work()
    except Exception as error:  # Whatever goes wrong is what is looked for.
        text = (str(error).splitlines() or [""])[0]
        line = {"wrong": f"{type(error).__name__}: {text[:300]}"}
    return line, "CUDA_ERROR" in line.get("wrong", "")


def _write(file: Any, line: Line) -> None:
    print(json.dumps(line), file=file, flush=True)


def about(device: Any) -> Line:
    """What the page says about the GPU and what ran on it."""
    return {
        "about": {
            "gpu": device.device_kind,
            "compute capability": getattr(device, "compute_capability", "-"),
            "jax": jax.__version__,
            "lapax": lapax.__version__,
            "host's cores": os.cpu_count(),
        }
    }


# Whether the targets of the table are right.


def of_targets(options: Any) -> Iterator[Piece]:
    """Each target and dtype with a CUDA side; JAX's functions are the next step's."""
    sizes = TINY if options.dry else ((3, 100), (32, 8), (33, 3), (100, 2))
    for dtype, target in itertools.product(range(4), targets("cuda")):
        if dtype < len(target.dtypes) and not (options.dry and dtype):
            name = target.dtypes[dtype]
            yield (
                f"{target.name} {name}",
                functools.partial(_of_target, target, name, sizes, options.dry),
            )


def checked(target: Target) -> bool:
    """Whether the target is called as on the CPU, for which there is a check."""
    return target.signature.op in CHECKS and target in ops().get(target.signature.op, ())


def _of_target(target: Target, dtype: str, sizes: Any, dry: bool) -> Line:
    op = target.signature.op
    if not checked(target):
        programs = importlib.import_module("programs").PROGRAMS
        if not any(target.name in (*it.targets, *it.small) for it in programs):
            return {"wrong": "neither lapax.check nor a program of programs.py says what is right"}
        return {"left": "called in jaxlib's form: by JAX's functions in the step programs"}
    if dry and not any(other.platform == "cpu" for other in ops()[op]):
        return {"left": "has no CPU side"}
    largest, problems, refused = 0.0, [], []
    for at, (n, batch) in enumerate(sizes):
        modes = check.modes(target.signature)
        for mode in modes if at == 0 else modes[:1]:
            case = check.case(op, numpy_dtype(dtype), n, batch=(batch,), attrs=mode)
            call = jax.jit(functools.partial(ffi_call, op, **case.attrs, **case.dims))
            try:
                first, again = (
                    [np.asarray(x) for x in jax.tree.leaves(call(*case.args))] for _ in "12"
                )
            except jax.errors.JaxRuntimeError as error:
                if "shared memory" not in str(error) or "expected a matrix that fits" not in str(
                    error
                ):
                    raise
                refused.append(f"n={n}")
                continue
            ratio = case.ratio(first)
            largest = max(largest, ratio)
            if not ratio < check.LIMIT:
                problems.append(f"n={n} batch={batch} {mode}: ratio {ratio:.3g}")
            if not all(map(functools.partial(np.array_equal, equal_nan=True), first, again)):
                problems.append(f"n={n} batch={batch} {mode}: other bits in the second call")
    line: Line = {"residual": largest, "refused": " ".join(refused)}
    return line | ({"wrong": "; ".join(problems)} if problems else {})


# JAX's functions, and what only a device shows.


def of_programs(options: Any) -> Iterator[Piece]:
    """The programs of `correct`, which call lapax's targets from four threads."""
    correct = importlib.import_module("correct")
    sizes = TINY if options.dry else correct.SIZES[1::2]
    for program in correct.PROGRAMS:
        yield program.name, functools.partial(_of_program, correct, program, sizes, options.dry)


def _of_program(correct: Any, program: Any, sizes: Any, dry: bool) -> Line:
    with lapax.installed():
        dtypes = program.dtypes[:1] if dry else program.dtypes
        problems = correct.problems(program, jax.devices()[0], sizes, dtypes)
    return {"wrong": "; ".join(problems)} if problems else {}


def of_device(options: Any) -> Iterator[Piece]:
    """CUDA graphs, streams, callbacks and a lack of memory."""
    correct = importlib.import_module("correct")
    for name, work in correct.OF_DEVICE.items():
        yield name, functools.partial(_of_device, work, options.dry and name != "captured")


def _of_device(work: Callable[[Any], list[str]], dry: bool) -> Line:
    if dry:
        return {"left": "needs a GPU"}
    with lapax.installed():
        problems = work(jax.devices()[0])
    return {"wrong": "; ".join(problems)} if problems else {}


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
    orders, batches = ((2, 4), (1, 10)) if options.dry else (ORDERS, BATCHES)
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


# The table of choices.


def of_tuner(options: Any) -> Iterator[Piece]:
    """`python -m lapax tune-gpu`, which has its own processes, for the time that there is."""
    yield "tune-gpu", functools.partial(_tune, options)


def _tune(options: Any) -> Line:
    # Its last choice takes as long as it takes.
    minutes = max(options.seconds - 15, 5) / 60
    output = options.lines.with_name("gpu-choices.json")
    dry = ["--dry", "--only", "solve,f32"] if options.dry else []
    command = [sys.executable, "-m", "lapax", "tune-gpu", "--minutes", str(minutes)]
    done = subprocess.run([*command, "--output", str(output), *dry], capture_output=True, text=True)
    lines = [*done.stdout.splitlines(), *done.stderr.splitlines()]
    return {"said": lines[-1:]} | ({"wrong": " ".join(lines[-3:])} if done.returncode else {})


PIECES: dict[str, Callable[[Any], Iterator[Piece]]] = {
    "targets": of_targets,
    "programs": of_programs,
    "device": of_device,
    "rows": of_rows,
    "torch": functools.partial(of_library, torch),
    "cupy": functools.partial(of_library, cupy),
    "heat": of_heat,
    "tune": of_tuner,
}

if __name__ == "__main__":
    sys.exit(main())
