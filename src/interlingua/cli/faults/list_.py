"""`interlingua faults list`: what goes wrong, and what is right then."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from interlingua.cli.common import console as io

if TYPE_CHECKING:
    from interlingua.faults.checker.scenario import Row, Scenario

NAME = "list"
HELP = "every fault: what happens, and what is right"
DESCRIPTION = """\
Lists all scenarios by the number of their fault. The name is the model to ask
the fault server for."""
EPILOG = """\
examples:
  interlingua faults list
  interlingua faults list --json | jq -r '.[].name'
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="as a JSON list")


def run(args: argparse.Namespace) -> None:
    from interlingua.faults.catalog import ROWS

    if args.json:
        io.write_json([_as_json(scenario, row.fault) for row in ROWS for scenario in row.scenarios])
        return
    width = io.terminal_width()
    io.write("".join(f"{line}\n" for line in _lines(ROWS, width)).encode())


def _as_json(scenario: Scenario, fault: str) -> dict[str, object]:
    told = {"row": scenario.row, "fault": fault, "name": scenario.name}
    return {**told, "happens": scenario.happens, "right": scenario.right, "apis": scenario.apis}


def _lines(rows: list[Row], width: int) -> Iterator[str]:
    for row in rows:
        yield f"{row.number:2}  {row.fault}"
        for scenario in row.scenarios:
            yield f"    {scenario.name}"
            yield from textwrap.wrap(scenario.happens, width, initial_indent=" " * 6, subsequent_indent=" " * 8)
            yield from textwrap.wrap(f"→ {scenario.right}", width, initial_indent=" " * 6, subsequent_indent=" " * 8)
