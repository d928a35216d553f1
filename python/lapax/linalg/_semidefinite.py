"""A⁻¹, A^½ and A^-½ of positive semidefinite matrices by eigenvalues, with a smooth cut-off.

f(A) = V·diag(f(λ))·Vᴴ with f(λ) = λᵖ·s(λ) and s(λ) = λ⁴/(λ⁴ + c⁴), p = −1, ½ or −½: eigenvalues
well above c count in full, those well below not at all. With g = √(λ/c), f = cᵖ·gᵐ/(1 + g⁸) and
m = 8 + 2·p.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from lapax._settings import own_settings
from lapax.linalg._arguments import Array, adjoint, check_square, operation

__all__ = ["psd_inverse", "psd_inverse_sqrt", "psd_sqrt"]

_FLAT = 8
"""The power of g in s. Of λ/c it is the fourth: f and its derivative vanish at zero for all three
p, so that eigenvalues that are rounding errors do not count in derivatives if they are small
beside c; Tikhonov's λ/(λ² + c²) has there its largest derivative, 1/c²."""


@operation("a")
def psd_inverse(a: Array, *, rtol: float | None = None) -> Array:
    """Pseudo-inverse of a positive semidefinite matrix A [..., n, n], f(λ) = λ³/(λ⁴ + c⁴).

    c is `rtol` times the largest eigenvalue, n·ε of it by default, and then what the cut-off
    changes is less than the error of the eigenvalues. Eigenvalues below zero count as zero. A is
    read as its Hermitian part.

    The derivative is V·(F∘(Vᴴ·dA·V))·Vᴴ, and what c contributes, where F holds the divided
    differences of f (Daleckii & Krein 1965; Higham 2008, Functions of Matrices, theorem 3.11) in a
    form without differences: it is finite, and exact for repeated eigenvalues. Where the largest
    eigenvalue is repeated, the last vector gives the change of c. At eigenvalues of about c it is
    as large as 1/c², so that gradients of singular matrices need an `rtol` well above ε. A second
    derivative needs simple eigenvalues.

    Raises ValueError unless A is square and `rtol` positive.

    Cost: that of `eigh`, and 2n³.

    >>> psd_inverse(diag(array([2., 0])))  # [[0.5, 0], [0, 0]]
    """
    return _function("psd_inverse", -1.0, a, rtol)


@operation("a")
def psd_sqrt(a: Array, *, rtol: float | None = None) -> Array:
    """Positive semidefinite square root of A [..., n, n], f(λ) = √λ·λ⁴/(λ⁴ + c⁴).

    Operands, errors and derivative as of `psd_inverse`.

    >>> psd_sqrt(diag(array([4., 0])))  # [[2, 0], [0, 0]]
    """
    return _function("psd_sqrt", 0.5, a, rtol)


@operation("a")
def psd_inverse_sqrt(a: Array, *, rtol: float | None = None) -> Array:
    """Inverse square root of A [..., n, n], for whitening, f(λ) = λ⁴/(√λ·(λ⁴ + c⁴)).

    Operands, errors and derivative as of `psd_inverse`.

    >>> psd_inverse_sqrt(diag(array([4., 0])))  # [[0.5, 0], [0, 0]]
    """
    return _function("psd_inverse_sqrt", -0.5, a, rtol)


def _function(function: str, p: float, a: Array, rtol: float | None) -> Array:
    check_square(function, a=a)
    if rtol is not None and not rtol > 0:
        raise ValueError(f"{function}: rtol: expected a positive number, got {rtol!r}")
    if a.shape[-1] == 0:
        return a
    rtol = a.shape[-1] * float(np.finfo(a.dtype).eps) if rtol is None else rtol
    result: Array = _applied(p, rtol, (a + adjoint(a)) / 2)
    return result


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _applied(p: float, rtol: float, a: Array) -> Array:
    w, v = jnp.linalg.eigh(a, symmetrize_input=False)
    c, g = _scaled(w, rtol)
    return _of_values(v, c**p * g ** _power(p) / (1 + g**_FLAT))


@_applied.defjvp
@own_settings()
def _(p: float, rtol: float, primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    ((a,), (da,)) = primals, tangents
    w, v = jnp.linalg.eigh(a, symmetrize_input=False)
    c, g = _scaled(w, rtol)
    f = g ** _power(p) / (1 + g**_FLAT)
    e = adjoint(v) @ da @ v
    differences = _divided_differences(_power(p), g)
    slopes = jnp.diagonal(differences, axis1=-2, axis2=-1)
    dc = jnp.where(w[..., -1:] > 0, rtol * e[..., -1, -1:].real, 0)
    by_c = (p * f - g**2 * slopes) * dc
    inner = differences * e + by_c[..., None] * jnp.eye(w.shape[-1], dtype=w.dtype)
    change = v @ (c[..., None] ** (p - 1) * inner) @ adjoint(v)
    return _of_values(v, c**p * f), change


def _of_values(v: Array, values: Array) -> Array:
    """V·diag(values)·Vᴴ."""
    return (v * values[..., None, :]) @ adjoint(v)


def _power(p: float) -> int:
    return _FLAT + round(2 * p)


def _scaled(w: Array, rtol: float) -> tuple[Array, Array]:
    """c [..., 1] and g [..., n]; c = 1 for a matrix of zeros."""
    c = rtol * w[..., -1:]
    c = jnp.where(c > 0, c, jnp.where(jnp.isnan(c), c, 1))
    return c, jnp.sqrt(jnp.maximum(w, 0) / c)


def _divided_differences(m: int, g: Array) -> Array:
    """Of gᵐ/(1 + g⁸) as a function of g²: (φₘ(a) − φₘ(b))/(a² − b²) for all pairs.

    With φₖ = gᵏ/(1 + g⁸), (φₘ(a) − φₘ(b))/(a − b) is Σ_{i+j=m−1} φᵢ(a)·φⱼ(b), plus φ₈(a)·φ₈(b) for
    m = 9, minus Σ_{i+j=m+7; i,j≥m} φᵢ(a)·φⱼ(b) for m < 8. All φₖ are at most one: no overflow.
    """
    phi = [g**k / (1 + g**_FLAT) for k in range(_FLAT + 1)]

    def sums(first: int, last: int) -> Array:
        terms = (
            phi[i][..., :, None] * phi[first + last - i][..., None, :]
            for i in range(first, last + 1)
        )
        return sum(terms, jnp.zeros((), g.dtype))

    upper = sums(_FLAT, m - 1) if m > _FLAT else -sums(m, _FLAT - 1)
    total = g[..., :, None] + g[..., None, :]
    return (sums(0, m - 1) + upper) / jnp.where(total > 0, total, 1)
