"""A model's native text and the reply that it tells: parse, render, and the parser for text that comes in pieces."""

from __future__ import annotations

from itertools import groupby

from interlingua import events as ev
from interlingua.dialect import Dialect
from interlingua.dialects import dialect_named
from interlingua.errors import RenderError, UsageError
from interlingua.pipeline import Lane, Options
from interlingua.reply import Call, Part, Reply, Text, fold
from interlingua.source import markers
from interlingua.tools import Offer, ToolsLike

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
        options = options or Options(prefill=prefill)
        self._lane: Lane | None = Lane(dialect_named(dialect), Offer(tools), options)

    def feed(self, text: str) -> list[ev.Event]:
        if self._lane is None:
            raise _closed()
        return self._lane.take_text(text)

    def close(self) -> list[ev.Event]:
        """The text is over. Nothing is held after this."""
        if self._lane is None:
            raise _closed()
        lane, self._lane = self._lane, None
        return lane.close_text()

    @property
    def held(self) -> str:
        """The text that waits for what follows it."""
        return self._lane.held if self._lane else ""


def _closed() -> UsageError:
    return UsageError("this Parser is closed", "one Parser reads one reply: make another one")


def parse(text: str, dialect: str | Dialect, tools: ToolsLike = None, prefill: str = "") -> Reply:
    """What a model wrote, as a Reply. `prefill` is what the prompt had already written of it, such as `<think>`."""
    parser = Parser(dialect, tools, prefill)
    return fold(parser.feed(text) + parser.close())


def render(reply: Reply, dialect: str | Dialect) -> str:
    """The inverse of parse: what the model would have written."""
    dialect = dialect_named(dialect)
    unfinished = [call for call in reply.calls if not call.complete]
    if unfinished and unfinished != list(reply.parts[-1:]):
        raise RenderError(f"the call of {unfinished[0].name!r} is incomplete, and something follows it")
    written: list[str] = []
    before = 0
    for is_call, parts in groupby(reply.parts, key=lambda part: isinstance(part, Call)):
        if is_call:
            calls = [part for part in parts if isinstance(part, Call)]
            if dialect.shape is None:
                raise RenderError(f"the dialect {dialect.name!r} has no way to write calls")
            written.append(dialect.shape.write(calls, before))
            before += len(calls)
        else:
            written += [_write_text(part, dialect) for part in parts]
    return "".join(written)


def _write_text(part: Part, dialect: Dialect) -> str:
    assert not isinstance(part, Call)
    found = markers(*dialect.markers).search(part.text, 0)
    if found:
        raise RenderError(
            f"text that holds the marker {found.group()} cannot be written: it would be read as structure"
        )
    if isinstance(part, Text):
        return part.text
    if not dialect.thinking:
        raise RenderError(f"the dialect {dialect.name!r} has no way to write thinking")
    return dialect.thinking[0].open + part.text + dialect.thinking[0].close
