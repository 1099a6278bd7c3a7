"""Fields of a response object that repeat the request: what the client sent, else the default of the API.

A response object is written at the beginning and at the end of a stream. Instructions and tools, which are large and
the same in most requests of an agent, are kept encoded, once for all current replies.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from interlingua.common.coerce import as_dict
from interlingua.common.jsontext.codec import encode_json
from interlingua.wires.base import Json
from interlingua.wires.requests.shared_tools import SharedToolList

__all__ = ["decode_echo", "default_fields", "echo_request"]

_NUMBER = (int, float)
_FIELDS: dict[str, tuple[type | tuple[type, ...], Any]] = {
    "background": (bool, False),
    "frequency_penalty": (_NUMBER, 0.0),
    "instructions": (str, None),
    "max_output_tokens": (int, None),
    "max_tool_calls": (int, None),
    "metadata": (dict, {}),
    "parallel_tool_calls": (bool, True),
    "presence_penalty": (_NUMBER, 0.0),
    "previous_response_id": (str, None),
    "prompt_cache_key": (str, None),
    "prompt_cache_retention": (str, None),
    "reasoning": (dict, {"effort": None, "summary": None}),
    "safety_identifier": (str, None),
    "service_tier": (str, "default"),
    "store": (bool, False),
    "temperature": (_NUMBER, 1.0),
    "text": (dict, {"format": {"type": "text"}}),
    "tool_choice": ((str, dict), "auto"),
    "tools": (list, []),
    "top_logprobs": (int, 0),
    "top_p": (_NUMBER, 1.0),
    "truncation": (str, "disabled"),
    "user": (str, None),
}
"""The type and the default of each field. `store` is false, because only a gateway stores responses."""
_SENT_ELSEWHERE = ("store",)
"""Fields that only the part of the program can fill in that acts on them."""
_DEFAULTS: Json = {name: default for name, (_, default) in _FIELDS.items()}
_ENCODED_DEFAULTS = msgspec.json.encode(_DEFAULTS)
MIN_SHARED_CHARS = 1024
"""Instructions of this length are shared by all current replies."""


class _SharedJson(msgspec.Struct, frozen=True, eq=False, weakref=True):
    """JSON that several replies repeat."""

    raw: msgspec.Raw


_shared_json: WeakValueDictionary[str, _SharedJson] = WeakValueDictionary()


def echo_request(body: Json) -> Json:
    """Return the fields of a request that differ from the defaults, for `Options.echo`. Invalid values are left out."""
    echo: Json = {}
    for name, (expected, default) in _FIELDS.items():
        value = body.get(name)
        if name not in _SENT_ELSEWHERE and isinstance(value, expected) and value != default:
            echo[name] = _ECHOES[name](value) if name in _ECHOES else value
    return echo


def default_fields() -> Json:
    """Return the defaults of all fields. The caller owns the objects in them."""
    fields: Json = msgspec.json.decode(_ENCODED_DEFAULTS)
    return fields


def decode_echo(echo: Mapping[str, Any]) -> Json:
    """Return the fields with their values, some of which are encoded JSON."""
    return {name: value.raw if isinstance(value, _SharedJson) else value for name, value in echo.items()}


def _echo_instructions(instructions: str) -> str | _SharedJson:
    if len(instructions) < MIN_SHARED_CHARS:
        return instructions
    shared = _shared_json.get(instructions)
    if shared is None:
        shared = _shared_json[instructions] = _SharedJson(msgspec.Raw(encode_json(instructions)))
    return shared


def _echo_tools(tools: list[Any]) -> msgspec.Raw:
    def encode() -> msgspec.Raw:
        return msgspec.Raw(encode_json([_complete_tool(tool) for tool in tools]))

    return tools.derive(_echo_tools, encode) if isinstance(tools, SharedToolList) else encode()


def _complete_tool(tool: Any) -> Any:
    """Return a function with all of its fields. Tools of other types stay as they are."""
    if as_dict(tool).get("type") != "function":
        return tool
    return {"type": "function", "name": None, "description": None, "parameters": None, "strict": None, **tool}


def _echo_reasoning(reasoning: Json) -> Json:
    return {**_DEFAULTS["reasoning"], **reasoning}


def _echo_text(text: Json) -> Json:
    given = {key: value for key, value in text.items() if value is not None}
    return {**_DEFAULTS["text"], **given}


def _echo_service_tier(tier: str) -> str:
    """Return the tier that was used: `auto` is a request, and no tier."""
    return _DEFAULTS["service_tier"] if tier == "auto" else tier


_ECHOES: dict[str, Any] = {
    "instructions": _echo_instructions,
    "reasoning": _echo_reasoning,
    "service_tier": _echo_service_tier,
    "text": _echo_text,
    "tools": _echo_tools,
}
