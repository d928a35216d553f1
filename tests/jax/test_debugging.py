"""JAX's debugging aids and its compilation cache: under install() they do what they do in stock."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
import pytest

import lapax
from programs import FUNCTIONS, Operands, assert_close, operands, run_python, tolerance

F32 = np.dtype(np.float32)

MORE = {
    "qr": lambda o: jnp.linalg.qr(o.a)[1],
    "eigvalsh": lambda o: jnp.linalg.eigvalsh(o.s),
    "eigh": lambda o: jnp.linalg.eigh(o.s)[0],
    "svd": lambda o: jnp.linalg.svd(o.a)[1],
    "svdvals": lambda o: jnp.linalg.svd(o.a, compute_uv=False),
    "eigvals": lambda o: jnp.abs(jnp.linalg.eigvals(o.a)).sum(-1),
    "pinv": lambda o: jnp.linalg.pinv(o.a),
    "expm": lambda o: jsl.expm(o.a / 8),
    "hessenberg": lambda o: jnp.abs(jsl.hessenberg(o.a)).sum((-1, -2)),
    "schur": lambda o: jnp.abs(jnp.trace(jax.vmap(jsl.schur)(o.a)[0], axis1=-2, axis2=-1)),
    "gradient": lambda o: jax.grad(lambda a: jnp.linalg.slogdet(a)[1].sum())(o.a),
    "vmap": lambda o: jax.vmap(jnp.linalg.solve)(o.a, o.b),
}
ALL = FUNCTIONS | MORE

CONFIGS = {
    "enable_checks": lambda: jax.enable_checks(True),
    "disable_jit": jax.disable_jit,
    "checking_leaks": jax.checking_leaks,
}


def outcome(function, o):
    """The leaves of the result, or the type of the error."""
    try:
        return jax.tree.map(np.asarray, function(o))
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("name", ALL)
def test_debugging_aids_as_in_stock(name, config):
    """Called at once and under jit: the same results, and errors of the same type if any."""
    o = operands(F32, n=4, batch=(3,))
    for wrap in (lambda f: f, jax.jit):
        with CONFIGS[config]():
            stock = outcome(wrap(functools.partial(call, name)), o)
        with lapax.installed(), CONFIGS[config]():
            got = outcome(wrap(functools.partial(call, name)), o)
        if isinstance(stock, type) or isinstance(got, type):
            assert got is stock
        else:
            assert_close(got, stock, 4 * tolerance(F32, 4))


def call(name, o):
    return ALL[name](Operands(*o))


CACHED = """
import jax, jax.numpy as jnp, numpy as np, lapax
from jax._src import monitoring
hits = []
monitoring.register_event_listener(lambda event, **_: hits.append(event))
lapax.install()
a = (np.arange(36.0).reshape(4, 3, 3) % 7 + 5 * np.eye(3)).astype(np.float32)
s = a + a.swapaxes(1, 2)
def f(a, s):
    return jnp.linalg.solve(a, a), jnp.linalg.eigvalsh(s), jnp.linalg.qr(a)[1], jnp.linalg.inv(a)
for x in jax.jit(f)(a, s):
    print(np.asarray(x).tobytes().hex())
inverse = np.asarray(jax.jit(f)(a, s)[3])
print(bool(np.abs(inverse @ a - np.eye(3)).max() < 1e-5))
print(sum(event == "/jax/compilation_cache/cache_hits" for event in hits) > 0)
"""


def test_the_cache_on_disk(tmp_path):
    """A second process compiles nothing, and has the same bits."""
    environment = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    first, second = (run_python(CACHED, **environment).splitlines() for _ in range(2))
    assert first[-2:] == ["True", "False"]
    assert second[-2:] == ["True", "True"]
    assert first[:-1] == second[:-1]


def test_the_cache_on_disk_keeps_stocks_programs_apart(tmp_path):
    environment = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    stock = CACHED.replace("lapax.install()", "").replace(", lapax", "")
    run_python(CACHED, **environment)
    assert run_python(stock, **environment).splitlines()[-2] == "True"
