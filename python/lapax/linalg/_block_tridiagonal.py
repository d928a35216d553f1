"""Hermitian positive definite matrices of square blocks on and beside the diagonal.

A matrix A of order nblocks·n is given by `diagonal` [..., nblocks, n, n], the blocks on its
diagonal, of which the lower triangles are read, and `off_diagonal` [..., nblocks - 1, n, n], those
below them: `off_diagonal[i]` is A[i + 1, i], and A[i, i + 1] its adjoint. Posterior precisions of
Kalman smoothers and of Markov random fields on a chain are such matrices. The work, derivatives
included, grows linearly with nblocks. A gradient for `diagonal` is zero above the diagonals, where
nothing is read. SciPy has no such functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from lapax._call import ffi_call
from lapax._settings import own_settings
from lapax.linalg import _block_recurrences as recurrences
from lapax.linalg._arguments import check_choice, operation, real_dtype, same_batch
from lapax.linalg._block_recurrences import Band, hermitian

__all__ = [
    "block_tridiagonal_cho_solve",
    "block_tridiagonal_cholesky",
    "block_tridiagonal_inverse",
    "block_tridiagonal_logdet",
    "block_tridiagonal_matmul",
    "block_tridiagonal_sample",
    "block_tridiagonal_solve",
]

Array = jax.Array

_SWEEPS = {"both": "Both", "forward": "Forward", "backward": "Backward"}
_OTHER_WAY = {"both": "both", "forward": "backward", "backward": "forward"}


@operation("diagonal", "off_diagonal", "x")
def block_tridiagonal_matmul(diagonal: Array, off_diagonal: Array, x: Array) -> Array:
    """A·x.

    Args:
        diagonal: [..., nblocks, n, n], of which the lower triangles are read.
        off_diagonal: [..., nblocks - 1, n, n], the blocks below the diagonal.
        x: [..., nblocks, n] or [..., nblocks, n, k]; it is the first where it has two dimensions,
            or one less than `diagonal`.

    Returns:
        A·x in the form of x.

    Raises:
        ValueError: shapes that do not fit together.

    Linear in each operand; the derivative is that of the product. Cost: 6n² for each block and
    vector.

    >>> block_tridiagonal_matmul(2 * ones((2, 1, 1)), ones((1, 1, 1)), ones((2, 1)))  # [[3], [3]]
    """
    name = "block_tridiagonal_matmul"
    diagonal, off_diagonal, x, vector = _system(name, diagonal, off_diagonal, x, "x")
    return _as_given(recurrences.product(hermitian(diagonal), off_diagonal, x), vector)


@operation("diagonal", "off_diagonal")
def block_tridiagonal_cholesky(diagonal: Array, off_diagonal: Array) -> Band:
    """The Cholesky factor L of A = L·Lᴴ.

    Args:
        diagonal: [..., nblocks, n, n], of which the lower triangles are read.
        off_diagonal: [..., nblocks - 1, n, n], the blocks below the diagonal.

    Returns:
        The blocks of L on its diagonal, which are lower triangular, and those below them. They are
        NaN where A is not positive definite, in that matrix alone.

    Raises:
        ValueError: shapes that do not fit together.

    The derivative is a scan over the blocks (Murray 2016, applied to each).

    Cost: about 7n³/3 for each block of the diagonal.

    >>> block_tridiagonal_cholesky(4 * ones((2, 1, 1)), zeros((1, 1, 1)))[0]  # [[[2]], [[2]]]
    """
    return _cholesky(*_band("block_tridiagonal_cholesky", diagonal, off_diagonal))


@operation("factor", "b")
def block_tridiagonal_cho_solve(
    factor: tuple[Array, Array], b: Array, *, sweeps: str = "both"
) -> Array:
    """The solution of A·x = b by the factor of `block_tridiagonal_cholesky`.

    Args:
        factor: the two results of `block_tridiagonal_cholesky`.
        b: [..., nblocks, n] or [..., nblocks, n, k]; it is the first where it has two dimensions,
            or one less than the blocks on the diagonal of the factor.
        sweeps: "both" solves A·x = b, "forward" L·x = b, and "backward" Lᴴ·x = b.

    Returns:
        x in the form of b.

    Raises:
        ValueError: shapes that do not fit together, or other sweeps.

    The derivative solves with the same factor.

    Cost: 6n² for each block and right-hand side.

    >>> block_tridiagonal_cho_solve(
    ...     (2 * ones((2, 1, 1)), zeros((1, 1, 1))), 4 * ones((2, 1))
    ... )  # [[1], [1]]
    """
    name = "block_tridiagonal_cho_solve"
    check_choice(name, "sweeps", sweeps, tuple(_SWEEPS))
    diagonal, off_diagonal, b, vector = _system(name, *factor, b, "b")
    lower = (jnp.tril(diagonal), off_diagonal)

    def matvec(x: Array) -> Array:
        if sweeps != "forward":
            x = recurrences.upper_product(*lower, x)
        return x if sweeps == "backward" else recurrences.lower_product(*lower, x)

    return _as_given(_linear_solve(matvec, (diagonal, off_diagonal), b, sweeps), vector)


@operation("diagonal", "off_diagonal", "b")
def block_tridiagonal_solve(
    diagonal: Array, off_diagonal: Array, b: Array, *, return_logdet: bool = False
) -> Any:
    """The solution of A·x = b.

    Args:
        diagonal: [..., nblocks, n, n], of which the lower triangles are read.
        off_diagonal: [..., nblocks - 1, n, n], the blocks below the diagonal.
        b: [..., nblocks, n] or [..., nblocks, n, k]; it is the first where it has two dimensions,
            or one less than `diagonal`.
        return_logdet: whether ln det(A) is returned, too; one factor serves both.

    Returns:
        x in the form of b, or (x, ln det(A)). They are NaN where A is not positive definite, in
        that matrix alone.

    Raises:
        ValueError: shapes that do not fit together.

    The derivative solves with the same factor: ẋ = A⁻¹·(ḃ − Ȧ·x), and d ln det(A) = tr(A⁻¹·Ȧ) by
    the blocks of A⁻¹ inside the band (Giles, "Collected matrix derivative results", 2008).

    Cost: that of `block_tridiagonal_cholesky`, and 6n² for each block and right-hand side.

    >>> block_tridiagonal_solve(
    ...     2 * ones((2, 1, 1)), ones((1, 1, 1)), 3 * ones((2, 1))
    ... )  # [[1], [1]]
    """
    name = "block_tridiagonal_solve"
    diagonal, off_diagonal, b, vector = _system(name, diagonal, off_diagonal, b, "b")
    if not return_logdet:
        return _as_given(_solve(False, diagonal, off_diagonal, b)[0], vector)
    x, logdet = _solve(True, diagonal, off_diagonal, b)
    return _as_given(x, vector), logdet


@operation("diagonal", "off_diagonal")
def block_tridiagonal_logdet(diagonal: Array, off_diagonal: Array) -> Array:
    """ln det(A), by the Cholesky factor of A.

    Args:
        diagonal: [..., nblocks, n, n], of which the lower triangles are read.
        off_diagonal: [..., nblocks - 1, n, n], the blocks below the diagonal.

    Returns:
        ln det(A), real, of the shape of the batch. It is NaN where A is not positive definite.

    Raises:
        ValueError: shapes that do not fit together.

    The derivative is tr(A⁻¹·Ȧ), by the blocks of A⁻¹ inside the band.

    Cost: that of `block_tridiagonal_cholesky`.

    >>> exp(block_tridiagonal_logdet(2 * ones((2, 1, 1)), ones((1, 1, 1))))  # 3
    """
    return _logdet(*_band("block_tridiagonal_logdet", diagonal, off_diagonal))


@operation("diagonal", "off_diagonal")
def block_tridiagonal_inverse(diagonal: Array, off_diagonal: Array) -> Band:
    """The blocks of A⁻¹ on its diagonal and below it: the selected inverse.

    Args:
        diagonal: [..., nblocks, n, n], of which the lower triangles are read.
        off_diagonal: [..., nblocks - 1, n, n], the blocks below the diagonal.

    Returns:
        The Hermitian blocks of A⁻¹ on its diagonal [..., nblocks, n, n], and those below them
        [..., nblocks - 1, n, n]: where A is a precision, the covariances of each block of variables
        and of neighbouring ones. They are NaN where A is not positive definite.

    Raises:
        ValueError: shapes that do not fit together.

    The derivative is a scan over the blocks.

    Cost: linear in the number of blocks, O(n³) for each.

    >>> block_tridiagonal_inverse(2 * ones((2, 1, 1)), zeros((1, 1, 1)))[0]  # [[[0.5]], [[0.5]]]
    """
    diagonal, off_diagonal = _band("block_tridiagonal_inverse", diagonal, off_diagonal)
    return _inverse(diagonal, off_diagonal, _constant_factor(diagonal, off_diagonal))


@operation("diagonal", "off_diagonal", jit=False)
def block_tridiagonal_sample(
    key: Array, diagonal: Array, off_diagonal: Array, shape: Sequence[int] = ()
) -> Array:
    """Samples of the normal distribution with mean zero and precision A: covariance A⁻¹.

    Args:
        key: a key of jax.random.
        diagonal: [..., nblocks, n, n], of which the lower triangles are read.
        off_diagonal: [..., nblocks - 1, n, n], the blocks below the diagonal.
        shape: how many samples of each distribution.

    Returns:
        [*shape, ..., nblocks, n], x = L⁻ᴴ·z for A = L·Lᴴ and a standard normal z, whose real and
        imaginary parts have the variance 1/2 where it is complex. It is NaN where A is not positive
        definite.

    Raises:
        ValueError: shapes that do not fit together.

    The derivative for A is that of L⁻ᴴ·z with the same z.

    Cost: that of `block_tridiagonal_cholesky`, and 3n² for each block and sample.

    >>> block_tridiagonal_sample(key(0), ones((3, 1, 1)), zeros((2, 1, 1)), (5,)).shape  # (5, 3, 1)
    """
    diagonal, off_diagonal = _band("block_tridiagonal_sample", diagonal, off_diagonal)
    count = 1
    for size in shape:
        count *= size
    # All samples of one distribution are right-hand sides of one system.
    z = jax.random.normal(key, (*diagonal.shape[:-1], count), diagonal.dtype)
    factor = _cholesky(diagonal, off_diagonal)
    x = jnp.moveaxis(block_tridiagonal_cho_solve(factor, z, sweeps="backward"), -1, 0)
    return x.reshape(*shape, *diagonal.shape[:-1])


def _band(function: str, diagonal: Array, off_diagonal: Array) -> Band:
    """The operands with the same batch. Raises ValueError where they do not fit together."""
    if diagonal.ndim < 3 or diagonal.shape[-1] != diagonal.shape[-2]:
        raise ValueError(
            f"{function}: diagonal: expected shape [..., nblocks, n, n], got {list(diagonal.shape)}"
        )
    count, n = diagonal.shape[-3:-1]
    expected = (max(count - 1, 0), n, n)
    if off_diagonal.shape[-3:] != expected:
        wanted = ", ".join(map(str, expected))
        raise ValueError(
            f"{function}: off_diagonal: expected shape [..., {wanted}], "
            f"got {list(off_diagonal.shape)}"
        )
    diagonal, off_diagonal = same_batch(
        function, diagonal=(diagonal, 3), off_diagonal=(off_diagonal, 3)
    )
    return diagonal, off_diagonal


def _system(
    function: str, diagonal: Array, off_diagonal: Array, b: Array, name: str
) -> tuple[Array, Array, Array, bool]:
    """The operands with the same batch, b as [..., nblocks, n, k], and whether k was missing."""
    diagonal, off_diagonal = _band(function, diagonal, off_diagonal)
    vector = b.ndim in (2, diagonal.ndim - 1)
    count, n = diagonal.shape[-3:-1]
    own = b.shape[-2:] if vector else b.shape[-3:-1]
    if own != (count, n):
        k = "" if vector else ", k"
        raise ValueError(
            f"{function}: {name}: expected shape [..., {count}, {n}{k}], got {list(b.shape)}"
        )
    if vector:
        b = b[..., None]
    diagonal, off_diagonal, b = same_batch(
        function, diagonal=(diagonal, 3), off_diagonal=(off_diagonal, 3), **{name: (b, 3)}
    )
    return diagonal, off_diagonal, b, vector


def _as_given(x: Array, vector: bool) -> Array:
    return x[..., 0] if vector else x


def _trace(inverse: Band, a_dot: Band) -> Array:
    """tr(A⁻¹·Ȧ), by what is inside the band of a Hermitian A⁻¹."""
    total: Array = jnp.zeros((), real_dtype(a_dot[0].dtype))
    for own, tangent, times in zip(inverse, a_dot, (1, 2), strict=True):
        total = total + times * jnp.real(jnp.sum(jnp.conj(own) * tangent, (-3, -2, -1)))
    return total


def _linear_solve(matvec: Any, factor: Band, b: Array, sweeps: str) -> Array:
    """The solution of matvec(x) = b by a factor that is not differentiated."""
    factor = jax.lax.stop_gradient(factor)

    def solve(_: Any, b: Array) -> Array:
        code = _SWEEPS[sweeps]
        x: Array = ffi_call("block_tridiagonal_cho_solve", *factor, b, sweeps=code)
        return x

    def transposed(_: Any, b: Array) -> Array:
        # With the transpose of M, which is the conjugate of its adjoint.
        code = _SWEEPS[_OTHER_WAY[sweeps]]
        return jnp.conj(ffi_call("block_tridiagonal_cho_solve", *factor, jnp.conj(b), sweeps=code))

    x: Array = jax.lax.custom_linear_solve(matvec, b, solve, transposed)
    return x


@jax.custom_jvp
def _cholesky(diagonal: Array, off_diagonal: Array) -> Band:
    factor = ffi_call("block_tridiagonal_cholesky", diagonal, off_diagonal)
    return factor.l_diagonal, factor.l_off_diagonal


@_cholesky.defjvp
@own_settings()
def _(primals: Band, tangents: Band) -> tuple[Band, Band]:
    factor = _cholesky(*primals)
    if not primals[0].size:
        return factor, tangents
    return factor, recurrences.factor_tangent(factor, (hermitian(tangents[0]), tangents[1]))


def _constant_factor(diagonal: Array, off_diagonal: Array) -> Band:
    """L, of which no derivative is asked."""
    return _cholesky(*jax.lax.stop_gradient((diagonal, off_diagonal)))


@jax.custom_jvp
def _inverse(diagonal: Array, off_diagonal: Array, factor: Band) -> Band:
    """The blocks of A⁻¹ inside the band, by a factor of A that is a constant."""
    s = ffi_call("block_tridiagonal_inverse", *factor)
    return s.diagonal, s.off_diagonal


@_inverse.defjvp
@own_settings()
def _(primals: tuple[Array, Array, Band], tangents: tuple[Array, Array, Band]) -> Any:
    s = _inverse(*primals)
    if not primals[0].size:
        return s, tangents[:2]
    factor, factor_dot = jax.jvp(_cholesky, primals[:2], tangents[:2])
    return s, jax.jvp(recurrences.inverse, factor, factor_dot)[1]


@jax.custom_jvp
def _logdet(diagonal: Array, off_diagonal: Array) -> Array:
    factor = ffi_call("block_tridiagonal_cholesky", diagonal, off_diagonal)
    pivots = jnp.real(jnp.diagonal(factor.l_diagonal, axis1=-2, axis2=-1))
    return 2 * jnp.sum(jnp.log(pivots), (-2, -1))


@_logdet.defjvp
@own_settings()
def _(primals: Band, tangents: Band) -> tuple[Array, Array]:
    s = _inverse(*primals, _constant_factor(*primals))
    return _logdet(*primals), _trace(s, (hermitian(tangents[0]), tangents[1]))


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _solve(with_logdet: bool, diagonal: Array, off_diagonal: Array, b: Array) -> tuple[Array, ...]:
    solved = ffi_call("block_tridiagonal_solve", diagonal, off_diagonal, b)
    return (solved.x, solved.logdet) if with_logdet else (solved.x,)


@_solve.defjvp
@own_settings()
def _(
    with_logdet: bool, primals: tuple[Array, ...], tangents: tuple[Array, ...]
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    diagonal, off_diagonal = primals[:2]
    # The call that solved: XLA makes one of the two.
    solved = ffi_call("block_tridiagonal_solve", *jax.lax.stop_gradient(primals))
    factor = (solved.l_diagonal, solved.l_off_diagonal)
    results = _solve(with_logdet, *primals)
    a, a_dot = (hermitian(diagonal), off_diagonal), (hermitian(tangents[0]), tangents[1])
    rest = tangents[2] - recurrences.product(*a_dot, results[0])
    x_dot = _linear_solve(partial(recurrences.product, *a), factor, rest, "both")
    if not with_logdet:
        return results, (x_dot,)
    s = _inverse(diagonal, off_diagonal, factor)
    return results, (x_dot, _trace(s, a_dot))
