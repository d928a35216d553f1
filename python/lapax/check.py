"""What a correct answer of each op is: inputs, attributes, flop count and residual ratio.

The doctor, the benchmarks and the tests take their cases from here. An op is keyed by its name in
the table of targets (`getrf`, `trsm`, …). Only NumPy is used: nothing here knows JAX or a handler.

A residual ratio is LAPACK's: the error of the defining equation over the norm of the data and the
unit roundoff u = ε/2, by matrix and in double precision, so that one limit serves every dtype,
size and condition. `ratio < LIMIT` is the test, so that NaN fails.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lapax._table import Signature

Array = npt.NDArray[Any]
Attrs = Mapping[str, Any]

LIMIT = 30.0
"""The limit of LAPACK's own test programs; a wrong digit exceeds it by orders of magnitude."""


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


@dataclass(frozen=True)
class Case:
    """One call of a target: operands in the target's order, attributes, and free dimensions."""

    op: str
    size: Size
    args: tuple[Array, ...]
    attrs: dict[str, Any]
    dims: dict[str, int]
    """Values of the dimensions that no operand fixes."""

    @property
    def flops(self) -> float:
        """Real additions and multiplications of the whole batch."""
        complex_cost = 4 if self.args[0].dtype.kind == "c" else 1
        return self.size.count * complex_cost * CHECKS[self.op].flops(self.size, self.attrs)

    def ratio(self, rets: Iterable[Any]) -> float:
        """The largest residual ratio over the batch; inf where a result is wrong by definition."""
        return float(np.max(self.ratios(rets), initial=0.0))

    def ratios(self, rets: Iterable[Any]) -> Array:
        """The residual ratio of each matrix, shaped like the batch."""
        results = [np.asarray(ret) for ret in rets]
        with np.errstate(all="ignore"):
            return CHECKS[self.op].ratios(self.args, self.attrs, results)

    def moved(self, rets: Iterable[Any]) -> int:
        """Bytes of all operands and results, each read or written once."""
        return sum(x.nbytes for x in self.args) + sum(int(ret.nbytes) for ret in rets)


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
    dims: Callable[[Size], dict[str, int]] = lambda _: {}
    """Dimensions that no operand fixes."""
    rectangular: bool = False
    """Whether m ≠ n is meaningful."""


def case(
    op: str,
    dtype: npt.DTypeLike,
    n: int,
    *,
    m: int | None = None,
    batch: tuple[int, ...] = (),
    attrs: Attrs | None = None,
    seed: int = 0,
) -> Case:
    """A reproducible case of `op` for operands of `dtype`; KeyError where the op has no check.

    `dtype` is that of the floating operands; `attrs` is one of `modes(signature)`.
    """
    check, size, mode = CHECKS[op], Size(n if m is None else m, n, batch), dict(attrs or {})
    args = check.inputs(np.random.default_rng(seed), np.dtype(dtype), size, mode)
    return Case(op, size, args, mode, check.dims(size))


def modes(signature: Signature) -> list[dict[str, Any]]:
    """Every combination of a target's coded attributes, with U8 codes as values.

    Optional attributes are left out. A required attribute without codes has no finite set of
    values and raises ValueError.
    """
    choices = []
    for attr in signature.attrs:
        if attr.codes:
            choices.append([(attr.name, np.uint8(code.code)) for code in attr.codes])
        elif not attr.optional:
            raise ValueError(f"attribute {attr.name} of type {attr.type} has no codes")
    return [dict(combination) for combination in itertools.product(*choices)]


# What the equations below are written with.


def _normal(rng: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """Independent standard normal entries, both parts of a complex one."""
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype.kind == "c" else x).astype(dtype)


def _wide(x: Array) -> Array:
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def _adjoint(x: Array) -> Array:
    return x.conj().swapaxes(-1, -2)


def _norm(x: Array) -> Array:
    """‖x‖₁ of each matrix."""
    return np.asarray(np.abs(x).sum(-2).max(-1, initial=0.0))


def _roundoff(x: Array) -> float:
    return float(np.finfo(x.dtype).eps) / 2


def _scaled(error: Array, scale: Array, n: int, like: Array) -> Array:
    """‖error‖ / (n·scale·u), 0 for an empty matrix."""
    if error.size == 0:
        return np.zeros(error.shape[:-2])
    return np.asarray(_norm(error) / (n * scale * _roundoff(like)))


def _unless(ok: Array, ratio: Array) -> Array:
    """The ratio, inf where a definition is violated."""
    return np.where(ok, ratio, np.inf)


def _triangle(x: Array, *, lower: bool, strict: bool = False) -> Array:
    """Where the named triangle of a square x is, without its diagonal where `strict`."""
    row, column = np.indices(x.shape[-2:])
    below, above = (row, column) if lower else (column, row)
    return np.asarray(below > above if strict else below >= above)


def _keep(x: Array, where: Array) -> Array:
    """x with NaN outside the named triangle: what a routine must not read."""
    return np.where(where, x, x.dtype.type(np.nan))


def _definite(rng: np.random.Generator, dtype: np.dtype[Any], size: Size) -> Array:
    """G·Gᴴ/n + I: Hermitian, eigenvalues between 1 and about 9 whatever n is."""
    g = _normal(rng, np.dtype(np.result_type(dtype, np.float64)), (*size.batch, size.n, size.n))
    a = g @ _adjoint(g) / max(size.n, 1) + np.eye(size.n)
    return np.asarray((a + _adjoint(a)) / 2)


# getrf: P·A = L·U with row swaps i ↔ ipiv[i], 1-based; |re|+|im| of no multiplier exceeds its
# pivot's, hence |l| ≤ √2.


def _getrf_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, _: Attrs
) -> tuple[Array, ...]:
    return (_normal(rng, dtype, (*size.batch, size.m, size.n)),)


def _getrf_ratios(args: tuple[Array, ...], _: Attrs, rets: list[Array]) -> Array:
    (a,), (lu, ipiv, info) = args, rets
    (m, n), k = a.shape[-2:], ipiv.shape[-1]
    swaps = ipiv.astype(np.int64) - 1
    inside = np.all((np.arange(k) <= swaps) & (swaps < m), axis=-1)
    perm = _swapped(np.clip(swaps, 0, max(m - 1, 0)), m)
    lower = np.tril(_wide(lu)[..., :, :k], -1) + np.eye(m, k)
    upper = np.triu(_wide(lu)[..., :k, :])
    error = lower @ upper - np.take_along_axis(_wide(a), perm[..., None], axis=-2)
    bounded = np.all(np.abs(lower) <= math.sqrt(2) * (1 + 16 * _roundoff(a)), axis=(-2, -1))
    return _unless(inside & bounded & (info == 0), _scaled(error, _norm(_wide(a)), n, a))


def _getrf_flops(size: Size, _: Attrs) -> float:
    m, n, k = size.m, size.n, min(size.m, size.n)
    return 2 * m * n * k - (m + n) * k**2 + 2 * k**3 / 3


# lu_pivots_to_permutation: swaps i ↔ pivots[i] in order, 0-based, on the identity of length p = m.


def _permutation_inputs(
    rng: np.random.Generator, _: np.dtype[Any], size: Size, _attrs: Attrs
) -> tuple[Array, ...]:
    return (rng.integers(np.arange(size.n), size.m, (*size.batch, size.n), dtype=np.int32),)


def _permutation_ratios(args: tuple[Array, ...], _: Attrs, rets: list[Array]) -> Array:
    (pivots,), (perm,) = args, rets
    same = np.all(perm == _swapped(pivots, perm.shape[-1]), axis=-1)
    return _unless(same, np.zeros(same.shape))


def _swapped(swaps: Array, length: int) -> Array:
    """The identity permutation of `length` after the swaps i ↔ swaps[i], in order."""
    perm = np.broadcast_to(np.arange(length), (*swaps.shape[:-1], length)).copy()
    for i in range(swaps.shape[-1]):
        other = swaps[..., i : i + 1]
        there = np.take_along_axis(perm, other, axis=-1)
        np.put_along_axis(perm, other, perm[..., i : i + 1].copy(), axis=-1)
        perm[..., i : i + 1] = there
    return perm


# potrf: A = L·Lᴴ or Uᴴ·U from the named triangle; the other one is passed through.


def _potrf_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, attrs: Attrs
) -> tuple[Array, ...]:
    a = _definite(rng, dtype, size).astype(dtype)
    return (_keep(a, _triangle(a, lower=_is(attrs, "uplo", "L"))),)


def _potrf_ratios(args: tuple[Array, ...], attrs: Attrs, rets: list[Array]) -> Array:
    (a,), (factor, info) = args, rets
    lower = _is(attrs, "uplo", "L")
    named = _triangle(a, lower=lower)
    half = np.where(_triangle(a, lower=lower, strict=True), _wide(a), 0)
    diagonal = np.where(np.eye(a.shape[-1], dtype=bool), _wide(a).real, 0)
    whole = half + _adjoint(half) + diagonal
    f = np.where(named, _wide(factor), 0)
    error = (f @ _adjoint(f) if lower else _adjoint(f) @ f) - whole
    untouched = np.all(named | np.isnan(factor), axis=(-2, -1))
    return _unless(untouched & (info == 0), _scaled(error, _norm(whole), a.shape[-1], a))


# cholesky_update: R′ᴴ·R′ = Rᴴ·R + w·wᴴ, R and R′ upper triangular; the second result is scratch.


def _update_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, _: Attrs
) -> tuple[Array, ...]:
    r = _adjoint(np.linalg.cholesky(_definite(rng, dtype, size)))
    return np.triu(r).astype(dtype), _normal(rng, dtype, (*size.batch, size.n))


def _update_ratios(args: tuple[Array, ...], _: Attrs, rets: list[Array]) -> Array:
    r, w = (_wide(x) for x in args)
    updated = _wide(np.triu(rets[0]))
    expected = _adjoint(r) @ r + w[..., :, None] * w[..., None, :].conj()
    error = _adjoint(updated) @ updated - expected
    return _scaled(error, _norm(expected), r.shape[-1], args[0])


# trsm: op(A)·X = B or X·op(A) = B, A triangular, with ones for its diagonal where diag is 'U'.


def _trsm_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, attrs: Attrs
) -> tuple[Array, ...]:
    n = size.m if _is(attrs, "side", "L") else size.n
    a = _normal(rng, dtype, (*size.batch, n, n)) / dtype.type(max(n, 1))
    a = (a + np.eye(n)).astype(dtype)
    b = _normal(rng, dtype, (*size.batch, size.m, size.n))
    return _keep(a, _trsm_triangle(a, attrs)), b


def _trsm_ratios(args: tuple[Array, ...], attrs: Attrs, rets: list[Array]) -> Array:
    a, b, x = (_wide(y) for y in (*args, rets[0]))
    t = np.where(_trsm_triangle(a, attrs), a, 0)
    t = t + np.eye(t.shape[-1]) if _is(attrs, "diag", "U") else t
    t = t.swapaxes(-1, -2) if not _is(attrs, "trans_x", "N") else t
    t = t.conj() if _is(attrs, "trans_x", "C") else t
    error = (t @ x if _is(attrs, "side", "L") else x @ t) - b
    return _scaled(error, _norm(t) * _norm(x), 1, args[0])


def _trsm_triangle(a: Array, attrs: Attrs) -> Array:
    return _triangle(a, lower=_is(attrs, "uplo", "L"), strict=_is(attrs, "diag", "U"))


def _trsm_flops(size: Size, attrs: Attrs) -> float:
    return size.m * size.n * (size.m if _is(attrs, "side", "L") else size.n)


def _is(attrs: Attrs, name: str, code: str) -> bool:
    return int(attrs[name]) == ord(code)


CHECKS: dict[str, Check] = {
    "getrf": Check(_getrf_inputs, _getrf_ratios, _getrf_flops, rectangular=True),
    "lu_pivots_to_permutation": Check(
        _permutation_inputs,
        _permutation_ratios,
        lambda size, attrs: 0.0,
        dims=lambda size: {"p": size.m},
    ),
    "potrf": Check(_potrf_inputs, _potrf_ratios, lambda size, attrs: size.n**3 / 3),
    "cholesky_update": Check(_update_inputs, _update_ratios, lambda size, attrs: 3 * size.n**2),
    "trsm": Check(_trsm_inputs, _trsm_ratios, _trsm_flops, rectangular=True),
}
"""The check of each op, keyed by the op's name in the table of targets."""
