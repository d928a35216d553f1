"""What is published agrees with itself: versions, addresses, licences, links, workflows."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = ["ffi/macros", "ffi", "core", "cpu/macros", "cpu", "cuda", "."]
CRATE = ROOT / "ffi" / "src" / "lib.rs"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def script(name: str) -> Any:
    """A script of .ci as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


release, c_archive = script("release"), script("c_archive")


def toml(path: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / path).read_text(encoding="utf-8"))


WORKSPACE = toml("Cargo.toml")["workspace"]
VERSION, REPOSITORY = WORKSPACE["package"]["version"], WORKSPACE["package"]["repository"]


def tracked(pattern: str) -> list[Path]:
    """Files of the repository; those of the folder, where it is no repository."""
    listed = subprocess.run(
        ["git", "ls-files", pattern], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("no git repository to list the files of")
    return [ROOT / name for name in listed.stdout.splitlines()]


def test_every_crate_is_published_or_says_not() -> None:
    members = {".", *WORKSPACE["members"]}
    kept = {it for it in members if toml(f"{it}/Cargo.toml")["package"].get("publish") is False}
    assert members - kept == set(PUBLISHED)


@pytest.mark.parametrize("crate", PUBLISHED)
def test_a_manifest_says_what_registries_show(crate: str) -> None:
    package = toml(f"{crate}/Cargo.toml")["package"]
    shared = ["version", "rust-version", "license", "authors", "repository", "homepage", "edition"]
    assert all(package[key] == {"workspace": True} for key in shared)
    assert package["documentation"] == f"https://docs.rs/{package['name']}"
    assert package["description"]
    # The registry's limits.
    assert 0 < len(package["keywords"]) <= 5
    assert all(re.fullmatch(r"[a-z][\w+-]{,19}", word) for word in package["keywords"])
    assert 0 < len(package["categories"]) <= 5
    assert (ROOT / crate / package["readme"]).is_file()


@pytest.mark.parametrize("crate", PUBLISHED)
def test_a_package_has_its_licences(crate: str) -> None:
    for name in ("LICENSE-APACHE", "LICENSE-MIT"):
        assert (ROOT / crate / name).read_bytes() == (ROOT / name).read_bytes()


def test_one_version() -> None:
    for name, needed in WORKSPACE["dependencies"].items():
        if "path" in needed and name != "lapax-cuda-fake":
            assert needed["version"] == VERSION, name
    assert release.cited(ROOT) == VERSION
    package = ROOT / "python" / "lapax"
    assert f"\nVersion: {VERSION}\n" in (package / "pkgconfig" / "lapax.pc").read_text()
    version = (package / "cmake" / "lapaxConfigVersion.cmake").read_text()
    assert f'\nset(PACKAGE_VERSION "{VERSION}")\n' in version
    shown = re.findall(
        r'^xla-ffi = (?:\{ version = )?"([\d.]+)"',
        (ROOT / "docs" / "writing-a-target.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert shown
    assert all(f"{VERSION}.".startswith(f"{it}.") for it in shown)


def test_one_address() -> None:
    """The present one, and no other of the placeholder's host."""
    names = ["CITATION.cff", "pyproject.toml", ".github/ISSUE_TEMPLATE/config.yml"]
    assert all(REPOSITORY in (ROOT / name).read_text(encoding="utf-8") for name in names)
    for path in tracked("*"):
        text = path.read_bytes() if path.is_file() and path != Path(__file__) else b""
        for address in re.findall(rb"https?://example\.org[\w./-]*", text):
            assert address.decode().startswith(REPOSITORY), path


def test_links_lead_to_files() -> None:
    dead = []
    for path in filter(lambda path: not path.is_symlink(), tracked("*.md")):
        text = re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        for link in re.findall(r"\]\((?!\w+:|#)([^)#\s]+)", text):
            if not (path.parent / link).exists():
                dead.append(f"{path.relative_to(ROOT)}: {link}")
    assert dead == []


def test_pages_in_rustdoc_have_no_relative_links() -> None:
    """The crate's documentation has no files beside them."""
    pages = re.findall(
        r'include_str!\("\.\./(\S+)"\)\]\npub mod', CRATE.read_text(encoding="utf-8")
    )
    assert pages
    for page in pages:
        assert "](../" not in (CRATE.parents[1] / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_calls_what_is_there(workflow: Path) -> None:
    text = workflow.read_text(encoding="utf-8")
    targets = re.findall(
        r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert set(re.findall(r"run: make ([\w-]+)", text)) <= set(targets)
    for script in re.findall(r"(?<![\w/])(\.ci/\w+(?:\.\w+)?)", text):
        assert (ROOT / script).stat().st_mode & 0o111, script
    for called in re.findall(r"uses: \./(\S+)", text):
        assert (ROOT / called).is_file()
    pinned = re.findall(r"uses: ([^.\s]\S*)", text)
    assert all(
        re.fullmatch(r"[\w-]+/[\w./-]+@(v\d+|release/v\d+|[0-9a-f]{40})", it) for it in pinned
    )
    # Nothing gets more than it asks for.
    assert re.search(r"^permissions:\n  contents: read\n", text, re.MULTILINE)
    assert text.count("persist-credentials: false") == text.count("actions/checkout@")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository of version 1.2.3 that can be released."""
    address = "https://forge.test/somebody/lapax"
    (tmp_path / "Cargo.toml").write_text(
        f'[workspace.package]\nversion = "1.2.3"\nrepository = "{address}"\n'
    )
    (tmp_path / "CITATION.cff").write_text(f"version: 1.2.3\nrepository-code: {address}\n")
    (tmp_path / "CHANGELOG.md").write_text(
        "# C\n\n## 1.2.3 (today)\n\n- New.\n\n## 1.2.2\n\n- Old.\n"
    )
    return tmp_path


def test_release_names_one_version(tree: Path) -> None:
    assert release.faults(tree, "v1.2.3") == []
    assert release.notes(tree) == "- New."
    assert len(release.faults(tree, "v1.2.4")) == 1
    (tree / "CHANGELOG.md").write_text("## Unreleased\n\n- New.\n")
    (tree / "CITATION.cff").write_text("version: 1.2.2\n")
    assert len(release.faults(tree, "v1.2.4")) == 3


def test_release_refuses_the_placeholder(tree: Path) -> None:
    manifest = tree / "Cargo.toml"
    manifest.write_text(manifest.read_text().replace("forge.test", release.PLACEHOLDER))
    (fault,) = release.faults(tree, "v1.2.3")
    assert "placeholder" in fault


def test_address_is_written_everywhere(tree: Path) -> None:
    subprocess.run(["git", "init", "--quiet"], cwd=tree, check=True)
    subprocess.run(["git", "add", "."], cwd=tree, check=True)
    assert release.moved(tree, "https://other.test/lapax/") == ["CITATION.cff", "Cargo.toml"]
    assert release.workspace(tree)["repository"] == "https://other.test/lapax"
    assert "repository-code: https://other.test/lapax\n" in (tree / "CITATION.cff").read_text()


def test_links_of_a_shown_readme_are_absolute() -> None:
    text = "[a](docs/a.md#b) [c](#c) [d](https://d.test) ![e](e.svg)"
    assert release.absolute_links(text, "https://f.test/g", "1.2.3") == (
        "[a](https://f.test/g/blob/v1.2.3/docs/a.md#b) [c](#c) [d](https://d.test) "
        "![e](https://f.test/g/raw/v1.2.3/e.svg)"
    )


@pytest.mark.parametrize("library", ["liblapax.so", "liblapax.dylib", "lapax.dll"])
def test_an_archive_for_c_is_what_the_wheel_has(library: str, tmp_path: Path) -> None:
    package = ROOT / "python" / "lapax"
    kept = {
        f"_native/lapax/{library}": b"machine code",
        "include/lapax.h": (package / "include" / "lapax.h").read_bytes(),
        **{
            f"{path.parent.name}/{path.name}": path.read_bytes()
            for folder in ("cmake", "pkgconfig")
            for path in (package / folder).iterdir()
        },
    }
    left = {"lapax/_native/lapax/ffi.py": b"", "lapax/__init__.py": b"", "numpy.libs/x.so": b""}
    licences = {name: (ROOT / name).read_bytes() for name in ("LICENSE-APACHE", "LICENSE-MIT")}
    files = {f"lapax/{name}": data for name, data in kept.items()} | {
        f"lapax-1.2.3.dist-info/licenses/{name}": data for name, data in licences.items()
    }
    wheel = tmp_path / "lapax-1.2.3-py3-none-win_amd64.whl"
    with zipfile.ZipFile(wheel, "w") as target:
        for name, data in (files | left).items():
            target.writestr(name, data)
    with tarfile.open(c_archive.archive(wheel, tmp_path)) as source:
        found = {it.name: source.extractfile(it).read() for it in source}
    root = "lapax-c-1.2.3-win_amd64"
    assert found == {f"{root}/{name}": data for name, data in (kept | licences).items()}


def test_an_archive_for_c_is_whole(tmp_path: Path) -> None:
    wheel = tmp_path / "lapax-1.2.3-py3-none-win_amd64.whl"
    with zipfile.ZipFile(wheel, "w") as target:
        target.writestr("lapax/include/lapax.h", "")
    with pytest.raises(ValueError, match=r"nothing of LICENSE, _native, cmake, pkgconfig inside$"):
        c_archive.archive(wheel, tmp_path)
    assert list(tmp_path.iterdir()) == [wheel]
