"""Algebraic Riccati equations.

The stable subspace of a pencil gives X (van Dooren, SIAM J. Sci. Stat. Comput. 2, 1981), here
without QZ: the pencil becomes a matrix whose stable eigenvalues are those in the left half plane,
and they come first in its Schur form. Newton's steps follow, each a Lyapunov equation (Kleinman,
IEEE Trans. Autom. Control 13, 1968), which is the derivative, too.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lapax._call import ffi_call
from lapax._settings import own_settings
from lapax.linalg._arguments import (
    adjoint,
    check_matrix,
    check_size,
    check_square,
    operation,
    same_batch,
)
from lapax.linalg._equations import discrete_lyapunov, lyapunov
from lapax.linalg._products import all_or_nan, diagonal, one_norm, product
from lapax.linalg._triangular import schur

__all__ = ["solve_continuous_are", "solve_discrete_are"]

Array = jax.Array
Coefficients = tuple[Array, Array, Array, Array, Array, Array]
"""A, B, Q, R, E, S."""

_NEWTON_STEPS = 2
"""The first brings the error of the subspace to that of the residual; the second seldom changes."""
_ASYMMETRY = 0.1
"""Of what should be Hermitian: SciPy's limit, with its least one of 1000·ε."""
_BALANCING_SWEEPS = 8
"""LAPACK's gebal stops by then for the CAREX and DAREX collections."""


@operation("a", "b", "q", "r", "e", "s")
def solve_continuous_are(
    a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: bool = True
) -> Any:
    """The stabilising Hermitian X of EᴴXA + AᴴXE - (EᴴXB + S)R⁻¹(BᴴXE + Sᴴ) + Q = 0.

    A, E, Q [..., m, m], B, S [..., m, n], R [..., n, n]; R and E nonsingular; of Q and R the
    Hermitian parts count. E is the identity and S zero where they are None. Numbers are
    matrices of order 1. `balanced` scales the pencil first. NaN where the pencil has not m stable
    eigenvalues, or some are too near to others to be brought first.

    Derivative: with the closed loop F = A - B·R⁻¹(BᴴXE + Sᴴ), that of
    Fᴴ·dX·E + Eᴴ·dX·F = -(the change of the equation's left side at X); of every order.

    Raises ValueError where the shapes do not fit.
    Source: van Dooren, SIAM J. Sci. Stat. Comput. 2, 1981; balancing by Benner, SIAM J. Sci.
    Comput. 22, 2001.

    Cost: that of `schur` of order 2m with its eigenvalues sorted.

    >>> solve_continuous_are(zeros((1, 1)), eye(1), eye(1), eye(1))  # [[1]]
    """
    return _solved("solve_continuous_are", True, a, b, q, r, e, s, balanced)


@operation("a", "b", "q", "r", "e", "s")
def solve_discrete_are(
    a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: bool = True
) -> Any:
    """The stabilising Hermitian X of
    AᴴXA - EᴴXE - (AᴴXB + S)(R + BᴴXB)⁻¹(BᴴXA + Sᴴ) + Q = 0.

    A, E, Q [..., m, m], B, S [..., m, n], R [..., n, n]; E nonsingular; of Q and R the Hermitian
    parts count. E is the identity and S zero where they are None. Numbers are
    matrices of order 1. `balanced` scales the pencil first. NaN where the pencil has not m stable
    eigenvalues, or some are too near to others to be brought first.

    Derivative: with the closed loop F = A - B·(R + BᴴXB)⁻¹(BᴴXA + Sᴴ), that of
    Fᴴ·dX·F - Eᴴ·dX·E = -(the change of the equation's left side at X); of every order.

    Raises ValueError where the shapes do not fit.
    Source: as `solve_continuous_are`.

    Cost: that of `schur` of order 2m with its eigenvalues sorted.

    >>> solve_discrete_are(zeros((1, 1)), eye(1), eye(1), eye(1))  # [[1]]
    """
    return _solved("solve_discrete_are", False, a, b, q, r, e, s, balanced)


def _solved(
    function: str, continuous: bool, a: Any, b: Any, q: Any, r: Any, e: Any, s: Any, balanced: bool
) -> Array:
    a, b, q, r = map(jnp.atleast_2d, (a, b, q, r))
    e, s = (x if x is None else jnp.atleast_2d(x) for x in (e, s))
    check_square(function, a=a, q=q, r=r)
    check_matrix(function, b=b)
    m, n = a.shape[-1], r.shape[-1]
    e = jnp.eye(m, dtype=a.dtype) if e is None else e
    s = jnp.zeros_like(b) if s is None else s
    check_square(function, e=e)
    check_matrix(function, s=s)
    for name, x, rows, columns in (("b", b, m, n), ("q", q, m, m), ("e", e, m, m), ("s", s, m, n)):
        check_size(function, name, "rows", x.shape[-2], rows)
        check_size(function, name, "columns", x.shape[-1], columns)
    coefficients = same_batch(function, a=(a, 2), b=(b, 2), q=(q, 2), r=(r, 2), e=(e, 2), s=(s, 2))
    if m == 0:
        return coefficients[0]
    coefficients[2:4] = [(x + adjoint(x)) / 2 for x in coefficients[2:4]]
    return _stabilising(continuous, balanced, *coefficients)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _stabilising(continuous: bool, balanced: bool, *coefficients: Array) -> Array:
    x = _by_subspace(continuous, balanced, *coefficients)

    def step(_: Any, state: tuple[Array, Array]) -> tuple[Array, Array]:
        x, residual = state
        better = x + _change(continuous, x, -residual, *coefficients)
        better = (better + adjoint(better)) / 2
        new = _residual(continuous, better, *coefficients)
        smaller = (one_norm(new) < one_norm(residual))[..., None, None]
        return jnp.where(smaller, better, x), jnp.where(smaller, new, residual)

    start = (x, _residual(continuous, x, *coefficients))
    solution: Array = jax.lax.fori_loop(0, _NEWTON_STEPS, step, start)[0]
    return solution


@_stabilising.defjvp
@own_settings()
def _stabilising_jvp(
    continuous: bool, balanced: bool, primals: Any, tangents: Any
) -> tuple[Array, Array]:
    x = _stabilising(continuous, balanced, *primals)

    def at_solution(*coefficients: Array) -> Array:
        return _residual(continuous, x, *coefficients)

    change = jax.jvp(at_solution, primals, tangents)[1]
    return x, _change(continuous, x, -change, *primals)


def _residual(continuous: bool, x: Array, *coefficients: Array) -> Array:
    """The left side of the equation."""
    a, _, q, _, e, _ = coefficients
    right, _, gain = _gain(continuous, x, *coefficients)
    quadratic = product(adjoint(right), gain)
    if continuous:
        linear = product(product(adjoint(e), x), a)
        return linear + adjoint(linear) - quadratic + q
    linear = product(product(adjoint(a), x), a) - product(product(adjoint(e), x), e)
    return linear - quadratic + q


def _gain(continuous: bool, x: Array, *coefficients: Array) -> tuple[Array, Array, Array]:
    """BᴴXE + Sᴴ (discrete: BᴴXA + Sᴴ), R (R + BᴴXB), and the second's inverse times the first."""
    a, b, _, r, e, s = coefficients
    bx = product(adjoint(b), x)
    right = product(bx, e if continuous else a) + adjoint(s)
    weight = r if continuous else r + product(bx, b)
    return right, weight, jnp.linalg.solve(weight, right)


def _change(continuous: bool, x: Array, change: Array, *coefficients: Array) -> Array:
    """D of Fᴴ·D·E + Eᴴ·D·F = change, or Fᴴ·D·F - Eᴴ·D·E = change: linear in it."""
    a, b, _, _, e, _ = coefficients
    _, _, gain = _gain(continuous, x, *coefficients)
    # With E divided out: F·E⁻¹ and E⁻ᴴ·change·E⁻¹.
    eh = adjoint(e)
    loop = jnp.linalg.solve(eh, adjoint(a - product(b, gain)))
    half = jnp.linalg.solve(eh, change)
    right = adjoint(jnp.linalg.solve(eh, adjoint(half)))
    return lyapunov(loop, right) if continuous else discrete_lyapunov(loop, -right)


def _by_subspace(continuous: bool, balanced: bool, *coefficients: Array) -> Array:
    """X = U₂·U₁⁻¹·E⁻¹ for a basis U of the stable subspace of the pencil."""
    _, b, _, _, e, _ = coefficients
    m, n = b.shape[-2:]
    first, second = _pencil(continuous, *coefficients)
    scale = jnp.ones(first.shape[:-1], first.real.dtype)
    if balanced:
        scale = _symplectic_scale(jnp.abs(first) + jnp.abs(second), m)
        factor = scale[..., :, None] / scale[..., None, :]
        first, second = first * factor, second * factor
    # The columns of R leave the pencil: rows that are orthogonal to them.
    complete = jnp.linalg.qr(first[..., 2 * m :], mode="complete")[0]
    rows = adjoint(complete[..., n:])
    first, second = product(rows, first[..., : 2 * m]), product(rows, second[..., : 2 * m])
    if continuous:
        matrix = jnp.linalg.solve(second, first)
    else:
        # |λ| < 1 becomes Re μ < 0: μ = (λ - 1)/(λ + 1).
        matrix = jnp.linalg.solve(first + second, first - second)
    basis, found = _stable_basis(matrix, m)
    upper = product(e * scale[..., :m, None] / scale[..., None, :m], basis[..., :m, :])
    # (E·U₁)ᴴ·U₂ is Hermitian of the stable subspace, and not of one that has its dimension because
    # eigenvalues on the border were rounded to either side.
    half = product(adjoint(upper), basis[..., m:, :])
    found &= one_norm(half - adjoint(half)) <= jnp.maximum(
        1000 * np.finfo(half.dtype).eps, _ASYMMETRY * one_norm(half)
    )
    x = adjoint(jnp.linalg.solve(adjoint(upper), adjoint(basis[..., m:, :])))
    x = x * (scale[..., :m, None] * scale[..., None, :m])
    return all_or_nan(found, (x + adjoint(x)) / 2)


def _pencil(continuous: bool, *coefficients: Array) -> tuple[Array, Array]:
    """The extended pencil of van Dooren, first - λ·second."""
    a, b, q, r, e, s = coefficients
    ah, bh, eh, sh = adjoint(a), adjoint(b), adjoint(e), adjoint(s)
    mm, mn, nm, nn = (jnp.zeros_like(x) for x in (a, b, bh, r))
    if continuous:
        first = jnp.block([[a, mm, b], [-q, -ah, -s], [sh, bh, r]])
        second = jnp.block([[e, mm, mn], [mm, eh, mn], [nm, nm, nn]])
    else:
        first = jnp.block([[a, mm, b], [-q, eh, -s], [sh, nm, r]])
        second = jnp.block([[e, mm, mn], [mm, ah, mn], [nm, -bh, nn]])
    return first, second


def _stable_basis(matrix: Array, m: int) -> tuple[Array, Array]:
    """Orthonormal columns that span the subspace of eigenvalues in the left half plane, and whether
    there are m."""
    t, u = schur(matrix) if jnp.iscomplexobj(matrix) else jax.lax.linalg.schur(matrix)
    stable = diagonal(t).real < 0
    # A Schur form is that of a pair with the identity, of which both factors are the same.
    identity = jnp.broadcast_to(jnp.eye(t.shape[-1], dtype=t.dtype), t.shape)
    first = stable.astype(jnp.int32)
    ordered = ffi_call("reorder_generalised_schur", t, identity, u, u, first)
    return ordered.z_out[..., :m], jnp.sum(stable, axis=-1) == m


def _symplectic_scale(magnitudes: Array, m: int) -> Array:
    """Powers of two by which rows are multiplied and columns divided: D and D⁻¹ for the first two
    blocks, from the balancing of the whole."""
    exponents = _balance(magnitudes)
    half = jnp.round((exponents[..., m : 2 * m] - exponents[..., :m]) / 2).astype(jnp.int32)
    both = jnp.concatenate([half, -half, exponents[..., 2 * m :]], axis=-1)
    return jnp.ldexp(jnp.ones((), magnitudes.dtype), both)


def _balance(magnitudes: Array) -> Array:
    """Logarithms d of the scaling 2^(d_j - d_i)·|a_ij| with rows and columns of like sums (Osborne,
    J. ACM 7, 1960; James, Langou and Lowery, 2014), one index after the other.

    A step reads a row and a column, and leaves the matrix as it is: to scale all of it took half of
    the time of a whole equation.
    """
    size = magnitudes.shape[-1]
    rows = jnp.where(jnp.eye(size, dtype=bool), 0, magnitudes)
    columns = jnp.swapaxes(rows, -1, -2)

    def balance(k: Array, exponents: Array) -> Array:
        i = k % size
        relative = exponents - jax.lax.dynamic_index_in_dim(exponents, i, -1)
        of_row = jax.lax.dynamic_index_in_dim(rows, i, -2, keepdims=False)
        of_column = jax.lax.dynamic_index_in_dim(columns, i, -2, keepdims=False)
        row = jnp.sum(jnp.ldexp(of_row, relative), axis=-1)
        column = jnp.sum(jnp.ldexp(of_column, -relative), axis=-1)
        both = (row > 0) & (column > 0)
        ratio = jnp.where(both, row, 1) / jnp.where(both, column, 1)
        power = jnp.round(jnp.log2(ratio) / 2)
        power = jnp.where(jnp.isfinite(power), power, 0).astype(jnp.int32)
        return exponents + jnp.where(jnp.arange(size) == i, power[..., None], 0)

    start = jnp.zeros(magnitudes.shape[:-1], jnp.int32)
    exponents: Array = jax.lax.fori_loop(0, _BALANCING_SWEEPS * size, balance, start)
    return exponents
