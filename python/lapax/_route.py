"""Which kernel of liblapax serves a call of a target on the CPU: the question `lapax_route` takes.

The routines that it knows are those of docs/routes.md. Most have the name of an op, and sizes that
are the op's dimensions; here is what others have.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from lapax import _library
from lapax._table import Target

Typed = tuple[str, tuple[Any, ...]]
"""An element type and a shape, in which "?" is a size that is not known."""

_ALIKE = {"geev_complex": "geev", "gees_complex": "gees"}
"""Routines of any dtype, where LAPACK has other results for complex ones."""


def route(
    target: Target, args: Sequence[Typed], rets: Sequence[Typed], attrs: Mapping[str, int]
) -> dict[str, Any] | None:
    """{"route", "what", "sizes"} of a call of a target on the CPU, by types and attributes.

    None where a size is not known, and for targets that have one way only.
    """
    dtype = args[0][0]
    variant = target.signature.variant(dtype)
    if variant is None or any("?" in shape for _, shape in (*args, *rets)):
        return None
    shapes = [shape for _, shape in args]
    batch_rank = len(shapes[0]) - len(variant.args[0].dims)
    dims: dict[str, int] = {}
    for operand, (_, shape) in zip((*variant.args, *variant.rets), (*args, *rets), strict=False):
        dims |= zip(operand.dims, shape[batch_rank:], strict=False)
    request = {
        "routine": _routine(target.signature.op, dims, attrs),
        "dtype": dtype,
        "batch": math.prod(shapes[0][:batch_rank]),
    }
    labels = _library.route(request | {"sizes": [1]}).get("sizes", ())
    sizes = [_size(label, dims, attrs) for label in labels]
    if not sizes or None in sizes:
        return None
    answer = _library.route(request | {"sizes": sizes})
    return None if "error" in answer else answer


def _routine(op: str, dims: Mapping[str, int], attrs: Mapping[str, int]) -> str:
    """The routine's name: of decompositions also by which vectors are wanted."""
    mode = chr(attrs.get("mode", 0))
    if op in ("gesdd", "gesvd", "syevd"):
        return op + {"A": "_all", "N": "_values"}.get(mode, "")
    if op == "svd" and attrs.get("full_matrices"):
        return "svd_all"
    if op == "qr" and dims["c"] > dims["n"]:
        return "qr_all"
    return _ALIKE.get(op, op)


def _size(label: str, dims: Mapping[str, int], attrs: Mapping[str, int]) -> int | None:
    """A size that a route depends on, by the name that the routine gives it."""
    on_left = attrs.get("left", True) and attrs.get("side", ord("L")) == ord("L")
    if label in ("n", "nrhs") and "q" in dims and "m" in dims:  # op(A)·X = B or X·op(A) = B.
        return dims["q"] if label == "n" else dims["n" if on_left else "m"]
    if label == "others":  # Of C in Q·C or C·Q, those that Q does not act on.
        return dims["n" if on_left else "m"]
    if label == "active":  # Rows that are not triangular already, LAPACK's ilo to ihi.
        return attrs["high"] - attrs["low"] + 1
    if label == "n" and "n" not in dims:  # The order of a tridiagonal matrix.
        return dims.get("m")
    if label in ("lower", "upper", "beside"):
        beside = dims["bands"] - 1
        lower = attrs.get("l", 0)
        return {"lower": lower, "upper": beside - lower, "beside": beside}[label]
    return dims.get(label)
