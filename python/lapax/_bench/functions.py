"""The functions of the `jax` rows: what a user calls, its inputs, flop count and residual ratio.

One right-hand side for solve and tridiagonal_solve, n of them for solve_triangular. Ratios are
those of `lapax.check`: the error of the defining equation over the data's norm and the roundoff.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np

from lapax._bench import answers
from lapax._bench.answers import Arrays
from lapax._callback import host_callback
from lapax._checks import CHECKS
from lapax._checks.equations import (
    Array,
    Size,
    definite,
    normal,
    wide,
)
from lapax._install import is_installed

Inputs = Callable[[np.random.Generator, np.dtype[Any], Size], Arrays]


@dataclass(frozen=True)
class Function:
    """What is called under jit and how its answer is judged."""

    name: str
    family: str
    """One of goals.FAMILIES, where a goal is about it."""
    call: Callable[..., Any]
    inputs: Inputs
    ratios: Callable[[Arrays, list[Array]], Array]
    """The residual ratio of each matrix."""
    flops: Callable[[Size], float]
    """Of one real matrix."""
    rectangular: bool = False
    dtypes: tuple[str, ...] = ("f32", "f64", "c64", "c128")
    points: tuple[tuple[int, int], ...] = ()
    """The only n and batch it is measured at; every one where empty."""
    today: Callable[..., Any] | None = None
    """The other side of a row of `lapax.linalg`; none where JAX has nothing of the kind."""
    today_most: int = 2**62
    """The largest n at which it is measured."""
    scipy: Callable[..., Any] | None = None
    """SciPy's, where it is a column."""
    kind: str = "jax"
    rows: int | None = None
    """m of the operand, where it is not n."""


# Inputs.


def _matrix(rng: np.random.Generator, dtype: np.dtype[Any], size: Size) -> Arrays:
    return (normal(rng, dtype, (*size.batch, size.m, size.n)),)


def _hermitian(rng: np.random.Generator, dtype: np.dtype[Any], size: Size) -> Arrays:
    return (definite(rng, dtype, size).astype(dtype),)


def _system(rng: np.random.Generator, dtype: np.dtype[Any], size: Size) -> Arrays:
    return *_matrix(rng, dtype, size), normal(rng, dtype, (*size.batch, size.n, 1))


def _triangular(rng: np.random.Generator, dtype: np.dtype[Any], size: Size) -> Arrays:
    a, b = _matrix(rng, dtype, size)[0], _matrix(rng, dtype, size)[0]
    return (np.tril(a) / size.n + np.eye(size.n) * 2).astype(dtype), b


def _tridiagonal(rng: np.random.Generator, dtype: np.dtype[Any], size: Size) -> Arrays:
    lower, middle, upper = (normal(rng, dtype, (*size.batch, size.n)) for _ in range(3))
    lower[..., 0] = 0
    upper[..., -1] = 0
    return lower, middle + 4, upper, normal(rng, dtype, (*size.batch, size.n, 1))


def _sum_of_solution(a: jax.Array, b: jax.Array) -> jax.Array:
    total: jax.Array = jnp.linalg.solve(a, b).sum()
    return total


def _of(op: str, **attrs: int) -> Callable[[Size], float]:
    """The flops of a target's check."""
    return lambda size: CHECKS[op].flops(size, attrs)


_LEFT = {"side": ord("L")}
_VECTORS = {"compute_left": ord("N"), "compute_right": ord("V")}
_NO_VECTORS = {"compute_left": ord("N"), "compute_right": ord("N")}
_BATCHED = ((3, 86_268),)


def _solve_flops(size: Size) -> float:
    return 2 / 3 * size.n**3 + 2 * size.n**2


def _twice(a: Any) -> Any:
    return a * a.dtype.type(2)


def _callback(a: jax.Array) -> Any:
    """Python in a program, by lapax where that is installed and by JAX where not."""
    call = host_callback if is_installed() else jax.pure_callback
    return call(_twice, jax.ShapeDtypeStruct(a.shape, a.dtype), a)


def _inv(a: jax.Array) -> Any:
    """JAX's, looked up when it is compiled, as users' are: `install` puts its own there."""
    return jnp.linalg.inv(a)


FUNCTIONS: tuple[Function, ...] = (
    Function(
        "lu_factor",
        "linear",
        jsl.lu_factor,
        _matrix,
        answers.lu_factor,
        _of("getrf"),
        rectangular=True,
    ),
    Function("cholesky", "linear", jnp.linalg.cholesky, _hermitian, answers.cholesky, _of("potrf")),
    Function(
        "solve_triangular",
        "linear",
        lambda a, b: jsl.solve_triangular(a, b, lower=True),
        _triangular,
        lambda args, rets: answers.solution(args[0], rets[0], args[1], args[0]),
        lambda size: size.n**3,
    ),
    Function(
        "solve_triangular_transposed",
        "linear",
        lambda a, b: jsl.solve_triangular(a, b, trans="T", lower=True),
        _triangular,
        lambda args, rets: answers.solution(args[0].swapaxes(-1, -2), rets[0], args[1], args[0]),
        lambda size: size.n**3,
    ),
    Function(
        "solve",
        "linear",
        jnp.linalg.solve,
        _system,
        lambda args, rets: answers.solution(args[0], rets[0], args[1], args[0]),
        _solve_flops,
    ),
    Function("inv", "linear", _inv, _matrix, answers.inverse, lambda size: 2 * size.n**3),
    Function("det", "determinant", jnp.linalg.det, _matrix, answers.determinant, _of("getrf")),
    Function("slogdet", "determinant", jnp.linalg.slogdet, _matrix, answers.slogdet, _of("getrf")),
    Function(
        "qr",
        "qr",
        jnp.linalg.qr,
        _matrix,
        answers.qr,
        _of("qr"),
        rectangular=True,
    ),
    Function(
        "eigh", "spectral", jnp.linalg.eigh, _hermitian, answers.eigh, lambda size: 9 * size.n**3
    ),
    Function(
        "svd",
        "spectral",
        lambda a: jnp.linalg.svd(a, full_matrices=False),
        _matrix,
        answers.svd,
        lambda size: (
            14 * max(size.m, size.n) * min(size.m, size.n) ** 2 + 8 * min(size.m, size.n) ** 3
        ),
        rectangular=True,
    ),
    Function(
        "eigvalsh",
        "values",
        jnp.linalg.eigvalsh,
        _hermitian,
        answers.eigvalsh,
        lambda size: 4 / 3 * size.n**3,
    ),
    Function(
        "svdvals",
        "values",
        jnp.linalg.svdvals,
        _matrix,
        answers.svdvals,
        lambda size: (
            4 * max(size.m, size.n) * min(size.m, size.n) ** 2 - 4 / 3 * min(size.m, size.n) ** 3
        ),
        rectangular=True,
    ),
    Function("eig", "nonsymmetric", jnp.linalg.eig, _matrix, answers.eig, _of("geev", **_VECTORS)),
    Function(
        "eigvals",
        "nonsymmetric",
        jnp.linalg.eigvals,
        _matrix,
        lambda args, rets: answers.traces(args[0], wide(rets[0])),
        _of("geev", **_NO_VECTORS),
    ),
    Function(
        "schur",
        "nonsymmetric",
        jsl.schur,
        _matrix,
        lambda args, rets: answers.similar(args, rets[0], rets[1]),
        lambda size: 25 * size.n**3,
    ),
    Function(
        "hessenberg",
        "nonsymmetric",
        lambda a: jsl.hessenberg(a, calc_q=True),
        _matrix,
        lambda args, rets: answers.similar(args, rets[0], rets[1]),
        lambda size: 14 / 3 * size.n**3,
    ),
    Function(
        "tridiagonal_solve",
        "tridiagonal",
        jax.lax.linalg.tridiagonal_solve,
        _tridiagonal,
        answers.tridiagonal_solution,
        lambda size: 9 * size.n,
    ),
    Function(
        "solve_3x3",
        "batched solve",
        jnp.linalg.solve,
        _system,
        lambda args, rets: answers.solution(args[0], rets[0], args[1], args[0]),
        _solve_flops,
        dtypes=("f32",),
        points=_BATCHED,
    ),
    Function(
        "grad_solve_3x3",
        "batched solve",
        jax.grad(_sum_of_solution, argnums=(0, 1)),
        _system,
        answers.gradient,
        lambda size: 2 * _solve_flops(size),
        dtypes=("f32",),
        points=_BATCHED,
    ),
    Function(
        "host_callback",
        "host callback",
        _callback,
        _matrix,
        lambda args, rets: answers.recomposed(wide(args[0]) * 2, wide(rets[0])),
        lambda size: size.m * size.n,
        dtypes=("f32",),
        points=((4, 1), (256, 1)),
    ),
)
