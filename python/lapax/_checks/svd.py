"""Residual ratios of singular value decompositions."""

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
    norm,
    normal,
    scaled,
    unless,
    wide,
)

# gesdd, gesvd, svd: A = U·diag(s)·Vᴴ, UᴴU = I, V·Vᴴ = I, s descending and not negative.


def _inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, _: Attrs
) -> tuple[Array, ...]:
    return (normal(rng, dtype, (*size.batch, size.m, size.n)),)


def _dims(size: Size, attrs: Attrs) -> dict[str, int]:
    k = min(size.m, size.n)
    full = code_is(attrs, "mode", "A")
    return {"u_cols": size.m if full else k, "vt_rows": size.n if full else k}


def _ratios(args: tuple[Array, ...], attrs: Attrs, rets: list[Array]) -> Array:
    _, s, u, vt, info = rets
    alone = code_is(attrs, "mode", "N")
    ratios = _values_ratios(args, attrs, [s]) if alone else _svd_ratios(args, attrs, [s, u, vt])
    return unless(info == 0, ratios)


def _values_ratios(args: tuple[Array, ...], _: Attrs, rets: list[Array]) -> Array:
    (a,), (s,) = args, rets
    whole = wide(a)
    error = (wide(s) - np.linalg.svd(whole, compute_uv=False))[..., None, :]
    return unless(_sound(s), scaled(error, norm(whole), max(a.shape[-2:]), a))


def _sound(s: Array) -> Array:
    return np.asarray(np.all(np.diff(s, axis=-1) <= 0, axis=-1) & np.all(s >= 0, axis=-1))


def _svd_ratios(args: tuple[Array, ...], _: Attrs, rets: list[Array]) -> Array:
    (a,), (s, u, vt) = args, rets
    (m, n), k, whole = a.shape[-2:], s.shape[-1], wide(args[0])
    sound = _sound(s)
    s, u, vt = wide(s), wide(u), wide(vt)
    error = (u[..., :, :k] * s[..., None, :]) @ vt[..., :k, :] - whole
    one = np.ones(s.shape[:-1])
    ratios = [
        scaled(error, norm(whole), max(m, n), a),
        scaled(adjoint(u) @ u - np.eye(u.shape[-1]), one, m, a),
        scaled(vt @ adjoint(vt) - np.eye(vt.shape[-2]), one, n, a),
    ]
    return unless(sound, np.max(np.stack(ratios), axis=0))


def _svd_subset_ratios(args: tuple[Array, ...], attrs: Attrs, rets: list[Array]) -> Array:
    (a,), (s, u, vt) = args, rets
    (m, n), whole, one = a.shape[-2:], wide(args[0]), np.ones(s.shape[:-1])
    part = slice(int(attrs["start"]), int(attrs["start"]) + s.shape[-1])
    s, u, vt = wide(s), wide(u), wide(vt)
    beside = (s - np.linalg.svd(whole, compute_uv=False)[..., part])[..., None, :]
    eye = np.eye(s.shape[-1])
    ratios = [
        scaled(beside, norm(whole), max(m, n), a),
        scaled(whole @ adjoint(vt) - u * s[..., None, :], norm(whole), max(m, n), a),
        scaled(adjoint(u) @ u - eye, one, m, a),
        scaled(vt @ adjoint(vt) - eye, one, n, a),
    ]
    return np.asarray(np.max(np.stack(ratios), axis=0))


def _start(size: Size) -> dict[str, Any]:
    return {"start": np.int32(min(size.m, size.n) // 3)}


def _third(size: Size, _: Attrs) -> dict[str, int]:
    k = min(size.m, size.n)
    return {"k": k - 2 * (k // 3)}


def _values_flops(size: Size, _: Attrs) -> float:
    large, small = max(size.m, size.n), min(size.m, size.n)
    return 4 * large * small**2 - 4 / 3 * small**3


def _svd_flops(size: Size, attrs: Attrs) -> float:
    large, small = max(size.m, size.n), min(size.m, size.n)
    return _values_flops(size, attrs) + 2 * large * small**2 + 12 * small**3


def _flops(size: Size, attrs: Attrs) -> float:
    flops = _values_flops if code_is(attrs, "mode", "N") else _svd_flops
    return flops(size, attrs)


CHECKS = {
    "gesdd": Check(_inputs, _ratios, _flops, dims=_dims, rectangular=True),
    "svd": Check(_inputs, _svd_ratios, _svd_flops, rectangular=True),
    "svd_subset": Check(
        _inputs, _svd_subset_ratios, _svd_flops, attrs=_start, dims=_third, rectangular=True
    ),
    "svdvals": Check(_inputs, _values_ratios, _values_flops, rectangular=True),
    "gesvd": Check(_inputs, _ratios, _flops, dims=_dims, rectangular=True),
}
