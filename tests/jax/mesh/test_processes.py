"""Several processes over loopback, with JAX's own runtime and gloo."""

from __future__ import annotations

import os
import pathlib
import socket
import subprocess
import sys

PROCESS = pathlib.Path(__file__).with_name("process.py")
LIMIT = 300
"""Seconds after which a test fails; on a free core the processes take 10."""


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def run(count, *options):
    """What each process printed, and its exit code."""
    port = free_port()
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    running = [
        subprocess.Popen(
            [sys.executable, str(PROCESS), str(i), str(count), str(port), *options],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for i in range(count)
    ]
    try:
        results = [process.communicate(timeout=LIMIT) for process in running]
    finally:
        for process in running:
            process.kill()
    return [
        (out, error, process.returncode)
        for (out, error), process in zip(results, running, strict=True)
    ]


def test_two_processes_agree_with_one():
    for out, error, code in run(2):
        assert code == 0, error[-2000:]
        # gloo prints, too.
        found = (line.split() for line in out.splitlines())
        errors = [words for words in found if words[0] in ("solve", "gradient")]
        assert [name for name, _ in errors] == ["solve", "gradient"]
        assert all(float(value) < 1e-4 for _, value in errors), out


def test_a_lost_process_is_an_error_on_the_others():
    """By a closed connection at once, or after heartbeat_timeout_seconds: never a hang."""
    (out, error, code), (_, _, gone) = run(2, "leave")
    assert gone == 1
    assert "after" not in out
    assert code != 0
    assert error
