"""The tools of a request that the gateway has to run, and the rounds of its reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.common.coerce import as_dict, as_list
from interlingua.gateway.server_tools import messages_rounds, responses_rounds
from interlingua.gateway.server_tools.server_tool import Json, Rounds, ServerTool
from interlingua.upstreams.profile import UNKNOWN, Profile

__all__ = ["find_server_tools", "may_have_server_tools", "runs_server_tools", "start_rounds"]

MESSAGES, RESPONSES = "anthropic-messages", "openai-responses"
_FINDERS = {MESSAGES: messages_rounds.find_tool_search, RESPONSES: responses_rounds.find_tool_search}
_TYPE_STARTS = (b'"tool_search',)
"""Start of the types of such tools, as JSON. Nearly all requests have none of them, which is found out at once."""


def may_have_server_tools(wire: str, encoded_tools: bytes) -> bool:
    """Return whether it is worth decoding these tools to look for tools that the gateway runs."""
    return wire in _FINDERS and any(start in encoded_tools for start in _TYPE_STARTS)


def find_server_tools(wire: str, tools: Any) -> dict[str, ServerTool]:
    """Return the tools that the gateway has to run, by name."""
    return _FINDERS[wire]([as_dict(tool) for tool in as_list(tools)]) if wire in _FINDERS else {}


def runs_server_tools(wire: str, profile: Profile) -> bool:
    """Return whether an upstream of the client's own API runs such tools itself, or may do so."""
    return wire == RESPONSES or profile.name == UNKNOWN or profile.tool_search


def start_rounds(wire: str, body: Json, tools: Mapping[str, ServerTool]) -> Rounds:
    """Return the rounds of a reply to this request."""
    rounds = messages_rounds.MessagesRounds if wire == MESSAGES else responses_rounds.ResponsesRounds
    return rounds(body, tools)
