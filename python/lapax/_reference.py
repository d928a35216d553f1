"""Whether a body is that of one of JAX's functions, which is traced anew to be compared with.

Names say little: anyone may jit a function called `solve`. JAX traces a function of its own to the
same body each time, and vmap makes the same of it, so equality is decided equation by equation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from lapax import _jax_private as private
from lapax._jax_private import Literal

BOTH, FACTORS, REST = "both", "factors", "rest"
"""What a level of vmap maps: all operands, only those of the matrix, or only the others."""

Levels = tuple[str, ...]
"""From the outermost one in; each maps leading dimensions."""


def levels(factors: int, rest: int) -> Iterator[Levels]:
    """The levels that map so many dimensions of a matrix's operands and of the others; those with
    the fewest first."""

    def all_of(factors: int, rest: int) -> Iterator[Levels]:
        if not factors and not rest:
            yield ()
        for kind, less in ((BOTH, (1, 1)), (FACTORS, (1, 0)), (REST, (0, 1))):
            left = factors - less[0], rest - less[1]
            if min(left) >= 0:
                yield from ((kind, *inner) for inner in all_of(*left))

    return iter(sorted(all_of(factors, rest), key=len))


def call(function: Callable[..., Any], operands: Sequence[Any]) -> Any | None:
    """The one equation that a function is, its results those of the equation; None of another.

    `operands` are types, of their sharding and of the axes that they vary over.
    """
    jaxpr = private.traced(function, operands)
    if len(jaxpr.eqns) != 1:
        return None
    (eqn,) = jaxpr.eqns
    plain = list(eqn.invars) == list(jaxpr.invars) and list(eqn.outvars) == list(jaxpr.outvars)
    return eqn if plain else None


def mapped(
    function: Callable[..., Any], kinds: Levels, is_factor: Sequence[bool]
) -> Callable[..., Any]:
    """`function` under so many vmaps."""
    for kind in reversed(kinds):
        axes = [0 if kind == BOTH or (kind == FACTORS) == factor else None for factor in is_factor]
        function = jax.vmap(function, in_axes=tuple(axes))
    return function


def same(a: Any, b: Any) -> bool:
    """Whether two bodies do the same, equation by equation."""
    (a, a_consts), (b, b_consts) = private.opened(a), private.opened(b)
    if a is b:
        return True
    if len(a.eqns) != len(b.eqns) or len(a.invars) != len(b.invars):
        return False
    if not all(map(_equal, a_consts, b_consts)) or len(a_consts) != len(b_consts):
        return False
    names: dict[Any, Any] = {}

    def bind(vars_a: Sequence[Any], vars_b: Sequence[Any]) -> bool:
        names.update(zip(vars_a, vars_b, strict=False))
        types = all(
            (x.aval.shape, x.aval.dtype) == (y.aval.shape, y.aval.dtype)
            for x, y in zip(vars_a, vars_b, strict=False)
            if hasattr(x.aval, "shape")
        )
        return len(vars_a) == len(vars_b) and types

    def read(atom_a: Any, atom_b: Any) -> bool:
        if isinstance(atom_a, Literal) or isinstance(atom_b, Literal):
            both = isinstance(atom_a, Literal) and isinstance(atom_b, Literal)
            return both and _equal(atom_a.val, atom_b.val)
        return names.get(atom_a) is atom_b

    if not (bind(a.constvars, b.constvars) and bind(a.invars, b.invars)):
        return False
    for x, y in zip(a.eqns, b.eqns, strict=True):
        if x.primitive is not y.primitive or len(x.invars) != len(y.invars):
            return False
        if not all(map(read, x.invars, y.invars)) or not _same_params(x.params, y.params):
            return False
        if not bind(x.outvars, y.outvars):
            return False
    return len(a.outvars) == len(b.outvars) and all(map(read, a.outvars, b.outvars))


def _same_params(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return a.keys() == b.keys() and all(
        name in private.DERIVATIVES or _same_param(value, b[name]) for name, value in a.items()
    )


def _same_param(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if private.is_body(a) and private.is_body(b):
        return same(a, b)
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(map(_same_param, a, b))
    return _equal(a, b)


def _equal(a: Any, b: Any) -> bool:
    if a is b:
        return True
    # JAX's literals are arrays of classes of its own, which differ by version.
    if hasattr(a, "__array__") or isinstance(a, float | complex):
        return type(a) is type(b) and np.array_equal(np.asarray(a), np.asarray(b), equal_nan=True)
    try:
        return bool(a == b)
    except ValueError:
        return False
