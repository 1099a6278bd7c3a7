"""Emitter: neutral events → the events of a Responses stream.

Events of an upstream on the same wire are passed through and tracked. So the emitter can switch to rewriting at any
event: items, ids and sequence numbers continue from where the upstream's stopped.

- A reply truncated by the token limit ends with `response.incomplete`, as the protocol defines it. Codex treats that as
  a failed stream and sends the request again; after `response.completed` it would act on half a reply.
- A truncated call gets no `output_item.done` when this emitter writes it, because agents run every call that is done.
  It has the status `incomplete` in the final event. The events of a same-wire upstream about a truncated call are
  passed through.
- Thinking is sent as a reasoning summary: Codex shows it, and SDKs and agents send it back.
- The phase of a message is known when it ends: text before a call is commentary, text that ends the reply is the final
  answer. So `output_item.done` and the final event have it, and `output_item.added` has not.
- A refusal is a separate message item. Codex cannot parse a message that holds a refusal and would lose the text in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any

import msgspec

from interlingua import events as ev
from interlingua.common.coerce import as_dict
from interlingua.common.jsontext.codec import encode_json, write_json
from interlingua.core.options import Options
from interlingua.core.reasoning_signatures import UNSIGNED_WIRE, call_seal, write_envelope
from interlingua.core.reply import Reasoning
from interlingua.core.tools import ToolSet
from interlingua.wires.base import ChoiceEvents, Json, StreamedDelta, TextCounter, TextWriter
from interlingua.wires.openai_responses.event_reader import INCOMPLETE_STOP_REASONS
from interlingua.wires.openai_responses.event_types import (
    CUSTOM_TOOL_INPUT,
    FINAL_EVENTS,
    FUNCTION_ARGUMENTS,
    NAME,
    OUTPUT_TEXT,
    REASONING_SUMMARY,
    REASONING_TEXT,
    REFUSAL,
    RESPONSE_COMPLETED,
    RESPONSE_CREATED,
    RESPONSE_FAILED,
    RESPONSE_IN_PROGRESS,
    RESPONSE_INCOMPLETE,
    TOOL_SEARCH_ARGUMENTS,
    TextKind,
)
from interlingua.wires.openai_responses.output_items import Frame, OutputItem, OutputItems
from interlingua.wires.openai_responses.response_object import derive_id, error_object, response_object, usage_object
from interlingua.wires.streaming.sse import encode_event, event_name

__all__ = ["ResponsesEmitter"]

_INCOMPLETE_REASON_BY_STOP = {stop: incomplete for incomplete, stop in INCOMPLETE_STOP_REASONS.items()}
COMMENTARY = "commentary"
"""Phase of a message that announces or explains calls of the same reply."""
_PHASE_BY_STOP = {"stop": "final_answer", "tool_calls": COMMENTARY}
_TRANSIENT_FIELDS = ("status", "output", "usage", "error", "incomplete_details", "completed_at")
"""Fields of the response object that change during the stream."""


class _Mode(Enum):
    NOT_STARTED = "no event has been sent"
    CREATED = "only the upstream's response.created has been sent"
    PASSTHROUGH = "the upstream's events are passed through"
    REWRITING = "this emitter writes the events"


# Module constants, because these are compared for every token and attribute access on an Enum is slow.
_PASSTHROUGH, _REWRITING = _Mode.PASSTHROUGH, _Mode.REWRITING


class _UpstreamWire(Enum):
    OTHER = "another wire: its reasoning needs a signature of ours, so that clients can send it back"
    SAME = "this wire: it provides the response object and the signatures of its reasoning itself"


_OPENING_EVENTS = {_Mode.NOT_STARTED: (RESPONSE_CREATED, RESPONSE_IN_PROGRESS), _Mode.CREATED: (RESPONSE_IN_PROGRESS,)}
"""Opening events of a response that have not been sent yet."""


SEQUENCE_NUMBER = b',"sequence_number":'
_NUMBERED_FRAME = b"%b%b%b%d}\n\n"
_encode = msgspec.json.Encoder().encode


class _FrameWriter:
    """Encodes the events of one stream and numbers them. `take` returns the frames written since the last call."""

    __slots__ = ("_pending", "next_sequence_number")

    def __init__(self) -> None:
        self.next_sequence_number = 0
        self._pending: list[bytes] = []

    def write(self, *frames: Frame) -> None:
        for frame in frames:
            if isinstance(frame, bytes):
                self._pending.append(self.number(frame))
                continue
            event_type, fields = frame
            event = {"type": event_type, **fields, "sequence_number": self.next_sequence_number}
            self.next_sequence_number += 1
            self._pending.append(encode_event(write_json(event).encode(), event_name(event_type)))

    def number(self, frame: bytes) -> bytes:
        """Return a frame that lacks only its sequence number with this number."""
        number, self.next_sequence_number = self.next_sequence_number, self.next_sequence_number + 1
        return _NUMBERED_FRAME % (frame, SEQUENCE_NUMBER, b"", number)

    def take(self) -> bytes:
        joined_frames, self._pending = b"".join(self._pending), []
        return joined_frames


_TEXT_KINDS = {
    ev.TextDelta: OUTPUT_TEXT,
    ev.ReasoningDelta: REASONING_SUMMARY,
    ev.ArgsDelta: FUNCTION_ARGUMENTS,
}
"""The kind of text that an event continues."""


class _ReasoningSigner:
    """Signs the reasoning of one reply."""

    __slots__ = ("_options", "upstream_wire")

    def __init__(self, options: Options) -> None:
        self._options = options
        self.upstream_wire = _UpstreamWire.OTHER

    def missing_signature(self, item: OutputItem) -> Json:
        """Sign reasoning that has no signature, so that clients can send it back. Not for same-wire upstreams."""
        if self.upstream_wire is _UpstreamWire.SAME:
            return {}
        return {"encrypted_content": self.sign(Reasoning(item.text), UNSIGNED_WIRE)}

    def sign(self, reasoning: Reasoning, wire: str) -> str:
        return write_envelope(reasoning, wire, self._options.seal_key, self._options.upstream)


class ResponsesEmitter:
    """Writes the events of one response. `findings` lists problems with the events that it had to write."""

    __slots__ = (
        "_field_chars",
        "_final_event",
        "_frames",
        "_mode",
        "_options",
        "_output_items",
        "_response_fields",
        "_signer",
        "_stop",
        "_tool_set",
        "_usage",
        "findings",
    )

    def __init__(self, options: Options | None = None, tool_set: ToolSet | None = None) -> None:
        self._options = options or Options()
        self._tool_set = tool_set or ToolSet()
        self.findings: list[ev.Finding] = []
        self._mode = _Mode.NOT_STARTED
        # Fields that do not repeat the request.
        self._response_fields: Json = {"id": "", "model": self._options.served_as}
        self._field_chars = 0  # in the fields of the upstream's response objects
        self._signer = _ReasoningSigner(self._options)
        self._output_items = OutputItems(self._signer.missing_signature)
        self._frames = _FrameWriter()
        self._final_event: Json | None = None  # the upstream's final event
        self._stop = ev.Stop(None)
        self._usage = ev.Usage(input=self._options.input_tokens)

    @property
    def fast(self) -> ResponsesEmitter:
        """This emitter, which is its own fast codec."""
        return self

    @property
    def kept_chars(self) -> int:
        return self._field_chars + self._output_items.kept_chars

    def forward(self, chunk: Json, raw: bytes) -> bytes | None:
        """Return the bytes that pass an upstream event through, or None if the emitter rewrites the response."""
        if self._mode is _REWRITING:
            return None
        if self._mode is _PASSTHROUGH or self._mode is _Mode.CREATED:
            self._mode = _PASSTHROUGH
        elif chunk.get("type") == RESPONSE_CREATED:
            self._mode = _Mode.CREATED
        self._read_response_fields(chunk)
        if isinstance(number := chunk.get("sequence_number"), int):
            self._frames.next_sequence_number = number + 1
        self._output_items.track_upstream_event(chunk)
        return self._with_served_model(chunk, raw)

    def emit(self, choice_events: ChoiceEvents, common: Iterable[ev.Event] = (), template: Json | None = None) -> bytes:
        if template is None and not common and (frame := self._single_delta_frame(choice_events)):
            return frame
        template = template or {}
        self._read_response_fields(template)
        events = [event for _, events in choice_events for event in events]
        events += common
        for event in events:
            if type(event) is ev.Begin:
                self._assign_id(event)
                self._start_rewriting()
        if template.get("type") in FINAL_EVENTS:
            self._final_event = template
        elif template and self._mode is not _Mode.NOT_STARTED:
            self._start_rewriting()
            self._frames.write(*self._output_items.adopt_template(template))
        for event in events:
            self._write_event(event, template)
        if template and self._mode is _Mode.REWRITING:
            self._frames.write(*self._output_items.forward_untranslated(template))
        return self._frames.take()

    def fail(self, failure: ev.Failure) -> bytes:
        """Return the frame that ends a stream with an error, preceded by the opening events if they are missing."""
        self._start_rewriting()
        self._frames.write(
            (RESPONSE_FAILED, {"response": self._response_object("failed", error=error_object(failure))})
        )
        return self._frames.take()

    def finish(self, raw: bytes = b"") -> bytes:
        """Return the final event of a stream: the upstream's own bytes if all events were passed through."""
        if self._mode in (_Mode.CREATED, _Mode.PASSTHROUGH) and raw and self._final_event is not None:
            return self._with_served_model(self._final_event, raw)
        response = self.finish_response()
        self._frames.write(
            (RESPONSE_INCOMPLETE if response["status"] == "incomplete" else RESPONSE_COMPLETED, {"response": response})
        )
        return self._frames.take()

    def finish_response(self) -> Json:
        """End the open items and return the whole response object."""
        self._start_rewriting()
        incomplete_reason = _INCOMPLETE_REASON_BY_STOP.get(self._stop.reason or "stop")
        self._set_phase(_PHASE_BY_STOP.get(self._stop.reason or "stop"))
        self._frames.write(*self._output_items.end_open_items("incomplete" if incomplete_reason else "completed"))
        details = {"reason": incomplete_reason} if incomplete_reason else None
        return self._response_object(
            "incomplete" if incomplete_reason else "completed",
            incomplete_details=details,
            usage=usage_object(self._usage),
        )

    # ── the whole response ────────────────────────────────────────────────────────────────────────────────────────

    def _read_response_fields(self, chunk: Json) -> None:
        """Take over the response fields of a same-wire upstream. The first id is kept."""
        if chunk:
            self._signer.upstream_wire = _UpstreamWire.SAME
        if "response" in chunk:
            response, id = as_dict(chunk.get("response")), self._response_fields["id"]
            new_fields = {key: value for key, value in response.items() if key not in _TRANSIENT_FIELDS}
            self._response_fields |= new_fields
            self._field_chars += len(encode_json(new_fields))
            self._response_fields["id"] = id or (
                self._response_fields["id"] if isinstance(self._response_fields["id"], str) else ""
            )
        if self._options.served_as:
            self._response_fields["model"] = self._options.served_as

    def _assign_id(self, reply_start: ev.Begin) -> None:
        """Set the id of the response and, for other wires, its creation time and model."""
        if not self._response_fields["id"]:
            self._response_fields["id"] = self._response_id(reply_start.id)
        if self._signer.upstream_wire is _UpstreamWire.OTHER:
            self._response_fields["created_at"] = reply_start.created or self._options.created
            self._response_fields["model"] = self._options.served_as or reply_start.model or ""

    def _response_id(self, upstream_id: str | None) -> str:
        if self._options.reply_id:
            return f"resp_{self._options.reply_id}"
        seed = upstream_id or f"{self._options.created}/{'/'.join(self._options.taken_ids)}"
        return seed if seed.startswith("resp_") else derive_id("resp", seed)

    def _response_object(self, status: str, **overrides: Any) -> Json:
        output = self._output_items.finished
        return response_object(self._response_fields, self._options, status, output=output, **overrides)

    def _with_served_model(self, chunk: Json, raw: bytes) -> bytes:
        """Return the event with the model name that the client requested; unchanged bytes if it has that name."""
        response = as_dict(chunk.get("response")) if "response" in chunk else {}
        if not response or self._options.served_as in ("", response.get("model")):
            return raw
        event = {**chunk, "response": {**response, "model": self._options.served_as}}
        return encode_event(write_json(event).encode(), event_name(chunk.get("type")))

    # ── frames ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _start_rewriting(self) -> None:
        """Switch to rewriting, and write the opening events that have not been sent yet."""
        if self._mode is _Mode.REWRITING:
            return
        opening_events = _OPENING_EVENTS.get(self._mode, ())
        self._mode = _Mode.REWRITING
        if not self._response_fields["id"]:
            self._assign_id(ev.Begin())
        if opening_events:
            response = msgspec.Raw(encode_json(self._response_object("in_progress")))
            self._frames.write(*((event_type, {"response": response}) for event_type in opening_events))

    def _single_delta_frame(self, choice_events: ChoiceEvents) -> bytes:
        """Fast path for a single delta of the open item, which is the most common input.

        Returns:
            The frame, or b"" if the events are anything else.
        """
        if self._mode is not _REWRITING or len(choice_events) != 1 or len(choice_events[0][1]) != 1:
            return b""
        event = choice_events[0][1][0]
        if not isinstance(event, ev.TextDelta | ev.ArgsDelta | ev.ReasoningDelta):
            return b""
        item = self._output_items.open_item_for(_TEXT_KINDS[type(event)])
        if item is None or not item.has_open_part or not event.text:
            return b""
        return self._frames.number(item.delta_frame(event.text))

    # ── fast codec ────────────────────────────────────────────────────────────────────────────────────────────────

    def forward_tracker(self, chunk: Json) -> TextCounter | None:
        if self._mode is not _PASSTHROUGH:
            return None
        frames, item = self._frames, self._output_items.open_item_at(chunk.get("output_index"))
        add_text = item.text_adder if item is not None else None

        def track_texts(texts: list[str], joined: str) -> None:
            if add_text is not None:
                add_text(joined)
            frames.next_sequence_number += len(texts)

        return track_texts

    def delta_writer(
        self,
        index: int,  # noqa: ARG002 (there is one choice only)
        event: StreamedDelta,
        template: Json | None,
    ) -> TextWriter | None:
        item = self._output_items.open_item_for(_TEXT_KINDS[type(event)])
        if item is None or not item.has_open_part or (template and template.get("logprobs")):
            return None
        frames, add_text = self._frames, item.text_adder
        prefix, suffix = item.delta_affixes()
        suffix += SEQUENCE_NUMBER

        def write_texts(texts: list[str], joined: str) -> bytes:
            add_text(joined)
            number = frames.next_sequence_number
            frames.next_sequence_number = number + len(texts)
            if len(texts) == 1:
                return _NUMBERED_FRAME % (prefix, _encode(joined), suffix, number)
            numbered = enumerate(texts, number)
            return b"".join([_NUMBERED_FRAME % (prefix, _encode(text), suffix, n) for n, text in numbered])

        return write_texts

    # ── one event ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _write_event(self, event: ev.Event, template: Json) -> None:
        match event:
            case ev.TextDelta():
                self._write_text(OUTPUT_TEXT, event.text, template)
            case ev.ArgsDelta():
                self._write_arguments(event.text)
            case ev.ReasoningDelta():
                is_raw_reasoning = bool(template) and str(template.get("type")).startswith(REASONING_TEXT.event_prefix)
                self._write_text(REASONING_TEXT if is_raw_reasoning else REASONING_SUMMARY, event.text, template)
            case ev.RefusalDelta():
                self._write_text(REFUSAL, event.text, template)
            case ev.Seal():
                self._write_signature(event)
            case ev.CallStart():
                self._start_call(event)
            case ev.CallEnd():
                self._end_call(event.complete)
            case ev.Usage():
                self._usage = event
            case ev.Stop():
                self._stop = event

    def _write_text(self, text_kind: TextKind, text: str, template: Json) -> None:
        if not text:
            return
        self._start_rewriting()
        item = self._output_items.open_item_for(text_kind) or self._start_item(
            text_kind, {"role": "assistant"} if text_kind.item_type == "message" else {}
        )
        logprobs = template.get("logprobs") if template and template.get("delta") == text else None
        self._frames.write(*item.text_frames(text, logprobs))
        self._output_items.map_upstream_index(template, item)

    def _write_signature(self, event: ev.Seal) -> None:
        """Write the signature of the reasoning before it into the item, and end the item."""
        self._start_rewriting()
        item = self._output_items.open_item_for(REASONING_SUMMARY) or self._start_item(REASONING_SUMMARY, {})
        if event.wire == NAME:
            item.body["encrypted_content"] = event.data.get("encrypted_content")
        else:
            reasoning = Reasoning(item.text, event)
            item.body["encrypted_content"] = self._signer.sign(reasoning, event.wire)
        self._frames.write(*self._output_items.end_item(item, "completed"))

    def _set_phase(self, phase: str | None) -> None:
        """Set the phase of the text that ends here. An upstream of the same wire knows it best."""
        if phase is not None and self._signer.upstream_wire is _UpstreamWire.OTHER:
            self._output_items.set_phase(phase)

    def _start_call(self, event: ev.CallStart) -> None:
        self._set_phase(COMMENTARY)
        if (seal := call_seal(event.extra)) is not None and self._options.reasoning == "keep":
            self._write_signature(seal)
        tool = self._tool_set.get(event.name)
        if tool is not None and tool.kind == "search":
            self._start_item(TOOL_SEARCH_ARGUMENTS, {"call_id": event.id, "execution": "client"})
            return
        fields = {"call_id": event.id, "name": (tool.local if tool else "") or event.name}
        if tool is not None and tool.namespace:
            fields["namespace"] = tool.namespace
        self._start_item(
            CUSTOM_TOOL_INPUT if tool is not None and tool.kind == "custom" else FUNCTION_ARGUMENTS, fields
        )

    def _write_arguments(self, args: str) -> None:
        self._start_rewriting()
        item = self._output_items.open_call()
        if item.text_kind is TOOL_SEARCH_ARGUMENTS:
            item.text_adder(args)
            return
        if text := item.custom_text.feed(args) if item.custom_text else args:
            self._frames.write(*item.text_frames(text))

    def _end_call(self, complete: bool) -> None:
        self._start_rewriting()
        item = self._output_items.open_call()
        if not complete:
            self._output_items.truncate_item(item)
            return
        if item.custom_text is not None and (remainder := item.custom_text.end()):
            self._frames.write(*item.text_frames(remainder))
        if item.custom_text is not None and item.custom_text.note:
            self.findings.append(ev.Finding("guessed-input", f"{item.body['name']}: {item.custom_text.note}"))
        self._frames.write(*self._output_items.end_item(item, "completed"))

    def _start_item(self, text_kind: TextKind, fields: Json) -> OutputItem:
        self._start_rewriting()
        self._frames.write(*self._output_items.end_open_items("completed"))
        item = self._output_items.start_item(text_kind, fields, str(self._response_fields["id"]))
        self._frames.write(item.start_frame())
        return item
