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


# triangular_sylvester: R·Y ± Y·S = F, whose diagonals are apart.


def _triangular(
    rng: np.random.Generator, dtype: np.dtype[Any], batch: tuple[int, ...], n: int, sign: int
) -> Array:
    """Upper triangular, with numbers of about 2 or -2 on its diagonal."""
    a = np.triu(normal(rng, dtype, (*batch, n, n)), 1) / max(n, 1) ** 0.5
    return np.asarray(a + np.eye(n) * sign * rng.uniform(1, 3, n)).astype(dtype)


def _sylvester_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, attrs: Attrs
) -> tuple[Array, ...]:
    r = _triangular(rng, dtype, size.batch, size.m, 1)
    s = _triangular(rng, dtype, size.batch, size.n, -1 if attrs["minus"] else 1)
    return r, s, normal(rng, dtype, (*size.batch, size.m, size.n))


def _sylvester_ratios(args: tuple[Array, ...], attrs: Attrs, rets: list[Array]) -> Array:
    (r, s, f), y = map(wide, args), wide(rets[0])
    error = r @ y + (-1 if attrs["minus"] else 1) * y @ s - f
    return scaled(error, (norm(r) + norm(s)) * norm(y), max(f.shape[-2:]), args[0])


# triangular_sqrtm: R² = T.


def _root_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, _: Attrs
) -> tuple[Array, ...]:
    return (_triangular(rng, dtype, size.batch, size.n, 1),)


def _root_ratios(args: tuple[Array, ...], _: Attrs, rets: list[Array]) -> Array:
    t, r = wide(args[0]), wide(rets[0])
    return scaled(r @ r - t, norm(r) ** 2, t.shape[-1], args[0])


# triangular_parlett: X·T = T·X, with G's diagonal.


def _parlett_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, _: Attrs
) -> tuple[Array, ...]:
    t = _triangular(rng, dtype, size.batch, size.n, 1)
    w = np.diagonal(t, axis1=-2, axis2=-1)
    x, y = w[..., :, None], w[..., None, :]
    equal = np.eye(size.n, dtype=bool)
    differences = (np.exp(x) - np.exp(y)) / np.where(equal, 1, x - y)
    g = np.where(equal, np.exp(x), differences)
    below = np.tri(size.n, k=-1, dtype=bool)
    return tuple(np.where(below, np.nan, a).astype(dtype) for a in (t, g))


def _parlett_ratios(args: tuple[Array, ...], _: Attrs, rets: list[Array]) -> Array:
    (t, g), x = map(np.triu, map(wide, args)), wide(rets[0])
    diagonal = (x - g) * np.eye(t.shape[-1]) * norm(t)[..., None, None]
    return scaled(x @ t - t @ x + diagonal, norm(x) * norm(t), t.shape[-1], args[0])


CHECKS = {
    "expm": Check(_inputs, _ratios, lambda size, attrs: 16 * size.n**3),
    "triangular_sylvester": Check(
        _sylvester_inputs,
        _sylvester_ratios,
        lambda size, attrs: size.m * size.n * (size.m + size.n),
        rectangular=True,
    ),
    "triangular_sqrtm": Check(_root_inputs, _root_ratios, lambda size, attrs: size.n**3 / 3),
    "triangular_parlett": Check(
        _parlett_inputs, _parlett_ratios, lambda size, attrs: 2 * size.n**3 / 3
    ),
}
