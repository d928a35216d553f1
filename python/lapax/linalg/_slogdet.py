"""The determinant by the QR decomposition, also of complex matrices."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from lapax._settings import own_settings
from lapax.linalg._arguments import Array, check_square, operation


class SlogdetResult(NamedTuple):
    """det A = sign · exp(logabsdet)."""

    sign: Array
    logabsdet: Array


@operation("a")
def slogdet(a: Array) -> SlogdetResult:
    """Sign (or phase) and logarithm of |det A| by A = Q·R, as jax.numpy.linalg.slogdet has them.

    |det A| is that of R. Q is the product of H = I − τ·v·vᴴ, which are unitary: ‖v‖² is
    2·Re τ/|τ|² (LAPACK's xLARFG), so that det H = 1 − τ·‖v‖² = −τ/conj(τ), and 1 where τ = 0.

    `a` [..., n, n]; both results [...], the first of its dtype, the second real; 0 and −∞ for a
    singular matrix. Raises ValueError unless A is square. With x = tr(A⁻¹·dA) the logarithm changes
    by Re x, and the phase by i·Im x times itself (Magnus and Neudecker, Matrix Differential
    Calculus, 3rd ed., section 8.3).
    """
    check_square("slogdet", a=a)
    return SlogdetResult(*_slogdet(a))


@jax.custom_jvp
def _slogdet(a: Array) -> tuple[Array, Array]:
    factors, taus = jnp.linalg.qr(a, mode="raw")
    diagonal = jnp.diagonal(factors, axis1=-2, axis2=-1)
    reflected = taus != 0
    of_q = jnp.where(reflected, -taus / jnp.conj(jnp.where(reflected, taus, 1)), 1)
    sign = jnp.prod(of_q, -1) * jnp.prod(jnp.sign(diagonal), -1)
    return sign, jnp.sum(jnp.log(jnp.abs(diagonal)), -1)


@_slogdet.defjvp
@own_settings()
def _(primals: tuple[Array], tangents: tuple[Array]) -> Any:
    ((a,), (da,)) = primals, tangents
    sign, logarithm = _slogdet(a)
    x = jnp.trace(jnp.linalg.solve(a, da), axis1=-2, axis2=-1)
    return (sign, logarithm), (sign * (x - x.real), x.real)
