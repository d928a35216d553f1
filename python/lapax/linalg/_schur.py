"""Schur forms, A = Z·T·Zᴴ, with chosen eigenvalues first, and Hessenberg forms."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl

from lapax.linalg._arguments import Array, check_choice, check_square, complex_dtype, operation
from lapax.linalg._real_schur import pairs_together, real_eigenvalues, reordered

__all__ = ["hessenberg", "schur"]

_SORTS: dict[str, Callable[[Array], Array]] = {
    "lhp": lambda w: w.real < 0,
    "rhp": lambda w: w.real >= 0,
    "iuc": lambda w: abs(w) <= 1,
    "ouc": lambda w: abs(w) > 1,
}


@operation("a")
def schur(
    a: Array,
    output: str = "real",
    lwork: int | None = None,
    overwrite_a: bool = False,
    sort: str | Callable[..., Array] | None = None,
    check_finite: bool = True,
) -> Any:
    """Schur form T and unitary Z of A = Z·T·Zᴴ; with `sort`, also the number of those chosen.

    `a` [..., n, n]. T is upper triangular if A is complex or `output` is `"complex"`, otherwise
    real with blocks of two for pairs of complex eigenvalues. `sort` brings eigenvalues to the top:
    `"lhp"` with Re λ < 0, `"rhp"` the others, `"iuc"` with |λ| ≤ 1, `"ouc"` the others, or those
    for which a function is true: of the array of eigenvalues, or of those of their real and
    imaginary parts for a real form (of the former alone if it takes one argument), where one of a
    pair brings both. Eigenvalues of either kind keep their order. The number of those chosen is an
    int32 [...].

    Neighbours are exchanged by a rotation that takes the eigenvector of the second to the front
    (xTREXC), all disjoint pairs at once, in at most n rounds of odd-even transposition, each of
    O(n²); in a real form one after the other, see _real_schur.py. Raises ValueError for another
    `output` or `sort`, and unless A is square. There is no derivative.

    Cost: about 25n³.

    >>> schur(diag(array([1., 3])))[0]  # [[1, 0], [0, 3]]
    """
    del lwork, overwrite_a, check_finite
    check_square("schur", a=a)
    check_choice("schur", "output", output, ("real", "r", "complex", "c"))
    if output in ("complex", "c"):
        a = a.astype(complex_dtype(a.dtype))
    if sort is not None and not callable(sort):
        check_choice("schur", "sort", sort, tuple(_SORTS))
    t, z = (a, a) if a.shape[-1] == 0 else jax.lax.linalg.schur(a)
    if sort is None:
        return t, z
    chosen = _chosen(sort, t)
    count = jnp.sum(chosen, -1, dtype=jnp.int32)
    if a.shape[-1] < 2:
        return t, z, count
    exchanged = _reordered if jnp.iscomplexobj(t) else reordered
    return *exchanged(t, z, chosen), count


def _chosen(sort: str | Callable[..., Array], t: Array) -> Array:
    """Of each row whether its eigenvalue is to come first."""
    if jnp.iscomplexobj(t):
        return (_SORTS[sort] if isinstance(sort, str) else sort)(_diagonal(t))
    real, imaginary = real_eigenvalues(t)
    if isinstance(sort, str):
        chosen = _SORTS[sort](jax.lax.complex(real, imaginary))
    else:
        chosen = sort(real, imaginary) if _takes_two(sort) else sort(real)
    return pairs_together(t, chosen)


def _takes_two(function: Callable[..., Array]) -> bool:
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        return False
    return True


def _diagonal(t: Array) -> Array:
    diagonal: Array = jnp.diagonal(t, axis1=-2, axis2=-1)
    return diagonal


def _reordered(t: Array, z: Array, chosen: Array) -> tuple[Array, Array]:
    """The same factorization with the chosen eigenvalues first."""
    n = t.shape[-1]
    index = jnp.arange(n)
    even = index % 2 == 0

    def inverted(chosen: Array) -> Array:
        """Of each index whether it is to change places with the next."""
        after = jnp.roll(chosen, -1, -1) & (index < n - 1)
        return after & ~chosen

    def exchange(state: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        k, t, z, chosen = state
        first = inverted(chosen) & (even == (k % 2 == 0))
        second = jnp.roll(first, 1, -1)
        partner = index + first - second
        own, other = _rotations(t, first, second)
        values = jnp.take_along_axis(_diagonal(t), partner, -1)
        t = own[..., :, None] * t + other[..., :, None] * _rows(t, partner)
        t, z = (
            own.conj()[..., None, :] * x + other.conj()[..., None, :] * _columns(x, partner)
            for x in (t, z)
        )
        diagonal = index[:, None] == index
        t = jnp.where(diagonal & (first | second)[..., None, :], values[..., None, :], t)
        return k + 1, jnp.triu(t), z, jnp.take_along_axis(chosen, partner, -1)

    def unsorted(state: tuple[Array, Array, Array, Array]) -> Array:
        return jnp.any(inverted(state[3])) & (state[0] <= n)

    _, t, z, _ = jax.lax.while_loop(unsorted, exchange, (jnp.int32(0), t, z, chosen))
    return t, z


def _rotations(t: Array, first: Array, second: Array) -> tuple[Array, Array]:
    """What multiplies each row itself, and its partner, in Gᴴ·T.

    Of a block [[λ, τ], [0, μ]], (τ, μ − λ) is the eigenvector of μ; made of length one it is
    (x, y), and G = [[x, −conj(y)], [y, conj(x)]] has it as its first column.
    """
    values = _diagonal(t)
    x = jnp.concatenate([jnp.diagonal(t, 1, -2, -1), jnp.zeros_like(values[..., :1])], -1)
    y = jnp.roll(values, -1, -1) - values
    largest = jnp.maximum(abs(x), abs(y))
    # Equal eigenvalues without coupling are exchanged as they are.
    y = jnp.where(largest == 0, 1, y / jnp.where(largest == 0, 1, largest))
    x = x / jnp.where(largest == 0, 1, largest)
    length = jnp.sqrt(abs(x) ** 2 + abs(y) ** 2)
    x, y = x / length, y / length
    own = jnp.where(first, x.conj(), jnp.where(second, jnp.roll(x, 1, -1), 1))
    other = jnp.where(first, y.conj(), jnp.where(second, -jnp.roll(y, 1, -1), 0))
    return own, other


def _rows(x: Array, index: Array) -> Array:
    return jnp.take_along_axis(x, index[..., :, None], -2)


def _columns(x: Array, index: Array) -> Array:
    return jnp.take_along_axis(x, index[..., None, :], -1)


@operation("a")
def hessenberg(
    a: Array, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """Hessenberg form H of A = Q·H·Qᴴ (xGEHRD), or (H, Q) if `calc_q`.

    `a` [..., n, n]; H is zero below its first subdiagonal, and is A for n ≤ 2; Q is unitary. Raises
    ValueError unless A is square. There is no derivative.

    Cost: 10n³/3, and 4n³/3 for Q.

    >>> hessenberg(array([[1., 2], [3, 4]]))  # [[1, 2], [3, 4]]
    """
    del overwrite_a, check_finite
    check_square("hessenberg", a=a)
    if a.shape[-1] <= 2:
        return (a, jnp.broadcast_to(jnp.eye(a.shape[-1], dtype=a.dtype), a.shape)) if calc_q else a
    return jsl.hessenberg(a, calc_q=True) if calc_q else jsl.hessenberg(a, calc_q=False)
