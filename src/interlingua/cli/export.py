"""`interlingua export`: print a dialect in a format that engines and other programs read."""

from __future__ import annotations

import argparse
import sys

import interlingua as il
from interlingua.cli.common import console, options
from interlingua.dialects.registry import STANDARD_DIALECT
from interlingua.errors import UsageError
from interlingua.exports.exporter import DESCRIPTION_FORMATS, FORMATS, GRAMMAR_FORMATS

DESCRIPTION = """\
Prints what a dialect allows, for a program that constrains or parses a model
on its own. A constraint contains the schemas of the tools: the model can then
write only calls that are complete, name an offered tool and fit its schema.

formats:
  structural-tag     constraint of xgrammar: `structured_outputs.structural_tag`
                     of vLLM, `response_format` of SGLang
  gbnf               constraint of llama.cpp: `grammar`, or --grammar-file
  gbnf-lazy          the same as fields of a request, with triggers: the grammar
                     applies only from the beginning of a call on
  lark               constraint of llguidance
  response-template  template of Hugging Face's transformers, which parses replies
  json               the dialect itself, with examples; needs no tools

What a format cannot carry is an error that states the reason. What a schema
requires and the constraint does not enforce is a note on standard error."""
EPILOG = """\
examples:
  interlingua export structural-tag --dialect hermes --tools tools.json
  interlingua export structural-tag --model Qwen/Qwen3-8B --tools tools.json \\
    --tool-choice required --no-parallel
  interlingua export gbnf --dialect glm47 --tools tools.json \\
    --tool-choice get_weather --prefill '<think>' > call.gbnf
  interlingua export response-template --dialect kimi_k2 \\
    --start-anchor '<|im_assistant|>assistant<|im_middle|>'
  interlingua export json --dialect ./my_model.yaml > my_model.json
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("format", choices=FORMATS, metavar="FORMAT", help=f"one of: {', '.join(FORMATS)}")
    options.add_dialect(parser, "choose it by --model (default)")
    parser.add_argument("--tools", metavar="FILE", help="JSON list of the tools, as in a request")
    parser.add_argument(
        "--tool-choice",
        metavar="CHOICE",
        help="tool choice of the request: auto, required, none, the name of a tool, or JSON; default: auto",
    )
    parser.add_argument("--no-parallel", dest="parallel", action="store_false", help="allow only one call in a reply")
    parser.add_argument("--no-thinking", dest="thinking", action="store_false", help="allow no thinking in a reply")
    options.add_prefill(parser)
    parser.add_argument(
        "--start-anchor",
        default="",
        metavar="TEXT",
        help="text that the chat template writes before a reply, for response-template",
    )


def run(args: argparse.Namespace) -> None:
    dialect, tools = options.dialect_from_args(args), options.load_tools(args.tools)
    if dialect is STANDARD_DIALECT and args.dialect == options.AUTO:
        raise UsageError(
            f"no dialect is known for the model {args.model!r:.80}",
            "add --dialect NAME; `interlingua dialects` lists them",
        )
    if args.format in GRAMMAR_FORMATS and tools is None and args.tool_choice != "none":
        raise UsageError(f"{args.format} needs --tools: it contains their names and params", "pass the request's tools")
    exported = il.export(
        args.format,
        dialect,
        tools,
        options.tool_choice_from_args(args, tools),
        parallel=args.parallel,
        thinking=args.thinking,
        prefill=args.prefill,
        start_anchor=args.start_anchor,
    )
    console.write(exported.text.encode())
    for note in exported.notes:
        print(f"note: {note}", file=sys.stderr)
    if args.format == "response-template" and not args.start_anchor:
        print("note: without --start-anchor, the template reads earlier replies of a prompt, too", file=sys.stderr)
    if args.format in DESCRIPTION_FORMATS and args.tools:
        print(f"note: {args.format} does not depend on the tools", file=sys.stderr)
