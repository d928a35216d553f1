"""The platform CUDA without a GPU: its targets, and what JAX lowers to them. Nothing is run."""

import os
import re
import shutil
import subprocess

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
import pytest
from jax.experimental import sparse

import lapax
from lapax import _jax_private as private
from lapax import _library
from programs import emitted_calls, run_python

F32 = np.float32
SQUARE = jax.ShapeDtypeStruct((5, 4, 4), F32)
LARGE = jax.ShapeDtypeStruct((5, 400, 400), F32)
MATRIX = jax.ShapeDtypeStruct((4, 4), F32)
TALL = jax.ShapeDtypeStruct((5, 6, 4), F32)
LONG = jax.ShapeDtypeStruct((2, 600), F32)
ROWS = jax.ShapeDtypeStruct((5, 6), F32)
COLUMNS = jax.ShapeDtypeStruct((5, 4), F32)
PIVOTS = jax.ShapeDtypeStruct((5, 4), np.int32)

pytestmark = pytest.mark.skipif(
    _library.cuda_kernels() == 0, reason="this liblapax was built without CUDA kernels"
)


def calls(function, *avals, platform="cuda"):
    lowered = jax.jit(function).trace(*avals).lower(lowering_platforms=(platform,))
    return re.findall(r"custom_call @([\w.]+)", lowered.as_text())


def eig_by_host(a, left):
    how = jax.lax.linalg.EigImplementation.LAPACK
    return jax.lax.linalg.eig(a, compute_left_eigenvectors=left, implementation=how)


def qr_svd(a, **params):
    return jax.lax.linalg.svd(a, algorithm=jax.lax.linalg.SvdAlgorithm.QR, **params)


def some_of_eigh(a):
    return jax.lax.linalg.eigh(a, subset_by_index=(1, 3))


PROGRAMS = {
    "cholesky": (jnp.linalg.cholesky, (SQUARE,), ["lapax_cholesky"]),
    "large cholesky": (jnp.linalg.cholesky, (LARGE,), ["cusolver_potrf_ffi"]),
    "eigh": (jnp.linalg.eigh, (SQUARE,), ["lapax_eigh"]),
    "large eigh": (jnp.linalg.eigh, (LARGE,), ["cusolver_syevd_ffi"]),
    "eigvalsh": (jnp.linalg.eigvalsh, (SQUARE,), ["lapax_eigvalsh"]),
    "large eigvalsh": (jnp.linalg.eigvalsh, (LARGE,), ["cusolver_syevd_ffi"]),
    "some of eigh": (some_of_eigh, (SQUARE,), ["lapax_eigh_subset"]),
    "some of large eigh": (some_of_eigh, (LARGE,), ["cusolver_syevd_ffi"]),
    "some of large eigvalsh": (lambda a: some_of_eigh(a)[1], (LARGE,), ["cusolver_syevd_ffi"]),
    "svd": (jnp.linalg.svd, (TALL,), ["lapax_svd"]),
    "large svd": (jnp.linalg.svd, (LARGE,), ["cusolver_gesvdj_ffi"]),
    "svdvals": (jnp.linalg.svdvals, (TALL,), ["lapax_svdvals"]),
    "large svdvals": (jnp.linalg.svdvals, (LARGE,), ["cusolver_gesvdj_ffi"]),
    "svd by qr": (qr_svd, (TALL,), ["cusolver_gesvd_ffi"]),
    "values by qr": (lambda a: qr_svd(a, compute_uv=False), (TALL,), ["cusolver_gesvd_ffi"]),
    "qr": (jnp.linalg.qr, (TALL,), ["lapax_qr"]),
    "large qr": (jnp.linalg.qr, (LARGE,), ["cusolver_geqrf_ffi", "cusolver_orgqr_ffi"]),
    "lu": (jsl.lu_factor, (SQUARE,), ["lapax_lu"]),
    "solve": (jnp.linalg.solve, (SQUARE, SQUARE), ["lapax_solve"]),
    "large lu": (
        jsl.lu_factor,
        (LARGE,),
        ["cusolver_getrf_ffi", "cu_lu_pivots_to_permutation"],
    ),
    "large solve": (
        jnp.linalg.solve,
        (LARGE, LARGE),
        ["cusolver_getrf_ffi", "cu_lu_pivots_to_permutation"],
    ),
    "eig": (lambda a: eig_by_host(a, left=False), (SQUARE,), ["lapax_eig"]),
    "eigvals": (jnp.linalg.eigvals, (SQUARE,), ["lapax_eigvals"]),
    "left eigenvectors": (lambda a: eig_by_host(a, left=True), (SQUARE,), ["cuhybrid_eig_real"]),
    "large eig": (lambda a: eig_by_host(a, left=False), (LARGE,), ["cuhybrid_eig_real"]),
    "schur": (jsl.schur, (LARGE,), ["lapax_schur"]),
    "schur alone": (lambda a: jsl.schur(a)[0], (SQUARE,), ["lapax_schur"]),
    "hessenberg": (lambda a: jsl.hessenberg(a, calc_q=True), (LARGE,), ["lapax_hess"]),
    "hessenberg alone": (jsl.hessenberg, (SQUARE,), ["lapax_gehrd"]),
    "sqrtm": (jsl.sqrtm, (MATRIX,), ["lapax_schur"]),
    "tridiagonal": (jax.lax.linalg.tridiagonal, (SQUARE,), ["cusolver_sytrd_ffi"]),
    "tridiagonal_solve": (
        jax.lax.linalg.tridiagonal_solve,
        (ROWS, ROWS, ROWS, TALL),
        ["lapax_tridiagonal_solve"],
    ),
    "a long tridiagonal_solve": (
        jax.lax.linalg.tridiagonal_solve,
        (LONG, LONG, LONG, jax.ShapeDtypeStruct((2, 600, 3), F32)),
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


@pytest.mark.parametrize("form", ["csr", "coo"])
@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_sparse_formats_for_cuda_call_lapax(form, dtype):
    """Without a cuSPARSE, which JAX's own rules ask for sizes."""
    maker = {"csr": sparse.CSR, "coo": sparse.COO}[form]
    outer = jax.ShapeDtypeStruct((5 if form == "csr" else 7,), np.int32)
    inner, data = jax.ShapeDtypeStruct((7,), np.int32), jax.ShapeDtypeStruct((7,), dtype)
    triple = (data, inner, outer) if form == "csr" else (data, outer, inner)
    programs = {
        "matvec": (lambda *a: maker(a[:3], shape=(4, 6)) @ a[3], (6,)),
        "matvec ": (lambda *a: maker(a[:3], shape=(4, 6)).T @ a[3], (4,)),
        "matmat": (lambda *a: maker(a[:3], shape=(4, 6)) @ a[3], (6, 2)),
        "todense": (lambda *a: maker(a[:3], shape=(4, 6)).todense() + a[3], (4, 6)),
        "fromdense": (lambda *a: maker.fromdense(a[3], nse=9).data, (4, 6)),
    }
    with lapax.installed(), jax.enable_x64(True):
        for op, (program, shape) in programs.items():
            found = calls(program, *triple, jax.ShapeDtypeStruct(shape, dtype))
            assert found == [f"lapax.cusparse_{form}_{op.strip()}_ffi"]


def test_sparse_formats_that_lapax_lacks_are_left_to_jax():
    index = jax.ShapeDtypeStruct((7,), np.int32)
    data = jax.ShapeDtypeStruct((7,), np.int32)
    with lapax.installed():
        todense = lambda *a: sparse.COO(a, shape=(4, 6)).todense()  # noqa: E731
        with pytest.warns(sparse.CuSparseEfficiencyWarning):
            assert calls(todense, data, index, index) == []


def test_outside_of_lapax_nothing_is_renamed():
    stock = calls(jnp.linalg.cholesky, SQUARE)
    assert not any("lapax" in name for name in stock)
    with lapax.installed():
        assert calls(jnp.linalg.cholesky, SQUARE) == ["lapax.lapax_cholesky"]
        assert calls(jnp.linalg.cholesky, LARGE) == ["lapax.cusolver_potrf_ffi"]
        with lapax.exporting():
            assert calls(jnp.linalg.cholesky, SQUARE) == stock
    assert calls(jnp.linalg.cholesky, SQUARE) == stock


def test_eigenvalues_alone_are_asked_for():
    with lapax.installed():
        lowered = jax.jit(jnp.linalg.eigvalsh).trace(LARGE).lower(lowering_platforms=("cuda",))
    assert f"mode = {ord('N')} : ui8" in lowered.as_text()


def test_programs_that_leave_the_process_call_jaxlibs_names():
    program = jax.export.export(jax.jit(jnp.linalg.qr), platforms=("cuda",))
    stock = emitted_calls(program(SQUARE).mlir_module())
    with lapax.installed():
        assert emitted_calls(program(SQUARE).mlir_module()) == stock
    assert "cusolver_geqrf_ffi" in stock


def test_one_program_for_both_platforms():
    # Of cholesky, JAX 0.8 exports XLA's own operation for CUDA.
    with lapax.installed(), lapax.exporting(names="lapax"):
        program = jax.export.export(
            jax.jit(jnp.linalg.qr),
            platforms=("cpu", "cuda"),
            disabled_checks=lapax.export_safety_checks(),
        )(SQUARE)
    text = str(program.mlir_module())
    assert text.count("lapax.lapax_qr") == 2


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
    formats = (
        ("csr", ("matvec", "matmat", "todense", "fromdense")),
        ("coo", ("matvec", "matmat", "todense")),
    )
    own = {f"cusparse_{form}_{op}_ffi" for form, names in formats for op in names}
    own |= {target.name for target in lapax.targets("CUDA") if target.name.startswith("lapax_")}
    # They take scratch, or go to the host.
    own -= {
        f"lapax_{op}" for op in ("eig", "eigvals", "gehrd", "hess", "schur", "tridiagonal_solve")
    }
    own -= {t.name for t in lapax.targets("CUDA") if "the host computes it" in t.doc}
    assert captured == {"cu_lu_pivots_to_permutation", "cu_cholesky_update_ffi"} | own


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


@pytest.fixture
def driver(tmp_path):
    """Makes a libcuda that says which CUDA it is for and that fails a process that starts it; the
    environment in which it is found."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("no C compiler makes the library")

    def make(version):
        source = tmp_path / "driver.c"
        source.write_text(
            "#include <stdlib.h>\n"
            "int cuInit(unsigned flags) { abort(); }\n"
            f"int cuDriverGetVersion(int *version) {{ *version = {version}; return 0; }}\n"
        )
        command = [compiler, "-shared", "-fPIC", "-o", tmp_path / "libcuda.so.1", source]
        subprocess.run(command, check=True)
        return {"LD_LIBRARY_PATH": str(tmp_path)}

    return make


INSTALL = """
import warnings, jax, jax.numpy as jnp, numpy as np
warnings.simplefilter("always")
with warnings.catch_warnings(record=True) as caught:
    import lapax
    from lapax import _jax_private as private
    rules = [private.lowering_entry(p, "cuda") for p in private.linalg_primitives().values()]
    lapax.install()
    from jax.experimental import sparse
    same = [private.lowering_entry(p, "cuda") for p in private.linalg_primitives().values()]
    lapax.uninstall()
    lapax.install()
print(len(rules) > 10 and same == rules)
for warning in caught:
    if "lapax" in str(warning.message):
        print(f"{warning.category.__name__} in {warning.filename}: {warning.message}")
a = jax.ShapeDtypeStruct((2, 4, 4), np.float32)
r_alone = lambda a: jnp.linalg.qr(a, mode="r")
for f in (jnp.linalg.qr, r_alone, jnp.linalg.eigvalsh):
    print("lapax" in jax.jit(f).trace(a).lower(lowering_platforms=("cuda",)).as_text())
print(np.asarray(jnp.linalg.inv(2 * jnp.eye(2))).tolist(), "lapax.lapax_inv" in
      jax.jit(jnp.linalg.inv).lower(jnp.eye(2)).as_text())
"""
ON_THE_CPU = "[[0.5, 0.0], [0.0, 0.5]] True"


@pytest.mark.parametrize("version", [12_040, 12_090, 11_080])
def test_where_the_driver_is_too_old_cuda_is_left_to_jaxlib(driver, version):
    left, warning, *rest = run_python(INSTALL, **driver(version)).splitlines()
    assert left == "True"
    found = f"{version // 1000}.{version % 1000 // 10}"
    assert warning == (
        "RuntimeWarning in <string>: lapax leaves CUDA to jaxlib: the NVIDIA driver supports CUDA "
        f"{found}, but lapax's kernels need a driver for CUDA 13.0 (580 or later)"
    )
    assert rest == ["False", "False", "False", ON_THE_CPU]


@pytest.mark.parametrize("version", [13_000, 13_020, 14_000])
def test_where_the_driver_is_new_enough_cuda_is_lapaxs(driver, version):
    printed = run_python(INSTALL, **driver(version)).splitlines()
    assert printed == ["False", "True", "True", "True", ON_THE_CPU]


def test_without_a_driver_programs_for_cuda_are_lapaxs(tmp_path):
    printed = run_python(INSTALL, LD_LIBRARY_PATH=str(tmp_path)).splitlines()
    assert printed == ["False", "True", "True", "True", ON_THE_CPU]


def test_no_word_of_the_driver_where_jax_is_not_to_use_cuda(driver):
    printed = run_python(INSTALL, JAX_PLATFORMS="cpu", **driver(12_040)).splitlines()
    assert printed == ["True", "False", "False", "False", ON_THE_CPU]


def test_doctor_says_who_serves_cuda(driver):
    code = """
from lapax import _doctor, _library
_library.cuda = lambda: {"kernels": 1, "driver": {"version": "12.4"}, "libraries": []}
print(dict(_doctor._cuda(False))["cuda in use"])
"""
    assert run_python(code, **driver(12_040)).startswith("jaxlib's: the NVIDIA driver supports")
