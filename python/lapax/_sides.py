"""The two programs that a benchmark row compares: lapax's target and what stock JAX has instead."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lapax import check
from lapax._call import ffi_call
from lapax._jax_private import jaxlib_cpu_targets
from lapax._lowering import numpy_dtype
from lapax._table import Target, Variant

LARGEST_UNROLLED = 32
"""JAX unrolls cholesky_update over n: compiling 32 steps costs about 3 s of CPU time, 64 six."""


@dataclass(frozen=True)
class Job:
    """One row: a target in one of its dtypes, n and the number of matrices."""

    target: Target
    variant: Variant
    n: int
    batch: int

    @property
    def op(self) -> str:
        """The op of the target."""
        return self.target.signature.op

    def case(self) -> check.Case:
        """The operands, in the first mode of the op."""
        mode = check.modes(self.target.signature)[0]
        dtype = numpy_dtype(self.variant.dtype)
        return check.case(self.op, dtype, self.n, batch=(self.batch,), attrs=mode)


@dataclass(frozen=True)
class Side:
    """A compiled program with its operands on the device."""

    compiled: Callable[..., Any]
    operands: tuple[jax.Array, ...]
    flipped: tuple[bool, ...]
    """Which results are the transposes of the target's."""

    def __call__(self) -> list[jax.Array]:
        """Starts the program."""
        return list(self.compiled(*self.operands))

    def answer(self) -> list[np.ndarray[Any, Any]]:
        """The results of the target, as the checks take them."""
        return [np.asarray(ret) for ret in _flip(self(), self.flipped)]


def stock(job: Job, case: check.Case) -> Side | None:
    """jaxlib's target, or JAX's program for the primitive; None where there is neither."""
    if job.op == "lu_pivots_to_permutation":
        permutation = functools.partial(
            jax.lax.linalg.lu_pivots_to_permutation, permutation_size=case.dims["p"]
        )
        return _compiled(lambda pivots: [permutation(pivots)], case.args, [False])
    if job.op == "cholesky_update":
        if job.variant.dtype not in ("f32", "f64") or job.n > LARGEST_UNROLLED:
            return None
        # The primitive has no batching rule; a loop over the matrices is what users can write.
        update = functools.partial(jax.lax.map, lambda one: jax.lax.linalg.cholesky_update(*one))
        return _compiled(lambda r, w: [update((r, w))], case.args, [False])
    if job.target.name not in (jaxlib_cpu_targets() or ()):
        return None
    if job.op == "csr_sparse_dense":
        return _one_by_one(job, case)
    return program(job.target.name, job, case)


def program(name: str, job: Job, case: check.Case) -> Side:
    """The target called `name` on the case: a program of that call and nothing else.

    Column-major matrices enter and leave the program as their row-major transposes, so that XLA
    changes no layout and the time is the handler's, with the copy that keeps an aliased operand.
    """
    rets = jax.tree.leaves(
        jax.eval_shape(
            lambda *args: ffi_call(job.target.name, *args, **case.attrs, **case.dims), *case.args
        )
    )
    column = job.target.signature.layout == "column"
    flip_in = [column and len(operand.dims) == 2 for operand in job.variant.args]
    flip_out = [column and len(operand.dims) == 2 for operand in job.variant.rets]
    call = jax.ffi.ffi_call(
        name,
        rets,
        input_layouts=_layouts(case.args, flip_in),
        output_layouts=_layouts(rets, flip_out),
        input_output_aliases={
            ret.alias: i for i, ret in enumerate(job.variant.rets) if ret.alias is not None
        },
    )
    return _compiled(
        lambda *operands: _flip(call(*_flip(operands, flip_in), **case.attrs), flip_out),
        [np.ascontiguousarray(x) for x in _flip(case.args, flip_in)],
        flip_out,
    )


def _one_by_one(job: Job, case: check.Case) -> Side:
    """A loop over the matrices: jaxlib's target takes one."""
    importlib.import_module("jax.experimental.sparse")  # Registers it.
    ret = jax.eval_shape(lambda *args: ffi_call(job.target.name, *args), *case.args)
    call = jax.ffi.ffi_call(job.target.name, jax.ShapeDtypeStruct(ret.shape[1:], ret.dtype))

    def program(*operands: jax.Array) -> list[jax.Array]:
        if job.batch == 1:
            return [call(*(x[0] for x in operands))[None]]
        return [jax.lax.map(lambda one: call(*one), operands)]

    return _compiled(program, case.args, [False])


def _compiled(function: Callable[..., Any], args: Sequence[Any], flipped: Sequence[bool]) -> Side:
    operands = tuple(map(jnp.asarray, args))
    return Side(jax.jit(function).lower(*operands).compile(), operands, tuple(flipped))


def _flip(arrays: Sequence[Any], which: Sequence[bool]) -> list[Any]:
    return [x.swapaxes(-1, -2) if flip else x for x, flip in zip(arrays, which, strict=True)]


def _layouts(arrays: Sequence[Any], column: Sequence[bool]) -> list[tuple[int, ...]]:
    """Major-to-minor orders: the last two dimensions change places in column-major matrices."""
    return [
        (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2) if flip else tuple(range(x.ndim))
        for x, flip in zip(arrays, column, strict=True)
    ]
