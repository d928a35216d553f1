"""How much memory a large factorization needs where XLA lets it overwrite its operand."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lapax import check

IN_PLACE = Path(__file__).with_name("in_place.py")

ORDER = 8000
"""Of which the matrix has 256 MB, many times what the stacks and pools of its process have."""

LARGEST_SHARE = 0.25
"""Of the operand."""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux's clear_refs")
@pytest.mark.parametrize("name", ["cholesky", "lu_factor"])
def test_large_factorization_is_in_place(name):
    command = [sys.executable, str(IN_PLACE), name, str(ORDER)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["ratio"] < check.LIMIT
    assert found["added"] < LARGEST_SHARE, found
