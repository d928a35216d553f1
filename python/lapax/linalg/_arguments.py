"""What all functions of `lapax.linalg` do with their arguments: dtypes, shapes, batches, errors."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lapax._settings import own_settings

Array = jax.Array


def operation(*arrays: str, jit: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes a function of arrays in one of the four scalars public.

    `arrays` names the parameters that are arrays, tuples of them, or None; they reach the function
    in their common inexact dtype (integers count as the default float). All others are static.
    The public function has one more keyword, `compute_dtype`: what it is computed in, after which
    inexact results are rounded once to the dtype of the arguments. 16-bit arguments need it. With
    `jit=False` the function sees concrete values where it is called with them.

    The public function raises ValueError for a 16-bit dtype without `compute_dtype`, and
    TypeError for arguments that the signature lacks.
    """

    def public(function: Callable[..., Any]) -> Callable[..., Any]:
        name, signature = function.__name__, inspect.signature(function)
        static = [parameter for parameter in signature.parameters if parameter not in arrays]
        inner = jax.jit(function, static_argnames=static) if jit else function

        @functools.wraps(function)
        def call(*args: Any, compute_dtype: Any = None, **kwargs: Any) -> Any:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{name}: {error}") from None
            given = {
                key: jax.tree.map(jnp.asarray, bound.arguments[key], is_leaf=_is_array)
                for key in arrays
                if key in bound.arguments
            }
            of_arguments, computed = _dtypes(name, jax.tree.leaves(given), compute_dtype)
            bound.arguments.update(jax.tree.map(lambda leaf: leaf.astype(computed), given))
            with own_settings():
                results = inner(*bound.args, **bound.kwargs)
            if computed == of_arguments:
                return results
            return jax.tree.map(lambda result: _rounded(result, of_arguments), results)

        keyword = inspect.Parameter("compute_dtype", inspect.Parameter.KEYWORD_ONLY, default=None)
        parameters = [*signature.parameters.values(), keyword]
        call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return call

    return public


def _is_array(value: Any) -> bool:
    """Whether it is one array: nested lists of numbers are, tuples hold several."""
    return value is not None and not isinstance(value, tuple)


def _dtypes(function: str, arrays: list[Array], compute_dtype: Any) -> tuple[Any, Any]:
    """The dtype that results are rounded to, and the one that they are computed in."""
    # Integers, as permutations are, say nothing of the precision.
    numbers = [a for a in arrays if jnp.issubdtype(a.dtype, np.inexact)]
    common = jnp.result_type(*numbers) if numbers else jnp.result_type(float)
    if compute_dtype is None:
        if common.itemsize < 4:
            raise ValueError(
                f"{function}: arrays of dtype {common} are computed in a wider one, which "
                "compute_dtype names: expected float32 or float64, got None"
            )
        return common, common
    wanted = np.dtype(compute_dtype)
    if wanted not in map(np.dtype, (np.float32, np.float64, np.complex64, np.complex128)):
        raise ValueError(
            f"{function}: compute_dtype: expected float32, float64, complex64 or complex128, "
            f"got {compute_dtype!r}"
        )
    if common.kind == "c" and wanted.kind == "f":
        wanted = np.result_type(wanted, np.complex64)
    canonical = jax.dtypes.canonicalize_dtype(wanted)
    if canonical != wanted:
        raise ValueError(f"{function}: compute_dtype {wanted} needs jax_enable_x64")
    return common, canonical


def _rounded(result: Array, dtype: Any) -> Array:
    """An inexact result in the precision of `dtype`, real or complex as it is itself."""
    if not jnp.issubdtype(result.dtype, np.inexact):
        return result
    if jnp.issubdtype(result.dtype, np.complexfloating):
        return result.astype(np.result_type(dtype, np.complex64) if dtype.itemsize > 2 else "c8")
    return result.astype(real_dtype(dtype))


def real_dtype(dtype: Any) -> Any:
    """The dtype of an absolute value."""
    dtype = np.dtype(dtype)
    return np.finfo(dtype).dtype if dtype.kind == "c" else dtype


def complex_dtype(dtype: Any) -> Any:
    """The complex dtype of the same precision."""
    return jnp.result_type(dtype, np.complex64)


def adjoint(a: Array) -> Array:
    """The conjugate transpose of each matrix."""
    return jnp.conj(jnp.swapaxes(a, -1, -2))


def check_matrix(function: str, **arrays: Array) -> None:
    """Raises ValueError unless each array is a matrix or a batch of them."""
    for name, a in arrays.items():
        if a.ndim < 2:
            raise ValueError(f"{function}: {name}: expected shape [..., m, n], got {list(a.shape)}")


def check_square(function: str, **arrays: Array) -> None:
    """Raises ValueError unless each array is a square matrix or a batch of them."""
    for name, a in arrays.items():
        if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
            raise ValueError(f"{function}: {name}: expected shape [..., n, n], got {list(a.shape)}")


def check_size(function: str, name: str, what: str, got: int, expected: int) -> None:
    """Raises ValueError unless a dimension (`what`, such as "rows") has the expected size."""
    if got != expected:
        raise ValueError(f"{function}: {name}: expected {expected} {what}, got {got}")


def check_choice(function: str, name: str, value: Any, choices: tuple[Any, ...]) -> None:
    """Raises ValueError unless a static argument is one of those that it can be."""
    if value not in choices:
        expected = ", ".join(map(repr, choices))
        raise ValueError(f"{function}: {name}: expected one of {expected}, got {value!r}")


def check_driver(function: str, driver: Any, choices: tuple[str, ...]) -> None:
    """Raises as SciPy does unless `lapack_driver`, which means nothing here, names one of these."""
    if not isinstance(driver, str):
        raise TypeError(f"{function}: lapack_driver: expected a string, got {driver!r}")
    check_choice(function, "lapack_driver", driver, choices)


def same_batch(function: str, **operands: tuple[Array, int]) -> list[Array]:
    """Arrays with their leading dimensions broadcast together.

    Each operand is given with the number of its last dimensions that are its own. Raises
    ValueError where the others do not broadcast.
    """
    batches = [a.shape[: a.ndim - own] for a, own in operands.values()]
    try:
        batch = np.broadcast_shapes(*batches)
    except ValueError:
        found = ", ".join(
            f"{name} {list(shape)}" for name, shape in zip(operands, batches, strict=True)
        )
        raise ValueError(f"{function}: batch dimensions do not broadcast: {found}") from None
    return [jnp.broadcast_to(a, (*batch, *a.shape[a.ndim - own :])) for a, own in operands.values()]


def right_hand_sides(
    function: str, b: Array, n: int, vector: bool, name: str = "b"
) -> tuple[Array, Callable[[Array], Array]]:
    """`b` as matrices [..., n, k], and what gives a solution the form of `b`.

    `vector` says that the last dimension of `b` is n and there is one right-hand side. Raises
    ValueError where n is another.
    """
    if vector:
        if b.ndim < 1 or b.shape[-1] != n:
            raise ValueError(f"{function}: {name}: expected shape [..., {n}], got {list(b.shape)}")
        return b[..., None], lambda x: x[..., 0]
    if b.ndim < 2 or b.shape[-2] != n:
        raise ValueError(f"{function}: {name}: expected shape [..., {n}, k], got {list(b.shape)}")
    return b, lambda x: x


def random_key(rng: Any) -> Array:
    """The key that a function was given, or the one that an integer makes."""
    integer = jnp.ndim(rng) == 0 and jnp.issubdtype(jnp.asarray(rng).dtype, jnp.integer)
    key: Array = jax.random.key(rng) if integer else rng
    return key


def outside_jit(function: str, argument: str, *arrays: Any) -> None:
    """Raises ValueError under jit, where a shape would depend on values that are not known yet."""
    if any(isinstance(array, jax.core.Tracer) for array in arrays):
        raise ValueError(
            f"{function}: the shape of its result depends on values, which are not known under "
            f"jit, vmap or grad: pass {argument}"
        )
