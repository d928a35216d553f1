"""JAX's expm in programs, and what vmap and derivatives make of it, as calls of a target.

A derivative forwards is one jit of A and its direction E; one backwards are two jits, of which the
first one keeps for the other what makes of the cotangent of exp(A) that of A. The contract is
JAX's: NaN where it would square more often than `max_squarings`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl

from lapax import _jax_private as private
from lapax import _reference as reference
from lapax._found import Array, Case, Function, found_p, is_same, is_served
from lapax._jax_private import Literal
from lapax._program import Program, holds
from lapax._reference import BOTH, FACTORS, REST, Levels

NAME = "expm"
"""Of the jit, and of the target."""

_THETAS = {4: 3.925724783138660, 8: 5.371920351148152}
"""By the bytes of a real number, the norm up to which JAX's expm does not halve A."""


def cases(eqn: Any, avals: Sequence[Any]) -> Iterator[Case]:
    found = _options(private.called_by_jit(eqn))
    if found is None or len(avals) > 2:
        return
    most, stock, has_batch = found
    ranks = [aval.ndim - 2 for aval in avals]
    for own in range(1, min(ranks) + 1) if has_batch else (0,):
        if len(avals) == 1:
            levels = (BOTH,) * (ranks[0] - own)
            yield Case(reference.mapped(stock, levels, (True,)), _exponential(most))
            continue
        for levels in reference.levels(*(rank - own for rank in ranks)):
            yield Case(_mapped_pair(_jvp_of(stock), levels), _with_derivative(most, levels))


def _options(body: Any) -> tuple[int, Function, bool] | None:
    """JAX's `max_squarings`, its function with it, and whether this is one of a batch: a jit
    around that of a matrix, mapped over. None of another body."""
    eqns = private.opened(body)[0].eqns
    for eqn in eqns:
        # The number of squarings, beyond which the result is NaN.
        if eqn.primitive.name == "gt" and isinstance(eqn.invars[1], Literal):
            most, upper = int(eqn.invars[1].val), not holds(private.opened(body)[0], _LU)
            stock = functools.partial(jsl.expm, upper_triangular=upper, max_squarings=most)
            return most, stock, False
    inner = next((eqn for eqn in eqns if private.name_of_jit(eqn) == NAME), None)
    found = None if inner is None else _options(private.called_by_jit(inner))
    return found and (*found[:2], True)


_LU = frozenset({"lu"})


def _jvp_of(function: Function) -> Function:
    return lambda a, e: jax.jvp(function, (a,), (e,))


def _mapped_pair(function: Function, levels: Levels) -> Function:
    """A function of A and another matrix under levels of vmap, whose first result is of A alone."""
    for kind in reversed(levels):
        of_a, of_other = (None if kind == other else 0 for other in (REST, FACTORS))
        function = jax.vmap(function, in_axes=(of_a, of_other), out_axes=(of_a, 0))
    return function


@functools.cache
def _exponential(most: int) -> Function:
    from lapax.linalg import _expm  # It imports all of lapax.
    from lapax.linalg._products import all_or_nan

    def exponential(a: Array) -> list[Array]:
        return [all_or_nan(~_too_large(a, most), _expm.exponential_value(a))]

    return exponential


@functools.cache
def _with_derivative(most: int, levels: Levels) -> Function:
    from lapax.linalg import _expm
    from lapax.linalg._products import all_or_nan

    def pair(a: Array, e: Array) -> tuple[Array, Array]:
        too_large = _too_large(a, most)
        value, derivative = _expm.exponential_and_derivative(a, e)
        if REST in levels:  # The value of one A for all of its directions.
            value = _expm.exponential_value(a)
        # That of NaN itself is 0.
        return all_or_nan(~too_large, value), jnp.where(too_large[..., None, None], 0, derivative)

    return _mapped_pair(pair, levels)


@functools.cache
def _cotangent(most: int, levels: Levels) -> Function:
    """C ↦ L(A, Cᵀ)ᵀ, the transpose of L(A, ·)."""

    def pair(a: Array, c: Array) -> tuple[Array, Array]:
        _, derivative = _with_derivative(most, ())(a, jnp.swapaxes(c, -1, -2))
        return a, jnp.swapaxes(derivative, -1, -2)

    mapped = _mapped_pair(pair, levels)
    return lambda a, c: [mapped(a, c)[1]]


def _too_large(a: Array, most: int) -> Array:
    """Whether JAX's expm would square more often."""
    norm = jnp.linalg.norm(a, 1, axis=(-2, -1))
    squarings = jnp.maximum(0, jnp.floor(jnp.log2(norm / _THETAS[norm.dtype.itemsize])))
    return squarings > most


def gradients(platform: str) -> Callable[[Program, Any], Any | None]:
    """A rule for the jits of one body, in order: of such a pair it replaces both."""
    pending: dict[int, Any] = {}

    def rule(program: Program, eqn: Any) -> Any | None:
        if id(eqn) in pending:
            return pending.pop(id(eqn))
        if private.name_of_jit(eqn) != NAME or len(eqn.invars) != 1:
            return None
        other = _backwards(program, eqn)
        if other is None or not is_served(NAME, platform, [eqn.invars[0].aval]):
            return None
        found = _pair(program, eqn, other)
        if found is None:
            return None
        first, pending[id(other)] = found
        return first

    return rule


def _backwards(program: Program, eqn: Any) -> Any | None:
    """The jit of the same name that alone reads what this one keeps."""
    kept = set(eqn.outvars)
    others = [
        other
        for other in program.eqns
        if private.name_of_jit(other) == NAME and kept.intersection(_variables(program, other))
    ]
    if len(others) != 1:
        return None
    read = _variables(program, others[0])
    more = [var for var in eqn.outvars if program.readers(var) != read.count(var)]
    return others[0] if len(more) <= 1 else None  # exp(A) itself.


def _variables(program: Program, eqn: Any) -> list[Any]:
    return [atom for atom in program.operands(eqn) if not isinstance(atom, Literal)]


def _pair(program: Program, eqn: Any, other: Any) -> tuple[Any, Any] | None:
    """What replaces the two."""
    (a,), found = program.operands(eqn), _options(private.called_by_jit(eqn))
    given = {a, *eqn.outvars}
    rest = [var for var in _variables(program, other) if var not in given]
    if found is None or len(rest) != 1 or len(other.outvars) != 1:
        return None
    (cotangent,), (most, stock, has_batch) = rest, found
    ranks = [var.aval.ndim - 2 for var in (a, cotangent)]
    for own in range(1, min(ranks) + 1) if has_batch else (0,):
        for levels in reference.levels(*(rank - own for rank in ranks)):
            for function in _vjps(stock, levels):
                like = private.traced(function, [a.aval, cotangent.aval])
                value = _value_of_same(program, like, (eqn, other), (a, cotangent))
                if value is not None:
                    of_a = {"function": _exponential(most)}
                    of_both = {"function": _cotangent(most, levels)}
                    return (
                        eqn.replace(primitive=found_p, outvars=[value], params=of_a),
                        other.replace(primitive=found_p, invars=[a, cotangent], params=of_both),
                    )
    return None


def _vjps(function: Function, levels: Levels) -> Iterator[Function]:
    """f(A) and the cotangent of A that another one of f(A) gives, mapped before or after."""

    def vjp_of(function: Function) -> Function:
        def pair(a: Array, cotangent: Array) -> tuple[Array, Array]:
            value, backwards = jax.vjp(function, a)
            return value, backwards(cotangent)[0]

        return pair

    yield _mapped_pair(vjp_of(function), levels)
    if set(levels) == {BOTH}:
        yield vjp_of(reference.mapped(function, levels, (True,)))


def _value_of_same(
    program: Program, like: Any, eqns: tuple[Any, Any], operands: tuple[Any, Any]
) -> Any | None:
    """The variable of f(A) among the results of the first of two equations, a new one if it is not
    read; None unless they are those of `like`."""
    if len(like.eqns) != 2 or any(private.called_by_jit(eqn) is None for eqn in like.eqns):
        return None
    (first, second), (eqn, other) = like.eqns, eqns
    if list(first.invars) != [like.invars[0]] or like.outvars[0] not in first.outvars:
        return None
    value, results = like.outvars[0], list(first.outvars)
    wanted = (True,) * len(results)
    if len(eqn.outvars) == len(results) - 1:
        wanted = tuple(var is not value for var in results)
        results.remove(value)
    if len(eqn.outvars) != len(results) or len(other.invars) != len(second.invars):
        return None
    names = dict(zip((*like.invars, *results), (*operands, *eqn.outvars), strict=True))
    wired = all(
        not isinstance(x, Literal) and names.get(x) is program.atom(y)
        for x, y in zip(second.invars, other.invars, strict=True)
    )
    bodies = [private.called_by_jit(it) for it in (first, eqn, second, other)]
    if not wired or not is_same(bodies[0], wanted, bodies[1]):
        return None
    if not is_same(bodies[2], (True,), bodies[3]):
        return None
    return names[value] if value in names else private.fresh(value)
