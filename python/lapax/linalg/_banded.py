"""Banded systems in SciPy's diagonal-ordered form: one row of `ab` for each diagonal.

A(i, j) is `ab[..., u + i - j, j]` for u diagonals above the main one. What lies outside of A is not
read, and has no derivative.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lapax import _jax_private
from lapax._call import ffi_call
from lapax._settings import own_settings
from lapax.linalg._arguments import (
    Array,
    check_matrix,
    check_size,
    operation,
    right_hand_sides,
    same_batch,
)

__all__ = ["cho_solve_banded", "cholesky_banded", "solve_banded", "solveh_banded"]


def solve_banded(
    l_and_u: tuple[Any, Any],
    ab: Array,
    b: Array,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    *,
    compute_dtype: Any = None,
) -> Array:
    """The solution of A·x = b with a banded matrix, by elimination with partial pivoting.

    Args:
        l_and_u: the diagonals l below the main one, and u above it: static. Nested sequences of
            them are a batch, which broadcasts with those of `ab` and b.
        ab: [..., l + u + 1, n], the diagonals from the uppermost down.
        b: [n], or [..., n, k] with batches that broadcast with those of `ab`.
        compute_dtype: as for all functions.

    Returns:
        x, in the form of b: NaN where A is singular.

    Raises:
        ValueError: `ab` has another number of rows, or `b` another length.

    The derivative is that of the linear system: its transpose is solved in the band, too. After
    LAPACK's xGBSV; the time is proportional to n·l·(l + u). Systems with other l and u are solved
    one after the other.

    >>> solve_banded((1, 1), array([[0., 1], [2, 2], [1, 0]]), array([3., 3]))  # [1, 1]
    """
    lower, upper = np.broadcast_arrays(*(np.asarray(count, int) for count in l_and_u))
    solve = partial(_by_elimination, compute_dtype=compute_dtype)
    if lower.ndim == 0:
        x: Array = solve(ab, b, l_and_u=(int(lower), int(upper)))
        return x
    ab, b = jnp.asarray(ab), jnp.asarray(b)
    check_matrix("solve_banded", ab=ab)
    sides, back = right_hand_sides("solve_banded", b, ab.shape[-1], b.ndim == 1)
    like = jnp.empty(lower.shape, ab.dtype)
    like, ab, sides = same_batch("solve_banded", l_and_u=(like, 0), ab=(ab, 2), b=(sides, 2))
    lead = like.ndim - lower.ndim
    every = [slice(None)] * lead
    solutions = [
        solve(ab[*every, *at], sides[*every, *at], l_and_u=(int(lower[at]), int(upper[at])))
        for at in np.ndindex(lower.shape)
    ]
    return back(jnp.stack(solutions, lead).reshape(sides.shape))


def _solve_banded(ab: Array, b: Array, l_and_u: tuple[int, int]) -> Array:
    lower, upper = l_and_u
    check_matrix("solve_banded", ab=ab)
    if min(lower, upper) < 0:
        raise ValueError(f"solve_banded: l_and_u: expected no negative number, got {l_and_u}")
    check_size("solve_banded", "ab", "rows, l + u + 1", ab.shape[-2], lower + upper + 1)
    sides, back = right_hand_sides("solve_banded", b, ab.shape[-1], b.ndim == 1)
    ab, sides = same_batch("solve_banded", ab=(ab, 2), b=(sides, 2))
    x: Array = jax.lax.custom_linear_solve(
        partial(_product, ab, upper),
        sides,
        lambda _, b: ffi_call("solve_banded", ab, b, l=lower),
        lambda _, b: ffi_call("solve_banded", transposed(ab, upper), b, l=upper),
    )
    return back(x)


_solve_banded.__name__ = "solve_banded"
_by_elimination = operation("ab", "b")(_solve_banded)


@operation("ab", "b")
def solveh_banded(
    ab: Array,
    b: Array,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    lower: bool = False,
    check_finite: bool = True,
) -> Array:
    """The solution of A·x = b with a banded Hermitian positive definite matrix.

    Args:
        ab: [..., u + 1, n], the diagonals of the upper triangle from the uppermost down, or with
            `lower` those of the lower triangle from the main one down. Imaginary parts on the main
            diagonal are taken as zero.
        b: [n], or [..., n, k] with batches that broadcast with those of `ab`.

    Returns:
        x, in the form of b: NaN where A is not positive definite.

    Raises:
        ValueError: `ab` is no matrix, or `b` has another length.

    The derivative is that of the linear system, where what changes in `ab` changes in both
    triangles. After LAPACK's xPBSV; the time is proportional to n·u².

    >>> solveh_banded(array([[0., 1], [2, 2]]), array([3., 3]))  # [1, 1]
    """
    _check_band("solveh_banded", ab=ab)
    sides, back = right_hand_sides("solveh_banded", b, ab.shape[-1], b.ndim == 1)
    ab, sides = same_batch("solveh_banded", ab=(ab, 2), b=(sides, 2))
    if ab.shape[-2] == 0:
        return back(sides)
    uplo = "Lower" if lower else "Upper"
    x: Array = jax.lax.custom_linear_solve(
        lambda x: _product(both_triangles(ab, lower), ab.shape[-2] - 1, x),
        sides,
        lambda _, b: ffi_call("solveh_banded", ab, b, uplo=uplo),
        # Aᵀ is conj(A).
        lambda _, b: ffi_call("solveh_banded", jnp.conj(ab), b, uplo=uplo),
    )
    return back(x)


@operation("ab")
def cholesky_banded(
    ab: Array, overwrite_ab: bool = False, lower: bool = False, check_finite: bool = True
) -> Array:
    """The Cholesky factor of a banded Hermitian positive definite matrix: A = Uᴴ·U, or L·Lᴴ.

    Args:
        ab: [..., u + 1, n], as for `solveh_banded`.

    Returns:
        U, or L with `lower`, in the form of `ab`: zero outside of the matrix, and NaN inside where
        A is not positive definite.

    Raises:
        ValueError: `ab` is no matrix.

    After LAPACK's xPBTRF. The derivative is that of the recurrence for the columns of L, which
    stays in the band: with S the sum of what the columns before have subtracted,
    dL(k, k) = Re(dA(k, k) − dS(k, k)) / (2·L(k, k)) and
    dL(i, k) = (dA(i, k) − dS(i, k) − L(i, k)·dL(k, k)) / L(k, k): a `lax.scan` over n columns of
    u² numbers each, forward and, transposed, backward.

    Cost: n·u².

    >>> cholesky_banded(array([[0., 2], [4, 5]]))  # [[0, 1], [2, 2]]
    """
    _check_band("cholesky_banded", ab=ab)
    return _cholesky(ab, lower) if ab.shape[-2] else ab


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def _cholesky(ab: Array, lower: bool) -> Array:
    factor: Array = ffi_call("cholesky_banded", ab, uplo="Lower" if lower else "Upper")
    return factor


@_cholesky.defjvp
@own_settings()
def _cholesky_jvp(
    lower: bool, primals: tuple[Array], tangents: tuple[Array]
) -> tuple[Array, Array]:
    (ab,), (dab,) = primals, tangents
    factor = _cholesky(ab, lower)

    def tangent(dab: Array) -> Array:
        if lower:
            return _factor_tangent(factor, inside(dab, 0))
        upper = ab.shape[-2] - 1
        low, da = (jnp.conj(transposed(x, upper)) for x in (factor, dab))
        return jnp.conj(transposed(_factor_tangent(low, da), 0))

    # JAX 0.8 cannot transpose a scan that a rule calls itself, but one that is differentiated.
    dfactor: Array = jax.jvp(tangent, (jnp.zeros_like(dab),), (dab,))[1]
    return factor, dfactor


def _factor_tangent(low: Array, da: Array) -> Array:
    """dL of A = L·Lᴴ given the diagonals of L and dA, both of the lower triangle."""
    beside, batch = low.shape[-2] - 1, low.shape[:-2]

    def column(subtracted: Array, columns: tuple[Array, Array]) -> tuple[Array, Array]:
        # subtracted[..., c, t] is what dA(k + c + t, k + c) has lost so far.
        low, da = columns
        if beside:
            da = da - subtracted[..., 0, :]
        pivot = low[..., :1].real.astype(low.dtype)
        main = da[..., :1].real.astype(low.dtype) / (2 * pivot)
        dl = jnp.concatenate([main, (da[..., 1:] - low[..., 1:] * main) / pivot], -1)
        if beside:
            products = _hankel(dl) * jnp.conj(low[..., 1:, None])
            products += _hankel(low) * jnp.conj(dl[..., 1:, None])
            rest = jnp.zeros_like(subtracted[..., :1, :])
            subtracted = jnp.concatenate([subtracted[..., 1:, :], rest], -2) + products
        return subtracted, dl

    nothing = jnp.zeros((*batch, beside, beside + 1), low.dtype)
    nothing, low, da = _jax_private.vary_alike(nothing, low, da)
    columns = (jnp.moveaxis(low, -1, 0), jnp.moveaxis(da, -1, 0))
    _, dl = jax.lax.scan(column, nothing, columns)
    return inside(jnp.moveaxis(dl, 0, -1), 0)


def _hankel(column: Array) -> Array:
    """Row c of so many has the numbers from c + 1 on, and zeros behind."""
    width = column.shape[-1]
    padded = jnp.concatenate([column, jnp.zeros_like(column)], -1)
    return padded[..., jnp.arange(1, width)[:, None] + jnp.arange(width)]


def cho_solve_banded(
    cb_and_lower: tuple[Array, bool],
    b: Array,
    overwrite_b: bool = False,
    check_finite: bool = True,
    *,
    compute_dtype: Any = None,
) -> Array:
    """The solution of A·x = b by the banded Cholesky factor of A.

    Args:
        cb_and_lower: the factor [..., u + 1, n] as `cholesky_banded` gives it, and its `lower`.
        b: [n], or [..., n, k] with batches that broadcast with those of the factor.
        compute_dtype: as for all functions.

    Returns:
        x, in the form of b. A zero on the factor's diagonal gives infinities or NaN.

    Raises:
        ValueError: the factor is no matrix, or `b` has another length.

    The derivative is that of the linear system L·Lᴴ·x = b. After LAPACK's xPBTRS.

    Cost: 4·n·u for each right-hand side.

    >>> cho_solve_banded((array([[2., 2]]), False), array([4., 8]))  # [1, 2]
    """
    cb, lower = cb_and_lower
    x: Array = _by_factor(cb, b, lower=bool(lower), compute_dtype=compute_dtype)
    return x


def _solve_by_factor(cb: Array, b: Array, lower: bool) -> Array:
    _check_band("cho_solve_banded", cb=cb)
    sides, back = right_hand_sides("cho_solve_banded", b, cb.shape[-1], b.ndim == 1)
    cb, sides = same_batch("cho_solve_banded", cb=(cb, 2), b=(sides, 2))
    if cb.shape[-2] == 0:
        return back(sides)
    uplo, beside = ("Lower", 0) if lower else ("Upper", cb.shape[-2] - 1)

    def product(x: Array) -> Array:
        adjoint, other = jnp.conj(transposed(cb, beside)), cb.shape[-2] - 1 - beside
        first, second = (
            ((adjoint, other), (cb, beside)) if lower else ((cb, beside), (adjoint, other))
        )
        return _product(*second, _product(*first, x))

    x: Array = jax.lax.custom_linear_solve(
        product,
        sides,
        lambda _, b: ffi_call("cho_solve_banded", cb, b, uplo=uplo),
        # (L·Lᴴ)ᵀ is conj(L)·Lᵀ.
        lambda _, b: ffi_call("cho_solve_banded", jnp.conj(cb), b, uplo=uplo),
    )
    return back(x)


_solve_by_factor.__name__ = "cho_solve_banded"
_by_factor = operation("cb", "b")(_solve_by_factor)


def _check_band(function: str, **arrays: Array) -> None:
    """Raises ValueError unless each array is a matrix, or a batch of them, with a diagonal.

    A matrix of order 0 may lack it.
    """
    check_matrix(function, **arrays)
    for name, a in arrays.items():
        if a.shape[-2] == 0 and a.shape[-1] > 0:
            raise ValueError(
                f"{function}: {name}: expected at least one diagonal, got shape {list(a.shape)}"
            )


def inside(ab: Array, upper: int) -> Array:
    """`ab` with zeros where no element of the matrix stands."""
    bands, n = ab.shape[-2:]
    row = jnp.arange(bands)[:, None] - upper + jnp.arange(n)
    return jnp.where((row >= 0) & (row < n), ab, 0)


def _shifted(ab: Array, upper: int) -> Array:
    """Each diagonal in the rows of the matrix, and not in its columns; the axes are -2 and -1."""
    bands, n = ab.shape[-2:]
    if n == 0:
        return ab
    # With rows of one number fewer, row p is shifted by p.
    padded = jnp.pad(ab, [(0, 0)] * (ab.ndim - 1) + [(0, bands)])
    flat = padded.reshape(*ab.shape[:-2], bands * (n + bands))[..., : bands * (n + bands - 1)]
    return flat.reshape(*ab.shape[:-2], bands, n + bands - 1)[..., upper : upper + n]


def transposed(ab: Array, upper: int) -> Array:
    """The diagonals of Aᵀ, which has as many above the main one as A has below."""
    return jnp.flip(_shifted(inside(ab, upper), upper), -2)


def both_triangles(ab: Array, lower: bool) -> Array:
    """All diagonals of a Hermitian matrix of which those of one triangle are given."""
    beside = ab.shape[-2] - 1
    if lower:
        below, above = inside(ab, 0), jnp.conj(transposed(ab, 0))
    else:
        below, above = jnp.conj(transposed(ab, beside)), inside(ab, beside)
    main = below[..., :1, :].real.astype(ab.dtype)
    return jnp.concatenate([above[..., :-1, :], main, below[..., 1:, :]], -2)


def _product(ab: Array, upper: int, x: Array) -> Array:
    """A·X for X [..., n, k]."""
    products = inside(ab, upper)[..., None, :, :] * jnp.swapaxes(x, -1, -2)[..., :, None, :]
    return jnp.swapaxes(_shifted(products, upper).sum(-2), -1, -2)
