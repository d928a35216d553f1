"""Errors of lapax and of SciPy in JAX's tests that compare with SciPy, as a table.

    JAX_ENABLE_X64=0 python tests/conformance/residuals.py JAX_CHECKOUT/tests testSchur testFunm3

runs the methods of ScipyLinalgTest whose names begin so. For a Schur form the columns are LAPACK's
residual ratio ‖A − Z·T·Zᴴ‖ / (n ‖A‖ ε) of lapax and of SciPy. For any other function they are
the largest |x − y| / (tolerance · (1 + |y|)), at most 1 where a test passes: of lapax against
SciPy, and of each against SciPy's own answer in twice the precision (in the same, for float64).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax._src.test_util as jtu
import numpy as np
import scipy.linalg
from absl import flags

import lapax

WIDE = {"f": np.float64, "c": np.complex128}


def main(tests: str, *beginnings: str) -> None:
    sys.path.insert(0, tests)
    flags.FLAGS([sys.argv[0]])
    import linalg_test

    case = linalg_test.ScipyLinalgTest
    case._CheckAgainstNumpy = compare
    case._CompileAndCheck = lambda *_, **__: None
    lapax.install()
    print("| test | shape | dtype | lapax − SciPy | lapax | SciPy |\n|---|---|---|---|---|---|")
    for name in [name for name in dir(case) if name.startswith(beginnings)]:
        test = case(name)
        test.setUp()
        getattr(test, name)()


def compare(
    test: Any,
    reference: Callable[..., Any],
    function: Callable[..., Any],
    args_maker: Callable[[], Sequence[Any]],
    tol: Any = None,
    rtol: Any = None,
    **_: Any,
) -> None:
    """A row for one comparison; some tests pass the two functions the other way round."""
    args = [np.asarray(arg) for arg in args_maker()]
    theirs, ours = answers(reference, args), answers(function, args)
    if isinstance(theirs[0], jax.Array):
        reference, theirs, ours = function, ours, theirs
    row = [test._testMethodName, "×".join(map(str, args[0].shape)), str(args[0].dtype)]
    if reference is scipy.linalg.schur:
        row += ["", *(f"{residual(args[0], *map(np.asarray, x)):.2f}" for x in (ours, theirs))]
    else:
        if function is jax.lax.linalg.householder_product:
            # The test names SciPy's routine for its own precision.
            reference = np.vectorize(product_of_reflectors, signature="(m,n),(k)->(m,n)")
        truth = answers(
            reference, [arg.astype(WIDE.get(arg.dtype.kind, arg.dtype)) for arg in args]
        )
        tolerance = jtu.tolerance(np.asarray(theirs[0]).dtype, rtol if tol is None else tol)
        pairs = ((ours, theirs), (ours, truth), (theirs, truth))
        row += [f"{excess(x, y, tolerance):.2g}" for x, y in pairs]
    print(f"| {' | '.join(row)} |")


def product_of_reflectors(a: np.ndarray, taus: np.ndarray) -> np.ndarray:
    routine = scipy.linalg.lapack.zungqr if a.dtype.kind == "c" else scipy.linalg.lapack.dorgqr
    return np.asarray(routine(a, taus)[0])


def answers(function: Callable[..., Any], args: Sequence[np.ndarray]) -> list[Any]:
    return jax.tree.leaves(function(*args))


def residual(a: np.ndarray, t: np.ndarray, z: np.ndarray) -> float:
    wide = WIDE["c"]
    error = a - z.astype(wide) @ t @ z.conj().T
    scale = len(a) * np.linalg.norm(a, 1) * np.finfo(a.dtype).eps
    return float(np.linalg.norm(error, 1) / scale)


def excess(x: Sequence[Any], y: Sequence[Any], tolerance: float) -> float:
    pairs = [(np.asarray(x), np.asarray(y)) for x, y in zip(x, y, strict=True)]
    errors = [np.abs(x - y) / (tolerance * (1 + np.abs(y))) for x, y in pairs]
    return float(max(np.max(error) for error in errors))


if __name__ == "__main__":
    main(*sys.argv[1:])
