"""`interlingua request`: one wire's request → another's, for one upstream."""

from __future__ import annotations

import argparse
from typing import Any

from interlingua.cli.common import console as io
from interlingua.cli.common import options
from interlingua.translation.request_translation import prepare_request
from interlingua.upstreams import get_profile, list_profiles
from interlingua.wires import WIRES, get_wire

NAME = "request"
HELP = "one wire's request → another's, for one upstream"
DESCRIPTION = f"""\
Reads the body of a request and writes the body that the upstream is sent:
its history mended, and told as the upstream takes it. What is lost on the
way is a finding.

wires: {", ".join(WIRES)}
upstreams: {", ".join(profile.name for profile in list_profiles())}"""
EPILOG = """\
examples:
  interlingua request --from anthropic-messages --to openai-chat \\
    --upstream moonshot --model kimi-k2.5 recorded.json
  interlingua request --from openai-responses --to openai-chat body.json | jq .tools
  interlingua request --strict body.json   a history with gaps is refused
"""
_HINT = "a request is one JSON object, as a client sends it"


def add_options(parser: argparse.ArgumentParser) -> None:
    options.add_wires(parser)
    parser.add_argument("--upstream", metavar="NAME", help="how the upstream differs from others (default: not at all)")
    parser.add_argument("--model", metavar="ID", help="the model's name at the upstream (default: as it is)")
    parser.add_argument("--strict", action="store_true", help="refuse a history with gaps, and mend nothing")
    options.add_findings(parser)
    options.add_file(parser, "the request's body")


def run(args: argparse.Namespace) -> None:
    get_wire(args.source), get_wire(args.target)  # what is wrong here is told before anything is read
    upstream = get_profile(args.upstream) if args.upstream else None
    body = io.read_json(io.read_all(args.file, "a request's body"), dict[str, Any], "the request", _HINT)
    prepared = prepare_request(body, args.source, args.target, args.model, upstream, strict=args.strict)
    io.write_json(prepared.body)
    io.print_findings(prepared.findings, args.tell)
