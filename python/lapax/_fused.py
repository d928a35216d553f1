"""Functions inside JAX's linear algebra that become one call each, as primitives of their own.

JAX builds them of several primitives, between which whole batches go through memory: the operand of
a Cholesky factorisation is symmetrized before and its result masked after; that of eigh is
symmetrized, for which XLA hands the program to another thread; the right-hand sides of a system are
gathered before two triangular solves; of LU factors slogdet and det use the diagonal; solve and inv
need them only for one solve; the Q of a Hessenberg form is put together from a block and three
borders.

What a target cannot serve, and other platforms, get JAX's own function, as does the derivative.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from lapax import _jax_private as private
from lapax import _row_major, _rules
from lapax._call import in_front
from lapax._lowering import dtype_name
from lapax._table import ops

_CHOLESKY = "cholesky"
_LU_SOLVE = "_lu_solve_core"
_SLOGDET = "_slogdet_lu"
_SOLVE = "_solve"
_INV = "inv"
_HESSENBERG = "hessenberg"
_SYMMETRIZE = "symmetrize"
_stock = {
    _CHOLESKY: private.linalg_function(_CHOLESKY),
    _LU_SOLVE: private.linalg_function(_LU_SOLVE),
    _SLOGDET: private.numpy_linalg_function(_SLOGDET),
    _SOLVE: private.linalg_function(_SOLVE),
    _INV: private.numpy_linalg_function(_INV),
    _HESSENBERG: private.scipy_linalg_function(_HESSENBERG),
    _SYMMETRIZE: private.linalg_function(_SYMMETRIZE),
}
"""JAX's functions, None where this JAX has none of the name."""


def _original(name: str) -> Callable[..., Any]:
    """A function of JAX's that is replaced: one that this JAX has."""
    stock = _stock[name]
    assert stock is not None
    return stock


def replace_functions() -> list[Callable[[], None]]:
    """Puts the primitives in place of JAX's functions; returns what undoes it."""
    undo = []
    for name, ours, primitive, whole in (
        (_CHOLESKY, _cholesky, _cholesky_p, _stock_cholesky),
        (_LU_SOLVE, _lu_solve, _lu_solve_p, _stock_lu_solve),
        (_SLOGDET, _slogdet, _slogdet_p, _stock_slogdet),
        (_SOLVE, _solve, _solve_p, _stock_solve),
        (_INV, _inv, _inv_p, _stock_inv),
        (_HESSENBERG, _hessenberg, _hess_p, _stock_hess),
        (_SYMMETRIZE, _symmetrize, _symmetrize_p, _stock_symmetrize),
    ):
        stock = _stock[name]
        if stock is not None and ours is not None:
            rule = functools.partial(_rules.fused, primitive.name.removeprefix("lapax_"), whole)
            undo.append(private.replace_lowering(primitive, _rules.PLATFORM, rule, True))
            # A custom_jvp keeps its rule among its attributes, a jitted function what it is.
            named = functools.wraps(stock, updated=())(ours)
            undo.append(private.replace_linalg_function(name, stock, named))
    return undo


def _primitive(
    op: str,
    ranks: Sequence[int],
    parameters: tuple[str, ...],
    whole: Callable[..., Any],
    results: Callable[[Any], list[tuple[tuple[int, ...], Any]]] | None = None,
) -> Primitive:
    """A primitive that computes as `whole`; its one result is of the last operand's type.

    `ranks` are those of the operands of one matrix; batch dimensions lead, as for a target.
    `results` says the shapes and dtypes of several, by the last operand.
    """
    primitive = Primitive(f"lapax_{op}")
    primitive.multiple_results = results is not None

    def abstract(*avals: Any, **_: Any) -> Any:
        like = avals[-1]
        specs = private.batch_specs(primitive.name, avals, ranks)
        if results is None:
            return private.result_aval(like, like.shape, like.dtype, specs)
        return [private.result_aval(like, *result, specs) for result in results(like)]

    compiled = jax.jit(primitive.bind, static_argnames=parameters)

    def run(*args: Any, **params: Any) -> Any:
        with jax.disable_jit(False):
            return compiled(*args, **params)

    primitive.def_impl(run)
    primitive.def_abstract_eval(abstract)
    mlir.register_lowering(
        primitive, mlir.lower_fun(whole, multiple_results=primitive.multiple_results)
    )
    batching.fancy_primitive_batchers[primitive] = functools.partial(_batched, primitive)
    return primitive


def _batched(
    primitive: Primitive, axis: Any, args: Sequence[Any], dims: Sequence[Any], **params: Any
) -> Any:
    """One call with a larger batch."""
    mapped = any(dim is not None for dim in dims)
    results = primitive.bind(*(in_front(axis, args, dims) if mapped else args), **params)
    dim = 0 if mapped else None
    return results, [dim] * len(results) if primitive.multiple_results else dim


def _serves(op: str, ranks: Sequence[int], arrays: Sequence[jax.Array]) -> bool:
    """Whether the op's table has the dtype, and the batch dimensions are alike."""
    avals = [jax.typeof(x) for x in arrays]
    if not any(
        target.signature.variant(dtype_name(avals[0].dtype)) for target in ops().get(op, ())
    ):
        return False
    splits = [aval.ndim - rank for aval, rank in zip(avals, ranks, strict=True)]
    if any(aval.shape[:split] != avals[0].shape[: splits[0]] or split < 0
           for aval, split in zip(avals, splits, strict=True)):  # fmt: skip
        return False
    try:
        private.batch_specs(op, avals, ranks)
    except ValueError:
        return False
    return True


# Cholesky factorisation of (A + Aᴴ)/2 or of A's lower triangle, zero above the diagonal.


def _cholesky(x: Any, *, symmetrize_input: bool = True) -> jax.Array:
    array = jnp.asarray(x)
    square = array.ndim > 1 and array.shape[-1] == array.shape[-2]
    if not (square and _serves("cholesky", (2,), [array])):
        return _stock_cholesky(array, symmetrize_input=symmetrize_input)
    result: jax.Array = _cholesky_p.bind(array, symmetrize_input=symmetrize_input)
    return result


def _stock_cholesky(x: jax.Array, *, symmetrize_input: bool) -> jax.Array:
    stock = _original(_CHOLESKY)
    factor: jax.Array = stock(x, symmetrize_input=symmetrize_input)
    return factor


def _cholesky_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
    return jax.jvp(functools.partial(_stock_cholesky, **params), primals, tangents)


_cholesky_p = _primitive("cholesky", (2,), ("symmetrize_input",), _stock_cholesky)
ad.primitive_jvps[_cholesky_p] = _cholesky_jvp


# op(A)·X = B from the LU factors of A and their permutation; op is A, Aᵀ or Aᴴ for trans 0, 1, 2.


def _lu_solve(lu: Any, permutation: Any, b: Any, trans: int) -> jax.Array:
    arrays = [jnp.asarray(x) for x in (lu, permutation, b)]
    n = arrays[0].shape[0]
    columns = jnp.reshape(arrays[2], (n, math.prod(arrays[2].shape[1:])))
    operands = private.vary_alike(arrays[0], arrays[1], columns)
    fit = arrays[1].dtype == jnp.int32 and arrays[0].dtype == arrays[2].dtype and trans in (0, 1, 2)
    if not (fit and _serves("lu_solve", (2, 1, 2), operands)):
        x = _stock_lu_solve(*operands, trans=trans)
    else:
        x = _lu_solve_p.bind(*operands, trans=trans)
    return jnp.reshape(x, arrays[2].shape)


def _stock_lu_solve(
    lu: jax.Array, permutation: jax.Array, b: jax.Array, *, trans: int
) -> jax.Array:
    stock = _original(_LU_SOLVE)
    solve: Callable[..., jax.Array] = functools.partial(stock, trans=trans)
    for _ in lu.shape[:-2]:
        solve = jax.vmap(solve)
    return solve(lu, permutation, b)


def _lu_solve_batched(axis: Any, args: Sequence[Any], dims: Sequence[Any], *, trans: int) -> Any:
    """Right-hand sides that are mapped alone become columns of the same system."""
    (lu, permutation, b), (*factors, b_dim) = args, dims
    if factors != [None, None] or b_dim is None or axis.explicit_mesh_axis is not None:
        return _batched(_lu_solve_p, axis, args, dims, trans=trans)
    b = jnp.moveaxis(b, b_dim, -1)
    columns = jnp.reshape(b, (*b.shape[:-2], b.shape[-2] * b.shape[-1]))
    x = _lu_solve_p.bind(lu, permutation, columns, trans=trans)
    return jnp.reshape(x, b.shape), b.ndim - 1


def _lu_solve_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, trans: int) -> Any:
    (lu, permutation, b), (lu_dot, _, b_dot) = primals, tangents
    if type(lu_dot) is ad.Zero:
        x = _lu_solve_p.bind(*primals, trans=trans)
        if type(b_dot) is ad.Zero:
            return x, b_dot
        return x, _lu_solve_p.bind(lu, permutation, b_dot, trans=trans)

    def solve(lu: jax.Array, b: jax.Array) -> jax.Array:
        return _stock_lu_solve(lu, permutation, b, trans=trans)

    return jax.jvp(solve, (lu, b), (lu_dot, ad.instantiate_zeros(b_dot)))


def _lu_solve_transpose(cotangent: Any, lu: Any, permutation: Any, b: Any, *, trans: int) -> Any:
    """It is linear in B: the transpose of A⁻¹, A⁻ᵀ or A⁻ᴴ."""
    if type(cotangent) is ad.Zero:
        return None, None, ad.Zero(b.aval)
    if trans == 2:
        conjugate = _lu_solve_p.bind(lu, permutation, jnp.conj(cotangent), trans=0)
        return None, None, jnp.conj(conjugate)
    return None, None, _lu_solve_p.bind(lu, permutation, cotangent, trans=1 - trans)


_lu_solve_p = _primitive("lu_solve", (2, 1, 2), ("trans",), _stock_lu_solve)
ad.primitive_jvps[_lu_solve_p] = _lu_solve_jvp
ad.primitive_transposes[_lu_solve_p] = _lu_solve_transpose
batching.fancy_primitive_batchers[_lu_solve_p] = _lu_solve_batched


# Sign and logarithm of a determinant, whose derivative is that of JAX's function.


def _slogdet_primal(a: Any) -> tuple[jax.Array, jax.Array]:
    array = jnp.asarray(a)
    if not _serves("slogdet", (2,), [array]):
        return _stock_slogdet(array)
    sign, logabs = _slogdet_p.bind(array)
    return sign, logabs


def _stock_slogdet(a: jax.Array) -> tuple[jax.Array, jax.Array]:
    stock = _original(_SLOGDET)
    sign, logabs = stock(a)
    return sign, logabs


def _custom_slogdet() -> Callable[..., Any] | None:
    """None where JAX's function has no rule of its own for the derivative."""
    rule = private.jvp_rule(_stock[_SLOGDET])
    if rule is None:
        return None
    function = jax.custom_jvp(_slogdet_primal)
    function.defjvp(rule)
    return function


_slogdet = _custom_slogdet()
_slogdet_p = _primitive(
    "slogdet", (2,), (), _stock_slogdet,
    lambda a: [(a.shape[:-2], a.dtype), (a.shape[:-2], np.finfo(a.dtype).dtype)],
)  # fmt: skip


# A·X = B, and the inverse, by factors that nobody keeps. JAX's derivatives reuse them, and so are
# those of its functions.


def _solve(a: Any, b: Any) -> jax.Array:
    operands = [jnp.asarray(x) for x in (a, b)]
    vector = operands[0].ndim == operands[1].ndim + 1
    columns = operands[1][..., None] if vector else operands[1]
    if operands[0].shape[:-1] != columns.shape[:-1] or not _fits(
        "solve", (2, 2), [operands[0], columns]
    ):
        return _stock_solve(*operands)
    x: jax.Array = _solve_p.bind(*private.vary_alike(operands[0], columns))
    return x[..., 0] if vector else x


def _fits(op: str, ranks: Sequence[int], arrays: Sequence[jax.Array]) -> bool:
    """Whether the target serves these square matrices and what is of their type."""
    a, last = arrays[0], arrays[-1]
    if a.ndim < 2 or a.shape[-1] != a.shape[-2] or a.dtype != last.dtype:
        return False
    served = _row_major.attributes(op, [jax.typeof(x) for x in arrays], {}) is not None
    return served and _serves(op, ranks, arrays)


def _stock_solve(a: jax.Array, b: jax.Array) -> jax.Array:
    stock = _original(_SOLVE)
    x: jax.Array = stock(a, b)
    return x


def _solve_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    (a, b), (a_dot, b_dot) = primals, tangents
    b_dot = ad.instantiate_zeros(b_dot)
    if type(a_dot) is ad.Zero:
        return jax.jvp(functools.partial(_stock_solve, a), (b,), (b_dot,))
    return jax.jvp(_stock_solve, (a, b), (a_dot, b_dot))


def _solve_transpose(cotangent: Any, a: Any, b: Any) -> Any:
    """It is linear in B: the transpose of A⁻¹."""
    if type(cotangent) is ad.Zero:
        return None, ad.Zero(b.aval)
    return None, _solve_p.bind(jnp.swapaxes(a, -1, -2), cotangent)


def _solve_batched(axis: Any, args: Sequence[Any], dims: Sequence[Any]) -> Any:
    """Right-hand sides that are mapped alone become columns of the same system."""
    (a, b), (a_dim, b_dim) = args, dims
    if a_dim is not None or b_dim is None or axis.explicit_mesh_axis is not None:
        return _batched(_solve_p, axis, args, dims)
    b = jnp.moveaxis(b, b_dim, -1)
    columns = jnp.reshape(b, (*b.shape[:-2], b.shape[-2] * b.shape[-1]))
    return jnp.reshape(_solve_p.bind(a, columns), b.shape), b.ndim - 1


_solve_p = _primitive("solve", (2, 2), (), _stock_solve)
ad.primitive_jvps[_solve_p] = _solve_jvp
ad.primitive_transposes[_solve_p] = _solve_transpose
batching.fancy_primitive_batchers[_solve_p] = _solve_batched


@jax.jit
def _inv(a: Any) -> jax.Array:
    if isinstance(a, jax.Array) and _fits("inv", (2,), [a]):
        x: jax.Array = _inv_p.bind(a)
        return x
    return _stock_inv(a)


def _stock_inv(a: Any) -> jax.Array:
    stock = _original(_INV)
    x: jax.Array = stock(a)
    return x


def _inv_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    return jax.jvp(_stock_inv, primals, tangents)


_inv_p = _primitive("inv", (2,), (), _stock_inv)
ad.primitive_jvps[_inv_p] = _inv_jvp


# Hessenberg form with Q.


@functools.partial(jax.jit, static_argnames=("calc_q", "overwrite_a", "check_finite"))
def _hessenberg(
    a: Any, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> jax.Array | tuple[jax.Array, jax.Array]:
    if calc_q and isinstance(a, jax.Array) and _fits("hess", (2,), [a]):
        h, q = _hess_p.bind(a)
        return h, q
    stock = _original(_HESSENBERG)
    both: jax.Array | tuple[jax.Array, jax.Array] = stock(
        a, calc_q=calc_q, overwrite_a=overwrite_a, check_finite=check_finite
    )
    return both


def _stock_hess(a: jax.Array) -> tuple[jax.Array, jax.Array]:
    stock = _original(_HESSENBERG)
    h, q = stock(a, calc_q=True)
    return h, q


def _hess_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    return jax.jvp(_stock_hess, primals, tangents)


_hess_p = _primitive("hess", (2,), (), _stock_hess, lambda a: [(a.shape, a.dtype)] * 2)
ad.primitive_jvps[_hess_p] = _hess_jvp


# The Hermitian part of a matrix, (A + Aᴴ)/2.


def _symmetrize(x: Any) -> jax.Array:
    if _fits("symmetrize", (2,), [x]):
        part: jax.Array = _symmetrize_p.bind(x)
        return part
    return _stock_symmetrize(x)


def _stock_symmetrize(x: jax.Array) -> jax.Array:
    stock = _original(_SYMMETRIZE)
    part: jax.Array = stock(x)
    return part


def _symmetrize_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    (x,), (x_dot,) = primals, tangents
    part = _symmetrize_p.bind(x)
    return part, x_dot if type(x_dot) is ad.Zero else _symmetrize_p.bind(x_dot)


def _symmetrize_transpose(cotangent: Any, x: Any) -> Any:
    """It is linear over the reals, and its own transpose."""
    zero = type(cotangent) is ad.Zero
    return (ad.Zero(x.aval) if zero else _symmetrize_p.bind(cotangent),)


_symmetrize_p = _primitive("symmetrize", (2,), (), _stock_symmetrize)
ad.primitive_jvps[_symmetrize_p] = _symmetrize_jvp
ad.primitive_transposes[_symmetrize_p] = _symmetrize_transpose
