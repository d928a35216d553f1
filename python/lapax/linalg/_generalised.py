"""A·v = λ·B·v, A·B·v = λ·v and B·A·v = λ·v for Hermitian A and positive definite B.

By B = L·Lᴴ they become C·y = λ·y (xSYGST): C = L⁻¹·A·L⁻ᴴ with v = L⁻ᴴ·y for the first, and
C = Lᴴ·A·L with v = L⁻ᴴ·y and v = L·y for the second and third. Without B, all are A·v = λ·v.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
from jax.lax.linalg import triangular_solve

from lapax._settings import own_settings
from lapax.linalg._arguments import (
    Array,
    adjoint,
    check_choice,
    check_size,
    check_square,
    operation,
    outside_jit,
    same_batch,
)
from lapax.linalg._degenerate import Degenerate, degenerate_rule, differences
from lapax.linalg._subsets import Subset

__all__ = ["eigh", "eigvalsh"]


@operation("a", "b", jit=False)
def eigh(
    a: Array,
    b: Array | None = None,
    *,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    type: int = 1,
    check_finite: bool = True,
    subset_by_index: Sequence[int] | None = None,
    subset_by_value: Sequence[float] | None = None,
    driver: str | None = None,
    size: int | None = None,
    degenerate: str | None = None,
    width: float | None = None,
) -> Any:
    """Eigenvalues λ and vectors V of a Hermitian matrix, or of a pair with positive definite B.

    Types 1, 2 and 3 are A·v = λ·B·v, A·B·v = λ·v and B·A·v = λ·v; Vᴴ·B·V = I for the first two,
    Vᴴ·B⁻¹·V = I for the third. Of `a` and `b` [..., n, n] only the triangle that `lower` names is
    read. Results are w [..., n], real and ascending, and v [..., n, n] unless `eigvals_only`. NaN
    where B is not positive definite.

    `subset_by_index` (first, last) gives these, both included. `subset_by_value` (low, high] gives
    those inside: with `size` the first so many of them, w filled with NaN, v with zeros, and the
    number inside as one more result (int32 [...]); without it outside of jit alone, and for a batch
    where all matrices have equally many. The others are computed, too.

    The derivative is that of simple eigenpairs (de Leeuw 2007, Derivatives of generalized eigen
    systems with applications): for type 1, with P = Vᴴ·(dA·V − dB·V·Λ), dλⱼ = Re Pⱼⱼ and
    dV = V·(F∘P − ½·diag(Vᴴ·dB·V)), Fᵢⱼ = 1/(λⱼ − λᵢ), and with B⁻¹ in the place of B for type 3;
    type 2 has its values and B⁻¹ times its vectors. The phase of a complex vector is such that
    vᴴ·B·dv is real. Where eigenvalues repeat, derivatives of vectors are infinite or NaN, unless
    `degenerate` is `"mask"`, which makes Fᵢⱼ zero where |λⱼ − λᵢ| ≤ η, or `"broaden"`, which makes
    it (λⱼ − λᵢ)/((λⱼ − λᵢ)² + η²); η is `width` times the largest |λ|. Gradients of functions that
    do not change when vectors of one cluster are rotated are right then, see _degenerate.py.

    Raises ValueError where shapes do not fit, for another `type`, for a `driver` that SciPy has not
    for the problem (none matters), for both subsets, and for one reversed or out of range.

    Cost: 4n³/3 for eigenvalues and at most 8n³ for vectors; a pair takes 3n³ more.

    >>> eigh(array([[2., 1], [1, 2]]))[0]  # [1, 3]
    """
    del overwrite_a, overwrite_b, check_finite
    rule = degenerate_rule("eigh", degenerate, width)
    subset = Subset.of("eigh", a.shape[-1], subset_by_index, subset_by_value, size)
    return _checked("eigh", a, b, lower, eigvals_only, type, driver, subset, rule)


@operation("a", "b", jit=False)
def eigvalsh(
    a: Array,
    b: Array | None = None,
    *,
    lower: bool = True,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    type: int = 1,
    check_finite: bool = True,
    subset_by_index: Sequence[int] | None = None,
    subset_by_value: Sequence[float] | None = None,
    driver: str | None = None,
    size: int | None = None,
) -> Any:
    """Eigenvalues of `eigh` alone: w, and the number of them where `size` is given.

    >>> eigvalsh(array([[2., 1], [1, 2]]))  # [1, 3]
    """
    del overwrite_a, overwrite_b, check_finite
    subset = Subset.of("eigvalsh", a.shape[-1], subset_by_index, subset_by_value, size)
    return _checked("eigvalsh", a, b, lower, True, type, driver, subset, Degenerate(None, None))


def _checked(
    function: str,
    a: Array,
    b: Array | None,
    lower: bool,
    eigvals_only: bool,
    kind: int,
    driver: str | None,
    subset: Subset,
    rule: Degenerate,
) -> Any:
    check_square(function, a=a)
    if b is not None:
        check_square(function, b=b)
        check_size(function, "b", "rows", b.shape[-1], a.shape[-1])
        a, b = same_batch(function, a=(a, 2), b=(b, 2))
    check_choice(function, "type", kind, (1, 2, 3))
    drivers = ("ev", "evd", "evr", "evx") if b is None else ("gv", "gvd", "gvx")
    check_choice(function, "driver", driver, (None, *drivers))
    if subset.by_value is None or subset.size is not None:
        return _eigh(a, b, lower, eigvals_only, kind, subset, rule)
    outside_jit(function, "size", a, b)
    w = _eigh(a, b, lower, True, kind, Subset(), rule)
    subset = subset.with_size_of(function, w)
    results = _eigh(a, b, lower, eigvals_only, kind, subset, rule)[:-1]
    return results[0] if eigvals_only else results


@functools.partial(jax.jit, static_argnums=(2, 3, 4, 5, 6))
def _eigh(
    a: Array,
    b: Array | None,
    lower: bool,
    eigvals_only: bool,
    kind: int,
    subset: Subset,
    rule: Degenerate,
) -> Any:
    a = hermitian(a, lower)
    b = None if b is None else hermitian(b, lower)
    if eigvals_only:
        return subset.take(_values(kind, a, b))
    return subset.take(*_pairs(kind, rule, a, b))


def hermitian(a: Array, lower: bool) -> Array:
    """The Hermitian matrix of which one triangle is given."""
    strict = jnp.tril(a, -1) if lower else jnp.triu(a, 1)
    diagonal = a.real * jnp.eye(a.shape[-1], dtype=a.real.dtype)
    return strict + adjoint(strict) + diagonal


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _pairs(kind: int, rule: Degenerate, a: Array, b: Array | None) -> tuple[Array, Array]:
    """λ and V of matrices given whole."""
    del rule
    if b is None:
        w, v = jnp.linalg.eigh(a, symmetrize_input=False)
        return w, v
    factor = jnp.linalg.cholesky(b, symmetrize_input=False)
    w, y = jnp.linalg.eigh(_reduced(kind, a, factor))
    v = factor @ y if kind == 3 else _lh_solve(factor, y)
    return w, v


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _values(kind: int, a: Array, b: Array | None) -> Array:
    if b is not None:
        a = _reduced(kind, a, jnp.linalg.cholesky(b, symmetrize_input=False))
    w: Array = jnp.linalg.eigvalsh(a)
    return w


def _reduced(kind: int, a: Array, factor: Array) -> Array:
    """C of C·y = λ·y."""
    if kind != 1:
        return adjoint(factor) @ a @ factor
    half = triangular_solve(factor, a, left_side=True, lower=True)
    return triangular_solve(factor, half, lower=True, transpose_a=True, conjugate_a=True)


def _lh_solve(factor: Array, y: Array) -> Array:
    """L⁻ᴴ·y."""
    return triangular_solve(
        factor, y, left_side=True, lower=True, transpose_a=True, conjugate_a=True
    )


@_pairs.defjvp
@own_settings()
def _(
    kind: int, rule: Degenerate, primals: tuple[Any, ...], tangents: tuple[Any, ...]
) -> tuple[Any, Any]:
    w, v = _pairs(kind, rule, *primals)
    q, p = _perturbations(kind, w, v, *primals, *tangents)
    x = differences(w, rule) * p
    dw = jnp.diagonal(p, axis1=-2, axis2=-1).real
    if q is not None:
        x -= q.real * jnp.eye(w.shape[-1], dtype=w.dtype) / 2
        x += q if kind == 2 else 0
    return (w, v), (dw, v @ x)


@_values.defjvp
@own_settings()
def _(kind: int, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    w, v = _pairs(kind, Degenerate(None, None), *primals)
    _, p = _perturbations(kind, w, v, *primals, *tangents)
    return w, jnp.diagonal(p, axis1=-2, axis2=-1).real


def _perturbations(
    kind: int, w: Array, v: Array, a: Array, b: Array | None, da: Array, db: Array | None
) -> tuple[Array | None, Array]:
    """The change Q of the metric in the vectors of type 1 or 3, and P = Uᴴ·dA·U − Q·Λ.

    The metric of type 1 is B. That of type 3 is B⁻¹, which changes by −B⁻¹·dB·B⁻¹. The vectors of
    type 3 are U = B·V for those of type 2, whose own Vᴴ·(dB·V) is −Q.
    """
    if b is None or db is None:
        return None, adjoint(v) @ (da @ v)
    u = b @ v if kind == 2 else v
    z = jsl.cho_solve(jsl.cho_factor(b, lower=True), v) if kind == 3 else v
    q = adjoint(z) @ (db @ z)
    q = q if kind == 1 else -q
    return q, adjoint(u) @ (da @ u) - q * w[..., None, :]
