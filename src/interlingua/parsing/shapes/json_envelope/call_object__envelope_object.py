"""One JSON object that may be a call: its name, its arguments, perhaps its id, in any order.

Arguments that come after the name go on as they come. Those that come before it are held, for without a name nobody
knows yet whether the object is a call.
"""

from __future__ import annotations

import json
from enum import Enum

from interlingua.common.jsontext.arguments import STREAMED
from interlingua.common.jsontext.codec import read_json
from interlingua.common.jsontext.scanner import JsonCursor
from interlingua.parsing.event_sink import Header, OpenCall, Sink
from interlingua.parsing.markers import markers
from interlingua.parsing.shapes.json_envelope.call_object__envelope_values import EnvelopeValues
from interlingua.parsing.shapes.json_envelope.keys import IGNORED, LISTS, WRAPPERS, Gate, Keys
from interlingua.parsing.text_buffer__source import Reading, Source

__all__ = ["EnvelopeObject", "Outcome"]

DEPTH = 3
"""How many objects deep a call may stand."""

MEMBER_ENDS = markers(",", "}")
COLON = markers(":")
BRACE = markers("{")
NO_VALUE = (",", "}", "]", "")


class Outcome(Enum):
    CALL = "call"
    """The object was a call, or one to no tool and given out as text."""
    TEXT = "text"
    """It was none, and was read to its end."""
    BROKEN = "broken"
    """It was none, and where it ends is not known."""
    LIST = "list"
    """It holds an array of calls, which comes next."""


class EnvelopeObject(EnvelopeValues):
    """Reads one object, from behind its opening brace."""

    def __init__(self, keys: Keys, gate: Gate, source: Source, sink: Sink) -> None:
        super().__init__(keys, gate, source, sink)
        self._start = source.offset
        self._depth = 1
        self._name: str | None = None
        self._id: str | None = None
        self._refused = False
        self._held: list[str] | None = None  # arguments that came before the call could begin
        self._held_size = 0
        self._held_ended = False
        self._call: OpenCall | None = None
        self._has_args = False
        self._beside: dict[str, str] = {}  # what else stands in it: lost if this is a call, unless they are its params
        self._commas_missing = 0
        self._no_key = ""  # what stood where a key should, and is none
        self._is_list = False

    def read(self, *, to_its_end: bool) -> Reading[Outcome]:
        """Reads the object. One that is no call is left where that shows, unless it is to be read to its end."""
        closed = yield from self._members()
        if self._sink.failed:
            return Outcome.BROKEN
        if self._is_list:
            return Outcome.LIST
        if self._call is None and not self._refused and self._may_begin(ended=True):
            self._begin()
        if self._call is not None:
            return self._end(self._call, closed)
        if not closed and (to_its_end or self._refused):
            closed = yield from self._rest()
        if self._refused:
            self._to_nothing()
            return Outcome.CALL
        return Outcome.TEXT if closed else Outcome.BROKEN

    def _to_nothing(self) -> None:
        """A call that is none. It is text, and no marker in it may leak; or it is only said that there is none."""
        if self._name in self._keys.no_tools:
            self._source.forget()
            return
        size = self._source.offset - self._start + 1
        text = self._source.recorded()[-size:]
        self._sink.give_back(self._keys.marks.without(text), self._source.recorded_from)

    def _end(self, call: OpenCall, closed: bool) -> Outcome:
        if not self._has_args and (closed or not self._source.closed):
            self._end_without_arguments(call)
        elif not closed and call.cursor.ended and self._gate is not Gate.TRIED:
            self._sink.report(
                "call-not-closed", f"the call of {self._name!r} lacks its last brace: taken as closed here"
            )
            self._give_back_no_key()
        for key in self._beside:
            self._sink.report("after-arguments", f"the key {key!r} beside a call's arguments: dropped")
        if self._commas_missing:
            self._sink.report("mended-arguments", f"a comma is missing in the call of {self._name!r}: read as meant")
        if self._gate is not Gate.TRIED:
            return Outcome.CALL
        if not closed:
            return Outcome.BROKEN
        self._sink.report("no-opener", f"a call of {self._name!r} without the marker before it: taken as a call")
        self._sink.keep()
        return Outcome.CALL

    def _end_without_arguments(self, call: OpenCall) -> None:
        """Some models write the params right beside the name."""
        params = [key for key in self._beside if self._sink.offer.declares(self._name or "", key)]
        if not params:
            self._sink.report("no-arguments", f"a call of {self._name!r} without arguments: taken as one")
            call.end()
            return
        self._sink.report("mended-arguments", f"the arguments of {self._name!r} stand beside its name: taken as such")
        members = (f"{json.dumps(key, ensure_ascii=False)}: {self._beside.pop(key)}" for key in params)
        self._replay(call, f"{{{', '.join(members)}}}")
        if not call.cursor.ended:  # a value broke off: nobody should run the call as it is
            call.end(complete=False)

    def _give_back_no_key(self) -> None:
        """What is no key is text behind the call, unless it may have become one and the text's end has cut it."""
        known = (*self._keys.name, *self._keys.args, *self._keys.id, *IGNORED)
        cut = self._source.closed and any(f'"{key}":'.startswith(self._no_key.lstrip()) for key in known)
        self._sink.give_back("" if cut else self._no_key, self._source.channel)

    def _rest(self) -> Reading[bool]:
        """Steps over what is left of the object. False if its end is not found."""
        limit = self._sink.limits.held if self._refused else self._sink.limits.header
        cursor = JsonCursor()
        cursor.walk('{"":' * (self._depth - 1) + '{"":""', 0)
        if (yield from self._source.peek(self._keys.marks)):
            return False
        return (yield from self._copy(cursor, _ignore, limit))

    # ── the members ───────────────────────────────────────────────────────────────────────────────────────────────

    def _members(self) -> Reading[bool]:
        """Reads members as long as they are some of a call. True if they end with the object."""
        separated = True
        while True:
            marker = yield from self._source.accept(MEMBER_ENDS)
            depth = self._depth
            if marker == "}":
                self._depth -= 1
                if not self._depth:
                    return True
            elif marker is None:
                if not (yield from self._member()):
                    return False
                self._commas_missing += not separated
            separated = marker == "," or self._depth > depth

    def _member(self) -> Reading[bool]:
        """Reads a member. False if there is none, or one that no call has."""
        limit = self._sink.limits.header
        if self._call is None and self._source.offset - self._start - self._held_size > limit:
            self._over_limit("what stands before the name of a call", limit)
            return False
        written = yield from self._string()
        key = read_json(written, str)
        if key is None or (yield from self._source.accept(COLON)) is None:
            self._no_key = written
            return False
        first = yield from self._source.next_char()
        if first == '"' and self._name is None and key in (*self._keys.name, *WRAPPERS):
            return self._named(read_json((yield from self._string()), str))
        if first == "{" and key in WRAPPERS and self._depth < DEPTH:
            yield from self._source.accept(BRACE)
            self._depth += 1
            return True
        if first == '"' and key in self._keys.id:
            return self._identified(read_json((yield from self._string()), str))
        if key in self._keys.args and not self._has_args:
            return (yield from self._arguments(first))
        if self._keys.name_is_key and self._name is None and first in ("{", "n"):
            return self._named(key) and (yield from self._arguments(first))
        if first == "[" and key in LISTS and self._name is None:
            self._is_list = True
            return False
        return first in NO_VALUE or (yield from self._other(key))

    def _named(self, name: str | None) -> bool:
        """The name is known. False if that makes the object no call."""
        if name is None or not name.strip():
            return name is not None
        offer = self._sink.offer
        meant = name if offer.has(name) else offer.meant(name)
        if self._gate is Gate.MARKED:
            self._name = meant or name
            self._refused = self._is_refused(self._name)
        elif meant is not None or (self._keys.bare and not offer.known):
            self._name = meant or name
        if self._name is None or self._refused:
            return False
        if self._name != name:
            self._sink.report("renamed", f"{name!r} was not offered, {self._name!r} was: taken as that")
        if self._may_begin():
            self._begin()
        return True

    def _is_refused(self, name: str) -> bool:
        if name in self._keys.no_tools and not self._sink.offer.has(name):
            self._sink.report("noise", f"{name!r} says that no tool is wanted: dropped")
            return True
        return self._sink.refuses(name)

    def _identified(self, id: str | None) -> bool:
        if self._call is not None and id and id != self._id:
            self._sink.report("late-id", f"the id {id!r} comes after arguments too long to wait for it: dropped")
        self._id = self._id or id or None
        if self._call is None and self._may_begin():
            self._begin()
        return id is not None

    def _other(self, key: str) -> Reading[bool]:
        """A member that says nothing of the call. An object that stands alone has none of those before its name."""
        if self._gate is not Gate.MARKED and self._call is None and key not in IGNORED:
            return False
        limits, value = self._sink.limits, list[str]()
        limit = limits.header if self._call is None else limits.args if self._has_args else limits.held
        ended = yield from self._copy(JsonCursor(), _ignore if self._has_args else value.append, limit)
        if key not in IGNORED:
            self._beside[key] = "".join(value).strip()
        return ended

    # ── the call ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _may_begin(self, *, ended: bool = False) -> bool:
        """Whether what is known is enough for a call to begin."""
        if self._name is None or (self._gate is not Gate.MARKED and not self._has_args):
            return False
        return ended or not self._keys.id or self._id is not None

    def _begin(self) -> OpenCall:
        if self._gate is Gate.TRIED:
            self._sink.try_call()
        self._call = self._sink.start(Header("", self._id, self._name))
        if self._held is not None:
            self._replay(self._call, "".join(self._held))
        return self._call

    def _replay(self, call: OpenCall, args: str) -> None:
        """Arguments that were held. They go on as one piece."""
        cursor = call.cursor
        pos = cursor.walk(args, 0)
        while pos < len(args) and not cursor.ended:
            pos = cursor.walk(args, cursor.skip(args, pos))
        call.writer(cursor.first)(args)
        if self._held_ended and cursor.first not in (*STREAMED, '"'):
            cursor.finish()  # a number or a word: only what followed has told that it is whole
        if cursor.ended:
            call.end()

    def _arguments(self, first: str) -> Reading[bool]:
        if first in NO_VALUE:
            return True
        self._has_args = True
        yield from self._source.skip_space()
        if self._call is None and self._may_begin():
            self._begin()
        if self._call is not None:
            return (yield from self._stream(self._call, first))
        return (yield from self._hold(first))

    def _hold(self, first: str) -> Reading[bool]:
        """Arguments before the name, or before an id that may still follow them."""
        limits = self._sink.limits
        limit = min(limits.held if self._name is None else limits.header, self._args_limit(first))
        cursor, self._held = JsonCursor(), []
        marker = yield from self._source.copy_json(cursor, self._keys.cuts, self._held.append, limit)
        self._held_size, self._held_ended = cursor.offset, cursor.ended
        if cursor.ended:
            return True
        if self._name is not None:
            call = self._begin()
            if marker == "":  # too much to wait for an id
                return (yield from self._stream(call, first))
            if marker:
                call.end()
        elif marker == "":
            self._over_limit("what stands before the name of a call", limit)
        if marker:
            self._source.unread(marker)
        return False

    def _stream(self, call: OpenCall, first: str) -> Reading[bool]:
        limit = self._args_limit(first)
        marker = yield from self._source.copy_json(call.cursor, self._keys.cuts, call.writer(first), limit)
        if call.cursor.ended:
            call.end()
            return True
        if marker == "":
            self._sink.over_limit("a call's arguments", limit)
            call.end(complete=False)
        elif marker is not None:
            call.end()
            self._source.unread(marker)
        return False

    def _args_limit(self, first: str) -> int:
        return self._sink.limits.args if first in STREAMED else self._sink.limits.held


def _ignore(_: str) -> None:
    """For values of which only the end matters."""
