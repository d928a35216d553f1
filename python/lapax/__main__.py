"""The command line: `python -m lapax targets | doctor | stubs | bench`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from lapax import _doctor, _render
from lapax._table import targets


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit status: 0 success, 1 a check failed, 2 wrong usage."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["bench"]:
        from lapax import bench  # Its own command line, and nobody else needs it loaded.

        return bench.main(arguments[1:])
    options = _parser().parse_args(arguments)
    if options.command == "targets":
        return _targets(options)
    if options.command == "stubs":
        return _stubs(options)
    return _doctor.run()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lapax", description="lapax's command line")
    commands = parser.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("targets", help="list the custom-call targets of liblapax")
    listing.add_argument("--platform", choices=["cpu", "cuda"], help="only this platform's")
    listing.add_argument("--markdown", action="store_true", help="as the table of the README")
    commands.add_parser("doctor", help="report versions and self-test every registered target")
    stubs = commands.add_parser("stubs", help="write ffi.pyi from the table")
    stubs.add_argument("--check", action="store_true", help="only fail where it is not current")
    commands.add_parser("bench", help="time the targets beside jaxlib's", add_help=False)
    return parser


def _targets(options: argparse.Namespace) -> int:
    chosen = targets(options.platform)
    print(_render.markdown(chosen) if options.markdown else _render.listing(chosen), end="")
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
