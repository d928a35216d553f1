"""Ordered Schur forms and Hessenberg forms."""

from __future__ import annotations

import itertools

import jax
import numpy as np
import pytest
import scipy.linalg
from ratios import LIMIT, adjoint, norm, orthogonality, ratio

from lapax import linalg
from programs import operands

N = 6
SORTS = {
    "lhp": None,
    "ouc": None,
    "near the axis": {"complex": lambda w: abs(w.imag) < 0.5, "real": lambda x, y: abs(y) < 0.5},
}


def general(dtype, *shape):
    rng = np.random.default_rng(7)
    a = rng.standard_normal(shape)
    a = a + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else a
    return a.astype(dtype)


def check(a, t, z, dtype):
    t, z = np.asarray(t), np.asarray(z)
    assert ratio(a - z @ t @ adjoint(z), norm(a), dtype) < LIMIT
    assert orthogonality(z, dtype) < LIMIT


def test_both_forms(dtype):
    a = general(dtype, 2, N, N)
    for output in ("real", "complex"):
        t, z = linalg.schur(a, output=output)
        check(a, t, z, dtype)
        below = 1 if output == "complex" or dtype.kind == "c" else 2
        np.testing.assert_array_equal(np.tril(t, -below), 0)


@pytest.mark.parametrize("name", SORTS)
@pytest.mark.parametrize("output", ["real", "complex"])
def test_chosen_eigenvalues_come_first(name, output):
    with jax.enable_x64(True):
        a = general("f8", 3, N, N)
        sort = name if SORTS[name] is None else SORTS[name][output]
        t, z, count = linalg.schur(a, output=output, sort=sort)
        check(a, t, z, "f8")
        np.testing.assert_array_equal(np.tril(t, -1 if output == "complex" else -2), 0)
        for i in range(3):
            expected = scipy.linalg.schur(a[i], output=output, sort=sort)
            assert count[i] == expected[2]
            first = count[i]
            for part in (slice(0, first), slice(first, N)):
                ours, theirs = (scipy.linalg.eigvals(x[part, part]) for x in (t[i], expected[0]))
                distance = np.abs(ours[:, None] - theirs[None, :]).min(-1, initial=9)
                assert distance.max(initial=0) < 1e-10


def test_a_function_of_real_parts():
    a = general("f4", N, N)
    both = linalg.schur(a, sort="rhp")
    one = linalg.schur(a, sort=lambda x: x >= 0)
    for x, y in zip(both, one, strict=True):
        np.testing.assert_array_equal(x, y)


def test_neighbours_of_all_sizes_in_real_forms():
    """Blocks of one and of two rows in every order, strongly coupled; f32 keeps to its errors."""
    pair = np.array([[1.0, 3], [-2, 1]])
    blocks = {"stable": (-pair, -np.eye(1)), "not": (pair, 2 * np.eye(1))}
    orders = itertools.product((0, 1), repeat=3)
    a = []
    for first, second, third in orders:
        rows = [blocks["not"][first], blocks["stable"][second], blocks["stable"][third]]
        t = scipy.linalg.block_diag(*rows)
        t = scipy.linalg.block_diag(t, np.diag([3.0, -3, 3][: N - len(t)]))
        a.append(t + 10 * np.triu(np.ones((N, N)), 2))
    a = np.stack(a).astype("f4")
    t, z, count = map(np.asarray, linalg.schur(a, sort="lhp"))
    check(a, t, z, "f4")
    for matrix, form, first in zip(a, t, count, strict=True):
        assert first == np.sum(np.linalg.eigvals(matrix.astype("f8")).real < 0)
        leading = np.linalg.eigvals(form[:first, :first].astype("f8"))
        assert (leading.real < 0).all()
        np.testing.assert_array_equal(form[first:, :first], 0)


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_order_of_adversarial_matrices(dtype):
    """Already in order, in reverse, all alike, equal eigenvalues, not normal, graded, zero."""
    with jax.enable_x64(True):
        up = np.diag(np.arange(-3.0, 3))
        rest = np.triu(np.ones((N, N)), 1)
        a = np.stack(
            [
                up + rest,
                -up + rest,
                up - 10 * np.eye(N) + rest,
                np.diag([1.0, -1, 1, -1, 1, -1]),
                -up + 1e6 * rest,
                10.0 ** -np.arange(0, 2 * N, 2)[:, None] * (rest - up),
                np.zeros((N, N)),
            ]
        ).astype(dtype)
        t, z, count = map(np.asarray, linalg.schur(a, sort="lhp"))
        check(a[:-1], t[:-1], z[:-1], dtype)
        np.testing.assert_array_equal(count[[0, 1, 2, 3, 4, 6]], [3, 2, 6, 3, 2, 0])
        leading = np.arange(N) < count[:, None]
        np.testing.assert_array_equal(np.diagonal(t, 0, 1, 2).real < 0, leading)


def test_a_stabilising_solution():
    """Aᴴ·X + X·A − X·G·X + Q = 0 from the stable subspace of the Hamiltonian matrix."""
    with jax.enable_x64(True):
        a, o = general("f8", 3, 3), operands(np.dtype("f8"), n=3, batch=())
        g, q = o.s, o.s[::-1, ::-1]
        hamiltonian = np.block([[a, -g], [-q, -a.T]])
        _, z, count = linalg.schur(hamiltonian, sort="lhp")
        assert count == 3
        x = np.asarray(z[3:, :3]) @ np.linalg.inv(z[:3, :3])
        residual = a.T @ x + x @ a - x @ g @ x + q
        assert norm(residual) < 1e-10 * norm(q)


def test_hessenberg(dtype):
    a = general(dtype, 2, N, N)
    h, q = map(np.asarray, linalg.hessenberg(a, calc_q=True))
    check(a, h, q, dtype)
    np.testing.assert_array_equal(np.tril(h, -2), 0)
    np.testing.assert_allclose(linalg.hessenberg(a), h, rtol=1e-5, atol=1e-6)


def test_nan_empty_and_misuse():
    a = general("c8", 3, 3, 3)
    a[1, 1, 1] = np.nan
    t, z, count = linalg.schur(a, sort="lhp")
    for x in (t, z):
        assert np.isfinite(x).all((-1, -2)).tolist() == [True, False, True]
    assert count[1] == 0
    for output in ("real", "complex"):
        assert linalg.schur(np.zeros((0, 0)), output=output, sort="lhp")[2] == 0
        assert linalg.schur([[-3]], output=output, sort="lhp")[2] == 1
    assert [x.shape for x in linalg.hessenberg(np.zeros((0, 0)), calc_q=True)] == [(0, 0)] * 2
    small = operands(np.dtype("c8"), n=2, batch=(3,)).a
    for x, y in zip(linalg.hessenberg(small, calc_q=True), (small, np.eye(2)), strict=True):
        np.testing.assert_array_equal(x, np.broadcast_to(y, (3, 2, 2)))
    for options, text in (
        ({"output": "imaginary"}, "schur: output: expected one of"),
        ({"output": "complex", "sort": "left"}, "schur: sort: expected one of 'lhp'"),
    ):
        with pytest.raises(ValueError, match=text):
            linalg.schur(a.real, **options)
