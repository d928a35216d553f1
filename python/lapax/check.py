"""What a correct answer of each op is: inputs, attributes, flop count and residual ratio.

The doctor, the benchmarks and the tests take their cases from here. An op is keyed by its name in
the table of targets (`getrf`, `trsm`, …); what is known about it stands in the file of its family,
`_checks/<family>.py`. Only NumPy is used: nothing here knows JAX or a handler.

A residual ratio is LAPACK's: the error of the defining equation over the norm of the data and the
unit roundoff u = ε/2, by matrix and in double precision, so that one limit serves every dtype,
size and condition. `ratio < LIMIT` is the test, so that NaN fails.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lapax._checks import CHECKS
from lapax._checks.equations import Array, Attrs, Size
from lapax._table import Signature

LIMIT = 30.0
"""The limit of LAPACK's own test programs; a wrong digit exceeds it by orders of magnitude."""


@dataclass(frozen=True)
class Case:
    """One call of a target: operands in the target's order, attributes, and free dimensions."""

    op: str
    size: Size
    args: tuple[Array, ...]
    attrs: dict[str, Any]
    dims: dict[str, int]
    """Values of the dimensions that no operand fixes."""

    @property
    def flops(self) -> float:
        """Real additions and multiplications of the whole batch."""
        complex_cost = 4 if self.args[0].dtype.kind == "c" else 1
        return self.size.count * complex_cost * CHECKS[self.op].flops(self.size, self.attrs)

    def ratio(self, rets: Iterable[Any]) -> float:
        """The largest residual ratio over the batch; inf where a result is wrong by definition."""
        return float(np.max(self.ratios(rets), initial=0.0))

    def ratios(self, rets: Iterable[Any]) -> Array:
        """The residual ratio of each matrix, shaped like the batch."""
        results = [np.asarray(ret) for ret in rets]
        with np.errstate(all="ignore"):
            return CHECKS[self.op].ratios(self.args, self.attrs, results)

    def moved(self, rets: Iterable[Any]) -> int:
        """Bytes of all operands and results, each read or written once."""
        return sum(x.nbytes for x in self.args) + sum(int(ret.nbytes) for ret in rets)


def case(
    op: str,
    dtype: npt.DTypeLike,
    n: int,
    *,
    m: int | None = None,
    batch: tuple[int, ...] = (),
    attrs: Attrs | None = None,
    seed: int = 0,
) -> Case:
    """A reproducible case of `op` for operands of `dtype`; KeyError where the op has no check.

    `dtype` is that of the floating operands; `attrs` is one of `modes(signature)`.
    """
    check, size = CHECKS[op], Size(n if m is None else m, n, batch)
    mode = check.attrs(size) | dict(attrs or {})
    args = check.inputs(np.random.default_rng(seed), np.dtype(dtype), size, mode)
    return Case(op, size, args, mode, check.dims(size, mode))


def modes(signature: Signature) -> list[dict[str, Any]]:
    """Every combination of a target's coded attributes, as U8 codes, and of its bools.

    Left out are optional attributes, and those whose values an op's check knows. Another required
    attribute has no finite set of values and raises ValueError.
    """
    known = CHECKS[signature.op].attrs(Size(1, 1)) if signature.op in CHECKS else {}
    choices: list[list[tuple[str, Any]]] = []
    for attr in signature.attrs:
        if attr.codes:
            choices.append([(attr.name, np.uint8(code.code)) for code in attr.codes])
        elif attr.type == "bool" and not attr.optional:
            choices.append([(attr.name, value) for value in (False, True)])
        elif not attr.optional and attr.name not in known:
            raise ValueError(f"attribute {attr.name} of type {attr.type} has no codes")
    return [dict(combination) for combination in itertools.product(*choices)]
