"""`python -m lapax tune-gpu`: a table of choices for this machine's GPU, by measurement.

What a process calls follows from its LAPAX_GPU_CHOICES. There are three kinds: in one, ops have
kernels of their own as far as these have room ("rows"); in the next they have none, but jaxlib's
targets have, of which JAX's composition is made ("targets"); in the last these have none either,
and all is NVIDIA's libraries' or the host's ("library"). Two of them are asked for the time of the
same call in turns, at orders between which the quicker one changes. Times are kept beside the
table, so that another run goes on where one ended.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import math
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lapax import _choices, _library
from lapax._table import targets

SCALARS = ("f32", "f64", "c64", "c128")

ORDERS = (
    8,
    16,
    24,
    32,
    40,
    48,
    56,
    64,
    72,
    80,
    88,
    96,
    112,
    128,
    160,
    192,
    224,
    240,
    256,
    384,
    512,
)
"""Where the quicker one is looked for, besides the orders of the table itself."""

BATCHES = {"batches": 64, "alone": 1}
"""Matrices of a call by what a row has for it: half as many as an H200 has processors, and one."""

ROUNDS = 2
"""How often either process is asked for a time, of which the least counts."""

TIE = 1.02
"""As much as times of one program differ between processes is no reason to leave a kernel."""

PATIENCE = 60.0
"""Seconds until a silent process is given up: cuSOLVER takes 6 for a call of 64 of 512 of `eig`."""

Done = dict[tuple[str, str, str], int | None]
"""By op, dtype and key: the order, None where the kernel's room alone is the limit."""


def main(argv: Sequence[str]) -> int:
    """Writes the table as it grows; returns 2 where there is nothing to measure."""
    parser = _parser()
    options = parser.parse_args(argv)
    if not _library.cuda_kernels():
        print("tune-gpu: this liblapax was built without CUDA kernels", file=sys.stderr)
        return 2
    names = [*_choices.table(None), *SCALARS]
    if unknown := options.only - {*names}:
        parser.error(f"--only: unknown {', '.join(sorted(unknown))}; of {', '.join(names)}")
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        workers = {
            kind: stack.enter_context(Worker(_forced(folder, kind), options.dry))
            for kind in ("rows", "targets", "library")
        }
        about = workers["rows"].ask("about")
        if about.get("platform") != "gpu" and not options.dry:
            why = about.get("error") or f"JAX's device is {about['card']}"
            print(f"tune-gpu: no GPU, nothing measured: {why}", file=sys.stderr)
            return 2
        try:
            times = Times(options.output.with_suffix(".times"), about, workers)
        except ValueError as error:
            print(f"tune-gpu: {error}", file=sys.stderr)
            return 2
        done: Done = {}
        end = time.monotonic() + 60 * options.minutes
        for op, dtype, key, order in _found(times, workers, options.only, end, options.dry):
            done[op, dtype, key] = order
            options.output.write_text(_written(done, about), encoding="utf-8")
            shown = "as far as it fits" if order is None else order
            print(f"{op:<20}{dtype:<6}{key:<9}{shown}", flush=True)
    print(f"{len(done)} choices; LAPAX_GPU_CHOICES={options.output} lets programs follow them")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lapax tune-gpu", description=__doc__)
    parser.add_argument("--minutes", type=float, default=15.0, help="when to end; 15")
    parser.add_argument(
        "--only",
        type=lambda words: frozenset(words.split(",")),
        default=frozenset(),
        metavar="solve,f32",
        help="only these ops and dtypes",
    )
    parser.add_argument(
        "--output", "-o", type=Path, default=Path("gpu-choices.json"), help="gpu-choices.json"
    )
    parser.add_argument("--dry", action="store_true", help=argparse.SUPPRESS)  # On the CPU.
    return parser


class Worker:
    """A process of `_tune_worker` with the choices of a file, started when it is asked first."""

    def __init__(self, choices: Path, dry: bool) -> None:
        self._environment = os.environ | {
            "LAPAX_GPU_CHOICES": str(choices),
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        }
        if dry:
            self._environment["JAX_PLATFORMS"] = "cpu"
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def ask(self, request: Any) -> dict[str, Any]:
        """The answer; {"error"} where there is none, after which the process is another one."""
        if self._process is None:
            command = [sys.executable, "-m", "lapax._tune_worker"]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                env=self._environment,
            )  # fmt: skip
        asks, answers = self._process.stdin, self._process.stdout
        assert asks is not None
        assert answers is not None
        line = ""
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(request), file=asks, flush=True)
            if select.select([answers], [], [], PATIENCE)[0]:
                line = answers.readline()
        if not line:
            self.__exit__()
            return {"error": f"{request}: no answer within {PATIENCE:g} s, or the process ended"}
        answer: dict[str, Any] = json.loads(line)
        return answer


def _forced(folder: Path, kind: str) -> Path:
    """A file of choices by which a process is of one kind."""
    rows = _row_major()
    orders = {
        op: None if kind == "rows" or (kind == "targets" and op not in rows) else 0
        for op in _choices.table(None)
    }
    table = [
        {"ops": [op], "gpu": "any", "batches": order, "alone": order}
        for op, order in orders.items()
    ]
    file = folder / f"{kind}.json"
    file.write_text(json.dumps(table), encoding="utf-8")
    return file


def _row_major() -> set[str]:
    return {it.signature.op for it in targets("cuda") if it.signature.layout == "row"}


class Times:
    """Seconds of calls, each asked for once: those of a file, and then the processes'."""

    def __init__(self, file: Path, about: Mapping[str, Any], workers: Mapping[str, Worker]) -> None:
        """Raises ValueError where the file is of another GPU or lapax."""
        self._file, self._workers = file, workers
        head = json.dumps({**about, "lapax": _library.version()})
        if not file.exists():
            file.write_text(f"{head}\n", encoding="utf-8")
        first, *lines = file.read_text(encoding="utf-8").splitlines()
        if first != head:
            raise ValueError(f"{file} has times of {first}, not of {head}; remove it to begin anew")
        self._known = {tuple(point): seconds for *point, seconds in map(json.loads, lines)}

    def quicker(self, kinds: tuple[str, str], point: tuple[str, str, int, int]) -> bool:
        """Whether a call takes the first kind of process no longer than the second one."""
        if any((kind, *point) not in self._known for kind in kinds):
            for kind, seconds in self._least(kinds, point).items():
                self._known[kind, *point] = seconds
                with self._file.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([kind, *point, seconds]) + "\n")
        ours, theirs = (self._known[kind, *point] for kind in kinds)
        return ours is not None and (theirs is None or ours <= TIE * theirs)

    def _least(
        self, kinds: tuple[str, str], point: tuple[str, str, int, int]
    ) -> dict[str, float | None]:
        """By kind, None where the call failed: that is no time, and JSON has no infinity."""
        found: dict[str, float | None] = {}
        for _ in range(ROUNDS):
            for kind in kinds:
                seconds = self._workers[kind].ask(point).get("seconds")
                before = found.get(kind, math.inf)
                if seconds is None or before is None:
                    found[kind] = None
                else:
                    found[kind] = min(before, seconds)
        return found


def _found(
    times: Times, workers: Mapping[str, Worker], only: frozenset[str], end: float, dry: bool
) -> Iterator[tuple[str, str, str, int | None]]:
    """Op, dtype, key and order of each choice, until the time is over."""
    table, rows = _choices.table(None), _row_major()
    called = {kind: workers[kind].ask("called") for kind in ("rows", "targets")}
    if why := [answer["error"] for answer in called.values() if "error" in answer]:
        raise RuntimeError(f"which ops functions call: {why[0]}")
    orders = {order for row in table.values() for key in BATCHES for order in row[key].values()}
    grid = sorted({*ORDERS, *(order for order in orders if order)})
    if dry:
        grid = grid[:2]
    for dtype in [it for it in SCALARS if not only & {*SCALARS} or it in only]:
        for key, batch in BATCHES.items():
            for op in [it for it in table if not only - {*SCALARS} or it in only]:
                kinds = ("rows", "targets") if op in rows else ("targets", "library")
                name = next((it for it, ops in called[kinds[0]].items() if op in ops), None)
                if name is None:  # No function of the benchmark calls it.
                    continue
                if time.monotonic() > end:
                    return

                def quicker(
                    n: int,
                    name: str = name,
                    kinds: Any = kinds,
                    dtype: str = dtype,
                    batch: int = batch,
                ) -> bool:
                    return times.quicker(kinds, (name, dtype, n, batch))

                order = border(grid, quicker)
                # JAX's rules know nothing of a kernel's room: up to where it was measured.
                yield op, dtype, key, grid[-1] if order is None and op in rows else order


def border(orders: Sequence[int], quicker: Callable[[int], bool]) -> int | None:
    """The last of the ascending orders at which the kernel is the quicker one, which it is up to
    there and no more; 0 before the first, None where it is at the last."""
    won, lost = 0, len(orders)
    while won < lost:
        middle = (won + lost) // 2
        won, lost = (middle + 1, lost) if quicker(orders[middle]) else (won, middle)
    return None if won == len(orders) else orders[won - 1] if won else 0


def _written(done: Done, about: Mapping[str, Any]) -> str:
    """The table's rows; what was not measured is as it was."""
    now = _choices.table(about["gpu"])
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    rows = []
    for op in dict.fromkeys(op for op, *_ in done):
        orders = {
            key: {it: done.get((op, it, key), now[op][key][it]) for it in SCALARS}
            for key in BATCHES
        }
        measured = [f"{dtype} {key}" for name, dtype, key in done if name == op]
        rows.append(
            {
                "ops": [op],
                "gpu": about["gpu"] or "any",
                **orders,
                "measured": {"card": about["card"], "date": date},
                "why": f"tune-gpu of lapax {_library.version()}: {', '.join(measured)}",
            }
        )
    lines = ",\n".join(json.dumps(row) for row in rows)
    return f"[\n{lines}\n]\n"
