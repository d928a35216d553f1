"""One target as one StableHLO custom call: layouts, aliases and batch partitioning."""

from __future__ import annotations

import itertools
import string
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import ml_dtypes
import numpy as np

from lapax import _jax_private
from lapax._table import Target, Variant

_DTYPES = {
    "bool": np.dtype(np.bool_),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "u8": np.dtype(np.uint8),
    "u16": np.dtype(np.uint16),
    "u32": np.dtype(np.uint32),
    "u64": np.dtype(np.uint64),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "c64": np.dtype(np.complex64),
    "c128": np.dtype(np.complex128),
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The table's dtype name as a NumPy dtype: "c64" is complex64."""
    dtype: np.dtype[Any] = _DTYPES[name]
    return dtype


def dtype_name(dtype: Any) -> str:
    """A NumPy or JAX dtype as the table spells it, or its own name where the table has none."""
    return _NAMES.get(dtype, str(dtype))


def is_static(shape: Sequence[Any]) -> bool:
    """Whether every dimension is a number, and none a symbol of jax.export."""
    return all(isinstance(size, int) for size in shape)


def lower_target(
    ctx: Any,
    target: Target,
    variant: Variant,
    operands: Sequence[Any],
    attrs: Mapping[str, Any],
    in_place: bool = True,
) -> Sequence[Any]:
    """Emits the call of `target`; `ctx` holds the avals of the operands and of all its results.

    With `in_place` the results lie where the operands do for which the table says so. Raises
    ValueError for batches that differ, of which JAX's shape rules say nothing: the call would be
    refused when it runs.
    """
    avals_in, avals_out = ctx.avals_in, ctx.avals_out
    _require_one_batch(target, variant, [tuple(aval.shape) for aval in avals_in])
    num_batch_dims = len(avals_in[0].shape) - len(variant.args[0].dims)
    column_major = target.signature.layout == "column"
    aliases = {ret.alias: i for i, ret in enumerate(variant.rets) if ret.alias is not None}
    rule = jax.ffi.ffi_lowering(
        target.jax_name,
        operand_layouts=_layouts(avals_in, variant.args, column_major),
        result_layouts=_layouts(avals_out, variant.rets, column_major),
        operand_output_aliases=aliases if in_place else {},
        extra_attributes=_partitioning(num_batch_dims, avals_in, avals_out),
    )
    return rule(ctx, *operands, **attrs)


def _require_one_batch(target: Target, variant: Variant, shapes: Sequence[tuple[Any, ...]]) -> None:
    batch, *_ = batches = [
        shape[: max(len(shape) - rank, 0)]
        for shape, rank in zip(shapes, variant.ranks(shapes), strict=True)
    ]
    for i, (arg, own) in enumerate(zip(variant.args, batches, strict=True)):
        if own != batch and not arg.alone:
            raise ValueError(
                f"{target.name}: argument {i} `{arg.name}`: expected the batch dimensions of "
                f"`{variant.args[0].name}`, {batch}, got {own} in {shapes[i]}"
            )


def _layouts(
    avals: Sequence[Any], operands: Sequence[Any], column_major: bool
) -> list[tuple[int, ...]]:
    """Minor-to-major orders: matrices (n-2, n-1, n-3, …, 0) where column-major, else row-major.

    An empty array has no order, and is spared a change of layout: XLA divides by zero for one,
    which ends the process (jaxlib 0.12.0.1).
    """
    orders = []
    for aval, operand in zip(avals, operands, strict=True):
        rank = len(aval.shape)
        order = list(range(rank - 1, -1, -1))
        if column_major and len(operand.dims) == 2 and 0 not in aval.shape:
            order[:2] = rank - 2, rank - 1
        orders.append(tuple(order))
    return orders


def _partitioning(
    num_batch_dims: int, avals_in: Sequence[Any], avals_out: Sequence[Any]
) -> dict[str, Any] | None:
    """What lets XLA run the call on each shard of a sharded batch; None for symbolic shapes.

    The frontend attribute is read by the batch partitioner, the rule by Shardy's propagation.
    """
    if not all(is_static(aval.shape) for aval in (*avals_in, *avals_out)):
        return None
    ir = _jax_private.ir()
    number = ir.StringAttr.get(str(num_batch_dims))
    attributes = {"mhlo.frontend_attributes": ir.DictAttr.get({"num_batch_dims": number})}
    if jax.config.jax_use_shardy_partitioner:
        shapes_in, shapes_out = ([aval.shape for aval in avals] for avals in (avals_in, avals_out))
        text = _sharding_rule(num_batch_dims, shapes_in, shapes_out)
        attributes["sdy.sharding_rule"] = ir.Attribute.parse(text)
    return attributes


def _sharding_rule(
    num_batch_dims: int,
    shapes_in: Sequence[Sequence[int]],
    shapes_out: Sequence[Sequence[int]],
) -> str:
    """Shardy's rule: a factor per batch dimension that all operands share, and one of its own for
    every other dimension, as in `([i, j, k])->([i, l, m], [i]) {i=5, j=4, k=4, l=4, m=4}`.
    """
    symbols = _factor_symbols()
    shared = list(itertools.islice(symbols, num_batch_dims))
    sizes = dict(zip(shared, shapes_in[0], strict=False))

    def tensor(shape: Sequence[int]) -> str:
        own = [(next(symbols), size) for size in shape[num_batch_dims:]]
        sizes.update(own)
        return f"[{', '.join([*shared, *(symbol for symbol, _ in own)])}]"

    operands = ", ".join(map(tensor, shapes_in))
    results = ", ".join(map(tensor, shapes_out))
    factors = ", ".join(f"{symbol}={size}" for symbol, size in sizes.items())
    return f"#sdy.op_sharding_rule<({operands})->({results}) {{{factors}}}, custom>"


def _factor_symbols() -> Iterator[str]:
    """Shardy's factor names in the order it insists on: i, j, …, z, z_1, z_2, …"""
    yield from string.ascii_lowercase[string.ascii_lowercase.index("i") :]
    for i in itertools.count(1):
        yield f"z_{i}"
