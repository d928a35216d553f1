"""What examples/host reads beside a program: its arguments, and the answers to compare with.

The file holds the number of arguments and of answers, then each array; numbers little-endian,
counts and sizes i64. An array is its dtype in 8 bytes filled with zeros, how far it may be off
relative to its largest entry (f64), its rank, its sizes, its elements.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from lapax._install import installed
from lapax._lowering import dtype_name

Array = np.ndarray[Any, Any]

DTYPES = ("f32", "f64", "c64", "c128", "i32")
"""What the hosts know."""


def read(file: str) -> Array:
    """An operand from a .npy file. Raises ValueError where it is none."""
    try:
        array: Array = np.load(Path(file), allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise ValueError(f"{file} cannot be read: {error}") from error
    if dtype_name(array.dtype) not in DTYPES:
        known = ", ".join(DTYPES)
        raise ValueError(f"{file}: expected dtype {known}, got {dtype_name(array.dtype)}")
    return array


def filled(operands: Sequence[Any]) -> list[Array]:
    """The arrays among these as they are, and numbers for shapes: n·I + G with random G of size 1,
    of which systems and decompositions are well conditioned.

    Raises ValueError for a shape of a dtype whose numbers cannot be guessed.
    """
    return [
        _random(operand, seed) if isinstance(operand, jax.ShapeDtypeStruct) else operand
        for seed, operand in enumerate(operands, 1)
    ]


def _random(like: jax.ShapeDtypeStruct, seed: int) -> Array:
    if dtype_name(like.dtype) not in DTYPES or like.dtype.kind not in "fc":
        raise ValueError(
            f"no numbers are made up for {dtype_name(like.dtype)}{list(like.shape)}: "
            "give them as a .npy file"
        )
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(like.shape)
    if like.dtype.kind == "c":
        x = x + 1j * rng.standard_normal(like.shape)
    if x.ndim >= 2:
        n = max(like.shape[-2:])
        x = x + n * np.eye(*like.shape[-2:])
    return np.asarray(x, like.dtype)


def answered(function: Callable[..., Any], args: Sequence[Array]) -> list[Array]:
    """What the function answers on lapax, on this machine's CPU.

    Raises ValueError for an answer that the hosts do not know.
    """
    with installed(), jax.default_device(jax.devices("cpu")[0]):
        answers = [np.asarray(x) for x in jax.tree.leaves(jax.jit(function)(*args))]
    for answer in answers:
        if dtype_name(answer.dtype) not in DTYPES:
            got = dtype_name(answer.dtype)
            raise ValueError(f"an answer has dtype {got}; with data: {', '.join(DTYPES)}")
    return answers


def data(args: Sequence[Array], answers: Sequence[Array]) -> bytes:
    """The file. Answers may be off by what a backward stable method may on a well-conditioned
    matrix of the largest order among these, 100·n·ε; integers by nothing."""
    n = max((size for array in (*args, *answers) for size in array.shape[-2:]), default=1)
    parts = [struct.pack("<qq", len(args), len(answers))]
    parts += [_packed(array, 0.0) for array in args]
    for array in answers:
        exact = array.dtype.kind not in "fc"
        parts.append(_packed(array, 0.0 if exact else 100 * n * float(np.finfo(array.dtype).eps)))
    return b"".join(parts)


def _packed(array: Array, tolerance: float) -> bytes:
    head = struct.pack("<8sdq", dtype_name(array.dtype).encode(), tolerance, array.ndim)
    sizes = struct.pack(f"<{array.ndim}q", *array.shape)
    return head + sizes + np.ascontiguousarray(array).tobytes()
