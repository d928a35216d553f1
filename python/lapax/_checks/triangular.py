"""Residual ratios of triangular systems: see the comment of each op for its equation."""

from __future__ import annotations

from typing import Any

import numpy as np

from lapax._checks.equations import (
    Array,
    Attrs,
    Check,
    Size,
    code_is,
    keep,
    norm,
    normal,
    scaled,
    triangle,
    wide,
)

# trsm and triangular_solve: op(A)·X = B or X·op(A) = B, A triangular, with ones for its diagonal
# where diag is 'U'.


def _trsm_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, attrs: Attrs
) -> tuple[Array, ...]:
    n = size.m if code_is(attrs, "side", "L") else size.n
    a = normal(rng, dtype, (*size.batch, n, n)) / dtype.type(max(n, 1))
    a = (a + np.eye(n)).astype(dtype)
    b = normal(rng, dtype, (*size.batch, size.m, size.n))
    return keep(a, _trsm_triangle(a, attrs)), b


def _trsm_ratios(args: tuple[Array, ...], attrs: Attrs, rets: list[Array]) -> Array:
    a, b, x = (wide(y) for y in (*args, rets[0]))
    t = np.where(_trsm_triangle(a, attrs), a, 0)
    t = t + np.eye(t.shape[-1]) if code_is(attrs, "diag", "U") else t
    t = t.swapaxes(-1, -2) if not code_is(attrs, "trans_x", "N") else t
    t = t.conj() if code_is(attrs, "trans_x", "C") else t
    error = (t @ x if code_is(attrs, "side", "L") else x @ t) - b
    return scaled(error, norm(t) * norm(x), 1, args[0])


def _trsm_triangle(a: Array, attrs: Attrs) -> Array:
    return triangle(a, lower=code_is(attrs, "uplo", "L"), strict=code_is(attrs, "diag", "U"))


def _trsm_flops(size: Size, attrs: Attrs) -> float:
    return size.m * size.n * (size.m if code_is(attrs, "side", "L") else size.n)


CHECKS = {
    "trsm": Check(_trsm_inputs, _trsm_ratios, _trsm_flops, rectangular=True),
    "triangular_solve": Check(_trsm_inputs, _trsm_ratios, _trsm_flops, rectangular=True),
}
