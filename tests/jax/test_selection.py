"""install(platforms=…, only=…, leave=…) and LAPAX_LEAVE: what stays with JAX, and only that."""

from __future__ import annotations

import contextlib

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
import pytest

import lapax
from lapax import _doctor, _selection
from lapax._table import targets
from programs import FUNCTIONS, Operands, assert_close, custom_calls, operands, run_python

F32 = np.dtype(np.float32)
A, S, B = operands(F32, n=5, batch=(3,))


def calls(function, *args, platform="cpu"):
    lowered = jax.jit(function).trace(*args).lower(lowering_platforms=(platform,))
    return custom_calls_of(lowered.as_text())


def custom_calls_of(text):
    return [line.split("@")[1].split("(")[0] for line in text.split("stablehlo.custom_call ")[1:]]


def test_a_family_is_left_whole():
    solve = (jnp.linalg.solve, A, B)
    stock = calls(*solve)
    with lapax.installed(leave="lu") as left:
        assert left == lapax.left_to_jax() == ("lu (install: leave)",)
        assert calls(*solve) == [
            name if "getrf" in name else "lapax.lapax_triangular_solve"
            for name in stock
            if "permutation" not in name
        ]
        assert custom_calls(jnp.linalg.cholesky, S) == ["lapax.lapax_cholesky"]
        assert_close(jnp.linalg.solve(A, B), np.linalg.solve(A, B), 1e-4)
    assert lapax.left_to_jax() == ()


def test_an_op_is_left_and_the_next_serves():
    with lapax.installed(leave=["solve"]):
        assert custom_calls(jnp.linalg.solve, A, B) == ["lapax.lapax_lu", "lapax.lapax_lu_solve"]
    with lapax.installed(leave="solve, lu_solve"):
        assert custom_calls(jnp.linalg.solve, A, B) == [
            "lapax.lapax_lu",
            "lapax.lapax_triangular_solve",
            "lapax.lapax_triangular_solve",
        ]
    with lapax.installed(leave="cholesky"):  # The family: all that has a Cholesky factor.
        factor = jsl.cho_factor
        assert custom_calls(lambda s, b: jsl.cho_solve(factor(s), b), S, B) == [
            "lapack_spotrf_ffi",
            "lapax.lapax_triangular_solve",
            "lapax.lapax_triangular_solve",
        ]


def test_a_single_target_is_left():
    with lapax.installed(leave="lapax_cholesky, lapack_spotrf_ffi"):
        assert custom_calls(jnp.linalg.cholesky, S) == ["lapack_spotrf_ffi"]
        with jax.enable_x64(True):
            s = S.astype(np.float64)
            assert custom_calls(jnp.linalg.cholesky, s) == ["lapax.lapack_dpotrf_ffi"]


@pytest.mark.parametrize(
    ("only", "function", "served"),
    [
        ("solve", lambda: jnp.linalg.solve(A, B), ["lapax.lapax_solve"]),
        ("inv", lambda: jnp.linalg.inv(A), ["lapax.lapax_inv"]),
        ("posv", lambda: jsl.solve(S, B, assume_a="pos"), ["lapax.lapax_posv"]),
        ("cho_solve", lambda: jsl.cho_solve((S, True), B), ["lapax.lapax_cho_solve"]),
        ("slogdet", lambda: jnp.linalg.slogdet(A), ["lapax.lapax_slogdet"]),
        ("cholesky", lambda: jnp.linalg.cholesky(S), ["lapax.lapax_cholesky"]),
        ("potrf", lambda: jnp.linalg.cholesky(S), ["lapax.lapack_spotrf_ffi"]),
    ],
)  # fmt: skip
def test_only_one_op(only, function, served):
    stock = [calls(f) for f in (lambda: jnp.linalg.qr(A), lambda: jnp.linalg.eigvalsh(S))]
    expected = function()
    with lapax.installed(only=only) as left:
        assert left == (f"all but {only} (install: only)",)
        assert calls(function) == served
        assert_close(function(), expected, 1e-4)
        assert [calls(f) for f in (lambda: jnp.linalg.qr(A), lambda: jnp.linalg.eigvalsh(S))] == (
            stock
        )


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nothing_of_what_is_left_is_called(name):
    def function(*o):
        return FUNCTIONS[name](Operands(*o))

    stock = calls(function, A, S, B)
    with lapax.installed(only=[]):
        assert calls(function, A, S, B) == stock
    with lapax.installed(platforms="cuda") as left:
        assert left == ("cpu (install: platforms)",)
        assert calls(function, A, S, B) == stock


FAMILIES = {
    "lu": lambda: (jax.lax.linalg.lu(A), jnp.linalg.slogdet(A), jnp.linalg.inv(A)),
    "cholesky": lambda: (jnp.linalg.cholesky(S), jax.lax.linalg.cholesky_update(S[0], B[0, :, 0])),
    "qr": lambda: (jnp.linalg.qr(A), jnp.linalg.qr(A, mode="r"), jsl.qr(A[0], pivoting=True)),
    "eigh": lambda: (jnp.linalg.eigh(S), jnp.linalg.eigvalsh(S), jax.lax.linalg.tridiagonal(S)),
    "svd": lambda: (jnp.linalg.svd(A), jnp.linalg.svd(A)[1]),
    "eig": lambda: (jnp.linalg.eig(A), jnp.linalg.eigvals(A)),
    "schur": lambda: (jsl.schur(A[0]), jsl.schur(A[0])[0]),
    "hessenberg": lambda: jsl.hessenberg(A[0], calc_q=True),
    "triangular": lambda: jsl.solve_triangular(A, B),
    "tridiagonal": lambda: jax.lax.linalg.tridiagonal_solve(B[..., 0], A[..., 0], B[..., 1], B),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_that_is_left_is_as_in_stock_jax(family):
    ours = {f"lapax.{t.name}" for t in targets("cpu") if t.signature.family == family}
    stock = [name for name in calls(FAMILIES[family]) if f"lapax.{name}" in ours]
    with lapax.installed():
        assert set(calls(FAMILIES[family])) & ours
    with lapax.installed(leave=[family]):
        got = calls(FAMILIES[family])
        assert not set(got) & ours
        assert sorted(name for name in got if f"lapax.{name}" in ours) == sorted(stock)


def test_on_one_platform(on_cuda):
    a = jax.ShapeDtypeStruct((4, 4), F32)
    with lapax.installed(leave="cuda:qr"):
        assert calls(jnp.linalg.qr, a, platform="cuda") == on_cuda
        assert calls(jnp.linalg.eigh, a, platform="cuda") == ["lapax.lapax_eigh"]
        assert calls(jnp.linalg.qr, a) == ["lapax.lapax_qr"]
    for options in ({"platforms": ["CPU"]}, {"leave": "cuda"}):
        with lapax.installed(**options):
            assert calls(jnp.linalg.qr, a, platform="cuda") == on_cuda
            assert calls(jnp.linalg.eigvalsh, a, platform="cuda") == ["cusolver_syevd_ffi"]
            assert calls(jnp.linalg.qr, a) == ["lapax.lapax_qr"]
    assert calls(jnp.linalg.qr, a, platform="cuda") == on_cuda


@pytest.fixture
def on_cuda():
    if lapax._library.cuda_kernels() == 0 or lapax._library.cuda_unfit():
        pytest.skip("lapax serves no CUDA here: no kernels in this build, or the driver is too old")
    return ["cusolver_geqrf_ffi", "cusolver_orgqr_ffi"]


def test_the_last_call_and_the_innermost_block_are_in_force():
    def cholesky():
        return custom_calls(jnp.linalg.cholesky, S)

    lapax.install(leave="cholesky")
    assert cholesky() == ["lapack_spotrf_ffi"]
    with lapax.installed():
        assert cholesky() == ["lapack_spotrf_ffi"]
        with lapax.installed(leave=()):
            assert cholesky() == ["lapax.lapax_cholesky"]
        assert cholesky() == ["lapack_spotrf_ffi"]
    lapax.install()
    assert cholesky() == ["lapax.lapax_cholesky"]
    with contextlib.suppress(ZeroDivisionError), lapax.installed(leave="cholesky"):
        raise ZeroDivisionError
    assert cholesky() == ["lapax.lapax_cholesky"]


def test_compiled_functions_follow():
    norm = jax.jit(lambda s: jnp.linalg.cholesky(s).sum())
    lapax.install()
    with_lapax = norm.lower(S).as_text()
    lapax.install(leave="cholesky")
    assert "lapax" in with_lapax
    assert "lapax" not in norm.lower(S).as_text()


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"leave": "gepq3"}, ValueError, "install: leave: nothing is named 'gepq3'; did you mean"),
        ({"only": ["lu", "gesv"]}, ValueError, "install: only: nothing is named 'gesv'; "),
        ({"leave": "cuda:gees"}, ValueError, "nothing is named 'gees' on platform cuda; Names are"),
        ({"leave": "tpu:qr"}, ValueError, "nothing is named 'qr' on platform tpu; Names are cpu, "),
        ({"platforms": "tpu"}, ValueError, 'install: platforms: expected "cpu" or "cuda", got'),
        ({"leave": [3]}, TypeError, "install: leave: expected names, got 3"),
    ],
)
def test_names_of_nothing(options, error, text):
    lapax.install(leave="qr")
    with pytest.raises(error) as raised:
        lapax.install(**options)
    assert text in str(raised.value)
    assert lapax.left_to_jax() == ("qr (install: leave)",)
    with pytest.raises(error, match="install: "), lapax.installed(**options):
        pass
    assert lapax.left_to_jax() == ("qr (install: leave)",)


def test_the_variable_leaves_besides(monkeypatch, capsys):
    monkeypatch.setenv("LAPAX_LEAVE", "qr schur")
    lapax.install(leave="cholesky")
    said = ("cholesky (install: leave)", "qr (LAPAX_LEAVE)", "schur (LAPAX_LEAVE)")
    assert lapax.left_to_jax() == said
    assert not any("lapax" in name for name in calls(lambda: (jnp.linalg.qr(A), jsl.schur(A[0]))))
    lapax.uninstall()
    facts = [value for label, value in _doctor._left_to_jax() if label == "left to jax"]
    assert facts == ["qr (LAPAX_LEAVE)", "schur (LAPAX_LEAVE)"]
    monkeypatch.setenv("LAPAX_LEAVE", "nobody")
    with pytest.raises(ValueError, match="LAPAX_LEAVE: nothing is named 'nobody'; "):
        lapax.install()
    assert not lapax.is_installed()
    facts = [value for _, value in _doctor._left_to_jax()]
    assert [fact.split(";")[0] for fact in facts] == [
        "unknown: LAPAX_LEAVE: nothing is named 'nobody'"
    ]


def test_takeover_serves_all():
    code = """
import jax.numpy as jnp, lapax
try:
    lapax.install(takeover=True, leave="lu")
except ValueError as error:
    print(error)
print(lapax.is_installed())
lapax.install(takeover=True, leave="cuda")
try:
    lapax.install(leave="lu")
except ValueError as error:
    print(error)
print(lapax.left_to_jax())
"""
    first, installed, second, left = run_python(code).splitlines()
    assert first.startswith("lapax.install(takeover=True) serves all of jaxlib's names on the CPU")
    assert first == second
    assert first.endswith("there cannot be left to jaxlib: lu (install: leave)")
    assert installed == "False"
    assert left == "('cuda (install: leave)',)"


def test_words_name_every_target_on_each_platform():
    for target in targets():
        for name in (target.name, target.signature.op, target.signature.family):
            found = _selection.chosen(leave=f"{target.platform}:{name}").left
            assert (target.platform.lower(), target.name) in found
            assert {platform for platform, _ in found} == {target.platform.lower()}
