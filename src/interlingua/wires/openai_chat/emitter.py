"""Emitter for chat completion streams: events → chunks.

If the upstream uses this wire too, each frame is built from the chunk that its events came from (the `template`), so
that ids, model, fingerprints and unknown fields stay as the upstream sent them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from io import StringIO
from typing import Any

import msgspec

from interlingua import events as ev
from interlingua.common.coerce import as_dict, as_list
from interlingua.common.jsontext.codec import write_json
from interlingua.core.options import Options
from interlingua.core.reasoning_signatures import write_envelope
from interlingua.core.reply import Reasoning
from interlingua.wires.base import ChoiceEvents, Json, StreamedDelta, TextWriter
from interlingua.wires.openai_chat.chunk_reader import (
    NAME,
    REASONING_DETAILS,
    STOP_REASONS,
    choice_index,
    detail_text,
    detail_with_text,
    reasoning_text,
    unwrap_chunk,
)
from interlingua.wires.openai_chat.custom_tools import arguments_to_input
from interlingua.wires.openai_chat.fast_delta import CHUNK_OBJECT_TYPE
from interlingua.wires.streaming.delta_template import DeltaTemplate
from interlingua.wires.streaming.sse import encode_event

__all__ = [
    "FINISH_REASONS",
    "ChatEmitter",
    "call_entry",
    "envelope",
    "failure_object",
    "reply_fields",
    "signature_details",
    "usage_object",
]

FINISH_REASONS = {reason: finish for finish, reason in STOP_REASONS.items()}
_ENVELOPE_FIELDS = ("id", "object", "created", "model", "system_fingerprint", "service_tier", "provider")
"""Fields about the whole reply, which an upstream repeats in each chunk."""
_KNOWN_CHUNK_FIELDS = {*_ENVELOPE_FIELDS, "choices", "usage"}
_TRANSLATED_DELTA_FIELDS = {
    "role",
    "content",
    "refusal",
    "reasoning",
    "reasoning_content",
    "tool_calls",
    "function_call",
    REASONING_DETAILS,
}
_REPLACED_CHOICE_FIELDS = {"index", "delta", "message", "finish_reason", "usage"}
_ANSWER_DELTA_FIELDS = {"role", "content", "refusal", "tool_calls", "function_call"}
_FAST_FRAME = b'data: %b,"choices":[{"index":%d,"delta":{%b},"finish_reason":null}]}\n\n'
_FAST_ARGUMENTS_DELTA = b'"tool_calls":[{"index":%d,"function":{"arguments":%b}}]'
_PLACE, _PLACEHOLDER = b"@@", "…@@…"
"""Bytes in the place of an encoded text, and a text that a frame is written with to find where its text is."""
_MODEL_FIELD = re.compile(rb'"model"\s*:\s*("[^"\\]*"|)')
SIGNATURE_DETAIL_TYPE = "reasoning.encrypted"
SIGNATURE_FORMAT = "interlingua-v1"


class _ChoiceWriter:
    """Writer for the deltas of one choice. It keeps the fields that the upstream uses for reasoning."""

    __slots__ = (
        "_custom_calls",
        "_detail_template",
        "_options",
        "_reasoning_fields",
        "_reasoning_text",
        "_signature_count",
    )

    def __init__(self, options: Options) -> None:
        self._options = options
        self._reasoning_fields: tuple[str, ...] = ("reasoning_content",)
        self._detail_template: Json | None = None
        self._reasoning_text = StringIO()  # since the last signature
        self._signature_count = 0
        self._custom_calls: dict[int, None] = {}  # an empty set takes three times the memory

    def learn_reasoning_fields(self, delta: Json) -> None:
        """Use the reasoning fields of the upstream's delta for the reasoning that is written."""
        if reasoning_text(delta):
            self._reasoning_fields = tuple(field for field in ("reasoning_content", "reasoning") if delta.get(field))
            self._detail_template = next(
                (detail for detail in as_list(delta.get(REASONING_DETAILS)) if detail_text(detail)), None
            )

    def encode_fast(self, event: ev.Event) -> bytes:
        """Fast path: return the encoded delta of a plain text, arguments or reasoning event; b"" for any other."""
        if type(event) is ev.TextDelta:
            return b'"content":%b' % msgspec.json.encode(event.text)
        if type(event) is ev.ArgsDelta and event.index not in self._custom_calls:
            return _FAST_ARGUMENTS_DELTA % (event.index, msgspec.json.encode(event.text))
        if type(event) is ev.ReasoningDelta and self._detail_template is None and len(self._reasoning_fields) == 1:
            self._reasoning_text.write(event.text)
            return b'"%b":%b' % (self._reasoning_fields[0].encode(), msgspec.json.encode(event.text))
        return b""

    def delta_pieces(self, event: StreamedDelta) -> tuple[list[bytes], StringIO | None]:
        """Return the encoded delta of a text like this event, without the text: the bytes before it, between two places
        of it, and after it. Also the buffer that collects the text (None: not collected).

        There are no pieces if the text is not written as it is.
        """
        if type(event) is ev.TextDelta:
            return [b'"content":', b""], None
        if type(event) is ev.ArgsDelta:
            is_custom = event.index in self._custom_calls
            return [] if is_custom else (_FAST_ARGUMENTS_DELTA % (event.index, _PLACE)).split(_PLACE), None
        delta = msgspec.json.encode(self._reasoning_fields_with(_PLACEHOLDER))
        return delta[1:-1].split(msgspec.json.encode(_PLACEHOLDER)), self._reasoning_text

    @property
    def kept_chars(self) -> int:
        return self._reasoning_text.tell()

    def text_delta(self, event: ev.TextDelta) -> Json:
        return {"content": event.text}

    def refusal_delta(self, event: ev.RefusalDelta) -> Json:
        return {"refusal": event.text}

    def reasoning_delta(self, event: ev.ReasoningDelta) -> Json:
        self._reasoning_text.write(event.text)
        return self._reasoning_fields_with(event.text)

    def _reasoning_fields_with(self, text: str) -> Json:
        """Return this text in each field that the upstream uses for reasoning."""
        delta: Json = dict.fromkeys(self._reasoning_fields, text)
        if self._detail_template is not None:
            delta[REASONING_DETAILS] = [detail_with_text(text, self._detail_template)]
        return delta

    def call_start_delta(self, start: ev.CallStart) -> Json:
        if "custom" in (start.extra or {}):
            self._custom_calls[start.index] = None
        return {"tool_calls": [{"index": start.index, **call_entry(start, "")}]}

    def arguments_delta(self, args: ev.ArgsDelta) -> Json | None:
        if args.index not in self._custom_calls:
            return {"tool_calls": [{"index": args.index, "function": {"arguments": args.text}}]}
        text = arguments_to_input(args.text)
        return {"tool_calls": [{"index": args.index, "custom": {"input": text}}]} if text else None

    def signature_delta(self, event: ev.Seal) -> Json:
        """Return the delta with the signature for the reasoning since the last signature."""
        text, self._reasoning_text = self._reasoning_text.getvalue(), StringIO()
        self._signature_count += 1
        return {REASONING_DETAILS: signature_details(Reasoning(text, event), self._signature_count - 1, self._options)}


class _Envelope:
    """Fields about the whole reply, which every frame repeats. `head`: their JSON, without the closing bracket."""

    __slots__ = ("_max_chars", "_served_as", "_upstream_values", "fields", "findings", "head")

    def __init__(self, options: Options) -> None:
        self._max_chars = options.limits.name
        self.findings: list[ev.Finding] = []
        self.fields = envelope(options) | {"object": CHUNK_OBJECT_TYPE}
        self.head = msgspec.json.encode(self.fields)[:-1]
        self._served_as = options.served_as
        self._upstream_values: tuple[Any, ...] = ()

    def update(self, chunk: Json) -> None:
        """Take over the fields that the upstream's chunk has."""
        values = tuple(map(chunk.get, _ENVELOPE_FIELDS))
        if values == self._upstream_values:  # the usual case
            return
        self._upstream_values = values
        for key, value in zip(_ENVELOPE_FIELDS, values, strict=True):
            if value and self._is_short(key, value):
                self.fields[key] = value
        self.fields["object"] = CHUNK_OBJECT_TYPE
        if self._served_as:
            self.fields["model"] = self._served_as
        self.head = msgspec.json.encode(self.fields)[:-1]

    def _is_short(self, key: str, value: Any) -> bool:
        """Return whether every frame may repeat the value. One that is too long is reported."""
        if len(value if isinstance(value, str) else write_json(value)) <= self._max_chars:
            return True
        message = f"the field {key!r} of a chunk has more than {self._max_chars:,} characters: not repeated"
        self.findings.append(ev.Finding("over-limit", message))
        return False


class ChatEmitter:
    """Emitter for one reply: `emit` writes new frames, `forward` passes on chunks that need no change."""

    __slots__ = ("_choices", "_envelope", "_options", "_served_as", "findings")

    def __init__(self, options: Options | None = None) -> None:
        options = options or Options()
        self._served_as = options.served_as
        self._options = options
        self._choices: dict[int, _ChoiceWriter] = {}
        self._envelope = _Envelope(options)
        self.findings = self._envelope.findings

    @property
    def fast(self) -> ChatEmitter:
        """This emitter, which is its own fast codec."""
        return self

    @property
    def kept_chars(self) -> int:
        return sum(choice.kept_chars for choice in self._choices.values())

    def forward(self, chunk: Json, raw: bytes) -> bytes | None:
        """Return the chunk unchanged except for the model's name.

        A frame with the role comes before it for each choice that starts without one. Returns None if the model's name
        cannot be replaced safely.
        """
        self._envelope.update(chunk)
        if self._served_as not in ("", chunk.get("model")) and not (raw := self._with_served_model(chunk, raw)):
            return None
        role_choices = []
        for choice in chunk.get("choices") or ():
            writer = self._choices.get(choice["index"])
            if writer is None:
                writer = self._choices[choice["index"]] = _ChoiceWriter(self._options)
                if not choice["delta"].get("role"):
                    role = {"role": "assistant", "content": ""}
                    role_choices.append({"index": choice["index"], "delta": role, "finish_reason": None})
            if not choice["delta"].get("content"):
                writer.learn_reasoning_fields(choice["delta"])
        return b"".join([*map(self._encode_frame, role_choices), raw]) if role_choices else raw

    def _with_served_model(self, chunk: Json, raw: bytes) -> bytes:
        """Return the chunk with the model's name that the client uses; b"" if the field is not found exactly once.

        A match is always a field: inside a JSON string the quotes would be escaped.
        """
        matches = _MODEL_FIELD.findall(raw)
        if len(matches) != 1 or matches[0] != msgspec.json.encode(chunk.get("model")):
            return b""
        return _MODEL_FIELD.sub(lambda _: b'"model":' + msgspec.json.encode(self._served_as), raw)

    def emit(self, choice_events: ChoiceEvents, common: Iterable[ev.Event] = (), template: Json | None = None) -> bytes:
        """Return the frames for the events of each choice.

        The first frame has the other fields of the template, the last one the usage. A separate usage chunk without
        choices is only for clients that requested one.
        """
        template = unwrap_chunk(template) if template else {}
        if template:
            self._envelope.update(template)
        if (
            not common
            and (not template or _allows_fast_frame(template))
            and (fast_frame := self._emit_fast(choice_events))
        ):
            return fast_frame
        extra_fields = _extra_fields(template)
        rows: list[Json] = []
        usage = _last_usage(common)
        raw_choices = _raw_choices(template)
        for index, events in choice_events:
            rows += self._choice_rows(index, events, raw_choices.get(index, {}))
            usage = _last_usage(events) or usage
        if usage is None and not extra_fields:
            return b"".join([self._encode_frame(row) for row in rows])
        frames: list[Json] = [{"choices": [row]} for row in rows]
        if not rows:
            frames = [{"choices": [{"index": index, "delta": {}, "finish_reason": None} for index, _ in choice_events]}]
        frames[0] |= extra_fields
        if usage is not None:
            frames[-1]["usage"] = usage_object(usage)
        return b"".join([encode_event(msgspec.json.encode({**self._envelope.fields, **fields})) for fields in frames])

    def fail(self, failure: ev.Failure) -> bytes:
        """Return the error frame that ends a failed stream. No frame follows it."""
        return encode_event(msgspec.json.encode({"error": failure_object(failure)}))

    def finish(self, raw: bytes = b"") -> bytes:
        """Return the frame that ends a stream normally: the upstream's own if there is one."""
        return raw or encode_event(b"[DONE]")

    forward_tracker = None

    def delta_writer(self, index: int, event: StreamedDelta, template: Json | None) -> TextWriter | None:
        choice = self._choices.get(index)
        if choice is None:
            return None
        frame = self._split_frame(index, unwrap_chunk(template) if template else {})
        pieces, collected = choice.delta_pieces(event)  # with the reasoning fields of the template
        if frame is None or not pieces:
            return None
        first, *middle, last = pieces
        return DeltaTemplate([frame[0] + first, *middle, last + frame[1]], collected).render

    def _split_frame(self, index: int, template: Json) -> tuple[bytes, bytes] | None:
        """Return the bytes of a frame before and after its delta. With a template, the frame repeats its other fields,
        such as `logprobs`.

        Returns None if only the first of several frames would repeat them.
        """
        if not template or _allows_fast_frame(template):
            before, _, after = (_FAST_FRAME % (self._envelope.head, index, _PLACE)).rpartition(_PLACE)
            return before, after
        if _extra_fields(template):
            return None
        rows = self._choice_rows(index, [ev.TextDelta(_PLACEHOLDER)], _raw_choices(template).get(index, {}))
        parts = self._encode_frame(rows[0]).split(b'"content":' + msgspec.json.encode(_PLACEHOLDER))
        return (parts[0], parts[1]) if len(parts) == 2 else None

    def _emit_fast(self, choice_events: ChoiceEvents) -> bytes:
        """Fast path for the usual case: a single event of a choice that has begun. Returns b"" if it does not apply."""
        if len(choice_events) != 1 or len(choice_events[0][1]) != 1:
            return b""
        index, events = choice_events[0]
        choice = self._choices.get(index)
        delta = choice.encode_fast(events[0]) if choice is not None else b""
        return _FAST_FRAME % (self._envelope.head, index, delta) if delta else b""

    def _encode_frame(self, row: Json) -> bytes:
        """Return a frame with one entry of `choices` after the pre-encoded envelope, which rarely changes."""
        return b'data: %b,"choices":[%b]}\n\n' % (self._envelope.head, msgspec.json.encode(row))

    def _choice_rows(self, index: int, events: list[ev.Event], raw_choice: Json) -> list[Json]:
        """Return the events as entries of `choices`."""
        choice = self._choices.get(index)
        if choice is not None and not raw_choice:
            deltas = self._event_deltas(choice, events)
            return [{"index": index, "delta": event_delta, "finish_reason": finish} for event_delta, finish in deltas]
        delta = as_dict(raw_choice.get("delta"))
        first: Json = {} if choice is not None else {"role": "assistant", "content": ""}
        first |= _untranslated_fields(delta)
        other_fields = {key: value for key, value in raw_choice.items() if key not in _REPLACED_CHOICE_FIELDS}
        null_fields = {key: value for key, value in other_fields.items() if value is None}
        if choice is None:
            choice = self._choices[index] = _ChoiceWriter(self._options)
        choice.learn_reasoning_fields(delta)
        deltas = self._event_deltas(choice, events)
        if not deltas and (first or other_fields != null_fields):
            deltas = [({}, None)]
        rows = []
        for event_delta, finish in deltas:
            rows.append({"index": index, "delta": {**first, **event_delta}, **other_fields, "finish_reason": finish})
            first, other_fields = {}, null_fields
        return rows

    def _event_deltas(self, choice: _ChoiceWriter, events: list[ev.Event]) -> list[tuple[Json, str | None]]:
        """Return the delta and finish_reason of each event that has one of them."""
        deltas: list[tuple[Json, str | None]] = []
        for event in events:
            if type(event) is ev.Stop:
                deltas.append(({}, FINISH_REASONS[event.reason or "stop"]))
            elif type(event) is ev.Begin:
                self._envelope.update(reply_fields(event, self._options))
            elif (write := _DELTA_WRITERS.get(type(event))) and (delta := write(choice, event)):
                deltas.append((delta, None))
        return deltas


_DELTA_WRITERS: dict[type, Callable[[_ChoiceWriter, Any], Json | None]] = {
    ev.TextDelta: _ChoiceWriter.text_delta,
    ev.ReasoningDelta: _ChoiceWriter.reasoning_delta,
    ev.RefusalDelta: _ChoiceWriter.refusal_delta,
    ev.Seal: _ChoiceWriter.signature_delta,
    ev.CallStart: _ChoiceWriter.call_start_delta,
    ev.ArgsDelta: _ChoiceWriter.arguments_delta,
}


def envelope(options: Options) -> Json:
    """Return default values for the fields about the whole reply."""
    id = f"chatcmpl-{options.reply_id or 'interlingua'}"
    return {"id": id, "object": "", "created": options.created, "model": options.served_as}


def reply_fields(reply_start: ev.Begin, options: Options) -> Json:
    """Return the fields about the whole reply that the upstream sent. On another wire, the caller's id is used."""
    id = None if options.reply_id else reply_start.id
    return {"id": id, "created": reply_start.created, "model": reply_start.model}


def signature_details(thinking: Reasoning, number: int, options: Options) -> list[Json]:
    """Return `reasoning_details` with the signature of the reasoning.

    A signature from this wire stays as the upstream sent it; any other is wrapped in an envelope. Each new entry gets
    an index, because the official SDK fails if one of several entries has none.
    """
    if thinking.seal is None:
        return []
    if thinking.seal.wire == NAME:
        return list(thinking.seal.data[REASONING_DETAILS])
    signature = write_envelope(thinking, thinking.seal.wire, options.seal_key, options.upstream)
    return [{"type": SIGNATURE_DETAIL_TYPE, "data": signature, "format": SIGNATURE_FORMAT, "index": number}]


def call_entry(start: ev.CallStart, arguments: str) -> Json:
    extra = dict(start.extra or {})
    if "custom" in extra:
        custom = {"name": start.name, "input": arguments_to_input(arguments), **extra.pop("custom")}
        return {"id": start.id, "type": "custom", "custom": custom, **extra}
    function = {"name": start.name, "arguments": arguments, **extra.pop("function", {})}
    return {"id": start.id, "type": "function", "function": function, **extra}


def failure_object(failure: ev.Failure) -> Json:
    return {"message": failure.message, "type": failure.type, "code": failure.code, **(failure.native or {})}


def usage_object(usage: ev.Usage) -> Json:
    if "prompt_tokens" in usage.native:
        return usage.native
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_written},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def _allows_fast_frame(chunk: Json) -> bool:
    """Return whether a chunk has no field that the frames written for it would have to repeat."""
    choices = chunk.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or not chunk.keys() <= _KNOWN_CHUNK_FIELDS:
        return False
    choice = choices[0]
    if not isinstance(choice, dict) or not choice.keys() <= _REPLACED_CHOICE_FIELDS:
        return False
    delta = choice.get("delta")
    return isinstance(delta, dict) and delta.keys() <= _ANSWER_DELTA_FIELDS


def _extra_fields(chunk: Json) -> Json:
    """Return the fields of a chunk that are not standard."""
    return {key: value for key, value in chunk.items() if key not in _KNOWN_CHUNK_FIELDS and value is not None}


def _last_usage(events: Iterable[ev.Event]) -> ev.Usage | None:
    usage = None
    for event in events:
        if type(event) is ev.Usage:
            usage = event
    return usage


def _untranslated_fields(delta: Json) -> Json:
    """Return the fields of a delta that no event represents."""
    return {key: value for key, value in delta.items() if key not in _TRANSLATED_DELTA_FIELDS and value is not None}


def _raw_choices(chunk: Json) -> dict[int, Json]:
    """Return the choices of a chunk by their index; the first of several with the same index."""
    choices: dict[int, Json] = {}
    for position, choice in enumerate(as_list(chunk.get("choices"))):
        if isinstance(choice, dict):
            choices.setdefault(choice_index(choice, position), choice)
    return choices
