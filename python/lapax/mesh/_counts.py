"""What a compiled program sends and holds, read from its text: no device has to run it."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) \(.*\) -> .* \{$")
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?([\w.\-]+) = (.+?) ([\w\-]+)\((.*)$")
_ARRAY = re.compile(r"\b(pred|[subcf]\d+|bf16)\[([\d,]*)\]")
_CALLED = re.compile(
    r"(?:to_apply|body|condition|calls|true_computation|false_computation)=%?([\w.\-]+)"
)
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
_GROUPS = re.compile(r"replica_groups=\{\{([\d,]*)\}")
_IOTA_GROUPS = re.compile(r"replica_groups=\[(\d+),(\d+)\]")
_MESH_GROUPS = re.compile(r"replica_groups=mesh\[([^\]]*)\] \{([^}]*)\}")
_AXIS = re.compile(r"'(\w+)'=(\d+)")
_AXES = re.compile(r"'(\w+)'(?::\(\d+\)(\d+))?")

COLLECTIVES = ("all-gather", "all-reduce", "all-to-all", "collective-permute", "reduce-scatter")


@dataclass(frozen=True)
class Counts:
    """Of one device: the words that it sends by each collective, how many of these there are, the
    flops of matrix products, and the elements of the largest array."""

    words: dict[str, float] = field(default_factory=dict)
    messages: dict[str, float] = field(default_factory=dict)
    flops: float = 0.0
    largest: int = 0

    @property
    def total(self) -> float:
        """Words sent."""
        return sum(self.words.values())


def count(compiled: Any) -> Counts:
    """Counts of what `jax.jit(f).lower(...).compile()` returned, on each device.

    A collective among g devices is taken to send what the ring algorithms do: (g-1)/g of what it
    results in for all-gather and all-to-all, of what it is given for reduce-scatter, and twice that
    for all-reduce (Thakur, Rabenseifner and Gropp 2005). Words are array elements. Loops count as
    often as the compiler says that they run, and once where it does not know.
    """
    computations, entry = _parse(compiled.as_text())
    words: defaultdict[str, float] = defaultdict(float)
    messages: defaultdict[str, float] = defaultdict(float)
    flops = 0.0
    for instruction, times in _executed(computations, entry, 1.0):
        kind = instruction.opcode.removesuffix("-start")
        if kind in COLLECTIVES:
            words[kind] += times * instruction.sent(kind)
            messages[kind] += times
        elif kind == "dot":
            flops += times * instruction.flops(computations)
    largest = max(size for body in computations.values() for i in body.values() for size in i.sizes)
    return Counts(dict(words), dict(messages), flops, largest)


@dataclass(frozen=True)
class _Instruction:
    name: str
    shape: str
    opcode: str
    rest: str
    computation: str

    @property
    def sizes(self) -> list[int]:
        return [_elements(dims) for _, dims in _ARRAY.findall(self.shape)]

    def sent(self, kind: str) -> float:
        """Words."""
        # An asynchronous one's result has its operands before it.
        sizes = self.sizes
        total = sum(sizes[len(sizes) // 2 :] if self.opcode.endswith("-start") else sizes)
        if kind == "collective-permute":
            return total
        g = self._group()
        ring = {"all-reduce": 2 * (g - 1) / g, "reduce-scatter": g - 1}
        return total * ring.get(kind, (g - 1) / g)

    def _group(self) -> int:
        if found := _GROUPS.search(self.rest):
            return len(found[1].split(","))
        if found := _IOTA_GROUPS.search(self.rest):
            return int(found[2])
        if found := _MESH_GROUPS.search(self.rest):
            size = dict(_AXIS.findall(found[1]))
            return math.prod(int(part or size[name]) for name, part in _AXES.findall(found[2]))
        raise ValueError(f"count: {self.name}: expected replica groups, got {self.rest[:80]}")

    def flops(self, computations: dict[str, dict[str, _Instruction]]) -> float:
        """Of a matrix product: 2 m n k, four times as many of complex numbers."""
        left = re.match(r"(?:[\w\[\],{}]+ )?%?([\w.\-]+)", self.rest)
        contracted = re.search(r"lhs_contracting_dims=\{([\d,]*)\}", self.rest)
        if left is None or contracted is None:
            return 0.0
        kind, dims = _ARRAY.findall(computations[self.computation][left[1]].shape)[0]
        sizes = [int(d) for d in dims.split(",") if d]
        inner = math.prod(sizes[int(d)] for d in contracted[1].split(",") if d)
        return (8.0 if kind.startswith("c") else 2.0) * self.sizes[0] * inner


def _elements(dims: str) -> int:
    return math.prod(int(d) for d in dims.split(",") if d)


def _parse(text: str) -> tuple[dict[str, dict[str, _Instruction]], str]:
    computations: dict[str, dict[str, _Instruction]] = {}
    current = entry = ""
    for line in text.splitlines():
        if found := _COMPUTATION.match(line):
            current = found[1]
            computations[current] = {}
            if line.startswith("ENTRY"):
                entry = current
        elif current and (found := _INSTRUCTION.match(line)):
            computations[current][found[1]] = _Instruction(
                found[1], found[2], found[3], found[4], current
            )
    return computations, entry


def _executed(
    computations: dict[str, dict[str, _Instruction]], name: str, times: float
) -> Iterator[tuple[_Instruction, float]]:
    for instruction in computations.get(name, {}).values():
        yield instruction, times
        trips = 1.0
        if instruction.opcode == "while" and (found := _TRIPS.search(instruction.rest)):
            trips = float(found[1])
        called = _CALLED.findall(instruction.rest)
        for branches in _BRANCHES.findall(instruction.rest):
            called += [branch.strip().lstrip("%") for branch in branches.split(",")]
        for callee in called:
            yield from _executed(computations, callee, times * trips)
