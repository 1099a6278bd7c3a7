"""Guard: normalises the event stream of one reply.

Events come in as readers and parsers saw them: calls may be interleaved, lack ids, repeat ids, or never end. The guard
sends one call at a time, makes ids unique, corrects names and the stop reason, and enforces limits and the delivery
option. Its output follows the order of `events.EventOrder`. Every correction is reported as a `Finding`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import msgspec

from interlingua import events as ev
from interlingua.common.jsontext.codec import read_shallow_object
from interlingua.core.call_ids import CallIdAllocator, native_call_id
from interlingua.core.options import Delivery, Limits, ReasoningPolicy
from interlingua.core.reply import Call
from interlingua.core.text_forwarder import TextForwarder
from interlingua.core.tools import ToolSet
from interlingua.parsing.pending_queue import ContentDelta, PendingQueue, QueuedEvent, last_texts
from interlingua.parsing.tracer import HeldText, join_tail

__all__ = ["Guard"]


REASONING_SEPARATOR = "\n\n"
"""Separator between reasoning that is sent as content, and the text after it."""


class _OpenCall:
    """The call that is being sent."""

    def __init__(self, key: int, start: ev.CallStart, forwards_unchanged: bool) -> None:
        self.key = key
        """The call's index in the incoming events."""
        self.start = start
        self.forwards_unchanged = forwards_unchanged
        self.char_count = 0
        self.buffered_deltas: list[ev.ArgsDelta] = []


class Guard:
    """Normalises the events of one choice of a reply.

    Args:
        offer: the tools that the client offered.
        limits: the limits of the reply.
        delivery: `stream`, or `whole` to send only complete calls whose arguments are a JSON object.
        reasoning: whether reasoning is kept, sent as content, or dropped.
        taken_ids: the call ids that the conversation already has.
        seed: makes new ids differ from reply to reply. There is no randomness here.
        is_seed_unique: no other reply has this seed, so that all ids can be made unique with it.
    """

    __slots__ = (
        "_call_count",
        "_delivery",
        "_dropped_indexes",
        "_dropped_reasoning_chars",
        "_handlers",
        "_limits",
        "_offer",
        "_open_call",
        "_outgoing",
        "_queue",
        "_reasoning",
        "_required_tool",
        "_separator",
        "_started_calls",
        "_truncated_calls",
        "_was_structured",
        "answered",
        "ended_empty",
        "finished_calls",
        "ids",
    )

    def __init__(
        self,
        offer: ToolSet,
        *,
        limits: Limits | None = None,
        delivery: Delivery = "stream",
        reasoning: ReasoningPolicy = "keep",
        taken_ids: Iterable[str] = (),
        seed: str = "",
        is_seed_unique: bool = False,
    ) -> None:
        self._handlers = _OPEN_HANDLERS
        self.finished_calls = 0
        self.answered = False
        """True if the reply has text or a refusal, and not only reasoning."""
        self.ended_empty = False
        """True if the reply stopped as if it were complete, without an answer or a call."""
        self._truncated_calls = 0
        self._offer = offer
        self._required_tool = offer.required_tool
        self._limits = limits or Limits()
        self._delivery = delivery
        self._reasoning = reasoning
        self.ids = CallIdAllocator(taken_ids, seed, is_seed_unique=is_seed_unique)
        self._call_count = 0
        self._started_calls = 0
        self._open_call: _OpenCall | None = None
        self._queue = PendingQueue()
        self._dropped_indexes: dict[int, None] = {}  # an empty set takes three times the memory
        self._was_structured: dict[tuple[str, str], bool] = {}
        self._dropped_reasoning_chars = 0
        self._separator = ""  # to send before the next text
        self._outgoing: list[ev.Event] = []

    @property
    def stopped(self) -> bool:
        return self._handlers is not _OPEN_HANDLERS

    @property
    def open_call_name(self) -> str | None:
        """The name of the call that is being sent."""
        return self._open_call.start.name if self._open_call else None

    @property
    def pending_calls(self) -> list[Call]:
        """The calls that are queued behind the open one, as far as they have arrived."""
        return self._queue.calls()

    @property
    def held_chars(self) -> int:
        """Number of characters that wait: in the queue, and in a call that is delivered whole."""
        is_buffered = self._open_call is not None and bool(self._open_call.buffered_deltas)
        queued_chars = self._queue.buffered_chars + self._queue.start_chars
        return queued_chars + (self._open_call.char_count if self._open_call and is_buffered else 0)

    def held_back(self) -> list[HeldText]:
        """Return the texts and arguments that wait, and the reasons, for a trace."""
        held: list[HeldText] = []
        if self._handlers is _FAILED_HANDLERS:
            return held
        if self._open_call is not None and self._delivery == "whole" and not self._offer.is_empty:
            held.append((join_tail(last_texts(self._open_call.buffered_deltas)), "whole"))
        if self._queue.pending:
            held.append((join_tail(self._queue.last_texts()), "queue"))
        return held

    def process(self, events: Iterable[ev.Event]) -> list[ev.Event]:
        for event in events:
            self._handlers[type(event)](self, event)  # a table, because this runs for every token
            if self._queue.pending:
                self._release_queued()
        outgoing, self._outgoing = self._outgoing, []
        return outgoing

    def arguments_forwarder(self, forward: TextForwarder) -> TextForwarder | None:
        """Return a function for arguments of the open call, which their reader counts with `forward`. None if no
        arguments can be sent now."""
        call, limit = self._open_call, self._limits.args
        if call is None or self._delivery != "stream" or self._offer.is_empty or self._queue.pending:
            return None

        def forward_arguments(texts: list[str], joined: str) -> int:
            if call.char_count + len(joined) > limit:
                return 0
            count = forward(texts, joined)
            call.char_count += len(joined) if count == len(texts) else sum(map(len, texts[:count]))
            return count

        return forward_arguments

    def _handle(self, event: ev.Event) -> None:
        self._handlers[type(event)](self, event)

    def _handle_begin(self, event: ev.Begin) -> None:
        self._outgoing.append(event)
        if self._is_too_long(event.id):
            self._fail_name("the id of the reply")
        elif self._is_too_long(event.model):
            self._fail_name("the model's name")

    def _is_too_long(self, name: str | None) -> bool:
        return name is not None and len(name) > self._limits.name

    def _fail_name(self, subject: str) -> None:
        self._handle(ev.Failure(f"{subject} has more than {self._limits.name:,} characters (limits.name)"))

    def _forward(self, event: ev.Usage | ev.Finding) -> None:
        self._outgoing.append(event)

    def _handle_failure(self, event: ev.Failure) -> None:
        if self._queue.pending:
            self._report(
                "lost",
                f"{self._queue.buffered_chars:,} characters queued behind an open call: lost because the reply failed",
            )
        self._outgoing.append(event)
        self._handlers = _FAILED_HANDLERS

    def _report(self, kind: str, message: str) -> None:
        self._outgoing.append(ev.Finding(kind, message, f"call {self._call_count}" if self._open_call else ""))

    # ── text ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _handle_content(self, event: ContentDelta) -> None:
        if not self.answered:
            self.answered = not isinstance(event, ev.ReasoningDelta) and not event.text.isspace() and event.text != ""
        if self._open_call is not None:
            self._enqueue(None, event)
        elif self._separator and isinstance(event, ev.TextDelta):
            self._outgoing.append(ev.TextDelta(self._separator + event.text))
            self._separator = ""
        elif not isinstance(event, ev.ReasoningDelta) or self._reasoning == "keep":
            self._outgoing.append(event)
        elif self._reasoning == "as_content":
            self._outgoing.append(ev.TextDelta(event.text))
            self._separator = REASONING_SEPARATOR
        else:
            self._dropped_reasoning_chars += len(event.text)

    def _handle_signature(self, event: ev.Seal) -> None:
        if self._open_call is not None:
            self._enqueue(None, event)
        elif self._reasoning == "keep":
            self._outgoing.append(event)

    # ── calls ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _handle_call_start(self, event: ev.CallStart) -> None:
        limits = self._limits
        if self._is_too_long(event.id) or self._is_too_long(event.name):
            self._fail_name("the id or name of a call")
        elif max(self._started_calls, len(self._queue.pending)) >= limits.calls:
            self._handle(ev.Failure(f"the reply has more than {limits.calls:,} calls (limits.calls)"))
        elif self._queue.start_chars > max(limits.held, limits.name):
            message = f"the ids and names of calls behind an open one have more than {limits.held:,} characters"
            self._handle(ev.Failure(f"{message} (limits.held)"))
        elif self._open_call is None:
            self._start_call(event)
        else:
            self._enqueue(event.index, event)

    def _start_call(self, event: ev.CallStart) -> None:
        self._started_calls += 1
        name = self._resolve_name(event.name)
        if self._is_duplicate_call(event, name):
            self._report(
                "duplicate-call", f"the call {event.id!r} was sent as text and as a structured call: forwarded once"
            )
            self._dropped_indexes[event.index] = None
            return
        self._separator = ""
        start = msgspec.structs.replace(event, index=self._call_count, id=self._allocate_id(event), name=name)
        forwards_deltas = self._delivery == "stream" and not self._offer.is_empty
        self._open_call = _OpenCall(event.index, start, forwards_deltas and start.index == event.index)
        if self._offer.is_empty:
            self._report("no-tools-offered", f"a call of {name!r}, but no tool was offered: sent as text")
            self._outgoing.append(ev.TextDelta(name))
            self.answered = True
        elif self._delivery == "stream":
            self._outgoing.append(self._open_call.start)
        self._call_count += 1

    def _is_duplicate_call(self, event: ev.CallStart, name: str) -> bool:
        """Return whether the upstream has sent this call already, as text or structured: some upstreams parse native
        text and leave it in the content, too.

        This is looked for only in native dialects, where structured calls have negative indexes. A model that repeats
        its own id makes another call.
        """
        if event.id is None:
            return False
        structured = event.index < 0
        return self._was_structured.setdefault((event.id, name), structured) is not structured

    def _handle_arguments(self, event: ev.ArgsDelta) -> None:
        call = self._open_call
        if call is None or call.key != event.index:
            self._enqueue(event.index, event)
            return
        char_count = call.char_count + len(event.text)
        if char_count > self._limits.args:
            self._emit_arguments(call, event.text[: self._limits.args - call.char_count])
            self._report_truncation(f"the arguments of {call.start.name!r}", self._limits.args, call.key)
            self._handle(ev.CallEnd(call.key, complete=False))
            return
        if event.runaway:
            self._fail_runaway(call, event.text)
            return
        call.char_count = char_count
        if call.forwards_unchanged:
            self._outgoing.append(event)
        else:
            self._emit_arguments(call, event.text)

    def _fail_runaway(self, call: _OpenCall, text: str) -> None:
        """End the reply: the model writes only whitespace outside of strings, and every token of it is billed."""
        self._emit_arguments(call, text)
        limit = self._limits.blanks
        message = f"the arguments of {call.start.name!r} have more than {limit:,} whitespace characters in a row"
        self._report("runaway", f"{message}: the reply is ended")
        self._handle(ev.Failure(message))

    def _emit_arguments(self, call: _OpenCall, text: str) -> None:
        if self._offer.is_empty:
            self._outgoing.append(ev.TextDelta(text))
        else:
            delta = ev.ArgsDelta(call.start.index, text)
            (self._outgoing if self._delivery == "stream" else call.buffered_deltas).append(delta)

    def _handle_call_end(self, event: ev.CallEnd) -> None:
        call = self._open_call
        if call is None or call.key != event.index:
            self._enqueue(event.index, event)
            return
        end = event if event.index == call.start.index else ev.CallEnd(call.start.index, event.complete)
        if self._offer.is_empty:
            self._call_count -= 1
        elif self._delivery == "stream":
            self._outgoing.append(end)
            self.finished_calls += event.complete
            self._truncated_calls += not event.complete
        else:
            self._deliver_or_withhold(call, end)
        self._open_call = None

    def _deliver_or_withhold(self, call: _OpenCall, end: ev.CallEnd) -> None:
        args = "".join(delta.text for delta in call.buffered_deltas)
        if end.complete and read_shallow_object(args) is not None:
            self._outgoing += [call.start, ev.ArgsDelta(end.index, args), end]
            self.finished_calls += 1
            return
        self._truncated_calls += not end.complete
        reason = "its arguments are not a JSON object" if end.complete else "it was cut short"
        self._report("call-withheld", f"the call of {call.start.name!r} is not delivered: {reason}")
        self._call_count -= 1

    def _enqueue(self, key: int | None, event: QueuedEvent) -> None:
        """Queue an event behind the open call."""
        if key in self._dropped_indexes:
            return
        if not self._queue.contains(key) and isinstance(event, ev.ArgsDelta | ev.CallEnd):
            self._report("no-such-call", "arguments for a call that is not open: dropped")
            self._dropped_indexes[event.index] = None
            return
        self._queue.append(key, event)
        if self._queue.buffered_chars > self._limits.held:
            self._truncate_queued(key)

    def _release_queued(self) -> None:
        """Send the queued events, up to the first call that is still open."""
        while self._queue.pending and self._open_call is None:
            for event in self._queue.pop_first():
                self._handle(event)

    def _truncate_queued(self, key: int | None) -> None:
        """Shorten the queue. A queued call is truncated. For text, the open call is truncated and the text is sent."""
        call = self._open_call
        if key is None and call is not None:
            self._report_truncation("data queued behind an open call", self._limits.held, call.key)
            self._handle(ev.CallEnd(call.key, complete=False))
        elif key is not None:
            self._report_truncation("data queued behind an open call", self._limits.held, key)
            self._queue.truncate(key)

    def _report_truncation(self, subject: str, limit: int, key: int) -> None:
        message = f"{subject}: longer than {limit:,} characters"
        if self._limits.over == "error":
            self._handle(ev.Failure(message))
        else:
            self._report("over-limit", f"{message}; a call is cut, and the rest of it dropped")
            self._dropped_indexes[key] = None

    def _resolve_name(self, name: str) -> str:
        resolved, required = self._resolve_offered_name(name), self._required_tool
        if required is not None and resolved != required and self._offer.has(resolved):
            self._report("other-tool", f"the tool choice names {required!r}, but {resolved!r} is called: forwarded")
        return resolved

    def _resolve_offered_name(self, name: str) -> str:
        if self._offer.is_empty or not self._offer.is_known or self._offer.has(name):
            return name
        resolved = self._offer.resolve_name(name)
        if resolved is not None:
            self._report("renamed", f"{name!r} was not offered: replaced by {resolved!r}")
            return resolved
        self._report("unknown-tool", f"no tool called {name!r} was offered: forwarded unchanged")
        return name

    def _allocate_id(self, call: ev.CallStart) -> str:
        native, call_id = call.id, self.ids.allocate(call.id, self._call_count, call.name)
        if native and native not in (call_id, native_call_id(call_id)):
            self._report("id-renamed", f"the id {native!r} is in use: changed to {call_id!r}")
        return call_id

    # ── the end ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _handle_stop(self, event: ev.Stop) -> None:
        reason, cut_call = event.reason, self.open_call_name
        if cut_call is not None and reason is None:
            self._handle(ev.Failure(f"the upstream ended inside the call of {cut_call!r}"))
            return
        while self._open_call is not None:
            self._report(
                "cut-short", f"the reply ended inside the call of {self._open_call.start.name!r}: it is incomplete"
            )
            self._handle_call_end(ev.CallEnd(self._open_call.key, complete=False))
            self._release_queued()
        if self._dropped_reasoning_chars:
            self._report(
                "reasoning-dropped",
                f"{self._dropped_reasoning_chars:,} characters of thinking: dropped (`reasoning: drop`)",
            )
        corrected = self._corrected_reason(reason, cut_call)
        if reason is not None and corrected != reason:
            self._report("stop-reason", f"the upstream stopped with {reason!r}: corrected to {corrected!r}")
        self.ended_empty = corrected == "stop" and not self.answered and not self._call_count
        self._outgoing.append(event if corrected == reason else ev.Stop(corrected))
        self._handlers = _STOPPED_HANDLERS

    def _corrected_reason(self, reason: ev.StopReason | None, cut_call: str | None) -> ev.StopReason:
        if reason in ev.TRUNCATION_REASONS:
            return reason
        if cut_call is not None or self._truncated_calls:
            return "length"
        return "tool_calls" if self.finished_calls else "stop"

    def _drop_late(self, event: ev.Event) -> None:
        self._report("after-stop", f"{type(event).__name__} after the reply had stopped: dropped")

    def _drop_late_text(self, event: ContentDelta) -> None:
        if event.text:
            self._drop_late(event)

    def _ignore(self, event: ev.Event) -> None:
        """Drop silently: `_drop_late` has already reported the event that this one belongs to."""


_Handlers: TypeAlias = dict[type, Callable[[Guard, Any], None]]

_CONTENT_DELTAS = (ev.TextDelta, ev.ReasoningDelta, ev.RefusalDelta)
_OPEN_HANDLERS: _Handlers = {
    **dict.fromkeys((ev.Usage, ev.Finding), Guard._forward),
    **dict.fromkeys(_CONTENT_DELTAS, Guard._handle_content),
    ev.Begin: Guard._handle_begin,
    ev.Seal: Guard._handle_signature,
    ev.CallStart: Guard._handle_call_start,
    ev.ArgsDelta: Guard._handle_arguments,
    ev.CallEnd: Guard._handle_call_end,
    ev.Stop: Guard._handle_stop,
    ev.Failure: Guard._handle_failure,
}
_STOPPED_HANDLERS: _Handlers = {
    **dict.fromkeys((ev.Usage, ev.Finding), Guard._forward),
    **dict.fromkeys(_CONTENT_DELTAS, Guard._drop_late_text),
    **dict.fromkeys((ev.CallStart, ev.Stop, ev.Failure), Guard._drop_late),
    **dict.fromkeys((ev.Begin, ev.Seal, ev.ArgsDelta, ev.CallEnd), Guard._ignore),
}
_FAILED_HANDLERS: _Handlers = _STOPPED_HANDLERS | dict.fromkeys(
    (*_CONTENT_DELTAS, ev.CallStart, ev.Stop, ev.Failure), Guard._ignore
)
