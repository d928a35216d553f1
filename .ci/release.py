#!/usr/bin/env python3
"""What a release needs: `.ci/release.py check v0.1.0 | notes | readme | address URL`.

check    that the tag, the manifests, CITATION.cff and the changelog name one version, and that the
         repository's address is no placeholder
notes    the changelog's section of this version, for the release's page
readme   absolute links in README.md: where a package is shown, there are no files beside it
address  writes another address of the repository wherever the present one stands
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACEHOLDER = "example.org"
"""Reserved for examples: an address there is one that nobody has chosen yet."""


def workspace(root: Path) -> dict[str, str]:
    """What all crates share: version, repository, …."""
    manifest = tomllib.loads((root / "Cargo.toml").read_text(encoding="utf-8"))
    return manifest["workspace"]["package"]


def faults(root: Path, tag: str) -> list[str]:
    """Why this tree is not to be released under this tag; empty where it is."""
    package = workspace(root)
    version = package["version"]
    found = []
    if tag != f"v{version}":
        found.append(
            f"the tag is {tag}, Cargo.toml's version {version}: expected the tag v{version}"
        )
    if cited(root) != version:
        found.append(f"CITATION.cff is of {cited(root)}, Cargo.toml of {version}")
    if not notes(root):
        found.append(f"CHANGELOG.md has nothing under `## {version}`")
    if PLACEHOLDER in package["repository"]:
        found.append(
            f"{package['repository']} is a placeholder: `.ci/release.py address URL` writes another"
        )
    return found


def cited(root: Path) -> str | None:
    """The version that CITATION.cff names."""
    text = (root / "CITATION.cff").read_text(encoding="utf-8")
    match = re.search(r'^version: "?([\w.]+)"?$', text, re.MULTILINE)
    return match and match[1]


def notes(root: Path) -> str:
    """The changelog's section of this version; empty where it has none."""
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    version = re.escape(workspace(root)["version"])
    match = re.search(rf"^## {version}\b[^\n]*\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    return match[1].strip() if match else ""


def absolute_links(text: str, repository: str, version: str) -> str:
    """Markdown whose relative links lead to the repository's files of this version."""

    def absolute(link: re.Match[str]) -> str:
        kind = "raw" if link[1] == "!" else "blob"
        return f"{link[1]}[{link[2]}]({repository}/{kind}/v{version}/{link[3]})"

    return re.sub(r"(!?)\[([^\[\]]*)\]\((?!\w+:|#)([^)\s]+)\)", absolute, text)


def moved(root: Path, address: str) -> list[str]:
    """Writes the address in place of the present one, in every tracked file; returns which."""
    present = workspace(root)["repository"]
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True
    )
    changed = []
    for name in filter(None, listed.stdout.split("\0")):
        path = root / name
        if not path.is_file() or path.is_symlink():
            continue
        old = path.read_bytes()
        new = old.replace(present.encode(), address.rstrip("/").encode())
        if new != old:
            path.write_bytes(new)
            changed.append(name)
    return changed


def main(arguments: list[str]) -> int:
    """Runs one command; returns the exit status: 0 success, 1 not to be released, 2 wrong usage."""
    match arguments:
        case ["check", tag]:
            found = faults(ROOT, tag)
            print("\n".join(found) or f"{tag} can be released")
            return 1 if found else 0
        case ["notes"]:
            print(notes(ROOT))
        case ["readme"]:
            package = workspace(ROOT)
            readme = ROOT / "README.md"
            text = readme.read_text(encoding="utf-8")
            text = absolute_links(text, package["repository"], package["version"])
            readme.write_text(text, encoding="utf-8")
        case ["address", address] if re.fullmatch(r"https://[^\s/]+/\S+", address):
            print("\n".join(moved(ROOT, address)))
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
