"""Where each wire has what only the upstream that wrote it can read: signatures, and encrypted thinking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_not
from typing import Any, TypeAlias

from interlingua.core.findings import FindingCollector
from interlingua.core.options import Options
from interlingua.core.reasoning_signatures import (
    VALUE_KEY,
    OwnershipCheck,
    is_envelope,
    read_envelope,
    write_value_envelope,
)
from interlingua.core.reply import Reasoning
from interlingua.events import Finding, Seal
from interlingua.upstreams.profile import CHAT, MESSAGES, RESPONSES
from interlingua.wires.base import Json

__all__ = ["report_foreign_signature", "restore_reasoning", "sign_reasoning", "thinking_nodes", "unreadable_signatures"]

EACH_ITEM = "*"
REASONING_DETAILS = "reasoning_details"
_REPLY_PATHS = {  # paths to the objects that may hold one: in chunks, and in whole replies
    MESSAGES: ("content_block", "delta", "content *"),
    RESPONSES: ("item", "response output *", "output *"),
    CHAT: (f"choices * delta {REASONING_DETAILS} *", f"choices * message {REASONING_DETAILS} *"),
}
_REQUEST_PATHS = {
    MESSAGES: ("messages * content *",),
    RESPONSES: ("input *",),
    CHAT: (f"messages * {REASONING_DETAILS} *",),
}
_SIGNATURE_FIELDS = {
    "thinking": "signature",
    "signature_delta": "signature",
    "redacted_thinking": "data",
    "reasoning": "encrypted_content",
    "reasoning.text": "signature",
    "reasoning.summary": "signature",
    "reasoning.encrypted": "data",
}
"""The field that holds it, by the type of the object."""

NodeRewrite: TypeAlias = Callable[[Json, str], list[Json]]
"""What stands for an object: told its place, too."""


def sign_reasoning(body: Json, wire: str, options: Options) -> Json:
    """A chunk or a whole reply for a client of the upstream's wire: what the upstream alone can read goes with its
    name. All else stays, and if there is no such thing, it is the same object."""

    def sign(node: Json, _: str) -> list[Json]:
        field, value = _signature_of(node)
        return [
            {**node, field: write_value_envelope(value, wire, options.upstream, options.seal_key)} if value else node
        ]

    return _rewrite_paths(body, _REPLY_PATHS[wire], sign)


def _signature_of(node: Json) -> tuple[str, str]:
    """The object's opaque field, and what is in it."""
    field = _SIGNATURE_FIELDS.get(str(node.get("type")), "")
    return field, value if isinstance(value := node.get(field), str) else ""


# ── requests ──────────────────────────────────────────────────────────────────────────────────────────────────────


def unreadable_signatures(request: Json, wire: str, key: bytes) -> list[Finding]:
    """The seals in a client's request that nobody here can open."""
    notes = FindingCollector()

    def check(node: Json, location: str) -> list[Json]:
        field, value = _signature_of(node)
        if is_envelope(value) and read_envelope(value, key) is None:
            _report_unreadable(notes, f"{location}.{field}")
        return [node]

    _rewrite_paths(request, _REQUEST_PATHS[wire], check)
    return notes.findings


def _report_unreadable(notes: FindingCollector, location: str) -> None:
    notes.report("seal-unreadable", "what vouches for thinking: sealed with another key, or changed", location)


def restore_reasoning(
    request: Json, wire: str, key: bytes, is_own: OwnershipCheck, signed_only: bool
) -> tuple[Json, list[Finding]]:
    """A client's request for an upstream of its wire: what that has signed is as it was, and of others' thinking there
    is the text; or nothing, if it takes `signed_only`. All else stays, and if nothing changes, it is the same object.
    """
    rewriter = _SignatureRewriter(wire, key, is_own, signed_only and wire != CHAT)
    if wire == CHAT:
        rewritten = _rewrite_paths(request, ("messages *",), rewriter.rewrite_message)
    else:
        rewritten = _rewrite_paths(request, _REQUEST_PATHS[wire], rewriter.rewrite_thinking)
    return rewritten, rewriter.notes.findings


class _SignatureRewriter:
    """One request, as its thinking is looked at."""

    def __init__(self, wire: str, key: bytes, is_own: OwnershipCheck, signed_only: bool) -> None:
        self.notes = FindingCollector()
        self._wire = wire
        self._key = key
        self._is_own = is_own
        self._signed_only = signed_only

    def rewrite_message(self, message: Json, location: str) -> list[Json]:
        """A message of chat completions. Most show their thinking in another field, too: once is enough."""
        details = message.get(REASONING_DETAILS)
        if not isinstance(details, list):
            return [message]
        [rewritten] = _rewrite_path(details, (EACH_ITEM,), f"{location}.{REASONING_DETAILS}", self.rewrite_thinking)
        if rewritten is details:
            return [message]
        if message.get("reasoning_content") or message.get("reasoning"):
            original_ids = {id(detail) for detail in details}
            rewritten = [detail for detail in rewritten if id(detail) in original_ids or _signature_of(detail)[1]]
        without_details = {key: value for key, value in message.items() if key != REASONING_DETAILS}
        return [{**message, REASONING_DETAILS: rewritten} if rewritten else without_details]

    def rewrite_thinking(self, node: Json, location: str) -> list[Json]:
        field, value = _signature_of(node)
        if not field or not (value or self._signed_only):
            return [node]
        original = self._original_reasoning(value, f"{location}.{field}")
        if original.seal is None or not self._is_own(original.seal):
            return self._without_signature(Reasoning(_visible_text(node) or original.text, original.seal), location)
        if VALUE_KEY not in original.seal.data:
            return thinking_nodes(original, self._wire)
        native = original.seal.data[VALUE_KEY]
        return [node if native == value else {**node, field: native}]

    def _original_reasoning(self, value: str, location: str) -> Reasoning:
        """What an upstream had sent; without a seal, if nobody can tell."""
        if not is_envelope(value):
            return Reasoning("", Seal(self._wire, {VALUE_KEY: value}) if value else None)
        original = read_envelope(value, self._key)
        if original is None:
            _report_unreadable(self.notes, location)
        return original or Reasoning("")

    def _without_signature(self, thinking: Reasoning, location: str) -> list[Json]:
        nodes = [] if self._signed_only else thinking_nodes(Reasoning(thinking.text), self._wire)
        if not nodes and self._wire != CHAT:
            self.notes.report("thinking-dropped", "past thinking that it does not take: dropped", location)
        else:
            report_foreign_signature(thinking, self.notes, location)
        return nodes


def _visible_text(node: Json) -> str:
    """The thinking that is shown."""
    visible = next((text for field in ("thinking", "text", "content", "summary") if (text := node.get(field))), "")
    if isinstance(visible, list):
        return "\n\n".join(str(part.get("text") or "") for part in visible if isinstance(part, dict))
    return str(visible)


def thinking_nodes(thinking: Reasoning, wire: str) -> list[Json]:
    """Past thinking as an upstream of this wire had sent it; of what has no seal, the text."""
    text = thinking.text
    if thinking.seal is None:
        return [_text_node(text, wire)] if text else []
    data = thinking.seal.data
    if wire == CHAT:
        return list(data.get(REASONING_DETAILS, ()))
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


def report_foreign_signature(thinking: Reasoning, notes: FindingCollector, location: str) -> None:
    """Thinking whose seal is another upstream's: of that, only the text can be sent back."""
    if thinking.seal is not None and thinking.seal.data:
        notes.report("seal-dropped", "what vouches for thinking of another upstream: dropped", location)


# ── where they stand ──────────────────────────────────────────────────────────────────────────────────────────────


def _rewrite_paths(body: Json, paths: Sequence[str], rewrite: NodeRewrite) -> Json:
    for path in paths:
        [body] = _rewrite_path(body, path.split(), "", rewrite)
    return body


def _rewrite_path(node: Any, path: Sequence[str], location: str, rewrite: NodeRewrite) -> list[Any]:
    """What stands for the node, with what is at this path changed; the same one if nothing is."""
    if not path:
        return rewrite(node, location) if isinstance(node, dict) else [node]
    step, *remaining = path
    if step == EACH_ITEM:
        if not isinstance(node, list):
            return [node]
        nodes = [
            new for n, item in enumerate(node) for new in _rewrite_path(item, remaining, f"{location}[{n}]", rewrite)
        ]
        return [node if len(nodes) == len(node) and not any(map(is_not, nodes, node)) else nodes]
    if not isinstance(node, dict) or step not in node:
        return [node]
    [inner] = _rewrite_path(node[step], remaining, f"{location}.{step}" if location else step, rewrite)
    return [node if inner is node[step] else {**node, step: inner}]
