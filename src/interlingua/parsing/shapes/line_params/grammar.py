"""line_params: `OPEN name`, then one line `key: value` per param, then `CLOSE` on a line of its own.

A value may continue on further lines. It ends before the closer and before the line of another param. In a value that
can be a string, only a param of the tool that has not been read yet counts as another param, because files have lines
such as `else:`. The type of a value comes from the tool's schema. The params may also be one JSON object.

A string that quotes a line with an opener or a closer is exact only if its lines are indented. Otherwise its end is
ambiguous: the call and those after it are incomplete. If the name of the tool or a value is followed by `\\r\\n`, so
are the further lines of the call: then `\\r\\n` is a line break, and values contain `\\n`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from interlingua.common.jsontext.codec import write_json
from interlingua.core.reply import Call
from interlingua.core.tools import ToolSet
from interlingua.errors import RenderError, UsageError
from interlingua.parsing.dialect import Grammar
from interlingua.parsing.event_sink import CallHeader, EventSink
from interlingua.parsing.markers import SPECIAL_TOKEN_PREFIXES, assign_roles, compile_markers
from interlingua.parsing.shapes.common.json_arguments import OPENING_BRACE, JsonArgumentsReader, read_members
from interlingua.parsing.shapes.common.object_writer import ObjectWriter
from interlingua.parsing.shapes.line_params.lines import BLANKS_PATTERN, CRLF, NEWLINE, LineReader, is_key
from interlingua.parsing.shapes.line_params.values import ParamsReader
from interlingua.parsing.shapes.tagged_params.tag import MAX_NAME_CHARS, NAME_PATTERN, valid_name
from interlingua.parsing.text_buffer import Read, TextBuffer

__all__ = ["LineParams", "LineParamsGrammar"]


@dataclass(frozen=True)
class LineParams:
    """One line per param. Each marker may have several spellings: all are read, the first is written."""

    NAME: ClassVar[str] = "line_params"

    open: tuple[str, ...]
    """Markers before the name. The name is the rest of the line."""
    close: tuple[str, ...]
    """Markers that end a call. One of them is alone on the last line."""
    name_end: str = ""
    """Text after the name, at the end of its line, such as `]` in `[call ls]`."""
    separators: tuple[str, ...] = (": ", ":")
    """Text between a key and its value."""
    indent: str = ""
    """Text at the beginning of each further line of a value. It is not part of the value. With it, a value can contain
    any text."""
    block: bool = False
    """True if a value of several lines is written from the next line on. It is read in either place."""

    def __post_init__(self) -> None:
        for field, spellings in {"open": self.open, "close": self.close, "separators": self.separators}.items():
            if not all(spellings) or not spellings:
                raise UsageError(f"{field} is empty", "set it to the text that the model writes there")
        if any(is_key(separator[0]) or NEWLINE in separator for separator in self.separators):
            hint = 'use text that cannot be part of a key, for example ": "'
            raise UsageError("a separator begins like a key, or contains a line break", hint)
        if self.indent and not self.indent.isspace():
            raise UsageError("indent is not white space", 'for example "  "')

    def grammar(self, dialect_markers: tuple[str, ...]) -> Grammar:
        return LineParamsGrammar(self, dialect_markers)


class LineParamsGrammar:
    def __init__(self, shape: LineParams, dialect_markers: tuple[str, ...]) -> None:
        self._shape = shape
        self.openers = shape.open
        self.strays = self.inner_markers = shape.close
        self.reads_json = False
        self.writes_back_ticks = False
        self.marker_roles = assign_roles(("closer", shape.close), ("opener", shape.open))
        tokens = tuple(marker for marker in dialect_markers if marker.startswith(SPECIAL_TOKEN_PREFIXES))
        self._tokens = compile_markers(*tokens)
        self._lines = LineReader(shape.open, shape.close, shape.separators, shape.indent, dialect_markers, tokens)
        self._arguments_reader = JsonArgumentsReader(
            compile_markers(*shape.open, *shape.close, *dialect_markers), compile_markers(*shape.close)
        )

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────

    def write(self, calls: Sequence[Call], preceding_calls: int) -> str:  # noqa: ARG002 (calls are not numbered)
        return NEWLINE.join(map(self._write_call, calls))

    def _write_call(self, call: Call) -> str:
        if valid_name(call.name) is None or call.name.endswith(self._shape.name_end or NEWLINE):
            raise RenderError(f"{call.name!r} cannot be written as a name", "use letters, digits, '.', '-' and '_'")
        params = [self.write_param(key, value) for key, value in read_members(call).items()]
        written = NEWLINE.join((self._shape.open[0] + call.name + self._shape.name_end, *params, self._shape.close[0]))
        # Before LF, a CR at the end of a value would be a part of the line break.
        return written.replace(NEWLINE, CRLF) if any(param.endswith("\r") for param in params) else written

    def write_param(self, key: str, value: Any) -> str:
        if not is_key(key):
            raise RenderError(f"{key!r} cannot be written as a key", "use letters, digits, '.', '-' and '_'")
        text = value if isinstance(value, str) else write_json(value)
        if token := self._tokens.search(text, 0):
            raise RenderError(f"the param {key!r} contains {token.group()}, which would end it", "remove it")
        first, *others = text.split(NEWLINE)
        separator = self._shape.separators[0]
        if others and (self._shape.block or not first):
            bare = separator.rstrip()
            separator = bare if bare in self._shape.separators else separator
            first, others = "", [first, *others]
        unwritable = next((line for line in others if not self._shape.indent and self._lines.is_structure(line)), None)
        if unwritable is not None:
            raise RenderError(
                f"the param {key!r} contains the line {unwritable!r:.80}, which would end it", "remove it"
            )
        return NEWLINE.join((key + separator + first, *(self._shape.indent + line for line in others)))

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────

    def first_openers(self, offer: ToolSet) -> tuple[str, ...]:  # noqa: ARG002 (a call always has its opener)
        return ()

    def extract_name(self, text: str, offer: ToolSet) -> str:  # noqa: ARG002 (the line contains only the name)
        return text.removesuffix(self._shape.name_end).strip() or text

    def read(self, opener: str, source: TextBuffer, sink: EventSink) -> Read[None]:  # noqa: ARG002 (all are equal)
        name, line_break = yield from self._read_name(source)
        is_json = name != "" and (yield from source.peek_after_space()) == OPENING_BRACE
        first = None if is_json or not name else (yield from self._lines.read_first_line(source))
        if first is None and not is_json:
            if sink.restore_text():
                sink.report("broken-header", "a call that is cut off in its head: kept as text, without its markers")
        elif sink.reject_call(name):
            sink.restore_text()
        elif first is None:
            yield from self._arguments_reader.read(sink.start_call(CallHeader(name, None, name)), source, sink)
        else:
            args = ObjectWriter(sink.start_call(CallHeader(name, None, name)))
            tool = sink.offer.resolve_name(name) or name
            yield from ParamsReader(self._lines, line_break, tool, args, source, sink).read(first)

    def _read_name(self, source: TextBuffer) -> Read[tuple[str, str]]:
        """Read the line with the name, after the opener, up to its end.

        Returns:
            The name, or "" if there is none; and the line break after it.
        """
        channel = source.channel
        yield from source.take_while(BLANKS_PATTERN)
        name = yield from source.take_while(NAME_PATTERN, MAX_NAME_CHARS + 1)
        blanks = yield from source.take_while(BLANKS_PATTERN)
        end = self._shape.name_end.strip()
        if end and not name.endswith(end) and (yield from source.accept_here(compile_markers(end))) is None:
            return "", NEWLINE
        blanks += yield from source.take_while(BLANKS_PATTERN)
        at_end = (yield from source.peek_char()) == NEWLINE and source.channel is channel
        line_break = CRLF if blanks.endswith("\r") else NEWLINE
        return (at_end and valid_name(name.removesuffix(end))) or "", line_break
