"""Reader for one JSON object that may be a call: name, arguments and perhaps an id, in any order.

Arguments that come after the name are streamed. Arguments that come before it are buffered, because without a name it
is not known yet whether the object is a call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from enum import Enum

from interlingua.common.jsontext.arguments import STREAMED_OPENERS
from interlingua.common.jsontext.codec import read_json
from interlingua.common.jsontext.scanner import JsonScanner
from interlingua.parsing.call_boundary import CallBoundary
from interlingua.parsing.event_sink import CallBuilder, CallHeader, EventSink
from interlingua.parsing.json_copy import copy_json, take_json_string
from interlingua.parsing.markers import compile_markers
from interlingua.parsing.shapes.json_envelope.keys import (
    CALL_LIST_KEYS,
    CODE_FENCE,
    IGNORED_KEYS,
    WRAPPER_KEYS,
    CallEvidence,
    EnvelopeKeys,
)
from interlingua.parsing.text_buffer import Read, TextBuffer

__all__ = ["CallObjectReader", "ObjectOutcome"]

QUOTE_MARKERS = compile_markers('"')
MAX_CALL_DEPTH = 3
"""Maximum nesting depth of the object that holds the call."""

MEMBER_END_MARKERS = compile_markers(",", "}")
COLON_MARKERS = compile_markers(":")
BRACE_MARKERS = compile_markers("{")
MISSING_VALUE_CHARS = (",", "}", "]", "")
MAX_ID_MEMBER_CHARS = 256
"""Length of the end of the arguments that is searched for an id."""
_LAST_STRING_MEMBER = re.compile(r'"(\w++)"\s*+:\s*+"[^"\\]*+"\s*+\}?+\s*+\Z')


class ObjectOutcome(Enum):
    """Result of reading one object."""

    CALL = "call"
    """The object is a call, or a refused call that was emitted as text."""
    TEXT = "text"
    """The object is not a call and was read to its end."""
    BROKEN = "broken"
    """The object is not a call, and its end is not known."""
    LIST = "list"
    """The object contains an array of calls, which comes next."""


class CallObjectReader:
    """Reader for one object, starting after its opening brace."""

    def __init__(self, keys: EnvelopeKeys, evidence: CallEvidence, source: TextBuffer, sink: EventSink) -> None:
        self._keys = keys
        self._evidence = evidence
        self._source = source
        self._sink = sink
        self._start = source.offset
        self._depth = 1
        self._name: str | None = None
        self._id: str | None = None
        self._refused = False
        self._buffered: list[str] | None = None  # arguments that came before the call could begin
        self._buffered_size = 0
        self._buffered_ended = False
        self._call: CallBuilder | None = None
        self._has_arguments = False
        self._end_of_arguments = ""  # their last characters, if an id can follow them
        self._is_undecided = False  # whether only the end of the object shows that the call is complete
        # Members that are not part of the call format. They are dropped from a call, unless they are its params.
        self._other_members: dict[str, str] = {}
        self._missing_commas = 0
        self._invalid_key = ""  # text at the place of a key that is not a key
        self._breaks_off = False  # whether the object ends before its arguments, which may be missing
        self._is_list = False

    def read(self, *, read_to_end: bool) -> Read[ObjectOutcome]:
        """Read the object. Stop as soon as it is known not to be a call, unless `read_to_end` is set."""
        closed = yield from self._read_members()
        if self._sink.failed:
            return ObjectOutcome.BROKEN
        if self._is_list:
            return ObjectOutcome.LIST
        if self._call is None and not self._refused and self._can_begin(ended=True):
            self._begin_call()
        if self._call is not None:
            if not closed and not self._has_arguments:
                marker = yield from self._source.peek(self._keys.cut_markers)
                self._breaks_off = self._breaks_off or marker not in (*self._keys.closers, CODE_FENCE)
            return self._end_call(self._call, closed)
        if not closed and (read_to_end or self._refused):
            closed = yield from self._skip_remainder()
        if self._refused:
            self._return_refused_call()
            return ObjectOutcome.CALL
        return ObjectOutcome.TEXT if closed else ObjectOutcome.BROKEN

    def _return_refused_call(self) -> None:
        """Emit a refused call as text, without markers. Drop it if its name is one of `no_tools`."""
        if self._name in self._keys.no_tools:
            self._source.discard_recording()
            return
        size = self._source.offset - self._start + 1
        text = self._source.take_recorded()[-size:]
        self._sink.emit_leftover_text(self._keys.all_markers.remove_from(text), self._source.recorded_channel)

    def _end_call(self, call: CallBuilder, closed: bool) -> ObjectOutcome:
        if not self._has_arguments and (closed or not self._source.closed):
            self._end_call_without_arguments(call)
        if self._is_undecided:
            call.end(complete=closed)
        if self._has_arguments and not closed and call.scanner.ended and not self._evidence.is_tentative:
            result = "its id may be in its arguments, marked as incomplete" if self._is_undecided else "closed here"
            self._sink.report("call-not-closed", f"the call of {self._name!r} lacks its closing brace: {result}")
            self._return_invalid_key()
        for key in self._other_members:
            self._sink.report("after-arguments", f"the key {key!r} next to the arguments of a call: dropped")
        if self._missing_commas:
            self._sink.report("mended-arguments", f"a comma is missing in the call of {self._name!r}: added")
        if not self._evidence.is_tentative:
            return ObjectOutcome.CALL
        if not closed:
            return ObjectOutcome.BROKEN
        self._sink.report("no-opener", f"a call of {self._name!r} without its opening marker: accepted as a call")
        if self._evidence is CallEvidence.TENTATIVE:
            self._sink.commit()
        return ObjectOutcome.CALL

    def _end_call_without_arguments(self, call: CallBuilder) -> None:
        """End a call without an arguments member. Some models write the params next to the name instead."""
        params = [key for key in self._other_members if self._sink.offer.has_param(self._name or "", key)]
        if self._breaks_off:
            self._report_missing_arguments()
        elif not params:
            self._sink.report("no-arguments", f"a call of {self._name!r} without arguments: accepted as a call")
        if not params:
            call.end(complete=not self._breaks_off)
            return
        self._sink.report("mended-arguments", f"the params of {self._name!r} are next to its name: used as arguments")
        members = (f"{json.dumps(key, ensure_ascii=False)}: {self._other_members.pop(key)}" for key in params)
        self._replay_arguments(call, f"{{{', '.join(members)}}}")
        if not call.scanner.ended:  # a value is truncated: the client should not run the call
            call.end(complete=False)

    def _report_missing_arguments(self) -> None:
        self._sink.report("call-not-closed", f"the call of {self._name!r} breaks off: marked as incomplete")

    def _return_invalid_key(self) -> None:
        """Emit the invalid key as text after the call.

        Drop it if it is a prefix of a known key in a truncated reply.
        """
        known_keys = (*self._keys.name_keys, *self._keys.args_keys, *self._keys.id_keys, *IGNORED_KEYS)
        is_cut = self._source.closed and any(f'"{key}":'.startswith(self._invalid_key.lstrip()) for key in known_keys)
        self._sink.emit_leftover_text("" if is_cut else self._invalid_key, self._source.channel)

    def _skip_remainder(self) -> Read[bool]:
        """Skip the rest of the object. Return False if its end is not found."""
        limit = self._sink.limits.held if self._refused else self._sink.limits.header
        scanner = JsonScanner()
        # Put the scanner into the state it would have at this depth, after a member.
        scanner.scan('{"":' * (self._depth - 1) + '{"":""', 0)
        if (yield from self._source.peek(self._keys.all_markers)):
            return False
        return (yield from self._copy_value(scanner, _discard, limit, self._keys.boundary))

    # ── the members ───────────────────────────────────────────────────────────────────────────────────────────────

    def _read_members(self) -> Read[bool]:
        """Read members while they can belong to a call. Return True if the object ends with them."""
        separated = True
        while True:
            marker = yield from self._source.accept(MEMBER_END_MARKERS)
            depth = self._depth
            if marker == "}":
                self._depth -= 1
                if not self._depth:
                    return True
            elif marker is None:
                if not (yield from self._read_member()):
                    self._breaks_off = not self._has_arguments and (separated or self._invalid_key != "")
                    return False
                self._missing_commas += not separated
            separated = marker == "," or self._depth > depth

    def _read_member(self) -> Read[bool]:
        """Read one member. Return False if there is none, or if no call has such a member."""
        limit = self._sink.limits.header
        if self._call is None and self._source.offset - self._start - self._buffered_size > limit:
            self._report_over_limit("the text before the name of a call", limit)
            return False
        raw_key = yield from self._read_string()
        key = read_json(raw_key, str)
        if key is None or (yield from self._source.accept(COLON_MARKERS)) is None:
            self._invalid_key = raw_key
            return False
        first = yield from self._source.peek_after_space()
        if first == '"' and self._name is None and key in (*self._keys.name_keys, *WRAPPER_KEYS):
            return self._accept_name(read_json((yield from self._read_string()), str))
        if first == "{" and key in WRAPPER_KEYS and self._depth < MAX_CALL_DEPTH:
            yield from self._source.accept(BRACE_MARKERS)
            self._depth += 1
            return True
        if first == '"' and key in self._keys.id_keys:
            return self._accept_id(read_json((yield from self._read_string()), str))
        if key in self._keys.args_keys and not self._has_arguments:
            return (yield from self._read_arguments(first))
        if self._keys.name_is_key and self._name is None and first in ("{", "n"):
            return self._accept_name(key) and (yield from self._read_arguments(first))
        if first == "[" and key in CALL_LIST_KEYS and self._name is None:
            self._is_list = True
            return False
        return first in MISSING_VALUE_CHARS or (yield from self._read_other_member(key))

    def _accept_name(self, name: str | None) -> bool:
        """Handle the name. Return False if the object is not a call with this name."""
        if name is None or not name.strip():
            return name is not None
        offer = self._sink.offer
        resolved_name = name if offer.has(name) else offer.resolve_name(name)
        if self._evidence is CallEvidence.MARKED:
            self._name = resolved_name or name
            self._refused = self._is_refused(self._name)
        elif resolved_name is not None or (self._accepts_any_name and not offer.is_known):
            self._name = resolved_name or name
        if self._name is None or self._refused:
            return False
        if self._name != name:
            self._sink.report("renamed", f"{name!r} was not offered: replaced by {self._name!r}, which was")
        if self._can_begin():
            self._begin_call()
        return True

    @property
    def _accepts_any_name(self) -> bool:
        return self._keys.bare and self._evidence is not CallEvidence.INLINE

    def _is_refused(self, name: str) -> bool:
        if name in self._keys.no_tools and not self._sink.offer.has(name):
            self._sink.report("noise", f"{name!r} means that no tool is called: dropped")
            return True
        return self._sink.reject_call(name)

    def _accept_id(self, id: str | None) -> bool:
        if self._call is not None and id and id != self._id:
            self._sink.report("late-id", f"the id {id!r} comes after arguments that are too long to buffer: dropped")
        elif self._id and id and id != self._id:
            self._sink.report("changed-id", f"a second id {id!r} in the same call: dropped")
        self._id = self._id or id or None
        if self._call is None and self._can_begin():
            self._begin_call()
        return id is not None

    def _read_other_member(self, key: str) -> Read[bool]:
        """Read a member that is not part of the call format.

        In an object without a marker, none may precede the name.
        """
        if self._evidence is not CallEvidence.MARKED and self._call is None and key not in IGNORED_KEYS:
            return False
        limits, value = self._sink.limits, list[str]()
        limit = limits.header if self._call is None else limits.args if self._has_arguments else limits.held
        write = _discard if self._has_arguments else value.append
        boundary = self._keys.key_boundary if key in IGNORED_KEYS else self._keys.boundary
        ended = yield from self._copy_value(JsonScanner(), write, limit, boundary)
        if key in self._other_members and not self._has_arguments:
            self._sink.report("repeated-param", f"the key {key!r} is repeated: the last one counts")
        if key not in IGNORED_KEYS:
            self._other_members[key] = "".join(value).strip()
        return ended

    # ── the call ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _can_begin(self, *, ended: bool = False) -> bool:
        """Return whether enough is known to start the call."""
        if self._name is None or (self._evidence is not CallEvidence.MARKED and not self._has_arguments):
            return False
        return ended or not self._keys.id_keys or self._id is not None

    def _begin_call(self) -> CallBuilder:
        if self._evidence.is_tentative and not self._sink.is_tentative:
            self._sink.begin_tentative()
        self._call = self._sink.start_call(CallHeader("", self._id, self._name))
        if self._buffered is not None:
            self._replay_arguments(self._call, "".join(self._buffered))
        return self._call

    def _replay_arguments(self, call: CallBuilder, args: str) -> None:
        """Write buffered arguments to the call, in one piece."""
        scanner = call.scanner
        call.write_whole(args)
        if self._buffered_ended and scanner.first_char not in (*STREAMED_OPENERS, '"'):
            scanner.finish()  # a number or a keyword: the text after it has shown that it is complete
        if scanner.ended:
            self._end_arguments(call)

    def _end_arguments(self, call: CallBuilder) -> None:
        """End a call whose arguments have ended.

        If they end with an id, the end of the object decides: without its brace, the id may be that of the call.
        """
        self._is_undecided = self._ends_with_id()
        if not self._is_undecided:
            call.end(complete=not self._breaks_off)

    @property
    def _can_get_id(self) -> bool:
        return bool(self._keys.id_keys) and self._id is None

    def _end_at_marker(self, call: CallBuilder, marker: str) -> None:
        """End a call whose arguments a marker has cut short."""
        if not call.scanner.first_char:
            self._report_missing_arguments()
            call.end(complete=False)
        elif self._ends_with_id():
            call.end(complete=False)
        else:
            call.end_at_marker(is_closer=marker in self._keys.closers)

    def _ends_with_id(self) -> bool:
        """Return whether the last member of the arguments may be the id of the call: a brace before it is missing."""
        member = _LAST_STRING_MEMBER.search(self._end_of_arguments) if self._can_get_id else None
        key = member.group(1) if member else ""
        return key in self._keys.id_keys and not self._sink.offer.has_param(self._name or "", key)

    def _keep_end(self, write: Callable[[str], None]) -> Callable[[str], None]:
        """Return a function that writes arguments and keeps their last characters."""

        def write_and_keep(text: str) -> None:
            self._end_of_arguments = (self._end_of_arguments + text)[-MAX_ID_MEMBER_CHARS:]
            write(text)

        return write_and_keep

    def _read_arguments(self, first: str) -> Read[bool]:
        if first in MISSING_VALUE_CHARS:
            return True
        self._has_arguments = True
        yield from self._source.skip_space()
        if self._call is None and self._can_begin():
            self._begin_call()
        if self._call is not None:
            return (yield from self._stream_arguments(self._call, first))
        return (yield from self._buffer_arguments(first))

    def _buffer_arguments(self, first: str) -> Read[bool]:
        """Buffer arguments that come before the name, or before an id that may still follow."""
        limits = self._sink.limits
        limit = min(limits.held if self._name is None else limits.header, self._arguments_limit(first))
        scanner, self._buffered = JsonScanner(), []
        marker = yield from copy_json(
            self._source, scanner, self._keys.cut_markers, self._buffered.append, limit, self._keys.boundary
        )
        self._buffered_size, self._buffered_ended = scanner.offset, scanner.ended
        self._end_of_arguments = "".join(self._buffered)[-MAX_ID_MEMBER_CHARS:]
        if scanner.ended:
            return True
        if self._name is not None:
            call = self._begin_call()
            if marker == "":  # too long to buffer until an id comes
                return (yield from self._stream_arguments(call, first))
            if marker:
                self._end_at_marker(call, marker)
        elif marker == "":
            self._report_over_limit("the text before the name of a call", limit)
        if marker:
            self._source.put_back(marker)
        return False

    def _stream_arguments(self, call: CallBuilder, first: str) -> Read[bool]:
        limit = self._arguments_limit(first)
        write = self._keep_end(call.writer(first)) if self._can_get_id else call.writer(first)
        marker = yield from copy_json(
            self._source,
            call.scanner,
            self._keys.cut_markers,
            write,
            limit,
            self._keys.boundary,
            may_forward=not self._can_get_id and first in STREAMED_OPENERS,
        )
        if call.scanner.ended:
            self._end_arguments(call)
            return True
        if marker == "":
            self._sink.report_over_limit("the argument text of a call", limit)
            call.end(complete=False)
        elif marker is not None:
            self._end_at_marker(call, marker)
            self._source.put_back(marker)
        return False

    def _arguments_limit(self, first: str) -> int:
        return self._sink.limits.args if first in STREAMED_OPENERS else self._sink.limits.held

    # ── values ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _read_string(self) -> Read[str]:
        """Consume and return the next key or name as JSON, or as much of it as there is."""
        source, keys, limit = self._source, self._keys, self._sink.limits.header
        is_tentative = self._evidence.is_tentative
        if not is_tentative and (string := take_json_string(source, keys.cut_markers, limit, keys.key_boundary)):
            return string
        if (yield from source.peek_after_space()) != '"':
            return ""
        if is_tentative:
            return (yield from self._read_unmarked_string())
        text: list[str] = []
        yield from self._copy_value(JsonScanner(), text.append, limit, keys.key_boundary)
        return "".join(text)

    def _read_unmarked_string(self) -> Read[str]:
        """Consume and return the next key or name, or "" if a marker comes before its end.

        A tentative object must not hide a marker in its strings.
        """
        yield from self._source.accept(QUOTE_MARKERS)
        limit = self._sink.limits.header
        text, end = yield from self._source.take_until(self._keys.name_end_markers, limit)
        if end == '"':
            return f'"{text}"'
        if end is not None:
            self._source.put_back(end)
        return ""

    def _report_over_limit(self, subject: str, limit: int) -> None:
        """Report an exceeded limit. A tentative object that is too long is just not a call, which is not reported."""
        if not self._evidence.is_tentative:
            self._sink.report_over_limit(subject, limit)

    def _copy_value(
        self, scanner: JsonScanner, write: Callable[[str], None], limit: int, boundary: CallBoundary | None
    ) -> Read[bool]:
        """Copy the next value. Return False if its end is not found."""
        marker = yield from copy_json(self._source, scanner, self._keys.cut_markers, write, limit, boundary)
        if marker == "":
            self._report_over_limit("a part of a possible call", limit)
        elif marker:
            self._source.put_back(marker)
        return scanner.ended


def _discard(_: str) -> None:
    """Ignore a piece of a value of which only the end is needed."""
