"""Solutions in full precision by factors in half of it.

Langou, Langou, Luszczek, Kurzak, Buttari and Dongarra, "Exploiting the performance of 32 bit
floating point arithmetic in obtaining 64 bit accuracy" (2006); Carson and Higham, "A new analysis
of iterative refinement and its application to accurate solution of ill-conditioned sparse linear
systems" (SIAM J. Sci. Comput. 39, 2017).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lapax.linalg._arguments import (
    Array,
    check_square,
    operation,
    real_dtype,
    right_hand_sides,
    same_batch,
)
from lapax.linalg._products import product

__all__ = ["RefinedSolution", "solve_refined"]

REFINEMENTS = 10
"""Steps of plain refinement. Each gains log₂(1/(κ·ε)) bits, ε the roundoff of the factors: with
κ = 10⁶ in f32 10 steps are enough for f64, and what gains less is left to GMRES."""
DIRECTIONS, RESTARTS = 20, 5
"""Directions of GMRES and how often it begins anew: preconditioned it needs a few for κ ≤ 10¹²."""


State = tuple[Array, Array, Array, Array, Array]
"""x, its errors, steps taken, which go on, and how often it was tried."""


class RefinedSolution(NamedTuple):
    """What `solve_refined(..., full=True)` returns."""

    x: Array
    """The solution, of the shape of `b`."""
    backward_error: Array
    """max ‖b − A·x‖∞ / (‖A‖∞·‖x‖∞ + ‖b‖∞) over the right-hand sides, [...]: the relative change
    of A and b of which x is the exact solution (Rigal and Gaches, 1967)."""
    iterations: Array
    """Steps of plain refinement that each system took, [...], int32."""


@operation("a", "b")
def solve_refined(
    a: Array, b: Array, *, factor_dtype: Any = None, gmres: bool = True, full: bool = False
) -> Any:
    """A·x = b from an LU decomposition in f32 (c64), refined to the accuracy of f64 (c128).

    Residuals are in the dtype of the arguments. Where refinement stalls, which begins at a
    condition of about 10⁷, GMRES goes on with the factors as its preconditioner (GMRES-IR). A
    system that neither solves to a backward error of n·ε is solved by an LU decomposition of its
    own dtype, unless the result is not finite either way.

    Args:
        a: [..., n, n].
        b: [..., n, k], or [n].
        factor_dtype: the dtype of the factors: default float32 or complex64. That of the arguments
            gives fixed precision refinement (Skeel 1980), which mends what growth lost.
        gmres: whether it goes on by GMRES.
        full: returns a RefinedSolution.

    Returns:
        x of the shape of `b`, with the batches broadcast together.

    It gains where factoring in f32 does: on the CPU from about n = 500 on. The derivative is that
    of `solve`, by solutions of the same kind.

    Raises ValueError unless `a` is square and `b` has as many rows, and for a `factor_dtype` that
    is real where `a` is complex.

    Cost: 2n³/3 in the narrow dtype, and 4n² for each step.

    >>> solve_refined(2 * eye(2), ones(2))  # [0.5, 0.5]
    """
    check_square("solve_refined", a=a)
    n = a.shape[-1]
    b, restore = right_hand_sides("solve_refined", b, n, b.ndim == 1)
    a, b = same_batch("solve_refined", a=(a, 2), b=(b, 2))
    low = _factor_dtype(a.dtype, factor_dtype)
    if n == 0 or b.size == 0:
        found = RefinedSolution(
            b, jnp.zeros(b.shape[:-2], real_dtype(a.dtype)), jnp.zeros(b.shape[:-2], jnp.int32)
        )
        return found._replace(x=restore(b)) if full else restore(b)
    fixed = jax.lax.stop_gradient(a)
    factors = _Factors.of(fixed.astype(low))

    def solve(transposed: bool, right: Array) -> tuple[Array, tuple[Array, Array]]:
        x, errors, steps = _solved(fixed, factors, right, gmres, transposed)
        return x, (errors, steps)

    x, (error, steps) = jax.lax.custom_linear_solve(
        lambda x: product(a, x),
        b,
        solve=lambda _, right: solve(False, right),
        transpose_solve=lambda _, right: solve(True, right),
        has_aux=True,
    )
    return RefinedSolution(restore(x), error, steps) if full else restore(x)


def _factor_dtype(dtype: Any, wanted: Any) -> Any:
    if wanted is None:
        return np.dtype(np.complex64 if dtype.kind == "c" else np.float32)
    low = np.dtype(wanted)
    if low.kind != dtype.kind or low.itemsize > dtype.itemsize:
        raise ValueError(
            f"solve_refined: factor_dtype: expected one of the kind of {dtype} and not longer, "
            f"got {low}"
        )
    return low


class _Factors(NamedTuple):
    """L and U of rows that are in another order."""

    lu: Array
    order: Array

    @classmethod
    def of(cls, a: Array) -> _Factors:
        factors, _, order = jax.lax.linalg.lu(a)
        return cls(factors, order)

    def solve(self, b: Array, transposed: bool) -> Array:
        """A⁻¹·b or A⁻ᵀ·b in the precision of the factors, in the dtype of `b`."""

        def by(right: Array, lower: bool) -> Array:
            return jax.lax.linalg.triangular_solve(
                self.lu,
                right,
                left_side=True,
                lower=lower,
                transpose_a=transposed,
                unit_diagonal=lower,
            )

        # Residuals may be too small or large for the factors' dtype.
        size = jnp.max(jnp.abs(b), axis=(-2, -1), keepdims=True)
        size = jnp.where((size > 0) & jnp.isfinite(size), size, 1)
        right = (b / size).astype(self.lu.dtype)
        if transposed:
            x = by(by(right, False), True)
            x = jnp.take_along_axis(x, jnp.argsort(self.order, -1)[..., None], -2)
        else:
            x = by(by(jnp.take_along_axis(right, self.order[..., None], -2), True), False)
        return x.astype(b.dtype) * size


def _solved(
    a: Array, factors: _Factors, b: Array, gmres: bool, transposed: bool
) -> tuple[Array, Array, Array]:
    """x, its backward errors and the steps of plain refinement."""
    a = jnp.swapaxes(a, -1, -2) if transposed else a
    n = a.shape[-1]
    enough = n * float(np.finfo(a.dtype).eps)
    norm = jnp.max(jnp.sum(jnp.abs(a), -1), -1)

    def error(x: Array) -> Array:
        residual, of_b, of_x = (jnp.max(jnp.abs(y), -2) for y in (b - product(a, x), b, x))
        scale = norm[..., None] * of_x + of_b
        return jnp.max(residual / jnp.where(scale == 0, 1, scale), -1)

    def worse(errors: Array, than: Any) -> Array:
        return jnp.logical_not(errors <= than)

    def pick(those: Array, x: Array, y: Array) -> Array:
        return jnp.where(those[..., None, None], x, y)

    def step(state: State) -> State:
        x, errors, steps, going, count = state
        after = x + factors.solve(b - product(a, x), transposed)
        found = error(after)
        better = going & (found < errors)
        # What does not at least halve will not arrive.
        on = better & (found <= errors / 2) & worse(found, enough)
        return (
            pick(better, after, x),
            jnp.where(better, found, errors),
            steps + going,
            on,
            count + 1,
        )

    x = factors.solve(b, transposed)
    errors = error(x)
    begun = (x, errors, jnp.zeros(errors.shape, jnp.int32), worse(errors, enough), jnp.int32(0))
    x, errors, steps, _, _ = jax.lax.while_loop(
        lambda state: jnp.any(state[3]) & (state[4] < REFINEMENTS), step, begun
    )
    ways = [lambda x: _by_gmres(a, factors, b, x, transposed)] if gmres else []
    ways.append(lambda x: jnp.linalg.solve(a, b))
    for way in ways:
        left = worse(errors, enough)
        found = jax.lax.cond(jnp.any(left), way, lambda x: x, x)
        after = error(found)
        # One that is not finite is what a solver of singular systems leaves, too.
        better = left & (worse(errors, after) | ~jnp.isfinite(errors))
        x, errors = pick(better, found, x), jnp.where(better, after, errors)
    return x, errors, steps


def _by_gmres(a: Array, factors: _Factors, b: Array, x: Array, transposed: bool) -> Array:
    """Corrections of each column by GMRES on the preconditioned system, in the dtype of `a`."""
    directions = min(DIRECTIONS, a.shape[-1])

    def unit(w: Array) -> tuple[Array, Array]:
        norm = jnp.linalg.norm(w, axis=-2)
        return w / jnp.where(norm == 0, 1, norm)[..., None, :], norm

    def cycle(_: Any, x: Array) -> Array:
        first, size = unit(factors.solve(b - product(a, x), transposed))
        basis = jnp.zeros((directions + 1, *first.shape), a.dtype).at[0].set(first)
        h = jnp.zeros((directions + 1, directions, *size.shape), a.dtype)

        def step(j: Any, state: tuple[Array, Array]) -> tuple[Array, Array]:
            basis, h = state
            w = factors.solve(product(a, basis[j]), transposed)
            along = jnp.zeros_like(h[:, 0])
            # Twice is enough (Giraud, Langou and Rozložník, 2005).
            for _ in range(2):
                part = jnp.einsum("i...nk,...nk->i...k", basis.conj(), w)
                w, along = w - jnp.einsum("i...nk,i...k->...nk", basis, part), along + part
            direction, norm = unit(w)
            along = along.at[j + 1].set(norm)
            return basis.at[j + 1].set(direction), h.at[:, j].set(along)

        basis, h = jax.lax.fori_loop(0, directions, step, (basis, h))
        # Where the space was full before its last direction the columns after that are zero.
        inverse = jnp.linalg.pinv(jnp.moveaxis(h, (0, 1), (-2, -1)))
        y = inverse[..., 0] * size[..., None]
        return x + jnp.einsum("j...nk,...kj->...nk", basis[:-1], y)

    corrected: Array = jax.lax.fori_loop(0, RESTARTS, cycle, x)
    return corrected
