"""What a check is, and the matrix operations that residual ratios are written with."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Attrs = Mapping[str, Any]


@dataclass(frozen=True)
class Size:
    """Shape of a case: `batch` matrices, m by n; an op of square matrices reads only n."""

    m: int
    n: int
    batch: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        """The number of matrices."""
        return math.prod(self.batch)


Inputs = Callable[[np.random.Generator, np.dtype[Any], Size, Attrs], tuple[Array, ...]]
Ratios = Callable[[tuple[Array, ...], Attrs, list[Array]], Array]


@dataclass(frozen=True)
class Check:
    """What is to be known about one op."""

    inputs: Inputs
    """Operands of a well-conditioned case; what must not be read holds NaN."""
    ratios: Ratios
    """The residual ratio per matrix from operands, attributes and results."""
    flops: Callable[[Size, Attrs], float]
    """Floating-point operations on one real matrix."""
    dims: Callable[[Size, Attrs], dict[str, int]] = lambda size, attrs: {}
    """Dimensions that no operand fixes."""
    attrs: Callable[[Size], dict[str, Any]] = lambda _: {}
    """Required attributes that are neither codes nor bools."""
    rectangular: bool = False
    """Whether m ≠ n is meaningful."""


def normal(rng: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """Independent standard normal entries, both parts of a complex one."""
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype.kind == "c" else x).astype(dtype)


def wide(x: Array) -> Array:
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def adjoint(x: Array) -> Array:
    return x.conj().swapaxes(-1, -2)


def norm(x: Array) -> Array:
    """‖x‖₁ of each matrix."""
    return np.asarray(np.abs(x).sum(-2).max(-1, initial=0.0))


def roundoff(x: Array) -> float:
    return float(np.finfo(x.dtype).eps) / 2


def scaled(error: Array, scale: Array, n: int, like: Array) -> Array:
    """‖error‖ / (n·scale·u), 0 for an empty matrix."""
    if error.size == 0:
        return np.zeros(error.shape[:-2])
    return np.asarray(norm(error) / (n * scale * roundoff(like)))


def unless(ok: Array, ratio: Array) -> Array:
    """The ratio, inf where a definition is violated."""
    return np.where(ok, ratio, np.inf)


def triangle(x: Array, *, lower: bool, strict: bool = False) -> Array:
    """Where the named triangle of a square x is, without its diagonal where `strict`."""
    row, column = np.indices(x.shape[-2:])
    below, above = (row, column) if lower else (column, row)
    return np.asarray(below > above if strict else below >= above)


def keep(x: Array, where: Array) -> Array:
    """x with NaN outside the named triangle: what a routine must not read."""
    return np.where(where, x, x.dtype.type(np.nan))


def definite(rng: np.random.Generator, dtype: np.dtype[Any], size: Size) -> Array:
    """G·Gᴴ/n + I: Hermitian, eigenvalues between 1 and about 9 whatever n is."""
    g = normal(rng, np.dtype(np.result_type(dtype, np.float64)), (*size.batch, size.n, size.n))
    a = g @ adjoint(g) / max(size.n, 1) + np.eye(size.n)
    return np.asarray((a + adjoint(a)) / 2)


def code_is(attrs: Attrs, name: str, code: str) -> bool:
    return int(attrs[name]) == ord(code)
