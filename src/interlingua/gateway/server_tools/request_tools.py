"""The tools of a request that the gateway has to run, their earlier calls, and the rounds of its reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.common.coerce import as_dict, as_list
from interlingua.gateway.http.field_origins import Origins
from interlingua.gateway.http.input_items import input_items, input_origins
from interlingua.gateway.http.request_body import RequestBody
from interlingua.gateway.http.sealed_values import SealedValues
from interlingua.gateway.server_tools import messages_history, messages_rounds, responses_history, responses_rounds
from interlingua.gateway.server_tools.server_tool import Json, Rounds, ServerTool
from interlingua.gateway.server_tools.web_access import WebAccess
from interlingua.upstreams.profile import UNKNOWN, Profile

__all__ = [
    "convert_server_calls",
    "find_server_tools",
    "given_texts",
    "has_server_tools",
    "may_be_server_tools",
    "may_have_server_calls",
    "may_have_web_calls",
    "may_run_tool_search",
    "offers_web_search",
    "reports_missing_search",
    "runs_web_search",
    "start_rounds",
    "without_web_search",
]

MESSAGES, RESPONSES = "anthropic-messages", "openai-responses"
_FINDERS = {MESSAGES: messages_rounds.find_server_tools, RESPONSES: responses_rounds.find_server_tools}
_TYPE_STARTS = (b'"tool_search', b'"web_search', b'"web_fetch')
"""Start of the types of such tools, as JSON. Nearly all requests have none of them, which is found out at once."""
_CALL_TYPES = {MESSAGES: b'"server_tool_use"', RESPONSES: b'"web_search_call"'}
"""Types of the calls in a conversation, as JSON. They are rare, too."""


def has_server_tools(wire: str) -> bool:
    """Return whether the API has tools that the gateway can run."""
    return wire in _FINDERS


def may_be_server_tools(encoded_tools: bytes) -> bool:
    """Return whether it is worth decoding these tools to look for tools that the gateway runs."""
    return any(start in encoded_tools for start in _TYPE_STARTS)


def find_server_tools(wire: str, tools: Any, web: WebAccess | None) -> dict[str, ServerTool]:
    """Return the tools that the gateway has to run, by name. Without `web`: no web search and fetch."""
    return _FINDERS[wire]([as_dict(tool) for tool in as_list(tools)], web) if wire in _FINDERS else {}


def may_have_server_calls(wire: str, body: RequestBody) -> bool:
    """Return whether it is worth decoding this request to look for calls of server-run tools in its conversation."""
    return wire in _CALL_TYPES and body.may_contain(_CALL_TYPES[wire])


def may_have_web_calls(wire: str, body: RequestBody) -> bool:
    """Return whether some of these calls may be web searches or fetched pages, and not only tool searches."""
    return wire != MESSAGES or body.may_contain(b'"web_search') or body.may_contain(b'"web_fetch')


def convert_server_calls(wire: str, body: Json, seals: SealedValues) -> tuple[Json, Origins] | None:
    """Replace calls of server-run tools in a conversation by calls and results that every model can read.

    Returns: the request, and the origins of the items in its conversation; None if there are no such calls.

    Raises:
        TooLarge: The sealed results exceed the maximum size.
    """
    if wire == MESSAGES:
        messages = as_list(body.get("messages"))
        if not messages_history.has_server_calls(messages):
            return None
        field, located = "messages", list(messages_history.messages_for_model(messages, seals))
    else:
        items = input_items(body)
        if not responses_history.has_server_calls(items):
            return None
        results, sealed_positions = responses_history.unseal_results(items, seals)
        pairs = enumerate(zip(input_origins(body), items, strict=True))
        kept = [pair for position, pair in pairs if position not in sealed_positions]
        field, located = "input", list(responses_history.items_for_model(kept, results))
    return {**body, field: [item for _, item in located]}, Origins(origin for origin, _ in located)


def given_texts(body: Mapping[str, Any]) -> list[Any]:
    """Return what the user and tools have written in a conversation whose server-run calls are converted."""
    messages = map(as_dict, as_list(body.get("messages")))
    return [message.get("content") for message in messages if message.get("role") != "assistant"]


def reports_missing_search(wire: str) -> bool:
    """Return whether the API has an error for a search that is not available. In others such a tool is not offered."""
    return wire == MESSAGES


def may_run_tool_search(wire: str, profile: Profile) -> bool:
    """Return whether an upstream of the client's own API may run the tool search of that API."""
    return wire == RESPONSES or profile.name == UNKNOWN or profile.tool_search


def runs_web_search(wire: str, profile: Profile) -> bool:
    """Return whether an upstream of the client's own API runs the web search of that API."""
    return wire in profile.web_search_wires


def offers_web_search(wire: str, tools: Any) -> bool:
    """Return whether these are tools of a Responses request with a web search."""
    return wire == RESPONSES and any(responses_rounds.is_web_search(as_dict(tool)) for tool in as_list(tools))


def without_web_search(body: Json) -> Json:
    """Return a request of the Responses API that offers no web search. Without tools, there is no choice of them."""
    changed = {**body, "tools": _without_searches(body.get("tools"))}
    choice = as_dict(body.get("tool_choice"))
    if choice.get("type") == responses_rounds.ALLOWED_TOOLS:
        changed["tool_choice"] = {**choice, "tools": _without_searches(choice.get("tools"))}
    if responses_rounds.is_web_search(choice) or as_dict(changed.get("tool_choice")).get("tools") == []:
        del changed["tool_choice"]
    if not changed["tools"]:
        del changed["tools"]
        changed.pop("tool_choice", None)
    return changed


def _without_searches(tools: Any) -> list[Any]:
    return [tool for tool in as_list(tools) if not responses_rounds.is_web_search(as_dict(tool))]


def start_rounds(
    wire: str, body: Json, tools: Mapping[str, ServerTool], seal_key: bytes, max_seal_bytes: int
) -> Rounds:
    """Return the rounds of a reply to this request, whose earlier calls are converted."""
    if wire == MESSAGES:
        return messages_rounds.MessagesRounds(body, tools, seal_key, max_seal_bytes)
    return responses_rounds.ResponsesRounds(body, tools, seal_key)
