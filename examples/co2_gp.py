"""Gaussian-process regression of the Mauna Loa CO₂ record, on stock JAX and on lapax.

The covariance is that of Rasmussen and Williams, Gaussian Processes for Machine Learning, §5.4.3:
long-term trend + seasonal cycle that changes slowly + irregularities of a few years + correlated
noise + white noise. Its eleven hyper-parameters maximise the marginal likelihood of the record up
to 1997, by Adam from several starting points at once; 1998 to 2001 are held out. Every step factors
one matrix per starting point by `jnp.linalg.cholesky` and differentiates through the factors.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from jax.scipy.linalg import cho_solve
from statsmodels.datasets import co2

from side_by_side import (
    COLOURS,
    ENGINES,
    Pair,
    Row,
    largest_difference,
    output_folder,
    progress,
    table,
)

HELD_OUT_FROM = 1998.0
FORECAST_UNTIL = 2012.0
STARTS = 3
STEPS = 60
LEARNING_RATE = 0.1

# Name and starting value of each hyper-parameter; ppm and years. All are positive: their logarithms
# are what is optimised.
START = {
    "trend": 50.0,
    "trend_years": 50.0,
    "season": 2.0,
    "season_years": 100.0,
    "season_shape": 1.0,
    "medium": 1.0,
    "medium_years": 1.0,
    "medium_shape": 1.0,
    "short": 0.2,
    "short_years": 0.1,
    "noise": 0.2,
}


def covariance(log_theta: jax.Array, lag: jax.Array) -> jax.Array:
    """k(lag) without the white noise; `lag` in years."""
    t = dict(zip(START, jnp.exp(log_theta), strict=True))
    square = lag**2
    trend = jnp.exp(-square / (2 * t["trend_years"] ** 2))
    season = jnp.exp(
        -square / (2 * t["season_years"] ** 2)
        - 2 * jnp.sin(jnp.pi * lag) ** 2 / t["season_shape"] ** 2
    )
    medium = (1 + square / (2 * t["medium_shape"] * t["medium_years"] ** 2)) ** -t["medium_shape"]
    short = jnp.exp(-square / (2 * t["short_years"] ** 2))
    return (
        t["trend"] ** 2 * trend
        + t["season"] ** 2 * season
        + t["medium"] ** 2 * medium
        + t["short"] ** 2 * short
    )


def noise_variance(log_theta: jax.Array) -> jax.Array:
    return jnp.exp(2 * log_theta[list(START).index("noise")])


def negative_log_likelihood(log_theta: jax.Array, when: jax.Array, y: jax.Array) -> jax.Array:
    """−log p(y) = ½ yᵀ K⁻¹ y + ½ log det K + ½ n log 2π with K = L·Lᵀ."""
    n = y.size
    k = covariance(log_theta, when[:, None] - when) + noise_variance(log_theta) * jnp.eye(n)
    factor = jnp.linalg.cholesky(k)
    alpha = cho_solve((factor, True), y)
    return y @ alpha / 2 + jnp.sum(jnp.log(jnp.diag(factor))) + n / 2 * jnp.log(2 * jnp.pi)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """Adam's state for a batch of starting points."""

    log_theta: jax.Array
    mean: jax.Array
    square: jax.Array
    step: jax.Array


def adam_step(state: State, when: jax.Array, y: jax.Array) -> tuple[State, jax.Array]:
    """One step of Adam for every starting point; also the likelihoods before the step."""
    objective = jax.vmap(jax.value_and_grad(negative_log_likelihood), (0, None, None))
    loss, gradient = objective(state.log_theta, when, y)
    step = state.step + 1
    mean = 0.9 * state.mean + 0.1 * gradient
    square = 0.99 * state.square + 0.01 * gradient**2
    rate = LEARNING_RATE * (1 - step / (STEPS + 1))
    direction = mean / (1 - 0.9**step) / (jnp.sqrt(square / (1 - 0.99**step)) + 1e-8)
    return State(state.log_theta - rate * direction, mean, square, step), -loss


def forecast(
    log_theta: jax.Array, when: jax.Array, y: jax.Array, at: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Mean and standard deviation of the observations at the times `at`."""
    k = covariance(log_theta, when[:, None] - when) + noise_variance(log_theta) * jnp.eye(y.size)
    cross = covariance(log_theta, at[:, None] - when)
    solved = jnp.linalg.solve(k, jnp.column_stack((y, cross.T)))
    prior = covariance(log_theta, jnp.zeros(())) + noise_variance(log_theta)
    variance = prior - jnp.sum(cross * solved[:, 1:].T, axis=1)
    return cross @ solved[:, 0], jnp.sqrt(variance)


def monthly_record() -> tuple[np.ndarray, np.ndarray]:
    """Times in years (mid-month) and monthly means in ppm; months without a week are dropped."""
    weekly = co2.load_pandas().data["co2"]
    monthly = weekly.resample("MS").mean().dropna()
    return np.asarray(monthly.index.year + (monthly.index.month - 0.5) / 12), monthly.to_numpy()


def main() -> list[Row]:
    jax.config.update("jax_enable_x64", True)
    when, ppm = monthly_record()
    seen = when < HELD_OUT_FROM
    level = ppm[seen].mean()
    years, y = jnp.asarray(when[seen]), jnp.asarray(ppm[seen] - level)

    log_start = np.log(list(START.values()))
    spread = np.random.default_rng(0).normal(scale=0.3, size=(STARTS, log_start.size))
    spread[0] = 0
    log_theta = jnp.asarray(log_start + spread)
    zero = jnp.zeros_like(log_theta)
    states = dict.fromkeys(ENGINES, State(log_theta, zero, zero, jnp.zeros(())))

    progress("CO₂: compiling the training step")
    fit = Pair(adam_step, states[ENGINES[0]], years, y)
    likelihood = {}
    for step in range(1, STEPS + 1):
        for engine in ENGINES:
            states[engine], likelihood[engine] = fit.run(engine, states[engine], years, y)
        reached = ", ".join(f"{e} {np.nanmax(likelihood[e]):.2f}" for e in ENGINES)
        progress(f"CO₂: step {step}/{STEPS}, log likelihood {reached}", last=step == STEPS)

    best = int(np.nanargmax(likelihood[ENGINES[0]]))
    at = jnp.asarray(np.concatenate((when, np.arange(when[-1] + 1 / 12, FORECAST_UNTIL, 1 / 12))))
    predict = Pair(forecast, states[ENGINES[0]].log_theta[best], years, y, at)
    predictions = {}
    for repeat in range(7):
        for engine in ENGINES:
            predictions[engine] = predict.run(engine, states[engine].log_theta[best], years, y, at)
        progress(f"CO₂: forecast {repeat + 1}/7", last=repeat == 6)

    held = np.flatnonzero(~seen)
    mean, deviation = (np.asarray(x) for x in predictions["lapax"])
    error = mean[held] + level - ppm[held]
    rmse = float(np.sqrt(np.mean(error**2)))
    inside = float(np.mean(np.abs(error) < 1.96 * deviation[held]))
    print(
        f"CO₂: {y.size} months to learn from, {held.size} held out: "
        f"RMSE {rmse:.2f} ppm, {inside:.0%} inside the 95 % band"
    )
    apart = largest_difference(*(likelihood[engine][best] for engine in ENGINES))
    n = y.size
    rows = [
        Row.of(
            f"CO₂: training step, {STARTS} × ({n}×{n}), f64", fit, f"{apart:.1e} in log likelihood"
        ),
        Row.of(
            f"CO₂: forecast, {n}×{n} with {at.size + 1} columns, f64",
            predict,
            f"{largest_difference(*predictions.values()):.1e} ppm",
        ),
    ]
    draw(when, ppm, np.asarray(at), mean + level, deviation, rmse, fit)
    return rows


def draw(
    when: np.ndarray,
    ppm: np.ndarray,
    at: np.ndarray,
    mean: np.ndarray,
    deviation: np.ndarray,
    rmse: float,
    fit: Pair,
) -> None:
    """The record, the forecast, its error in the years held out, and the times of the steps."""
    figure, axes = plt.subplot_mosaic(
        [["record", "record"], ["held", "times"]],
        figsize=(11, 7.5),
        height_ratios=(3, 2),
        width_ratios=(2, 1),
        layout="constrained",
    )
    seen, later = when < HELD_OUT_FROM, at >= HELD_OUT_FROM
    last = when[-1]
    for panel in (axes["record"], axes["held"]):
        panel.fill_between(
            at[later],
            (mean - 1.96 * deviation)[later],
            (mean + 1.96 * deviation)[later],
            color="#c8553d",
            alpha=0.25,
            linewidth=0,
            label="95 % band",
        )
        panel.plot(at[later], mean[later], color="#c8553d", linewidth=1.2, label="forecast")
        panel.plot(when[seen], ppm[seen], ".", color="#2b2d42", markersize=3, label="learnt from")
        panel.plot(when[~seen], ppm[~seen], ".", color="#2a9d8f", markersize=5, label="held out")
        panel.set_ylabel("CO₂, ppm")
        panel.spines[["top", "right"]].set_visible(False)
    axes["record"].axvline(HELD_OUT_FROM, color="black", linewidth=0.6, linestyle=":")
    axes["record"].legend(frameon=False, loc="upper left")
    axes["record"].set_title("Mauna Loa CO₂: Gaussian process with its gradient through Cholesky")
    axes["held"].set_xlim(HELD_OUT_FROM - 2, last + 0.5)
    window = (at > HELD_OUT_FROM - 2) & (at < last + 0.5)
    axes["held"].set_ylim(mean[window].min() - 5, mean[window].max() + 5)
    axes["held"].set_title(f"Held out: root mean square error {rmse:.2f} ppm", fontsize=11)
    box = axes["times"].boxplot(
        [np.array(fit.seconds[engine]) * 1e3 for engine in ENGINES],
        tick_labels=list(ENGINES),
        widths=0.6,
        showfliers=False,
        patch_artist=True,
        medianprops={"color": "black"},
    )
    for patch, engine in zip(box["boxes"], ENGINES, strict=True):
        patch.set_facecolor(COLOURS[engine])
    axes["times"].set_ylim(bottom=0)
    axes["times"].set_ylabel("ms")
    axes["times"].set_title("Time of a training step", fontsize=11)
    axes["times"].spines[["top", "right"]].set_visible(False)
    path = output_folder() / "co2_gp.png"
    figure.savefig(path, dpi=130)
    plt.close(figure)
    print(f"CO₂: wrote {path.name} in {path.parent.name}/")


if __name__ == "__main__":
    print(table(main()))
