"""Every primitive of JAX's with a rule for the CPU: nothing of it reaches jaxlib."""

from __future__ import annotations

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import sparse
from jax.interpreters import mlir
from jax.lax import linalg

import lapax
from lapax import _jax_private as private
from programs import custom_calls

F32 = np.dtype(np.float32)
A = np.eye(4, dtype=F32)
V = np.ones(4, F32)

PROGRAMS = {
    "cholesky": (linalg.cholesky, A),
    "eig": (linalg.eig, A),
    "eigh": (linalg.eigh, A),
    "geqp3": (lambda a: jax.scipy.linalg.qr(a, pivoting=True), A),
    "geqrf": (lambda a: jnp.linalg.qr(a, mode="raw"), A),
    "hessenberg": (linalg.hessenberg, A),
    "householder_product": (lambda a: linalg.householder_product(a, V), A),
    "lu": (linalg.lu, A),
    "ormqr": (lambda a: jax.scipy.linalg.qr_multiply(a, a), A),
    "qr": (jnp.linalg.qr, A),
    "schur": (linalg.schur, A),
    "svd": (linalg.svd, A),
    "triangular_solve": (lambda a: linalg.triangular_solve(a, a), A),
    "tridiagonal": (linalg.tridiagonal, A),
    "tridiagonal_solve": (lambda a: linalg.tridiagonal_solve(V, V, V, a), A),
}
"""A program for each of JAX's linear-algebra primitives that has a rule for the CPU."""

OTHERS = {
    "bcsr_dot_general",  # A test of its own below.
    "check",
    "csr_spmm",
    "csr_spmv",
    "spsolve",  # A callback into SciPy's sparse solver.
    "dot_general",
    "conv_general_dilated",
    "debug_callback",
    "debug_print",
    "random_gamma",
    "select_and_scatter_add",
    "threefry2x32",
}
"""Primitives with a rule for the CPU that emit none of jaxlib's linear-algebra calls."""


def primitives_with_cpu_rules() -> set[str]:
    return {primitive.name for primitive in mlir._platform_specific_lowerings["cpu"]}


def test_every_primitive_is_known():
    """A primitive that a later JAX adds fails here, and is given a program above."""
    here = {name for name in primitives_with_cpu_rules() - OTHERS if not name.startswith("lapax_")}
    assert here <= PROGRAMS.keys()
    assert PROGRAMS.keys() - here <= {"qr", "ormqr"}  # A composite; since JAX 0.10.


@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_reaches_jaxlib(name):
    if name not in private.linalg_primitives():
        pytest.skip(f"this JAX has no {name}")
    function, a = PROGRAMS[name]
    stock = [call for call in custom_calls(function, a) if call in private.jaxlib_cpu_targets()]
    with lapax.installed():
        calls = custom_calls(function, a)
    assert stock
    assert not private.jaxlib_cpu_targets().intersection(calls)
    served = [call.removeprefix("lapax.") for call in calls if call.startswith("lapax.")]
    own = f"lapax_{name}"  # The row-major target, in place of jaxlib's.
    assert served[:1] == [own] or [call for call in served if call.startswith("lapack")] == [
        call for call in stock if call.startswith("lapack")
    ]


def test_every_target_of_jaxlib_is_served():
    served = {target.name for target in lapax.targets("cpu")}
    assert private.jaxlib_cpu_targets() <= served


def test_perturbed_tridiagonal_solve():
    try:
        solve = lambda a: linalg.tridiagonal_solve(V, V, V, a, perturb_singular=True)  # noqa: E731
        stock = custom_calls(solve, A)
    except TypeError:
        pytest.skip("this JAX has no argument `perturb_singular`")
    with lapax.installed():
        assert custom_calls(solve, A) == [f"lapax.{call}" for call in stock]


def test_sparse_products():
    matrix = sparse.BCSR.fromdense(2 * A)
    for right in (V, A):
        stock = custom_calls(lambda x: matrix @ x, right)
        assert stock == ["cpu_csr_sparse_dense_ffi"]
        with lapax.installed():
            assert custom_calls(lambda x: matrix @ x, right) == [f"lapax.{stock[0]}"]
            np.testing.assert_array_equal(matrix @ right, 2 * right)


def test_sparse_rules_are_wrapped_whenever_they_are_imported():
    code = """
import numpy as np, jax, lapax, sys
lapax.install()
print("jax.experimental.sparse" in sys.modules)
from jax.experimental import sparse
a = sparse.BCSR.fromdense(np.eye(3, dtype=np.float32))
program = lambda: jax.jit(lambda x: a @ x).lower(np.ones(3, np.float32)).as_text()
print("@lapax.cpu_csr_sparse_dense_ffi" in program())
lapax.uninstall()
print("@lapax.cpu_csr_sparse_dense_ffi" in program())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "False"]


@pytest.mark.parametrize("left_side", [True, False])
def test_batches_that_differ_are_refused_before_anything_runs(left_side):
    a, b = np.ones((2, 3, 3), np.float32), np.ones((4, 3, 3), np.float32)
    solve = jax.jit(lambda a, b: jax.lax.linalg.triangular_solve(a, b, left_side=left_side))
    with pytest.raises(ValueError, match="2 and 4"):
        solve.lower(a, b)  # Stock JAX, of its rule for the call's sharding.
    message = r"^lapax_triangular_solve: argument 1 `b`: expected .* `a`, \(2,\), got \(4,\)"
    with lapax.installed(), pytest.raises(ValueError, match=message):
        solve.lower(a, b)
