"""One binary in the host of whatever jaxlib is installed: jax alone, without the package lapax.

    python run.py liblapax.so libcustom_target.so

Runs a handler of examples/custom-target, the state of a program (host callbacks), a target on XLA's
thread pool, one that answers with a future, and refusals with their text.
"""

from __future__ import annotations

import ctypes
import gc
import sys

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np

jax.config.update("jax_enable_x64", True)


class Target(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("platform", ctypes.c_char_p),
        ("handler", ctypes.c_void_p),
    )


class Operand(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("dims", ctypes.POINTER(ctypes.c_int64)))


def capsule(address: int) -> object:
    return jax.ffi.pycapsule(ctypes.c_void_p(address))


def register(lapax: ctypes.CDLL, custom: ctypes.CDLL) -> None:
    lapax.lapax_target_count.restype = ctypes.c_size_t
    lapax.lapax_target_at.restype = ctypes.POINTER(Target)
    lapax.lapax_target_at.argtypes = (ctypes.c_size_t,)
    for i in range(lapax.lapax_target_count()):
        target = lapax.lapax_target_at(i).contents
        if target.platform == b"cpu":
            name = "lapax." + target.name.decode()
            jax.ffi.register_ffi_target(name, capsule(target.handler), platform="cpu")
    lapax.lapax_callback_handler.restype = ctypes.c_void_p
    stages = {
        stage: capsule(lapax.lapax_callback_handler(number))
        for stage, number in {"instantiate": 1, "execute": 0}.items()
    }
    jax.ffi.register_ffi_target("lapax_host_callback", stages, platform="cpu")
    for name in ("rms_norm", "rms_norm_backward"):
        address = ctypes.cast(getattr(custom, name), ctypes.c_void_p).value
        jax.ffi.register_ffi_target(name, capsule(address), platform="cpu")


def refusal(function: object, *args: object) -> str:
    try:
        jax.block_until_ready(jax.jit(function)(*args))
    except Exception as error:
        return str(error)
    raise AssertionError("it was not refused")


def check_custom_target() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    shapes = [jax.ShapeDtypeStruct(shape, np.float32) for shape in ((2, 3), (2,))]
    call = jax.ffi.ffi_call("rms_norm", shapes, vmap_method="broadcast_all")
    y, _ = jax.jit(lambda x: call(x, eps=np.float32(0)))(x)
    expected = x / np.sqrt((x**2).mean(axis=1, keepdims=True))
    np.testing.assert_allclose(y, expected, rtol=1e-6)
    text = refusal(lambda x: call(x, eps=np.float64(0)), x.astype(np.float64))
    assert "argument 0 `x`: expected f32, got f64 [2, 3]; attribute `eps`: expected f32" in text, (
        text
    )


def check_state(lapax: ctypes.CDLL) -> None:
    function = ctypes.CFUNCTYPE(
        ctypes.c_int,
        ctypes.c_void_p,
        ctypes.POINTER(Operand),
        ctypes.c_size_t,
        ctypes.POINTER(Operand),
        ctypes.c_size_t,
        ctypes.c_void_p,
        ctypes.c_size_t,
    )

    @function
    def reverse(_, args, arg_count, rets, ret_count, error, error_size):
        values = (ctypes.c_double * 4).from_address(args[0].data)
        (ctypes.c_double * 4).from_address(rets[0].data)[:] = values[::-1]
        return 0

    lapax.lapax_callback_new.restype = ctypes.c_int64
    lapax.lapax_callback_release.argtypes = (ctypes.c_int64,)
    lapax.lapax_callback_held.argtypes = (ctypes.c_int64,)
    number = lapax.lapax_callback_new(reverse, None, None)
    call = jax.ffi.ffi_call("lapax_host_callback", jax.ShapeDtypeStruct((4,), np.float64))
    x = np.arange(4.0)
    program = jax.jit(lambda x: call(x, callback=np.int64(number))).lower(x).compile()
    lapax.lapax_callback_release(number)
    assert lapax.lapax_callback_held(number) == 1, "the program holds it"
    np.testing.assert_array_equal(program(x), x[::-1])
    del program
    jax.clear_caches()
    gc.collect()
    assert lapax.lapax_callback_held(number) == 0, "nobody holds it"
    text = refusal(lambda x: call(x, callback=np.int64(number)), x)
    assert "it was dropped before the program was compiled" in text, text


def check_targets() -> None:
    rng = np.random.default_rng(0)
    g = rng.standard_normal((2000, 12, 12))
    a = g @ g.swapaxes(1, 2) + 12 * np.eye(12)
    shapes = jax.ShapeDtypeStruct(a.shape, a.dtype), jax.ShapeDtypeStruct((2000,), np.int32)
    layouts = {"input_layouts": [(0, 2, 1)], "output_layouts": [(0, 2, 1), None]}
    call = jax.ffi.ffi_call("lapax.lapack_dpotrf_ffi", shapes, **layouts)
    factor, info = jax.jit(lambda a: call(a, uplo=np.uint8(ord("L"))))(a)
    factor = np.tril(factor)
    assert not np.any(info)
    np.testing.assert_allclose(factor @ factor.swapaxes(1, 2), a, atol=1e-12)
    n = 4
    sparse = np.arange(1.0, n + 1), np.arange(n + 1, dtype=np.int32), np.arange(n, dtype=np.int32)
    out = jax.ShapeDtypeStruct((n,), np.float64)
    product = jax.ffi.ffi_call("lapax.cpu_csr_sparse_dense_ffi", out)
    got = jax.jit(product)(*map(jnp.asarray, sparse), jnp.ones(n))
    np.testing.assert_array_equal(got, sparse[0])


def main(lapax_path: str, custom_path: str) -> None:
    lapax, custom = ctypes.CDLL(lapax_path), ctypes.CDLL(custom_path)
    register(lapax, custom)
    check_custom_target()
    check_state(lapax)
    check_targets()
    print(f"jaxlib {jaxlib.__version__}: all right")


if __name__ == "__main__":
    main(*sys.argv[1:])
