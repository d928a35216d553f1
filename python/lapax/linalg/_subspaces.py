"""Ranges, null spaces and what is between them, Procrustes problems, and truncated decompositions.

A basis of a subspace is not unique, and where singular values repeat it has no derivative of its
own. The derivatives of `orth` and `null_space` are those of the basis that does not turn within its
subspace (Qᴴ·dQ = 0). They hold at constant rank, deficient or not, for whatever depends on the
subspace and not on the choice of its basis: projections, angles, determinants of QᴴMQ.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lapax._settings import own_settings
from lapax.linalg._arguments import (
    Array,
    adjoint,
    check_matrix,
    check_size,
    operation,
    outside_jit,
    same_batch,
)
from lapax.linalg._factors import unitary_factor
from lapax.linalg._least_squares import CutOff, pinv

__all__ = ["null_space", "orth", "orthogonal_procrustes", "subspace_angles"]


@operation("A", jit=False)
def orth(A: Array, rcond: float | None = None, *, size: int | None = None) -> Array:
    """An orthonormal basis of the range, of the left singular vectors, as scipy.linalg.orth.

    Args:
        A: [..., m, n].
        rcond: singular values of at most `rcond` times the largest count as zero. Default
            max(m, n)·ε.
        size: the number of columns: those beyond the rank are zero, and a matrix whose rank is
            more gives NaN. Without it, outside of jit alone, the rank, which all matrices share.

    Returns:
        Q [..., m, size]. dQ = (1 − Q·Qᴴ)·dA·A⁺·Q. Raises ValueError under jit without `size`, or
        where the ranks of a batch differ.

    Cost: that of `svd`.

    >>> abs(orth(array([[2.], [0]])))  # [[1], [0]]
    """
    check_matrix("orth", A=A)
    cut_off = _cut_off(A, rcond)
    if size is None:
        outside_jit("orth", "size", A)
        size = _shared("orth", cut_off.kept(jnp.linalg.svd(A, compute_uv=False)))
    q: Array = _range(A, cut_off, _size("orth", size))
    return q


@operation("A", jit=False)
def null_space(
    A: Array,
    rcond: float | None = None,
    *,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
    size: int | None = None,
) -> Array:
    """An orthonormal basis of the null space, of right singular vectors, as scipy.linalg's.

    Args:
        A: [..., m, n].
        rcond: as for `orth`.
        overwrite_a: ignored.
        check_finite: ignored.
        lapack_driver: ignored.
        size: the number of columns: those beyond the dimension of the null space are zero, and a
            matrix where it is more gives NaN. Without it, outside of jit alone, that dimension,
            which all matrices share.

    Returns:
        Z [..., n, size]. dZ = −A⁺·dA·Z. Raises ValueError under jit without `size`, or where the
        dimensions of a batch differ.

    Cost: that of `svd`.

    >>> abs(null_space(array([[1., 0]])))  # [[0], [1]]
    """
    check_matrix("null_space", A=A)
    cut_off = _cut_off(A, rcond)
    if size is None:
        outside_jit("null_space", "size", A)
        kept = cut_off.kept(jnp.linalg.svd(A, compute_uv=False))
        size = A.shape[-1] - _shared("null_space", kept)
    z: Array = _null_space(A, cut_off, _size("null_space", size))
    return z


@operation("A", "B")
def subspace_angles(A: Array, B: Array) -> Array:
    """The angles between the ranges of A and B, falling, in radians, as scipy.linalg's.

    By cosines and, from 45° down, by sines: Knyazev and Argentati, "Principal angles between
    subspaces in an A-based scalar product", SIAM J. Sci. Comput. 23 (2002), pp. 2008–2040.

    Args:
        A: [..., m, n].
        B: [..., m, k].

    Returns:
        [..., min(m, n, k)], real. Where a rank is less, SciPy has fewer angles: as many as the
        lesser rank come first, and the rest is NaN.

    The derivative holds at constant ranks; at angles of 0 or 90°, which can only grow or fall, it
    is that of one direction. Raises ValueError where m differs.

    Cost: that of `svd` of A, B and a third matrix.

    >>> 4 / pi * subspace_angles(array([[1.], [0]]), array([[1.], [1]]))  # [1]
    """
    check_matrix("subspace_angles", A=A, B=B)
    check_size("subspace_angles", "B", "rows", B.shape[-2], A.shape[-2])
    A, B = same_batch("subspace_angles", A=(A, 2), B=(B, 2))
    qa = _range(A, _cut_off(A, None), min(A.shape[-2:]))
    qb = _range(B, _cut_off(B, None), min(B.shape[-2:]))
    size = min(qa.shape[-1], qb.shape[-1])
    rank_a, rank_b = _columns(qa), _columns(qb)
    rank = jnp.minimum(rank_a, rank_b)[..., None]

    product = adjoint(qa) @ qb
    # Columns of zeros give cosines of zero, which come first when these rise.
    cosine = jnp.linalg.svd(product, compute_uv=False)[..., ::-1]
    places = jnp.arange(size) + size - rank
    cosine = jnp.take_along_axis(cosine, jnp.clip(places, 0, max(size - 1, 0)), axis=-1)
    # Sines of the smaller space, whose vectors all have an angle to the other.
    sine_b = jnp.linalg.svd(qb - qa @ product, compute_uv=False)[..., :size]
    sine_a = jnp.linalg.svd(qa - qb @ adjoint(product), compute_uv=False)[..., :size]
    sine = jnp.where((rank_a >= rank_b)[..., None], sine_b, sine_a)

    by_sine = cosine**2 >= 0.5
    angle = jnp.where(
        by_sine,
        jnp.arcsin(jnp.where(by_sine, jnp.minimum(sine, 1), 0)),
        jnp.arccos(jnp.where(by_sine, 0, cosine)),
    )
    return jnp.where(jnp.arange(size) < rank, angle, jnp.nan)


@operation("A", "B")
def orthogonal_procrustes(A: Array, B: Array, check_finite: bool = True) -> tuple[Array, Array]:
    """The unitary R with the least ‖A·R − B‖, as scipy.linalg.orthogonal_procrustes.

    R is the unitary factor of AᴴB (Schönemann, "A generalized solution of the orthogonal Procrustes
    problem", Psychometrika 31 (1966)).

    Args:
        A: [..., m, n].
        B: [..., m, n].
        check_finite: ignored.

    Returns:
        R [..., n, n], and the sum of the singular values of AᴴB, [...].

    The derivative of R is that of `polar`: singular values may repeat; it is NaN where AᴴB is
    singular and R not unique. Raises ValueError where the shapes differ.

    Cost: a product, and that of `svd`.

    >>> orthogonal_procrustes(eye(2), 2 * eye(2))[0]  # [[1, 0], [0, 1]]
    """
    check_matrix("orthogonal_procrustes", A=A, B=B)
    if A.shape[-2:] != B.shape[-2:]:
        raise ValueError(
            f"orthogonal_procrustes: B: expected shape [..., {A.shape[-2]}, {A.shape[-1]}], "
            f"got {list(B.shape)}"
        )
    product = adjoint(A) @ B
    scale = jnp.sum(jnp.linalg.svd(product, compute_uv=False), axis=-1)
    return unitary_factor(product), scale


def _cut_off(a: Array, rcond: float | None) -> CutOff:
    return CutOff(0.0, max(a.shape[-2:]) * float(np.finfo(a.dtype).eps) if rcond is None else rcond)


def _size(function: str, size: int) -> int:
    if size < 0:
        raise ValueError(f"{function}: size: expected a number ≥ 0, got {size}")
    return size


def _shared(function: str, kept: Array) -> int:
    """The rank that all matrices of a batch have."""
    ranks = np.unique(np.sum(kept, axis=-1))
    if len(ranks) > 1:
        raise ValueError(
            f"{function}: the shape of its result is that of one rank, and the batch has those of "
            f"{ranks.tolist()}: pass size"
        )
    return int(ranks[0]) if len(ranks) else 0


def _columns(q: Array) -> Array:
    """How many columns are not zero."""
    return jnp.sum(jnp.any(q != 0, axis=-2), axis=-1)


def _taken(vectors: Array, s: Array, first: Array, count: Array, size: int) -> Array:
    """`count` columns from the one numbered `first`, then zeros; NaN where count > size."""
    padded = jnp.pad(vectors, [(0, 0)] * (vectors.ndim - 1) + [(0, size)])
    index = first[..., None] + jnp.arange(size)
    columns = jnp.take_along_axis(padded, index[..., None, :], axis=-1)
    columns = jnp.where((jnp.arange(size) < count[..., None])[..., None, :], columns, 0)
    lost = (count > size) | jnp.any(jnp.isnan(s), axis=-1)
    return jnp.where(lost[..., None, None], jnp.nan, columns)


@partial(jax.custom_jvp, nondiff_argnums=(1, 2))
@partial(jax.jit, static_argnums=(1, 2))
def _range(a: Array, cut_off: CutOff, size: int) -> Array:
    u, s, _ = jnp.linalg.svd(a, full_matrices=False)
    rank = jnp.sum(cut_off.kept(s), axis=-1)
    return _taken(u, s, jnp.zeros_like(rank), rank, size)


@_range.defjvp
@own_settings()
def _range_jvp(
    cut_off: CutOff, size: int, primals: tuple[Array], tangents: tuple[Array]
) -> tuple[Array, Array]:
    (a,), (da,) = primals, tangents
    q = _range(a, cut_off, size)
    dq = da @ (pinv(a, atol=0.0, rtol=cut_off.rtol) @ q)
    return q, dq - q @ (adjoint(q) @ dq)


@partial(jax.custom_jvp, nondiff_argnums=(1, 2))
@partial(jax.jit, static_argnums=(1, 2))
def _null_space(a: Array, cut_off: CutOff, size: int) -> Array:
    _, s, vh = jnp.linalg.svd(a, full_matrices=True)
    rank = jnp.sum(cut_off.kept(s), axis=-1)
    return _taken(adjoint(vh), s, rank, a.shape[-1] - rank, size)


@_null_space.defjvp
@own_settings()
def _null_space_jvp(
    cut_off: CutOff, size: int, primals: tuple[Array], tangents: tuple[Array]
) -> tuple[Array, Any]:
    (a,), (da,) = primals, tangents
    z = _null_space(a, cut_off, size)
    return z, -pinv(a, atol=0.0, rtol=cut_off.rtol) @ (da @ z)
