"""install(): JAX's own linear algebra on the CPU, computed by liblapax.

JAX's lowering rules stay: they are wrapped, and the custom calls they emit are renamed to lapax's.
So NaN fill, layouts, sharding and every later parameter remain JAX's, and what liblapax does not
serve goes to jaxlib as before. Primitives that jaxlib has no CPU target for get rules of our own.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
from jax.extend.core import Primitive
from jax.interpreters import batching

from lapax import _jax_private as private
from lapax._call import call_p, in_front
from lapax._lowering import dtype_name, is_static, lower_target
from lapax._table import ops, targets

_PLATFORM = "cpu"


class _State:
    """What is installed, who wants it installed, and how to undo it; guarded by `lock`."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.undo: list[Callable[[], None]] = []
        self.explicit = False
        self.contexts: set[object] = set()


_state = _State()


def install() -> None:
    """Lets jax.numpy.linalg, jax.scipy.linalg and jax.lax.linalg compute on lapax, on the CPU.

    Takes effect for every function called from now on, also for those already compiled: JAX's
    caches are cleared, so they compile again. Objects from `jit(f).lower(…)`, `.compile()` and
    jax.export keep what they were made with. May be called before or after JAX has a backend,
    from any thread, and more than once. Dtypes: float32, float64, complex64, complex128; other
    dtypes and other primitives stay with jaxlib.
    """
    with _state.lock:
        _apply()
        _state.explicit = True


def uninstall() -> None:
    """Restores JAX's own rules and clears its caches; does nothing where nothing is installed.

    Ends the effect of every `installed()` block that is still open.
    """
    with _state.lock:
        _state.explicit = False
        _state.contexts.clear()
        _revert()


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """A block inside which lapax is installed, in all threads. Blocks nest.

    The rules are restored when the last open block ends, unless `install()` was called.
    """
    token = object()
    with _state.lock:
        _apply()
        _state.contexts.add(token)
    try:
        yield
    finally:
        with _state.lock:
            _state.contexts.discard(token)
            if not _state.explicit and not _state.contexts:
                _revert()


def is_installed() -> bool:
    """Whether lapax's rules are in force."""
    with _state.lock:
        return bool(_state.undo)


def _apply() -> None:
    if _state.undo:
        return
    try:
        _replace_rules()
    except BaseException:
        _revert()
        raise
    jax.clear_caches()


def _replace_rules() -> None:
    renamed = {target.name: target.jax_name for target in targets(_PLATFORM)}
    for name, primitive in private.linalg_primitives().items():
        entry = private.lowering_entry(primitive, _PLATFORM)
        if entry is not None:
            rule = functools.partial(_renaming_rule, entry.rule, renamed)
            _replace(primitive, rule, entry, entry.inline)
        elif _serves(name):
            # The table names an op after the primitive only where it has the primitive's contract.
            rule = functools.partial(_own_rule, name, private.common_rule(primitive))
            _replace(primitive, rule, None, True)
            _add_batching(name, primitive)


def _revert() -> None:
    if not _state.undo:
        return
    while _state.undo:
        _state.undo.pop()()
    jax.clear_caches()


def _replace(primitive: Primitive, rule: private.Rule, before: Any | None, inline: bool) -> None:
    ours = private.replace_lowering(primitive, _PLATFORM, rule, inline)
    _state.undo.append(
        functools.partial(private.restore_lowering, primitive, _PLATFORM, ours, before)
    )


def _renaming_rule(
    original: private.Rule, names: dict[str, str], ctx: Any, *args: Any, **params: Any
) -> Any:
    return private.rename_calls(lambda: original(ctx, *args, **params), names)


def _serves(op: str) -> bool:
    return any(target.platform.lower() == _PLATFORM for target in ops().get(op, ()))


def _own_rule(
    op: str, common: private.Rule, ctx: Any, *operands: Any, **params: Any
) -> Sequence[Any]:
    """The target of the same name; its results beyond the primitive's are dropped.

    Parameters of the primitive are in the shapes of its results. Symbolic shapes and dtypes that
    the table does not have keep JAX's common rule.
    """
    avals = (*ctx.avals_in, *ctx.avals_out)
    for target in targets(_PLATFORM):
        variant = target.signature.variant(dtype_name(ctx.avals_in[0].dtype))
        if target.signature.op != op or variant is None:
            continue
        if not all(is_static(aval.shape) for aval in avals):
            break
        scratch = [
            ctx.avals_in[ret.alias].update(weak_type=False)
            for ret in variant.rets[len(ctx.avals_out) :]
            if ret.alias is not None
        ]
        sub_ctx = ctx.replace(avals_out=[*ctx.avals_out, *scratch])
        return list(lower_target(sub_ctx, target, variant, operands, {}))[: len(ctx.avals_out)]
    kept: Sequence[Any] = common(ctx, *operands, **params)
    return kept


def _add_batching(op: str, primitive: Primitive) -> None:
    """vmap as one call with a larger batch, where JAX has no batching rule at all."""
    if private.has_batching_rule(primitive):
        return
    rule = functools.partial(_batched, op, primitive)
    batching.fancy_primitive_batchers[primitive] = rule

    def undo() -> None:
        if batching.fancy_primitive_batchers.get(primitive) is rule:
            del batching.fancy_primitive_batchers[primitive]

    _state.undo.append(undo)


def _batched(
    op: str, primitive: Primitive, axis: Any, args: Sequence[Any], dims: Sequence[Any]
) -> tuple[Any, int | None]:
    """The primitive takes one matrix only, so its batch is a call of the target itself."""
    if all(dim is None for dim in dims):
        return primitive.bind(*args), None
    fronted = in_front(axis, args, dims)
    return call_p.bind(*fronted, name=op, attrs=(), sizes=())[0], 0
