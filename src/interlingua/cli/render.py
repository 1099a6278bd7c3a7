"""`interlingua render`: convert a reply in JSON to the native text that a model would write."""

from __future__ import annotations

import argparse

import msgspec

import interlingua as il
from interlingua.cli.common import console, options
from interlingua.core.reply import Part, Reasoning, Text
from interlingua.errors import BadInput, RenderError

DESCRIPTION = """\
The inverse of `interlingua parse`: reads a reply in the JSON format that parse
prints, and prints the text that a model would write for it. No newline is added
at the end. Only "parts" is needed. Without "parts", the fields reasoning, text
and calls are rendered, in this order."""
EPILOG = """\
examples:
  interlingua render --dialect kimi_k2 reply.json
  interlingua parse --dialect kimi_k2 reply.txt |
    interlingua render --dialect kimi_k2
  echo '{"calls": [{"id": "", "name": "ls", "arguments": "{}"}]}' |
    interlingua render --model moonshotai/kimi-k2.5
"""
_HINT = (
    'use the format that `interlingua parse` prints: {"parts": [{"kind": "text", "text": "…"}, '
    '{"kind": "call", "id": "…", "name": "…", "arguments": "{}"}]}'
)


class _ReplyInput(msgspec.Struct):
    parts: list[Part] | None = None
    reasoning: str = ""
    text: str = ""
    calls: list[il.Call] = []

    def reply(self) -> il.Reply:
        if self.parts is not None:
            return il.Reply(parts=self.parts)
        if not (self.reasoning or self.text or self.calls):
            raise BadInput("the reply has no parts, text, reasoning or calls", _HINT)
        text_parts = (Reasoning(self.reasoning), Text(self.text))
        return il.Reply(parts=[*(part for part in text_parts if part.text), *self.calls])


def add_options(parser: argparse.ArgumentParser) -> None:
    options.add_dialect(parser, "choose it by --model (default)")
    options.add_file(parser, "the reply in JSON")


def run(args: argparse.Namespace) -> None:
    dialect = options.dialect_from_args(args)
    il.render(il.Reply(), dialect)  # reports a dialect that cannot be rendered before reading the input
    reply_input = console.read_json(console.read_all(args.file, "a reply as JSON"), _ReplyInput, "the reply", _HINT)
    try:
        text = il.render(reply_input.reply(), dialect)
    except RenderError as error:
        raise RenderError(str(error), error.hint or "remove it from the reply, or choose another --dialect") from error
    console.write(text.encode())
