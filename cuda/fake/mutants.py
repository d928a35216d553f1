"""Breaks the kernels, one place at a time, and sees whether the tests on the emulator notice.

    python cuda/fake/mutants.py [--only FILE]

Builds and runs the kernels' tests for each of MUTANTS with kernels that differ in it, and where
these pass the sanitizers on the kernels that have its file; the working tree is not touched. Exits
with 1 where none notices, or where the kernels as they are fail.
CARGO_TEST has arguments for cargo.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

KERNELS = Path(__file__).resolve().parent.parent / "kernels"
SANITIZED = str(Path(__file__).resolve().parent / "sanitized")
"""Finds what the order of threads in the tests, or the memory beside an operand, may hide."""
PATIENCE = 5
"""A mutant that runs so many times as long as the kernels as they are, and a minute, never ends."""

TESTS = {
    "cholesky": "definite",
    "eigh": "hermitian",
    "eig": "schur",
    "francis": "schur",
    "householder": "factor",
    "lu": "solve",
    "panels": "factor",
    "phase": "svd",
    "qr": "orthogonal",
    "reflectors": "factor",
    "rows": "solve",
    "symmetrize": "hermitian",
    "two_by_two": "schur",
}
"""The module of the tests of a file, where it has another name."""


@dataclass(frozen=True)
class Mutant:
    """A place in a kernel, which occurs once there but for `which`, and what becomes of it."""

    file: str
    before: str
    after: str
    which: int = 0


MUTANTS = (
    Mutant("lu_pivots", "q < 0 || q >= n", "q < 0"),
    Mutant("lu_pivots", "p < i))", "p < i - 1))"),
    Mutant("lu_pivots", "round < 5", "round < 4"),
    Mutant("lu_pivots", "last && !inside", "!inside"),
    Mutant("lu_pivots", "previous < 0 ? lane : previous", "lane"),
    Mutant("lu_pivots", "after != own", "after > own"),
    Mutant("lu_pivots", "    __syncthreads();", "", 1),
    Mutant("cholesky_update", "hypot(f_size, modulus(g))", "f_size + modulus(g)"),
    Mutant("cholesky_update", "phase * g_part", "g_part"),
    Mutant("cholesky_update", "k0 == 0 ? conj(wb[j]) : wb[j];", "conj(wb[j]);", 1),
    Mutant("cholesky_update", "      __syncthreads();", "", 0),
    Mutant("cholesky_update", "      __syncthreads();", "", 1),
    Mutant("cholesky_update", "lane >= rows ?", "false ?"),
    Mutant("householder", "row > i && row < order", "row > i"),
    Mutant("householder", "left ? adjoint : !adjoint", "left ? !adjoint : adjoint"),
    Mutant("householder", "adjoint ? conj(tau[i]) : tau[i]", "tau[i]"),
    Mutant("householder", "left ? x[e] : conj(x[e])", "x[e]"),
    Mutant("householder", "    __syncthreads();", "", 0),
    Mutant("householder", "    __syncthreads();", "", 1),
    Mutant("panels", "other == size && other_row < row", "other == size && other_row > row"),
    Mutant("panels", "if (first_zero == 0) first_zero", "first_zero"),
    Mutant("panels", "!(d > R(0))", "d <= R(0)"),
    Mutant("reflectors", "__any_sync(ALL_LANES, odd)", "false"),
    Mutant("reflectors", "-copysign(hypot", "copysign(hypot"),
    Mutant("reflectors", "norm == 0 && imag(alpha) == 0", "norm == 0"),
    Mutant("factor", "if (lower && i >= j) ab", "if (lower) ab"),
    Mutant("panels", "    __syncthreads();", "", 2),
    Mutant("panels", "real(column[j]) / d, -imag", "real(column[j]) / d, imag"),
    Mutant("panels", "    __syncthreads();", "", 3),
    Mutant("rows", "other == size && there < where", "other == size && there > where"),
    Mutant("rows", "is_zero(top) ? a[slot][k] : divide", "divide"),
    Mutant("rows", "if (row(slot) == kept) places[slot] = where;", ""),
    Mutant("rows", "if (row(slot) == k) order[slot] = top_row;", ""),
    Mutant("rows", "const bool here = i == k && !unit;", "const bool here = i == k;"),
    Mutant("lu", "swaps[slot] != i", "swaps[slot] == i"),
    Mutant("lu", "exchanges += k != row", "exchanges += 1"),
    Mutant("lu", "found[slot] < 0 ? not_a_number<T>() : back", "back"),
    Mutant("lu", "turned && adjoint ? conj(value) : value", "value"),
    Mutant("lu", "adjoint ? conj(s[j + i * ld]) : s[j + i * ld]", "s[j + i * ld]"),
    Mutant("lu", "TOGETHER * piece;", "TOGETHER * piece + 1;"),
    Mutant("lu", "(long long)call.columns * piece;", "0;"),
    Mutant("lu", "    __syncthreads();", "", 2),
    Mutant("cholesky", "failed ? not_a_number<T>() : l.a[slot][j]", "l.a[slot][j]"),
    Mutant("cholesky", "upper ? conj(a(j, i)) : a(i, j)", "a(i, j)"),
    Mutant("cholesky", "turned ? conj(s[k * ld + i]) : s[i * ld + k]", "s[i * ld + k]"),
    Mutant("cholesky", "a(i, j) + conj(a(j, i))", "a(i, j) + a(j, i)"),
    Mutant("cholesky", "upper ? conj(value) : value", "value"),
    Mutant("cholesky", "    __syncthreads();", "", 0),
    Mutant("qr", "i <= j ? s[i + j * ld]", "true ? s[i + j * ld]"),
    Mutant("qr", "conj(tau[k])", "tau[k]"),
    Mutant("pivoted", "if (threadIdx.x == 0) jpvt[j] = j + 1;", ""),
    Mutant("pivoted", "fixed += here;", "fixed += j == 0 && here;"),
    Mutant("pivoted", "norms[c] <= Machine<R>::LARGEST ? norms[c] : R(INFINITY)", "norms[c]", 0),
    Mutant("pivoted", "return min(x, y);", "return max(x, y);"),
    Mutant("pivoted", "<= sqrt(Machine<R>::EPSILON)", "< R(0)"),
    Mutant("pivoted", "before * sqrt(left)", "before"),
    Mutant("pivoted", "norms[p] = norms[k], ", ""),
    Mutant("pivoted", "conj(shared_tau)", "shared_tau"),
    Mutant(
        "pivoted",
        "exchange(p.g[(long long)j * PANEL + t], p.g[(long long)chosen * PANEL + t]);",
        ";",
    ),
    Mutant("pivoted", "p.norms[chosen] = p.norms[j], ", ""),
    Mutant("pivoted", "-(tau * dot)", "-dot"),
    Mutant("pivoted", "conj(own) * p.products[lane]", "own * p.products[lane]"),
    Mutant(
        "pivoted", "column[j] - warp_sum(row) - fresh", "column[j] - warp_sum(row) - conj(fresh)"
    ),
    Mutant("pivoted", "t <= known; t++", "t < known; t++"),
    Mutant("pivoted", "      __syncwarp();", ""),
    Mutant("pivoted", "      reflect(s, ld, k, m, conj(shared_tau), k + 1, n, warp, warps);", ""),
    Mutant("sytrd", "lower ? k : n - 1 - k", "k"),
    Mutant("sytrd", "i == j ? make<T>(real(x)) : conj(x)", "x"),
    Mutant("sytrd", "product[j] = t * sum", "product[j] = conj(t) * sum"),
    Mutant("sytrd", "R(-0.5)", "R(-1)"),
    Mutant("sytrd", "vi * conj(wj) - wi * conj(vj)", "vi * conj(wj) - wi * vj"),
    Mutant(
        "sytrd",
        "ab[turned(i, n, lower) + turned(j, n, lower) * n] = i == j ? make<T>(real(x)) : x;",
        "ab[at] = x;",
    ),
    Mutant("sytrd", "      __syncthreads();", "", 1),
    Mutant("syrk", "while (over > down)", "while (over >= down)"),
    Mutant("syrk", "i < n && l < k ?", "i < n ?"),
    Mutant("syrk", "if (transpose) to[x][y] = value;", "if (false) to[x][y] = value;"),
    Mutant("syrk", "i < n && j <= i", "i < n && j < n"),
    Mutant("syrk", "is_zero(of_c) ? by * sum :", ""),
    Mutant("syrk", "      __syncthreads();", "", 0),
    Mutant("syrk", "      __syncthreads();", "", 1),
    Mutant("eigh", "call.upper ? j < i : j > i", "j > i"),
    Mutant("eigh", "if (i == j) x = make<T>(real(x));", ""),
    Mutant("eigh", "x + conj(from[j * n + i])", "x + from[j * n + i]"),
    Mutant("eigh", "im <= Machine<R>::LARGEST;", "true;"),
    Mutant("eigh", "fine && largest > 0 ? -ilogb(largest)", "true ? 0"),
    Mutant("eigh", "else a[row(j) + i] = conj(x);", "else a[row(j) + i] = x;"),
    Mutant("eigh", "before + turns : before", "before + turns + 1 : before"),
    Mutant("eigh", "scale(qp, sine / size)", "scale(conj(qp), sine / size)"),
    Mutant("eigh", "real(pp) - t * size", "real(pp) + t * size"),
    Mutant("eigh", "const T down = conj(s.sigma[one])", "const T down = s.sigma[one]"),
    Mutant("eigh", "one + 1 + at / pairs", "one + at / pairs"),
    Mutant("eigh", "conj(sigma) * kept", "conj(sigma) * x"),
    Mutant("eigh", "there < value || (there == value && other < k)", "there < value"),
    Mutant("eigh", "scalbn(value, -power)", "scalbn(value, power)"),
    Mutant("eigh", "square(x[i]) < least * least", "false"),
    Mutant("eigh", "-imag(x[i]) / size", "imag(x[i]) / size"),
    Mutant("eigh", "i == s.lead[k] ? make<T>(real(x)) : x", "x"),
    Mutant("eigh", "!known ? not_a_number<T>()", "false ? not_a_number<T>()"),
    Mutant("eigh", "s.place[call.start + e % count]", "s.place[e % count]"),
    Mutant("eigh", "before - call.start", "before"),
    Mutant("eigh", "for (int flip = (BLOCK ? LANES : size) / 2", "for (int flip = LANES / 2"),
    Mutant("eigh", "    Team<BLOCK>::meet();", "", 0),
    Mutant("eigh", "    Team<BLOCK>::meet();", "", 1),
    Mutant("symmetrize", "conj(mirror[lane][i])", "mirror[lane][i]"),
    Mutant("symmetrize", "    __syncthreads();", "", 0),
    Mutant("symmetrize", "    __syncthreads();", "", 1),
    Mutant("triangular", "turned ? a(k, i) : a(i, k)", "a(i, k)"),
    Mutant("triangular", "conjugated ? conj(value) : value", "value"),
    Mutant("svd", "conj(x) * y", "x * y"),
    Mutant("svd", "-imag(pq) / size", "imag(pq) / size"),
    Mutant("svd", "(qq - pp)", "(pp - qq)"),
    Mutant("svd", "by.exchange ? first : second", "second"),
    Mutant("svd", "&& q < columns", ""),
    Mutant("svd", "before + players - 1 : before", "before + players : before"),
    Mutant("svd", "scale(y, by.h), by.s)", "scale(y, by.h), -by.s)"),
    Mutant("svd", "conj(a[e])", "a[e]"),
    Mutant("svd", "= conjugated ? conj(x) : x;", "= x;"),
    Mutant("svd", "leads ? lead[k] : -1", "-1"),
    Mutant("svd", "Turn<T>{x[k]", "Turn<T>{conj(x[k])"),
    Mutant("svd", "!info && sweeps == SWEEPS", "sweeps == 1"),
    Mutant("phase", "square(own) >= least", "square(own) > R(0)"),
    Mutant("phase", "-imag(here) / size", "imag(here) / size"),
    Mutant("phase", "i == place ? make<T>(real(y)) : y", "y"),
    Mutant("francis", "sum = conj(tau) * sum;", "sum = tau * sum;"),
    Mutant("francis", "- sum * conj(v[j]);", "- sum * v[j];"),
    Mutant("francis", "stalled % 10 == 0", "false"),
    Mutant("francis", "last + 1 - __ffs((int)found)", "last - __ffs((int)found)"),
    Mutant("francis", "(make<T>(1) - conj(tau))", "(make<T>(1) - tau)"),
    Mutant("francis", "min(k + ROWS + 1, stop)", "min(k + ROWS, stop)"),
    Mutant("francis", "if (order == 2) split(start);", ""),
    Mutant("schur", "form.shift(-power)", "form.shift(power)"),
    Mutant("schur", "conj(factors[i]) * x", "factors[i] * x"),
    Mutant("francis", "      __syncwarp();", "", 0),
    Mutant("francis", "      __syncwarp();", "", 4),
    Mutant("francis", "finite && re <=", "true || re <="),
    Mutant("eig", "other > k ? size : -size", "size"),
    Mutant("eig", "C{-value.im / c, 0}", "C{value.im / c, 0}"),
    Mutant("eig", "bottom = right - m * above", "bottom = right"),
    Mutant("eig", "bottom = above - m * right", "bottom = above"),
    Mutant("eig", "if (abs1(by) < smallest) by = {smallest, 0};", ""),
    Mutant("eig", "beside = scale(beside, smaller);", ""),
    Mutant("eig", "sum = scale(sum, scales[i]);", ""),
    Mutant("eig", "    balance(form, scales);", "    for (int i = 0; i < n; i++) scales[i] = 1;"),
    Mutant("eig", "-lead.im / length", "lead.im / length"),
    Mutant("two_by_two", "if (b == 0) return {d, -c, 0, a, 0, 1};", ""),
    Mutant("two_by_two", "opposite ? -small : small", "small"),
    Mutant("two_by_two", "{middle + p, b - c, 0", "{middle + p, b - c, c"),
    Mutant("two_by_two", "if (square < 0)", "if (square > 0)"),
    Mutant("svd", "im <= Machine<R>::LARGEST;", "true;"),
    Mutant("svd", "other < k);", "true);"),
    Mutant("svd", "sqrt(size[k]), -power", "sqrt(size[k]), power"),
    Mutant("svd", "size[k] > vanishing<R>();", "true;"),
    Mutant("svd", "turn < 2", "turn < 0"),
    Mutant("svd", "    parts[i] += square(here);", ""),
    Mutant("svd", "    __syncthreads();", "", 0),
    Mutant("svd", "    __syncthreads();", "", 1),
    Mutant("svd", "    __syncthreads();", "", 2),
    Mutant("svd", "    __syncthreads();", "", 3),
    Mutant("svd", "__syncthreads_or(rotated)", "rotated"),
    Mutant("tridiagonal", "s.m > 1 ? s.du[0] : make<T>(0)", "s.du[0]"),
    Mutant("tridiagonal", "i + 1 < s.m ? s.du[i] : make<T>(0)", "s.du[i]"),
    Mutant("tridiagonal", "-(multiplier * du)", "multiplier * du", 0),
    Mutant("tridiagonal", "-(multiplier * du)", "multiplier * du", 1),
    Mutant("tridiagonal", "modulus(below) / below_size > here", "modulus(below) > here"),
    Mutant("tridiagonal", "      __syncwarp();", "", 0),
    Mutant("tridiagonal", "return least == 0 ?", "return false ?"),
    Mutant("tridiagonal", "singular || is_zero(row.diagonal)", "false"),
    Mutant("tridiagonal", "singular || is_zero(row.diagonal)", "true"),
    Mutant("sparse", "index < size", "index <= size"),
    Mutant("sparse", "index >= 0 && ", ""),
    Mutant("sparse", "min(indptr[row + 1], nnz)", "indptr[row + 1]"),
    Mutant("sparse", "mask = group / 2", "mask = LANES / 2"),
    Mutant("sparse", "later ? __ffs((int)later) - 2 : LANES - 1", "LANES - 1"),
    Mutant("sparse", "if (first && row >= 0)", "if (row >= 0)"),
    Mutant("sparse", "        sum = make<T>(0);", ""),
    Mutant("sparse", "min(first + LANES, (long long)nnz)", "first + LANES"),
    Mutant("sparse", "!is_zero(value) && place < nnz", "!is_zero(value)"),
    Mutant("sparse", "offsets[rows] + thread", "offsets[rows] + 1 + thread"),
    Mutant("sparse", "min(sum, (long long)nnz)", "sum"),
    Mutant("sparse", "    __syncthreads();", "", 0),
    Mutant("sparse", "    __syncthreads();", "", 1),
)


def main() -> int:
    """Runs them all; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="the kernels of one file")
    only = parser.parse_args().only
    mutants = [mutant for mutant in MUTANTS if only in (None, mutant.file)]
    build(KERNELS)
    for module in sorted({module_of(mutant) for mutant in mutants}):
        seconds(tests_of(module))
    print("the kernels as they are: right", flush=True)
    survivors = 0
    for mutant in mutants:
        by = noticed(mutant)
        survivors += by is None
        verdict = f"noticed by {by}" if by else "NOT NOTICED"
        print(f"{verdict}: {mutant.file}: {mutant.before!r} -> {mutant.after!r}", flush=True)
    return 1 if survivors else 0


def noticed(mutant: Mutant) -> str | None:
    """The check that fails or does not end, in words."""
    with tempfile.TemporaryDirectory() as folder:
        kernels = Path(shutil.copytree(KERNELS, Path(folder, "kernels")))
        path = kernels / source(mutant.file)
        path.write_text(mutated(mutant, path.read_text(encoding="utf-8")), encoding="utf-8")
        build(kernels)
        checks = {"the tests": tests_of(module_of(mutant))} | {
            f"the {kind} sanitizer on {file}": (SANITIZED, kind, file)
            for kind in ("address", "thread")
            for file in kernels_with(source(mutant.file))
        }
        for name, check in checks.items():
            try:
                if fails(check, kernels, 60 + PATIENCE * seconds(check)):
                    return name
            except subprocess.TimeoutExpired:
                return f"{name}, which did not end"
    return None


CARGO = ("cargo", "test", "--quiet", *shlex.split(os.environ.get("CARGO_TEST", "")))
KERNELS_TESTS = (*CARGO, "--test", "kernels")


def module_of(mutant: Mutant) -> str:
    """That of the tests that are to notice it."""
    return TESTS.get(mutant.file, mutant.file)


def tests_of(module: str) -> tuple[str, ...]:
    """The command of a module's tests, which `build` has built."""
    return (*KERNELS_TESTS, "--", f"{module}::")


def build(kernels: Path) -> None:
    """The tests with the kernels of a folder."""
    command = [*KERNELS_TESTS, "--no-run"]
    built = subprocess.run(command, env=environment(kernels), capture_output=True)
    if built.returncode:
        raise SystemExit(f"{kernels} does not compile:\n{built.stderr.decode()}")


@cache
def seconds(check: tuple[str, ...]) -> float:
    """What a check takes on the kernels as they are, which have to pass it."""
    start = time.monotonic()
    if fails(check, KERNELS, None):
        raise SystemExit(f"the kernels as they are fail: {shlex.join(check)}")
    return time.monotonic() - start


def fails(check: Sequence[str], kernels: Path, limit: float | None) -> bool:
    """Whether a command fails, which has so many seconds if there is a limit."""
    run = subprocess.run(check, env=environment(kernels), capture_output=True, timeout=limit)
    return run.returncode != 0


def environment(kernels: Path) -> dict[str, str]:
    """That of a command which has to do with the kernels of a folder."""
    return os.environ | {"LAPAX_EMULATED_KERNELS": str(kernels)}


def kernels_with(name: str) -> list[str]:
    """The kernels' files, without suffix, that are a source or include it."""
    if name.endswith(".cu"):
        return [name.removesuffix(".cu")]
    including = [
        path.name for path in sorted(KERNELS.iterdir())
        if f'#include "{name}"' in path.read_text(encoding="utf-8")
    ]  # fmt: skip
    return sorted({file for path in including for file in kernels_with(path)})


def source(file: str) -> str:
    """The name of a kernel's file, or of one that kernels include."""
    return next(path.name for path in KERNELS.glob(f"{file}.cu*"))


def mutated(mutant: Mutant, text: str) -> str:
    """The source with the change."""
    pieces = text.split(mutant.before)
    if len(pieces) < mutant.which + 2:
        raise SystemExit(f"{mutant.file} has no such place any more: {mutant}")
    head = mutant.before.join(pieces[: mutant.which + 1])
    return head + mutant.after + mutant.before.join(pieces[mutant.which + 1 :])


if __name__ == "__main__":
    sys.exit(main())
