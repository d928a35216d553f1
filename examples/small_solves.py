"""86,268 systems of three equations and their gradient in f32, on stock JAX and on lapax.

The computation of jax#36927: normal matrices A = X·Xᵀ + 0.01·I with one right-hand side each.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from side_by_side import COLOURS, ENGINES, Pair, Row, output_folder, progress, table

COUNT = 182 * 474
ROUNDS = 25


def systems() -> tuple[jax.Array, jax.Array]:
    """A f32[86268, 3, 3] and b f32[86268, 3, 1]."""
    key_a, key_b = jax.random.split(jax.random.key(0))
    x = jax.random.normal(key_a, (COUNT, 3, 3), jnp.float32)
    a = x @ x.mT + jnp.float32(0.01) * jnp.eye(3, dtype=jnp.float32)
    return a, jax.random.normal(key_b, (COUNT, 3, 1), jnp.float32)


def total(a: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.sum(jnp.linalg.solve(a, b))


def backward_error(a: jax.Array, b: jax.Array, x: jax.Array) -> np.ndarray:
    """‖b − A·x‖∞ / (‖A‖∞‖x‖∞ + ‖b‖∞) of each system, in double precision and in units of ε."""
    aw, bw, xw = (np.asarray(operand, np.float64) for operand in (a, b, x))
    norms = np.abs(aw).sum(-1).max(-1) * np.abs(xw).max((-2, -1)) + np.abs(bw).max((-2, -1))
    return np.asarray(np.abs(bw - aw @ xw).max((-2, -1)) / norms / np.finfo(np.float32).eps)


def relative_difference(one: jax.Array, other: jax.Array) -> float:
    """The largest ‖one − other‖∞ / ‖one‖∞ over the systems."""
    x, y = (np.asarray(each, np.float64).reshape(COUNT, -1) for each in (one, other))
    return float(np.max(np.abs(x - y).max(1) / np.abs(x).max(1)))


def main() -> list[Row]:
    a, b = systems()
    progress("3×3 solves: compiling")
    pairs = {
        "solve": Pair(jnp.linalg.solve, a, b),
        "gradient": Pair(jax.grad(total, (0, 1)), a, b),
    }
    results = {}
    for turn in range(1, ROUNDS + 1):
        for what, pair in pairs.items():
            for engine in ENGINES:
                results[what, engine] = pair.run(engine, a, b)
        progress(f"3×3 solves: round {turn}/{ROUNDS}", last=turn == ROUNDS)
    errors = {engine: backward_error(a, b, results["solve", engine]) for engine in ENGINES}
    worst = ", ".join(f"{engine} {errors[engine].max():.2f} ε" for engine in ENGINES)
    print(f"3×3 solves: largest backward error: {worst}")
    differences = {
        "solve": relative_difference(*(results["solve", engine] for engine in ENGINES)),
        "gradient": max(
            relative_difference(one, other)
            for one, other in zip(*(results["gradient", engine] for engine in ENGINES), strict=True)
        ),
    }
    draw(pairs, errors)
    return [
        Row.of(f"{COUNT:,} solves 3×3, f32: {what}", pair, f"{differences[what]:.1e} relative")
        for what, pair in pairs.items()
    ]


def draw(pairs: dict[str, Pair], errors: dict[str, np.ndarray]) -> None:
    """Times of both computations, and how exact either engine's solutions are."""
    figure, (times, exact) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for offset, engine in zip((-0.2, 0.2), ENGINES, strict=True):
        bars = times.bar(
            np.arange(len(pairs)) + offset,
            [pair.median(engine) * 1e3 for pair in pairs.values()],
            width=0.38,
            color=COLOURS[engine],
            label=engine,
        )
        times.bar_label(bars, fmt="%.1f ms", padding=2)
    times.margins(y=0.15)
    times.set_xticks(range(len(pairs)), list(pairs))
    times.set_ylabel("ms, median")
    times.set_title(f"{COUNT:,} systems of three equations, f32")
    times.legend(frameon=False)
    edges = np.linspace(0, max(error.max() for error in errors.values()), 60)
    for engine, error in errors.items():
        exact.hist(
            error, edges, histtype="step", color=COLOURS[engine], linewidth=1.6, label=engine
        )
    exact.set_yscale("log")
    exact.set_xlabel("backward error of a solution, ε")
    exact.set_ylabel("systems")
    exact.set_title("How exact the solutions are")
    exact.legend(frameon=False)
    for panel in (times, exact):
        panel.spines[["top", "right"]].set_visible(False)
    path = output_folder() / "small_solves.png"
    figure.savefig(path, dpi=130)
    plt.close(figure)
    print(f"3×3 solves: wrote {path.name} in {path.parent.name}/")


if __name__ == "__main__":
    print(table(main()))
