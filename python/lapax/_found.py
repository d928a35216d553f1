"""What a function of JAX's is replaced with where its inner jit is found by its body.

The replacement is a function of JAX arrays, too, which is traced and lowered in its place.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import jax
from jax.extend.core import Primitive

from lapax import _jax_private as private
from lapax import _reference as reference
from lapax import _selection
from lapax._lowering import dtype_name, is_static
from lapax._table import ops

Array = jax.Array
Function = Callable[..., Any]


class Case(NamedTuple):
    """What a body may be: one of JAX's functions under levels of vmap, and what replaces it."""

    stock: Function
    ours: Function
    """Of the same operands, with a list of the same results; for equal bodies the same object."""


found_p = Primitive("lapax_found")
found_p.multiple_results = True


def rule(ctx: Any, *operands: Any, function: Function) -> Sequence[Any]:
    """How what was found is lowered: `function` of the operands."""
    lowered: Sequence[Any] = private.lower_fun(function)(ctx, *operands)
    return lowered


def is_served(op: str, platform: str, avals: Sequence[Any]) -> bool:
    """Whether JAX's functions of such matrices are to call the op's target."""
    a, *_ = avals
    return (
        all(is_static(aval.shape) and 0 not in aval.shape for aval in avals)
        and _selection.serves_op(op, platform)
        and any(
            target.platform.lower() == platform and target.signature.variant(dtype_name(a.dtype))
            for target in ops().get(op, ())
        )
    )


def replaced(eqn: Any, cases: Iterable[Case]) -> Any | None:
    """The equation in place of an inner jit that is the first of these; None of another."""
    avals, given = [atom.aval for atom in eqn.invars], private.called_by_jit(eqn)
    for case in cases:
        like = reference.call(case.stock, avals)
        if like is None:
            continue
        wanted = _wanted(len(like.outvars), len(eqn.outvars))
        if wanted is not None and is_same(private.called_by_jit(like), wanted, given):
            function = case.ours if all(wanted) else _some(case.ours, wanted)
            return eqn.replace(primitive=found_p, params={"function": function})
    return None


def is_same(body: Any, wanted: tuple[bool, ...], given: Any) -> bool:
    """Whether `given` is the body with these results, as it is or without what nobody reads."""
    if all(wanted) and reference.same(body, given):
        return True
    part = private.results_alone(body, wanted)
    return part is not None and reference.same(part, given)


def _wanted(results: int, read: int) -> tuple[bool, ...] | None:
    """Which results those are that are read: all, or of two the second; None where neither."""
    if read == results:
        return (True,) * read
    return (False, True) if (results, read) == (2, 1) else None


@functools.cache
def _some(function: Function, wanted: tuple[bool, ...]) -> Function:
    def part(*operands: Array) -> list[Array]:
        return [x for x, want in zip(function(*operands), wanted, strict=True) if want]

    return part
