"""jaxlib's own names: takeover serves them, exporting() keeps them, and neither needs SciPy."""

from __future__ import annotations

import pathlib

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

import lapax
from programs import (
    FUNCTIONS,
    Operands,
    assert_close,
    custom_calls,
    emitted_calls,
    operands,
    run_python,
    tolerance,
)

F32 = np.dtype(np.float32)
NO_SCIPY = 'import sys; sys.modules["scipy"] = None\n'
"""Any import of SciPy raises: jaxlib's handlers, null pointers until it is loaded, cannot run."""

POTRF = """
import jax, numpy as np
def info_of_nan():
    '''LAPACK's info for a NaN, which jaxlib's OpenBLAS reports as 0.'''
    out = jax.ShapeDtypeStruct((2, 2), np.float32), jax.ShapeDtypeStruct((), np.int32)
    call = jax.ffi.ffi_call("lapack_spotrf_ffi", out)
    nan = np.full((2, 2), np.nan, np.float32)
    return int(jax.jit(lambda a: call(a, uplo=np.uint8(ord("L"))))(nan)[1])
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> pathlib.Path:
    """A program that stock JAX exported: solve, eigh, svd, qr, eig, schur and trsm by name."""

    def decompositions(a, s, b):
        w = jax.lax.linalg.eigh(s)[1]
        u, d, vh = jnp.linalg.svd(a)
        q, r = jnp.linalg.qr(a)
        t, z = jax.lax.linalg.schur(a)
        x = jnp.linalg.solve(a, b)
        lower = jnp.linalg.cholesky(s)
        return [w, (u * d) @ vh, q @ r, z @ t @ z.mT, a @ x, lower @ lower.mT]

    shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in operands(F32, n=6, batch=())]
    exported = jax.export.export(jax.jit(decompositions))(*shapes)
    calls = emitted_calls(exported.mlir_module())
    assert "lapack_ssyevd_ffi" in calls
    assert not any("lapax" in call for call in calls)
    file = tmp_path_factory.mktemp("exported") / "program.bin"
    file.write_bytes(exported.serialize())
    return file


def run_program(program: pathlib.Path) -> str:
    """Code that runs the program on the operands and prints the largest relative error."""
    o = [x.tolist() for x in operands(F32, n=6, batch=())]
    return f"""
import pathlib, jax.export, numpy as np
a, s, b = (np.array(x, np.float32) for x in {o!r})
call = jax.export.deserialize(pathlib.Path({str(program)!r}).read_bytes()).call
expected = [np.linalg.eigvalsh(s), a, a, a, b, s]
print(max(np.abs(x - y).max() / np.abs(y).max() for x, y in zip(call(a, s, b), expected)) < 2e-5)
"""


def test_takeover_serves_jaxlibs_names():
    code = f"{POTRF}\nimport lapax\nlapax.install(takeover=True)\nprint(info_of_nan())"
    assert run_python(code) == "1\n"


def test_stock_names_stay_jaxlibs_without_takeover():
    """They work, too: install() spares SciPy only where no call needs it."""
    code = f"{POTRF}\nimport lapax\nlapax.install()\nprint(info_of_nan())"
    assert run_python(code) == "0\n"


def test_a_program_of_stock_jax_runs_on_lapax(program):
    code = f"{NO_SCIPY}import lapax\nlapax.install(takeover=True)\n{run_program(program)}"
    assert run_python(code) == "True\n"


def test_a_program_of_stock_jax_runs_on_jaxlib_without_takeover(program):
    assert run_python(f"import lapax\nlapax.install()\n{run_program(program)}") == "True\n"
    with_scipy_gone = f"{NO_SCIPY}import lapax\nlapax.install()\n{run_program(program)}"
    with pytest.raises(AssertionError, match=r"ImportError|ModuleNotFoundError"):
        run_python(with_scipy_gone)


def test_names_stay_after_uninstall():
    code = f"""{NO_SCIPY}{POTRF}
import jax.numpy as jnp, lapax
lapax.install(takeover=True)
lapax.uninstall()
print(lapax.is_installed(), info_of_nan())
print(jnp.linalg.eigvalsh(np.diag([3.0, 1.0])).tolist())
lapax.install()
lapax.install(takeover=True)
print(lapax.is_installed(), jnp.linalg.inv(np.diag([2.0, 4.0])).tolist())
"""
    assert run_python(code).splitlines() == [
        "False 1",
        "[1.0, 3.0]",
        "True [[0.5, 0.0], [0.0, 0.25]]",
    ]


def test_too_late_is_an_error_that_says_what_to_do():
    jax.devices()
    with pytest.raises(RuntimeError) as raised:
        lapax.install(takeover=True)
    assert not lapax.is_installed()
    assert "JAX already has a CPU backend" in str(raised.value)
    assert "Call it before the first array" in str(raised.value)


def test_export_under_takeover_needs_nothing_and_runs_on_stock(tmp_path):
    file = tmp_path / "program.bin"
    code = f"""
import pathlib, jax, jax.export, jax.numpy as jnp, numpy as np, lapax
lapax.install(takeover=True)
a = np.diag([4.0, 9.0]).astype(np.float32)
def function(a):
    lu, _, permutation = jax.lax.linalg.lu(a)
    return jnp.linalg.eigvalsh(a), jnp.linalg.cholesky(a), lu, permutation
print("lapax.lapax_lu" in jax.jit(function).lower(a).as_text())
exported = jax.export.export(jax.jit(function))(a)
print("lapax." in exported.mlir_module())
with lapax.exporting(names="lapax"):
    ours = jax.export.export(jax.jit(function), disabled_checks=lapax.export_safety_checks())(a)
print("lapax.lapax_lu" in ours.mlir_module(), "@lapack_" in ours.mlir_module())
pathlib.Path({str(file)!r}).write_bytes(exported.serialize())
"""
    assert run_python(code).split() == ["True", "False", "True", "False"]
    code = f"""
import pathlib, jax.export, jax.numpy as jnp, numpy as np
a = np.diag([4.0, 9.0]).astype(np.float32)
jnp.linalg.inv(a)
call = jax.export.deserialize(pathlib.Path({str(file)!r}).read_bytes()).call
print([np.asarray(x).tolist() for x in call(a)[:2]])
"""
    assert run_python(code).strip() == "[[4.0, 9.0], [[2.0, 0.0], [0.0, 3.0]]]"


@pytest.mark.parametrize("sparse_first", [True, False])
def test_takeover_covers_sparse(sparse_first):
    """JAX registers the sparse target when jax.experimental.sparse is imported, early or late."""
    first = "from jax.experimental import sparse" if sparse_first else ""
    code = f"""
{first}
import jax, numpy as np, lapax
lapax.install(takeover=True)
jax.devices()
from jax.experimental import sparse
a = sparse.BCSR.fromdense(2 * np.eye(3, dtype=np.float32))
print((a @ np.ones(3, np.float32)).tolist())
"""
    assert run_python(code).strip() == "[2.0, 2.0, 2.0]"


def test_jax_computes_without_scipy():
    code = f"""{NO_SCIPY}
import jax, jax.numpy as jnp, jax.scipy.linalg as jsl, numpy as np, lapax
lapax.install()
rng = np.random.default_rng(0)
a = rng.standard_normal((3, 5, 5)).astype(np.float32) + 5 * np.eye(5, dtype=np.float32)
s = a @ a.swapaxes(1, 2)
for f in (jnp.linalg.inv, jnp.linalg.det, jnp.linalg.eig, jnp.linalg.svd, jnp.linalg.qr,
          jnp.linalg.eigvals, jnp.linalg.pinv, jsl.expm, jax.lax.linalg.hessenberg,
          jax.lax.linalg.schur, jax.vmap(lambda a: jsl.qr(a, pivoting=True))):
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(f(a))), f
for f in (jnp.linalg.cholesky, jnp.linalg.eigh, jax.lax.linalg.tridiagonal):
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(f(s))), f
d = np.ones((3, 5), np.float32)
x = jax.lax.linalg.tridiagonal_solve(0 * d, 2 * d, 0 * d, a)
np.testing.assert_allclose(x, a / 2)
print("scipy.linalg" in sys.modules)
lapax.uninstall()
try:
    jnp.linalg.inv(a)
except ImportError:
    print("stock JAX needs SciPy")
"""
    assert run_python(code).splitlines() == ["False", "stock JAX needs SciPy"]


def test_a_broken_scipy_is_never_looked_at():
    """SciPy's LAPACK is there, with null pointers for functions."""
    code = """
import sys, types
for name in ("scipy.linalg.cython_lapack", "scipy.linalg.cython_blas"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__pyx_capi__ = {}
import jax.numpy as jnp, numpy as np, lapax
lapax.install()
print(jnp.linalg.solve(np.diag([2.0, 4.0]), np.ones(2)).tolist())
"""
    assert run_python(code).strip() == "[0.5, 0.25]"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_exporting_keeps_stock_names(name):
    o = operands(F32, n=4, batch=(3,))

    def function(*o):
        return FUNCTIONS[name](Operands(*o))

    stock = custom_calls(function, *o)
    with lapax.installed():
        before = custom_calls(function, *o)
        with lapax.exporting():
            program = jax.export.export(jax.jit(function))(*o)
            assert custom_calls(function, *o) == stock
        assert custom_calls(function, *o) == before != stock
    call = jax.export.deserialize(program.serialize()).call
    assert_close(call(*o), function(*o), tolerance(F32, 4))


def test_exporting_is_for_one_function_too():
    """The same jit object, before, inside and after: no cache mixes them up."""
    a = np.eye(3, dtype=F32)
    function = jax.jit(jnp.linalg.cholesky)
    with lapax.installed():
        function(a)
        with lapax.exporting(names="lapax"):
            with pytest.raises(ValueError, match=r"lapax\.lapax_cholesky"):
                jax.export.export(function)(a)
            with lapax.exporting():
                assert "@lapack_spotrf_ffi" in function.lower(a).as_text()
            assert "@lapax.lapax_cholesky" in function.lower(a).as_text()
        with lapax.exporting():
            program = jax.export.export(function)(a).mlir_module()
            assert emitted_calls(program) == ["lapack_spotrf_ffi"]
            assert "lapax" not in function.lower(a).as_text()
            function(a)
        assert emitted_calls(jax.export.export(function)(a).mlir_module()) == ["lapack_spotrf_ffi"]
        assert "lapax" in function.lower(a).as_text()


def test_exporting_without_install_changes_nothing():
    a = np.eye(3, dtype=F32)
    with lapax.exporting():
        assert custom_calls(jnp.linalg.cholesky, a) == ["lapack_spotrf_ffi"]
        np.testing.assert_array_equal(jnp.linalg.cholesky(a), a)


def test_exporting_what_only_lapax_serves():
    """A range of eigenvalues is exported as stock's whole decomposition and a slice."""
    a = np.diag(np.arange(1.0, 6)).astype(F32)
    with lapax.installed(), lapax.exporting():
        program = jax.export.export(
            jax.jit(lambda a: jax.lax.linalg.eigh(a, subset_by_index=(1, 3))[1])
        )(a)
    assert_close(program.call(a), np.array([2, 3], F32), tolerance(F32, 5))
