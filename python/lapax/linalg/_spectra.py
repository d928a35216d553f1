"""svd and eig with derivatives of vectors, finite where values repeat if that is asked for."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp

from lapax._settings import own_settings
from lapax.linalg._arguments import (
    Array,
    adjoint,
    check_driver,
    check_matrix,
    check_square,
    complex_dtype,
    operation,
)
from lapax.linalg._degenerate import Degenerate, degenerate_rule, differences, reciprocal
from lapax.linalg._pairs import eig_of_pair, homogeneous_eig_of_pair, normalised
from lapax.linalg._qz import pair

__all__ = ["eig", "eigvals", "svd"]


@operation("a")
def svd(
    a: Array,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
    *,
    degenerate: str | None = None,
    width: float | None = None,
) -> Any:
    """Singular values and vectors, A = U·S·Vᴴ: (u, s, vh), or s unless `compute_uv`.

    `a` [..., m, n]; s [..., k] with k = min(m, n) is real and descending; u [..., m, m] and
    vh [..., n, n], or [..., m, k] and [..., k, n] unless `full_matrices`.

    With P = Uᴴ·dA·V, H and K its Hermitian and skew parts, dS = Re diag P and, for the first k
    vectors, dU = U·(F∘H + G∘K) + (I − U·Uᴴ)·dA·V·S⁻¹, dV = V·(F∘H − G∘K) + (I − V·Vᴴ)·dAᴴ·U·S⁻¹,
    Fᵢⱼ = 1/(sⱼ − sᵢ), Gᵢⱼ = 1/(sⱼ + sᵢ) (Townsend 2016, Differentiating the singular value
    decomposition; for complex A, Wan & Zhang 2019, arXiv:1909.02659). The others stay orthogonal to
    them.

    Where singular values repeat F is infinite, where they are zero G and S⁻¹, and derivatives of
    vectors are infinite or NaN, unless `degenerate` is `"mask"`: zero stands for the reciprocal of
    an x with |x| ≤ η; or `"broaden"`: x/(x² + η²) does. η is `width` times the largest singular
    value, by default 16·n·ε for a mask and √ε. Gradients of functions that do not change when
    vectors of one cluster are rotated, U and V together, and those of zeros each, are right with a
    mask, and with broadening up to the square of η over the gaps; see _degenerate.py.

    Raises ValueError unless A is a matrix, and for another `degenerate` or `lapack_driver`, which
    means nothing here; TypeError for one that is no string.

    Cost: about 20n³ for m = n, 8n³/3 without vectors.

    >>> svd(diag(array([3., 4])))[1]  # [4, 3]
    """
    del overwrite_a, check_finite
    check_matrix("svd", a=a)
    check_driver("svd", lapack_driver, ("gesdd", "gesvd"))
    rule = degenerate_rule("svd", degenerate, width)
    if not compute_uv:
        return jnp.linalg.svd(a, compute_uv=False)
    return _svd(full_matrices, rule, a)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _svd(full: bool, rule: Degenerate, a: Array) -> tuple[Array, Array, Array]:
    del rule
    u, s, vh = jnp.linalg.svd(a, full_matrices=full)
    return u, s, vh


@_svd.defjvp
@own_settings()
def _(full: bool, rule: Degenerate, primals: tuple[Array], tangents: tuple[Array]) -> Any:
    ((a,), (da,)) = primals, tangents
    u, s, vh = _svd(full, rule, a)
    k = s.shape[-1]
    u1, v1 = u[..., :k], adjoint(vh)[..., :k]
    p = adjoint(u1) @ da @ v1
    h, skew = (p + adjoint(p)) / 2, (p - adjoint(p)) / 2
    largest = jnp.max(s, -1, initial=0)
    columns = s[..., None, :]
    # The phase of a vector is free, and does not change where its singular value is zero.
    phase = jnp.eye(k, dtype=bool) & (columns == 0)
    f = differences(s, rule) * h
    g = reciprocal(columns + s[..., :, None], largest, rule, phase) * skew
    inverse = reciprocal(columns, largest, rule, jnp.zeros((), bool))
    du = _vectors(u, u1 @ (f + g), da @ v1, inverse)
    dv = _vectors(adjoint(vh), v1 @ (f - g), adjoint(da) @ u1, inverse)
    ds = jnp.diagonal(p, axis1=-2, axis2=-1).real
    return (u, s, vh), (du, ds, adjoint(dv))


def _vectors(u: Array, inside: Array, image: Array, inverse: Array) -> Array:
    """The change of all columns: `inside` the span of the first k, and what leaves it."""
    m, k = u.shape[-2], inside.shape[-1]
    if m == k:
        return inside
    first, others = u[..., :k], u[..., k:]
    outside = (image - first @ (adjoint(first) @ image)) * inverse
    turned = -first @ (adjoint(outside) @ others)
    return jnp.concatenate([inside + outside, turned], -1)


@operation("a", "b")
def eig(
    a: Array,
    b: Array | None = None,
    left: bool = False,
    right: bool = True,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    homogeneous_eigvals: bool = False,
    *,
    degenerate: str | None = None,
    width: float | None = None,
) -> Any:
    """Eigenvalues and vectors of general matrices, A·v = λ·B·v and uᴴ·A = λ·uᴴ·B.

    `a` and `b` [..., n, n], B the identity where it is None; results, all complex, are w [..., n],
    u if `left`, and v if `right`, in this order, w alone without vectors. If `homogeneous_eigvals`,
    w is α above β [..., 2, n] with λ = α/β. With B, an infinite eigenvalue is inf, and one of a
    singular pair, 0/0, NaN. Columns of u and v have length 1 and are real where they are largest
    (xGEEV; xGGEV by the QZ iteration, see `qz`).

    The derivative is that of simple eigenvalues (Magnus 1985, On differentiating eigenvalues and
    eigenvectors): with P = V⁻¹·dA·V, dλⱼ = Pⱼⱼ and dV = V·(F∘P) with Fᵢⱼ = 1/(λⱼ − λᵢ), plus the
    multiple of vⱼ that keeps the normalisation; likewise for u and Aᴴ. Where eigenvalues repeat,
    that of vectors is infinite or NaN. `degenerate` and `width` replace F as in `svd`, which makes
    it finite where the matrix has all its eigenvectors; not for a defective one, whose V is
    singular. That with B is in _pairs.py, of the same form and for simple eigenvalues; λ has one
    where it is finite, vectors have one of infinite eigenvalues, too. α and β with B have none:
    NotImplementedError says so.

    Raises ValueError unless both are square of one size, and for another `degenerate`.

    Cost: about 25n³, 10n³ without vectors; a pair takes that of `qz`.

    >>> eig(array([[2., 1], [0, 3]]))[0]  # [2, 3]
    """
    del overwrite_a, overwrite_b, check_finite
    rule = degenerate_rule("eig", degenerate, width)
    return _selected("eig", a, b, left, right, homogeneous_eigvals, rule)


@operation("a", "b")
def eigvals(
    a: Array,
    b: Array | None = None,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    homogeneous_eigvals: bool = False,
) -> Array:
    """Eigenvalues of `eig` alone, with its arguments, shapes, errors and derivative.

    >>> eigvals(array([[2., 1], [0, 3]]))  # [2, 3]
    """
    del overwrite_a, overwrite_b, check_finite
    rule = Degenerate(None, None)
    values: Array = _selected("eigvals", a, b, False, False, homogeneous_eigvals, rule)
    return values


def _selected(
    function: str,
    a: Array,
    b: Array | None,
    left: bool,
    right: bool,
    homogeneous: bool,
    rule: Degenerate,
) -> Any:
    check_square(function, a=a)
    if b is None:
        w, *vectors = _eig(left, right, rule, a)
        w = jnp.stack([w, jnp.ones_like(w)], -2) if homogeneous else w
    elif homogeneous:
        w, *vectors = homogeneous_eig_of_pair(function, left, right, *pair(function, a, b))
    else:
        w, *vectors = eig_of_pair(left, right, rule, *pair(function, a, b))
    return (w, *vectors) if vectors else w


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1, 2))
def _eig(left: bool, right: bool, rule: Degenerate, a: Array) -> list[Array]:
    del rule
    if a.shape[-1] == 0:
        kind = complex_dtype(a.dtype)
        return [jnp.zeros(a.shape[:-1], kind), *[a.astype(kind)] * (left + right)]
    results: list[Array] = list(
        jax.lax.linalg.eig(a, compute_left_eigenvectors=left, compute_right_eigenvectors=right)
    )
    return results


@_eig.defjvp
@own_settings()
def _(
    left: bool, right: bool, rule: Degenerate, primals: tuple[Array], tangents: tuple[Array]
) -> Any:
    ((a,), (da,)) = primals, tangents
    w, *vectors = _eig(left, right or not left, rule, a)
    da, f = da.astype(w.dtype), differences(w, rule)
    # The left vectors are those of Aᴴ. In a cluster they are not the inverse of the right ones.
    sides = [(adjoint(da), f.conj())] * left + [(da, f)]
    changes = []
    for v, (change, factor) in zip(vectors, sides, strict=False):
        p = jnp.linalg.solve(v, change @ v)
        changes.append(normalised(v, v @ (factor * p)))
    dw = jnp.diagonal(p, axis1=-2, axis2=-1)
    dw = dw.conj() if left and not right else dw
    if not (left or right):
        return [w], [dw]
    return [w, *vectors], [dw, *changes]
