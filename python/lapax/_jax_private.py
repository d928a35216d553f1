"""The names that JAX does not promise to keep. No other file of the package uses any.

Each was read and run on jax 0.8.0 and 0.12.0.1, the ends of the supported range; a name that
differs between them says how.
"""

from __future__ import annotations

import contextvars
import functools
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.extend.core
import jaxlib.cpu_sparse
import jaxlib.lapack
import numpy as np
from jax._src import core as _core
from jax._src import dispatch as _dispatch  # 0.8.0 – 0.12.0.1
from jax._src import ffi as _ffi
from jax._src.export import _export
from jax._src.interpreters import mlir as _mlir  # 0.8.0 – 0.12.0.1
from jax._src.interpreters import partial_eval as _partial_eval  # 0.8.0 – 0.12.0.1
from jax._src.lax import linalg as _linalg  # 0.8.0 – 0.12.0.1; public minus geqrf_p, geqp3_p
from jax._src.named_sharding import UnspecifiedValue as _UnspecifiedValue  # 0.8.0 – 0.12.0.1
from jax._src.pjit import jit_p as _jit_p  # 0.8.0 – 0.12.0.1
from jax.extend.core import Jaxpr, Primitive, Var
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


def lu_solve_function() -> Callable[..., Any]:
    """`(lu, permutation, b, trans)`, jitted, by which JAX solves with LU factors.

    0.8.0 – 0.12.0.1: linalg._lu_solve.
    """
    function: Callable[..., Any] = _linalg._lu_solve
    return function


# Bodies of programs. 0.8.0 – 0.12.0.1: mlir.jaxpr_subcomp(ctx, jaxpr, …) lowers every one, of
# programs, inner jits, loops and branches, and is looked up there for each. An equation's
# parameters hold bodies with their constants: ClosedJaxpr, since 0.12 Jaxpr.


_unchanged = contextvars.ContextVar("unchanged", default=False)


def lower_unchanged(function: Callable[..., Any]) -> Rule:
    """A lowering rule for a primitive of several results by JAX operations, in which nothing is
    rewritten: not to what is lowered by them."""
    lowered = _mlir.lower_fun(function, multiple_results=True)

    def rule(ctx: Any, *operands: Any, **params: Any) -> Any:
        token = _unchanged.set(True)
        try:
            return lowered(ctx, *operands, **params)
        finally:
            _unchanged.reset(token)

    return rule


def rewrite_bodies(rewrite: Callable[[Any, Any], Any]) -> Callable[[], None]:
    """Lets `rewrite(module context, jaxpr)` say what is lowered for a body, a jaxpr of the same
    variables; returns what undoes it."""
    original = _mlir.jaxpr_subcomp

    @functools.wraps(original)
    def lower(ctx: Any, jaxpr: Any, *args: Any, **options: Any) -> Any:
        body = jaxpr if _unchanged.get() else rewrite(ctx, jaxpr)
        return original(ctx, body, *args, **options)

    def undo() -> None:
        if _mlir.jaxpr_subcomp is lower:
            _mlir.jaxpr_subcomp = original

    _mlir.jaxpr_subcomp = lower
    return undo


def eager(primitive: Primitive) -> Callable[..., Any]:
    """How JAX runs a primitive of its own that is called outside of jit, checks for NaN included.

    0.8.0 – 0.12.0.1: dispatch.apply_primitive.
    """
    return functools.partial(_dispatch.apply_primitive, primitive)


DERIVATIVES = frozenset({"jvp_jaxpr_fun", "fwd_jaxpr_thunk", "bwd", "jvp"})
"""Parameters of calls with derivatives of their own that are made anew at each trace."""


def platforms(module: Any) -> Sequence[str]:
    """The platforms that a module is lowered for."""
    return tuple(module.platforms)


def fresh(var: Any) -> Any:
    """A variable of the same type."""
    return Var(var.aval)


_BODIES = (Jaxpr, getattr(jax.extend.core, "ClosedJaxpr", Jaxpr))


def is_body(value: Any) -> bool:
    """Whether a parameter is a body."""
    return isinstance(value, _BODIES)


def opened(body: Any) -> tuple[Any, Sequence[Any]]:
    """A body without its constants, and these."""
    return (body.jaxpr, body.consts) if hasattr(body, "consts") else (body, ())


def bodies(eqn: Any) -> Iterator[Any]:
    """The bodies among an equation's parameters."""
    for value in eqn.params.values():
        for part in value if isinstance(value, tuple | list) else (value,):
            if is_body(part):
                yield opened(part)[0]


def solver_of(eqn: Any) -> tuple[Sequence[Any], Any] | None:
    """The operands and the body by which a custom_linear_solve is lowered; None of another.

    0.8.0 – 0.12.0.1: `const_lengths` and `jaxprs`, named tuples of matvec, vecmat, solve,
    transpose_solve; the operands are their constants, in this order, and the right-hand sides.
    """
    if eqn.primitive.name != "custom_linear_solve":
        return None
    counts, (body, consts) = eqn.params["const_lengths"], opened(eqn.params["jaxprs"].solve)
    first = counts.matvec + counts.vecmat
    rest = first + counts.solve + counts.transpose_solve
    operands = [*eqn.invars[first : first + counts.solve], *eqn.invars[rest:]]
    return None if consts else (operands, body)


def plain_call(eqn: Any) -> tuple[Sequence[Any], Any] | None:
    """The operands and the body of an inner jit that asks for nothing else; None of another.

    0.8.0 – 0.12.0.1: the primitive jit.
    """
    if eqn.primitive is not _jit_p:
        return None
    params, (body, consts) = eqn.params, opened(eqn.params["jaxpr"])
    placed = (*params["in_shardings"], *params["out_shardings"])
    laid = (*params["in_layouts"], *params["out_layouts"], *params["compiler_options_kvs"])
    asks = any(not isinstance(it, _UnspecifiedValue) for it in placed) or any(
        it is not None for it in laid
    )
    return None if consts or asks or any(params["donated_invars"]) else (eqn.invars, body)


def custom_jvp_body(eqn: Any) -> Any | None:
    """The body of a function with a derivative of its own; None of another equation.

    0.8.0 – 0.12.0.1: custom_jvp_call of `call_jaxpr`.
    """
    return eqn.params["call_jaxpr"] if eqn.primitive.name == "custom_jvp_call" else None


def called_by_jit(eqn: Any) -> Any | None:
    """The body of an inner jit; None of another equation."""
    return eqn.params["jaxpr"] if eqn.primitive is _jit_p else None


def name_of_jit(eqn: Any) -> str | None:
    """The name of an inner jit; None of another equation."""
    return eqn.params["name"] if eqn.primitive is _jit_p else None


def results_alone(body: Any, used: Sequence[bool]) -> Any:
    """A body with these of its results, as JAX leaves it.

    0.8.0 – 0.12.0.1: partial_eval.dce_jaxpr.
    """
    return _partial_eval.dce_jaxpr(opened(body)[0], list(used), True)[0]


def traced(function: Callable[..., Any], avals: Sequence[Any]) -> Any:
    """The jaxpr of a function of arrays of these types, of their sharding and varying axes."""
    operands = []
    for aval in avals:
        mesh = aval.sharding.mesh
        placed = {} if mesh.empty else {"sharding": NamedSharding(mesh, aval.sharding.spec)}
        varying = {"vma": aval.vma} if getattr(aval, "vma", None) else {}
        operands.append(jax.ShapeDtypeStruct(aval.shape, aval.dtype, **placed, **varying))
    return jax.make_jaxpr(function)(*operands).jaxpr


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
    """Whether jax.export lowers. 0.8.0 – 0.12.0.1: lowering_parameters of a rule's or the module's
    context."""
    module = getattr(ctx, "module_context", ctx)
    return bool(module.lowering_parameters.for_export)


def result_avals(primitive: Primitive, avals: Sequence[Any], **params: Any) -> list[Any]:
    """The types of a linear-algebra primitive's results. 0.8.0 – 0.12.0.1: avals and effects."""
    results, _ = primitive.abstract_eval(*avals, **params)
    return list(results)


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
