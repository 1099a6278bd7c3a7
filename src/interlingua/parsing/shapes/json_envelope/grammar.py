"""json_envelope: `OPEN {"name": …, "arguments": {…}} CLOSE`, an array of such objects, or several in a row.

A call is a JSON object that holds its name and its arguments. Where objects end is for JSON to say, not for the closer:
a marker inside a JSON string is data, and every closer may be missing. Some models write no opener at all. Then the
object is a call where a text begins with it, and only if it is one to the letter.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from string import Template
from typing import Any, ClassVar

from interlingua.common.jsontext.codec import read_json
from interlingua.core.reply import Call
from interlingua.core.tools import Offer
from interlingua.errors import RenderError, UsageError
from interlingua.parsing.dialect import Grammar
from interlingua.parsing.event_sink import Sink
from interlingua.parsing.markers import Markers, markers
from interlingua.parsing.shapes.common.json_arguments import is_json
from interlingua.parsing.shapes.json_envelope.call_object__envelope_object import EnvelopeObject, Outcome
from interlingua.parsing.shapes.json_envelope.keys import Gate, Keys
from interlingua.parsing.text_buffer__source import Reading, Source

__all__ = ["ENVELOPE_BEGINS", "JsonEnvelope"]

BRACKETS = ("{", "[")
BRACKETS_AND_BRACES = ("[", "]", "}")
SEPARATORS = (",", ";")
BRACKET = markers("{", "}", "[", "]")
ENVELOPE_BEGINS = markers("{", "[{", "[ {", "[\n{")
SEPARATOR = markers(*SEPARATORS)
TOKEN = "<|"
"""How special tokens begin that a dialect has among markers of ordinary text."""
FENCE = "```"
FENCES = (FENCE, "```json")
FENCE_MARKS = markers(*FENCES)
FIELDS = {"name", "args", "id", "number"}
LINES = ('\n{"name"', '\n[{"name"', '\n{"type": "function"', '\n[{"type": "function"')
"""How a line begins that may be a call, behind other text."""


@dataclass(frozen=True)
class JsonEnvelope:
    """Each marker may have several spellings. The first is how we write it."""

    NAME: ClassVar[str] = "json_envelope"

    open: tuple[str, ...]
    """What begins a call, or several."""
    close: tuple[str, ...] = ()
    """What ends them."""
    fences: tuple[str, ...] = ()
    """Closers that are ordinary text elsewhere, such as the end of a code block."""
    name_keys: tuple[str, ...] = ("name", "tool_name")
    """Where the name may stand."""
    args_keys: tuple[str, ...] = ("arguments", "parameters", "args", "input")
    """Where the arguments may stand."""
    id_keys: tuple[str, ...] = ()
    """Where the model's own id stands. Arguments wait for it, but only as long as a header may be."""
    name_is_key: bool = False
    """Whether the object is `{"NAME": {…}}`."""
    no_tools: tuple[str, ...] = ()
    """Names by which the model says that it wants no tool."""
    bare: bool = False
    """Whether the model writes its calls without the opener."""
    call: str = '{"name": $name, "arguments": $args}'
    """How a call is written, with `$name`, `$args`, `$id` and `$number`."""
    together: bool = False
    """Whether neighbouring calls are written between one opener and one closer."""
    lead: str = ""
    """What is written after the opener."""
    between: str = ""
    """What is written between two calls."""
    tail: str = ""
    """What is written before the closer."""
    write_close: bool = True
    """Whether the model writes the closer. If not, it is only what servers add."""

    def __post_init__(self) -> None:
        call = Template(self.call)
        if not call.is_valid() or not {"name", "args"} <= set(call.get_identifiers()) <= FIELDS:
            hint = "it has $name, $args, and perhaps $id and $number; write any other dollar sign twice"
            raise UsageError(f"a call cannot be written as {self.call!r}", hint)

    def grammar(self, outside: tuple[str, ...]) -> Grammar:
        return JsonEnvelopeGrammar(self, outside)


class JsonEnvelopeGrammar:
    def __init__(self, shape: JsonEnvelope, outside: tuple[str, ...]) -> None:
        self._shape = shape
        self._lines = LINES if shape.bare else ()
        self.openers = (*shape.open, *self._lines)
        self.strays = tuple(marker for marker in shape.close if marker not in outside)
        self.inner: tuple[str, ...] = ()
        self._all = markers(*self.openers, *shape.close, *outside)
        self._keys = Keys(
            name=shape.name_keys,
            args=shape.args_keys,
            id=shape.id_keys,
            name_is_key=shape.name_is_key,
            no_tools=shape.no_tools,
            bare=shape.bare,
            opens=shape.open,
            closes=shape.close,
            marks=markers(*shape.open, *shape.close, *outside),
            cuts=markers(*shape.open, *shape.close, *outside, FENCE),
            ends_name=markers('"', *shape.open, *shape.close, *outside),
        )
        self._marks = markers(*BRACKETS, *SEPARATORS, "}", "]", *shape.open, *shape.close, *FENCES, *outside)
        self._call = Template(shape.call)
        self._closer = "".join((*shape.close, *shape.fences)[:1]) if shape.write_close and not shape.bare else ""

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────

    def write(self, calls: Sequence[Call], before: int) -> str:
        shape = self._shape
        opener = "" if shape.bare else "".join(shape.open[:1])
        first, last = opener + shape.lead, shape.tail + self._closer
        between = shape.between if shape.together else last + shape.between + first
        written = between.join(self._write_call(call, before + n) for n, call in enumerate(calls))
        return first + written + (last if calls[-1].complete else "")

    def _write_call(self, call: Call, number: int) -> str:
        if not call.name.strip():
            raise RenderError("a call without a name would be read back as text", "give it one")
        if call.complete and not (call.arguments.lstrip().startswith(BRACKETS) and is_json(call.arguments)):
            raise RenderError(f"the arguments of {call.name!r} are not a JSON object", "make them one")
        name, id = json.dumps(call.name, ensure_ascii=False), json.dumps(call.id, ensure_ascii=False)
        written = self._call.substitute(name=name, id=id, number=number, args="\0")
        head, _, rest = written.partition("\0")
        return head + call.arguments + (rest if call.complete else "")

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────

    def first_openers(self, offer: Offer) -> tuple[str, ...]:
        """An object, an array or a code block. Where that is not the model's way, only if it can be checked."""
        possible = not offer.empty if self._shape.bare else bool(offer.names)
        return (*BRACKETS, *FENCES) if possible else ()

    def name_in(self, text: str, offer: Offer) -> str:  # noqa: ARG002 (the object holds nothing but the name)
        plain = self._all.without(text).strip()
        members = read_json(plain, dict[str, Any]) or {}
        names = (members.get(key) for key in self._shape.name_keys)
        return next((name for name in names if name and isinstance(name, str)), plain or text)

    def read(self, opener: str, source: Source, sink: Sink) -> Reading[None]:
        if opener in self._shape.open:
            yield from self._marked_envelope(opener, source, sink)
            return
        if opener in self._lines:
            source.unread(opener)
        gate = Gate.BARE if self._shape.bare and opener not in self._lines else Gate.TRIED
        envelope = _Envelope(self._keys, gate, opener in FENCES, source, sink)
        yield from envelope.read(self._marks, "" if opener in (*FENCES, *self._lines) else opener)
        envelope.leave()

    def _marked_envelope(self, opener: str, source: Source, sink: Sink) -> Reading[None]:
        envelope = _Envelope(self._keys, Gate.MARKED, bool(self._shape.fences), source, sink)
        marker = yield from envelope.read(self._marks, opener[-1] if opener.endswith(BRACKETS) else "")
        if sink.failed:
            return
        if envelope.empty and marker:
            sink.report("stray-marker", f"{opener} without a call in it: dropped")
            source.forget()
        elif envelope.taken:
            if marker in self._shape.open and self._closer:
                sink.report("call-not-closed", f"no {self._closer} before the next {marker}: taken as closed here")
            envelope.leave()
        elif self._shape.bare and opener.startswith(TOKEN):  # the model need not write it, so it is no text either
            sink.report("stray-marker", f"{opener} without a call after it: dropped")
            sink.give_back(source.recorded().replace(opener, "", 1), source.recorded_from)
        else:
            sink.report("broken-header", f"{opener} and no call after it: given back as text")
            envelope.leave()


class _Envelope:
    """Reads the objects of one envelope, and what stands between them."""

    def __init__(self, keys: Keys, gate: Gate, fenced: bool, source: Source, sink: Sink) -> None:
        self._keys = keys
        self._gate = gate
        self._fenced = fenced  # a code block is open
        self._source = source
        self._sink = sink
        self._array = False
        self._list = False  # the array is a member of an object
        self.empty = True
        """Whether no object was in it yet."""
        self.taken = False
        """Whether any object of it was a call. Until then all of it may be text."""

    def leave(self) -> None:
        """What was read last was structure if there was a call, else text."""
        if self.taken:
            if (self._array or self._list) and not self._source.closed:  # a reply that was cut there lacks nothing
                self._sink.report("section-not-closed", "the array of calls was never closed: taken as closed here")
            self._source.forget()
        else:
            self._sink.not_a_call()

    def read(self, marks: Markers, begun: str) -> Reading[str | None]:
        """Reads up to the envelope's end, over its closer. Returns the marker that stood there, if one did.

        `begun` is what the opener held of the envelope.
        """
        source, sink = self._source, self._sink
        self._array = begun.startswith("[")
        self.empty = not begun.endswith("{")
        if begun.endswith("{") and not (yield from self._object()):
            return None
        marker = yield from source.peek(marks)
        while marker and not sink.failed:
            if marker == "{":
                yield from source.accept(BRACKET)
                go_on = yield from self._object()
            elif marker in SEPARATORS:
                go_on = yield from self._another()
            elif marker in BRACKETS_AND_BRACES:
                go_on = yield from self._bracket(marker)
            elif marker in FENCES:
                go_on = yield from self._fence()
            else:
                if marker in self._keys.closes:
                    yield from source.accept(marks)
                return marker if marker in (*self._keys.opens, *self._keys.closes) else None
            if not go_on:
                return None
            self.empty = self.empty and marker != "{"
            marker = yield from source.peek(marks)
        return None

    def _bracket(self, marker: str) -> Reading[bool]:
        """An array's beginning or end. Anything else is too much, after a call, and nothing of ours before one."""
        if marker == "[" and (self.empty or self._list) and not self._array:
            self._array = True
        elif marker == "]" and self._array:
            self._array = False
        elif marker == "}" and self._list and not self._array:
            self._list = False
        elif marker != "[" and self.taken:
            self._sink.report("after-arguments", f"{marker!r} after the call's end: dropped")
        else:
            return False
        yield from self._source.accept(BRACKET)
        return True

    def _fence(self) -> Reading[bool]:
        """A code block's beginning before all else, or its end after a call."""
        if (self._fenced and not self.taken) or not (self._fenced or self.empty):
            return False
        self._fenced = not self._fenced
        yield from self._source.accept(FENCE_MARKS)
        return True

    def _another(self) -> Reading[bool]:
        """Whether an object follows the separator, so that it is one."""
        separator = yield from self._source.accept(SEPARATOR)
        first = yield from self._source.next_char()
        if first == "{" or (self._array and first == "]"):
            return True
        if self.taken:
            self._sink.give_back(separator or "", self._source.channel)
        return False

    def _object(self) -> Reading[bool]:
        """Reads one object, from behind its brace. False if nothing more of the envelope can be read."""
        source, sink = self._source, self._sink
        if self.taken:
            source.record("{")
        can_go_on = self._array and (self.taken or self._gate is Gate.MARKED)
        outcome = yield from EnvelopeObject(self._keys, self._gate, source, sink).read(to_its_end=can_go_on)
        if outcome is Outcome.CALL:
            self.taken = True
            return True
        if outcome is Outcome.LIST and not self._list:
            self._list = True
            return True
        go_on = outcome is Outcome.TEXT and can_go_on
        if self._gate is Gate.MARKED and (self.taken or go_on):
            sink.report("call-without-name", "an object that names no tool: given back as text")
        if self._gate is Gate.TRIED:
            self._drop()
        elif self.taken or go_on:
            sink.not_a_call()
            source.record("")
        return go_on

    def _drop(self) -> None:
        """What was tried is text. Then what began it is no marker but text too, even if the reply was cut there."""
        text, channel = self._source.recorded(), self._source.recorded_from
        self._sink.drop()
        text = self._keys.marks.without(text) if self._source.closed else self._sink.plain(text)
        if not self._sink.failed:
            self._sink.text(text, channel)
            self._source.resume_text()
