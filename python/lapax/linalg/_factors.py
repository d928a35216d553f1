"""LU and polar decompositions and singular values, in all of SciPy's forms."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from lapax._settings import own_settings
from lapax.linalg._arguments import (
    Array,
    adjoint,
    check_choice,
    check_matrix,
    check_size,
    check_square,
    operation,
    real_dtype,
    right_hand_sides,
    same_batch,
)

__all__ = ["lu", "lu_factor", "lu_solve", "polar", "svdvals"]


@operation("a")
def lu(
    a: Array,
    permute_l: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
    p_indices: bool = False,
) -> tuple[Array, ...]:
    """A = P·L·U with a permutation P, as scipy.linalg.lu.

    Args:
        a: [..., m, n]; k = min(m, n).
        permute_l: returns (P·L, U).
        overwrite_a: ignored.
        check_finite: ignored.
        p_indices: gives P by indices p [..., m], int32: A = L[p, :]·U.

    Returns:
        P [..., m, m], real, L [..., m, k] with a diagonal of ones, U [..., k, n]; P has no rows
        where k = 0.

    The derivative is JAX's, for fixed P.

    Cost: 2n³/3 for m = n.

    >>> lu(array([[2., 4], [1, 3]]))[2]  # [[2, 4], [0, 1]]
    """
    check_matrix("lu", a=a)
    m, n = a.shape[-2:]
    k = min(m, n)
    factors, _, order = jax.lax.linalg.lu(a)
    l_factor = jnp.tril(factors[..., :k], -1) + jnp.eye(m, k, dtype=a.dtype)
    u_factor = jnp.triu(factors[..., :k, :])
    p = jnp.argsort(order, axis=-1).astype(jnp.int32)
    if permute_l:
        return jnp.take_along_axis(l_factor, p[..., None], axis=-2), u_factor
    p = p[..., : m if k else 0]
    if p_indices:
        return p, l_factor, u_factor
    return jnp.eye(p.shape[-1], dtype=real_dtype(a.dtype))[p], l_factor, u_factor


@operation("a")
def lu_factor(
    a: Array, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array]:
    """A = P·L·U in LAPACK's form, as scipy.linalg.lu_factor.

    Args:
        a: [..., m, n]; k = min(m, n).
        overwrite_a: ignored.
        check_finite: ignored.

    Returns:
        [..., m, n], U and below its diagonal L; pivots [..., k], int32: row i was exchanged with
        row pivots[i]. The derivative is JAX's.

    Cost: 2n³/3 for m = n.

    >>> lu_factor(array([[2., 4], [1, 3]]))[0]  # [[2, 4], [0.5, 1]]
    """
    check_matrix("lu_factor", a=a)
    factors, pivots, _ = jax.lax.linalg.lu(a)
    return factors, pivots


@operation("lu_and_piv", "b")
def lu_solve(
    lu_and_piv: tuple[Array, Array],
    b: Array,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """The solution of A·X = B from what lu_factor returns, as scipy.linalg.lu_solve.

    Args:
        lu_and_piv: factors [..., n, n] and pivots [..., n].
        b: [n], or [..., n, k].
        trans: 0 for A, 1 for Aᵀ, 2 for Aᴴ.
        overwrite_b: ignored.
        check_finite: ignored.

    Returns:
        [n], [..., n] or [..., n, k]. Raises ValueError where sizes do not match.

    The derivative is that of the triangular systems. Cost: 2n² for each right-hand side.

    >>> lu_solve(lu_factor(2 * eye(2)), ones(2))  # [0.5, 0.5]
    """
    factors, pivots = lu_and_piv
    check_square("lu_solve", lu_and_piv=factors)
    check_choice("lu_solve", "trans", trans, (0, 1, 2))
    b, as_b = right_hand_sides("lu_solve", b, factors.shape[-1], vector=b.ndim == 1)
    check_size("lu_solve", "lu_and_piv", "pivots", pivots.shape[-1], factors.shape[-1])
    factors, pivots, b = same_batch("lu_solve", lu=(factors, 2), piv=(pivots, 1), b=(b, 2))
    # All arrays come in one dtype, which holds integers below 2²⁴.
    pivots = jnp.real(pivots).astype(jnp.int32)
    return as_b(jax.scipy.linalg.lu_solve((factors, pivots), b, trans))


@operation("a")
def svdvals(a: Array, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The singular values of a [..., m, n]: [..., min(m, n)], real, falling.

    The derivative dσᵢ = Re uᵢᴴ·dA·vᵢ is one of the directions' where values repeat.

    Cost: 8n³/3 for m = n.

    >>> svdvals(diag(array([3., 4])))  # [4, 3]
    """
    check_matrix("svdvals", a=a)
    return jnp.linalg.svd(a, compute_uv=False)


@operation("a")
def polar(a: Array, side: str = "right") -> tuple[Array, Array]:
    """A = U·P (side "right") or A = P·U ("left"), as scipy.linalg.polar.

    Args:
        a: [..., m, n] of any sizes.
        side: of P.

    Returns:
        U [..., m, n], with orthonormal columns, or rows where m < n, and P, Hermitian positive
        semidefinite, [..., n, n] or [..., m, m].

    By the singular value decomposition A = W·Σ·Vᴴ. With E = Wᴴ·dA·V, both derivatives divide by
    σᵢ + σⱼ alone (Higham, "Functions of Matrices", SIAM 2008, chapter 8): values may repeat. That
    of P holds where the rank stays constant; U is not unique and its derivative NaN where the rank
    is less than min(m, n). Second derivatives need distinct singular values.

    Cost: that of `svd`, and two products.

    >>> polar(-2 * eye(2))[1]  # [[2, 0], [0, 2]]
    """
    check_matrix("polar", a=a)
    check_choice("polar", "side", side, ("right", "left"))
    return _polar(a, side == "right")


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def _polar(a: Array, right: bool) -> tuple[Array, Array]:
    w, s, vh = jnp.linalg.svd(a, full_matrices=False)
    scaled = s[..., None].astype(a.dtype)
    p = adjoint(vh) @ (scaled * vh) if right else w @ (scaled * adjoint(w))
    return w @ vh, p


@_polar.defjvp
@own_settings()
def _polar_jvp(right: bool, primals: tuple[Array], tangents: tuple[Array]) -> tuple[Any, Any]:
    """dU = W·(E − Eᴴ)ᵢⱼ/(σᵢ+σⱼ)·Vᴴ + (1 − WWᴴ)·dA·V·Σ⁻¹·Vᴴ + W·Σ⁻¹·Wᴴ·dA·(1 − VVᴴ).

    dP = V·(σᵢ·E + Eᴴ·σⱼ)ᵢⱼ/(σᵢ+σⱼ)·Vᴴ + C + Cᴴ with C = V·Wᴴ·dA·(1 − VVᴴ) on the right; on the
    left it is that of Aᴴ.
    """
    (a,), (da,) = primals, tangents
    w, s, vh = jnp.linalg.svd(a, full_matrices=False)
    v, rows, columns = adjoint(vh), s[..., :, None], s[..., None, :]
    dav, wda = da @ v, adjoint(w) @ da
    e = adjoint(w) @ dav
    outside_w, outside_v = dav - w @ e, wda - e @ vh
    du = w @ ((e - adjoint(e)) / (rows + columns)) @ vh
    if a.shape[-2] > a.shape[-1]:
        du = du + (outside_w / columns) @ vh
    if a.shape[-2] < a.shape[-1]:
        du = du + w @ (outside_v / rows)
    sums = jnp.where(rows + columns > 0, rows + columns, 1)
    if right:
        basis, inner, outside = v, rows * e + adjoint(e) * columns, v @ outside_v
    else:
        basis, inner, outside = w, e * columns + rows * adjoint(e), outside_w @ adjoint(w)
    dp = basis @ (inner / sums) @ adjoint(basis) + outside + adjoint(outside)
    return _polar(a, right), (du, dp)


def unitary_factor(a: Array) -> Array:
    """U of A = U·P."""
    return _polar(a, True)[0]
