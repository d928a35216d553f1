"""Residual ratios of products with sparse matrices: see the comment of each op for its equation."""

from __future__ import annotations

from typing import Any

import numpy as np

from lapax._checks.equations import Array, Attrs, Check, Size, normal, roundoff, unless, wide

# csr_sparse_dense: Y = A·X for A of m rows and n columns in compressed rows, X of n columns. Of
# integers, Y is exact; else |Y − A·X| ≤ (entries of a row)·u·|A|·|X| element by element.

PER_ROW = 8
"""Entries of a row, on average. Columns repeat now and then."""


def _csr_inputs(
    rng: np.random.Generator, dtype: np.dtype[Any], size: Size, _: Attrs
) -> tuple[Array, ...]:
    m, n, batch = size.m, size.n, size.batch
    nnz = PER_ROW * m if n > 0 else 0
    inner = np.sort(rng.integers(0, nnz + 1, (*batch, max(m - 1, 0))), axis=-1)
    ends = [np.zeros((*batch, 1)), inner, np.full((*batch, 1 if m > 0 else 0), nnz)]
    indptr = np.concatenate(ends, axis=-1).astype(np.int32)
    indices = rng.integers(0, max(n, 1), (*batch, nnz)).astype(np.int32)
    data, x = _numbers(rng, dtype, (*batch, nnz)), _numbers(rng, dtype, (*batch, n, n))
    # Two entries that no row has.
    unread = np.iinfo(dtype).min if dtype.kind == "i" else np.nan
    data = np.concatenate([data, np.full((*batch, 2), unread, dtype)], axis=-1)
    indices = np.concatenate([indices, np.full((*batch, 2), -1, np.int32)], axis=-1)
    return data, indptr, indices, x


def _numbers(rng: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    if dtype.kind == "i":
        return rng.integers(-9, 10, shape).astype(dtype)
    return normal(rng, dtype, shape)


def _csr_ratios(args: tuple[Array, ...], _: Attrs, rets: list[Array]) -> Array:
    data, indptr, indices, x = args
    y, batch = rets[0], data.shape[:-1]
    if y.size == 0:
        return np.zeros(batch)
    if data.dtype.kind == "i":
        exact = _dense(data, indptr, indices, x.shape[-2]) @ x.astype(np.int64)
        return unless((exact == y).all((-2, -1)), np.zeros(batch))
    a, x = _dense(wide(data), indptr, indices, x.shape[-2]), wide(x)
    size = np.abs(_dense(np.abs(wide(data)), indptr, indices, x.shape[-2])) @ np.abs(x)
    entries = np.maximum(np.diff(indptr), 1)[..., None]
    error = np.abs(wide(y) - a @ x)
    ratio = np.divide(error, entries * roundoff(data) * size, out=error / 1e-300, where=size > 0)
    return np.asarray(ratio.max((-2, -1)))


def _dense(data: Array, indptr: Array, indices: Array, n: int) -> Array:
    """The matrices with all their zeros; entries that repeat add."""
    batch, m, nnz = data.shape[:-1], indptr.shape[-1] - 1, int(indptr.reshape(-1)[-1])
    count = int(np.prod(batch))
    lengths = np.diff(indptr).reshape(-1)
    row = np.repeat(np.arange(count * m), lengths)
    kept = (data.reshape(count, -1)[:, :nnz], indices.reshape(count, -1)[:, :nnz])
    dense = np.zeros((count * m, n), np.result_type(data, np.int64))
    np.add.at(dense, (row, kept[1].reshape(-1)), kept[0].reshape(-1))
    return dense.reshape(*batch, m, n)


def _csr_flops(size: Size, _: Attrs) -> float:
    return 2 * PER_ROW * size.m * size.n


CHECKS = {"csr_sparse_dense": Check(_csr_inputs, _csr_ratios, _csr_flops, rectangular=True)}
