"""`interlingua cassettes import`: make cassettes of captures."""

from __future__ import annotations

import argparse

from interlingua.cli.common import console
from interlingua.errors import BadInput, InterlinguaError

DESCRIPTION = """\
Adds the exchanges of captures (`interlingua serve --capture`) to a cassette, so
that they can be replayed. Captures without a reply are left out, with a note."""
EPILOG = """\
examples:
  interlingua cassettes import captures/*.jsonl --to cassettes
  interlingua cassettes import captures/20260101T120000000000Z-req_1.jsonl \\
      --to bug.yaml
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("captures", metavar="CAPTURE", nargs="+", help="a file that `serve --capture` has written")
    parser.add_argument("--to", metavar="PATH", required=True, help="the cassette: a folder, or a .yaml file")


def run(args: argparse.Namespace) -> int:
    from interlingua.captures.capture_format import read_capture
    from interlingua.cassettes.captured_exchange import record_captured
    from interlingua.cassettes.cassette_files import CassetteFiles
    from interlingua.cassettes.recording_index import RecordingIndex

    files = CassetteFiles(args.to, RecordingIndex())
    imported = 0
    for path in args.captures:
        try:
            captured = read_capture(path)
        except OSError as error:
            raise BadInput(f"cannot read {path}: {error.strerror}", "pass files of `serve --capture`") from error
        try:
            file = files.append(record_captured(captured))
        except InterlinguaError as error:
            console.print_stderr(f"note: {console.printable(f'{path}: {error}')}: left out")
            continue
        imported += 1
        console.write(f"{console.printable(str(file))}\n".encode())
    console.print_stderr(f"{imported} of {len(args.captures)} captures imported")
    return 0 if imported else 1
