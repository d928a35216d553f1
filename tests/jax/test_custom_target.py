"""examples/custom-target: a handler in Rust, built and called from JAX."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_rms_norm():
    cargo = shutil.which("cargo")
    if cargo is None:
        pytest.skip("no cargo to build examples/custom-target with")
    build = subprocess.run(
        [cargo, "build", "--package", "custom-target", "--message-format", "json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert build.returncode == 0, build.stderr
    messages = [json.loads(line) for line in build.stdout.splitlines()]
    files = [Path(file) for message in messages for file in message.get("filenames", [])]
    library = next(file for file in files if file.name.endswith(("custom_target.so", ".dylib")))
    example = ROOT / "examples" / "custom-target" / "rms_norm.py"
    done = subprocess.run(
        [sys.executable, str(example), str(library)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("value off by ")
