"""`interlingua faults list`: list the faults and the expected behaviour."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from interlingua.cli.common import console, terminal

if TYPE_CHECKING:
    from interlingua.faults.checker.scenario import FaultRow, Scenario

DESCRIPTION = """\
Lists all scenarios by fault number: name, description and expected behaviour
(→). The name is the model id that selects the scenario on the fault server."""
EPILOG = """\
examples:
  interlingua faults list
  interlingua faults list --json | jq -r '.[].name'
  interlingua faults list --recorded
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    parser.add_argument(
        "--recorded", action="store_true", help="only faults that can be mixed into recorded replies (`serve --replay`)"
    )


def run(args: argparse.Namespace) -> None:
    from interlingua.faults.catalog import FAULT_ROWS

    rows = _recorded_rows(FAULT_ROWS) if args.recorded else FAULT_ROWS
    if args.json:
        console.write_json([_as_json(scenario, row.title) for row in rows for scenario in row.scenarios])
        return
    console.write("".join(f"{line}\n" for line in _lines(rows)).encode())


def _recorded_rows(rows: list[FaultRow]) -> list[FaultRow]:
    """Return the rows with the scenarios that can be mixed into recorded replies."""
    from interlingua.faults.recorded_faults import RECORDED_FAULTS

    recorded = set(map(id, RECORDED_FAULTS.values()))
    chosen = [replace(row, scenarios=[one for one in row.scenarios if id(one) in recorded]) for row in rows]
    return [row for row in chosen if row.scenarios]


def _as_json(scenario: Scenario, fault: str) -> dict[str, object]:
    fields = {"row": scenario.row, "fault": fault, "name": scenario.name}
    return {**fields, "happens": scenario.description, "right": scenario.expected, "apis": scenario.apis}


def _lines(rows: list[FaultRow]) -> Iterator[str]:
    for row in rows:
        yield f"{row.number:2}  {row.title}"
        for scenario in row.scenarios:
            yield f"    {scenario.name}"
            yield from terminal.wrap(scenario.description, " " * 6, " " * 8)
            yield from terminal.wrap(f"→ {scenario.expected}", " " * 6, " " * 8)
