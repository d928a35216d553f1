"""What takes JAX several operations and lapax one call, found while programs are lowered.

JAX builds its functions of several primitives, between which whole batches go through memory: the
operand of a Cholesky factorisation is symmetrized before and its result masked after; that of eigh
is symmetrized, for which XLA hands the program to another thread; the right-hand sides of a system
are gathered before two triangular solves; of LU factors slogdet and det use the diagonal; solve and
inv need them only for one solve; the Q of a Hessenberg form is put together from a block and three
borders.

They are found by what they are, in the body that is lowered, so a program's jaxpr stays JAX's, and
it does not matter who wrote it, or what vmap and derivatives made of it. What is put in their place
are primitives that only lowering sees. What a target cannot serve stays as it is.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence, Set
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
from jax.extend.core import Primitive

from lapax import (
    _cuda,
    _exponentials,
    _found,
    _matrix_functions,
    _row_major,
    _rules,
    _selection,
    _unused,
)
from lapax import _jax_private as private
from lapax import _reference as reference
from lapax._lowering import dtype_name
from lapax._program import Program, holds
from lapax._reference import BOTH, FACTORS, REST
from lapax._table import ops


def rewrite_programs(
    failed: Callable[[Exception], None] | None, alone: Set[str]
) -> list[Callable[[], None]]:
    """Lets programs be lowered so, those for one of the platforms `alone`; returns what undoes it.

    With `failed`, a program in which something is met that lapax does not know is lowered as it is,
    after a call of it.
    """
    rewrite = functools.partial(_rewritten, alone)
    if failed is not None:
        rewrite = functools.partial(_rewritten_or_kept, failed, alone)
    undo = [private.rewrite_bodies(rewrite)]
    for fused in _FUSED:
        for platform in alone:
            rule = functools.partial(fused.rule, platform)
            undo.append(private.replace_lowering(fused.primitive, platform, rule, True))
    for platform in alone:
        undo.append(private.replace_lowering(_found.found_p, platform, _found.rule, True))
    return undo


def _rewritten_or_kept(
    failed: Callable[[Exception], None], alone: Set[str], module: Any, jaxpr: Any
) -> Any:
    try:
        return _rewritten(alone, module, jaxpr)
    except Exception as error:  # What an unknown JAX raises where it has changed.
        failed(error)
        return jaxpr


def _rewritten(alone: Set[str], module: Any, jaxpr: Any) -> Any:
    """A body with the calls found in it, and without results that nobody reads."""
    platforms = set(private.platforms(module))
    if not platforms <= _PLATFORMS or any(map(_selection.leaves_platform, platforms)):
        return jaxpr
    if _rules.for_others(module) or not holds(jaxpr, _PARTS):
        return jaxpr
    platform = next(iter(platforms & alone), None) if len(platforms) == 1 else None
    # One of JAX's functions that is called outside of jit is the whole program.
    call = functools.partial(_call, platform)
    left = {it.primitive.name for it in _FUSED if platform is None or not it.is_served(platform)}
    whole = private.as_call(jaxpr)
    found = None if whole is None else call(whole)
    if found is not None and found.primitive.name not in left:
        return jaxpr.replace(eqns=[found])
    program = Program(jaxpr, _PARTS, call)
    if platform is not None:
        program.visit({"lu_pivots_to_permutation": _permutation_of_pivots})
        program.visit({name: functools.partial(rule, platform) for name, rule in _RULES.items()})
        program.visit({private.jit_name(): _exponentials.gradients(platform)})
        program.restore(left)
    program.without_unused(_unused_rules(platforms) if private.knows_results() else {})
    return program.jaxpr(jaxpr)


def _unused_rules(platforms: set[str]) -> dict[str, Callable[[Sequence[bool], Any], Any]]:
    """Those for operations that are lapax's on all of these platforms."""
    rules = {
        name: rule
        for name, rule in _unused.RULES.items()
        if not any(_selection.leaves(name, platform) for platform in platforms)
    }
    if all(map(_eigvalsh_p.is_served, platforms)):
        rules[_eigh_p.primitive.name] = _without_vectors
    return rules


_PLATFORMS = frozenset({_rules.PLATFORM, _cuda.PLATFORM})


Results = list[tuple[tuple[int, ...], Any]]
"""Shapes and dtypes."""


class _Fused:
    """A primitive that a row-major target serves: one result of the last operand's type, or those
    that `results` says by it.

    `ranks` are those of the operands of one matrix; batch dimensions lead, as for a target. With
    the parameter `layout` it is the function `whole` of this and the operands, which calls it
    without.
    """

    def __init__(
        self,
        op: str,
        ranks: Sequence[int],
        results: Callable[[Any], Results] | None = None,
        whole: Callable[..., Any] | None = None,
    ) -> None:
        self.op, self.ranks, self.results, self.whole = op, ranks, results, whole
        self.primitive = Primitive(f"lapax_{op}")
        self.primitive.multiple_results = True
        self.primitive.def_abstract_eval(self._abstract)

    def _abstract(self, *avals: Any, **_: Any) -> list[Any]:
        like = avals[-1]
        specs = private.batch_specs(self.op, avals, self.ranks)
        results = [(like.shape, like.dtype)] if self.results is None else self.results(like)
        return [private.result_aval(like, shape, dtype, specs) for shape, dtype in results]

    def rule(
        self, platform: str, ctx: Any, *operands: Any, layout: Any = None, **params: Any
    ) -> Sequence[Any]:
        """How it is lowered."""
        if layout is None or self.whole is None:
            return _rules.fused(self.op, platform, ctx, operands, params)
        whole = functools.partial(self.whole, layout, **params)
        lowered: Sequence[Any] = private.lower_fun(whole)(ctx, *operands)
        return lowered

    def __call__(self, *arrays: jax.Array, **params: Any) -> list[jax.Array]:
        results: list[jax.Array] = self.primitive.bind(*arrays, **params)
        return results

    def is_served(self, platform: str) -> bool:
        """Whether its target is not left to JAX. What is may be a step to what is not."""
        return _selection.serves_op(self.op, platform)

    def takes(self, attribute: str, platform: str) -> bool:
        """Whether its target on the platform has an attribute of this name."""
        return any(
            attr.name == attribute
            for target in ops().get(self.op, ())
            if target.platform.lower() == platform
            for attr in target.signature.attrs
        )

    def fits(self, platform: str, avals: Sequence[Any], params: Any) -> bool:
        """Whether a target of the platform serves square matrices of these types, of batches that
        are alike."""
        a, *_ = avals
        if any(aval.ndim < rank for aval, rank in zip(avals, self.ranks, strict=True)):
            return False
        if a.shape[-1] != a.shape[-2] or not any(
            target.platform.lower() == platform and target.signature.variant(dtype_name(a.dtype))
            for target in ops().get(self.op, ())
        ):
            return False
        splits = [aval.ndim - rank for aval, rank in zip(avals, self.ranks, strict=True)]
        batches = [aval.shape[:split] for aval, split in zip(avals, splits, strict=True)]
        if any(batch != batches[0] for batch in batches):
            return False
        try:
            private.batch_specs(self.op, avals, self.ranks)
        except ValueError:
            return False
        return _row_major.attributes(platform, self.op, avals, params) is not None


# Cholesky factorisation of (A + Aᴴ)/2 or of A's lower triangle, zero above the diagonal.

_cholesky_p = _Fused("cholesky", (2,))


def _masked(platform: str, program: Program, eqn: Any) -> Any:
    """select(lower triangle, 0, cholesky(A)), and the mean with its adjoint that A may be."""
    if len(eqn.invars) != 3 or not program.is_lower(eqn.invars[0]):
        return None
    factor = program.maker(eqn.invars[2], "cholesky")
    if factor is None or program.readers(eqn.invars[2]) > 1 or not program.is_zero(eqn.invars[1]):
        return None
    whole = _symmetrized(program, factor.invars[0])
    a = factor.invars[0] if whole is None else whole
    params = {"symmetrize_input": whole is not None}
    if not _cholesky_p.fits(platform, [a.aval], params):
        return None
    return eqn.replace(primitive=_cholesky_p.primitive, invars=[a], params=params)


def _symmetrized(program: Program, atom: Any) -> Any | None:
    """The A of which this is the mean with its adjoint, (A + Aᴴ)/2; None of another."""
    halved = program.maker(atom, "div")
    if halved is None or not _is_number(halved.invars[1], 2):
        return None
    added = program.maker(halved.invars[0], "add")
    if added is None:
        return None
    a, adjoint = program.operands(added)
    return a if _adjoint_of(program, adjoint) is a else None


def _swaps_last(permutation: Sequence[int]) -> bool:
    *rest, i, j = permutation
    n = len(permutation)
    return n >= 2 and rest == list(range(n - 2)) and (i, j) == (n - 1, n - 2)


def _is_number(atom: Any, number: int) -> bool:
    value = getattr(atom, "val", None)
    return value is not None and jnp.ndim(value) == 0 and bool(value == number)


# A·X = B from the Cholesky factor L, A = L·Lᴴ, or U, A = Uᴴ·U, and with a factor nobody else reads.

_cho_solve_p = _Fused("cho_solve", (2, 2))
_posv_p = _Fused("posv", (2, 2))


def _by_both_triangles(platform: str, program: Program, eqn: Any) -> Any:
    """The second of the triangular systems L·Y = B, Lᴴ·X = Y, or Uᴴ·Y = B, U·X = Y."""
    factor, right = program.operands(eqn)
    first = program.maker_of_same(right, "triangular_solve")
    if first is None or program.operands(first)[0] is not factor:
        return None
    lower, b = eqn.params["lower"], program.operands(first)[1]
    ways = [first.params, eqn.params] if lower else [eqn.params, first.params]
    is_complex = np.issubdtype(factor.aval.dtype, np.complexfloating)
    plain, adjoint = ways
    if not all(way["left_side"] and way["lower"] == lower for way in ways) or any(
        way["unit_diagonal"] for way in ways
    ):
        return None
    if plain["transpose_a"] or plain["conjugate_a"] or not adjoint["transpose_a"]:
        return None
    if is_complex and not adjoint["conjugate_a"]:
        return None
    if program.readers(first.outvars[0]) > 1 or not _cho_solve_p.fits(
        platform, [factor.aval, b.aval], {"lower": lower}
    ):
        return None
    whole = _factored(program, factor, lower=lower)
    if (
        whole is not None
        and _posv_p.is_served(platform)
        and _posv_p.fits(platform, [whole[0].aval, b.aval], whole[1])
    ):
        a, params = whole
        return eqn.replace(primitive=_posv_p.primitive, invars=[a, b], params=params)
    params = {"lower": lower}
    return eqn.replace(primitive=_cho_solve_p.primitive, invars=[factor, b], params=params)


def _factored(program: Program, factor: Any, *, lower: bool) -> tuple[Any, dict[str, bool]] | None:
    """The A whose factor this is, read by two triangular systems alone; U is that of Aᴴ, turned."""
    if program.readers(factor) > 2:
        return None
    made = factor if lower else _adjoint_of(program, factor)
    found = None if made is None else program.maker(made, _cholesky_p.primitive.name)
    if found is None or (not lower and program.readers(made) > 1):
        return None
    (a,) = program.operands(found)
    whole = a if lower else _adjoint_of(program, a)
    if whole is None and found.params["symmetrize_input"]:
        whole = a  # It is Hermitian.
    return None if whole is None else (whole, {"lower": lower, **found.params})


def _adjoint_of(program: Program, atom: Any) -> Any | None:
    """The matrix whose adjoint this is; None of another."""
    if np.issubdtype(atom.aval.dtype, np.complexfloating):
        conjugate = program.maker(atom, "conj")
        if conjugate is None:
            return None
        atom = conjugate.invars[0]
    turned = program.maker(atom, "transpose")
    if turned is None or not _swaps_last(turned.params["permutation"]):
        return None
    return program.operands(turned)[0]


# The Hermitian part of a matrix, (A + Aᴴ)/2, where its eigenvalues are wanted.

_symmetrize_p = _Fused("symmetrize", (2,))


def _hermitian_part(platform: str, program: Program, eqn: Any) -> Any:
    """Before eigh: elsewhere XLA makes it as it reads it."""
    a = _symmetrized(program, eqn.outvars[0])
    if a is None or not _symmetrize_p.fits(platform, [a.aval], {}):
        return None
    users = [other for other in program.eqns if eqn.outvars[0] in program.operands(other)]
    if any(user.primitive.name != "eigh" for user in users) or not users:
        return None
    return eqn.replace(primitive=_symmetrize_p.primitive, invars=[a], params={})


# Eigenvalues and eigenvectors of that part, where a target makes it.


def _vectors_and_values(a: Any) -> Results:
    return [(a.shape, a.dtype), *_values(a)]


def _values(a: Any) -> Results:
    return [(a.shape[:-1], np.finfo(a.dtype).dtype)]


_eigh_p = _Fused("eigh", (2,), _vectors_and_values)
_eigvalsh_p = _Fused("eigvalsh", (2,), _values)


def _of_hermitian_part(platform: str, program: Program, eqn: Any) -> Any:
    """`eigh` of (A + Aᴴ)/2."""
    a = _symmetrized(program, eqn.invars[0])
    params = {**eqn.params, "symmetrize_input": True}
    if a is None or not all(
        fused.takes("symmetrize", platform) and fused.fits(platform, [a.aval], params)
        for fused in (_eigh_p, _eigvalsh_p)
    ):
        return None
    return eqn.replace(primitive=_eigh_p.primitive, invars=[a], params=params)


def _without_vectors(used: Sequence[bool], eqn: Any) -> Any:
    """The eigenvalues alone of what `_of_hermitian_part` found."""
    if used[0]:
        return eqn
    return eqn.replace(primitive=_eigvalsh_p.primitive, outvars=eqn.outvars[1:])


# op(A)·X = B from the LU factors of A and their permutation; op is A, Aᵀ or Aᴴ for trans 0, 1, 2.


class _Columns(NamedTuple):
    """How the right-hand sides of systems lie in an array, from the first dimension on.

    Those of `levels`, then `batch` of the matrices, then with `across` one of right-hand sides;
    then those of a system: the unknowns, and without `vectors` its columns.
    """

    levels: tuple[str, ...]
    batch: int
    across: bool
    vectors: bool

    def kinds(self) -> list[str]:
        """Of each dimension in front of a system's own."""
        return [*self.levels, *[BOTH] * self.batch, *[REST] * self.across]

    def solve(self, solve: Callable[[jax.Array], jax.Array], a: Any, b: jax.Array) -> jax.Array:
        """`solve` maps [*batch, n, columns] to the like; `a`, [*batch, n, n], has the batch."""
        kinds = self.kinds()
        missing = [i for i, kind in enumerate(kinds) if kind == FACTORS]
        b = jnp.expand_dims(b, missing)
        batch = [i for i, kind in enumerate(kinds) if kind != REST]
        rest = [i for i, kind in enumerate(kinds) if kind == REST]
        n, *own = range(len(kinds), b.ndim)
        b = jnp.broadcast_to(
            b, [a.shape[batch.index(i)] if i in missing else size for i, size in enumerate(b.shape)]
        )
        order = [*batch, n, *rest, *own]
        turned = jnp.transpose(b, order)
        columns = turned.reshape(
            *turned.shape[: len(batch) + 1], math.prod(turned.shape[len(batch) + 1 :])
        )
        x = solve(columns).reshape(turned.shape)
        return jnp.transpose(x, [order.index(i) for i in range(b.ndim)])


def _lu_solved(layout: _Columns, lu: Any, permutation: Any, b: Any, *, trans: int) -> list[Any]:
    def solve(columns: jax.Array) -> jax.Array:
        return _lu_solve_p(lu, permutation, columns, trans=trans)[0]

    return [layout.solve(solve, lu, b)]


_lu_solve_p = _Fused("lu_solve", (2, 1, 2), whole=_lu_solved)


def _lu_solve_call(platform: str, eqn: Any) -> Any:
    """JAX's `_lu_solve`, whatever is mapped over."""
    if private.name_of_jit(eqn) != "_lu_solve" or len(eqn.invars) != 3:
        return None
    lu, permutation, b = (atom.aval for atom in eqn.invars)
    n = lu.shape[-1]
    # The factors stand for all operands: only their batch may be on others.
    columns = jax.ShapeDtypeStruct((*lu.shape[:-1], 1), lu.dtype)
    if not _lu_solve_p.fits(
        platform, [lu, permutation, _of_shape(lu, columns.shape)], {"trans": 0}
    ):
        return None
    if permutation.dtype != jnp.int32 or b.dtype != lu.dtype:
        return None
    trans = _transposition(eqn)
    for layout in _layouts(lu, permutation, b, n):
        if _is_lu_solve(eqn, layout, trans):
            return eqn.replace(
                primitive=_lu_solve_p.primitive, params={"layout": layout, "trans": trans}
            )
    return None


def _of_shape(aval: Any, shape: tuple[int, ...]) -> Any:
    return aval.update(shape=shape) if shape != aval.shape else aval


def _transposition(eqn: Any) -> int:
    """Of the first triangular system in the body."""
    body, _ = private.opened(private.called_by_jit(eqn))
    first = next((e for e in body.eqns if e.primitive.name == "triangular_solve"), None)
    if first is None or not first.params["transpose_a"]:
        return 0
    return 2 if first.params["conjugate_a"] else 1


def _layouts(lu: Any, permutation: Any, b: Any, n: int) -> list[_Columns]:
    """Those that have these shapes; those that JAX's own functions make first."""
    batch, found = lu.shape[:-2], []
    for own in range(len(batch) + 1):
        for vectors, across in ((True, False), (True, True), (False, False)):
            rest = b.ndim - own - across - (1 if vectors else 2)
            if rest < 0 or (across and b.ndim < 2):
                continue
            for levels in reference.levels(len(batch) - own, rest):
                layout = _Columns(levels, own, across, vectors)
                of_matrices = [i for i, kind in enumerate(layout.kinds()) if kind != REST]
                dims = [i for i, kind in enumerate(layout.kinds()) if kind != FACTORS]
                sizes = dict(zip(of_matrices, batch, strict=True))
                own_sizes = dict(zip(dims, b.shape, strict=False))
                fits = all(sizes[i] == own_sizes[i] for i in sizes.keys() & own_sizes.keys())
                if fits and b.shape[len(dims)] == n:
                    found.append(layout)
    return sorted(found, key=lambda it: (len(it.levels), -it.batch))


def _is_lu_solve(eqn: Any, layout: _Columns, trans: int) -> bool:
    solve = private.lu_solve_function()
    if solve is None:
        return False

    def function(lu: Any, permutation: Any, b: Any) -> Any:
        return solve(lu, permutation, b, trans)

    mapped: Callable[..., Any] = function
    if layout.across:
        mapped = jax.vmap(function, in_axes=(None, None, layout.batch), out_axes=layout.batch)
    mapped = reference.mapped(mapped, layout.levels, (True, True, False))
    like = reference.call(mapped, [atom.aval for atom in eqn.invars])
    return like is not None and reference.same(
        private.called_by_jit(like), private.called_by_jit(eqn)
    )


# A·X = B, and the inverse, by factors that nobody else reads.


def _solved(layout: _Columns, a: Any, b: Any, *, trans: int) -> list[Any]:
    a = jnp.swapaxes(a, -1, -2) if trans else a
    return [layout.solve(lambda columns: _solve_p(a, columns)[0], a, b)]


def _inverted(transposed: bool, a: Any) -> list[Any]:
    x = _inv_p(a)[0]
    return [jnp.swapaxes(x, -1, -2) if transposed else x]


_solve_p = _Fused("solve", (2, 2), whole=_solved)
_inv_p = _Fused("inv", (2,), whole=_inverted)


def _by_own_factors(platform: str, program: Program, eqn: Any) -> Any:
    """A system by LU factors that are made for it alone; of the columns of the identity, the
    inverse."""
    lu, permutation, b = program.operands(eqn)
    factored = program.maker(lu, "lu")
    trans, layout = eqn.params["trans"], eqn.params["layout"]
    if factored is None or trans == 2:
        return None
    factors, pivots, order = factored.outvars
    # The same permutation goes with the same factors.
    if order is not permutation or program.readers(factors) > 1 or program.readers(pivots):
        return None
    (a,) = program.operands(factored)
    kinds = layout.kinds()
    if program.is_identity(b) and kinds.count(REST) == layout.vectors and FACTORS not in kinds:
        across = layout.vectors
        if (not across or kinds[-1] == REST) and _inv_p.fits(platform, [a.aval], {}):
            # By vectors the array holds Xᵀ.
            params = {"layout": across == (trans == 0)}
            return eqn.replace(primitive=_inv_p.primitive, invars=[a], params=params)
    columns = _of_shape(a.aval, (*a.aval.shape[:-1], 1))
    if not _solve_p.fits(platform, [a.aval, columns], {}):
        return None
    params = {"layout": layout, "trans": trans}
    return eqn.replace(primitive=_solve_p.primitive, invars=[a, b], params=params)


def _permutation_of_pivots(program: Program, eqn: Any) -> Any:
    """What `lu` has returned already, which `jax.scipy.linalg` makes of its pivots."""
    factored = program.maker(eqn.invars[0], "lu")
    if factored is None or program.operands(eqn)[0] is not factored.outvars[1]:
        return None
    permutation = factored.outvars[2]
    return permutation if permutation.aval.shape == eqn.outvars[0].aval.shape else None


# Sign and logarithm of a determinant.


def _some(wanted: tuple[bool, ...], results: Sequence[Any]) -> list[Any]:
    return [result for result, want in zip(results, wanted, strict=True) if want]


def _sign_and_logarithm(a: Any) -> Results:
    return [(a.shape[:-2], a.dtype), (a.shape[:-2], np.finfo(a.dtype).dtype)]


def _part_of_slogdet(wanted: tuple[bool, ...], a: Any) -> list[Any]:
    return _some(wanted, _slogdet_p(a))


_slogdet_p = _Fused("slogdet", (2,), _sign_and_logarithm, _part_of_slogdet)


def _slogdet_call(platform: str, eqn: Any) -> Any:
    """What `jax.numpy.linalg.slogdet` is: a function with a derivative of its own."""
    body = private.custom_jvp_body(eqn)
    if body is None or private.opened(body)[0].eqns[0].primitive.name != "lu":
        return None

    def inner(like: Any) -> Any | None:
        called = private.called_by_jit(like)
        if called is None:
            return None
        calls = private.opened(called)[0].eqns
        return private.custom_jvp_body(calls[0]) if len(calls) == 1 else None

    return _whole(platform, _slogdet_p, jnp.linalg.slogdet, inner, body, eqn)


# Hessenberg form with Q.


def _form_and_vectors(a: Any) -> Results:
    return [(a.shape, a.dtype)] * 2


def _part_of_hess(wanted: tuple[bool, ...], a: Any) -> list[Any]:
    return _some(wanted, _hess_p(a))


_hess_p = _Fused("hess", (2,), _form_and_vectors, _part_of_hess)


def _hessenberg(a: jax.Array) -> Any:
    return jsl.hessenberg(a, calc_q=True)


def _hessenberg_call(platform: str, eqn: Any) -> Any:
    """`jax.scipy.linalg.hessenberg` with Q."""
    body = private.called_by_jit(eqn)
    if private.name_of_jit(eqn) != "hessenberg" or not holds(private.opened(body)[0], _MAKES_Q):
        return None
    return _whole(platform, _hess_p, _hessenberg, private.called_by_jit, body, eqn)


def _whole(
    platform: str,
    fused: _Fused,
    function: Callable[..., Any],
    inner: Callable[[Any], Any | None],
    body: Any,
    eqn: Any,
) -> Any:
    """`fused` in place of an equation whose body is what `inner` finds in one of JAX's functions of
    one matrix with two results, whatever is mapped over and whichever results are read."""
    if len(eqn.invars) != 1 or not fused.fits(platform, [eqn.invars[0].aval], {}):
        return None
    (a,) = (atom.aval for atom in eqn.invars)
    for own in range(a.ndim - 1):
        mapped = reference.mapped(function, (BOTH,) * (a.ndim - 2 - own), (True,))
        like = reference.call(mapped, [a])
        found = None if like is None else inner(like)
        if found is None:
            continue
        for wanted in ((True, True), (True, False), (False, True)):
            if sum(wanted) != len(eqn.outvars):
                continue
            part = found if all(wanted) else private.results_alone(found, wanted)
            if part is not None and reference.same(part, body):
                params = {} if all(wanted) else {"layout": wanted}
                return eqn.replace(primitive=fused.primitive, params=params)
    return None


_MAKES_Q = frozenset({"householder_product"})


def _call(platform: str | None, eqn: Any) -> Any:
    """What one equation that stands for a whole function becomes; None where it stays."""
    if platform is None or not any(holds(body, _PARTS) for body in private.bodies(eqn)):
        return None
    for match in (_lu_solve_call, _slogdet_call, _hessenberg_call, _matrix_functions.call):
        found = match(platform, eqn)
        if found is not None:
            return found
    return None


_FUSED = (
    _cholesky_p,
    _cho_solve_p,
    _posv_p,
    _lu_solve_p,
    _solve_p,
    _inv_p,
    _slogdet_p,
    _hess_p,
    _symmetrize_p,
    _eigh_p,
    _eigvalsh_p,
)

_RULES = {
    "select_n": _masked,
    "div": _hermitian_part,
    "eigh": _of_hermitian_part,
    "triangular_solve": _by_both_triangles,
    _lu_solve_p.primitive.name: _by_own_factors,
}
"""What is found by its last operation."""

_PARTS = frozenset({"cholesky", "lu", "triangular_solve", "hessenberg", *_unused.RULES})
"""Primitives without which there is nothing to find."""
