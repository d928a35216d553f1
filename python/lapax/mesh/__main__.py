"""`python -m lapax.mesh`: the model's tables, which docs/mesh.md holds; with `scaling [N]
[PROCESSES]` the weak scaling of this machine from a matrix of N on one core."""

import sys

from lapax.mesh import _scaling
from lapax.mesh._model import table, words_table

match sys.argv[1:]:
    case []:
        print(words_table(), table(), sep="\n\n")
    case ["scaling", *numbers] if len(numbers) <= 2 and all(map(str.isdecimal, numbers)):
        n, processes = (*map(int, numbers), *(2000, 2)[len(numbers) :])
        print(_scaling.table(n, processes))
    case other:
        sys.exit(f"python -m lapax.mesh: expected nothing or scaling [N] [PROCESSES], got {other}")
