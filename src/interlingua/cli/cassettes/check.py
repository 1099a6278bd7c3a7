"""`interlingua cassettes check`: check that recorded replies still mean the same."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from interlingua.cli.common import console

if TYPE_CHECKING:
    from interlingua.cassettes.recorded_exchange import RecordedExchange

DESCRIPTION = """\
Translates every recorded reply again, for each API, as a stream and whole, and
compares the result with what it meant when it was recorded. The exit status is
1 if something differs."""
EPILOG = """\
examples:
  interlingua cassettes check tests/cassettes
  interlingua cassettes check tests/cassettes --update
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", metavar="PATH", nargs="+", help="a cassette: a file, or a folder")
    parser.add_argument("--update", action="store_true", help="write what the replies mean now into the cassettes")


def run(args: argparse.Namespace) -> int:
    from interlingua.cassettes.cassette_files import list_files, read_file

    files = [file for path in args.paths for file in list_files(Path(path))]
    changed = [(file, exchanges) for file in files if _print_problems(file, exchanges := read_file(file))]
    total = f"{len(files)} file{'s' if len(files) != 1 else ''}"
    if not changed:
        console.print_stderr(f"{total}: every reply means the same")
        return 0
    if not args.update:
        console.print_stderr(f"{total}: {len(changed)} with differences; --update accepts what the replies mean now")
        return 1
    remaining = sum(not _update_file(file, exchanges) for file, exchanges in changed)
    problem = f", {remaining} with problems that an update cannot solve" if remaining else ""
    console.print_stderr(f"{total}: {len(changed) - remaining} updated{problem}")
    return 1 if remaining else 0


def _print_problems(path: Path, exchanges: list[RecordedExchange]) -> bool:
    """Print the problems of a file. Return whether it has any."""
    from interlingua.cassettes.cassette_check import find_problems

    problems = [(number, problem) for number, one in enumerate(exchanges, 1) for problem in find_problems(one)]
    console.write_lines(console.printable(f"{path}, exchange {number}: {problem}") for number, problem in problems)
    return bool(problems)


def _update_file(path: Path, exchanges: list[RecordedExchange]) -> bool:
    """Write what the replies mean now. Return whether that has solved all problems."""
    from interlingua.cassettes.cassette_check import find_problems, update_meaning
    from interlingua.cassettes.cassette_files import write_file

    updated = [update_meaning(exchange) for exchange in exchanges]
    write_file(path, updated)
    return not any(map(find_problems, updated))
