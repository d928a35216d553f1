"""Factors and vectors that a program does not use are not computed.

JAX drops operations from a program just before it lowers it, not single results of them: it
computes the vectors of `eigvalsh`, and Q where R alone is wanted. These rules replace an operation
some of whose results nobody reads by the one without.

There are none for results that take no time beside the others: the pivots and the permutation of
`lu`, the sign of `slogdet`. Q of a QR factorisation with pivoting, and of a Hessenberg form, is a
call of its own after the factorisation's, which XLA drops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.extend.core import Primitive

from lapax import _jax_private as private
from lapax._jax_private import Var
from lapax._lowering import is_static

Used = Sequence[bool]
"""Of each result of an equation, whether it is read; at least one is not, and one is."""


def eigh(used: Used, eqn: Any) -> Any:
    """Without vectors: `eigh_values_p`."""
    return eqn if used[0] else eqn.replace(primitive=eigh_values_p, outvars=eqn.outvars[1:])


def qr(used: Used, eqn: Any) -> Any:
    """Without Q: `qr_r_p`."""
    if used[0] or eqn.params["pivoting"]:
        return eqn
    return eqn.replace(primitive=qr_r_p, outvars=eqn.outvars[1:])


def svd(used: Used, eqn: Any) -> Any:
    """Without U and Vᴴ: compute_uv=False. Without that of the larger side: not in full."""
    if not eqn.params["compute_uv"]:
        return eqn
    params = {**eqn.params, "full_matrices": False}
    if not any(used[1:]):
        return eqn.replace(params={**params, "compute_uv": False}, outvars=eqn.outvars[:1])
    a = eqn.invars[0].aval
    if not eqn.params["full_matrices"] or not is_static(a.shape):
        return eqn
    larger = 1 if a.shape[-2] >= a.shape[-1] else 2
    if used[larger]:
        return eqn
    outvars = list(eqn.outvars)
    outvars[larger] = Var(private.result_avals(eqn.primitive, [a], **params)[larger])
    return eqn.replace(params=params, outvars=outvars)


def eig(used: Used, eqn: Any) -> Any:
    """Without left or right vectors: their flag is False."""
    return _without(("compute_left_eigenvectors", "compute_right_eigenvectors"), used, eqn)


def schur(used: Used, eqn: Any) -> Any:
    """Without vectors: their flag is False."""
    return _without(("compute_schur_vectors",), used, eqn)


RULES: dict[str, Callable[[Used, Any], Any]] = {
    "eigh": eigh,
    "qr": qr,
    "svd": svd,
    "eig": eig,
    "schur": schur,
}
"""By primitive: the equation without what is not read, as far as there is one."""


def _without(flags: Sequence[str], used: Used, eqn: Any) -> Any:
    """Without those of the results after the first, one per flag set, that nobody reads."""
    present = [flag for flag in flags if eqn.params[flag]]
    unused = [flag for flag, use in zip(present, used[1:], strict=True) if not use]
    outvars = [v for v, use in zip(eqn.outvars, [True, *used[1:]], strict=True) if use]
    return eqn.replace(params={**eqn.params, **dict.fromkeys(unused, False)}, outvars=outvars)


def _part_of(name: str, part: str, places: Sequence[int]) -> Primitive:
    """Some results of one of JAX's primitives of a matrix, with its parameters, while lowering.

    Where lapax has no rule for it, it is lowered as that primitive."""
    primitive = Primitive(part)
    primitive.multiple_results = True

    def some(results: Sequence[Any]) -> list[Any]:
        return [results[place] for place in places]

    def abstract(a: Any, **params: Any) -> list[Any]:
        return some(private.result_avals(private.linalg_primitives()[name], [a], **params))

    def by_whole(a: jax.Array, **params: Any) -> list[jax.Array]:
        return some(private.linalg_primitives()[name].bind(a, **params))

    primitive.def_abstract_eval(abstract)
    private.lower_by(primitive, private.lower_unchanged(by_whole))
    return primitive


eigh_values_p = _part_of("eigh", "eigh_values", [1])
qr_r_p = _part_of("qr", "qr_r", [1])
