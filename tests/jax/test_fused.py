"""JAX's functions that become one call: the same values and derivatives, and how many calls."""

from __future__ import annotations

import functools
import re

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
import pytest

import lapax
from programs import assert_close, custom_calls, operands, tolerance

F32, C64 = np.dtype(np.float32), np.dtype(np.complex64)


def solve_with(trans, o):
    return jsl.lu_solve(jsl.lu_factor(o.a), o.b, trans=trans)


def indefinite(o):
    return jnp.linalg.cholesky(o.s - 100 * jnp.eye(o.s.shape[-1]))


FUNCTIONS = {
    "cholesky": lambda o: jnp.linalg.cholesky(o.s),
    "lower_triangle": lambda o: jax.lax.linalg.cholesky(o.s, symmetrize_input=False),
    "not_symmetric": lambda o: jnp.linalg.cholesky(o.s + 0.1 * o.a),
    "solve": lambda o: jnp.linalg.solve(o.a, o.b),
    "inv": lambda o: jnp.linalg.inv(o.a),
    "slogdet": lambda o: jnp.stack(jnp.linalg.slogdet(o.a)),
    "det": lambda o: jnp.linalg.det(o.a),
    "lu_solve": functools.partial(solve_with, 0),
    "lu_solve_transposed": functools.partial(solve_with, 1),
    "lu_solve_adjoint": functools.partial(solve_with, 2),
}


def squares(function, o):
    """Weighted: the sum of all squares of a Cholesky factor is a trace, linear in A."""
    x = jnp.abs(function(o)) ** 2
    return jnp.sum(x * jnp.linspace(1, 2, x.size).reshape(x.shape))


def both(function, *args):
    """The leaves of a function's result under stock JAX and under lapax."""
    stock = jax.tree.leaves(function(*args))
    with lapax.installed():
        ours = jax.tree.leaves(function(*args))
    return list(zip(ours, stock, strict=True))


@pytest.mark.parametrize("batch", [(), (5,), (2, 3)])
@pytest.mark.parametrize("dtype", [F32, C64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_derivatives_are_stock(name, dtype, batch):
    function = FUNCTIONS[name]
    o, direction = (
        jax.tree.map(jnp.asarray, operands(dtype, n=4, batch=batch, seed=seed)) for seed in (0, 1)
    )
    gradient = jax.grad(functools.partial(squares, function))

    def every(o):
        forward = jax.jvp(function, (o,), (direction,))
        second = jax.jvp(gradient, (o,), (direction,))
        return function(o), forward, gradient(o), second

    for ours, stock in both(jax.jit(every), o):
        assert ours.dtype == stock.dtype
        assert_close(ours, stock, 10 * tolerance(dtype, 4))


@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("dtype", [F32, C64])
@pytest.mark.parametrize("name", ["eigh", "eigvalsh"])
def test_hermitian_parts_are_calls(name, dtype, batch):
    """Values and derivatives of what is symmetric in the end, whatever the vectors' signs."""
    n = 33
    o, direction = (
        jax.tree.map(jnp.asarray, operands(dtype, n=n, batch=batch, seed=seed)) for seed in (0, 1)
    )

    def function(a):
        if name == "eigvalsh":
            return jnp.linalg.eigvalsh(a)
        w, v = jnp.linalg.eigh(a)
        return (v * jnp.sin(w)[..., None, :]) @ v.conj().swapaxes(-1, -2)

    def every(a, direction):
        gradient = jax.grad(lambda a: squares(function, a))
        return function(a), jax.jvp(function, (a,), (direction,)), gradient(a)

    for ours, stock in both(jax.jit(every), o.a, direction.a):
        assert_close(ours, stock, 100 * tolerance(dtype, n))
    calls = [f"lapax.lapax_{op}" for op in ("symmetrize", name)]
    with lapax.installed():
        assert custom_calls(function, o.a) == calls
        assert custom_calls(jax.vmap(function), jnp.stack([o.a] * 2)) == calls


def test_not_definite_is_nan_below_the_diagonal():
    o = operands(F32, n=4, batch=(5,))
    for ours, stock in both(indefinite, o):
        np.testing.assert_array_equal(ours, stock)


@pytest.mark.parametrize("name", ["cholesky", "solve", "inv", "slogdet", "lu_solve_transposed"])
def test_eager_and_mapped(name):
    function = FUNCTIONS[name]
    o = jax.tree.map(jnp.asarray, operands(F32, n=4, batch=(3, 2)))
    for ours, stock in both(function, o):
        assert_close(ours, stock, tolerance(F32, 4))
    for ours, stock in both(jax.vmap(jax.vmap(function)), o):
        assert_close(ours, stock, tolerance(F32, 4))


def test_mapped_right_hand_sides_are_columns_of_one_call():
    o = operands(F32, n=4, batch=(3,))
    columns = np.moveaxis(o.b, -1, 0)

    def solve(columns):
        factors = jsl.lu_factor(o.a)
        return jax.vmap(lambda b: jsl.lu_solve(factors, b[..., None])[..., 0])(columns)

    for ours, stock in both(solve, columns):
        assert_close(ours, stock, tolerance(F32, 4))
    with lapax.installed():
        text = jax.jit(solve).lower(columns).as_text()
        assert custom_calls(solve, columns).count("lapax.lapax_lu") == 1
    assert text.count("lapax_lu") == 1, "one factorisation for all columns"


@pytest.mark.parametrize("n", [1, 2, 5, 17, 40, 70])
@pytest.mark.parametrize("dtype", [F32, C64])
def test_determinants_of_singular_and_strange_matrices(dtype, n):
    a = operands(dtype, n=n, batch=(9,)).a.copy()
    a[1, :, n // 2] = 0
    a[2] *= np.float32(1e-15)
    a[3] *= np.float32(1e15)
    a[4] = np.eye(n)[::-1]
    a[5, n - 1] = 0
    for function in (jnp.linalg.slogdet, jax.vmap(jnp.linalg.slogdet)):
        (ours, stock), (ours_log, stock_log) = both(function, a)
        assert_close(ours, stock, 100 * tolerance(dtype, n))
        np.testing.assert_allclose(ours_log, stock_log, rtol=1e-4, atol=1e-3)
        np.testing.assert_array_equal(np.asarray(ours)[[1, 5]], 0)
        np.testing.assert_array_equal(np.asarray(ours_log)[[1, 5]], -np.inf)
    a[7, 0, 0] = np.nan
    with lapax.installed():
        signs, logs = jnp.linalg.slogdet(a)
    np.testing.assert_array_equal(np.isnan(logs), np.arange(9) == 7)
    assert not np.isnan(signs[8])


@pytest.mark.parametrize("n", [1, 3, 16, 17, 40, 64, 65, 100])
@pytest.mark.parametrize("dtype", [F32, C64])
def test_systems_of_every_order(dtype, n):
    o = operands(dtype, n=n, batch=(7,))
    a, b = jnp.asarray(o.a), jnp.asarray(o.b)
    for function in (jnp.linalg.solve, jax.vmap(jnp.linalg.solve)):
        ((ours, stock),) = both(function, a, b)
        assert_close(ours, stock, 100 * tolerance(dtype, n))
    ((ours, stock),) = both(jnp.linalg.inv, a)
    assert_close(ours, stock, 100 * tolerance(dtype, n))


@pytest.mark.parametrize("dims", [(0, None), (None, 0), (0, 0), (None, 1), (2, 1)])
def test_mapped_systems_and_vectors(dims):
    o = operands(F32, n=4, batch=(4,))
    vectors = jnp.asarray(o.b[:, :, 0])
    a = jnp.asarray(o.a) if dims[0] is not None else jnp.asarray(o.a[0])
    b = vectors if dims[1] is not None else vectors[0]
    for function in (jnp.linalg.solve, jax.jacrev(jnp.linalg.solve, 1)):
        ((ours, stock),) = both(jax.vmap(function, dims), a, b)
        assert_close(ours, stock, 100 * tolerance(F32, 4))


def test_transpose_of_a_solve():
    o = jax.tree.map(jnp.asarray, operands(C64, n=5, batch=(3,)))
    with lapax.installed():
        transpose = jax.linear_transpose(functools.partial(jnp.linalg.solve, o.a), o.b)
        (x,) = transpose(o.b)
        expected = jnp.linalg.solve(jnp.swapaxes(o.a, -1, -2), o.b)
    assert_close(x, expected, tolerance(C64, 5))


def test_singular_and_strange_systems():
    a = operands(F32, n=4, batch=(6,)).a.copy()
    a[1, 2] = 0
    a[2, 0, 0] = np.nan
    b = np.ones((6, 4, 2), np.float32)
    with lapax.installed():
        solution, inverse = jnp.linalg.solve(a, b), jnp.linalg.inv(a)
    for x in (solution, inverse):
        finite = np.isfinite(x).all(axis=(-2, -1))
        np.testing.assert_array_equal(finite, [True, False, False, True, True, True])


def test_no_function_of_jax_is_replaced():
    """A program's jaxpr is JAX's, whatever is lowered for it."""
    o = operands(F32, n=4, batch=(3,))
    stock = {name: str(jax.make_jaxpr(f)(o)) for name, f in FUNCTIONS.items()}
    functions = jnp.linalg.inv, jax.lax.linalg.cholesky, jsl.hessenberg
    with lapax.installed():
        assert (jnp.linalg.inv, jax.lax.linalg.cholesky, jsl.hessenberg) == functions
        for name, function in FUNCTIONS.items():
            assert _without_addresses(str(jax.make_jaxpr(function)(o))) == _without_addresses(
                stock[name]
            )


def _without_addresses(text):
    return re.sub("0x[0-9a-f]+", "", text)


@pytest.mark.parametrize(
    ("name", "calls"),
    [
        ("cholesky", ["lapax.lapax_cholesky"]),
        ("solve", ["lapax.lapax_solve"]),
        ("inv", ["lapax.lapax_inv"]),
        ("lu_solve", ["lapax.lapax_solve"]),
        ("slogdet", ["lapax.lapax_slogdet"]),
        ("det", ["lapax.lapax_slogdet"]),
    ],
)
def test_calls(name, calls):
    o = operands(F32, n=4, batch=(3,))
    with lapax.installed():
        assert custom_calls(FUNCTIONS[name], o) == calls


@pytest.mark.parametrize("dtype", [F32, C64])
@pytest.mark.parametrize("shape", [(40, 30), (30, 40), (300, 20), (2, 1100, 8)])
def test_qr_by_rows(shape, dtype):
    rng = np.random.default_rng(7)
    a = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype == C64 else 0)
    a = jnp.asarray(a, dtype)
    # Derivatives of Q with more columns than rows are not defined.
    forward = (
        jnp.linalg.qr if shape[-2] < shape[-1] else lambda a: jax.jvp(jnp.linalg.qr, (a,), (a * a,))
    )
    for ours, stock in both(jax.jit(forward), a):
        assert_close(ours, stock, 4 * tolerance(dtype, 40))
    with lapax.installed():
        assert custom_calls(jnp.linalg.qr, a) == ["lapax.lapax_qr"]


@pytest.mark.parametrize("mode", ["reduced", "complete"])
@pytest.mark.parametrize("shape", [(130, 130), (250, 200), (200, 250), (2, 500, 460), (460, 500)])
def test_large_qr_by_rows(shape, mode):
    a = jnp.asarray(np.random.default_rng(8).standard_normal(shape), F32)
    decompose = jax.jit(lambda a: jnp.linalg.qr(a, mode=mode))
    for ours, stock in both(decompose, a):
        assert_close(ours, stock, 4 * tolerance(F32, max(shape)))
    with lapax.installed():
        assert custom_calls(decompose, a) == ["lapax.lapax_qr"]


def test_eager_calls_compile_once(caplog):
    a = jnp.asarray(operands(F32, n=3, batch=(2,)).s)
    with lapax.installed(), jax.log_compiles():
        jax.lax.linalg.cholesky(a)
        assert "Compiling" in caplog.text
        caplog.clear()
        jax.lax.linalg.cholesky(a)
        assert "Compiling" not in caplog.text


def test_dtypes_without_a_target_stay_with_jax():
    a = operands(F32, n=3, batch=()).s
    with lapax.installed(), pytest.raises((TypeError, ValueError, NotImplementedError)):
        jax.lax.linalg.cholesky(jnp.asarray(a, jnp.float16))
    with lapax.installed(), pytest.raises((TypeError, ValueError)):
        jax.lax.linalg.cholesky(jnp.ones((2, 3)))
