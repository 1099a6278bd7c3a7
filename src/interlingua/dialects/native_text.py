"""Conversion between a model's native text and replies: `parse`, `render`, and `Parser` for streamed text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

import msgspec

from interlingua import events as ev
from interlingua.core.options import Options
from interlingua.core.reply import Call, Part, Reasoning, Reply, Text, fold
from interlingua.core.tool_choice import ToolChoiceLike
from interlingua.core.tools import ToolSet, ToolsLike
from interlingua.dialects.registry import get_dialect
from interlingua.dialects.round_trip import check_round_trip
from interlingua.errors import RenderError, UsageError, expect_type
from interlingua.parsing.choice_pipeline import ChoicePipeline
from interlingua.parsing.detection import DetectShape
from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.markers import compile_markers

__all__ = ["Parser", "compile_dialect", "parse", "render"]


class Parser:
    """Streaming parser: native text in, normalized events out. Call `feed` for each piece, then `close`. Each Parser
    parses one reply.

    Args:
        dialect: a name, or a Dialect.
        tools: the tools that the client offered; None if they are not known.
        prefill: the beginning of the reply that the prompt already contains, such as `<think>`.
        options: see `il.Options`.
        tool_choice: the `tool_choice` of the request on any wire, or "auto", "required", "none" or the name of a tool;
            None if it is not known. If a call is required, servers may constrain the model to write JSON instead of its
            dialect: then that JSON is a call.
    """

    def __init__(
        self,
        dialect: str | Dialect,
        tools: ToolsLike = None,
        prefill: str = "",
        options: Options | None = None,
        *,
        tool_choice: ToolChoiceLike = None,
    ) -> None:
        options = Options() if options is None else options
        expect_type(options, Options, "options are an Options", "write il.Options(delivery=…)")
        if prefill:
            options = msgspec.structs.replace(options, prefill=prefill)
        self._pipeline: ChoicePipeline | None = ChoicePipeline(
            get_dialect(dialect), ToolSet(tools, tool_choice), options
        )

    def feed(self, text: str) -> list[ev.Event]:
        if self._pipeline is None:
            raise _closed_error()
        if type(text) is not str:  # cheap check first: this runs for every token
            expect_type(text, str, "text is str", "use a Translator for the bytes of a stream")
        return self._pipeline.process_text(text)

    def close(self) -> list[ev.Event]:
        """End the text and return the remaining events. No text stays buffered."""
        if self._pipeline is None:
            raise _closed_error()
        pipeline, self._pipeline = self._pipeline, None
        return pipeline.end_of_text()

    @property
    def held(self) -> str:
        """Text that is buffered until the parser knows what follows it."""
        return self._pipeline.buffered if self._pipeline else ""


def _closed_error() -> UsageError:
    return UsageError("this Parser is closed", "create a new Parser for each reply")


def parse(
    text: str,
    dialect: str | Dialect,
    tools: ToolsLike = None,
    prefill: str = "",
    *,
    options: Options | None = None,
    tool_choice: ToolChoiceLike = None,
) -> Reply:
    """Parse a model's complete native text. The arguments are those of `Parser`."""
    parser = Parser(dialect, tools, prefill, options, tool_choice=tool_choice)
    return fold(parser.feed(text) + parser.close())


def compile_dialect(dialect: Dialect) -> None:
    """Compile the patterns that a reply in this dialect needs. Otherwise its first reply does it."""
    dialects = dialect.shape.dialects if isinstance(dialect.shape, DetectShape) else (dialect,)
    for sample in (dialect.sample for dialect in dialects):
        parse(sample, dialect)


def render(reply: Reply, dialect: str | Dialect) -> str:
    """Write a reply as native text, the inverse of `parse`.

    Raises:
        RenderError: The dialect cannot express the reply, or parsing the text would return a different reply.
    """
    expect_type(reply, Reply, "a reply is a Reply", "make one with il.Reply(parts=[…])")
    dialect = get_dialect(dialect)
    unfinished = [call for call in reply.calls if not call.complete]
    if unfinished and unfinished != list(reply.parts[-1:]):
        raise RenderError(
            f"the call of {unfinished[0].name!r} is incomplete, and other parts follow it",
            "remove the call, or the parts after it",
        )
    parts = list(_merge_texts(reply.parts))
    written = dialect.router.write_reply(parts) if dialect.router else _write_parts(parts, dialect)
    check_round_trip(parts, written, dialect)
    return written


def _write_parts(parts: Iterable[Part], dialect: Dialect) -> str:
    written: list[str] = []
    calls_before = 0
    for part_type, neighbours in groupby(parts, key=type):
        if part_type is Call:
            calls = [part for part in neighbours if isinstance(part, Call)]
            written.append(_separator(written, dialect) + _write_calls(calls, calls_before, dialect))
            calls_before += len(calls)
        else:
            text = "".join(part.text for part in neighbours if not isinstance(part, Call))
            written.append(_write_answer(text, dialect) if part_type is Text else _write_thinking(text, dialect))
    return "".join(written)


def _merge_texts(parts: Iterable[Part]) -> Iterator[Part]:
    """Merge adjacent text parts, and adjacent reasoning parts."""
    for part_type, neighbours in groupby(parts, key=type):
        run = list(neighbours)
        texts = [part.text for part in run if not isinstance(part, Call)]
        if texts:
            yield Text("".join(texts)) if part_type is Text else Reasoning("".join(texts))
        else:
            yield from run


def _separator(written: list[str], dialect: Dialect) -> str:
    return dialect.lead if written and not written[-1].endswith(dialect.lead) else ""


def _write_calls(calls: list[Call], calls_before: int, dialect: Dialect) -> str:
    if dialect.grammar is None:
        raise RenderError(f"the dialect {dialect.name!r} cannot express calls", "use the model's own dialect")
    return dialect.grammar.write(calls, calls_before)


def _write_answer(text: str, dialect: Dialect) -> str:
    return _write_span(dialect.text[0], text, dialect) if dialect.text else _write_text(text, dialect)


def _write_span(span: Span, text: str, dialect: Dialect) -> str:
    return span.open + span.inside + _write_text(text, dialect) + span.inside + span.close + span.after


def _write_text(text: str, dialect: Dialect) -> str:
    match = compile_markers(*dialect.tokens).search(text, 0) if dialect.special_tokens else None
    if match:
        raise RenderError(f"text with {match.group()} in it would be parsed as structure", "remove the marker")
    return text


def _write_thinking(text: str, dialect: Dialect) -> str:
    if not dialect.thinking:
        raise RenderError(f"the dialect {dialect.name!r} cannot express thinking", "use the model's own dialect")
    return _write_span(dialect.thinking[0], text, dialect)
