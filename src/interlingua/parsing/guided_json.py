"""Guided JSON: calls that a server has constrained the model to write as JSON, because the client requires a call.

The JSON is an array of objects with a name and arguments, one such object, or, if the client has named the tool, its
arguments alone. It is at the start of a text, or between markers of the dialect. Lookahead decides by its first key
(and the name, if that is the first member), so that the arguments are streamed.

Without guided decoding, a model may write the same JSON in a code block. It is a call if nothing follows the block.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache

from interlingua.common.jsontext.codec import read_json
from interlingua.core.tools import ToolSet
from interlingua.parsing.dialect import Dialect
from interlingua.parsing.event_sink import CallHeader, EventSink
from interlingua.parsing.lookahead import MAX_BUFFERED_WHITESPACE_CHARS
from interlingua.parsing.markers import MarkerSet, compile_markers
from interlingua.parsing.shapes.common.json_arguments import JsonArgumentsReader
from interlingua.parsing.shapes.json_envelope.grammar import (
    CODE_FENCE_MARKERS,
    CODE_FENCES,
    INLINE_CALL_STARTS,
    JsonEnvelope,
    JsonEnvelopeGrammar,
)
from interlingua.parsing.shapes.json_envelope.keys import CALL_LIST_KEYS, IGNORED_KEYS, WRAPPER_KEYS
from interlingua.parsing.text_buffer import Read, TextBuffer

__all__ = ["GuidedJsonReader"]

OPENING_BRACKETS = ("{", "[")
JSON_PREFIXES = ("{", "[{")
"""Beginnings of markers that are also the beginning of guided JSON."""
MAX_OPENERS = 4
"""Number of markers that can precede the JSON, such as those of a section and of a call."""
GUIDED_ENVELOPE = JsonEnvelope(open=(), bare=True)
NAME_KEYS = GUIDED_ENVELOPE.name_keys
CONTENT_KEYS = (*GUIDED_ENVELOPE.args_keys, *WRAPPER_KEYS, *CALL_LIST_KEYS)
"""Keys that hold arguments or calls."""

_WHITESPACE = re.compile(r"\s*+")
_JSON_HEAD_PATTERN = re.compile(
    r'(\[?+)\s*+(?:\Z|\{\s*+(?:\Z|\}|"(?P<key>(?:[^"\\]|\\.)*+)(?:\\?\Z|"\s*+(?:\Z|:\s*+(?:\Z|'
    r'"(?P<text>(?:[^"\\]|\\.)*+)(?:\\?\Z|(?P<text_end>"))|(?P<other>[^\s"]))))))',
    re.DOTALL,
)
"""The beginning of guided JSON up to its first value, or as much of it as the text contains."""


class GuidedContent(Enum):
    """Content of guided JSON."""

    CALLS = "calls"
    """One or more objects with a name and arguments."""
    ARGUMENTS = "arguments"
    """The arguments of the required tool."""


class GuidedJsonReader:
    """Reader for guided JSON in the text of one reply.

    Args:
        dialect: The dialect of the text. Its markers can surround the JSON.
        offer: The tools that the client offered, and its tool choice, which requires a call.
    """

    def __init__(self, dialect: Dialect, offer: ToolSet) -> None:
        compiled = _compile(dialect)
        self._envelope = compiled.envelope
        self._arguments_reader = compiled.arguments_reader
        self._closers = compiled.closers
        self._at_start = _JsonHead(compile_markers(), offer)
        self._behind_opener = _JsonHead(compiled.openers, offer)
        self._in_code_block = _JsonHead(CODE_FENCE_MARKERS, offer)
        self._openers = compiled.openers
        self._dialect_reads_calls = dialect.grammar is not None and dialect.grammar.reads_json
        self._dialect_reads_blocks = not set(dialect.markers).isdisjoint(INLINE_CALL_STARTS)
        self._tool = offer.required_tool

    def read_start(self, source: TextBuffer, sink: EventSink, trim: str) -> Read[None]:
        """Read guided JSON at the start of a text, also in a code block. Consume nothing if other text comes next."""
        content = yield from self._look_ahead(self._at_start, source, sink)
        if content is None:
            yield from self._read_code_block(source, sink, trim)
            return
        bracket = yield from source.accept_word(OPENING_BRACKETS, trim)
        source.start_recording(bracket or "")
        sink.inside_calls = True
        yield from self._read(content, bracket or "", source, sink)
        source.discard_recording()
        sink.inside_calls = False

    def _read_code_block(self, source: TextBuffer, sink: EventSink, trim: str) -> Read[None]:
        """Read a code block with guided JSON, unless the dialect itself reads it."""
        if sink.quotes is None:
            return
        content = yield from self._look_ahead(self._in_code_block, source, sink)
        if content is None or (content is GuidedContent.CALLS and self._dialect_reads_blocks):
            return
        fence = yield from source.accept_word(CODE_FENCES, trim)
        start, calls_before = source.offset, sink.call_count
        sink.inside_calls = True
        yield from sink.quotes.read(fence or "", opens_block=True)
        sink.inside_calls = False
        if sink.call_count > calls_before:
            sink.report("call-in-code", "a required call in a code block that ends the reply: accepted", start)

    def read_marked(
        self, source: TextBuffer, sink: EventSink, *, opener: str = "", only_calls: bool = False
    ) -> Read[bool]:
        """Read guided JSON after an opener of the dialect, which is recorded.

        Args:
            source: The text.
            sink: Receives the calls.
            opener: The opener, if the reader of the dialect may put it back.
            only_calls: True if the arguments of a call are valid content here.

        Returns:
            False, consuming nothing, if other text comes next, or JSON that the dialect itself can read.
        """
        if _is_json(opener):  # the opener is itself the beginning of the JSON
            return False
        content = yield from self._look_ahead(self._behind_opener, source, sink, opener)
        if content is None or (content is GuidedContent.CALLS and self._dialect_reads_calls):
            return False
        if content is GuidedContent.ARGUMENTS and only_calls:
            return False
        while (yield from source.accept(self._openers)):
            pass
        bracket = yield from source.accept_word(OPENING_BRACKETS)
        yield from self._read(content, bracket or "", source, sink)
        return True

    def _look_ahead(
        self, head: _JsonHead, source: TextBuffer, sink: EventSink, opener: str = ""
    ) -> Read[GuidedContent | None]:
        word = yield from source.look_ahead(head, sink.limits.header, last_marker=opener)
        return GuidedContent(word) if word else None

    def _read(self, content: GuidedContent, bracket: str, source: TextBuffer, sink: EventSink) -> Read[None]:
        if content is GuidedContent.CALLS:
            yield from self._envelope.read(bracket, source, sink)
        else:
            source.put_back(bracket)
            call = sink.start_call(CallHeader("", None, self._tool))
            yield from self._arguments_reader.read(call, source, sink)
        while (yield from source.accept(self._closers)):
            pass


class _CompiledMarkers:
    """Readers for guided JSON between the markers of one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        grammar = dialect.grammar
        roles = grammar.marker_roles if grammar else {}
        closers = tuple(marker for marker, role in roles.items() if role == "closer")
        others = tuple(marker for marker in dialect.markers if marker not in closers and not _is_json(marker))
        self.openers = compile_markers(*(opener for opener in (grammar.openers if grammar else ()) if opener in others))
        self.closers = compile_markers(*closers)
        envelope = JsonEnvelope(open=(), close=closers, bare=True)
        self.envelope = JsonEnvelopeGrammar(envelope, others)
        self.arguments_reader = JsonArgumentsReader(compile_markers(*others, *closers), self.closers)


_compile = lru_cache(maxsize=128)(_CompiledMarkers)
"""Return the readers for a dialect, from a cache."""


def _is_json(marker: str) -> bool:
    """Return whether a marker is JSON syntax, so that it cannot cut JSON short."""
    return marker.strip() in OPENING_BRACKETS or marker.strip().startswith(JSON_PREFIXES)


class _JsonHead:
    """Lookahead for guided JSON: optional openers, brackets and the first member."""

    def __init__(self, openers: MarkerSet, offer: ToolSet) -> None:
        self._openers = openers
        self._offer = offer

    def find_word(self, text: str, pos: int, end: int, words: object = None) -> tuple[str | None, bool]:  # noqa: ARG002
        """Return the content of guided JSON at `pos`, or None; and whether more text could change this."""
        text = text[pos:end]
        pos = 0
        for _ in range(MAX_OPENERS):
            start = _skip_whitespace(text, pos)
            if start - pos > MAX_BUFFERED_WHITESPACE_CHARS:
                return None, False
            if start == len(text) or self._openers.is_partial(text, start):
                return None, True
            opener = self._openers.match(text, start)
            if opener is None:
                return self._classify(text[start:])
            pos = opener.end()
        return None, False

    def _classify(self, text: str) -> tuple[str | None, bool]:
        match = _JSON_HEAD_PATTERN.match(text) if text.startswith(OPENING_BRACKETS) else None
        if match is None:
            return None, False
        is_undecided = match.end() == len(text) and not (
            match["text_end"] or match["other"] or (match["key"] is None and text.endswith("}"))
        )
        if is_undecided:
            # A key that decides need not wait for its value.
            key = read_json(f'"{match["key"]}"', str) if match["text"] is not None or match["other"] else None
            if key is None or key in NAME_KEYS:
                return None, True
        content = self._content(match)
        return (content.value if content else None), False

    def _content(self, match: re.Match[str]) -> GuidedContent | None:
        offer, tool = self._offer, self._offer.required_tool
        if match[1] == "[":
            tool = None  # the arguments alone are never in an array
        if match["key"] is None:
            fits = tool is not None and match[0].endswith("}") and offer.can_omit_all_params(tool)
            return GuidedContent.ARGUMENTS if fits else None
        key = read_json(f'"{match["key"]}"', str) or ""
        if key in NAME_KEYS:
            name = read_json(f'"{match["text"]}"', str) if match["text"] is not None else None
            is_name = name is not None and offer.accepts(name)
            if is_name and (tool is None or name == tool or not self._fits(tool, key)):
                return GuidedContent.CALLS
        if tool is not None and self._fits(tool, key):
            return GuidedContent.ARGUMENTS
        return GuidedContent.CALLS if key in (*CONTENT_KEYS, *IGNORED_KEYS) else None

    def _fits(self, tool: str, key: str) -> bool:
        """Return whether arguments of the tool can begin with this key."""
        params = self._offer.param_names(tool)
        return key in params if params else key not in CONTENT_KEYS


def _skip_whitespace(text: str, pos: int) -> int:
    match = _WHITESPACE.match(text, pos)
    return match.end() if match else pos
