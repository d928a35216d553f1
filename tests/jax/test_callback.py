"""host_callback: Python and native functions in compiled programs, their errors and their lives."""

from __future__ import annotations

import ctypes
import gc

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

import lapax
from lapax import _callback, _library
from programs import run_python

X = np.arange(6, dtype=np.float32).reshape(2, 3)
LIKE = jax.ShapeDtypeStruct((2, 3), np.float32)


def held(number):
    return bool(_library.loaded().lapax_callback_held(number))


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_a_python_function(transform):
    shapes = {"y": LIKE, "s": jax.ShapeDtypeStruct((), np.int32)}

    def host(x, scale):
        assert not x["x"].flags.writeable
        return {"y": x["x"] * scale, "s": np.int32(x["x"].size)}

    f = transform(lambda x, scale: lapax.host_callback(host, shapes, {"x": x}, scale))
    got = f(X, np.float32(3))
    np.testing.assert_array_equal(got["y"], 3 * X)
    assert got["s"] == 6


@pytest.mark.parametrize(
    "dtype", [np.bool_, np.int8, np.uint16, np.int64, np.complex128, "bfloat16"]
)
def test_element_types(dtype):
    with jax.enable_x64(True):
        x = jnp.asarray(X % 2).astype(dtype)
        got = lapax.host_callback(lambda x: x, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
        np.testing.assert_array_equal(got, x)
        empty = jnp.zeros((0, 3), dtype)
        shape = jax.ShapeDtypeStruct((0, 3), empty.dtype)
        assert lapax.host_callback(lambda x: x, shape, empty).shape == (0, 3)


@pytest.mark.parametrize("method", ["sequential", "expand_dims", "broadcast_all"])
def test_vmap(method):
    seen = []

    def host(x, y):
        seen.append((x.shape, y.shape))
        return x + y

    def f(x, y):
        return lapax.host_callback(host, LIKE, x, y, vmap_method=method)

    many = np.stack([X, X + 1, X + 2])
    np.testing.assert_array_equal(jax.jit(jax.vmap(f, (0, None)))(many, X), many + X)
    np.testing.assert_array_equal(jax.vmap(f, (None, 2))(X, np.moveaxis(many, 0, 2)), many + X)
    expected = {
        "sequential": ((2, 3), (2, 3)),
        "expand_dims": ((3, 2, 3), (1, 2, 3)),
        "broadcast_all": ((3, 2, 3), (3, 2, 3)),
    }
    assert seen[0] == expected[method]
    assert len(seen) == (6 if method == "sequential" else 2)


def test_what_cannot_be_vmapped_exported_or_differentiated_says_so():
    def f(x):
        return lapax.host_callback(lambda x: x, LIKE, x)

    with pytest.raises(NotImplementedError, match="vmap needs a vmap_method"):
        jax.vmap(f)(X[None])
    with pytest.raises(ValueError, match="cannot be exported"):
        jax.export.export(jax.jit(f), disabled_checks=lapax.export_safety_checks())(X)
    with pytest.raises(NotImplementedError, match="custom_jvp"):
        jax.grad(lambda x: f(x).sum())(X)
    with pytest.raises(ValueError, match="vmap_method is one of"):
        lapax.host_callback(lambda x: x, LIKE, X, vmap_method="often")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda x: x[:1], "expected float32 (2, 3), got float32 (1, 3)"),
        (lambda x: x.astype(np.float64), "expected float32 (2, 3), got float64 (2, 3)"),
        (lambda x: (x, x), "expected results of structure"),
        (lambda x: x.fill(0), "read-only"),
        (lambda x: (_ for _ in ()).throw(RuntimeError("nul \0 and ümlaut")), "nul ? and ümlaut"),
    ],
)
def test_exceptions_become_xla_errors(function, message):
    with pytest.raises(Exception, match="the callback failed") as raised:
        jax.block_until_ready(jax.jit(lambda x: lapax.host_callback(function, LIKE, x))(X))
    assert message in str(raised.value)
    assert "Traceback" in str(raised.value)


def test_a_ctypes_function():
    library = ctypes.CDLL(None)
    library.memcpy.restype = ctypes.c_void_p
    library.memcpy.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)

    @_callback._Native
    def copy(_, args, arg_count, rets, ret_count, error, error_size):
        if arg_count != 1:
            ctypes.memmove(error, b"one argument, please\0", 21)
            return 1
        library.memcpy(rets[0].data, args[0].data, 24)
        return 0

    address = ctypes.cast(copy, ctypes.c_void_p).value
    for function in (copy, address):
        got = jax.jit(lambda x, f=function: lapax.host_callback(f, LIKE, x))(X)
        np.testing.assert_array_equal(got, X)
        with pytest.raises(Exception, match="one argument, please"):
            jax.block_until_ready(lapax.host_callback(function, LIKE, X, X))
    with pytest.raises(ValueError, match="null address"):
        lapax.host_callback(0, LIKE, X)


def two_programs():
    """Two programs that call one function, and nothing else that holds it."""
    handle = _callback.Handle(lambda x: [x + 1])
    shapes = (((2, 3), np.dtype(np.float32)),)

    def f(x):
        return _callback.callback_p.bind(x, handle=handle, shapes=shapes, vmap_method=None)[0]

    return handle.number, [jax.jit(f).lower(X).compile() for _ in range(2)]


def test_programs_hold_the_function():
    number, compiled = two_programs()
    jax.clear_caches()
    gc.collect()
    assert held(number)
    np.testing.assert_array_equal(compiled.pop()(X), X + 1)
    gc.collect()
    assert held(number), "by the other program"
    np.testing.assert_array_equal(compiled.pop()(X), X + 1)
    gc.collect()
    assert not held(number)
    _callback.Handle(lambda x: [x])
    assert number not in _callback._trampolines


def test_a_number_of_another_process_is_refused_when_compiled():
    call = jax.ffi.ffi_call("lapax_host_callback", LIKE)
    with pytest.raises(Exception, match="no host callback 12345: it was dropped before"):
        jax.jit(lambda x: call(x, callback=np.int64(12345)))(X)


def test_many_threads_and_calls():
    code = """
import threading, jax, numpy as np, lapax
like = jax.ShapeDtypeStruct((4,), np.float32)
f = jax.jit(lambda x: lapax.host_callback(lambda x: x * 2, like, x))
x = np.arange(4, dtype=np.float32)
f(x)
def work():
    for _ in range(200):
        assert (np.asarray(f(x)) == 2 * x).all()
threads = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
print("done")
"""
    assert run_python(code) == "done\n"


def test_lowering_for_cuda():
    """With or without a GPU; the call is run on a fake device by the library's own tests."""
    f = jax.jit(lambda x: lapax.host_callback(np.sort, LIKE, x))
    text = f.trace(X).lower(lowering_platforms=("cuda",)).as_text()
    assert f"@{_callback.TARGET}(" in text
    assert _library.loaded().lapax_callback_device_handler()
