"""Runs JAX's own linear-algebra tests under stock JAX and under lapax and compares test by test.

    python tests/conformance/run.py JAX_CHECKOUT/tests --results FOLDER

needs absl-py, hypothesis and pytest beside lapax. Each of the four runs (stock and lapax, x32 and
x64) takes some minutes and leaves a JUnit file in FOLDER; a file that is there is not made again.
Writes docs/jax-conformance.md; exits with 1 where an outcome differs from stock JAX's.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPORT = HERE.parent.parent / "docs" / "jax-conformance.md"
FILE = "linalg_test.py"
GENERATED_CASES = "10"

# The tests of what lapax computes and of what JAX builds on it, by how their names begin.
COVERED = {
    "triangular solve": ("testTriangularSolve", "testSolveTriangular"),
    "Cholesky": ("testCholesky", "testChoSolve"),
    "LU: factors, solve": ("testLu", "testSolve", "testTensorsolve"),
    "LU: det, slogdet": ("testDet", "testSlogdet"),
    "LU: inv, matrix_power, expm": ("testInv", "testTensorinv", "testMatrixPower", "testExpm"),
}

Outcomes = Mapping[str, str]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tests", type=Path, help="the folder tests/ of a JAX checkout")
    parser.add_argument("--results", type=Path, required=True, help="folder of the JUnit files")
    parser.add_argument("--revision", default="unknown", help="of the checkout, for the page")
    parser.add_argument("--workers", default="0", help="pytest-xdist's processes; none by default")
    options = parser.parse_args()
    options.results.mkdir(parents=True, exist_ok=True)
    runs = {
        (engine, bits): outcomes(
            options.tests / FILE, engine, bits, options.results, options.workers
        )
        for bits in ("x32", "x64")
        for engine in ("stock", "lapax")
    }
    text, differing = report(runs, options.revision)
    REPORT.write_text(text, encoding="utf-8")
    print(text)
    return 1 if differing else 0


def outcomes(file: Path, engine: str, bits: str, results: Path, workers: str) -> dict[str, str]:
    """Test name → outcome; runs the tests unless their results exist."""
    junit = results / f"{engine}-{bits}.xml"
    if not junit.exists():
        print(f"running {file.name} under {engine}, {bits}", file=sys.stderr, flush=True)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += ["--rootdir", str(file.parent), "--junitxml", str(junit.resolve())]
        command += ["-k", " or ".join(itertools.chain(*COVERED.values()))]
        command += ["-n", workers] if workers != "0" else []
        command += ["-p", "lapax_plugin"] if engine == "lapax" else []
        environment = os.environ | {
            "JAX_ENABLE_X64": str(int(bits == "x64")),
            "JAX_NUM_GENERATED_CASES": GENERATED_CASES,
            "JAX_PLATFORMS": "cpu",
            "PYTHONPATH": os.pathsep.join(filter(None, (str(HERE), os.getenv("PYTHONPATH")))),
        }
        status = subprocess.run([*command, file.name], cwd=file.parent, env=environment).returncode
        if status not in (0, 1):  # 1: some test failed, which is a result.
            raise SystemExit(f"pytest ended with status {status} under {engine}, {bits}")
    cases = ElementTree.parse(junit).iter("testcase")
    # Only the class: what stands before it depends on where pytest was started.
    return {
        f"{str(case.get('classname')).rpartition('.')[2]}.{case.get('name')}": outcome(case)
        for case in cases
        if family(str(case.get("name")))
    }


def family(method: str) -> str | None:
    """What a test method is about; None where lapax has no part in it."""
    return next((what for what, names in COVERED.items() if method.startswith(names)), None)


def outcome(case: ElementTree.Element) -> str:
    """passed, failed, error, or skipped with JAX's reason."""
    for child in case:
        if child.tag == "skipped":
            return f"skipped ({child.get('message')})"
        if child.tag in ("failure", "error"):
            return {"failure": "failed", "error": "error"}[child.tag]
    return "passed"


def report(runs: Mapping[tuple[str, str], Outcomes], revision: str) -> tuple[str, list[str]]:
    """The page, and the tests whose outcome differs from stock JAX's."""
    counts, differing = [], []
    for bits in ("x32", "x64"):
        stock, ours = runs["stock", bits], runs["lapax", bits]
        tests = sorted(stock.keys() | ours.keys())
        for what in (*COVERED, "all"):
            chosen = [t for t in tests if what in ("all", family(t.rpartition(".")[2]))]
            counts.append(f"| {bits} | {what} | {tally(stock, chosen)} | {tally(ours, chosen)} |")
        differing += [
            f"- {bits} `{test}`: stock {stock.get(test)}, lapax {ours.get(test)}"
            for test in tests
            if stock.get(test) != ours.get(test)
        ]
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("jax", "jaxlib", "lapax"))
    lines = [
        "`python tests/conformance/run.py JAX_CHECKOUT/tests --results FOLDER` wrote this page.",
        "",
        "# JAX's own tests under lapax",
        "",
        f"The tests of `tests/{FILE}` of the JAX repository (revision {revision}) that reach what "
        f"lapax computes, unchanged, {GENERATED_CASES} generated cases per test, on the CPU, with "
        f"{versions}: once under stock JAX and once after `lapax.install()`.",
        "",
        "| mode | tests | stock JAX | lapax |",
        "|---|---|---|---|",
        *counts,
        "",
        "Skipped by JAX itself, under stock JAX and under lapax, with its reason:",
        "",
        *skips(runs),
        "",
        f"Tests whose outcome differs: {len(differing)}.",
        *differing,
    ]
    return "\n".join(lines) + "\n", differing


def skips(runs: Mapping[tuple[str, str], Outcomes]) -> list[str]:
    """A line for each skipped test method and reason, with the counts of the four runs."""
    found: dict[tuple[str, str], collections.Counter[str]] = {}
    for (engine, bits), run in runs.items():
        for test, result in run.items():
            if result.startswith("skipped"):
                method = test.rpartition(".")[2].rstrip("0123456789")
                count = found.setdefault((method, result), collections.Counter())
                count[f"{engine} {bits}"] += 1
    return [
        f"- `{method}`: {result}: " + ", ".join(f"{run} {count}" for run, count in counts.items())
        for (method, result), counts in found.items()
    ]


def tally(run: Outcomes, tests: list[str]) -> str:
    """How many of the tests had which outcome, without the reasons."""
    found = collections.Counter(run.get(test, "missing").partition(" ")[0] for test in tests)
    return ", ".join(f"{count} {word}" for word, count in found.most_common())


if __name__ == "__main__":
    sys.exit(main())
