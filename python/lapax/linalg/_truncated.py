"""Truncated decompositions: the largest singular values or eigenvalues, by count and tolerance.

What SciPy has no name for. The derivatives are those of the full decompositions (Giles, "Collected
matrix derivative results for forward and reverse mode algorithmic differentiation", 2008), in what
is kept: what is dropped may repeat or be zero, as in matrices of deficient rank. Kept values must
differ from each other and from what is dropped; where two of them are equal, their vectors are held
to each other, which is right for whatever depends on the sum of both alone.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from lapax._settings import own_settings
from lapax.linalg._arguments import Array, adjoint, check_matrix, check_square, operation
from lapax.linalg._least_squares import CutOff, from_triangle

__all__ = ["truncated_eigh", "truncated_svd"]


@operation("a")
def truncated_svd(a: Array, k: int | None = None, tol: float = 0.0) -> tuple[Array, Array, Array]:
    """The k largest singular values and their vectors: A ≈ U·Σ·Vᴴ, the best of rank k.

    Args:
        a: [..., m, n].
        k: how many. Default min(m, n).
        tol: of them, those of at most `tol` times the largest are zero, and so are their vectors.

    Returns:
        U [..., m, k], s [..., k], real, falling, and Vᴴ [..., k, n].

    Raises ValueError unless 0 ≤ k ≤ min(m, n), or for a negative `tol`.

    Derivatives and cost are those of `svd`.

    >>> truncated_svd(diag(array([3., 4])), k=1)[1]  # [4]
    """
    check_matrix("truncated_svd", a=a)
    count = _count("truncated_svd", k, tol, min(a.shape[-2:]))
    return _truncated_svd(a, count, CutOff(0.0, tol))


@operation("a")
def truncated_eigh(
    a: Array, k: int | None = None, tol: float = 0.0, lower: bool = True
) -> tuple[Array, Array]:
    """The k eigenvalues of largest magnitude of Hermitian matrices: A ≈ V·Λ·Vᴴ, the best of rank k.

    Args:
        a: [..., n, n], of which one triangle is read.
        k: how many. Default n.
        tol: of them, those of at most `tol` times the largest magnitude are zero, and so are their
            vectors.
        lower: which triangle.

    Returns:
        w [..., k], real, of falling magnitude, and V [..., n, k].

    Raises ValueError unless 0 ≤ k ≤ n, or for a negative `tol`.

    Derivatives and cost are those of `eigh`.

    >>> truncated_eigh(diag(array([1., -3])), k=1)[0]  # [-3]
    """
    check_square("truncated_eigh", a=a)
    count = _count("truncated_eigh", k, tol, a.shape[-1])
    return _truncated_eigh(from_triangle(a, lower), count, CutOff(0.0, tol))


def _count(function: str, k: int | None, tol: float, most: int) -> int:
    if k is not None and not 0 <= k <= most:
        raise ValueError(f"{function}: k: expected 0 to {most}, got {k}")
    if tol < 0:
        raise ValueError(f"{function}: tol: expected a number ≥ 0, got {tol}")
    return most if k is None else k


def _inverse(differences: Array) -> Array:
    """1/x, and zero for zero: for a value and itself, and for those that are equal."""
    return jnp.where(differences == 0, 0, 1 / jnp.where(differences == 0, 1, differences))


@partial(jax.custom_jvp, nondiff_argnums=(1, 2))
def _truncated_svd(a: Array, k: int, cut_off: CutOff) -> tuple[Array, Array, Array]:
    u, s, vh = jnp.linalg.svd(a, full_matrices=False)
    kept = cut_off.kept(s)[..., :k]
    masked = kept[..., None, :]
    return (
        jnp.where(masked, u[..., :k], 0),
        jnp.where(kept, s[..., :k], 0),
        jnp.where(kept[..., None], vh[..., :k, :], 0),
    )


@_truncated_svd.defjvp
@own_settings()
def _truncated_svd_jvp(
    k: int, cut_off: CutOff, primals: tuple[Array], tangents: tuple[Array]
) -> tuple[Any, Any]:
    """With E = Uᴴ·dA·V of all vectors: dσ = Re E's diagonal, and for kept j and any i

    dU = U·(E·σⱼ + σᵢ·Eᴴ)ᵢⱼ/(σⱼ² − σᵢ²) + (1 − UUᴴ)·dA·V/σⱼ, and dV likewise of Aᴴ; of the
    imaginary part of E's diagonal, which turns uⱼ against vⱼ, all is given to U.
    """
    (a,), (da,) = primals, tangents
    uk, sk, vhk = _truncated_svd(a, k, cut_off)
    u, s, vh = jnp.linalg.svd(a, full_matrices=False)
    kept = (sk > 0)[..., None, :]
    rows, columns = s[..., :, None], sk[..., None, :]
    coupling = _inverse((columns - rows) * (columns + rows)) * kept
    over = _inverse(columns)
    dav, daun = da @ adjoint(vhk), adjoint(da) @ uk
    e, eh = adjoint(u) @ dav, vh @ daun
    diagonal = jnp.diagonal(e, axis1=-2, axis2=-1)
    turn = 1j * jnp.imag(diagonal)[..., None, :] * over if jnp.iscomplexobj(a) else 0
    du = u @ (coupling * (e * columns + rows * eh)) + (dav - u @ e) * over + uk * turn
    dv = adjoint(vh) @ (coupling * (eh * columns + rows * e)) + (daun - adjoint(vh) @ eh) * over
    return (uk, sk, vhk), (du, jnp.real(diagonal) * (sk > 0), adjoint(dv))


@partial(jax.custom_jvp, nondiff_argnums=(1, 2))
def _truncated_eigh(a: Array, k: int, cut_off: CutOff) -> tuple[Array, Array]:
    w, v = _by_magnitude(a)
    kept = cut_off.kept(jnp.abs(w))[..., :k]
    return jnp.where(kept, w[..., :k], 0), jnp.where(kept[..., None, :], v[..., :k], 0)


@_truncated_eigh.defjvp
@own_settings()
def _truncated_eigh_jvp(
    k: int, cut_off: CutOff, primals: tuple[Array], tangents: tuple[Array]
) -> tuple[Any, Any]:
    """dλ = the diagonal of E = Vᴴ·dA·V, and dV = V·Eᵢⱼ/(λⱼ − λᵢ) for kept j and any i."""
    (a,), (da,) = primals, tangents
    wk, vk = _truncated_eigh(a, k, cut_off)
    w, v = _by_magnitude(a)
    e = adjoint(v) @ (da @ vk)
    kept = (wk != 0)[..., None, :]
    dv = v @ (e * _inverse(wk[..., None, :] - w[..., :, None]) * kept)
    return (wk, vk), (jnp.real(jnp.diagonal(e, axis1=-2, axis2=-1)), dv)


def _by_magnitude(a: Array) -> tuple[Array, Array]:
    w, v = jnp.linalg.eigh(a, symmetrize_input=False)
    order = jnp.argsort(-jnp.abs(w), axis=-1)
    w = jnp.take_along_axis(w, order, axis=-1)
    return w, jnp.take_along_axis(v, order[..., None, :], axis=-1)
