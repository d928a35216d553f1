"""A Kalman smoother as one block-tridiagonal solve, and its likelihood's gradient.

A point moves in the plane with nearly constant velocity, and its noisy positions are seen:
x[t + 1] = F·x[t] + N(0, q²·Q), y[t] = H·x[t] + N(0, r²). Given all y, the states are normal with a
precision A of 4×4 blocks on and beside the diagonal, so that their means are A⁻¹·b, their
covariances the blocks of A⁻¹, and ln p(y) follows from ln det(A): Rue and Held, Gaussian Markov
Random Fields, 2005, §2. The classic way, which this is compared with, is Kalman's filter and the
recursion of Rauch, Tung and Striebel, one `jax.lax.scan` forwards and one backwards.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lapax import linalg

STEP = 0.1
F = np.kron(np.eye(2), [[1, STEP], [0, 1]])
H = np.kron(np.eye(2), [[1, 0]])
Q = np.kron(np.eye(2), [[STEP**3 / 3, STEP**2 / 2], [STEP**2 / 2, STEP]])
START = np.eye(4) * 10
"""The covariance of the first state, whose mean is zero."""


class Smoothed(NamedTuple):
    """Means and covariances of the states given all observations, and ln p(y)."""

    means: jax.Array
    covariances: jax.Array
    log_likelihood: jax.Array


def simulate(steps: int, q: float = 0.5, r: float = 0.3, seed: int = 0) -> np.ndarray:
    """Observations [steps, 2]."""
    rng = np.random.default_rng(seed)
    x, noise, seen = rng.multivariate_normal(np.zeros(4), START), np.linalg.cholesky(Q), []
    for _ in range(steps):
        seen.append(H @ x + r * rng.standard_normal(2))
        x = F @ x + q * noise @ rng.standard_normal(4)
    return np.array(seen)


def by_blocks(log_noise: jax.Array, y: jax.Array) -> Smoothed:
    """By the precision of all states, A, and b with A·E[x | y] = b."""
    q, r = jnp.exp(log_noise)
    steps, n = y.shape[0], F.shape[0]
    forward = jnp.linalg.inv(q**2 * Q)
    # −2·ln p(x, y) = |x[0]|² in START⁻¹ + Σ |x[t + 1] − F·x[t]|² in Q⁻¹ + Σ |y[t] − H·x[t]|² / r².
    diagonal = jnp.broadcast_to(H.T @ H / r**2, (steps, n, n))
    diagonal = diagonal.at[0].add(jnp.linalg.inv(START)).at[1:].add(forward)
    diagonal = diagonal.at[:-1].add(F.T @ forward @ F)
    off_diagonal = jnp.broadcast_to(-forward @ F, (steps - 1, n, n))
    b = y @ H / r**2
    means, logdet = linalg.block_tridiagonal_solve(diagonal, off_diagonal, b, return_logdet=True)
    covariances, _ = linalg.block_tridiagonal_inverse(diagonal, off_diagonal)
    # ln p(y) = ln p(x, y) − ln p(x | y) at the means; yᵀy / r² − bᵀ·x would cancel.
    moved, missed = means[1:] - means[:-1] @ F.T, y - means @ H.T
    square = jnp.sum(missed**2) / r**2 + jnp.sum((moved @ forward) * moved)
    square += means[0] @ jnp.linalg.solve(START, means[0])
    prior = jnp.linalg.slogdet(START)[1] + (steps - 1) * jnp.linalg.slogdet(q**2 * Q)[1]
    observed = y.size * jnp.log(2 * jnp.pi * r**2)
    return Smoothed(means, covariances, -(square + prior + logdet + observed) / 2)


def by_recursion(log_noise: jax.Array, y: jax.Array) -> Smoothed:
    """By Kalman's filter and the smoother of Rauch, Tung and Striebel."""
    q, r = jnp.exp(log_noise)

    def predict(mean: jax.Array, p: jax.Array) -> tuple[jax.Array, jax.Array]:
        return F @ mean, F @ p @ F.T + q**2 * Q

    def update(predicted: Any, y: jax.Array) -> Any:
        mean, p = predicted
        s, miss = H @ p @ H.T + r**2 * jnp.eye(2), y - H @ mean
        gain = jnp.linalg.solve(s, H @ p).T
        logp = jax.scipy.stats.multivariate_normal.logpdf(miss, jnp.zeros(2), s)
        filtered = mean + gain @ miss, p - gain @ s @ gain.T
        return predict(*filtered), (filtered, logp)

    first = (jnp.zeros(4), jnp.asarray(START))
    (means, covariances), logp = jax.lax.scan(update, first, y)[1]

    def smooth(later: Any, filtered: Any) -> Any:
        (mean, p), (predicted, p_predicted) = filtered, predict(*filtered)
        gain = jnp.linalg.solve(p_predicted, F @ p).T
        mean = mean + gain @ (later[0] - predicted)
        p = p + gain @ (later[1] - p_predicted) @ gain.T
        return (mean, p), (mean, p)

    last = (means[-1], covariances[-1])
    rest = jax.lax.scan(smooth, last, (means[:-1], covariances[:-1]), reverse=True)[1]
    means, covariances = (jnp.concatenate([a, b[None]]) for a, b in zip(rest, last, strict=True))
    return Smoothed(means, covariances, jnp.sum(logp))


def likelihood(smoother: Callable[..., Smoothed]) -> Callable[..., Any]:
    """ln p(y) and its gradient for the logarithms of q and r."""
    return jax.jit(jax.value_and_grad(lambda log_noise, y: smoother(log_noise, y).log_likelihood))


def fit(y: jax.Array, steps: int = 100, rate: float = 0.1) -> jax.Array:
    """The logarithms of q and r, by a gradient of fixed length."""
    gradient = likelihood(by_blocks)
    log_noise = jnp.zeros(2)
    for step in range(steps):
        slope = gradient(log_noise, y)[1]
        log_noise = log_noise + rate * 0.97**step * slope / jnp.linalg.norm(slope)
    return log_noise


def milliseconds(function: Callable[..., Any], *args: Any, turns: int = 5) -> float:
    times = []
    for _ in range(turns + 1):
        start = time.perf_counter()
        jax.block_until_ready(function(*args))
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times[1:])


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    y, log_noise = jnp.asarray(simulate(5000)), jnp.log(jnp.array([0.5, 0.3]))
    rows = {}
    for name, smoother in {"blocks": by_blocks, "scan": by_recursion}.items():
        smooth, gradient = jax.jit(smoother), likelihood(smoother)
        times = milliseconds(smooth, log_noise, y), milliseconds(gradient, log_noise, y)
        rows[name] = smooth(log_noise, y), gradient(log_noise, y)[1]
        print(f"{name:>6}: smoother {times[0]:.1f} ms, likelihood and gradient {times[1]:.1f} ms")
    for name, a, b in zip(
        (*Smoothed._fields, "gradient"),
        *((*smoothed, slope) for smoothed, slope in rows.values()),
        strict=True,
    ):
        print(f"{name}: differ by {jnp.max(jnp.abs(a - b)) / jnp.max(jnp.abs(b)):.1e}")
    q, r = jnp.exp(fit(y))
    print(f"the likelihood is largest at q = {q:.3f}, r = {r:.3f}; simulated with 0.5 and 0.3")


if __name__ == "__main__":
    main()
