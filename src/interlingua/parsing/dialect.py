"""Dialect: the format in which one model family writes tool calls and thinking, as data.

A dialect names a shape and supplies its markers. Compiled together they are a grammar, which reads and writes calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

from interlingua.core.call_ids import IdStyle
from interlingua.core.reply import Call, Part
from interlingua.core.tools import ToolSet
from interlingua.parsing.event_sink import EventSink
from interlingua.parsing.lookahead import SortedWords
from interlingua.parsing.markers import SPECIAL_TOKEN_PREFIXES, MarkerSet, assign_roles, compile_markers
from interlingua.parsing.text_buffer import Read, TextBuffer
from interlingua.trace import MarkerRole

__all__ = ["Dialect", "FirstOpeners", "Grammar", "MarkerSets", "MessageGrammar", "Shape", "Span"]


@dataclass(frozen=True)
class Span:
    """A pair of markers, and the whitespace that the model writes inside the pair and after it."""

    open: str
    close: str
    inside: str = ""
    after: str = ""


class Grammar(Protocol):
    """A shape with its compiled markers.

    `openers` begin a call or a section of calls. `strays` are markers without a meaning of their own, such as a closer
    outside a call.
    """

    openers: tuple[str, ...]
    strays: tuple[str, ...]
    inner_markers: tuple[str, ...]
    """Markers that are structure only inside a call. Outside a call they are text."""
    marker_roles: dict[str, MarkerRole]
    """The role of each marker, for traces."""
    reads_json: bool
    """True if the openers can be followed by JSON objects that have a name and arguments (or `parameters`)."""
    writes_back_ticks: bool
    """True if the model writes back-ticks inside its calls, or around the arguments."""

    def first_openers(self, offer: ToolSet) -> tuple[str, ...]:
        """Return the openers that begin a call only at the start of a text.

        These are bare JSON, or the name of an offered tool whose opening marker was lost.
        """
        ...

    def read(self, opener: str, source: TextBuffer, sink: EventSink) -> Read[None]:
        """Read from after the opener (one of `openers` or of `first_openers`) to the end of the call or section.

        The source records from the opener on. If the text turns out not to be a call, the recorded text is returned
        to the sink as plain text.
        """
        ...

    def extract_name(self, text: str, offer: ToolSet) -> str:
        """Return the tool name in the name of a structured call. Some upstreams leave native text in that field."""
        ...

    def write(self, calls: Sequence[Call], preceding_calls: int) -> str:
        """Write consecutive calls in the format of the model.

        `preceding_calls` is the number of calls that come before them in the reply.
        """
        ...


class FirstOpeners(NamedTuple):
    """The openers that are valid only at the start of a text. They depend on the offered tools."""

    grammars: dict[str, Grammar]
    """The grammar that reads each of them."""
    words: tuple[str, ...] | SortedWords


@runtime_checkable
class MessageGrammar(Grammar, Protocol):
    """A grammar whose message headers also mark text and thinking, so that it reads and writes whole replies."""

    message_starts: MarkerSet
    """The texts that a reply with such headers can begin with."""

    def write_reply(self, parts: Sequence[Part]) -> str:
        """Write a whole reply in the format of the model. No two adjacent parts are both text or both thinking."""
        ...

    def unfinished_message(self, prefill: str) -> str:
        """Return the part of an unfinished message in the prefill that the parser still has to read."""
        ...


class Shape(Protocol):
    """A layout of calls with the markers of one dialect, as data."""

    NAME: ClassVar[str]
    """The name of the shape in dialect files."""

    def grammar(self, dialect_markers: tuple[str, ...]) -> Grammar:
        """Compile the markers. `dialect_markers` are those outside the shape. They end any call or section."""
        ...


@dataclass(frozen=True)
class MarkerSets:
    """Markers of one dialect, compiled once for all of its parsers."""

    all: MarkerSet
    special_tokens: MarkerSet
    noise: MarkerSet
    thinking_closers: MarkerSet
    reply_closers: MarkerSet
    """The markers that may follow the last call of a reply, such as end-of-turn tokens."""
    thinking_boundaries: MarkerSet
    """The markers that end a text inside thinking: the closers of thinking, and noise."""


@dataclass(frozen=True)
class Dialect:
    name: str
    summary: str
    models: tuple[str, ...] = ()
    """Glob patterns for the ids of the models that use this dialect, in lower case."""
    shape: Shape | None = None
    """The layout of its calls. Without a shape, the parser separates only thinking, text and noise."""
    thinking: tuple[Span, ...] = ()
    """Markers around thinking. All spans are read, the first one is written."""
    text: tuple[Span, ...] = ()
    """Markers around the text of a reply. They are removed. All spans are read, the first one is written."""
    noise: tuple[str, ...] = ()
    """Markers that some servers leave in the text and that are dropped, such as the end of a turn."""
    special_tokens: bool = True
    """True if the markers are special tokens, which never occur in prose. If they are ordinary text, a call of a tool
    that was not offered is emitted as text: unchanged, or as its name and arguments."""
    ordinary: tuple[str, ...] = ()
    """Prefixes of the markers that can occur in prose although the other markers are special tokens."""
    suffix: str = ""
    """The part of the markers that differs between the checkpoints of a family, such as `:6124c78e` in
    `<tool_call:6124c78e>`. Another suffix is recognised if it has the same first character, then letters and digits."""
    trim: str = ""
    """Whitespace characters that the model writes next to markers as layout. There they are removed from the text."""
    lead: str = ""
    """The separator that the model writes between its text and its calls."""
    ids: IdStyle = "call"
    """The format of the ids that are generated for calls without an id."""
    caveats: str = ""
    """Known limitations: the output that cannot be parsed correctly, in words."""
    sample: str = ""
    """A reply that a model really wrote."""

    def speaks(self, model: str) -> bool:
        return any(fnmatchcase(model.lower(), glob) for glob in self.models)

    @cached_property
    def thinking_markers(self) -> tuple[str, ...]:
        return tuple(marker for span in self.thinking for marker in (span.open, span.close))

    @cached_property
    def text_markers(self) -> tuple[str, ...]:
        return tuple(marker for span in self.text for marker in (span.open, span.close) if marker)

    @cached_property
    def text_closers(self) -> tuple[str, ...]:
        return tuple(span.close for span in self.text if span.close)

    @cached_property
    def grammar(self) -> Grammar | None:
        return self.shape.grammar(self.thinking_markers + self.text_markers + self.noise) if self.shape else None

    @cached_property
    def router(self) -> MessageGrammar | None:
        """The grammar, if it reads and writes whole replies."""
        return self.grammar if isinstance(self.grammar, MessageGrammar) else None

    @cached_property
    def strays(self) -> tuple[str, ...]:
        """The markers of the shape that have no meaning outside a call. Special tokens among them are never text."""
        if self.grammar is None:
            return ()
        inner_markers = self.grammar.inner_markers if self.special_tokens else ()
        return self.grammar.strays + tuple(marker for marker in inner_markers if self._is_special_token(marker))

    @cached_property
    def markers(self) -> tuple[str, ...]:
        """All markers that can be structure in text of this dialect."""
        grammar = self.grammar
        shape_markers = grammar.openers + self.strays if grammar else ()
        return shape_markers + self.thinking_markers + self.text_markers + self.noise

    @cached_property
    def marker_roles(self) -> dict[str, MarkerRole]:
        """The role of each marker, for traces."""
        own_roles = assign_roles(
            ("thinking-start", (span.open for span in self.thinking)),
            ("thinking-end", (span.close for span in self.thinking)),
            ("text", self.text_markers),
            ("noise", self.noise),
        )
        return {**(self.grammar.marker_roles if self.grammar else {}), **own_roles}

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """The markers that are special tokens and never occur in prose."""
        return tuple(marker for marker in self.markers if self._is_special_token(marker))

    @cached_property
    def thinking_openers(self) -> frozenset[str]:
        return frozenset(span.open for span in self.thinking)

    @cached_property
    def thinking_closers(self) -> frozenset[str]:
        return frozenset(span.close for span in self.thinking)

    @cached_property
    def stray_set(self) -> frozenset[str]:
        return frozenset(self.strays)

    @cached_property
    def marker_sets(self) -> MarkerSets:
        thinking_closers = [span.close for span in self.thinking]
        return MarkerSets(
            all=compile_markers(*self.markers),
            special_tokens=compile_markers(*self.tokens),
            noise=compile_markers(*self.noise),
            thinking_closers=compile_markers(*thinking_closers),
            reply_closers=compile_markers(*self.noise, *self.strays, *self.text_markers),
            thinking_boundaries=compile_markers(*self.noise, *thinking_closers),
        )

    @cached_property
    def in_prose(self) -> tuple[str, ...]:
        """Prefixes of the markers that can occur in prose. The empty prefix, if no marker is a special token."""
        return self.ordinary if self.special_tokens else ("",)

    def _is_special_token(self, marker: str) -> bool:
        return not marker.startswith(self.in_prose) or any(token in marker for token in SPECIAL_TOKEN_PREFIXES)
