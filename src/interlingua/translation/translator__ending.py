"""How a stream ends: well, with a failure, or with more behind the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from interlingua import events as ev
from interlingua.translation.reply_body import WholeReplyDecoder
from interlingua.translation.reply_decoder import TranslatorState, find_failure
from interlingua.wires.streaming import sse

__all__ = ["DONE", "StepResult", "StreamEnding"]

DONE = "[DONE]"
"""How a stream of chat completions ends. Upstreams of other wires send it too."""

StepResult: TypeAlias = tuple[list[ev.Event], bytes]
"""What was said, and what goes out for it."""


class StreamEnding(WholeReplyDecoder):
    def _end_stream(self, done: bytes, *, exact: bool = True, common: Sequence[ev.Event] = ()) -> StepResult:
        """The upstream's stream is over; `done` is how it said so, if it did, `exact` whether that may pass, and
        `common` what was said with it."""
        finished = bool(done)
        choice_events = []
        for index, remaining in self._reader.close(finished):
            if pipeline := self._pipelines.get(index):  # else the client cannot be told of this choice
                choice_events.append((index, pipeline.process(remaining) + pipeline.end_of_stream(finished)))
        events = [event for _, out in choice_events for event in out]
        events += self._final_findings()
        if not self._pipelines and not (finished and self._same_wire):
            events.append(ev.Failure("the upstream ended without a reply"))
        failure = find_failure(events)
        sent = self._emitter.emit(choice_events)
        if failure:
            sent += self._emitter.fail(self._client_failure(failure))
        else:
            usage_events = self._estimated_usage([*events, *common])
            sent += self._emitter.emit([], usage_events) if usage_events else b""
            sent += self._emitter.finish(done if self._same_wire and exact and not usage_events else b"")
            events += usage_events
        self._state = TranslatorState.ENDED
        return events, sent

    def _fail_stream(self, events: list[ev.Event], failure: ev.Failure, raw: bytes = b"") -> StepResult:
        """Ends the client's stream with an error frame, after the text that was held; `raw` is the upstream's frame, if
        that may pass."""
        choice_events = [(index, pipeline.flush()) for index, pipeline in self._pipelines.items()]
        self._state = TranslatorState.ENDED
        sent = self._emitter.emit(choice_events)
        sent += raw or self._emitter.fail(self._client_failure(failure))
        return events + [event for _, out in choice_events for event in out], sent

    def _fail_too_long(self) -> StepResult:
        if self._state is not TranslatorState.OPEN:
            return [], b""
        failure = ev.Failure(f"the upstream sent an event of more than {self._options.limits.event:,} bytes")
        result = self._fail_stream([failure], failure)
        self._state = TranslatorState.OVERRUN
        return result

    def _drop_after_end(self, message: sse.SseMessage) -> StepResult:
        """A message after the end. The first one is a finding, but for a [DONE] after an error."""
        findings: list[ev.Event] = []
        if self._state is TranslatorState.ENDED and message.data.strip() != DONE:
            self._state = TranslatorState.OVERRUN
            findings.append(ev.Finding("after-end", f"more came after the end: dropped {message.data!r:.60}"))
        return findings, b""
