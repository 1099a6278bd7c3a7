"""Where each wire has what only the upstream that wrote it can read: signatures, and encrypted thinking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_not
from typing import Any, TypeAlias

from interlingua.core.findings__notes import Notes
from interlingua.core.options import Options
from interlingua.core.reasoning_signatures import VALUE, Own, is_ours, open_seal, seal_value
from interlingua.core.reply import Reasoning
from interlingua.events import Finding, Seal
from interlingua.upstreams.profile import CHAT, MESSAGES, RESPONSES
from interlingua.wires.base import Json

__all__ = ["foreign_seal", "opened", "sealed", "thinking_nodes", "unreadable"]

EACH = "*"
DETAILS = "reasoning_details"
_IN_REPLIES = {  # paths to the objects that may hold one: in chunks, and in whole replies
    MESSAGES: ("content_block", "delta", "content *"),
    RESPONSES: ("item", "response output *", "output *"),
    CHAT: (f"choices * delta {DETAILS} *", f"choices * message {DETAILS} *"),
}
_IN_REQUESTS = {MESSAGES: ("messages * content *",), RESPONSES: ("input *",), CHAT: (f"messages * {DETAILS} *",)}
_FIELDS = {
    "thinking": "signature",
    "signature_delta": "signature",
    "redacted_thinking": "data",
    "reasoning": "encrypted_content",
    "reasoning.text": "signature",
    "reasoning.summary": "signature",
    "reasoning.encrypted": "data",
}
"""The field that holds it, by the type of the object."""

Change: TypeAlias = Callable[[Json, str], list[Json]]
"""What stands for an object: told its place, too."""


def sealed(said: Json, wire: str, options: Options) -> Json:
    """A chunk or a whole reply for a client of the upstream's wire: what the upstream alone can read goes with its
    name. All else stays, and if there is no such thing, it is the same object."""

    def named(node: Json, _: str) -> list[Json]:
        field, value = _held(node)
        return [{**node, field: seal_value(value, wire, options.upstream, options.seal_key)} if value else node]

    return _changed(said, _IN_REPLIES[wire], named)


def _held(node: Json) -> tuple[str, str]:
    """The object's opaque field, and what is in it."""
    field = _FIELDS.get(str(node.get("type")), "")
    return field, value if isinstance(value := node.get(field), str) else ""


# ── requests ──────────────────────────────────────────────────────────────────────────────────────────────────────


def unreadable(asked: Json, wire: str, key: bytes) -> list[Finding]:
    """The seals in a client's request that nobody here can open."""
    notes = Notes()

    def noted(node: Json, place: str) -> list[Json]:
        field, value = _held(node)
        if is_ours(value) and open_seal(value, key) is None:
            _note_unreadable(notes, f"{place}.{field}")
        return [node]

    _changed(asked, _IN_REQUESTS[wire], noted)
    return notes.findings


def _note_unreadable(notes: Notes, place: str) -> None:
    notes.report("seal-unreadable", "what vouches for thinking: sealed with another key, or changed", place)


def opened(asked: Json, wire: str, key: bytes, own: Own, signed_only: bool) -> tuple[Json, list[Finding]]:
    """A client's request for an upstream of its wire: what that has signed is as it was, and of others' thinking there
    is the text; or nothing, if it takes `signed_only`. All else stays, and if nothing changes, it is the same object.
    """
    opening = _Opening(wire, key, own, signed_only and wire != CHAT)
    if wire == CHAT:
        came = _changed(asked, ("messages *",), opening.message)
    else:
        came = _changed(asked, _IN_REQUESTS[wire], opening.thinking)
    return came, opening.notes.findings


class _Opening:
    """One request, as its thinking is looked at."""

    def __init__(self, wire: str, key: bytes, own: Own, signed_only: bool) -> None:
        self.notes = Notes()
        self._wire = wire
        self._key = key
        self._own = own
        self._signed_only = signed_only

    def message(self, message: Json, place: str) -> list[Json]:
        """A message of chat completions. Most show their thinking in another field, too: once is enough."""
        details = message.get(DETAILS)
        if not isinstance(details, list):
            return [message]
        [left] = _at(details, (EACH,), f"{place}.{DETAILS}", self.thinking)
        if left is details:
            return [message]
        if message.get("reasoning_content") or message.get("reasoning"):
            came = {id(detail) for detail in details}
            left = [one for one in left if id(one) in came or _held(one)[1]]
        rest = {key: value for key, value in message.items() if key != DETAILS}
        return [{**message, DETAILS: left} if left else rest]

    def thinking(self, node: Json, place: str) -> list[Json]:
        field, value = _held(node)
        if not field or not (value or self._signed_only):
            return [node]
        sent = self._sent(value, f"{place}.{field}")
        if sent.seal is None or not self._own(sent.seal):
            return self._text_alone(Reasoning(_text(node) or sent.text, sent.seal), place)
        if VALUE not in sent.seal.data:
            return thinking_nodes(sent, self._wire)
        native = sent.seal.data[VALUE]
        return [node if native == value else {**node, field: native}]

    def _sent(self, value: str, place: str) -> Reasoning:
        """What an upstream had sent; without a seal, if nobody can tell."""
        if not is_ours(value):
            return Reasoning("", Seal(self._wire, {VALUE: value}) if value else None)
        sent = open_seal(value, self._key)
        if sent is None:
            _note_unreadable(self.notes, place)
        return sent or Reasoning("")

    def _text_alone(self, thinking: Reasoning, place: str) -> list[Json]:
        nodes = [] if self._signed_only else thinking_nodes(Reasoning(thinking.text), self._wire)
        if not nodes and self._wire != CHAT:
            self.notes.report("thinking-dropped", "past thinking that it does not take: dropped", place)
        else:
            foreign_seal(thinking, self.notes, place)
        return nodes


def _text(node: Json) -> str:
    """The thinking that is shown."""
    shown = next((text for field in ("thinking", "text", "content", "summary") if (text := node.get(field))), "")
    if isinstance(shown, list):
        return "\n\n".join(str(part.get("text") or "") for part in shown if isinstance(part, dict))
    return str(shown)


def thinking_nodes(thinking: Reasoning, wire: str) -> list[Json]:
    """Past thinking as an upstream of this wire had sent it; of what has no seal, the text."""
    text = thinking.text
    if thinking.seal is None:
        return [_text_node(text, wire)] if text else []
    data = thinking.seal.data
    if wire == CHAT:
        return list(data.get(DETAILS, ()))
    if wire == RESPONSES:
        summary = [{"type": "summary_text", "text": text}] if text and "content" not in data else []
        return [{"type": "reasoning", "summary": summary, **data}]
    if "redacted" in data:
        return [{"type": "redacted_thinking", "data": data["redacted"]}]
    return [{"type": "thinking", "thinking": text, "signature": data.get("signature", "")}]


def _text_node(text: str, wire: str) -> Json:
    if wire == CHAT:
        return {"type": "reasoning.text", "text": text}
    if wire == RESPONSES:
        return {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": text}]}
    return {"type": "thinking", "thinking": text, "signature": ""}


def foreign_seal(thinking: Reasoning, notes: Notes, place: str) -> None:
    """Thinking whose seal is another upstream's: of that, only the text can be sent back."""
    if thinking.seal is not None and thinking.seal.data:
        notes.report("seal-dropped", "what vouches for thinking of another upstream: dropped", place)


# ── where they stand ──────────────────────────────────────────────────────────────────────────────────────────────


def _changed(body: Json, paths: Sequence[str], change: Change) -> Json:
    for path in paths:
        [body] = _at(body, path.split(), "", change)
    return body


def _at(node: Any, path: Sequence[str], place: str, change: Change) -> list[Any]:
    """What stands for the node, with what is at this path changed; the same one if nothing is."""
    if not path:
        return change(node, place) if isinstance(node, dict) else [node]
    step, *further = path
    if step == EACH:
        if not isinstance(node, list):
            return [node]
        nodes = [new for n, one in enumerate(node) for new in _at(one, further, f"{place}[{n}]", change)]
        return [node if len(nodes) == len(node) and not any(map(is_not, nodes, node)) else nodes]
    if not isinstance(node, dict) or step not in node:
        return [node]
    [inner] = _at(node[step], further, f"{place}.{step}" if place else step, change)
    return [node if inner is node[step] else {**node, step: inner}]
