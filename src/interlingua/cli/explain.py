"""`interlingua explain`: say what a kind of finding or failure means, and what to do about it."""

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
Without a kind, lists all of them. The kinds of failures on a card of `verify`
are also known."""
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
FAILURE = "failure of verify"
FAILURE_ADVICE = "the card says who caused it, and what helps"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="kinds of findings; default: all of them")
    parser.add_argument("--severity", choices=SEVERITIES, help="list only kinds of this severity")
    parser.add_argument("--json", action="store_true", help="print a JSON list")


def run(args: argparse.Namespace) -> None:
    if args.kinds:
        explanations = [explanation for kind in args.kinds for explanation in _explain(kind)]
    else:
        explanations = [_explain_finding(kind) for kind in FINDING_KINDS]
    selected = [entry for entry in explanations if args.severity in (None, entry["severity"])]
    if args.json:
        console.write_json(selected)
    else:
        console.write("\n".join(map(_format_explanation, selected)).encode())


def _explain(kind: str) -> list[dict[str, str]]:
    """Return the explanation of a finding, and of a failure that has the same name."""
    from interlingua.verification.judging.failure import FAILURE_KINDS

    explanations = [_explain_finding(kind)] if kind in FINDING_KINDS else []
    if kind in FAILURE_KINDS:
        fields = {"severity": FAILURE, "description": FAILURE_KINDS[kind], "advice": FAILURE_ADVICE}
        explanations.append({"kind": kind, **fields})
    if not explanations:
        hint = suggestion_hint(kind, [*FINDING_KINDS, *FAILURE_KINDS])
        is_similar = hint.startswith("did you mean")
        raise UsageError(f"no finding is called {kind!r}", hint if is_similar else "`interlingua explain` lists all")
    return explanations


def _explain_finding(kind: str) -> dict[str, str]:
    fields = {"severity": severity_of(kind), "description": FINDING_KINDS[kind], "advice": advice_for(kind)}
    return {"kind": kind, **fields}


def _format_explanation(explanation: dict[str, str]) -> str:
    irregularity, _, correction = explanation["description"].partition(": ")
    lines = [f"{explanation['kind']} ({explanation['severity']})", *terminal.wrap(irregularity, indent="  ")]
    lines += terminal.wrap(correction, indent="  → ", next_indent="    ")
    if explanation["advice"]:
        lines += terminal.wrap(explanation["advice"], indent="  to do: ", next_indent="         ")
    return "\n".join([*lines, ""])
