"""Programs for hosts outside Python, the paths that C needs, and StableHLO through jaxlib alone."""

from __future__ import annotations

import functools
import os
import pathlib
import re
import shutil
import struct
import subprocess

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lapax
from lapax import _export, _library
from lapax.__main__ import main
from programs import run_python

ROOT = pathlib.Path(__file__).resolve().parents[2]


def call_targets(text: str) -> set[str]:
    return set(re.findall(r"custom_call @([\w.]+)", text))


def test_export_writes_jaxlibs_names_and_the_version_asked_for(tmp_path):
    file = tmp_path / "program"
    command = ["export", "jax.numpy.linalg.solve", "f64[3,5,5]", "f64[3,5,2]", "-o", str(file)]
    assert main([*command, "--text"]) == 0
    assert call_targets(file.read_text()) == {"lapack_dgetrf_ffi", "lapack_dtrsm_ffi"}
    assert "tensor<3x5x5xf64>" in file.read_text()
    for version in ("1.9.0", "1.12.0"):
        assert main([*command, "--stablehlo", version]) == 0
        assert f"StableHLO_v{version}".encode() in file.read_bytes()[:64]


def test_export_keeps_lapaxs_own_names(tmp_path):
    def update(r, w):
        import lapax

        return lapax.ffi.cholesky_update(r, w)

    shapes = [jax.ShapeDtypeStruct(shape, np.float32) for shape in ((3, 3), (3,))]
    (name,) = call_targets(_export.program(update, shapes))
    assert name.removeprefix("lapax.") == "cu_cholesky_update_ffi"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["jax.numpy.nothing", "f32[2]", "--text"], "no function jax.numpy.nothing"),
        (["jax.numpy", "f32[2]", "--text"], "jax.numpy is not a function"),
        (["jax.numpy.linalg.inv", "f80[2,2]", "--text"], "expected dtype[sizes], such as"),
        (["jax.numpy.linalg.inv", "f32[2,2", "--text"], "expected dtype[sizes], such as"),
        (
            ["jax.numpy.linalg.inv", "f32[2,2]", "--stablehlo", "one"],
            "expected a StableHLO version",
        ),
        (
            ["jax.numpy.linalg.inv", "f32[2,2]", "--stablehlo", "99.0.0"],
            "expected a StableHLO version",
        ),
        (["jax.numpy.linalg.inv", "f32[2,2]", "--plugin", __file__], "is no PJRT plugin"),
        (
            ["jax.numpy.linalg.solve", "f64[3,5,5]", "--text"],
            "jax.numpy.linalg.solve takes (a, b), got 1 arrays: missing a required argument: 'b'",
        ),
        (
            ["jax.numpy.linalg.cholesky", "f64[3,3]", "f64[3,3]", "--text"],
            "jax.numpy.linalg.cholesky takes (a, upper, symmetrize_input), got 2 arrays: too many",
        ),
        (["jax.numpy.linalg.inv", "f64[3,4]", "--text"], "jax.numpy.linalg.inv of f64[3,4]: Value"),
        (["jax.numpy.linalg.inv", "i32[3]", "--text"], "jax.numpy.linalg.inv of i32[3]: "),
        (["builtins.float", "f64[3]", "--text"], "builtins.float of f64[3]: TypeError: "),
        (["inv", "f64[3,3]", "--text"], "no function inv: "),
        ([":inv", "f64[3,3]", "--text"], "no function :inv: "),
        (["jax.numpy.linalg.inv", "f64[,,3,,3]", "--text"], "got 'f64[,,3,,3]'"),
        (["jax.numpy.linalg.inv", "f64[3 3,3 3]", "--text"], "got 'f64[3 3,3 3]'"),
        (["jax.numpy.linalg.inv", "f64[-3,-3]", "--text"], "got 'f64[-3,-3]'"),
        (["jax.numpy.linalg.inv", "f64[3,]", "--text"], "got 'f64[3,]'"),
        (["jax.numpy.linalg.inv", f"f64[{2**63}]", "--text"], "expected sizes below 2**63"),
    ],
)
def test_export_says_what_is_wrong(words, message, tmp_path, capsys):
    file = tmp_path / "program"
    assert main(["export", *words, "--output", str(file)]) == 1
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said
    assert not file.exists()


def test_export_says_what_a_module_raises(tmp_path, monkeypatch, capsys):
    (tmp_path / "broken_module.py").write_text("nothing\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["export", "broken_module.f", "f32[2]", "--text", "-o", str(tmp_path / "x")]) == 1
    assert capsys.readouterr().err.startswith("no function broken_module.f: NameError: ")


def test_export_says_where_it_cannot_write(tmp_path, capsys):
    command = ["export", "jax.numpy.linalg.inv", "f32[2,2]", "--text", "-o"]
    for place in (tmp_path, tmp_path / "missing" / "program"):
        assert main([*command, str(place)]) == 1
        assert capsys.readouterr().err.startswith(f"{place} cannot be written: ")


@pytest.fixture(scope="session")
def plugin():
    """A PJRT plugin, with its header beside it in `include`."""
    path = os.environ.get("LAPAX_PJRT_PLUGIN")
    if not path:
        pytest.skip("no LAPAX_PJRT_PLUGIN; `make test` sets it")
    return pathlib.Path(path)


@pytest.fixture(scope="session")
def compiled(plugin, tmp_path_factory):
    """Compiles a program of examples/host by the flags that `paths` gives; where it is."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("no C compiler compiles the host")

    @functools.cache
    def compile_(name):
        program = tmp_path_factory.mktemp("host") / name
        flags = f"{_export.compile_flags()} {_export.link_flags()}".split()
        warnings = ["-std=c11", "-Wall", "-Wextra", "-Werror"]
        header = ["-isystem", plugin.parent / "include"]  # Not ours to be warned about.
        source = ROOT / "examples" / "host" / f"{name}.c"
        command = [compiler, *warnings, source, "-o", program, *flags, *header, "-ldl", "-lm"]
        subprocess.run(command, check=True)
        return program

    return compile_


def host(program, *words):
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "2"}
    return subprocess.run([program, *words], env=environment, capture_output=True, text=True)


def test_the_minimal_host(plugin, compiled, tmp_path):
    file = tmp_path / "cholesky.mlirbc"
    words = ["jax.numpy.linalg.cholesky", "f64[2,2]", "--plugin", str(plugin), "-o", str(file)]
    assert main(["export", *words]) == 0
    done = host(compiled("minimal"), plugin, file)
    assert (done.returncode, done.stdout) == (0, "2 0\n1 2\n"), done.stderr
    assert host(compiled("minimal"), plugin).returncode == 2
    refused = host(compiled("minimal"), _library.path(), file)
    assert (refused.returncode, refused.stderr) == (2, "usage: minimal plugin.so cholesky.mlirbc\n")


@pytest.mark.parametrize(
    ("function", "args", "outputs"),
    [
        ("jax.numpy.linalg.solve", ["{a}", "f64[3,4,2]"], 1),
        ("jax.numpy.linalg.eigh", ["c64[4,4]"], 2),
        ("jax.scipy.linalg.lu_factor", ["f32[5,5]"], 2),
        ("jax.numpy.linalg.svd", ["f64[2,6,4]"], 3),
    ],
)
def test_a_host_runs_what_was_just_exported(function, args, outputs, plugin, compiled, tmp_path):
    a = tmp_path / "a.npy"
    np.save(a, np.arange(48.0).reshape(3, 4, 4) + 9 * np.eye(4))
    file = tmp_path / "program.mlirbc"
    args = [arg.format(a=a) for arg in args]
    words = [function, *args, "--plugin", str(plugin), "--with-data", "-o", str(file)]
    assert main(["export", *words]) == 0
    done = host(compiled("host"), plugin, file, file.with_suffix(".data"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall("^output", done.stdout, re.M)) == outputs


def test_the_data_are_those_of_the_files(tmp_path, capsys):
    a, b = np.array([[4.0, 1.0], [2.0, 3.0]], np.float32), np.array([1.0, 2.0], np.float32)
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    files = [str(tmp_path / name) for name in ("a.npy", "b.npy")]
    file = tmp_path / "x.mlir"
    words = ["export", "jax.numpy.linalg.solve", *files, "--text", "--with-data", "-o", str(file)]
    assert main(words) == 0
    assert (
        capsys.readouterr()
        .out.splitlines()[1]
        .startswith(f"{tmp_path / 'x.data'}: 2 arguments, 1 answers, ")
    )
    data = file.with_suffix(".data").read_bytes()
    assert struct.unpack_from("<qq", data) == (2, 1)
    assert struct.unpack_from("<8sdqqq", data, 16) == (b"f32" + bytes(5), 0.0, 2, 2, 2)
    assert data[56:72] == a.tobytes()
    assert struct.unpack_from("<8sdqq", data, 72) == (b"f32" + bytes(5), 0.0, 1, 2)
    assert data[104:112] == b.tobytes()
    name, tolerance, rank, size = struct.unpack_from("<8sdqq", data, 112)
    assert (name.rstrip(b"\0"), rank, size) == (b"f32", 1, 2)
    assert tolerance == pytest.approx(200 * np.finfo(np.float32).eps)
    x = np.frombuffer(data[144:], np.float32)
    np.testing.assert_allclose(x, np.linalg.solve(a, b), rtol=1e-5)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["{missing}.npy"], "missing.npy cannot be read: "),
        (["{broken}.npy"], "broken.npy cannot be read: "),
        (["{half}.npy"], "half.npy: expected dtype f32, f64, c64, c128, i32, got f16"),
        (["i32[3,3]"], "no numbers are made up for i32[3, 3]: give them as a .npy file"),
        (["f16[3,3]"], "no numbers are made up for f16[3, 3]: give them as a .npy file"),
    ],
)
def test_export_says_what_is_wrong_with_data(words, message, tmp_path, capsys):
    (tmp_path / "broken.npy").write_text("nothing")
    np.save(tmp_path / "half.npy", np.zeros((3, 3), np.float16))
    places = {name: tmp_path / name for name in ("missing", "broken", "half")}
    words = [word.format(**places) for word in words]
    command = ["export", "jax.numpy.negative", *words, "--text", "--with-data", "-o"]
    assert main([*command, str(tmp_path / "x")]) == 1
    assert message in capsys.readouterr().err
    if "npy" not in words[0]:
        assert main(["export", "jax.numpy.linalg.inv", "f32[2,2]", *command[3:], "x.data"]) == 1
        assert "x.data: the data are to be in a file of that name" in capsys.readouterr().err
    assert list(tmp_path.glob("x*")) == []


@pytest.mark.parametrize("text", ["f64[]", "f64[3]", "c128[3, 5,5]", "bool[0,2]"])
def test_shapes_of_the_command_line(text):
    shape = _export.shape(text)
    sizes = re.findall(r"\d+", text.partition("[")[2])
    assert shape.shape == tuple(map(int, sizes))


def test_a_plugin_states_its_version(plugin):
    assert re.fullmatch(r"1\.\d+\.\d+", _export.readable_version(plugin))


def test_paths(capsys):
    assert main(["paths"]) == 0
    lines = dict(line.split(":", 1) for line in capsys.readouterr().out.splitlines())
    assert pathlib.Path(lines["library"].strip()) == _library.path()
    header = pathlib.Path(lines["header"].strip())
    assert "lapax_register_pjrt" in header.read_text()
    assert main(["paths", "--cflags", "--libs"]) == 0
    flags = capsys.readouterr().out.split()
    assert flags[0] == f"-I{header.parent}"
    assert f"-L{_library.path().resolve().parent}" in flags


ASKS = """
#include <stdio.h>
#include "lapax.h"
int main(void) { puts(lapax_version()); }
"""


def tool(name):
    found = shutil.which(os.environ.get("CC", name) if name == "cc" else name)
    if found is None:
        pytest.skip(f"no {name} here")
    return found


def printed(*words, cwd=None, **environment):
    """What a command prints; fails with its errors."""
    done = subprocess.run(
        words, env=os.environ | environment, capture_output=True, text=True, cwd=cwd
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def packaged():
    if os.environ.get(_library.OVERRIDE):
        pytest.skip(f"{_library.OVERRIDE} names another library than the package's")


def test_pkg_config(tmp_path, capsys):
    packaged()
    pkg_config, compiler = tool("pkg-config"), tool("cc")
    assert main(["paths", "--pkgconfig"]) == 0
    place = {"PKG_CONFIG_PATH": capsys.readouterr().out.strip()}
    version = printed(pkg_config, "--modversion", "lapax", **place).strip()
    assert version == lapax.__version__
    flags = printed(pkg_config, "--cflags", "--libs", "lapax", **place).split()
    (tmp_path / "asks.c").write_text(ASKS)
    printed(compiler, tmp_path / "asks.c", "-o", tmp_path / "asks", *flags)
    assert printed(tmp_path / "asks").strip() == lapax.__version__


def test_cmake(tmp_path, capsys):
    packaged()
    cmake, _ = tool("cmake"), tool("cc")
    assert main(["paths", "--cmake"]) == 0
    folder = capsys.readouterr().out.strip()
    (tmp_path / "asks.c").write_text(ASKS)
    minor = ".".join(lapax.__version__.split(".")[:2])
    lines = [
        "cmake_minimum_required(VERSION 3.15)",
        "project(asks C)",
        f"find_package(lapax {minor} REQUIRED CONFIG)",
        "add_executable(asks asks.c)",
        "target_link_libraries(asks lapax::lapax)",
    ]
    (tmp_path / "CMakeLists.txt").write_text("\n".join(lines))
    build = tmp_path / "build"
    printed(cmake, "-S", tmp_path, "-B", build, f"-Dlapax_DIR={folder}")
    printed(cmake, "--build", build)
    assert printed(build / "asks").strip() == lapax.__version__
    (tmp_path / "CMakeLists.txt").write_text("\n".join(lines).replace(f"lapax {minor}", "lapax 99"))
    with pytest.raises(AssertionError, match="lapax"):
        printed(cmake, "-S", tmp_path, "-B", build, f"-Dlapax_DIR={folder}")


def test_windows_links_with_the_library_itself(tmp_path):
    """The wheel for Windows has no import library; one function stands for its lapax.dll here."""
    compiler, reader = tool("x86_64-w64-mingw32-gcc"), tool("x86_64-w64-mingw32-objdump")
    cmake, pkg_config = tool("cmake"), tool("pkg-config")
    package = tmp_path / "lapax"
    for folder in (_export.INCLUDE, _export.PKGCONFIG, _export.CMAKE):
        shutil.copytree(folder, package / folder.name)
    library = package / "_native" / "lapax" / "lapax.dll"
    library.parent.mkdir(parents=True)
    (tmp_path / "one.c").write_text('const char *lapax_version(void) { return "1.2.3"; }')
    printed(compiler, "-shared", tmp_path / "one.c", "-o", library)
    (tmp_path / "asks.c").write_text(ASKS)
    place = {"PKG_CONFIG_PATH": str(package / "pkgconfig")}
    flags = printed(pkg_config, "--cflags", "--libs", "lapax", **place).split()
    printed(compiler, tmp_path / "asks.c", "-o", tmp_path / "asks.exe", *flags)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.15)\nproject(asks C)\n"
        "find_package(lapax REQUIRED CONFIG)\nadd_executable(built asks.c)\n"
        "target_link_libraries(built lapax::lapax)\n"
    )
    build = tmp_path / "build"
    chosen = {
        "CMAKE_SYSTEM_NAME": "Windows",
        "CMAKE_C_COMPILER": compiler,
        "lapax_DIR": package / "cmake",
    }
    defined = [f"-D{name}={value}" for name, value in chosen.items()]
    printed(cmake, "-S", tmp_path, "-B", build, *defined)
    printed(cmake, "--build", build)
    for program in (tmp_path / "asks.exe", build / "built.exe"):
        assert "DLL Name: lapax.dll\n" in printed(reader, "-p", program)


POINTERS = """
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **words) {
  void *lapax = dlopen(words[1], RTLD_NOW), *plugin = count > 2 ? dlopen(words[2], RTLD_NOW) : 0;
  const void *(*handler)(const char *, const char *);
  char *(*enter)(const char *, void *, void *, void *);
  *(void **)&handler = dlsym(lapax, "lapax_handler");
  *(void **)&enter = dlsym(lapax, "lapax_register_plugin");
  char *refusal = enter(count > 2 ? words[2] : "missing.so", 0, 0, 0);
  printf("%d %d %s\\n", !!handler("lapack_dpotrf_ffi", "cpu"), !!plugin, refusal ? refusal : "ok");
}
"""


def test_by_pointers_as_julia_calls(plugin, tmp_path):
    text = (ROOT / "examples" / "host" / "julia.jl").read_text()
    assert set(re.findall(r"dlsym\(lapax, :(\w+)\)", text)) == {
        "lapax_handler", "lapax_register_plugin", "lapax_free"
    }  # fmt: skip
    (tmp_path / "pointers.c").write_text(POINTERS)
    printed(tool("cc"), tmp_path / "pointers.c", "-o", tmp_path / "pointers", "-ldl")
    assert printed(tmp_path / "pointers", _library.path(), plugin) == "1 1 ok\n"
    said = printed(tmp_path / "pointers", _library.path())
    assert said == "1 0 missing.so is not loaded in this process\n"


def flags():
    return {
        "CGO_CFLAGS": _export.compile_flags(),
        "CGO_LDFLAGS": _export.link_flags(),
        "CGO_LDFLAGS_ALLOW": "-Wl,-rpath,.*",
        "PKG_CPPFLAGS": _export.compile_flags(),
        "PKG_LIBS": _export.link_flags(),
    }


def test_a_host_in_go(plugin, tmp_path):
    go = tool("go")
    tool("cc")
    source, program = ROOT / "examples" / "host" / "go", tmp_path / "host"
    places = {"GOCACHE": str(tmp_path / "cache"), "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}
    printed(go, "build", "-o", program, ".", cwd=source, **places, **flags())
    count = len(lapax.targets())
    assert printed(program, plugin) == f"lapax {lapax.__version__}: {count} targets\n"
    done = host(program, _library.path())
    assert (done.returncode, done.stderr) == (
        1, f"{_library.path()} is no PJRT plugin: it has no symbol GetPjrtApi\n"
    )  # fmt: skip
    assert host(program, "missing.so").returncode == 1


def test_a_host_in_r(plugin, tmp_path):
    r, rscript = tool("R"), tool("Rscript")
    tool("cc")
    for file in (ROOT / "examples" / "host" / "r").iterdir():
        shutil.copy(file, tmp_path)
    printed(r, "CMD", "SHLIB", "lapax.c", cwd=tmp_path, **flags())
    cpu = lapax.targets("cpu")
    expected = f"{len(cpu)} handlers, such as {cpu[0].name} externalptr \n"
    assert printed(rscript, tmp_path / "lapax.R", plugin).endswith(expected)
    assert printed(rscript, tmp_path / "lapax.R").endswith(expected)
    done = host(rscript, tmp_path / "lapax.R", _library.path())
    assert done.returncode == 1
    assert "is no PJRT plugin: it has no symbol GetPjrtApi" in done.stderr


def test_raw_stablehlo_through_jaxlib_without_jax():
    """jaxlib compiles and runs StableHLO text whose calls lapax serves; jax is not imported."""
    text = _export.program(jnp.linalg.cholesky, [jax.ShapeDtypeStruct((2, 3, 3), np.float32)])
    code = f"""
import ctypes, sys
import numpy as np
from jaxlib import _jax, xla_client
library = ctypes.CDLL({str(_library.path())!r})
library.lapax_handler.restype = ctypes.c_void_p
capsule = ctypes.pythonapi.PyCapsule_New
capsule.restype = ctypes.py_object
capsule.argtypes = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
name = b"lapack_spotrf_ffi"
handler = capsule(library.lapax_handler(name, b"cpu"), b"xla._CUSTOM_CALL_TARGET", None)
xla_client.register_custom_call_target(name.decode(), handler, platform="cpu", api_version=1)
backend = xla_client.make_cpu_client()
device = backend.local_devices()[:1]
program = backend.compile_and_load({text!r}, device, xla_client.CompileOptions())
a = np.array([[[4, 2, 0], [2, 5, 1], [0, 1, 3]]] * 2, np.float32)
x = _jax.dlpack_managed_tensor_to_buffer(a.__dlpack__(), device[0], None)
(l,) = program.execute([x])
l = l._single_device_array_to_np_array_did_copy()[0]
print(np.abs(l @ l.swapaxes(1, 2) - a).max() < 1e-5, "jax" in sys.modules)
"""
    assert run_python(code) == "True False\n"
