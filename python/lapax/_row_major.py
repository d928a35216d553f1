"""The primitives that have row-major targets of their own: JAX's rules transpose before and after.

A target has its primitive's name and contract; here is what the primitive's parameters are as
attributes, and which calls stay with JAX's rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from lapax._lowering import is_static

Attributes = Mapping[str, np.uint8]

_LU_ORDER = 32
"""The rows and columns up to which `lu` reads rows as they lie; above, XLA transposes."""


def attributes(name: str, avals: Sequence[Any], params: Mapping[str, Any]) -> Attributes | None:
    """The attributes of the target for such operands; None where JAX's rule is to serve them."""
    static = all(is_static(aval.shape) for aval in avals)
    return _ATTRIBUTES[name](avals, params) if static else None


def _cholesky(_: Sequence[Any], _params: Mapping[str, Any]) -> Attributes:
    return {}


def _lu(avals: Sequence[Any], _: Mapping[str, Any]) -> Attributes | None:
    return {} if max(avals[0].shape[-2:]) <= _LU_ORDER else None


def _triangular_solve(_: Sequence[Any], params: Mapping[str, Any]) -> Attributes | None:
    transposed, conjugated = params["transpose_a"], params["conjugate_a"]
    if conjugated and not transposed:
        return None
    codes = {
        "side": "L" if params["left_side"] else "R",
        "uplo": "L" if params["lower"] else "U",
        "trans_x": ("C" if conjugated else "T") if transposed else "N",
        "diag": "U" if params["unit_diagonal"] else "N",
    }
    return {name: np.uint8(ord(code)) for name, code in codes.items()}


_ATTRIBUTES: dict[str, Callable[[Sequence[Any], Mapping[str, Any]], Attributes | None]] = {
    "cholesky": _cholesky,
    "lu": _lu,
    "triangular_solve": _triangular_solve,
}

NAMES = frozenset(_ATTRIBUTES)
"""The primitives."""
