"""The names that JAX does not promise to keep. No other file of the package uses any.

Each was read and run on jax 0.8.0 and 0.12.0.1, the ends of the supported range; a name that
differs between them says how.
"""

from __future__ import annotations

import functools
import re
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import jaxlib.cpu_sparse
import jaxlib.lapack
import numpy as np
from jax._src import core as _core
from jax._src import ffi as _ffi
from jax._src.export import _export
from jax._src.interpreters import partial_eval as _partial_eval  # 0.8.0 – 0.12.0.1
from jax._src.lax import linalg as _linalg  # 0.8.0 – 0.12.0.1; public minus geqrf_p, geqp3_p
from jax._src.lax.control_flow.loops import while_p as _while_p  # 0.8.0 – 0.12.0.1
from jax._src.numpy import linalg as _numpy_linalg  # 0.8.0 – 0.12.0.1
from jax._src.scipy import linalg as _scipy_linalg  # 0.8.0 – 0.12.0.1
from jax.extend.core import Primitive
from jax.extend.mlir import ir
from jax.interpreters import batching, mlir
from jax.sharding import NamedSharding, PartitionSpec
from jaxlib import _jax
from jaxlib import xla_client as _xla_client
from jaxlib.cpu import _lapack
from jaxlib.mlir.dialects import stablehlo as _stablehlo

Rule = Callable[..., Any]

_JAXLIB: tuple[Any, ...] = (jaxlib.lapack, jaxlib.cpu_sparse)


def linalg_primitives() -> dict[str, Primitive]:
    """JAX's linear-algebra primitives by name. 0.8.0 – 0.12.0.1: module-level `*_p`."""
    found = (value for value in vars(_linalg).values() if isinstance(value, Primitive))
    return {primitive.name: primitive for primitive in found}


def linalg_function(name: str) -> Callable[..., Any] | None:
    """A function of JAX's module for linear algebra, None where it has none of that name.

    0.8.0 – 0.12.0.1: `cholesky`, which jax.numpy and jax.scipy look up there for each call, and
    `_lu_solve_core(lu, permutation, b, trans)` of one system.
    """
    return _found(_linalg, name)


def numpy_linalg_function(name: str) -> Callable[..., Any] | None:
    """A function of jax.numpy's linear algebra, None where it has none of that name.

    0.8.0 – 0.12.0.1: `_slogdet_lu(a)`, a custom_jvp that `slogdet` and `det` look up for each call;
    `inv(a)`, which is `jax.numpy.linalg.inv`.
    """
    return _found(_numpy_linalg, name)


def scipy_linalg_function(name: str) -> Callable[..., Any] | None:
    """A function of jax.scipy's linear algebra, None where it has none of that name.

    0.8.0 – 0.12.0.1: `hessenberg(a, *, calc_q, overwrite_a, check_finite)`, which is
    `jax.scipy.linalg.hessenberg`.
    """
    return _found(_scipy_linalg, name)


def jvp_rule(function: Any) -> Callable[..., Any] | None:
    """The rule of a custom_jvp; None of another function. 0.8.0 – 0.12.0.1: `custom_jvp.jvp`."""
    return _found(function, "jvp")


def _found(place: Any, name: str) -> Callable[..., Any] | None:
    function: Callable[..., Any] | None = getattr(place, name, None)
    return function


def replace_linalg_function(
    name: str, stock: Callable[..., Any], function: Callable[..., Any]
) -> Callable[[], None]:
    """Puts a function in place of one of JAX's where JAX looks it up; returns what undoes it."""
    modules = (_linalg, _numpy_linalg, _scipy_linalg, jnp.linalg, jsl)
    replaced = [module for module in modules if getattr(module, name, None) is stock]
    for module in replaced:
        setattr(module, name, function)

    def undo() -> None:
        for module in replaced:
            if getattr(module, name) is function:
                setattr(module, name, stock)

    return undo


SPARSE = "jax.experimental.sparse"
"""The package that makes the sparse primitives and registers their rules and their target.
Importing it imports SciPy; nothing else of JAX does."""


def sparse_primitives() -> dict[str, Primitive]:
    """The sparse primitives with a target on the CPU; none where the package is not imported.

    0.8.0 – 0.12.0.1: in _lowerings csr_spmv_p and csr_spmm_p, in bcsr bcsr_dot_general_p.
    """
    names = {"_lowerings": ("csr_spmv_p", "csr_spmm_p"), "bcsr": ("bcsr_dot_general_p",)}
    found = (
        getattr(sys.modules.get(f"{SPARSE}.{module}"), name, None)
        for module, primitives in names.items()
        for name in primitives
    )
    return {primitive.name: primitive for primitive in found if isinstance(primitive, Primitive)}


def sparse_solvers() -> list[Primitive]:
    """The primitives of sparse systems, with a target on CUDA alone; none before SPARSE's import.

    0.8.0 – 0.12.0.1: linalg.spsolve_p.
    """
    primitive = getattr(sys.modules.get(f"{SPARSE}.linalg"), "spsolve_p", None)
    return [primitive] if isinstance(primitive, Primitive) else []


def sparse_formats() -> dict[Primitive, str]:
    """The primitives of sparse formats with a target on CUDA, and the target's op; as above.

    0.8.0 – 0.12.0.1: in csr and in coo {csr,coo}_{todense,fromdense,matvec,matmat}_p; in _lowerings
    {csr,coo}_{spmv,spmm}_p, which are the products.
    """
    ops = {"todense": "todense", "fromdense": "fromdense", "matvec": "matvec", "matmat": "matmat"}
    places = [(form, form, ops) for form in ("csr", "coo")]
    products = {"spmv": "matvec", "spmm": "matmat"}
    places += [("_lowerings", form, products) for form in ("csr", "coo")]
    found = {}
    for module, form, names in places:
        for name, op in names.items():
            primitive = getattr(sys.modules.get(f"{SPARSE}.{module}"), f"{form}_{name}_p", None)
            if isinstance(primitive, Primitive):
                found[primitive] = f"{form}_{op}"
    return found


def jaxlib_cpu_targets() -> frozenset[str]:
    """Names of the custom calls that jaxlib registers on the CPU.

    0.8.0 – 0.12.0.1: jaxlib.lapack and jaxlib.cpu_sparse, `registrations()["cpu"]` of
    (name, capsule, api version).
    """
    return frozenset(row[0] for module in _JAXLIB for row in module.registrations()["cpu"])


# jaxlib's handlers and SciPy's LAPACK, which they call.


def replace_cpu_handlers(handlers: Mapping[str, Any]) -> bool:
    """Registers these capsules for names that jaxlib registers; False once there is a CPU backend.

    0.8.0 – 0.12.0.1: xla_client._custom_callback["Host"] holds (name, capsule, api version, traits)
    until the first CPU client; XLA accepts no second handler for a name afterwards. JAX registers
    the `registrations()` of jaxlib.lapack when it is imported, of jaxlib.cpu_sparse perhaps later.
    """
    with _xla_client._custom_callback_lock:
        if "Host" in _xla_client._custom_callback_handler:
            return False
        queue = _xla_client._custom_callback["Host"]
        queue[:] = [(name, handlers.get(name, old), *rest) for name, old, *rest in queue]
    for module in _JAXLIB:
        stock = module.registrations()
        ours = [(name, handlers.get(name, old), *rest) for name, old, *rest in stock["cpu"]]
        module.registrations = functools.partial(dict, stock, cpu=ours)
    return True


def forget_scipy() -> None:
    """jaxlib's LAPACK is never initialised again, which would import SciPy. No way back.

    0.8.0 – 0.12.0.1: lowering rules call jaxlib.lapack.prepare_lapack_call, and since 0.12
    jax.export calls jaxlib.lapack._lapack.initialize.
    """
    jaxlib.lapack.prepare_lapack_call = jaxlib.lapack.build_lapack_fn_target
    _lapack.initialize = lambda: None


def initialize_lapack() -> None:
    """Makes jaxlib's own handlers fit to be called, which are null pointers before.

    Imports SciPy, and raises ImportError where it cannot. 0.8.0 – 0.12.0.1.
    """
    _lapack.initialize()


def programs_by_name() -> dict[Primitive, Callable[[Mapping[str, Any]], bool]]:
    """The primitives that may call jaxlib's LAPACK by name, and whether one with these parameters
    does. 0.8.0 – 0.12.0.1: ffi_call_p and call_exported_p."""
    pattern = re.compile(rb"(?<!lapax\.)lapack_[sdcz]")
    return {
        _ffi.ffi_call_p: lambda params: bool(pattern.match(params["target_name"].encode())),
        _export.call_exported_p: lambda params: bool(
            pattern.search(params["exported"].mlir_module_serialized)
        ),
    }


def stablehlo_versions() -> tuple[str, str]:
    """The oldest and the newest StableHLO that jaxlib writes. 0.8.0 – 0.12.0.1."""
    return _stablehlo.get_minimum_version(), _stablehlo.get_current_version()


def stablehlo_of_version(text: str, version: str) -> bytes:
    """A StableHLO module as a portable artifact of one of `stablehlo_versions`.

    Raises ValueError where the program needs a later one. 0.8.0 – 0.12.0.1: jaxlib._jax.mlir.
    """
    try:
        artifact: bytes = _jax.mlir.serialize_portable_artifact(text, version)
    except (RuntimeError, ValueError) as error:
        raise ValueError(f"no program of StableHLO {version}: {error}") from error
    return artifact


class _Renaming(threading.local):
    names: Mapping[str, str] = {}
    """Of the calls that the running rule emits."""


_renaming = _Renaming()


def spare_scipy() -> Callable[[], None]:
    """Rules inside `rename_calls` do not initialise jaxlib's LAPACK for calls that get renamed.

    Returns what undoes it. 0.8.0 – 0.12.0.1: see `forget_scipy`.
    """
    original: Callable[..., str] = jaxlib.lapack.prepare_lapack_call

    def prepare(base: str, dtype: Any) -> str:
        name: str = jaxlib.lapack.build_lapack_fn_target(base, dtype)
        return name if _renaming.names.get(name, name) != name else original(base, dtype)

    def undo() -> None:
        if jaxlib.lapack.prepare_lapack_call is prepare:
            jaxlib.lapack.prepare_lapack_call = original

    jaxlib.lapack.prepare_lapack_call = prepare
    return undo


# Lowering rules. 0.8.0 – 0.12.0.1: mlir._platform_specific_lowerings[platform][primitive] and
# mlir._lowerings[primitive] hold entries with `.rule` and `.inline`.


def lowering_entry(primitive: Primitive, platform: str) -> Any | None:
    """The entry of a platform's own rule, None where the platform uses the common one."""
    return mlir._platform_specific_lowerings[platform].get(primitive)


def common_rule(primitive: Primitive) -> Rule:
    """The rule for platforms without their own."""
    rule: Rule = mlir._lowerings[primitive].rule
    return rule


def replace_lowering(
    primitive: Primitive, platform: str | None, rule: Rule, inline: bool
) -> Callable[[], None]:
    """Registers a rule of a platform, or the common one; returns what undoes it.

    Undoing puts the former entry back, or none; it leaves a rule that somebody else set since.
    """
    entries = mlir._lowerings if platform is None else mlir._platform_specific_lowerings[platform]
    before = entries.get(primitive)
    mlir.register_lowering(primitive, rule, platform=platform, inline=inline)
    ours = entries[primitive]

    def undo() -> None:
        if entries.get(primitive) is not ours:
            return
        if before is None:
            del entries[primitive]
        else:
            entries[primitive] = before

    return undo


def rename_calls(
    emit: Callable[[], Any], names: Mapping[str, str], attributes: Mapping[str, int] | None = None
) -> Any:
    """Runs `emit`, which appends operations, and renames the custom calls among them.

    `attributes` replaces attributes of the calls named in `names`, each of type U8.
    0.8.0 – 0.12.0.1: rules write at the current insertion point, the end of a block.
    """
    point = ir.InsertionPoint.current
    operations = point.block.operations
    first = len(operations) if point.ref_operation is None else 0
    before, _renaming.names = _renaming.names, names
    try:
        result = emit()
    finally:
        _renaming.names = before
    for i in range(first, len(operations)):
        _rename(operations[i].operation, names, attributes or {})
    return result


def _rename(operation: Any, names: Mapping[str, str], attributes: Mapping[str, int]) -> None:
    if operation.name == "stablehlo.custom_call":
        name = ir.StringAttr(operation.attributes["call_target_name"]).value
        if name in names:
            operation.attributes["call_target_name"] = ir.StringAttr.get(names[name])
            _set_attributes(operation, attributes)
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                _rename(inner.operation, names, attributes)


def _set_attributes(call: Any, attributes: Mapping[str, int]) -> None:
    """0.8.0 – 0.12.0.1: a typed call's attributes are the dictionary mhlo.backend_config."""
    if attributes:
        u8 = ir.IntegerType.get_unsigned(8)
        old = ir.DictAttr(call.attributes["mhlo.backend_config"])
        values = {old[i].name: old[i].attr for i in range(len(old))}
        values |= {name: ir.IntegerAttr.get(u8, value) for name, value in attributes.items()}
        call.attributes["mhlo.backend_config"] = ir.DictAttr.get(values)


def for_export(ctx: Any) -> bool:
    """Whether jax.export lowers. 0.8.0 – 0.12.0.1: module_context.lowering_parameters."""
    return bool(ctx.module_context.lowering_parameters.for_export)


def result_avals(primitive: Primitive, avals: Sequence[Any], **params: Any) -> list[Any]:
    """The types of a linear-algebra primitive's results. 0.8.0 – 0.12.0.1: avals and effects."""
    results, _ = primitive.abstract_eval(*avals, **params)
    return list(results)


def set_dce_rule(primitive: Primitive, rule: Rule) -> Callable[[], None]:
    """Sets how unused results of a primitive are dropped; returns what undoes it.

    0.8.0 – 0.12.0.1: partial_eval.dce_rules[primitive], no entry for linear algebra. A rule takes
    which results are used and the equation, since 0.12 which operands are live between the two.
    """
    before = _partial_eval.dce_rules.get(primitive)

    def undo() -> None:
        if _partial_eval.dce_rules.get(primitive) is rule:
            del _partial_eval.dce_rules[primitive]
            if before is not None:
                _partial_eval.dce_rules[primitive] = before

    _partial_eval.dce_rules[primitive] = rule
    return undo


REDUCED_QR = {"pivoting": False, "full_matrices": False, "use_magma": None}
"""The parameters of `qr_p` for min(m, n) columns of Q. 0.8.0 – 0.12.0.1."""


def loops_kept_whole() -> list[Primitive]:
    """The loops inside which JAX drops nothing. 0.8.0: while_p; 0.12.0.1 has a rule for it."""
    return [while_p for while_p in (_while_p,) if while_p not in _partial_eval.dce_rules]


def without_unused(eqn: Any, names: Sequence[str]) -> Any:
    """The equation, in whose parameters of these names no jaxpr computes what nobody uses.

    0.8.0: closed jaxprs. Their operands and results stay.
    """
    params = dict(eqn.params)
    for name in names:
        closed = params[name]
        used = [True] * len(closed.out_avals)
        jaxpr, _ = _partial_eval.dce_jaxpr(closed.jaxpr, used, instantiate=True)
        params[name] = closed.replace(jaxpr=jaxpr)
    return eqn.replace(params=params)


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
