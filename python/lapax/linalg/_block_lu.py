"""Matrices of square blocks on and beside the diagonal, without symmetry: factors and systems.

A matrix A of order nblocks·n is given by `lower` [..., nblocks - 1, n, n], `diagonal`
[..., nblocks, n, n] and `upper` [..., nblocks - 1, n, n]: `lower[i]` is A[i + 1, i] and `upper[i]`
is A[i, i + 1]. The work, derivatives included, grows linearly with nblocks. SciPy has no such
functions.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from lapax._call import ffi_call
from lapax.linalg._arguments import Array, check_choice, operation, same_batch

__all__ = ["BlockTridiagonalLU", "block_tridiagonal_lu", "block_tridiagonal_lu_solve"]

Blocks = tuple[Array, Array, Array]
"""Below the diagonal, on it, and above it."""

_TRANS = ("None", "Transpose", "ConjTranspose")


class BlockTridiagonalLU(NamedTuple):
    """A matrix, and its factors A = L·U, for `block_tridiagonal_lu_solve`."""

    lower: Array
    diagonal: Array
    upper: Array
    lu: Array
    """The factors of the blocks S on L's diagonal, [..., nblocks, n, n]."""
    pivots: Array
    """The row of its block that each row was swapped with, int32 [..., nblocks, n]."""
    upper_factor: Array
    """The blocks above U's diagonal, [..., nblocks - 1, n, n]; those on it are ones."""


@operation("lower", "diagonal", "upper")
def block_tridiagonal_lu(lower: Array, diagonal: Array, upper: Array) -> BlockTridiagonalLU:
    """The LU factors of A, pivoted inside of its blocks.

    Args:
        lower: [..., nblocks - 1, n, n], the blocks below the diagonal.
        diagonal: [..., nblocks, n, n], those on it.
        upper: [..., nblocks - 1, n, n], those above it.

    Returns:
        The operands, with the same batch, and the factors: L has S[i] = D[i] − E[i − 1]·G[i − 1] on
        its diagonal and E below it, U has ones on its diagonal and G[i] = S[i]⁻¹·F[i] above it, for
        E, D and F below, on and above A's diagonal. They are NaN where a pivot is zero, in that
        matrix alone.

    Raises:
        ValueError: shapes that do not fit together.

    Rows of different blocks do not change places. That is stable where blocks on the diagonal
    dominate those beside them, and where A is well-conditioned with all its leading principal
    blocks; another A may lose digits, or have no such factors at all: a band of 2·n − 1 diagonals
    on each side goes by `solve_banded`, which swaps any rows. After Golub and Van Loan, "Matrix
    computations", section 4.5, and Demmel, Higham and Schreiber, "Stability of block LU
    factorization" (1995). The factors have no derivative; solutions by them have that of A.

    Cost: about 5n³ for each block of the diagonal.

    >>> block_tridiagonal_lu(
    ...     ones((1, 1, 1)), 2 * ones((2, 1, 1)), ones((1, 1, 1))
    ... ).upper_factor  # [[[0.5]]]
    """
    operands = _blocks("block_tridiagonal_lu", lower, diagonal, upper)
    return BlockTridiagonalLU(
        *operands, *ffi_call("block_tridiagonal_lu", *jax.lax.stop_gradient(operands))
    )


@operation("factor", "b")
def block_tridiagonal_lu_solve(factor: BlockTridiagonalLU, b: Array, *, trans: int = 0) -> Array:
    """The solution of A·x = b by the factors of `block_tridiagonal_lu`.

    Args:
        factor: the result of `block_tridiagonal_lu`.
        b: [..., nblocks, n] or [..., nblocks, n, k]; it is the first where it has two dimensions,
            or one less than `factor.diagonal`.
        trans: 0 solves A·x = b, 1 Aᵀ·x = b, and 2 Aᴴ·x = b.

    Returns:
        x in the form of b. It is NaN where A has no factors.

    Raises:
        ValueError: shapes that do not fit together, or another `trans`.

    The derivative is that of the system, ẋ = A⁻¹·(ḃ − Ȧ·x), for the blocks of A that the factor
    holds, and solves with the same factors.

    Cost: 6n² for each block and right-hand side.

    >>> block_tridiagonal_lu_solve(
    ...     block_tridiagonal_lu(ones((1, 1, 1)), 2 * ones((2, 1, 1)), ones((1, 1, 1))),
    ...     3 * ones((2, 1)),
    ... )  # [[1], [1]]
    """
    name = "block_tridiagonal_lu_solve"
    check_choice(name, "trans", trans, (0, 1, 2))
    lower, diagonal, upper, lu, pivots, upper_factor = factor
    lower, diagonal, upper = _blocks(name, lower, diagonal, upper)
    vector = b.ndim in (2, diagonal.ndim - 1)
    count, n = diagonal.shape[-3:-1]
    if (b.shape[-2:] if vector else b.shape[-3:-1]) != (count, n):
        k = "" if vector else ", k"
        raise ValueError(f"{name}: b: expected shape [..., {count}, {n}{k}], got {list(b.shape)}")
    operands = {"lower": lower, "diagonal": diagonal, "upper": upper, "lu": lu}
    operands |= {"upper_factor": upper_factor, "b": b[..., None] if vector else b}
    lower, diagonal, upper, lu, upper_factor, b = same_batch(
        name, **{key: (value, 3) for key, value in operands.items()}
    )
    # They have come in the dtype of the others.
    pivots = jnp.broadcast_to(jnp.real(pivots).astype(jnp.int32), diagonal.shape[:-1])
    known = jax.lax.stop_gradient((lower, lu, pivots, upper_factor))

    def solve(b: Array, trans: int) -> Array:
        x: Array = ffi_call("block_tridiagonal_lu_solve", *known, b, trans=_TRANS[trans])
        return x

    def transposed(b: Array) -> Array:
        # (Aᴴ)ᵀ is the conjugate of A.
        return jnp.conj(solve(jnp.conj(b), 0)) if trans == 2 else solve(b, 1 - trans)

    x: Array = jax.lax.custom_linear_solve(
        lambda x: _product(_op((lower, diagonal, upper), trans), x),
        b,
        lambda _, b: solve(b, trans),
        lambda _, b: transposed(b),
    )
    return x[..., 0] if vector else x


def _blocks(function: str, lower: Array, diagonal: Array, upper: Array) -> Blocks:
    """The blocks with the same batch. Raises ValueError where they do not fit together."""
    if diagonal.ndim < 3 or diagonal.shape[-1] != diagonal.shape[-2]:
        raise ValueError(
            f"{function}: diagonal: expected shape [..., nblocks, n, n], got {list(diagonal.shape)}"
        )
    count, n = diagonal.shape[-3:-1]
    expected = (max(count - 1, 0), n, n)
    for name, beside in (("lower", lower), ("upper", upper)):
        if beside.shape[-3:] != expected:
            wanted = ", ".join(map(str, expected))
            raise ValueError(
                f"{function}: {name}: expected shape [..., {wanted}], got {list(beside.shape)}"
            )
    lower, diagonal, upper = same_batch(
        function, lower=(lower, 3), diagonal=(diagonal, 3), upper=(upper, 3)
    )
    return lower, diagonal, upper


def _op(blocks: Blocks, trans: int) -> Blocks:
    """The blocks of A, Aᵀ or Aᴴ."""
    if trans == 0:
        return blocks
    upper, diagonal, lower = (jnp.swapaxes(x, -1, -2) for x in blocks)
    if trans == 2:
        upper, diagonal, lower = (jnp.conj(x) for x in (upper, diagonal, lower))
    return lower, diagonal, upper


def _product(blocks: Blocks, x: Array) -> Array:
    """A·x."""
    lower, diagonal, upper = blocks
    y = diagonal @ x
    if diagonal.shape[-3] < 2:
        return y
    y = y.at[..., 1:, :, :].add(lower @ x[..., :-1, :, :])
    return y.at[..., :-1, :, :].add(upper @ x[..., 1:, :, :])
