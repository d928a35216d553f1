"""Functions that a target computes on the CPU, and a composition of JAX's on other platforms.

Which one it is, is chosen while a program is lowered, by the platform that it is lowered for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax.extend.core import Primitive
from jax.interpreters import batching, mlir

from lapax._call import ffi_call
from lapax._settings import own_settings
from lapax.linalg._frechet import batch_first

Array = jax.Array


def by_target(
    op: str, written_out: Callable[..., Array], like: int = 0, **attrs: Any
) -> Callable[..., Array]:
    """`written_out`, of matrices [..., m, n] of one batch, as the target of `op` with these
    attributes where there is one.

    The result has the shape and dtype of argument number `like`. Neither way has a derivative.
    """

    @own_settings()
    def target(*operands: Array) -> Any:
        return ffi_call(op, *operands, **attrs)

    def batched(operands: Any, axes: Any) -> tuple[Any, int]:
        return primitive.bind(*batch_first(operands, axes)), 0

    primitive = Primitive(f"lapax_{op}")
    primitive.def_impl(jax.jit(primitive.bind))
    primitive.def_abstract_eval(lambda *operands: operands[like])
    batching.primitive_batchers[primitive] = batched
    mlir.register_lowering(
        primitive, mlir.lower_fun(own_settings()(written_out), multiple_results=False)
    )
    mlir.register_lowering(
        primitive, mlir.lower_fun(target, multiple_results=False), platform="cpu"
    )

    def function(*operands: Array) -> Array:
        result: Array = primitive.bind(*operands)
        return result

    return function
