"""How a stream ends: well, with a failure, or with more behind the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from interlingua import events as ev
from interlingua.translation.reply_body import Whole
from interlingua.translation.reply_decoder import State, failure_in
from interlingua.wires.streaming import sse

__all__ = ["DONE", "Ending", "Said"]

DONE = "[DONE]"
"""How a stream of chat completions ends. Upstreams of other wires send it too."""

Said: TypeAlias = tuple[list[ev.Event], bytes]
"""What was said, and what goes out for it."""


class Ending(Whole):
    def _end(self, done: bytes, *, exact: bool = True, common: Sequence[ev.Event] = ()) -> Said:
        """The upstream's stream is over; `done` is how it said so, if it did, `exact` whether that may pass, and
        `common` what was said with it."""
        said_done = bool(done)
        said = []
        for index, held in self._reader.close(said_done):
            if lane := self._lanes.get(index):  # else the client cannot be told of this choice
                said.append((index, lane.take(held) + lane.close_stream(said_done)))
        events = [event for _, out in said for event in out]
        events += self._last_findings()
        if not self._lanes and not (said_done and self._same):
            events.append(ev.Failure("the upstream ended without a reply"))
        failure = failure_in(events)
        sent = self._emitter.emit(said)
        if failure:
            sent += self._emitter.fail(self._for_client(failure))
        else:
            estimate = self._estimate([*events, *common])
            sent += self._emitter.emit([], estimate) if estimate else b""
            sent += self._emitter.done(done if self._same and exact and not estimate else b"")
            events += estimate
        self._state = State.ENDED
        return events, sent

    def _fail(self, events: list[ev.Event], failure: ev.Failure, raw: bytes = b"") -> Said:
        """Ends the client's stream with an error frame, after the text that was held; `raw` is the upstream's frame, if
        that may pass."""
        said = [(index, lane.release()) for index, lane in self._lanes.items()]
        self._state = State.ENDED
        sent = self._emitter.emit(said)
        sent += raw or self._emitter.fail(self._for_client(failure))
        return events + [event for _, out in said for event in out], sent

    def _too_long(self) -> Said:
        if self._state is not State.OPEN:
            return [], b""
        failure = ev.Failure(f"the upstream sent an event of more than {self._options.limits.event:,} bytes")
        told = self._fail([failure], failure)
        self._state = State.OVERRUN
        return told

    def _overrun(self, message: sse.Message) -> Said:
        """A message after the end. The first one is a finding, but for a [DONE] after an error."""
        findings: list[ev.Event] = []
        if self._state is State.ENDED and message.data.strip() != DONE:
            self._state = State.OVERRUN
            findings.append(ev.Finding("after-end", f"more came after the end: dropped {message.data!r:.60}"))
        return findings, b""
