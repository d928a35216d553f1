"""examples/vibration.py and examples/gaussian_process.py, and what they claim."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import lapax

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


@pytest.fixture
def example(request, monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    with jax.enable_x64(True), lapax.installed():
        yield importlib.import_module(request.param)
    sys.modules.pop(request.param)


@pytest.mark.parametrize("example", ["vibration"], indirect=True)
def test_vibration(example):
    beam = example.main()
    np.testing.assert_allclose(beam.frequencies, beam.exact, rtol=1e-4)
    np.testing.assert_allclose(beam.slope, beam.difference, rtol=1e-6)
    assert beam.improved[0] > 1.5 * beam.frequencies[0]
    np.testing.assert_allclose(np.mean(beam.heights), example.HEIGHT, rtol=1e-12)


@pytest.mark.parametrize("example", ["gaussian_process"], indirect=True)
def test_gaussian_process(example):
    fit = example.main()
    np.testing.assert_allclose(fit.slope, fit.difference, rtol=1e-6)
    np.testing.assert_allclose(fit.parameters["noise"], example.TRUTH["noise"], rtol=0.3)
    np.testing.assert_allclose(fit.parameters["length"], example.TRUTH["length"], rtol=0.3)
    assert fit.likelihoods[-1] > fit.likelihoods[0] + 1
    assert fit.error < 2 * fit.deviation
    assert fit.error < example.TRUTH["noise"]
    assert fit.jitter > 0
