"""A model's text, in pieces, to events: the text between the markers, the thinking, and the shape's calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from interlingua import events as ev
from interlingua.core.options import Limits
from interlingua.core.tools import ToolSet
from interlingua.parsing.dialect import Dialect, Grammar
from interlingua.parsing.event_sink import EventSink
from interlingua.parsing.markers import compile_markers
from interlingua.parsing.shapes.json_envelope.grammar import JsonEnvelope
from interlingua.parsing.text_buffer import Channel, Read, TextBuffer

__all__ = ["NativeTextParser"]


@lru_cache(maxsize=256)
def _guided_json_grammar(dialect_markers: tuple[str, ...]) -> Grammar:
    """Where a tool is required, servers make the model write JSON, whatever its dialect."""
    return JsonEnvelope(open=()).grammar(dialect_markers)


class NativeTextParser:
    """Reads one reply's text. What it emits is in order, but not yet guarded: ids may be missing or repeated, and a
    call that the text's end has cut is left open.

    `prefill` is what the prompt had already written of the reply; if it opened the thinking, the text starts inside it.
    If the text is the rest of one, `thinking` says whether it starts inside thinking, and `offset` where.
    """

    def __init__(
        self,
        dialect: Dialect,
        offer: ToolSet,
        prefill: str = "",
        limits: Limits | None = None,
        *,
        thinking: bool = False,
        offset: int = 0,
    ) -> None:
        self._dialect = dialect
        self._source = TextBuffer(offset)
        self._markers = compile_markers(*dialect.markers)
        self._special_tokens = compile_markers(*dialect.tokens)
        self._sink = EventSink(
            self._source, self._markers, self._special_tokens, offer, limits or Limits(), dialect.in_prose
        )
        self._first_openers = self._find_first_openers(offer)
        self._thinking_openers = tuple(span.open for span in dialect.thinking)
        self._thinking_closers = tuple(span.close for span in dialect.thinking)
        self._text_markers = dialect.text_markers
        self._sink.thinking = thinking or self._ends_inside_thinking(prefill)
        if prefill:
            self._source.prepend_prefill(self._unfinished_prefill(prefill))
        self._reader = self._read()  # begins with the first piece, in its channel

    @property
    def buffered(self) -> str:
        """The text that waits for what follows it."""
        return self._source.buffered

    @property
    def inside_calls(self) -> bool:
        """Whether the text stands in a call or a section of calls."""
        return self._sink.inside_calls

    @property
    def thinking(self) -> bool:
        """Whether the text stands inside thinking."""
        return self._sink.thinking

    @property
    def passthrough_check(self) -> Callable[[str], bool] | None:
        """Tells of further text whether it goes out as it is, and counts it as read; None if none does now."""
        return None if self._sink.inside_calls or self._sink.failed else self._source.try_forward

    def feed(self, text: str, channel: Channel = Channel.TEXT) -> list[ev.Event]:
        if self._sink.failed:
            return []
        if self._source.push(text, channel):
            next(self._reader, None)
        return self._sink.drain()

    def close(self) -> list[ev.Event]:
        """The text is over. Nothing is held after this."""
        next(self._reader, None)  # what the prompt has begun may not have been read yet
        self._source.close()
        next(self._reader, None)
        self._sink.close()
        return self._sink.drain()

    def _read(self) -> Read[None]:
        source, sink, grammar = self._source, self._sink, self._dialect.grammar
        marker: str | None = ""
        while marker is not None and not sink.failed:
            if (
                marker == "" or marker in self._thinking_closers
            ):  # a text begins here: its first opener may have been lost
                opener = yield from self._read_first_opener()
                if opener is not None:
                    yield from self._read_calls(opener, self._first_openers[opener])
            marker = yield from self._next_marker()
            if marker in self._thinking_openers:
                self._open_thinking(marker)
            elif marker in self._thinking_closers and (sink.thinking or marker not in self._text_markers):
                self._close_thinking(marker)
            elif marker in self._text_markers:
                sink.thinking = False
            elif marker in self._dialect.noise:
                sink.report("noise", f"{marker} is not part of the reply: dropped")
            elif marker in self._dialect.strays:
                self._handle_stray(marker)
            elif marker and grammar is not None:
                yield from self._read_calls(marker, grammar)
        if source.buffered and not sink.call_count and not sink.failed:
            sink.emit_text(source.buffered, source.channel)

    def _next_marker(self) -> Read[str | None]:
        """Copies text up to the next marker; None where the reply ends."""
        if self._sink.failed:
            return None
        return (yield from self._source.copy_until(self._markers, self._sink.emit_text, self._dialect.trim))

    def _read_first_opener(self) -> Read[str | None]:
        """What stands where a text begins, if it opens a call only there and is no marker besides."""
        channel = self._source.channel
        if not self._first_openers or (yield from self._source.peek(self._markers)):
            return None
        if self._source.channel is not channel:  # what waited belongs to no text that begins here
            return None
        return (yield from self._source.accept_word(tuple(self._first_openers), self._dialect.trim))

    def _find_first_openers(self, offer: ToolSet) -> dict[str, Grammar]:
        """What opens a call only where a text begins, and who reads it."""
        grammar = self._dialect.grammar
        if grammar is None:
            return {}
        json_grammar = _guided_json_grammar(self._dialect.markers)
        bare_openers = (
            opener for opener in json_grammar.first_openers(offer) if "`" not in opener
        )  # no server writes code blocks
        return dict.fromkeys(bare_openers, json_grammar) | dict.fromkeys(grammar.first_openers(offer), grammar)

    def _handle_stray(self, marker: str) -> None:
        """A closer alone. Behind a call it is a slip of the model, in the middle of prose it may be meant as it is."""
        if marker in self._special_tokens.literals or self._source.markers_adjacent:
            self._sink.report("stray-marker", f"{marker} without a call around it: dropped")
        else:
            grammar = self._dialect.grammar
            if (
                self._sink.call_count and grammar is not None and grammar.inner_markers
            ):  # JSON is never cut: it ends by itself
                self._sink.report("closer-in-text", f"{marker} behind a call: kept as text, or a value was cut")
            self._source.start_recording(marker)
            self._sink.restore_text()

    def _read_calls(self, opener: str, grammar: Grammar) -> Read[None]:
        self._sink.inside_calls = True
        self._source.start_recording(opener)
        yield from grammar.read(opener, self._source, self._sink)
        self._sink.inside_calls = False

    def _open_thinking(self, marker: str) -> None:
        if self._sink.thinking or self._source.channel is Channel.REASONING:
            self._sink.report("stray-marker", f"{marker} inside thinking: dropped")
        else:
            self._sink.thinking = True

    def _close_thinking(self, marker: str) -> None:
        if self._sink.thinking:
            self._sink.thinking = False
        elif self._source.channel is Channel.TEXT:
            self._sink.report(
                "stray-marker",
                f"{marker} without {self._dialect.thinking[0].open}: dropped, and what stood before it is left as text "
                "(if the prompt opens the thinking, pass it as prefill)",
            )

    def _unfinished_prefill(self, prefill: str) -> str:
        """What the prompt has begun and the reply goes on with: half a marker, or a message."""
        if self._dialect.router is not None:
            return self._dialect.router.unfinished_message(prefill)
        grammar = self._dialect.grammar
        openers, closers = (grammar.openers, self._dialect.strays) if grammar else ((), ())
        opener_pos = max((prefill.rfind(opener) for opener in openers), default=-1)
        if opener_pos >= 0 and not any(closer in prefill[opener_pos:] for closer in closers):
            return prefill[opener_pos:]
        return prefill[self._markers.partial_start(prefill, 0) :]

    def _ends_inside_thinking(self, prefill: str) -> bool:
        opener_pos = max((prefill.rfind(marker) for marker in self._thinking_openers), default=-1)
        closer_pos = max((prefill.rfind(marker) for marker in self._thinking_closers), default=-1)
        return opener_pos > closer_pos
