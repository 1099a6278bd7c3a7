"""Detection of the dialect from the text, for gateways in front of unknown models.

The openers of all dialects are recognised. At an opener, every dialect that has it parses the text independently. The
first one that finds a call of an offered tool parses the rest of the reply. If none does, the text stays plain text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from interlingua import events as ev
from interlingua.core.reply import Call
from interlingua.core.tools import ToolSet
from interlingua.errors import RenderError
from interlingua.parsing.dialect import Dialect, Grammar
from interlingua.parsing.event_sink import EventSink
from interlingua.parsing.markers import assign_roles
from interlingua.parsing.parser import NativeTextParser
from interlingua.parsing.text_buffer import Channel, Read, TextBuffer

__all__ = ["DetectShape", "detection_dialect"]

MAX_REREAD_CHARS = 64
"""Maximum length of a failed candidate that is searched for other openers.

The limit keeps the total work linear: long text is never read twice."""
MAX_WORD_CHARS = 32
MAX_WORK_CHARS = 16_000
MAX_WORK_IN_CODE_CHARS = 60_000
MAX_WORK_PER_CHAR = 3
"""Limits of the work on openers that turn out to be text, in characters that candidates read: for the text of any
reply, for its code spans and code blocks, and for each character of both. Text full of openers would otherwise cost a
hundred times as much as with a known dialect. Code has its own limit: in JSON, nearly every dialect is a candidate, and
examples in code must not hide a call in the text after them."""
CANDIDATE_CHARS = 64
FEED_CHARS = 8
"""Costs of the parser of a candidate and of each piece that it is fed, in characters that it could read instead. Each
offered tool costs as much as a character: its name may begin a call."""
_WORD = re.compile(r"\w*+")


def detection_dialect(dialects: Sequence[Dialect]) -> Dialect:
    """Return a dialect that detects from the text which of these dialects it is."""
    native = tuple(dialect for dialect in dialects if dialect.shape is not None)
    return Dialect(
        name="detect",
        summary="detected from the text: the first call of an offered tool, in any dialect",
        shape=DetectShape(native),
        thinking=tuple(dict.fromkeys(span for dialect in native for span in dialect.thinking)),
        text=tuple(span for dialect in native if dialect.special_tokens for span in dialect.text),
        noise=tuple(dict.fromkeys(marker for dialect in native for marker in dialect.noise)),
        special_tokens=False,
        trim="\n",
        caveats="Functionary 3.2 is detected only if the reply begins with the name of a call, without the `>>>` "
        "before it; otherwise its calls stay in the text. A possible call is followed for `Limits.header` characters.",
    )


@dataclass(frozen=True)
class DetectShape:
    """Shape of a reply whose dialect is not known yet."""

    NAME: ClassVar[str] = "detect"

    dialects: tuple[Dialect, ...]

    def grammar(self, dialect_markers: tuple[str, ...]) -> Grammar:
        return DetectGrammar(self.dialects, dialect_markers)


class DetectGrammar:
    strays: tuple[str, ...] = ()
    inner_markers: tuple[str, ...] = ()
    reads_json = True
    writes_back_ticks = False

    def __init__(self, dialects: tuple[Dialect, ...], dialect_markers: tuple[str, ...]) -> None:
        self._dialects = dialects
        self._dialects_by_opener: dict[str, list[Dialect]] = {}
        grammars = [dialect.grammar for dialect in dialects if dialect.grammar]
        openers = dict.fromkeys(opener for grammar in grammars for opener in grammar.openers)
        for opener in openers:
            if opener not in dialect_markers and _is_distinctive(opener):
                self._dialects_by_opener[opener] = _rank_dialects(
                    opener, [(d, d.grammar.openers) for d in dialects if d.grammar]
                )
        self.openers = tuple(self._dialects_by_opener)
        roles = {marker: role for grammar in grammars for marker, role in grammar.marker_roles.items()}
        closers = (marker for marker, role in roles.items() if role == "closer" and _is_distinctive(marker))
        self.marker_roles = assign_roles(("closer", closers), ("opener", self.openers))

    def write(self, calls: Sequence[Call], preceding_calls: int) -> str:  # noqa: ARG002 (always raises)
        raise RenderError("the dialect 'detect' cannot write calls", "choose the dialect of the model")

    def extract_name(self, text: str, offer: ToolSet) -> str:  # noqa: ARG002 (the dialect is not known)
        return text

    def first_openers(self, offer: ToolSet) -> tuple[str, ...]:
        opener_lists = (dialect.grammar.first_openers(offer) for dialect in self._dialects if dialect.grammar)
        return tuple(dict.fromkeys(opener for openers in opener_lists for opener in openers))

    def read(self, opener: str, source: TextBuffer, sink: EventSink) -> Read[None]:
        if opener.startswith("`") and sink.quotes is not None:
            yield from sink.quotes.read(opener, opens_block=True)
            return
        start = source.offset - len(opener)
        detection = sink.detection
        max_work = MAX_WORK_IN_CODE_CHARS if detection.in_code else MAX_WORK_CHARS
        if detection.work_chars > max_work + MAX_WORK_PER_CHAR * start:
            sink.report(
                "over-limit", f"too much text that looks like the beginning of a call: {opener!r} is text", start
            )
            sink.emit_text(source.take_recorded(), source.recorded_channel)
            source.mark_as_text()
            return
        readers = [_Candidate(dialect, start, source, sink) for dialect in self._candidates(opener, sink)]
        try:
            winner = yield from self._compete(opener, readers, source, sink)
            if winner is None:
                if source.offset - start <= MAX_REREAD_CHARS and source.channel is source.recorded_channel:
                    source.rewind(opener)
                sink.emit_text(source.take_recorded(), source.recorded_channel)
                source.mark_as_text()
                return
            source.discard_recording()
            winner.start_tracing()
            sink.report("detected", f"detected the dialect {winner.name!r}: used for the rest of the reply", start)
            yield from self._follow(winner, source, sink)
        finally:  # also if the reply is not read any further
            for reader in readers:
                reader.parser.release()

    def _candidates(self, opener: str, sink: EventSink) -> list[Dialect]:
        if opener in self._dialects_by_opener:
            return self._dialects_by_opener[opener]
        candidates = sink.detection.candidates
        if opener not in candidates:
            sink.detection.work_chars += len(sink.offer.names) * len(self._dialects)
            candidates[opener] = _rank_dialects(
                opener, [(d, d.grammar.first_openers(sink.offer)) for d in self._dialects if d.grammar]
            )
        return candidates[opener]

    def _compete(
        self, opener: str, readers: list[_Candidate], source: TextBuffer, sink: EventSink
    ) -> Read[_Candidate | None]:
        """Feed all candidates until one has found a call, or none can find one any more.

        They are fed word by word, so that the winner does not depend on how the text is split into pieces.
        """
        text, end = opener, source.offset + sink.limits.header
        sink.detection.work_chars += (CANDIDATE_CHARS + len(sink.offer.names)) * len(readers)
        while source.offset < end:
            sink.detection.work_chars += (FEED_CHARS + len(text)) * len(readers)
            for reader in readers:
                reader.feed(text)
            winner = next((reader for reader in readers if reader.has_won), None)
            for reader in readers:
                if (winner is not None and reader is not winner) or reader.has_lost:
                    reader.parser.release()
            readers = [reader for reader in readers if not reader.has_lost]
            if winner is not None or not readers:
                return winner
            text = yield from source.take_char()
            if text.isalnum():
                text += yield from source.take_while(_WORD, MAX_WORD_CHARS)
            if text == "":
                return next((reader for reader in readers if source.closed and reader.finish_as_call()), None)
        return next((reader for reader in readers if reader.starts_with_call), None)

    def _follow(self, winner: _Candidate, source: TextBuffer, sink: EventSink) -> Read[None]:
        """Feed the rest of the reply to the winner."""
        sink.inner_held_back = winner.parser.held_back
        for event in winner.events:
            sink.emit(event)
        while not winner.closed and not source.closed:
            text = yield from source.take_all()
            for event in winner.parser.feed(text, source.taken_channel):
                sink.emit(event)
            sink.inside_calls = winner.parser.inside_calls
        if not winner.closed:
            for event in winner.parser.close():
                sink.emit(event)


def _is_distinctive(opener: str) -> bool:
    """Return whether an opener is specific enough to start detection anywhere.

    A bracket is not, nor JSON on the same line as other text: prose is full of them.
    """
    return any(map(str.isalpha, opener)) and not opener.startswith(('{"', "[{"))


def _rank_dialects(opener: str, candidates: Iterable[tuple[Dialect, tuple[str, ...]]]) -> list[Dialect]:
    """Return the dialects with this opener, one per shape.

    Dialects that list it first among their openers come first.
    """
    ranks = [(openers.index(opener), dialect) for dialect, openers in candidates if opener in openers]
    by_shape: dict[object, Dialect] = {}
    for _, dialect in sorted(ranks, key=lambda rank: rank[0]):
        by_shape.setdefault(dialect.shape, dialect)
    return list(by_shape.values())


class _Candidate:
    """Parser of one dialect that competes while the dialect is not known."""

    def __init__(self, dialect: Dialect, start: int, source: TextBuffer, sink: EventSink) -> None:
        self.name = dialect.name
        self._tracer = sink.tracer.defer(dialect.marker_roles) if sink.tracer is not None else None
        self.parser = NativeTextParser(
            dialect,
            sink.offer,
            limits=sink.limits,
            thinking=sink.thinking,
            offset=start,
            tracer=self._tracer,
            quotes=sink.quotes is not None,
            arguments=sink.arguments,
        )
        self.events: list[ev.Event] = []
        self._content_events: list[ev.Event] = []
        self.closed = False
        self._channel = source.channel
        self._can_start_thinking = bool(dialect.router) and not sink.thinking and source.channel is Channel.TEXT
        self._offer = sink.offer

    def start_tracing(self) -> None:
        """Report what the parser has observed, if the reply is traced. Candidates that lose report nothing."""
        if self._tracer is not None:
            self._tracer.start()

    def feed(self, text: str) -> None:
        self._record_events(self.parser.feed(text, self._channel))

    def finish_as_call(self) -> bool:
        """Mark the end of the text. Return whether it was a call."""
        self._record_events(self.parser.close())
        self.closed = True
        return self.has_won or self.starts_with_call

    def _record_events(self, events: list[ev.Event]) -> None:
        if events:
            self.events += events
            self._content_events += (event for event in events if not isinstance(event, ev.Finding))

    @property
    def starts_with_call(self) -> bool:
        """True if its first event is a call of a tool that may be called."""
        first = self._content_events[0] if self._content_events else None
        return isinstance(first, ev.CallStart) and self._offer.accepts(first.name)

    @property
    def has_won(self) -> bool:
        """True if it has parsed a call beyond its header, or thinking in a message of its own.

        A header alone does not decide, because several dialects can have the same one.
        """
        if not self._content_events:
            return False
        return (len(self._content_events) > 1 and self.starts_with_call) or self._starts_with_thinking

    @property
    def _starts_with_thinking(self) -> bool:
        return self._can_start_thinking and isinstance(self._content_events[0], ev.ReasoningDelta)

    @property
    def has_lost(self) -> bool:
        """True if the text is not a call in this dialect: it is something else, or it has ended."""
        if self._content_events:
            return not (self.starts_with_call or self._starts_with_thinking)
        inside_thinking = self._can_start_thinking and self.parser.thinking
        return not (self.parser.inside_calls or self.parser.buffered or inside_thinking)
