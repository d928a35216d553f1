"""The command line: `python -m lapax targets | doctor | explain | run | bench | export | …`."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from lapax import _doctor, _library, _render
from lapax._table import targets


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit status: 0 success, 1 a check failed, 2 wrong usage."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["bench"]:
        from lapax import bench  # Its own command line, and nobody else needs it loaded.

        return bench.main(arguments[1:])
    if arguments[:1] == ["run"]:
        from lapax import _run

        return _run.main(arguments[1:])
    if arguments[:1] == ["tune-gpu"]:
        from lapax import _tune

        return _tune.main(arguments[1:])
    options = _parser().parse_args(arguments)
    if options.command == "targets":
        return _targets(options)
    if options.command == "stubs":
        return _stubs(options)
    if options.command == "linalg":
        print(_render.linalg(), end="")
        return 0
    if options.command == "export":
        return _export(options)
    if options.command == "explain":
        return _explain(options)
    if options.command == "paths":
        return _paths(options)
    if options.command == "route":
        return _route(options)
    return _doctor.run(verbose=options.verbose, as_json=options.json)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lapax", description="lapax's command line")
    parser.add_argument("--version", action="version", version=f"lapax {_library.version()}")
    commands = parser.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("targets", help="list the custom-call targets of liblapax")
    listing.add_argument("--platform", choices=["cpu", "cuda"], help="only this platform's")
    listing.add_argument("--markdown", action="store_true", help="as docs/targets.md")
    doctor = commands.add_parser("doctor", help="report versions and self-test every target")
    doctor.add_argument("--verbose", action="store_true", help="also what no GPU was found by")
    doctor.add_argument("--json", action="store_true", help="the report as one JSON object")
    stubs = commands.add_parser("stubs", help="write ffi.pyi from the table")
    stubs.add_argument("--check", action="store_true", help="only fail where it is not current")
    commands.add_parser("linalg", help="print docs/linalg.md: all functions of lapax.linalg")
    commands.add_parser("bench", help="time the targets beside jaxlib's", add_help=False)
    _export_parser(commands.add_parser("export", help="write a program for hosts outside Python"))
    _explain_parser(commands.add_parser("explain", help="list the custom calls of a program"))
    commands.add_parser("run", help="run a program whose JAX computes on lapax", add_help=False)
    commands.add_parser("tune-gpu", help="measure which kernels this GPU is to use", add_help=False)
    route = commands.add_parser("route", help="say which kernel serves a call on this processor")
    route.add_argument("routine", help="such as lu, eigh, getrf")
    route.add_argument("dtype", choices=["f32", "f64", "c64", "c128"])
    route.add_argument("sizes", nargs="+", type=int, help="n, or m and n, or n and nrhs")
    route.add_argument("--batch", type=int, default=1, help="how many matrices; 1 by default")
    paths = commands.add_parser("paths", help="print where the library and its C header are")
    paths.add_argument("--cflags", action="store_true", help="print the C compiler's flags")
    paths.add_argument("--libs", action="store_true", help="print the linker's flags")
    paths.add_argument("--pkgconfig", action="store_true", help="print the folder of lapax.pc")
    paths.add_argument("--cmake", action="store_true", help="print that of lapaxConfig.cmake")
    return parser


def _program_parser(parser: argparse.ArgumentParser) -> None:
    """A function, its arguments and a platform."""
    parser.add_argument("function", help="such as jax.numpy.linalg.cholesky or module:name")
    parser.add_argument(
        "args",
        nargs="+",
        metavar="argument",
        help="dtype[sizes], such as f64[3,5,5], or a file such as a.npy",
    )
    parser.add_argument("--platform", choices=["cpu", "cuda"], default="cpu")


def _explain_parser(parser: argparse.ArgumentParser) -> None:
    _program_parser(parser)
    parser.add_argument("--stock", action="store_true", help="of stock JAX, without install()")


def _export_parser(parser: argparse.ArgumentParser) -> None:
    _program_parser(parser)
    parser.add_argument("--output", "-o", type=Path, required=True, help="the file to write")
    parser.add_argument(
        "--with-data",
        action="store_true",
        help="write the arguments and lapax's answers, too, for examples/host; "
        "of arguments without a file they are made up",
    )
    form = parser.add_mutually_exclusive_group(required=True)
    form.add_argument(
        "--plugin", type=Path, help="for the StableHLO version this PJRT plugin reads"
    )
    form.add_argument("--stablehlo", metavar="VERSION", help="of this version, such as 1.9.0")
    form.add_argument("--text", action="store_true", help="as text, which is of no fixed version")


def _targets(options: argparse.Namespace) -> int:
    chosen = targets(options.platform)
    print(_render.markdown(chosen) if options.markdown else _render.listing(chosen), end="")
    return 0


def _export(options: argparse.Namespace) -> int:
    from lapax import _data, _export

    files: list[tuple[Path, bytes, str]] = []
    try:
        with _called(options) as (function, args):
            text = _export.program(function, args, platform=options.platform)
            if options.with_data:
                numbers = _data.filled(args)
                answers = _data.answered(function, numbers)
        version = options.stablehlo
        if options.plugin:
            version = _export.readable_version(options.plugin)
        code = text.encode() if options.text else _export.portable(text, version)
        files.append((options.output, code, "text" if options.text else f"StableHLO {version}"))
        if options.with_data:
            counts = f"{len(numbers)} arguments, {len(answers)} answers"
            files.append((_beside(options.output), _data.data(numbers, answers), counts))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    for file, content, what in files:
        try:
            file.write_bytes(content)
        except OSError as error:
            print(f"{file} cannot be written: {error.strerror}", file=sys.stderr)
            return 1
        print(f"{file}: {what}, {len(content)} bytes")
    return 0


def _beside(program: Path) -> Path:
    """The file of a program's data."""
    data = program.with_suffix(".data")
    if data == program:
        raise ValueError(f"{program}: the data are to be in a file of that name")
    return data


def _explain(options: argparse.Namespace) -> int:
    from lapax._explain import explain
    from lapax._install import installed

    try:
        served = contextlib.nullcontext() if options.stock else installed()
        with _called(options) as (function, args), served:
            print(explain(function, *args, platform=options.platform))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


@contextlib.contextmanager
def _called(options: argparse.Namespace) -> Iterator[tuple[Callable[..., Any], Sequence[Any]]]:
    """The function and its arguments or their shapes, in a block in which JAX has their dtypes.

    Raises ValueError where there is none, and for all that is raised in the block.
    """
    import jax

    from lapax import _data, _export

    args = [_data.read(it) if it.endswith(".npy") else _export.shape(it) for it in options.args]
    with jax.enable_x64(_export.needs_64_bits(args) or jax.config.jax_enable_x64):
        function = _export.function(options.function)
        _export.require_fitting(options.function, function, len(args))
        try:
            yield function, args
        except Exception as error:
            call = f"{options.function} of {', '.join(options.args)}"
            raise ValueError(f"{call}: {type(error).__name__}: {error}") from error


def _paths(options: argparse.Namespace) -> int:
    from lapax import _export

    chosen = {
        "cflags": _export.compile_flags(),
        "libs": _export.link_flags(),
        "pkgconfig": str(_export.PKGCONFIG),
        "cmake": str(_export.CMAKE),
    }
    asked = [text for name, text in chosen.items() if getattr(options, name)]
    if asked:
        print(*asked)
        return 0
    everything = {"library": _library.path(), "header": _export.INCLUDE / "lapax.h", **chosen}
    for name, text in everything.items():
        print(f"{name + ':':<11}{text}")
    return 0


def _route(options: argparse.Namespace) -> int:
    answer = _library.route(
        {
            "routine": options.routine,
            "dtype": options.dtype,
            "batch": options.batch,
            "sizes": options.sizes,
        }
    )
    if "error" in answer:
        print(answer["error"], file=sys.stderr)
        return 2
    sizes = ", ".join(f"{name} = {size}" for name, size in answer["sizes"].items())
    print(f"{options.routine}, {options.dtype}, {sizes}, batch {options.batch}: {answer['route']}")
    print(answer["what"])
    return 0


def _stubs(options: argparse.Namespace) -> int:
    text = _render.stub()
    current = _render.STUB.read_text() if _render.STUB.is_file() else None
    if options.check:
        if text == current:
            return 0
        state = "is missing" if current is None else "is not what the table says"
        print(f"{_render.STUB.name} {state}; run `python -m lapax stubs`", file=sys.stderr)
        return 1
    if text != current:
        _render.STUB.write_text(text)
    print(_render.STUB)
    return 0


if __name__ == "__main__":
    sys.exit(main())
