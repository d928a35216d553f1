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
from typing import Any, Literal, NamedTuple

import jax
from jax.extend.core import Primitive

from lapax import (
    _cuda,
    _derivatives,
    _fused,
    _refused,
    _row_major,
    _rules,
    _selection,
    _unknown,
    _unused,
)
from lapax import _jax_private as private
from lapax._after_import import after_import
from lapax._hooks import Part
from lapax._register import take_over, taken_over
from lapax._rules import PLATFORM
from lapax._selection import Selection, Words
from lapax._unknown import Left


class _Wanted(NamedTuple):
    """What is left to JAX: what does not fit it, and what users leave."""

    unfit: Left
    selection: Selection


class _State:
    """What is installed, who wants it installed, and how to undo it; guarded by `lock`."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.undo: list[Callable[[], None]] = []
        self.explicit: _Wanted | None = None
        self.contexts: dict[object, _Wanted] = {}
        """By open block, the innermost last."""
        self.applied: _Wanted | None = None

    @property
    def wanted(self) -> _Wanted | None:
        """By the innermost block, else by `install()`."""
        return next(reversed(self.contexts.values()), self.explicit)


_state = _State()


def install(
    *,
    platforms: Words | None = None,
    only: Words | None = None,
    leave: Words | None = None,
    takeover: bool = False,
    unknown_jax: _unknown.Mode | None = None,
) -> None:
    """Lets jax.numpy.linalg, jax.scipy.linalg and jax.lax.linalg compute on lapax.

    On the CPU, and on NVIDIA's GPUs where this liblapax was built with CUDA kernels. Arguments and
    derivatives that JAX refuses are served, too: see `lapax.linalg` for what they mean.

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
        ValueError: another `unknown_jax`, a name of nothing, or with takeover, which serves all of
            jaxlib's names on the CPU, a selection that leaves some of them.
        RuntimeError: takeover where JAX already has a CPU backend; it must come before the first
            array, `jax.devices()` or compiled function.

    After an error all is as it was.
    """
    with _state.lock:
        selection = _selected(_selection.chosen(platforms, only, leave), takeover)
        wanted = _Wanted(_unknown.left(unknown_jax), selection)
        if takeover and not wanted.unfit.parts.keys() & {Part.TAKEOVER, Part.RULES}:
            take_over()
        before, _state.explicit = _state.explicit, wanted
        try:
            _settle()
        except BaseException:
            _state.explicit = before
            raise


def _selected(selection: Selection, takeover: bool = False) -> Selection:
    """The selection, where names that were taken over do not stand against it."""
    if (takeover or taken_over()) and any(platform == PLATFORM for platform, _ in selection.left):
        raise ValueError(
            "lapax.install(takeover=True) serves all of jaxlib's names on the CPU, to the end of "
            f"the process; there cannot be left to jaxlib: {', '.join(selection.said)}"
        )
    return selection


def uninstall() -> None:
    """Restores JAX's own rules and clears its caches; does nothing where nothing is installed.

    Ends the effect of every `installed()` block that is still open. Names taken over by
    `install(takeover=True)` stay lapax's: XLA cannot replace a handler, so JAX's own rules go on
    computing on lapax.
    """
    with _state.lock:
        _state.explicit = None
        _state.contexts.clear()
        _revert()


@contextlib.contextmanager
def installed(
    *, platforms: Words | None = None, only: Words | None = None, leave: Words | None = None
) -> Iterator[tuple[str, ...]]:
    """A block inside which lapax is installed, in all threads. Blocks nest.

    Its value is that of `left_to_jax()`. The arguments are `install`'s, and those of the innermost
    block are in force; a block without any changes nothing where lapax is installed already. What
    was before is restored when the block ends.
    """
    token, nothing_said = object(), (platforms, only, leave) == (None, None, None)
    with _state.lock:
        wanted = _state.applied if nothing_said else None
        if wanted is None:
            selection = _selected(_selection.chosen(platforms, only, leave))
            wanted = _Wanted(_unknown.left(None), selection)
        _state.contexts[token] = wanted
        try:
            _settle()
        except BaseException:
            del _state.contexts[token]
            raise
        left = left_to_jax()
    try:
        yield left
    finally:
        with _state.lock:
            if _state.contexts.pop(token, None) is not None:
                _settle()


def left_to_jax() -> tuple[str, ...]:
    """What of JAX's linear algebra stays with JAX though lapax is installed, a text for each.

    By arguments of `install`, the environment variable LAPAX_LEAVE, or since a newer JAX does not
    fit. Empty where nothing is left, or lapax is not installed.
    """
    with _state.lock:
        if _state.wanted is None:
            return ()
        unfit, selection = _state.wanted
        return (*_unknown.lines(unfit), *selection.said)


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
        _apply(_Wanted(left, _selection.EVERYTHING))
        try:
            yield
        finally:
            _revert()


def _settle() -> None:
    """Lets what is wanted be in force; where that fails, what was before."""
    before = _state.applied
    if _state.wanted == before:
        return
    _revert()
    if _state.wanted is None:
        return
    try:
        _apply(_state.wanted)
    except BaseException:
        if before is not None:
            _apply(before)
        raise


def _apply(wanted: _Wanted) -> None:
    if Part.RULES in wanted.unfit.parts:
        return
    _selection.put_in_force(wanted.selection)
    try:
        _replace_rules(wanted.unfit)
    except BaseException:
        _revert()
        raise
    _state.applied = wanted
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
        if _selection.leaves(name, PLATFORM):
            continue
        entry = private.lowering_entry(primitive, PLATFORM)
        if entry is None and name in _row_major.NAMES:
            stock = private.common_rule(primitive)
            _replace(primitive, functools.partial(_rules.row_major, name, stock), True)
        elif entry is not None:
            _replace(primitive, _wrapped(name, primitive, entry.rule), entry.inline)
        elif _rules.serves(name) and _selection.serves_op(name, PLATFORM):
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
    _state.undo.extend(_derivatives.serve(left.families))
    if not _selection.leaves_platform(PLATFORM):
        _state.undo.extend(_refused.serve())


def _fuse(left: Left) -> None:
    on_cuda = Part.CUDA not in left.parts and _cuda.usable()
    if "qr" not in left.families:
        without_q = private.common_rule(_unused.qr_r_p)
        if not _selection.leaves("qr", PLATFORM):
            _replace(_unused.qr_r_p, functools.partial(_rules.qr_r, without_q), True)
        if on_cuda and not _selection.leaves("qr", _cuda.PLATFORM):
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
    if name == "schur":
        return functools.partial(_rules.schur, stock)
    if name in _row_major.NAMES and _rules.serves(name):
        return functools.partial(_rules.row_major, name, stock)
    return functools.partial(_rules.renaming, stock)


def _revert() -> None:
    _state.applied = None
    _selection.put_in_force(_selection.EVERYTHING)
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
