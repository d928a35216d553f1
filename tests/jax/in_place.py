"""What one large factorization adds to the memory of its operand, which it may overwrite.

    python tests/jax/in_place.py lu_factor 20000

prints JSON: `seconds`; `added`, the rise of the process's high-water mark over the call as a share
of the operand; `ratio`, ‖(F − A)·x‖ over u·‖A‖·‖x‖ in Frobenius norms, F the product of the
factors and x two random vectors: an error in every element would take n³ flops. Linux only.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.scipy.linalg as jsl
import numpy as np
import numpy.typing as npt

import lapax

Matrix = npt.NDArray[np.float32]
Vectors = npt.NDArray[np.float64]

ROWS = 500
"""Rows that are made, or taken in double precision, at once."""


def main(name: str, n: int) -> None:
    """Measures one factorization."""
    function, made, product = FACTORIZATIONS[name]
    lapax.install()
    factorize = jax.jit(function, donate_argnums=0)
    # XLA's threads and its compiler are there before memory is looked at.
    jax.block_until_ready(factorize(jax.numpy.array(made(ROWS))))
    a = jax.block_until_ready(jax.numpy.array(made(n)))
    compiled = factorize.lower(a).compile()

    # proc(5): 5 sets VmHWM to what is resident now.
    Path("/proc/self/clear_refs").write_text("5")
    before, start = high_water(), time.perf_counter()
    rets = jax.block_until_ready(compiled(a))
    seconds, added = time.perf_counter() - start, high_water() - before

    factors = [np.asarray(ret) for ret in rets] if isinstance(rets, tuple) else [np.asarray(rets)]
    a, x = made(n), np.random.default_rng(1).standard_normal((n, 2))
    error = product(*factors, x) - times(a, x)
    unit = 2.0**-24 * float(np.linalg.norm(a)) * float(np.linalg.norm(x))
    ratio = float(np.linalg.norm(error)) / unit
    print(json.dumps({"seconds": seconds, "added": max(added, 0) / a.nbytes, "ratio": ratio}))


def high_water() -> int:
    """Bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (kilobytes,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
    return 1024 * int(kilobytes)


def general(n: int) -> Matrix:
    return np.random.default_rng(0).standard_normal((n, n), dtype=np.float32)


def definite(n: int) -> Matrix:
    """Symmetric, the eigenvalues about √n to 5·√n; in blocks, without a second matrix."""
    a = general(n)
    for i in range(0, n, ROWS):
        for j in range(0, i + 1, ROWS):
            block, mirror = a[i : i + ROWS, j : j + ROWS], a[j : j + ROWS, i : i + ROWS]
            block[...] = (block + mirror.T) / np.sqrt(np.float32(2))
            mirror[...] = block.T
    a[np.diag_indices(n)] += 3 * np.sqrt(np.float32(n))
    return a


def times(a: Matrix, x: Vectors) -> Vectors:
    """a·x."""
    return np.concatenate([rows @ x for _, rows in strips(a)])


def cholesky_times(factor: Matrix, x: Vectors) -> Vectors:
    """L·Lᵀ·x."""
    adjoint = sum(rows.T @ x[first : first + ROWS] for first, rows in strips(factor))
    return times(factor, adjoint)


def lu_times(lu: Matrix, pivots: npt.NDArray[np.int32], x: Vectors) -> Vectors:
    """Pᵀ·L·U·x."""
    x = np.concatenate([np.triu(rows, first) @ x for first, rows in strips(lu)])
    x = x + np.concatenate([np.tril(rows, first - 1) @ x for first, rows in strips(lu)])
    for row, pivot in reversed(list(enumerate(pivots))):
        x[[row, pivot]] = x[[pivot, row]]
    return x


def strips(a: Matrix) -> Iterator[tuple[int, Vectors]]:
    """The first row of each strip, and its rows in double precision."""
    for first in range(0, len(a), ROWS):
        yield first, a[first : first + ROWS].astype(np.float64)


FACTORIZATIONS: dict[
    str, tuple[Callable[..., Any], Callable[[int], Matrix], Callable[..., Vectors]]
] = {
    "cholesky": (
        lambda a: jax.lax.linalg.cholesky(a, symmetrize_input=False),
        definite,
        cholesky_times,
    ),
    "lu_factor": (jsl.lu_factor, general, lu_times),
}
"""The function, what makes its operand, and the product of its factors with vectors."""

if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
