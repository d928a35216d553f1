"""Runs JAX's own linear-algebra tests under stock JAX and under lapax and compares test by test.

    python tests/conformance/run.py JAX_CHECKOUT/tests --results FOLDER [--sweep] [--failures]

needs absl-py, hypothesis and pytest beside lapax. Each run (a file, stock or lapax, x32 or x64)
takes from seconds to ten minutes and leaves a JUnit file in FOLDER; one that is there is not made
again. --sweep adds linalg_test with 100 generated cases per test under lapax, 25 and 40 minutes
(--workers N divides that, with pytest-xdist); stock JAX then runs what failed. With --failures it
does so for all files. Writes docs/jax-conformance.md unless --only FILE; exits with 1 where a test
that stock JAX passes fails, but for those in exceptions.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, replace
from pathlib import Path

import report

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent.parent / "docs" / "jax-conformance.md"
EXCEPTIONS = HERE / "exceptions.md"

FILES = {
    "svd_test": (),
    "eigh_test": (),
    "linalg_sharding_test": (),
    "export_back_compat_test": ("--lapax-takeover",),
    "linalg_test": (),
}
"""The test files, cheap ones first, and what the run under lapax needs."""

CASES, SWEEP = 10, 100
"""JAX_NUM_GENERATED_CASES: JAX's default, and that of the sweep over linalg_test."""


@dataclass(frozen=True)
class Run:
    """One file under one engine in one mode."""

    file: str
    engine: str
    bits: str
    cases: int = CASES

    @property
    def junit(self) -> str:
        """The name of its JUnit file."""
        cases = "" if self.cases == CASES else f"-{self.cases}"
        return f"{self.engine}-{self.file}-{self.bits}{cases}.xml"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tests", type=Path, help="the folder tests/ of a JAX checkout")
    parser.add_argument("--results", type=Path, required=True, help="folder of the JUnit files")
    parser.add_argument("--revision", default="unknown", help="of the checkout, for the page")
    parser.add_argument("--workers", help="processes of pytest-xdist; none by default")
    parser.add_argument("--only", choices=FILES, help="run one file and write no page")
    parser.add_argument("--sweep", action="store_true", help=f"linalg_test with {SWEEP} cases too")
    parser.add_argument("--failures", action="store_true", help="of stock JAX run what failed only")
    options = parser.parse_args()
    options.results.mkdir(parents=True, exist_ok=True)
    runs = [
        Run(file, "lapax", bits, cases)
        for cases in (CASES, *([SWEEP] if options.sweep else []))
        for file in ([options.only] if options.only else FILES)
        if cases == CASES or file == "linalg_test"
        for bits in ("x32", "x64")
    ]
    tables = [compared(options, run) for run in runs]
    text = report.page(tables, options.revision, EXCEPTIONS.read_text(encoding="utf-8"))
    if not options.only:
        PAGE.write_text(text, encoding="utf-8")
    print(text)
    return 1 if report.unexplained(tables, EXCEPTIONS.read_text(encoding="utf-8")) else 0


def compared(options: argparse.Namespace, run: Run) -> report.Table:
    """A run under lapax beside stock JAX's, of which the sweep and --failures want what failed."""
    ours = outcomes(options, run)
    if run.cases == CASES and not options.failures:
        stock = outcomes(options, replace(run, engine="stock"))
        return report.Table(run.file, run.bits, run.cases, stock, ours)
    failed = [test.replace(".", "::") for test, what in ours.items() if what in report.BAD]
    ran = outcomes(options, replace(run, engine="stock-failed"), failed) if failed else {}
    # A skip is JAX's own decision, whatever computes.
    others = {t: what if what.startswith("skipped") else "not run" for t, what in ours.items()}
    return report.Table(run.file, run.bits, run.cases, {**others, **ran}, ours)


def outcomes(
    options: argparse.Namespace, run: Run, tests: list[str] | None = None
) -> dict[str, str]:
    """Test → outcome; runs the file, or only `tests` of it, unless the results exist."""
    junit = options.results / run.junit
    if not junit.exists():
        print(f"running {run.junit}", file=sys.stderr, flush=True)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += ["--rootdir", str(options.tests), "--junitxml", str(junit.resolve())]
        command += ["-n", options.workers] if options.workers else []
        if run.engine == "lapax":
            command += ["-p", "lapax_plugin", *FILES[run.file]]
        command += [f"{run.file}.py::{test}" for test in tests] if tests else [f"{run.file}.py"]
        environment = os.environ | {
            "JAX_ENABLE_X64": str(int(run.bits == "x64")),
            "JAX_NUM_GENERATED_CASES": str(run.cases),
            "JAX_PLATFORMS": "cpu",
            "PYTHONPATH": os.pathsep.join(filter(None, (str(HERE), os.getenv("PYTHONPATH")))),
        }
        status = subprocess.run(command, cwd=options.tests, env=environment).returncode
        if status not in (0, 1):  # 1: some test failed, which is a result.
            raise SystemExit(f"pytest ended with status {status}: {' '.join(command)}")
    cases = ElementTree.parse(junit).iter("testcase")
    # Only the class: what stands before it depends on where pytest was started.
    return {
        f"{str(case.get('classname')).rpartition('.')[2]}.{case.get('name')}": outcome(case)
        for case in cases
    }


def outcome(case: ElementTree.Element) -> str:
    """passed, failed, error, or skipped with JAX's reason."""
    for child in case:
        if child.tag == "skipped":
            return f"skipped ({child.get('message')})"
        if child.tag in ("failure", "error"):
            return {"failure": "failed", "error": "error"}[child.tag]
    return "passed"


if __name__ == "__main__":
    sys.exit(main())
