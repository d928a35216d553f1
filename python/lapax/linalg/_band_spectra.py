"""Eigenvalues and eigenvectors of banded and tridiagonal Hermitian matrices.

What is tridiagonal and real is decomposed as it is. Another band goes by `eigh` of the whole
matrix: n² numbers and a time proportional to n³.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lapax._call import ffi_call
from lapax._settings import own_settings
from lapax.linalg._arguments import (
    Array,
    check_choice,
    check_matrix,
    operation,
    outside_jit,
    same_batch,
)
from lapax.linalg._banded import both_triangles
from lapax.linalg._degenerate import Degenerate, differences
from lapax.linalg._subsets import Subset

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
    *,
    size: int | None = None,
) -> Any:
    """Eigenvalues of a banded Hermitian matrix, ascending, and its eigenvectors.

    Args:
        a_band: [..., u + 1, n], as for `solveh_banded`.
        eigvals_only: whether to leave the eigenvectors out.
        select: "a" for all eigenvalues, "v" for those in (low, high], "i" for those with indices
            from first to last, both included: `select_range`, static.
        size: with "v", as for `eigh`: the eigenvalues that there is room for. The rest is NaN, and
            zero in the eigenvectors, and the number inside is one more result (int32 [...]).
            Without it the function works outside of jit alone, and for a batch where all matrices
            have equally many.
        max_ev: SciPy's name for such room; the number inside is no result then. 0 is none.

    Returns:
        w [..., m], or (w, v) with v [..., n, m]; with `size` the number inside as the last one.

    Raises:
        ValueError: a wrong `select` or `select_range`; `size` without "v".

    The derivatives are those of `jax.numpy.linalg.eigh`: those of the vectors ask for distinct
    eigenvalues. A real matrix with u ≤ 1 is decomposed by `eigh_tridiagonal`; another one is a
    composition: the whole matrix is reduced to tridiagonal form.

    Cost: O(n³).

    >>> eig_banded(array([[0., 1], [2, 2]]), eigvals_only=True)  # [1, 3]
    """
    chosen = _Chosen.of("eig_banded", a_band, select, select_range, size, max_ev)
    return _eig_banded(a_band, lower, eigvals_only, chosen)


@operation("a_band", jit=False)
def eigvals_banded(
    a_band: Array,
    lower: bool = False,
    overwrite_a_band: bool = False,
    select: str = "a",
    select_range: Range = None,
    check_finite: bool = True,
    *,
    size: int | None = None,
) -> Any:
    """The eigenvalues alone: see `eig_banded`.

    >>> eigvals_banded(array([[0., 1], [2, 2]]))  # [1, 3]
    """
    chosen = _Chosen.of("eigvals_banded", a_band, select, select_range, size)
    return _eig_banded(a_band, lower, True, chosen)


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
    *,
    size: int | None = None,
) -> Any:
    """Eigenvalues of a real symmetric tridiagonal matrix, ascending, and its eigenvectors.

    Args:
        d: [..., n], the diagonal.
        e: [..., n − 1], what stands beside it.
        eigvals_only, select, select_range, size: as for `eig_banded`.

    Returns:
        w [..., m], or (w, v) with v [..., n, m]; with `size` the number inside as the last one. The
        sign of a vector is that of `jax.numpy.linalg.eigh` under lapax. NaN where T is not finite.

    Raises:
        ValueError: complex arrays, other lengths, a wrong `select` or `select_range`.

    Nothing is reduced: eigenvalues by QL steps without roots (Pal, Walker and Kahan), in O(n²)
    operations; vectors by QL steps or divide and conquer (Cuppen 1981, LAPACK's xSTEDC),
    with "i" those alone. `tol` and `lapack_driver` are taken and ignored.

    The derivative is that of the eigenvalue problem: with dT the change of T and P = Vᵀ·dT·V,
    dλⱼ = Pⱼⱼ and dV = V·(F∘P), Fᵢⱼ = 1/(λⱼ − λᵢ) and zero for i = j. That of the vectors asks for
    distinct eigenvalues, and takes all of them.

    >>> eigh_tridiagonal(array([2., 2]), array([1.]))[0]  # [1, 3]
    """
    d, e = _tridiagonal("eigh_tridiagonal", d, e)
    chosen = _Chosen.of("eigh_tridiagonal", d, select, select_range, size)
    return _eigh_tridiagonal(d, e, eigvals_only, chosen)


@operation("d", "e", jit=False)
def eigvalsh_tridiagonal(
    d: Array,
    e: Array,
    select: str = "a",
    select_range: Range = None,
    check_finite: bool = True,
    tol: float = 0.0,
    lapack_driver: str = "auto",
    *,
    size: int | None = None,
) -> Any:
    """The eigenvalues alone: see `eigh_tridiagonal`.

    >>> eigvalsh_tridiagonal(array([2., 2]), array([1.]))  # [1, 3]
    """
    d, e = _tridiagonal("eigvalsh_tridiagonal", d, e)
    chosen = _Chosen.of("eigvalsh_tridiagonal", d, select, select_range, size)
    return _eigh_tridiagonal(d, e, True, chosen)


class _Chosen(NamedTuple):
    """Which eigenvalues are wanted."""

    function: str
    subset: Subset
    counted: bool
    """Whether the number of those inside is a result."""

    @classmethod
    def of(
        cls,
        function: str,
        a: Array,
        select: str,
        select_range: Range,
        size: int | None,
        max_ev: int = 0,
    ) -> _Chosen:
        """Raises ValueError for a wrong choice, and under jit for one of values without room."""
        check_choice(function, "select", select, ("a", "v", "i"))
        if a.ndim < 1:
            raise ValueError(f"{function}: expected a matrix, got an array of no dimension")
        if size is not None and select != "v":
            raise ValueError(f'{function}: size: expected with select="v", got {size}')
        if select == "a":
            return cls(function, Subset(), False)
        low, high = _range(function, select, select_range, a.shape[-1])
        if select == "i":
            return cls(function, Subset(by_index=(int(low), int(high))), False)
        room = max_ev or None if size is None else size
        if room is None:
            outside_jit(function, "size", a)
        return cls(function, Subset(by_value=(low, high), size=room), size is not None)

    def take(self, w: Array, v: Array | None = None) -> Any:
        """Those of w, and of v if it is given."""
        subset = self.subset
        if subset.by_value is not None and subset.size is None:
            subset = subset.with_size_of(self.function, w, "select_range")
        results = subset.take(w, v)
        if subset.by_value is None or self.counted:
            return results
        return results[0] if v is None else results[:-1]


def _eigh_tridiagonal(d: Array, e: Array, eigvals_only: bool, chosen: _Chosen) -> Any:
    if eigvals_only:
        return chosen.take(_values(d, e))
    if chosen.subset.by_index is None:
        return chosen.take(*_pairs(0, d.shape[-1], d, e))
    first, last = chosen.subset.by_index
    return _pairs(first, last + 1 - first, d, e)


def _eig_banded(a_band: Array, lower: bool, eigvals_only: bool, chosen: _Chosen) -> Any:
    check_matrix(chosen.function, a_band=a_band)
    bands, n = a_band.shape[-2:]
    if 1 <= bands <= 2 and n and not jnp.issubdtype(a_band.dtype, jnp.complexfloating):
        d = a_band[..., 0 if lower else -1, :]
        beside = a_band[..., 1, :-1] if lower else a_band[..., 0, 1:]
        e = beside if bands == 2 else jnp.zeros_like(d[..., 1:])
        return _eigh_tridiagonal(d, e, eigvals_only, chosen)
    a = _dense(a_band, lower)
    return chosen.take(jnp.linalg.eigvalsh(a)) if eigvals_only else chosen.take(*jnp.linalg.eigh(a))


def _tridiagonal(function: str, d: Array, e: Array) -> list[Array]:
    """Both with the same batch."""
    if jnp.issubdtype(d.dtype, jnp.complexfloating):
        raise ValueError(f"{function}: d, e: expected real arrays, got {d.dtype}")
    if d.ndim < 1 or e.ndim < 1 or e.shape[-1] != max(d.shape[-1] - 1, 0):
        raise ValueError(
            f"{function}: expected d [..., n] and e [..., n - 1], "
            f"got {list(d.shape)} and {list(e.shape)}"
        )
    return same_batch(function, d=(d, 1), e=(e, 1))


@jax.custom_jvp
def _values(d: Array, e: Array) -> Array:
    w: Array = ffi_call("tridiagonal_eigvalsh", d, e)
    return w


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _pairs(start: int, count: int, d: Array, e: Array) -> tuple[Array, Array]:
    v, w = ffi_call("tridiagonal_eigh", d, e, k=count, start=start)
    return w, v


@_values.defjvp
@own_settings()
def _(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    w, v = _pairs(0, primals[0].shape[-1], *primals)
    return w, jnp.sum(v * _product(*tangents, v), -2)


@_pairs.defjvp
@own_settings()
def _(
    start: int, count: int, primals: tuple[Array, Array], tangents: tuple[Array, Array]
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    w, v = _pairs(0, primals[0].shape[-1], *primals)
    part = slice(start, start + count)
    some = v[..., part]
    p = jnp.swapaxes(v, -1, -2) @ _product(*tangents, some)
    dw = jnp.diagonal(p[..., part, :], axis1=-2, axis2=-1)
    f = differences(w, Degenerate(None, None))[..., part]
    return (w[..., part], some), (dw, v @ (f * p))


def _product(d: Array, e: Array, x: Array) -> Array:
    """T·X."""
    beside = jnp.zeros_like(x[..., :1, :])
    above = jnp.concatenate([e[..., None] * x[..., 1:, :], beside], -2)
    below = jnp.concatenate([beside, e[..., None] * x[..., :-1, :]], -2)
    return d[..., None] * x + above + below


def _dense(ab: Array, lower: bool) -> Array:
    """The Hermitian matrix of which the diagonals of one triangle are given."""
    whole, beside, n = both_triangles(ab, lower), ab.shape[-2] - 1, ab.shape[-1]
    if 2 * beside > n:
        column = jnp.arange(n)
        row = beside + column[:, None] - column
        there = (row >= 0) & (row <= 2 * beside)
        return jnp.where(there, whole[..., jnp.clip(row, 0, 2 * beside), column], 0)
    # A(i, j) is number j·(n + 1) + (beside + i − j), less `beside`, of Aᵀ by rows: that of rows of
    # diagonals of n + 1 numbers. To gather them takes 49 us of order 64 and 118 of 256, this 9 and
    # 80 (f64, five diagonals, two cores of Zen 5).
    widths = [(0, 0)] * (ab.ndim - 1) + [(0, n - 2 * beside)]
    by_columns = jnp.pad(jnp.swapaxes(whole, -1, -2), widths).reshape(*ab.shape[:-2], n * (n + 1))
    transpose = by_columns[..., beside : beside + n * n].reshape(*ab.shape[:-2], n, n)
    return jnp.conj(transpose)


def _range(function: str, select: str, select_range: Range, n: int) -> tuple[float, float]:
    """The bounds. Raises ValueError where they are none."""
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
