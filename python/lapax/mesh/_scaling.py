"""Weak scaling on this machine: one process on one core, against several with a core each.

Each process has one device, and as much of the matrix whatever their number, so that n grows as
the square root of it. Processes talk by gloo over loopback, as on several hosts. The median of some
calls counts, once the first one's factors have passed LAPACK's test of their residual.
"""

from __future__ import annotations

import os
import socket
import statistics
import subprocess
import sys
import time
from typing import Any

NAMES = ("cholesky", "lu", "lu by tournament", "qr")
CALLS = 5
LIMIT = 30
"""Of residuals in multiples of n·ε, as LAPACK's own tests have it."""


def flops(name: str, n: int) -> float:
    """What one device needs for it (Golub and Van Loan, Matrix Computations)."""
    return {"cholesky": 1 / 3, "lu": 2 / 3, "lu by tournament": 2 / 3, "qr": 4 / 3}[name] * n**3


def worker(number: int, processes: int, port: int, n: int) -> None:
    """One process: prints the seconds of each factorisation, JAX's own beside them where it is
    alone."""
    if sys.platform != "linux":
        sys.exit("weak scaling: expected Linux, where a process can be kept on one core")
    # Before JAX counts processors.
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[number % len(cores)]})

    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import NamedSharding, PartitionSpec

    import lapax
    from lapax import mesh

    lapax.install()
    if processes > 1:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(f"127.0.0.1:{port}", processes, number)
    grid = jax.make_mesh((processes, 1), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    divided = NamedSharding(grid, PartitionSpec("x", "y"))

    @jax.jit
    def operand() -> jax.Array:
        return jax.random.normal(jax.random.key(0), (n, n), jnp.float32)

    @jax.jit
    def definite(a: jax.Array) -> jax.Array:
        return (a + a.T) / 2 + 4 * jnp.sqrt(n) * jnp.eye(n)

    general = jax.jit(operand, out_shardings=divided)()
    symmetric = jax.jit(definite, out_shardings=divided)(general)

    def lu(a: jax.Array, pivoting: str = "partial") -> Any:
        return mesh.lu(a, sharding=divided, pivoting=pivoting)

    def error(a: jax.Array, of: jax.Array) -> jax.Array:
        size = n * np.finfo(np.float32).eps
        return jnp.asarray(jnp.linalg.norm(a - of) / jnp.linalg.norm(of) / size)

    def of_lu(a: jax.Array, found: Any) -> jax.Array:
        return error(found.l @ found.u, a[found.permutation])

    programs: dict[str, tuple[jax.Array, Any, Any]] = {
        "cholesky": (
            symmetric,
            lambda a: mesh.cholesky(a, sharding=divided),
            lambda a, found: error(found @ found.T, a),
        ),
        "lu": (general, lu, of_lu),
        "lu by tournament": (general, lambda a: lu(a, "tournament"), of_lu),
        "qr": (
            general,
            lambda a: mesh.qr(a, mode="r", sharding=divided),
            lambda a, found: error(found.T @ found, a.T @ a),
        ),
    }
    own: dict[str, Any] = {
        "cholesky": jnp.linalg.cholesky,
        "lu": jax.lax.linalg.lu,
        "qr": lambda a: jnp.linalg.qr(a, mode="r"),
    }
    for name, (a, function, checked) in programs.items():
        compiled = jax.jit(function)
        ratio = float(jax.jit(checked)(a, compiled(a)))
        if not ratio < LIMIT:
            raise RuntimeError(f"{name} of {n}: residual ratio {ratio}, expected below {LIMIT}")
        seconds = _median(compiled, a)
        alone = _median(jax.jit(own[name]), a) if processes == 1 and name in own else None
        if number == 0:
            print("time", name.replace(" ", "_"), seconds, alone, flush=True)


def _median(function: Any, a: Any) -> float:
    import jax

    jax.block_until_ready(function(a))
    times = []
    for _ in range(CALLS):
        start = time.perf_counter()
        jax.block_until_ready(function(a))
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _run(processes: int, n: int) -> dict[str, tuple[float, float | None]]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
    code = "import sys; from lapax.mesh._scaling import worker; worker(*map(int, sys.argv[1:]))"
    # The last of a flag counts; the caller's may ask for several devices.
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=1"
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(i), str(processes), str(port), str(n)],
            env={**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags},
            stdout=subprocess.PIPE,
            text=True,
        )
        for i in range(processes)
    ]
    try:
        printed = [process.communicate()[0] for process in running]
    finally:
        for process in running:
            process.kill()
    if any(process.returncode for process in running):
        raise RuntimeError(f"{processes} processes on a matrix of {n}: one failed")
    found = {}
    for line in printed[0].splitlines():
        if line.startswith("time "):
            _, name, seconds, alone = line.split()
            known = None if alone == "None" else float(alone)
            found[name.replace("_", " ")] = (float(seconds), known)
    return found


def table(n: int, processes: int) -> str:
    """In Markdown: of each number of processes the rate of one, in units of one process's."""
    # Each process has as many rows.
    larger = max(1, round(n / processes**0.5)) * processes
    one, many = _run(1, n), _run(processes, larger)
    lines = [
        f"| | one process, n = {n:,}: Gflop/s | the device's own: Gflop/s | "
        f"{processes} processes, n = {larger:,}: Gflop/s each | efficiency |",
        "|---|--:|--:|--:|--:|",
    ]
    for name in NAMES:
        seconds, alone = one[name]
        rate = flops(name, n) / seconds / 1e9
        each = flops(name, larger) / many[name][0] / processes / 1e9
        own = f"{flops(name, n) / alone / 1e9:.1f}" if alone else ""
        lines.append(f"| {name} | {rate:.1f} | {own} | {each:.1f} | {each / rate:.2f} |")
    return "\n".join(lines)
