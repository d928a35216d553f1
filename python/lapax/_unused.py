"""Vectors that a program does not use are not computed.

JAX drops unused results from a program just before it lowers it, by rules per primitive, and has
none for linear algebra: it computes the vectors of `eigvalsh`. These rules replace an operation
whose vectors are unused by the one without.
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

_eigh_p = private.linalg_primitives()["eigh"]

eigh_values_p = Primitive("eigh_values")
"""The second result of `eigh_p`, with its parameters. Outside lapax it is `eigh_p`."""
eigh_values_p.multiple_results = True

Used = Sequence[bool]


def eigh(used: Used, *rest: Any) -> tuple[list[bool], Any]:
    """Without vectors: `eigh_values_p`."""
    eqn = rest[-1]  # Since JAX 0.12 `rest` begins with the operands that are live.
    if used[0] or not used[1]:
        return _kept(used, eqn)
    return [True], eqn.replace(primitive=eigh_values_p, outvars=eqn.outvars[1:])


def svd(used: Used, *rest: Any) -> tuple[list[bool], Any]:
    """Without U and Vᴴ: compute_uv=False."""
    eqn = rest[-1]
    if not used[0] or any(used[1:]) or not eqn.params["compute_uv"]:
        return _kept(used, eqn)
    params = {**eqn.params, "compute_uv": False, "full_matrices": False}
    return [True], eqn.replace(params=params, outvars=eqn.outvars[:1])


def eig(used: Used, *rest: Any) -> tuple[list[bool], Any]:
    """Without left or right vectors: their flag is False."""
    flags = ("compute_left_eigenvectors", "compute_right_eigenvectors")
    return _without(flags, used, rest[-1])


def schur(used: Used, *rest: Any) -> tuple[list[bool], Any]:
    """Without vectors: their flag is False."""
    return _without(("compute_schur_vectors",), used, rest[-1])


RULES = {"eigh": eigh, "svd": svd, "eig": eig, "schur": schur}
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


def _abstract(a: Any, **params: Any) -> list[Any]:
    return private.result_avals(_eigh_p, [a], **params)[1:]


def _values(a: jax.Array, **params: Any) -> list[jax.Array]:
    return list(_eigh_p.bind(a, **params))[1:]


def _impl(a: jax.Array, **params: Any) -> list[jax.Array]:
    with jax.disable_jit(False):
        return list(jax.jit(functools.partial(eigh_values_p.bind, **params))(a))


def _jvp(primals: Any, tangents: Any, **params: Any) -> tuple[list[Any], list[Any]]:
    """The derivative needs the vectors: eigh's."""
    values, derivatives = ad.primitive_jvps[_eigh_p](primals, tangents, **params)
    return list(values[1:]), list(derivatives[1:])


def _batched(axis: Any, args: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
    results = eigh_values_p.bind(*in_front(axis, args, dims), **params)
    return results, (0,) * len(results)


eigh_values_p.def_impl(_impl)
eigh_values_p.def_abstract_eval(_abstract)
ad.primitive_jvps[eigh_values_p] = _jvp
batching.fancy_primitive_batchers[eigh_values_p] = _batched
mlir.register_lowering(eigh_values_p, mlir.lower_fun(_values, multiple_results=True))
