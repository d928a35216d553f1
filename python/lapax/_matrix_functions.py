"""JAX's functions of matrices and its Sylvester equation in programs, as lapax.linalg's.

`jax.scipy.linalg.expm`, `sqrtm` and `solve_sylvester` are inner jits, known by their bodies. The
contract stays JAX's: an equation is NaN where two eigenvalues come closer than `tol`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np

from lapax import _exponentials
from lapax import _jax_private as private
from lapax import _reference as reference
from lapax._found import Array, Case, Function, is_served, replaced
from lapax._program import holds
from lapax._reference import BOTH


def call(platform: str, eqn: Any) -> Any | None:
    """What replaces an inner jit that is one of these functions; None of another."""
    op, cases = _CASES.get(private.name_of_jit(eqn) or "", ("", None))
    avals = [atom.aval for atom in eqn.invars]
    if cases is None or not avals or not is_served(op, platform, avals):
        return None
    return replaced(eqn, cases(eqn, avals))


# The square root.


def _roots(_: Any, avals: Sequence[Any]) -> Iterator[Case]:
    if len(avals) == 1:
        levels = (BOTH,) * (avals[0].ndim - 2)
        yield Case(reference.mapped(jsl.sqrtm, levels, (True,)), _root)


def _root(a: Array) -> list[Array]:
    from lapax.linalg._sqrtm import principal_square_root

    return [principal_square_root(a)]


# X of A·X + X·B = C.


def _equations(eqn: Any, avals: Sequence[Any]) -> Iterator[Case]:
    body, _ = private.opened(private.called_by_jit(eqn))
    *matrices, tol = avals if len(avals) == 4 else (*avals, None)
    if len(matrices) != 3 or (tol is not None and tol.ndim) or not holds(body, _SCHUR):
        return
    ranks = [aval.ndim - 2 for aval in matrices]
    mapped = [0 if rank == max(ranks) else None for rank in ranks]
    stock: Function = _default if tol is None else _with_tol
    ours = _solution_by_default if tol is None else _solution
    for depth in range((max(ranks) if len(set(ranks)) == 1 else 1) + 1):
        own = [
            aval.shape[0 if axis is None else depth : -2]
            for aval, axis in zip(matrices, mapped, strict=True)
        ]
        if _broadcast(own):
            yield Case(stock, ours)
        stock = jax.vmap(stock, in_axes=(*mapped, *[None] * (tol is not None)))


_SCHUR = frozenset({"schur"})


def _broadcast(shapes: Sequence[tuple[int, ...]]) -> bool:
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return True


def _default(a: Array, b: Array, c: Array) -> Array:
    x: Array = jsl.solve_sylvester(a, b, c)
    return x


def _with_tol(a: Array, b: Array, c: Array, tol: Array) -> Array:
    x: Array = jsl.solve_sylvester(a, b, c, tol=tol)
    return x


def _solution_by_default(a: Array, b: Array, c: Array) -> list[Array]:
    return _solution(a, b, c, inspect.signature(jsl.solve_sylvester).parameters["tol"].default)


def _solution(a: Array, b: Array, c: Array, tol: Any) -> list[Array]:
    """Of operands whose batches broadcast."""
    from lapax.linalg import _equations
    from lapax.linalg._arguments import same_batch
    from lapax.linalg._products import all_or_nan

    a, b, c = same_batch("solve_sylvester", a=(a, 2), b=(b, 2), c=(c, 2))
    left, right = _equations.form(a), _equations.form(b)
    values, others = (_equations.eigenvalues(t) for t, _ in (left, right))
    sums = values[..., :, None] + others[..., None, :]
    near = jnp.any(jnp.abs(sums) < tol, axis=(-2, -1))
    return [all_or_nan(~near, _equations.by_forms(left, right, c))]


_CASES: dict[str, tuple[str, Callable[[Any, Sequence[Any]], Iterator[Case]]]] = {
    _exponentials.NAME: (_exponentials.NAME, _exponentials.cases),
    "_sqrtm": ("triangular_sqrtm", _roots),
    "solve_sylvester": ("triangular_sylvester", _equations),
}
"""By the name of the inner jit: the target without which it stays JAX's, and what it may be."""
