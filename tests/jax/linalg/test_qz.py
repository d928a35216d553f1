"""qz, ordqz and eig of pairs, beside SciPy's, under jit, vmap and grad."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from jax.test_util import check_grads

import lapax.linalg

LIMIT = 30


@pytest.fixture
def double():
    with jax.enable_x64(True):
        yield


def normal(dtype, *shape, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def pairs(n=8):
    """Real pairs by name."""
    a, b = normal("float64", n, n), normal("float64", n, n, seed=1)
    eye, shift = np.eye(n), np.eye(n, k=1)
    graded = np.exp2(-40.0 * np.arange(n) / n)
    low = b.copy()
    low[:, n // 2 :] = 0
    gaps = np.triu(b)
    gaps[[0, n // 2, n - 1], [0, n // 2, n - 1]] = 0
    return {
        "random": (a, b),
        "identity": (a, eye),
        "symmetric": (a + a.T, b @ b.T),
        "singular B": (a, low),
        "zeros on the diagonal of B": (a, gaps),
        "infinite": (a, 0 * eye),
        "cyclic": (np.roll(eye, 1, 0), eye),
        "Jordan": (shift, eye),
        "singular pair": (np.triu(a, 1), np.triu(b, 1)),
        "zero": (0 * eye, 0 * eye),
        "graded": (graded[:, None] * a * graded, graded[:, None] * b),
        "near overflow": (a * 1e300, b * 1e-300),
    }


def norm(x):
    return np.linalg.norm(x.astype(np.complex128), 1)


def ratio(error, size, like):
    scale = error.shape[0] * size * np.finfo(like.dtype).eps / 2
    return norm(error) / scale if scale > 0 else norm(error)


def assert_form(a, b, s, t, q, z):
    wide = [np.asarray(x).astype(np.complex128) for x in (q, s, t, z)]
    q, s, t, z = wide
    n = a.shape[0]
    assert ratio(q @ s @ z.conj().T - a, norm(a), a) < LIMIT
    assert ratio(q @ t @ z.conj().T - b, norm(b), a) < LIMIT
    for x in (q, z):
        assert ratio(x.conj().T @ x - np.eye(n), 1, a) < LIMIT
    assert not np.tril(t, -1).any()
    assert not np.tril(s, -2).any()
    assert np.all(np.diagonal(t).real >= 0)
    assert np.all(np.diagonal(t).imag == 0)
    blocks = np.diagonal(s, -1) != 0
    assert not blocks.any() or a.dtype.kind == "f"
    assert not np.diagonal(t, 1)[blocks].any()
    assert not np.any(blocks[1:] & blocks[:-1])


def assert_vectors(a, b, w, left, right):
    """(β·A − α·B)·v and its like for u are small."""
    w, u, v = (np.asarray(x).astype(np.complex128) for x in (w, left, right))
    alpha, beta = w
    for x, first, second, above in (
        (v, a, b, alpha),
        (u, a.conj().T, b.conj().T, alpha.conj()),
    ):
        size = np.maximum(abs(alpha) * norm(b), abs(beta) * norm(a))
        size[size == 0] = 1
        error = (first @ x) * (beta / size) - (second @ x) * (above / size)
        assert norm(error) < LIMIT * len(a) * np.finfo(a.dtype).eps / 2
        np.testing.assert_allclose(np.linalg.norm(x, axis=0), 1, rtol=10 * np.finfo(a.dtype).eps)


@pytest.mark.parametrize("n", [1, 2, 24])
def test_qz(dtype, n):
    a, b = normal(dtype, n, n), normal(dtype, n, n, seed=1)
    form = lapax.linalg.qz(a, b)
    assert all(x.dtype == dtype and x.shape == (n, n) for x in form)
    assert_form(a, b, *form)


def test_empty(dtype):
    a = np.zeros((2, 0, 0), dtype)
    assert [x.shape for x in lapax.linalg.qz(a, a)] == [(2, 0, 0)] * 4
    assert [x.shape[1:] for x in lapax.linalg.eig(a, a, left=True)] == [(0,), (0, 0), (0, 0)]


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("name", pairs())
@pytest.mark.parametrize("output", ["real", "complex"])
def test_qz_of_adversarial_pairs(name, output):
    a, b = pairs()[name]
    form = lapax.linalg.qz(a, b, output=output)
    assert_form(a.astype(form[0].dtype), b, *form)
    for sort in ("iuc", lambda alpha, beta: np.arange(8) % 2):
        s, t, _, _, q, z = lapax.linalg.ordqz(a, b, sort, output)
        assert_form(a.astype(s.dtype), b, s, t, q, z)


@pytest.mark.parametrize("sort", ["lhp", "rhp", "iuc", "ouc"])
def test_ordqz(dtype, sort):
    a, b = normal(dtype, 10, 10), normal(dtype, 10, 10, seed=1)
    s, t, alpha, beta, q, z = lapax.linalg.ordqz(a, b, sort)
    assert_form(a, b, s, t, q, z)
    their_alpha, their_beta = scipy.linalg.ordqz(a, b, sort)[2:4]
    choose = {
        "lhp": lambda w: w.real < 0,
        "rhp": lambda w: w.real > 0,
        "iuc": lambda w: abs(w) < 1,
        "ouc": lambda w: abs(w) > 1,
    }[sort]
    chosen = choose(np.asarray(alpha / beta))
    assert np.all(chosen[:-1] >= chosen[1:])
    assert chosen.sum() == choose(their_alpha / their_beta).sum()
    assert beta.dtype == their_beta.dtype
    assert alpha.dtype == their_alpha.dtype


@pytest.mark.usefixtures("double")
def test_ordqz_by_a_function_and_infinite_eigenvalues():
    a, b = pairs()["singular B"]
    *_, beta, _, _ = lapax.linalg.ordqz(a, b, lambda alpha, beta: beta == 0)
    assert np.count_nonzero(np.asarray(beta) == 0) == 4
    assert not np.asarray(beta)[:4].any()
    *_, beta, _, _ = lapax.linalg.ordqz(a, b, "ouc")
    assert np.count_nonzero(np.asarray(beta) == 0) == 4
    s, t, _, _, q, z = lapax.linalg.ordqz(a, b, "lhp")
    assert_form(a, b, s, t, q, z)


@pytest.mark.parametrize("n", [1, 2, 20])
def test_eig_of_a_pair(dtype, n):
    a, b = normal(dtype, n, n), normal(dtype, n, n, seed=1)
    w, u, v = lapax.linalg.eig(a, b, left=True)
    assert_vectors(a, b, lapax.linalg.eigvals(a, b, homogeneous_eigvals=True), u, v)
    theirs = scipy.linalg.eigvals(a.astype("complex128"), b.astype("complex128"))
    ours = np.asarray(w)
    nearest = abs(ours[:, None] - theirs).min(1) / (1 + abs(ours)) ** 2
    condition = 1 / abs(np.sum(np.asarray(u).conj() * (b @ np.asarray(v)), 0)).min()
    assert nearest.max() < 1e3 * np.finfo(dtype).eps * max(condition, 1)
    np.testing.assert_array_equal(lapax.linalg.eigvals(a, b), w)
    np.testing.assert_array_equal(lapax.linalg.eig(a, b, right=False), w)
    np.testing.assert_array_equal(lapax.linalg.eig(a, b, left=True, right=False)[1], u)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("name", pairs())
def test_eig_of_adversarial_pairs(name):
    a, b = pairs()[name]
    w, u, v = lapax.linalg.eig(a, b, left=True, homogeneous_eigvals=True)
    if np.all(abs(np.asarray(w)).max(0) > 0):
        assert_vectors(a, b, w, u, v)
    else:
        assert np.isfinite(np.asarray(v)).all()
    ours, theirs = lapax.linalg.eigvals(a, b), scipy.linalg.eigvals(a, b)
    assert np.isinf(ours).sum() == np.isinf(theirs).sum()
    assert np.isnan(ours).sum() == np.isnan(theirs).sum()


@pytest.mark.usefixtures("double")
def test_without_a_second_matrix_nothing_changes():
    a = normal("float64", 6, 6)
    w, v = lapax.linalg.eig(a, np.eye(6))
    alone, vectors = lapax.linalg.eig(a)
    order = [int(np.argmin(abs(np.asarray(alone) - x))) for x in np.asarray(w)]
    np.testing.assert_allclose(w, alone[np.array(order)], atol=1e-12)
    # JAX's own of real eigenvalues may be negative where they are largest.
    cosines = np.sum(np.asarray(v).conj() * np.asarray(vectors)[:, order], 0)
    np.testing.assert_allclose(abs(cosines), 1, rtol=1e-11)


@pytest.mark.usefixtures("double")
def test_batches_are_loops_and_vmap_is_a_batch():
    a, b = normal("float32", 2, 3, 4, 4), normal("float32", 3, 4, 4, seed=1)
    s, t, alpha, beta, q, z = lapax.linalg.ordqz(a, b)
    mapped = jax.vmap(jax.vmap(lapax.linalg.ordqz), in_axes=(0, None))(a, b)
    for x, y in zip((s, t, alpha, beta, q, z), mapped, strict=True):
        np.testing.assert_array_equal(x, y)
    for i, j in np.ndindex(2, 3):
        alone = lapax.linalg.ordqz(a[i, j], b[j])
        for x, y in zip((s, t, alpha, beta, q, z), alone, strict=True):
            np.testing.assert_array_equal(x[i, j], y)
    w, v = jax.jit(lapax.linalg.eig)(a, b)
    np.testing.assert_allclose(w[1, 2], lapax.linalg.eig(a[1, 2], b[2])[0], rtol=1e-6)
    assert w.shape == (2, 3, 4)
    assert v.shape == (2, 3, 4, 4)
    both = lapax.linalg.eigvals(a, b, homogeneous_eigvals=True)
    assert both.shape == (2, 3, 2, 4)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_stays_in_its_matrix(bad):
    a, b = normal("float64", 3, 5, 5), normal("float64", 3, 5, 5, seed=1)
    clean = [*lapax.linalg.ordqz(a, b), *lapax.linalg.eig(a, b, left=True)]
    b[1, 2, 3] = bad
    results = [*lapax.linalg.ordqz(a, b), *lapax.linalg.eig(a, b, left=True)]
    for x, y in zip(results, clean, strict=True):
        assert np.isnan(np.asarray(x)[1]).all()
        np.testing.assert_array_equal(np.asarray(x)[::2], np.asarray(y)[::2])


@pytest.mark.usefixtures("double")
def test_derivatives():
    a, b = normal("float64", 4, 4), normal("float64", 4, 4, seed=1)
    complex_a, complex_b = normal("complex128", 4, 4), normal("complex128", 4, 4, seed=1)

    @jax.jit
    def everything(a, b):
        w, u, v = lapax.linalg.eig(a, b, left=True)
        return w, u, v

    check_grads(everything, (complex_a, complex_b), 1, ["fwd"], rtol=1e-4)
    # Eigenvalues of a real pair may meet; these are apart.
    check_grads(everything, (a, b), 1, ["fwd"], rtol=1e-4)
    values = jax.jit(lapax.linalg.eigvals)
    check_grads(values, (a, b), 2, ["fwd"], rtol=1e-4)
    check_grads(values, (a, b), 1, ["rev"], rtol=1e-4)


@pytest.mark.usefixtures("double")
def test_derivative_with_an_identity_is_that_without():
    a = normal("complex128", 5, 5)
    da = normal("complex128", 5, 5, seed=2)
    w, dw = jax.jvp(lambda a: lapax.linalg.eig(a, np.eye(5))[0], (a,), (da,))
    alone, d_alone = jax.jvp(lambda a: lapax.linalg.eig(a)[0], (a,), (da,))
    order = np.array([int(np.argmin(abs(np.asarray(alone) - x))) for x in np.asarray(w)])
    np.testing.assert_allclose(dw, d_alone[order], rtol=1e-9)


@pytest.mark.usefixtures("double")
def test_vectors_of_infinite_eigenvalues_have_derivatives():
    a, b = normal("float64", 4, 4), normal("float64", 4, 4, seed=1)
    b[:, 3] = 0

    def vector(a):
        w, v = lapax.linalg.eig(a, b)
        return jnp.take(v, jnp.argmax(jnp.isinf(w)), 1)

    # That of A⁻¹·B for zero, the kernel of B, does not depend on A; others do.
    change = jax.jvp(vector, (a,), (normal("float64", 4, 4, seed=2),))[1]
    np.testing.assert_allclose(change, 0, atol=1e-12)
    w = lapax.linalg.eigvals(a, b)
    finite = np.argmin(abs(np.asarray(w)))
    check_grads(lambda a: lapax.linalg.eig(a, b)[1][:, finite], (a,), 1, ["fwd"], rtol=1e-4)


@pytest.mark.usefixtures("double")
def test_repeated_eigenvalues_have_finite_derivatives_where_asked_for():
    a = np.diag([1.0, 1.0, 3.0])

    def span(a, **options):
        v = lapax.linalg.eig(a, np.eye(3), **options)[1]
        return jnp.sum(abs(v) ** 2)

    assert not np.isfinite(np.asarray(jax.grad(span)(a))).all()
    assert np.isfinite(np.asarray(jax.grad(lambda a: span(a, degenerate="mask"))(a))).all()


@pytest.mark.usefixtures("double")
def test_what_has_no_derivative_says_so():
    a, b = normal("float64", 3, 3), normal("float64", 3, 3, seed=1)
    with pytest.raises(NotImplementedError, match=r"lapax\.linalg\.eig with b"):
        jax.grad(lambda a: lapax.linalg.qz(a, b)[0].sum())(a)
    with pytest.raises(NotImplementedError, match=r"eig: homogeneous_eigvals of a pair"):
        jax.grad(lambda a: abs(lapax.linalg.eig(a, b, homogeneous_eigvals=True)[0]).sum())(a)


def test_misuse():
    a, b = np.eye(3), np.eye(2)
    with pytest.raises(ValueError, match=r"qz: B: expected 3 rows, got 2"):
        lapax.linalg.qz(a, b)
    with pytest.raises(ValueError, match=r"ordqz: A: expected shape \[\.\.\., n, n\], got \[3\]"):
        lapax.linalg.ordqz(np.ones(3), b)
    with pytest.raises(ValueError, match=r"qz: output: expected one of 'real'.*got 'wrong'"):
        lapax.linalg.qz(a, a, output="wrong")
    with pytest.raises(ValueError, match=r"ordqz: sort: expected one of 'lhp'.*got 'up'"):
        lapax.linalg.ordqz(a, a, sort="up")
    with pytest.raises(ValueError, match=r"qz: sort: expected None \(ordqz sorts\), got 'lhp'"):
        lapax.linalg.qz(a, a, sort="lhp")
    with pytest.raises(ValueError, match=r"eig: b: expected 3 rows, got 2"):
        lapax.linalg.eig(a, b)
    with pytest.raises(ValueError, match=r"eigvals: batch dimensions do not broadcast"):
        lapax.linalg.eigvals(np.ones((2, 3, 3)), np.ones((4, 3, 3)))
