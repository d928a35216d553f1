"""install() on CUDA: the custom calls that JAX's rules emit there become lapax's.

Everything else about the rules stays JAX's. Works without a GPU and without JAX's plugin for CUDA:
rules are for lowering, which needs neither.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from jax.extend.core import Primitive

from lapax import _jax_private as private
from lapax import _library
from lapax._rules import exporting_context
from lapax._table import targets

PLATFORM = "cuda"


def replace_rules(primitives: Iterable[Primitive]) -> list[Callable[[], None]]:
    """Wraps JAX's rules for CUDA; returns what undoes it.

    None is wrapped where this liblapax has no kernels: then jaxlib serves all.
    """
    undo = []
    if _library.cuda_kernels() == 0:
        return []
    for primitive in primitives:
        entry = private.lowering_entry(primitive, PLATFORM)
        if entry is not None:
            rule = functools.partial(_renaming, entry.rule)
            undo.append(private.replace_lowering(primitive, PLATFORM, rule, entry.inline))
    return undo


def _renaming(stock: private.Rule, ctx: Any, *args: Any, **params: Any) -> Any:
    """JAX's rule, its calls going to lapax unless the program is to run without lapax."""
    names = {} if exporting_context.value else {t.name: t.jax_name for t in targets(PLATFORM)}
    return private.rename_calls(lambda: stock(ctx, *args, **params), names)
