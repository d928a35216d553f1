"""Cholesky factors after a change of rank k: from A = Rᴴ·R to A ± W·Wᴴ = R′ᴴ·R′.

In this file R is upper triangular, with a real diagonal; a lower factor is Rᴴ.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.lax.linalg import triangular_solve

from lapax import ffi
from lapax._settings import own_settings
from lapax.linalg._arguments import (
    Array,
    adjoint,
    check_square,
    operation,
    right_hand_sides,
    same_batch,
)
from lapax.linalg._definite import phi

__all__ = ["cholesky_downdate", "cholesky_update"]


@operation("c", "w")
def cholesky_update(c: Array, w: Array, *, lower: bool = False) -> Array:
    """Cholesky factor of A + W·Wᴴ from that of A, in O(n²·k) (LINPACK's xCHUD).

    `c` [..., n, n] is the upper factor of A = Cᴴ·C, or the lower one of A = C·Cᴴ, as `lower` says,
    with a positive diagonal; its other triangle is not read, and is zero in the result. `w` is one
    vector [n] or [..., n, k], whose columns are added one after the other by Givens rotations.
    Raises ValueError where shapes do not fit.

    The derivative costs a few triangular solves: with dS = d(Rᴴ·R + W·Wᴴ), dR′ = Φ·R′, where Φ is
    the upper triangle of R′⁻ᴴ·dS·R′⁻¹ with half the diagonal (Murray 2016, arXiv:1602.07527).

    Cost: about 3n²·k.

    >>> cholesky_update(array([[4.]]), array([3.]))  # [[5]]
    """
    return _changed("cholesky_update", 1, c, w, lower)


@operation("c", "w")
def cholesky_downdate(c: Array, w: Array, *, lower: bool = False) -> Array:
    """Cholesky factor of A − W·Wᴴ from that of A, in O(n²·k) (LINPACK's xCHDD).

    Operands, errors and derivative are those of `cholesky_update`. The sign that A − W·Wᴴ is not
    positive definite is a factor of NaN: column by column, with p = R⁻ᴴ·w, that is where
    1 − ‖p‖² ≤ 0. The error of a downdate is that of A times 1/(1 − ‖p‖²) (Stewart 1979, The effects
    of rounding error on an algorithm for downdating a Cholesky factorization).

    >>> cholesky_downdate(array([[5.]]), array([3.]))  # [[4]]
    """
    return _changed("cholesky_downdate", -1, c, w, lower)


def _changed(function: str, sign: int, c: Array, w: Array, lower: bool) -> Array:
    check_square(function, c=c)
    columns, _ = right_hand_sides(function, w, c.shape[-1], w.ndim == 1, name="w")
    c, columns = same_batch(function, c=(c, 2), w=(columns, 2))
    r = jnp.triu(adjoint(c) if lower else c)
    r = r if 0 in columns.shape else _of_rank_k(sign, r, columns)
    return adjoint(r) if lower else r


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _of_rank_k(sign: int, r: Array, w: Array) -> Array:
    step: Callable[[Array, Array], Array] = _updated if sign > 0 else _downdated
    if w.shape[-1] == 1:
        return step(r, w[..., 0])
    return jax.lax.scan(lambda r, w: (step(r, w), None), r, jnp.moveaxis(w, -1, 0))[0]


@_of_rank_k.defjvp
@own_settings()
def _(
    sign: int, primals: tuple[Array, Array], tangents: tuple[Array, Array]
) -> tuple[Array, Array]:
    (r, w), (dr, dw) = primals, tangents
    changed = _of_rank_k(sign, r, w)
    half = adjoint(r) @ dr + sign * (w @ adjoint(dw))
    left = _rh_solve(changed, half + adjoint(half))
    h = triangular_solve(changed, left, lower=False)
    return changed, adjoint(phi(h)) @ changed


def _updated(r: Array, w: Array) -> Array:
    updated: Array = ffi.cholesky_update(r, w).r_out
    return updated


def _downdated(r: Array, w: Array) -> Array:
    """R′ of R′ᴴ·R′ = Rᴴ·(I − p·pᴴ)·R with p = R⁻ᴴ·w, by the factor of I − p·pᴴ.

    With tⱼ = 1 − ‖p‖² + Σ_{i≥j} |pᵢ|² and t of n+1 = 1 − ‖p‖², row j of R′ is
    √(tⱼ₊₁/tⱼ)·rⱼ − pⱼ/√(tⱼ·tⱼ₊₁)·Σ_{i>j} conj(pᵢ)·rᵢ: the rotations of xCHDD, multiplied out (Gill,
    Golub, Murray & Saunders 1974, Methods for modifying matrix factorizations). Sums run backwards,
    over terms of one sign, so that they are as exact as the rotations.
    """
    p = _rh_solve(r, w[..., None])[..., 0]
    square = p.real**2 + p.imag**2
    length = jnp.sqrt(square.sum(-1))
    rest = (1 - length) * (1 + length)
    sums = jax.lax.cumsum(square, axis=square.ndim - 1, reverse=True)
    t = rest[..., None] + sums
    after = jnp.concatenate([t[..., 1:], rest[..., None]], -1)
    terms = p.conj()[..., None] * r
    below = jax.lax.cumsum(terms, axis=terms.ndim - 2, reverse=True) - terms
    scale, share = jnp.sqrt(after / t), p / jnp.sqrt(t * after)
    changed = jnp.triu(scale[..., None] * r - share[..., None] * below)
    return jnp.where((rest > 0)[..., None, None], changed, jnp.nan)


def _rh_solve(r: Array, b: Array) -> Array:
    """R⁻ᴴ·b."""
    return triangular_solve(r, b, left_side=True, lower=False, transpose_a=True, conjugate_a=True)
