"""JAX's linalg_test compiled for an H200 without one, under stock JAX and under lapax.

    JAX_NUM_GENERATED_CASES=10 python tests/gpu/cases.py JAX_CHECKOUT/tests --results FOLDER

needs absl-py, hypothesis and pytest beside what deviceless.py needs, and libdevice where XLA finds
it (XLA_FLAGS=--xla_gpu_cuda_data_dir=…). Each test runs on the CPU, and what it runs is compiled
for the GPU. Leaves a file for each engine in FOLDER, of lines `test, outcome`; one that is there is
not made again. Exits with 1 where stock JAX compiles what lapax does not.
"""

from __future__ import annotations

import argparse
import collections
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ENGINES = {"stock": (), "lapax": ("--lapax",)}


def main() -> int:
    """Runs both and compares; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tests", type=Path, help="the folder tests/ of a JAX checkout")
    parser.add_argument("--results", type=Path, required=True, help="folder of the outcomes")
    options = parser.parse_args()
    options.results.mkdir(parents=True, exist_ok=True)
    stock, ours = (outcomes(options, engine) for engine in ENGINES)
    for engine, found in (("stock", stock), ("lapax", ours)):
        count = collections.Counter(found.values())
        print(f"{engine}: {count['compiled']} of {len(found)} compiled")
    worse = [test for test, what in stock.items() if what == "compiled" and not fine(ours, test)]
    for test in worse:
        print(f"{test}: {ours.get(test, 'not run')}")
    return 1 if worse else 0


def fine(found: dict[str, str], test: str) -> bool:
    """Whether a test's programs compiled; under lapax what is left may hold no linear algebra."""
    return found.get(test) in ("compiled", "nothing to compile")


def outcomes(options: argparse.Namespace, engine: str) -> dict[str, str]:
    """Test → outcome."""
    file = (options.results / f"{engine}.txt").resolve()
    if not file.exists():
        part = file.with_suffix(".part")
        part.unlink(missing_ok=True)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += ["--rootdir", str(options.tests), "-p", "cases_plugin", "--cases", str(part)]
        environment = os.environ | {
            "JAX_PLATFORMS": "cpu",
            "JAX_ENABLE_X64": "1",
            "PYTHONPATH": os.pathsep.join(filter(None, (str(HERE), os.getenv("PYTHONPATH")))),
        }
        status = subprocess.run(
            [*command, *ENGINES[engine], "linalg_test.py"], cwd=options.tests, env=environment
        ).returncode
        if status not in (0, 1):  # 1: some test failed on the CPU, which is not looked at here.
            raise SystemExit(f"pytest ended with status {status}: {' '.join(command)}")
        part.rename(file)
    lines = file.read_text(encoding="utf-8").splitlines()
    return dict(line.split("\t", 1) for line in lines)


if __name__ == "__main__":
    sys.exit(main())
