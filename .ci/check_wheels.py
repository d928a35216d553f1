#!/usr/bin/env python3
"""Says whether the wheels of dist/ are what their tags promise, by reading the library inside.

    .ci/check_wheels.py [WHEEL ...]

For each: format and processor, the library's own name, that it exports what lapax.h declares, what
it imports and from where, the oldest system that it runs on, the signature without which macOS on
arm64 runs nothing, and the size. Needs lief, of the extra `wheels`. Exits with 1 where something is
not as it should be.
"""

from __future__ import annotations

import hashlib
import re
import struct
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import lief

ROOT = Path(__file__).resolve().parent.parent
HEADER = ROOT / "python" / "lapax" / "include" / "lapax.h"

LARGEST = {("linux", "x86_64"): 26 << 20}
"""Bytes of a wheel: what pip fetches for everybody, with or without a GPU. Here 18 MB are the CPU's
kernels for three kinds of registers, and 9 those for GPUs, compressed by nvcc."""

LARGEST_ELSEWHERE = 20 << 20

SYSTEM = {
    "linux": re.compile(r"(libc|libm|libgcc_s|libdl|librt|libpthread|ld-linux-[\w-]+)\.so\.\d+"),
    "macosx": re.compile(r"/usr/lib/(libSystem\.B|libiconv\.2)\.dylib"),
    "win": re.compile(
        r"(api-ms-win-[\w-]+|advapi32|bcryptprimitives|kernel32|msvcrt|ntdll|userenv|ws2_32)\.dll",
        re.IGNORECASE,
    ),
}
"""What every machine of a system has, and a library may therefore import."""

NAMES = {"linux": "liblapax.so", "macosx": "@rpath/liblapax.dylib", "win": "lapax.dll"}
"""What a library calls itself, which is what a program that links it looks for."""


@dataclass(frozen=True)
class Tag:
    """What the name of a wheel promises: a system, its oldest version, and a processor."""

    system: str
    oldest: tuple[int, int]
    processor: str

    @classmethod
    def of(cls, wheel: str) -> Tag:
        """That of a wheel's file name."""
        if found := re.fullmatch(r".*-(manylinux|macosx)_(\d+)_(\d+)_(\w+)\.whl", wheel):
            system, major, minor, processor = found.groups()
            system = "linux" if system == "manylinux" else system
            return cls(system, (int(major), int(minor)), processor)
        if found := re.fullmatch(r".*-win_(\w+)\.whl", wheel):
            return cls("win", (0, 0), found.group(1))
        raise ValueError(f"{wheel}: expected a tag of manylinux, macOS or Windows")


@dataclass(frozen=True)
class Library:
    """What a library says of itself, in the words of a [`Tag`]."""

    system: str
    oldest: tuple[int, int]
    processor: str
    name: str
    exported: frozenset[str]
    imported: frozenset[str]
    """The libraries."""
    unresolved: frozenset[str]
    """What it needs of none of these."""
    signed: bool
    """Or on a system that asks for no signature."""

    @classmethod
    def of(cls, data: bytes) -> Library:
        """That of the bytes of an ELF, Mach-O or PE file."""
        read = lief.parse(data)
        if isinstance(read, lief.ELF.Binary):
            versions = [
                tuple(int(part) for part in number.group(1).split(".")[:2])
                for needed in read.symbols_version_requirement
                for version in needed.get_auxiliary_symbols()
                if (number := re.fullmatch(r"GLIBC_([\d.]+)", version.name))
            ]
            processors = {lief.ELF.ARCH.X86_64: "x86_64", lief.ELF.ARCH.AARCH64: "aarch64"}
            name = read.get(lief.ELF.DynamicEntry.TAG.SONAME)
            return cls(
                "linux", max(versions, default=(0, 0)), processors[read.header.machine_type],
                name.name if isinstance(name, lief.ELF.DynamicSharedObject) else "",
                frozenset(symbol.name for symbol in read.exported_symbols),
                frozenset(map(str, read.libraries)),
                frozenset(
                    symbol.name for symbol in read.dynamic_symbols
                    if symbol.shndx == 0 and symbol.binding == lief.ELF.Symbol.BINDING.GLOBAL
                    and not (symbol.symbol_version and symbol.symbol_version.has_auxiliary_version)
                ),
                True,
            )  # fmt: skip
        if isinstance(read, lief.MachO.Binary):
            kinds = lief.MachO.LoadCommand.TYPE
            types = lief.MachO.Header.CPU_TYPE
            processor = {types.X86_64: "x86_64", types.ARM64: "arm64"}[read.header.cpu_type]
            oldest = read.build_version.minos if read.build_version else read.version_min.version
            own = [c.name for c in read.commands if c.command == kinds.ID_DYLIB]
            others = [it.name for it in read.libraries if it.command != kinds.ID_DYLIB]
            return cls(
                "macosx", (oldest[0], oldest[1]), processor, *own,
                frozenset(symbol.name.removeprefix("_") for symbol in read.exported_symbols),
                frozenset(others),
                # Libraries count from 1; zero and less stand for whatever the process has loaded.
                frozenset(it.name for it in read.imported_symbols if it.library_ordinal < 1),
                processor != "arm64" or is_signed(data, read),
            )  # fmt: skip
        if isinstance(read, lief.PE.Binary):
            processors = {lief.PE.Header.MACHINE_TYPES.AMD64: "amd64"}
            export = read.get_export()
            return cls(
                "win", (0, 0), processors[read.header.machine], export.name if export else "",
                frozenset(entry.name for entry in export.entries) if export else frozenset(),
                frozenset(map(str, read.libraries)), frozenset(), True,
            )  # fmt: skip
        raise ValueError("expected a library for Linux, macOS or Windows")


def is_signed(data: bytes, library: lief.MachO.Binary) -> bool:
    """Whether the hashes of its code directory (cs_blobs.h of XNU) are those of the file's pages,
    as macOS compares them when it loads a page.
    """
    if not library.has_code_signature:
        return False
    start = library.code_signature.data_offset
    (count,) = struct.unpack_from(">I", data, start + 8)
    for i in range(count):
        (offset,) = struct.unpack_from(">I", data, start + 16 + 8 * i)
        directory = start + offset
        magic, _, _, _, hashes, _, _, pages, limit, size, kind, _, shift = struct.unpack_from(
            ">9I4B", data, directory
        )
        if magic == 0xFADE0C02 and kind == 2:  # A code directory, of SHA-256.
            page, first = 1 << shift, directory + hashes
            return limit == start and all(
                hashlib.sha256(data[i * page : min((i + 1) * page, limit)]).digest()
                == data[first + i * size : first + (i + 1) * size]
                for i in range(pages)
            )
    return False


def declared(header: str) -> set[str]:
    """The functions of lapax.h."""
    return set(re.findall(r"^[^\s*/][^()]*?\b(lapax_\w+)\(", header, flags=re.M))


def faults(tag: Tag, library: Library, size: int, functions: set[str]) -> list[str]:
    """What of a wheel is not as its tag or the header says."""
    found = []
    for what in ("system", "processor"):
        expected, got = getattr(tag, what), getattr(library, what)
        if expected != got:
            found.append(f"{what}: expected {expected}, got {got}")
    if tag.system == library.system != "win" and library.oldest > tag.oldest:
        expected, got = (".".join(map(str, pair)) for pair in (tag.oldest, library.oldest))
        found.append(f"runs on {got} and later: expected {expected}")
    if library.name != NAMES[library.system]:
        found.append(f"own name: expected {NAMES[library.system]}, got {library.name!r}")
    if missing := functions - library.exported:
        found.append(f"lapax.h declares, and it does not export: {', '.join(sorted(missing))}")
    if foreign := sorted(n for n in library.imported if not SYSTEM[library.system].fullmatch(n)):
        found.append(f"imports what not every machine has: {', '.join(foreign)}")
    if library.unresolved:
        found.append(f"needs of no library: {', '.join(sorted(library.unresolved))}")
    if not library.signed:
        found.append("no code signature, or not that of its pages")
    if size > (largest := LARGEST.get((tag.system, tag.processor), LARGEST_ELSEWHERE)):
        found.append(f"size: expected at most {largest} bytes, got {size}")
    return found


def main(arguments: list[str]) -> int:
    """Reads the wheels; prints a line for each and its faults."""
    wheels = [Path(name) for name in arguments] or sorted((ROOT / "dist").glob("*.whl"))
    if not wheels:
        print("no wheel in dist/", file=sys.stderr)
        return 1
    functions, bad = declared(HEADER.read_text(encoding="utf-8")), 0
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            pattern = re.compile(r"/_native/.*lapax\.(so|dylib|dll)$")
            inside = [name for name in archive.namelist() if pattern.search(name)]
            if len(inside) != 1:
                print(f"{wheel.name}: expected one library, got {inside}")
                bad += 1
                continue
            library = Library.of(archive.read(inside[0]))
        found = faults(Tag.of(wheel.name), library, wheel.stat().st_size, functions)
        size = wheel.stat().st_size / 1e6
        print(f"{wheel.name}: {size:.1f} MB, {'; '.join(found) or 'as its tag says'}")
        bad += bool(found)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
