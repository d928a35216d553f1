"""MKL from PyPI (the extra lapax[mkl]) as a third side of a row: LAPACKE and CBLAS by ctypes.

Its answer is judged by `info` alone. The operands are column-major; what a routine overwrites is
copied within the time, and a loop in Python calls it per matrix: hence SMALLEST. Real dtypes only.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from ctypes import c_char, c_int
from pathlib import Path
from typing import Any

import numpy as np

from lapax._bench import machine
from lapax._bench.measure import Other
from lapax._bench.rows import Row, UnavailableError
from lapax._checks.equations import Array

SMALLEST = 64
"""The least n: the loop costs 3.4 µs a call, a Cholesky factorisation of order 64 in it 9.5 µs in
all (Emerald Rapids, f64); below, the loop would be most of the time."""

COLUMN, LEFT, LOWER, NOT_UNIT = 102, 141, 122, 131
"""Codes of CBLAS and LAPACKE."""

Call = Callable[[int], int]


def load() -> Other:
    """Makes programs of the library, on as many threads as this process has cores.

    Raises UnavailableError where it is not installed.
    """
    for folder in (Path(sys.prefix) / "lib", *map(Path, sys.path)):
        for path in sorted(folder.glob("libmkl_rt.so*")):
            library = ctypes.CDLL(str(path))
            library.MKL_Set_Num_Threads(c_int(machine.cores()))
            library.LAPACKE_set_nancheck(c_int(0))
            return lambda row, prepared: program(library, row, prepared.args)
    raise UnavailableError(f"no libmkl_rt.so in {sys.prefix}/lib; pip install 'lapax[mkl]'")


def program(library: ctypes.CDLL, row: Row, args: tuple[Array, ...]) -> Callable[[], None]:
    """Computes the row's batch by MKL. Raises UnavailableError where it has no such row."""
    if row.n < SMALLEST or row.m < SMALLEST:
        return _refuse(f"MKL is called from n = {SMALLEST}, for the loop around it")
    if row.kind != "jax" or row.name not in CALLS or row.dtype not in ("f32", "f64"):
        return _refuse(f"MKL is not called for {row.kind} {row.name} {row.dtype}")
    sources = [_column_major(x) for x in args]
    work = [np.empty_like(x) for x in sources]
    call = CALLS[row.name](_Routines(library, row), row, work)

    def run() -> None:
        for copy, source in zip(work, sources, strict=True):
            np.copyto(copy, source)
        for i in range(row.batch):
            if info := call(i):
                raise RuntimeError(f"MKL: {row.name} gave info {info} for matrix {i}")

    run()
    return run


def _refuse(why: str) -> Callable[[], None]:
    raise UnavailableError(why)


def _column_major(x: Array) -> Array:
    return np.ascontiguousarray(x.swapaxes(-1, -2) if x.ndim == 3 else x)


class _Routines:
    """Routines of the row's precision."""

    def __init__(self, library: ctypes.CDLL, row: Row) -> None:
        self.library, self.letter = library, "s" if row.dtype == "f32" else "d"
        self.dtype = np.dtype(np.float32 if row.dtype == "f32" else np.float64)

    def lapack(self, name: str, *words: Any) -> int:
        """LAPACKE's routine; arrays are passed by address, bytes as characters."""
        routine = getattr(self.library, f"LAPACKE_{self.letter}{name}")
        return int(routine(c_int(COLUMN), *map(_word, words)))

    def new(self, *shape: int) -> Array:
        return np.empty(shape, self.dtype)


def _word(word: Any) -> Any:
    if isinstance(word, np.ndarray):
        return ctypes.c_void_p(word.ctypes.data)
    return c_char(word) if isinstance(word, bytes) else word if word is None else c_int(word)


def _lu(r: _Routines, row: Row, work: list[Array]) -> Call:
    pivots = np.empty(min(row.m, row.n), np.int32)
    return lambda i: r.lapack("getrf", row.m, row.n, work[0][i], row.m, pivots)


def _cholesky(r: _Routines, row: Row, work: list[Array]) -> Call:
    return lambda i: r.lapack("potrf", b"L", row.n, work[0][i], row.n)


def _trsm(transposed: int) -> Callable[[_Routines, Row, list[Array]], Call]:
    def make(r: _Routines, row: Row, work: list[Array]) -> Call:
        solve = getattr(r.library, f"cblas_{r.letter}trsm")
        one = (ctypes.c_float if r.letter == "s" else ctypes.c_double)(1)
        codes = [c_int(c) for c in (COLUMN, LEFT, LOWER, transposed, NOT_UNIT, row.n, row.n)]

        def call(i: int) -> int:
            a, b = _word(work[0][i]), _word(work[1][i])
            solve(*codes, one, a, c_int(row.n), b, c_int(row.n))
            return 0

        return call

    return make


def _qr(r: _Routines, row: Row, work: list[Array]) -> Call:
    k, (m, n) = min(row.m, row.n), (row.m, row.n)
    tau = r.new(k)
    return lambda i: (
        r.lapack("geqrf", m, n, work[0][i], m, tau)
        or r.lapack("orgqr", m, k, k, work[0][i], m, tau)
    )


def _eigh(job: bytes) -> Callable[[_Routines, Row, list[Array]], Call]:
    def make(r: _Routines, row: Row, work: list[Array]) -> Call:
        w = r.new(row.n)
        return lambda i: r.lapack("syevd", job, b"L", row.n, work[0][i], row.n, w)

    return make


def _svd(job: bytes) -> Callable[[_Routines, Row, list[Array]], Call]:
    def make(r: _Routines, row: Row, work: list[Array]) -> Call:
        (m, n), k = (row.m, row.n), min(row.m, row.n)
        s, u, vt = r.new(k), r.new(k, m), r.new(n, k)
        return lambda i: r.lapack("gesdd", job, m, n, work[0][i], m, s, u, m, vt, k)

    return make


def _eig(job: bytes) -> Callable[[_Routines, Row, list[Array]], Call]:
    def make(r: _Routines, row: Row, work: list[Array]) -> Call:
        n = row.n
        wr, wi, vl, vr = r.new(n), r.new(n), r.new(n, n), r.new(n, n)
        return lambda i: r.lapack("geev", b"N", job, n, work[0][i], n, wr, wi, vl, n, vr, n)

    return make


def _schur(r: _Routines, row: Row, work: list[Array]) -> Call:
    n, sorted_ = row.n, np.zeros(1, np.int32)
    wr, wi, vs = r.new(n), r.new(n), r.new(n, n)
    return lambda i: r.lapack("gees", b"V", b"N", None, n, work[0][i], n, sorted_, wr, wi, vs, n)


def _hessenberg(r: _Routines, row: Row, work: list[Array]) -> Call:
    n, tau = row.n, r.new(row.n)
    return lambda i: (
        r.lapack("gehrd", n, 1, n, work[0][i], n, tau)
        or r.lapack("orghr", n, 1, n, work[0][i], n, tau)
    )


def _tridiagonal(r: _Routines, row: Row, work: list[Array]) -> Call:
    lower, middle, upper, b = work
    return lambda i: r.lapack("gtsv", row.n, 1, lower[i, 1:], middle[i], upper[i], b[i], row.n)


CALLS: dict[str, Callable[[_Routines, Row, list[Array]], Call]] = {
    "lu_factor": _lu,
    "cholesky": _cholesky,
    "solve_triangular": _trsm(111),
    "solve_triangular_transposed": _trsm(112),
    "qr": _qr,
    "eigh": _eigh(b"V"),
    "eigvalsh": _eigh(b"N"),
    "svd": _svd(b"S"),
    "svdvals": _svd(b"N"),
    "eig": _eig(b"V"),
    "eigvals": _eig(b"N"),
    "schur": _schur,
    "hessenberg": _hessenberg,
    "tridiagonal_solve": _tridiagonal,
}
"""By function: what MKL computes for it."""
