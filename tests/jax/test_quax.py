"""quax, whose users give JAX's primitives rules of their own, finds them under install()."""

# Without annotations as text: quax dispatches by them.

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lapax
from programs import operands

quax = pytest.importorskip("quax", reason="quax is not installed for this JAX")
equinox = pytest.importorskip("equinox")

cholesky_p = jax.lax.linalg.cholesky_p


class Metres(quax.ArrayValue):
    """An array with a power of a unit, which nobody may take away."""

    array: jax.Array
    power: float = equinox.field(static=True)

    def aval(self):
        return jax.core.ShapedArray(self.array.shape, self.array.dtype)

    def materialise(self):
        raise RuntimeError("the unit would be lost")


@quax.register(cholesky_p)
def _(x: Metres, **params):
    return Metres(cholesky_p.bind(x.array, **params), x.power / 2)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_a_factor_has_the_root_of_the_unit(wrap):
    a = jnp.asarray(operands(np.dtype(np.float32), n=4, batch=()).s)
    function = quax.quaxify(wrap(cholesky_p.bind))
    stock = function(Metres(a, 2))
    with lapax.installed():
        ours = function(Metres(a, 2))
    assert ours.power == stock.power == 1
    np.testing.assert_allclose(np.tril(ours.array), np.tril(stock.array), rtol=1e-5, atol=1e-5)


def test_a_function_of_jax_is_its_primitives():
    """`jax.numpy.linalg.cholesky` meets the rule of `cholesky_p` in its own body."""
    a = operands(np.dtype(np.float32), n=4, batch=()).s

    def outcome():
        try:
            return quax.quaxify(lambda x: jax.lax.linalg.cholesky(x, symmetrize_input=False))(
                Metres(jnp.asarray(a), 2)
            )
        except Exception as error:
            return type(error), str(error).splitlines()[0]

    stock = outcome()
    with lapax.installed():
        ours = outcome()
    assert jax.tree.structure(ours) == jax.tree.structure(stock)
    assert type(ours) is type(stock)
