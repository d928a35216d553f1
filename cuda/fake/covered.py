"""Whether the run that the sanitizers watch takes every branch of every kernel.

    python cuda/fake/covered.py

Compiles the kernels and `emulator/sanitized.cpp` with g++'s counters of branches, runs them, and
reads the counts with gcov, which comes with g++ ($CXX and $GCOV name others). Exits with 1 where a
line was not run, or a branch not taken, for any scalar, and of what several kernels include in any
of them.
"""

from __future__ import annotations

import collections
import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
KERNELS = HERE.parent / "kernels"
# Without optimisation, so that branches are those of the source.
OPTIONS = ["-std=c++20", "-O0", "-g", "-Wno-unknown-pragmas", f"-I{HERE / 'emulator'}"]


def main() -> int:
    """Compiles, runs and reads; returns the exit status."""
    compiler = [os.environ.get("CXX", "g++"), *OPTIONS]
    kernels = sorted(KERNELS.glob("*.cu"))
    with tempfile.TemporaryDirectory() as folder:
        for kernel in kernels:
            counted = ["--coverage", "-include", "emulator.h", "-x", "c++", "-c", str(kernel)]
            run([*compiler, *counted, "-o", f"{kernel.stem}.o"], folder)
        sources = [str(HERE / "emulator" / name) for name in ("emulator.cpp", "sanitized.cpp")]
        objects = [f"{kernel.stem}.o" for kernel in kernels]
        run([*compiler, *sources, *objects, "--coverage", "-o", "counted"], folder)
        run(["./counted"], folder)
        missed = untaken([kernel.stem for kernel in kernels], folder)
    print("\n".join(missed) if missed else "every branch of every kernel is taken")
    return 1 if missed else 0


def untaken(kernels: Sequence[str], folder: str) -> list[str]:
    """What no instance of any kernel's templates has run or taken, as `file:line: source`."""
    # By file and line, and for a branch its number among how many.
    counted: collections.Counter[tuple[str, int, int, int]] = collections.Counter()
    for file in [file for kernel in kernels for file in counts(kernel, folder)]:
        if Path(file["file"]).resolve().parent != KERNELS:
            continue
        name = Path(file["file"]).name
        for line in file["lines"]:
            number = line["line_number"]
            counted[name, number, 0, 0] += line["count"]
            # Instances for real and for complex scalars may have other branches in a line.
            taken = [branch["count"] for branch in line["branches"] if not branch["throw"]]
            for at, count in enumerate(taken):
                counted[name, number, at, len(taken)] += count
    places = {place[:2] for place, count in counted.items() if count == 0}
    source = {name: (KERNELS / name).read_text(encoding="utf-8").split("\n") for name, _ in places}
    found = [(name, number, source[name][number - 1].strip()) for name, number in sorted(places)]
    # A condition on the imaginary part of a real number has one outcome, and so has one on the
    # number of sweeps, which end long before there are too many, whether they converged, and if
    # a unit vector has a component that is large; in one of the instances of its template, whether
    # a group that is a whole warp has a matrix, and a triangle's diagonal is ones.
    known = (
        "imag(", "sweeps < SWEEPS", "sweeps == SWEEPS", "round < ROUNDS", "budget--", "converge()",
        "below ?", "// There is one.", "fine && beside <=", "if (!writes) return", "if (!unit &&",
    )  # fmt: skip
    return [
        f"{name}:{number}: {text}"
        for name, number, text in found
        if not any(word in text for word in known)
    ]


def counts(kernel: str, folder: str) -> list[Any]:
    """What gcov says of each file that a kernel includes."""
    gcov = os.environ.get("GCOV", "gcov")
    run([gcov, "--branch-probabilities", "--json-format", f"{kernel}.o"], folder)
    with gzip.open(Path(folder) / f"{kernel}.gcov.json.gz") as text:
        files: list[Any] = json.load(text)["files"]
    return files


def run(command: list[str], folder: str) -> None:
    """Runs a command whose output is shown where it fails."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    sys.exit(main())
