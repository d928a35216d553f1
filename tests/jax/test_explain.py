"""explain(): the calls of a program, whose they are, by which kernel, and where they come from."""

from __future__ import annotations

import dataclasses
import re

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
import pytest

import lapax
from lapax import _library, _route
from lapax.__main__ import main
from lapax._table import targets
from programs import FUNCTIONS, Operands, custom_calls, operands, run_python

A, S, B = operands(np.dtype(np.float32), n=5, batch=(6,))


def spec(*shape, dtype=np.float32):
    return jax.ShapeDtypeStruct(shape, dtype)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_the_program_has(name):
    def function(*o):
        return FUNCTIONS[name](Operands(*o))

    with lapax.installed():
        found = lapax.explain(function, A, S, B)
        calls = custom_calls(function, A, S, B)
    assert [call.target for call in found] == calls
    assert {call.by for call in found} == {"lapax"}
    assert all(call.route is not None for call in found if call.op != "lu_solve")
    stock = lapax.explain(function, A, S, B)
    assert {call.by for call in stock} == {"jaxlib"}
    assert {call.route for call in stock} == {None}


def test_of_one_call():
    with lapax.installed():
        (call,) = lapax.explain(jnp.linalg.solve, A, B)
    route = _library.route({"routine": "solve", "dtype": "f32", "batch": 6, "sizes": [5, 2]})
    assert dataclasses.asdict(call) | {"function": None, "source": None} == {
        "target": "lapax.lapax_solve",
        "by": "lapax",
        "args": ("f32[6,5,5]", "f32[6,5,2]"),
        "op": "solve",
        "route": route["route"],
        "what": route["what"],
        "function": None,
        "source": None,
        "loop": False,
    }
    assert call.function.endswith("solve")


def test_where_they_come_from():
    def function(a, b):
        first = jnp.linalg.cholesky(a)
        return jax.lax.fori_loop(0, 3, lambda _, x: jnp.linalg.solve(a, x), b) + first[..., :2]

    start = function.__code__.co_firstlineno
    for context in (lapax.installed(), lapax.installed(only=())):
        with context:
            found = lapax.explain(function, A, B)
        assert [call.loop for call in found] == [False] + [True] * (len(found) - 1)
        for call, line in zip(found, [1, *[2] * (len(found) - 1)], strict=True):
            assert call.source == f"{__file__}:{start + line}"
            last = re.sub(r"^lapax_|^jit.(.*).$", r"\1", call.function.split("/")[-1])
            assert last in ("cholesky", "solve", "lu", "triangular_solve")


def test_a_function_called_twice_counts_twice():
    factor = jax.jit(jnp.linalg.cholesky)
    for context in (lapax.installed(), lapax.installed(leave="cholesky")):
        with context:
            assert len(lapax.explain(lambda s: factor(factor(s)), S)) == 2


def test_programs_that_are_not_all_lapaxs():
    def function(a, b):
        x = jsl.solve_triangular(a.astype(jnp.float16), b.astype(jnp.float16))
        return x, jnp.linalg.eigvalsh(a), jax.pure_callback(np.sin, a, a, vmap_method="sequential")

    with lapax.installed(leave="eigh") as left:
        found = lapax.explain(function, A, B)
    by = {call.target: (call.by, call.op) for call in found}
    assert by["lapack_ssyevd_ffi"] == ("jaxlib", "syevd")
    assert by["stablehlo.triangular_solve"] == ("XLA", None)
    others = [call for call in found if "callback" in call.target]
    assert [call.by for call in others] == ["another library"]
    assert found.left == left
    lines = repr(found).splitlines()
    assert lines[0] == "3 custom calls on cpu, lapax installed"
    assert lines[1] == "left to JAX: eigh (install: leave)"
    assert lines[2] == "stablehlo.triangular_solve of f16[6,5,5], f16[6,5,2]: XLA"


def test_a_program_for_cuda():
    if _library.cuda_kernels() == 0 or _library.cuda_unfit():
        pytest.skip("lapax serves no CUDA here: no kernels in this build, or the driver is too old")
    lapax.install()
    (call,) = lapax.explain(jnp.linalg.eigh, spec(4, 4), platform="cuda")
    assert (call.target, call.by, call.op) == ("lapax.lapax_eigh", "lapax", "eigh")
    assert call.route is None
    lapax.uninstall()
    (call,) = lapax.explain(jnp.linalg.eigh, spec(4, 4), platform="cuda")
    assert (call.target, call.by, call.op) == ("cusolver_syevd_ffi", "jaxlib", "syevd")


ROUTES = {
    "qr": (lambda a: jnp.linalg.qr(a), (6, 4), "qr", [6, 4]),
    "qr of all columns": (
        lambda a: jnp.linalg.qr(a, mode="complete"), (6, 4), "qr_all", [6, 4]
    ),
    "r": (lambda a: jnp.linalg.qr(a, mode="r"), (6, 4), "qr_r", [6, 4]),
    "svd": (lambda a: jnp.linalg.svd(a, full_matrices=False), (70, 3), "svd", [70, 3]),
    "svd of all columns": (jnp.linalg.svd, (70, 3), "svd_all", [70, 3]),
    "values": (lambda a: jnp.linalg.svd(a, compute_uv=False), (70, 3), "svdvals", [70, 3]),
    "system": (lambda a: jsl.solve_triangular(a, a[:, :2]), (9, 9), "triangular_solve", [9, 2]),
    "system from the right": (
        lambda a: jax.lax.linalg.triangular_solve(a, a[:3], left_side=False),
        (9, 9), "triangular_solve", [9, 3],
    ),
    "tridiagonal": (
        lambda a: jax.lax.linalg.tridiagonal_solve(a[0], a[1], a[2], a.T),
        (3, 7), "tridiagonal_solve", [7, 3],
    ),
    "product": (
        lambda a: jsl.qr_multiply(a, a[:, :2], mode="left")[0], (9, 9), "ormqr", [9, 2, 9, 9]
    ),
    "columns": (jnp.linalg.eigvals, (4, 4), "eigvals", [4]),
    "order": (lambda a: jax.lax.linalg.hessenberg(a)[0], (8, 8), "gehrd", [8, 8]),
}  # fmt: skip


@pytest.mark.parametrize("name", ROUTES)
def test_the_sizes_are_those_of_the_routine(name, monkeypatch):
    function, shape, routine, sizes = ROUTES[name]
    if routine == "ormqr" and not hasattr(jsl, "qr_multiply"):
        pytest.skip("this JAX has no function with the product")
    asked = []
    ask = _library.route
    monkeypatch.setattr(_library, "route", lambda request: asked.append(request) or ask(request))
    with lapax.installed():
        found = lapax.explain(function, spec(2, *shape) if routine == "eigvals" else spec(*shape))
    batch = 2 if routine == "eigvals" else 1
    wanted = {"routine": routine, "dtype": "f32", "batch": batch, "sizes": sizes}
    assert wanted in asked
    assert ask(wanted)["route"] in [call.route for call in found]


def test_banded_sizes():
    def asked(op, attrs):
        target = next(t for t in targets("cpu") if t.signature.op == op)
        types = [("f64", (4, 6)), ("f64", (6, 2))]
        return _route.route(target, types[: len(target.signature.variants[0].args)], [], attrs)

    wanted = {"lower": 1, "upper": 2, "n": 6, "nrhs": 2}
    assert asked("solve_banded", {"l": 1})["sizes"] == wanted
    assert asked("solveh_banded", {})["sizes"] == {"beside": 3, "n": 6, "nrhs": 2}
    assert asked("cholesky_banded", {})["sizes"] == {"beside": 3, "n": 6}


def test_symbolic_sizes_have_no_route():
    target = next(t for t in targets("cpu") if t.signature.op == "cholesky")
    assert _route.route(target, [("f64", ("?", 4, 4))], [("f64", ("?", 4, 4))], {}) is None


def test_wrong_arguments():
    with pytest.raises(ValueError, match='platform: expected "cpu" or "cuda", got'):
        lapax.explain(jnp.linalg.inv, A, platform="tpu")
    with pytest.raises(TypeError):
        lapax.explain(jnp.linalg.solve, A)


def test_names_that_were_taken_over_are_lapaxs():
    code = """
import jax.numpy as jnp, numpy as np, lapax
lapax.install(takeover=True)
lapax.uninstall()
(call,) = lapax.explain(jnp.linalg.cholesky, np.eye(3, dtype=np.float32))
print(call.target, call.by, call.route is not None)
"""
    assert run_python(code) == "lapack_spotrf_ffi lapax True\n"


def test_on_the_command_line(capsys):
    words = ["jax.numpy.linalg.inv", "f64[3,5,5]"]
    assert main(["explain", *words]) == 0
    first, call, _ = capsys.readouterr().out.splitlines()
    assert first == "1 custom call on cpu, lapax installed"
    assert call.startswith("lapax.lapax_inv of f64[3,5,5]: lapax, ")
    assert not lapax.is_installed()
    assert main(["explain", *words, "--stock"]) == 0
    printed = capsys.readouterr().out
    assert "lapack_dgetrf_ffi of f64[3,5,5]: jaxlib" in printed
    assert "lapax not installed" in printed
    assert main(["explain", "jax.numpy.linalg.inv", "f64[3,5]"]) == 1
    assert capsys.readouterr().err.startswith("jax.numpy.linalg.inv of f64[3,5]: ValueError: ")


def test_xla_does_not_count_the_flops_of_calls():
    """As docs/faq.md says."""
    solve = jax.jit(jnp.linalg.solve)
    stock = solve.lower(A, B).compile().cost_analysis()["flops"]
    with lapax.installed():
        (call,) = lapax.explain(solve, A, B)
        ours = solve.lower(A, B).compile().cost_analysis().get("flops", 0)
    assert call.op == "solve"
    assert ours <= 0 < stock
