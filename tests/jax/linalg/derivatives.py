"""Derivatives of a function of arrays, of two orders and both modes, from one compiled program."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np


def check_derivatives(
    f: Callable[..., jax.Array],
    *arrays: np.ndarray,
    directions: tuple[np.ndarray, ...] | None = None,
    second: bool = True,
    step: float = 1e-3,
    limit: float = 1e-6,
) -> None:
    """Compares with central differences in double precision, along random directions.

    With y' = jvp along v: y' and, where `second`, the derivative of ⟨c, y'⟩ along v by jvp of vjp
    are those of differences of fourth order; ⟨c, y'⟩ = ⟨vjp(c), v⟩.
    """
    rng = np.random.default_rng(17)
    if directions is None:
        directions = tuple(_like(rng, np.asarray(x)) for x in arrays)
    f = jax.jit(f)
    samples = {
        k: np.asarray(f(*(x + k * step * v for x, v in zip(arrays, directions, strict=True))))
        for k in (-2, -1, 0, 1, 2)
    }
    c = _like(rng, samples[0])

    @jax.jit
    def derivatives(arrays, directions, c):
        y_dot = jax.jvp(f, arrays, directions)[1]

        def slope(*arrays):
            return _inner(jax.vjp(f, *arrays)[1](c), directions)

        curvature = jax.jvp(slope, arrays, directions)[1] if second else jnp.zeros(())
        return y_dot, slope(*arrays), curvature

    y_dot, slope, curvature = derivatives(arrays, directions, c)
    first = (8 * (samples[1] - samples[-1]) - (samples[2] - samples[-2])) / (12 * step)
    _near(y_dot, first, limit, "jvp")
    _near(slope, _inner([c], [y_dot]), 1e-9, "vjp", scale=np.abs(c * y_dot).sum())
    if second:
        outer, inner = samples[2] + samples[-2], samples[1] + samples[-1]
        change = (16 * inner - outer - 30 * samples[0]) / (12 * step**2)
        scale = np.abs(c * change).sum()
        _near(curvature, _inner([c], [change]), 1e2 * limit, "jvp of vjp", scale=scale)


def _like(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    v = rng.standard_normal(x.shape)
    return v + 1j * rng.standard_normal(x.shape) if np.iscomplexobj(x) else v


def _inner(xs, ys):
    return sum(jnp.real(jnp.sum(x * y)) for x, y in zip(xs, ys, strict=True))


def _near(x, y, limit: float, what: str, scale: float | None = None) -> None:
    scale = np.max(np.abs(y)) if scale is None else scale
    error = np.max(np.abs(np.asarray(x) - np.asarray(y))) / scale
    assert error < limit, f"{what}: {error:.1e}"
