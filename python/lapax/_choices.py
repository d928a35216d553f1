"""Up to which orders programs for CUDA call an op: liblapax's table of choices for the GPU at hand.

The table is `cuda/choices.json`, with the rows of the file that LAPAX_GPU_CHOICES names after it;
the library reads both, and chooses by them among kernels. Here is what JAX's rules ask.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

import jax

from lapax import _library

Choices = Mapping[str, Mapping[str, Any]]
"""By op: {"batches": {dtype: order or None}, "alone": the same, "measured", "why"}."""


def largest(op: str, dtype: str, batch: int) -> float:
    """The largest order of so many matrices of which the op's target is called on CUDA.

    inf where the table says nothing: the target itself has no limit then. Raises ValueError where
    LAPAX_GPU_CHOICES names a file that is no table.
    """
    row = table(gpu()).get(op)
    if row is None:
        return math.inf
    # Of other element types than the four there are no kernels.
    order: int | None = row["alone" if batch < 2 else "batches"].get(dtype, 0)
    return math.inf if order is None else order


@functools.cache
def table(capability: str | None) -> Choices:
    """That of GPUs of a compute capability, or of any; raises ValueError as `largest` does."""
    answer = _library.cuda_choices(capability)
    if "error" in answer:
        raise ValueError(answer["error"])
    choices: Choices = answer["choices"]
    return choices


def gpu() -> str | None:
    """The compute capability of JAX's first GPU; None without one: programs are then for any."""
    try:
        device, *_ = jax.devices("cuda")
    except RuntimeError:
        return None
    found: str | None = getattr(device, "compute_capability", None)
    return found
