"""Signatures and encrypted reasoning in the JSON of each wire: find, wrap and restore them.

Only the upstream that wrote such a value can read it. Values that go to a client are wrapped in an envelope with the
name of their upstream (see `core/reasoning_signatures.py`). Each wire declares where its values are: `ReasoningFields`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from operator import is_not
from typing import Any, TypeAlias

import msgspec

from interlingua.core.findings import FindingCollector
from interlingua.core.options import Options
from interlingua.core.reasoning_signatures import (
    ENVELOPE_PREFIXES,
    VALUE_KEY,
    OwnershipCheck,
    is_envelope,
    read_envelope,
    unpacked_size,
    write_value_envelope,
)
from interlingua.core.reply import Reasoning
from interlingua.errors import BadRequest
from interlingua.events import Finding, Seal

__all__ = [
    "EACH_ITEM",
    "ObjectRewrite",
    "ReasoningFields",
    "check_unpacked_size",
    "report_foreign_signature",
    "restore_reasoning",
    "rewrite_path",
    "sign_reasoning",
    "unreadable_signatures",
]

Json: TypeAlias = dict[str, Any]
MAX_SEARCHED_BYTES = 4096
EACH_ITEM = "*"
"""Step of a path that means every item of a list."""

ObjectRewrite: TypeAlias = Callable[[Json, str], list[Json]]
"""Function that returns the replacement for an object. Its second argument is the path of the object."""


class ReasoningFields(msgspec.Struct, frozen=True, kw_only=True):
    """Reasoning in the JSON of one wire: the objects that hold it, their paths, and their fields.

    A path is a text of field names, with `*` for every item of a list: `choices * message`.
    """

    wire: str
    reply_paths: tuple[str, ...]
    """Paths to the objects that may hold a signature, in chunks and in complete replies."""
    request_paths: tuple[str, ...]
    """Paths to these objects in requests."""
    signature_fields: Mapping[str, str]
    """The field that holds the signature, by the type of the object; "" for objects without a type."""
    text_fields: tuple[str, ...]
    """Fields that may hold the readable text, as a string or as a list of parts. The first that is not empty counts."""
    write_objects: Callable[[Reasoning], list[Json]]
    """Function that returns past reasoning as an upstream had sent it; only its text if it has no seal."""
    message_path: str = ""
    """Path to the messages in requests, for a wire with `restore_message`."""
    restore_message: Callable[[Json, str, ObjectRewrite], list[Json]] | None = None
    """Function that restores the objects in a message, for a wire whose messages contain the text in another field too.
    It takes the message, its path, and the function that restores an object. The upstream accepts the text without the
    objects, so they may be missing."""

    def may_occur_in(self, encoded: bytes) -> bool:
        """Return whether JSON may have a signature or an envelope. Most requests and chunks have none.

        Long JSON is not searched: visiting the objects that may have one takes less time.
        """
        return len(encoded) > MAX_SEARCHED_BYTES or any(
            map(encoded.__contains__, _signature_marks(tuple(self.signature_fields.values())))
        )

    def signature_of(self, node: Json) -> tuple[str, str]:
        """Return the name of the object's signature field and its value; "" for each that the object does not have."""
        field = self.signature_fields.get(str(node.get("type", "")), "")
        return field, value if isinstance(value := node.get(field), str) else ""

    def text_of(self, node: Json) -> str:
        """Return the readable text of a reasoning object."""
        visible = next((text for field in self.text_fields if (text := node.get(field))), "")
        if isinstance(visible, list):
            return "\n\n".join(str(part.get("text") or "") for part in visible if isinstance(part, dict))
        return str(visible)


def sign_reasoning(body: Json, fields: ReasoningFields, options: Options) -> Json:
    """Wrap the signatures in a chunk or complete reply in envelopes with the name of the upstream.

    For clients of the upstream's own wire. All other fields stay. Returns the same object if it has no signature.
    """

    def sign(node: Json, _: str) -> list[Json]:
        field, value = fields.signature_of(node)
        if not value:
            return [node]
        return [{**node, field: write_value_envelope(value, fields.wire, options.upstream, options.seal_key)}]

    return _rewrite_paths(body, fields.reply_paths, sign)


# ── requests ──────────────────────────────────────────────────────────────────────────────────────────────────────


def check_unpacked_size(request: Json, fields: ReasoningFields, key: bytes, limit: int, size: int = 0) -> int:
    """Raise BadRequest if the envelopes in a client's request unpack to more than `limit` bytes.

    A client can send the same small envelope, which unpacks to much more, a thousand times.

    Returns: the number of bytes. `size`: that of the other parts of the request.
    """

    for node, location in _find_objects(request, fields.request_paths):
        for value in node.values():  # of objects of any type: readers accept a seal in some unknown types
            if isinstance(value, str) and is_envelope(value):
                size += unpacked_size(value, key, limit - size)
        if size > limit:
            message = f"the sealed thinking of the request unpacks to more than {limit:,} bytes"
            raise TooMuchReasoning(location, message, "send less of it back, or increase limits.seals")
    return size


class TooMuchReasoning(BadRequest):
    status = 413


def unreadable_signatures(request: Json, fields: ReasoningFields, key: bytes, first: int = 0) -> list[Finding]:
    """Return a finding for each envelope in a client's request that this key cannot open.

    `first`: the number of the first item of the conversation, if the request has only a part of it.
    """
    notes = FindingCollector()
    for node, location in _find_objects(request, fields.request_paths, first):
        field, value = fields.signature_of(node)
        if is_envelope(value) and read_envelope(value, key) is None:
            _report_unreadable(notes, f"{location}.{field}")
    return notes.findings


def _report_unreadable(notes: FindingCollector, location: str) -> None:
    notes.report(
        "seal-unreadable",
        "the signature of past thinking cannot be read: it belongs to another client, key or version, or was changed",
        location,
    )


def restore_reasoning(
    request: Json, fields: ReasoningFields, key: bytes, is_own: OwnershipCheck, signed_only: bool, first: int = 0
) -> tuple[Json, list[Finding]]:
    """Restore the past reasoning in a client's request, for an upstream of the same wire.

    The upstream's own signatures become what the upstream sent. Of reasoning from other upstreams only the text stays.
    All other fields stay.

    Args:
        request: the body of the client's request.
        fields: the reasoning fields of the wire of client and upstream.
        key: the key of the envelopes.
        is_own: returns whether a signature is from this upstream.
        signed_only: the upstream accepts signed reasoning only, so that all other reasoning is dropped.
        first: the number of the first item of the conversation, if the request has only a part of it.

    Returns: the body (the same object if nothing changes), and the findings.
    """
    restore_message = fields.restore_message
    rewriter = _SignatureRewriter(fields, key, is_own, signed_only and restore_message is None)
    if restore_message is None:
        rewritten = _rewrite_paths(request, fields.request_paths, rewriter.rewrite, first)
    else:

        def restore(message: Json, location: str) -> list[Json]:
            return restore_message(message, location, rewriter.rewrite)

        rewritten = _rewrite_paths(request, (fields.message_path,), restore, first)
    return rewritten, rewriter.notes.findings


class _SignatureRewriter:
    """Rewriter for the past reasoning in one request."""

    def __init__(self, fields: ReasoningFields, key: bytes, is_own: OwnershipCheck, signed_only: bool) -> None:
        self.notes = FindingCollector()
        self._fields = fields
        self._key = key
        self._is_own = is_own
        self._signed_only = signed_only

    def rewrite(self, node: Json, location: str) -> list[Json]:
        field, value = self._fields.signature_of(node)
        if not field or not (value or self._signed_only):
            return [node]
        original = self._original_reasoning(value, f"{location}.{field}")
        if original.seal is None or not self._is_own(original.seal):
            text = self._fields.text_of(node) or original.text
            return self._without_signature(Reasoning(text, original.seal), location)
        if VALUE_KEY not in original.seal.data:
            return self._fields.write_objects(original)
        native = original.seal.data[VALUE_KEY]
        return [node if native == value else {**node, field: native}]

    def _original_reasoning(self, value: str, location: str) -> Reasoning:
        """Return the reasoning as the upstream sent it; without a seal if the envelope cannot be read."""
        if not is_envelope(value):
            return Reasoning("", Seal(self._fields.wire, {VALUE_KEY: value}) if value else None)
        original = read_envelope(value, self._key)
        if original is None:
            _report_unreadable(self.notes, location)
        return original or Reasoning("")

    def _without_signature(self, thinking: Reasoning, location: str) -> list[Json]:
        nodes = [] if self._signed_only else self._fields.write_objects(Reasoning(thinking.text))
        if not nodes and self._fields.restore_message is None:
            self.notes.report("thinking-dropped", "past thinking that the upstream does not accept: dropped", location)
        else:
            report_foreign_signature(thinking, self.notes, location)
        return nodes


def report_foreign_signature(thinking: Reasoning, notes: FindingCollector, location: str) -> None:
    """Report reasoning with the seal of another upstream: only its text can be sent back."""
    if thinking.seal is not None and thinking.seal.data:
        notes.report("seal-dropped", "the signature of thinking from another upstream: dropped", location)


# ── paths ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _find_objects(body: Json, paths: Sequence[str], first: int = 0) -> Iterator[tuple[Json, str]]:
    """Yield the objects at these paths, with their locations. `first`: the number of the first item in the outermost
    list."""
    for path in paths:
        if not _has_node(body, path):
            continue
        nodes: list[tuple[Any, str]] = [(body, "")]
        number = first
        for step in _steps(path):
            if step == EACH_ITEM:
                lists = [(node, location) for node, location in nodes if isinstance(node, list)]
                nodes = [(item, f"{where}[{n}]") for node, where in lists for n, item in enumerate(node, number)]
                number = 0
            else:
                objects = [(node, location) for node, location in nodes if isinstance(node, dict) and step in node]
                nodes = [(node[step], f"{location}.{step}" if location else step) for node, location in objects]
        yield from ((node, location) for node, location in nodes if isinstance(node, dict))


def _rewrite_paths(body: Json, paths: Sequence[str], rewrite: ObjectRewrite, first: int = 0) -> Json:
    for path in paths:
        if _has_node(body, path):
            [body] = rewrite_path(body, _steps(path), "", rewrite, first)
    return body


@cache
def _signature_marks(fields: tuple[str, ...]) -> tuple[bytes, ...]:
    """Return the bytes of which JSON with a signature has at least one. Characters of a name can be escaped."""
    return tuple(f'"{field}"'.encode() for field in fields) + tuple(map(str.encode, ENVELOPE_PREFIXES)) + (b"\\u",)


@cache
def _steps(path: str) -> tuple[str, ...]:
    return tuple(path.split())


def _has_node(body: Json, path: str) -> bool:
    """Return whether there is anything at this path. Most requests and chunks have no reasoning that is signed."""
    nodes: list[Any] = [body]
    for step in _steps(path):
        if step == EACH_ITEM:
            nodes = [item for node in nodes if isinstance(node, list) for item in node]
        else:
            nodes = [node[step] for node in nodes if isinstance(node, dict) and step in node]
        if not nodes:
            return False
    return True


def rewrite_path(node: Any, path: Sequence[str], location: str, rewrite: ObjectRewrite, first: int = 0) -> list[Any]:
    """Return the replacements for a node after `rewrite` of all objects at this path; the same node if none changed.

    `first`: the number of the first item in the outermost list.
    """
    if not path:
        return rewrite(node, location) if isinstance(node, dict) else [node]
    step, *remaining = path
    if step == EACH_ITEM:
        if not isinstance(node, list):
            return [node]
        nodes = [
            new
            for n, item in enumerate(node, first)
            for new in rewrite_path(item, remaining, f"{location}[{n}]", rewrite)
        ]
        return [node if len(nodes) == len(node) and not any(map(is_not, nodes, node)) else nodes]
    if not isinstance(node, dict) or step not in node:
        return [node]
    [inner] = rewrite_path(node[step], remaining, f"{location}.{step}" if location else step, rewrite, first)
    return [node if inner is node[step] else {**node, step: inner}]
