"""Interpolative decompositions, and low-rank decompositions by random products.

A matrix of rank about k is B·[I T]·Pᵀ: k of its columns, B, and coefficients T of the others in
them (Cheng, Gimbutas, Martinsson and Rokhlin, "On the compression of low rank matrices", 2005).
The random variants find the columns, or the range, from products with random matrices: Halko,
Martinsson and Tropp, "Finding structure with randomness" (SIAM Review 53, 2011).

Names, arguments and results are those of scipy.linalg.interpolative, in batches [..., m, n]. A
tolerance in place of a rank works outside of jit and for one matrix alone, since the rank is a
shape. `rng` is a key of jax.random or an integer that makes one; 0 without it, so that results
are the same every time.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from lapax.linalg._arguments import (
    Array,
    adjoint,
    check_matrix,
    check_size,
    operation,
    outside_jit,
    random_key,
)
from lapax.linalg._products import product

__all__ = [
    "estimate_rank",
    "estimate_spectral_norm",
    "estimate_spectral_norm_diff",
    "id_to_svd",
    "interp_decomp",
    "reconstruct_interp_matrix",
    "reconstruct_matrix_from_id",
    "reconstruct_skel_matrix",
    "svd",
]

OVERSAMPLING, POWERS = 10, 2
"""Columns beside k, and products with A·Aᴴ before the range is taken: the paper's advice."""


def interp_decomp(
    A: Any, eps_or_k: float, rand: bool = True, rng: Any = None, *, compute_dtype: Any = None
) -> tuple[Any, ...]:
    """Which columns span A, and the others' coefficients in them.

    Args:
        A: [..., m, n].
        eps_or_k: the rank k where it is an integer ≥ 1; a number below 1 is the relative
            precision to be reached, for one matrix outside of jit.
        rand: finds the columns from a random product [k + 10, m]·A; False by those of A itself.
        rng: key or integer for `rand`.
        compute_dtype: as everywhere.

    Returns:
        idx [..., n], int32, the columns that span A first, and proj [..., k, n - k] with
        A[:, idx[k:]] ≈ A[:, idx[:k]]·proj; with a precision (k, idx, proj).

    Raises ValueError for a rank that is not between 1 and min(m, n). The derivative holds the
    choice of columns: that of the least-squares solution proj.
    """
    k = eps_or_k if eps_or_k >= 1 else estimate_rank(A, eps_or_k, rng, compute_dtype=compute_dtype)
    idx, proj = _interp_decomp(A, int(k), rand, rng, compute_dtype=compute_dtype)
    return (idx, proj) if eps_or_k >= 1 else (int(k), idx, proj)


@operation("A", jit=False)
def _interp_decomp(A: Array, k: int, rand: bool, rng: Any) -> tuple[Array, Array]:
    _check_rank("interp_decomp", A, k)
    fixed = jax.lax.stop_gradient(A)
    if rand and A.shape[-2] > k + OVERSAMPLING:
        fixed = product(_gaussian(rng, (k + OVERSAMPLING, A.shape[-2]), A.dtype), fixed)
    idx = jax.scipy.linalg.qr(fixed, mode="r", pivoting=True)[1].astype(jnp.int32)
    columns = jnp.take_along_axis(A, idx[..., None, :], -1)
    q, r = jnp.linalg.qr(columns[..., :k])
    proj = jax.lax.linalg.triangular_solve(
        r, product(adjoint(q), columns[..., k:]), left_side=True, lower=False
    )
    return idx, proj


@operation("B", "proj", jit=False)
def reconstruct_matrix_from_id(B: Array, idx: Any, proj: Array) -> Array:
    """A ≈ B·[I proj]·Pᵀ [..., m, n] from its columns B [..., m, k], idx [..., n] and proj."""
    check_matrix("reconstruct_matrix_from_id", B=B, proj=proj)
    check_size("reconstruct_matrix_from_id", "proj", "rows", proj.shape[-2], B.shape[-1])
    return _in_place(jnp.concatenate([B, product(B, proj)], -1), idx)


@operation("proj", jit=False)
def reconstruct_interp_matrix(idx: Any, proj: Array) -> Array:
    """[I proj]·Pᵀ, [..., k, n], which makes A of its columns, from idx [..., n] and proj."""
    check_matrix("reconstruct_interp_matrix", proj=proj)
    k = proj.shape[-2]
    eye = jnp.broadcast_to(jnp.eye(k, dtype=proj.dtype), (*proj.shape[:-2], k, k))
    return _in_place(jnp.concatenate([eye, proj], -1), idx)


@operation("A", jit=False)
def reconstruct_skel_matrix(A: Array, k: int, idx: Any) -> Array:
    """The columns of A [..., m, n] that span it, [..., m, k]."""
    check_matrix("reconstruct_skel_matrix", A=A)
    return jnp.take_along_axis(A, jnp.asarray(idx)[..., None, :k], -1)


@operation("B", "proj", jit=False)
def id_to_svd(B: Array, idx: Any, proj: Array) -> tuple[Array, Array, Array]:
    """The singular value decomposition of B·[I proj]·Pᵀ: U [..., m, k], s [..., k], V [..., n, k].

    V, not its adjoint, as scipy.linalg.interpolative has it. By QR decompositions of both factors
    and the decomposition of a k × k matrix.
    """
    q, r = jnp.linalg.qr(B)
    p, t = jnp.linalg.qr(adjoint(reconstruct_interp_matrix(idx, proj)))
    u, s, vh = jnp.linalg.svd(product(r, adjoint(t)), full_matrices=False)
    return product(q, u), s, product(p, adjoint(vh))


def svd(
    A: Any, eps_or_k: float, rand: bool = True, rng: Any = None, *, compute_dtype: Any = None
) -> tuple[Array, Array, Array]:
    """Singular value decomposition of rank k: U [..., m, k], s [..., k] and V [..., n, k].

    V, not its adjoint, as scipy.linalg.interpolative has it.

    Args:
        A: [..., m, n].
        eps_or_k: rank or precision, as in `interp_decomp`.
        rand: from the range of (A·Aᴴ)²·A·G with a random G [n, k + 10]; False from an
            interpolative decomposition of A itself.
        rng: key or integer for `rand`.
        compute_dtype: as everywhere.

    Raises as `interp_decomp`. The derivative is that of the decomposition in the range that was
    found, right as far as rank k is.
    """
    k = eps_or_k if eps_or_k >= 1 else estimate_rank(A, eps_or_k, rng, compute_dtype=compute_dtype)
    result: tuple[Array, Array, Array] = _svd(A, int(k), rand, rng, compute_dtype=compute_dtype)
    return result


@operation("A", jit=False)
def _svd(A: Array, k: int, rand: bool, rng: Any) -> tuple[Array, Array, Array]:
    _check_rank("svd", A, k)
    if not rand:
        idx, proj = _interp_decomp(A, k, False, rng)
        result: tuple[Array, Array, Array] = id_to_svd(
            reconstruct_skel_matrix(A, k, idx), idx, proj
        )
        return result
    m, n = A.shape[-2:]
    columns = min(k + OVERSAMPLING, m, n)
    fixed = jax.lax.stop_gradient(A)
    q = jnp.linalg.qr(product(fixed, _gaussian(rng, (n, columns), A.dtype)))[0]
    for _ in range(POWERS):
        q = jnp.linalg.qr(product(adjoint(fixed), q))[0]
        q = jnp.linalg.qr(product(fixed, q))[0]
    u, s, vh = jnp.linalg.svd(product(adjoint(q), A), full_matrices=False)
    return product(q, u[..., :k]), s[..., :k], adjoint(vh)[..., :k]


@operation("A", jit=False)
def estimate_spectral_norm(A: Array, its: int = 20, rng: Any = None) -> Array:
    """A lower bound of ‖A‖₂ [...]: `its` steps of the power method on AᴴA from a random vector."""
    check_matrix("estimate_spectral_norm", A=A)
    if its < 1:
        raise ValueError(f"estimate_spectral_norm: its: expected a number ≥ 1, got {its}")
    start = _gaussian(rng, (A.shape[-1], 1), A.dtype)

    def unit(x: Array) -> Array:
        norm = jnp.linalg.norm(x, axis=-2, keepdims=True)
        return x / jnp.where(norm == 0, 1, norm)

    fixed = jax.lax.stop_gradient(A)
    x = jax.lax.fori_loop(
        0,
        its,
        lambda _, x: unit(product(adjoint(fixed), product(fixed, x))),
        jnp.broadcast_to(unit(start), (*A.shape[:-2], *start.shape)),
    )
    norm: Array = jnp.linalg.norm(product(A, x)[..., 0], axis=-1)
    return norm


def estimate_spectral_norm_diff(
    A: Any, B: Any, its: int = 20, rng: Any = None, *, compute_dtype: Any = None
) -> Array:
    """A lower bound of ‖A − B‖₂, as `estimate_spectral_norm`."""
    difference = jnp.asarray(A) - jnp.asarray(B)
    result: Array = estimate_spectral_norm(difference, its, rng, compute_dtype=compute_dtype)
    return result


@operation("A", jit=False)
def estimate_rank(A: Array, eps: float, rng: Any = None) -> Any:
    """How many singular values of A [..., m, n] are above `eps` times the largest; at least 1.

    An integer for one matrix, for a batch [...] of int32. Exact, from the singular values of A
    itself, where SciPy's is from random products. One matrix's works outside of jit alone, as an
    integer has to.

    Raises ValueError unless 0 < eps < 1.
    """
    check_matrix("estimate_rank", A=A)
    if not 0 < eps < 1:
        raise ValueError(f"estimate_rank: eps: expected a number between 0 and 1, got {eps}")
    del rng
    values = jnp.linalg.svd(A, compute_uv=False)
    ranks = jnp.maximum(jnp.sum(values > eps * values[..., :1], -1), 1).astype(jnp.int32)
    if A.ndim > 2:
        return ranks
    outside_jit("estimate_rank", "the rank", A)
    return int(ranks)


def _check_rank(function: str, a: Array, k: int) -> None:
    check_matrix(function, A=a)
    if not 1 <= k <= min(a.shape[-2:]):
        raise ValueError(f"{function}: rank: expected 1 to {min(a.shape[-2:])}, got {k}")


def _gaussian(rng: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    """A random matrix with independent normal elements."""
    return jax.random.normal(random_key(0 if rng is None else rng), shape, dtype)


def _in_place(columns: Array, idx: Any) -> Array:
    """Columns in the order `idx`, back in their own."""
    back = jnp.argsort(jnp.asarray(idx), axis=-1)
    return jnp.take_along_axis(columns, back[..., None, :], -1)
