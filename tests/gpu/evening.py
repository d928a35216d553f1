"""`make gpu-evening`: all that is to be known of a GPU, in eight minutes, most important first.

    python tests/gpu/evening.py --out FOLDER          # goes on where a run into FOLDER ended
    python tests/gpu/evening.py --out FOLDER --dry    # on the CPU, with tiny sizes

Each step of `evening_steps` is a process of its own, or several that share it out, with a time-out.
It writes a line as it begins a piece of its work and one as it ends it; where it ends otherwise,
that piece has failed, and another process goes on with the next. `evening_page` makes CSV, PNG and
a page of the lines. Exits with 1 where something was wrong or failed, with 2 without a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent

SHARED = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
"""For processes that have the GPU together, and for those in which JAX has only a part of it."""

ABSENT, LOST = 2, 3
"""The exit status of a step without a GPU, and of one that has said why its GPU does no more."""

GRACE = 20.0
"""Seconds that a piece of work may take beyond its step's time; JAX needs up to ten to start."""


@dataclass(frozen=True)
class Step:
    """A part of the evening."""

    name: str
    seconds: float
    """After which no other piece is begun."""
    shares: int = 1
    """Processes at once: what is not timed is compiled by several."""
    environment: Mapping[str, str] = field(default_factory=dict)


STEPS = (
    Step("device", 20, environment={"XLA_FLAGS": "--xla_gpu_graph_min_graph_size=1"}),
    Step("targets", 75, 6, SHARED),
    Step("programs", 75, 6, SHARED),
    Step("rows", 110),
    Step("torch", 25, environment=SHARED),
    Step("cupy", 25, environment=SHARED),
    Step("heat", 75),
    Step("tune", 480, environment=SHARED),
)
"""By importance, the first a short one that sees whether there is a GPU; the last has what is left
of the time."""


def main() -> int:
    """Runs the steps; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/gpu-evening"), help="a folder")
    parser.add_argument("--minutes", type=float, default=8.0, help="of all steps; 8")
    parser.add_argument("--only", help="these steps, such as targets,rows")
    parser.add_argument("--commit", help="what the page names, where this is no checkout of git")
    parser.add_argument("--dry", action="store_true", help="on the CPU, with tiny sizes")
    options = parser.parse_args()
    names = [step.name for step in STEPS]
    only = options.only.split(",") if options.only else names
    if unknown := [name for name in only if name not in names]:
        parser.error(f"--only: no step is {', '.join(unknown)}; there are {', '.join(names)}")
    options.out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + 60 * options.minutes
    steps, flags = [step for step in STEPS if step.name in only], list[str]()
    if options.dry:  # In one process: most of the time goes into starting JAX.
        steps, flags = [Step(",".join(only), 480, environment={"JAX_PLATFORMS": "cpu"})], ["--dry"]
    for step in steps:
        seconds = min(step.seconds, end - time.monotonic())
        if seconds <= 0:
            print(f"{step.name}: not run, the {options.minutes:g} minutes are over")
        elif not run(step, seconds, options.out, flags):
            print("no GPU, nothing was run; --dry tries the steps on the CPU", file=sys.stderr)
            return ABSENT
    commit = ["--commit", options.commit] if options.commit else []
    page = [sys.executable, HERE / "evening_page.py", options.out, *commit]
    return subprocess.run(page).returncode


def run(
    step: Step,
    seconds: float,
    out: Path,
    flags: Sequence[str] = (),
    script: Path = HERE / "evening_steps.py",
) -> bool:
    """Runs a step's processes until they are done or the time is over; False without a GPU."""
    began = time.monotonic()

    def share(at: int) -> bool:
        lines = out / f"{step.name}.{at}.jsonl"
        command = [sys.executable, script, step.name, lines, str(at), str(step.shares), *flags]
        return _done(step, command, lines, began + seconds)

    with ThreadPoolExecutor(step.shares) as pool:
        present = all(pool.map(share, range(step.shares)))
    print(f"{step.name:<10}{time.monotonic() - began:6.1f} s", flush=True)
    return present


def _done(step: Step, command: Sequence[str | Path], lines: Path, end: float) -> bool:
    """Runs a process, after a fault another one, until all is done; False without a GPU."""
    before = _begun(lines)
    while True:
        left = max(end - time.monotonic(), 0)
        with lines.with_suffix(".log").open("a", encoding="utf-8") as log:
            try:
                status = subprocess.run(
                    [*command, "--seconds", str(left)], env={**os.environ, **step.environment},
                    stdout=log, stderr=subprocess.STDOUT, timeout=left + GRACE,
                ).returncode  # fmt: skip
                what = f"the process ended with {status}; see {log.name}"
            except subprocess.TimeoutExpired:
                status, what = -1, f"no end {GRACE:g} s after the step's time"
        if status in (0, ABSENT):
            return status == 0
        begun = _begun(lines)
        if status != LOST:
            with lines.open("a", encoding="utf-8") as file:
                print(json.dumps(begun | {"wrong": what}), file=file)
        # Another process would do no more where this one began nothing.
        if begun == before or end < time.monotonic():
            break
        before = begun
    return True


def _begun(lines: Path) -> dict[str, str]:
    """The piece of work that was begun last, and its step."""
    text = lines.read_text(encoding="utf-8") if lines.exists() else ""
    begun = [line for line in map(json.loads, text.splitlines()) if "begin" in line]
    if not begun:
        return {"step": lines.name.partition(".")[0], "piece": "the start"}
    return {"step": begun[-1]["step"], "piece": begun[-1]["begin"]}


if __name__ == "__main__":
    sys.exit(main())
