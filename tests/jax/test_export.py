"""jax.export: jaxlib's names by default, so that any JAX runs what is exported; lapax's on request,
and those of `lapax.ffi`'s functions, which run in a process that imports lapax."""

from __future__ import annotations

import pathlib
import re

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

import lapax
from lapax import _library
from programs import (
    FUNCTIONS,
    Operands,
    assert_close,
    emitted_calls,
    operands,
    run_python,
    tolerance,
)

F32 = np.dtype(np.float32)


def exported(function, *args, **options):
    checks = lapax.export_safety_checks()
    return jax.export.export(jax.jit(function), disabled_checks=checks, **options)(*args)


def round_trip(program):
    return jax.export.deserialize(program.serialize()).call


def calls_of(program):
    """The targets of linear algebra that a program calls."""
    calls = set(emitted_calls(program.mlir_module()))
    return {call for call in calls if call.startswith(("lapa", "cu"))}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_installed_functions_as_stock(name):
    """No check is disabled, no block is open, and the calls are those of stock JAX."""
    o = operands(F32, n=4, batch=(3,))

    def function(*o):
        return FUNCTIONS[name](Operands(*o))

    stock = jax.export.export(jax.jit(function))(*o)
    with lapax.installed():
        program = jax.export.export(jax.jit(function))(*o)
        assert emitted_calls(program.mlir_module()) == emitted_calls(stock.mlir_module())
        assert_close(round_trip(program)(*o), stock.call(*o), tolerance(F32, 4))
    assert_close(round_trip(program)(*o), stock.call(*o), 0.0)


@pytest.mark.parametrize("name", ["cholesky", "solve", "cho_solve"])
def test_installed_functions_by_names_of_lapax(name):
    o = operands(F32, n=4, batch=(3,))

    def function(*o):
        return FUNCTIONS[name](Operands(*o))

    with lapax.installed(), lapax.exporting(names="lapax"):
        program = exported(function, *o)
    assert all(call.startswith("lapax.") for call in calls_of(program))
    assert "@lapax.lapax_" in str(program.mlir_module())
    assert_close(round_trip(program)(*o), function(*o), tolerance(F32, 4))


def test_one_function_runs_and_is_exported_in_any_order():
    a = np.diag([4.0, 9.0]).astype(F32)
    for order in ("run first", "export first"):
        function = jax.jit(jnp.linalg.cholesky)
        with lapax.installed():
            if order == "run first":
                function(a)
            assert calls_of(jax.export.export(function)(a)) == {"lapack_spotrf_ffi"}
            assert emitted_calls(function.lower(a).as_text()) == ["lapax.lapax_cholesky"]
            with lapax.exporting(names="lapax"):
                assert calls_of(exported(jnp.linalg.cholesky, a)) == {"lapax.lapax_cholesky"}
            assert calls_of(jax.export.export(function)(a)) == {"lapack_spotrf_ffi"}


def test_names_that_nobody_has():
    with pytest.raises(ValueError, match='expected "jaxlib" or "lapax", got \'eigen\''):
        lapax.exporting(names="eigen")


GRADIENTS = {
    "cholesky": lambda a: jnp.linalg.cholesky(a @ a.T + 3 * jnp.eye(3)).sum(),
    "solve": lambda a: jnp.linalg.solve(a, a[:, :2]).sum(),
    "inv": lambda a: jnp.linalg.inv(a).sum(),
    "slogdet": lambda a: jnp.linalg.slogdet(a)[1],
    "eigvalsh": lambda a: jnp.linalg.eigvalsh(a + a.T)[-1],
    "eigh": lambda a: jnp.linalg.eigh(a + a.T)[1][0, 0] ** 2,
    "svd": lambda a: jnp.linalg.svd(a, full_matrices=False)[1].sum(),
    "qr": lambda a: jnp.linalg.qr(a)[1].sum(),
    "triangular": lambda a: jax.scipy.linalg.solve_triangular(a, a, lower=True).sum(),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_serialised_later(name):
    """Outside of any block, and of installed(): JAX exports the gradient when it is serialised."""
    a = operands(F32, n=3, batch=()).a
    function = GRADIENTS[name]
    expected = jax.grad(function)(a)
    with lapax.installed():
        program = jax.export.export(jax.jit(function))(a)
        installed = program.serialize(vjp_order=1)
    for data in (installed, program.serialize(vjp_order=2)):
        got = jax.grad(jax.export.deserialize(data).call)(a)
        assert_close(got, expected, tolerance(F32, 64))


def test_gradients_by_names_of_lapax_are_serialised_in_the_block():
    a = operands(F32, n=3, batch=()).a
    function = GRADIENTS["solve"]
    expected = jax.grad(function)(a)
    with lapax.installed():
        with lapax.exporting(names="lapax"):
            program = exported(function, a)
            inside = program.vjp()
        outside = program.vjp()
        for vjp, prefix in ((inside, "lapax.lapax_"), (outside, "lapack_")):
            assert all(call.startswith(prefix) for call in calls_of(vjp))
            assert calls_of(vjp)
            one = np.ones((), F32)
            assert_close(round_trip(vjp)(a, one), [expected], tolerance(F32, 64))


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
        program = jax.export.export(jax.jit(function))(*shapes)
        with lapax.exporting(names="lapax"):
            ours = exported(function, *shapes)
    assert all(call.startswith("lapack_s") for call in calls_of(program))
    assert "lapax.lapack_s" in str(ours.mlir_module())
    for call in (round_trip(program), round_trip(ours)):
        check_sizes(function, call)


def check_sizes(function, call):
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
    a = np.eye(3, dtype=F32)
    with lapax.installed():
        program = jax.export.export(jax.jit(jnp.linalg.qr), platforms=("cpu", "cuda"))(a)
        with lapax.exporting(names="lapax"):
            ours = exported(jnp.linalg.qr, a, platforms=("cpu", "cuda"))
    assert calls_of(program) == {"lapack_sgeqrf_ffi", "lapack_sorgqr_ffi", *QR_ON_CUDA}
    # lapax's own where it was built with CUDA kernels, else jaxlib's.
    cuda = set() if _library.cuda_kernels() else {*QR_ON_CUDA}
    assert calls_of(ours) == {"lapax.lapax_qr"} | cuda
    with pytest.raises(NotImplementedError, match=r"^lapax: potrf has no target on platform cuda"):
        exported(
            lambda a: lapax.ffi.potrf(a, uplo="L")[0], np.eye(3, dtype=F32), platforms=("cuda",)
        )


QR_ON_CUDA = ("cusolver_geqrf_ffi", "cusolver_orgqr_ffi")


@pytest.fixture
def file(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "program.bin"


def root_of_a_matrix(file: pathlib.Path, imports: str) -> str:
    code = f"""
import pathlib, jax.export, numpy as np
{imports}
call = jax.export.deserialize(pathlib.Path({str(file)!r}).read_bytes()).call
print(np.asarray(call(np.array([[4, 2], [2, 5]], np.float32))).tolist())
"""
    return run_python(code).strip()


def test_runs_in_a_process_that_only_imports_lapax(file):
    with lapax.installed(), lapax.exporting(names="lapax"):
        program = exported(jnp.linalg.cholesky, np.eye(2, dtype=F32))
    file.write_bytes(program.serialize())
    assert root_of_a_matrix(file, "import lapax") == "[[2.0, 0.0], [1.0, 2.0]]"


# Until 0.12, JAX makes jaxlib's handlers fit to be called only where it lowers linear algebra.
READY = "jax.numpy.linalg.inv(np.eye(2))"


@pytest.mark.parametrize(
    "imports", [READY, f"{READY}; import lapax", "import lapax; lapax.install()"]
)
def test_runs_in_any_process(file, imports):
    with lapax.installed():
        program = jax.export.export(jax.jit(jnp.linalg.cholesky))(np.eye(2, dtype=F32))
    file.write_bytes(program.serialize())
    assert root_of_a_matrix(file, imports) == "[[2.0, 0.0], [1.0, 2.0]]"
