"""A model's native text and the reply that it tells: parse, render, and the parser for text that comes in pieces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

import msgspec

from interlingua import events as ev
from interlingua.core.options import Options
from interlingua.core.reply import Call, Part, Reasoning, Reply, Text, fold
from interlingua.core.tools import ToolSet, ToolsLike
from interlingua.dialects.registry import get_dialect
from interlingua.errors import RenderError, UsageError, expect_type
from interlingua.parsing.choice_pipeline import ChoicePipeline
from interlingua.parsing.dialect import Dialect, Span
from interlingua.parsing.markers import compile_markers

__all__ = ["Parser", "parse", "render"]


class Parser:
    """Native text in, guarded events out: `feed` each piece, then `close`. One Parser reads one reply."""

    def __init__(
        self,
        dialect: str | Dialect,
        tools: ToolsLike = None,
        prefill: str = "",
        options: Options | None = None,
    ) -> None:
        options = Options() if options is None else options
        expect_type(options, Options, "options are an Options", "write il.Options(delivery=…)")
        if prefill:
            options = msgspec.structs.replace(options, prefill=prefill)
        self._pipeline: ChoicePipeline | None = ChoicePipeline(get_dialect(dialect), ToolSet(tools), options)

    def feed(self, text: str) -> list[ev.Event]:
        if self._pipeline is None:
            raise _closed_error()
        if type(text) is not str:  # looked at here first, for this runs for every token
            expect_type(text, str, "text is str", "a Translator takes the bytes of a stream")
        return self._pipeline.process_text(text)

    def close(self) -> list[ev.Event]:
        """The text is over. Nothing is held after this."""
        if self._pipeline is None:
            raise _closed_error()
        pipeline, self._pipeline = self._pipeline, None
        return pipeline.end_of_text()

    @property
    def held(self) -> str:
        """The text that waits for what follows it."""
        return self._pipeline.buffered if self._pipeline else ""


def _closed_error() -> UsageError:
    return UsageError("this Parser is closed", "one Parser reads one reply: make another one")


def parse(text: str, dialect: str | Dialect, tools: ToolsLike = None, prefill: str = "") -> Reply:
    """What a model wrote, as a Reply. `prefill` is what the prompt had already written of it, such as `<think>`."""
    parser = Parser(dialect, tools, prefill)
    return fold(parser.feed(text) + parser.close())


def render(reply: Reply, dialect: str | Dialect) -> str:
    """The inverse of parse: what the model would have written."""
    expect_type(reply, Reply, "a reply is a Reply", "make one with il.Reply(parts=[…])")
    dialect = get_dialect(dialect)
    unfinished = [call for call in reply.calls if not call.complete]
    if unfinished and unfinished != list(reply.parts[-1:]):
        raise RenderError(f"the call of {unfinished[0].name!r} is incomplete, and something follows it", "drop one")
    parts = list(_merge_texts(reply.parts))
    written = dialect.router.write_reply(parts) if dialect.router else _write_parts(parts, dialect)
    if _comparable(parse(written, dialect).parts, dialect) != _comparable(parts, dialect):
        raise RenderError(
            f"as {dialect.name!r} writes it, this reply would be read back as another one",
            "take out of its text what looks like markup, or pick another dialect",
        )
    return written


def _comparable(parts: Iterable[Part], dialect: Dialect) -> list[tuple[type, str]]:
    """What of a reply must not change: all of its texts, but for layout, and the names of its calls.

    Arguments are not compared. Where they are written without types, only the tools tell what they were.
    """
    texts = ((part, part.name if isinstance(part, Call) else part.text.strip(dialect.trim)) for part in parts)
    return [(type(part), text) for part, text in texts if text.strip()]


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
    """Neighbours that are both text, or both thinking, as one."""
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
        raise RenderError(f"the dialect {dialect.name!r} has no way to write calls", "pick the model's own dialect")
    return dialect.grammar.write(calls, calls_before)


def _write_answer(text: str, dialect: Dialect) -> str:
    return _write_span(dialect.text[0], text, dialect) if dialect.text else _write_text(text, dialect)


def _write_span(span: Span, text: str, dialect: Dialect) -> str:
    return span.open + span.inside + _write_text(text, dialect) + span.inside + span.close + span.after


def _write_text(text: str, dialect: Dialect) -> str:
    match = compile_markers(*dialect.tokens).search(text, 0) if dialect.special_tokens else None
    if match:
        raise RenderError(f"text with {match.group()} in it would be read as structure", "take the marker out")
    return text


def _write_thinking(text: str, dialect: Dialect) -> str:
    if not dialect.thinking:
        raise RenderError(f"the dialect {dialect.name!r} has no way to write thinking", "pick the model's own dialect")
    return _write_span(dialect.thinking[0], text, dialect)
