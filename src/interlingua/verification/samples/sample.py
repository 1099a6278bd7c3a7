"""Sample: one request of a set, and what a right reply to it contains."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal, TypeAlias

import msgspec

__all__ = ["Check", "Expectation", "ExpectedCall", "Sample", "request_digest"]

Check: TypeAlias = Literal["tool_calls", "contains_russian_characters_unicode", "repeat_n_gram", "scenario_check"]
"""Additional checks of MiniMax-Provider-Verifier (`check_type` of a request)."""
_RUN_FIELDS = ("model", "stream", "stream_options", "temperature", "seed", "max_tokens", "max_completion_tokens")
"""Fields of a request that belong to the run and not to the sample."""
_MESSAGE_FIELDS = ("role", "name", "content", "tool_calls")
"""Fields of a message that make two requests the same. Verifiers rewrite ids and the names of thinking fields."""
_CALL_FIELDS = ("type", "function")


class ExpectedCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """A call that a right reply contains. Without arguments, any that fit the tool's schema are right."""

    name: str
    arguments: dict[str, Any] | None = None


class Expectation(msgspec.Struct, frozen=True, omit_defaults=True):
    """Content of a right reply: these calls and no others, in any order; text without a call; or any of both."""

    reply: Literal["calls", "text", "any"] = "any"
    calls: tuple[ExpectedCall, ...] = ()


class Sample(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One request in the format of Chat Completions, without model and `stream`."""

    id: str
    category: str = "samples"
    request: dict[str, Any]
    expect: Expectation = Expectation()
    checks: tuple[Check, ...] = ()
    prompt_tokens: int = 0
    """Number of prompt tokens that Kimi-Vendor-Verifier expects; 0: unknown."""
    stream: bool | None = None
    """True if the file asks for a stream; None: both are tried."""

    @property
    def tools(self) -> list[dict[str, Any]]:
        tools = self.request.get("tools")
        return [tool for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []


def request_digest(request: dict[str, Any]) -> str:
    """Return a digest of a request, by which samples of two runs are paired.

    It ignores the fields of a run, and what other verifiers rewrite before they send a request: ids of calls, and
    thinking in the history.
    """
    fields = {name: value for name, value in request.items() if name not in _RUN_FIELDS}
    if isinstance(fields.get("messages"), list):
        fields["messages"] = [_message_content(message) for message in fields["messages"]]
    text = json.dumps(fields, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _message_content(message: Any) -> Any:
    """Return the fields of a message that make two requests the same."""
    if not isinstance(message, dict):
        return message
    fields = {name: message[name] for name in _MESSAGE_FIELDS if message.get(name) is not None}
    calls = fields.get("tool_calls")
    if isinstance(calls, list):
        fields["tool_calls"] = [
            {name: call[name] for name in _CALL_FIELDS if name in call} if isinstance(call, dict) else call
            for call in calls
        ]
    return fields
