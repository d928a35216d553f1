"""examples/implicit_heat.py, and what it claims."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import jax
import numpy as np

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def test_implicit_heat(monkeypatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)
    with jax.enable_x64(True):
        heat = importlib.import_module("implicit_heat").main()
    sys.modules.pop("implicit_heat")
    np.testing.assert_allclose(heat.u, heat.exact, atol=1e-3)
    np.testing.assert_allclose(heat.slope, heat.difference, rtol=1e-5)
