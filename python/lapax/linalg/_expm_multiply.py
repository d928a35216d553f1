"""The action of the exponential on a few vectors, by products with the matrix alone.

exp(A)·B = (T_m(A/s))ˢ·B with the Taylor polynomial T_m of the shifted matrix (Al-Mohy and Higham,
SIAM J. Sci. Comput. 33, 2011, Algorithm 3.2, by the 1-norm of A alone). It is a primitive, linear
in B, as JAX cannot transpose loops until convergence.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from lapax._settings import own_settings
from lapax.linalg._arguments import check_square, operation, right_hand_sides, same_batch
from lapax.linalg._expm import expm_derivative
from lapax.linalg._frechet import batch_first, frechet
from lapax.linalg._products import all_or_nan, diagonal, one_norm, product

__all__ = ["expm_multiply"]

Array = jax.Array


@operation("A", "B")
def expm_multiply(A: Any, B: Any) -> Any:
    """exp(A)·B of A [..., n, n] and B [n] or [..., n, k], without the exponential.

    The cost is that of about 5·‖A - μI‖₁ + 30 products A·B, μ the mean of the diagonal; a batch
    takes as many as its largest matrix.

    Derivative: in B by the equation itself, exp(A)·dB or exp(Aᵀ)·C; in A by the dense Fréchet
    derivative of `expm`; of every order.

    Raises ValueError where the shapes do not fit.
    Source: Al-Mohy and Higham, SIAM J. Sci. Comput. 33, 2011.

    >>> expm_multiply(array([[0., 1], [0, 0]]), ones(2))  # [2, 1]
    """
    check_square("expm_multiply", A=A)
    b, formed = right_hand_sides("expm_multiply", B, A.shape[-1], B.ndim == 1, "B")
    return formed(_action_p.bind(*same_batch("expm_multiply", A=(A, 2), B=(b, 2))))


# θ_m of the paper's table 3.1: the norm of A/s up to which degree m has a backward error below the
# unit roundoff, for single and double precision.
_DEGREES = (5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55)
_THETAS = {
    4: (1.3e-1, 1.0, 2.2, 3.6, 4.9, 6.3, 7.7, 9.1, 11, 12, 13),
    8: (2.4e-3, 1.4e-1, 6.4e-1, 1.4, 2.4, 3.5, 4.7, 6.0, 7.2, 8.5, 9.9),
}


@own_settings()
def _action(a: Array, b: Array) -> Array:
    if b.size == 0:
        return b
    real = a.real.dtype
    shift = jnp.mean(diagonal(a), axis=-1)[..., None, None]
    shifted = a - shift * jnp.eye(a.shape[-1], dtype=a.dtype)
    norm = one_norm(shifted)
    degrees = jnp.asarray(_DEGREES, real)
    stages = jnp.maximum(jnp.ceil(norm[..., None] / jnp.asarray(_THETAS[real.itemsize], real)), 1)
    best = jnp.argmin(stages * degrees, axis=-1)[..., None]
    count = jnp.take_along_axis(stages, best, -1)[..., 0]
    good = jnp.isfinite(norm)
    count = jnp.where(good, count, 0)
    degree = degrees[best[..., 0]]
    divided = jnp.maximum(count, 1)[..., None, None]
    shifted, factor = shifted / divided, jnp.exp(shift / divided)

    def stage(state: tuple[Array, Array]) -> tuple[Array, Array]:
        i, b = state
        after = factor * _taylor(shifted, b, degree)
        return i + 1, jnp.where((i < count)[..., None, None], after, b)

    largest = jnp.max(count, initial=0)
    start = (jnp.zeros((), real), b)
    return all_or_nan(good, jax.lax.while_loop(lambda state: state[0] < largest, stage, start)[1])


def _taylor(a: Array, b: Array, degree: Array) -> Array:
    """Σ Aᵏ·B/k! for k ≤ degree, each matrix until its terms are below the unit roundoff."""
    roundoff = np.finfo(a.real.dtype).eps / 2

    def size(x: Array) -> Array:
        return jnp.max(jnp.abs(x), axis=(-2, -1))

    def add(state: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        k, term, total, open_ = state
        new = product(a, term) / k
        more = open_ & (size(term) + size(new) > roundoff * size(total)) & (k < degree)
        total = jnp.where(open_[..., None, None], total + new, total)
        return k + 1, new, total, more

    start = (jnp.ones((), a.real.dtype), b, b, degree > 0)
    return jax.lax.while_loop(lambda state: jnp.any(state[3]), add, start)[2]


@own_settings()
def _jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    (a, b), (a_dot, b_dot) = primals, tangents
    dots = []
    if type(b_dot) is not ad.Zero:
        dots.append(_action_p.bind(a, b_dot))
    if type(a_dot) is not ad.Zero:
        dots.append(product(frechet(expm_derivative, a, a_dot), b))
    return _action_p.bind(a, b), sum(dots)


@own_settings()
def _transpose(c: Any, a: Any, b: Any) -> list[Any]:
    if type(c) is ad.Zero:
        return [None, ad.Zero(b.aval)]
    return [None, _action_p.bind(jnp.swapaxes(a, -1, -2), c)]


def _batched(operands: Any, axes: Any) -> tuple[Any, int]:
    return _action_p.bind(*batch_first(operands, axes)), 0


_action_p = Primitive("matrix_exponential_action")
_action_p.def_impl(jax.jit(_action))
_action_p.def_abstract_eval(lambda a, b: b)
ad.primitive_jvps[_action_p] = _jvp
ad.primitive_transposes[_action_p] = _transpose
batching.primitive_batchers[_action_p] = _batched
mlir.register_lowering(_action_p, mlir.lower_fun(_action, multiple_results=False))
