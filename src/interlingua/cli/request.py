"""`interlingua request`: translate a request body from one wire (API) to another."""

from __future__ import annotations

import argparse
import textwrap
from typing import Any

from interlingua.cli.common import console, options
from interlingua.errors import BadRequest
from interlingua.translation.request_translation import prepare_request
from interlingua.upstreams import get_profile, list_profiles
from interlingua.wires import WIRES, get_wire

DESCRIPTION = """\
Reads the body of a client's request and prints the body that the gateway would
send to the upstream: the message history repaired, in the upstream's format.
Each loss is reported as a finding."""
EPILOG = f"""\
wires: {", ".join(WIRES)}

{textwrap.fill("upstreams: " + ", ".join(profile.name for profile in list_profiles()), 80)}

examples:
  interlingua request --from anthropic-messages --to openai-chat \\
    --upstream moonshot --model kimi-k2.5 recorded.json
  interlingua request --from openai-responses --to openai-chat body.json
  interlingua request --strict body.json   fail if the history has gaps
"""
_HINT = "a request body is one JSON object, as a client sends it"


def add_options(parser: argparse.ArgumentParser) -> None:
    options.add_wires(parser)
    parser.add_argument("--upstream", metavar="PROFILE", help="apply the profile of this upstream (default: none)")
    parser.add_argument("--model", metavar="ID", help="the model's name at the upstream (default: unchanged)")
    parser.add_argument("--strict", action="store_true", help="fail if the history has gaps, instead of repairing it")
    options.add_findings(parser)
    options.add_file(parser, "the request body")


def run(args: argparse.Namespace) -> None:
    get_wire(args.source), get_wire(args.target)  # reports unknown wires before reading the input
    upstream = get_profile(args.upstream) if args.upstream else None
    body = console.read_json(console.read_all(args.file, "a request body"), dict[str, Any], "the request", _HINT)
    try:
        prepared = prepare_request(body, args.source, args.target, args.model, upstream, strict=args.strict)
    except BadRequest as error:
        error.hint = error.hint or f"the body is read as a request of {args.source}; --from selects another wire"
        raise
    console.write_json(prepared.body)
    console.print_findings(prepared.findings, args.finding_format)
    console.print_explain_hint(prepared.findings, args.finding_format)
