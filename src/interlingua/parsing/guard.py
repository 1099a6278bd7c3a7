"""Keeps the promises on the event stream: one call at a time, unique ids, right stop reason, limits, delivery.

Events come in as readers and parsers saw them: calls may be interleaved, lack ids, repeat them, or never end. They go
out in the order of `order`, and whatever was mended on the way is a finding among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import msgspec

from interlingua import events as ev
from interlingua.common.jsontext.codec import read_object
from interlingua.common.jsontext.scanner import JsonCursor
from interlingua.core.call_ids import Ids
from interlingua.core.options import Delivery, ReasoningPolicy
from interlingua.core.options__limits import Limits
from interlingua.core.reply import Call
from interlingua.core.tools import Offer
from interlingua.parsing.pending_queue import Line, Spoken, Waiting

__all__ = ["Guard"]


GAP = "\n\n"
"""Between thinking that is told as content, and the text behind it."""


class _Open:
    """The call that is going out now: its key in the events that come in, and what has gone out of it."""

    def __init__(self, key: int, start: ev.CallStart, untouched: bool, blanks: int) -> None:
        self.key = key
        self.cursor = JsonCursor(blanks)
        self.start = start
        self.untouched = untouched
        self.size = 0
        self.kept: list[ev.ArgsDelta] = []


class Guard:
    """Guards one reply.

    `taken` are the ids that the conversation already has. `seed` makes the ids that are minted differ from reply to
    reply; there is no randomness here.
    """

    def __init__(
        self,
        offer: Offer,
        *,
        limits: Limits | None = None,
        delivery: Delivery = "stream",
        reasoning: ReasoningPolicy = "keep",
        taken: Iterable[str] = (),
        seed: str = "",
    ) -> None:
        self._handlers = _OPEN
        self.finished_calls = 0
        self.answered = False
        """Whether the model has said anything but thinking."""
        self.empty = False
        """Whether it stopped, as if all were said, before it had."""
        self._cut_calls = 0
        self._offer = offer
        self._limits = limits or Limits()
        self._delivery = delivery
        self._reasoning = reasoning
        self.ids = Ids(taken, seed)
        self._calls = 0
        self._open: _Open | None = None
        self._line = Line()
        self._dropped: set[int] = set()
        self._origins: dict[tuple[str, str], bool] = {}
        self._reasoning_dropped = 0
        self._gap = ""  # what belongs before the next text
        self._out: list[ev.Event] = []

    @property
    def stopped(self) -> bool:
        return self._handlers is not _OPEN

    @property
    def inside_call(self) -> str | None:
        """The name of the call that is open."""
        return self._open.start.name if self._open else None

    @property
    def waiting(self) -> list[Call]:
        """The calls that wait for the open one to end, as far as they have come."""
        return self._line.calls()

    def take(self, events: Iterable[ev.Event]) -> list[ev.Event]:
        for event in events:
            self._handlers[type(event)](self, event)  # a look-up, for this runs for every token of every reply
            if self._line.waiting:
                self._next()
        out, self._out = self._out, []
        return out

    def _take(self, event: ev.Event) -> None:
        self._handlers[type(event)](self, event)

    def _pass(self, event: ev.Begin | ev.Usage | ev.Finding) -> None:
        self._out.append(event)

    def _fail(self, event: ev.Failure) -> None:
        if self._line.waiting:
            self._report("lost", f"{self._line.size:,} characters that waited behind an open call: lost in the failure")
        self._out.append(event)
        self._handlers = _FAILED

    def _report(self, kind: str, message: str) -> None:
        self._out.append(ev.Finding(kind, message, f"call {self._calls}" if self._open else ""))

    # ── text ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _say(self, event: Spoken) -> None:
        if not self.answered:
            self.answered = not isinstance(event, ev.ReasoningDelta) and not event.text.isspace() and event.text != ""
        if self._open is not None:
            self._wait(None, event)
        elif self._gap and isinstance(event, ev.TextDelta):
            self._out.append(ev.TextDelta(self._gap + event.text))
            self._gap = ""
        elif not isinstance(event, ev.ReasoningDelta) or self._reasoning == "keep":
            self._out.append(event)
        elif self._reasoning == "as_content":
            self._out.append(ev.TextDelta(event.text))
            self._gap = GAP
        else:
            self._reasoning_dropped += len(event.text)

    def _seal(self, event: ev.Seal) -> None:
        if self._open is not None:
            self._wait(None, event)
        elif self._reasoning == "keep":
            self._out.append(event)

    # ── calls ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _call(self, event: ev.CallStart) -> None:
        if self._open is None:
            self._start(event)
        else:
            self._wait(event.index, event)

    def _start(self, event: ev.CallStart) -> None:
        name = self._name(event.name)
        if self._is_same_call(event, name):
            self._report("duplicate-call", f"the call {event.id!r} came as text and structured: taken once")
            self._dropped.add(event.index)
            return
        self._gap = ""
        start = msgspec.structs.replace(event, index=self._calls, id=self._id(event.id), name=name)
        plain = self._delivery == "stream" and not self._offer.empty
        self._open = _Open(event.index, start, plain and start.index == event.index, self._limits.blanks)
        if self._offer.empty:
            self._report("no-tools-offered", f"a call of {name!r}, but no tool was offered: given out as text")
            self._out.append(ev.TextDelta(name))
            self.answered = True
        elif self._delivery == "stream":
            self._out.append(self._open.start)
        self._calls += 1

    def _is_same_call(self, event: ev.CallStart, name: str) -> bool:
        """Whether the upstream has sent this call already, the other way: some parse native text and leave it there.

        Only in a native dialect, where structured calls have negative numbers. A model's own slip is another call.
        """
        if event.id is None:
            return False
        structured = event.index < 0
        return self._origins.setdefault((event.id, name), structured) is not structured

    def _args(self, event: ev.ArgsDelta) -> None:
        call = self._open
        if call is None or call.key != event.index:
            self._wait(event.index, event)
            return
        size = call.size + len(event.text)
        if size > self._limits.args:
            self._pass_args(call, event.text[: self._limits.args - call.size])
            self._cut(f"the arguments of {call.start.name!r}", self._limits.args, call.key)
            self._take(ev.CallEnd(call.key, complete=False))
            return
        if not _goes_on(call.cursor, event.text):
            self._run_away(call, event.text)
            return
        call.size = size
        if call.untouched:
            self._out.append(event)
        else:
            self._pass_args(call, event.text)

    def _run_away(self, call: _Open, text: str) -> None:
        """Nothing but blanks, outside of any string: the model will not find back, and each of them is paid for."""
        assert call.cursor.too_blank is not None, "that is why"
        self._pass_args(call, text[: call.cursor.too_blank - call.size])
        message = f"the arguments of {call.start.name!r} go on with blanks, more than {self._limits.blanks:,}"
        self._report("runaway", f"{message}: given up")
        self._take(ev.Failure(message))

    def _pass_args(self, call: _Open, text: str) -> None:
        if self._offer.empty:
            self._out.append(ev.TextDelta(text))
        else:
            delta = ev.ArgsDelta(call.start.index, text)
            (self._out if self._delivery == "stream" else call.kept).append(delta)

    def _end(self, event: ev.CallEnd) -> None:
        call = self._open
        if call is None or call.key != event.index:
            self._wait(event.index, event)
            return
        end = event if event.index == call.start.index else ev.CallEnd(call.start.index, event.complete)
        if self._offer.empty:
            self._calls -= 1
        elif self._delivery == "stream":
            self._out.append(end)
            self.finished_calls += event.complete
            self._cut_calls += not event.complete
        else:
            self._deliver_whole(call, end)
        self._open = None

    def _deliver_whole(self, call: _Open, end: ev.CallEnd) -> None:
        args = "".join(delta.text for delta in call.kept)
        if end.complete and read_object(args) is not None:
            self._out += [call.start, ev.ArgsDelta(end.index, args), end]
            self.finished_calls += 1
            return
        self._cut_calls += not end.complete
        why = "its arguments are not a JSON object" if end.complete else "it was cut short"
        self._report("call-withheld", f"the call of {call.start.name!r} is not delivered: {why}")
        self._calls -= 1

    def _wait(self, key: int | None, event: Waiting) -> None:
        """Stands in line behind the open call."""
        if key in self._dropped:
            return
        if not self._line.has(key) and isinstance(event, ev.ArgsDelta | ev.CallEnd):
            self._report("no-such-call", "arguments for a call that is not open: dropped")
            self._dropped.add(event.index)
            return
        self._line.join(key, event)
        if self._line.size > self._limits.held:
            self._too_much_waits(key)

    def _next(self) -> None:
        """Lets those go that waited, up to the first call that is still open."""
        while self._line.waiting and self._open is None:
            for event in self._line.leave():
                self._take(event)

    def _too_much_waits(self, key: int | None) -> None:
        """A call that waits is cut there. Text cannot be: the open call is, and the text goes out."""
        call = self._open
        if key is None and call is not None:
            self._cut("what waits behind an open call", self._limits.held, call.key)
            self._take(ev.CallEnd(call.key, complete=False))
        elif key is not None:
            self._cut("what waits behind an open call", self._limits.held, key)
            self._line.cut(key)

    def _cut(self, what: str, limit: int, key: int) -> None:
        message = f"{what}: longer than {limit:,} characters"
        if self._limits.over == "error":
            self._take(ev.Failure(message))
        else:
            self._report("over-limit", f"{message}; a call is cut, and the rest of it dropped")
            self._dropped.add(key)

    def _name(self, name: str) -> str:
        if self._offer.empty or not self._offer.known or self._offer.has(name):
            return name
        meant = self._offer.meant(name)
        if meant is not None:
            self._report("renamed", f"{name!r} was not offered, {meant!r} was: taken as that")
            return meant
        self._report("unknown-tool", f"no tool called {name!r} was offered: passed on all the same")
        return name

    def _id(self, native: str | None) -> str:
        id = self.ids.unique(native, self._calls)
        if native and id != native:
            self._report("id-renamed", f"the id {native!r} is taken: this call gets {id!r}")
        return id

    # ── the end ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _stop(self, event: ev.Stop) -> None:
        reason, cut = event.reason, self.inside_call
        if cut is not None and reason is None:
            self._take(ev.Failure(f"the upstream ended inside the call of {cut!r}"))
            return
        while self._open is not None:
            self._report("cut-short", f"the reply ended inside the call of {self._open.start.name!r}: it is incomplete")
            self._end(ev.CallEnd(self._open.key, complete=False))
            self._next()
        if self._reasoning_dropped:
            self._report("reasoning-dropped", f"{self._reasoning_dropped:,} characters of thinking: dropped, as set")
        right = self._right_reason(reason, cut)
        if reason is not None and right != reason:
            self._report("stop-reason", f"the upstream stopped with {reason!r}: corrected to {right!r}")
        self.empty = right == "stop" and not self.answered and not self._calls
        self._out.append(event if right == reason else ev.Stop(right))
        self._handlers = _STOPPED

    def _right_reason(self, reason: ev.StopReason | None, cut: str | None) -> ev.StopReason:
        if reason in ev.CUTS:
            return reason
        if cut is not None or self._cut_calls:
            return "length"
        return "tool_calls" if self.finished_calls else "stop"

    def _late(self, event: ev.Event) -> None:
        self._report("after-stop", f"{type(event).__name__} after the reply had stopped: dropped")

    def _late_text(self, event: Spoken) -> None:
        if event.text:
            self._late(event)

    def _ignore(self, event: ev.Event) -> None:
        """The rest of what `_late` has told."""


def _goes_on(cursor: JsonCursor, text: str) -> bool:
    """Whether arguments still say something with this piece of them."""
    pos = cursor.walk(text, 0)
    while pos < len(text) and not cursor.ended:  # at what is not JSON
        pos = cursor.walk(text, cursor.skip(text, pos))
    return cursor.too_blank is None


_Handlers: TypeAlias = dict[type, Callable[[Guard, Any], None]]

_SPOKEN = (ev.TextDelta, ev.ReasoningDelta, ev.RefusalDelta)
_OPEN: _Handlers = {
    **dict.fromkeys((ev.Begin, ev.Usage, ev.Finding), Guard._pass),
    **dict.fromkeys(_SPOKEN, Guard._say),
    ev.Seal: Guard._seal,
    ev.CallStart: Guard._call,
    ev.ArgsDelta: Guard._args,
    ev.CallEnd: Guard._end,
    ev.Stop: Guard._stop,
    ev.Failure: Guard._fail,
}
_STOPPED: _Handlers = {
    **dict.fromkeys((ev.Usage, ev.Finding), Guard._pass),
    **dict.fromkeys(_SPOKEN, Guard._late_text),
    **dict.fromkeys((ev.CallStart, ev.Stop, ev.Failure), Guard._late),
    **dict.fromkeys((ev.Begin, ev.Seal, ev.ArgsDelta, ev.CallEnd), Guard._ignore),
}
_FAILED: _Handlers = _STOPPED | dict.fromkeys((*_SPOKEN, ev.CallStart, ev.Stop, ev.Failure), Guard._ignore)
