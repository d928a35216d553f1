"""A program's jaxpr is JAX's under install(), and so is what reads or interprets it."""

from __future__ import annotations

import functools
import pickle
import re

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
import pytest
from jax.experimental import checkify

import lapax
from programs import FUNCTIONS, operands, tolerance

F32, C64 = np.dtype(np.float32), np.dtype(np.complex64)

ALL = FUNCTIONS | {
    "cholesky": lambda o: jnp.linalg.cholesky(o.s),
    "solve": lambda o: jnp.linalg.solve(o.a, o.b),
    "solve_pos": lambda o: jax.vmap(functools.partial(jsl.solve, assume_a="pos"))(o.s, o.b),
    "inv": lambda o: jnp.linalg.inv(o.a),
    "slogdet": lambda o: jnp.linalg.slogdet(o.a)[1],
    "det": lambda o: jnp.linalg.det(o.a),
    "lu_solve": lambda o: jsl.lu_solve(jsl.lu_factor(o.a), o.b),
    "hessenberg": lambda o: jsl.hessenberg(o.a, calc_q=True)[1],
    "eigvalsh": lambda o: jnp.linalg.eigvalsh(o.a),
    "qr_r": lambda o: jnp.linalg.qr(o.a, mode="r"),
    "svd_u": lambda o: jnp.linalg.svd(o.a)[0],
}


def size(function, o):
    """A real number of the result, for derivatives."""
    return sum(jnp.sum(jnp.abs(x) ** 2) for x in jax.tree.leaves(function(o)))


WAYS = {
    "plain": lambda f: f,
    "jit": jax.jit,
    "vmap": jax.vmap,
    "jvp": lambda f: lambda o: jax.jvp(f, (o,), (o,)),
    "vjp": lambda f: jax.grad(functools.partial(size, f)),
    "linearize": lambda f: lambda o: jax.linearize(functools.partial(size, f), o)[0],
    "remat": lambda f: jax.grad(jax.checkpoint(functools.partial(size, f))),
    "scan": lambda f: lambda o: jax.lax.scan(lambda c, _: (c, f(o)), 0, length=2),
}


def traced(function, o):
    """The jaxpr as text, or the type of the error that tracing it raises."""
    try:
        text = str(jax.make_jaxpr(function)(o))
    except Exception as error:
        return type(error)
    return re.sub("0x[0-9a-f]+", "", text)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ALL)
def test_jaxprs_are_jax_s(name, way):
    o = operands(F32, n=4, batch=(3,))
    stock = traced(WAYS[way](ALL[name]), o)
    with lapax.installed():
        ours = traced(WAYS[way](ALL[name]), o)
        # What this JAX refuses install() may serve: test_refused.
        assert ours == stock or stock is NotImplementedError
        assert "lapax" not in str(stock)


def test_functions_are_jax_s():
    functions = (jax.lax.linalg.cholesky, jnp.linalg.inv, jnp.linalg.solve, jsl.hessenberg)
    with lapax.installed():
        now = (jax.lax.linalg.cholesky, jnp.linalg.inv, jnp.linalg.solve, jsl.hessenberg)
        assert now == functions
        assert pickle.loads(pickle.dumps(jax.lax.linalg.cholesky)) is jax.lax.linalg.cholesky
        with pytest.raises(TypeError, match="function inv at"):
            jnp.linalg.inv("abc")


ZERO, NAN, ONE = (np.full((3, 3), x, F32) for x in (0, np.nan, 1))
NOT_FINITE = {
    "cholesky": lambda: jnp.linalg.cholesky(-np.eye(3, dtype=F32)),
    "inv": lambda: jnp.linalg.inv(ZERO),
    "solve": lambda: jnp.linalg.solve(ZERO, ONE[0]),
    "solve in jit": lambda: jax.jit(lambda a, b: jnp.linalg.solve(a, b) + 1)(ZERO, ONE[0]),
    "slogdet": lambda: jnp.linalg.slogdet(NAN),
    "det": lambda: jnp.linalg.det(np.full((4, 4), np.nan, F32)),
    "lu_solve": lambda: jsl.lu_solve((ZERO, np.arange(3, dtype=np.int32)), ONE[0]),
    "hessenberg": lambda: jsl.hessenberg(NAN, calc_q=True),
    "eigvalsh": lambda: jnp.linalg.eigvalsh(np.full((40, 40), np.nan, F32)),
    "eigh": lambda: jnp.linalg.eigh(NAN),
    "svd": lambda: jnp.linalg.svd(NAN),
    "qr": lambda: jnp.linalg.qr(NAN),
    "gradient": lambda: jax.grad(lambda a: jnp.linalg.slogdet(a)[1])(ZERO),
}


@pytest.mark.parametrize("config", ["jax_debug_nans", "jax_debug_infs"])
@pytest.mark.parametrize("name", NOT_FINITE)
def test_checks_for_nan_and_inf_are_stock(name, config, capfd):
    def outcome():
        jax.config.update(config, True)
        try:
            NOT_FINITE[name]()
        except Exception as error:
            return type(error)
        finally:
            jax.config.update(config, False)
        return None

    stock = outcome()
    with lapax.installed():
        assert outcome() is stock
    capfd.readouterr()  # JAX prints a line for each.


def test_checks_for_nan_find_calls_of_targets():
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        lapax.ffi.inv(ZERO)


@pytest.mark.parametrize("name", ["cholesky", "inv", "solve", "slogdet", "eigvalsh"])
def test_checkify_finds_nan(name):
    o = operands(F32, n=4, batch=())
    o = jax.tree.map(lambda x: np.full_like(x, np.nan), o)
    checked = checkify.checkify(ALL[name], errors=checkify.float_checks)
    stock = checked(o)[0].get()
    assert "nan generated" in stock
    with lapax.installed():
        ours = checked(o)[0].get()
    assert ours.split(" at ")[0] == stock.split(" at ")[0]


def test_folx_takes_its_own_rule_for_slogdet(caplog):
    """By the name of the jitted function it knows slogdet; else it takes the whole Hessian."""
    folx = pytest.importorskip("folx", reason="folx is not installed for this JAX")
    x = jnp.asarray(operands(F32, n=4, batch=()).a)

    def logarithm(x):
        return jnp.linalg.slogdet(x)[1]

    stock = folx.forward_laplacian(logarithm)(x)
    traces = str(jax.make_jaxpr(folx.forward_laplacian(logarithm))(x))
    with lapax.installed():
        ours = folx.forward_laplacian(logarithm)(x)
        assert str(jax.make_jaxpr(folx.forward_laplacian(logarithm))(x)) == traces
    np.testing.assert_allclose(ours.laplacian, stock.laplacian, rtol=100 * tolerance(F32, 4))
    np.testing.assert_allclose(
        ours.jacobian.dense_array, stock.jacobian.dense_array, rtol=100 * tolerance(F32, 4)
    )
