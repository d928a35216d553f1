"""Functions of upper triangular matrices by recurrences, one superdiagonal after the other.

F commutes with T, which gives Parlett's recurrence, and often satisfies an equation of its own
(F² = T). Either gives f_ij from what stands left of it and below it, so the entries of one
superdiagonal are independent: n - 1 steps for a batch, each of elementwise products.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from lapax.linalg._arguments import adjoint, complex_dtype
from lapax.linalg._forms import rsf2csf
from lapax.linalg._products import computed_where, diagonal, product, with_diagonal
from lapax.linalg._targets import by_target

Array = jax.Array


def schur(a: Array) -> tuple[Array, Array]:
    """T and U of A = U·T·Uᴴ, complex and T upper triangular, of A [..., n, n].

    Runs where jax.lax.linalg.schur does: on the CPU.
    """
    a = a.astype(complex_dtype(a.dtype))
    if a.shape[-1] == 0:
        return a, a
    t, u = jax.lax.linalg.schur(a)
    return jnp.triu(t), u


def through_schur(
    f: Callable[[Array], Array], a: Array, is_real: Callable[[Array], Array] | None = None
) -> Array:
    """f(A), complex, by f of upper triangular matrices.

    With `is_real` f takes real Schur forms T, too, of which it says that f(T) is real ([...] of
    bool): that of a real A takes a third of the time of the complex one, 0.30 and 0.84 ms of one
    matrix of order 64, 0.54 and 1.0 of 1000 of order 8 (f64, two cores of Zen 5). The others are
    made complex.
    """
    n, to = a.shape[-1], complex_dtype(a.dtype)
    if is_real is None or jnp.iscomplexobj(a) or n == 0:
        t, u = schur(a)
        return product(product(u, f(t)), adjoint(u))
    t, u = jax.lax.linalg.schur(a)
    real = is_real(t)

    def chosen(which: Array, x: Array) -> Array:
        return jnp.where(which[..., None, None], x, jnp.eye(n, dtype=x.dtype))

    def of_real(which: Array) -> Array:
        return product(product(u, f(chosen(which, t))), adjoint(u)).astype(to)

    def of_complex(which: Array) -> Array:
        form, vectors = rsf2csf(chosen(which, t), chosen(which, u))
        return product(product(vectors, f(form)), adjoint(vectors))

    return computed_where(~real, of_complex, computed_where(real, of_real, jnp.zeros(a.shape, to)))


def derivative_through_schur(f: Callable[[Array], Array], a: Array, e: Array) -> Array:
    """L(A, E) of complex A by f of the triangular [[T, UᴴEU], [0, T]].

    E is scaled to the norm of A, as algorithms choose their scaling by the whole.
    """
    n = a.shape[-1]
    t, u = schur(a)
    direction = product(product(adjoint(u), e), u)
    size, length = (jnp.max(jnp.abs(x), axis=(-2, -1), keepdims=True, initial=0) for x in (t, e))
    scale = jnp.where((size > 0) & (length > 0), size / jnp.where(length > 0, length, 1), 1)
    scale = scale.astype(a.real.dtype)
    both = f(jnp.block([[t, direction * scale], [jnp.zeros_like(t), t]]))
    return product(product(u, both[..., :n, n:] / scale), adjoint(u))


Ends = tuple[Array, Array]
"""Diagonal elements i and j for each i, j of one superdiagonal: of shape [..., n], by i."""


def by_superdiagonals(t: Array, values: Array, entry: Callable[..., Array], *given: Array) -> Array:
    """F with `values` on its diagonal; `entry` gives the others.

    It is traced once, for a superdiagonal: entry((f_ii, f_jj), (t_ii, t_jj), t_ij, squares,
    products), squares = Σ f_ik·f_kj and products = Σ f_ik·t_kj - t_ik·f_kj over i < k < j, and
    behind these g_ij of each matrix G that is `given`.
    """
    n = t.shape[-1]
    strict = jnp.triu(t, 1)
    column = jnp.arange(n)

    def step(d: Array, above: Array) -> Array:
        def at_j(rows: Array, axis: int) -> Array:
            # What is rolled in from the other end meets zeros, or is not taken below.
            return jnp.roll(rows, -d, axis)

        columns = [at_j(jnp.swapaxes(x, -1, -2), -2) for x in (above, strict)]
        squares = jnp.sum(above * columns[0], axis=-1)
        products = jnp.sum(above * columns[1] - strict * columns[0], axis=-1)
        here = column[:, None] + d == column
        t_ij, *given_ij = (jnp.sum(jnp.where(here, x, 0), axis=-1) for x in (strict, *given))
        ends = [(x, at_j(x, -1)) for x in (values, diagonal(t))]
        found = entry(*ends, t_ij, squares, products, *given_ij)
        return jnp.where(here, found[..., None], above)

    above = jax.lax.fori_loop(1, n, step, jnp.zeros_like(t))
    return with_diagonal(above, values)


def _root_by_superdiagonals(t: Array) -> Array:

    def entry(r: Ends, _: Ends, t_ij: Array, squares: Array, __: Array) -> Array:
        right, sums = t_ij - squares, r[0] + r[1]
        return jnp.where(right == 0, 0, right / sums)

    return by_superdiagonals(t, jnp.sqrt(diagonal(t)), entry)


square_root = by_target("triangular_sqrtm", _root_by_superdiagonals)
"""R with R² = T (Björck and Hammarling, Linear Algebra Appl. 52/53, 1983).

Where two diagonal elements are zero, the element between is zero if that solves the equation, and
infinite or NaN if no root exists.
"""


def _parlett_by_superdiagonals(t: Array, g: Array) -> Array:

    def entry(_: Ends, t: Ends, t_ij: Array, __: Array, products: Array, g_ij: Array) -> Array:
        difference = t[0] - t[1]
        same = difference == 0
        return t_ij * g_ij + jnp.where(same, 0, products / jnp.where(same, 1, difference))

    return by_superdiagonals(t, diagonal(g), entry, g)


parlett = by_target("triangular_parlett", _parlett_by_superdiagonals)
"""f(T) of complex T and G with f(t_ii) on its diagonal and the divided differences f[t_ii, t_jj]
above (Parlett, Linear Algebra Appl. 14, 1976); zero is put for 0/0 where t_ii = t_jj."""
