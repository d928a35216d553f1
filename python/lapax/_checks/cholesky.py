"""Residual ratios of Cholesky factors: see the comment of each op for its equation."""

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
    definite,
    keep,
    norm,
    normal,
    roundoff,
    scaled,
    triangle,
    unless,
    wide,
)

# potrf: A = L·Lᴴ or Uᴴ·U from the named triangle; the other one is passed through.


def _potrf_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, attrs: Attrs
) -> tuple[Array, ...]:
    a = definite(rng, dtype, size).astype(dtype)
    return (keep(a, triangle(a, lower=code_is(attrs, "uplo", "L"))),)


def _potrf_ratios(args: tuple[Array, ...], attrs: Attrs, rets: list[Array]) -> Array:
    (a,), (factor, info) = args, rets
    lower = code_is(attrs, "uplo", "L")
    named = triangle(a, lower=lower)
    half = np.where(triangle(a, lower=lower, strict=True), wide(a), 0)
    diagonal = np.where(np.eye(a.shape[-1], dtype=bool), wide(a).real, 0)
    whole = half + adjoint(half) + diagonal
    f = np.where(named, wide(factor), 0)
    error = (f @ adjoint(f) if lower else adjoint(f) @ f) - whole
    untouched = np.all(named | np.isnan(factor), axis=(-2, -1))
    return unless(untouched & (info == 0), scaled(error, norm(whole), a.shape[-1], a))


# cholesky: A = L·Lᴴ from the lower triangle, or of the mean of A and its adjoint; zero above the
# diagonal.


def _cholesky_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, attrs: Attrs
) -> tuple[Array, ...]:
    if not attrs["symmetrize"]:
        return _potrf_inputs(rng, dtype, size, {"uplo": ord("L")})
    apart = normal(rng, dtype, (*size.batch, size.n, size.n)) / max(size.n, 1)
    return ((definite(rng, dtype, size) + apart - adjoint(apart)).astype(dtype),)


def _cholesky_ratios(args: tuple[Array, ...], attrs: Attrs, rets: list[Array]) -> Array:
    (a,), (factor,) = args, rets
    named = triangle(a, lower=True)
    if attrs["symmetrize"]:
        args = (keep(((a + adjoint(a)) / 2).astype(a.dtype), named),)
    zeros = np.all(named | (factor == 0), axis=(-2, -1))
    info = np.zeros(zeros.shape, np.int32)
    passed = [np.where(named, factor, np.nan), info]
    return unless(zeros, _potrf_ratios(args, {"uplo": ord("L")}, passed))


# posv: A·X = B with A positive definite, of which the named triangle is read.


def _posv_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, attrs: Attrs
) -> tuple[Array, ...]:
    n, nrhs = size.m, size.n
    a = definite(rng, dtype, Size(n, n, size.batch)).astype(dtype)
    if not attrs["symmetrize"]:
        a = keep(a, triangle(a, lower=code_is(attrs, "uplo", "L")))
    return a, normal(rng, dtype, (*size.batch, n, nrhs))


def _whole(a: Array, attrs: Attrs) -> Array:
    """The Hermitian matrix that is meant."""
    if attrs["symmetrize"]:
        return np.asarray((wide(a) + adjoint(wide(a))) / 2)
    lower = code_is(attrs, "uplo", "L")
    half = np.where(triangle(a, lower=lower, strict=True), wide(a), 0)
    return np.asarray(
        half + adjoint(half) + np.where(np.eye(a.shape[-1], dtype=bool), wide(a).real, 0)
    )


def _posv_ratios(args: tuple[Array, ...], attrs: Attrs, rets: list[Array]) -> Array:
    (a, b), (x,) = args, rets
    return _system_ratios(_whole(a, attrs), b, x)


def _system_ratios(a: Array, b: Array, x: Array) -> Array:
    return scaled(a @ wide(x) - wide(b), norm(a) * norm(wide(x)), a.shape[-1], b)


def _posv_flops(size: Size, _: Attrs) -> float:
    return size.m**3 / 3 + 2 * size.m**2 * size.n


# posv_factor: the factor, zero in the other triangle, and ln det(A), whose error is at most about
# n·u·‖A‖·‖A⁻¹‖ beside its own rounding.


def _posv_factor_ratios(args: tuple[Array, ...], attrs: Attrs, rets: list[Array]) -> Array:
    (a, b), (x, factor, logdet) = args, rets
    whole, n, lower = _whole(a, attrs), a.shape[-1], code_is(attrs, "uplo", "L")
    f = wide(factor)
    error = (f @ adjoint(f) if lower else adjoint(f) @ f) - whole
    zeros = np.all(triangle(a, lower=lower) | (factor == 0), axis=(-2, -1))
    condition = norm(whole) * norm(np.linalg.inv(whole)) if n else np.zeros(logdet.shape)
    exact = np.linalg.slogdet(whole).logabsdet
    scale = max(n, 1) * roundoff(a) * (condition + np.abs(exact) + 1)
    ratios = np.maximum(_system_ratios(whole, b, x), scaled(error, norm(whole), n, a))
    return unless(zeros, np.maximum(ratios, np.abs(logdet - exact) / scale))


# cho_solve: A·X = B from the factor that uplo names.


def _cho_solve_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, attrs: Attrs
) -> tuple[Array, ...]:
    n, nrhs = size.m, size.n
    factor = np.linalg.cholesky(definite(rng, dtype, Size(n, n, size.batch)))
    lower = code_is(attrs, "uplo", "L")
    factor = (factor if lower else adjoint(factor)).astype(dtype)
    return keep(factor, triangle(factor, lower=lower)), normal(rng, dtype, (*size.batch, n, nrhs))


def _cho_solve_ratios(args: tuple[Array, ...], attrs: Attrs, rets: list[Array]) -> Array:
    (factor, b), (x,) = args, rets
    lower = code_is(attrs, "uplo", "L")
    f = np.where(triangle(factor, lower=lower), wide(factor), 0)
    return _system_ratios(f @ adjoint(f) if lower else adjoint(f) @ f, b, x)


def _cho_solve_flops(size: Size, _: Attrs) -> float:
    return 2 * size.m**2 * size.n


# cholesky_update: R′ᴴ·R′ = Rᴴ·R + w·wᴴ, R and R′ upper triangular; the second result is scratch.


def _update_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, _: Attrs
) -> tuple[Array, ...]:
    r = adjoint(np.linalg.cholesky(definite(rng, dtype, size)))
    return np.triu(r).astype(dtype), normal(rng, dtype, (*size.batch, size.n))


def _update_ratios(args: tuple[Array, ...], _: Attrs, rets: list[Array]) -> Array:
    r, w = (wide(x) for x in args)
    updated = wide(np.triu(rets[0]))
    expected = adjoint(r) @ r + w[..., :, None] * w[..., None, :].conj()
    error = adjoint(updated) @ updated - expected
    return scaled(error, norm(expected), r.shape[-1], args[0])


CHECKS = {
    "potrf": Check(_potrf_inputs, _potrf_ratios, lambda size, attrs: size.n**3 / 3),
    "cholesky": Check(_cholesky_inputs, _cholesky_ratios, lambda size, attrs: size.n**3 / 3),
    "posv": Check(_posv_inputs, _posv_ratios, _posv_flops, rectangular=True),
    "posv_factor": Check(_posv_inputs, _posv_factor_ratios, _posv_flops, rectangular=True),
    "cho_solve": Check(_cho_solve_inputs, _cho_solve_ratios, _cho_solve_flops, rectangular=True),
    "cholesky_update": Check(_update_inputs, _update_ratios, lambda size, attrs: 3 * size.n**2),
}
