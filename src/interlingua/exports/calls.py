"""Grammar of consecutive calls.

The text around the arguments is what the dialect writes for sample calls, with the arguments, the ids and the numbers
of the samples replaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from interlingua.common.jsontext.codec import write_json
from interlingua.core.reply import Call, Reply
from interlingua.core.tools import Tool
from interlingua.dialects.native_text import render
from interlingua.errors import NotExpressible, RenderError
from interlingua.exports.arguments import arguments_grammar
from interlingua.exports.arguments.base import SAMPLE_STRING
from interlingua.exports.grammar import Chars, GrammarBuilder, Node, Repeat, choice, literal, sequence
from interlingua.exports.notations import DIGITS
from interlingua.exports.schema_reader import read_value_type
from interlingua.exports.value_types import ANY_VALUE, Object, alternatives
from interlingua.parsing.dialect import Dialect
from interlingua.parsing.markers import common_prefix

__all__ = ["SAMPLE_ID", "SAMPLE_NUMBER", "CallFrame", "CallsGrammar"]

SAMPLE_ID = "qz4id7qz9"  # nine characters, for Mistral
SAMPLE_NUMBER = 770070
_NUMBER = re.compile(rf"{SAMPLE_NUMBER // 10}\d")
_ID_OR_NUMBER = re.compile(rf"({SAMPLE_ID}|{SAMPLE_NUMBER})")
ID_CHARS = Chars((("a", "z"), ("A", "Z"), ("0", "9"), ("_", "_"), ("-", "-")))
ID_NODES: dict[str, Node] = {
    "call": Repeat(ID_CHARS, 1, 64),
    "nine": Repeat(Chars((("a", "z"), ("A", "Z"), ("0", "9"))), 9, 9),
}
NUMBER = Repeat(DIGITS, 1, 6)
FREE_OBJECT = Object((), ANY_VALUE)


class CallFrame(NamedTuple):
    """The text around the arguments of calls of one tool."""

    open: str
    """Before all calls."""
    head: str
    """Before the arguments of a call."""
    tail: str
    """After the arguments of a call."""
    separator: str
    """Between two calls."""
    close: str
    """After all calls."""


def _split_frame(first: str, between: str, last: str, markers: Iterable[str]) -> CallFrame:
    """Return the frame of calls with these texts before, between and after the arguments of two calls.

    What both calls have in common belongs to each call. A marker is never split.
    """
    spans = {
        text: [match.span() for marker in markers for match in re.finditer(re.escape(marker), text)]
        for text in (first, last)
    }
    start = len(first) - len(common_prefix([first[::-1], between[::-1]]))
    start = max((end for begin, end in spans[first] if begin < start < end), default=start)
    head = first[start:]
    tail = common_prefix([between.removesuffix(head), last])
    tail = tail[: min((begin for begin, end in spans[last] if begin < len(tail) < end), default=len(tail))]
    separator = between.removesuffix(head).removeprefix(tail)
    return CallFrame(first[:start], head, tail, separator, last.removeprefix(tail))


@contextmanager
def _naming(tool: Tool) -> Iterator[None]:
    """Name the tool in errors."""
    try:
        yield
    except (NotExpressible, RenderError) as error:
        raise NotExpressible(f"the tool {tool.name!r:.80}: {error}", error.hint) from error


class CallsGrammar:
    def __init__(self, dialect: Dialect, builder: GrammarBuilder) -> None:
        if dialect.grammar is None:
            raise NotExpressible(f"the dialect {dialect.name!r} has no calls in text", "use the model's own dialect")
        self._dialect = dialect
        self._write = dialect.grammar.write
        self._builder = builder
        self._arguments = arguments_grammar(dialect, builder)
        self._markers = tuple(
            marker for marker in (*dialect.markers, *dialect.grammar.inner_markers) if len(marker) > 1
        )

    def calls(self, tools: Sequence[Tool], *, several: bool) -> Node:
        """Return the grammar of one call of these tools, or of several.

        Raises:
            NotExpressible: The dialect cannot write a call of one of the tools.
        """
        calls: list[Node] = []
        open_ = separator = close = ""
        for tool in tools:
            with _naming(tool):
                open_, head, tail, separator, close = self.frame(tool.name)
                arguments = self._tool_arguments(tool)
            calls.append(sequence(self._generalize(head), arguments, self._generalize(tail)))
        call = choice(*calls)
        return sequence(literal(open_), Repeat(call, 1, separator=separator) if several else call, literal(close))

    def beginnings(self, tools: Sequence[Tool]) -> tuple[str, ...]:
        """Return the text before the arguments of the first call, for each tool, up to an id or a number."""
        beginnings: list[str] = []
        for tool in tools:
            with _naming(tool):
                frame = self.frame(tool.name)
                beginnings.append(_ID_OR_NUMBER.split(frame.open + frame.head)[0])
        return tuple(beginnings)

    def frame(self, name: str) -> CallFrame:
        """Return the text around the arguments of calls of this tool, with the ids and numbers of samples."""
        call = Call(SAMPLE_ID, name, self._arguments.sample)
        written = _NUMBER.sub(str(SAMPLE_NUMBER), self._write([call, call], SAMPLE_NUMBER))
        first, between, last = written.split(self._arguments.written_sample)
        return _split_frame(first, between, last, self._markers)

    def _generalize(self, text: str) -> Node:
        """Return the text as a node that allows any id and any number in place of those of the samples."""
        pieces = _ID_OR_NUMBER.split(text)
        samples = {SAMPLE_ID: ID_NODES[self._dialect.ids]}
        return sequence(*(samples.get(piece, NUMBER) if n % 2 else literal(piece) for n, piece in enumerate(pieces)))

    def _tool_arguments(self, tool: Tool) -> Node:
        objects = self._argument_types(tool)
        for object_ in objects:
            sample = {member.key: SAMPLE_STRING for member in object_.members}
            render(Reply(parts=[Call(SAMPLE_ID, tool.name, write_json(sample))]), self._dialect)
        return choice(*map(self._arguments.arguments, objects))

    def _argument_types(self, tool: Tool) -> list[Object]:
        type_ = read_value_type(tool.schema, tool.name, self._builder.notes)
        objects = [option for option in alternatives(type_) if isinstance(option, Object)] or [FREE_OBJECT]
        if any(object_.other is not None for object_ in objects):
            self._builder.note(f"{tool.name}: params that the schema does not declare are possible")
        return objects
