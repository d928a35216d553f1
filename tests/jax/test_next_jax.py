"""On a JAX that lapax was not checked on: what still fits is used, the rest is JAX's and named."""

from __future__ import annotations

import warnings

import jax
import jax.experimental.sparse as sparse
import jax.experimental.sparse.linalg
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
import pytest

import lapax
from lapax import _doctor, _rules, _trial, _unknown
from lapax import _jax_private as private
from lapax._hooks import Hook, Part
from programs import emitted_calls, run_python

NOTHING = {"parts": {}, "families": {}}


@pytest.fixture
def unknown(monkeypatch):
    """This JAX, under a number that nobody has checked, and a trial without differences."""
    monkeypatch.setattr(jax, "__version__", "99.0")
    monkeypatch.setattr(_unknown, "_said", set())
    monkeypatch.setattr(_trial, "outcome", lambda: NOTHING)
    monkeypatch.delenv(_unknown.VARIABLE, raising=False)
    _unknown._tried.cache_clear()
    yield monkeypatch
    lapax.uninstall()
    _unknown._tried.cache_clear()


def other(*, never):
    """What none of the hooks is."""


def broken(hook, way):
    """The hook as it is where JAX has changed."""
    if way == "missing":
        return Hook(hook.module, "gone", hook.serves, *hook.fits)
    if way == "moved":
        return Hook("lapax_has_no_such_module", hook.names, hook.serves, *hook.fits)
    return Hook(__name__, "other", hook.serves, *hook.fits)


A = np.array([[4, 1, 0], [1, 5, 2], [0.5, 2, 6]], np.float32)
S = (A @ A.T).astype(np.float32)
B = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
MATRIX = sparse.BCSR.fromdense(jnp.asarray(A))


def program(a, s, b):
    """A part of each kind of what install() does."""
    return (
        jnp.linalg.cholesky(s),
        jnp.linalg.solve(a, b),
        jnp.linalg.slogdet(a)[1],
        jsl.hessenberg(a, calc_q=True),
        jnp.linalg.svd(a, compute_uv=False),
        jnp.linalg.eigvalsh(s),
        MATRIX @ b,
    )


OPS = "cholesky solve slogdet hess svdvals eigvalsh"
CALLS = {f"lapax.lapax_{op}" for op in OPS.split()}
LOST = {
    Part.RULES: OPS,
    Part.FUSED: "solve slogdet hess eigvalsh",
    Part.EIGH_SVD: "svdvals eigvalsh",
    Part.CALLS: "solve slogdet hess",
    Part.LU_SOLVE: "solve",
    Part.SOLVER: "solve",
    Part.SLOGDET: "slogdet",
    Part.SOME: "slogdet",
}
"""What is no longer one call of those, by the part that is left to JAX."""


@pytest.fixture(scope="module")
def stock():
    return jax.tree.leaves(jax.jit(program)(A, S, B))


@pytest.fixture(scope="module")
def computed():
    """Programs that gave stock's answers, by their text."""
    return set()


def lapax_calls(stock, computed):
    """The targets of lapax's own that the program calls; its answers are stock's."""
    lowered = jax.jit(program).lower(A, S, B)
    text = lowered.as_text()
    if text not in computed:
        for got, expected in zip(jax.tree.leaves(lowered.compile()(A, S, B)), stock, strict=True):
            np.testing.assert_allclose(np.abs(got), np.abs(expected), rtol=1e-4, atol=1e-5)
        computed.add(text)
    return set(emitted_calls(text)) & CALLS


@pytest.mark.parametrize("name", private.HOOKS)
def test_hooks_fit(name):
    assert private.HOOKS[name].problem is None


@pytest.mark.parametrize("way", ["missing", "moved", "other"])
@pytest.mark.parametrize("name", private.HOOKS)
def test_a_broken_hook_takes_what_it_serves(name, way, unknown, stock, computed):
    hook = private.HOOKS[name]
    unknown.setitem(private.HOOKS, name, broken(hook, way))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        lapax.install(unknown_jax="trust")
    (warning,) = caught
    assert warning.category is RuntimeWarning
    assert warning.filename == __file__
    assert "this is 99.0. Left to JAX: " in str(warning.message)
    assert private.HOOKS[name].problem in str(warning.message)
    for part in hook.serves:
        text = "eigh (" if part is Part.EIGH_SVD else part.value
        assert text in str(warning.message)
    if way == "missing":
        lost = " ".join(LOST.get(part, "") for part in hook.serves).split()
        assert lapax_calls(stock, computed) == CALLS - {f"lapax.lapax_{op}" for op in lost}
    assert lapax.is_installed() == (Part.RULES not in hook.serves)


def test_nothing_is_said_where_all_fits(unknown, stock, computed):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lapax.install()
    assert lapax_calls(stock, computed) == CALLS


def test_a_warning_is_given_once(unknown):
    unknown.setattr(_trial, "outcome", lambda: NOTHING | {"families": {"lu": "differs"}})
    with pytest.warns(RuntimeWarning, match=r"Left to JAX: lu \(differs\)$"):
        lapax.install()
    lapax.uninstall()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lapax.install()
    assert emitted_calls(jax.jit(jax.lax.linalg.lu).lower(A).as_text())[0].startswith("lapack_")


@pytest.mark.parametrize("part", [Part.FUSED, Part.RULES])
def test_what_a_trial_finds_is_left(part, unknown, stock, computed):
    unknown.setattr(_trial, "outcome", lambda: NOTHING | {"parts": {part.name: ["wrong"]}})
    with pytest.warns(RuntimeWarning, match=r"\(wrong\)$"):
        lapax.install()
    assert lapax_calls(stock, computed) == CALLS - {f"lapax.lapax_{x}" for x in LOST[part].split()}


def test_a_program_that_cannot_be_read_is_lowered_as_it_is(unknown, stock, computed):
    lapax.install()
    unknown.setattr(private, "bodies", lambda _: 1 / 0)
    with pytest.warns(RuntimeWarning, match="as one call .ZeroDivisionError"):
        assert "lapax.lapax_solve" not in lapax_calls(stock, computed)


def test_what_is_asked_for(unknown):
    with pytest.warns(RuntimeWarning, match="install: unknown_jax is 'leave'"):
        lapax.install(unknown_jax="leave", takeover=True)
    assert not lapax.is_installed()
    unknown.setenv(_unknown.VARIABLE, "leave")
    with pytest.warns(RuntimeWarning, match="LAPAX_UNKNOWN_JAX is 'leave'"), lapax.installed():
        assert not lapax.is_installed()
    unknown.setattr(_trial, "outcome", lambda: 1 / 0)
    lapax.install(unknown_jax="trust")
    assert lapax.is_installed()
    unknown.setenv(_unknown.VARIABLE, "maybe")
    with pytest.raises(ValueError, match="LAPAX_UNKNOWN_JAX: expected one of 'check', 'trust',"):
        lapax.install()
    with pytest.raises(ValueError, match="install: unknown_jax: expected one of"):
        lapax.install(unknown_jax="perhaps")


def test_takeover_is_left(unknown):
    name = "jaxlib.xla_client._custom_callback"
    unknown.setitem(private.HOOKS, name, broken(private.HOOKS[name], "missing"))
    with pytest.warns(RuntimeWarning, match="jaxlib's names stay jaxlib's"):
        lapax.install(takeover=True)
    assert lapax.is_installed()


def test_every_primitive_has_a_trial():
    from lapax import _install

    assert set(_install.replaced()) <= _trial.FAMILIES.keys()


def test_a_trial_sees_wrong_answers_and_errors(unknown):
    unknown.setattr(_trial, "FUSED", {"inv": _trial.FUSED["inv"], "det": _trial.FUSED["det"]})
    chosen = {name: _trial.FAMILIES[name] for name in ("cholesky", "lu", "tridiagonal")}
    unknown.setattr(_trial, "FAMILIES", chosen)
    stock = _rules.row_major

    def wrong(name, rule, ctx, *operands, **params):
        if name == "lu":
            raise TypeError("no such\nthing")
        return list(stock(name, rule, ctx, *operands, **params))

    def other_op(name, rule, ctx, a, **params):
        return wrong(name, rule, ctx, a, **params) if name != "cholesky" else [a]

    unknown.setattr(_rules, "row_major", other_op)
    unknown.setattr(_rules, "fused", lambda op, platform, ctx, operands, params: operands)
    found = _trial.run()
    assert set(found["families"]) >= {"cholesky", "lu", "qr"}
    assert found["families"]["cholesky"].startswith("differs from JAX's by ")
    assert found["families"]["lu"] == "TypeError: no such"
    assert found["families"]["qr"] == "there is no trial of it"
    assert "tridiagonal" not in found["families"]
    assert found["parts"]["FUSED"][0].startswith("inv: differs from JAX's by ")
    assert not lapax.is_installed()


@pytest.mark.parametrize(
    ("code", "why"),
    [("import os; os._exit(7)", "ended with 7"), ("1 / 0", "ended with 1: ZeroDivisionError")],
)
def test_a_trial_that_ends_early_leaves_everything(code, why, monkeypatch):
    run = _trial.subprocess.run

    def crash(command, **options):
        return run([*command[:2], code], **options)

    monkeypatch.setattr(_trial.subprocess, "run", crash)
    (reason,) = _trial.outcome()["parts"]["RULES"]
    assert why in reason


def test_doctor_says_what_is_left(unknown):
    def left():
        facts = _doctor._facts(jax.devices("cpu")[0], verbose=False)
        return [value for name, value in facts if name == "left to jax"]

    assert left()[0].startswith("nothing") or left()[0].startswith("CUDA")
    unknown.setattr(_trial, "outcome", lambda: NOTHING | {"families": {"qr": "differs"}})
    _unknown._tried.cache_clear()
    assert "qr (differs)" in left()
    unknown.setattr(jax, "__version__", "0.12.0")
    assert left() == []


def test_a_trial_in_a_new_process():
    code = """
import jax
jax.__version__ = "99.0"
import lapax, warnings
warnings.simplefilter("error")
lapax.install()
from jax._src import xla_bridge
print(lapax.is_installed(), xla_bridge._backends)
"""
    assert run_python(code) == "True {}\n"


def test_import_needs_no_hook():
    """Every private name is gone from its module, for lapax; JAX itself has it elsewhere."""
    public = ("jax", "jax.core", "jax.lax")
    rows = [
        (h.module, h.names.split("|")) for h in private.HOOKS.values() if h.module not in public
    ]
    code = f"""
import importlib, sys, types, warnings
import jax, jax.numpy as jnp, jax.scipy.linalg, jax.experimental.sparse.linalg, jax.export
jax.__version__ = "99.0"
class Without(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__") or name in gone[self.__name__]:
            raise AttributeError(name)
        return getattr(real[self.__name__], name)
gone, real = {{}}, {{}}
for module, names in {rows!r}:
    real[module] = importlib.import_module(module)
    gone.setdefault(module, set()).update(names)
for module in real:
    fake = sys.modules[module] = Without(module)
    fake.__path__ = getattr(real[module], "__path__", [])
    parent, _, last = module.rpartition(".")
    if parent in real:
        setattr(sys.modules[parent], last, fake)
import lapax
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    lapax.install()
print(len(caught), lapax.is_installed(), len(lapax.targets()) > 50)
print(float(jnp.linalg.solve(jnp.eye(2) * 2, jnp.ones(2))[0]))
print(caught[0].message)
"""
    first, second, message = run_python(code).splitlines()
    assert first == "1 False True"
    assert second == "0.5"
    for hook in private.HOOKS.values():
        is_attribute = hook.names and "." not in hook.names
        if hook.module not in public and is_attribute and not private.is_sparse(hook):
            assert hook.name in message
