"""Matrices with a name: of an order, or of a vector of coefficients.

What depends on an order alone is computed from Python's integers or in double precision and
rounded once, to the default dtype. What moves entries keeps their dtype, 16-bit ones too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from lapax._settings import own_settings
from lapax.linalg._arguments import (
    Array,
    check_choice,
    check_size,
    operation,
    same_batch,
)

__all__ = [
    "companion",
    "convolution_matrix",
    "dft",
    "fiedler",
    "fiedler_companion",
    "hadamard",
    "hankel",
    "helmert",
    "hilbert",
    "invhilbert",
    "invpascal",
    "leslie",
    "pascal",
]


def _vector(function: str, name: str, a: Any, least: int = 0) -> Array:
    """An array as vectors [..., n] with n ≥ least; a scalar is a vector of one."""
    vector = jnp.atleast_1d(jnp.asarray(a))
    n = vector.shape[-1]
    if n < least:
        raise ValueError(
            f"{function}: {name}: expected {least} or more entries, got len({name})={n}"
        )
    return vector


@own_settings()
def hankel(c: Any, r: Any = None) -> Array:
    """The matrix with equal antidiagonals, H[i, j] = (c, r[1:])[i + j].

    `c` [..., m] is the first column and `r` [..., n] the last row, whose first entry is not read;
    without it m zeros. The result has shape [..., m, n]. Raises ValueError where batches do not
    broadcast.

    >>> hankel(array([1, 2]))  # [[1, 2], [2, 0]]
    """
    c = _vector("hankel", "c", c)
    r = jnp.zeros_like(c) if r is None else _vector("hankel", "r", r)
    c, r = same_batch("hankel", c=(c, 1), r=(r, 1))
    index = jnp.arange(c.shape[-1])[:, None] + jnp.arange(r.shape[-1])
    matrix: Array = jnp.concatenate([c, r[..., 1:]], axis=-1)[..., index]
    return matrix


@own_settings()
def convolution_matrix(a: Any, n: int, mode: str = "full") -> Array:
    """The Toeplitz matrix A with A·v = convolve(a, v, mode) for vectors v of n entries.

    `a` has shape [..., m], the result [..., k, n] with k = m + n - 1 in mode "full", max(m, n) in
    "same" and max(m, n) - min(m, n) + 1 in "valid", which are the middle rows of "full". Raises
    ValueError without entries in `a`, for n < 1 and for another mode.

    >>> convolution_matrix(array([1, 2]), 2)  # [[1, 0], [2, 1], [0, 2]]
    """
    check_choice("convolution_matrix", "mode", mode, ("full", "valid", "same"))
    if n < 1:
        raise ValueError(f"convolution_matrix: n must be a positive integer, got {n}")
    a = _vector("convolution_matrix", "a", a, 1)
    m = a.shape[-1]
    least, most = min(m, n), max(m, n)
    first, rows = {
        "full": (0, m + n - 1),
        "same": ((least - 1) // 2, most),
        "valid": (least - 1, most - least + 1),
    }[mode]
    index = first + jnp.arange(rows)[:, None] - jnp.arange(n)
    inside = (index >= 0) & (index < m)
    return jnp.where(inside, a[..., jnp.where(inside, index, 0)], 0)


@operation("a")
def companion(a: Any) -> Array:
    """The companion matrix of the polynomial Σ a[i]·x^(n - 1 - i), whose roots are its eigenvalues.

    Its first row is -a[1:] / a[0], and there are ones below the diagonal: [..., n] to
    [..., n - 1, n - 1]. NaN in the first row where a[0] is 0. Raises ValueError for less than two
    coefficients.

    >>> companion(array([1., -3, 2]))  # [[3, -2], [1, 0]]
    """
    a = _vector("companion", "a", a, 2)
    return _below(_monic(a), jnp.ones(a.shape[-1] - 2, a.dtype))


def _monic(a: Array) -> Array:
    """-a[1:] / a[0], NaN where a[0] is 0."""
    first = a[..., :1]
    return jnp.where(first == 0, jnp.nan, -a[..., 1:] / jnp.where(first == 0, 1, first))


def _below(first: Array, subdiagonal: Array) -> Array:
    """Matrices of a first row [..., n] and a subdiagonal [..., n - 1]."""
    n = first.shape[-1]
    rows = jnp.arange(n - 1)
    matrix = jnp.zeros((*first.shape, n), jnp.result_type(first, subdiagonal))
    return matrix.at[..., rows + 1, rows].set(subdiagonal).at[..., 0, :].set(first)


@operation("a")
def fiedler_companion(a: Any) -> Array:
    """Fiedler's pentadiagonal companion matrix of the polynomial Σ a[i]·x^(n - 1 - i).

    [..., n] to [..., n - 1, n - 1], of order 0 for n < 2; NaN among the coefficients where a[0] is
    0. Its eigenvalues are the roots, as of `companion`. Fiedler, A note on companion matrices,
    Linear Algebra and its Applications 372 (2003).

    >>> fiedler_companion(array([1., -3, 2]))  # [[3, -2], [1, 0]]
    """
    a = _vector("fiedler_companion", "a", a)
    n = max(a.shape[-1] - 1, 0)
    matrix = jnp.zeros((*a.shape[:-1], n, n), a.dtype)
    if n == 0:
        return matrix
    coefficients = _monic(a)
    matrix = matrix.at[..., 0, 0].set(coefficients[..., 0])
    if n == 1:
        return matrix
    matrix = matrix.at[..., 1, 0].set(1)
    even, odd = np.arange(0, n, 2), np.arange(1, n, 2)
    matrix = matrix.at[..., even[: len(odd)], odd].set(coefficients[..., odd])
    matrix = matrix.at[..., even[1:], even[1:] - 1].set(coefficients[..., even[1:]])
    matrix = matrix.at[..., even[1:] - 2, even[1:]].set(1)
    return matrix.at[..., odd[1:], odd[1:] - 2].set(1)


@own_settings()
def leslie(f: Any, s: Any) -> Array:
    """The Leslie matrix of a population by ages.

    Its first row is the fecundity `f` [..., n], its subdiagonal the survival `s` [..., n - 1]; the
    rest is zero. The result has shape [..., n, n]. Leslie, Biometrika 33 (1945). Raises ValueError
    where the sizes do not fit or n < 2.

    >>> leslie(array([1., 2]), array([0.5]))  # [[1, 2], [0.5, 0]]
    """
    f, s = _vector("leslie", "f", f, 2), _vector("leslie", "s", s, 1)
    check_size("leslie", "s", "entries", s.shape[-1], f.shape[-1] - 1)
    f, s = same_batch("leslie", f=(f, 1), s=(s, 1))
    return _below(f, s)


@own_settings()
def fiedler(a: Any) -> Array:
    """The symmetric matrix F[i, j] = |a[i] - a[j]|: [..., n] to [..., n, n], real.

    >>> fiedler(array([1, 3]))  # [[0, 2], [2, 0]]
    """
    a = _vector("fiedler", "a", a)
    return jnp.abs(a[..., :, None] - a[..., None, :])


@own_settings()
def dft(n: int, scale: str | None = None) -> Array:
    """The matrix F[j, k] = exp(-2πi·j·k/n) of the Fourier transform, complex, of order n.

    `scale` divides it: by √n for "sqrtn", which makes it unitary, by n for "n". Raises ValueError
    for another.

    >>> dft(2)  # [[1, 1], [1, -1]]
    """
    check_choice("dft", "scale", scale, (None, "sqrtn", "n"))
    roots = np.exp(-2j * np.pi * np.arange(n) / max(n, 1))
    roots /= {None: 1, "sqrtn": math.sqrt(n), "n": n}[scale] or 1
    index = jnp.arange(n)
    matrix: Array = jnp.asarray(roots)[index[:, None] * index % max(n, 1)]
    return matrix


@own_settings()
def hadamard(n: int, dtype: Any = int) -> Array:
    """The matrix H[i, j] = (-1)^(number of bits of i & j), whose columns are orthogonal.

    Sylvester's construction. Raises ValueError unless n is a power of two.

    >>> hadamard(2)  # [[1, 1], [1, -1]]
    """
    if n < 1 or n & (n - 1):
        raise ValueError(f"hadamard: n: expected a power of two, got {n}")
    index = jnp.arange(n)
    odd = jnp.bitwise_count(index[:, None] & index) % 2 == 1
    return jnp.where(odd, -1, 1).astype(dtype)


@own_settings()
def helmert(n: int, full: bool = False) -> Array:
    """Helmert's matrix of order n, orthogonal, with equal entries in the first row.

    Row i > 0 holds i times 1/√(i(i + 1)), then -i/√(i(i + 1)), then zeros. Only `full` has the
    first row. Raises ValueError for n < 1.

    >>> helmert(2) * sqrt(2)  # [[1, -1]]
    """
    if n < 1:
        raise ValueError(f"helmert: n: expected a positive integer, got {n}")
    index = np.arange(1, n)
    row = jnp.asarray(1 / np.sqrt(index * (index + 1.0)))[:, None]
    rows, columns = jnp.arange(1, n)[:, None], jnp.arange(n)
    contrasts = jnp.where(columns < rows, row, jnp.where(columns == rows, -rows * row, 0))
    if not full:
        return contrasts
    return jnp.concatenate([jnp.full((1, n), 1 / math.sqrt(n), contrasts.dtype), contrasts])


@own_settings()
def hilbert(n: int) -> Array:
    """Hilbert's matrix H[i, j] = 1/(i + j + 1) of order n.

    >>> 6 * hilbert(2)  # [[6, 3], [3, 2]]
    """
    index = jnp.arange(n)
    return 1 / (1.0 + index[:, None] + index)


@own_settings()
def invhilbert(n: int, exact: bool = False) -> Array:
    """The inverse of Hilbert's matrix, whose entries are integers.

    (-1)^(i+j)·(i + j - 1)·C(n+i-1, n-j)·C(n+j-1, n-i)·C(i+j-2, i-1)² for i, j from 1. Choi, Tricks
    or treats with the Hilbert matrix, American Mathematical Monthly 90 (1983). `exact` asks for
    integers, and raises ValueError where the default integer has not the bits for them.

    >>> invhilbert(2)  # [[4, -6], [-6, 12]]
    """

    def entry(i: int, j: int) -> int:
        sign = 1 if (i + j) % 2 == 0 else -1
        outer = math.comb(n + i, n - j - 1) * math.comb(n + j, n - i - 1)
        return sign * (i + j + 1) * outer * math.comb(i + j, i) ** 2

    return _of_integers("invhilbert", n, exact, entry)


_KINDS = ("symmetric", "lower", "upper")


@own_settings()
def pascal(n: int, kind: str = "symmetric", exact: bool = True) -> Array:
    """Pascal's matrix of order n: P[i, j] = C(i + j, i), or its Cholesky factors.

    `kind` "lower" is L[i, j] = C(i, j), "upper" its transpose, "symmetric" the product P = L·Lᵀ.
    `exact` asks for integers, and raises ValueError where the default integer has not the bits for
    them; without, the entries are rounded. Raises ValueError for another `kind`.

    >>> pascal(2)  # [[1, 1], [1, 2]]
    """
    check_choice("pascal", "kind", kind, _KINDS)
    entries: dict[str, Callable[[int, int], int]] = {
        "symmetric": lambda i, j: math.comb(i + j, i),
        "lower": math.comb,
        "upper": lambda i, j: math.comb(j, i),
    }
    return _of_integers("pascal", n, exact, entries[kind])


@own_settings()
def invpascal(n: int, kind: str = "symmetric", exact: bool = True) -> Array:
    """The inverse of `pascal`, of the same arguments: (-1)^(i+j)·C(i, j) for "lower".

    >>> invpascal(2)  # [[2, -1], [-1, 1]]
    """
    check_choice("invpascal", "kind", kind, _KINDS)
    lower = [[(-1) ** (i + j) * math.comb(i, j) for j in range(n)] for i in range(n)]
    entries: dict[str, Callable[[int, int], int]] = {
        "symmetric": lambda i, j: sum(lower[k][i] * lower[k][j] for k in range(max(i, j), n)),
        "lower": lambda i, j: lower[i][j],
        "upper": lambda i, j: lower[j][i],
    }
    return _of_integers("invpascal", n, exact, entries[kind])


def _of_integers(function: str, n: int, exact: bool, entry: Callable[[int, int], int]) -> Array:
    """The matrix of these entries, of the default integer if exact, else of the default float."""
    entries = [[entry(i, j) for j in range(n)] for i in range(n)]
    dtype = jnp.result_type(int if exact else float)
    if not exact:
        rounded = np.array([[_rounded(x) for x in row] for row in entries], np.float64)
        return jnp.asarray(rounded.reshape(n, n), dtype)
    bits = 1 + max((abs(x).bit_length() for row in entries for x in row), default=0)
    if bits > dtype.itemsize * 8:
        raise ValueError(
            f"{function}: n: expected entries that {dtype} has, got {bits} bits for n={n}: "
            "pass exact=False"
        )
    return jnp.asarray(np.array(entries, np.int64).reshape(n, n), dtype)


def _rounded(x: int) -> float:
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf
