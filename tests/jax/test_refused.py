"""What JAX refuses by NotImplementedError, found in its source: install() serves it, or why not."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import pickle

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
import pytest
import scipy.linalg
from jax.lax import linalg
from jax.test_util import check_grads

import lapax
from lapax import _refused
from lapax._supported import is_checked
from programs import assert_close

N = 6


@functools.cache
def matrix(name):
    """By name: general `a`, complex `c`, symmetric `s`, positive definite `b`, wide `w`."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((N, N))
    return {
        "a": a,
        "c": a + 1j * rng.standard_normal((N, N)),
        "s": a + a.T,
        "b": a @ a.T + np.eye(N),
        "w": a[:4],
    }[name]


def assert_same(got, expected):
    for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        assert_close(x, y, 1e-12 * max(1.0, float(np.abs(y).max(initial=0))))


def slogdet_of_complex():
    assert_same(jnp.linalg.slogdet(matrix("c"), method="qr"), np.linalg.slogdet(matrix("c")))


def eigh_indices():
    got = jsl.eigh(matrix("s"), eigvals=(1, 3), eigvals_only=True)
    assert_same(got, np.linalg.eigvalsh(matrix("s"))[1:4])


def eigh_of_pairs(kind=1):
    w, v = map(np.asarray, jsl.eigh(matrix("s"), matrix("b"), type=kind))
    assert_same(w, scipy.linalg.eigvalsh(matrix("s"), matrix("b"), type=kind))
    left, right = {
        1: (matrix("s") @ v, matrix("b") @ v),
        2: (matrix("s") @ (matrix("b") @ v), v),
        3: (matrix("b") @ (matrix("s") @ v), v),
    }[kind]
    assert_close(left, right * w, 1e-11)


def tridiagonal():
    return np.diag(matrix("s")), np.diag(matrix("s"), 1)


def eigh_tridiagonal_by_value():
    select = {"eigvals_only": True, "select": "v", "select_range": (-1.0, 2.0)}
    expected = scipy.linalg.eigh_tridiagonal(*tridiagonal(), **select)
    assert expected.size
    assert_same(jsl.eigh_tridiagonal(*tridiagonal(), **select), expected)
    of_size = jax.jit(lambda d, e: jsl.eigh_tridiagonal(d, e, size=N, **select))
    room, count = of_size(*tridiagonal())
    assert count == expected.size
    assert_same(room[: expected.size], expected)
    assert np.isnan(room[expected.size :]).all()


def eigh_tridiagonal_vectors():
    w, v = map(np.asarray, jsl.eigh_tridiagonal(*tridiagonal()))
    d, e = tridiagonal()
    assert_close((np.diag(d) + np.diag(e, 1) + np.diag(e, -1)) @ v, v * w, 1e-11)


def polar_of_wide():
    u, p = jsl.polar(matrix("w"), method="qdwh")
    assert_same((u, p), scipy.linalg.polar(matrix("w")))


def sqrtm_by_blocks():
    root = np.asarray(jsl.sqrtm(matrix("b"), blocksize=4))
    assert_close(root @ root, matrix("b") + 0j, 1e-11)


def eigh_part():
    w = linalg.eigh(matrix("s"), subset_by_index=(1, 3))[1]
    assert_same(w, np.linalg.eigvalsh(matrix("s"))[1:3])


def eigh_implementations():
    for one in ("QDWH", "JACOBI"):
        w = linalg.eigh(matrix("s"), implementation=linalg.EighImplementation[one])[1]
        assert_same(w, np.linalg.eigvalsh(matrix("s")))


def eigh_part_derivative():
    def f(a):
        v, w = linalg.eigh(a + a.T, subset_by_index=(1, 3))
        return w, v * jnp.sign(v[:1])

    check_grads(f, (matrix("a"),), 1, modes=["rev"])


def schur_sorted():
    sort = lambda real, imaginary: real < 0  # noqa: E731
    t, z = map(np.asarray, linalg.schur(matrix("a"), sort_eig_vals=True, select_callable=sort))
    stable = int((np.linalg.eigvals(matrix("a")).real < 0).sum())
    assert 0 < stable < N
    assert_close(z @ t @ z.T, matrix("a"), 1e-11)
    assert (np.linalg.eigvals(t[:stable, :stable]).real < 0).all()
    (alone,) = linalg.schur(
        matrix("a"), compute_schur_vectors=False, sort_eig_vals=True, select_callable=sort
    )
    assert_same(alone, t)
    assert_same(jsl.schur(matrix("a"), sort="lhp"), (t, z, np.int32(stable)))


def svd_full_derivative():
    def f(a):
        u, s, vh = jnp.linalg.svd(a, full_matrices=True)
        return s, (u * s) @ vh[:4], vh[4:].T @ vh[4:]

    check_grads(f, (matrix("w"),), 1, modes=["rev"])


def svd_part_derivative():
    for part in ((1, 3), (0, 4)):

        def f(a, part=part):
            u, s, vh = jnp.linalg.svd(a, full_matrices=False, subset_by_index=part)
            return s, (u * s) @ vh

        check_grads(f, (matrix("w"),), 1, modes=["rev"])


def svd_part():
    s = linalg.svd(matrix("w"), full_matrices=False, subset_by_index=(1, 3))[1]
    assert_same(s, np.linalg.svd(matrix("w"), compute_uv=False)[1:3])


def svd_algorithms():
    for algorithm in linalg.SvdAlgorithm:
        s = linalg.svd(matrix("w"), algorithm=algorithm)[1]
        assert_same(s, np.linalg.svd(matrix("w"), compute_uv=False))


def qr_derivative():
    for full in (True, False):
        for a in (matrix("w"), matrix("w").T):
            # The columns of Q beyond R's are of one gauge or another: their projector is not.
            def f(a, full=full):
                q, r = linalg.qr(a, full_matrices=full)
                return q[:, : r.shape[-1]], r, q @ q.T

            check_grads(f, (a,), 1, modes=["rev"])


SERVED = {
    ("numpy", "_slogdet_qr", "complex"): [slogdet_of_complex],
    ("scipy", "_eigh", "eigvals=None"): [eigh_indices],
    ("scipy", "_eigh", "b=None"): [eigh_of_pairs],
    ("scipy", "_eigh", "type=1"): [functools.partial(eigh_of_pairs, kind) for kind in (2, 3)],
    ("scipy", "eigh_tridiagonal", "select='v'"): [eigh_tridiagonal_by_value],
    ("scipy", "eigh_tridiagonal", "eigenvectors"): [eigh_tridiagonal_vectors],
    ("scipy", "_polar_2d|polar", "qdwh"): [polar_of_wide],
    ("scipy", "sqrtm", "Blocked"): [sqrtm_by_blocks],
    ("lax", "_eigh_cpu_gpu_lowering", "subset_by_index"): [eigh_part],
    ("lax", "_eigh_cpu_gpu_lowering", "QDWH|Jacobi"): [eigh_implementations],
    ("lax", "_eigh_jvp_rule", "partial"): [eigh_part_derivative],
    ("lax", "_schur_cpu_lowering", "sort"): [schur_sorted],
    ("lax", "_svd_jvp_rule", "full matrices"): [svd_full_derivative],
    ("lax", "_svd_jvp_rule", "subset_by_index"): [svd_part_derivative],
    ("lax", "_svd_cpu_gpu_lowering", "subset_by_index"): [svd_part],
    ("lax", "_svd_cpu_gpu_lowering", "Jacobi"): [svd_algorithms],
    ("lax", "qr_jvp_rule", "QR"): [qr_derivative],
}
"""Module, functions (a|b) and words (a|b) of the text: what JAX refuses and install() serves."""

NOT_SERVED = {
    ("lax", "eig_jvp_rule", ""): "JAX asks for consent; lapax.linalg.eig has the derivative",
    ("lax", "_eigh_cpu_gpu_lowering", "OneAPI"): "not on the CPU",
    ("lax", "_eig_gpu_lowering", ""): "not on the CPU",
    ("lax", "_resolve_gpu_svd_implementation", ""): "not on the CPU",
    ("lax", "_tridiagonal_solve_jax", "perturb_singular"): "on the CPU jaxlib serves it",
}


def refusals():
    """Each NotImplementedError of JAX's source: module, outermost function, text."""
    for module in ("numpy", "scipy", "lax"):
        source = inspect.getsource(importlib.import_module(f"jax._src.{module}.linalg"))
        for function in ast.parse(source).body:
            for node in ast.walk(function):
                if isinstance(node, ast.Raise) and node.exc is not None:
                    text = ast.unparse(node.exc)
                    if text.startswith("NotImplementedError"):
                        yield module, function.name, text


def is_of(entry, refusal):
    """Whether an entry of the tables has a refusal."""
    module, functions, words = entry
    found_in, function, text = refusal
    return (
        module == found_in
        and function in functions.split("|")
        and any(word in text for word in words.split("|"))
    )


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


@pytest.mark.skipif(not is_checked(jax.__version__), reason="of a JAX that is not checked")
def test_every_refusal_is_known():
    found = list(refusals())
    assert len(found) > 10
    entries = [*SERVED, *NOT_SERVED]
    assert [one for one in found if not any(is_of(entry, one) for entry in entries)] == []


@pytest.mark.parametrize("entry", SERVED, ids=lambda entry: f"{entry[1]}: {entry[2]}")
def test_what_is_refused_is_served(entry):
    if not any(is_of(entry, refusal) for refusal in refusals()):
        pytest.skip("this JAX does not refuse it")
    for case in SERVED[entry]:
        with pytest.raises(NotImplementedError):
            case()
        with lapax.installed():
            case()


def test_keywords_of_scipy():
    with lapax.installed():
        p, lower, upper = jsl.lu(matrix("a"), p_indices=True)
        assert_close(np.asarray(lower @ upper)[p], matrix("a"), 1e-12)
        banded = np.triu(np.tril(matrix("b"), 1), -2)
        x = jsl.solve(banded, np.ones(N), assume_a="banded", transposed=True)
        assert_close(banded.T @ np.asarray(x), np.ones(N), 1e-11)
        assert_close(jsl.inv(matrix("b"), assume_a="pos") @ matrix("b"), np.eye(N), 1e-11)
        (reflectors, taus), r = jsl.qr(matrix("w"), mode="raw")
        assert (reflectors.shape, taus.shape, r.shape) == ((4, N), (4,), (4, N))
        w = jsl.eigh(matrix("s"), matrix("b"), True, True, type=2, subset_by_index=(0, 2))
        expected = scipy.linalg.eigvalsh(matrix("s"), matrix("b"), type=2, subset_by_index=(0, 2))
        assert_same(w, expected)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: jsl.solve(matrix("a"), np.ones(N), assume_a="none"), "one of .*'none'"),
        (lambda: jsl.qr(matrix("a"), mode="none"), "mode 'none'"),
        (lambda: jsl.schur(matrix("a"), sort="none"), "^schur: sort: expected one of"),
        (lambda: linalg.schur(matrix("a"), sort_eig_vals=True), "^schur: select_callable"),
    ],
)
def test_what_nobody_has_is_refused(call, error):
    with lapax.installed(), pytest.raises(ValueError, match=error):
        call()
    with lapax.installed(), pytest.raises(TypeError, match="unexpected keyword"):
        jsl.schur(matrix("a"), another=True)


def test_derivatives_with_pivoting():
    """JAX's rule has none of a batch, and takes the columns of a wide matrix unordered."""
    batch = np.stack([matrix("w"), matrix("a")[2:]])
    for a in (batch, batch.swapaxes(-1, -2)):
        with lapax.installed():
            pivoted = lambda a: linalg.qr(a, full_matrices=False, pivoting=True)[:2]  # noqa: E731
            check_grads(pivoted, (a,), 1, modes=["rev"])


def test_uninstall_puts_back_what_was():
    before = jsl.eigh, jsl.schur, jnp.linalg.slogdet
    with lapax.installed():
        assert jsl.schur is not before[1]
        assert inspect.signature(jsl.schur) == inspect.signature(before[1])
    assert (jsl.eigh, jsl.schur, jnp.linalg.slogdet) == before


def test_functions_are_pickled_by_their_public_names_and_are_jaxs_again_afterwards():
    found = [
        (importlib.import_module(where), name)
        for where, names in _refused.FUNCTIONS.items()
        for name in names
        if hasattr(importlib.import_module(where), name)
    ]
    before = [getattr(module, name) for module, name in found]
    with lapax.installed():
        for module, name in found:
            function = getattr(module, name)
            assert pickle.loads(pickle.dumps(function)) is function
    assert [getattr(module, name) for module, name in found] == before
    with lapax.installed(platforms="cuda"):
        assert [getattr(module, name) for module, name in found] == before
