"""Residual ratios of generalised Schur forms: A = Q·S·Zᴴ, B = Q·T·Zᴴ, and (β·A − α·B)·x = 0."""

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
    roundoff,
    scaled,
    unless,
    wide,
)
from lapax._checks.hessenberg import departure


def _inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, _: Attrs
) -> tuple[Array, ...]:
    shape = (*size.batch, size.n, size.n)
    return normal(rng, dtype, shape), normal(rng, dtype, shape)


def _ratios(args: tuple[Array, ...], _: Attrs, rets: list[Array]) -> Array:
    a, b = args
    s, t, q, z, alpha, beta = rets
    return np.maximum(_form(a, b, s, t, q, z), _values(s, t, alpha, beta))


def _form(a: Array, b: Array, s: Array, t: Array, q: Array, z: Array) -> Array:
    n = a.shape[-1]
    ratio = np.maximum(departure(wide(q), a), departure(wide(z), a))
    for x, form in ((a, s), (b, t)):
        error = wide(q) @ wide(form) @ adjoint(wide(z)) - wide(x)
        ratio = np.maximum(ratio, scaled(error, norm(wide(x)), n, a))
    below, beside = (np.diagonal(x, k, -2, -1) for x, k in ((s, -1), (t, 1)))
    diagonal = np.diagonal(t, 0, -2, -1)
    blocks = (below == 0) | ((beside == 0) & (a.dtype.kind != "c"))
    apart = (below[..., 1:] == 0) | (below[..., :-1] == 0)
    valid = np.all(np.tril(t, -1) == 0, axis=(-2, -1)) & np.all(np.tril(s, -2) == 0, axis=(-2, -1))
    valid &= blocks.all(-1) & apart.all(-1)
    valid &= np.all((diagonal.real >= 0) & (diagonal.imag == 0), axis=-1)
    return unless(valid, ratio)


def _values(s: Array, t: Array, alpha: Array, beta: Array) -> Array:
    """Whether det(β·S − α·T) is zero, as that of each diagonal block is, over roundings."""
    n = s.shape[-1]
    if n == 0:
        return np.zeros(s.shape[:-2])
    w, b = wide(alpha), wide(beta)
    size = np.maximum(np.abs(w) * norm(wide(t))[..., None], b * norm(wide(s))[..., None])
    pencil = b[..., None, None] * wide(s)[..., None, :, :]
    pencil = (pencil - w[..., None, None] * wide(t)[..., None, :, :]) / size[..., None, None]
    return np.asarray(np.max(_smallest(pencil), axis=-1) / (n * roundoff(s)))


def _smallest(a: Array) -> Array:
    """The smallest singular value of each matrix; NaN where it is not finite, which svd refuses."""
    finite = np.isfinite(a).all((-2, -1))
    values = np.linalg.svd(np.where(finite[..., None, None], a, 0), compute_uv=False)[..., -1]
    return np.where(finite, values, np.nan)


def _form_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, _: Attrs
) -> tuple[Array, ...]:
    """A pair in Schur form whose eigenvalues are well conditioned; a real one ends with a pair."""
    n = size.n
    eye = np.eye(n)
    s, t = (np.triu(normal(rng, dtype, (*size.batch, n, n))) for _ in range(2))
    s, t = (x * (eye + (1 - eye) / max(n, 1)) for x in (s, t))
    t = t * (1 - eye) + eye * (1 + np.abs(np.diagonal(t, 0, -2, -1)[..., None]))
    if dtype.kind == "f" and n > 1:
        s[..., -1, -2], s[..., -2, -1] = 2, -2
        s[..., -1, -1] = s[..., -2, -2]
        t[..., -1, -1] = t[..., -2, -2]
        t[..., -2, -1] = 0
    return s.astype(dtype), t.astype(dtype)


def _reorder_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, attrs: Attrs
) -> tuple[Array, ...]:
    s, t = _form_inputs(rng, dtype, size, attrs)
    q, z = (np.linalg.qr(normal(rng, dtype, s.shape))[0].astype(dtype) for _ in range(2))
    chosen = rng.integers(0, 2, s.shape[:-1]).astype(np.int32)
    return s, t, q, z, chosen


def _reorder_ratios(args: tuple[Array, ...], _: Attrs, rets: list[Array]) -> Array:
    s, t, q, z = map(wide, args[:4])
    like, chosen = args[0].dtype, args[4] != 0
    a, b = (q @ x @ adjoint(z) for x in (s, t))
    form = _form(a.astype(like), b.astype(like), *rets[:4])
    alpha = np.diagonal(s, 0, -2, -1).astype(np.complex128)
    if like.kind == "f" and s.shape[-1] > 1:
        alpha[..., -2:] += [2j, -2j]
        chosen[..., -2:] = chosen[..., -2:].any(-1, keepdims=True)
    order = np.argsort(~chosen, axis=-1, kind="stable")
    expected = np.take_along_axis(alpha / np.diagonal(t, 0, -2, -1), order, -1)
    # Of eigenvalues with condition numbers near one: an exchange that is left out is far more.
    apart = np.abs(wide(rets[4]) / wide(rets[5]) - expected) / (1 + np.abs(expected) ** 2)
    moved = np.all(apart < 1e4 * roundoff(args[0]), axis=-1)
    return unless(moved, np.maximum(form, _values(*rets[:2], *rets[4:])))


def _vector_ratios(args: tuple[Array, ...], attrs: Attrs, rets: list[Array]) -> Array:
    s, t = args
    n, x = s.shape[-1], wide(rets[0])
    if n == 0:
        return np.zeros(s.shape[:-2])
    if attrs["left"]:
        s, t = adjoint(s), adjoint(t)
    # The α and β for which the residual is least: the direction of (xᴴ·T, xᴴ·S) in the image.
    of_s, of_t = wide(s) @ x, wide(t) @ x
    both = np.stack([of_s, of_t], -1).swapaxes(-3, -2)
    smallest = _smallest(both) if n > 1 else np.zeros(x.shape[:-1])
    length = np.linalg.norm(x, axis=-2) * (norm(wide(s)) + norm(wide(t)))[..., None]
    largest = np.max(np.abs(x.real) + np.abs(x.imag), axis=-2)
    one = np.all(np.abs(largest - 1) < 8 * roundoff(args[0]), axis=-1)
    return unless(one, np.max(smallest / length, axis=-1) / (n * roundoff(args[0])))


CHECKS = {
    # Golub and Van Loan, Matrix Computations, section 7.7: with both factors.
    "generalised_schur": Check(_inputs, _ratios, lambda size, attrs: 66 * size.n**3),
    "reorder_generalised_schur": Check(
        _reorder_inputs, _reorder_ratios, lambda size, attrs: 12 * size.n**3
    ),
    "generalised_eigenvectors": Check(
        _form_inputs, _vector_ratios, lambda size, attrs: 4 * size.n**3 / 3
    ),
}
