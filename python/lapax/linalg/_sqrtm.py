"""Square root and sign of a matrix by recurrences on its Schur form."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lapax.linalg._arguments import check_square, complex_dtype, operation
from lapax.linalg._frechet import primary_function
from lapax.linalg._products import all_or_nan, diagonal
from lapax.linalg._triangular import (
    Ends,
    by_superdiagonals,
    derivative_through_schur,
    square_root,
    through_schur,
)

__all__ = ["signm", "sqrtm"]

Array = jax.Array


@operation("A")
def sqrtm(A: Any, *, real: bool = False) -> Any:
    """The principal square root X of A [..., n, n]: X² = A, eigenvalues in the right half plane.

    The result is complex; with `real=True` that of real A is real, and NaN where the root is not.
    A negative eigenvalue has its root on the positive imaginary axis. A singular A may have no root
    (infinite or NaN) or many, of which the one with the most zeros is taken.

    Derivative: L of L·X + X·L = E, by the block formula; of every order where A is nonsingular.

    Raises ValueError unless A is square.
    Source: Björck and Hammarling, Linear Algebra Appl. 52/53, 1983.

    Cost: that of `schur`, and 5n³, four times as much where a real A has negative eigenvalues. The
    error of X² is n·ε·‖X‖².

    >>> sqrtm(4 * eye(2)).real  # [[2, 0], [0, 2]]
    """
    check_square("sqrtm", A=A)
    root = principal_square_root(A)
    return real_part(root, A) if real else root


@operation("A")
def signm(A: Any) -> Any:
    """sign(A) of A [..., n, n], the function that is 1 at eigenvalues in the right half plane and
    -1 in the left: S² = I, S·A = A·S.

    Not defined where the real part of an eigenvalue is 0, or nothing beside the others (1000·ε of
    the largest): 0 is taken there, as SciPy does. The result is real for real A.

    Derivative: by the block formula; of every order where no eigenvalue is on the imaginary axis.

    Raises ValueError unless A is square.
    Source: Higham, Functions of Matrices, SIAM 2008, Algorithm 5.5.

    Cost: that of `schur` of complex A, and 6n³.

    >>> signm(diag(array([2., -3])))  # [[1, 0], [0, -1]]
    """
    check_square("signm", A=A)
    sign = sign_of(A.astype(complex_dtype(A.dtype)))
    return sign if jnp.iscomplexobj(A) else sign.real


def of_complex(function: Any, a: Array, real: bool) -> Array:
    """A function of complex matrices at a real or complex one, real if `real` says so."""
    value: Array = function(a.astype(complex_dtype(a.dtype)))
    return real_part(value, a) if real else value


def real_part(value: Array, a: Array) -> Array:
    """The real part of f(A) for real A, NaN where the imaginary part is more than √ε of the whole,
    no rounding error; f(A) itself for complex A."""
    if jnp.iscomplexobj(a):
        return value
    largest = jnp.max(jnp.abs(value), axis=(-2, -1), initial=0)
    imaginary = jnp.max(jnp.abs(value.imag), axis=(-2, -1), initial=0)
    return all_or_nan(imaginary <= np.finfo(a.dtype).eps ** 0.5 * largest, value.real)


def _sign(t: Array) -> Array:
    points = diagonal(t)
    largest = jnp.max(jnp.abs(points), axis=-1, keepdims=True, initial=0)
    zero = jnp.abs(points.real) <= 1e3 * np.finfo(t.real.dtype).eps * largest
    return sign_of_triangular(t, jnp.where(zero, 0, jnp.sign(points.real)).astype(t.dtype))


def sign_of_triangular(t: Array, signs: Array) -> Array:
    """S with these signs on its diagonal: S² = I gives s_ij where s_ii = s_jj, else S·T = T·S."""

    def entry(s: Ends, t: Ends, t_ij: Array, squares: Array, products: Array) -> Array:
        same = s[0] == s[1]
        both_zero = same & (s[0] == 0)
        by_square = -squares / jnp.where(same & ~both_zero, s[0] + s[1], 1)
        difference = jnp.where(same, 1, t[0] - t[1])
        by_parlett = (t_ij * (s[0] - s[1]) + products) / difference
        return jnp.where(both_zero, 0, jnp.where(same, by_square, by_parlett))

    return by_superdiagonals(t, signs, entry)


def _has_real_root(t: Array) -> Array:
    """Whether no number outside of blocks on the diagonal is negative."""
    below = jnp.diagonal(t, -1, -2, -1) != 0
    none = jnp.zeros((*t.shape[:-2], 1), bool)
    in_block = jnp.concatenate([below, none], -1) | jnp.concatenate([none, below], -1)
    return ~jnp.any((diagonal(t) < 0) & ~in_block, axis=-1)


def _root_value(a: Array) -> Array:
    return through_schur(square_root, a, _has_real_root)


def _root_derivative(a: Array, e: Array) -> Array:
    return derivative_through_schur(square_root, a, e)


def _sign_value(a: Array) -> Array:
    return through_schur(_sign, a)


def _sign_derivative(a: Array, e: Array) -> Array:
    return derivative_through_schur(_sign, a, e)


principal_square_root = primary_function(_root_value, _root_derivative)
"""Of real or complex [..., n, n], complex and differentiable."""

sign_of = primary_function(_sign_value, _sign_derivative)
"""Of complex [..., n, n], differentiable."""
