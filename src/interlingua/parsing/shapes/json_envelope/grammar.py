"""json_envelope: `OPEN {"name": …, "arguments": {…}} CLOSE`, an array of such objects, or several in a row.

A call is a JSON object that contains a name and arguments. The JSON syntax determines where an object ends, not the
closer: a marker inside a JSON string is data, and every closer may be missing. Some models write no opener at all. Then
the object is a call only at the start of a text, and only if it has exactly the form of a call.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from string import Template
from typing import Any, ClassVar

from interlingua.common.jsontext.codec import read_json
from interlingua.core.reply import Call
from interlingua.core.tools import ToolSet
from interlingua.errors import RenderError, UsageError
from interlingua.parsing.call_boundary import CallBoundary
from interlingua.parsing.dialect import Grammar
from interlingua.parsing.event_sink import EventSink
from interlingua.parsing.markers import MarkerSet, assign_roles, compile_markers
from interlingua.parsing.shapes.common.json_arguments import is_json
from interlingua.parsing.shapes.json_envelope.call_object import CallObjectReader, ObjectOutcome
from interlingua.parsing.shapes.json_envelope.keys import CODE_FENCE, CallEvidence, EnvelopeKeys
from interlingua.parsing.text_buffer import Read, TextBuffer

__all__ = [
    "CODE_FENCES",
    "CODE_FENCE_MARKERS",
    "ENVELOPE_START_MARKERS",
    "INLINE_CALL_STARTS",
    "JsonEnvelope",
    "JsonEnvelopeGrammar",
]

OPENING_BRACKETS = ("{", "[")
ARRAY_AND_CLOSING_BRACKETS = ("[", "]", "}")
SEPARATORS = (",", ";")
BRACKET_MARKERS = compile_markers("{", "}", "[", "]")
ARRAY_INDENTS = ("", " ", "\n", "\n ", "\n  ", "\n    ", "\n\t")
ENVELOPE_START_MARKERS = compile_markers("{", *(f"[{indent}{{" for indent in ARRAY_INDENTS))
SEPARATOR_MARKERS = compile_markers(*SEPARATORS)
SPECIAL_TOKEN_PREFIX = "<|"
"""Prefix of the special tokens that a dialect has among markers of ordinary text."""
CODE_FENCES = (CODE_FENCE, "```json")
CODE_FENCE_MARKERS = compile_markers(*CODE_FENCES)
TEMPLATE_FIELDS = {"name", "args", "id", "number"}
CALL_LINE_STARTS = ('\n{"name"', '\n[{"name"', '\n{"type": "function"', '\n[{"type": "function"')
"""Beginnings of a line that may be a call after other text."""
INLINE_CALL_STARTS = tuple(start.lstrip() for start in CALL_LINE_STARTS)
"""Beginnings of a call on the same line as the text before it."""


@dataclass(frozen=True)
class JsonEnvelope:
    """A JSON object per call. Each marker may have several spellings: all are read, the first is written."""

    NAME: ClassVar[str] = "json_envelope"

    open: tuple[str, ...]
    """Markers that begin a call, or several calls."""
    close: tuple[str, ...] = ()
    """Markers that end them."""
    fences: tuple[str, ...] = ()
    """Closers that are ordinary text outside a call, such as the end of a code block."""
    name_keys: tuple[str, ...] = ("name", "tool_name")
    """Keys that can hold the name."""
    args_keys: tuple[str, ...] = ("arguments", "parameters", "args", "input")
    """Keys that can hold the arguments."""
    id_keys: tuple[str, ...] = ()
    """Keys that can hold the model's own id. Arguments before the id are buffered, up to the limit for a header."""
    name_is_key: bool = False
    """True if the name is itself a key: `{"NAME": {…}}`."""
    no_tools: tuple[str, ...] = ()
    """Names that the model writes to call no tool. Such calls are dropped."""
    bare: bool = False
    """True if the model writes its calls without an opener."""
    call: str = '{"name": $name, "arguments": $args}'
    """Template for writing a call, with the placeholders `$name`, `$args`, `$id` and `$number`."""
    together: bool = False
    """True if consecutive calls are written between one opener and one closer."""
    lead: str = ""
    """Text that is written after the opener."""
    between: str = ""
    """Text that is written between two calls."""
    tail: str = ""
    """Text that is written before the closer."""
    write_close: bool = True
    """True if the closer is written. If not, it is only read, because some servers add it."""

    def __post_init__(self) -> None:
        call = Template(self.call)
        if not call.is_valid() or not {"name", "args"} <= set(call.get_identifiers()) <= TEMPLATE_FIELDS:
            hint = "use $name, $args and optionally $id and $number; write any other dollar sign as $$"
            raise UsageError(f"invalid template for a call: {self.call!r}", hint)

    def grammar(self, dialect_markers: tuple[str, ...]) -> Grammar:
        return JsonEnvelopeGrammar(self, dialect_markers)


class JsonEnvelopeGrammar:
    def __init__(self, shape: JsonEnvelope, dialect_markers: tuple[str, ...]) -> None:
        self._shape = shape
        self._line_openers = CALL_LINE_STARTS if shape.bare else ()
        self._inline_openers = INLINE_CALL_STARTS if shape.bare else ()
        self._bare_openers = (*self._line_openers, *self._inline_openers)
        self.openers = (*shape.open, *self._bare_openers)
        self.strays = tuple(marker for marker in shape.close if marker not in dialect_markers)
        self.inner_markers: tuple[str, ...] = ()
        self.marker_roles = assign_roles(("closer", shape.close), ("opener", self.openers))
        self.reads_json = "name" in shape.name_keys and {"arguments", "parameters"} <= set(shape.args_keys)
        self.writes_back_ticks = any("`" in opener for opener in shape.open)
        self._all_markers = compile_markers(*self.openers, *shape.close, *dialect_markers)
        self._keys = EnvelopeKeys(
            name_keys=shape.name_keys,
            args_keys=shape.args_keys,
            id_keys=shape.id_keys,
            name_is_key=shape.name_is_key,
            no_tools=shape.no_tools,
            bare=shape.bare,
            openers=shape.open,
            closers=shape.close,
            all_markers=compile_markers(*shape.open, *shape.close, *dialect_markers),
            cut_markers=compile_markers(*shape.open, *shape.close, *dialect_markers, CODE_FENCE),
            name_end_markers=compile_markers('"', *shape.open, *shape.close, *dialect_markers),
            boundary=_find_boundary(shape, dialect_markers, needs_closer=shape.write_close),
            key_boundary=_find_boundary(shape, dialect_markers, needs_closer=False),
        )
        self._structure_markers = compile_markers(
            *OPENING_BRACKETS, *SEPARATORS, "}", "]", *shape.open, *shape.close, *CODE_FENCES, *dialect_markers
        )
        self._call_template = Template(shape.call)
        self._closer = "".join((*shape.close, *shape.fences)[:1]) if shape.write_close and not shape.bare else ""

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────

    def write(self, calls: Sequence[Call], preceding_calls: int) -> str:
        shape = self._shape
        opener = "" if shape.bare else "".join(shape.open[:1])
        prefix, suffix = opener + shape.lead, shape.tail + self._closer
        between = shape.between if shape.together else suffix + shape.between + prefix
        written = between.join(self._write_call(call, preceding_calls + n) for n, call in enumerate(calls))
        return prefix + written + (suffix if calls[-1].complete else "")

    def _write_call(self, call: Call, number: int) -> str:
        if not call.name.strip():
            raise RenderError("a call without a name would be parsed as text", "give the call a name")
        if call.complete and not (call.arguments.lstrip().startswith(OPENING_BRACKETS) and is_json(call.arguments)):
            raise RenderError(f"the arguments of {call.name!r} are not a JSON object", "pass a JSON object")
        name, id = json.dumps(call.name, ensure_ascii=False), json.dumps(call.id, ensure_ascii=False)
        written = self._call_template.substitute(name=name, id=id, number=number, args="\0")
        before_arguments, _, after_arguments = written.partition("\0")
        return before_arguments + call.arguments + (after_arguments if call.complete else "")

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────

    def first_openers(self, offer: ToolSet) -> tuple[str, ...]:
        """Return the openers of an object, an array or a code block.

        If the model does not normally write bare calls, only if the names of the offered tools are known.
        """
        can_check_names = not offer.is_empty if self._shape.bare else bool(offer.names)
        return (*OPENING_BRACKETS, *CODE_FENCES) if can_check_names else ()

    def extract_name(self, text: str, offer: ToolSet) -> str:  # noqa: ARG002 (the object contains only the name)
        without_markers = self._all_markers.remove_from(text).strip()
        members = read_json(without_markers, dict[str, Any]) or {}
        names = (members.get(key) for key in self._shape.name_keys)
        return next((name for name in names if name and isinstance(name, str)), without_markers or text)

    def read(self, opener: str, source: TextBuffer, sink: EventSink) -> Read[None]:
        if opener in self._shape.open:
            yield from self._read_marked_envelope(opener, source, sink)
            return
        if opener in self._inline_openers:
            yield from self._read_inline_calls(opener, source, sink)
            return
        if opener in self._line_openers and source.code.is_in_brackets_before(source.leading_whitespace):
            sink.restore_text()  # it is part of other JSON
            return
        if opener in self._line_openers:
            source.put_back(opener)
        evidence = (
            CallEvidence.BARE if self._shape.bare and opener not in self._line_openers else CallEvidence.TENTATIVE
        )
        if opener in CODE_FENCES and evidence is CallEvidence.TENTATIVE and sink.quotes is not None:
            yield from sink.quotes.read(opener, opens_block=True)
            return
        envelope = _EnvelopeReader(self._keys, evidence, opener in CODE_FENCES, source, sink)
        yield from envelope.read(
            self._structure_markers, "" if opener in (*CODE_FENCES, *self._line_openers) else opener
        )
        envelope.finish()

    def _read_inline_calls(self, opener: str, source: TextBuffer, sink: EventSink) -> Read[None]:
        """Read calls right after other text. They are text if they are part of other JSON, or if more text follows
        them: then the text quotes JSON."""
        if source.code.is_in_brackets_before(source.leading_whitespace):
            sink.restore_text()
            return
        source.put_back(opener)
        envelope = _EnvelopeReader(self._keys, CallEvidence.INLINE, False, source, sink)
        yield from envelope.read(self._structure_markers, "")
        if envelope.has_call and (yield from source.peek(self._all_markers)) is not None:
            sink.commit()
        elif envelope.has_call:
            envelope.return_as_text()
        envelope.finish()

    def _read_marked_envelope(self, opener: str, source: TextBuffer, sink: EventSink) -> Read[None]:
        envelope = _EnvelopeReader(self._keys, CallEvidence.MARKED, bool(self._shape.fences), source, sink)
        marker = yield from envelope.read(
            self._structure_markers, opener[-1] if opener.endswith(OPENING_BRACKETS) else ""
        )
        if sink.failed:
            return
        if envelope.is_empty and marker:
            sink.report("stray-marker", f"{opener} without a call inside: dropped")
            source.discard_recording()
        elif envelope.has_call:
            if marker in self._shape.open and self._closer and not envelope.is_fenced_off:
                sink.report("call-not-closed", f"no {self._closer} before the next {marker}: closed here")
            envelope.finish()
        elif self._shape.bare and opener.startswith(SPECIAL_TOKEN_PREFIX):
            # The opener is optional, and a special token is never text: drop it and keep the rest.
            sink.report("stray-marker", f"{opener} without a call after it: dropped")
            sink.emit_leftover_text(source.take_recorded().replace(opener, "", 1), source.recorded_channel)
        else:
            sink.report("broken-header", f"{opener} without a call after it: kept as text")
            envelope.finish()


def _find_boundary(shape: JsonEnvelope, dialect_markers: tuple[str, ...], *, needs_closer: bool) -> CallBoundary | None:
    """Return the markers that end a call in a string that is never closed; None if there are none around calls."""
    closers = (*shape.close, *(fence for fence in shape.fences if fence == CODE_FENCE))
    if not (closers or shape.open):
        return None
    return CallBoundary(closers, shape.open, (), dialect_markers, needs_closer=needs_closer and bool(closers))


class _EnvelopeReader:
    """Reader for the objects of one envelope, and the separators and brackets between them."""

    def __init__(
        self, keys: EnvelopeKeys, evidence: CallEvidence, in_code_block: bool, source: TextBuffer, sink: EventSink
    ) -> None:
        self._keys = keys
        self._evidence = evidence
        self._started_in_code_block = in_code_block
        self._in_code_block = in_code_block  # whether a code block is open
        self._source = source
        self._sink = sink
        self._in_array = False
        self._in_call_list = False  # whether the array is a member of an object
        self.is_empty = True
        """True if no object of the envelope was read yet."""
        self.has_call = False
        """True if any object was a call. Until then the whole envelope may be text."""

    @property
    def is_fenced_off(self) -> bool:
        """True if the end of a code block has closed the envelope."""
        return self._started_in_code_block and not self._in_code_block

    def finish(self) -> None:
        """Drop the recorded structure if there was a call; otherwise emit it as text."""
        if self.has_call:
            # At the end of the reply a missing bracket is not reported: nothing is lost.
            if (self._in_array or self._in_call_list) and not self._source.closed:
                self._sink.report("section-not-closed", "the array of calls was never closed: closed here")
            self._source.discard_recording()
        else:
            self._sink.restore_text()

    def read(self, marks: MarkerSet, opening: str) -> Read[str | None]:
        """Read to the end of the envelope, including its closer.

        Args:
            marks: All markers that can occur between objects.
            opening: The part of the envelope that the opener already contains, such as "[{".

        Returns:
            The opener or closer at the end of the envelope, or None.
        """
        source, sink = self._source, self._sink
        self._in_array = opening.startswith("[")
        self.is_empty = not opening.endswith("{")
        if opening.endswith("{") and not (yield from self._read_object()):
            return None
        marker = yield from source.peek(marks)
        while marker and not sink.failed:
            if marker == "{":
                yield from source.accept(BRACKET_MARKERS)
                can_continue = yield from self._read_object()
            elif marker in SEPARATORS:
                can_continue = yield from self._read_separator()
            elif marker in ARRAY_AND_CLOSING_BRACKETS:
                can_continue = yield from self._read_bracket(marker)
            elif marker in CODE_FENCES:
                can_continue = yield from self._read_code_fence()
            else:
                if marker in self._keys.closers:
                    yield from source.accept(marks)
                return marker if marker in (*self._keys.openers, *self._keys.closers) else None
            if not can_continue:
                return None
            self.is_empty = self.is_empty and marker != "{"
            marker = yield from source.peek(marks)
        return None

    def _read_bracket(self, marker: str) -> Read[bool]:
        """Read the beginning or end of an array.

        Any other bracket is surplus and dropped after a call. Before a call, or after one that follows text, it ends
        the envelope: return False.
        """
        if marker == "[" and (self.is_empty or self._in_call_list) and not self._in_array:
            self._in_array = True
        elif marker == "]" and self._in_array:
            self._in_array = False
        elif marker == "}" and self._in_call_list and not self._in_array:
            self._in_call_list = False
        elif marker != "[" and self.has_call and self._evidence is not CallEvidence.INLINE:
            self._sink.report("after-arguments", f"{marker!r} after the end of the call: dropped")
        else:
            return False
        yield from self._source.accept(BRACKET_MARKERS)
        return True

    def _read_code_fence(self) -> Read[bool]:
        """Read the beginning of a code block before any object, or its end after a call. Return False otherwise."""
        if (self._in_code_block and not self.has_call) or not (self._in_code_block or self.is_empty):
            return False
        self._in_code_block = not self._in_code_block
        yield from self._source.accept(CODE_FENCE_MARKERS)
        return True

    def _read_separator(self) -> Read[bool]:
        """Read a separator. Return whether an object or the end of the array follows it."""
        separator = yield from self._source.accept(SEPARATOR_MARKERS)
        first = yield from self._source.peek_after_space()
        if first == "{" or (self._in_array and first == "]"):
            return True
        if self.has_call:
            self._sink.emit_leftover_text(separator or "", self._source.channel)
        return False

    def _read_object(self) -> Read[bool]:
        """Read one object, starting after its brace. Return False if the envelope cannot be read any further."""
        source, sink = self._source, self._sink
        if self.has_call and self._evidence is not CallEvidence.INLINE:
            source.start_recording("{")
        can_skip = self._in_array and (self.has_call or self._evidence is CallEvidence.MARKED)
        outcome = yield from CallObjectReader(self._keys, self._evidence, source, sink).read(read_to_end=can_skip)
        if outcome is ObjectOutcome.CALL:
            self.has_call = True
            return True
        if outcome is ObjectOutcome.LIST and not self._in_call_list:
            self._in_call_list = True
            return True
        skipped = outcome is ObjectOutcome.TEXT and can_skip
        if self._evidence is CallEvidence.MARKED and (self.has_call or skipped):
            sink.report("call-without-name", "an object without the name of a tool: kept as text")
        if self._evidence.is_tentative:
            self.return_as_text()
        elif self.has_call or skipped:
            sink.restore_text()
            source.start_recording("")
        return skipped

    def return_as_text(self) -> None:
        """Emit a tentative call as text, including its opener, even if the reply is truncated there."""
        self.has_call = self.has_call and self._evidence is not CallEvidence.INLINE
        text, channel = self._source.take_recorded(), self._source.recorded_channel
        self._sink.rollback()
        if channel is self._source.channel:
            # The object may have ended inside a special token of the dialect that JSON readers do not know.
            text, partial_token = self._sink.split_partial_token(text)
            self._source.unread(partial_token)
        if self._source.closed:
            text = self._keys.all_markers.remove_from(text)
        text = self._sink.strip_special_tokens(text)
        if not self._sink.failed:
            self._sink.emit_text(text, channel)
            self._source.mark_as_text()
