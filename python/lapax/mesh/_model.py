"""How long factorisations take on other machines, from counts of each step and three numbers.

The counts are those of the programs, which a test compares with the compiled text; a machine is a
latency, a bandwidth and a rate of products. No step overlaps another, as in the programs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from jax.sharding import AbstractMesh

from lapax.mesh._grids import grid_of
from lapax.mesh._layout import Share, cut, inner
from lapax.mesh._panels import PHASES


@dataclass(frozen=True)
class Machine:
    """`latency` of a message in seconds, `bandwidth` in bytes per second that a device sends,
    `rate` of products in flops per second of it, each for 8-byte words; and where from."""

    name: str
    latency: float
    bandwidth: float
    rate: float
    source: str


MACHINES = (
    Machine(
        "H100 SXM, NVLink 4", 10e-6, 450e9, 60e12,
        "NVIDIA H100 data sheet: 67 Tflop/s in double precision on tensor cores, of which 90 %, "
        "900 GB/s both ways; a small all-reduce of NCCL takes tens of microseconds",
    ),
    Machine(
        "H100 SXM, NDR InfiniBand", 20e-6, 50e9, 60e12,
        "as above; DGX H100 data sheet: one ConnectX-7 of 400 Gbit/s for each GPU",
    ),
    Machine(
        "EPYC 9654, 100 Gbit Ethernet", 30e-6, 12.5e9, 3.0e12,
        "AMD: 96 cores at 2.4 GHz with 16 flops a cycle in double precision, of which 80 %; "
        "latency of TCP in one data centre",
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Work:
    """Of one device: flops of products, words sent, and messages one after another."""

    flops: float
    words: float
    messages: float

    def seconds(self, machine: Machine) -> float:
        moving = 8 * self.words / machine.bandwidth + self.messages * machine.latency
        return self.flops / machine.rate + moving


NAMES = ("cholesky", "lu", "lu by tournament")
"""Of the table; `factorisation` knows "qr", too, of R alone."""

_Moved = tuple[float, float]
"""Words that a device sends, and messages one after another."""


def _gathered(words: float, parts: int) -> _Moved:
    """An all-gather that results in so many words."""
    return (parts - 1) / parts * words, math.ceil(math.log2(parts))


def _reduced(words: float, parts: int) -> _Moved:
    """An all-reduce: a ring's words, and the messages of a tree."""
    return 2 * (parts - 1) / parts * words, 2 * math.ceil(math.log2(parts))


def factorisation(
    name: str, n: int, rows: int, cols: int, block: int, phases: int = PHASES
) -> Work:
    """Of an n by n matrix on a grid, without the exchange from and to the user's sharding, which
    sends n²/P words each way in one message to each other device."""
    steps = n // block
    flops = words = messages = 0.0
    for phase in range(phases):
        left = 1 - phase / phases
        high = 1.0 if name.startswith("lu") else left
        here = steps / phases
        moved = _moved_by_step(name, block, (n * high / rows, n * left / cols), rows, cols)
        words += here * sum(of_each for of_each, _ in moved)
        messages += here * sum(of_each for _, of_each in moved)
        flops += here * _flops_of_step(name, block, n * high / rows, n * left / cols)
    return Work(flops, words, messages)


def _flops_of_step(name: str, block: int, height: float, width: float) -> float:
    """Of products, with so many rows and columns left on each device."""
    narrow = inner(block)
    inside = block if narrow < block else 0
    if name == "qr":
        outer = block * (height * (block + 2 * width) + block * width)
        columns = height * narrow * block
        return 2 * (outer + columns + inside * (height * (narrow + 2 * block) + narrow * block))
    panel = 0 if name == "cholesky" or "tournament" in name else inside * height * block
    return 2 * (block * height * width + panel)


def _moved_by_step(
    name: str, block: int, window: tuple[float, float], rows: int, cols: int
) -> list[_Moved]:
    """What one block's step moves, with so many rows and columns left on each device."""
    height, width = window
    narrow = inner(block)
    count = block // narrow if narrow < block else 0
    panel = _gathered(height * block, cols)
    if name == "cholesky":
        turned = _gathered if cols == 1 else _reduced
        return [panel, _gathered(block**2, rows), turned(width * block, rows)]
    if name == "qr":
        column, rest = _reduced(2 * narrow, rows), _reduced(narrow * (narrow + block), rows)
        products = _reduced(block * (block + width), rows)
        return [panel, products] + [column] * block + [rest] * count
    row = _reduced(width * block, rows)
    if name == "lu":
        pivot = _gathered(rows * (narrow + 2), rows)
        return [panel, row] + [pivot] * block + [_reduced(narrow * block, rows)] * count
    return [panel, row] + [(block * (block + 1), 1)] * math.ceil(math.log2(rows))


def exchanged(name: str, n: int, rows: int, cols: int) -> float:
    """Words that a device sends from and to the user's sharding, and to put L's rows in order."""
    devices = rows * cols
    lower = (PHASES + 1) / (2 * PHASES) * n * n
    ordered = (1 - 1 / rows) * lower / cols if name.startswith("lu") else 0.0
    return 2 * (1 - 1 / devices) * n * n / devices + ordered


def above_bound(name: str, n: int, mesh: tuple[int, int]) -> float:
    """All words that a device sends in multiples of n²/√P, of a mesh that is divided as programs
    divide it, with their block."""
    grid = grid_of(AbstractMesh(mesh, ("x", "y")), Share(("x",), ("y",)))
    rows, cols = grid.row_parts, grid.col_parts
    block = cut(n, math.lcm(*mesh), grid.common).block
    words = factorisation(name, n, rows, cols, block).words + exchanged(name, n, rows, cols)
    return words * math.sqrt(rows * cols) / n**2


def efficiency(name: str, n: int, rows: int, cols: int, block: int, machine: Machine) -> float:
    """The share of P devices' rate that goes into the flops that one device would need."""
    needed = (1 if name == "cholesky" else 2) / 3 * n**3
    seconds = factorisation(name, n, rows, cols, block).seconds(machine)
    return needed / (rows * cols * machine.rate * seconds)


GRIDS = (1, 2, 8, 32)
"""Devices in each direction."""


def table(n: int = 100_000, each: int = 20_000, block: int = 256) -> str:
    """In Markdown: seconds and the efficiency of one size, and the efficiency with 3.2 GB of the
    matrix on each device."""
    lines = [
        f"| machine | | devices | n = {n:,}: s | efficiency | n = {each:,}·√P: efficiency |",
        "|---|---|--:|--:|--:|--:|",
    ]
    for machine in MACHINES:
        for name in NAMES:
            for side in GRIDS:
                fixed = factorisation(name, n, side, side, block).seconds(machine)
                one = efficiency(name, n, side, side, block, machine)
                grown = efficiency(name, each * side, side, side, block, machine)
                numbers = f"{side**2} | {fixed:.3g} | {one:.2f} | {grown:.2f}"
                lines.append(f"| {machine.name} | {name} | {numbers} |")
    return "\n".join(lines)


MESHES = ((2, 1), (2, 2), (4, 2), (8, 1), (4, 4), (16, 1), (2, 16), (8, 8), (64, 1))


def words_table(n: int = 16_384) -> str:
    """In Markdown: words in multiples of n²/√P."""
    lines = [
        "| | " + " | ".join(f"{rows}×{cols}" for rows, cols in MESHES) + " |",
        "|---" + "|--:" * len(MESHES) + "|",
    ]
    for name in (*NAMES, "qr"):
        ratios = " | ".join(f"{above_bound(name, n, mesh):.1f}" for mesh in MESHES)
        lines.append(f"| {name} | {ratios} |")
    return "\n".join(lines)
