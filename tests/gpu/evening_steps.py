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
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
from evening import ABSENT, LOST
from evening_times import TINY, Line, Piece, cupy, of_heat, of_library, of_rows, torch

import lapax
from lapax import check
from lapax._call import ffi_call
from lapax._checks import CHECKS
from lapax._lowering import numpy_dtype
from lapax._table import Target, ops, targets


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
