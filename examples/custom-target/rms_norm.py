"""RMS normalisation by custom calls in Rust, with its derivative, and checked against jax.numpy's.

Runs on JAX's default device: on the CPU, or on an NVIDIA GPU where there was an nvcc for the build.

cargo build --release -p custom-target
python examples/custom-target/rms_norm.py target/release/libcustom_target.so
"""

from __future__ import annotations

import ctypes
import functools
import sys

import jax
import jax.numpy as jnp
import numpy as np


def register(path: str) -> None:
    library = ctypes.CDLL(path)
    load = jax.ffi.pycapsule(library.rms_norm_load)
    for name in ("rms_norm", "rms_norm_backward"):
        execute, on_cuda = (
            jax.ffi.pycapsule(getattr(library, name + suffix)) for suffix in ("", "_cuda")
        )
        jax.ffi.register_ffi_target(name, execute, platform="cpu")
        stages = {"initialize": load, "execute": on_cuda}
        jax.ffi.register_ffi_target(name, stages, platform="CUDA")


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def rms_norm(x: jax.Array, eps: float = 1e-5) -> jax.Array:
    return forward(x, eps)[0]


def forward(x: jax.Array, eps: float) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    shapes = x.shape, x.shape[:-1]
    results = [jax.ShapeDtypeStruct(shape, x.dtype) for shape in shapes]
    y, s = jax.ffi.ffi_call("rms_norm", results, vmap_method="broadcast_all")(
        x, eps=np.float32(eps)
    )
    return y, (s, x)


def backward(_: float, saved: tuple[jax.Array, jax.Array], ct: jax.Array) -> tuple[jax.Array]:
    s, x = saved
    result = jax.ShapeDtypeStruct(x.shape, x.dtype)
    call = jax.ffi.ffi_call("rms_norm_backward", result, vmap_method="broadcast_all")
    return (call(s, x, ct),)


rms_norm.defvjp(forward, backward)


def reference(x: jax.Array, eps: float = 1e-5) -> jax.Array:
    return x / jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + eps)


def main(path: str) -> None:
    register(path)
    x = jax.random.normal(jax.random.key(0), (8, 32))
    value = jnp.abs(jax.jit(rms_norm)(x) - reference(x)).max()
    batched = jnp.abs(jax.vmap(rms_norm)(x) - reference(x)).max()

    def loss(norm):
        return jax.jit(jax.grad(lambda x: jnp.sum(jnp.sin(norm(x)))))

    gradient = jnp.abs(loss(rms_norm)(x) - loss(reference)(x)).max()
    print(f"value off by {value:.1e}, batched {batched:.1e}, gradient {gradient:.1e}")
    assert max(value, batched, gradient) < 1e-5


if __name__ == "__main__":
    main(sys.argv[1])
