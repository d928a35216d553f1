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
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent

SHARED = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
"""For processes that have the GPU together."""

ABSENT = 2
"""The exit status of a step that finds no GPU."""

GRACE = 20.0
"""Seconds that a piece of work may take beyond its step's time; JAX needs up to ten to start."""

FAULTS = 20
"""Processes of a share that may fail: a device that is lost fails them all."""


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
    Step("targets", 75, 6, SHARED),
    Step("programs", 75, 6, SHARED),
    Step("device", 20, environment={"XLA_FLAGS": "--xla_gpu_graph_min_graph_size=1"}),
    Step("rows", 110, environment=SHARED),
    Step("torch", 25),
    Step("cupy", 25),
    Step("heat", 75),
    Step("tune", 480),
)
"""By importance; the last has what is left of the time."""


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
    for step in [step for step in STEPS if step.name in only]:
        seconds = min(step.seconds, end - time.monotonic())
        if seconds <= 0:
            print(f"{step.name}: not run, the {options.minutes:g} minutes are over")
        elif not run(step, seconds, options.out, options.dry):
            print("no GPU, nothing was run; --dry tries the steps on the CPU", file=sys.stderr)
            return ABSENT
    command = [sys.executable, str(HERE / "evening_page.py"), str(options.out)]
    return subprocess.run(
        [*command, *(["--commit", options.commit] if options.commit else [])]
    ).returncode


def run(
    step: Step, seconds: float, out: Path, dry: bool, script: Path = HERE / "evening_steps.py"
) -> bool:
    """Runs a step's processes until they are done or the time is over; False without a GPU."""
    shares, began = 1 if dry else step.shares, time.monotonic()
    with ThreadPoolExecutor(shares) as pool:
        found = pool.map(
            lambda share: _share(step, (share, shares), began + seconds, out, dry, script),
            range(shares),
        )
    present = all(found)
    print(f"{step.name:<10}{time.monotonic() - began:6.1f} s", flush=True)
    return present


def _share(
    step: Step, share: tuple[int, int], end: float, out: Path, dry: bool, script: Path
) -> bool:
    at, shares = share
    lines = out / f"{step.name}.{at}.jsonl"
    environment = {**os.environ, **step.environment}
    if dry:
        environment["JAX_PLATFORMS"] = "cpu"
    for _ in range(FAULTS):
        left = max(end - time.monotonic(), 0)
        command = [
            sys.executable,
            str(script),
            step.name,
            str(lines),
            str(at),
            str(shares),
            str(left),
        ]
        with (out / f"{step.name}.{at}.log").open("a", encoding="utf-8") as log:
            try:
                status = subprocess.run(
                    [*command, *(["--dry"] if dry else [])], env=environment, stdout=log,
                    stderr=subprocess.STDOUT, timeout=left + GRACE,
                ).returncode  # fmt: skip
                what = f"the process ended with {status}"
            except subprocess.TimeoutExpired:
                status, what = -1, f"no end {GRACE:g} s after the step's time"
        if status in (0, ABSENT):
            return status == 0
        failed = _begun(lines)
        with lines.open("a", encoding="utf-8") as file:
            print(json.dumps({"piece": failed, "wrong": f"{what}; see {log.name}"}), file=file)
        if end < time.monotonic():
            break
    return True


def _begun(lines: Path) -> str:
    """The piece that was begun last."""
    found = map(
        json.loads, lines.read_text(encoding="utf-8").splitlines() if lines.exists() else []
    )
    return next((line["begin"] for line in reversed(list(found)) if "begin" in line), "the start")


if __name__ == "__main__":
    sys.exit(main())
