"""How one model family writes tool calls and thinking, as data.

A dialect names a shape and gives it its markers. Compiled, they are its grammar, which reads and writes calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import ClassVar, Protocol, runtime_checkable

from interlingua.core.call_ids import IdStyle
from interlingua.core.reply import Call, Part
from interlingua.core.tools import ToolSet
from interlingua.parsing.event_sink import EventSink
from interlingua.parsing.markers import SPECIAL_TOKEN_PREFIXES
from interlingua.parsing.text_buffer import Read, TextBuffer

__all__ = ["Dialect", "Grammar", "MessageGrammar", "Shape", "Span"]


@dataclass(frozen=True)
class Span:
    """A pair of markers, and the white space that the model writes inside and after it."""

    open: str
    close: str
    inside: str = ""
    after: str = ""


class Grammar(Protocol):
    """A shape with its markers compiled. `openers` begin a call or a section of calls; `strays` mean nothing alone."""

    openers: tuple[str, ...]
    strays: tuple[str, ...]
    inner_markers: tuple[str, ...]
    """The markers that count inside a call only. Outside they are text."""

    def first_openers(self, offer: ToolSet) -> tuple[str, ...]:
        """What opens a call only where a text begins: bare JSON, or an offered tool's name whose marker was lost."""
        ...

    def read(self, opener: str, source: TextBuffer, sink: EventSink) -> Read[None]:
        """Reads on after the opener, or after one of the first ones, to the end of what it began.

        The source records from the opener on. What turns out to be no call is given back to the sink from there.
        """
        ...

    def extract_name(self, text: str, offer: ToolSet) -> str:
        """The name in what an upstream sent as a structured call's name: some leave native text in it."""
        ...

    def write(self, calls: Sequence[Call], preceding_calls: int) -> str:
        """Neighbouring calls as the model would write them; `before` others stand before them in the reply."""
        ...


@runtime_checkable
class MessageGrammar(Grammar, Protocol):
    """A grammar whose headers say what is text and what is thinking too, so that it reads and writes these as well."""

    def write_reply(self, parts: Sequence[Part]) -> str:
        """A whole reply as the model would write it. No neighbours are both text or both thinking."""
        ...

    def unfinished_message(self, prefill: str) -> str:
        """What the prompt has written of a message that the model goes on with, as far as it is still to be read."""
        ...


class Shape(Protocol):
    """A layout with a dialect's markers in it, as data."""

    NAME: ClassVar[str]
    """The name of the shape in dialect files."""

    def grammar(self, dialect_markers: tuple[str, ...]) -> Grammar:
        """Compiles the markers. The `outside` ones belong to the dialect and end whatever the shape is in."""
        ...


@dataclass(frozen=True)
class Dialect:
    name: str
    summary: str
    models: tuple[str, ...] = ()
    """Globs for the ids of models that speak it, in lower case."""
    shape: Shape | None = None
    """How it writes calls. Without one, only thinking, text and noise are told apart."""
    thinking: tuple[Span, ...] = ()
    """How thinking is written; the first one is how we write it."""
    text: tuple[Span, ...] = ()
    """Markers around the text that mean no more than that; the first one is how we write it."""
    noise: tuple[str, ...] = ()
    """Markers that servers let through and that mean nothing to a client, such as the end of a turn."""
    special_tokens: bool = True
    """Whether the markers are tokens of their own, which never stand in prose. If they are ordinary text, then what
    leads to no offered tool is text: as it came, or the call's name and arguments."""
    ordinary: tuple[str, ...] = ()
    """What markers begin with that prose may hold all the same, if the others are special tokens."""
    trim: str = ""
    """The white space that the model writes next to markers, as layout: there it is no part of the text."""
    lead: str = ""
    """What the model writes between what it says and its calls."""
    ids: IdStyle = "call"
    """What ids look like that are made for calls without one."""
    caveats: str = ""
    """What of it cannot be read right, in words."""
    sample: str = ""
    """A genuine reply."""

    def speaks(self, model: str) -> bool:
        return any(fnmatchcase(model.lower(), glob) for glob in self.models)

    @cached_property
    def thinking_markers(self) -> tuple[str, ...]:
        return tuple(marker for span in self.thinking for marker in (span.open, span.close))

    @cached_property
    def text_markers(self) -> tuple[str, ...]:
        return tuple(marker for span in self.text for marker in (span.open, span.close) if marker)

    @cached_property
    def grammar(self) -> Grammar | None:
        return self.shape.grammar(self.thinking_markers + self.text_markers + self.noise) if self.shape else None

    @cached_property
    def router(self) -> MessageGrammar | None:
        """The grammar, if it reads and writes whole replies."""
        return self.grammar if isinstance(self.grammar, MessageGrammar) else None

    @cached_property
    def strays(self) -> tuple[str, ...]:
        """The shape's markers that mean nothing alone. Special tokens never do, nor are they text."""
        if self.grammar is None:
            return ()
        inner_markers = self.grammar.inner_markers if self.special_tokens else ()
        return self.grammar.strays + tuple(marker for marker in inner_markers if self._is_special_token(marker))

    @cached_property
    def markers(self) -> tuple[str, ...]:
        """All that can be structure in this dialect's text."""
        grammar = self.grammar
        shape_markers = grammar.openers + self.strays if grammar else ()
        return shape_markers + self.thinking_markers + self.text_markers + self.noise

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """The markers that no prose holds."""
        return tuple(marker for marker in self.markers if self._is_special_token(marker))

    @cached_property
    def in_prose(self) -> tuple[str, ...]:
        """What the markers begin with that prose may hold. If none is a special token, all of them begin with it."""
        return self.ordinary if self.special_tokens else ("",)

    def _is_special_token(self, marker: str) -> bool:
        return not marker.startswith(self.in_prose) or any(token in marker for token in SPECIAL_TOKEN_PREFIXES)
