"""`interlingua captures list`: list the captures of a folder, the newest first."""

from __future__ import annotations

import argparse
import fnmatch
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from interlingua.cli.captures.capture_summary import CaptureSummary, read_summary
from interlingua.cli.common import console
from interlingua.cli.common.capture_files import add_captures_option, capture_folder, list_captures
from interlingua.cli.common.table import format_table
from interlingua.core.finding_severity import SEVERITIES, severity_of
from interlingua.errors import UsageError

DESCRIPTION = "Lists captures, the newest first: time, outcome, model, calls, findings, id."
EPILOG = """\
examples:
  interlingua captures list
  interlingua captures list captures -n 100 --failed
  interlingua captures list --model '*kimi*' --json
"""
DEFAULT_NUMBER = "20"
SHORT_ID_CHARS = len("req_") + 8
"""The beginning of an id is enough to find the capture. --json prints ids and models in full."""
COLUMNS = ("time", "outcome", "model", "calls", "findings", "id")


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("folder", nargs="?", metavar="DIR", help="folder of the captures; default: see --captures")
    add_captures_option(parser)
    add("-n", dest="number", default=DEFAULT_NUMBER, metavar="N", help=f"number of captures; default: {DEFAULT_NUMBER}")
    add("--failed", action="store_true", help="only exchanges that did not end well")
    add("--model", metavar="GLOB", help="only models that match, such as '*kimi*'")
    add("--json", action="store_true", help="print one JSON object per line")


def run(args: argparse.Namespace) -> None:
    if not (args.number.isascii() and args.number.isdigit()):
        raise UsageError(f"-n: {args.number!r} is not a number of captures", "for example: -n 100")
    folder = Path(args.folder) if args.folder else capture_folder(args.captures)
    summaries = (summary for summary in map(read_summary, list_captures(folder)) if _is_selected(summary, args))
    selected = list(islice(summaries, int(args.number)))
    if args.json:
        for summary in selected:
            console.write_json_line(msgspec.to_builtins(summary))
        return
    if not selected:
        console.print_stderr(f"no captures in {folder}")
        return
    rows = [_row(summary) for summary in selected]
    console.write(format_table(COLUMNS, rows, shortened="model", optional=("calls", "findings")).encode())


def _is_selected(summary: CaptureSummary, args: argparse.Namespace) -> bool:
    models = (str(summary.exchange.get(name, "")) for name in ("model", "upstream_model"))
    return (not args.failed or summary.has_failed) and (
        args.model is None or any(fnmatch.fnmatch(model.lower(), args.model.lower()) for model in models)
    )


def _row(summary: CaptureSummary) -> tuple[str, ...]:
    exchange = summary.exchange
    time = f"{summary.time.astimezone():%m-%d %H:%M:%S}" if summary.time else ""
    outcome = f"{exchange.get('status', '')} {exchange.get('outcome', 'no end')}".strip()
    model, calls = str(exchange.get("model", "")), str(exchange.get("calls", ""))
    return time, outcome, model, calls, _findings_text(exchange.get("findings")), summary.id[:SHORT_ID_CHARS]


def _findings_text(findings: Any) -> str:
    """Return the number of findings of the worst severity."""
    kinds = findings if isinstance(findings, dict) else {}
    counts = dict.fromkeys(SEVERITIES, 0)
    for kind, number in kinds.items():
        counts[severity_of(kind)] += number if isinstance(number, int) else 1
    return next((f"{counts[severity]} {severity}" for severity in reversed(SEVERITIES) if counts[severity]), "")
