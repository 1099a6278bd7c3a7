"""Whole replies on their way: for clients that want them whole, and for those that want a stream."""

from __future__ import annotations

from typing import Any

from interlingua import events as ev
from interlingua.errors import expect
from interlingua.translation.reply_decoder import State, Way, failure_in
from interlingua.wires import reasoning_fields as opaque
from interlingua.wires.base import Choice, Chunk
from interlingua.wires.streaming import chunk_decoder as chunks

__all__ = ["Whole"]


class Whole(Way):
    def reply(self, body: dict[str, Any]) -> dict[str, Any]:
        """A whole reply, instead of a stream. It is what the stream would have folded to."""
        body, read = self._read_body(body)
        told = self._whole(read)
        events = [*(event for _, events in told for event in events), *read.common]
        common = [*read.common, *self._estimate(events)]
        self._noted([*events, *common[len(read.common) :], *self._last_findings()])
        failure = failure_in(read.common)
        is_body = self._source.is_body(body)
        if self._same and (failure or not (read.choices or is_body)):
            return body
        like = body if self._same and is_body else None  # and not one inside another object
        said = [
            (choice.index, events)
            for choice, events in told
            if like is None or not choice.exact or events != choice.events
        ]
        common = [self._for_client(failure)] if failure else common
        written, found = self._target.write_body(said, common, self._options, self._offer, like)
        self._noted([*found])
        return written

    def stream(self, body: dict[str, Any]) -> bytes:
        """A whole reply, for a client that wants a stream."""
        _, read = self._read_body(body)
        said = [(choice.index, events) for choice, events in self._whole(read)]
        events = [*(event for _, events in said for event in events), *read.common]
        failure = failure_in(events)
        estimate = self._estimate(events)
        sent = self._emitter.emit(said, [] if failure else read.common)
        sent += self._emitter.emit([], estimate) if estimate else b""
        sent += self._emitter.fail(self._for_client(failure)) if failure else self._emitter.done()
        self._noted([*events, *estimate, *self._last_findings()])
        return sent

    def _read_body(self, body: dict[str, Any]) -> tuple[dict[str, Any], Chunk]:
        """A whole reply as it goes to a client of its wire, and what it says."""
        self._must_be_fresh()
        expect(body, dict, "a reply is a dict", "decode its JSON first")
        self._state = State.CLOSED
        if chunks.has_halves(body):
            body = self._chunks.join(body)
        if self._puts_name:
            body = opaque.sealed(body, self._source.NAME, self._options)
        read = self._source.read_body(body, self._reader)
        self._learn_dialect(read.model)
        return body, read

    def _whole(self, read: Chunk) -> list[tuple[Choice, list[ev.Event]]]:
        """Each choice of a whole reply, and what is to be said of it."""
        told_of = self._choices(read.choices, read.common) if self._target.SINGLE else read.choices
        lanes = [(choice, self._lane(choice)) for choice in told_of]
        return [(choice, lane.take(choice.events) + lane.close_stream(said_done=True)) for choice, lane in lanes]
