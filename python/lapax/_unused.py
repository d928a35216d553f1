"""Factors and vectors that a program does not use are not computed.

JAX drops unused results from a program just before it lowers it, by rules per primitive, and has
none for linear algebra: it computes the vectors of `eigvalsh`, and Q where R alone is wanted. These
rules replace an operation some of whose results are unused by the one without.

There are none for results that take no time beside the others: the pivots and the permutation of
`lu`, the sign of `slogdet`. Q of a QR factorisation with pivoting, and of a Hessenberg form, is a
call of its own after the factorisation's, which XLA drops.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from lapax import _jax_private as private
from lapax._call import in_front
from lapax._lowering import is_static

_primitives = private.linalg_primitives()

Used = Sequence[bool]


def eigh(used: Used, *rest: Any) -> tuple[list[bool], Any]:
    """Without vectors: `eigh_values_p`."""
    eqn = rest[-1]  # Since JAX 0.12 `rest` begins with the operands that are live.
    if used[0] or not used[1]:
        return _kept(used, eqn)
    return [True], eqn.replace(primitive=eigh_values_p, outvars=eqn.outvars[1:])


def qr(used: Used, *rest: Any) -> tuple[list[bool], Any]:
    """Without Q: `qr_r_p`."""
    eqn = rest[-1]
    if used[0] or not used[1] or eqn.params["pivoting"]:
        return _kept(used, eqn)
    return [True], eqn.replace(primitive=qr_r_p, outvars=eqn.outvars[1:])


def svd(used: Used, *rest: Any) -> tuple[list[bool], Any]:
    """Without U and Vᴴ: compute_uv=False. Without the one that full_matrices adds to: False."""
    eqn = rest[-1]
    if not any(used) or not eqn.params["compute_uv"]:
        return _kept(used, eqn)
    if not any(used[1:]):
        params = {**eqn.params, "compute_uv": False, "full_matrices": False}
        return [True], eqn.replace(params=params, outvars=eqn.outvars[:1])
    a = eqn.invars[0].aval
    larger = 2 if is_static(a.shape) and a.shape[-2] < a.shape[-1] else 1
    if not eqn.params["full_matrices"] or not is_static(a.shape) or used[larger]:
        return _kept(used, eqn)
    params = {**eqn.params, "full_matrices": False}
    avals = private.result_avals(eqn.primitive, [a], **params)
    outvars = list(eqn.outvars)
    outvars[larger] = private.unused_variable(avals[larger])
    return [True], eqn.replace(params=params, outvars=outvars)


def eig(used: Used, *rest: Any) -> tuple[list[bool], Any]:
    """Without left or right vectors: their flag is False."""
    flags = ("compute_left_eigenvectors", "compute_right_eigenvectors")
    return _without(flags, used, rest[-1])


def schur(used: Used, *rest: Any) -> tuple[list[bool], Any]:
    """Without vectors: their flag is False."""
    return _without(("compute_schur_vectors",), used, rest[-1])


def loop(used: Used, eqn: Any) -> tuple[list[bool], Any]:
    """A `while` of a JAX that has no rule for it: all that it carries, by bodies without more."""
    if not any(used) and not eqn.effects:
        return [False] * len(eqn.invars), None
    return [True] * len(eqn.invars), private.without_unused(eqn, ("cond_jaxpr", "body_jaxpr"))


RULES = {"eigh": eigh, "qr": qr, "svd": svd, "eig": eig, "schur": schur}
"""By primitive."""


def _without(flags: Sequence[str], used: Used, eqn: Any) -> tuple[list[bool], Any]:
    """The equation without the unused ones of the results after the first, one per flag set."""
    present = [flag for flag in flags if eqn.params[flag]]
    unused = [flag for flag, use in zip(present, used[1:], strict=True) if not use]
    if not any(used) or not unused:
        return _kept(used, eqn)
    outvars = [v for v, use in zip(eqn.outvars, [True, *used[1:]], strict=True) if use]
    params = {**eqn.params, **dict.fromkeys(unused, False)}
    return [True], eqn.replace(params=params, outvars=outvars)


def _kept(used: Used, eqn: Any) -> tuple[list[bool], Any]:
    return [any(used)], eqn if any(used) else None


def _second_of(name: str, alone: str) -> Primitive:
    """The second result of one of JAX's primitives of a matrix, with its parameters.

    Outside lapax it is that primitive.
    """
    both, primitive = _primitives[name], Primitive(alone)
    primitive.multiple_results = True

    def abstract(a: Any, **params: Any) -> list[Any]:
        return private.result_avals(both, [a], **params)[1:]

    def second(a: jax.Array, **params: Any) -> list[jax.Array]:
        return list(both.bind(a, **params))[1:]

    def impl(a: jax.Array, **params: Any) -> list[jax.Array]:
        with jax.disable_jit(False):
            return list(jax.jit(functools.partial(primitive.bind, **params))(a))

    def jvp(primals: Any, tangents: Any, **params: Any) -> tuple[list[Any], list[Any]]:
        """The derivative needs the first, too."""
        values, derivatives = ad.primitive_jvps[both](primals, tangents, **params)
        return list(values[1:]), list(derivatives[1:])

    def batched(axis: Any, args: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
        results = primitive.bind(*in_front(axis, args, dims), **params)
        return results, (0,) * len(results)

    primitive.def_impl(impl)
    primitive.def_abstract_eval(abstract)
    ad.primitive_jvps[primitive] = jvp
    batching.fancy_primitive_batchers[primitive] = batched
    mlir.register_lowering(primitive, mlir.lower_fun(second, multiple_results=True))
    return primitive


eigh_values_p = _second_of("eigh", "eigh_values")
qr_r_p = _second_of("qr", "qr_r")
