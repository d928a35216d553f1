"""The platform CUDA without a GPU: its targets, and what JAX lowers to them. Nothing is run."""

import re

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
import pytest

import lapax
from lapax import _jax_private as private
from lapax import _library

F32 = np.float32
SQUARE = jax.ShapeDtypeStruct((5, 4, 4), F32)
TALL = jax.ShapeDtypeStruct((5, 6, 4), F32)
ROWS = jax.ShapeDtypeStruct((5, 6), F32)
COLUMNS = jax.ShapeDtypeStruct((5, 4), F32)
PIVOTS = jax.ShapeDtypeStruct((5, 4), np.int32)

pytestmark = pytest.mark.skipif(
    _library.cuda_kernels() == 0, reason="this liblapax was built without CUDA kernels"
)


def calls(function, *avals, platform="cuda"):
    lowered = jax.jit(function).trace(*avals).lower(lowering_platforms=(platform,))
    return re.findall(r"custom_call @([\w.]+)", lowered.as_text())


def qr_svd(a, **params):
    return jax.lax.linalg.svd(a, algorithm=jax.lax.linalg.SvdAlgorithm.QR, **params)


PROGRAMS = {
    "cholesky": (jnp.linalg.cholesky, (SQUARE,), ["cusolver_potrf_ffi"]),
    "eigh": (jnp.linalg.eigh, (SQUARE,), ["cusolver_syevd_ffi"]),
    "eigvalsh": (jnp.linalg.eigvalsh, (SQUARE,), ["cusolver_syevd_ffi"]),
    "svd": (jnp.linalg.svd, (TALL,), ["cusolver_gesvdj_ffi"]),
    "svd by qr": (qr_svd, (TALL,), ["cusolver_gesvd_ffi"]),
    "values by qr": (lambda a: qr_svd(a, compute_uv=False), (TALL,), ["cusolver_gesvd_ffi"]),
    "qr": (jnp.linalg.qr, (TALL,), ["cusolver_geqrf_ffi", "cusolver_orgqr_ffi"]),
    "lu": (
        jsl.lu_factor,
        (SQUARE,),
        ["cusolver_getrf_ffi", "cu_lu_pivots_to_permutation"],
    ),
    "solve": (
        jnp.linalg.solve,
        (SQUARE, SQUARE),
        ["cusolver_getrf_ffi", "cu_lu_pivots_to_permutation"],
    ),
    "tridiagonal": (jax.lax.linalg.tridiagonal, (SQUARE,), ["cusolver_sytrd_ffi"]),
    "tridiagonal_solve": (
        jax.lax.linalg.tridiagonal_solve,
        (ROWS, ROWS, ROWS, TALL),
        ["cusparse_gtsv2_ffi"],
    ),
    "lu_pivots": (
        lambda p: jax.lax.linalg.lu_pivots_to_permutation(p, 6),
        (PIVOTS,),
        ["cu_lu_pivots_to_permutation"],
    ),
    "cholesky_update": (
        jax.vmap(jax.lax.linalg.cholesky_update),
        (SQUARE, COLUMNS),
        ["cu_cholesky_update_ffi"],
    ),
    "own call": (
        lambda p: lapax.ffi.lu_pivots_to_permutation(p, p=6),
        (PIVOTS,),
        ["cu_lu_pivots_to_permutation"],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_for_cuda_call_lapax(name):
    function, avals, names = PROGRAMS[name]
    with lapax.installed():
        assert calls(function, *avals) == [f"lapax.{target}" for target in names]


def test_outside_of_lapax_nothing_is_renamed():
    with lapax.installed():
        assert calls(jnp.linalg.cholesky, SQUARE) == ["lapax.cusolver_potrf_ffi"]
        with lapax.exporting():
            assert calls(jnp.linalg.cholesky, SQUARE) == ["cusolver_potrf_ffi"]
    assert calls(jnp.linalg.cholesky, SQUARE) == ["cusolver_potrf_ffi"]


def test_eigenvalues_alone_are_asked_for():
    with lapax.installed():
        lowered = jax.jit(jnp.linalg.eigvalsh).trace(SQUARE).lower(lowering_platforms=("cuda",))
    assert f"mode = {ord('N')} : ui8" in lowered.as_text()


def test_one_program_for_both_platforms():
    # Of cholesky, JAX 0.8 exports XLA's own operation for CUDA.
    with lapax.installed():
        program = jax.export.export(
            jax.jit(jnp.linalg.qr),
            platforms=("cpu", "cuda"),
            disabled_checks=lapax.export_safety_checks(),
        )(SQUARE)
    text = str(program.mlir_module())
    assert "lapax.lapax_qr" in text
    assert "lapax.cusolver_geqrf_ffi" in text


def test_every_primitive_with_a_rule_for_cuda_is_lowered_to_lapax():
    """What jaxlib has a target for, lapax has: no rule of JAX's is left as it was."""
    primitives = private.linalg_primitives().values()
    before = {p.name: private.lowering_entry(p, "cuda") for p in primitives}
    with lapax.installed():
        for primitive in primitives:
            if before[primitive.name] is not None:
                assert private.lowering_entry(primitive, "cuda") is not before[primitive.name]
    assert {p.name: private.lowering_entry(p, "cuda") for p in primitives} == before


def test_targets_on_cuda_have_both_stages():
    for target in lapax.targets("CUDA"):
        assert target.handler
        assert target.initialize
        assert target.platform == "CUDA"
    captured = {target.name for target in lapax.targets("CUDA") if target.captured}
    assert captured == {"cu_lu_pivots_to_permutation", "cu_cholesky_update_ffi"}


def test_a_target_of_another_form_is_called_by_its_own_name():
    assert calls(lambda a: lapax.ffi_call("cusolver_potrf_ffi", a, lower=True)[0], SQUARE) == [
        "lapax.cusolver_potrf_ffi"
    ]
    with pytest.raises(NotImplementedError, match="potrf has no target on platform cuda"):
        calls(lambda a: lapax.ffi.potrf(a, uplo="L")[0], SQUARE)


def test_the_report_says_what_is_missing():
    found = _library.cuda()
    assert found is not None
    assert found["kernels"] > 0
    assert {library["name"] for library in found["libraries"]} == {"cuSOLVER", "cuBLAS", "cuSPARSE"}
    for library in found["libraries"]:
        assert "error" in library or "file" in library
