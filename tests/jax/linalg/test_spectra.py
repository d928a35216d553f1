"""svd and eig: derivatives of vectors, where values repeat too; left and right vectors."""

from __future__ import annotations

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from jax.test_util import check_grads
from ratios import LIMIT, adjoint, norm, orthogonality, ratio
from scipys import as_followed

from lapax import linalg
from programs import operands


def general(dtype, *shape):
    rng = np.random.default_rng(5)
    a = rng.standard_normal(shape)
    a = a + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else a
    return a.astype(dtype)


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
def test_svd(shape):
    a = general("c8", 2, *shape)
    for full in (False, True):
        u, s, vh = map(np.asarray, linalg.svd(a, full_matrices=full))
        expected = scipy.linalg.svd(a[0], full_matrices=full)
        assert [x.shape for x in (u[0], s[0], vh[0])] == [x.shape for x in expected]
        k = min(shape)
        assert ratio(a - (u[..., :k] * s[:, None, :]) @ vh[:, :k], norm(a), "f4") < LIMIT
        assert max(orthogonality(x, "f4") for x in (u, adjoint(vh))) < LIMIT
    np.testing.assert_allclose(linalg.svd(a, compute_uv=False), s, rtol=1e-5)


@pytest.mark.parametrize(
    ("dtype", "shape", "full"),
    [("f8", (3, 3), True), ("c16", (3, 2), False), ("c16", (2, 3), True), ("f8", (4, 2), True)],
)
def test_derivatives_of_svd(dtype, shape, full):
    """Of what does not depend on phases, nor on the basis of the complements."""
    with jax.enable_x64(True):

        @jax.jit
        def invariants(a):
            u, s, vh = linalg.svd(a, full_matrices=full)
            k = s.shape[-1]
            others = u[:, k:] @ u[:, k:].conj().T, vh[k:].conj().T @ vh[k:]
            return s, abs(u[:, :k]), abs(vh[:k]), u[:, :k] @ vh[:k], *others

        check_grads(invariants, (general(dtype, *shape),), 1)


@pytest.mark.parametrize("how", ["mask", "broaden"])
def test_gradients_where_singular_values_repeat(how):
    """The polar factor U·Vᴴ of a matrix with equal singular values; one with zeros is finite."""
    with jax.enable_x64(True):
        q = np.linalg.qr(general("f8", 3, 3))[0]
        weight, direction = general("f8", 2, 3, 3)

        def of_polar(a, **options):
            u, _, vh = linalg.svd(a, **options)
            return jnp.sum(weight * (u @ vh))

        gradient = jax.jit(jax.grad(lambda a: of_polar(a, degenerate=how)))
        # At 2·Q, the polar factor changes by the part of dA/2 whose product with Qᵀ is skew.
        turn = q.T @ direction
        expected = np.sum(weight * (q @ (turn - turn.T))) / 4
        np.testing.assert_allclose(np.sum(gradient(2 * q) * direction), expected, rtol=1e-8)
        for singular in (jnp.eye(3), jnp.zeros((3, 3)), jnp.diag(jnp.array([1.0, 0, 0]))):
            assert np.isfinite(gradient(singular)).all()
        assert not np.isfinite(jax.grad(of_polar)(jnp.eye(3))).all()
        tall = jax.grad(lambda a: jnp.sum(linalg.svd(a, degenerate=how)[0][:, :1]))
        assert np.isfinite(tall(jnp.zeros((3, 2)))).all()


def test_eig(dtype):
    a = general(dtype, 2, 5, 5)
    w, u, v = map(np.asarray, linalg.eig(a, left=True))
    assert w.dtype == u.dtype == v.dtype == np.result_type(dtype, "c8")
    assert ratio(a @ v - v * w[:, None, :], norm(a) * norm(v), dtype) < LIMIT
    assert ratio(adjoint(a) @ u - u * w.conj()[:, None, :], norm(a) * norm(u), dtype) < LIMIT
    for x in (u, v):
        np.testing.assert_allclose(np.linalg.norm(x, axis=-2), 1, rtol=1e-5)
    exact = np.linalg.eigvals(a.astype("c16"))
    distance = np.abs(w[..., None] - exact[:, None, :]).min(-1)
    condition = np.linalg.cond(v).max()
    assert distance.max() < LIMIT * 5 * np.finfo(dtype).eps * condition * norm(a).max()
    np.testing.assert_allclose(linalg.eigvals(a), w, rtol=1e-3)


def test_forms_of_eig():
    a = general("f4", 3, 3)
    w = linalg.eigvals(a)
    both = linalg.eigvals(a, homogeneous_eigvals=True)
    np.testing.assert_array_equal(both, np.stack([w, np.ones(3)]))
    assert len(linalg.eig(a)) == 2
    np.testing.assert_array_equal(linalg.eig(a, right=False), w)
    assert [x.shape for x in linalg.eig(np.zeros((2, 0, 0)), left=True)] == [
        (2, 0),
        (2, 0, 0),
        (2, 0, 0),
    ]
    with pytest.raises(ValueError, match="eig: a: expected shape"):
        linalg.eig(a[:2])
    with pytest.raises(ValueError, match="svd: a: expected shape"):
        linalg.svd(a[0])


def left_alone(a):
    return linalg.eig(a, left=True, right=False)


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_derivatives_of_eig(dtype):
    with jax.enable_x64(True):
        a = general(dtype, 4, 4)
        check_grads(jax.jit(lambda a: linalg.eig(a, left=True)), (a,), 1)
        alone = jax.jit(lambda a, v: jax.jvp(linalg.eigvals, (a,), (v,)))(a, a[::-1])
        left = jax.jit(lambda a, v: jax.jvp(left_alone, (a,), (v,)))(a, a[::-1])
        both = jax.jit(lambda a, v: jax.jvp(linalg.eig, (a,), (v,)))(a, a[::-1])
        for tangent in (left[1][0], both[1][0]):
            np.testing.assert_allclose(tangent, alone[1], rtol=1e-9)


def test_gradient_of_eigenvalues_that_repeat():
    """That of a symmetric function of them: d tr(A²)/dA = 2·Aᵀ."""
    with jax.enable_x64(True):
        x = general("f8", 3, 3)
        a = x @ np.diag([1.0, 1, 3]) @ np.linalg.inv(x)
        gradient = jax.jit(jax.grad(lambda a: jnp.sum(linalg.eigvals(a) ** 2).real))(a)
        np.testing.assert_allclose(gradient, 2 * a.T, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("how", ["mask", "broaden"])
def test_gradient_of_eig_where_eigenvalues_repeat(how):
    """The spectral projector of a double eigenvalue, which has a derivative; vectors have none."""
    with jax.enable_x64(True):
        x = general("f8", 3, 3)
        a = x @ np.diag([1.0, 1, 3]) @ np.linalg.inv(x)

        def projector(a, **options):
            w, v = linalg.eig(a, **options)
            near = (abs(w - 1) < 0.5).astype(w.dtype)
            return jnp.sum(jnp.sin((v * near @ jnp.linalg.inv(v)).real))

        gradient = jax.jit(jax.grad(lambda a: projector(a, degenerate=how)))(a)
        direction = general("f8", 3, 3) / 10
        step = 1e-5
        values = [projector(a + k * step * direction) for k in (1, -1)]
        expected = (values[0] - values[1]) / (2 * step)
        np.testing.assert_allclose(np.sum(gradient * direction), expected, rtol=1e-4)


@as_followed
@pytest.mark.parametrize(
    "name",
    ["cho_factor", "cho_solve", "eig", "eigh", "eigvals", "eigvalsh", "hessenberg", "schur", "svd"],
)
def test_signatures_are_scipy_s(name):
    """Ours may take more, after them."""
    ours, theirs = (inspect.signature(getattr(m, name)) for m in (linalg, scipy.linalg))

    def declared(signature):
        return [(p.name, p.kind, p.default) for p in signature.parameters.values()]

    assert declared(ours)[: len(theirs.parameters)] == declared(theirs)


def test_a_driver_is_one_of_scipy_s():
    with pytest.raises(ValueError, match=r"^svd: lapack_driver: expected one of 'gesdd', 'gesvd'"):
        linalg.svd(np.eye(2), lapack_driver="gesdx")
    with pytest.raises(TypeError, match=r"^svd: lapack_driver: expected a string, got 1\.0"):
        linalg.svd(np.eye(2), lapack_driver=1.0)


def test_nan_stays_in_its_matrix():
    a = operands(np.dtype("f4"), n=3, batch=(3,)).a
    a[1, 0, 2] = np.nan
    for results in (linalg.svd(a), linalg.eig(a, left=True)):
        for x in results:
            finite = np.isfinite(x).reshape(3, -1)
            assert finite.all(-1).tolist() == [True, False, True]
