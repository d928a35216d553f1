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

# gesdd, gesvd: A = U·diag(s)·Vᴴ, UᴴU = I, V·Vᴴ = I, s descending and not negative.


def _inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, _: Attrs
) -> tuple[Array, ...]:
    return (normal(rng, dtype, (*size.batch, size.m, size.n)),)


def _dims(size: Size, attrs: Attrs) -> dict[str, int]:
    k = min(size.m, size.n)
    full = code_is(attrs, "mode", "A")
    return {"u_cols": size.m if full else k, "vt_rows": size.n if full else k}


def _ratios(args: tuple[Array, ...], attrs: Attrs, rets: list[Array]) -> Array:
    (a,), (_, s, u, vt, info) = args, rets
    (m, n), k, whole = a.shape[-2:], s.shape[-1], wide(args[0])
    sound = np.all(np.diff(s, axis=-1) <= 0, axis=-1) & np.all(s >= 0, axis=-1) & (info == 0)
    if code_is(attrs, "mode", "N"):
        error = (wide(s) - np.linalg.svd(whole, compute_uv=False))[..., None, :]
        return unless(sound, scaled(error, norm(whole), max(m, n), a))
    s, u, vt = wide(s), wide(u), wide(vt)
    error = (u[..., :, :k] * s[..., None, :]) @ vt[..., :k, :] - whole
    one = np.ones(s.shape[:-1])
    ratios = [
        scaled(error, norm(whole), max(m, n), a),
        scaled(adjoint(u) @ u - np.eye(u.shape[-1]), one, m, a),
        scaled(vt @ adjoint(vt) - np.eye(vt.shape[-2]), one, n, a),
    ]
    return unless(sound, np.max(np.stack(ratios), axis=0))


def _flops(size: Size, attrs: Attrs) -> float:
    large, small = max(size.m, size.n), min(size.m, size.n)
    values = 4 * large * small**2 - 4 / 3 * small**3
    return values if code_is(attrs, "mode", "N") else values + 2 * large * small**2 + 12 * small**3


CHECKS = {
    "gesdd": Check(_inputs, _ratios, _flops, dims=_dims, rectangular=True),
    "gesvd": Check(_inputs, _ratios, _flops, dims=_dims, rectangular=True),
}
