"""Errors of lapax and of SciPy in JAX's tests that compare with SciPy, as a table.

    JAX_ENABLE_X64=0 python tests/conformance/residuals.py JAX_CHECKOUT/tests testSchur testFunm3

runs the methods of ScipyLinalgTest whose names begin so. For a Schur form the columns are LAPACK's
residual ratio ‖A − Z·T·Zᴴ‖ / (n ‖A‖ ε) of lapax and of SciPy. For any other function they are
the largest |x − y| / (tolerance · (1 + |y|)), at most 1 where a test passes: of lapax against
SciPy, of each against SciPy's own answer in twice the precision (in the same, for float64), and of
SciPy against SciPy with its OpenBLAS's kernels for another processor: above 1 in that column, the
test is one of bits, and SciPy itself fails it.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax._src.test_util as jtu
import numpy as np
import scipy.linalg
from absl import flags

import lapax

WIDE = {"f": np.float64, "c": np.complex128}

OTHER_PROCESSOR = {"OPENBLAS_CORETYPE": "Haswell"}
"""AVX2, where this one has AVX-512."""

ANSWERS = "--answers"
"""Followed by a file: SciPy's answers alone, to that file."""

elsewhere: dict[str, list[Any]] = {}
"""SciPy's answers on the other processor."""


def main(*args: str) -> None:
    if args[0] == ANSWERS:
        _, file, *selection = args
        run(collect, *selection)
        Path(file).write_bytes(pickle.dumps(elsewhere))
        return
    with tempfile.NamedTemporaryFile() as file:
        command = [sys.executable, __file__, ANSWERS, file.name, *args]
        subprocess.run(command, env={**os.environ, **OTHER_PROCESSOR}, check=True)
        elsewhere.update(pickle.loads(Path(file.name).read_bytes()))
    lapax.install()
    print("| test | shape | dtype | lapax − SciPy | lapax | SciPy | SciPy − SciPy |")
    print("|---|---|---|---|---|---|---|")
    run(compare, *args)


def run(check: Callable[..., None], tests: str, *beginnings: str) -> None:
    sys.path.insert(0, tests)
    flags.FLAGS([sys.argv[0]])
    import linalg_test

    case = linalg_test.ScipyLinalgTest
    case._CheckAgainstNumpy = check
    case._CompileAndCheck = lambda *_, **__: None
    for name in [name for name in dir(case) if name.startswith(beginnings)]:
        test = case(name)
        test.setUp()
        getattr(test, name)()


def scipy_and_jax(
    reference: Callable[..., Any], function: Callable[..., Any], args: Sequence[np.ndarray]
) -> tuple[Callable[..., Any], Callable[..., Any], list[Any], list[Any]]:
    """The two functions and their answers; some tests pass them the other way round."""
    theirs, ours = answers(reference, args), answers(function, args)
    if isinstance(theirs[0], jax.Array):
        return function, reference, ours, theirs
    return reference, function, theirs, ours


def collect(test: Any, reference: Any, function: Any, args_maker: Any, **_: Any) -> None:
    args = [np.asarray(arg) for arg in args_maker()]
    _, _, theirs, _ = scipy_and_jax(reference, function, args)
    elsewhere[test._testMethodName] = [np.asarray(x) for x in theirs]


def compare(
    test: Any,
    reference: Callable[..., Any],
    function: Callable[..., Any],
    args_maker: Callable[[], Sequence[Any]],
    tol: Any = None,
    rtol: Any = None,
    **_: Any,
) -> None:
    """A row for one comparison."""
    args = [np.asarray(arg) for arg in args_maker()]
    reference, function, theirs, ours = scipy_and_jax(reference, function, args)
    other = elsewhere[test._testMethodName]
    row = [test._testMethodName, "×".join(map(str, args[0].shape)), str(args[0].dtype)]
    tolerance = rtol if tol is None else tol
    if reference is scipy.linalg.schur:
        residuals = (f"{residual(args[0], *map(np.asarray, x)):.2f}" for x in (ours, theirs))
        row += [f"{excess(ours, theirs, tolerance):.2g}", *residuals]
    else:
        if function is jax.lax.linalg.householder_product:
            # The test names SciPy's routine for its own precision.
            reference = np.vectorize(product_of_reflectors, signature="(m,n),(k)->(m,n)")
        truth = answers(
            reference, [arg.astype(WIDE.get(arg.dtype.kind, arg.dtype)) for arg in args]
        )
        # What follows the function is an estimate of its error, of the precision it has.
        pairs = ((ours, theirs), (ours[:1], truth[:1]), (theirs[:1], truth[:1]))
        row += [f"{excess(x, y, tolerance):.2g}" for x, y in pairs]
    row += [f"{excess(other, theirs, tolerance):.2g}"]
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


def excess(x: Sequence[Any], y: Sequence[Any], tolerance: Any) -> float:
    """`tolerance` is what the test gave: a number, one for each dtype, or none for JAX's own."""
    pairs = [(np.asarray(x), np.asarray(y)) for x, y in zip(x, y, strict=True)]
    errors = [
        np.abs(x - y) / (max(jtu.tolerance(z.dtype, tolerance) for z in (x, y)) * (1 + np.abs(y)))
        for x, y in pairs
    ]
    return float(max(np.max(error) for error in errors))


if __name__ == "__main__":
    main(*sys.argv[1:])
