"""pytest plugin: JAX's tests, unchanged, with lapax installed (`-p lapax_plugin`).

With the option `--lapax-takeover` jaxlib's own names are lapax's, too. Starts no backend before
the tests do, some of which set the number of devices first.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lapax


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--lapax-takeover", action="store_true", help="serve jaxlib's names")


def pytest_configure(config: pytest.Config) -> None:
    lapax.install(takeover=config.getoption("--lapax-takeover"))


def pytest_report_header(config: pytest.Config) -> str:
    how = ", takeover" if config.getoption("--lapax-takeover") else ""
    return f"lapax {lapax.__version__} installed in jax {jax.__version__}{how}"


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A program called now computes on lapax: else the run would say nothing."""
    if session.config.getoption("--lapax-takeover"):
        out = jax.ShapeDtypeStruct((1, 1), np.float32), jax.ShapeDtypeStruct((), np.int32)
        call = jax.ffi.ffi_call("lapack_spotrf_ffi", out)
        nan = np.full((1, 1), np.nan, np.float32)
        served = int(call(nan, uplo=np.uint8(ord("L")))[1]) == 1  # jaxlib's OpenBLAS says 0.
    else:
        served = "@lapax." in jax.jit(jnp.linalg.inv).lower(jnp.eye(2)).as_text()
    if not served:
        raise pytest.UsageError("lapax.install() has no effect")
