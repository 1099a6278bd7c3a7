"""Where a shape puts what it has read: the events of one reply, in order."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from interlingua import events as ev
from interlingua.common.jsontext.arguments import STREAMED, Args
from interlingua.core.options__limits import Limits
from interlingua.core.tools import Offer
from interlingua.parsing.markers import Markers, markers
from interlingua.parsing.text_buffer__source import Channel, Source

__all__ = ["Header", "OpenCall", "Sink"]


_BEGINS_CALL = re.compile(r"[{\[\"']|```|[\w.:-]*+(?:\s*+=\s*+[\"']?[\w.:-]*+)?[\"'/>]*\Z")
"""What may stand behind a call's opener where the text ends in its head: the name, maybe as an attribute, or JSON,
maybe in a code block."""


class Header(msgspec.Struct, frozen=True):
    """What stood before a call's arguments: the text, and the id and name that it holds, if it holds any."""

    text: str
    id: str | None
    name: str | None


class Sink:
    """Collects events. Knows the channel that the text is in now, and gives findings their place."""

    def __init__(
        self,
        source: Source,
        marks: Markers,
        tokens: Markers,
        offer: Offer,
        limits: Limits,
        in_prose: tuple[str, ...] = (),
    ) -> None:
        """`tokens` are the markers that no prose holds. Calls that begin with what is `in_prose` may be prose."""
        self.offer = offer
        self.limits = limits
        self.thinking = False
        self.calls = 0
        self.inside_calls = False
        self.failed = False
        self._source = source
        self._markers = marks
        self._tokens = tokens
        self._in_prose = in_prose
        self._events: list[ev.Event] = []
        self.add = self._events.append
        self._open: OpenCall | None = None
        self._trial: _Trial | None = None

    def drain(self) -> list[ev.Event]:
        """What was collected since the last time."""
        settled = self._trial.before if self._trial else self._events
        events = settled[:]
        settled.clear()
        return events

    # ── what may yet turn out to be no call ───────────────────────────────────────────────────────────────────────

    def try_call(self) -> None:
        """From here on events wait: what is read is a call only if `keep` follows. `drop` undoes it."""
        self._trial = _Trial(self._events, self.calls)
        self._events = []
        self.add = self._events.append

    def keep(self) -> None:
        """What was tried is a call."""
        trial, self._trial = self._trial, None
        if trial is not None:
            self._events[:0] = trial.before
            self._source.forget()

    def drop(self) -> None:
        """What was tried is no call: all that was read of it is text."""
        trial, self._trial = self._trial, None
        if trial is not None:
            self._events, self.calls, self._open = trial.before, trial.calls, None
            self.add = self._events.append
        self.not_a_call()

    def not_a_call(self) -> bool:
        """Gives back what the source has recorded. True if that is not all of it, because its markers are gone."""
        recorded = self._source.recorded()
        text = self._without_markers(recorded)
        if text and not self.failed:
            self.text(text, self._source.recorded_from)
            self._source.resume_text()
        return text != recorded

    def wait(self, text: str) -> None:
        """Arguments of a call that is tried. When they are too many to wait, the call is kept as it is."""
        if self._trial is not None:
            self._trial.size += len(text)
            if self._trial.size > self.limits.held:
                self.keep()

    def text(self, text: str, channel: Channel) -> None:
        thinking = self.thinking or channel is Channel.REASONING
        self._events.append(ev.ReasoningDelta(text) if thinking else ev.TextDelta(text))

    def give_back(self, text: str, channel: Channel) -> None:
        """Text that was read as part of a call and is none."""
        text = self._without_markers(text)
        if text.strip() and not self.failed:
            self.text(text, channel)
            self._source.resume_text()

    def _without_markers(self, text: str) -> str:
        """Special tokens go. Other markers are ordinary text, but for those of a call that the end has cut."""
        if not self._in_prose or self.offer.empty or not self._source.closed:
            return self.plain(text)
        tags = markers(*(mark for mark in self._markers.literals if any(map(str.isalpha, mark)) and "{" not in mark))
        bare = tags.without(text)
        return bare if _BEGINS_CALL.match(bare.strip()) else self.plain(text)

    def plain(self, text: str) -> str:
        """The text without special tokens."""
        return self._tokens.without(text) if text else text

    def report(self, kind: str, message: str, offset: int | None = None) -> None:
        at = self._source.offset if offset is None else offset
        self._events.append(ev.Finding(kind, message, f"character {max(0, at)}"))

    def over_limit(self, what: str, limit: int) -> None:
        """A limit was passed: a finding, or the end of the reply."""
        message = f"{what} is longer than {limit:,} characters"
        if self.limits.over == "error":
            self._events.append(ev.Failure(message))
            self.failed = True
        else:
            self.report("over-limit", f"{message}: given out as it came, and read on afresh")

    @property
    def channel(self) -> Channel:
        """The channel that the source is in."""
        return self._source.channel

    def refuses(self, name: str) -> bool:
        """Whether a call of this name is text: because no tool was offered, or not this one and prose may hold what
        looks like a call. Says so if it is."""
        if self.offer.empty:
            self.report("no-tools-offered", f"a call of {name!r}, but no tool was offered: given out as text")
        elif not self._source.recorded_marker.startswith(self._in_prose) or self.offer.may_have(name):
            return False
        else:
            self.report(
                "not-a-tool", f"no tool called {name!r} was offered: what looks like a call is given out as text"
            )
        return True

    def start(self, header: Header) -> OpenCall:
        """A call begins: its name is known, or will be at its end."""
        lead = self._source.lead
        if self._trial is None:
            self._source.forget()
        self._open = OpenCall(self, header, lead)
        return self._open

    def forget(self) -> None:
        """The call in progress is over."""
        self._open = None

    def close(self) -> None:
        """The text is over: gives out what a call in progress still holds. Ending that call is the guard's."""
        if self._open is not None:
            self._open.cut()


class _Trial:
    """A call that is tried: the events before it, and how much of its arguments waits."""

    def __init__(self, before: list[ev.Event], calls: int) -> None:
        self.before = before
        self.calls = calls
        self.size = 0


class OpenCall:
    """A call whose header has been read.

    One without a name waits for its end if it can be guessed then from the offered tools whose params fit.
    """

    def __init__(self, sink: Sink, header: Header, lead: str = "") -> None:
        self._sink = sink
        self._header = header
        self._lead = lead
        self._index = sink.calls
        self._channel = sink.channel
        self._args = Args(sink.limits.held)
        self._waiting: list[str] | None = None
        self._as_text: list[str] | None = None
        self._append = sink.add
        self.cursor = self._args.cursor
        sink.calls += 1
        if header.name is not None:
            self._begin(header.name)
        elif header.text and not sink.offer.known:
            self._begin_unnamed(None)
        else:
            self._waiting = []

    @property
    def waits(self) -> bool:
        """Whether all of the call is held until its end tells its name."""
        return self._waiting is not None

    def writer(self, first: str) -> Callable[[str], None]:
        """Where arguments go that begin with this character: an object or array straight on, all else waits."""
        return self._send if first in STREAMED else self._hold

    def end(self, complete: bool = True) -> None:
        """The model has closed the call, or a limit has."""
        if rest := self._args.end():
            self._send(rest)
        self.close(complete)

    def close(self, complete: bool = True) -> None:
        """Ends a call whose arguments have all been sent."""
        self._sink.forget()
        if not self._settle() or self._gives_text():
            return
        for kind, message in self._args.notes:
            self._sink.report(kind, message)
        self._sink.add(ev.CallEnd(self._index, complete))

    def cut(self) -> None:
        """The reply ended inside the call."""
        if rest := self._args.cut():
            self._send(rest)
        if self._settle():
            self._gives_text()

    def _gives_text(self) -> bool:
        """Gives out a refused call as text, without any special tokens that its arguments quote."""
        if self._as_text is None:
            return False
        self._sink.calls -= 1
        self._sink.text(self._sink.plain("".join(self._as_text)), self._channel)
        return True

    def _send(self, text: str) -> None:
        if self._as_text is not None:
            self._as_text.append(text)
        elif self._waiting is None:
            self._append(ev.ArgsDelta(self._index, text))
            self._sink.wait(text)
        else:
            self._waiting.append(text)

    def _hold(self, text: str) -> None:
        if over := self._args.hold(text):
            self._send(over)

    def _settle(self) -> bool:
        """Names a call that waits, and lets it go. False if nothing names it, so that it is none."""
        if self._waiting is None:
            return True
        args, self._waiting = "".join(self._waiting), None
        name = self._sink.offer.fitting(args)
        if name is None and not self._header.text:
            self._sink.calls -= 1
            self._sink.report("call-without-name", "nothing names this call: its arguments are given back as text")
            self._sink.give_back(args, self._channel)
            return False
        self._begin_unnamed(name)
        self._send(args)
        return True

    def _begin(self, name: str) -> None:
        if self._sink.refuses(name):
            self._as_text = [self._lead + name]
        else:
            self._sink.add(ev.CallStart(self._index, self._header.id, name))

    def _begin_unnamed(self, guess: str | None) -> None:
        header = self._header.text
        if guess is None:
            self._sink.report("header-as-name", f"{header!r} names no tool and no tool's params fit: taken as the name")
        else:
            self._sink.report("guessed-name", f"{header!r} names no tool: {guess!r} is the one whose params fit")
        self._begin(guess or header)
