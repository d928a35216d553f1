"""The derivative rule of functions of a matrix, apart from the algorithms that compute them.

A primary function f (Higham, Functions of Matrices, SIAM 2008, 1.2) has at A the Fréchet derivative
L(A, ·), a linear map of matrices, which the block formula (Mathias, SIAM J. Matrix Anal. Appl. 17,
1996) defines: f([[A, E], [0, A]]) = [[f(A), L(A, E)], [0, f(A)]]. L is one primitive, because JAX
can transpose none of the algorithms that compute it. Its rules hold for every primary function:

- its transpose in E is C ↦ L(A, Cᵀ)ᵀ, as for each power: (Σ AⁱEAʲ)ᵀ = Σ (Aᵀ)ʲEᵀ(Aᵀ)ⁱ;
- its derivative in A along D is the upper right block of L([[A, E], [0, A]], [[D, 0], [0, D]])
  (Higham and Relton, SIAM J. Matrix Anal. Appl. 35, 2014), so that any order exists.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from lapax._settings import own_settings
from lapax.linalg._products import block_triangular

Array = jax.Array
Derivative = Callable[[Array, Array], Array]
"""L(A, E) of matrices [..., n, n] of one dtype and batch. Compared by identity in JAX's caches."""


def primary_function(f: Callable[[Array], Array], derivative: Derivative) -> Any:
    """f, [..., n, n] to the same shape, with `derivative` as its Fréchet derivative.

    f has the dtype of its operand, or is complex where that is real; the derivative is then that at
    the complex matrix.
    """

    @jax.custom_jvp
    def function(a: Array) -> Array:
        return f(a)

    @function.defjvp
    @own_settings()
    def _rule(primals: Any, tangents: Any) -> tuple[Array, Array]:
        value = function(*primals)
        operands = (x.astype(value.dtype) for x in (*primals, *tangents))
        return value, frechet(derivative, *operands)

    return function


def frechet(derivative: Derivative, a: Array, e: Array) -> Array:
    """L(A, E): linear in E, and differentiable in both."""
    result: Array = frechet_p.bind(a, e, derivative=derivative)
    return result


@own_settings()
def _jvp(primals: Any, tangents: Any, *, derivative: Derivative) -> tuple[Any, Any]:
    (a, e), (a_dot, e_dot) = primals, tangents
    result = frechet_p.bind(a, e, derivative=derivative)
    dots = []
    if type(e_dot) is not ad.Zero:
        dots.append(frechet_p.bind(a, e_dot, derivative=derivative))
    if type(a_dot) is not ad.Zero:
        n, zero = a.shape[-1], jnp.zeros_like(a)
        direction = jnp.block([[a_dot, zero], [zero, a_dot]])
        both = frechet_p.bind(block_triangular(a, e), direction, derivative=derivative)
        dots.append(both[..., :n, n:])
    return result, sum(dots)


@own_settings()
def _transpose(c: Any, a: Any, e: Any, *, derivative: Derivative) -> list[Any]:
    if type(c) is ad.Zero:
        return [None, ad.Zero(e.aval)]
    transposed = frechet_p.bind(a, jnp.swapaxes(c, -1, -2), derivative=derivative)
    return [None, jnp.swapaxes(transposed, -1, -2)]


def _batched(operands: Any, axes: Any, *, derivative: Derivative) -> tuple[Any, int]:
    return frechet_p.bind(*batch_first(operands, axes), derivative=derivative), 0


def batch_first(operands: Any, axes: Any) -> list[Array]:
    """Operands of a batching rule, each with the batch as its first dimension."""
    pairs = list(zip(operands, axes, strict=True))
    size = next(x.shape[i] for x, i in pairs if i is not None)
    return [
        jnp.broadcast_to(x, (size, *x.shape)) if i is None else jnp.moveaxis(x, i, 0)
        for x, i in pairs
    ]


@own_settings()
def _computed(a: Array, e: Array, *, derivative: Derivative) -> Array:
    return derivative(a, e)


frechet_p = Primitive("matrix_function_derivative")
frechet_p.def_impl(jax.jit(_computed, static_argnames="derivative"))
frechet_p.def_abstract_eval(lambda a, e, derivative: e)
ad.primitive_jvps[frechet_p] = _jvp
ad.primitive_transposes[frechet_p] = _transpose
batching.primitive_batchers[frechet_p] = _batched
mlir.register_lowering(frechet_p, mlir.lower_fun(_computed, multiple_results=False))
