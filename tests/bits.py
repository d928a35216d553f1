"""Hashes of results, to be compared between two revisions: python tests/bits.py > FILE

A line for each op, dtype, size and batch on the CPU: operands are those of lapax.check, and
attributes take turns. Sizes lie on both sides of where another kernel serves. A change that is to
change no bit has the same lines before and after; LAPAX_LIBRARY says which library is asked.
"""

from __future__ import annotations

import hashlib

import jax
import numpy as np

import lapax
from lapax import check
from lapax._lowering import numpy_dtype
from lapax._table import ops

SMALL = (1, 2, 4, 7, 8, 9, 12, 16, 17, 21, 24, 25, 28, 29, 32, 33, 40, 48, 49, 64, 65, 96, 128, 129)
LARGE = (160, 200, 257, 330, 460, 520)
BATCHES = ((), (3,), (4,), (9,))


def lines(op: str) -> list[str]:
    """Of one op."""
    target, *_ = ops()[op]
    modes = check.modes(target.signature)
    found = []
    for dtype in dict.fromkeys(v.args[0].dtype for t in ops()[op] for v in t.signature.variants):
        turn = 0
        for n in SMALL + LARGE:
            for batch in BATCHES if n in SMALL else ((), (2,)):
                turn += 1
                mode, m = modes[turn % len(modes)], n
                if check.CHECKS[op].rectangular:
                    m = (n, 2 * n + 1, n // 2 + 1)[turn % 3]
                case = check.case(op, numpy_dtype(dtype), n, m=m, batch=batch, attrs=mode)
                results = lapax.ffi_call(op, *case.args, **case.attrs, **case.dims)
                digest = hashlib.sha256()
                for x in jax.tree.leaves(results):
                    digest.update(np.asarray(x).tobytes())
                found.append(f"{op} {dtype} {m}x{n} {batch} {dict(mode)} {digest.hexdigest()[:16]}")
    return found


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    for name in sorted(ops()):
        print(*lines(name), sep="\n", flush=True)
