"""Programs compiled for an H200 on a machine without one, by XLA as JAX's plugin for CUDA has it.

That a program compiles shows that XLA's registry took lapax's handlers, with both stages; that one
of captured targets is a single command buffer shows that XLA would make one CUDA graph of it; that
each of two calls is on a stream of its own shows that they would run at once. Needs the wheels
jax-cuda13-plugin and jax-cuda13-pjrt, and ptxas on the path: `make test-deviceless`.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

DUMP = tempfile.TemporaryDirectory()
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = f"--xla_dump_to={DUMP.name} --xla_gpu_graph_min_graph_size=1"

import h200  # noqa: E402
import jax  # noqa: E402
import numpy as np  # noqa: E402

import lapax  # noqa: E402
from programs import (  # noqa: E402
    PROGRAMS,
    Program,
    captured,
    sorted_by_host,
    two_streams,
)

NEEDS_CUSOLVER = ("eig_by_host", "eig_by_host_complex")
"""Programs for which JAX itself asks cuSOLVER for its version while it lowers."""


def main() -> int:
    """Compiles everything; returns the exit status, 2 where there is no plugin."""
    try:
        sharding = h200.sharding()
    except Exception as error:  # Of what kind is the plugin's business.
        print(f"not compiled: {str(error).splitlines()[0]}")
        return 2
    jax.config.update("jax_enable_x64", True)
    lapax.install()
    failures = 0
    for program in PROGRAMS:
        if program.name in NEEDS_CUSOLVER:
            print(f"{program.name:<28}skipped: JAX asks cuSOLVER for its version")
            continue
        problems = [text for dtype in program.dtypes for text in _compile(program, dtype, sharding)]
        failures += bool(problems)
        print(f"{program.name:<28}{'; '.join(problems) or 'compiles, calls lapax'}", flush=True)
    graph = _graph(sharding)
    print(f"{'command buffer':<28}{graph or 'one, with two calls of lapax in it'}")
    streams = _streams(sharding)
    print(f"{'two streams':<28}{streams or 'a call of lapax on each'}")
    # Its instantiate stage runs when the program is compiled, and looks the function up.
    aval = jax.ShapeDtypeStruct((9,), np.float32, sharding=sharding)
    text = jax.jit(sorted_by_host).lower(aval).compile().as_text()
    callback = None if "lapax_host_callback" in text else "no call of it"
    print(f"{'host callback':<28}{callback or 'compiles, its function was found'}")
    return 1 if failures or graph or streams or callback else 0


def _compile(program: Program, dtype: str, sharding: Any) -> list[str]:
    operands = program.operands(np.random.default_rng(0), np.dtype(dtype), 6, 3)
    avals = [jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding) for x in operands]
    try:
        text = jax.jit(program.function).lower(*avals).compile().as_text()
    except Exception as error:  # Whatever goes wrong is what is looked for.
        return [f"{dtype}: {str(error).splitlines()[0]}"]
    called = set(re.findall(r'custom_call_target="([^"]+)"', text))
    return [
        f"{dtype}: no call of lapax.{name}"
        for name in program.called(operands)
        if f"lapax.{name}" not in called
    ]


def _graph(sharding: Any) -> str | None:
    """What is wrong with the graph of a program of captured calls and other kernels."""
    lines = _thunks(captured, jax.ShapeDtypeStruct((30, 4), np.int32, sharding=sharding))
    outer = [line for line in lines if re.match(r"\d+: k", line)]
    inner = sum("kCustomCall" in line for line in lines if line.startswith(" "))
    whole = len(outer) == 1 and "kCommandBuffer" in outer[0]
    return (
        None if whole and inner == 2 else f"{len(outer)} pieces, {inner} calls in command buffers"
    )


def _streams(sharding: Any) -> str | None:
    """What is wrong with a program that has two streams."""
    aval = jax.ShapeDtypeStruct((40, 40), np.float32, sharding=sharding)
    stream, calls = "none", []
    for line in _thunks(two_streams, aval, aval):
        started = re.search(r"kAsyncStart.* stream=(\S+),", line)
        stream = started.group(1) if started else "none" if "kAsyncDone" in line else stream
        calls += [stream] * ("kCustomCall" in line)
    expected = [f"computation_stream[{stream}]" for stream in (1, 2)]
    return None if sorted(calls) == expected else f"calls on the streams {calls}"


def _thunks(function: Any, *avals: Any) -> list[str]:
    """What XLA would run, a line each."""
    jax.jit(function).lower(*avals).compile()
    passed = "_after_thunk_passes" if function is captured else ""
    files = Path(DUMP.name).glob(f"*jit_{function.__name__}*thunk_sequence{passed}.txt")
    return [line for path in files for line in path.read_text().splitlines()]


if __name__ == "__main__":
    sys.exit(main())
