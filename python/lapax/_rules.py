"""Lowering rules on the CPU: JAX's own with their calls renamed, and ours where JAX has none.

A rule of JAX keeps its NaN fill, layouts and sharding. `eigh` and `svd` get more than a rename:
the parameters that JAX refuses on the CPU.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
from jax.extend.core import Primitive

from lapax import _jax_private as private
from lapax import _row_major, _selection
from lapax._call import call_p, in_front
from lapax._lowering import dtype_name, is_static, lower_target
from lapax._register import taken_over
from lapax._table import ops, targets

PLATFORM = "cpu"

exporting_context = jax.make_user_context(default_value=None)
"""Whose names this thread's programs call: "jaxlib", "lapax", or None where `exporting()` says
nothing; part of the keys of JAX's caches."""

_INSTEAD = {"JACOBI": "QR", "POLAR": "DEFAULT"}
"""`SvdAlgorithm`s without a target of their own, and the one that serves them: the bounds on the
error of all of them are those of a backward stable method."""


def serves(op: str, platform: str = PLATFORM) -> bool:
    """Whether the table has an op of this name, called as on the CPU."""
    return any(target.platform.lower() == platform for target in ops().get(op, ()))


def renaming(stock: private.Rule, ctx: Any, *args: Any, **params: Any) -> Any:
    """JAX's rule, its calls going to lapax."""
    return private.rename_calls(lambda: stock(ctx, *args, **params), _names(ctx))


def calling(
    by_name: Callable[[Mapping[str, Any]], bool],
    stock: private.Rule,
    ctx: Any,
    *args: Any,
    **params: Any,
) -> Any:
    """JAX's rule for programs that call targets by name; jaxlib's are made fit to be called.

    JAX leaves that to its rules for linear algebra, which no longer do it here.
    """
    if not private.for_export(ctx) and by_name(params):
        private.initialize_lapack()
    return stock(ctx, *args, **params)


def row_major(
    name: str, stock: private.Rule, ctx: Any, *operands: Any, **params: Any
) -> Sequence[Any]:
    """The row-major target of a primitive's own name, or JAX's rule where that serves the call."""
    return by_rows(name, functools.partial(renaming, stock), ctx, operands, params)


def fused(
    op: str, platform: str, ctx: Any, operands: Sequence[Any], params: Mapping[str, Any]
) -> Sequence[Any]:
    """The row-major target of what `_fused` found, which serves it."""

    def none(*_: Any, **__: Any) -> Sequence[Any]:
        raise NotImplementedError(f"lapax: no target serves {op} of {ctx.avals_in} on {platform}")

    return by_rows(op, none, ctx, operands, params, platform)


def by_rows(
    op: str,
    instead: private.Rule,
    ctx: Any,
    operands: Sequence[Any],
    params: Mapping[str, Any],
    platform: str = PLATFORM,
) -> Sequence[Any]:
    """The row-major target of an op on a platform; `instead` serves what it does not."""
    kept = functools.partial(instead, ctx, *operands, **params)
    attributes = _row_major.attributes(platform, op, ctx.avals_in, params)
    in_place = attributes is not None and _row_major.in_place(platform, op, ctx.avals_in)
    return _call(op, kept, ctx, operands, attributes, in_place, platform)


def own(op: str, common: private.Rule, ctx: Any, *operands: Any, **params: Any) -> Sequence[Any]:
    """The target of the same name; JAX's common rule where that cannot serve the call.

    Parameters of the primitive are in the shapes of its results.
    """
    return _call(op, functools.partial(common, ctx, *operands, **params), ctx, operands, {})


def _call(
    op: str,
    instead: Callable[[], Any],
    ctx: Any,
    operands: Sequence[Any],
    attributes: Mapping[str, Any] | None,
    in_place: bool = True,
    platform: str = PLATFORM,
) -> Sequence[Any]:
    """A call of the op's target; its results beyond the primitive's are dropped.

    `instead` serves calls without attributes, symbolic shapes, dtypes that the table does not have,
    targets that are left and programs that run without lapax.
    """
    avals = (*ctx.avals_in, *ctx.avals_out)
    for target in targets(platform):
        variant = target.signature.variant(dtype_name(ctx.avals_in[0].dtype))
        if target.signature.op != op or variant is None:
            continue
        if attributes is None or not all(is_static(aval.shape) for aval in avals):
            break
        if not _selection.serves(target):
            break
        if for_others(ctx):
            break
        scratch = [
            ctx.avals_in[ret.alias].update(weak_type=False)
            for ret in variant.rets[len(ctx.avals_out) :]
            if ret.alias is not None
        ]
        sub_ctx = ctx.replace(avals_out=[*ctx.avals_out, *scratch])
        results = lower_target(sub_ctx, target, variant, operands, attributes, in_place)
        return list(results)[: len(ctx.avals_out)]
    kept: Sequence[Any] = instead()
    return kept


def batched(
    op: str, primitive: Primitive, axis: Any, args: Sequence[Any], dims: Sequence[Any]
) -> tuple[Any, int | None]:
    """The primitive takes one matrix only, so its batch is a call of the target itself."""
    if all(dim is None for dim in dims):
        return primitive.bind(*args), None
    return call_p.bind(*in_front(axis, args, dims), name=op, attrs=(), sizes=())[0], 0


def eig(stock: private.Rule, ctx: Any, a: Any, **params: Any) -> Sequence[Any]:
    """`eig_p`, whose left eigenvectors JAX's rule serves."""
    op = "eig" if params["compute_right_eigenvectors"] else "eigvals"
    return by_rows(op, functools.partial(renaming, stock), ctx, (a,), params)


def schur(
    stock: private.Rule,
    ctx: Any,
    a: Any,
    *,
    sort_eig_vals: bool,
    select_callable: Callable[..., Any] | None,
    **params: Any,
) -> Sequence[Any]:
    """`schur_p`, also sorted: `select_callable` is `sort` of `lapax.linalg.schur`."""
    if not sort_eig_vals:
        unsorted = {**params, "sort_eig_vals": False, "select_callable": select_callable}
        return row_major("schur", stock, ctx, a, **unsorted)
    if select_callable is None:
        raise ValueError("schur: select_callable: expected a function of eigenvalues, got None")

    def ordered(a: jax.Array) -> Sequence[jax.Array]:
        from lapax import linalg  # It imports all of lapax.

        t, z, _ = linalg.schur(a, sort=select_callable)
        return (t, z)[: len(ctx.avals_out)]

    results: Sequence[Any] = private.lower_fun(ordered)(ctx, a)
    return results


def eigh(
    primitive: Primitive,
    stock: private.Rule,
    ctx: Any,
    a: Any,
    *,
    subset_by_index: tuple[int, int] | None,
    **params: Any,
) -> Sequence[Any]:
    """`eigh_p`, also for `subset_by_index` and for every EighImplementation."""
    kept = functools.partial(_by_syevd, primitive, stock)
    op = "eigh" if subset_by_index is None else "eigh_subset"
    return by_rows(op, kept, ctx, (a,), {**params, "subset_by_index": subset_by_index})


def _by_syevd(
    primitive: Primitive,
    stock: private.Rule,
    ctx: Any,
    a: Any,
    *,
    subset_by_index: tuple[int, int] | None,
    **params: Any,
) -> Sequence[Any]:
    return whole_then_part(
        "eigh", (-1, -1), ctx, subset_by_index, ctx.avals_in[0].shape[-1:],
        lambda full: stock(full, a, subset_by_index=None, **_any_implementation(params)),
        private.result_avals(primitive, ctx.avals_in, subset_by_index=None, **params),
    )  # fmt: skip


def eigh_values(
    primitive: Primitive,
    stock: private.Rule,
    ctx: Any,
    a: Any,
    *,
    subset_by_index: tuple[int, int] | None,
    **params: Any,
) -> Sequence[Any]:
    """The eigenvalues of `eigh_p` alone."""
    kept = functools.partial(_values_by_syevd, primitive, stock)
    return by_rows("eigvalsh", kept, ctx, (a,), {**params, "subset_by_index": subset_by_index})


def qr_r(stock: private.Rule, ctx: Any, a: Any, **params: Any) -> Sequence[Any]:
    """R of `qr_p` alone."""
    return by_rows("qr_r", functools.partial(renaming, stock), ctx, (a,), params)


def _values_by_syevd(
    primitive: Primitive,
    stock: private.Rule,
    ctx: Any,
    a: Any,
    *,
    subset_by_index: tuple[int, int] | None,
    **params: Any,
) -> Sequence[Any]:
    """The call of `eigh_p`, in LAPACK's mode N."""
    whole = {**_any_implementation(params), "subset_by_index": None}
    avals = private.result_avals(primitive, ctx.avals_in, **whole)

    def emit(full: Any) -> Sequence[Any]:
        both = full.replace(primitive=primitive, avals_out=avals)
        return list(stock(both, a, **whole))[1:]

    return whole_then_part(
        "eigh", (-1,), ctx, subset_by_index, ctx.avals_in[0].shape[-1:], emit, avals[1:],
        {"mode": ord("N")},
    )  # fmt: skip


def svd(
    primitive: Primitive,
    stock: private.Rule,
    ctx: Any,
    a: Any,
    *,
    subset_by_index: tuple[int, int] | None,
    algorithm: Any = None,
    **params: Any,
) -> Sequence[Any]:
    """`svd_p`, also for `subset_by_index` and for every SvdAlgorithm."""
    kept = functools.partial(_by_gesdd, primitive, stock)
    op = "svd" if params["compute_uv"] else "svdvals"
    if params["compute_uv"] and subset_by_index is not None:
        op = "svd_subset"
    whole = {**params, "subset_by_index": subset_by_index, "algorithm": algorithm}
    return by_rows(op, kept, ctx, (a,), whole)


def _by_gesdd(
    primitive: Primitive,
    stock: private.Rule,
    ctx: Any,
    a: Any,
    *,
    subset_by_index: tuple[int, int] | None,
    algorithm: Any,
    **params: Any,
) -> Sequence[Any]:
    if algorithm is not None:
        algorithm = type(algorithm)[_INSTEAD.get(algorithm.name, algorithm.name)]
    if not params["compute_uv"]:
        params["full_matrices"] = False  # JAX's rule allocates U and V all the same.
    whole = {**params, "algorithm": algorithm, "subset_by_index": None}
    return whole_then_part(
        "svd", (-1, -1, -2), ctx, subset_by_index, ctx.avals_in[0].shape[-2:],
        lambda full: stock(full, a, **whole),
        private.result_avals(primitive, ctx.avals_in, **whole),
    )  # fmt: skip


def _any_implementation(params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters with the default algorithm, where this JAX has the parameter."""
    return {**params, "algorithm": None} if "algorithm" in params else dict(params)


def whole_then_part(
    what: str,
    axes: Sequence[int],
    ctx: Any,
    subset: tuple[int, int] | None,
    sizes: Sequence[Any],
    emit: Callable[[Any], Sequence[Any]],
    avals: Sequence[Any],
    attributes: Mapping[str, int] | None = None,
    names: dict[str, str] | None = None,
) -> Sequence[Any]:
    """All min(sizes) values and vectors by `emit`; of result i the range `subset` along axes[i].

    `names` are what calls become; by default those on the CPU."""
    full = ctx.replace(avals_out=list(avals))
    names = _names(ctx) if names is None else names
    results = private.rename_calls(lambda: emit(full), names, attributes)
    if subset is None:
        return list(results)
    start, stop = subset
    if not 0 <= start <= stop <= min(sizes):
        raise ValueError(f"{what}: subset_by_index {subset} is not within (0, {min(sizes)})")

    def part(*arrays: jax.Array) -> list[jax.Array]:
        pairs = zip(arrays, axes, strict=False)
        return [jax.lax.slice_in_dim(x, start, stop, axis=x.ndim + axis) for x, axis in pairs]

    sub_ctx = ctx.replace(primitive=None, avals_in=list(avals))
    sliced: Sequence[Any] = private.lower_fun(part)(sub_ctx, *results)
    return sliced


def _names(ctx: Any) -> dict[str, str]:
    """What each of jaxlib's names becomes: itself where a program must keep it or may."""
    keep = for_others(ctx) or (taken_over() and exporting_context.value is None)
    return {
        target.name: target.name if keep else target.jax_name
        for target in targets(PLATFORM)
        if _selection.serves(target)
    }


def for_others(ctx: Any) -> bool:
    """Whether only names of jaxlib's will do: the program leaves the process, unless told apart."""
    names: str | None = exporting_context.value
    return private.for_export(ctx) if names is None else names == "jaxlib"
