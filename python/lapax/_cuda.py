"""install() on CUDA: the custom calls that JAX's rules emit there become lapax's.

Everything else about the rules stays JAX's, but for small matrices that a row-major target serves
without transposes, and for sparse formats, whose rules ask a working cuSPARSE for sizes. Works
without a GPU and without JAX's plugin for CUDA: rules are for lowering, which needs neither.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import Primitive

from lapax import _choices, _library, _row_major, _rules, _selection, _unused
from lapax import _jax_private as private
from lapax._lowering import dtype_name, is_static, lower_target, numpy_dtype
from lapax._rules import for_others, serves
from lapax._table import targets

PLATFORM = "cuda"


def replace_rules(primitives: Iterable[Primitive]) -> list[Callable[[], None]]:
    """Wraps JAX's rules for CUDA; returns what undoes it.

    None is wrapped where lapax's kernels cannot run: then jaxlib serves all.
    """
    undo = []
    if not usable():
        return []
    for primitive in primitives:
        name, entry = primitive.name, private.lowering_entry(primitive, PLATFORM)
        own = _has_own(name)
        if entry is None and not own:
            continue
        stock = _common_rule(primitive) if entry is None else entry.rule
        rule: private.Rule = functools.partial(_renaming, stock)
        if own:
            rule = _own_rule(primitive, stock)
        if name == "eigh" and not _selection.leaves(name, PLATFORM):
            rule = functools.partial(_eigh, primitive, stock)
        inline = entry is None or entry.inline
        undo.append(private.replace_lowering(primitive, PLATFORM, rule, inline))
        if entry is None:
            continue
        if name == "eigh":
            values = functools.partial(_eigh_values, primitive, entry.rule)
            undo.append(
                private.replace_lowering(_unused.eigh_values_p, PLATFORM, values, inline=True)
            )
    return undo


def _has_own(name: str) -> bool:
    """Whether a target serves the primitive of this name as the CPU's does."""
    op = "gehrd" if name == "hessenberg" else name
    own = name in _row_major.NAMES or name == "hessenberg"
    return own and serves(op, PLATFORM) and _selection.serves_op(op, PLATFORM)


def _own_rule(primitive: Primitive, stock: private.Rule) -> private.Rule:
    if primitive.name == "schur":
        return functools.partial(schur, primitive, stock)
    rules = {"eig": eig, "hessenberg": hessenberg, "svd": svd}
    rule = rules.get(primitive.name, functools.partial(by_rows, primitive.name))
    return functools.partial(rule, stock)


def _common_rule(primitive: Primitive) -> private.Rule:
    """JAX's rule for any platform, or one that says that JAX has none."""
    try:
        return private.common_rule(primitive)
    except KeyError:
        return functools.partial(_without_rule, primitive.name)


def _without_rule(name: str, ctx: Any, *_: Any, **__: Any) -> Sequence[Any]:
    raise NotImplementedError(
        f"{name} of {ctx.avals_in} on platform {PLATFORM}: JAX has no rule for it, and lapax none "
        "for these arguments"
    )


def replace_formats(primitives: Mapping[Primitive, str]) -> list[Callable[[], None]]:
    """The same for sparse formats, by the target of the given op: none of JAX's rules is called."""
    undo = []
    for primitive, op in primitives.items() if usable() else ():
        entry = private.lowering_entry(primitive, PLATFORM)
        if entry is not None:
            rule = functools.partial(_own, op, entry.rule)
            undo.append(private.replace_lowering(primitive, PLATFORM, rule, entry.inline))
    return undo


def usable() -> bool:
    """Whether this liblapax has kernels, which are not left, and no driver here that is too old for
    them.

    Without any driver they are usable: the program may be lowered for another machine. Raises
    ValueError where LAPAX_GPU_CHOICES names a file that is no table of choices.
    """
    if _library.cuda_kernels() == 0 or _selection.leaves_platform(PLATFORM):
        return False
    _choices.table(None)  # A file of choices that is wrong is an error of install().
    reason = _library.cuda_unfit()
    if reason is not None:
        _warn(reason)
    return reason is None


@functools.cache
def _warn(reason: str) -> None:
    """Once in a process, and not where JAX_PLATFORMS says that there is no CUDA to be used."""
    platforms = jax.config.jax_platforms
    if not platforms or {"cuda", "gpu"} & set(platforms.split(",")):
        warnings.warn(
            f"lapax leaves CUDA to jaxlib: {reason}", RuntimeWarning, stacklevel=stacklevel()
        )


def stacklevel() -> int:
    """That of the caller of lapax, as warnings.warn counts."""
    frame, level = sys._getframe(1), 1
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("lapax."):
        frame, level = frame.f_back, level + 1
    return level


def _own(op: str, stock: private.Rule, ctx: Any, *operands: Any, **params: Any) -> Sequence[Any]:
    """The op's target; JAX's rule for other dtypes, symbolic shapes and programs without lapax."""
    target = next(target for target in targets(PLATFORM) if target.signature.op == op)
    variant = target.signature.variant(dtype_name(ctx.avals_in[0].dtype))
    avals = (*ctx.avals_in, *ctx.avals_out)
    served = variant is not None and all(
        aval.dtype == numpy_dtype(operand.dtype) and is_static(aval.shape)
        for aval, operand in zip(avals, (*variant.args, *variant.rets), strict=True)
    )
    if variant is None or not served or for_others(ctx) or not _selection.serves(target):
        kept: Sequence[Any] = stock(ctx, *operands, **params)
        return kept
    attributes = {attr.name: params[attr.name] for attr in target.signature.attrs}
    return lower_target(ctx, target, variant, operands, attributes)


def by_rows(
    name: str, stock: private.Rule, ctx: Any, *operands: Any, **params: Any
) -> Sequence[Any]:
    """The row-major target of a primitive's own name, or JAX's rule where that serves the call."""
    instead = functools.partial(_renaming, stock)
    return _rules.by_rows(name, instead, ctx, operands, params, PLATFORM)


def eig(stock: private.Rule, ctx: Any, a: Any, **params: Any) -> Sequence[Any]:
    """`eig_p`, whose left eigenvectors JAX's rule serves."""
    op = "eig" if params["compute_right_eigenvectors"] else "eigvals"
    return by_rows(op, stock, ctx, a, **params)


def hessenberg(stock: private.Rule, ctx: Any, a: Any) -> Sequence[Any]:
    """`hessenberg_p`, for which JAX has a rule on the CPU alone: H and its reflectors."""
    (aval,) = ctx.avals_in
    target = next(target for target in targets(PLATFORM) if target.signature.op == "gehrd")
    variant = target.signature.variant(dtype_name(aval.dtype))
    if variant is None or not is_static(aval.shape) or for_others(ctx):
        kept: Sequence[Any] = stock(ctx, a)
        return kept
    batch = private.batch_specs("gehrd", [aval], (2,))
    info = private.result_aval(aval, aval.shape[:-2], np.dtype(np.int32), batch)
    whole = ctx.replace(avals_out=[*ctx.avals_out, info])
    attributes = {"low": np.int32(1), "high": np.int32(aval.shape[-1])}
    return list(lower_target(whole, target, variant, (a,), attributes))[:2]


def schur(
    primitive: Primitive, stock: private.Rule, ctx: Any, a: Any, **params: Any
) -> Sequence[Any]:
    """`schur_p`, for which JAX has a rule on the CPU alone; without vectors these are dropped."""
    both = {**params, "compute_schur_vectors": True}
    avals = private.result_avals(primitive, ctx.avals_in, **both)
    results = by_rows("schur", stock, ctx.replace(avals_out=avals), a, **both)
    return list(results)[: len(ctx.avals_out)]


def svd(stock: private.Rule, ctx: Any, a: Any, **params: Any) -> Sequence[Any]:
    """`svd_p`."""
    return by_rows("svd" if params["compute_uv"] else "svdvals", stock, ctx, a, **params)


def _renaming(stock: private.Rule, ctx: Any, *args: Any, **params: Any) -> Any:
    """JAX's rule, its calls going to lapax unless the program is to run without lapax."""
    return private.rename_calls(lambda: stock(ctx, *args, **params), _names(ctx))


def _eigh(
    primitive: Primitive,
    stock: private.Rule,
    ctx: Any,
    a: Any,
    *,
    subset_by_index: tuple[int, int] | None,
    **params: Any,
) -> Sequence[Any]:
    """`eigh_p`, also for `subset_by_index`."""
    op = "eigh" if subset_by_index is None else "eigh_subset"
    instead = functools.partial(_by_syevd, primitive, stock, (-1, -1), None)
    params["subset_by_index"] = subset_by_index
    return _rules.by_rows(op, instead, ctx, (a,), params, PLATFORM)


def _eigh_values(
    primitive: Primitive, stock: private.Rule, ctx: Any, a: Any, **params: Any
) -> Sequence[Any]:
    """The eigenvalues of `eigh_p` alone."""
    without_vectors = {"mode": ord("N")}
    instead = functools.partial(_by_syevd, primitive, stock, (-1,), without_vectors)
    return _rules.by_rows("eigvalsh", instead, ctx, (a,), params, PLATFORM)


def _by_syevd(
    primitive: Primitive,
    stock: private.Rule,
    axes: tuple[int, ...],
    attributes: Mapping[str, int] | None,
    ctx: Any,
    a: Any,
    *,
    subset_by_index: tuple[int, int] | None,
    **params: Any,
) -> Sequence[Any]:
    """The last results of JAX's rule, one for each of `axes`: of each the range along its axis."""
    whole = {**params, "subset_by_index": None}
    avals = private.result_avals(primitive, ctx.avals_in, **whole)
    first = len(avals) - len(axes)

    def emit(full: Any) -> Sequence[Any]:
        all_of_it = full.replace(primitive=primitive, avals_out=avals)
        return list(stock(all_of_it, a, **whole))[first:]

    return _rules.whole_then_part(
        "eigh", axes, ctx, subset_by_index, ctx.avals_in[0].shape[-1:], emit, avals[first:],
        attributes, _names(ctx),
    )  # fmt: skip


def _names(ctx: Any) -> dict[str, str]:
    if for_others(ctx):
        return {}
    return {t.name: t.jax_name for t in targets(PLATFORM) if _selection.serves(t)}
