"""Small matrices on CUDA: one call on row-major operands, and nothing around it. Nothing is run."""

import re

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
import pytest

import lapax
from lapax import _library

pytestmark = pytest.mark.skipif(
    _library.cuda_kernels() == 0, reason="this liblapax was built without CUDA kernels"
)

LARGEST = {"float32": 120, "float64": 84, "complex64": 84, "complex128": 60}
"""By dtype, the order up to which a block of every GPU has room."""
WITH_VECTORS = {"float32": 100, "float64": 72, "complex64": 72, "complex128": 50}
"""The same with eigenvectors."""


def largest(name, dtype):
    return (WITH_VECTORS if "eig" in name else LARGEST)[dtype]


ROTATED = {"float32": 88, "float64": 61, "complex64": 61, "complex128": 42}
"""The same where singular vectors are beside the matrix."""


def square(n, dtype=np.float32, batch=(7,)):
    return jax.ShapeDtypeStruct((*batch, n, n), dtype)


def lowered(function, *avals):
    with jax.enable_x64(True), lapax.installed():
        return jax.jit(function).trace(*avals).lower(lowering_platforms=("cuda",)).as_text()


def operations(function, *avals):
    """The targets that the program calls, and the operations that XLA leaves beside the calls:
    of transpositions those that do not undo each other."""
    text = lowered(function, *avals)
    calls = re.findall(r"custom_call @([\w.]+)", text)
    names = re.findall(r"stablehlo\.(\w+)", text)
    others = [name for name in names if name not in ("custom_call", "transpose")]
    return calls, others + turned(text)


def turned(text):
    """ "transpose" for each operand of a call, and each result, that is another value turned."""
    made = {}
    for name, of, dims in re.findall(
        r"(%\w+) = stablehlo.transpose (%\w+), dims = \[(.*?)\]", text
    ):
        root, order = made.get(of, (of, None))
        dims = [int(dim) for dim in dims.split(",")]
        made[name] = root, dims if order is None else [order[dim] for dim in dims]
    turned = {name for name, (_, order) in made.items() if order != sorted(order)}
    read = re.findall(r"custom_call @[\w.]+\((.*?)\)", text) + re.findall(r"return (.*?) :", text)
    values = [value.strip() for values in read for value in values.split(",")]
    return ["transpose"] * sum(value in turned for value in values)


def cho_solved(a, b):
    return jsl.cho_solve(jsl.cho_factor(a, lower=True), b)


def triangular(a, b):
    return jax.lax.linalg.triangular_solve(a, b, left_side=True, lower=True)


def of_a_triangle(a):
    return jax.lax.linalg.eigh(a, lower=False, symmetrize_input=False)


WHOLE = {
    "solve": (jnp.linalg.solve, 2, "lapax_solve"),
    "inv": (jnp.linalg.inv, 1, "lapax_inv"),
    "slogdet": (jnp.linalg.slogdet, 1, "lapax_slogdet"),
    "cholesky": (jnp.linalg.cholesky, 1, "lapax_cholesky"),
    "qr": (jnp.linalg.qr, 1, "lapax_qr"),
    "r alone": (lambda a: jnp.linalg.qr(a, mode="r"), 1, "lapax_qr_r"),
    "triangular_solve": (triangular, 2, "lapax_triangular_solve"),
    "eigh": (jnp.linalg.eigh, 1, "lapax_eigh"),
    "eigvalsh": (jnp.linalg.eigvalsh, 1, "lapax_eigvalsh"),
    "eigh of a triangle": (of_a_triangle, 1, "lapax_eigh"),
    "eigvalsh of a triangle": (lambda a: of_a_triangle(a)[1], 1, "lapax_eigvalsh"),
    "lu": (jax.lax.linalg.lu, 1, "lapax_lu"),
    "lu_factor": (jsl.lu_factor, 1, "lapax_lu"),
}


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("dtype", LARGEST)
def test_a_small_batch_is_one_call_and_nothing_else(name, dtype):
    function, count, target = WHOLE[name]
    for n in (4, 20, largest(name, dtype)):  # JAX writes out determinants of fewer
        calls, others = operations(function, *[square(n, dtype)] * count)
        assert (calls, others) == ([f"lapax.{target}"], []), n


SPECTRAL = {
    "svd": (jnp.linalg.svd, "lapax_svd"),
    "thin svd": (lambda a: jnp.linalg.svd(a, full_matrices=False), "lapax_svd"),
    "svdvals": (jnp.linalg.svdvals, "lapax_svdvals"),
    "schur": (jsl.schur, "lapax_schur"),
    "hessenberg": (lambda a: jsl.hessenberg(a, calc_q=True), "lapax_hess"),
    "eig": (jnp.linalg.eig, "lapax_eig"),
    "eigvals": (jnp.linalg.eigvals, "lapax_eigvals"),
}


@pytest.mark.parametrize("name", SPECTRAL)
@pytest.mark.parametrize("dtype", LARGEST)
def test_so_is_a_decomposition(name, dtype):
    function, target = SPECTRAL[name]
    for n in (4, 20, ROTATED[dtype]):
        calls, others = operations(function, square(n, dtype))
        assert (calls, others) == ([f"lapax.{target}"], []), n


@pytest.mark.parametrize("dtype", LARGEST)
def test_singular_values_of_larger_ones_are_composed_as_before(dtype):
    for name in ("svd", "thin svd", "svdvals"):
        calls, _ = operations(SPECTRAL[name][0], square(ROTATED[dtype] + 1, dtype))
        assert calls == ["lapax.cusolver_gesvdj_ffi"]


def test_wide_and_tall_ones_are_one_call():
    for shape in ((7, 200, 6), (7, 6, 200)):
        a = jax.ShapeDtypeStruct(shape, np.float64)
        assert operations(jnp.linalg.svd, a) == (["lapax.lapax_svd"], [])


@pytest.mark.parametrize("name", ["QR", "POLAR"])
def test_another_algorithm_is_cusolvers(name):
    algorithm = getattr(jax.lax.linalg.SvdAlgorithm, name, None)
    if algorithm is None:
        pytest.skip(f"this JAX has no SvdAlgorithm.{name}")
    calls, _ = operations(lambda a: jax.lax.linalg.svd(a, algorithm=algorithm), square(4))
    assert calls == ["lapax.cusolver_gesvd_ffi" if name == "QR" else "lapax.cusolver_gesvdp_ffi"]


FUNCTIONS = {
    "sqrtm": (jsl.sqrtm, 1),
    "funm": (lambda a: jsl.funm(a, jnp.exp), 1),
    "rsf2csf": (jsl.rsf2csf, 2),
    "solve_sylvester": (getattr(jsl, "solve_sylvester", None), 3),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("n", [5, 300])
def test_functions_by_schur_forms_call_nothing_but_lapax(name, n):
    function, count = FUNCTIONS[name]
    if function is None:
        pytest.skip(f"this JAX has no {name}")
    calls, _ = operations(function, *[square(n, batch=())] * count)
    assert calls
    assert all(call.startswith("lapax.") for call in calls), calls


@pytest.mark.parametrize("name", WHOLE)
def test_so_is_a_mapped_one(name):
    function, count, target = WHOLE[name]
    calls, others = operations(jax.vmap(function), *[square(3, batch=(2, 5))] * count)
    assert (calls, others) == ([f"lapax.{target}"], [])


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("dtype", LARGEST)
def test_larger_ones_are_composed_as_before(name, dtype):
    function, count, _ = WHOLE[name]
    a = square(largest(name, dtype) + 1, dtype)
    calls, others = operations(function, *[a] * count)
    assert calls or "triangular_solve" in others
    assert not any(call.startswith("lapax.lapax_") for call in calls)


def test_positive_definite_systems_are_one_call():
    assert operations(cho_solved, square(4), square(4))[0] == ["lapax.lapax_posv"]
    factored = operations(lambda low, b: jsl.cho_solve((low, True), b), square(4), square(4))
    assert factored == (["lapax.lapax_cho_solve"], [])


def test_factors_that_are_kept_serve_their_systems():
    def both(a, b):
        factors = jsl.lu_factor(a)
        return factors, jax.vmap(jsl.lu_solve)(factors, b)

    calls, others = operations(both, square(4), square(4))
    assert calls == ["lapax.lapax_lu", "lapax.lapax_lu_solve"]
    assert not {"gather", "select", "transpose"} & set(others)


def test_derivatives_are_of_the_same_calls():
    def loss(a, b):
        return jnp.sum(jnp.linalg.solve(a, b) ** 2)

    calls, _ = operations(jax.grad(loss), square(4), square(4))
    assert set(calls) == {"lapax.lapax_lu", "lapax.lapax_lu_solve"}


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("symmetrized", [True, False])
def test_eigh_is_of_what_jax_says(lower, symmetrized):
    def decomposed(a):
        return jax.lax.linalg.eigh(a, lower=lower, symmetrize_input=symmetrized)

    text = lowered(decomposed, square(4))
    assert f"uplo = {ord('L' if lower else 'U')} : ui8" in text
    assert ("symmetrize = true" in text) == symmetrized
    assert "output_operand_alias" not in text


@pytest.mark.parametrize("algorithm", ["QR", "JACOBI", "QDWH"])
def test_an_algorithm_that_is_asked_for_is_found(algorithm):
    if not hasattr(jax.lax.linalg, "EighImplementation"):
        pytest.skip("this JAX has one algorithm of eigh")

    def decomposed(a):
        return jax.lax.linalg.eigh(a, implementation=jax.lax.linalg.EighImplementation[algorithm])

    if algorithm == "QDWH":
        with pytest.raises(NotImplementedError, match="QDWH"):
            operations(decomposed, square(4))
    else:
        names = {"QR": "cusolver_syevd_ffi", "JACOBI": "lapax_eigh"}
        assert operations(decomposed, square(4))[0] == [f"lapax.{names[algorithm]}"]


def test_a_hermitian_part_that_is_read_elsewhere_is_made():
    def both(a):
        part = (a + a.mT) / 2
        return part, jax.lax.linalg.eigh(part, symmetrize_input=False)

    calls, others = operations(both, square(4))
    assert calls == ["lapax.lapax_eigh"]
    assert "add" in others


def test_eigenvalues_that_are_left_to_jax_come_with_vectors():
    with jax.enable_x64(True), lapax.installed(leave="eigvalsh"):
        text = jax.jit(jnp.linalg.eigvalsh).trace(square(4)).lower(lowering_platforms=("cuda",))
    assert "@lapax.lapax_eigh(" in text.as_text()


def test_a_program_for_both_platforms_is_composed():
    with lapax.installed(), lapax.exporting(names="lapax"):
        program = jax.export.export(
            jax.jit(jnp.linalg.solve),
            platforms=("cpu", "cuda"),
            disabled_checks=lapax.export_safety_checks(),
        )(square(4), square(4))
    text = str(program.mlir_module())
    assert "lapax.lapax_lu" in text
    assert "lapax.lapax_solve" not in text


def test_a_call_by_name_is_lowered_for_cuda():
    calls, others = operations(lapax.ffi.inv, square(4))
    assert (calls, others) == (["lapax.lapax_inv"], [])


def test_a_symbolic_batch_stays_with_jax():
    (batch,) = jax.export.symbolic_shape("b")
    a = jax.ShapeDtypeStruct((batch, 4, 4), np.float32)
    assert "lapax_" not in lowered(jnp.linalg.inv, a).replace("lapax.cusolver", "")
