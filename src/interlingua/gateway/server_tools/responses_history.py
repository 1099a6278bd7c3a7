"""Server-run tools in the conversation of a Responses request: to the model, their items are calls and results.

The items of the API have no place for the results of a web search. So the gateway has sealed them into a reasoning item
of their own behind the search, which clients send back with the conversation.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from interlingua.common.coerce import as_dict
from interlingua.common.jsontext.codec import read_full_object, write_json
from interlingua.core.reasoning_signatures import write_value_envelope
from interlingua.gateway.http.field_origins import Origin
from interlingua.gateway.http.sealed_values import SealedValues
from interlingua.gateway.server_tools.server_tool import Json

__all__ = ["WEB_SEARCH", "has_server_calls", "items_for_model", "seal_results", "unseal_results"]

WEB_SEARCH = "web_search"
"""Name of the function that stands for the search."""
SEARCH_CALL = "web_search_call"
SEAL_PURPOSE = "web_search_call"
"""Stands for the wire in the envelopes of results, so that they are not taken for thinking."""
RESULTS_NOT_KEPT = "[the results of this search are not kept; search again if you need them]"
"""Result of a web search in an earlier reply whose sealed results the client has not sent back."""


def has_server_calls(items: Iterable[Any]) -> bool:
    """Return whether a conversation has calls of server-run tools."""
    return any(item.get("type") == SEARCH_CALL or item.get("execution") == "server" for item in map(as_dict, items))


def seal_results(search_id: str, results: str, key: bytes) -> Json:
    """Return the item that carries the results of a search to the next request."""
    sealed = write_value_envelope(write_json({"id": search_id, "results": results}), SEAL_PURPOSE, "", key)
    return {"type": "reasoning", "id": search_id.replace("ws_", "rs_"), "summary": [], "encrypted_content": sealed}


def unseal_results(items: Iterable[Any], seals: SealedValues) -> tuple[dict[str, str], set[int]]:
    """Return the results of web searches by the id of their item, and the positions of the items that carry them.

    Raises:
        TooLarge: The results exceed the maximum size.
    """
    results: dict[str, str] = {}
    positions: set[int] = set()
    searches = 0  # whose results have not come yet: the thinking of the model is not read here
    for position, item in enumerate(map(as_dict, items)):
        if item.get("type") == SEARCH_CALL:
            searches += 1
        elif "role" in item:
            searches = 0
        elif searches and item.get("type") == "reasoning":
            value = seals.read(item.get("encrypted_content"), SEAL_PURPOSE)
            if value is not None:
                searches -= 1
                fields = read_full_object(value) or {}
                results[str(fields.get("id"))] = str(fields.get("results"))
                positions.add(position)
    return results, positions


def items_for_model(items: Iterable[tuple[Origin, Any]], results: Mapping[str, str]) -> Iterator[tuple[Origin, Any]]:
    """Yield the conversation with searches as a client would have run them: these have an id that joins them.

    Args:
        items: The items of the conversation, each behind its origin.
        results: Results of the web searches, by the id of their item.
    """
    open_ids: deque[str] = deque()
    for position, (origin, item) in enumerate(items):
        fields, changed = as_dict(item), origin._replace(is_same=False)
        kind = fields.get("type") if fields.get("execution") == "server" else None
        if kind == "tool_search_call":
            open_ids.append(str(fields.get("call_id") or f"call_{fields.get('id') or position}"))
            yield changed, {**fields, "execution": "client", "call_id": open_ids[-1]}
        elif kind == "tool_search_output" and open_ids:
            yield changed, {**fields, "execution": "client", "call_id": open_ids.popleft()}
        elif fields.get("type") == SEARCH_CALL:
            id = str(fields.get("id") or f"ws_{position}")
            arguments = write_json({"query": as_dict(fields.get("action")).get("query")})
            output = results.get(id, RESULTS_NOT_KEPT)
            yield changed, {"type": "function_call", "call_id": id, "name": WEB_SEARCH, "arguments": arguments}
            yield changed, {"type": "function_call_output", "call_id": id, "output": output}
        else:
            yield origin, item
