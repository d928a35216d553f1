"""JAX's expm, sqrtm and solve_sylvester under install(): calls of targets, the contract JAX's."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
import pytest
import scipy.linalg

import lapax
from programs import assert_close, custom_calls, operands, tolerance
from test_jaxprs import WAYS, traced

F32, F64, C64, C128 = (np.dtype(x) for x in (np.float32, np.float64, np.complex64, np.complex128))
DTYPES = [F32, F64, C64, C128]
EXPM, SQRTM, SYLVESTER = (
    f"lapax.lapax_{name}" for name in ("expm", "triangular_sqrtm", "triangular_sylvester")
)


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def both(function, *args):
    """The leaves of the results under lapax and under stock JAX, whose programs are long."""
    program = jax.jit(function).lower(*args)
    quickly = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
    stock = jax.tree.leaves(program.compile(quickly)(*args))
    with lapax.installed():
        ours = jax.tree.leaves(jax.jit(function)(*args))
    return zip(ours, stock, strict=True)


def matrices(dtype, n, batch, seed=0, norm=2.0):
    a = operands(dtype, n, batch, seed).a
    return jnp.asarray(a * (norm / np.abs(a).sum(-2).max(-1)[..., None, None])).astype(dtype)


def upper(a):
    return jsl.expm(jnp.triu(a), upper_triangular=True)


def gradient(function):
    """Of a number that depends on every entry."""

    def number(a):
        x = function(a)
        return jnp.sum(jnp.abs(x * jnp.linspace(1, 2, x.size).reshape(x.shape)) ** 2)

    return jax.grad(number)


WAYS_OF_EXPM = {
    "plain": (jsl.expm, 1),
    "upper": (upper, 1),
    "vmap": (jax.vmap(jsl.expm), 1),
    "jvp": (lambda a: jax.jvp(jsl.expm, (a,), (jnp.sin(a),)), 1),
    "frechet": (lambda a: jax.vmap(jsl.expm_frechet)(a, jnp.sin(a)), 1),
    "frechet alone": (
        lambda a: jax.vmap(functools.partial(jsl.expm_frechet, compute_expm=False))(a, jnp.sin(a)),
        1,
    ),
    "vjp": (gradient(jsl.expm), 2),
    "vmap of vjp": (jax.vmap(gradient(jsl.expm)), 2),
    "vjp of vmap": (gradient(jax.vmap(jsl.expm)), 2),
    "forward": (lambda a: jax.jacfwd(jsl.expm)(a[0]), 2),  # exp(A) is one of its own.
    "backward": (lambda a: jax.jacrev(jsl.expm)(a[0]), 1),
}
"""Functions of a batch, and how many calls they are."""
BACKWARDS = {"vjp", "vmap of vjp", "vjp of vmap", "backward"}
NEW = jax.__version_info__ >= (0, 12)


@pytest.mark.parametrize("way", WAYS_OF_EXPM)
def test_exponentials_are_calls(way):
    function, count = WAYS_OF_EXPM[way]
    a = matrices(F64, 3, (4,))
    for ours, stock in both(jax.jit(function), a):
        assert_close(ours, stock, 100 * tolerance(F64, 3))
    if way in BACKWARDS and not NEW:
        return  # JAX 0.8.0 keeps for the way back what it finds in no fixed order.
    with lapax.installed():
        calls = custom_calls(function, a)
    assert [call for call in calls if call != EXPM] == []
    assert len(calls) == count


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 9, 30])
def test_values_are_right(dtype, n):
    a = np.concatenate([matrices(dtype, n, (2,), norm=norm) for norm in (1e-3, 1.0, 30.0)])
    a = (a * (1 - 0.5j)).astype(dtype) if dtype.kind == "c" else a
    with lapax.installed():
        computed = np.asarray(jsl.expm(a))
    assert computed.dtype == dtype
    for x, of in zip(computed, a, strict=True):
        exact = scipy.linalg.expm(of.astype(np.promote_types(dtype, F64)))
        condition = max(1, np.abs(of).sum(0).max())
        assert np.abs(x - exact).max() <= condition * 10 * tolerance(dtype, n) * np.abs(exact).max()


@pytest.mark.parametrize("dtype", [F32, C128])
@pytest.mark.parametrize("most", [2, 16])
def test_too_many_squarings_are_nan(dtype, most):
    """As JAX counts them: by a norm of θ·2ˢ, which is met here from both sides."""
    theta = 5.371920351148152 if dtype.itemsize // (1 + (dtype.kind == "c")) == 8 else 3.925724783
    norms = theta * 2.0 ** (most + 1) * np.array([0.3, 0.99, 1.01, 3])
    # Nilpotent, so that nothing overflows.
    a = jnp.asarray(norms[:, None, None] * np.eye(3, k=1)).astype(dtype)
    function = functools.partial(jsl.expm, max_squarings=most)
    exact = jnp.eye(3, dtype=dtype) + a + a @ a / 2
    for ours, stock in both(jax.vmap(function), a):
        assert_close(ours[:2], exact[:2], tolerance(dtype, 3))
        assert not np.isnan(stock[:2]).any()
        assert np.isnan(stock[2:]).all()
        assert np.isnan(ours[2:]).all()
    forward = jax.vmap(lambda a: jax.jvp(function, (a,), (jnp.ones_like(a),)))
    for ours, stock in both(forward, a):
        np.testing.assert_array_equal(np.isnan(ours), np.isnan(stock))


def test_not_finite_is_nan_in_that_matrix_alone():
    a = np.array(matrices(F64, 3, (3,)))
    a[1, 0, 0] = np.nan
    a[2, 2, 1] = np.inf
    with lapax.installed():
        x = jsl.expm(a)
    np.testing.assert_array_equal(np.isnan(x).all((1, 2)), [False, True, True])
    np.testing.assert_array_equal(np.isnan(x).any((1, 2)), [False, True, True])


@pytest.mark.parametrize("dtype", [F64, C64])
@pytest.mark.parametrize("n", [1, 4, 20])
def test_roots_are_stock(dtype, n):
    a = jnp.asarray(operands(dtype, n, (3,)).a)
    for function in (lambda a: jsl.sqrtm(a[0]), jax.vmap(jsl.sqrtm)):
        for ours, stock in both(function, a):
            assert_close(ours, stock, 100 * tolerance(dtype, n))
        with lapax.installed():
            assert custom_calls(function, a)[-1] == SQRTM


def test_root_of_a_negative_number_is_imaginary():
    for ours, stock in both(jsl.sqrtm, jnp.diag(jnp.asarray([4.0, -9.0, 0.0]))):
        assert_close(ours, stock, tolerance(F64, 3))


SYLVESTER_WAYS = {
    "plain": (lambda a, b, c: jsl.solve_sylvester(a[0], b[0], c[0])),
    "batch": jsl.solve_sylvester,
    "broadcast": (lambda a, b, c: jsl.solve_sylvester(a[:, None], b, c[0])),
    "vmap": jax.vmap(jsl.solve_sylvester),
    "one mapped": (
        lambda a, b, c: jax.vmap(jsl.solve_sylvester, in_axes=(None, None, 0))(a[0], b[0], c)
    ),
}


@pytest.mark.parametrize("dtype", [F32, C128])
@pytest.mark.parametrize("way", SYLVESTER_WAYS if NEW else ["plain"])
def test_equations_are_stock(way, dtype):
    a, b = (jnp.asarray(operands(dtype, n, (2,), seed=n).a) for n in (4, 3))
    c = jnp.asarray(operands(dtype, 4, (2,)).a[..., :3])
    function = SYLVESTER_WAYS[way]
    for ours, stock in both(function, a, b, c):
        assert_close(ours, stock, 100 * tolerance(dtype, 4))
    with lapax.installed():
        assert SYLVESTER in custom_calls(function, a, b, c)


@pytest.mark.parametrize("tol", [1e-8, 1e-2, 10.0])
def test_near_eigenvalues_are_nan_by_tol(tol):
    a, b = jnp.diag(jnp.asarray([1.0, 2.0])), jnp.diag(jnp.asarray([-1.0 + 1e-3, 3.0]))
    for ours, stock in both(
        functools.partial(jsl.solve_sylvester, tol=tol), a, b, jnp.ones((2, 2))
    ):
        np.testing.assert_array_equal(np.isnan(ours), np.isnan(stock))
        assert np.isnan(ours).all() == (tol > 1e-3)


ALL = {
    "expm": lambda o: jsl.expm(o.a),
    "upper": lambda o: upper(o.a),
    "sqrtm": lambda o: jax.vmap(jsl.sqrtm)(o.a) if o.a.ndim > 2 else jsl.sqrtm(o.a),
    "sylvester": lambda o: jsl.solve_sylvester(
        *(x[0] if x.ndim > 2 else x for x in (o.a, o.s, o.a))
    ),
    "frechet": lambda o: jax.vmap(jsl.expm_frechet)(o.a, o.s),
}


@pytest.mark.parametrize("way", ["plain", "vmap", "jvp", "vjp"])
@pytest.mark.parametrize("name", ALL)
def test_jaxprs_are_jax_s(name, way):
    o = operands(F32, n=3, batch=(2,))
    stock = traced(WAYS[way](ALL[name]), o)
    with lapax.installed():
        ours = traced(WAYS[way](ALL[name]), o)
    # What this JAX refuses install() may serve: test_refused.
    assert ours == stock or stock is NotImplementedError
    assert "lapax" not in str(stock)


OUTSIDE = {
    **ALL,
    "hessenberg": lambda o: jsl.hessenberg(o.a, calc_q=True),
    "slogdet": lambda o: jnp.linalg.slogdet(o.a),
}


# The body of an equation has a constant in JAX 0.8.0, which is not known where that is the program.
@pytest.mark.parametrize("name", [name for name in OUTSIDE if NEW or name != "sylvester"])
def test_outside_of_jit_they_are_the_same_calls(name):
    """Where the function is the whole program: the same bits, which stock's algorithms have not.

    So for users who forbid that dtypes and ranks are promoted, for which lapax's own programs
    must not fail.
    """
    o = operands(C64, n=20, batch=(2,))
    with lapax.installed(), jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        inside = jax.tree.leaves(jax.jit(lambda o: OUTSIDE[name](o))(o))
        outside = jax.tree.leaves(OUTSIDE[name](o))
    for x, y in zip(outside, inside, strict=True):
        np.testing.assert_array_equal(x, y)


def test_what_is_left_stays_jax_s():
    a = matrices(F64, 3, (2,))
    with lapax.installed(leave="expm"):
        assert EXPM not in custom_calls(jsl.expm, a)
    with lapax.installed():
        assert EXPM in custom_calls(jsl.expm, a)


def test_a_function_of_that_name_stays():
    @jax.jit
    def expm(a):
        return jnp.linalg.inv(a)

    a = matrices(F64, 3, ())
    with lapax.installed():
        assert custom_calls(expm, a) == ["lapax.lapax_inv"]
