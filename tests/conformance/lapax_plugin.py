"""pytest plugin: JAX's tests, unchanged, with lapax installed (`-p lapax_plugin`)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

import lapax


def pytest_configure() -> None:
    lapax.install()
    _require_installed()


def pytest_report_header() -> str:
    return f"lapax {lapax.__version__} installed in jax {jax.__version__}"


def pytest_sessionfinish() -> None:
    _require_installed()


def _require_installed() -> None:
    """A program lowered now calls lapax: else the run would say nothing."""
    program = jax.jit(jnp.linalg.solve).lower(jnp.eye(2), jnp.eye(2)).as_text()
    if "@lapax.lapack_" not in program:
        raise pytest.UsageError("lapax.install() has no effect: solve does not call lapax's getrf")
