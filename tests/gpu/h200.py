"""An NVIDIA H200 that is not there, to compile for by JAX's plugin for CUDA."""

from __future__ import annotations

import functools

from jax.experimental import topologies
from jax.sharding import NamedSharding, PartitionSpec

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


@functools.cache
def sharding() -> NamedSharding:
    """On one such device; for operands of `jax.jit(…).lower`. Raises what the plugin raises."""
    topology = topologies.get_topology_desc(platform="cuda", target_config=H200, topology="1x1x1")
    mesh = topologies.make_mesh(topology, mesh_shape=(1,), axis_names=("x",))
    return NamedSharding(mesh, PartitionSpec())
