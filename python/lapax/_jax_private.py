"""The names that JAX does not promise to keep. No other file of the package uses any.

Each was read and run on jax 0.8.0 and 0.12.0.1, the ends of the supported range; a name that
differs between them says how.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jaxlib.cpu_sparse
import jaxlib.lapack
import numpy as np
from jax._src import core as _core
from jax._src.lax import linalg as _linalg  # 0.8.0 – 0.12.0.1; public minus geqrf_p, geqp3_p
from jax.extend.core import Primitive
from jax.extend.mlir import ir
from jax.interpreters import batching, mlir
from jax.sharding import NamedSharding, PartitionSpec

Rule = Callable[..., Any]


def linalg_primitives() -> dict[str, Primitive]:
    """JAX's linear-algebra primitives by name. 0.8.0 – 0.12.0.1: module-level `*_p`."""
    found = (value for value in vars(_linalg).values() if isinstance(value, Primitive))
    return {primitive.name: primitive for primitive in found}


def jaxlib_cpu_targets() -> frozenset[str]:
    """Names of the custom calls that jaxlib registers on the CPU.

    0.8.0 – 0.12.0.1: jaxlib.lapack and jaxlib.cpu_sparse, `registrations()["cpu"]` of
    (name, capsule, api version).
    """
    modules = (jaxlib.lapack, jaxlib.cpu_sparse)
    return frozenset(row[0] for module in modules for row in module.registrations()["cpu"])


# Lowering rules. 0.8.0 – 0.12.0.1: mlir._platform_specific_lowerings[platform][primitive] and
# mlir._lowerings[primitive] hold entries with `.rule` and `.inline`.


def lowering_entry(primitive: Primitive, platform: str) -> Any | None:
    """The entry of a platform's own rule, None where the platform uses the common one."""
    return mlir._platform_specific_lowerings[platform].get(primitive)


def common_rule(primitive: Primitive) -> Rule:
    """The rule for platforms without their own."""
    rule: Rule = mlir._lowerings[primitive].rule
    return rule


def replace_lowering(primitive: Primitive, platform: str, rule: Rule, inline: bool) -> Any:
    """Registers a platform's rule; returns its entry, by which `restore_lowering` knows it."""
    mlir.register_lowering(primitive, rule, platform=platform, inline=inline)
    return mlir._platform_specific_lowerings[platform][primitive]


def restore_lowering(primitive: Primitive, platform: str, ours: Any, before: Any | None) -> None:
    """Puts the former entry back, or none; leaves a rule that somebody else set since."""
    entries = mlir._platform_specific_lowerings[platform]
    if entries.get(primitive) is not ours:
        return
    if before is None:
        del entries[primitive]
    else:
        entries[primitive] = before


def rename_calls(emit: Callable[[], Any], names: dict[str, str]) -> Any:
    """Runs `emit`, which appends operations, and renames the custom calls among them.

    0.8.0 – 0.12.0.1: rules write at the current insertion point, the end of a block.
    """
    point = ir.InsertionPoint.current
    operations = point.block.operations
    first = len(operations) if point.ref_operation is None else 0
    result = emit()
    for i in range(first, len(operations)):
        _rename(operations[i].operation, names)
    return result


def _rename(operation: Any, names: dict[str, str]) -> None:
    if operation.name == "stablehlo.custom_call":
        name = ir.StringAttr(operation.attributes["call_target_name"]).value
        if name in names:
            operation.attributes["call_target_name"] = ir.StringAttr.get(names[name])
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                _rename(inner.operation, names)


def has_batching_rule(primitive: Primitive) -> bool:
    """Whether vmap works on the primitive.

    0.8.0: two dicts; 0.10.2 – 0.12.0.1: one, and `primitive_batchers` only writes to it.
    """
    plain = batching.primitive_batchers
    return primitive in batching.fancy_primitive_batchers or (
        isinstance(plain, dict) and primitive in plain
    )


# Types of sharded and of manually partitioned (shard_map) values.


_PVARY = "standard_insert_pvary"


def vary_alike(*arrays: jax.Array) -> Sequence[jax.Array]:
    """Inside shard_map: marks all operands as varying over the axes that any of them varies over.

    core.standard_insert_pvary in 0.8.0; core.auto_insert_reshard in 0.12.0.1.
    """
    name = "auto_insert_reshard" if hasattr(_core, "auto_insert_reshard") else _PVARY
    varied: Sequence[jax.Array] = getattr(_core, name)(*arrays)
    return varied


def batch_specs(name: str, avals: Sequence[Any], ranks: Sequence[int]) -> tuple[Any, ...]:
    """The batch part of the operands' explicit sharding.

    Raises ValueError where a matrix dimension is sharded or the operands' batches are sharded
    differently. 0.8.0 – 0.12.0.1: every aval has a NamedSharding, on an empty mesh by default.
    """
    specs = []
    for i, (aval, rank) in enumerate(zip(avals, ranks, strict=True)):
        spec = tuple(aval.sharding.spec)
        split = max(len(spec) - rank, 0)
        if any(axis is not None for axis in spec[split:]):
            raise ValueError(
                f"{name}: argument {i} must not be sharded along its last {rank} dimensions, "
                f"got {aval.sharding.spec}"
            )
        specs.append(spec[:split])
    if any(spec != specs[0] for spec in specs):
        raise ValueError(f"{name}: arguments must have the same batch sharding, got {specs}")
    return specs[0]


def result_aval(
    like: Any, shape: Sequence[Any], dtype: np.dtype[Any], batch: tuple[Any, ...]
) -> Any:
    """The type of a result: `like`'s mesh, batch sharding and varying axes, this shape and dtype.

    0.8.0 – 0.12.0.1: `ShapedArray.update` keeps what it is not given; `layout` since 0.12.
    """
    spec = PartitionSpec(*batch, *(None for _ in shape[len(batch) :]))
    default = {"layout": jax.core.ShapedArray((), dtype).layout} if hasattr(like, "layout") else {}
    return like.update(
        shape=tuple(shape),
        dtype=dtype,
        weak_type=False,
        sharding=NamedSharding(like.sharding.mesh, spec),
        **default,
    )
