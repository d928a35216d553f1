"""`lapax_call`: the JAX primitive behind every target, and `ffi_call`, which binds it.

Shapes, dtypes and attributes are judged by the library, when the call is traced; here they are
only carried. A batch dimension is a leading dimension, so vmap makes one call with a larger batch.
"""

from __future__ import annotations

import collections
import functools
import itertools
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.typing import ArrayLike

from lapax import _jax_private, _library
from lapax._attributes import AttrValue, encode, plain
from lapax._lowering import dtype_name, is_static, lower_target, numpy_dtype
from lapax._table import Signature, Target, Variant, ops, targets

Attrs = tuple[tuple[str, AttrValue], ...]
Sizes = tuple[tuple[str, int], ...]
"""Values of the free dimensions."""

_DERIVATIVES = {
    "banded": "lapax.linalg.solve_banded",
    "block_tridiagonal": "the functions of lapax.linalg",
    "cholesky": "jax.numpy.linalg.cholesky",
    "eig": "jax.numpy.linalg.eig",
    "eigh": "jax.numpy.linalg.eigh",
    "functions": "the functions of lapax.linalg",
    "generalised_schur": "lapax.linalg.eig with b",
    "ldl": "lapax.linalg.ldl or lapax.linalg.solve",
    "lu": "jax.scipy.linalg.lu_factor or jax.numpy.linalg.solve",
    "qr": "jax.numpy.linalg.qr",
    "sparse": "jax.experimental.sparse",
    "svd": "jax.numpy.linalg.svd",
    "triangular": "jax.scipy.linalg.solve_triangular",
    "tridiagonal": "jax.lax.linalg.tridiagonal_solve",
}
"""By family: the function for the same mathematics that has a derivative."""


def ffi_call(name: str, *args: ArrayLike, **options: Any) -> Any:
    """Calls a target of liblapax.

    Args:
        name: an op (`"potrf"`), whose target the dtype of the first array chooses on the platform
            that the program is compiled for, or the full name of a target (`"lapack_dpotrf_ffi"`).
        args: the op's arrays, each of shape [*b, …] with the same batch dimensions *b.
        options: the op's attributes and its free dimensions, by name. Enumerated attributes take a
            member of their class in `lapax.ffi`, a name ("Lower"), a letter ("L") or a code. A free
            dimension for which the others leave one size may be missing.

    Returns:
        The result, or a named tuple of them where the op has more than one.

    Raises:
        TypeError: an unknown or missing argument, or a dtype that the op has no target for.
        ValueError: a name that is not in the table, or operands that do not fit together; the text
            is the library's and lists every mismatch.

    Works under jit, vmap (one call with a larger batch), shard_map, sharded batches (no
    all-gather) and jax.export (see `export_safety_checks`). It has no derivative: the functions
    of jax.numpy.linalg and jax.scipy.linalg, under `lapax.install()`, have.
    """
    signature = _signature_of(name)
    op = signature.op
    if len(args) != len(signature.variants[0].args):
        names = ", ".join(arg.name for arg in signature.variants[0].args)
        raise TypeError(f"{op} takes {_count(names)} ({names}), got {len(args)}")
    attrs, sizes = _sort_options(signature, options)
    arrays = _jax_private.vary_alike(*map(jnp.asarray, args))
    if len(sizes) < len(signature.free_dims):
        sizes = _with_all_sizes(name, signature, arrays, attrs, sizes)
    results = call_p.bind(*arrays, name=name, attrs=attrs, sizes=sizes)
    return results[0] if len(results) == 1 else result_type(op)(*results)


def abstract(name: str, *avals: Any, **options: Any) -> list[Any]:
    """What `ffi_call` returns for arrays of these types."""
    signature = _signature_of(name)
    attrs, sizes = _sort_options(signature, options)
    if len(sizes) < len(signature.free_dims):
        sizes = _with_all_sizes(name, signature, avals, attrs, sizes)
    return _abstract(*avals, name=name, attrs=attrs, sizes=sizes)


@functools.cache
def result_type(op: str) -> type[Any]:
    """The named tuple of an op with several results, `GetrfResult` for getrf."""
    target = next(t for t in targets() if t.signature.op == op)
    rets = target.signature.variants[0].rets
    title = "".join(part.capitalize() for part in op.split("_")) + "Result"
    return collections.namedtuple(title, [r.name for r in rets], module="lapax.ffi")


def resolve(
    name: str, dtypes: Sequence[np.dtype[Any]], platform: str | None
) -> tuple[Target, Variant]:
    """The target for an op or a full name, on one platform or on the first that has it.

    `dtypes` are those of the arrays; where only the first fits, the library says what does not.
    Raises TypeError where the first has none, NotImplementedError where the platform has none.
    """
    wanted, *others = map(dtype_name, dtypes)
    named = [t for t in targets() if name == t.name] or list(ops()[name])
    here = [t for t in named if platform in (None, t.platform.lower())]
    if not here:
        there = ", ".join(sorted({t.platform.lower() for t in named}))
        why = named[0].signature.not_on_cuda if platform == "cuda" else None
        raise NotImplementedError(
            f"lapax: {name} has no target on platform {platform}; it has on: {there}"
            + (f" ({why})" if why else "")
        )
    for target in here:
        variant = target.signature.variant(wanted, *others) or target.signature.variant(wanted)
        if variant is not None:
            return target, variant
    first = here[0].signature.variants[0].args[0].name
    have = [v.args[0].dtype for t in here for v in t.signature.variants]
    accepted = ", ".join(str(numpy_dtype(name)) for name in dict.fromkeys(have))
    wide = {"f32": "f64", "c64": "c128", "i32": "i64"}.get(wanted)
    hint = " (jax_enable_x64 is off)" if wide in have and not jax.config.jax_enable_x64 else ""
    raise TypeError(f"{name}: {first} has dtype {dtypes[0]}; expected one of: {accepted}{hint}")


def _signature_of(name: str) -> Signature:
    for target in targets():
        if name in (target.name, target.signature.op):
            return target.signature
    raise ValueError(
        f"{name!r} is neither an op nor a target of liblapax; ops: {', '.join(ops())}; "
        "targets: see `python -m lapax targets`"
    )


def _sort_options(signature: Signature, options: Mapping[str, Any]) -> tuple[Attrs, Sizes]:
    """Keyword arguments as attributes and free dimensions. What is None is left out."""
    op, free = signature.op, signature.free_dims
    known = {attr.name: attr for attr in signature.attrs}
    unknown = [name for name in options if name not in known and name not in free]
    given = {name for name, value in options.items() if value is not None}
    required = [attr.name for attr in signature.attrs if not attr.optional]
    problems = [f"unexpected keyword {name!r}" for name in unknown]
    problems += [f"missing keyword {name!r}" for name in required if name not in given]
    if problems:
        raise _misused(signature, problems)
    attrs = tuple(
        (name, encode(op, attr, options[name])) for name, attr in known.items() if name in given
    )
    return attrs, tuple((dim, _size(op, dim, options[dim])) for dim in free if dim in given)


def _misused(signature: Signature, problems: Sequence[str]) -> TypeError:
    op, takes = signature.op, [*signature.free_dims, *(attr.name for attr in signature.attrs)]
    return TypeError(
        f"{op}: {'; '.join(problems)} (keywords of {op}: {', '.join(takes) or 'none'})"
    )


def _with_all_sizes(
    name: str, signature: Signature, arrays: Sequence[Any], attrs: Attrs, sizes: Sizes
) -> Sizes:
    """The free dimensions, of which those that are not given have a size of the operands'.

    Raises TypeError where several sizes fit, or none.
    """
    target, variant = resolve(name, [array.dtype for array in arrays], None)
    dtypes = tuple(dtype_name(array.dtype) for array in arrays)
    shapes = [tuple(array.shape) for array in arrays]
    _, own = _symbolic_batch(target, variant, tuple(shapes))
    given, missing = dict(sizes), [d for d in signature.free_dims if d not in dict(sizes)]

    def fits(chosen: Sequence[int]) -> bool:
        everything = given | dict(zip(missing, chosen, strict=True))
        try:
            _infer(
                target, dtypes, own, attrs, tuple((d, everything[d]) for d in signature.free_dims)
            )
        except (TypeError, ValueError):
            return False
        return True

    ranks = variant.ranks(shapes)
    known = {n for shape, rank in zip(own, ranks, strict=True) for n in shape[len(shape) - rank :]}
    found = [it for it in itertools.product(sorted(known), repeat=len(missing)) if fits(it)]
    # A dimension that is free indeed fits with other sizes, too.
    others = (
        [*it[:i], other, *it[i + 1 :]]
        for it in found[:1]
        for i, size in enumerate(it)
        for other in (size - 1, size + 1)
    )
    if len(found) == 1 and not any(map(fits, others)):
        given |= zip(missing, found[0], strict=True)
        return tuple((dim, given[dim]) for dim in signature.free_dims)
    raise _misused(signature, [f"missing keyword {dim!r}" for dim in missing])


def _size(op: str, dim: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{op}: {dim}: expected an int, got {value!r}") from None


def _count(names: str) -> str:
    count = names.count(",") + 1
    return "1 array" if count == 1 else f"{count} arrays"


def _abstract(*avals: Any, name: str, attrs: Attrs, sizes: Sizes) -> list[Any]:
    target, variant = resolve(name, [aval.dtype for aval in avals], None)
    shapes = tuple(tuple(aval.shape) for aval in avals)
    dtypes = tuple(dtype_name(aval.dtype) for aval in avals)
    batch, shapes = _symbolic_batch(target, variant, shapes)
    rets = _infer(target, dtypes, shapes, attrs, sizes)
    ranks = variant.ranks([aval.shape for aval in avals])
    specs = _jax_private.batch_specs(target.name, avals, ranks)
    return [
        _jax_private.result_aval(avals[0], (*batch, *shape), numpy_dtype(dtype), specs)
        for dtype, shape in rets
    ]


def _symbolic_batch(
    target: Target, variant: Variant, shapes: tuple[tuple[Any, ...], ...]
) -> tuple[tuple[Any, ...], tuple[tuple[int, ...], ...]]:
    """Sets symbolic batch dimensions aside: the library infers shapes of one matrix then."""
    if all(map(is_static, shapes)):
        return (), shapes
    ranks = variant.ranks(shapes)
    splits = [max(len(shape) - rank, 0) for shape, rank in zip(shapes, ranks, strict=True)]
    batches = [shape[:split] for shape, split in zip(shapes, splits, strict=True)]
    own = [shape[split:] for shape, split in zip(shapes, splits, strict=True)]
    if any(batch != batches[0] for batch in batches) or not all(map(is_static, own)):
        raise ValueError(
            f"{target.name}: symbolic dimensions are supported in the leading batch dimensions, "
            f"where all operands have the same; got shapes {', '.join(map(str, shapes))}"
        )
    return batches[0], tuple(own)


@functools.lru_cache(maxsize=4096)
def _infer(
    target: Target,
    dtypes: tuple[str, ...],
    shapes: tuple[tuple[int, ...], ...],
    attrs: Attrs,
    sizes: Sizes,
) -> tuple[tuple[str, tuple[int, ...]], ...]:
    answer = _library.infer(
        {
            "target": target.name,
            "platform": target.platform,
            "args": [
                {"dtype": dtype, "shape": list(shape)}
                for dtype, shape in zip(dtypes, shapes, strict=True)
            ],
            "attrs": {name: plain(value) for name, value in attrs},
            "dims": dict(sizes),
        }
    )
    if "error" in answer:
        fits = target.signature.variant(*dtypes) is not None
        raise (ValueError if fits else TypeError)(answer["error"])
    return tuple((ret["dtype"], tuple(ret["shape"])) for ret in answer["rets"])


def in_front(axis: Any, args: Sequence[Any], dims: Sequence[Any]) -> list[Any]:
    """The operands of a vmapped call with the mapped axis first, repeated where they lack it."""
    return [_jax_private.in_front(axis, arg, dim) for arg, dim in zip(args, dims, strict=True)]


def _batched(axis: Any, args: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
    """One call, whatever the number of mapped axes: a batch dimension is a leading dimension."""
    mapped = any(dim is not None for dim in dims)
    results = call_p.bind(*(in_front(axis, args, dims) if mapped else args), **params)
    return results, (0 if mapped else None,) * len(results)


def _no_derivative(*_: Any, name: str, **__: Any) -> Any:
    family = _signature_of(name).family
    instead = _DERIVATIVES.get(family, "the functions of jax.numpy.linalg and jax.scipy.linalg")
    raise NotImplementedError(
        f"lapax: a call of {name} cannot be differentiated. Use {instead}, which runs on lapax "
        "under lapax.install() and has a derivative, or define one with jax.custom_jvp"
    )


def _lower(
    platform: str, ctx: Any, *operands: Any, name: str, attrs: Attrs, sizes: Sizes
) -> Sequence[Any]:
    del sizes  # They are in the shapes of the results.
    target, variant = resolve(name, [aval.dtype for aval in ctx.avals_in], platform)
    return lower_target(ctx, target, variant, operands, dict(attrs))


call_p = Primitive("lapax_call")
call_p.multiple_results = True
call_p.def_impl(_jax_private.eager(call_p))
call_p.def_abstract_eval(_abstract)
_jax_private.without_derivative(call_p, _no_derivative)
_jax_private.batch_by(call_p, _batched)
for _platform in ("cpu", "cuda"):
    _jax_private.lower_by(call_p, functools.partial(_lower, _platform), _platform)
