"""`host_callback`: a function of the user's, in Python or native, inside a compiled program.

The library keeps the function under a number; a program holds it from its compilation on, so that
it lives as long as the programs that call it. A traced, uncompiled program holds it by its handle.
"""

from __future__ import annotations

import ctypes
import functools
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax.extend.core import Primitive

from lapax import _jax_private, _library
from lapax._call import in_front

TARGET = "lapax_host_callback"
_METHODS = ("sequential", "expand_dims", "broadcast_all")

_DTYPES = {
    1: np.bool_,
    2: np.int8,
    3: np.int16,
    4: np.int32,
    5: np.int64,
    6: np.uint8,
    7: np.uint16,
    8: np.uint32,
    9: np.uint64,
    10: np.float16,
    11: np.float32,
    12: np.float64,
    15: np.complex64,
    16: ml_dtypes.bfloat16,
    18: np.complex128,
}
"""XLA's numbers of element types."""


class _Operand(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
        ("rank", ctypes.c_int64),
        ("dtype", ctypes.c_uint32),
    )


_Native = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.POINTER(_Operand),
    ctypes.c_size_t,
    ctypes.POINTER(_Operand),
    ctypes.c_size_t,
    ctypes.POINTER(ctypes.c_char),
    ctypes.c_size_t,
)
"""lapax_function of lapax.h."""

_CFunction: Any = ctypes.CFUNCTYPE(None).__mro__[1]
"""What all functions of ctypes are."""

_trampolines: dict[int, Any] = {}
"""What C calls for a Python function, as long as somebody may call it, by number."""


class Handle:
    """A function that the library keeps: as long as this lives, and as long as programs hold it."""

    def __init__(self, function: Any) -> None:
        """`function` is a Python callable, or native: see `host_callback`."""
        library = _library.loaded()
        for number in [n for n in _trampolines if not library.lapax_callback_held(n)]:
            del _trampolines[number]
        address, keep = _native(function)
        self._release = library.lapax_callback_release
        self.number: int = library.lapax_callback_new(address, None, None)
        if not self.number:
            raise ValueError(f"host_callback: {function!r} has a null address")
        if keep is not None:
            _trampolines[self.number] = keep

    def __del__(self) -> None:
        """Programs that hold the function go on."""
        if number := getattr(self, "number", 0):
            self._release(number)


def host_callback(
    function: Any, result_shapes: Any, *args: Any, vmap_method: str | None = None
) -> Any:
    """Calls a function of the user's from a compiled program, on the CPU or CUDA.

    Args:
        function: a Python callable that takes NumPy arrays (arguments are read-only and live during
            the call) and returns what `result_shapes` describes; or a native function with the
            signature of `lapax_function` in lapax.h: a ctypes function, an address, or an object
            with an `address`, such as Numba's `cfunc`. It must depend on its arguments alone: XLA
            may call it more or less often than the program says, and from several threads.
        result_shapes: a `jax.ShapeDtypeStruct`, or a pytree of them.
        args: pytrees of arrays. A native function gets their leaves in order.
        vmap_method: as for `jax.pure_callback`: "sequential" calls once for each, "expand_dims" and
            "broadcast_all" once with leading dimensions; None refuses to be vmapped.

    Returns:
        A pytree of arrays as `result_shapes` has it.

    Raises:
        ValueError: an unknown vmap_method.

    An exception in Python, or an error of a native function, becomes an XLA error with its text.
    The function must not call JAX. On CUDA it gets copies of the arguments in the host's memory;
    the call waits for them, and for the function. Programs with callbacks are of this process: they
    cannot be exported. Not differentiable: use jax.custom_jvp or jax.custom_vjp.
    """
    if vmap_method is not None and vmap_method not in _METHODS:
        raise ValueError(f"host_callback: vmap_method is one of {_METHODS}, got {vmap_method!r}")
    leaves, tree = jax.tree.flatten(args)
    shapes, result_tree = jax.tree.flatten(result_shapes)
    handle = Handle(function if _is_native(function) else _flat(function, tree, result_tree))
    results = callback_p.bind(
        *map(jnp.asarray, leaves),
        handle=handle,
        shapes=tuple((tuple(s.shape), np.dtype(s.dtype)) for s in shapes),
        vmap_method=vmap_method,
    )
    return jax.tree.unflatten(result_tree, results)


def _flat(function: Callable[..., Any], tree: Any, result_tree: Any) -> Callable[..., Any]:
    """The function on leaves."""

    def flat(*leaves: np.ndarray[Any, Any]) -> list[Any]:
        results = function(*jax.tree.unflatten(tree, leaves))
        flattened, got = jax.tree.flatten(results)
        if got != result_tree:
            raise TypeError(f"expected results of structure {result_tree}, got {got}")
        return flattened

    return flat


def _is_native(function: Any) -> bool:
    return isinstance(function, int | _CFunction) or hasattr(function, "address")


def _native(function: Any) -> tuple[int, Any]:
    """The address of a function, and what must be kept alive for it."""
    if isinstance(function, int):
        return function, None
    if isinstance(function, _CFunction):
        return ctypes.cast(function, ctypes.c_void_p).value or 0, function
    if _is_native(function):
        return int(function.address), function
    trampoline = _Native(functools.partial(_call, function))
    return ctypes.cast(trampoline, ctypes.c_void_p).value or 0, trampoline


def _call(
    function: Callable[..., Any],
    _: Any,
    args: Any,
    arg_count: int,
    rets: Any,
    ret_count: int,
    error: Any,
    error_size: int,
) -> int:
    """What C calls. Never raises: ctypes would print it and go on."""
    try:
        results = function(*(_array(args[i], writeable=False) for i in range(arg_count)))
        if len(results) != ret_count:
            raise ValueError(f"expected {ret_count} results, got {len(results)}")
        for i, result in enumerate(results):
            into, value = _array(rets[i], writeable=True), np.asarray(result)
            if value.shape != into.shape or value.dtype != into.dtype:
                raise ValueError(
                    f"result {i}: expected {into.dtype} {into.shape}, got {value.dtype} "
                    f"{value.shape}"
                )
            into[...] = value
    except BaseException as exception:  # It belongs to the program that called.
        lines = traceback.format_exception(exception)
        text = f"{lines[-1].strip()}\n{''.join(lines)}".encode(errors="replace")
        text = text.replace(b"\0", b"?")[: error_size - 1] + b"\0"
        ctypes.memmove(error, text, len(text))
        return 1
    return 0


def _array(operand: Any, *, writeable: bool) -> np.ndarray[Any, Any]:
    dtype = np.dtype(_DTYPES[operand.dtype])
    shape = tuple(operand.dims[i] for i in range(operand.rank))
    size = dtype.itemsize
    for n in shape:
        size *= n
    if size == 0:
        return np.empty(shape, dtype)
    memory = (ctypes.c_char * size).from_address(operand.data)
    array = np.frombuffer(memory, dtype).reshape(shape)
    array.flags.writeable = writeable
    return array


def _abstract(*avals: Any, handle: Handle, shapes: Any, vmap_method: Any) -> Sequence[Any]:
    del avals, handle, vmap_method
    return [jax.core.ShapedArray(shape, dtype) for shape, dtype in shapes]


def _batched(axis: Any, args: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
    method, shapes = params["vmap_method"], params["shapes"]
    if method is None:
        raise NotImplementedError(
            f"host_callback: vmap needs a vmap_method; expected one of {', '.join(_METHODS)}"
        )
    if method == "sequential":
        mapped = [dim is not None for dim in dims]
        moved = [
            jnp.moveaxis(arg, dim, 0) if m else arg
            for arg, dim, m in zip(args, dims, mapped, strict=True)
        ]

        def one(slices: Sequence[Any]) -> Any:
            given = iter(slices)
            full = [next(given) if m else arg for arg, m in zip(moved, mapped, strict=True)]
            return callback_p.bind(*full, **params)

        results = jax.lax.map(one, [arg for arg, m in zip(moved, mapped, strict=True) if m])
        return results, (0,) * len(results)
    if method == "broadcast_all":
        given = in_front(axis, args, dims)
    else:
        given = [
            jnp.expand_dims(arg, 0) if dim is None else jnp.moveaxis(arg, dim, 0)
            for arg, dim in zip(args, dims, strict=True)
        ]
    shapes = tuple(((axis.size, *shape), dtype) for shape, dtype in shapes)
    results = callback_p.bind(*given, **{**params, "shapes": shapes})
    return results, (0,) * len(results)


def _lower(ctx: Any, *operands: Any, handle: Handle, shapes: Any, vmap_method: Any) -> Any:
    del shapes, vmap_method
    if _jax_private.for_export(ctx):
        raise ValueError(
            "a program with lapax.host_callback cannot be exported: the function it calls exists "
            "in this process alone"
        )
    rule = jax.ffi.ffi_lowering(TARGET)
    return rule(ctx, *operands, callback=np.int64(handle.number))


def _no_derivative(*_: Any, **__: Any) -> Any:
    raise NotImplementedError(
        "lapax.host_callback cannot be differentiated; define its derivative with jax.custom_jvp "
        "or jax.custom_vjp"
    )


callback_p = Primitive(TARGET)
callback_p.multiple_results = True
callback_p.def_impl(_jax_private.eager(callback_p))
callback_p.def_abstract_eval(_abstract)
_jax_private.without_derivative(callback_p, _no_derivative)
_jax_private.batch_by(callback_p, _batched)
for _platform in ("cpu", "cuda"):
    _jax_private.lower_by(callback_p, _lower, _platform)


def register() -> None:
    """The target's two stages, under its bare name: no other library has it."""
    library = _library.loaded()
    execute = {
        "cpu": library.lapax_callback_handler(0),
        "CUDA": library.lapax_callback_device_handler(),
    }
    for platform, address in execute.items():
        if address:
            stages = {"instantiate": library.lapax_callback_handler(1), "execute": address}
            capsules = {
                stage: jax.ffi.pycapsule(ctypes.c_void_p(at)) for stage, at in stages.items()
            }
            jax.ffi.register_ffi_target(TARGET, capsules, platform=platform)
