"""Writes programs exported from JAX and, beside each, its arguments and answers.

    python programs.py FOLDER PLUGIN

For each function and dtype a file NAME.mlirbc, of the StableHLO version that the plugin states,
and NAME.data, which lapax/_data.py describes. The answers are stock JAX's; programs return what
does not depend on the choice of signs, phases and orders.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lapax import _data, _export

N, BATCH = 5, 3


def adjoint(x: jax.Array) -> jax.Array:
    return jnp.conj(jnp.swapaxes(x, -1, -2))


def spectrum(w: jax.Array) -> list[jax.Array]:
    """Sums of powers: what the eigenvalues are, in whatever order."""
    return [jnp.sum(w**k, axis=-1) for k in (1, 2)]


def cholesky(a: jax.Array) -> list[jax.Array]:
    return [jnp.linalg.cholesky(a @ adjoint(a))]


def lu_solve(a: jax.Array) -> list[jax.Array]:
    return [jnp.linalg.solve(a, adjoint(a)[..., :2]), jnp.linalg.slogdet(a)[1]]


def qr(a: jax.Array) -> list[jax.Array]:
    q, r = jnp.linalg.qr(a)
    return [q @ r, adjoint(q) @ q, jnp.abs(r)]


def eigh(a: jax.Array) -> list[jax.Array]:
    w, v = jnp.linalg.eigh(a + adjoint(a))
    return [w, (v * w[..., None, :]) @ adjoint(v), adjoint(v) @ v]


def svd(a: jax.Array) -> list[jax.Array]:
    u, s, vh = jnp.linalg.svd(a[..., :-1], full_matrices=False)
    return [s, (u * s[..., None, :]) @ vh, adjoint(u) @ u]


def eig(a: jax.Array) -> list[jax.Array]:
    w, v = jnp.linalg.eig(a)
    return [*spectrum(w), a @ v - v * w[..., None, :] + a, jnp.linalg.norm(v, axis=-2)]


def schur(a: jax.Array) -> list[jax.Array]:
    t, z = jax.lax.linalg.schur(a)
    return [z @ t @ adjoint(z), adjoint(z) @ z, jnp.tril(t, -2)]


FUNCTIONS: dict[str, Callable[[jax.Array], list[jax.Array]]] = {
    f.__name__: f for f in (cholesky, lu_solve, qr, eigh, svd, eig, schur)
}
DTYPES = {"f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128}
NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}


def both(function: Callable[[jax.Array], list[jax.Array]]) -> Callable[[Any, Any], Any]:
    """A batch and a single matrix in one program."""
    return lambda many, one: (function(many), function(one))


def argument(dtype: np.dtype, shape: tuple[int, ...], seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    if dtype.kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return (x + np.eye(N) * N).astype(dtype)


def write(folder: Path, name: str, dtype: np.dtype, version: str) -> None:
    function = both(FUNCTIONS[name])
    args = [argument(dtype, (BATCH, N, N), 1), argument(dtype, (N, N), 2)]
    text = _export.program(function, args)
    file = folder / f"{name}.{NAMES[dtype]}"
    file.with_name(file.name + ".mlirbc").write_bytes(_export.portable(text, version))
    answers = [np.asarray(x) for x in jax.tree.leaves(jax.jit(function)(*args))]
    file.with_name(file.name + ".data").write_bytes(_data.data(args, answers))


def main(folder: Path, plugin: Path) -> None:
    jax.config.update("jax_enable_x64", True)
    folder.mkdir(parents=True, exist_ok=True)
    version = _export.readable_version(plugin)
    for dtype in DTYPES.values():
        for name in FUNCTIONS:
            write(folder, name, np.dtype(dtype), version)
    print(f"{len(FUNCTIONS) * len(DTYPES)} programs of StableHLO {version} in {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
