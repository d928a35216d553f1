#!/usr/bin/env python3
"""What a program in C needs of each wheel, for who has neither Python nor cargo, in out/c/.

    .ci/c_archive.py [WHEEL ...]    those of dist/, where none is named

`lapax-c-<version>-<platform>.tar.gz` is the library, lapax.h, lapax.pc, lapaxConfig.cmake and the
licences as they lie in the wheel, so that both files find the library as they do there.
"""

from __future__ import annotations

import re
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TAKEN = re.compile(
    r"lapax/(?P<kept>(?:_native/lapax/\w+\.(?:so|dylib|dll)|(?:include|pkgconfig|cmake)/[\w.]+))"
    r"|lapax-[^/]*\.dist-info/licenses/(?P<licence>LICENSE-\w+)"
)


def archive(wheel: Path, folder: Path) -> Path:
    """Writes the archive of a wheel; where it is."""
    name, version, *_, platform = wheel.stem.split("-")
    root = f"{name}-c-{version}-{platform}"
    written = folder / f"{root}.tar.gz"
    kinds = set()
    with zipfile.ZipFile(wheel) as source, tarfile.open(written, "w:gz") as target:
        for info in source.infolist():
            found = TAKEN.fullmatch(info.filename)
            if not found:
                continue
            place = found["kept"] or found["licence"]
            kinds.add(place.partition("/")[0].partition("-")[0])
            member = tarfile.TarInfo(f"{root}/{place}")
            member.size, member.mode = info.file_size, 0o644
            with source.open(info) as content:
                target.addfile(member, content)
    if missing := {"_native", "include", "pkgconfig", "cmake", "LICENSE"} - kinds:
        written.unlink()
        raise ValueError(f"{wheel.name}: nothing of {', '.join(sorted(missing))} inside")
    return written


def main(arguments: list[str]) -> int:
    """Writes the archives and prints where they are."""
    wheels = [Path(name) for name in arguments] or sorted((ROOT / "dist").glob("*.whl"))
    if not wheels:
        print("no wheel in dist/", file=sys.stderr)
        return 1
    folder = ROOT / "out" / "c"
    folder.mkdir(parents=True, exist_ok=True)
    for wheel in wheels:
        print(archive(wheel, folder).relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
