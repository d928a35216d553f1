"""Hermitian eigenproblems of one matrix and of pairs: types, subsets, derivatives, clusters."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from jax.test_util import check_grads
from ratios import LIMIT, adjoint, norm, orthogonality, ratio

from lapax import linalg
from programs import operands

TYPES = (1, 2, 3)


def pair(dtype, n=5, batch=(2,)):
    o = operands(np.dtype(dtype), n=n, batch=batch)
    hermitian = o.a + adjoint(o.a) - 2 * n * np.eye(n, dtype=dtype)
    return hermitian, o.s / n


@pytest.mark.parametrize("kind", TYPES)
def test_residuals(dtype, kind):
    a, b = pair(dtype)
    w, v = map(np.asarray, linalg.eigh(a, b, type=kind))
    inverse = np.linalg.inv(b)
    left, right = {1: (a @ v, b @ v), 2: (a @ b @ v, v), 3: (b @ a @ v, v)}[kind]
    metric = inverse if kind == 3 else b
    condition = norm(b) * norm(inverse)
    scale = norm(a) * norm(v) * (1 if kind == 1 else norm(b))
    assert ratio(left - right * w[:, None, :], scale * condition, dtype) < LIMIT
    assert ratio(adjoint(v) @ metric @ v - np.eye(5), condition, dtype) < LIMIT
    expected = [
        scipy.linalg.eigh(x, y, type=kind, eigvals_only=True) for x, y in zip(a, b, strict=True)
    ]
    rtol = LIMIT * np.finfo(dtype).eps
    np.testing.assert_allclose(w, expected, rtol=rtol, atol=rtol * np.abs(w).max())
    values = linalg.eigvalsh(a, b, type=kind)
    np.testing.assert_allclose(values, w, rtol=rtol, atol=rtol * np.abs(w).max())


@pytest.mark.parametrize("lower", [False, True])
def test_one_matrix_one_triangle(dtype, lower):
    a, b = pair(dtype)
    keep = np.tril if lower else np.triu
    w, v = map(np.asarray, linalg.eigh(keep(a), lower=lower))
    assert ratio(a @ v - v * w[:, None, :], norm(a), dtype) < LIMIT
    assert orthogonality(v, dtype) < LIMIT
    of_pair = linalg.eigvalsh(keep(a), keep(b), lower=lower)
    expected = [scipy.linalg.eigh(x, y, eigvals_only=True) for x, y in zip(a, b, strict=True)]
    np.testing.assert_allclose(of_pair, expected, rtol=0, atol=1e3 * np.finfo(dtype).eps)


def test_batches_are_loops():
    with jax.enable_x64(True):
        a, b = pair("f8", batch=(2, 3))
        w, v = linalg.eigh(a, b[0])
        mapped = jax.vmap(linalg.eigh)(a[0], b[0])
        one = linalg.eigh(a[0, 1], b[0, 1])
        for many in ((w[0, 1], v[0, 1]), (mapped[0][1], mapped[1][1])):
            np.testing.assert_allclose(many[0], one[0], rtol=1e-12)
            np.testing.assert_allclose(abs(many[1]), abs(one[1]), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("kind", "dtype"), [(1, "f8"), (1, "c16"), (2, "c16"), (3, "c16")])
def test_derivatives(kind, dtype):
    """Of values, and of what does not depend on the phases of vectors."""
    with jax.enable_x64(True):
        a, b = pair(dtype, n=3, batch=())

        @jax.jit
        def both(a, b):
            w, v = linalg.eigh(a, b, type=kind, subset_by_index=(0, 1))
            return linalg.eigvalsh(a, b, type=kind), w, v[:, :1] @ v[:, :1].conj().T, abs(v)

        check_grads(both, (a, b), 1)


def test_second_derivative():
    with jax.enable_x64(True):
        a, b = pair("f8", n=3, batch=())
        lowest = jax.grad(lambda a, b: linalg.eigvalsh(a, b)[0], (0, 1))
        check_grads(jax.jit(lowest), (a, b), 1)


def test_gradient_of_one_matrix_is_jax_s():
    with jax.enable_x64(True):
        a, _ = pair("f8", n=4, batch=())

        def value(eigh):
            return jax.jit(jax.grad(lambda a: jnp.sum(jnp.sin(jnp.stack(eigh(a)[1][:2])))))(a)

        ours, stock = value(linalg.eigh), value(jnp.linalg.eigh)
        ours, stock = (x + x.T for x in (ours, stock))
        np.testing.assert_allclose(abs(ours), abs(stock), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("subset", [(0, 4), (0, 0), (1, 3), (4, 4)])
def test_subset_by_index(subset):
    a, b = pair("f4")
    w, v = linalg.eigh(a, b)
    first, last = subset
    some = linalg.eigh(a, b, subset_by_index=list(subset))
    np.testing.assert_array_equal(some[0], w[:, first : last + 1])
    np.testing.assert_array_equal(some[1], v[:, :, first : last + 1])
    np.testing.assert_array_equal(linalg.eigvalsh(a, subset_by_index=subset).shape, some[0].shape)


def test_subset_by_value():
    a = np.stack([np.diag([1.0, 2, 3, 4]), np.diag([2.0, 2, 5, 9]), np.full((4, 4), np.nan)])
    select = jax.jit(lambda a: linalg.eigh(a, subset_by_value=(1, 3), size=3))
    w, v, count = select(a.astype("f4"))
    np.testing.assert_array_equal(count, [2, 2, 0])
    np.testing.assert_allclose(w, [[2, 3, np.nan], [2, 2, np.nan], [np.nan] * 3], rtol=1e-6)
    np.testing.assert_array_equal(v[:2, :, 2], 0)
    assert np.isnan(v[2]).all()
    w, count = linalg.eigvalsh(a, subset_by_value=(1, 3), size=1)
    np.testing.assert_array_equal(count, [2, 2, 0])
    np.testing.assert_allclose(w[:2], [[2], [2]], rtol=1e-6)
    w, v = linalg.eigh(a[:2], subset_by_value=(1, 3))
    np.testing.assert_allclose(w, [[2, 3], [2, 2]], rtol=1e-6)
    assert v.shape == (2, 4, 2)
    assert linalg.eigvalsh(a[0], subset_by_value=(10, np.inf)).shape == (0,)
    with pytest.raises(ValueError, match="equally many in each matrix, got from 1 to 2: pass size"):
        linalg.eigvalsh(a[:2], subset_by_value=(2, 5))
    with pytest.raises(ValueError, match=r"eigvalsh: .* pass size"):
        jax.jit(lambda a: linalg.eigvalsh(a, subset_by_value=(2, 5)))(a)


def test_nan_stays_in_its_matrix():
    a, b = pair("f4", batch=(4,))
    b[1, 0, 0] = -1
    b[2] = 0
    a[3, 2, 1] = np.nan
    for kind in TYPES:
        w, v = linalg.eigh(a, b, type=kind)
        assert np.isfinite(w[0]).all()
        assert np.isfinite(v[0]).all()
        assert np.isnan(w[1:]).all()
        assert np.isnan(v[1:]).all()
        assert np.isnan(linalg.eigvalsh(a, b, type=kind)).all(-1).tolist() == [0, 1, 1, 1]


def test_empty_and_one_and_integers():
    w, v = linalg.eigh(np.zeros((0, 0)), np.zeros((0, 0)))
    assert (w.shape, v.shape) == ((0,), (0, 0))
    w, v = linalg.eigh([[1j]])
    assert w == 0
    assert v.dtype == "c8"
    np.testing.assert_allclose(linalg.eigvalsh([[8]], [[2]]), [4])


@pytest.mark.parametrize("how", ["mask", "broaden"])
def test_gradients_where_eigenvalues_repeat(how):
    """Of a function of the spans of clusters: that of eigenvalues three and four apart from
    rounding errors, and of a cluster that is exact."""
    with jax.enable_x64(True):
        rng = np.random.default_rng(3)
        q = np.linalg.qr(rng.standard_normal((4, 4)))[0]
        weight = rng.standard_normal((4, 4))
        a, direction = q @ np.diag([1.0, 1, 2, 2]) @ q.T, rng.standard_normal((4, 4))
        direction += direction.T

        def of_spans(a, **options):
            _, v = linalg.eigh(a, **options)
            return jnp.sum(weight * (v[:, :2] @ v[:, :2].T))

        gradients = jax.jit(jax.grad(lambda a: of_spans(a, degenerate=how)))
        gradient = gradients(a)
        # With P = V₁·V₁ᵀ, dP = V₁·V₁ᵀ·dA·V₂·V₂ᵀ/(1 − 2) and its transpose.
        first, second = q[:, :2] @ q[:, :2].T, q[:, 2:] @ q[:, 2:].T
        change = -first @ direction @ second
        expected = np.sum(weight * (change + change.T))
        np.testing.assert_allclose(np.sum(gradient * direction), expected, rtol=1e-8)
        assert np.isfinite(gradients(np.eye(4))).all()
        assert not np.isfinite(jax.jit(jax.grad(of_spans))(np.eye(4))).all()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"type": 4}, "eigh: type: expected one of 1, 2, 3, got 4"),
        ({"subset_by_index": (0, 5)}, "eigh: subset_by_index: .* got 0 and 5"),
        ({"subset_by_index": (-1, 2)}, "got -1 and 2"),
        ({"subset_by_index": (2, 1)}, "got 2 and 1"),
        ({"subset_by_value": (2, 1)}, "eigh: subset_by_value: expected low < high"),
        ({"subset_by_index": (0, 1), "subset_by_value": (1, 2)}, "got both"),
        ({"size": 2}, "eigh: size: expected with subset_by_value"),
        ({"driver": "evr"}, "eigh: driver"),
        ({"degenerate": "blur"}, "eigh: degenerate: expected one of None, 'mask', 'broaden'"),
        ({"degenerate": "mask", "width": 0}, "eigh: width: expected a positive number"),
    ],
)
def test_misuse(options, text):
    a, b = pair("f4")
    with pytest.raises(ValueError, match=text):
        linalg.eigh(a, b, **options)


def test_shapes_that_do_not_fit():
    a, b = pair("f4")
    with pytest.raises(ValueError, match=r"eigvalsh: b: expected 5 rows, got 3"):
        linalg.eigvalsh(a, b[:, :3, :3])
    with pytest.raises(ValueError, match=r"eigh: a: expected shape"):
        linalg.eigh(a[:, :3])
