"""`python -m lapax.mesh`: the model's tables, which docs/mesh.md holds."""

from lapax.mesh._model import table, words_table

print(words_table(), table(), sep="\n\n")
