"""Eigenvalues and vectors of pairs of general matrices, A·v = λ·B·v, and their derivatives.

With uᵢᴴ·A·vᵢ = αᵢ and uᵢᴴ·B·vᵢ = βᵢ, which are not both zero for a simple eigenvalue αᵢ/βᵢ, and
N = Uᴴ·(dA·V·diag(β) − dB·V·diag(α)): dλⱼ = Nⱼⱼ/βⱼ², and dV = V·C with Cᵢⱼ = Nᵢⱼ/(αⱼ·βᵢ − βⱼ·αᵢ) for
i ≠ j (Stewart & Sun 1990, Matrix perturbation theory, chapter VI). So infinite eigenvalues have
vectors with derivatives, too. Left vectors are the right ones of Aᴴ and Bᴴ.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lapax._call import ffi_call
from lapax._settings import own_settings
from lapax.linalg._arguments import Array, adjoint
from lapax.linalg._degenerate import Degenerate, reciprocal

_TIE = 128
"""Roundings by which moduli of components may differ and be taken for equal: the kernels' own."""


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1, 2))
def eig_of_pair(left: bool, right: bool, rule: Degenerate, a: Array, b: Array) -> list[Array]:
    """λ, then u if `left`, and v if `right`."""
    del rule
    alpha, beta, *vectors = _decomposed(left, right, a, b)
    infinite = jnp.where(alpha == 0, np.nan, np.inf).astype(alpha.dtype)
    finite = jax.lax.complex(*(x / jnp.where(beta == 0, 1, beta) for x in (alpha.real, alpha.imag)))
    return [jnp.where(beta == 0, infinite, finite), *vectors]


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1, 2))
def homogeneous_eig_of_pair(
    function: str, left: bool, right: bool, a: Array, b: Array
) -> list[Array]:
    """[α, β] in rows, then vectors."""
    del function
    alpha, beta, *vectors = _decomposed(left, right, a, b)
    return [jnp.stack([alpha, beta.astype(alpha.dtype)], -2), *vectors]


@homogeneous_eig_of_pair.defjvp
@own_settings()
def _(function: str, left: bool, right: bool, primals: Any, tangents: Any) -> Any:
    del left, right, primals, tangents
    raise NotImplementedError(
        f"{function}: homogeneous_eigvals of a pair have no derivative, as α and β depend on how "
        "they are computed; their quotients have: expected homogeneous_eigvals=False"
    )


def _decomposed(left: bool, right: bool, a: Array, b: Array) -> list[Array]:
    s, t, q, z, alpha, beta = ffi_call("generalised_schur", a, b)
    sides = [(q, True)] * left + [(z, False)] * right
    return [
        alpha,
        beta,
        *(
            _unit(basis.astype(alpha.dtype) @ ffi_call("generalised_eigenvectors", s, t, left=side))
            for basis, side in sides
        ),
    ]


@eig_of_pair.defjvp
@own_settings()
def _(left: bool, right: bool, rule: Degenerate, primals: Any, tangents: Any) -> Any:
    w, u, v = eig_of_pair(True, True, rule, *primals)
    a, b, da, db = (x.astype(w.dtype) for x in (*primals, *tangents))
    alpha, beta = (jnp.sum(u.conj() * (x @ v), -2) for x in (a, b))
    size = jnp.hypot(abs(alpha), abs(beta))
    alpha, beta = alpha / size, beta / size
    own = jnp.eye(w.shape[-1], dtype=bool)
    apart = alpha[..., None, :] * beta[..., :, None] - beta[..., None, :] * alpha[..., :, None]
    f = reciprocal(apart, jnp.ones_like(size[..., 0]), rule, own) / size[..., :, None]
    n = adjoint(u) @ ((da @ v) * beta[..., None, :] - (db @ v) * alpha[..., None, :])
    dw = jnp.diagonal(n, axis1=-2, axis2=-1) / (size * beta**2)
    values, changes = [w], [dw]
    if left:
        across = (adjoint(da) @ u) * beta.conj()[..., None, :]
        across -= (adjoint(db) @ u) * alpha.conj()[..., None, :]
        values.append(u)
        changes.append(normalised(u, u @ (f.conj() * (adjoint(v) @ across))))
    if right:
        values.append(v)
        changes.append(normalised(v, v @ (f * n)))
    return values, changes


def _leading(v: Array) -> Array:
    """In each column the first row whose modulus is the largest, but for some roundings."""
    size = abs(v)
    bound = jnp.max(size, -2, keepdims=True, initial=0) * (1 - _TIE * np.finfo(size.dtype).eps)
    return jnp.argmax(size >= bound, -2, keepdims=True)


def _unit(v: Array) -> Array:
    """Columns of length one, real and positive where they are largest."""
    if v.shape[-1] == 0:
        return v
    length = jnp.sqrt(jnp.sum(v.real**2 + v.imag**2, -2, keepdims=True))
    v = v / length
    at = jnp.take_along_axis(v, _leading(v), -2)
    return v * (at.conj() / abs(at))


def normalised(v: Array, dv: Array) -> Array:
    """dv + c·v of length and phase as xGEEV leaves them: ‖v‖ = 1, the largest element real."""
    at, moved = (jnp.take_along_axis(x, _leading(v), -2)[..., 0, :] for x in (v, dv))
    length = -jnp.sum(v.conj() * dv, -2).real
    return dv + v * jax.lax.complex(length, -moved.imag / at.real)[..., None, :]
