"""Hyper-parameters of a Gaussian process by solution and log-determinant from one factor.

The likelihood of n observations needs yᵀ·A⁻¹·y and log det A of the covariance A, its gradient
A⁻¹·y and A⁻¹: `lapax.linalg.solve_logdet` gives all of them from one Cholesky factor. Without
noise A is singular in floating-point arithmetic; the retry with jitter says what was added.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import lapax
from lapax import linalg

POINTS = 80
TRUTH = {"length": 0.15, "amplitude": 1.5, "noise": 0.1}
STEPS = 200
RATE = 0.05


class Fit(NamedTuple):
    """What `main` found."""

    parameters: dict[str, jax.Array]
    likelihoods: jax.Array
    """The logarithm after each step, per observation."""
    slope: jax.Array
    """Of the likelihood at the start, along a random direction, by the gradient."""
    difference: jax.Array
    """The same by a central difference."""
    error: jax.Array
    """Of the prediction, the root mean square against the function without noise."""
    deviation: jax.Array
    """What the process says of it: the root mean square of its standard deviation."""
    jitter: jax.Array
    """What the covariance without noise needed to have a factor."""


def kernel(parameters: dict[str, jax.Array], x: jax.Array, y: jax.Array) -> jax.Array:
    """σ²·exp(−|x − y|²/(2·l²))."""
    distance = (x[:, None] - y) / parameters["length"]
    return parameters["amplitude"] ** 2 * jnp.exp(-(distance**2) / 2)


def covariance(parameters: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    noise = parameters["noise"] ** 2 * jnp.eye(x.size)
    return kernel(parameters, x, x) + noise


def log_likelihood(logarithms: dict[str, jax.Array], x: jax.Array, y: jax.Array) -> jax.Array:
    """Of the parameters' logarithms, per observation."""
    parameters = jax.tree.map(jnp.exp, logarithms)
    r = linalg.solve_logdet(covariance(parameters, x), y)
    return -(r.quadratic + r.logdet) / (2 * x.size) - jnp.log(2 * jnp.pi) / 2


@jax.jit
def fit(start: dict[str, jax.Array], x: jax.Array, y: jax.Array) -> tuple[dict, jax.Array]:
    """Adam's ascent."""

    def step(state: tuple[dict, dict, dict], k: jax.Array) -> tuple[tuple, jax.Array]:
        logarithms, mean, square = state
        value, gradient = jax.value_and_grad(log_likelihood)(logarithms, x, y)
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradient)
        square = jax.tree.map(lambda s, g: 0.999 * s + 0.001 * g**2, square, gradient)
        logarithms = jax.tree.map(
            lambda p, m, s: p + RATE * (m / (1 - 0.9**k)) / (jnp.sqrt(s / (1 - 0.999**k)) + 1e-8),
            logarithms,
            mean,
            square,
        )
        return (logarithms, mean, square), value

    zero = jax.tree.map(jnp.zeros_like, start)
    (found, _, _), values = jax.lax.scan(step, (start, zero, zero), 1.0 + jnp.arange(STEPS))
    return found, values


def predict(
    parameters: dict[str, jax.Array], x: jax.Array, y: jax.Array, at: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Mean and standard deviation of the process at other points."""
    cross = kernel(parameters, x, at)
    r = linalg.solve_logdet(covariance(parameters, x), cross)
    variance = parameters["amplitude"] ** 2 - r.quadratic
    return y @ r.solution, jnp.sqrt(variance)


def observations() -> tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]:
    """Points, noisy values, other points, the function there, and the jitter it needed."""
    rng = np.random.default_rng(0)
    x, at = np.sort(rng.uniform(0, 1, POINTS)), np.linspace(0.05, 0.95, 50)
    truth = {name: jnp.asarray(value) for name, value in TRUTH.items()}
    everywhere = jnp.concatenate([jnp.asarray(x), jnp.asarray(at)])
    smooth = kernel(truth, everywhere, everywhere)
    factor, jitter = jax.jit(
        lambda a: linalg.solve_logdet(a, jnp.zeros(len(a)), jitter=1e-14)[-2:]
    )(smooth)
    values = factor @ rng.standard_normal(everywhere.size)
    y = values[:POINTS] + TRUTH["noise"] * rng.standard_normal(POINTS)
    return jnp.asarray(x), y, jnp.asarray(at), values[POINTS:], jitter


def main() -> Fit:
    x, y, at, function, jitter = observations()
    start = {
        name: jnp.asarray(value)
        for name, value in {"length": 0.0, "amplitude": 0.0, "noise": 0.0}.items()
    }
    value = jax.jit(log_likelihood)
    direction = {"length": 0.5, "amplitude": -0.3, "noise": 1.0}
    gradient = jax.jit(jax.grad(log_likelihood))(start, x, y)
    slope = sum(gradient[name] * direction[name] for name in start)
    ends = [
        value({name: start[name] + h * direction[name] for name in start}, x, y)
        for h in (1e-4, -1e-4)
    ]
    found, values = fit(start, x, y)
    parameters = jax.tree.map(jnp.exp, found)
    mean, deviation = jax.jit(predict)(parameters, x, y, at)
    error = jnp.sqrt(jnp.mean((mean - function) ** 2))
    told = jnp.sqrt(jnp.mean(deviation**2))
    return Fit(parameters, values, slope, (ends[0] - ends[1]) / 2e-4, error, told, jitter)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    with lapax.installed():
        result = main()
    for name, value in result.parameters.items():
        print(f"{name}: {value:.4f}, of the process {TRUTH[name]}")
    first, last = result.likelihoods[0], result.likelihoods[-1]
    print(f"log-likelihood per observation: {first:.4f} to {last:.4f}")
    print(f"its slope: {result.slope:.9f}, by a difference {result.difference:.9f}")
    print(f"prediction: error {result.error:.4f}, its own deviation {result.deviation:.4f}")
    print(f"jitter of the process without noise: {result.jitter:.1e}")
