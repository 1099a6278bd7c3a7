"""`interlingua explain`: say what a kind of finding means, and what to do about it."""

from __future__ import annotations

import argparse

from interlingua.cli.common import console, terminal
from interlingua.core.finding_severity import SEVERITIES, advice_for, severity_of
from interlingua.core.findings import FINDING_KINDS
from interlingua.errors import UsageError, suggestion_hint

DESCRIPTION = """\
Says what a finding means: the irregularity, what was done about it, how severe
it is, and what you can do. Findings are in the log of the gateway, in its
metrics, on standard error of `translate` and `parse`, and in `--explain`.
Without a kind, lists all of them."""
EPILOG = """\
examples:
  interlingua explain bad-arguments
  interlingua explain asked-again cut-short
  interlingua explain --severity error

severities:
  info     normalised, and the meaning is certain
  warning  changed, dropped or inferred: the client or the model may notice it
  error    a call or a part of the reply is lost or incomplete
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="kinds of findings; default: all of them")
    parser.add_argument("--severity", choices=SEVERITIES, help="list only kinds of this severity")
    parser.add_argument("--json", action="store_true", help="print a JSON list")


def run(args: argparse.Namespace) -> None:
    for kind in args.kinds:
        if kind not in FINDING_KINDS:
            raise UsageError(f"no finding is called {kind!r}", suggestion_hint(kind, FINDING_KINDS))
    kinds = [kind for kind in args.kinds or FINDING_KINDS if args.severity in (None, severity_of(kind))]
    if args.json:
        console.write_json([_as_json(kind) for kind in kinds])
    else:
        console.write("\n".join(map(_format_kind, kinds)).encode())


def _as_json(kind: str) -> dict[str, str]:
    return {
        "kind": kind,
        "severity": severity_of(kind),
        "description": FINDING_KINDS[kind],
        "advice": advice_for(kind),
    }


def _format_kind(kind: str) -> str:
    irregularity, _, correction = FINDING_KINDS[kind].partition(": ")
    lines = [f"{kind} ({severity_of(kind)})", *terminal.wrap(irregularity, indent="  ")]
    lines += terminal.wrap(correction, indent="  → ", next_indent="    ")
    if advice := advice_for(kind):
        lines += terminal.wrap(advice, indent="  to do: ", next_indent="         ")
    return "\n".join([*lines, ""])
