"""`python -m lapax.mesh`: the model's table, which docs/mesh.md holds."""

from lapax.mesh._model import table

print(table())
