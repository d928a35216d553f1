"""Which targets install() calls: all, or fewer by its arguments and the variable LAPAX_LEAVE.

A word names targets: those of a family or an op, one target, those of a platform, or a part of what
a word names on one platform, as in "cuda:qr". A target that is left is not called by JAX's
functions; `lapax.ffi`, `lapax.ffi_call` and the own targets of `lapax.linalg` are.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable
from typing import NamedTuple

from lapax._table import Target, ops, targets

VARIABLE = "LAPAX_LEAVE"
"""The environment variable: words with commas or spaces between them, left besides."""

Words = str | Iterable[str]


class Selection(NamedTuple):
    """What is left to JAX."""

    left: frozenset[tuple[str, str]]
    """Platforms and names of targets."""
    said: tuple[str, ...]
    """The same for users: what, and who says so."""


EVERYTHING = Selection(frozenset(), ())

_in_force = EVERYTHING


def put_in_force(selection: Selection) -> None:
    """From now on; what was lowered before is JAX's caches' to forget."""
    global _in_force
    _in_force = selection


def in_force() -> Selection:
    """What the rules of install() go by."""
    return _in_force


def serves(target: Target) -> bool:
    """Whether JAX's functions are to call it."""
    return _key(target) not in _in_force.left


def serves_op(op: str, platform: str) -> bool:
    """Whether they are to call any target of this op on the platform."""
    return any(serves(target) for target in ops().get(op, ()) if _is_on(target, platform))


def leaves(op: str, platform: str) -> bool:
    """Whether all of the family of this op there is left, of which there is some."""
    families = {target.signature.family for target in ops().get(op, ())}
    family = [t for t in targets(platform) if t.signature.family in families]
    return bool(family) and not any(map(serves, family))


def leaves_platform(platform: str) -> bool:
    """Whether all targets of the platform are left."""
    return not any(map(serves, targets(platform)))


def chosen(
    platforms: Words | None = None, only: Words | None = None, leave: Words | None = None
) -> Selection:
    """What these arguments of install() and the variable leave.

    Raises ValueError for a platform or a word that names nothing, TypeError for what is no word.
    """
    left: list[Target] = []
    said = []
    if platforms is not None:
        wanted = [_platform(word) for word in _words("platforms", platforms)]
        others = dict.fromkeys(t.platform.lower() for t in targets())
        for platform in (it for it in others if it not in wanted):
            left.extend(targets(platform))
            said.append(f"{platform} (install: platforms)")
    if only is not None:
        words = _words("only", only)
        kept = {_key(target) for word in words for target in _named("install: only", word)}
        left.extend(target for target in targets() if _key(target) not in kept)
        said.append(f"all but {', '.join(words) or 'nothing'} (install: only)")
    given = _words("leave", () if leave is None else leave)
    by_variable = _words(VARIABLE, os.environ.get(VARIABLE, ""))
    for source, words in (("install: leave", given), (VARIABLE, by_variable)):
        for word in words:
            left.extend(_named(source, word))
            said.append(f"{word} ({source})")
    return Selection(frozenset(map(_key, left)), tuple(said))


def _words(what: str, words: Words) -> list[str]:
    """The words of one text, or of several."""
    texts = [words] if isinstance(words, str) else list(words)
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"install: {what}: expected names, got {text!r}")
    return [word for text in texts for word in re.split(r"[,\s]+", text) if word]


def _platform(word: str) -> str:
    if word.lower() not in ("cpu", "cuda"):
        raise ValueError(f'install: platforms: expected "cpu" or "cuda", got {word!r}')
    return word.lower()


def _named(source: str, word: str) -> list[Target]:
    """The targets that a word names."""
    platform, _, name = word.rpartition(":")
    found = [
        target
        for target in targets()
        if (not platform or _is_on(target, platform)) and (name in _names(target))
    ]
    if found and platform.lower() in ("", "cpu", "cuda"):
        return found
    known = sorted({name for target in targets() for name in _names(target)})
    near = difflib.get_close_matches(name, known, 1)
    families = ", ".join(dict.fromkeys(target.signature.family for target in targets()))
    hint = f"did you mean {near[0]!r}? " if near and near[0] != name else ""
    where = f" on platform {platform}" if platform else ""
    raise ValueError(
        f"{source}: nothing is named {name!r}{where}; {hint}Names are cpu, cuda, the families "
        f"{families}, and the ops and targets that `python -m lapax targets` lists"
    )


def _key(target: Target) -> tuple[str, str]:
    return target.platform.lower(), target.name


def _names(target: Target) -> tuple[str, ...]:
    signature = target.signature
    return target.platform.lower(), signature.family, signature.op, target.name


def _is_on(target: Target, platform: str) -> bool:
    return target.platform.lower() == platform.lower()
