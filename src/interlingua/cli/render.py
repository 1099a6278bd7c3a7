"""`interlingua render`: a reply as JSON → the native text that a model would have written."""

from __future__ import annotations

import argparse

import msgspec

import interlingua as il
from interlingua.cli.common import console as io
from interlingua.cli.common import options
from interlingua.core.reply import Part, Reasoning, Text
from interlingua.errors import BadInput, RenderError

NAME = "render"
HELP = "a reply as JSON → the native text that a model would have written"
DESCRIPTION = """\
The inverse of parse: reads a reply as parse tells it and writes it as the
model would have, without a line end of its own. Only "parts" is needed;
without it, the reasoning, the text and the calls are written, in this order."""
EPILOG = """\
examples:
  interlingua render --dialect kimi_k2 reply.json
  interlingua parse --dialect kimi_k2 reply.txt |
    interlingua render --dialect kimi_k2
  echo '{"calls": [{"id": "", "name": "ls", "arguments": "{}"}]}' |
    interlingua render --model moonshotai/kimi-k2.5
"""
_HINT = (
    'write it as `interlingua parse` does: {"parts": [{"kind": "text", "text": "…"}, '
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
            raise BadInput("the reply has neither parts nor text, reasoning or calls", _HINT)
        text_parts = (Reasoning(self.reasoning), Text(self.text))
        return il.Reply(parts=[*(part for part in text_parts if part.text), *self.calls])


def add_options(parser: argparse.ArgumentParser) -> None:
    options.add_dialect(parser, "by --model (default)")
    options.add_file(parser, "the reply, as JSON")


def run(args: argparse.Namespace) -> None:
    dialect = options.dialect_from_args(args)
    il.render(il.Reply(), dialect)  # a name that is wrong is told before anything is read
    reply_input = io.read_json(io.read_all(args.file, "a reply as JSON"), _ReplyInput, "the reply", _HINT)
    try:
        text = il.render(reply_input.reply(), dialect)
    except RenderError as error:
        raise RenderError(str(error), error.hint or "leave it out, or choose another --dialect") from error
    io.write(text.encode())
