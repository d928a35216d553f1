"""Programs compiled for an H200 on a machine without one, by XLA as JAX's plugin for CUDA has it.

That a program compiles shows that XLA's registry took lapax's handlers, with both stages; that one
of captured targets is a single command buffer shows that XLA would make one CUDA graph of it. Needs
the wheels jax-cuda13-plugin and jax-cuda13-pjrt, and ptxas on the path: `make test-deviceless`.
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

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.experimental import topologies  # noqa: E402
from jax.sharding import NamedSharding, PartitionSpec  # noqa: E402

import lapax  # noqa: E402
from programs import DTYPES, PROGRAMS, Program  # noqa: E402

H200 = """
gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32 threads_per_core_limit: 2048
  shared_memory_per_block: 49152 shared_memory_per_core: 233472
  shared_memory_per_block_optin: 232448
  core_count: 132 fpus_per_core: 128 clock_rate_ghz: 1.98 l2_cache_size: 52428800
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  thread_dim_limit_x: 1024 thread_dim_limit_y: 1024 thread_dim_limit_z: 64
  registers_per_core_limit: 65536 registers_per_block_limit: 65536 device_address_bits: 64
  memory_bandwidth: 4800000000000 device_memory_size: 151397597184
  cuda_compute_capability { major: 9 } device_vendor: "NVIDIA Corporation" name: "H200"
  driver_version: "13.0.0" runtime_version: "13.0.0" compile_time_toolkit_version: "13.0.0"
  dnn_version: "9.12.0"
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 12 patch: 0 }
device_description_str: "H200"
"""
"""The device as XLA's compiler asks for it: NVIDIA's figures of the product."""

NEEDS_CUSOLVER = ("eig",)
"""Programs for which JAX itself asks cuSOLVER for its version while it lowers."""


def main() -> int:
    """Compiles everything; returns the exit status, 2 where there is no plugin."""
    try:
        topology = topologies.get_topology_desc(
            platform="cuda", target_config=H200, topology="1x1x1"
        )
    except Exception as error:  # Of what kind is the plugin's business.
        print(f"not compiled: {str(error).splitlines()[0]}")
        return 2
    mesh = topologies.make_mesh(topology, mesh_shape=(1,), axis_names=("x",))
    sharding = NamedSharding(mesh, PartitionSpec())
    jax.config.update("jax_enable_x64", True)
    lapax.install()
    failures = 0
    for program in PROGRAMS:
        if program.name in NEEDS_CUSOLVER:
            print(f"{program.name:<20}skipped: JAX asks cuSOLVER for its version")
            continue
        problems = [
            text for dtype in _dtypes(program) for text in _compile(program, dtype, sharding)
        ]
        failures += bool(problems)
        print(f"{program.name:<20}{'; '.join(problems) or 'compiles, calls lapax'}", flush=True)
    graph = _graph(sharding)
    print(f"{'command buffer':<20}{graph or 'one, with two calls of lapax in it'}")
    return 1 if failures or graph else 0


def _dtypes(program: Program) -> tuple[str, ...]:
    return DTYPES[: 2 if program.real_only else 4]


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
        for name in program.targets
        if f"lapax.{name}" not in called
    ]


def _graph(sharding: Any) -> str | None:
    """What is wrong with the graph of a program of captured calls and other kernels."""

    def graph(p: jax.Array) -> Any:
        q = jax.lax.linalg.lu_pivots_to_permutation(2 * p + 1, 8)
        q = jax.lax.linalg.lu_pivots_to_permutation(q[..., :4] - 1, 8)
        return jnp.cumsum(q, -1), jnp.sort(q, -1)

    jax.jit(graph).lower(jax.ShapeDtypeStruct((30, 4), np.int32, sharding=sharding)).compile()
    files = list(Path(DUMP.name).glob("*jit_graph*thunk_sequence_after_thunk_passes.txt"))
    if not files:
        return "XLA dumped no sequence of thunks"
    lines = files[0].read_text().splitlines()
    outer = [line for line in lines if re.match(r"\d+: k", line)]
    inner = sum("kCustomCall" in line for line in lines if line.startswith(" "))
    whole = len(outer) == 1 and "kCommandBuffer" in outer[0]
    return (
        None if whole and inner == 2 else f"{len(outer)} pieces, {inner} calls in command buffers"
    )


if __name__ == "__main__":
    sys.exit(main())
