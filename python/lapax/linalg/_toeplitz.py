"""Toeplitz and circulant matrices, given by their first column c and first row r.

T[i, j] = t[i - j] with t[k] = c[k] for k ≥ 0 and r[-k] for k < 0; r[0] is not read. Without r it is
conj(c). Batches of both broadcast. No function but `toeplitz` and `circulant` forms the matrix.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lapax._settings import own_settings
from lapax.linalg._arguments import (
    Array,
    check_choice,
    check_size,
    operation,
    right_hand_sides,
    same_batch,
)

__all__ = ["circulant", "matmul_toeplitz", "solve_circulant", "solve_toeplitz", "toeplitz"]


@own_settings()
def toeplitz(c: Any, r: Any = None) -> Array:
    """The matrix T[i, j] = c[i - j] on and below the diagonal and r[j - i] above it.

    `c` has shape [..., m], `r` (None is conj(c)) shape [..., n]; a scalar is a vector of one. The
    result has shape [..., m, n] and the dtype that both have in common.

    Linear in `c` and `r`.

    >>> toeplitz(array([1, 2]))  # [[1, 2], [2, 1]]
    """
    c = jnp.atleast_1d(jnp.asarray(c))
    r = jnp.conj(c) if r is None else jnp.atleast_1d(jnp.asarray(r))
    c, r = same_batch("toeplitz", c=(c, 1), r=(r, 1))
    m, n = c.shape[-1], r.shape[-1]
    matrix: Array = _diagonals(c, r)[..., m - 1 - jnp.arange(m)[:, None] + jnp.arange(n)]
    return matrix


@own_settings()
def circulant(c: Any) -> Array:
    """The matrix C[i, j] = c[(i - j) mod n]: [..., n] to [..., n, n], in the dtype of `c`.

    Linear in `c`.

    >>> circulant(array([1, 2]))  # [[1, 2], [2, 1]]
    """
    c = jnp.atleast_1d(jnp.asarray(c))
    n = c.shape[-1]
    index = jnp.arange(n)
    matrix: Array = c[..., (index[:, None] - index) % max(n, 1)]
    return matrix


@operation("c_or_cr", "x")
def matmul_toeplitz(
    c_or_cr: Any, x: Any, check_finite: bool = False, workers: int | None = None
) -> Array:
    """T·x in O((m + n)·log(m + n)) operations per vector.

    T is the leading block of a circulant matrix of order m + n - 1 or more, which Fourier
    transforms diagonalise (Golub and Van Loan, Matrix Computations, 4th ed., section 4.8). The
    error is that of the transforms: small beside ‖t‖·‖x‖, not beside each entry.

    `c_or_cr` is c of shape [..., m], for a square matrix, or a tuple (c, r) with r of shape
    [..., n]. `x` is one vector [n], or matrices [..., n, k]; the result has shape [..., m] or
    [..., m, k]. Real operands give a real result. `workers` is taken and ignored.

    Raises ValueError where sizes or batches do not fit. Differentiable in all of its arrays.

    >>> matmul_toeplitz((array([1., 2]), array([1., 3])), ones(2))  # [4, 3]
    """
    c, r = _column_and_row("matmul_toeplitz", c_or_cr)
    x, as_given = right_hand_sides("matmul_toeplitz", x, r.shape[-1], x.ndim == 1, "x")
    c, r, x = same_batch("matmul_toeplitz", c=(c, 1), r=(r, 1), x=(x, 2))
    return as_given(_product(c, r, x))


@operation("c_or_cr", "b")
def solve_toeplitz(c_or_cr: Any, b: Any, check_finite: bool = True) -> Array:
    """The solution x of T·x = b, T square, in O(n²) operations and O(n) memory.

    Levinson's recursion (Golub and Van Loan, Matrix Computations, 4th ed., section 4.7): from the
    solutions of the leading systems of order k follow those of order k + 1. It needs all leading
    minors to be other than zero and is as accurate as they are well conditioned; x is NaN in each
    matrix where one is zero.

    `c_or_cr` is c of shape [..., n], or a tuple (c, r) of two. `b` is one vector [n], or
    matrices [..., n, k]; `x` has the shape of `b` with the batch of all arguments.

    Raises ValueError where sizes or batches do not fit. Differentiable in all of its arrays: the
    derivative solves T·dx = db - dT·x, and its transpose a Toeplitz system with Tᵀ.

    >>> solve_toeplitz(array([2., 1]), array([3., 3]))  # [1, 1]
    """
    c, r = _column_and_row("solve_toeplitz", c_or_cr)
    n = c.shape[-1]
    # A complex c[0] may be the diagonal of what is not Hermitian.
    symmetric = not isinstance(c_or_cr, tuple) and not jnp.iscomplexobj(c)
    check_size("solve_toeplitz", "r", "entries", r.shape[-1], n)
    b, as_given = right_hand_sides("solve_toeplitz", b, n, b.ndim == 1)
    c, r, b = same_batch("solve_toeplitz", c=(c, 1), r=(r, 1), b=(b, 2))
    if b.size == 0:
        return as_given(b)
    r = jnp.concatenate([c[..., :1], r[..., 1:]], axis=-1)
    x = jax.lax.custom_linear_solve(
        lambda x: _product(c, r, x),
        b,
        lambda _, b: _levinson(c, r, b, symmetric),
        lambda _, b: _levinson(r, c, b, symmetric),
    )
    return as_given(x)


@operation("c", "b")
def solve_circulant(
    c: Any,
    b: Any,
    singular: str = "raise",
    tol: float | None = None,
    caxis: int = -1,
    baxis: int = 0,
    outaxis: int = 0,
) -> Array:
    """The solution x of C·x = b with C[i, j] = c[(i - j) mod n], in O(n·log n) operations.

    The eigenvalues of C are the Fourier transform of c: x = F⁻¹(F·b / F·c) (Golub and Van Loan,
    Matrix Computations, 4th ed., section 4.8). One that is at most `tol` in absolute value counts
    as zero; None is n·ε times the largest. Then x is NaN for that c where `singular` is "raise",
    and the solution of least norm to the least-squares problem where it is "lstsq".

    `caxis` and `baxis` name the axes of `c` and `b` that hold the vectors of n; the others
    broadcast together, and `outaxis` says where the n of x go among them. Raises ValueError where
    shapes do not fit and for another `singular`. Differentiable in `c` and `b`; for singular C
    along changes that leave the zeros among the eigenvalues zero.

    >>> solve_circulant(array([2., 0]), array([2., 4]))  # [1, 2]
    """
    check_choice("solve_circulant", "singular", singular, ("raise", "lstsq"))
    c = jnp.moveaxis(jnp.atleast_1d(c), caxis, -1)
    b = jnp.moveaxis(jnp.atleast_1d(b), baxis, -1)
    n = c.shape[-1]
    check_size("solve_circulant", "b", f"entries along baxis={baxis}", b.shape[-1], n)
    c, b = same_batch("solve_circulant", c=(c, 1), b=(b, 1))
    if b.size == 0:
        return jnp.moveaxis(b, -1, outaxis)
    eigenvalues, transformed = _transform(c, n, axis=-1), _transform(b, n, axis=-1)
    size = jnp.abs(eigenvalues)
    if tol is None:
        least = jnp.max(size, axis=-1, keepdims=True) * n * np.finfo(c.dtype).eps
    else:
        least = jnp.asarray(tol, size.dtype)
    zero = size <= least
    quotient = jnp.where(zero, 0, transformed / jnp.where(zero, 1, eigenvalues))
    x = _inverse_transform(quotient, n, b, axis=-1)
    if singular == "raise":
        x = jnp.where(jnp.any(zero, axis=-1, keepdims=True), jnp.nan, x)
    return jnp.moveaxis(x, -1, outaxis)


def _column_and_row(function: str, c_or_cr: Any) -> tuple[Array, Array]:
    if not isinstance(c_or_cr, tuple):
        c = jnp.atleast_1d(c_or_cr)
        return c, jnp.conj(c)
    if len(c_or_cr) != 2:
        raise ValueError(f"{function}: c_or_cr: expected c or (c, r), got {len(c_or_cr)} arrays")
    c, r = map(jnp.atleast_1d, c_or_cr)
    return c, r


def _diagonals(c: Array, r: Array) -> Array:
    """t[m - 1], …, t[0], …, t[1 - n]: the diagonals from the lowest to the highest."""
    return jnp.concatenate([c[..., ::-1], r[..., 1:]], axis=-1)


def _product(c: Array, r: Array, x: Array) -> Array:
    """T·x with matrices x [..., n, k]."""
    m, n = c.shape[-1], r.shape[-1]
    length = _transform_length(m + n - 1)
    if 0 in (m, *x.shape):
        return jnp.zeros((*x.shape[:-2], m, x.shape[-1]), x.dtype)
    between = jnp.zeros((*c.shape[:-1], length - (m + n - 1)), c.dtype)
    first_column = jnp.concatenate([c, between, r[..., :0:-1]], axis=-1)
    eigenvalues = _transform(first_column, length, axis=-1)[..., None]
    y = _inverse_transform(eigenvalues * _transform(x, length, axis=-2), length, x, axis=-2)
    return y[..., :m, :]


def _transform(a: Array, n: int, axis: int) -> Array:
    transform = jnp.fft.fft if jnp.iscomplexobj(a) else jnp.fft.rfft
    return transform(a, n, axis=axis)


def _inverse_transform(a: Array, n: int, like: Array, axis: int) -> Array:
    """What `_transform` made `a` of, where that was of the dtype of `like`."""
    transform = jnp.fft.ifft if jnp.iscomplexobj(like) else jnp.fft.irfft
    return transform(a, n, axis=axis)


def _transform_length(least: int) -> int:
    """The smallest 2ᵃ·3ᵇ·5ᶜ that is `least` or more.

    Such lengths are fast: a real transform and its inverse took 7.3 ms of length 50037 = 39·1283
    and 0.53 ms of 50625 = 3⁴·5⁴, in f64 on an AMD EPYC.
    """
    powers = range(least.bit_length() + 1)
    odd = [3**b * 5**c for b in powers for c in powers]
    lengths: list[int] = [d << (-(-least // d) - 1).bit_length() for d in odd]
    return min(lengths)


def _stages(n: int, numbers: int) -> int:
    """In how many pieces the steps go, whose vectors are as long as the last of each needs them.

    f64, us in one piece, two, three and four, two cores of Zen 5: one system of 64 19, 35, 38 and
    67; of 256 73, 73, 72 and 102; of 1000 846, 647, 589 and 585; 1000 systems of 8 196, 151, 205
    and 183, 300 of 16 256, 192, 205 and 180, 100 of 32 186, 159, 176 and 164.
    """
    if numbers < 128:
        return 1
    return 2 if n < 256 else 3


def _levinson(c: Array, r: Array, b: Array, symmetric: bool) -> Array:
    """T⁻¹·b for matrices b [..., n, k], by the recursion

        T_k·f = e_1,  T_k·g = e_k,  T_k·x = b_k   for the leading blocks T_k,

    each vector filled with zeros. One of order k + 1 is the one of order k, with a zero, plus a
    multiple of (0, g) or (f, 0) that clears its first or last component.
    """
    n = c.shape[-1]
    stages = _stages(n, c.size)
    nonsingular = c[..., 0] != 0
    f = 1 / jnp.where(nonsingular, c[..., 0], 1)[..., None]
    state = (f, f, f[..., None] * b[..., :1, :], nonsingular)
    for stage in range(stages):
        state = _extended(c, r, b, symmetric, state, -(-n * (stage + 1) // stages))
    _, _, x, nonsingular = state
    return jnp.where(nonsingular[..., None, None], x, jnp.nan)


def _extended(c: Array, r: Array, b: Array, symmetric: bool, state: Any, size: int) -> Any:
    """f, g, x and whether all minors are other than zero, from their order to the order `size`."""
    f, g, x, nonsingular = state
    order = f.shape[-1]
    f, g = (_filled(y, size, -1) for y in (f, g))
    x = _filled(x, size, -2)
    diagonals = _diagonals(c[..., :size], r[..., :size])
    above = _filled(r[..., 1 : size + 1], size, -1)

    def extend(state: Any, k: Array) -> tuple[Any, None]:
        f, g, x, nonsingular = state
        row = jax.lax.dynamic_slice_in_dim(diagonals, size - 1 - k, size, axis=-1)
        shifted = jnp.concatenate([jnp.zeros_like(g[..., :1]), g[..., :-1]], axis=-1)
        last = jnp.sum(row * f, axis=-1, keepdims=True)
        # Of a symmetric matrix g is f from its end.
        first = last if symmetric else jnp.sum(above * g, axis=-1, keepdims=True)
        pivot = 1 - last * first
        nonsingular &= pivot[..., 0] != 0
        pivot = jnp.where(pivot == 0, 1, pivot)
        f, g = (f - last * shifted) / pivot, (shifted - first * f) / pivot
        known = jnp.sum(row[..., None] * x, axis=-2, keepdims=True)
        missing = jax.lax.dynamic_slice_in_dim(b, k, 1, axis=-2) - known
        return (f, g, x + g[..., None] * missing, nonsingular), None

    return jax.lax.scan(extend, (f, g, x, nonsingular), jnp.arange(order, size))[0]


def _filled(x: Array, size: int, axis: int) -> Array:
    """With zeros behind, to so many along an axis."""
    widths = [(0, 0)] * x.ndim
    widths[axis] = (0, size - x.shape[axis])
    return jnp.pad(x, widths)
