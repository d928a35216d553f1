"""Whether the files of cpu/src import what their rooms may: python cpu/rooms.py

A room, a folder of cpu/src or a file beside them, imports from itself and from rooms before it,
where ROOMS has them from the bottom up. Kernels, which all families share, know neither each other
nor a family, and those in lanes not even blas. No two files import each other, over however many
others, but those of lapack/, which share a trait. No file but a test has more than 500 lines.

Imports are read from `use` lines and paths; tests, which need all of the house, are left out.
"""

import re
import sys
from pathlib import Path

SRC = Path(__file__).parent / "src"
ROOMS = [
    "simd",
    "parallel",
    "matrix",
    "blas",
    "lanes",
    "registers",
    "unblocked",
    "triangular",
    "lu",
    "cholesky",
    "tridiagonal",
    "block_tridiagonal",
    "banded",
    "qr",
    "solve",
    "determinant",
    "definite",
    "ldl",
    "hessenberg",
    "divide",
    "two_stage",
    "eigh",
    "svd",
    "schur",
    "generalised_schur",
    "eig",
    "functions",
    "sparse",
    "routes",
    "lapack",
]
KERNELS = {"lanes", "registers", "unblocked"}
TESTS = {"testing", "trials"}
LINES = 500
USE = re.compile(r"\buse\s+((?:crate|super|self)\b[^;]*);")
PATH = re.compile(r"(?<![\w:])(?:crate|super)(?:::\w+)+")
INLINE_TESTS = re.compile(
    r'#\[cfg\(feature = "testing"\)\]\npub\(crate\) mod tests \{.*', re.DOTALL
)

Module = tuple[str, ...]


def module_of(file: Path) -> Module:
    """Its path in the crate."""
    parts = file.relative_to(SRC).with_suffix("").parts
    return parts[:-1] if parts[-1] in ("mod", "lib") else parts


def leaves(tree: str) -> list[str]:
    """The paths of a use tree: a::{b, c::{d, e}} has three."""
    head, brace, tail = tree.partition("{")
    if not brace:
        return [tree.split(" as ")[0].strip()]
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(tail):
        depth += (letter == "{") - (letter == "}")
        if depth < 0 or (depth == 0 and letter == ","):
            parts.append(tail[start:at])
            start = at + 1
        if depth < 0:
            break
    return [head.strip() + leaf for part in parts if part.strip() for leaf in leaves(part.strip())]


def imports(module: Module, text: str, modules: set[Module]) -> set[Module]:
    """The modules that a file's paths lead to."""
    paths = [leaf for use in USE.findall(text) for leaf in leaves(use)] + PATH.findall(text)
    found = set()
    for path in paths:
        segments = [segment for segment in re.split(r"::", path) if segment != "self"]
        base: Module = () if segments[0] == "crate" else module
        while segments and segments[0] in ("crate", "super"):
            base = base[:-1] if segments.pop(0) == "super" else base
        target = base
        for segment in segments:
            if (*target, segment) not in modules:
                break
            target = (*target, segment)
        found.add(target)
    return found - {(), module}


def circles(edges: dict[Module, set[Module]]) -> list[set[Module]]:
    """Sets of modules of which each leads to each."""

    def reached(start: Module) -> set[Module]:
        seen: set[Module] = set()
        left = list(edges[start])
        while left:
            module = left.pop()
            if module not in seen:
                seen.add(module)
                left.extend(edges.get(module, ()))
        return seen

    reach = {module: reached(module) for module in edges}
    rings = {
        frozenset(b for b in reach[a] if a in reach.get(b, ())) for a in edges if a in reach[a]
    }
    return sorted(map(set, rings), key=len)


def main() -> int:
    """Prints what is against the rules; 1 where there is something."""
    files = {module_of(file): file for file in sorted(SRC.rglob("*.rs"))}
    faults = []
    edges: dict[Module, set[Module]] = {}
    for module, file in files.items():
        text = file.read_text()
        name = file.relative_to(SRC)
        if not module or module[0] in TESTS or module[-1] == "tests":
            continue
        if text.count("\n") > LINES:
            faults.append(f"{name} has more than {LINES} lines")
        code = INLINE_TESTS.sub("", re.sub(r"//[^\n]*", "", text))
        edges[module] = imports(module, code, set(files))
        room = module[0]
        if room not in ROOMS:
            faults.append(f"{name} is in no room that cpu/rooms.py knows")
            continue
        for other in sorted({target[0] for target in edges[module]} - {room}):
            floor = ROOMS.index(other) if other in ROOMS else len(ROOMS)
            beside = (room in KERNELS and other in KERNELS) or (room, other) == ("lanes", "blas")
            if floor > ROOMS.index(room) or beside:
                faults.append(f"{name} imports from {other}, which {room} may not know")
    for circle in circles(edges):
        if any(module[0] != "lapack" for module in circle):
            names = ", ".join(sorted("/".join(module) for module in circle))
            faults.append(f"these import each other: {names}")
    print(*faults, sep="\n", end="\n" if faults else "")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
