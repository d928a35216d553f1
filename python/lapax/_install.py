"""install(): JAX's own linear algebra on the CPU and on CUDA, computed by liblapax.

JAX's lowering rules stay: they are wrapped, and the custom calls they emit are renamed to lapax's.
So NaN fill, layouts, sharding and every later parameter remain JAX's, and what liblapax does not
serve goes to jaxlib as before. Primitives that jaxlib has no CPU target for get rules of our own.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any, Literal

import jax
from jax.extend.core import Primitive

from lapax import _cuda, _fused, _row_major, _rules, _unknown, _unused
from lapax import _jax_private as private
from lapax._after_import import after_import
from lapax._hooks import Part
from lapax._register import take_over
from lapax._rules import PLATFORM
from lapax._unknown import Left


class _State:
    """What is installed, who wants it installed, and how to undo it; guarded by `lock`."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.undo: list[Callable[[], None]] = []
        self.explicit = False
        self.contexts: set[object] = set()


_state = _State()


def install(*, takeover: bool = False, unknown_jax: _unknown.Mode | None = None) -> None:
    """Lets jax.numpy.linalg, jax.scipy.linalg and jax.lax.linalg compute on lapax.

    On the CPU, and on NVIDIA's GPUs where this liblapax was built with CUDA kernels.

    Takes effect for every function called from now on, also for those already compiled: JAX's
    caches are cleared, so they compile again. Objects from `jit(f).lower(…)`, `.compile()` and
    jax.export keep what they were made with. Programs of jax.export call jaxlib's names, as stock
    JAX's do: see `exporting`. May be called before or after JAX has a backend, from any thread,
    and more than once. Dtypes: float32, float64, complex64, complex128; other
    dtypes and other primitives stay with jaxlib.

    Args:
        takeover: also serve jaxlib's own names, such as `lapack_dpotrf_ffi`, to the end of the
            process. Then calls by those names, and deserialised programs of any age, compute on
            lapax.
        unknown_jax: what to do on a JAX newer than lapax was checked on; by default what
            the environment variable LAPAX_UNKNOWN_JAX says, and without it "check". "check" looks
            at each private part of JAX that lapax holds on to, and compares one tiny call of each
            kind with JAX's own in a process of its own, which takes some seconds; "trust" does
            without the calls; both leave to JAX what does not fit, and one RuntimeWarning says what
            and why. "leave" leaves everything to JAX.

    Raises:
        ValueError: another `unknown_jax`.
        RuntimeError: takeover where JAX already has a CPU backend; it must come before the first
            array, `jax.devices()` or compiled function. Nothing is installed then.
    """
    with _state.lock:
        left = _unknown.left(unknown_jax)
        if takeover and not left.parts.keys() & {Part.TAKEOVER, Part.RULES}:
            take_over()
        _apply(left)
        _state.explicit = True


def uninstall() -> None:
    """Restores JAX's own rules and clears its caches; does nothing where nothing is installed.

    Ends the effect of every `installed()` block that is still open. Names taken over by
    `install(takeover=True)` stay lapax's: XLA cannot replace a handler, so JAX's own rules go on
    computing on lapax.
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
        _apply(_unknown.left(None))
        _state.contexts.add(token)
    try:
        yield
    finally:
        with _state.lock:
            _state.contexts.discard(token)
            if not _state.explicit and not _state.contexts:
                _revert()


def exporting(
    *, names: Literal["jaxlib", "lapax"] = "jaxlib"
) -> contextlib.AbstractContextManager[Any]:
    """A block inside which all that this thread lowers calls targets by these names. Blocks nest.

    jax.export takes jaxlib's names by itself, so that any JAX runs its programs and JAX's safety
    checks judge them as they judge stock JAX's. The block does the same for all else that is
    lowered in it: `jit(f).lower(…)`, whose text may leave the process, and what is called in the
    block, which runs on jaxlib there. Functions compiled outside stay compiled.

    With `names="lapax"` what is exported in the block computes on lapax wherever it runs, which is
    in processes that import lapax; export it with `disabled_checks=lapax.export_safety_checks()`.
    A gradient is exported when it is asked for: `serialize(vjp_order=1)` has to be in the block,
    too, else the gradient calls jaxlib's names.

    Raises:
        ValueError: names that are neither.
    """
    if names not in ("jaxlib", "lapax"):
        raise ValueError(f'exporting: names: expected "jaxlib" or "lapax", got {names!r}')
    block: contextlib.AbstractContextManager[Any] = _rules.exporting_context(names)
    return block


def is_installed() -> bool:
    """Whether lapax's rules are in force."""
    with _state.lock:
        return bool(_state.undo)


@contextlib.contextmanager
def on_trial(left: Left) -> Iterator[None]:
    """A block inside which lapax is installed but for this; nothing must be installed yet."""
    with _state.lock:
        _apply(left)
        try:
            yield
        finally:
            _revert()


def _apply(left: Left) -> None:
    if _state.undo or Part.RULES in left.parts:
        return
    try:
        _replace_rules(left)
    except BaseException:
        _revert()
        raise
    jax.clear_caches()


def replaced() -> Iterator[str]:
    """The names of the primitives that get rules on the CPU where nothing is left to JAX."""
    for name, primitive in private.linalg_primitives().items():
        entry = private.lowering_entry(primitive, PLATFORM)
        if entry is not None or name in _row_major.NAMES or _rules.serves(name):
            yield name


def _replace_rules(left: Left) -> None:
    if Part.SCIPY not in left.parts:
        _state.undo.append(private.spare_scipy())
    primitives = {
        name: primitive
        for name, primitive in private.linalg_primitives().items()
        if name not in left.families
    }
    for name, primitive in primitives.items():
        entry = private.lowering_entry(primitive, PLATFORM)
        if entry is None and name in _row_major.NAMES:
            stock = private.common_rule(primitive)
            _replace(primitive, functools.partial(_rules.row_major, name, stock), True)
        elif entry is not None:
            _replace(primitive, _wrapped(name, primitive, entry.rule), entry.inline)
        elif _rules.serves(name):
            # The table names an op after the primitive only where it has the primitive's contract.
            rule = functools.partial(_rules.own, name, private.common_rule(primitive))
            _replace(primitive, rule, True)
            _add_batching(name, primitive)
    on_cuda = Part.CUDA not in left.parts
    if on_cuda:
        _state.undo.extend(_cuda.replace_rules(primitives.values()))
    if _unknown.SPARSE not in left.families:
        then = functools.partial(_replace_sparse_rules, on_cuda)
        _state.undo.append(after_import(private.SPARSE, then))
    if Part.BY_NAME in left.parts:
        private.initialize_lapack()
    else:
        for primitive, by_name in private.programs_by_name().items():
            rule = functools.partial(_rules.calling, by_name, private.common_rule(primitive))
            _replace(primitive, rule, True, None)
    if Part.FUSED not in left.parts:
        _fuse(left)


def _fuse(left: Left) -> None:
    on_cuda = Part.CUDA not in left.parts and _cuda.usable()
    if "qr" not in left.families:
        without_q = private.common_rule(_unused.qr_r_p)
        _replace(_unused.qr_r_p, functools.partial(_rules.qr_r, without_q), True)
        if on_cuda:
            rule = functools.partial(_cuda.by_rows, "qr_r", without_q)
            _replace(_unused.qr_r_p, rule, True, _cuda.PLATFORM)
    failed = None if _unknown.is_known() else _unknown.not_fused
    platforms = {PLATFORM, _cuda.PLATFORM} if on_cuda else {PLATFORM}
    _state.undo.extend(_fused.rewrite_programs(failed, platforms))


def _replace_sparse_rules(on_cuda: bool) -> None:
    """Their package may be imported at any time, by any thread, long after install()."""
    with _state.lock:
        for primitive in private.sparse_primitives().values():
            entry = private.lowering_entry(primitive, PLATFORM)
            if entry is not None:
                rule = functools.partial(_rules.renaming, entry.rule)
                _replace(primitive, rule, entry.inline)
        if on_cuda:
            _state.undo.extend(_cuda.replace_rules(private.sparse_solvers()))
            _state.undo.extend(_cuda.replace_formats(private.sparse_formats()))
        _unknown.say_of_sparse()


def _wrapped(name: str, primitive: Primitive, stock: private.Rule) -> private.Rule:
    if name == "eig":
        return functools.partial(_rules.eig, stock)
    if name == "eigh":
        values = functools.partial(_rules.eigh_values, primitive, stock)
        _replace(_unused.eigh_values_p, values, True)
        return functools.partial(_rules.eigh, primitive, stock)
    if name == "svd":
        return functools.partial(_rules.svd, primitive, stock)
    if name in _row_major.NAMES and _rules.serves(name):
        return functools.partial(_rules.row_major, name, stock)
    return functools.partial(_rules.renaming, stock)


def _revert() -> None:
    if not _state.undo:
        return
    while _state.undo:
        _state.undo.pop()()
    jax.clear_caches()


def _replace(
    primitive: Primitive, rule: private.Rule, inline: bool, platform: str | None = PLATFORM
) -> None:
    _state.undo.append(private.replace_lowering(primitive, platform, rule, inline))


def _add_batching(op: str, primitive: Primitive) -> None:
    """vmap as one call with a larger batch, where JAX has no batching rule at all."""
    if private.has_batching_rule(primitive):
        return
    rule = functools.partial(_rules.batched, op, primitive)
    _state.undo.append(private.batch_by(primitive, rule))
