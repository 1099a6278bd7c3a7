"""Export of a dialect: the public function, and the formats by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from interlingua.core.tool_choice import ToolChoiceLike
from interlingua.core.tools import ToolsLike
from interlingua.dialects.registry import get_dialect
from interlingua.errors import NotExpressible, UsageError, suggestion_hint
from interlingua.exports.formats.dialect_json import write_dialect
from interlingua.exports.formats.gbnf import write_gbnf, write_lazy_gbnf
from interlingua.exports.formats.lark import write_lark
from interlingua.exports.formats.response_template import write_response_template
from interlingua.exports.formats.structural_tag import write_structural_tag
from interlingua.exports.reply_grammar import ReplyGrammar, describe_reply
from interlingua.parsing.dialect import Dialect

__all__ = ["DESCRIPTION_FORMATS", "FORMATS", "GRAMMAR_FORMATS", "Export", "export"]

GRAMMAR_FORMATS: dict[str, Callable[[ReplyGrammar, list[str]], Any]] = {
    "structural-tag": lambda reply, notes: write_structural_tag(reply.grammar, notes),
    "gbnf": write_gbnf,
    "gbnf-lazy": write_lazy_gbnf,
    "lark": lambda reply, _: write_lark(reply.grammar),
}
"""Formats that constrain a reply. They need the tools."""
DESCRIPTION_FORMATS: dict[str, Callable[[Dialect, str], Any]] = {
    "response-template": write_response_template,
    "json": lambda dialect, _: write_dialect(dialect),
}
"""Formats that describe the dialect itself."""
FORMATS = (*GRAMMAR_FORMATS, *DESCRIPTION_FORMATS)


@dataclass(frozen=True)
class Export:
    """A dialect in an export format."""

    format: str
    content: Any
    """Text, or JSON values."""
    notes: tuple[str, ...] = ()
    """Requirements of the tools' schemas that the export does not enforce, and tools that take undeclared params."""

    @property
    def text(self) -> str:
        """The content as the text of a file."""
        if isinstance(self.content, str):
            return self.content
        return json.dumps(self.content, ensure_ascii=False, indent=2) + "\n"


def export(
    format: str,
    dialect: str | Dialect,
    tools: ToolsLike = None,
    tool_choice: ToolChoiceLike = None,
    *,
    parallel: bool = True,
    thinking: bool = True,
    prefill: str = "",
    start_anchor: str = "",
) -> Export:
    """Export a dialect, for a program that constrains or parses a model on its own.

    Args:
        format: One of `structural-tag` (xgrammar, vLLM, SGLang), `gbnf` and `gbnf-lazy` (llama.cpp), `lark`
            (llguidance), `response-template` (transformers) and `json`. The last two need no tools.
        dialect: A name, or a Dialect.
        tools: The tools on offer, in the format of any API.
        tool_choice: "auto", "required", "none", the name of a tool, or the `tool_choice` of a request. None is "auto".
        parallel: True if a reply may contain several calls.
        thinking: True if a reply may contain thinking.
        prefill: The beginning of the reply that the prompt already contains, such as `<think>`.
        start_anchor: The text that the chat template writes before a reply, for `response-template`.

    Raises:
        NotExpressible: The format cannot carry this dialect, or the dialect cannot write calls of these tools.
    """
    dialect = get_dialect(dialect)
    if format in DESCRIPTION_FORMATS:
        return Export(format, DESCRIPTION_FORMATS[format](dialect, start_anchor))
    if format not in GRAMMAR_FORMATS:
        raise UsageError(f"no export format is called {format!r}", suggestion_hint(format, FORMATS))
    reply = describe_reply(dialect, tools, tool_choice, parallel=parallel, thinking=thinking, prefill=prefill)
    notes = list(reply.notes)
    exported = Export(format, GRAMMAR_FORMATS[format](reply, notes), tuple(dict.fromkeys(notes)))
    try:
        exported.text.encode()
    except UnicodeEncodeError:
        reason = "a name or a value in the tools has half of a surrogate pair, which no text can contain"
        raise NotExpressible(reason, "correct the tools") from None
    return exported
