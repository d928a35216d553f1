"""What the tests share: operands, functions under test, the calls in a program, processes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np

Function = Callable[..., Any]


class Operands(NamedTuple):
    """General a, Hermitian positive definite s, right-hand sides b."""

    a: np.ndarray
    s: np.ndarray
    b: np.ndarray


def operands(dtype: np.dtype, n: int, batch: tuple[int, ...], seed: int = 0) -> Operands:
    """A well-conditioned problem: a = G + n·I and s = G·Gᴴ + n·I with |G| about 1."""
    rng = np.random.default_rng(seed)

    def normal(*shape: int) -> np.ndarray:
        x = rng.standard_normal(shape)
        return x + 1j * rng.standard_normal(shape) if dtype.kind == "c" else x

    g = normal(*batch, n, n)
    s = g @ g.conj().swapaxes(-1, -2) + n * np.eye(n)
    b = normal(*batch, n, 2)
    return Operands((g + n * np.eye(n)).astype(dtype), s.astype(dtype), b.astype(dtype))


def lu_solve(o: Operands) -> Any:
    return jsl.lu_solve(jsl.lu_factor(o.a), o.b)


def cho_solve(o: Operands) -> Any:
    return jsl.cho_solve((jnp.linalg.cholesky(o.s), True), o.b)


def triangular(**options: Any) -> Function:
    return lambda o: jsl.solve_triangular(o.a, o.b, **options)


FUNCTIONS: dict[str, Function] = {
    "cholesky": lambda o: jnp.linalg.cholesky(o.s),
    "upper_cholesky": lambda o: jnp.linalg.cholesky(o.s, upper=True),
    "solve": lambda o: jnp.linalg.solve(o.a, o.b),
    "inv": lambda o: jnp.linalg.inv(o.a),
    "det": lambda o: jnp.linalg.det(o.a),
    "slogdet": lambda o: jnp.linalg.slogdet(o.a)[1],
    "lu": lambda o: jax.lax.linalg.lu(o.a),
    "lu_factor": lambda o: jsl.lu_factor(o.a)[0],
    "lu_solve": lu_solve,
    "cho_solve": cho_solve,
    "lower": triangular(lower=True),
    "upper": triangular(lower=False),
    "transposed": triangular(lower=True, trans="T"),
    "adjoint": triangular(lower=False, trans="C"),
    "unit": triangular(lower=True, unit_diagonal=True),
}
"""JAX functions of the three families, each of one problem or of a batch."""


def tolerance(dtype: np.dtype, n: int) -> float:
    """Relative to the largest entry: 64·n·ε, the error of a backward stable method on these."""
    return float(64 * n * np.finfo(dtype).eps)


def assert_close(got: Any, expected: Any, relative: float) -> None:
    """Every leaf within `relative` of the largest entry of the expected one; NaN fails."""
    for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        x, y = np.asarray(x), np.asarray(y)
        assert x.shape == y.shape
        assert x.dtype == y.dtype
        error = np.max(np.abs(x - y), initial=0.0)
        scale = np.max(np.abs(y), initial=0.0)
        assert error <= relative * scale, f"error {error:.3g} at scale {scale:.3g}"


def custom_calls(function: Function, *args: Any) -> list[str]:
    """The targets of the custom calls that JAX emits for a call of `function`, in order."""
    return emitted_calls(jax.jit(function).lower(*args).as_text())


def emitted_calls(text: str) -> list[str]:
    """The targets of the custom calls in a program as JAX emits it, in order."""
    return re.findall(r"stablehlo\.custom_call @\"?([\w.]+)", text)


def compiled_calls(text: str) -> list[tuple[str, str]]:
    """(target, shapes of the results) of each custom call in a compiled program."""
    pattern = r'= (.+?) custom-call\(.*custom_call_target="([\w.]+)"'
    return [(target, shapes) for shapes, target in re.findall(pattern, text)]


def run_python(code: str, timeout: float = 300, **environment: str) -> str:
    """What a new Python process prints; fails with its errors, or where it runs too long."""
    inherited = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=inherited | environment,
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
