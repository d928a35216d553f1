"""Residual ratios of Hermitian eigenproblems: see the comment of each op for its equation."""

from __future__ import annotations

from typing import Any

import numpy as np

from lapax._checks.equations import (
    Array,
    Attrs,
    Check,
    Size,
    adjoint,
    code_is,
    keep,
    norm,
    normal,
    scaled,
    triangle,
    unless,
    wide,
)


def _inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, attrs: Attrs
) -> tuple[Array, ...]:
    g = normal(rng, dtype, (*size.batch, size.n, size.n))
    a = (g + adjoint(g)) / 2
    return (keep(a, triangle(a, lower=code_is(attrs, "uplo", "L"))).astype(dtype),)


def _whole(a: Array, attrs: Attrs) -> Array:
    """The Hermitian matrix whose named triangle is stored."""
    strict = triangle(a, lower=code_is(attrs, "uplo", "L"), strict=True)
    half = np.where(strict, wide(a), 0)
    diagonal = np.where(np.eye(a.shape[-1], dtype=bool), wide(a).real, 0)
    return np.asarray(half + adjoint(half) + diagonal)


# syevd, eigh: A·V = V·diag(w), VᴴV = I, w ascending; the values alone are those of another
# algorithm.


def _syevd_ratios(args: tuple[Array, ...], attrs: Attrs, rets: list[Array]) -> Array:
    v, w, info = rets
    alone = code_is(attrs, "mode", "N")
    ratios = _eigvalsh_ratios(args, attrs, [w]) if alone else _eigh_ratios(args, attrs, [v, w])
    return unless(info == 0, ratios)


def _eigh_ratios(args: tuple[Array, ...], attrs: Attrs, rets: list[Array]) -> Array:
    (a,), (v, w) = args, rets
    n, whole = a.shape[-1], _whole(args[0], attrs)
    sound = np.all(np.diff(w, axis=-1) >= 0, axis=-1)
    v, w = wide(v), wide(w)
    residual = scaled(whole @ v - v * w[..., None, :], norm(whole), n, a)
    orthogonality = scaled(adjoint(v) @ v - np.eye(n), np.ones(w.shape[:-1]), n, a)
    return unless(sound, np.maximum(residual, orthogonality))


def _eigh_subset_ratios(args: tuple[Array, ...], attrs: Attrs, rets: list[Array]) -> Array:
    return _part_ratios(_whole(args[0], attrs), int(attrs["start"]), args[0], rets)


def _part_ratios(whole: Array, start: int, like: Array, rets: list[Array]) -> Array:
    v, w = map(wide, rets)
    n, k = v.shape[-2:]
    beside = (w - np.linalg.eigvalsh(whole)[..., start : start + k])[..., None, :]
    residual = scaled(whole @ v - v * w[..., None, :], norm(whole), n, like)
    orthogonality = scaled(adjoint(v) @ v - np.eye(k), np.ones(w.shape[:-1]), n, like)
    ratios = [scaled(beside, norm(whole), n, like), residual, orthogonality]
    return np.asarray(np.max(np.stack(ratios), axis=0))


def _start(size: Size) -> dict[str, Any]:
    return {"start": np.int32(size.n // 3)}


def _third(size: Size, _: Attrs) -> dict[str, int]:
    return {"k": size.n - 2 * (size.n // 3)}


def _eigvalsh_ratios(args: tuple[Array, ...], attrs: Attrs, rets: list[Array]) -> Array:
    return _value_ratios(_whole(args[0], attrs), args[0], rets[0])


def _value_ratios(whole: Array, like: Array, w: Array) -> Array:
    sound = np.all(np.diff(w, axis=-1) >= 0, axis=-1)
    error = (wide(w) - np.linalg.eigvalsh(whole))[..., None, :]
    return unless(sound, scaled(error, norm(whole), w.shape[-1], like))


def _eigh_flops(size: Size, _: Attrs) -> float:
    return 9 * size.n**3


def _eigvalsh_flops(size: Size, _: Attrs) -> float:
    return 4 / 3 * size.n**3


def _syevd_flops(size: Size, attrs: Attrs) -> float:
    flops = _eigvalsh_flops if code_is(attrs, "mode", "N") else _eigh_flops
    return flops(size, attrs)


# tridiagonal_eigh, tridiagonal_eigvalsh: the same of T with d on its diagonal and e beside it.


def _tridiagonal_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, _: Attrs
) -> tuple[Array, ...]:
    d, e = (normal(rng, dtype, (*size.batch, k)) for k in (size.n, max(size.n - 1, 0)))
    return d, e


def _tridiagonal(args: tuple[Array, ...]) -> Array:
    d, e = map(wide, args)
    n = d.shape[-1]
    beside = np.zeros((*e.shape[:-1], n, n))
    beside[..., np.arange(1, n), np.arange(n - 1)] = e
    return np.asarray(d[..., None] * np.eye(n) + beside + adjoint(beside))


def _tridiagonal_ratios(args: tuple[Array, ...], attrs: Attrs, rets: list[Array]) -> Array:
    return _part_ratios(_tridiagonal(args), int(attrs["start"]), args[0], rets)


def _tridiagonal_value_ratios(args: tuple[Array, ...], _: Attrs, rets: list[Array]) -> Array:
    return _value_ratios(_tridiagonal(args), args[0], rets[0])


# symmetrize: S = (A + Aᴴ)/2.


def _symmetrize_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, _: Attrs
) -> tuple[Array, ...]:
    return (normal(rng, dtype, (*size.batch, size.n, size.n)).astype(dtype),)


def _symmetrize_ratios(args: tuple[Array, ...], _: Attrs, rets: list[Array]) -> Array:
    (a,), (s,) = args, rets
    exact = np.all(s == adjoint(s), axis=(-2, -1))
    expected = (wide(a) + adjoint(wide(a))) / 2
    return unless(exact, scaled(wide(s) - expected, norm(wide(a)), a.shape[-1], a))


# sytrd: A = Q·T·Qᴴ; Q = H(1)⋯H(n−1) from below the diagonal, or H(n−1)⋯H(1) from above it.


def _sytrd_ratios(args: tuple[Array, ...], attrs: Attrs, rets: list[Array]) -> Array:
    (a,), (reflectors, d, e, tau, info) = args, rets
    n, lower, whole = a.shape[-1], code_is(attrs, "uplo", "L"), _whole(args[0], attrs)
    product = np.zeros_like(whole)
    diagonal, beside = np.arange(n), np.arange(n - 1)
    product[..., diagonal, diagonal] = d
    product[..., beside + 1, beside] = product[..., beside, beside + 1] = e
    for i in reversed(beside) if lower else beside:
        head, column = (i + 1, i) if lower else (i, i + 1)
        v = wide(reflectors[..., :, column])
        outside = diagonal < head if lower else diagonal > head
        v = np.where(outside, 0, np.where(diagonal == head, 1, v))
        factor = wide(tau)[..., i, None, None]
        h = np.eye(n) - factor * v[..., :, None] * v[..., None, :].conj()
        product = h @ product @ adjoint(h)
    named = triangle(a, lower=lower)
    untouched = np.all(named | np.isnan(reflectors), axis=(-2, -1))
    return unless(untouched & (info == 0), scaled(product - whole, norm(whole), n, a))


CHECKS = {
    "syevd": Check(_inputs, _syevd_ratios, _syevd_flops),
    "eigh": Check(_inputs, _eigh_ratios, _eigh_flops),
    "eigh_subset": Check(
        _inputs, _eigh_subset_ratios, lambda size, attrs: 5 * size.n**3, attrs=_start, dims=_third
    ),
    "eigvalsh": Check(_inputs, _eigvalsh_ratios, _eigvalsh_flops),
    "tridiagonal_eigh": Check(
        _tridiagonal_inputs,
        _tridiagonal_ratios,
        lambda size, attrs: 4 / 3 * size.n**3,
        attrs=_start,
        dims=_third,
    ),
    "tridiagonal_eigvalsh": Check(
        _tridiagonal_inputs, _tridiagonal_value_ratios, lambda size, _: 10 * size.n**2
    ),
    "symmetrize": Check(_symmetrize_inputs, _symmetrize_ratios, lambda size, _: size.n**2),
    "sytrd": Check(_inputs, _sytrd_ratios, lambda size, attrs: 4 / 3 * size.n**3),
}
