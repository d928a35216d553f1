"""The names that JAX does not promise to keep, as hooks. No other file of the package uses any.

Each was read and run on jax 0.8.0 and 0.12.0.1, the ends of the checked range; a name that
differs between them says how. Of a newer JAX each is probed, and what it serves is left to JAX
where it is not what it was: see `_unknown`.
"""

from __future__ import annotations

import contextvars
import functools
import importlib
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.extend.core
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.sharding import NamedSharding, PartitionSpec

from lapax._hooks import Hook, Part, Unfit, begins, has, is_a, takes
from lapax._settings import own_settings
from lapax._supported import is_checked

Rule = Callable[..., Any]

SPARSE = "jax.experimental.sparse"
"""The package that makes the sparse primitives and registers their rules and their target.
Importing it imports SciPy; nothing else of JAX does."""


def _has_rules(entries: Any) -> None:
    """Tables of rules hold entries with `.rule` and `.inline`."""
    is_a(dict)(entries)
    for entry in list(entries.values())[:1]:
        has("rule", "inline")(entry)


def _has_rules_of_cpu(tables: Any) -> None:
    is_a(dict)(tables)
    if "cpu" not in tables:
        raise Unfit("has no cpu")
    _has_rules(tables["cpu"])


def _has_primitives(module: Any) -> None:
    found = {value.name for value in vars(module).values() if isinstance(value, Primitive)}
    missing = {"cholesky", "eigh", "lu", "qr", "svd", "triangular_solve"} - found
    if missing:
        raise Unfit(f"has no primitives {', '.join(sorted(missing))}")


def _places(aval: Any) -> None:
    """Types know their sharding and can be changed."""
    like = aval((2, 3), np.dtype(np.float32))
    got = _result_aval(like, (2,), np.dtype(np.int32), _batch_specs("", [like], [1]))
    if (got.shape, got.dtype) != ((2,), np.dtype(np.int32)):
        raise Unfit(f"makes {got}")


def _says_types(method: Any) -> None:
    takes("self", "aval", any_parameter=None)(method)
    a = jax.core.ShapedArray((2, 2), np.dtype(np.float32))
    cholesky = jax.lax.linalg.cholesky_p
    program = jax.make_jaxpr(jax.lax.linalg.cholesky)(jax.ShapeDtypeStruct((2, 2), np.float32))
    params = next(eqn.params for eqn in _all(program.jaxpr) if eqn.primitive is cholesky)
    result, _ = cholesky.abstract_eval(a, **params)
    if result.shape != (2, 2):
        raise Unfit(f"says {result}")


def _solves(custom_linear_solve: Any) -> None:
    """`solver_of` finds the solver of a call."""

    def solve(b: Any) -> Any:
        return custom_linear_solve(lambda x: x + x, b, lambda _, y: y / 2)

    jaxpr = jax.make_jaxpr(solve)(jax.ShapeDtypeStruct((2,), np.float32)).jaxpr
    found = _solver_of(jaxpr.eqns[-1])
    if found is None or list(found[0]) != list(jaxpr.invars):
        raise Unfit("is lowered by something else")


def _holds_its_body(custom_jvp: Any) -> None:
    """`custom_jvp_body` finds the function of a call."""
    function = custom_jvp(jax.lax.sin)
    function.defjvp(lambda x, t: (x, t))
    jaxpr = jax.make_jaxpr(function)(jax.ShapeDtypeStruct((2,), np.float32)).jaxpr
    body = _custom_jvp_body(jaxpr.eqns[-1])
    if body is None or not opened(body)[0].eqns:
        raise Unfit("keeps its function elsewhere")


def _is_jit(primitive: Any) -> None:
    """`plain_call` finds the body of a call, under its name."""
    is_a(Primitive)(primitive)
    eqn = _some_call()
    names = {"jaxpr", "name", "in_shardings", "out_shardings", "in_layouts", "out_layouts"}
    names |= {"compiler_options_kvs", "donated_invars"}
    if eqn.primitive is not primitive or not names <= eqn.params.keys():
        raise Unfit("is not what jax.jit binds, or has other parameters")
    if eqn.params["name"] != "sin" or not is_body(eqn.params["jaxpr"]):
        raise Unfit("is another one")


def _all(jaxpr: Any) -> Iterator[Any]:
    for eqn in jaxpr.eqns:
        yield eqn
        for body in bodies(eqn):
            yield from _all(body)


_MLIR = "jax._src.interpreters.mlir"
_LINALG = "jax._src.lax.linalg"
_IR = ("Attribute", "DictAttr", "InsertionPoint", "IntegerAttr", "IntegerType", "StringAttr")
_ROWS = (
    # Lowering: of primitives, of bodies, and what a rule is told.
    Hook(_LINALG, "", Part.RULES, _has_primitives),
    Hook("jax.interpreters.mlir", "_lowerings", Part.RULES, _has_rules),
    Hook("jax.interpreters.mlir", "_platform_specific_lowerings", Part.RULES, _has_rules_of_cpu),
    Hook(
        "jax.interpreters.mlir", "register_lowering", (Part.RULES, Part.NAMES),
        takes("primitive", "rule", platform="cpu", inline=True),
    ),
    Hook(_MLIR, "lower_fun", Part.RULES, takes("function", multiple_results=True)),
    Hook(_MLIR, "LoweringRuleContext", Part.RULES,
         has("avals_in", "avals_out", "module_context", "primitive", "replace")),
    Hook(_MLIR, "ModuleContext", Part.RULES, has("lowering_parameters", "platforms")),
    Hook(_MLIR, "LoweringParameters", Part.RULES, has("for_export")),
    Hook("jax.extend.mlir.ir", "", Part.RULES, has(*_IR)),
    Hook("jax.extend.core", "Primitive.abstract_eval", Part.EIGH_SVD, _says_types),
    Hook(_MLIR, "jaxpr_subcomp", Part.FUSED, begins("ctx", "jaxpr")),
    # Programs.
    Hook("jax.extend.core", "Jaxpr", Part.FUSED, has("eqns", "invars", "outvars", "replace")),
    Hook("jax.extend.core", "Literal", Part.FUSED, is_a(type), has("val", "aval")),
    Hook("jax.extend.core", "Var", Part.FUSED, is_a(type), takes("aval")),
    Hook("jax._src.pjit", "jit_p", Part.CALLS, _is_jit),
    Hook("jax._src.named_sharding", "UnspecifiedValue", Part.CALLS, is_a(type)),
    Hook("jax.lax", "custom_linear_solve", Part.SOLVER, takes("matvec", "b", "solve"), _solves),
    Hook("jax", "custom_jvp", Part.SLOGDET, takes("function"), _holds_its_body),
    Hook(_LINALG, "_lu_solve", Part.LU_SOLVE, takes("lu", "permutation", "b", "trans")),
    Hook("jax._src.interpreters.partial_eval", "dce_jaxpr", Part.SOME,
         takes("jaxpr", "used", "instantiate")),
    Hook("jax._src.interpreters.partial_eval", "lower_jaxpr2|lower_jaxpr", Part.EXPM,
         takes("jaxpr")),
    # lapax's own primitives.
    Hook("jax._src.dispatch", "apply_primitive", Part.NAN, takes("primitive", "x", parameter=0)),
    Hook("jax._src.core", "auto_insert_reshard|standard_insert_pvary", Part.VARYING,
         takes("x", "y")),
    Hook("jax.core", "ShapedArray", (Part.MESH, Part.FUSED), _places),
    Hook("jax.interpreters.batching", "bdim_at_front", Part.MESH,
         takes("x", "dim", "size", "mesh axis")),
    Hook("jax.interpreters.batching", "fancy_primitive_batchers", Part.VMAP, is_a(dict)),
    Hook("jax.interpreters.ad", "primitive_jvps", Part.DERIVATIVE, is_a(dict)),
    Hook("jax.interpreters.ad", "primitive_transposes", Part.DERIVATIVE, is_a(dict)),
    # jaxlib's handlers and SciPy's LAPACK, which they call.
    Hook("jaxlib.lapack", "registrations", (Part.NAMES, Part.TAKEOVER), takes()),
    Hook("jaxlib.cpu_sparse", "registrations", (Part.NAMES, Part.TAKEOVER), takes()),
    Hook("jaxlib.lapack", "prepare_lapack_call", (Part.SCIPY, Part.TAKEOVER),
         takes("base", "dtype")),
    Hook("jaxlib.lapack", "build_lapack_fn_target", (Part.SCIPY, Part.TAKEOVER),
         takes("base", "dtype")),
    Hook("jaxlib.cpu._lapack", "initialize", (Part.BY_NAME, Part.TAKEOVER), takes()),
    Hook("jax._src.ffi", "ffi_call_p", Part.BY_NAME, is_a(Primitive)),
    Hook("jax._src.export._export", "call_exported_p", Part.BY_NAME, is_a(Primitive)),
    Hook("jaxlib.xla_client", "_custom_callback", Part.TAKEOVER, is_a(dict)),
    Hook("jaxlib.xla_client", "_custom_callback_handler", Part.TAKEOVER, is_a(dict)),
    Hook("jaxlib.xla_client", "_custom_callback_lock", Part.TAKEOVER, has("__enter__")),
    # StableHLO.
    Hook("jaxlib.mlir.dialects.stablehlo", "get_minimum_version", Part.PLUGIN, takes()),
    Hook("jaxlib.mlir.dialects.stablehlo", "get_current_version", Part.PLUGIN, takes()),
    Hook("jaxlib._jax", "mlir.serialize_portable_artifact", Part.PLUGIN, takes("text", "version")),
    # Sparse primitives, looked for once somebody has imported their package.
    *(
        Hook(f"{SPARSE}.{module}", f"{name}_p", Part.SPARSE, is_a(Primitive))
        for module, names in {
            "_lowerings": "csr_spmv csr_spmm coo_spmv coo_spmm",
            "bcsr": "bcsr_dot_general",
            "linalg": "spsolve",
            "csr": "csr_todense csr_fromdense csr_matvec csr_matmat",
            "coo": "coo_todense coo_fromdense coo_matvec coo_matmat",
        }.items()
        for name in names.split()
    ),
)  # fmt: skip

HOOKS: dict[str, Hook] = {hook.name: hook for hook in _ROWS}
"""Every private access of the package, by where it is."""


def is_sparse(hook: Hook) -> bool:
    """Whether a hook is there only once SPARSE has been imported."""
    return Part.SPARSE in hook.serves


def _fits(*names: str) -> bool:
    """Whether these may be used, as on every JAX that lapax was checked on."""
    return is_checked(jax.__version__) or all(HOOKS[name].problem is None for name in names)


def _get(name: str) -> Any:
    return HOOKS[name].get()


def _type(name: str) -> type[Any]:
    """A type of jax.extend.core; where it is missing, one that nothing is of."""
    found: type[Any] = getattr(jax.extend.core, name, type(name, (), {}))
    return found


Jaxpr, Literal, Var = map(_type, ("Jaxpr", "Literal", "Var"))


def linalg_primitives() -> dict[str, Primitive]:
    """JAX's linear-algebra primitives by name. 0.8.0 – 0.12.0.1: module-level `*_p`."""
    if not _fits(_LINALG):
        return {}
    found = (value for value in vars(_get(_LINALG)).values() if isinstance(value, Primitive))
    return {primitive.name: primitive for primitive in found}


def lu_solve_function() -> Callable[..., Any] | None:
    """`(lu, permutation, b, trans)`, jitted, by which JAX solves with LU factors.

    0.8.0 – 0.12.0.1: linalg._lu_solve. None without it.
    """
    name = f"{_LINALG}._lu_solve"
    function: Callable[..., Any] | None = _get(name) if _fits(name) else None
    return function


# Bodies of programs. 0.8.0 – 0.12.0.1: mlir.jaxpr_subcomp(ctx, jaxpr, …) lowers every one, of
# programs, inner jits, loops and branches, and is looked up there for each. An equation's
# parameters hold bodies with their constants: ClosedJaxpr, since 0.12 Jaxpr.


_unchanged = contextvars.ContextVar("unchanged", default=False)


def lower_unchanged(function: Callable[..., Any]) -> Rule:
    """A lowering rule for a primitive of several results by JAX operations, in which nothing is
    rewritten: not to what is lowered by them."""

    def rule(ctx: Any, *operands: Any, **params: Any) -> Any:
        token = _unchanged.set(True)
        try:
            return lower_fun(function)(ctx, *operands, **params)
        finally:
            _unchanged.reset(token)

    return rule


def lower_fun(function: Callable[..., Any]) -> Rule:
    """A lowering rule for several results by JAX operations. 0.8.0 – 0.12.0.1."""
    rule: Rule = _get(f"{_MLIR}.lower_fun")(own_settings()(function), multiple_results=True)
    return rule


def rewrite_bodies(rewrite: Callable[[Any, Any], Any]) -> Callable[[], None]:
    """Lets `rewrite(module context, jaxpr)` say what is lowered for a body, a jaxpr of the same
    variables; returns what undoes it."""
    hook = HOOKS[f"{_MLIR}.jaxpr_subcomp"]
    original = hook.get()

    @functools.wraps(original)
    def lower(ctx: Any, jaxpr: Any, *args: Any, **options: Any) -> Any:
        body = jaxpr if _unchanged.get() else rewrite(ctx, jaxpr)
        return original(ctx, body, *args, **options)

    def undo() -> None:
        if hook.get() is lower:
            hook.set(original)

    hook.set(lower)
    return undo


def eager(primitive: Primitive) -> Callable[..., Any]:
    """How JAX runs a primitive of its own that is called outside of jit, checks for NaN included.

    0.8.0 – 0.12.0.1: dispatch.apply_primitive. Without it, by jit.
    """
    name = "jax._src.dispatch.apply_primitive"

    def run(*args: Any, **params: Any) -> Any:
        if _fits(name):
            return _get(name)(primitive, *args, **params)
        return jax.jit(functools.partial(primitive.bind, **params))(*args)

    return run


DERIVATIVES = frozenset({"jvp_jaxpr_fun", "fwd_jaxpr_thunk", "bwd", "jvp"})
"""Parameters of calls with derivatives of their own that are made anew at each trace."""


def platforms(module: Any) -> Sequence[str]:
    """The platforms that a module is lowered for."""
    return tuple(module.platforms)


def fresh(var: Any) -> Any:
    """A variable of the same type."""
    return Var(var.aval)


_JAX = str(Path(jax.__file__).parent)


def is_within_jax(eqn: Any) -> bool:
    """Whether no line of a user's is known to have made an equation, as in functions of JAX's own.

    0.8.0: the traceback of an equation in an inner jit goes up to the program's first line;
    0.12.0.1: to the function that is jitted, and the equation that calls it has the rest.
    """
    traceback = getattr(getattr(eqn, "source_info", None), "traceback", None)
    frames: Any = getattr(traceback, "frames", ())
    return bool(frames) and frames[-1].file_name.startswith(_JAX)


_BODIES = (Jaxpr, _type("ClosedJaxpr"))


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
    is_solve = eqn.primitive.name == "custom_linear_solve"
    return _solver_of(eqn) if is_solve and _fits("jax.lax.custom_linear_solve") else None


def _solver_of(eqn: Any) -> tuple[Sequence[Any], Any] | None:
    counts, (body, consts) = eqn.params["const_lengths"], opened(eqn.params["jaxprs"].solve)
    first = counts.matvec + counts.vecmat
    rest = first + counts.solve + counts.transpose_solve
    operands = [*eqn.invars[first : first + counts.solve], *eqn.invars[rest:]]
    return None if consts else (operands, body)


_JIT, _UNSPECIFIED = "jax._src.pjit.jit_p", "jax._src.named_sharding.UnspecifiedValue"


def _is_call(eqn: Any) -> bool:
    return _fits(_JIT, _UNSPECIFIED) and eqn.primitive is _get(_JIT)


def plain_call(eqn: Any) -> tuple[Sequence[Any], Any] | None:
    """The operands and the body of an inner jit that asks for nothing else; None of another.

    0.8.0 – 0.12.0.1: the primitive jit.
    """
    if not _is_call(eqn):
        return None
    unspecified = _get(_UNSPECIFIED)
    params, (body, consts) = eqn.params, opened(eqn.params["jaxpr"])
    placed = (*params["in_shardings"], *params["out_shardings"])
    laid = (*params["in_layouts"], *params["out_layouts"], *params["compiler_options_kvs"])
    asks = any(not isinstance(it, unspecified) for it in placed) or any(
        it is not None for it in laid
    )
    return None if consts or asks or any(params["donated_invars"]) else (eqn.invars, body)


def custom_jvp_body(eqn: Any) -> Any | None:
    """The body of a function with a derivative of its own; None of another equation.

    0.8.0 – 0.12.0.1: custom_jvp_call of `call_jaxpr`.
    """
    is_call = eqn.primitive.name == "custom_jvp_call" and _fits("jax.custom_jvp")
    return _custom_jvp_body(eqn) if is_call else None


def _custom_jvp_body(eqn: Any) -> Any:
    return eqn.params["call_jaxpr"]


def called_by_jit(eqn: Any) -> Any | None:
    """The body of an inner jit; None of another equation."""
    return eqn.params["jaxpr"] if _is_call(eqn) else None


def jit_name() -> str:
    """The name of the primitive of inner jits. 0.8.0 – 0.12.0.1: "jit"."""
    name: str = _get(_JIT).name if _fits(_JIT) else "jit"
    return name


def name_of_jit(eqn: Any) -> str | None:
    """The name of an inner jit; None of another equation."""
    return eqn.params["name"] if _is_call(eqn) else None


def as_call(body: Any) -> Any | None:
    """The equation of an inner jit that would be this body; None where no inner jit is like it.

    0.8.0 – 0.12.0.1: `debug_info.func_name` is the name of a jit that is called outside of others.
    """
    if not _fits(_JIT, _UNSPECIFIED):
        return None
    name = getattr(getattr(body, "debug_info", None), "func_name", None)
    made = {var for eqn in body.eqns for var in eqn.outvars}
    own = [var for var in body.outvars if not isinstance(var, Literal) and var in made]
    if name is None or body.constvars or not body.eqns or len(set(own)) != len(body.outvars):
        return None
    params = {**_some_call().params, "jaxpr": body, "name": name}
    where = body.eqns[-1].source_info
    return _some_call().replace(
        invars=list(body.invars), outvars=list(body.outvars), params=params, source_info=where
    )


@functools.cache
def _some_call() -> Any:
    """An equation of a jit."""
    inner = jax.jit(jax.lax.sin)
    with jax.disable_jit(False):
        jaxpr = jax.make_jaxpr(lambda x: inner(x))(jax.ShapeDtypeStruct((2,), np.float32)).jaxpr
    return jaxpr.eqns[-1]


def results_alone(body: Any, used: Sequence[bool]) -> Any | None:
    """A body with these of its results, as JAX leaves it.

    0.8.0 – 0.12.0.1: partial_eval.dce_jaxpr. None without it.
    """
    name = "jax._src.interpreters.partial_eval.dce_jaxpr"
    if not _fits(name):
        return None
    dce_jaxpr = _get(name)
    return dce_jaxpr(opened(body)[0], list(used), True)[0]


def traced(function: Callable[..., Any], avals: Sequence[Any]) -> Any:
    """The jaxpr of a function of arrays of these types, of their sharding and varying axes, as JAX
    lowers it.

    0.12.0.1: partial_eval.lower_jaxpr2 makes others of some equations before; 0.8.0 has none such.
    """
    operands = []
    for aval in avals:
        mesh = aval.sharding.mesh
        placed = {} if mesh.empty else {"sharding": NamedSharding(mesh, aval.sharding.spec)}
        varying = {"vma": aval.vma} if getattr(aval, "vma", None) else {}
        weak = {"weak_type": aval.weak_type}
        operands.append(jax.ShapeDtypeStruct(aval.shape, aval.dtype, **placed, **varying, **weak))
    traced = jax.make_jaxpr(function)(*operands).jaxpr
    name = "jax._src.interpreters.partial_eval.lower_jaxpr2"
    is_high = getattr(traced, "is_high", False) and _fits(name)
    return _get(name)(traced) if is_high else traced


def _sparse(module: str, name: str) -> Primitive | None:
    """A primitive, None before SPARSE's import."""
    hook = HOOKS[f"{SPARSE}.{module}.{name}_p"]
    return hook.get() if hook.module in sys.modules and hook.problem is None else None


def sparse_primitives() -> dict[str, Primitive]:
    """The sparse primitives with a target on the CPU; none where the package is not imported.

    0.8.0 – 0.12.0.1: in _lowerings csr_spmv_p and csr_spmm_p, in bcsr bcsr_dot_general_p.
    """
    places = (("_lowerings", "csr_spmv"), ("_lowerings", "csr_spmm"), ("bcsr", "bcsr_dot_general"))
    found = (_sparse(module, name) for module, name in places)
    return {primitive.name: primitive for primitive in found if primitive is not None}


def sparse_solvers() -> list[Primitive]:
    """The primitives of sparse systems, with a target on CUDA alone; none before SPARSE's import.

    0.8.0 – 0.12.0.1: linalg.spsolve_p.
    """
    primitive = _sparse("linalg", "spsolve")
    return [] if primitive is None else [primitive]


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
            primitive = _sparse(module, f"{form}_{name}")
            if primitive is not None:
                found[primitive] = f"{form}_{op}"
    return found


_REGISTRATIONS = tuple(f"jaxlib.{module}.registrations" for module in ("lapack", "cpu_sparse"))


def jaxlib_cpu_targets() -> frozenset[str] | None:
    """Names of the custom calls that jaxlib registers on the CPU; None where it does not say.

    0.8.0 – 0.12.0.1: jaxlib.lapack and jaxlib.cpu_sparse, `registrations()["cpu"]` of
    (name, capsule, api version).
    """
    if not _fits(*_REGISTRATIONS):
        return None
    return frozenset(row[0] for name in _REGISTRATIONS for row in _get(name)()["cpu"])


# jaxlib's handlers and SciPy's LAPACK, which they call.


def replace_cpu_handlers(handlers: Mapping[str, Any]) -> bool:
    """Registers these capsules for names that jaxlib registers; False once there is a CPU backend.

    0.8.0 – 0.12.0.1: xla_client._custom_callback["Host"] holds (name, capsule, api version, traits)
    until the first CPU client; XLA accepts no second handler for a name afterwards. JAX registers
    the `registrations()` of jaxlib.lapack when it is imported, of jaxlib.cpu_sparse perhaps later.
    """
    client = "jaxlib.xla_client._custom_callback"
    with _get(f"{client}_lock"):
        if "Host" in _get(f"{client}_handler"):
            return False
        queue = _get(client)["Host"]
        queue[:] = [(name, handlers.get(name, old), *rest) for name, old, *rest in queue]
    for hook in map(HOOKS.__getitem__, _REGISTRATIONS):
        stock = hook.get()()
        ours = [(name, handlers.get(name, old), *rest) for name, old, *rest in stock["cpu"]]
        hook.set(functools.partial(dict, stock, cpu=ours))
    return True


_PREPARE, _BUILD = "jaxlib.lapack.prepare_lapack_call", "jaxlib.lapack.build_lapack_fn_target"
_INITIALIZE = "jaxlib.cpu._lapack.initialize"


def forget_scipy() -> None:
    """jaxlib's LAPACK is never initialised again, which would import SciPy. No way back.

    0.8.0 – 0.12.0.1: lowering rules call jaxlib.lapack.prepare_lapack_call, and since 0.12
    jax.export calls jaxlib.lapack._lapack.initialize.
    """
    HOOKS[_PREPARE].set(_get(_BUILD))
    HOOKS[_INITIALIZE].set(lambda: None)


def initialize_lapack() -> None:
    """Makes jaxlib's own handlers fit to be called, which are null pointers before.

    Imports SciPy, and raises ImportError where it cannot. 0.8.0 – 0.12.0.1. Without `initialize`
    as JAX's rules do.
    """
    if _fits(_INITIALIZE):
        _get(_INITIALIZE)()
    else:
        _get(_PREPARE)("potrf", np.dtype(np.float32))


def can_initialize_lapack() -> bool:
    """Whether `initialize_lapack` can be called."""
    return _fits(_INITIALIZE) or _fits(_PREPARE)


def programs_by_name() -> dict[Primitive, Callable[[Mapping[str, Any]], bool]]:
    """The primitives that may call jaxlib's LAPACK by name, and whether one with these parameters
    does. 0.8.0 – 0.12.0.1: ffi_call_p and call_exported_p."""
    pattern = re.compile(rb"(?<!lapax\.)lapack_[sdcz]")
    return {
        _get("jax._src.ffi.ffi_call_p"): lambda params: bool(
            pattern.match(params["target_name"].encode())
        ),
        _get("jax._src.export._export.call_exported_p"): lambda params: bool(
            pattern.search(params["exported"].mlir_module_serialized)
        ),
    }


def stablehlo_versions() -> tuple[str, str]:
    """The oldest and the newest StableHLO that jaxlib writes. 0.8.0 – 0.12.0.1."""
    oldest, newest = (f"jaxlib.mlir.dialects.stablehlo.get_{it}_version" for it in _ENDS)
    _require(oldest, newest)
    return _get(oldest)(), _get(newest)()


_ENDS = ("minimum", "current")


def _require(*names: str) -> None:
    """Raises ValueError where JAX no longer has one of these."""
    for name in names:
        if HOOKS[name].problem is not None:
            raise ValueError(f"not with jax {jax.__version__}: {HOOKS[name].problem}")


def stablehlo_of_version(text: str, version: str) -> bytes:
    """A StableHLO module as a portable artifact of one of `stablehlo_versions`.

    Raises ValueError where the program needs a later one. 0.8.0 – 0.12.0.1: jaxlib._jax.mlir.
    """
    name = "jaxlib._jax.mlir.serialize_portable_artifact"
    _require(name)
    try:
        artifact: bytes = _get(name)(text, version)
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
    hook = HOOKS[_PREPARE]
    original: Callable[..., str] = hook.get()

    def prepare(base: str, dtype: Any) -> str:
        name: str = _get(_BUILD)(base, dtype)
        return name if _renaming.names.get(name, name) != name else original(base, dtype)

    def undo() -> None:
        if hook.get() is prepare:
            hook.set(original)

    hook.set(prepare)
    return undo


# Lowering rules. 0.8.0 – 0.12.0.1: mlir._platform_specific_lowerings[platform][primitive] and
# mlir._lowerings[primitive] hold entries with `.rule` and `.inline`.


_COMMON, _BY_PLATFORM, _REGISTER = (
    f"jax.interpreters.mlir.{name}"
    for name in ("_lowerings", "_platform_specific_lowerings", "register_lowering")
)


def lower_by(primitive: Primitive, rule: Rule, platform: str | None = None) -> None:
    """Registers the rule of one of lapax's own primitives, where JAX takes rules."""
    if _fits(_REGISTER):
        _get(_REGISTER)(primitive, rule, platform=platform)


def lowering_entry(primitive: Primitive, platform: str) -> Any | None:
    """The entry of a platform's own rule, None where the platform uses the common one."""
    return _get(_BY_PLATFORM)[platform].get(primitive)


def common_rule(primitive: Primitive) -> Rule:
    """The rule for platforms without their own."""
    rule: Rule = _get(_COMMON)[primitive].rule
    return rule


def replace_lowering(
    primitive: Primitive, platform: str | None, rule: Rule, inline: bool
) -> Callable[[], None]:
    """Registers a rule of a platform, or the common one; returns what undoes it.

    Undoing puts the former entry back, or none; it leaves a rule that somebody else set since.
    """
    entries = _get(_COMMON) if platform is None else _get(_BY_PLATFORM)[platform]
    before = entries.get(primitive)
    _get(_REGISTER)(primitive, rule, platform=platform, inline=inline)
    ours = entries[primitive]

    def undo() -> None:
        if entries.get(primitive) is not ours:
            return
        if before is None:
            del entries[primitive]
        else:
            entries[primitive] = before

    return undo


def ir() -> Any:
    """MLIR in Python. 0.8.0 – 0.12.0.1: jax.extend.mlir.ir."""
    return _get("jax.extend.mlir.ir")


def rename_calls(
    emit: Callable[[], Any], names: Mapping[str, str], attributes: Mapping[str, int] | None = None
) -> Any:
    """Runs `emit`, which appends operations, and renames the custom calls among them.

    `attributes` replaces attributes of the calls named in `names`, each of type U8.
    0.8.0 – 0.12.0.1: rules write at the current insertion point, the end of a block.
    """
    point = ir().InsertionPoint.current
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
        name = ir().StringAttr(operation.attributes["call_target_name"]).value
        if name in names:
            operation.attributes["call_target_name"] = ir().StringAttr.get(names[name])
            _set_attributes(operation, attributes)
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                _rename(inner.operation, names, attributes)


def _set_attributes(call: Any, attributes: Mapping[str, int]) -> None:
    """0.8.0 – 0.12.0.1: a typed call's attributes are the dictionary mhlo.backend_config."""
    if attributes:
        u8 = ir().IntegerType.get_unsigned(8)
        old = ir().DictAttr(call.attributes["mhlo.backend_config"])
        values = {old[i].name: old[i].attr for i in range(len(old))}
        values |= {name: ir().IntegerAttr.get(u8, value) for name, value in attributes.items()}
        call.attributes["mhlo.backend_config"] = ir().DictAttr.get(values)


def for_export(ctx: Any) -> bool:
    """Whether jax.export lowers. 0.8.0 – 0.12.0.1: lowering_parameters of a rule's or the module's
    context."""
    if not _fits(f"{_MLIR}.LoweringParameters", f"{_MLIR}.ModuleContext"):
        return False
    module = getattr(ctx, "module_context", ctx)
    return bool(module.lowering_parameters.for_export)


def knows_results() -> bool:
    """Whether `result_avals` can be asked."""
    return _fits("jax.extend.core.Primitive.abstract_eval")


def result_avals(primitive: Primitive, avals: Sequence[Any], **params: Any) -> list[Any]:
    """The types of a linear-algebra primitive's results. 0.8.0 – 0.12.0.1: avals and effects."""
    results, _ = primitive.abstract_eval(*avals, **params)
    return list(results)


_BATCHERS = "jax.interpreters.batching.fancy_primitive_batchers"


def has_batching_rule(primitive: Primitive) -> bool:
    """Whether vmap works on the primitive, or JAX takes no rule for it.

    0.8.0: two dicts; 0.10.2 – 0.12.0.1: one, and `primitive_batchers` only writes to it.
    """
    if not _fits(_BATCHERS):
        return True
    plain = getattr(importlib.import_module("jax.interpreters.batching"), "primitive_batchers", {})
    return primitive in _get(_BATCHERS) or (isinstance(plain, dict) and primitive in plain)


def batch_by(primitive: Primitive, rule: Callable[..., Any]) -> Callable[[], None]:
    """Lets vmap of the primitive follow a rule of (axis, operands, dims); returns what undoes it.

    0.8.0 – 0.12.0.1: batching.fancy_primitive_batchers.
    """
    if not _fits(_BATCHERS):
        return lambda: None
    batchers = _get(_BATCHERS)
    batchers[primitive] = rule

    def undo() -> None:
        if batchers.get(primitive) is rule:
            del batchers[primitive]

    return undo


def in_front(axis: Any, x: Any, dim: int | None) -> Any:
    """An operand of a vmapped call with the mapped axis first, repeated where it lacks it.

    0.8.0 – 0.12.0.1: batching.bdim_at_front.
    """
    name = "jax.interpreters.batching.bdim_at_front"
    if _fits(name):
        return _get(name)(x, dim, axis.size, axis.explicit_mesh_axis)
    return jnp.broadcast_to(x, (axis.size, *x.shape)) if dim is None else jnp.moveaxis(x, dim, 0)


def without_derivative(primitive: Primitive, rule: Callable[..., Any]) -> None:
    """Lets the derivatives of a primitive be this function, which raises. 0.8.0 – 0.12.0.1: ad."""
    for name in ("primitive_jvps", "primitive_transposes"):
        if _fits(f"jax.interpreters.ad.{name}"):
            _get(f"jax.interpreters.ad.{name}")[primitive] = rule


_JVPS = "jax.interpreters.ad.primitive_jvps"


def derivative(primitive: Primitive) -> Rule | None:
    """JAX's rule (primals, tangents, **parameters). 0.8.0 – 0.12.0.1: ad.primitive_jvps."""
    rule: Rule | None = _get(_JVPS).get(primitive) if _fits(_JVPS) else None
    return rule


def replace_derivative(primitive: Primitive, rule: Rule) -> Callable[[], None]:
    """Lets a primitive's derivative follow this rule; returns what undoes it."""
    rules = _get(_JVPS)
    before = rules[primitive]
    rules[primitive] = rule

    def undo() -> None:
        if rules.get(primitive) is rule:
            rules[primitive] = before

    return undo


# Types of sharded and of manually partitioned (shard_map) values.


def vary_alike(*arrays: jax.Array) -> Sequence[jax.Array]:
    """Inside shard_map: marks all operands as varying over the axes that any of them varies over.

    core.standard_insert_pvary in 0.8.0; core.auto_insert_reshard in 0.12.0.1.
    """
    name = "jax._src.core.auto_insert_reshard"
    varied: Sequence[jax.Array] = _get(name)(*arrays) if _fits(name) else arrays
    return varied


def batch_specs(name: str, avals: Sequence[Any], ranks: Sequence[int]) -> tuple[Any, ...]:
    """The batch part of the operands' explicit sharding.

    Raises ValueError where a matrix dimension is sharded or the operands' batches are sharded
    differently. 0.8.0 – 0.12.0.1: every aval has a NamedSharding, on an empty mesh by default.
    """
    if not _fits("jax.core.ShapedArray"):
        return (None,) * max(len(avals[0].shape) - ranks[0], 0)
    return _batch_specs(name, avals, ranks)


def _batch_specs(name: str, avals: Sequence[Any], ranks: Sequence[int]) -> tuple[Any, ...]:
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
    if not _fits("jax.core.ShapedArray"):
        return jax.core.ShapedArray(tuple(shape), dtype)
    return _result_aval(like, shape, dtype, batch)


def _result_aval(
    like: Any, shape: Sequence[Any], dtype: np.dtype[Any], batch: tuple[Any, ...]
) -> Any:
    spec = PartitionSpec(*batch, *(None for _ in shape[len(batch) :]))
    default = {"layout": jax.core.ShapedArray((), dtype).layout} if hasattr(like, "layout") else {}
    return like.update(
        shape=tuple(shape),
        dtype=dtype,
        weak_type=False,
        sharding=NamedSharding(like.sharding.mesh, spec),
        **default,
    )
