"""Functions that a target computes on the CPU, and a composition of JAX's on other platforms.

Which one it is, is chosen while a program is lowered, by the platform that it is lowered for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax.extend.core import Primitive
from jax.interpreters import batching, mlir

from lapax._call import abstract, ffi_call
from lapax._settings import own_settings
from lapax.linalg._frechet import batch_first

Array = jax.Array


def by_target(
    op: str, written_out: Callable[..., Any], like: int | None = 0, **attrs: Any
) -> Callable[..., Any]:
    """`written_out`, of matrices [..., m, n] of one batch, as the target of `op` with these
    attributes where there is one.

    The result has the shape and dtype of argument number `like`; where that is None there are
    several, and the target says their shapes. Neither way has a derivative.
    """
    several = like is None

    @own_settings()
    def target(*operands: Array) -> Any:
        return ffi_call(op, *operands, **attrs)

    def batched(operands: Any, axes: Any) -> tuple[Any, Any]:
        results = primitive.bind(*batch_first(operands, axes))
        return results, [0] * len(results) if several else 0

    def shapes(*operands: Any) -> Any:
        return abstract(op, *operands, **attrs) if like is None else operands[like]

    primitive = Primitive(f"lapax_{op}")
    primitive.multiple_results = several
    primitive.def_impl(jax.jit(primitive.bind))
    primitive.def_abstract_eval(shapes)
    batching.primitive_batchers[primitive] = batched
    mlir.register_lowering(
        primitive, mlir.lower_fun(own_settings()(written_out), multiple_results=several)
    )
    mlir.register_lowering(
        primitive, mlir.lower_fun(target, multiple_results=several), platform="cpu"
    )

    def function(*operands: Array) -> Any:
        return primitive.bind(*operands)

    return function
