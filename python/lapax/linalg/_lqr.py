"""The finite-horizon linear-quadratic regulator: Riccati's recursion, backwards in time."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from lapax.linalg._arguments import adjoint, check_matrix, check_size, check_square, operation
from lapax.linalg._products import product

__all__ = ["finite_horizon_lqr"]

Array = jax.Array


@operation("a", "b", "q", "r", "final", "s")
def finite_horizon_lqr(
    a: Any, b: Any, q: Any, r: Any, final: Any, s: Any = None, *, steps: int | None = None
) -> Any:
    """Gains K [..., T, n, m] and costs P [..., T + 1, m, m] of the recursion from P_T = final:

    K_t = (R + BᴴPB)⁻¹(BᴴPA + Sᴴ), P_t = Q + AᴴPA - (AᴴPB + S)·K_t, P being P_(t+1).

    x_(t+1) = A·x + B·u costs Σ xᴴQx + 2·Re(xᴴSu) + uᴴRu + x_TᴴP_T·x_T, which u_t = -K_t·x_t makes
    smallest, x₀ᴴP₀x₀. A, Q [..., T, m, m], B, S [..., T, m, n], R [..., T, n, n], one for each
    step; or one for all, [..., m, m] and so on, with the static `steps` = T. `final` [..., m, m].
    NaN from where R + BᴴPB is not positive definite.

    Derivative: of the recursion, of every order. Raises ValueError where the shapes do not fit.
    Source: Anderson and Moore, Optimal Control: Linear Quadratic Methods, 1990, section 2.4.

    Cost: O((m + n)³) for each step.

    >>> finite_horizon_lqr(*[eye(1)] * 5, steps=1)[0]  # [[[0.5]]]
    """
    name = "finite_horizon_lqr"
    check_square(name, a=a, q=q, r=r, final=final)
    check_matrix(name, b=b)
    s = jnp.zeros_like(b) if s is None else s
    check_matrix(name, s=s)
    m, n = a.shape[-1], r.shape[-1]
    operands = {"a": (a, m, m), "b": (b, m, n), "q": (q, m, m), "r": (r, n, n), "s": (s, m, n)}
    for key, (x, rows, columns) in {**operands, "final": (final, m, m)}.items():
        check_size(name, key, "rows", x.shape[-2], rows)
        check_size(name, key, "columns", x.shape[-1], columns)
        if steps is None and key != "final" and x.ndim < 3:
            raise ValueError(f"{name}: {key}: expected shape [..., T, m, n], got {list(x.shape)}")
    if steps is not None:
        operands = {
            key: (jnp.repeat(x[..., None, :, :], steps, -3), rows, columns)
            for key, (x, rows, columns) in operands.items()
        }
    horizon = operands["a"][0].shape[-3]
    batches = [x.shape[:-3] for x, _, _ in operands.values()]
    batch = jnp.broadcast_shapes(*batches, final.shape[:-2])
    over_time = []
    for key, (x, rows, columns) in operands.items():
        check_size(name, key, "steps", x.shape[-3], horizon)
        over_time.append(jnp.moveaxis(jnp.broadcast_to(x, (*batch, horizon, rows, columns)), -3, 0))
    last = jnp.broadcast_to(final, (*batch, m, m))
    _, (gains, costs) = jax.lax.scan(_backwards, last, over_time, reverse=True)
    costs = jnp.concatenate([costs, last[None]])
    return jnp.moveaxis(gains, 0, -3), jnp.moveaxis(costs, 0, -3)


def _backwards(cost: Array, coefficients: list[Array]) -> tuple[Array, tuple[Array, Array]]:
    a, b, q, r, s = coefficients
    xb = product(cost, b)
    right = product(adjoint(xb), a) + adjoint(s)
    factor = jnp.linalg.cholesky(r + product(adjoint(b), xb))
    half = jax.lax.linalg.triangular_solve(factor, right, left_side=True, lower=True)
    gain = jax.lax.linalg.triangular_solve(
        factor, half, left_side=True, lower=True, transpose_a=True, conjugate_a=True
    )
    before = q + product(product(adjoint(a), cost), a) - product(adjoint(half), half)
    before = (before + adjoint(before)) / 2
    return before, (gain, before)
