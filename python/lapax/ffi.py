"""One function per op of liblapax, generated from its table: `lapax.ffi.potrf(a, uplo="L")`.

Arrays have the same leading batch dimensions; attributes and free dimensions are keywords. Every
function works under jit, vmap and jax.export, as `lapax.ffi_call` does. Types: ffi.pyi, which
`python -m lapax stubs` writes.
"""

from __future__ import annotations

from lapax._attributes import enums
from lapax._call import result_type
from lapax._functions import functions
from lapax._table import ops

_results = [result_type(op) for op in ops() if len(ops()[op][0].signature.variants[0].rets) > 1]

globals().update(functions())
globals().update(enums())
globals().update({result.__name__: result for result in _results})

__all__ = sorted([*functions(), *enums(), *(result.__name__ for result in _results)])
