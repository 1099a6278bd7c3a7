"""Whole replies on their way: for clients that want them whole, and for those that want a stream."""

from __future__ import annotations

from typing import Any

from interlingua import events as ev
from interlingua.errors import expect_type
from interlingua.translation.reply_decoder import ReplyDecoder, TranslatorState, find_failure
from interlingua.wires import reasoning_fields as opaque
from interlingua.wires.base import Choice, Chunk
from interlingua.wires.streaming import chunk_decoder as chunks

__all__ = ["WholeReplyDecoder"]


class WholeReplyDecoder(ReplyDecoder):
    def reply(self, body: dict[str, Any]) -> dict[str, Any]:
        """A whole reply, instead of a stream. It is what the stream would have folded to."""
        body, chunk = self._read_body(body)
        processed = self._process_choices(chunk)
        events = [*(event for _, events in processed for event in events), *chunk.common]
        common = [*chunk.common, *self._estimated_usage(events)]
        self._record([*events, *common[len(chunk.common) :], *self._final_findings()])
        failure = find_failure(chunk.common)
        is_body = self._source_wire.is_body(body)
        if self._same_wire and (failure or not (chunk.choices or is_body)):
            return body
        template = body if self._same_wire and is_body else None  # and not one inside another object
        changed = [
            (choice.index, events)
            for choice, events in processed
            if template is None or not choice.exact or events != choice.events
        ]
        common = [self._client_failure(failure)] if failure else common
        written, findings = self._target_wire.write_body(changed, common, self._options, self._offer, template)
        self._record([*findings])
        return written

    def stream(self, body: dict[str, Any]) -> bytes:
        """A whole reply, for a client that wants a stream."""
        _, chunk = self._read_body(body)
        choice_events = [(choice.index, events) for choice, events in self._process_choices(chunk)]
        events = [*(event for _, events in choice_events for event in events), *chunk.common]
        failure = find_failure(events)
        usage_events = self._estimated_usage(events)
        sent = self._emitter.emit(choice_events, [] if failure else chunk.common)
        sent += self._emitter.emit([], usage_events) if usage_events else b""
        sent += self._emitter.fail(self._client_failure(failure)) if failure else self._emitter.finish()
        self._record([*events, *usage_events, *self._final_findings()])
        return sent

    def _read_body(self, body: dict[str, Any]) -> tuple[dict[str, Any], Chunk]:
        """A whole reply as it goes to a client of its wire, and what it says."""
        self._require_unused()
        expect_type(body, dict, "a reply is a dict", "decode its JSON first")
        self._state = TranslatorState.CLOSED
        if chunks.has_lone_surrogates(body):
            body = self._chunk_decoder.join_surrogates(body)
        if self._signs_reasoning:
            body = opaque.sign_reasoning(body, self._source_wire.NAME, self._options)
        chunk = self._source_wire.read_body(body, self._reader)
        self._learn_dialect(chunk.model)
        return body, chunk

    def _process_choices(self, chunk: Chunk) -> list[tuple[Choice, list[ev.Event]]]:
        """Each choice of a whole reply, and what is to be said of it."""
        choices = (
            self._supported_choices(chunk.choices, chunk.common) if self._target_wire.SINGLE_CHOICE else chunk.choices
        )
        pipelines = [(choice, self._start_pipeline(choice)) for choice in choices]
        return [
            (choice, pipeline.process(choice.events) + pipeline.end_of_stream(finished=True))
            for choice, pipeline in pipelines
        ]
