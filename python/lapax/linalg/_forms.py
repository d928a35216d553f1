"""Matrices put together of others: blocks and products, and forms of eigen- and Schur matrices.

What moves entries keeps their dtype, 16-bit ones too.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lapax._settings import own_settings
from lapax.linalg._arguments import (
    Array,
    check_matrix,
    check_size,
    check_square,
    complex_dtype,
    operation,
    same_batch,
)
from lapax.linalg._structure import root_of_squares

__all__ = ["block_diag", "cdf2rdf", "diagsvd", "khatri_rao", "rsf2csf"]


@own_settings()
def block_diag(*arrs: Any) -> Array:
    """The block diagonal matrix of matrices [..., mᵢ, nᵢ]: [..., Σmᵢ, Σnᵢ].

    A vector counts as one row, a scalar as a matrix of order 1; batches broadcast. Without
    arguments it is of shape [1, 0].

    Linear in each.

    >>> block_diag(1, 2)  # [[1, 0], [0, 2]]
    """
    blocks = [jnp.atleast_2d(jnp.asarray(a)) for a in arrs] or [jnp.zeros((1, 0))]
    blocks = same_batch("block_diag", **{f"arrs[{i}]": (a, 2) for i, a in enumerate(blocks)})
    dtype = jnp.result_type(*blocks)
    columns, before, rows = sum(a.shape[-1] for a in blocks), 0, []
    for a in blocks:
        after = columns - before - a.shape[-1]
        around = [(0, 0)] * (a.ndim - 1) + [(before, after)]
        rows.append(jnp.pad(a.astype(dtype), around))
        before += a.shape[-1]
    return jnp.concatenate(rows, axis=-2)


@own_settings()
def khatri_rao(a: Any, b: Any) -> Array:
    """The Kronecker product of each column of `a` with the same one of `b`.

    [..., n, k] and [..., m, k] give [..., n·m, k]. Raises ValueError where the columns differ in
    number.

    Linear in each operand.

    >>> khatri_rao(array([[1, 2]]), array([[3, 4], [5, 6]]))  # [[3, 8], [5, 12]]
    """
    a, b = jnp.asarray(a), jnp.asarray(b)
    check_matrix("khatri_rao", a=a, b=b)
    check_size("khatri_rao", "b", "columns", b.shape[-1], a.shape[-1])
    a, b = same_batch("khatri_rao", a=(a, 2), b=(b, 2))
    product = a[..., :, None, :] * b[..., None, :, :]
    return jnp.reshape(product, (*a.shape[:-2], a.shape[-2] * b.shape[-2], a.shape[-1]))


@own_settings()
def diagsvd(s: Any, M: int, N: int) -> Array:
    """The matrix [..., M, N] with `s` [..., min(M, N)] on its diagonal and zeros elsewhere.

    Raises ValueError where `s` has another size.

    Linear in `s`.

    >>> diagsvd(array([3., 4]), 2, 3)  # [[3, 0, 0], [0, 4, 0]]
    """
    s = jnp.atleast_1d(jnp.asarray(s))
    check_size("diagsvd", "s", "entries", s.shape[-1], min(M, N))
    diagonal = jnp.arange(min(M, N))
    return jnp.zeros((*s.shape[:-1], M, N), s.dtype).at[..., diagonal, diagonal].set(s)


@operation("w", "v")
def cdf2rdf(w: Any, v: Any) -> tuple[Array, Array]:
    """Eigenvalues and vectors of a real matrix X as real matrices, X·vr = vr·wr.

    A pair a ± ib with vectors p ± iq becomes columns (-q, p) of vr and the block

        ( a  b)
        (-b  a)

    of wr, in the rows and columns where the two stand; the first two numbers that are not real are
    a pair, and so on. What is real stays.

    `w` has shape [..., n], `v` [..., n, n], as `eig` returns them; both results have shape
    [..., n, n]. NaN where the numbers that are not real are odd in number. Raises ValueError where
    shapes do not fit.

    Linear in `w` and in `v`.

    >>> cdf2rdf(array([1j, -1j]), array([[1, 1], [1j, -1j]]))[0]  # [[0, 1], [-1, 0]]
    """
    if w.ndim < 1:
        raise ValueError(f"cdf2rdf: w: expected shape [..., n], got {list(w.shape)}")
    check_square("cdf2rdf", v=v)
    check_size("cdf2rdf", "w", "eigenvalues", w.shape[-1], v.shape[-1])
    w, v = same_batch("cdf2rdf", w=(w, 1), v=(v, 2))
    if v.size == 0:
        return v.real, v.real
    paired = w.imag != 0
    count = jnp.cumsum(paired, axis=-1)
    first, pair = count % 2 == 1, (count + 1) // 2
    both = paired[..., :, None] & paired[..., None, :]
    same = both & (pair[..., :, None] == pair[..., None, :])
    partner = same & ~jnp.eye(w.shape[-1], dtype=bool)
    index = jnp.argmax(partner, axis=-1)
    other = jnp.take_along_axis(v, index[..., None, :], axis=-1)
    halves = jnp.where(first[..., None, :], (other.imag - v.imag) / 2, (other.real + v.real) / 2)
    vr = jnp.where(paired[..., None, :], halves, v.real)
    wr = jnp.eye(w.shape[-1]) * w.real[..., None, :] + jnp.where(partner, w.imag[..., None], 0)
    paired_up = count[..., -1:, None] % 2 == 0
    return jnp.where(paired_up, wr, jnp.nan), jnp.where(paired_up, vr, jnp.nan)


@operation("T", "Z")
def rsf2csf(T: Any, Z: Any, check_finite: bool = True) -> tuple[Array, Array]:
    """The complex Schur form of a real one: Z·T·Zᴴ stays what it is, T becomes triangular.

    A rotation for each block of order 2, from the last to the first, brings its eigenvalue with
    positive imaginary part to the front (Golub and Van Loan, Matrix Computations, 4th ed., section
    7.4.5). Entries below the diagonal of at most ε times their diagonal neighbours count as zero,
    others outside of the blocks are not read.

    `T` and `Z` have shape [..., n, n]; the results are complex. Raises ValueError where shapes do
    not fit. Differentiable, with the zeros below the blocks constant, where no block has a
    repeated eigenvalue.

    Cost: 6n for each block and each of the n rows of T and Z.

    >>> rsf2csf(array([[0., 1], [-1, 0]]), eye(2))[0]  # [[1j, 0], [0, -1j]]
    """
    check_square("rsf2csf", T=T, Z=Z)
    n = T.shape[-1]
    check_size("rsf2csf", "Z", "rows", Z.shape[-1], n)
    T, Z = same_batch("rsf2csf", T=(T, 2), Z=(Z, 2))
    start = (T.astype(complex_dtype(T.dtype)), Z.astype(complex_dtype(Z.dtype)))
    if n < 2:
        return start

    def rotate(step: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        first = n - 2 - step
        t, z = state
        rotation = _to_triangular(_pair(_pair(t, first, -1), first, -2))
        t = _rotated(t, jnp.conj(rotation), first, -2)
        return _rotated(t, rotation, first, -1), _rotated(z, rotation, first, -1)

    t, z = jax.lax.fori_loop(0, n - 1, rotate, start)
    return jnp.triu(t), z


def _pair(a: Array, first: Array, axis: int) -> Array:
    """Rows or columns `first` and the next."""
    return jax.lax.dynamic_slice_in_dim(a, first, 2, axis=axis)


def _to_triangular(block: Array) -> Array:
    """Unitary G [..., 2, 2] whose first column is an eigenvector of each block [..., 2, 2].

    With eigenvalue λ = d + μ of ((a, b), (c, d)) that is (μ, c)/‖(μ, c)‖.
    """
    a, b, c, d = (block[..., i, j] for i in (0, 1) for j in (0, 1))
    eps = np.finfo(block.dtype).eps
    whole = jnp.abs(c) > eps * (jnp.abs(a) + jnp.abs(d))
    half = (a - d) / 2
    root = jnp.sqrt(jnp.where(whole, half**2 + b * c, 1))
    cancels = (jnp.conj(half) * root).real < 0
    mu = jnp.where(whole, half + jnp.where(cancels, -root, root), 1)
    c = jnp.where(whole, c, 0)
    vector = jnp.stack([mu, c], axis=-1)
    x, y = jnp.moveaxis(vector / root_of_squares(vector, (-1,)), -1, 0)
    rows = [jnp.stack([x, -jnp.conj(y)], axis=-1), jnp.stack([y, jnp.conj(x)], axis=-1)]
    return jnp.stack(rows, axis=-2)


def _rotated(a: Array, rotation: Array, first: Array, axis: int) -> Array:
    """`a` with two of its columns (axis -1) or rows (axis -2) times a matrix of order 2."""
    u, v = jnp.split(_pair(a, first, axis), 2, axis=axis)
    p, q, r, s = (rotation[..., i, j][..., None, None] for i in (0, 1) for j in (0, 1))
    pair = jnp.concatenate([u * p + v * r, u * q + v * s], axis=axis)
    return jax.lax.dynamic_update_slice_in_dim(a, pair, first, axis=axis)
