"""pytest plugin: writes down what became of each test as it ends, and leaves out what has run.

SCIPY_OUTCOMES is the beginning of the files' names: `X` is of X-test_basic.jsonl, lines of
{test: outcome} of which the last holds. An outcome is "passed", "skipped", "not run", or a
failure's message and the test's own statement in which it came about.
"""

from __future__ import annotations

import collections
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest


def written_down(log: Path) -> dict[str, str]:
    """What stands in a file."""
    found: dict[str, str] = {}
    for line in log.read_text("utf-8").splitlines() if log.exists() else []:
        found |= json.loads(line)
    return found


def forget(log: Path, pattern: str) -> None:
    """Takes tests out of a file, so that they run again."""
    kept = written_down(log)
    for test, what in kept.items():
        if re.search(pattern, f"{test}: {what}"):
            kept[test] = "not run"
    log.write_text(json.dumps(kept) + "\n", "utf-8")


def place(item: Any) -> tuple[Path, str]:
    """The file that a test's outcome is in, and its name there."""
    name = ".".join(item.nodeid.split("::")[1:])
    return Path(f"{os.environ['SCIPY_OUTCOMES']}-{item.path.stem}.jsonl"), name


def write_down(log: Path, outcomes: Mapping[str, str]) -> None:
    """Under pytest-xdist its first process writes."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        with log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(outcomes) + "\n")


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Leaves out what has run, and writes down what is going to.

    A run that is stopped has seen something of everything: one case of each test, then another.
    """
    places = {item: place(item) for item in items}
    before = {log: written_down(log) for log in {log for log, _ in places.values()}}
    ran = [
        item
        for item, (log, name) in places.items()
        if before[log].get(name) not in (None, "not run")
    ]
    config.hook.pytest_deselected(items=ran)
    left_out = set(ran)
    cases = collections.Counter[Any]()
    turn, missing = {}, collections.defaultdict[Path, dict[str, str]](dict)
    for item in (item for item in items if item not in left_out):
        log, name = places[item]
        test = log, name.partition("[")[0]
        turn[item], missing[log][name] = cases[test], "not run"
        cases[test] += 1
    items[:] = sorted(turn, key=turn.__getitem__)
    for log, names in missing.items():
        write_down(log, names)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Any:
    """Adds the message of a failure, and the test's own statement."""
    report = yield
    report.place, report.failure = list(map(str, place(item))), None
    if report.failed and call.excinfo is not None:
        tests = [entry for entry in call.excinfo.traceback if "linalg/tests" in str(entry.path)]
        where = "".join(f" IN {entry.statement}" for entry in tests[-1:])
        report.failure = f"{call.excinfo.exconly(tryshort=True)}{where}"
    return report


def pytest_runtest_logreport(report: Any) -> None:
    """Writes it down."""
    if report.when == "call" or not report.passed:
        log, name = report.place
        write_down(Path(log), {name: report.failure or report.outcome})
