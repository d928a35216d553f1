"""Special matrices, blocks, products and sketches beside SciPy's."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from jax.test_util import check_grads

from lapax import linalg

RNG = np.random.default_rng(0)
REAL, COMPLEX = RNG.standard_normal((2, 5)), RNG.standard_normal((2, 5)) + 1j

OF_VECTORS = [
    ("hankel", ([1, 2, 3],)),
    ("hankel", ([1, 2, 3], [3, 4])),
    ("hankel", (COMPLEX[0], REAL[0])),
    ("hankel", ([],)),
    ("convolution_matrix", (REAL, 3)),
    ("convolution_matrix", (COMPLEX, 8, "same")),
    ("convolution_matrix", (REAL, 4, "same")),
    ("convolution_matrix", (REAL, 9, "valid")),
    ("convolution_matrix", ([2], 1, "valid")),
    ("companion", ([2, 3, 4],)),
    ("companion", (COMPLEX,)),
    ("fiedler_companion", (REAL[0, :2],)),
    ("fiedler_companion", (COMPLEX,)),
    ("fiedler_companion", (REAL[:, :4],)),
    ("leslie", ([1, 2, 3], [0.5, 0.25])),
    ("leslie", (REAL, COMPLEX[:, :4])),
    ("fiedler", ([1, 5, 2],)),
    ("fiedler", (COMPLEX,)),
    ("diagsvd", ([1, 2, 3], 4, 3)),
    ("diagsvd", (COMPLEX, 5, 7)),
    ("khatri_rao", (REAL, COMPLEX)),
    ("khatri_rao", (np.zeros((0, 2)), np.ones((3, 2)))),
    ("block_diag", ()),
    ("block_diag", ([2, 3], 4)),
    ("block_diag", (np.eye(2), [[]], np.zeros((0, 2)), 1j)),
    ("block_diag", (REAL[:, :, None], COMPLEX[:, None])),
    ("block_diag", ([[True]],)),
]


@pytest.mark.parametrize(("name", "arguments"), OF_VECTORS)
def test_matrices_of_arrays_are_scipys(name, arguments):
    with jax.enable_x64(True):
        found = getattr(linalg, name)(*arguments)
    expected = getattr(scipy.linalg, name)(*arguments)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-15)


def test_the_smallest_matrices():
    assert linalg.fiedler([]).shape == (0, 0)
    assert linalg.fiedler_companion([]).shape == (0, 0)
    assert linalg.fiedler_companion([2.0]).shape == (0, 0)
    assert linalg.dft(0).shape == linalg.hilbert(0).shape == linalg.pascal(0).shape == (0, 0)
    assert linalg.helmert(1).shape == (0, 1)


OF_ORDERS = [
    ("dft", {}),
    ("dft", {"scale": "sqrtn"}),
    ("dft", {"scale": "n"}),
    ("helmert", {}),
    ("helmert", {"full": True}),
    ("hilbert", {}),
    ("invhilbert", {}),
    ("invhilbert", {"exact": True}),
    *((name, {"kind": kind}) for name in ("pascal", "invpascal") for kind in ("lower", "upper")),
    ("pascal", {"exact": False}),
    ("invpascal", {}),
]


@pytest.mark.parametrize(("name", "options"), OF_ORDERS)
def test_matrices_of_an_order_are_scipys(name, options):
    with jax.enable_x64(True):
        for n in (1, 6):
            found = getattr(linalg, name)(n, **options)
            expected = getattr(scipy.linalg, name)(n, **options)
            assert found.dtype == expected.dtype or name == "pascal"
            np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-15)


def test_hadamard():
    np.testing.assert_array_equal(linalg.hadamard(16), scipy.linalg.hadamard(16))
    assert linalg.hadamard(2, jnp.bfloat16).dtype == jnp.bfloat16


def test_integers_are_exact_up_to_their_bits():
    with jax.enable_x64(True):
        np.testing.assert_array_equal(linalg.pascal(34), scipy.linalg.pascal(34))
        rounded = linalg.pascal(35, exact=False)
    np.testing.assert_array_equal(rounded, scipy.linalg.pascal(35).astype(float))
    with pytest.raises(ValueError, match=r"pascal: n: .* int32 has, got 33 bits for n=18"):
        linalg.pascal(18)
    with jax.enable_x64(True):
        assert linalg.invhilbert(300)[100, 100] == np.inf


def test_a_zero_leading_coefficient_is_nan_alone():
    a = np.array([[0, 1, 2], [1, -3, 2.0]])
    for function in (linalg.companion, linalg.fiedler_companion):
        first, second = function(a)
        assert np.isnan(first).any()
        np.testing.assert_allclose(sorted(np.linalg.eigvals(second).real), [1, 2], rtol=1e-6)


def test_derivatives_of_special_matrices():
    with jax.enable_x64(True):
        a, b = jnp.asarray(REAL[0, :4]), jnp.asarray(REAL[1, :3])
        w = jnp.asarray(RNG.standard_normal((3, 3)))

        @jax.jit
        def through_all(a, b):
            made = (linalg.companion(a), linalg.fiedler_companion(a), linalg.leslie(b, a[:2]))
            made += (linalg.fiedler(b), linalg.convolution_matrix(a, 3, "valid").T @ a[:2, None])
            return sum(jnp.vdot(w[:, : m.shape[1]], m) for m in made) + linalg.hankel(a, b)

        check_grads(through_all, (a, b), order=1)


def test_a_sketch_nearly_keeps_norms():
    a = RNG.standard_normal((2, 2000, 10))
    sketched = jax.jit(linalg.clarkson_woodruff_transform, static_argnums=1)
    y = sketched(a, 200, jax.random.key(0))
    assert y.shape == (2, 200, 10)
    kept = np.linalg.norm(y, axis=(1, 2)) / np.linalg.norm(a, axis=(1, 2))
    np.testing.assert_allclose(kept, 1, atol=0.1)
    np.testing.assert_allclose(linalg.clarkson_woodruff_transform(a[1], 200, 0), y[1], rtol=1e-5)
    other = linalg.clarkson_woodruff_transform(a[1], 200, seed=1)
    assert not np.allclose(other, y[1])


def test_a_sketch_has_one_entry_in_each_column():
    s = np.asarray(linalg.clarkson_woodruff_transform(np.eye(50), 4, jax.random.PRNGKey(2)))
    np.testing.assert_array_equal(np.abs(s).sum(0), 1)
    assert set(s.ravel()) == {-1, 0, 1}


WRONG = [
    (lambda: linalg.companion([1.0]), r"companion: a: expected 2 or more .* len\(a\)=1"),
    (lambda: linalg.convolution_matrix([], 4), r"convolution_matrix: a: .*len\(a\)=0"),
    (lambda: linalg.convolution_matrix([1], 0), "n must be a positive integer, got 0"),
    (lambda: linalg.convolution_matrix([1], 1, "x"), "mode: expected one of .*, got 'x'"),
    (lambda: linalg.leslie([1, 2], [1, 2]), "leslie: s: expected 1 entries, got 2"),
    (lambda: linalg.diagsvd([1, 2], 1, 3), "diagsvd: s: expected 1 entries, got 2"),
    (lambda: linalg.khatri_rao(REAL, REAL.T), "khatri_rao: b: expected 5 columns, got 2"),
    (lambda: linalg.block_diag(np.ones((2, 1, 1)), np.ones((3, 1, 1))), r"arrs\[1\] \[3\]"),
    (lambda: linalg.dft(2, "x"), "dft: scale: expected one of .*, got 'x'"),
    (lambda: linalg.hadamard(6), "hadamard: n: expected a power of two, got 6"),
    (lambda: linalg.helmert(0), "helmert: n: expected a positive integer, got 0"),
    (lambda: linalg.pascal(3, "x"), "pascal: kind: expected one of .*, got 'x'"),
    (lambda: linalg.clarkson_woodruff_transform(REAL, 2), "rng: expected a key .*, got None"),
]


@pytest.mark.parametrize(("call", "text"), WRONG)
def test_misuse_is_named(call, text):
    with pytest.raises(ValueError, match=text):
        call()
