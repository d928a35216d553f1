"""Residual ratios of tridiagonal systems: see the comment of each op for its equation."""

from __future__ import annotations

from typing import Any

import numpy as np

from lapax._checks.equations import Array, Attrs, Check, Size, norm, normal, scaled, unless, wide

# gtsv, tridiagonal_solve and tridiagonal_solve_perturbed: A·X = B for A of three diagonals; dl[0]
# and du[m-1] are not read. gtsv's first three results are debris of its elimination.


def _tridiagonal_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, _: Attrs
) -> tuple[Array, ...]:
    dl, d, du = (normal(rng, dtype, (*size.batch, size.m)) for _ in range(3))
    dl[..., :1] = du[..., size.m - 1 :] = np.nan
    return dl, (d + 4).astype(dtype), du, normal(rng, dtype, (*size.batch, size.m, size.n))


def _tridiagonal_ratios(args: tuple[Array, ...], x: Array) -> Array:
    dl, d, du, b = (wide(y) for y in args)
    x = wide(x)
    product, size = d[..., None] * x, np.abs(d)
    product[..., 1:, :] += dl[..., 1:, None] * x[..., :-1, :]
    product[..., :-1, :] += du[..., :-1, None] * x[..., 1:, :]
    size[..., :-1] += np.abs(dl[..., 1:])
    size[..., 1:] += np.abs(du[..., :-1])
    return scaled(product - b, size.max(-1, initial=0.0) * norm(x), 1, args[0])


def _gtsv_ratios(args: tuple[Array, ...], _: Attrs, rets: list[Array]) -> Array:
    x, info = rets[-2:]
    return unless(info == 0, _tridiagonal_ratios(args, x))


def _solve_ratios(args: tuple[Array, ...], _: Attrs, rets: list[Array]) -> Array:
    return _tridiagonal_ratios(args, rets[0])


def _tridiagonal_flops(size: Size, _: Attrs) -> float:
    return size.m * (3 + 5 * size.n)


CHECKS = {
    "gtsv": Check(_tridiagonal_inputs, _gtsv_ratios, _tridiagonal_flops, rectangular=True),
} | {
    op: Check(_tridiagonal_inputs, _solve_ratios, _tridiagonal_flops, rectangular=True)
    for op in ("tridiagonal_solve", "tridiagonal_solve_perturbed")
}
