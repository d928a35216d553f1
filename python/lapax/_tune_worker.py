"""The process that `_tune` asks for times: what it calls follows from its LAPAX_GPU_CHOICES.

A line of JSON asks, a line of JSON answers: "about" for the GPU, "called" for the ops that each
function of the benchmark calls, [function, dtype, n, batch] for the seconds of a call.
"""

from __future__ import annotations

import functools
import json
import re
import statistics
import sys
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from lapax._bench import queued
from lapax._bench.functions import FUNCTIONS, Function
from lapax._bench.plan import compiled
from lapax._checks.equations import Size
from lapax._install import install
from lapax._lowering import numpy_dtype
from lapax._table import targets

SECONDS = 0.1
"""Of the turns of a time."""

TUNED = {it.name: it for it in FUNCTIONS if it.kind == "jax" and not it.points}
"""Functions of matrices of any size."""


def main() -> int:
    """Answers until nobody asks."""
    jax.config.update("jax_enable_x64", True)
    install()
    for line in sys.stdin:
        try:
            answer = _answer(json.loads(line))
        except Exception as error:  # Whatever goes wrong is the answer.
            answer = {"error": (str(error).splitlines() or [type(error).__name__])[0]}
        print(json.dumps(answer), flush=True)
    return 0


def _answer(request: Any) -> dict[str, Any]:
    if request == "about":
        device = jax.devices()[0]
        found = {"platform": device.platform, "card": device.device_kind}
        return found | {"gpu": getattr(device, "compute_capability", None)}
    if request == "called":
        return {name: _called(function) for name, function in TUNED.items()}
    return {"seconds": _seconds(*request)}


def _called(function: Function) -> list[str]:
    """The ops of the targets in the function's program of small matrices, for which CUDA need not
    be here; none where JAX itself asks for it."""
    inputs = function.inputs(np.random.default_rng(0), np.dtype(np.float32), Size(8, 8, (3,)))
    avals = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in inputs]
    try:
        lowered = jax.jit(function.call).trace(*avals).lower(lowering_platforms=("cuda",))
    except Exception:  # Of what kind is JAX's business.
        return []
    names = re.findall(r"custom_call @lapax\.(\w+)", lowered.as_text())
    return [it.signature.op for it in targets("cuda") if it.name in names]


def _seconds(name: str, dtype: str, n: int, batch: int) -> float:
    times = queued.take_turns([_program(name, dtype, n, batch)], SECONDS)
    return statistics.median(times[0])


@functools.lru_cache(maxsize=2)
def _program(name: str, dtype: str, n: int, batch: int) -> Callable[[], Any]:
    function = TUNED[name]
    size = Size(n, n, (batch,))
    inputs = function.inputs(np.random.default_rng(0), numpy_dtype(dtype), size)
    program = compiled(function, inputs)
    jax.block_until_ready(program())
    return program


if __name__ == "__main__":
    sys.exit(main())
