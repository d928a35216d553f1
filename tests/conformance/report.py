"""docs/jax-conformance.md from the outcomes of the runs."""

from __future__ import annotations

import collections
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata

Outcomes = Mapping[str, str]
"""Test → passed, failed, error, not run, or skipped with JAX's reason."""

BAD = ("failed", "error")


@dataclass(frozen=True)
class Table:
    """A file in one mode, under stock JAX and under lapax."""

    file: str
    bits: str
    cases: int
    stock: Outcomes
    ours: Outcomes

    @property
    def tests(self) -> list[str]:
        """The tests of either run."""
        return sorted(self.stock.keys() | self.ours.keys())

    def worse(self) -> list[str]:
        """Tests that do not pass under lapax as they pass under stock JAX."""
        return [
            test
            for test in self.tests
            if self.ours.get(test, "missing").startswith((*BAD, "missing", "skipped"))
            and self.stock.get(test) != self.ours.get(test)
        ]

    def better(self) -> list[str]:
        """Tests that pass under lapax and not under stock JAX, which ran them."""
        return [
            test
            for test in self.tests
            if self.ours.get(test) == "passed" and self.stock.get(test) not in ("passed", "not run")
        ]


def unexplained(tables: Sequence[Table], exceptions: str) -> list[str]:
    """Tests that are worse and that the exceptions do not name with file and mode."""
    named = set(re.findall(r"`([\w.]+)`", exceptions))
    return [test for table in tables for test in table.worse() if test not in named]


def page(tables: Sequence[Table], revision: str, exceptions: str) -> str:
    """The page's text."""
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("jax", "jaxlib", "lapax"))
    lines = [
        "`python tests/conformance/run.py JAX_CHECKOUT/tests --results FOLDER --sweep` wrote this "
        "page.",
        "",
        "# JAX's own tests under lapax",
        "",
        f"Whole test files of the JAX repository (revision {revision}), unchanged, on the CPU, "
        f"with {versions}: under stock JAX and after `lapax.install()`; "
        "`export_back_compat_test` after `lapax.install(takeover=True)`, so that the programs "
        "stored by earlier versions of JAX call lapax by jaxlib's names. Cases are "
        "JAX_NUM_GENERATED_CASES; where tests were not run under stock JAX, it ran only those that "
        "failed under lapax.",
        "",
        "| file | mode | cases | stock JAX | lapax |",
        "|---|---|---|---|---|",
        *(
            f"| {t.file} | {t.bits} | {t.cases} | {tally(t.stock)} | {tally(t.ours)} |"
            for t in tables
        ),
        "",
        f"Tests that pass under stock JAX alone: {sum(len(t.worse()) for t in tables)}.",
        "",
        *(
            f"- {t.file} {t.bits}, {t.cases} cases: `{test}`: stock {t.stock.get(test)}, "
            f"lapax {t.ours.get(test)}"
            for t in tables
            for test in t.worse()
        ),
        "",
        f"Tests that pass under lapax alone: {sum(len(t.better()) for t in tables)}.",
        "",
        *(
            f"- {t.file} {t.bits}, {t.cases} cases: `{test}`: stock {t.stock.get(test)}"
            for t in tables
            for test in t.better()
        ),
        "",
        exceptions.rstrip(),
        "",
        "## What JAX skips",
        "",
        "Skipped by JAX itself on the CPU, with its reason and the number of tests in all runs:",
        "",
        *skips(tables),
    ]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


def skips(tables: Sequence[Table]) -> list[str]:
    """A line for each file and reason, with the counts under stock JAX and under lapax."""
    found: dict[tuple[str, str], collections.Counter[str]] = {}
    for table in tables:
        for engine, run in (("stock", table.stock), ("lapax", table.ours)):
            for result in run.values():
                if result.startswith("skipped"):
                    reason = re.sub(r"\s+", " ", result.removeprefix("skipped "))
                    found.setdefault((table.file, reason), collections.Counter())[engine] += 1
    return [
        f"- {file} {reason}: stock {counts['stock']}, lapax {counts['lapax']}"
        for (file, reason), counts in found.items()
    ]


def tally(run: Outcomes) -> str:
    """How many of the tests had which outcome, without the reasons."""
    found = collections.Counter(outcome.partition(" (")[0] for outcome in run.values())
    return ", ".join(f"{count} {word}" for word, count in found.most_common())
