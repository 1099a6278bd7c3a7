"""Outcome of each setting of a request on the other APIs, for the reference and for its test."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from interlingua.errors import BadRequest
from interlingua.translation.request_translation import prepare_request
from interlingua.wires import WIRES

__all__ = ["ALWAYS", "FIELDS", "NOT_SETTINGS", "Outcome", "translate_field"]

Json = dict[str, Any]
_DATA = tomllib.loads((Path(__file__).parents[1] / "tests" / "data" / "request_fields.toml").read_text("utf-8"))
FIELDS: dict[str, Json] = {wire: _DATA[wire] for wire in WIRES}
"""A value of each setting, by wire."""
NOT_SETTINGS: dict[str, list[str]] = _DATA["not-settings"]
ALWAYS: dict[str, list[str]] = _DATA["always"]
"""Fields that change nothing, because every reply is as they ask for."""
PROFILES = {"openai-chat": "openai", "openai-responses": "openai", "anthropic-messages": "anthropic"}
"""Upstreams that define the APIs, so that no other upstream's limits count."""
MODELS = {"openai-chat": "gpt-4.1", "openai-responses": "gpt-4.1", "anthropic-messages": "claude-sonnet-4-5"}
_SCHEMA = {"type": "object", "properties": {}}
_PROMPT = {"role": "user", "content": "hi"}
BASE: dict[str, Json] = {
    "openai-chat": {
        "messages": [_PROMPT],
        "tools": [{"type": "function", "function": {"name": "ping", "parameters": _SCHEMA}}],
        "stream": True,
    },
    "openai-responses": {
        "input": [_PROMPT],
        "tools": [{"type": "function", "name": "ping", "parameters": _SCHEMA}],
        "stream": True,
    },
    "anthropic-messages": {
        "messages": [_PROMPT],
        "max_tokens": 8000,
        "tools": [{"name": "ping", "input_schema": _SCHEMA}],
        "stream": True,
    },
}


class Outcome(NamedTuple):
    """Result of a setting on another wire."""

    written: dict[str, Any]
    """Fields of the upstream's request that the setting adds or changes, by path."""
    kinds: list[str]
    """Kinds of the findings that report the change."""
    is_refused: bool = False

    @property
    def is_silent(self) -> bool:
        """True if the setting has no effect, and no finding says so."""
        return not (self.written or self.kinds or self.is_refused)


def translate_field(wire: str, field: str, target: str) -> Outcome:
    """Translate a request with this field, and compare it with one that lacks the field."""
    without, _ = _translate(wire, BASE[wire], target)
    body = {**BASE[wire], **_nested(field, FIELDS[wire][field])}
    try:
        written, kinds = _translate(wire, body, target)
    except BadRequest:
        return Outcome({}, [], is_refused=True)
    before, after = _flatten(without), _flatten(written)
    changed = {path: value for path, value in after.items() if path not in before or before[path] != value}
    removed = {path: None for path in before if path not in after and not any(key.startswith(path) for key in changed)}
    _, usual_kinds = _translate(wire, BASE[wire], target)
    return Outcome({**changed, **removed}, sorted({*kinds} - {*usual_kinds}))


def _nested(field: str, value: Any) -> Json:
    outer, _, inner = field.partition(".")
    return {outer: {inner: value}} if inner else {outer: value}


def _translate(wire: str, body: Json, target: str) -> tuple[Json, list[str]]:
    prepared = prepare_request({"model": MODELS[target], **body}, wire, target, upstream=PROFILES[target])
    return prepared.body, [finding.kind for finding in prepared.findings]


def _flatten(body: Json) -> Json:
    """Return the values of a body by path, two levels deep."""
    flat: Json = {}
    for key, value in body.items():
        if isinstance(value, dict) and key not in ("metadata", "logit_bias"):
            flat |= {f"{key}.{inner}": inner_value for inner, inner_value in value.items()}
        else:
            flat[key] = value
    return flat
