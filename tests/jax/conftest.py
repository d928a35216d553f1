"""Eight CPU devices for the whole session, one fixture per scalar, and stock rules around each."""

from __future__ import annotations

import os
from collections.abc import Iterator

# Most of the time goes to LLVM, for programs that run once: a quarter of it by the last two, of
# three files of lapax.linalg's 41 and 31 s. Kernels are compiled elsewhere.
os.environ["XLA_FLAGS"] = " ".join(
    (
        os.environ.get("XLA_FLAGS", ""),
        "--xla_force_host_platform_device_count=8",
        *(
            ("--xla_backend_optimization_level=0", "--xla_llvm_disable_expensive_passes=true")
            if os.environ.get("LAPAX_XLA") != "optimised"
            else ()
        ),
    )
)

import jax
import numpy as np
import pytest

import lapax
from programs import Operands, operands


@pytest.fixture(params=["float32", "complex64", "float64", "complex128"])
def dtype(request: pytest.FixtureRequest) -> Iterator[np.dtype]:
    """A scalar type in the JAX mode that has it: x32 for the short ones, x64 for the long ones."""
    kind = np.dtype(request.param)
    with jax.enable_x64(kind in (np.float64, np.complex128)):
        yield kind


@pytest.fixture
def batch(dtype: np.dtype) -> Operands:
    """Six well-conditioned 5×5 problems."""
    return operands(dtype, n=5, batch=(6,))


@pytest.fixture(autouse=True)
def stock_before_and_after() -> Iterator[None]:
    """No test leaves lapax installed for the next one."""
    assert not lapax.is_installed()
    yield
    lapax.uninstall()
