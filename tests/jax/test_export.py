"""jax.export: what is exported runs again, here and in a process that only imports lapax."""

from __future__ import annotations

import re

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

import lapax
from programs import FUNCTIONS, Operands, assert_close, operands, run_python, tolerance

F32 = np.dtype(np.float32)


def exported(function, *args, **options):
    checks = lapax.export_safety_checks()
    return jax.export.export(jax.jit(function), disabled_checks=checks, **options)(*args)


def round_trip(program):
    return jax.export.deserialize(program.serialize()).call


@pytest.mark.parametrize("name", ["cholesky", "solve", "cho_solve"])
def test_installed_functions(name):
    o = operands(F32, n=4, batch=(3,))

    def function(*o):
        return FUNCTIONS[name](Operands(*o))

    with lapax.installed():
        program = exported(function, *o)
    assert "@lapax.lapax_" in str(program.mlir_module())
    assert_close(round_trip(program)(*o), function(*o), tolerance(F32, 4))


def test_without_the_checks_disabled_it_is_refused():
    with pytest.raises(ValueError, match=r"lapax\.lapack_spotrf_ffi"):
        jax.export.export(jax.jit(lambda a: lapax.ffi.potrf(a, uplo="L")[0]))(np.eye(3, dtype=F32))


def test_every_op():
    o = operands(F32, n=4, batch=(3,))

    def program(a, s, b):
        lu, ipiv, _ = lapax.ffi.getrf(a)
        root, _ = lapax.ffi.potrf(s, uplo="U")
        x = lapax.ffi.trsm(lu, b, side="L", uplo="U", trans_x="C", diag="N")
        permutation = lapax.ffi.lu_pivots_to_permutation(ipiv - 1, p=4)
        return lu, root, x, permutation, lapax.ffi.cholesky_update(root, b[..., 0])[0]

    expected = program(*o)
    for got, value in zip(round_trip(exported(program, *o))(*o), expected, strict=True):
        assert np.asarray(got).tobytes() == np.asarray(value).tobytes()


def test_a_symbolic_batch():
    o = operands(F32, n=4, batch=(3,))
    (b,) = jax.export.symbolic_shape("b")
    shapes = [jax.ShapeDtypeStruct((b, 4, k), F32) for k in (4, 2)]

    def solve(a, b):
        return lapax.ffi.trsm(a, b, side="L", uplo="L", trans_x="N", diag="N")

    call = round_trip(exported(solve, *shapes))
    for count in (1, 3):
        got = call(o.a[:count], o.b[:count])
        assert_close(got, np.linalg.solve(np.tril(o.a[:count]), o.b[:count]), tolerance(F32, 4))


def test_a_symbolic_matrix_is_refused_by_name():
    (n,) = jax.export.symbolic_shape("n")
    message = (
        "lapack_spotrf_ffi: symbolic dimensions are supported in the leading batch dimensions, "
        "where all operands have the same; got shapes (n, n)"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        exported(lambda a: lapax.ffi.potrf(a, uplo="L")[0], jax.ShapeDtypeStruct((n, n), F32))


@pytest.mark.parametrize("name", ["cholesky", "solve", "lower"])
def test_symbolic_shapes_work_as_in_stock(name):
    b, n = jax.export.symbolic_shape("b, n")
    shapes = [jax.ShapeDtypeStruct(shape, F32) for shape in ((b, n, n), (b, n, n), (b, n, 2))]

    def function(*o):
        return FUNCTIONS[name](Operands(*o))

    with lapax.installed():
        program = exported(function, *shapes)
    assert "lapax.lapack_s" in str(program.mlir_module())
    call = round_trip(program)
    for size in (3, 5):
        o = operands(F32, n=size, batch=(2,))
        assert_close(call(*o), function(*o), tolerance(F32, size))


def test_symbolic_permutation_keeps_the_common_rule():
    (b,) = jax.export.symbolic_shape("b")
    with lapax.installed():
        program = exported(
            lambda p: jax.lax.linalg.lu_pivots_to_permutation(p, 4),
            jax.ShapeDtypeStruct((b, 3), np.int32),
        )
    pivots = np.array([[2, 1, 3], [1, 1, 2]], np.int32)
    np.testing.assert_array_equal(round_trip(program)(pivots), [[2, 1, 3, 0], [1, 0, 2, 3]])


def test_other_platforms_keep_their_own_targets():
    with lapax.installed():
        text = str(
            exported(
                jnp.linalg.cholesky, np.eye(3, dtype=F32), platforms=("cpu", "cuda")
            ).mlir_module()
        )
    assert "lapax.lapax_cholesky" in text
    # lapax's own where it was built with CUDA kernels, else jaxlib's.
    assert "cusolver_potrf_ffi" in text or "stablehlo.cholesky" in text
    with pytest.raises(NotImplementedError, match=r"^lapax: potrf has no target on platform cuda"):
        exported(
            lambda a: lapax.ffi.potrf(a, uplo="L")[0], np.eye(3, dtype=F32), platforms=("cuda",)
        )


def test_runs_in_a_process_that_only_imports_lapax(tmp_path):
    with lapax.installed():
        program = exported(jnp.linalg.cholesky, np.eye(2, dtype=F32))
    file = tmp_path / "cholesky.bin"
    file.write_bytes(program.serialize())
    code = f"""
import pathlib, jax.export, numpy as np, lapax
call = jax.export.deserialize(pathlib.Path({str(file)!r}).read_bytes()).call
print(np.asarray(call(np.array([[4, 2], [2, 5]], np.float32))).tolist())
"""
    assert run_python(code).strip() == "[[2.0, 0.0], [1.0, 2.0]]"
