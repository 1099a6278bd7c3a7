"""Prompt cache: where the upstream's request of a turn parts from that of the turn before, and who changed it.

A server that caches prompts reuses the longest beginning that two requests share. Everything behind the first
difference has to be read again. The order is that of the prompt: settings that templates write first, tools, system
prompt, messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from interlingua.common.jsontext.codec import read_json
from interlingua.inspection.json_difference import (
    SNIPPET_CHARS,
    Difference,
    DifferenceKind,
    decode_exactly,
    first_difference,
)
from interlingua.tokens.estimator import (
    EMPTY_CONVERSATION,
    ConversationSize,
    measure_items,
    measure_prompt,
    measure_tools,
)
from interlingua.wires import get_wire

__all__ = ["Author", "CacheReport", "PrefixBreak", "TurnRequests", "compare_turns"]

Author: TypeAlias = Literal["client", "gateway"]
_TEMPLATE_SETTINGS = (
    "model",
    "chat_template_kwargs",
    "enable_thinking",
    "reasoning_effort",
    "reasoning",
    "thinking",
    "output_config",
    "response_format",
    "text",
)
"""Settings that choose the cache, or that servers write at the beginning of the prompt."""
_ROUTING_SETTINGS = ("prompt_cache_key", "tool_choice", "parallel_tool_calls")
"""Settings that do not change the prompt, but may lead to another cache, or make a server discard its own."""
_SYSTEM_FIELDS = ("system", "instructions")
_TOOL_FIELDS = ("tools", "functions")
_CACHE_MARKS = frozenset(("cache_control",))
"""Marks where a prompt should be cached. They are not part of it, and move with each turn."""
_SYSTEM_MESSAGE = re.compile(rb'^\s*\{\s*"role"\s*:\s*"(?:system|developer)"')
_DATE = re.compile(
    r"\d{4}-\d\d-\d\d|\d{1,2}:\d\d(?::\d\d)?|\d{1,2}/\d{1,2}/\d{2,4}|"
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]* \d{1,2}|1[5-9]\d{8}",
    re.IGNORECASE,
)


class TurnRequests(msgspec.Struct, frozen=True, kw_only=True):
    """The two requests of a turn: what the client sent, and what the upstream got."""

    client_wire: str
    client_body: bytes
    upstream_wire: str
    upstream_body: bytes
    upstream: str = ""
    """Name of the upstream; "" if it is not recorded."""
    model: str = ""
    """Model of the upstream."""
    profile: str = ""
    """Profile of the upstream; "" if it is not recorded."""
    cached_tokens: int | None = None
    """Tokens that the upstream reported as read from its cache; None if it reported no usage."""
    input_tokens: int | None = None
    """Input tokens that the upstream reported."""


Translate: TypeAlias = Callable[[bytes, TurnRequests], bytes | None]
"""Translates a client's request as the gateway has translated that of a turn; None if it cannot be translated."""


class PrefixBreak(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """First difference between the upstream's requests of two turns."""

    part: Literal["settings", "tools", "system", "messages", "routing", "cache marks"]
    path: str
    """Place in the upstream's request, such as `messages[3].content[0].text`; `upstream` if it went to another one."""
    difference: Difference
    author: Author
    reason: str
    """The reason why this is the author."""
    hint: str = ""
    """Advice for the user."""
    lost_tokens: int
    """Estimated tokens of the turn before that are behind the difference."""


class CacheReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The part of the turn before that a turn can reuse."""

    shared_tokens: int
    """Estimated tokens that the two requests share."""
    previous_tokens: int
    """Estimated tokens of the request of the turn before."""
    total_tokens: int
    """Estimated tokens of the request."""
    cached_tokens: int | None = None
    """Tokens that the upstream reported as read from its cache."""
    input_tokens: int | None = None
    prefix_break: PrefixBreak | None = None
    """None if the request continues that of the turn before."""


def compare_turns(previous: TurnRequests, current: TurnRequests, translate: Translate) -> CacheReport:
    """Compare the requests of two successive turns of a conversation.

    Args:
        previous: The turn before.
        current: The turn.
        translate: Translates requests of this client with the code of now.
    """
    before = _Prompt(previous.upstream_body, previous.upstream_wire, previous.model)
    after = _Prompt(current.upstream_body, current.upstream_wire, current.model)
    place = before.first_difference(after)
    previous_tokens, total_tokens = before.tokens(), after.tokens()
    shared_tokens = previous_tokens if place is None else before.tokens_before(place)
    prefix_break: PrefixBreak | None = None
    if previous.upstream and current.upstream and previous.upstream != current.upstream:
        shared_tokens = 0
        prefix_break = _upstream_break(previous, current, previous_tokens)
    elif place is not None and not _is_continuation(place):
        prefix_break = _prefix_break(place, previous, current, translate, previous_tokens - shared_tokens)
    return CacheReport(
        shared_tokens=min(shared_tokens, total_tokens),
        previous_tokens=previous_tokens,
        total_tokens=total_tokens,
        cached_tokens=current.cached_tokens,
        input_tokens=current.input_tokens,
        prefix_break=prefix_break,
    )


def _is_continuation(place: _Place) -> bool:
    """Return whether the later prompt only adds to the end of the earlier one."""
    return place.is_last and place.difference.kind == "extended"


def _upstream_break(previous: TurnRequests, current: TurnRequests, lost_tokens: int) -> PrefixBreak:
    """Return the break of a turn that another upstream answered, which has a cache of its own."""
    is_by_client = _client_model(previous) != _client_model(current)
    return PrefixBreak(
        part="routing",
        path="upstream",
        difference=Difference("", "text", None, previous.upstream, current.upstream),
        author="client" if is_by_client else "gateway",
        reason="the client changed model" if is_by_client else "the client asked for the same model in both turns",
        hint="" if is_by_client else "under Attempts is why the other upstream did not answer",
        lost_tokens=lost_tokens,
    )


def _prefix_break(
    place: _Place, previous: TurnRequests, current: TurnRequests, translate: Translate, lost_tokens: int
) -> PrefixBreak:
    author, reason = _find_author(place, previous, current, translate)
    part: Literal["settings", "tools", "system", "messages", "routing", "cache marks"] = place.part
    if place.is_cache_mark:
        part = "cache marks"
    elif place.is_system_message:
        part = "system"
    return PrefixBreak(
        part=part,
        path=place.path,
        difference=place.difference,
        author=author,
        reason=reason,
        hint=_hint(place, author),
        lost_tokens=lost_tokens,
    )


# ── the prompt ────────────────────────────────────────────────────────────────────────────────────────────────────────


_Part: TypeAlias = Literal["settings", "tools", "system", "messages", "routing"]
_PARTS: tuple[_Part, ...] = get_args(_Part)


class _Place(msgspec.Struct, frozen=True):
    """Place of a difference in a prompt."""

    part: _Part
    index: int
    """Index of the element among those of its part."""
    path: str
    difference: Difference
    fraction: float
    """Part of the element that is before the difference."""
    is_last: bool
    """True if nothing of the earlier prompt follows the element."""
    is_cache_mark: bool = False
    """True if only a cache mark differs."""
    is_system_message: bool = False
    """True if the element is a message that holds the system prompt."""


class _Element(msgspec.Struct, frozen=True):
    part: _Part
    path: str
    raw: bytes


class _Prompt:
    """The parts of a request that make up the prompt, in its order, as JSON text."""

    def __init__(self, body: bytes, wire: str, model: str) -> None:
        self._model = model
        try:
            fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        except (msgspec.DecodeError, UnicodeDecodeError):
            fields = {}
        self._elements = list(_elements(fields, get_wire(wire).TRAITS.conversation_field))

    def first_difference(self, after: _Prompt) -> _Place | None:
        """Return the first difference; else the first one in the cache marks, if the later request has none."""
        place = self._first_difference(after, _CACHE_MARKS)
        if place is not None and not _is_continuation(place):
            return place
        if self._has_cache_marks and not after._has_cache_marks:
            marks = self._first_difference(after, frozenset())
            if marks is not None:
                return msgspec.structs.replace(marks, is_cache_mark=True)
        return place

    @property
    def _has_cache_marks(self) -> bool:
        return any(b'"cache_control"' in element.raw for element in self._elements)

    def _first_difference(self, after: _Prompt, ignored_keys: frozenset[str]) -> _Place | None:
        continuation: _Place | None = None
        for part in _PARTS:
            own, other = ([e for e in prompt._elements if e.part == part] for prompt in (self, after))
            found = _compare_elements(own, other, ignored_keys)
            if found is None:
                continue
            index, path, difference = found
            is_last = part == "messages" and index >= len(own) - 1
            fraction = _fraction(own[index].raw, difference) if index < len(own) else 0.0
            is_system = index < len(own) and bool(_SYSTEM_MESSAGE.search(own[index].raw))
            place = _Place(part, index, path, difference, fraction, is_last, is_system_message=is_system)
            if not _is_continuation(place):
                return place
            continuation = place  # the settings behind it may differ
        return continuation

    def has_same_element(self, other: _Prompt, place: _Place) -> bool:
        """Return whether both prompts have the same element at this place."""
        own, others = ([e for e in prompt._elements if e.part == place.part] for prompt in (self, other))
        own, others = own[place.index : place.index + 1], others[place.index : place.index + 1]
        ignored_keys = frozenset[str]() if place.is_cache_mark else _CACHE_MARKS
        return len(own) == len(others) and _compare_elements(own, others, ignored_keys) is None

    def tokens(self) -> int:
        return round(sum(self._sizes()))

    def tokens_before(self, place: _Place) -> int:
        if place.is_cache_mark or place.part == "routing":
            return 0  # none of it may be cached
        sizes = self._sizes()
        element = sum(_PARTS.index(one.part) < _PARTS.index(place.part) for one in self._elements) + place.index
        partial = sizes[element] * place.fraction if element < len(sizes) else 0.0
        return round(sum(sizes[:element]) + partial)

    def _sizes(self) -> list[float]:
        return [self._measure(element).tokens for element in self._elements]

    def _measure(self, element: _Element) -> ConversationSize:
        if element.part in ("settings", "routing"):
            return EMPTY_CONVERSATION
        try:
            value = msgspec.json.decode(element.raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return EMPTY_CONVERSATION
        if element.part == "tools":
            return measure_tools([value])
        if element.part == "system":
            return measure_prompt([value], self._model)
        return measure_items(EMPTY_CONVERSATION, [value], self._model)


def _elements(fields: dict[str, msgspec.Raw], conversation_field: str) -> Iterable[_Element]:
    yield _settings("settings", _TEMPLATE_SETTINGS, fields)
    for name in _TOOL_FIELDS:
        yield from _items("tools", name, fields)
    for name in _SYSTEM_FIELDS:
        yield from _items("system", name, fields)
    yield from _items("messages", conversation_field, fields)
    yield _settings("routing", _ROUTING_SETTINGS, fields)


def _settings(part: Literal["settings", "routing"], names: Iterable[str], fields: dict[str, msgspec.Raw]) -> _Element:
    return _Element(part, "", msgspec.json.encode({name: fields[name] for name in names if name in fields}))


def _items(
    part: Literal["tools", "system", "messages"], name: str, fields: dict[str, msgspec.Raw]
) -> Iterable[_Element]:
    if name not in fields:
        return
    try:
        items = msgspec.json.decode(fields[name], type=list[msgspec.Raw])
    except msgspec.DecodeError:  # one text
        yield _Element(part, name, bytes(fields[name]))
        return
    for index, item in enumerate(items):
        yield _Element(part, f"{name}[{index}]", bytes(item))


def _compare_elements(
    own: list[_Element], other: list[_Element], ignored_keys: frozenset[str]
) -> tuple[int, str, Difference] | None:
    """Return the index of the first different element, the path of the difference and the difference."""
    for index, (before, after) in enumerate(zip(own, other, strict=False)):
        if (before.path, before.raw) == (after.path, after.raw):
            continue
        difference = first_difference(decode_exactly(before.raw), decode_exactly(after.raw), ignored_keys)
        if difference is not None or before.path != after.path:
            moved = _find_moved_item(own[index:], other[index:], ignored_keys)
            if moved is not None or difference is None:
                return index, before.path, moved or Difference("", "type", None, before.path, after.path)
            return index, _join_paths(before.path, difference.path), difference
    if len(own) > len(other):
        removed = own[len(other)]
        return len(other), removed.path, Difference("", "item removed", None, _snippet(removed.raw), "")
    if len(other) > len(own):
        added = other[len(own)]
        kind: DifferenceKind = "extended" if added.part == "messages" else "item added"
        return len(own), added.path, Difference("", kind, None, "", _snippet(added.raw))
    return None


def _find_moved_item(own: list[_Element], other: list[_Element], ignored_keys: frozenset[str]) -> Difference | None:
    """Return the difference if items were reordered, or one was added or removed; None if the item itself changed."""
    before, after = ([decode_exactly(element.raw) for element in side] for side in (own, other))
    difference = first_difference(before, after, ignored_keys)
    if difference is None or difference.kind not in ("item order", "item added", "item removed"):
        return None
    return msgspec.structs.replace(difference, path="") if difference.path == "[0]" else None


def _snippet(raw: bytes) -> str:
    text = raw.decode("utf-8", "replace")
    return text if len(text) <= SNIPPET_CHARS else text[: SNIPPET_CHARS - 1] + "…"


def _fraction(raw: bytes, difference: Difference) -> float:
    """Return about how much of an element is before a difference in it."""
    if difference.offset is None:
        return 0.0 if not difference.path else 0.5
    return min(difference.offset / max(len(raw), 1), 1.0)


def _join_paths(path: str, inner: str) -> str:
    return path + inner if not path or not inner or inner.startswith("[") else f"{path}.{inner}"


# ── the author ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _find_author(
    place: _Place, previous: TurnRequests, current: TurnRequests, translate: Translate
) -> tuple[Author, str]:
    """Return who made the difference, and how that is known.

    If the client's requests differ, too, its changes are undone and the request is translated once more: the client is
    the author if the difference is gone.
    """
    if previous.client_wire != current.client_wire:
        return "client", f"the client used another API: {current.client_wire} after {previous.client_wire}"
    client_place = _client_prompt(previous).first_difference(_client_prompt(current))
    if client_place is None or _is_continuation(client_place):
        return "gateway", "the client sent the same beginning in both turns"
    # The client's model chooses the upstream's model and profile.
    undone_turn = current if _client_model(previous) == _client_model(current) else previous
    translated = [translate(turn.client_body, turn) for turn in (previous, current)]
    undone = translate(_undo_changes(previous, current), undone_turn)
    if translated[0] is None or translated[1] is None or undone is None:
        return "client", f"the client changed {client_place.path}; its requests could not be translated once more"
    before, after, without = (
        _Prompt(body, turn.upstream_wire, turn.model)
        for body, turn in ((translated[0], previous), (translated[1], current), (undone, undone_turn))
    )
    if before.has_same_element(after, place):
        return "gateway", "the client's changes do not lead to this difference"
    if not before.has_same_element(without, place):
        return "gateway", "the difference is still there without the client's changes"
    return "client", f"the client changed {client_place.path}"


def _client_model(turn: TurnRequests) -> Any:
    """Return the model that the client asked for; None if it cannot be read."""
    return (read_json(turn.client_body, dict[str, msgspec.Raw]) or {}).get("model")


def _client_prompt(turn: TurnRequests) -> _Prompt:
    return _Prompt(turn.client_body, turn.client_wire, turn.model)


def _undo_changes(previous: TurnRequests, current: TurnRequests) -> bytes:
    """Return the request of a turn with the beginning of the turn before."""
    field = get_wire(current.client_wire).TRAITS.conversation_field
    try:
        before, after = (
            msgspec.json.decode(turn.client_body, type=dict[str, msgspec.Raw]) for turn in (previous, current)
        )
        earlier, later = (
            msgspec.json.decode(body.get(field, msgspec.Raw(b"[]")), type=list[msgspec.Raw]) for body in (before, after)
        )
    except msgspec.DecodeError:
        return previous.client_body
    return msgspec.json.encode({**before, field: [*earlier, *later[len(earlier) :]]})


def _hint(place: _Place, author: Author) -> str:
    difference = place.difference
    if author == "gateway":
        return "the findings of the request name what the gateway changed; report it if none does"
    if place.is_cache_mark:
        return "without cache_control the upstream caches nothing of this request"
    if place.part == "routing":
        return "the prompt is the same, but it may be sent to a server with another cache"
    if difference.kind == "text" and _DATE.search(difference.before) and _DATE.search(difference.after):
        return "a date or time changes with each turn: move it to the last message, or leave it out"
    if difference.kind in ("key order", "item order", "number form", "JSON form"):
        return "write this part of the request in the same order and form each time"
    if difference.kind == "image":
        return "send the same bytes of the image each time: encode it once and keep the result"
    return ""
