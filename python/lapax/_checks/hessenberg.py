"""Residual ratios of Hessenberg forms: A = Q·H·Qᴴ, Q the product of the stored reflectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from lapax._checks.equations import (
    Array,
    Attrs,
    Check,
    Size,
    adjoint,
    norm,
    normal,
    scaled,
    unless,
    wide,
)


def square(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, _: Attrs
) -> tuple[Array, ...]:
    """A matrix of independent normal entries."""
    return (normal(rng, dtype, (*size.batch, size.n, size.n)),)


def departure(q: Array, like: Array) -> Array:
    """‖Qᴴ·Q − I‖ / (n·u)."""
    n = q.shape[-1]
    return scaled(adjoint(q) @ q - np.eye(n), np.ones(q.shape[:-2]), n, like)


def _gehrd_ratios(args: tuple[Array, ...], _: Attrs, rets: list[Array]) -> Array:
    (a,), (packed, tau, info) = args, rets
    n = a.shape[-1]
    h = np.triu(wide(packed), -1)
    q = np.broadcast_to(np.eye(n, dtype=h.dtype), h.shape)
    for k in reversed(range(tau.shape[-1])):
        v = np.where(np.arange(n) > k + 1, wide(packed)[..., :, k], 0) + np.eye(n)[k + 1]
        product = v.conj()[..., None, :] @ q
        q = q - wide(tau)[..., k, None, None] * v[..., :, None] * product
    error = scaled(q @ h @ adjoint(q) - wide(a), norm(wide(a)), n, a)
    return unless(info == 0, np.maximum(error, departure(q, a)))


def _hess_ratios(args: tuple[Array, ...], _: Attrs, rets: list[Array]) -> Array:
    (a,), (h, q) = args, rets
    n = a.shape[-1]
    form = np.all(np.tril(h, -2) == 0, axis=(-2, -1))
    error = scaled(wide(q) @ wide(h) @ adjoint(wide(q)) - wide(a), norm(wide(a)), n, a)
    return unless(form, np.maximum(error, departure(wide(q), a)))


CHECKS = {
    "gehrd": Check(
        square,
        _gehrd_ratios,
        lambda size, attrs: 10 * size.n**3 / 3,
        attrs=lambda size: {"low": np.int32(1), "high": np.int32(size.n)},
    ),
    "hess": Check(square, _hess_ratios, lambda size, attrs: 14 * size.n**3 / 3),
}
