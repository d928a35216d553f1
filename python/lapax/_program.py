"""The body of a jaxpr, flattened, as equations that can be followed both ways and replaced.

A body is what JAX lowers in one go: a program, or what a loop, a branch or an inner jit holds.
Inner jits that are short, the solver in a `custom_linear_solve` and `stop_gradient` are opened, so
that what belongs together stands together; the operations stay the same.
"""

from __future__ import annotations

import collections
import math
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from lapax import _jax_private as private
from lapax._jax_private import Literal, Var
from lapax._lowering import is_static

_SHORT = 64
"""The equations up to which an inner jit is opened: a call of jax.numpy.linalg has fewer."""

_TRACKED = 1 << 20
"""The elements up to which is found out where reshaping moves them: a few milliseconds."""

_VIEWS: dict[str, Callable[[Any, Mapping[str, Any]], Any]] = {
    "reshape": lambda x, params: x.reshape(params["new_sizes"]),
    "transpose": lambda x, params: x.transpose(params["permutation"]),
    "squeeze": lambda x, params: x.squeeze(tuple(params["dimensions"])),
    "slice": lambda x, params: x[
        tuple(map(slice, params["start_indices"], params["limit_indices"], _strides(params)))
    ],
    "broadcast_in_dim": lambda x, params: _broadcast(x, params),
}
"""What moves elements and changes none, and how."""

Match = Callable[[Any], Any]
"""What replaces an equation with a body of its own; None where it stays."""


class Program:
    """A body's equations in order. What they read goes through `atom`: some variables are one."""

    def __init__(self, jaxpr: Any, primitives: frozenset[str], call: Match) -> None:
        """`primitives` are the names of those that may be part of something that is replaced."""
        self._primitives = primitives
        self._call = call
        self._same: dict[Any, Any] = {}
        self._replaced: dict[int, tuple[Any, Any]] = {}
        """By the identity of an equation: it, and the one that it is in place of."""
        self.eqns: list[Any] = []
        self._open(jaxpr, None)
        self._outvars = list(jaxpr.outvars)
        self._renew()

    def _open(self, jaxpr: Any, scope: dict[Any, Any] | None, caller: Any = None) -> None:
        """Appends a body's equations; those of an inner one with new variables, kept in `scope`,
        and as if they stood at its caller where they say no line of a user's."""
        for eqn in jaxpr.eqns:
            if caller is not None and private.is_within_jax(eqn):
                eqn = eqn.replace(source_info=caller.source_info)
            invars, outvars = eqn.invars, list(eqn.outvars)
            if scope is not None:
                invars = [_renamed(scope, atom) for atom in invars]
                outvars = [private.fresh(var) for var in outvars]
                scope.update(zip(eqn.outvars, outvars, strict=True))
            invars = [self.atom(atom) for atom in invars]
            if eqn.primitive.name == "stop_gradient":
                self._same[outvars[0]] = invars[0]
                continue
            eqn = eqn.replace(invars=invars, outvars=outvars)
            matched = self._call(eqn)
            body = None if matched is not None else self._body(eqn)
            if body is None:
                self.eqns.append(matched or eqn)
                if matched is not None:
                    self._replaced[id(matched)] = matched, eqn
                continue
            operands, opened = body
            inner = dict(zip(opened.invars, operands, strict=True))
            self._open(opened, inner, eqn)
            for var, atom in zip(outvars, opened.outvars, strict=True):
                self._same[var] = self.atom(_renamed(inner, atom))

    def _body(self, eqn: Any) -> tuple[Sequence[Any], Any] | None:
        """The operands and the body of what is opened; None of what is not."""
        body = private.solver_of(eqn) or private.plain_call(eqn)
        if body is None or not holds(body[1], self._primitives):
            return None
        return body if _length(body[1]) <= _SHORT else None

    def atom(self, atom: Any) -> Any:
        """The variable or literal that this one is the same as."""
        while not isinstance(atom, Literal) and atom in self._same:
            atom = self._same[atom]
        return atom

    def _renew(self) -> None:
        """Which equation makes each variable, and how many read it."""
        self._makers = {var: eqn for eqn in self.eqns for var in eqn.outvars}
        self._readers: collections.Counter[Any] = collections.Counter(self._read())

    def _read(self) -> Iterator[Any]:
        for atoms in (*(eqn.invars for eqn in self.eqns), self._outvars):
            for atom in map(self.atom, atoms):
                if not isinstance(atom, Literal):
                    yield atom

    def maker(self, atom: Any, *names: str) -> Any | None:
        """The equation that makes an atom, if of one of `names`; None of an argument."""
        atom = self.atom(atom)
        eqn = None if isinstance(atom, Literal) else self._makers.get(atom)
        return eqn if eqn is None or not names or eqn.primitive.name in names else None

    def maker_of_same(self, atom: Any, name: str) -> Any | None:
        """The equation of this primitive that makes the array which an atom is after being turned
        and reshaped, and is again; None of another."""
        views, shape = [], tuple(atom.aval.shape)
        eqn = self.maker(atom)
        while eqn is not None and eqn.primitive.name in _VIEWS:
            views.append(eqn)
            eqn = self.maker(eqn.invars[0])
        if eqn is None or eqn.primitive.name != name:
            return None
        if not views:
            return eqn
        made = tuple(eqn.outvars[0].aval.shape)
        size = math.prod(made) if is_static(made) else _TRACKED + 1
        if made != shape or size > _TRACKED:
            return None
        places = moved = np.arange(size).reshape(made)
        for view in reversed(views):
            moved = _VIEWS[view.primitive.name](moved, view.params)
        return eqn if np.array_equal(moved, places) else None

    def operands(self, eqn: Any) -> list[Any]:
        """What an equation reads."""
        return [self.atom(atom) for atom in eqn.invars]

    def readers(self, var: Any) -> int:
        """How many equations and results read it."""
        return self._readers[self.atom(var)]

    def visit(self, rules: Mapping[str, Callable[[Program, Any], Any]]) -> None:
        """Replaces each equation by what the rule for its primitive makes of it, in order.

        A rule returns None to leave it, an equation of the same results, or an atom: the result.
        """
        kept = []
        for eqn in self.eqns:
            rule = rules.get(eqn.primitive.name)
            new = (None if rule is None else rule(self, eqn)) or eqn
            if isinstance(new, Var | Literal):
                self._same[eqn.outvars[0]] = new
                continue
            kept.append(new)
            if new is not eqn:
                self._replaced[id(new)] = new, eqn
            self._makers.update(dict.fromkeys(new.outvars, new))
        self.eqns = kept
        self._renew()

    def restore(self, names: Collection[str]) -> None:
        """Puts back what equations of these primitives are in place of."""
        for i, eqn in enumerate(self.eqns):
            while eqn.primitive.name in names and id(eqn) in self._replaced:
                _, eqn = self._replaced[id(eqn)]
            self.eqns[i] = eqn
        self._renew()

    def without_unused(self, rules: Mapping[str, Callable[[Sequence[bool], Any], Any]]) -> None:
        """Drops what nobody reads: equations, and by `rules` single results of others.

        A rule takes which results are read and the equation, and returns the one to have instead.
        """
        live = {a for a in map(self.atom, self._outvars) if not isinstance(a, Literal)}
        kept = []
        for eqn in reversed(self.eqns):
            used = [var in live for var in eqn.outvars]
            if not any(used) and not eqn.effects:
                continue
            rule = rules.get(eqn.primitive.name)
            if rule is not None and any(used) and not all(used):
                eqn = rule(used, eqn)
            kept.append(eqn)
            live.update(a for a in self.operands(eqn) if not isinstance(a, Literal))
        self.eqns = kept[::-1]
        self._renew()

    def jaxpr(self, like: Any) -> Any:
        """The body with these equations."""
        eqns = [eqn.replace(invars=self.operands(eqn)) for eqn in self.eqns]
        return like.replace(eqns=eqns, outvars=[self.atom(v) for v in self._outvars])

    # What constant arrays are, by how they are made.

    def is_zero(self, atom: Any) -> bool:
        """Whether it is zeros only."""
        atom = self.atom(atom)
        if isinstance(atom, Literal):
            return bool(np.all(np.asarray(atom.val) == 0))
        eqn = self.maker(atom, "broadcast_in_dim")
        return eqn is not None and self.is_zero(eqn.invars[0])

    def is_lower(self, atom: Any) -> bool:
        """Whether it is true on the diagonals of matrices and below, false above."""
        compared = self._compared(atom)
        if compared is None:
            return False
        name, (row, down), (column, right), rank = compared
        if (row, column) == (rank - 1, rank - 2):
            name = {"le": "ge", "ge": "le"}.get(name, name)
            row, down, column, right = column, right, row, down
        return name == "ge" and (row, column) == (rank - 2, rank - 1) and down == right

    def is_identity(self, atom: Any) -> bool:
        """Whether it is matrices of ones on the diagonal and zeros beside it."""
        eqn = self.maker(atom, "convert_element_type", "transpose", "broadcast_in_dim")
        if eqn is None:
            return False
        rank, name = eqn.outvars[0].aval.ndim, eqn.primitive.name
        if name == "broadcast_in_dim":
            ends = self._rank(eqn.invars[0]) >= 2 and _leads(eqn)
            return ends and self.is_identity(eqn.invars[0])
        if name == "transpose":
            last = set(eqn.params["permutation"][-2:])
            return last == {rank - 2, rank - 1} and self.is_identity(eqn.invars[0])
        compared = self._compared(eqn.invars[0])
        if compared is None:
            return False
        kind, (row, down), (column, right), _ = compared
        return kind == "eq" and {row, column} == {rank - 2, rank - 1} and down == right

    def _rank(self, atom: Any) -> int:
        return len(atom.aval.shape)

    def _compared(self, atom: Any) -> tuple[str, tuple[int, int], tuple[int, int], int] | None:
        """A comparison of numberings of axes: its name, (axis, first number) twice, the rank."""
        eqn = self.maker(atom, "eq", "ge", "le", "broadcast_in_dim")
        if eqn is None:
            return None
        rank = eqn.outvars[0].aval.ndim
        if eqn.primitive.name == "broadcast_in_dim":
            inner = self._compared(eqn.invars[0]) if _leads(eqn) else None
            if inner is None:
                return None
            more = rank - inner[3]
            (row, down), (column, right) = inner[1], inner[2]
            return inner[0], (row + more, down), (column + more, right), rank
        left, right_ = (self._numbered(v) for v in eqn.invars)
        return None if left is None or right_ is None else (eqn.primitive.name, left, right_, rank)

    def _numbered(self, atom: Any) -> tuple[int, int] | None:
        """The axis along which an array counts, and its first number."""
        eqn = self.maker(atom, "iota", "add")
        if eqn is None:
            return None
        if eqn.primitive.name == "iota":
            return eqn.params["dimension"], 0
        a, b = self.operands(eqn)
        if isinstance(a, Literal):
            a, b = b, a
        counted = self._numbered(a)
        if counted is None or not isinstance(b, Literal) or np.ndim(b.val) != 0:
            return None
        return counted[0], counted[1] + int(b.val)


def holds(jaxpr: Any, primitives: frozenset[str]) -> bool:
    """Whether a body, or what stands in it, has one of the primitives."""
    known = _holds.setdefault(primitives, weakref.WeakKeyDictionary())
    found = known.get(jaxpr)
    if found is None:
        found = known[jaxpr] = any(
            eqn.primitive.name in primitives
            or any(holds(inner, primitives) for inner in private.bodies(eqn))
            for eqn in jaxpr.eqns
        )
    return found


_holds: dict[frozenset[str], weakref.WeakKeyDictionary[Any, bool]] = {}
"""What is known of bodies: each is asked for where it stands and again where it is lowered."""


def _length(jaxpr: Any) -> int:
    """The equations of a body and of those in it."""
    inner = (body for eqn in jaxpr.eqns for body in private.bodies(eqn))
    return len(jaxpr.eqns) + sum(map(_length, inner))


def _strides(params: Mapping[str, Any]) -> Sequence[int | None]:
    return params["strides"] or [None] * len(params["start_indices"])


def _broadcast(x: Any, params: Mapping[str, Any]) -> Any:
    shape, dims = params["shape"], params["broadcast_dimensions"]
    sizes = [1] * len(shape)
    for dim, size in zip(dims, x.shape, strict=True):
        sizes[dim] = size
    return np.broadcast_to(x.reshape(sizes), shape)


def _renamed(names: Mapping[Any, Any], atom: Any) -> Any:
    return atom if isinstance(atom, Literal) else names.get(atom, atom)


def _leads(eqn: Any) -> bool:
    """Whether a broadcast_in_dim only adds dimensions in front."""
    (operand, *_), shape = eqn.invars, eqn.params["shape"]
    rank = len(operand.aval.shape)
    last = tuple(range(len(shape) - rank, len(shape)))
    same = tuple(operand.aval.shape) == tuple(shape[len(shape) - rank :])
    return tuple(eqn.params["broadcast_dimensions"]) == last and same
