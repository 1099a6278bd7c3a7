"""Parser for the native text of one reply: turns pieces of text into events for text, thinking and tool calls."""

from __future__ import annotations

from functools import lru_cache

from interlingua import events as ev
from interlingua.core.options import ArgumentsPolicy, Limits
from interlingua.core.text_forwarder import TextForwarder
from interlingua.core.tools import ToolSet
from interlingua.parsing.dialect import Dialect, FirstOpeners, Grammar
from interlingua.parsing.event_sink import DetectionState, EventSink
from interlingua.parsing.guided_json import GuidedJsonReader
from interlingua.parsing.lookahead import SortedWords
from interlingua.parsing.markers import MarkerSet, compile_markers
from interlingua.parsing.quoted_calls import QuotedCallReader
from interlingua.parsing.shapes.json_envelope.grammar import INLINE_CALL_STARTS, JsonEnvelope
from interlingua.parsing.suffixes import MAX_LEARNED_SUFFIXES, SuffixedTag, add_suffix, find_suffix, suffixed_tags
from interlingua.parsing.text_buffer import Channel, Read, TextBuffer
from interlingua.parsing.tracer import HeldText, ParserTracer
from interlingua.parsing.trailing_markers import drop_trailing_markers
from interlingua.parsing.untouched_text import UntouchedTextReader
from interlingua.trace import HoldReason

__all__ = ["NativeTextParser"]

MAX_UNSORTED_OPENERS = 32
"""Number of first openers up to which each of them is compared with the text."""
ARRAY_OPENER = "["
JSON_OPENERS = ("{", ARRAY_OPENER)
NO_TAGS: dict[str, SuffixedTag] = {}  # the same object for all parsers


@lru_cache(maxsize=256)
def _guided_json_grammar(dialect_markers: tuple[str, ...]) -> Grammar:
    """Return the grammar for bare JSON calls.

    If a tool call is required, servers use guided decoding: the model writes JSON, whatever its dialect.
    """
    return JsonEnvelope(open=()).grammar(dialect_markers)


@lru_cache(maxsize=256)
def _find_start_markers(markers: MarkerSet) -> MarkerSet:
    """Return the markers at the start of a text. There, JSON is not after other text."""
    return compile_markers(*(marker for marker in markers.literals if marker not in INLINE_CALL_STARTS))


class NativeTextParser:
    """Parser for the text of one reply.

    The events are in order, but not yet normalised by the guard: ids may be missing or repeated, and a call that is
    truncated by the end of the text is left open.

    Args:
        dialect: The dialect of the text.
        offer: The tools that the client offered.
        prefill: The beginning of the reply that the prompt already contains. If it opens the thinking, the text starts
            inside thinking.
        limits: Limits for headers, arguments and buffers.
        thinking: If the text is the rest of a reply: whether it starts inside thinking.
        offset: If the text is the rest of a reply: its position in the reply.
        at_start: If the text is the rest of a reply: whether it is read like the start of a message.
        tracer: Receives the markers that are read, and the text that was held back and is sent as text.
        quotes: Whether calls inside code spans and code blocks are held back until it is known that they are no quotes.
        arguments: Whether arguments that are almost JSON are corrected.
    """

    __slots__ = (
        "_detection_in_code",
        "_dialect",
        "_first_openers",
        "_guided_json",
        "_is_at_start",
        "_learnable_suffixes",
        "_markers",
        "_reader",
        "_reads_quotes",
        "_sink",
        "_source",
        "_special_tokens",
        "_start_markers",
        "_starts_after_markers",
        "_suffixed_tags",
        "_text_closers",
        "_text_markers",
        "_thinking_closers",
        "_thinking_openers",
    )

    def __init__(
        self,
        dialect: Dialect,
        offer: ToolSet,
        prefill: str = "",
        limits: Limits | None = None,
        *,
        thinking: bool = False,
        offset: int = 0,
        at_start: bool = True,
        tracer: ParserTracer | None = None,
        quotes: bool = True,
        arguments: ArgumentsPolicy = "repair",
    ) -> None:
        if dialect.suffix and (suffix := find_suffix(dialect, prefill)):
            dialect = add_suffix(dialect, suffix)
        self._source = TextBuffer(offset, tracer)
        self._sink = EventSink(
            self._source,
            dialect.marker_sets.all,
            dialect.marker_sets.special_tokens,
            offer,
            limits or Limits(),
            dialect.in_prose,
            tracer,
            arguments,
        )
        self._is_at_start = at_start
        self._reads_quotes = quotes and not offer.is_empty
        self._learnable_suffixes = MAX_LEARNED_SUFFIXES if dialect.suffix else 0
        self._detection_in_code: DetectionState | None = None  # of all trials
        self._use_dialect(dialect)
        self._sink.thinking = thinking or (prefill != "" and self._ends_inside_thinking(prefill))
        if prefill:
            self._source.prepend_prefill(self._unfinished_prefill(prefill))
            self._source.code.add(prefill)
        # The reader starts with the first piece, whose channel it uses.
        self._reader = self._read_without_tools() if offer.is_empty else self._read()

    def _use_dialect(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._suffixed_tags = suffixed_tags(dialect) if self._learnable_suffixes else NO_TAGS
        marker_sets = dialect.marker_sets
        tags = self._suffixed_tags
        self._markers = compile_markers(*dialect.markers, *tags) if tags else marker_sets.all
        self._start_markers = _find_start_markers(self._markers)
        if len(self._start_markers.literals) < len(self._markers.literals):
            self._source.code.track_brackets()
        self._special_tokens = marker_sets.special_tokens
        self._first_openers = self._sink.offer.derive((FirstOpeners, dialect.grammar), self._find_first_openers)
        self._thinking_openers = dialect.thinking_openers
        self._thinking_closers = self._sink.thinking_closers = dialect.thinking_closers
        self._text_markers = dialect.text_markers
        self._guided_json = GuidedJsonReader(dialect, self._sink.offer) if self._sink.offer.requires_call else None
        self._sink.guided_json = self._guided_json
        # After markers that do not end thinking, a text starts only in these cases.
        self._starts_after_markers = self._guided_json is not None or dialect.router is not None
        self._text_closers = dialect.text_closers
        if self._reads_quotes:
            self._sink.quotes = QuotedCallReader(
                self._source,
                self._sink,
                self._start_trial,
                marker_sets,
                has_back_ticks=dialect.grammar is not None and dialect.grammar.writes_back_ticks,
            )

    def _start_trial(self, offset: int, at_start: bool) -> NativeTextParser:
        """Return a parser for the rest of the text from this position on, which reads quoted calls like others.

        `at_start`: the text is read like the start of a message, not like text after other text.
        """
        sink = self._sink
        trial = NativeTextParser(
            self._dialect,
            sink.offer,
            limits=sink.limits,
            thinking=sink.thinking,
            offset=offset,
            at_start=at_start,
            quotes=False,
            arguments=sink.arguments,
        )
        self._detection_in_code = self._detection_in_code or DetectionState(in_code=True)
        trial._sink.detection = self._detection_in_code
        return trial

    @property
    def buffered(self) -> str:
        """The text that the parser holds back until it has seen more text."""
        return self._source.buffered

    @property
    def held_chars(self) -> int:
        """Number of characters that the parser holds back."""
        return self._source.held_chars

    @property
    def channel(self) -> Channel:
        """The channel of the last text."""
        return self._source.channel

    @property
    def held_channel(self) -> Channel:
        """The channel of the text that waits."""
        return self._source.recorded_channel if self._source.recorded_text.strip() else self._source.channel

    def held_back(self) -> list[HeldText]:
        """Return the texts that wait for more text, and the reasons, for a trace."""
        source, sink = self._source, self._sink
        if source.recorded_text.strip():
            reason: HoldReason = "tentative" if sink.is_tentative else "call"
            reason = "not-offered" if source.recorded_is_refused else reason
            return [(source.recorded_text + source.unread_text, reason)]
        held = sink.held_back()
        if source.buffered:
            held.append((source.buffered, self._wait_reason()))
        return held

    def _wait_reason(self) -> HoldReason:
        """Return the reason why the text in the buffer waits."""
        if self._source.marked_text:
            return "value-end"
        text = self._source.buffered
        if text.isspace():
            return "whitespace"
        if self._markers.is_partial(text.lstrip(), 0):
            return "marker"
        if self._source.taken_text:
            return "param"
        # Outside a call, text waits because it may begin a marker, or a call whose opener is missing.
        return "marker" if self._sink.inside_calls else "call"

    @property
    def inside_calls(self) -> bool:
        """True if the parser is inside a call or a section of calls."""
        return self._sink.inside_calls

    @property
    def thinking(self) -> bool:
        """True if the parser is inside thinking."""
        return self._sink.thinking

    @property
    def text_forwarder(self) -> TextForwarder | None:
        """A function for texts that are copied unparsed. None if the parser is inside a call or has failed."""
        return None if self._sink.inside_calls or self._sink.failed else self._source.forward_text

    @property
    def arguments_forwarder(self) -> TextForwarder | None:
        """A function for texts inside a string of a call's arguments. None if no arguments are being copied."""
        return None if self._sink.failed or not self._source.is_copying_json else self._source.forward_json

    def feed(self, text: str, channel: Channel = Channel.TEXT) -> list[ev.Event]:
        if self._sink.failed or (not text and channel is self._source.channel):
            return []
        if self._source.push(text, channel):
            next(self._reader, None)
        return self._sink.drain()

    def close(self) -> list[ev.Event]:
        """Mark the end of the text and return the remaining events. The buffer is empty afterwards."""
        next(self._reader, None)  # the prefill may not have been read yet
        self._source.close()
        next(self._reader, None)
        self._sink.close()
        events = self._sink.drain()
        self.release()
        return events

    def release(self) -> None:
        """Drop the objects that refer back to the parser, so that it is freed without a garbage collection."""
        self._reader.close()
        self._source.release()
        self._sink.quotes = None
        self._sink.clear_open_call()

    def _read(self) -> Read[None]:
        source, sink = self._source, self._sink
        marker: str | None = ""
        reads_start = self._is_at_start
        while marker is not None and not sink.failed:
            if reads_start and (self._starts_after_markers or not marker or marker in self._thinking_closers):
                yield from self._read_text_start(marker)
            reads_start = True
            marker = yield from self._next_marker()
            if marker in self._thinking_openers:
                self._read_thinking_opener(marker)
            elif marker in self._thinking_closers and (sink.thinking or marker not in self._text_markers):
                self._close_thinking(marker)
            elif marker and marker in self._text_markers:
                yield from self._read_text_marker(marker)
            elif marker in self._dialect.noise:
                sink.report("noise", f"{marker} is not part of the reply: dropped")
            elif marker in self._dialect.stray_set:
                self._handle_stray(marker)
            elif marker and self._dialect.grammar is not None:
                yield from self._read_calls(marker, self._dialect.grammar)
        if source.buffered and not sink.call_count and not sink.failed:
            source.trace_release(source.buffered, source.channel)
            sink.emit_text(source.buffered, source.channel)

    def _read_text_marker(self, marker: str) -> Read[None]:
        """Read the beginning or the end of a message with text. It is reported if it is in the middle of the text."""
        source = self._source
        is_after_text = source.marker_follows_text and not self._sink.thinking
        self._sink.thinking = False
        if is_after_text and (marker not in self._text_closers or (yield from self._text_continues())):
            self._sink.report("stray-marker", f"{marker.strip()} inside a text: dropped", source.offset)

    def _text_continues(self) -> Read[bool]:
        """Return whether text follows on the same channel, and neither a marker nor the JSON of a call."""
        source = self._source
        channel = source.channel
        if (yield from source.peek(self._markers)) is not None or source.channel is not channel:
            return False
        return (yield from source.peek_after_space()) not in JSON_OPENERS

    def _read_without_tools(self) -> Read[None]:
        """Read a reply to a request without tools. Only the message structure of the dialect is parsed."""
        router = self._dialect.router
        if router is not None and (yield from self._source.peek(router.message_starts)):
            yield from self._read()
        else:
            yield from UntouchedTextReader(self._dialect, self._source, self._sink).read()

    def _read_quoted(self, marker: str) -> Read[bool]:
        """Read a marker inside a code span or a code block. Return False if it is structure all the same."""
        source, sink = self._source, self._sink
        if marker in self._thinking_closers and (sink.thinking or source.channel is Channel.REASONING):
            return False
        if marker in self._text_closers and (yield from source.peek(self._markers, marker)) is not None:
            source.code.reset()  # a message ends here, because another one or the end of the reply follows
            return False
        if marker in self._dialect.noise:
            yield from drop_trailing_markers(marker, self._dialect.marker_sets.noise, self._dialect.noise, source, sink)
            return True
        is_opener = self._dialect.grammar is not None and marker in self._dialect.grammar.openers
        if is_opener and sink.quotes is not None and not self._is_inside_json(marker):
            return (yield from sink.quotes.read(marker))
        self._emit_marker(marker)
        return True

    def _next_marker(self) -> Read[str | None]:
        """Copy text up to the next marker and return it; None at the end of the reply. Quoted markers are text."""
        while not self._sink.failed:
            marker = yield from self._source.copy_until(self._markers, self._sink.emit_text, self._dialect.trim)
            if marker in self._suffixed_tags and not (marker := (yield from self._learn_suffix(marker))):
                continue
            quotes = self._sink.quotes
            if not marker or quotes is None or not self._source.code.may_be_in_code:
                return marker
            if not (quotes.is_in_code(marker) and (yield from self._read_quoted(marker))):
                return marker
        return None

    def _is_inside_json(self, marker: str) -> bool:
        """Return whether the marker is JSON that is part of other JSON."""
        source = self._source
        return marker in INLINE_CALL_STARTS and source.code.is_in_brackets_before(source.trimmed_whitespace)

    def _learn_suffix(self, start: str) -> Read[str | None]:
        """Read the rest of a tag with an unknown suffix, and use this suffix from here on.

        Return the tag. If there is no such tag, emit its start as text and return None.
        """
        tag = self._suffixed_tags[start]
        self._source.put_back(start)
        name = yield from self._source.look_ahead(tag.lookahead, tag.max_length)
        if name is None:
            self._source.read_again(start)
            self._source.start_recording(start)
            self._sink.restore_text()
            return None
        marker = start + name + tag.end
        self._source.read_again(marker)
        self._learnable_suffixes -= 1
        self._use_dialect(add_suffix(self._dialect, start[-1] + name))
        self._sink.set_markers(self._dialect.marker_sets.all, self._special_tokens)
        return marker

    def _read_text_start(self, marker: str) -> Read[None]:
        """Read calls without their opener after a marker, or at the start of a text if the marker is empty."""
        if self._guided_json is not None and not self._source.is_after_text:
            yield from self._guided_json.read_start(self._source, self._sink, self._dialect.trim)
        opener: str | None = None
        if marker == "" or marker in self._thinking_closers:
            opener = yield from self._read_first_opener(self._first_openers.words)
        if opener is not None:
            yield from self._read_calls(opener, self._first_openers.grammars[opener])
        while self._dialect.router is not None and (opener or marker):
            # Outside messages, an array of calls may follow a message.
            if self._guided_json is not None:
                yield from self._guided_json.read_start(self._source, self._sink, self._dialect.trim)
            opener = yield from self._read_first_opener(
                (ARRAY_OPENER,) if ARRAY_OPENER in self._first_openers.grammars else ()
            )
            if opener is None:
                return
            yield from self._read_calls(opener, self._first_openers.grammars[opener])

    def _read_first_opener(self, openers: tuple[str, ...] | SortedWords) -> Read[str | None]:
        """Consume and return one of the openers that are valid only at the start of a text.

        None if there is none, or a marker.
        """
        channel = self._source.channel
        if not openers or (yield from self._source.peek(self._start_markers)) is not None:
            return None  # a marker, or the end of the text
        if self._source.channel is not channel:  # the buffered text is not the start of a text
            return None
        return (yield from self._source.accept_word(openers, self._dialect.trim))

    def _find_first_openers(self) -> FirstOpeners:
        grammar, offer = self._dialect.grammar, self._sink.offer
        if grammar is None:
            return FirstOpeners({}, ())
        json_grammar = _guided_json_grammar(self._dialect.markers)
        # Guided decoding never produces code blocks.
        grammars = {opener: json_grammar for opener in json_grammar.first_openers(offer) if "`" not in opener}
        grammars |= dict.fromkeys(grammar.first_openers(offer), grammar)
        return FirstOpeners(
            grammars, tuple(grammars) if len(grammars) <= MAX_UNSORTED_OPENERS else SortedWords(grammars)
        )

    def _handle_stray(self, marker: str) -> None:
        """Handle a closer outside a call.

        After a call it is a mistake of the model, and so it is at the end of a reply that had to be read to its end;
        inside prose it may be intended.
        """
        ends_reply = self._source.closed and not self._source.unread_text
        if marker in self._special_tokens.literals or self._source.markers_adjacent or ends_reply:
            self._sink.report("stray-marker", f"{marker} outside a call: dropped")
        else:
            grammar = self._dialect.grammar
            # Grammars without inner markers write JSON, whose end is known: a closer cannot have cut a value there.
            if self._sink.call_count and grammar is not None and grammar.inner_markers:
                self._sink.report(
                    "closer-in-text", f"{marker} after a call: kept as text (a value before it may be truncated)"
                )
            self._emit_marker(marker)

    def _emit_marker(self, marker: str) -> None:
        """Emit a marker that was just read as text."""
        self._source.start_recording(marker)
        self._sink.emit_text(self._source.take_recorded(), self._source.recorded_channel)
        self._source.mark_as_text()

    def _read_calls(self, opener: str, grammar: Grammar) -> Read[None]:
        self._sink.inside_calls = True
        self._source.start_recording(opener)
        calls_before = self._sink.call_count
        guided_json = self._guided_json if opener not in self._first_openers.grammars else None
        if guided_json is None or not (yield from guided_json.read_marked(self._source, self._sink, opener=opener)):
            yield from grammar.read(opener, self._source, self._sink)
        if self._sink.call_count > calls_before:
            self._source.code.reset()
        self._source.discard_recording()  # a section may end with a marker after the last call
        self._sink.inside_calls = False

    def _read_thinking_opener(self, marker: str) -> None:
        """Open the thinking. An opener that is ordinary text, unlike other markers, counts only at the start."""
        source = self._source
        is_at_start = not source.marker_follows_text and not source.markers_adjacent
        if not is_at_start and self._dialect.special_tokens and marker not in self._special_tokens.literals:
            self._emit_marker(marker)
        elif self._sink.thinking or self._source.channel is Channel.REASONING:
            self._sink.report("stray-marker", f"{marker} inside thinking: dropped")
        else:
            self._sink.thinking = True

    def _close_thinking(self, marker: str) -> None:
        if self._sink.thinking:
            self._sink.thinking = False
        elif self._source.channel is Channel.TEXT:
            self._sink.report(
                "stray-marker",
                f"{marker} without {self._dialect.thinking[0].open}: dropped, and the text before it stays text "
                "(if the prompt opens the thinking, pass it as prefill)",
            )

    def _unfinished_prefill(self, prefill: str) -> str:
        """Return the part of the prefill that the reply continues: a partial marker, a call or a message."""
        if self._dialect.router is not None:
            return self._dialect.router.unfinished_message(prefill)
        grammar = self._dialect.grammar
        opener_pos = max((prefill.rfind(opener) for opener in grammar.openers), default=-1) if grammar else -1
        if grammar and opener_pos >= 0:
            # A grammar that detects the dialect has no strays, but it knows the closers of all dialects.
            closers = self._dialect.strays or tuple(m for m, role in grammar.marker_roles.items() if role == "closer")
            if not any(closer in prefill[opener_pos:] for closer in closers):
                return prefill[opener_pos:]
        return prefill[self._markers.partial_start(prefill, 0) :]

    def _ends_inside_thinking(self, prefill: str) -> bool:
        opener_pos = max((prefill.rfind(marker) for marker in self._thinking_openers), default=-1)
        closer_pos = max((prefill.rfind(marker) for marker in self._thinking_closers), default=-1)
        return opener_pos > closer_pos
