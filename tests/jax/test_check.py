"""The checks themselves: a right answer passes, and NaN, zeros and one wrong digit fail."""

import jax
import numpy as np
import pytest

import lapax
from lapax import check

VARIANTS = [(target, dtype) for target in lapax.targets("cpu") for dtype in target.dtypes]
NUMPY = {"i32": np.int32, "i64": np.int64, "f32": np.float32, "f64": np.float64}
NUMPY |= {"c64": np.complex64, "c128": np.complex128}


def answer(target, dtype):
    """A case of a batch of three 6×6 matrices and the target's results."""
    mode = check.modes(target.signature)[0]
    case = check.case(target.signature.op, NUMPY[dtype], 6, batch=(3,), attrs=mode)
    with jax.enable_x64(True):
        rets = lapax.ffi_call(target.name, *case.args, **case.attrs, **case.dims)
    return case, [np.array(ret) for ret in jax.tree.leaves(rets)]


@pytest.mark.parametrize(
    ("target", "dtype"), VARIANTS, ids=[f"{t.name}-{dtype}" for t, dtype in VARIANTS]
)
def test_only_a_right_answer_passes(target, dtype):
    case, rets = answer(target, dtype)
    assert case.ratio(rets) < check.LIMIT
    assert not case.ratio([np.zeros_like(ret) for ret in rets]) < check.LIMIT
    if all(ret.dtype.kind in "fc" for ret in rets):
        assert not case.ratio([np.full_like(ret, np.nan) for ret in rets]) < check.LIMIT
    # One matrix of the batch is wrong, by one part in a hundred.
    wrong = [ret.copy() for ret in rets]
    for ret in wrong:
        if ret.dtype.kind in "fc":
            ret[1] *= 1.01
        elif ret.ndim > 1:
            ret[1] = ret[1][::-1]
    ratios = case.ratios(wrong)
    assert not ratios[1] < check.LIMIT
    assert ratios[0] < check.LIMIT
    assert ratios[2] < check.LIMIT
