"""Recurrences over the blocks of a block-tridiagonal matrix, as scans that JAX differentiates.

They are the derivatives of the targets in `_block_tridiagonal.py`, which are faster and have none.
Arrays are `diagonal` [..., nblocks, n, n] and `off_diagonal` [..., nblocks - 1, n, n], the blocks
on A's diagonal and those below them; L of A = L·Lᴴ has blocks in the same places. What does not
depend on other blocks is computed for all of them before the scan, whose steps are products alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from lapax.linalg._arguments import adjoint

Array = jax.Array
Band = tuple[Array, Array]
"""The blocks on the diagonal, and those below it."""


def hermitian(diagonal: Array) -> Array:
    """The Hermitian blocks whose lower triangles are given."""
    lower = jnp.tril(diagonal, -1)
    return lower + adjoint(lower) + _diagonal_part(jnp.real(diagonal).astype(diagonal.dtype))


def product(diagonal: Array, off_diagonal: Array, x: Array) -> Array:
    """A·x for A with Hermitian `diagonal` and x [..., nblocks, n, k]."""
    below = off_diagonal @ x[..., :-1, :, :]
    above = adjoint(off_diagonal) @ x[..., 1:, :, :]
    return diagonal @ x + _shifted(below, 1) + _shifted(above, 0)


def lower_product(l_diagonal: Array, l_off_diagonal: Array, x: Array) -> Array:
    """L·x."""
    return l_diagonal @ x + _shifted(l_off_diagonal @ x[..., :-1, :, :], 1)


def upper_product(l_diagonal: Array, l_off_diagonal: Array, x: Array) -> Array:
    """Lᴴ·x."""
    above = adjoint(l_off_diagonal) @ x[..., 1:, :, :]
    return adjoint(l_diagonal) @ x + _shifted(above, 0)


def factor_tangent(factor: Band, a_dot: Band) -> Band:
    """The tangent of L for one of A, whose diagonal blocks are Hermitian.

    From A = L·Lᴴ block by block: with D' = Ȧᵢᵢ − Ėᵢ₋₁·Eᵢ₋₁ᴴ − Eᵢ₋₁·Ėᵢ₋₁ᴴ for the off-diagonal
    blocks E of L, L̇ᵢᵢ = Lᵢᵢ·Φ(Lᵢᵢ⁻¹·D'·Lᵢᵢ⁻ᴴ) and Ėᵢ = (Ȧᵢ₊₁ᵢ − Eᵢ·L̇ᵢᵢᴴ)·Lᵢᵢ⁻ᴴ, where Φ takes
    the lower triangle and half of the diagonal (Murray, "Differentiation of the Cholesky
    decomposition", 2016).
    """
    l_diagonal, l_off = factor
    inverse = _inverted(l_diagonal)

    def step(before: Array, block: tuple[Array, ...]) -> tuple[Array, Band]:
        diagonal, off, inverse, a_diagonal, a_off = block
        inner = inverse @ (a_diagonal - before - adjoint(before)) @ adjoint(inverse)
        diagonal_dot = diagonal @ (jnp.tril(inner, -1) + _diagonal_part(inner) / 2)
        off_dot = (a_off - off @ adjoint(diagonal_dot)) @ adjoint(inverse)
        return off_dot @ adjoint(off), (diagonal_dot, off_dot)

    def tangent(a_diagonal: Array, a_off: Array) -> Band:
        blocks = (l_diagonal, _whole(l_off), inverse, a_diagonal, _whole(a_off))
        start = jnp.zeros_like(a_diagonal[..., 0, :, :])
        diagonal_dot, off_dot = _scan(step, start, blocks)
        return diagonal_dot, off_dot[..., :-1, :, :]

    # It is linear, hence its own derivative: as such, JAX 0.8 knows how to transpose the scan.
    zeros = (jnp.zeros_like(a_dot[0]), jnp.zeros_like(a_dot[1]))
    l_dot: Band = jax.jvp(tangent, zeros, a_dot)[1]
    return l_dot


def inverse(l_diagonal: Array, l_off_diagonal: Array) -> Band:
    """The blocks of S = A⁻¹ in the places of those of A, by L.

    With G = Lᵢ₊₁ᵢ·Lᵢᵢ⁻¹ from the last block to the first: Sᵢ₊₁ᵢ = −Sᵢ₊₁ᵢ₊₁·G and
    Sᵢᵢ = Lᵢᵢ⁻ᴴ·Lᵢᵢ⁻¹ − Gᴴ·Sᵢ₊₁ᵢ (Takahashi, Fagan and Chin, 1973).
    """
    inverted = _inverted(l_diagonal)
    blocks = (adjoint(inverted) @ inverted, _whole(l_off_diagonal) @ inverted)

    def step(behind: Array, block: tuple[Array, ...]) -> tuple[Array, Band]:
        own, g = block
        off = -behind @ g
        diagonal = own - adjoint(g) @ off
        return diagonal, (diagonal, off)

    start = jnp.zeros_like(l_diagonal[..., 0, :, :])
    diagonal, off = _scan(step, start, blocks, reverse=True)
    return diagonal, off[..., :-1, :, :]


def _inverted(lower: Array) -> Array:
    """The inverse of each lower triangle."""
    identity = jnp.broadcast_to(jnp.eye(lower.shape[-1], dtype=lower.dtype), lower.shape)
    return jax.lax.linalg.triangular_solve(lower, identity, left_side=True, lower=True)


def _diagonal_part(a: Array) -> Array:
    """Each matrix without what is off its diagonal."""
    return jnp.where(jnp.eye(a.shape[-1], dtype=bool), a, 0)


def _shifted(blocks: Array, before: int) -> Array:
    """All rows of blocks, where the first one, or the last one, is zero and not given."""
    zeros = [(0, 0)] * blocks.ndim
    zeros[-3] = (before, 1 - before)
    return jnp.pad(blocks, zeros)


def _whole(off_diagonal: Array) -> Array:
    """As many blocks as the diagonal has: with a zero after the last one."""
    return _shifted(off_diagonal, 0)


def _scan(
    step: Callable[[Any, Any], Any], start: Array, blocks: tuple[Array, ...], reverse: bool = False
) -> Any:
    """`jax.lax.scan` over the blocks, which are third from last."""
    first = jax.tree.map(lambda a: jnp.moveaxis(a, -3, 0), blocks)
    results = jax.lax.scan(step, start, first, reverse=reverse)[1]
    return jax.tree.map(lambda a: jnp.moveaxis(a, 0, -3), results)
