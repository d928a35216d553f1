"""Least squares, pseudo-inverses and ranks of matrices of any rank.

The solution of minimal norm of min ‖A·x − b‖ is x = A⁺·b, where A⁺ leaves out the singular values
that a cut-off counts as zero. Its derivatives are those of Golub and Pereyra, "The differentiation
of pseudo-inverses and nonlinear least squares problems whose variables separate", SIAM J. Numer.
Anal. 10 (1973), pp. 413–432. They hold where the rank stays constant, deficient or not, to any
order, as far as what was left out is zero: a cut-off that drops σ and keeps σ' leaves σ/σ' of an
error in them.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lapax._settings import own_settings
from lapax.linalg._arguments import (
    Array,
    adjoint,
    check_choice,
    check_matrix,
    check_square,
    operation,
    real_dtype,
    right_hand_sides,
    same_batch,
)

__all__ = ["lstsq", "matrix_rank", "pinv", "pinvh"]


@operation("a", "b")
def lstsq(
    a: Array,
    b: Array,
    cond: float | None = None,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    lapack_driver: str | None = None,
) -> tuple[Array, Array, Array, Array | None]:
    """The solution of minimal norm of min ‖A·x − b‖, as scipy.linalg.lstsq.

    Args:
        a: [..., m, n].
        b: [m], or [..., m, k].
        cond: singular values of at most `cond` times the largest count as zero. Default: ε.
        overwrite_a: ignored.
        overwrite_b: ignored.
        check_finite: ignored.
        lapack_driver: "gelsd", "gelss" and None are by the singular value decomposition. "gelsy"
            is by the complete orthogonal factorisation A·P = Q·[Tᴴ 0]·Zᴴ, which costs less; its
            rank counts the diagonal of the pivoted R, not the singular values.

    Returns:
        x: [n], [..., n] or [..., n, k].
        residues: ‖A·x − b‖² of each right-hand side, real, of shape [...] or [..., k]; NaN where
            the rank is less than n. As in SciPy, of shape [..., 0] if m ≤ n or with "gelsy".
        rank: [...], integers.
        s: the singular values, [..., min(m, n)]; None with "gelsy".

    The derivative of x is Golub and Pereyra's, at constant rank.

    Cost: that of `svd` or of a pivoted `qr`.

    >>> lstsq(array([[1.], [1]]), array([1., 3]))[0]  # [2]
    """
    check_matrix("lstsq", a=a)
    check_choice("lstsq", "lapack_driver", lapack_driver, (None, "gelsd", "gelss", "gelsy"))
    m, n = a.shape[-2:]
    vector = b.ndim == 1
    b, as_b = right_hand_sides("lstsq", b, m, vector)
    a, b = same_batch("lstsq", a=(a, 2), b=(b, 2))
    pivoted = lapack_driver == "gelsy"
    cut_off = CutOff(0.0, float(np.finfo(a.dtype).eps) if cond is None else cond)
    x = _solution(a, b, cut_off, pivoted)
    s = None if pivoted else jnp.linalg.svd(a, full_matrices=False)[1]
    kept = _pivots_kept(jax.lax.stop_gradient(a), cut_off) if s is None else cut_off.kept(s)
    rank = jnp.sum(kept, axis=-1)
    if pivoted or m <= n:
        return as_b(x), jnp.zeros((*a.shape[:-2], 0), real_dtype(a.dtype)), rank, s
    residual = b - a @ x
    residues = jnp.sum(jnp.real(residual * jnp.conj(residual)), axis=-2)
    residues = jnp.where((rank == n)[..., None], residues, jnp.nan)
    return as_b(x), residues[..., 0] if vector else residues, rank, s


@operation("a")
def pinv(
    a: Array,
    *,
    atol: float | None = None,
    rtol: float | None = None,
    return_rank: bool = False,
    check_finite: bool = True,
) -> Array | tuple[Array, Array]:
    """The Moore–Penrose inverse A⁺ = Σ vᵢ·uᵢᴴ/σᵢ over σᵢ > atol + rtol·max σ.

    Args:
        a: [..., m, n].
        atol: default 0.
        rtol: default max(m, n)·ε.
        return_rank: also the number of singular values kept.
        check_finite: ignored.

    Returns:
        [..., n, m]; with `return_rank` also the ranks, [...].

    The derivative is Golub and Pereyra's, at constant rank. Raises ValueError for a negative
    tolerance.

    Cost: that of `svd`, and a product.

    >>> pinv(array([[2., 0], [0, 0]]))  # [[0.5, 0], [0, 0]]
    """
    check_matrix("pinv", a=a)
    cut_off = _cut_off("pinv", a, atol, rtol)
    inverse = _solution(a, None, cut_off, False)
    if not return_rank:
        return inverse
    s = jnp.linalg.svd(a, full_matrices=False)[1]
    return inverse, jnp.sum(cut_off.kept(s), axis=-1)


@operation("a")
def pinvh(
    a: Array,
    atol: float | None = None,
    rtol: float | None = None,
    lower: bool = True,
    return_rank: bool = False,
    check_finite: bool = True,
) -> Array | tuple[Array, Array]:
    """The Moore–Penrose inverse of Hermitian matrices, by eigenvalues: |λᵢ| > atol + rtol·max |λ|.

    Args:
        a: [..., n, n], of which one triangle is read.
        atol: default 0.
        rtol: default n·ε.
        lower: which triangle.
        return_rank: also the number of eigenvalues kept.
        check_finite: ignored.

    Returns:
        [..., n, n], Hermitian; with `return_rank` also the ranks, [...].

    The derivative is Golub and Pereyra's, at constant rank, in the triangle that is read. Raises
    ValueError for a negative tolerance.

    Cost: that of `eigh`, and a product.

    >>> pinvh(array([[2., 0], [0, 0]]))  # [[0.5, 0], [0, 0]]
    """
    check_square("pinvh", a=a)
    cut_off = _cut_off("pinvh", a, atol, rtol)
    a = from_triangle(a, lower)
    inverse = _hermitian_inverse(a, cut_off)
    if not return_rank:
        return inverse
    w = jnp.linalg.eigh(a, symmetrize_input=False)[0]
    return inverse, jnp.sum(cut_off.kept(jnp.abs(w)), axis=-1)


@operation("A")
def matrix_rank(
    A: Array, tol: float | None = None, hermitian: bool = False, *, rtol: float | None = None
) -> Array:
    """The number of singular values above a tolerance, as numpy.linalg.matrix_rank.

    Args:
        A: [..., m, n].
        tol: counts singular values σ > tol.
        hermitian: whether A = Aᴴ, of which the lower triangle is read: by eigenvalues.
        rtol: counts σ > rtol·max σ. Default max(m, n)·ε.

    Returns:
        [...], integers.

    Raises ValueError if both tolerances are given, or one is negative.

    Cost: that of `svdvals` or `eigvalsh`. The rank is a constant for derivatives.

    >>> matrix_rank(ones((3, 3)))  # 1
    """
    check_matrix("matrix_rank", A=A)
    if tol is not None and rtol is not None:
        raise ValueError(f"matrix_rank: expected tol or rtol, got tol {tol} and rtol {rtol}")
    cut_off = _cut_off("matrix_rank", A, tol, rtol if tol is None else 0.0)
    if hermitian:
        check_square("matrix_rank", A=A)
        s = jnp.abs(jnp.linalg.eigh(from_triangle(A, lower=True), symmetrize_input=False)[0])
    else:
        s = jnp.linalg.svd(A, compute_uv=False)
    return jnp.sum(cut_off.kept(s), axis=-1)


class CutOff(NamedTuple):
    """What counts as zero: values of at most atol + rtol·(the largest)."""

    atol: float
    rtol: float

    def kept(self, values: Array) -> Array:
        """Which values are above it; NaN are, so that what is made of them is NaN."""
        largest = jnp.max(values, axis=-1, initial=0.0, keepdims=True)
        return ~(values <= self.atol + self.rtol * largest)

    def inverse(self, values: Array, magnitudes: Array) -> Array:
        """1/values where the magnitudes are above it, zero elsewhere."""
        kept = self.kept(magnitudes)
        return jnp.where(kept, 1 / jnp.where(kept, values, 1), 0)


def _cut_off(function: str, a: Array, atol: float | None, rtol: float | None) -> CutOff:
    """The tolerances given, or SciPy's defaults."""
    atol = 0.0 if atol is None else atol
    rtol = max(a.shape[-2:]) * float(np.finfo(a.dtype).eps) if rtol is None else rtol
    for name, value in (("atol", atol), ("rtol", rtol)):
        if value < 0:
            raise ValueError(f"{function}: {name}: expected a number ≥ 0, got {value}")
    return CutOff(atol, rtol)


def from_triangle(a: Array, lower: bool) -> Array:
    """The Hermitian matrix of which `a` has one triangle."""
    strict = jnp.tril(a, -1) if lower else jnp.triu(a, 1)
    diagonal = jnp.real(jnp.diagonal(a, axis1=-2, axis2=-1)).astype(a.dtype)
    return strict + adjoint(strict) + diagonal[..., None] * jnp.eye(a.shape[-1], dtype=a.dtype)


@partial(jax.custom_jvp, nondiff_argnums=(2, 3))
def _solution(a: Array, b: Array | None, cut_off: CutOff, pivoted: bool) -> Array:
    """A⁺·b, or A⁺ if b is None."""
    if pivoted:
        return _by_pivoted_qr(a, b, cut_off)
    u, s, vh = jnp.linalg.svd(a, full_matrices=False)
    inverse = cut_off.inverse(s, s).astype(a.dtype)
    ub = adjoint(u) if b is None else adjoint(u) @ b
    return adjoint(vh) @ (inverse[..., None] * ub)


@_solution.defjvp
@own_settings()
def _solution_jvp(
    cut_off: CutOff, pivoted: bool, primals: tuple[Any, ...], tangents: tuple[Any, ...]
) -> tuple[Array, Array]:
    """dx = A⁺·(db − dA·x + A⁺ᴴ·dAᴴ·r) + (1 − A⁺·A)·dAᴴ·A⁺ᴴ·x, with r = b − A·x."""
    (a, b), (da, db) = primals, tangents
    x = _solution(a, b, cut_off, pivoted)
    inverse = x if b is None else _solution(a, None, cut_off, pivoted)
    identity = jnp.eye(a.shape[-2], dtype=a.dtype)
    residual = (identity if b is None else b) - a @ x
    inside = adjoint(inverse) @ (adjoint(da) @ residual) - da @ x
    outside = adjoint(da) @ (adjoint(inverse) @ x)
    if b is not None:
        inside = inside + db
    return x, inverse @ (inside - a @ outside) + outside


def _by_pivoted_qr(a: Array, b: Array | None, cut_off: CutOff) -> Array:
    """A⁺·b by A·P = Q·R, of which the rows below the rank are left out, and Rᴴ = Z·T."""
    q, r, p = jax.lax.linalg.qr(a, pivoting=True, full_matrices=False)
    kept = _leading(r, cut_off)[..., None]
    z, t = jnp.linalg.qr(adjoint(jnp.where(kept, r, 0)))
    qb = adjoint(q) if b is None else adjoint(q) @ b
    left_out = jnp.where(kept, 0, jnp.eye(t.shape[-1], dtype=t.dtype))
    y = jax.lax.linalg.triangular_solve(
        t + left_out, jnp.where(kept, qb, 0), left_side=True, conjugate_a=True, transpose_a=True
    )
    return jnp.take_along_axis(z @ y, jnp.argsort(p, axis=-1)[..., None], axis=-2)


def _pivots_kept(a: Array, cut_off: CutOff) -> Array:
    """Which rows of the pivoted R count."""
    return _leading(jax.lax.linalg.qr(a, pivoting=True, full_matrices=False)[1], cut_off)


def _leading(r: Array, cut_off: CutOff) -> Array:
    """Which rows of R are before the first whose diagonal element does not count."""
    kept = cut_off.kept(jnp.abs(jnp.diagonal(r, axis1=-2, axis2=-1)))
    leading: Array = jnp.cumprod(kept.astype(jnp.int8), axis=-1).astype(bool)
    return leading


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def _hermitian_inverse(a: Array, cut_off: CutOff) -> Array:
    w, v = jnp.linalg.eigh(a, symmetrize_input=False)
    inverse = cut_off.inverse(w, jnp.abs(w)).astype(a.dtype)
    p: Array = (v * inverse[..., None, :]) @ adjoint(v)
    return p


@_hermitian_inverse.defjvp
@own_settings()
def _hermitian_inverse_jvp(
    cut_off: CutOff, primals: tuple[Array], tangents: tuple[Array]
) -> tuple[Array, Array]:
    """dP = −P·dA·P + T + Tᴴ with T = (1 − P·A)·dA·P·P."""
    (a,), (da,) = primals, tangents
    p = _hermitian_inverse(a, cut_off)
    t = da @ (p @ p)
    t = t - p @ (a @ t)
    return p, t + adjoint(t) - p @ da @ p
