"""What a matrix is: its bandwidth, whether it is symmetric, and its norms."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lapax._settings import own_settings
from lapax.linalg._arguments import (
    Array,
    check_choice,
    check_matrix,
    check_square,
    operation,
    real_dtype,
)

__all__ = ["bandwidth", "ishermitian", "issymmetric", "norm"]


@own_settings()
def bandwidth(a: Any) -> tuple[Array, Array]:
    """The lower and the upper bandwidth of each matrix.

    lower = max(i - j) and upper = max(j - i) over the entries a[i, j] ≠ 0, each at least 0. NaN is
    not zero. `a` has shape [..., m, n] and any dtype; both results have shape [...] and are
    integers. Raises ValueError where `a` is not a matrix.

    >>> bandwidth(array([[1, 2], [0, 1]]))  # (0, 1)
    """
    a = jnp.asarray(a)
    check_matrix("bandwidth", a=a)
    rows, columns = a.shape[-2:]
    below = jnp.arange(rows)[:, None] - jnp.arange(columns)
    nonzero = a != 0
    lower = jnp.max(jnp.where(nonzero, below, 0), axis=(-2, -1), initial=0)
    upper = jnp.max(jnp.where(nonzero, -below, 0), axis=(-2, -1), initial=0)
    return lower, upper


@own_settings()
def issymmetric(a: Any, atol: Any = None, rtol: Any = None) -> Array:
    """Whether each matrix is symmetric, complex ones too: a = aᵀ.

    Without tolerances, or with zeros, the comparison is exact, in the dtype of `a`, whichever that
    is, and leaves the diagonal out. With one, every entry, of the diagonal too and of integers too
    (where SciPy's stays exact), must hold |a - aᵀ| ≤ atol + rtol·|aᵀ|. Infinities of one sign are
    equal, NaN equals nothing.

    `a` has shape [..., n, n], the result, of bools, has shape [...]. A matrix of order 0 is
    symmetric. Raises ValueError where `a` is not square.

    >>> issymmetric(array([[1, 2], [3, 1]]))  # False
    """
    a = jnp.asarray(a)
    check_square("issymmetric", a=a)
    return _is_its_transpose(a, jnp.swapaxes(a, -1, -2), atol, rtol)


@own_settings()
def ishermitian(a: Any, atol: Any = None, rtol: Any = None) -> Array:
    """Whether each matrix is Hermitian: a = aᴴ.

    As `issymmetric`, and the diagonal of a complex matrix must be real.

    >>> ishermitian(array([[1, 1j], [-1j, 1]]))  # True
    """
    a = jnp.asarray(a)
    check_square("ishermitian", a=a)
    transposed = jnp.swapaxes(a, -1, -2)
    if not jnp.iscomplexobj(a):
        return _is_its_transpose(a, transposed, atol, rtol)
    diagonal = jnp.diagonal(a, axis1=-2, axis2=-1)
    alike = _is_its_transpose(a, jnp.conj(transposed), atol, rtol)
    if not atol and not rtol:
        alike &= jnp.all(diagonal == jnp.conj(diagonal), axis=-1)
    return alike


def _is_its_transpose(a: Array, transposed: Array, atol: Any, rtol: Any) -> Array:
    if not atol and not rtol:
        equal = (a == transposed) | jnp.eye(a.shape[-1], dtype=bool)
        return jnp.all(equal, axis=(-2, -1))
    close = jnp.isclose(a, transposed, rtol=rtol or 0.0, atol=atol or 0.0)
    return jnp.all(close, axis=(-2, -1))


_MATRIX_ORDERS = (None, "fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)


@operation("a")
def norm(
    a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, check_finite: bool = True
) -> Array:
    """The norm of vectors or of matrices.

    Of vectors, for a number `ord` (None is 2): (Σ|aᵢ|^ord)^(1/ord), whose limits at inf and -inf
    are the largest and the smallest |aᵢ|, and at 0 the number of nonzeros. Of matrices: 1 and inf
    are the largest sum of a column and of a row of |a|, -1 and -inf the smallest, 2 and -2 the
    largest and the smallest singular value, "nuc" the sum of all, "fro" or None is (Σ|aᵢⱼ|²)^½.
    Nothing over- or underflows but results that do.

    An integer `axis` names the axis of the vectors, a pair the rows' and the columns' axes of the
    matrices. Without it `a` is one vector or one matrix, or, without `ord`, what has any number of
    dimensions and counts as one vector. The result is real; with `keepdims` the axes stay, of
    size 1. The largest of no numbers is 0, the smallest is infinity.

    The derivative is that of the formula; at 0, where the 2-norm has none, it is 0.

    Raises ValueError for an order that vectors or matrices do not have, and for axes that `a` does
    not have.

    Cost: of the entries, for singular values that of `svdvals`.

    >>> norm(array([3., 4]))  # 5
    """
    axes = _axes(a, ord, axis)
    if len(axes) != 2 or (axis is None and ord is None):
        result = _vector_norm(a, 2 if ord is None else ord, axes)
    else:
        check_choice("norm", "ord", ord, _MATRIX_ORDERS)
        result = _matrix_norm(a, ord, axes)
    return result if keepdims else jnp.squeeze(result, axes)


def _axes(a: Array, ord: Any, axis: Any) -> tuple[int, ...]:
    """The axes that a norm reduces, from 0: one is of vectors, two are of matrices."""
    if axis is None:
        if ord is not None and a.ndim not in (1, 2):
            raise ValueError(
                f"norm: a: expected one vector or one matrix with ord={ord!r} and without axis, "
                f"got shape {list(a.shape)}"
            )
        return tuple(range(a.ndim))
    axes = axis if isinstance(axis, tuple) else (axis,)
    if len(axes) not in (1, 2) or any(not -a.ndim <= one < a.ndim for one in axes):
        raise ValueError(f"norm: axis: expected one or two of {a.ndim} axes, got {axis!r}")
    axes = tuple(one % a.ndim for one in axes)
    if len(set(axes)) != len(axes):
        raise ValueError(f"norm: axis: expected two axes, got {axis!r}")
    return axes


def _vector_norm(a: Array, ord: Any, axes: tuple[int, ...]) -> Array:
    """The norm of order `ord` over all the axes, which stay, of size 1."""
    if isinstance(ord, str):
        raise ValueError(f"norm: ord: expected a number for vectors, got {ord!r}")
    size = jnp.abs(a)
    if ord == math.inf:
        return jnp.max(size, axis=axes, keepdims=True, initial=0)
    if ord == -math.inf:
        return jnp.min(size, axis=axes, keepdims=True, initial=math.inf)
    if ord == 0:
        return jnp.sum(a != 0, axis=axes, keepdims=True).astype(size.dtype)
    if ord == 2:
        return root_of_squares(a, axes)
    extreme, initial = (jnp.max, 0.0) if ord > 0 else (jnp.min, math.inf)
    still = jax.lax.stop_gradient(size)
    scale = _scale(extreme(still, axis=axes, keepdims=True, initial=initial))
    total = jnp.sum((size / scale) ** ord, axis=axes, keepdims=True)
    return jnp.multiply(scale, total ** (1 / ord))


def root_of_squares(a: Array, axes: tuple[int, ...]) -> Array:
    """(Σ|a|²)^½ over axes, which stay, of size 1; 0 has the derivative 0."""
    still = jax.lax.stop_gradient(a)
    # |a| of a complex number may overflow where its parts do not.
    largest = jnp.maximum(jnp.abs(still.real), jnp.abs(still.imag))
    _, exponent = jnp.frexp(_scale(jnp.max(largest, axis=axes, keepdims=True, initial=0)))
    scale = jnp.ldexp(jnp.ones((), largest.dtype), exponent - 1)
    scaled = a / scale
    squares = scaled.real**2 + scaled.imag**2 if jnp.iscomplexobj(a) else scaled**2
    total = jnp.sum(squares, axis=axes, keepdims=True)
    zero = total == 0
    return jnp.where(zero, 0, scale * jnp.sqrt(jnp.where(zero, 1, total)))


def _scale(size: Array) -> Array:
    """What entries near `size` in absolute value are divided by; norms do not depend on it.

    Their squares and its reciprocal are normal numbers. 1 where `size` is not positive and finite.
    """
    info = np.finfo(size.dtype)
    clipped = jnp.clip(size, 8 * info.tiny, info.max / 8)
    return jnp.where((size > 0) & jnp.isfinite(size), clipped, 1)


def _matrix_norm(a: Array, ord: Any, axes: tuple[int, ...]) -> Array:
    """The norm of matrices in these two axes, which stay, of size 1."""
    rows, columns = axes
    if ord in (None, "fro"):
        return root_of_squares(a, axes)
    if ord in (1, -1, math.inf, -math.inf):
        along, across = (rows, columns) if abs(ord) == 1 else (columns, rows)
        sums = jnp.sum(jnp.abs(a), axis=along, keepdims=True)
        if ord > 0:
            return jnp.max(sums, axis=across, keepdims=True, initial=0)
        return jnp.min(sums, axis=across, keepdims=True, initial=math.inf)
    values = _singular_values(jnp.moveaxis(a, axes, (-2, -1)))
    if ord == "nuc":
        result = jnp.sum(values, axis=-1)
    elif ord == 2:
        result = jnp.max(values, axis=-1, initial=0)
    else:
        result = jnp.min(values, axis=-1, initial=math.inf)
    return jnp.expand_dims(result, axes)


def _singular_values(a: Array) -> Array:
    if 0 in a.shape:
        return jnp.zeros((*a.shape[:-2], min(a.shape[-2:])), real_dtype(a.dtype))
    return jnp.linalg.svd(a, compute_uv=False)
