"""Residual ratios beside those of SciPy's LAPACK, on matrices of prescribed condition.

Where reference LAPACK is installed, `tests/accuracy` compares with that one on many more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.linalg import blas, lapack

import lapax.ffi
from lapax._checks import CHECKS

LIMIT = 30
"""LAPACK's own limit for a ratio."""
FACTOR = 3
"""Our median ratio is at most so many times SciPy's,"""
TINY = 0.1
"""or below this: a tenth of one rounding error per row."""
ORDERS = (5, 40)

Array = np.ndarray[Any, Any]
Results = list[Array]


def spectra(n: int, epsilon: float) -> list[Array]:
    """Falling values, as LAPACK's testers prescribe them: the condition is 1 to 0.1/ε."""
    part = np.arange(n) / max(n - 1, 1)
    values = [np.ones(n)]
    for condition in (100.0, epsilon**-0.5, 0.1 / epsilon):
        at_one, at_least = np.ones(n), np.full(n, 1 / condition)
        at_one[-1], at_least[0] = 1 / condition, 1
        values += [condition**-part, 1 - part * (1 - 1 / condition), at_one, at_least]
    return values


def unitary(rng: np.random.Generator, dtype: np.dtype[Any], n: int) -> Array:
    x = rng.standard_normal((n, n))
    return np.linalg.qr(x + 1j * rng.standard_normal((n, n)) if dtype.kind == "c" else x)[0]


def matrices(dtype: np.dtype[Any], n: int, kind: str) -> Array:
    """General, Hermitian or positive definite ones, of every spectrum."""
    rng, found = np.random.default_rng(n), []
    for values in spectra(n, float(np.finfo(dtype).eps) / 2):
        u = unitary(rng, dtype, n)
        if kind == "general":
            found.append((u * values) @ unitary(rng, dtype, n))
            continue
        signs = np.ones(n) if kind == "definite" else rng.choice([-1, 1], n)
        # What keeps the matrix definite when it is rounded.
        shift = 20 * n * np.finfo(dtype).eps * np.eye(n) if kind == "definite" else 0
        a = (u * (values * signs)) @ u.conj().T
        found.append((a + a.conj().T) / 2 + shift)
    return np.stack(found).astype(dtype)


def routine(name: str, a: Array) -> Callable[..., Any]:
    return lapack.get_lapack_funcs((name,), (a,))[0]


def unpacked(wi: Array, packed: Array) -> Array:
    """Complex eigenvectors from LAPACK's pairs of real columns."""
    v, j = packed.astype(np.result_type(packed, np.complex64)), 0
    while j < len(wi):
        if wi[j] != 0:
            v[:, j] = packed[:, j] + 1j * packed[:, j + 1]
            v[:, j + 1] = v[:, j].conj()
            j += 1
        j += 1
    return v


def _getrf(a: Array) -> Results:
    lu, piv, info = routine("getrf", a)(a)
    return [lu, piv + 1, info]


def _geqp3(a: Array, _: Array) -> Results:
    qr, jpvt, tau, *_rest = routine("geqp3", a)(a)
    return [qr, jpvt, tau]


def _orgqr(a: Array, tau: Array) -> Results:
    return [routine("ungqr" if a.dtype.kind == "c" else "orgqr", a)(a, tau)[0]]


def _syevd(a: Array) -> Results:
    w, v, info = routine("heevd" if a.dtype.kind == "c" else "syevd", a)(a, lower=1)
    return [v, w, info]


def _sytrd(a: Array) -> Results:
    c, d, e, tau, info = routine("hetrd" if a.dtype.kind == "c" else "sytrd", a)(a, lower=1)
    return [c, d, e, tau, info]


def _svd(name: str) -> Callable[[Array], Results]:
    def decompose(a: Array) -> Results:
        u, s, vt, info = routine(name, a)(a)
        return [a, s, u, vt, info]

    return decompose


def _geev(a: Array) -> Results:
    wr, wi, vl, vr, info = routine("geev", a)(a)
    return [wr, wi, unpacked(wi, vl), unpacked(wi, vr), info]


def _geev_complex(a: Array) -> Results:
    return list(routine("geev", a)(a))


def _gees(a: Array) -> Results:
    t, sdim, *w, z, _, info = routine("gees", a)(lambda *_: 0, a)
    return [t, z, *w, np.asarray(sdim), info]


def _gtsv(dl: Array, d: Array, du: Array, b: Array) -> Results:
    _, d_out, du_out, x, info = routine("gtsv", b)(dl[1:], d, du[:-1], b)
    return [dl, d_out, np.append(du_out, du[-1:]), x, info]


def _trsm(a: Array, b: Array) -> Results:
    return [blas.get_blas_funcs(("trsm",), (a, b))[0](1.0, a, b, lower=1)]


V, L = ord("V"), ord("L")
SIDE = {"side": L, "uplo": L, "trans_x": ord("N"), "diag": ord("N")}

CALLS: dict[str, tuple[Callable[..., Results], dict[str, int], str]] = {
    "getrf": (_getrf, {}, "general"),
    "potrf": (lambda a: list(routine("potrf", a)(a, lower=1, clean=0)), {"uplo": L}, "definite"),
    "geqrf": (lambda a: list(routine("geqrf", a)(a)[:2]), {}, "general"),
    "geqp3": (_geqp3, {}, "general"),
    "orgqr": (_orgqr, {}, "general"),
    "syevd": (_syevd, {"mode": V, "uplo": L}, "hermitian"),
    "sytrd": (_sytrd, {"uplo": L}, "hermitian"),
    "gesdd": (_svd("gesdd"), {"mode": ord("A")}, "general"),
    "gesvd": (_svd("gesvd"), {"mode": ord("A")}, "general"),
    "geev": (_geev, {"compute_left": V, "compute_right": V}, "general"),
    "geev_complex": (_geev_complex, {"compute_left": V, "compute_right": V}, "general"),
    "gees": (_gees, {"mode": V, "sort": ord("N")}, "general"),
    "gees_complex": (_gees, {"mode": V, "sort": ord("N")}, "general"),
    "gehrd": (lambda a: list(routine("gehrd", a)(a)), {"low": 1}, "general"),
    "gtsv": (_gtsv, {}, "general"),
    "trsm": (_trsm, SIDE, "general"),
}
"""SciPy's call on one matrix, with the op's results; the op's attributes; the kind of matrices."""


def operands(op: str, a: Array) -> tuple[Array, ...]:
    """The op's operands made of square matrices, with NaN in what must not be read."""
    n, rng = a.shape[-1], np.random.default_rng(5)
    b = rng.standard_normal((*a.shape[:-1], 2)).astype(a.dtype)
    lower = np.tri(n, dtype=bool)
    match op:
        case "potrf" | "syevd" | "sytrd":
            return (np.where(lower, a, a.dtype.type(np.nan)),)
        case "geqp3":
            return a, np.zeros(a.shape[:-1], np.int32)
        case "orgqr":
            qr = [routine("geqrf", x)(x) for x in a]
            return np.stack([x[0] for x in qr]), np.stack([x[1] for x in qr])
        case "gtsv":
            three = [np.pad(np.diagonal(a, k, -2, -1), ((0, 0), pad)) for k, pad in BESIDE]
            return *three, b
        case "trsm":
            nan = a.dtype.type(np.nan)
            return np.where(lower, a / n + 2 * np.eye(n, dtype=a.dtype), nan), b
        case _:
            return (a,)


BESIDE = ((-1, (1, 0)), (0, (0, 0)), (1, (0, 1)))
"""The diagonals of gtsv, and the padding of each to the same length."""


def ratios(op: str, args: tuple[Array, ...], attrs: dict[str, int], rets: Results) -> list[float]:
    if op == "geqp3":
        # As those of geqrf on A·P: what pivots have to be is undecided where columns are equal.
        (a, _), (qr, jpvt, tau) = args, rets
        args = (np.take_along_axis(a, jpvt[..., None, :].astype(np.int64) - 1, axis=-1),)
        op, rets = "geqrf", [qr, tau]
    return list(CHECKS[op].ratios(args, attrs, rets).tolist())


def wanted(op: str, dtype: np.dtype[Any]) -> bool:
    complex_only, real_only = op.endswith("_complex"), op in ("geev", "gees")
    return not (complex_only if dtype.kind == "f" else real_only)


@pytest.mark.parametrize("op", CALLS)
def test_ratios_are_close_to_those_of_scipys_lapack(op: str, dtype: np.dtype[Any]) -> None:
    if not wanted(op, dtype):
        return
    call, attrs, kind = CALLS[op]
    ours: list[float] = []
    theirs: list[float] = []
    for n in ORDERS:
        args = operands(op, matrices(dtype, n, kind))
        given = attrs | ({"high": n} if op == "gehrd" else {})
        sizes = {"u_cols": n, "vt_rows": n} if op in ("gesdd", "gesvd") else {}
        found = getattr(lapax.ffi, op)(*args, **given, **sizes)
        found = list(found) if isinstance(found, tuple) else [found]
        ours += ratios(op, args, given, [np.asarray(x) for x in found])
        each = [[np.asarray(x) for x in call(*one)] for one in zip(*args, strict=True)]
        stacked = [np.stack(results) for results in zip(*each, strict=True)]
        theirs += ratios(op, args, given, stacked)
    median, reference = float(np.median(ours)), float(np.median(theirs))
    print(f"{op} {dtype}: median {median:.3g} and {reference:.3g}, ", end="")
    print(f"max {max(ours):.3g} and {max(theirs):.3g} (lapax and SciPy)")
    assert max(ours) < LIMIT
    assert median <= FACTOR * reference or median < TINY
