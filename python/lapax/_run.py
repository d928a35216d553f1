"""`python -m lapax run`: a program as it is, on lapax."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata

import lapax_plugin
from lapax import _selection


def main(words: Sequence[str]) -> int:
    """Runs a program in place of this process; returns only with a status, 2 for wrong usage."""
    options = _parser().parse_args(words)
    problem = _problem(options.leave)
    if problem is not None:
        print(problem, file=sys.stderr)
        return 2
    environment = os.environ | {lapax_plugin.VARIABLE: "1"}
    left = [os.environ.get(_selection.VARIABLE), options.leave]
    if any(left):
        environment[_selection.VARIABLE] = ",".join(filter(None, left))
    module = ["-m"] if options.module else []
    command = [sys.executable, *_flags(), *module, options.program, *options.args]
    if os.name == "nt":  # There exec leaves the console to two processes.
        return subprocess.run(command, env=environment).returncode
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, command, environment)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m lapax run",
        description="run a Python program whose JAX computes on lapax, as with LAPAX=1",
    )
    parser.add_argument("--leave", metavar="NAMES", help="what stays with jaxlib, as LAPAX_LEAVE")
    parser.add_argument("-m", dest="module", action="store_true", help="the program is a module")
    parser.add_argument("program", help="a script, or with -m a module")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="the program's arguments")
    return parser


def _problem(leave: str | None) -> str | None:
    """What would keep lapax out of the program."""
    points = metadata.entry_points(group="jax_plugins")
    if lapax_plugin.__name__ not in [point.value for point in points]:
        return (
            "lapax run: JAX would not find lapax: this one is not installed as a package, "
            f"whose entry point jax_plugins is {lapax_plugin.__name__}"
        )
    try:
        _selection.chosen(leave=leave)
    except ValueError as error:
        return f"lapax run: {error}"
    return None


def _flags() -> list[str]:
    """This interpreter's own: what stands before -m."""
    words = sys.orig_argv[1:]
    return words[: words.index("-m")] if "-m" in words else []
