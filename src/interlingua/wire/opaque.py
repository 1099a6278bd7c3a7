"""Where each wire has what only the upstream that wrote it can read: signatures, and encrypted thinking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_not
from typing import Any

from interlingua.options import Options
from interlingua.profile import CHAT, MESSAGES, RESPONSES
from interlingua.seals import open_value, seal_value
from interlingua.wire.wire import Json

__all__ = ["opened", "sealed"]

EACH = "*"
_PATHS = {  # to the objects that may hold one: in chunks, in whole replies, in requests
    MESSAGES: ("content_block", "delta", "content *", "messages * content *"),
    RESPONSES: ("item", "response output *", "output *", "input *"),
    CHAT: (
        "choices * delta reasoning_details *",
        "choices * message reasoning_details *",
        "messages * reasoning_details *",
    ),
}
_STEPS = {wire: [path.split() for path in paths] for wire, paths in _PATHS.items()}
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


def sealed(said: Json, wire: str, options: Options) -> Json:
    """A chunk or a whole reply for a client of the upstream's wire: what the upstream alone can read goes with its
    name. All else stays, and if there is no such thing, it is the same object."""
    return _changed(said, wire, lambda value: seal_value(value, wire, options.upstream, options.seal_key))


def opened(asked: Json, wire: str, options: Options) -> Json:
    """A client's request with what the upstream that is asked had sent, as it had sent it."""

    def native(value: str) -> str:
        sent = open_value(value, options.seal_key)
        return value if sent is None or options.upstream not in ("", sent.upstream) else sent.value

    return _changed(asked, wire, native)


def _changed(body: Json, wire: str, change: Callable[[str], str]) -> Json:
    for path in _STEPS[wire]:
        body = _at(body, path, change)
    return body


def _at(node: Any, path: Sequence[str], change: Callable[[str], str]) -> Any:
    """The node with what stands at this path changed; the same one if nothing is."""
    if not path:
        return _with_field(node, change)
    if path[0] == EACH:
        if not isinstance(node, list):
            return node
        nodes = [_at(one, path[1:], change) for one in node]
        return nodes if any(map(is_not, nodes, node)) else node
    if not isinstance(node, dict) or path[0] not in node:
        return node
    inner = _at(node[path[0]], path[1:], change)
    return node if inner is node[path[0]] else {**node, path[0]: inner}


def _with_field(node: Any, change: Callable[[str], str]) -> Any:
    field = _FIELDS.get(str(node.get("type"))) if isinstance(node, dict) else None
    value = node.get(field) if field else None
    if not isinstance(value, str) or not value:
        return node
    changed = change(value)
    return node if changed == value else {**node, field: changed}
