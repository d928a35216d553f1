"""Several processes over loopback, with JAX's own runtime and gloo."""

from __future__ import annotations

import os
import pathlib
import socket
import subprocess
import sys
import time
from typing import NamedTuple

import pytest
from sharded import FULL

from lapax.mesh._scaling import NAMES

PROCESS = pathlib.Path(__file__).with_name("process.py")
LIMIT = 300
"""Seconds after which a test fails; on a free core two processes take 10."""
LOST_AFTER = 10
"""The heartbeat_timeout_seconds that processes with a fault are started with."""


class Ended(NamedTuple):
    """What a process printed, its exit code, and when it was found to have ended."""

    out: str
    error: str
    code: int
    at: float


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def run(count, *fault):
    """All processes; with a fault all but the last."""
    port = free_port()
    running = [
        subprocess.Popen(
            [sys.executable, str(PROCESS), str(i), str(count), str(port), *fault],
            env={**os.environ, "JAX_PLATFORMS": "cpu", "LOST_AFTER": str(LOST_AFTER)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for i in range(count)
    ]
    try:
        return [
            Ended(*process.communicate(timeout=LIMIT), process.returncode, time.time())
            for process in (running[:-1] if fault else running)
        ]
    finally:
        for process in running:
            process.kill()
            process.wait()


def words(out):
    """Lines in two words; gloo prints, too."""
    return dict(line.split() for line in out.splitlines() if line.count(" ") == 1)


@pytest.mark.parametrize("count", [2, 4])
def test_processes_agree_with_one(count):
    for out, error, code, _ in run(count):
        assert code == 0, error[-2000:]
        found = words(out)
        assert float(found["solve"]) < 1e-4
        assert float(found["gradient"]) < 1e-4


@pytest.mark.parametrize("fault", ["leave", "stop"])
def test_a_lost_process_is_an_error_on_the_others(fault):
    """Never a hang: by a closed connection, or because heartbeat_timeout_seconds are over, and at
    the latest when they are over once more, as the others hear of it from the coordinator."""
    (ended,) = run(2, fault)
    found = words(ended.out)
    assert ended.code != 0
    assert ended.error
    assert "after" not in found
    assert ended.at - float(found["lost"]) < 2 * LOST_AFTER


@pytest.mark.skipif(not FULL, reason="LAPAX_MESH is not full")
def test_weak_scaling_is_measured():
    found = scaling("64", "2")
    assert found.returncode == 0, found.stderr[-2000:]
    _, _, *rows = found.stdout.splitlines()
    assert [row.split("|")[1].strip() for row in rows] == list(NAMES)
    for row in rows:
        assert all(float(cell) >= 0 for cell in row.split("|")[2:-1] if cell.strip())


def test_misuse_of_the_command():
    found = scaling("two")
    assert found.returncode == 1
    assert "expected nothing or scaling [N] [PROCESSES], got ['scaling', 'two']" in found.stderr


def scaling(*arguments):
    command = [sys.executable, "-m", "lapax.mesh", "scaling", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT)
