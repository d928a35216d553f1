"""The CPU backends: what the library has, and the choice between them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lapax

INSTALL = "cargo build --release --features openblas"


@pytest.fixture(autouse=True)
def same_backend_afterwards() -> Iterator[None]:
    before = lapax.backend()
    yield
    lapax.set_backend(before)


def has_lapack() -> bool:
    return "lapack" in [backend.name for backend in lapax.backends()]


needs_lapack = pytest.mark.skipif(
    not has_lapack(), reason=f"this liblapax has no LAPACK backend; build one with `{INSTALL}`"
)


def test_own_code_is_always_there() -> None:
    assert lapax.backends()[0] == lapax.Backend("faer")
    lapax.set_backend("faer")
    assert lapax.backend() == "faer"


def test_unknown_backend_is_named_and_changes_nothing() -> None:
    before = lapax.backend()
    with pytest.raises(ValueError, match=r'"mkl" is no backend; the backends are faer and lapack'):
        lapax.set_backend("mkl")
    assert lapax.backend() == before


@pytest.mark.skipif(has_lapack(), reason="this liblapax has the LAPACK backend")
def test_backend_that_is_not_built_says_how_to_build_it() -> None:
    with pytest.raises(ValueError, match=f'no backend "lapack"; build it with `{INSTALL}`'):
        lapax.set_backend("lapack")


def run_with(variable: str) -> subprocess.CompletedProcess[str]:
    """A process that asks for a backend in its environment and calls a target."""
    program = (
        "import jax.numpy as jnp, lapax\n"
        "factor, info = lapax.ffi.potrf(4 * jnp.eye(2), uplo='L')\n"
        "print(lapax.backend(), float(factor[1, 1]), int(info))"
    )
    environment = os.environ | {"LAPAX_CPU_BACKEND": variable}
    return subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("variable", ["", "faer"])
def test_environment_may_name_own_code(variable: str) -> None:
    assert run_with(variable).stdout.split() == ["faer", "2.0", "0"]


def test_environment_is_never_silently_ignored() -> None:
    outcome = run_with("LAPACK")
    assert outcome.returncode != 0
    assert "INVALID_ARGUMENT" in outcome.stderr
    assert '"LAPACK" is no backend' in outcome.stderr
    outcome = run_with("lapack")
    if has_lapack():
        assert outcome.stdout.split() == ["lapack", "2.0", "0"]
    else:
        assert outcome.returncode != 0
        assert "UNAVAILABLE" in outcome.stderr
        assert INSTALL in outcome.stderr


@needs_lapack
def test_library_is_known() -> None:
    lapack = lapax.backends()[1]
    assert lapack.integer_bits in (32, 64)
    if sys.platform == "linux":
        assert lapack.lapack is not None
        assert lapack.blas is not None


@needs_lapack
def test_compiled_function_follows_the_choice(dtype: np.dtype) -> None:
    """One compilation, both backends: close results, and of own bits where the libraries differ."""
    n = 60
    rng = np.random.default_rng(7)
    a = jnp.asarray(rng.standard_normal((4, n, n)) + n * np.eye(n), dtype)
    traces = 0

    def inverse(a: jax.Array) -> jax.Array:
        nonlocal traces
        traces += 1
        return jnp.linalg.inv(a)

    with lapax.installed():
        compiled = jax.jit(inverse)
        results = {}
        for name in ("faer", "lapack"):
            lapax.set_backend(name)
            assert lapax.backend() == name
            results[name] = np.asarray(compiled(a))
    assert traces == 1
    epsilon = np.finfo(dtype).eps
    for result in results.values():
        residual = np.abs(np.eye(n) - np.asarray(a) @ result).max()
        assert residual < 30 * n * epsilon
    assert not np.array_equal(results["faer"], results["lapack"])
