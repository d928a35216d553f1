"""Frequencies of a clamped beam, K·x = ω²·M·x, and the shape that raises the lowest of them.

A cantilever of unit length, width, density and Young's modulus in beam elements of Euler and
Bernoulli, each with its own height. `lapax.linalg.eigh(K, M)` gives the lowest frequencies, and
their gradient by the heights moves material to where it serves them, at the same mass.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import lapax
from lapax import linalg

ELEMENTS = 16
HEIGHT = 0.05
"""Of the uniform beam."""
CLAMPED_FREE = np.array([1.875104068711961, 4.694091132974174, 7.854757438237613])
"""The roots of cos(β)·cosh(β) = −1: ω = β²·√(E·I/(ρ·A·L⁴))."""
STEPS = 150
RATE = 0.05


class Beam(NamedTuple):
    """What `main` found."""

    frequencies: jax.Array
    """The three lowest of the uniform beam."""
    exact: np.ndarray
    slope: float
    """Of the lowest, along the direction that tapers the beam, by the gradient."""
    difference: float
    """The same by a central difference."""
    improved: jax.Array
    """The three lowest of the new shape."""
    heights: jax.Array


def element_matrices() -> tuple[np.ndarray, np.ndarray]:
    """Stiffness for E·I = 1, mass for ρ·A = 1 of one element: deflection and slope at each end."""
    d = 1 / ELEMENTS
    stiffness = np.array(
        [
            [12, 6 * d, -12, 6 * d],
            [6 * d, 4 * d**2, -6 * d, 2 * d**2],
            [-12, -6 * d, 12, -6 * d],
            [6 * d, 2 * d**2, -6 * d, 4 * d**2],
        ]
    )
    mass = np.array(
        [
            [156, 22 * d, 54, -13 * d],
            [22 * d, 4 * d**2, 13 * d, -3 * d**2],
            [54, 13 * d, 156, -22 * d],
            [-13 * d, -3 * d**2, -22 * d, 4 * d**2],
        ]
    )
    return stiffness / d**3, mass * d / 420


def assembled(heights: jax.Array) -> tuple[jax.Array, jax.Array]:
    """K and M of the beam, without the clamped end."""
    stiffness, mass = element_matrices()
    places = 2 * np.arange(ELEMENTS)[:, None] + np.arange(4)
    rows, columns = places[:, :, None], places[:, None, :]
    empty = jnp.zeros((2 * ELEMENTS + 2,) * 2, heights.dtype)
    k = empty.at[rows, columns].add(heights[:, None, None] ** 3 / 12 * stiffness)
    m = empty.at[rows, columns].add(heights[:, None, None] * mass)
    return k[2:, 2:], m[2:, 2:]


def frequencies(heights: jax.Array) -> jax.Array:
    """The three lowest ω."""
    return jnp.sqrt(linalg.eigvalsh(*assembled(heights), subset_by_index=(0, 2)))


def shape(logits: jax.Array) -> jax.Array:
    """Heights of the mass of the uniform beam, none below a fifth of its height."""
    share = jax.nn.softmax(logits) * ELEMENTS
    return HEIGHT * (0.2 + 0.8 * share)


@jax.jit
def improve(logits: jax.Array) -> jax.Array:
    """Ascends the logarithm of the lowest frequency."""
    gradient = jax.grad(lambda x: jnp.log(frequencies(shape(x))[0]))

    def step(_: int, logits: jax.Array) -> jax.Array:
        return logits + RATE * ELEMENTS * gradient(logits)

    return jax.lax.fori_loop(0, STEPS, step, logits)


def main() -> Beam:
    uniform = jnp.full(ELEMENTS, HEIGHT)
    taper = HEIGHT * jnp.linspace(1, -1, ELEMENTS)
    slope = jax.jit(jax.grad(lambda h: frequencies(h)[0]))(uniform) @ taper
    lowest = jax.jit(frequencies)
    step = 1e-4
    difference = (lowest(uniform + step * taper) - lowest(uniform - step * taper))[0] / (2 * step)
    heights = shape(improve(jnp.zeros(ELEMENTS)))
    exact = CLAMPED_FREE**2 * HEIGHT / np.sqrt(12)
    return Beam(lowest(uniform), exact, slope, difference, lowest(heights), heights)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    with lapax.installed():
        beam = main()
    print("frequencies of the uniform beam", *(f"{w:.6f}" for w in beam.frequencies))
    print("                          exact", *(f"{w:.6f}" for w in beam.exact))
    print(f"slope by the taper {beam.slope:.9f}, by a difference {beam.difference:.9f}")
    print("frequencies of the new shape   ", *(f"{w:.6f}" for w in beam.improved))
    print("its heights", *(f"{h / HEIGHT:.2f}" for h in beam.heights))
