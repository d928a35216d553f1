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
    """Without U and Vᴴ: compute_uv=False. Without that of the larger side: `svd_right_p` or
    `svd_left_p`, and full_matrices=False, which is about that side alone."""
    eqn = rest[-1]
    if not any(used) or not eqn.params["compute_uv"]:
        return _kept(used, eqn)
    if not any(used[1:]):
        params = {**eqn.params, "compute_uv": False, "full_matrices": False}
        return [True], eqn.replace(params=params, outvars=eqn.outvars[:1])
    shape = eqn.invars[0].aval.shape
    if not is_static(shape):
        return _kept(used, eqn)
    larger = 1 if shape[-2] >= shape[-1] else 2
    if used[larger]:
        return _kept(used, eqn)
    params = {**eqn.params, "full_matrices": False}
    outvars = [v for i, v in enumerate(eqn.outvars) if i != larger]
    primitive = svd_right_p if larger == 1 else svd_left_p
    return [True], eqn.replace(primitive=primitive, params=params, outvars=outvars)


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


def _part_of(name: str, part: str, places: Sequence[int]) -> Primitive:
    """Some results of one of JAX's primitives of a matrix, with its parameters.

    Outside lapax it is that primitive.
    """
    whole, primitive = _primitives[name], Primitive(part)
    primitive.multiple_results = True

    def abstract(a: Any, **params: Any) -> list[Any]:
        return some(private.result_avals(whole, [a], **params))

    def some(results: Sequence[Any]) -> list[Any]:
        return [results[place] for place in places]

    def by_whole(a: jax.Array, **params: Any) -> list[jax.Array]:
        return some(whole.bind(a, **params))

    def impl(a: jax.Array, **params: Any) -> list[jax.Array]:
        with jax.disable_jit(False):
            return list(jax.jit(functools.partial(primitive.bind, **params))(a))

    def jvp(primals: Any, tangents: Any, **params: Any) -> tuple[list[Any], list[Any]]:
        """The derivative needs the others, too."""
        values, derivatives = ad.primitive_jvps[whole](primals, tangents, **params)
        return some(values), some(derivatives)

    def batched(axis: Any, args: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
        results = primitive.bind(*in_front(axis, args, dims), **params)
        return results, (0,) * len(results)

    primitive.def_impl(impl)
    primitive.def_abstract_eval(abstract)
    ad.primitive_jvps[primitive] = jvp
    batching.fancy_primitive_batchers[primitive] = batched
    mlir.register_lowering(primitive, mlir.lower_fun(by_whole, multiple_results=True))
    return primitive


eigh_values_p = _part_of("eigh", "eigh_values", [1])
qr_r_p = _part_of("qr", "qr_r", [1])
svd_right_p = _part_of("svd", "svd_right", [0, 2])
svd_left_p = _part_of("svd", "svd_left", [0, 1])
