"""Eigenvalues and eigenvectors of banded and tridiagonal Hermitian matrices.

By `eigh` of the whole matrix: n² numbers and a time proportional to n³, whatever the band.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from lapax.linalg._arguments import (
    Array,
    check_choice,
    check_matrix,
    operation,
    outside_jit,
)
from lapax.linalg._banded import both_triangles

__all__ = ["eig_banded", "eigh_tridiagonal", "eigvals_banded", "eigvalsh_tridiagonal"]

Range = tuple[float, float] | None


@operation("a_band", jit=False)
def eig_banded(
    a_band: Array,
    lower: bool = False,
    eigvals_only: bool = False,
    overwrite_a_band: bool = False,
    select: str = "a",
    select_range: Range = None,
    max_ev: int = 0,
    check_finite: bool = True,
) -> Any:
    """Eigenvalues of a banded Hermitian matrix, ascending, and its eigenvectors.

    Args:
        a_band: [..., u + 1, n], as for `solveh_banded`.
        eigvals_only: whether to leave the eigenvectors out.
        select: "a" for all eigenvalues, "v" for those in (low, high], "i" for those with indices
            from first to last, both included: `select_range`, static.
        max_ev: with "v", the eigenvalues that there is room for; the rest is NaN, and zero in the
            eigenvectors. Without it there is room for those of the matrix with the most of them,
            and the function works outside of jit alone.

    Returns:
        w [..., m], or (w, v) with v [..., n, m].

    Raises:
        ValueError: a wrong `select` or `select_range`.

    The derivatives are those of `jax.numpy.linalg.eigh`: those of the vectors ask for distinct
    eigenvalues. It is a composition: the whole matrix is reduced to tridiagonal form.
    """
    check_matrix("eig_banded", a_band=a_band)
    a = _dense(a_band, lower)
    return _eigh("eig_banded", a, eigvals_only, select, select_range, max_ev)


@operation("a_band", jit=False)
def eigvals_banded(
    a_band: Array,
    lower: bool = False,
    overwrite_a_band: bool = False,
    select: str = "a",
    select_range: Range = None,
    check_finite: bool = True,
    max_ev: int = 0,
) -> Any:
    """The eigenvalues alone: see `eig_banded`."""
    check_matrix("eigvals_banded", a_band=a_band)
    a = _dense(a_band, lower)
    return _eigh("eigvals_banded", a, True, select, select_range, max_ev)


@operation("d", "e", jit=False)
def eigh_tridiagonal(
    d: Array,
    e: Array,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: Range = None,
    check_finite: bool = True,
    tol: float = 0.0,
    lapack_driver: str = "auto",
    max_ev: int = 0,
) -> Any:
    """Eigenvalues of a real symmetric tridiagonal matrix, ascending, and its eigenvectors.

    Args:
        d: [..., n], the diagonal.
        e: [..., n − 1], what stands beside it.
        eigvals_only, select, select_range, max_ev: as for `eig_banded`.

    Returns:
        w [..., m], or (w, v) with v [..., n, m].

    Raises:
        ValueError: complex arrays, other lengths, a wrong `select` or `select_range`.

    Derivatives and cost are those of `eig_banded`; `tol` is taken and ignored.
    """
    a = _tridiagonal("eigh_tridiagonal", d, e)
    return _eigh("eigh_tridiagonal", a, eigvals_only, select, select_range, max_ev)


@operation("d", "e", jit=False)
def eigvalsh_tridiagonal(
    d: Array,
    e: Array,
    select: str = "a",
    select_range: Range = None,
    check_finite: bool = True,
    tol: float = 0.0,
    lapack_driver: str = "auto",
    max_ev: int = 0,
) -> Any:
    """The eigenvalues alone: see `eigh_tridiagonal`."""
    a = _tridiagonal("eigvalsh_tridiagonal", d, e)
    return _eigh("eigvalsh_tridiagonal", a, True, select, select_range, max_ev)


def _tridiagonal(function: str, d: Array, e: Array) -> Array:
    """The whole matrix."""
    if jnp.issubdtype(d.dtype, jnp.complexfloating):
        raise ValueError(f"{function}: d, e: expected real arrays, got {d.dtype}")
    if d.ndim < 1 or e.ndim < 1 or e.shape[-1] != max(d.shape[-1] - 1, 0):
        raise ValueError(
            f"{function}: expected d [..., n] and e [..., n - 1], "
            f"got {list(d.shape)} and {list(e.shape)}"
        )
    batch = jnp.broadcast_shapes(d.shape[:-1], e.shape[:-1])
    n = d.shape[-1]
    a = jnp.zeros((*batch, n, n), d.dtype)
    i = jnp.arange(n)
    a = a.at[..., i, i].set(d).at[..., i[1:], i[:-1]].set(e)
    return a.at[..., i[:-1], i[1:]].set(e)


def _dense(ab: Array, lower: bool) -> Array:
    """The Hermitian matrix of which the diagonals of one triangle are given."""
    whole, beside, n = both_triangles(ab, lower), ab.shape[-2] - 1, ab.shape[-1]
    column = jnp.arange(n)
    row = beside + column[:, None] - column
    there = (row >= 0) & (row <= 2 * beside)
    return jnp.where(there, whole[..., jnp.clip(row, 0, 2 * beside), column], 0)


def _eigh(
    function: str, a: Array, eigvals_only: bool, select: str, select_range: Range, max_ev: int
) -> Any:
    """What is chosen of the eigenvalues and vectors of A."""
    check_choice(function, "select", select, ("a", "v", "i"))
    low, high = _range(function, select, select_range, a.shape[-1])
    if select == "v" and not max_ev:
        outside_jit(function, "max_ev", a)
    if eigvals_only:
        w, v = jnp.linalg.eigvalsh(a), None
    else:
        w, v = jnp.linalg.eigh(a)
    if select == "i":
        kept = slice(int(low), int(high) + 1)
        w, v = w[..., kept], None if v is None else v[..., kept]
    elif select == "v":
        w, v = _between(w, v, low, high, max_ev)
    return w if v is None else (w, v)


def _range(function: str, select: str, select_range: Range, n: int) -> tuple[float, float]:
    """The bounds. Raises ValueError where they are none."""
    if select == "a":
        return 0, n - 1
    if np.shape(select_range) != (2,) or select_range is None:
        raise ValueError(f"{function}: select_range: expected two numbers, got {select_range!r}")
    low, high = select_range
    if not low <= high:
        raise ValueError(f"{function}: select_range: expected low <= high, got {low} and {high}")
    if select == "i" and not (low == int(low) and high == int(high) and low >= 0 and high < n):
        raise ValueError(
            f"{function}: select_range: expected indices from 0 to {n - 1}, got {low} and {high}"
        )
    return low, high


def _between(
    w: Array, v: Array | None, low: float, high: float, size: int
) -> tuple[Array, Array | None]:
    """The eigenvalues in (low, high], and their vectors: so many, or as many as there are."""
    inside, size = (w > low) & (w <= high), min(size, w.shape[-1])
    if not size:
        size = int(inside.sum(-1).max(initial=0))
    index = jnp.sum(w <= low, -1, keepdims=True) + jnp.arange(size)
    there = jnp.arange(size) < inside.sum(-1, keepdims=True)
    # A matrix of NaN stays one.
    failed = jnp.isnan(w).any(-1, keepdims=True)
    index = jnp.where(there, index, 0)
    chosen = jnp.where(there, jnp.take_along_axis(w, index, -1), jnp.nan)
    if v is None:
        return chosen, None
    vectors = jnp.where(there[..., None, :], jnp.take_along_axis(v, index[..., None, :], -1), 0)
    return chosen, jnp.where(failed[..., None], jnp.nan, vectors)
