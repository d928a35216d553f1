"""One tiny call of each kind under install() beside stock JAX's, in a process of its own.

For a JAX that lapax was not checked on: what raises or answers otherwise stays with JAX.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any, cast

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np

from lapax._hooks import Part

SPARSE = "jax.experimental.sparse"

_SECONDS = 300
"""After which the process is ended; on a busy machine of two cores it takes ten."""

_TOLERANCE = 1e-4
"""Of the largest entry, in f32: what is looked for is another contract, not another rounding."""

_N = 4

Call = Callable[[jax.Array, jax.Array, jax.Array], Any]
"""Of a general matrix, a positive definite one and right-hand sides, in batches of three."""


def outcome() -> dict[str, Any]:
    """{"parts": {name of a Part: reasons}, "families": {primitive: reason}}."""
    code = f"import sys; sys.path[:] = {sys.path!r}; from lapax import _trial; _trial.main()"
    try:
        done = subprocess.run(
            [sys.executable, "-c", code],
            # Whoever installs lapax by themselves there shall not: stock JAX is called first.
            env=os.environ | {"JAX_PLATFORMS": "cpu", "LAPAX_UNKNOWN_JAX": "leave"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return _nothing(f"a trial took more than {_SECONDS} s")
    except (OSError, TypeError) as error:  # There may be no executable.
        return _nothing(f"a trial could not be started: {error}")
    try:
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        said = done.stderr.splitlines()[-1:]
        return _nothing(": ".join([f"a trial ended with {done.returncode}", *said]))
    return found


def _nothing(why: str) -> dict[str, Any]:
    return {"parts": {Part.RULES.name: [why]}, "families": {}}


def main() -> None:
    """Prints the outcome as the last line."""
    print(json.dumps(run()))


def run() -> dict[str, Any]:
    """The outcome in this process, in which lapax must not be installed."""
    from lapax import _install, _unknown  # They import this module.

    hooks, unfit = _unknown.without_hooks()
    names = list(_install.replaced())
    families = {name: "there is no trial of it" for name in names if name not in FAMILIES}
    families |= unfit
    calls = {name: FAMILIES[name] for name in names if name in FAMILIES and name not in unfit}
    plain = _unknown.Left(hooks | {Part.FUSED: [], Part.CUDA: []}, families)
    families |= _differences(calls | {SPARSE: _sparse_product}, plain)
    whole = _unknown.Left(hooks | {Part.CUDA: []}, families)
    wrong = {} if Part.FUSED in hooks else _differences(FUSED, whole)
    parts = {Part.FUSED.name: [f"{name}: {why}" for name, why in wrong.items()]} if wrong else {}
    for part, why in _unknown.without_sparse_hooks().items():
        parts[part.name] = why
    return {"parts": parts, "families": families}


def _differences(calls: dict[str, Call], left: Any) -> dict[str, str]:
    """Of each call that differs from stock JAX's, how."""
    from lapax import _install

    stock = {name: _answer(call) for name, call in calls.items()}
    with _install.on_trial(left):
        ours = {name: _answer(call) for name, call in calls.items()}
    found = {name: _difference(ours[name], stock[name]) for name in calls}
    return {name: why for name, why in found.items() if why is not None}


def _answer(call: Call) -> list[np.ndarray[Any, Any]] | str:
    """The results, or the error as text."""
    rng = np.random.default_rng(0)
    g = rng.standard_normal((3, _N, _N)).astype(np.float32)
    s = g @ g.swapaxes(-1, -2) + _N * np.eye(_N, dtype=np.float32)
    b = rng.standard_normal((3, _N, 2)).astype(np.float32)
    a = g + _N * np.eye(_N, dtype=np.float32)
    try:
        return [np.asarray(x) for x in jax.tree.leaves(jax.jit(call)(a, s, b))]
    except Exception as error:  # Of an unknown JAX: anything.
        return f"{type(error).__name__}: {error}".splitlines()[0]


def _difference(
    ours: list[np.ndarray[Any, Any]] | str, stock: list[np.ndarray[Any, Any]] | str
) -> str | None:
    if isinstance(stock, str):
        return f"its trial fails on stock JAX: {stock}"
    if isinstance(ours, str):
        return ours
    kinds, expected = ([(x.shape, str(x.dtype)) for x in side] for side in (ours, stock))
    if kinds != expected:
        return f"gives {kinds} for {expected}"
    for x, y in zip(ours, stock, strict=True):
        error = np.max(np.abs(x.astype(np.complex128) - y), initial=0)
        if not error <= _TOLERANCE * np.max(np.abs(y), initial=1):
            return f"differs from JAX's by {error:.3g}"
    return None


# Vectors have no sign of their own: what they make is compared.


def _eig(a: jax.Array, s: jax.Array, b: jax.Array) -> Any:
    w, v = jax.lax.linalg.eig(a, compute_left_eigenvectors=False)
    return (v * w[..., None, :]) @ jnp.linalg.inv(v)


def _eigh(a: jax.Array, s: jax.Array, b: jax.Array) -> Any:
    v, w = jax.lax.linalg.eigh(s)
    return w, (v * w[..., None, :]) @ v.mT


def _schur(a: jax.Array, s: jax.Array, b: jax.Array) -> Any:
    t, z = jax.lax.linalg.schur(s)
    return z @ t @ z.mT


def _svd(a: jax.Array, s: jax.Array, b: jax.Array) -> Any:
    u, w, vt = jax.lax.linalg.svd(b, full_matrices=False)
    return w, (u * w[..., None, :]) @ vt


def _qr(a: jax.Array, s: jax.Array, b: jax.Array) -> Any:
    q, r = jax.lax.linalg.qr(b, full_matrices=False)
    return q @ r, jnp.abs(r)


def _pivoted_qr(a: jax.Array, s: jax.Array, b: jax.Array) -> Any:
    q, r, p = cast(Any, jsl.qr(a, pivoting=True))
    return q @ r, jnp.abs(r), p


def _qr_product(a: jax.Array, s: jax.Array, b: jax.Array) -> Any:
    product, r = jsl.qr_multiply(a[0], b[0], mode="left")
    return jnp.abs(product), jnp.abs(r)


def _products(a: jax.Array, s: jax.Array, b: jax.Array) -> Any:
    return jax.lax.linalg.householder_product(*jax.lax.linalg.hessenberg(a))


def _tridiagonal_solve(a: jax.Array, s: jax.Array, b: jax.Array) -> Any:
    d = jnp.ones(b.shape[:-1], b.dtype)
    return jax.lax.linalg.tridiagonal_solve(d.at[..., 0].set(0), 4 * d, d.at[..., -1].set(0), b)


def _update(a: jax.Array, s: jax.Array, b: jax.Array) -> Any:
    r = jnp.linalg.cholesky(s[0], upper=True)
    updated = jax.lax.linalg.cholesky_update(r, b[0, :, 0])
    return updated.T @ updated


def _sparse_product(a: jax.Array, s: jax.Array, b: jax.Array) -> Any:
    sparse: Any = importlib.import_module(SPARSE)
    importlib.import_module(f"{SPARSE}.linalg")
    data, indices = s[0].reshape(-1), jnp.tile(jnp.arange(_N), _N)
    matrix = sparse.BCSR((data, indices, jnp.arange(_N + 1) * _N), shape=(_N, _N))
    return matrix @ b[0]


FAMILIES: dict[str, Call] = {
    "cholesky": lambda a, s, b: jax.lax.linalg.cholesky(s),
    "cholesky_update": _update,
    "eig": _eig,
    "eigh": _eigh,
    "geqp3": _pivoted_qr,
    "geqrf": lambda a, s, b: jnp.linalg.qr(a, mode="raw"),
    "hessenberg": lambda a, s, b: jax.lax.linalg.hessenberg(a),
    "householder_product": _products,
    "lu": lambda a, s, b: jax.lax.linalg.lu(a),
    "lu_pivots_to_permutation": lambda a, s, b: jax.lax.linalg.lu_pivots_to_permutation(
        jnp.array([2, 1, 3]), _N
    ),
    "ormqr": _qr_product,
    "qr": _qr,
    "schur": _schur,
    "svd": _svd,
    "triangular_solve": lambda a, s, b: jax.lax.linalg.triangular_solve(
        a, b, left_side=True, lower=True, transpose_a=True
    ),
    "tridiagonal": lambda a, s, b: jax.lax.linalg.tridiagonal(s),
    "tridiagonal_solve": _tridiagonal_solve,
}
"""By primitive."""


def _gradient(a: jax.Array, s: jax.Array, b: jax.Array) -> Any:
    return jax.grad(lambda x: jnp.sum(jnp.linalg.solve(x, b)))(a)


FUSED: dict[str, Call] = {
    "cholesky": lambda a, s, b: jnp.linalg.cholesky(s),
    "solve with a Cholesky factor": lambda a, s, b: jsl.cho_solve(jsl.cho_factor(s), b),
    "solve": lambda a, s, b: jnp.linalg.solve(a, b),
    "mapped solve": lambda a, s, b: jax.vmap(jnp.linalg.solve, (0, 0))(a, b),
    "gradient of solve": _gradient,
    "lu_solve": lambda a, s, b: jsl.lu_solve(jsl.lu_factor(a), b),
    "inv": lambda a, s, b: jnp.linalg.inv(a),
    "slogdet": lambda a, s, b: jnp.linalg.slogdet(a),
    "det": lambda a, s, b: jnp.linalg.det(a),
    "hessenberg": lambda a, s, b: jsl.hessenberg(a, calc_q=True),
    "eigvalsh": lambda a, s, b: jnp.linalg.eigvalsh(s),
    "svdvals": lambda a, s, b: jnp.linalg.svd(a, compute_uv=False),
    "R of qr": lambda a, s, b: jnp.abs(jnp.linalg.qr(a, mode="r")),
}
"""What is several operations to JAX, or has results that are not read."""
