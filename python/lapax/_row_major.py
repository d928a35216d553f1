"""The primitives that have row-major targets of their own: JAX's rules transpose before and after.

A target has its primitive's name and contract; here is what the primitive's parameters are as
attributes, and which calls stay with JAX's rule, on the CPU and on CUDA.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from lapax import _choices
from lapax._lowering import dtype_name, is_static

Attributes = Mapping[str, np.generic]

_SMALL = 64
"""The order up to which `solve` keeps no factors, and up to which a copy of an operand takes a good
part of a call's time."""

_SYMMETRIZED = 32
"""The order from which XLA hands a program that makes a Hermitian part to another thread, which a
call does without: `eigvalsh` of one of 32 in f64 takes 76 us so and 26 with a call, of 16 14 both
ways."""

_PARTS, _LARGE_PART = 1 << 18, 128
"""The elements of a batch up to which, and the order from which, the call is faster, too. XLA makes
those of many small matrices as it reads them: of 200 of 64 `eigvalsh` takes 4.8 ms and 5.1 with a
call, of 30 of 128 3.9 and 3.8, of 10 of 64 440 us and 410."""

_LARGE = 128 << 20
"""The bytes from which a result above that order lies where its operand does: memory for time. To
copy 32 MB takes one thread 2.4 ms, where `cholesky` of as much, n = 2048 in f64, takes 35."""


_FEW_THREADS, _LONG = 128, 512
"""Tridiagonal systems so few and so long that go to cuSPARSE, which works on one with many threads:
as `cuda/src/tridiagonal.rs` has it for jaxlib's call."""


_BLOCK = 64 << 10
"""The bytes of shared memory that a block has on every GPU: those of compute capability 7.5."""


def attributes(
    platform: str, name: str, avals: Sequence[Any], params: Mapping[str, Any]
) -> Attributes | None:
    """The attributes of the target for such operands; None where JAX's rule is to serve them."""
    if not all(is_static(aval.shape) for aval in avals):
        return None
    if platform == "cpu":
        slower, known = _SLOWER_ON_THE_CPU.get(name, _never), _ATTRIBUTES
    elif _is_by_qr(params):
        return None
    else:
        slower, known = functools.partial(_slower_on_cuda, name), _ATTRIBUTES | _ON_CUDA
    return None if slower(avals) else known[name](avals, params)


def held(name: str, avals: Sequence[Any]) -> bool:
    """Whether a target on CUDA is called for such operands, as far as their sizes say."""
    return not _slower_on_cuda(name, avals)


def _is_by_qr(params: Mapping[str, Any]) -> bool:
    """Whether another algorithm is asked for than the rotations of the kernels on CUDA."""
    return getattr(params.get("algorithm"), "name", None) in ("QR", "QDWH")


def _slower_on_cuda(name: str, avals: Sequence[Any]) -> bool:
    """Whether the table of choices ends below the first operand's order, or as an op's own rule."""
    if _SLOWER_ON_CUDA.get(name, _never)(avals):
        return True
    a, *_ = avals
    order, batch = max(a.shape[-2:]), math.prod(a.shape[:-2])
    return bool(order > _choices.largest(name, dtype_name(a.dtype), batch))


def _few_long_systems(avals: Sequence[Any]) -> bool:
    *_, b = avals
    *batch, m, nrhs = b.shape
    return bool(math.prod(batch) * min(nrhs, 32) < _FEW_THREADS and m >= _LONG)


def _always_slower(_: Sequence[Any]) -> bool:
    return True


def _beyond_rotations(avals: Sequence[Any]) -> bool:
    """Whether a block of some GPU cannot hold a matrix whose columns are rotated and the rotations,
    as `cuda/src/jacobi.rs` has it or a little more."""
    a, *_ = avals
    rows, columns = max(a.shape[-2:]), min(a.shape[-2:])
    elements = (rows + columns + 2) * columns + 6 * rows + 64
    return bool(elements * a.dtype.itemsize > _BLOCK)


def _beyond_small(avals: Sequence[Any]) -> bool:
    return bool(avals[0].shape[-1] > _SMALL)


def _made_as_read(avals: Sequence[Any]) -> bool:
    n, elements = avals[0].shape[-1], math.prod(avals[0].shape)
    return bool(n < _SYMMETRIZED or (elements > _PARTS and n < _LARGE_PART))


def _never(_: Sequence[Any]) -> bool:
    return False


_SLOWER_ON_THE_CPU: dict[str, Callable[[Sequence[Any]], bool]] = {
    "solve": _beyond_small,
    "symmetrize": _made_as_read,
}
"""Where a call on the CPU takes longer than what JAX makes of it."""

_SLOWER_ON_CUDA: dict[str, Callable[[Sequence[Any]], bool]] = {
    "svd": _beyond_rotations,
    "svdvals": _beyond_rotations,
    "symmetrize": _always_slower,
    "tridiagonal_solve": _few_long_systems,
}
"""The same on CUDA, besides what the table of choices says. XLA makes a Hermitian part as what
reads it wants it to lie."""


def in_place(platform: str, name: str, avals: Sequence[Any]) -> bool:
    """Whether a result is to lie where its operand does, for operands of static shapes.

    Else XLA allocates it, which takes memory; but an operand that is needed elsewhere, as every
    argument of a program is, XLA copies before a call in place, on one thread: what lapax copies,
    all threads do, and most of it as they come to it. That of `eigh` is no argument: JAX makes it,
    the mean of a matrix and its adjoint, unless it is told not to; on CUDA the target makes that.
    """
    if name == "eigh":
        return platform == "cpu"
    small = all(size <= _SMALL for aval in avals for size in aval.shape[-2:])
    return not small and any(math.prod(a.shape) * a.dtype.itemsize >= _LARGE for a in avals)


def _always(_: Sequence[Any], __: Mapping[str, Any]) -> Attributes:
    return {}


def _cholesky(_: Sequence[Any], params: Mapping[str, Any]) -> Attributes:
    return {"symmetrize": np.bool_(params.get("symmetrize_input", False))}


def _uplo(_: Sequence[Any], params: Mapping[str, Any]) -> Attributes:
    return {"uplo": np.uint8(ord("L" if params["lower"] else "U"))}


def _posv(_: Sequence[Any], params: Mapping[str, Any]) -> Attributes:
    return {**_uplo(_, params), "symmetrize": np.bool_(params["symmetrize_input"])}


def _eig(_: Sequence[Any], params: Mapping[str, Any]) -> Attributes | None:
    implementation = params.get("implementation")
    lapack = implementation is None or implementation.name == "LAPACK"
    return {} if lapack and not params["compute_left_eigenvectors"] else None


def _eigh(avals: Sequence[Any], params: Mapping[str, Any]) -> Attributes | None:
    if params["subset_by_index"] is not None:
        return None
    # Found by `_fused`, where the target makes the mean of its operand and the adjoint.
    mean = {"symmetrize": np.bool_(True)} if params.get("symmetrize_input") else {}
    return {**_uplo(avals, params), **mean}


def _eigh_subset(avals: Sequence[Any], params: Mapping[str, Any]) -> Attributes | None:
    part = _part(avals, params)
    return part and {**part, **_uplo(avals, params)}


def _part(avals: Sequence[Any], params: Mapping[str, Any]) -> Attributes | None:
    """From which place on; None where JAX's rule is to say that the range is not within all."""
    start, stop = params["subset_by_index"]
    if not 0 <= start <= stop <= min(avals[0].shape[-2:]):
        return None
    return {"start": np.int32(start)}


def _schur(_: Sequence[Any], params: Mapping[str, Any]) -> Attributes | None:
    return {} if params["compute_schur_vectors"] and not params["sort_eig_vals"] else None


def _svd(_: Sequence[Any], params: Mapping[str, Any]) -> Attributes | None:
    if not _whole_by_halves(params):
        return None
    return {"full_matrices": np.bool_(params["full_matrices"])}


def _svd_subset(avals: Sequence[Any], params: Mapping[str, Any]) -> Attributes | None:
    thin = not params["full_matrices"] and _by_halves(params)
    return _part(avals, params) if thin else None


def _svdvals(_: Sequence[Any], params: Mapping[str, Any]) -> Attributes | None:
    return {} if _whole_by_halves(params) else None


def _whole_by_halves(params: Mapping[str, Any]) -> bool:
    """Whether the decomposition is wanted whole, and no other algorithm than divide and conquer."""
    return params["subset_by_index"] is None and _by_halves(params)


def _by_halves(params: Mapping[str, Any]) -> bool:
    algorithm = params.get("algorithm")
    return algorithm is None or algorithm.name in ("DEFAULT", "DIVIDE_AND_CONQUER", "POLAR")


def _svd_by_rotations(_: Sequence[Any], params: Mapping[str, Any]) -> Attributes | None:
    if not _whole_by_rotations(params):
        return None
    return {"full_matrices": np.bool_(params["full_matrices"])}


def _svdvals_by_rotations(_: Sequence[Any], params: Mapping[str, Any]) -> Attributes | None:
    return {} if _whole_by_rotations(params) else None


def _whole_by_rotations(params: Mapping[str, Any]) -> bool:
    """The same for Jacobi's, or whichever JAX would take."""
    algorithm = params.get("algorithm")
    known = algorithm is None or algorithm.name in ("DEFAULT", "JACOBI")
    return params["subset_by_index"] is None and known


def _lu_solve(_: Sequence[Any], params: Mapping[str, Any]) -> Attributes:
    return {"trans_x": np.uint8(ord("NTC"[params["trans"]]))}


def _qr(_: Sequence[Any], params: Mapping[str, Any]) -> Attributes | None:
    return None if params["pivoting"] else {}


def _tridiagonal_solve(_: Sequence[Any], params: Mapping[str, Any]) -> Attributes | None:
    return None if params.get("perturb_singular") else {}


def _triangular_solve(_: Sequence[Any], params: Mapping[str, Any]) -> Attributes | None:
    transposed, conjugated = params["transpose_a"], params["conjugate_a"]
    if conjugated and not transposed:
        return None
    codes = {
        "side": "L" if params["left_side"] else "R",
        "uplo": "L" if params["lower"] else "U",
        "trans_x": ("C" if conjugated else "T") if transposed else "N",
        "diag": "U" if params["unit_diagonal"] else "N",
    }
    return {name: np.uint8(ord(code)) for name, code in codes.items()}


_ATTRIBUTES: dict[str, Callable[[Sequence[Any], Mapping[str, Any]], Attributes | None]] = {
    "cho_solve": _uplo,
    "cholesky": _cholesky,
    "eig": _eig,
    "eigh": _eigh,
    "eigh_subset": _eigh_subset,
    "eigvals": _eig,
    "eigvalsh": _eigh,
    "hess": _always,
    "inv": _always,
    "lu": _always,
    "lu_solve": _lu_solve,
    "posv": _posv,
    "qr": _qr,
    "qr_r": _qr,
    "schur": _schur,
    "slogdet": _always,
    "solve": _always,
    "svd": _svd,
    "svd_subset": _svd_subset,
    "svdvals": _svdvals,
    "symmetrize": _always,
    "tridiagonal_solve": _tridiagonal_solve,
    "triangular_solve": _triangular_solve,
}

_ON_CUDA: dict[str, Callable[[Sequence[Any], Mapping[str, Any]], Attributes | None]] = {
    "svd": _svd_by_rotations,
    "svdvals": _svdvals_by_rotations,
}
"""Where a target on CUDA serves other parameters."""

NAMES = frozenset(_ATTRIBUTES)
"""The primitives."""
