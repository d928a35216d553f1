"""Errors of functions of matrices: see the comment of each op for its equation."""

from __future__ import annotations

from typing import Any

import numpy as np

from lapax._checks.equations import Array, Attrs, Check, Size, norm, normal, scaled, wide

# expm: X = exp(A), against a sum of Aᵏ/k! of more terms than any approximant's.


def _inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, _: Attrs
) -> tuple[Array, ...]:
    n = size.n
    a = normal(rng, np.dtype(np.result_type(dtype, np.float64)), (*size.batch, n, n))
    return ((a / max(n, 1) ** 0.5).astype(dtype),)


def _exponential(a: Array) -> Array:
    """Σ Bᵏ/k! of B = A/2ˢ, squared s times, with ‖B‖ < 1/2."""
    largest = float(np.max(norm(a), initial=0.5))
    halvings = int(np.ceil(np.log2(2 * largest)))
    b = a / 2.0**halvings
    total = term = np.broadcast_to(np.eye(a.shape[-1]), a.shape)
    for k in range(1, 20):
        term = term @ b / k
        total = total + term
    for _ in range(halvings):
        total = total @ total
    return np.asarray(total)


def _ratios(args: tuple[Array, ...], _: Attrs, rets: list[Array]) -> Array:
    (a,), (x,) = args, rets
    exact = _exponential(wide(a))
    scale = norm(exact) * np.maximum(norm(a), 1)
    return scaled(wide(x) - exact, scale, a.shape[-1], a)


CHECKS = {"expm": Check(_inputs, _ratios, lambda size, attrs: 16 * size.n**3)}
