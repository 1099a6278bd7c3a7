"""Signatures and encrypted reasoning in the JSON of each wire: find, wrap and restore them.

Only the upstream that wrote such a value can read it. Values that go to a client are wrapped in an envelope with the
name of their upstream (see `core/reasoning_signatures.py`).
"""

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

__all__ = [
    "REASONING_DETAILS",
    "report_foreign_signature",
    "restore_reasoning",
    "sign_reasoning",
    "thinking_nodes",
    "unreadable_signatures",
]

EACH_ITEM = "*"
REASONING_DETAILS = "reasoning_details"
_REPLY_PATHS = {  # paths to the objects that may hold a signature: in chunks, and in complete replies
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
"""The field that holds the signature, by the type of the object."""

NodeRewrite: TypeAlias = Callable[[Json, str], list[Json]]
"""Function that returns the replacement for an object. Its second argument is the path of the object."""


def sign_reasoning(body: Json, wire: str, options: Options) -> Json:
    """Wrap the signatures in a chunk or complete reply in envelopes with the name of the upstream.

    For clients of the upstream's own wire. All other fields stay. Returns the same object if it has no signature.
    """

    def sign(node: Json, _: str) -> list[Json]:
        field, value = _signature_of(node)
        return [
            {**node, field: write_value_envelope(value, wire, options.upstream, options.seal_key)} if value else node
        ]

    return _rewrite_paths(body, _REPLY_PATHS[wire], sign)


def _signature_of(node: Json) -> tuple[str, str]:
    """Return the name of the object's signature field and its value; "" for each that the object does not have."""
    field = _SIGNATURE_FIELDS.get(str(node.get("type")), "")
    return field, value if isinstance(value := node.get(field), str) else ""


# ── requests ──────────────────────────────────────────────────────────────────────────────────────────────────────


def unreadable_signatures(request: Json, wire: str, key: bytes) -> list[Finding]:
    """Return a finding for each envelope in a client's request that this key cannot open."""
    notes = FindingCollector()

    def check(node: Json, location: str) -> list[Json]:
        field, value = _signature_of(node)
        if is_envelope(value) and read_envelope(value, key) is None:
            _report_unreadable(notes, f"{location}.{field}")
        return [node]

    _rewrite_paths(request, _REQUEST_PATHS[wire], check)
    return notes.findings


def _report_unreadable(notes: FindingCollector, location: str) -> None:
    notes.report(
        "seal-unreadable",
        "the signature of past thinking cannot be read: it was sealed with another key, or changed",
        location,
    )


def restore_reasoning(
    request: Json, wire: str, key: bytes, is_own: OwnershipCheck, signed_only: bool
) -> tuple[Json, list[Finding]]:
    """Restore the past reasoning in a client's request, for an upstream of the same wire.

    The upstream's own signatures become what the upstream sent. Of reasoning from other upstreams only the text stays.
    All other fields stay.

    Args:
        request: the body of the client's request.
        wire: the wire of client and upstream.
        key: the key that the envelopes are signed with.
        is_own: returns whether a signature is from this upstream.
        signed_only: the upstream accepts signed reasoning only, so that all other reasoning is dropped.

    Returns: the body (the same object if nothing changes), and the findings.
    """
    rewriter = _SignatureRewriter(wire, key, is_own, signed_only and wire != CHAT)
    if wire == CHAT:
        rewritten = _rewrite_paths(request, ("messages *",), rewriter.rewrite_message)
    else:
        rewritten = _rewrite_paths(request, _REQUEST_PATHS[wire], rewriter.rewrite_thinking)
    return rewritten, rewriter.notes.findings


class _SignatureRewriter:
    """Rewriter for the past reasoning in one request."""

    def __init__(self, wire: str, key: bytes, is_own: OwnershipCheck, signed_only: bool) -> None:
        self.notes = FindingCollector()
        self._wire = wire
        self._key = key
        self._is_own = is_own
        self._signed_only = signed_only

    def rewrite_message(self, message: Json, location: str) -> list[Json]:
        """Restore the `reasoning_details` of a chat completion message.

        Most messages repeat the text in `reasoning_content` or `reasoning`. Then details that only have text are
        dropped, so that the upstream receives the text once.
        """
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
        """Return the reasoning as the upstream sent it; without a seal if the envelope cannot be read."""
        if not is_envelope(value):
            return Reasoning("", Seal(self._wire, {VALUE_KEY: value}) if value else None)
        original = read_envelope(value, self._key)
        if original is None:
            _report_unreadable(self.notes, location)
        return original or Reasoning("")

    def _without_signature(self, thinking: Reasoning, location: str) -> list[Json]:
        nodes = [] if self._signed_only else thinking_nodes(Reasoning(thinking.text), self._wire)
        if not nodes and self._wire != CHAT:
            self.notes.report("thinking-dropped", "past thinking that the upstream does not accept: dropped", location)
        else:
            report_foreign_signature(thinking, self.notes, location)
        return nodes


def _visible_text(node: Json) -> str:
    """Return the readable text of a reasoning object."""
    visible = next((text for field in ("thinking", "text", "content", "summary") if (text := node.get(field))), "")
    if isinstance(visible, list):
        return "\n\n".join(str(part.get("text") or "") for part in visible if isinstance(part, dict))
    return str(visible)


def thinking_nodes(thinking: Reasoning, wire: str) -> list[Json]:
    """Return past reasoning as an upstream of this wire had sent it; only its text if it has no seal."""
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
    """Report reasoning with the seal of another upstream: only its text can be sent back."""
    if thinking.seal is not None and thinking.seal.data:
        notes.report("seal-dropped", "the signature of thinking from another upstream: dropped", location)


# ── paths ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _rewrite_paths(body: Json, paths: Sequence[str], rewrite: NodeRewrite) -> Json:
    for path in paths:
        [body] = _rewrite_path(body, path.split(), "", rewrite)
    return body


def _rewrite_path(node: Any, path: Sequence[str], location: str, rewrite: NodeRewrite) -> list[Any]:
    """Return the replacements for a node after `rewrite` of all objects at this path; the same node if none changed."""
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
