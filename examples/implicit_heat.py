"""Heat in a rod by implicit steps: one banded factorisation, a solve in each step, and a gradient.

u' = κ·∂²u − ε·∂⁴u on [0, 1], with u = ∂²u = 0 at both ends. With T the second difference,
tridiagonal, L = κ·T + ε·T² has five diagonals, and the Crank–Nicolson step
(I + h/2·L)·u⁺ = (I − h/2·L)·u is stable whatever its length. Its matrix is factored once by
`cholesky_banded`; `lax.scan` takes the steps by `cho_solve_banded`, so that the time of all is
proportional to the points. The gradient of the heat that is left goes through all steps to κ and ε.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from lapax import linalg

POINTS = 100
STEPS = 50
END = 0.02
KAPPA, EPSILON = 0.5, 1e-3
MODES = (1, 3)
"""What is there at the start: sin(kπx) for each, which decay like exp(−(κ·(kπ)² + ε·(kπ)⁴)·t)."""


class Heat(NamedTuple):
    """The rod at the end, and what the heat in it depends on."""

    x: jax.Array
    u: jax.Array
    exact: jax.Array
    slope: jax.Array
    """∂/∂(κ, ε) of the mean of u²."""
    difference: jax.Array
    """The same by finite differences."""


def second_difference(n: int) -> jax.Array:
    """T, by its diagonals on and above the main one: [2, n]."""
    width = 1 / (n + 1)
    return jnp.stack([jnp.full(n, -1.0), jnp.full(n, 2.0)]) / width**2


def squared(n: int) -> jax.Array:
    """T², likewise: [3, n]."""
    width = 1 / (n + 1)
    main = jnp.full(n, 6.0).at[jnp.array([0, -1])].set(5.0)
    return jnp.stack([jnp.full(n, 1.0), jnp.full(n, -4.0), main]) / width**4


def product(ab: jax.Array, u: jax.Array) -> jax.Array:
    """A·u for a symmetric A by its diagonals on and above the main one."""
    y = ab[-1] * u
    for k in range(1, len(ab)):
        beside = ab[-1 - k, k:]
        y = y.at[:-k].add(beside * u[k:]).at[k:].add(beside * u[:-k])
    return y


def evolve(parameters: jax.Array, u: jax.Array) -> jax.Array:
    """u after all steps."""
    kappa, epsilon = parameters
    n, half = len(u), END / STEPS / 2
    operator = epsilon * squared(n)
    operator = operator.at[1:].add(kappa * second_difference(n))
    implicit, explicit = half * operator, -half * operator
    implicit, explicit = implicit.at[-1].add(1), explicit.at[-1].add(1)
    factor = linalg.cholesky_banded(implicit)

    def step(u: jax.Array, _: None) -> tuple[jax.Array, None]:
        return linalg.cho_solve_banded((factor, False), product(explicit, u)), None

    return jax.lax.scan(step, u, length=STEPS)[0]


@jax.jit
def heat(parameters: jax.Array, u: jax.Array) -> jax.Array:
    """The mean of u² at the end."""
    return jnp.mean(evolve(parameters, u) ** 2)


def main() -> Heat:
    """Runs all of it, and prints the errors."""
    x = jnp.arange(1, POINTS + 1) / (POINTS + 1)
    waves = [k * jnp.pi for k in MODES]
    start = sum(jnp.sin(k * x) for k in waves)
    decay = [KAPPA * k**2 + EPSILON * k**4 for k in waves]
    exact = sum(jnp.exp(-d * END) * jnp.sin(k * x) for k, d in zip(waves, decay, strict=True))
    parameters = jnp.array([KAPPA, EPSILON])
    u = jax.jit(evolve)(parameters, start)
    slope = jax.grad(heat)(parameters, start)
    small = 1e-3 * parameters
    difference = jnp.stack(
        [
            (heat(parameters.at[i].add(d), start) - heat(parameters.at[i].add(-d), start)) / (2 * d)
            for i, d in enumerate(small)
        ]
    )
    print(f"error of u     {jnp.abs(u - exact).max():.1e} of {jnp.abs(exact).max():.2f}")
    print(f"gradient       {slope}")
    print(f"by differences {difference}")
    return Heat(x, u, exact, slope, difference)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main()
