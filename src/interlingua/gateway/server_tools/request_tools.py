"""The tools of a request that the gateway has to run, and the rounds of its reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.common.coerce import as_dict, as_list
from interlingua.gateway.server_tools import messages_rounds, responses_rounds
from interlingua.gateway.server_tools.server_tool import Json, Rounds, ServerTool
from interlingua.gateway.server_tools.web_access import WebAccess
from interlingua.upstreams.profile import UNKNOWN, Profile

__all__ = [
    "find_server_tools",
    "given_texts",
    "has_server_tools",
    "may_be_server_tools",
    "reports_missing_search",
    "runs_server_tools",
    "start_rounds",
]

MESSAGES, RESPONSES = "anthropic-messages", "openai-responses"
_FINDERS = {MESSAGES: messages_rounds.find_server_tools, RESPONSES: responses_rounds.find_server_tools}
_TYPE_STARTS = (b'"tool_search', b'"web_search', b'"web_fetch')
"""Start of the types of such tools, as JSON. Nearly all requests have none of them, which is found out at once."""


def has_server_tools(wire: str) -> bool:
    """Return whether the API has tools that the gateway can run."""
    return wire in _FINDERS


def may_be_server_tools(encoded_tools: bytes) -> bool:
    """Return whether it is worth decoding these tools to look for tools that the gateway runs."""
    return any(start in encoded_tools for start in _TYPE_STARTS)


def find_server_tools(wire: str, tools: Any, web: WebAccess | None) -> dict[str, ServerTool]:
    """Return the tools that the gateway has to run, by name. Without `web`: no web search and fetch."""
    return _FINDERS[wire]([as_dict(tool) for tool in as_list(tools)], web) if wire in _FINDERS else {}


def given_texts(body: Mapping[str, Any]) -> list[Any]:
    """Return what the user and tools have written in a conversation."""
    return messages_rounds.user_texts(as_list(body.get("messages")))


def reports_missing_search(wire: str) -> bool:
    """Return whether the API has an error for a search that is not available. In others such a tool is not offered."""
    return wire == MESSAGES


def runs_server_tools(wire: str, profile: Profile) -> bool:
    """Return whether an upstream of the client's own API runs such tools itself, or may do so."""
    return wire == RESPONSES or profile.name == UNKNOWN or profile.tool_search


def start_rounds(
    wire: str, body: Json, tools: Mapping[str, ServerTool], seal_key: bytes, max_seal_bytes: int
) -> Rounds:
    """Return the rounds of a reply to this request. Raises TooLarge."""
    if wire == MESSAGES:
        return messages_rounds.MessagesRounds(body, tools, seal_key)
    return responses_rounds.ResponsesRounds(body, tools, seal_key, max_seal_bytes)
