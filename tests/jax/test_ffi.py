"""lapax.ffi and lapax.ffi_call: results, keywords, transformations and errors when traced."""

from __future__ import annotations

import inspect
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lapax
from lapax import check
from programs import assert_close, custom_calls, operands, tolerance

EYE = np.eye(3, dtype=np.float32)
POTRF_DTYPES = "float32, float64, complex64, complex128"


def cases(dtype, n, batch):
    """A case of each op in its first mode, for the ops that have the dtype."""
    for target in lapax.targets("cpu"):
        name = np.dtype(np.int32) if target.dtypes == ("i32",) else dtype
        variant = target.signature.variant(NAMES[name])
        if variant is not None:
            mode = check.modes(target.signature)[0]
            yield target, check.case(target.signature.op, name, n, batch=batch, attrs=mode)


NAMES = {
    np.dtype(np.int32): "i32",
    np.dtype(np.float32): "f32",
    np.dtype(np.float64): "f64",
    np.dtype(np.complex64): "c64",
    np.dtype(np.complex128): "c128",
}


def options(case):
    return case.attrs | case.dims


@pytest.mark.parametrize("batch", [(), (4,), (2, 3), (0,)])
def test_every_op_by_op_by_name_and_by_function(batch, dtype):
    ran = set()
    for target, case in cases(dtype, 4, batch):
        by_name = lapax.ffi_call(target.name, *case.args, **options(case))
        by_op = lapax.ffi_call(target.signature.op, *case.args, **options(case))
        function = getattr(lapax.ffi, target.signature.op)
        typed = function(*case.args, **options(case))
        leaves = [np.asarray(x) for x in jax.tree.leaves(typed)]
        assert case.ratio(leaves) < check.LIMIT, target.name
        for other in (by_name, by_op):
            for x, y in zip(leaves, jax.tree.leaves(other), strict=True):
                assert x.tobytes() == np.asarray(y).tobytes(), target.name
        ran.add(target.signature.op)
    name = NAMES[dtype]
    having = [t for t in lapax.targets("cpu") if name in t.dtypes or t.dtypes == ("i32",)]
    assert ran == {target.signature.op for target in having}


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 0, 0), (0, 2, 2)])
def test_empty_operands(shape):
    """A crash of XLA, where there is one, ends the whole run."""
    lu, ipiv, info = jax.jit(lapax.ffi.getrf)(np.zeros(shape, np.float32))
    assert (lu.shape, ipiv.shape[-1], info.shape) == (shape, min(shape[-2:]), shape[:-2])
    assert not np.any(info)


def test_vmap_is_one_call_with_a_larger_batch(dtype):
    for target, case in cases(dtype, 4, (3, 2)):

        def call(*args, target=target, case=case):
            return lapax.ffi_call(target.name, *args, **options(case))

        mapped = jax.vmap(jax.vmap(call))
        assert custom_calls(mapped, *case.args) == [target.jax_name]
        last = jax.vmap(call, in_axes=-1)
        moved = [np.moveaxis(x, 0, -1) for x in case.args]
        assert custom_calls(last, *moved) == [target.jax_name]
        expected = jax.tree.leaves(call(*case.args))
        for got in (mapped(*case.args), jax.vmap(call)(*case.args), last(*moved)):
            for x, y in zip(jax.tree.leaves(got), expected, strict=True):
                assert np.asarray(x).tobytes() == np.asarray(y).tobytes(), target.name


def test_vmap_repeats_what_is_not_mapped():
    o = operands(np.dtype(np.float32), n=4, batch=(3,))

    def solve(b):
        return lapax.ffi.trsm(o.a[0], b, side="L", uplo="L", trans_x="N", diag="N")

    assert custom_calls(jax.vmap(solve), o.b) == ["lapax.lapack_strsm_ffi"]
    expected = np.linalg.solve(np.tril(o.a[0]), o.b)
    assert_close(jax.vmap(solve)(o.b), expected, tolerance(np.dtype(np.float32), 4))


def test_results_are_named():
    lu, ipiv, info = result = lapax.ffi.getrf(EYE)
    assert result._fields == ("lu", "ipiv", "info")
    assert (lu.dtype, ipiv.dtype, info.dtype) == (np.float32, np.int32, np.int32)
    assert isinstance(jax.jit(lapax.ffi.getrf)(EYE), lapax.ffi.GetrfResult)
    assert isinstance(pickle.loads(pickle.dumps(result)), lapax.ffi.GetrfResult)


def test_ways_to_write_an_attribute():
    s = np.array([[4, 7], [2, 5]], np.float32)
    lower, upper = (
        [
            np.asarray(lapax.ffi.potrf(s, uplo=uplo).factor)
            for uplo in (name, name.lower(), name[0], name[0].lower(), code, np.uint8(code), member)
        ]
        for name, code, member in (
            ("Lower", 76, lapax.ffi.Uplo.Lower),
            ("Upper", 85, lapax.ffi.Uplo.Upper),
        )
    )
    # The other triangle is passed through.
    for x in lower:
        np.testing.assert_array_equal(x, np.array([[2, 7], [1, 2]], np.float32))
    for x in upper:
        np.testing.assert_array_equal(x[1, 0], np.float32(2))
        np.testing.assert_array_equal(x[0], np.array([2, 3.5], np.float32))


def test_functions_describe_themselves():
    for op, function in ((op, getattr(lapax.ffi, op)) for op in lapax.ffi.__all__):
        if inspect.isclass(function):
            continue
        target = next(t for t in lapax.targets() if t.signature.op == op)
        parameters = inspect.signature(function).parameters
        args = [arg.name for arg in target.signature.variants[0].args]
        assert list(parameters)[: len(args)] == args
        assert {attr.name for attr in target.signature.attrs} <= set(parameters)
        for word in (target.doc.strip().splitlines()[0], target.name, "Raises:"):
            assert word in function.__doc__
    by_name = lapax.ffi.trsm(b=EYE, a=EYE, diag="N", side="L", trans_x="N", uplo="L")
    np.testing.assert_array_equal(by_name, EYE)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: lapax.ffi.potrf(EYE.astype(np.float16), uplo="L"),
            TypeError,
            f"potrf: a has dtype float16; expected one of: {POTRF_DTYPES}",
        ),
        (
            lambda: lapax.ffi.potrf(jnp.eye(3, dtype=jnp.bfloat16), uplo="L"),
            TypeError,
            f"potrf: a has dtype bfloat16; expected one of: {POTRF_DTYPES}",
        ),
        (
            lambda: lapax.ffi.potrf([[1, 0], [0, 1]], uplo="L"),
            TypeError,
            f"potrf: a has dtype int32; expected one of: {POTRF_DTYPES}",
        ),
        (
            lambda: lapax.ffi_call("lapack_dpotrf_ffi", EYE, uplo="L"),
            TypeError,
            "lapack_dpotrf_ffi: a has dtype float32; expected one of: float64 "
            "(jax_enable_x64 is off)",
        ),
        (
            lambda: lapax.ffi.potrf(EYE),
            TypeError,
            "potrf: missing a required argument: 'uplo'; its signature is potrf(a, *, uplo)",
        ),
        (
            lambda: lapax.ffi_call("potrf", EYE, lower=True),
            TypeError,
            "potrf: unexpected keyword 'lower'; missing keyword 'uplo' (keywords of potrf: uplo)",
        ),
        (
            lambda: lapax.ffi_call("potrf", EYE, EYE, uplo="L"),
            TypeError,
            "potrf takes 1 array (a), got 2",
        ),
        (
            lambda: lapax.ffi.potrf(EYE, uplo="X"),
            ValueError,
            'potrf: uplo: expected "Lower" or "L", "Upper" or "U"; got \'X\'',
        ),
        (
            lambda: lapax.ffi.potrf(EYE, uplo=300),
            ValueError,
            "potrf: uplo: 300 does not fit u8",
        ),
        (
            lambda: lapax.ffi.potrf(EYE, uplo=1.5),
            TypeError,
            "potrf: uplo: expected u8, got 1.5 of float",
        ),
        (
            lambda: lapax.ffi.lu_pivots_to_permutation(np.zeros(3, np.int32), p="4"),
            TypeError,
            "lu_pivots_to_permutation: p: expected an int, got '4'",
        ),
        # From here on the texts are the library's, the same as of a call that reaches the handler.
        (
            lambda: lapax.ffi.potrf(np.zeros((2, 3, 4), np.float32), uplo="L"),
            ValueError,
            "lapack_spotrf_ffi: argument 0 `a`: expected f32 [2, n=3, n=3], got f32 [2, 3, 4]",
        ),
        (
            lambda: lapax.ffi.potrf(np.zeros(3, np.float32), uplo=7),
            ValueError,
            "lapack_spotrf_ffi: attribute `uplo`: expected u8 'L' (Lower) or 'U' (Upper), "
            "got u8 7; argument 0 `a`: expected f32 […, n, n], got f32 [3]",
        ),
        (
            lambda: lapax.ffi.cholesky_update(EYE, np.zeros((2, 3), np.complex64)),
            TypeError,
            "cu_cholesky_update_ffi: argument 1 `w`: expected f32 [n=3], got c64 [2, 3]",
        ),
        (
            lambda: lapax.ffi.lu_pivots_to_permutation(np.zeros(3, np.int32), p=2),
            ValueError,
            "cu_lu_pivots_to_permutation: expected at least as many rows p as pivots k, "
            "got k=3, p=2",
        ),
    ],
)
def test_wrong_calls(call, error, message):
    for make in (call, jax.jit(call).lower):
        with pytest.raises(error) as raised:
            make()
        # Python 3.12 and later say "keyword-only" in this sentence of `inspect`.
        assert str(raised.value).replace(" keyword-only", "") == message


def test_an_unknown_name_lists_the_ops():
    with pytest.raises(ValueError, match=r"^'potrs' is neither an op nor a target of liblapax"):
        lapax.ffi_call("potrs", EYE)


def test_no_derivative_says_what_has_one():
    with pytest.raises(NotImplementedError) as raised:
        jax.grad(lambda s: lapax.ffi.potrf(s, uplo="L").factor.sum())(EYE)
    assert str(raised.value) == (
        "lapax: a call of potrf cannot be differentiated. Use jax.numpy.linalg.cholesky, which "
        "runs on lapax under lapax.install() and has a derivative, or define one with "
        "jax.custom_jvp"
    )


def test_a_constant_needs_no_derivative():
    def loss(x):
        return (x * lapax.ffi.potrf(jax.lax.stop_gradient(EYE), uplo="L").factor).sum()

    np.testing.assert_array_equal(jax.grad(loss)(EYE), EYE)


def test_runs_without_jit():
    with jax.disable_jit():
        np.testing.assert_array_equal(lapax.ffi.potrf(EYE, uplo="L").factor, EYE)


@pytest.mark.parametrize("k", [-1, -(2**63), 2**63, 2**64, -(2**70)])
@pytest.mark.parametrize("name", ["svd_subset", "eigh_subset"])
def test_free_dimensions_that_are_no_sizes(name, k):
    options = {"uplo": "L"} if name == "eigh_subset" else {}
    message = f"^lapax_{name}: dimension `k`: expected a size, got "
    with pytest.raises(ValueError, match=message):
        getattr(lapax.ffi, name)(np.eye(3, dtype=np.float32), k=k, start=1, **options)


def test_free_dimensions_beyond_an_address_space():
    with pytest.raises(ValueError, match="at most min"):
        lapax.ffi.svd_subset(np.eye(3, dtype=np.float32), k=2**62, start=0)
    with pytest.raises(ValueError, match=r"^cu_lu_pivots_to_permutation: .*address space"):
        lapax.ffi.lu_pivots_to_permutation(np.zeros(3, np.int32), p=2**62)


def test_sizes_that_have_one_answer_may_be_missing():
    a = np.ones((2, 6, 4), np.float32)

    def sizes(mode, **options):
        _, _, u, vt, _ = jax.eval_shape(lambda x: lapax.ffi.gesdd(x, mode=mode, **options), a)
        return u.shape[-1], vt.shape[-2]

    assert sizes("A") == (6, 4)
    assert sizes("S") == (4, 4)
    assert sizes("S", u_cols=4) == sizes("S", u_cols=None) == (4, 4)
    assert jax.eval_shape(lapax.ffi.qr, a.mT)[0].shape == (2, 4, 4)
    assert jax.vmap(lambda x: lapax.ffi.gesdd(x, mode="A"))(a).u.shape == (2, 6, 6)
    for function, missing in (
        (lambda: lapax.ffi.qr(a), "c"),  # 4 or 6
        (lambda: lapax.ffi.gesdd(a, mode="N"), "u_cols"),  # Nobody cares.
        (lambda: lapax.ffi.gesdd(a[0, 0], mode="A"), "u_cols"),
        (lambda: lapax.ffi.eigh_subset(a[:, :4], start=0, uplo="L"), "k"),  # 4 and fewer
        (lambda: lapax.ffi.lu_pivots_to_permutation(np.zeros(3, np.int32)), "p"),  # 3 and more
    ):
        with pytest.raises(TypeError, match=f"missing keyword '{missing}'"):
            function()
    with pytest.raises(ValueError, match="u with m columns for mode All"):
        lapax.ffi.gesdd(a, mode="A", u_cols=5, vt_rows=4)
