"""Spectra of banded and tridiagonal matrices: eigenpairs, selections, derivatives."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg as sl
from derivatives import check_derivatives
from ratios import LIMIT, norm, orthogonality, ratio

from lapax import linalg


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def parts(*shape: int, dtype: Any = np.float64, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A diagonal and what stands beside it."""
    rng = np.random.default_rng(seed)
    d, e = rng.standard_normal(shape), rng.standard_normal((*shape[:-1], shape[-1] - 1))
    return d.astype(dtype), e.astype(dtype)


def whole(d: np.ndarray, e: np.ndarray) -> np.ndarray:
    n = d.shape[-1]
    a = np.zeros((*d.shape[:-1], n, n))
    i = np.arange(n)
    a[..., i, i] = d
    a[..., i[1:], i[:-1]] = a[..., i[:-1], i[1:]] = e
    return a


def check_pairs(a: np.ndarray, w: Any, v: Any, dtype: Any) -> None:
    assert w.dtype == dtype
    assert v.dtype == dtype
    w, v = np.asarray(w, np.float64), np.asarray(v, np.float64)
    assert ratio(a @ v - v * w[..., None, :], norm(a), dtype) < LIMIT
    assert orthogonality(v, dtype) < LIMIT


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 5, 20, 70, 200])
def test_residuals(n: int, dtype: Any) -> None:
    d, e = parts(5, n, dtype=dtype) if n <= 20 else parts(1, n, dtype=dtype)
    a = whole(d, e)
    w, v = jax.jit(linalg.eigh_tridiagonal)(d, e)
    check_pairs(a, w, v, dtype)
    alone = linalg.eigvalsh_tridiagonal(d, e)
    scale = n * np.finfo(dtype).eps * norm(a)
    for i in range(len(d)):
        expected = sl.eigvalsh_tridiagonal(d[i].astype(float), e[i].astype(float))
        for found in (w[i], alone[i]):
            assert np.max(abs(np.asarray(found) - expected)) < LIMIT * scale[i]
    part = (n // 3, n // 2)
    some, vectors = linalg.eigh_tridiagonal(d, e, select="i", select_range=part)
    check_pairs(a, some, vectors, dtype)
    np.testing.assert_allclose(some, w[:, part[0] : part[1] + 1], atol=np.max(LIMIT * scale))


def by_name() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    n = 42
    i = np.arange(n)
    wilkinson = abs(i % 21 - 10.0)
    return {
        "glued Wilkinson": (wilkinson, np.where(i[1:] % 21 == 0, 1e-9, 1.0)),
        "split": (wilkinson, np.where(i[1:] % 3 == 0, 0.0, 1.0)),
        "graded": (0.3**i, 0.3 ** i[1:]),
        "graded the other way": (0.3 ** i[::-1], 0.3 ** i[:0:-1]),
        "zero diagonal": (0.0 * i, np.ones(n - 1)),
        "equal": (np.ones(n), np.zeros(n - 1)),
        "huge": (1e300 * wilkinson, np.full(n - 1, 1e300)),
        "denormal": (1e-310 * wilkinson, np.full(n - 1, 1e-310)),
    }


@pytest.mark.parametrize("kind", by_name())
@pytest.mark.parametrize("batch", [1, 9])
def test_adversarial_kinds(kind: str, batch: int) -> None:
    d, e = by_name()[kind]
    w, v = linalg.eigh_tridiagonal(np.tile(d, (batch, 1)), np.tile(e, (batch, 1)))
    # A denormal number has fewer digits: its last one is the unit there.
    size = np.max(abs(d)) + np.max(abs(e))
    power = 2.0 ** -np.clip(np.floor(np.log2(size)), -1000, 1000)
    eps = max(np.finfo(float).eps, 5e-324 * power / (size * power))
    a, w = whole(d * power, e * power), np.asarray(w) * power
    error = a @ np.asarray(v) - np.asarray(v) * w[:, None]
    assert np.max(norm(error) / (len(d) * norm(a) * eps)) < LIMIT
    assert orthogonality(v, np.float64) < LIMIT


def test_sign_is_that_of_eigh() -> None:
    d, e = parts(3, 40)
    with_installed = linalg.eigh_tridiagonal(d, e)[1]
    v = np.asarray(with_installed)
    large = abs(v) * np.sqrt(40) >= 0.4869
    first = np.take_along_axis(v, large.argmax(-2)[:, None], -2)
    assert (first > 0).all()


def test_a_batch_is_a_loop() -> None:
    d, e = parts(2, 5, 7)
    select: dict[str, Any] = {"select": "i", "select_range": (2, 4)}
    for f in (partial(linalg.eigh_tridiagonal, **select), linalg.eigh_tridiagonal):
        w, v = f(d, e)
        for i in np.ndindex(2, 5):
            alone = f(d[i], e[i])
            np.testing.assert_allclose(w[i], alone[0], atol=1e-13)
            np.testing.assert_allclose(v[i], alone[1], atol=1e-12)
        mapped = jax.vmap(jax.vmap(f))(d, e)
        jax.tree.map(np.testing.assert_array_equal, mapped, (w, v))
    one = linalg.eigvalsh_tridiagonal(d, e[0, 0])
    again = linalg.eigvalsh_tridiagonal(d, np.broadcast_to(e[0, 0], e.shape))
    np.testing.assert_array_equal(one, again)


def test_not_finite_stays_in_its_matrix() -> None:
    d, e = parts(3, 6)
    expected = linalg.eigh_tridiagonal(d, e)
    spoilt = e.copy()
    spoilt[1, 2] = np.nan
    select: dict[str, Any] = {"select": "v", "select_range": (-9, 9), "size": 6}
    w, v = linalg.eigh_tridiagonal(d, spoilt)
    chosen, vectors, count = linalg.eigh_tridiagonal(d, spoilt, **select)
    for found, right in ((w, expected[0]), (v, expected[1]), (chosen, w), (vectors, v)):
        assert np.isnan(found[1]).all()
        np.testing.assert_array_equal(found[::2], right[::2])
    np.testing.assert_array_equal(count, [6, 0, 6])


def test_derivatives() -> None:
    d, e = parts(2, 6, seed=3)

    def squares(d: Any, e: Any) -> Any:
        w, v = linalg.eigh_tridiagonal(d, e)
        return jnp.concatenate([w[..., None, :], v], -2)

    def some(d: Any, e: Any) -> Any:
        w, v = linalg.eigh_tridiagonal(d, e, select="i", select_range=(1, 3))
        return jnp.concatenate([w[..., None, :], v], -2)

    for f in (squares, some, linalg.eigvalsh_tridiagonal):
        check_derivatives(f, d, e)


def test_derivative_is_that_of_eigh() -> None:
    d, e = parts(5, seed=4)
    c = np.random.default_rng(5).standard_normal((5, 5))

    def by_whole(d: Any, e: Any) -> Any:
        a = jnp.diag(d) + jnp.diag(e, 1) + jnp.diag(e, -1)
        w, v = jnp.linalg.eigh(a)
        return jnp.sum(w**3) + jnp.sum(c * v * v)

    def value(d: Any, e: Any) -> Any:
        w, v = linalg.eigh_tridiagonal(d, e)
        return jnp.sum(w**3) + jnp.sum(c * v * v)

    expected = jax.grad(by_whole, (0, 1))(d, e)
    for found, right in zip(jax.grad(value, (0, 1))(d, e), expected, strict=True):
        np.testing.assert_allclose(found, right, atol=1e-10)


def test_no_matrix_is_built() -> None:
    d, e = jnp.ones(1000), jnp.ones(999)
    jaxpr = str(jax.make_jaxpr(linalg.eigvalsh_tridiagonal)(d, e))
    assert "1000,1000" not in jaxpr
    some = partial(linalg.eigh_tridiagonal, select="i", select_range=(0, 4))
    assert "1000,1000" not in str(jax.make_jaxpr(some)(d, e))


def hermitian(ab: np.ndarray, lower: bool) -> np.ndarray:
    """The matrix of which the diagonals of one triangle are given."""
    u, n = len(ab) - 1, ab.shape[-1]
    a = np.zeros((n, n), ab.dtype)
    for k in range(u + 1):
        a += np.diag(ab[k, : n - k], -k) if lower else np.diag(ab[u - k, k:], k)
    strict = np.tril(a, -1) if lower else np.triu(a, 1)
    return np.asarray(strict + strict.conj().T + np.diag(a.diagonal().real))


def band(u: int, n: int, dtype: Any, seed: int = 8) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((u + 1, n))
    return np.asarray(x + 1j * rng.standard_normal((u + 1, n)) if dtype is complex else x)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("u", [0, 1, 2])
def test_eig_banded(u: int, dtype: Any, lower: bool) -> None:
    h = np.stack([band(u, 9, dtype, seed) for seed in (8, 9)])
    a = np.stack([hermitian(h, lower) for h in h])
    for k in range(1, u + 1):
        outside = (..., k, slice(9 - k, None)) if lower else (..., u - k, slice(k))
        h[outside] = np.nan
    expected = np.linalg.eigvalsh(a)
    w, v = (np.asarray(x) for x in linalg.eig_banded(h, lower=lower))
    np.testing.assert_allclose(w, expected, atol=1e-12)
    np.testing.assert_allclose(a @ v, v * w[:, None], atol=1e-12)
    some = linalg.eigvals_banded(h, lower=lower, select="i", select_range=(2, 4))
    np.testing.assert_allclose(some, expected[:, 2:5], atol=1e-12)


@pytest.mark.parametrize("u", [1, 2])
def test_values_in_a_range(u: int) -> None:
    h = band(u, 9, float)
    expected = np.linalg.eigvalsh(hermitian(h, True))
    between = (float(expected[2]) - 1e-6, float(expected[5]) + 1e-6)
    select: dict[str, Any] = {"lower": True, "select": "v", "select_range": between}
    w, v = linalg.eig_banded(h, **select)
    np.testing.assert_allclose(w, expected[2:6], atol=1e-12)
    assert v.shape == (9, 4)
    for found in (
        jax.jit(partial(linalg.eig_banded, size=6, **select))(h),
        (*jax.jit(partial(linalg.eig_banded, max_ev=6, **select))(h), 4),
    ):
        roomy, vectors, count = found
        np.testing.assert_array_equal(np.isnan(roomy), np.arange(6) >= 4)
        np.testing.assert_allclose(roomy[:4], w)
        np.testing.assert_allclose(vectors[:, :4], v)
        assert not np.asarray(vectors[:, 4:]).any()
        assert count == 4
    only = linalg.eigvals_banded(h, size=3, **select)
    np.testing.assert_allclose(only[0], w[:3])
    assert only[1].dtype == np.int32
    # SciPy's room has no count.
    alone = linalg.eig_banded(h, eigvals_only=True, max_ev=4, **select)
    np.testing.assert_allclose(alone, w)


def test_values_of_a_tridiagonal_matrix_in_a_range() -> None:
    d, e = parts(8, seed=9)
    w, v = linalg.eigh_tridiagonal(d, e)
    between = (float(w[2]) - 1e-9, float(w[4]) + 1e-9)
    some = linalg.eigh_tridiagonal(d, e, select="v", select_range=between)
    np.testing.assert_array_equal(some[0], w[2:5])
    np.testing.assert_array_equal(some[1], v[:, 2:5])
    expected = sl.eigh_tridiagonal(d, e, select="v", select_range=between)
    np.testing.assert_allclose(some[0], expected[0], atol=1e-12)
    np.testing.assert_allclose(abs(some[1]), abs(expected[1]), atol=1e-10)
    none = linalg.eigvalsh_tridiagonal(d, e, select="v", select_range=(90, 91))
    assert none.shape == (0,)


def test_errors_name_function_and_argument() -> None:
    ab, d, e = jnp.ones((3, 5)), jnp.arange(3.0), jnp.ones((2, 2))
    between: dict[str, Any] = {"select": "v", "select_range": (0, 1)}
    for call, text in (
        (
            lambda: linalg.eig_banded(ab, select="i", select_range=(0, 5)),
            "eig_banded: select_range: expected indices from 0 to 4, got 0 and 5",
        ),
        (
            lambda: linalg.eig_banded(ab, select="v"),
            "eig_banded: select_range: expected two numbers, got None",
        ),
        (
            lambda: linalg.eigvals_banded(ab, select="b"),
            "eigvals_banded: select: expected one of 'a', 'v', 'i', got 'b'",
        ),
        (lambda: linalg.eig_banded(ab, size=3), 'eig_banded: size: expected with select="v"'),
        (
            lambda: linalg.eigh_tridiagonal(d + 0j, e[0]),
            "eigh_tridiagonal: d, e: expected real arrays, got complex128",
        ),
        (lambda: linalg.eigh_tridiagonal(d, d), r"eigh_tridiagonal: expected d \[..., n\] and e"),
        (
            lambda: linalg.eigvalsh_tridiagonal(jnp.stack([d, 9 * d]), e, **between),
            "eigvalsh_tridiagonal: select_range: expected equally many .* pass size",
        ),
        (
            lambda: jax.jit(partial(linalg.eigh_tridiagonal, **between))(d, e[0]),
            "eigh_tridiagonal: .* pass size",
        ),
        (
            lambda: jax.jit(partial(linalg.eig_banded, **between))(ab),
            "eig_banded: .* pass size",
        ),
    ):
        with pytest.raises(ValueError, match=text):
            call()
