"""Runs SciPy's own tests of scipy.linalg on lapax.linalg and on JAX's functions, and counts.

    python tests/conformance/scipy_run.py --results FOLDER [--only test_decomp]

needs pytest, scipy and hypothesis beside lapax. A run of all files takes each side an hour or two,
and writes down each test in a file of FOLDER as it ends: one that was stopped goes on with what is
missing, and `--again PATTERN` runs some anew.
Writes docs/scipy-conformance.md, with every failure in a class, unless --only or --side.
"""

from __future__ import annotations

import argparse
import collections
import functools
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import jax
from scipy_outcomes import forget, written_down
from scipy_values import EVIDENCE, Errors

import lapax

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent.parent / "docs" / "scipy-conformance.md"

FILES = [
    "test_basic",
    "test_batch",
    "test_cythonized_array_utils",
    "test_decomp_cholesky",
    "test_decomp",
    "test_decomp_cossin",
    "test_decomp_ldl",
    "test_decomp_lu",
    "test_decomp_polar",
    "test_decomp_update",
    "test_matfuncs",
    "test_matmul_toeplitz",
    "test_procrustes",
    "test_sketches",
    "test_solve_toeplitz",
    "test_solvers",
    "test_special_matrices",
]
"""Those of functions that are public: the wrappers of BLAS and LAPACK are left out.

The file named after Cython is of `bandwidth`, `issymmetric` and `ishermitian`."""

SIDES = {"lapax": "lapax.linalg", "JAX": "jax.scipy.linalg,jax.numpy.linalg"}

UNSET = "numbers that SciPy leaves unset, or fills with junk where there is no answer"
OTHER_TYPES = "an array or a number that JAX has not (object, text, sparse, an integer of 65 bits)"
CLASSES = {
    "the function is missing": r"is missing",
    "overwriting an argument": (
        r"^\S+ [^\s\[]*overwrite\w*(:|\[\S*True)|test_overwrite_cleaning|test_non_unit_strides"
    ),
    "what SciPy refuses, and lapax.linalg computes": r"DID NOT RAISE .*NotImplementedError",
    UNSET: r"test_multiply_empty|test_strict_upper_triangular",
    "an exception or a warning that depends on values, which JAX has not": (
        r"DID NOT RAISE .*LinAlgError|DID NOT WARN|LinAlgWarning|test_gesdd_nan"
    ),
    "an argument that is ignored, such as a driver's name, or checked less": (
        r"DID NOT RAISE|did not raise|not raised"
    ),
    "a batch of what is static, such as a bandwidth or a position": r"Non-hashable static",
    OTHER_TYPES: (
        r"NoArrayError|not a valid JAX array type|setting an array element"
        r"|expected entries that int64 has"
    ),
    "an argument that is refused, or refused by ValueError where SciPy has another type": (
        r": ValueError: \w+: [\w, ]+: expected |unexpected keyword|takes .* argument"
    ),
    "a batch of tuples or flags, of which SciPy makes one array": (
        r"tuple indices must be integers|'bool' object is not subscriptable"
    ),
    "another basis of the same space, or other phases": (
        r"test_cossin_separate|^test_batch \S*(test_null_space|orth|test_svd\[complex128-True)"
    ),
    "a NumPy function where one of JAX is needed": (
        r"TracerArrayConversionError|test_gh_13137_sort_custom"
    ),
    "memory order, or an array that is not writeable": r"flags|F_CONTIGUOUS|writeable",
    "a shape that would depend on values": r"depends on values|ConcretizationTypeError",
    "a dtype beside the four, or one that SciPy chooses by values": (
        r"dtype\('|dtype\[|'[fdFD]' == '[fdFD]'|isinstance\(np\.float32|test_sample_compatible"
        r"|test_type_conversion_mixed"
    ),
    "a batch against its matrices one by one: other kernels, and a limit of one rounding": (
        r"^test_batch \S*(float32|complex64|cossin|angles).*(rtol=1e-07|Arrays are not equal)"
        r"|test_gh25924"
    ),
    "an order of conjugate pairs that the last rounding of a quotient decides": (
        r"^test_decomp \S*(test_bad_geneig|test_make_eigvals|test_singular)"
    ),
    "a result that is not finite, where SciPy's is": r"the result is not finite",
}
"""A failure belongs to the first class whose pattern is in "file test: message"."""

VALUES = "values, where SciPy's own are farther from the truth"
NOT_OURS = {
    VALUES,
    "overwriting an argument",
    "what SciPy refuses, and lapax.linalg computes",
    UNSET,
    OTHER_TYPES,
    "memory order, or an array that is not writeable",
}
"""Classes of what no function of JAX's arrays can do, or none should."""

PASSING = {"passed", "skipped", "not run"}

UNCLASSED = "values, and what has no class"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, required=True, help="folder of what has run")
    parser.add_argument("--only", choices=FILES, action="append", help="run a file; no page")
    parser.add_argument("--side", choices=SIDES, help="run one side; no page")
    parser.add_argument("--page", action="store_true", help="write the page of what was run")
    parser.add_argument("--again", metavar="PATTERN", help='run "test: outcome" that match anew')
    parser.add_argument("--workers", help="processes of pytest-xdist; none by default")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    lapax.install()
    options.results.mkdir(parents=True, exist_ok=True)
    files = options.only or FILES
    for side in [] if options.page else [options.side] if options.side else SIDES:
        run(options, files, side)
    if options.side:
        return 0
    tables = [(file, {side: outcomes(options, file, side) for side in SIDES}) for file in files]
    text = page(tables)
    if not options.only:
        PAGE.write_text(text, encoding="utf-8")
    print(text)
    return 0


def outcomes(options: argparse.Namespace, file: str, side: str) -> dict[str, str]:
    """Test → "passed", "skipped", "not run", or the message of its failure."""
    return written_down(options.results / f"{side}-{file}.jsonl")


def run(options: argparse.Namespace, files: list[str], side: str) -> None:
    """Runs what is missing of these files."""
    for log in (options.results / f"{side}-{file}.jsonl" for file in files):
        if options.again and log.exists():
            forget(log, options.again)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += ["-p", "scipy_plugin", "-p", "scipy_outcomes", "--tb=line"]
    command += ["-n", options.workers] if options.workers else []
    command += ["--pyargs", *(f"scipy.linalg.tests.{file}" for file in files)]
    path = os.pathsep.join(filter(None, (str(HERE), os.getenv("PYTHONPATH"))))
    environment = os.environ | {"SCIPY_ANSWERS": SIDES[side], "PYTHONPATH": path}
    environment |= {"SCIPY_OUTCOMES": str(options.results.resolve() / side)}
    # What is compiled runs once, and nearly all of the time is compilation.
    cache = str((options.results / "compiled").resolve())
    environment |= {"JAX_PLATFORMS": "cpu", "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    environment |= {"JAX_COMPILATION_CACHE_DIR": cache, "SCIPY_AVAILABLE_MEM": "4G"}
    environment |= {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    ended = subprocess.run(command, cwd=options.results, env=environment, check=False)
    if ended.returncode not in (0, 1, 5):  # Tests failed, or there are none.
        raise SystemExit(f"pytest ended with status {ended.returncode}: {' '.join(command)}")


def count(of: dict[str, str]) -> tuple[int, int]:
    """How many passed, and how many ran."""
    ran = [what for what in of.values() if what not in ("skipped", "not run")]
    return ran.count("passed"), len(ran)


def page(tables: list[tuple[str, dict[str, dict[str, str]]]]) -> str:
    lines = [
        "`python tests/conformance/scipy_run.py --results FOLDER` wrote this page.",
        "",
        "# SciPy's own tests on lapax.linalg",
        "",
        f"The test files of the installed scipy.linalg ({metadata.version('scipy')}), unchanged, "
        "with each public function answered by the one of that name in `lapax.linalg`, and by "
        f"JAX's own (jax {metadata.version('jax')}): passed of those that ran. Exceptions are "
        "compared by type, not by text; a result that is not finite stands for SciPy's "
        "LinAlgError, and for its ValueError where the arguments are not finite; an array that JAX "
        "does not have is refused by an error that is both TypeError and ValueError.",
        "",
        "The second share leaves out failures that no function of JAX's arrays avoids, of "
        "overwritten arguments, of arrays that JAX does not have, and of memory order, and those "
        "that none should: of what SciPy refuses, and of values where SciPy's own are farther from "
        "the truth. What is not run is neither passed nor failed: a file of which a part ran says "
        "so. The totals are of the files of which both sides ran something.",
        "",
        "| file | lapax.linalg | | so far as JAX's arrays go | JAX's own |",
        "|---|---|---|---|---|",
    ]
    everything: list[dict[str, dict[str, str]]] = []
    for file, of in tables:
        everything.append(
            {side: {f"{file} {test}": of[side][test] for test in of[side]} for side in SIDES}
        )
        lines.append(row(file, everything[-1]))
    # Totals are of the files that both sides ran.
    both = [of for of in everything if all(of.values())]
    total = {side: {name: what for of in both for name, what in of[side].items()} for side in SIDES}
    lines += [row("all that both ran", total), "", "## What fails", ""]
    classes: dict[str, dict[str, list[str]]] = collections.defaultdict(
        lambda: collections.defaultdict(list)
    )
    for file, of in tables:
        for test, what in of["lapax"].items():
            if what not in PASSING:
                classes[class_of(file, test, what)][file].append(test)
    for name in [VALUES, *CLASSES, UNCLASSED]:
        files = classes.get(name, {})
        number = sum(map(len, files.values()))
        if number:
            lines += [f"**{name[0].upper()}{name[1:]}**: {number}", ""]
            for file, tests in files.items():
                functions = collections.Counter(re.sub(r"\[.*", "", test) for test in tests)
                listed = ", ".join(
                    f"`{test}`" + (f" ({times} times)" if times > 1 else "")
                    for test, times in sorted(functions.items())
                )
                lines.append(f"- {file}: {listed}")
                lines += [measured(file, test) for test in tests if name == VALUES]
            lines.append("")
    return "\n".join(lines)


def measured(file: str, test: str) -> str:
    """The evidence for a failure by values."""
    of, ours, scipys = errors(file, test)
    return f"  - `{test}`, {of}: error {ours:.1e}, SciPy's {scipys:.1e}"


def row(title: str, of: dict[str, dict[str, str]]) -> str:
    """A line of the table."""
    passed, ran = count(of["lapax"])
    impossible = sum(
        class_of(*test.split(" ", 1), what) in NOT_OURS
        for test, what in of["lapax"].items()
        if what not in PASSING
    )
    cells = [
        f"{passed} of {ran}{part(of['lapax'])}" if ran else "not run",
        share(passed, ran),
        share(passed, ran - impossible),
    ]
    passed, ran = count(of["JAX"])
    return f"| {title} | {' | '.join([*cells, f'{passed} of {ran}' if ran else 'not run'])} |"


def part(of: dict[str, str]) -> str:
    """How many a file has, where some did not run."""
    missing = list(of.values()).count("not run")
    return f", of {len(of)}" if missing else ""


def share(passed: int, ran: int) -> str:
    return f"{passed / ran:.1%}" if ran else ""


@functools.cache
def errors(file: str, test: str) -> Errors:
    """How far both answers are from the truth."""
    return EVIDENCE[file, test]()


def class_of(file: str, test: str, message: str) -> str:
    """The class of a failure."""
    if (file, test) in EVIDENCE and errors(file, test).explain:
        return VALUES
    text = " ".join(f"{file} {test}: {message}".split())
    return next((name for name, of in CLASSES.items() if re.search(of, text)), UNCLASSED)


if __name__ == "__main__":
    sys.exit(main())
