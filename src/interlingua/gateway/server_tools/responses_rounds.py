"""Server-run tools in the Responses API: items of their own for the call and the result of each tool."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from interlingua.common.coerce import as_dict, as_list
from interlingua.common.jsontext.codec import encode_json
from interlingua.core.tools import TOOL_SEARCH, Tool, is_client_search
from interlingua.gateway.server_tools.server_tool import Json, Outcome, ServerCall, ServerTool, sum_usage
from interlingua.gateway.server_tools.tool_search import ToolSearch
from interlingua.wires.streaming.sse import encode_event

__all__ = ["ResponsesRounds", "find_tool_search"]

_OPENING_TYPES = ("response.created", "response.in_progress", "response.queued")
_FINAL_TYPES = ("response.completed", "response.incomplete")
_FAILED_TYPES = ("response.failed", "error")
_ITEM_ADDED, _ITEM_DONE = "response.output_item.added", "response.output_item.done"


def find_tool_search(tools: list[Json]) -> dict[str, ServerTool]:
    """Return the search for tools that the client wants the server to run, by its name; empty if there is none."""
    if not any(tool.get("type") == TOOL_SEARCH and not is_client_search(tool) for tool in tools):
        return {}
    return {TOOL_SEARCH: ToolSearch(TOOL_SEARCH, _deferred_tools(tools))}


def _deferred_tools(tools: list[Json]) -> list[Tool]:
    """Return the tools that a search can find, also those in namespaces."""
    definitions = (tool for tool in tools if tool.get("type") in ("function", "custom", "namespace"))
    read = (tool for definition in definitions for tool in Tool.read_all(definition))
    return [tool for tool in read if tool.extra.get("defer_loading") is True]


class ResponsesRounds:
    """Rounds of one reply. See `Rounds`.

    Args:
        body: The client's request.
        tools: The tools that the gateway runs, by the name of their function.
    """

    def __init__(self, body: Json, tools: Mapping[str, ServerTool]) -> None:
        self._body = body
        self._tools = tools
        self._response: Json = {}
        self._first_response: Json = {}
        self._items: list[Json] = []
        self._first_index = 0  # of this round
        self._sequence_number = 0
        self._usages: list[Json] = []  # of each round
        self.calls: list[ServerCall] = []
        self.needs_client = self.is_complete = self.has_failed = False

    def start_round(self) -> Json:
        self._first_index = len(self._items)
        self.calls, self.needs_client, self.is_complete = [], False, False
        given = self._body.get("input")
        items = [{"role": "user", "content": given}] if isinstance(given, str) else as_list(given)
        request = {
            **self._body,
            "stream": True,
            "store": False,
            "input": list(_items_for_model([*items, *self._items])),
            "tools": [self._tool_for_model(as_dict(tool)) for tool in as_list(self._body.get("tools"))],
        }
        choice = request.get("tool_choice")
        if self._first_index and (choice == "required" or isinstance(choice, dict)):
            request["tool_choice"] = "auto"
        return request

    # ── the request for the model ─────────────────────────────────────────────────────────────────────────────────

    def _tool_for_model(self, definition: Json) -> Json:
        tool = self._tools.get(TOOL_SEARCH)
        if tool is None or definition.get("type") != TOOL_SEARCH or is_client_search(definition):
            return definition
        return {
            "type": TOOL_SEARCH,
            "execution": "client",
            "description": tool.description,
            "parameters": tool.parameters,
        }

    # ── the reply ─────────────────────────────────────────────────────────────────────────────────────────────────

    def read_event(self, event: Json) -> bytes:
        event_type = str(event.get("type"))
        if event_type in _OPENING_TYPES:
            return self._open_response(event)
        if event_type in _FINAL_TYPES:
            return self._end_round(event)
        if event_type in _FAILED_TYPES:
            self.is_complete = self.has_failed = True
        elif event_type in (_ITEM_ADDED, _ITEM_DONE):
            event = {**event, "item": self._item_for_client(as_dict(event.get("item")))}
            if event_type == _ITEM_DONE:
                self._items.append(event["item"])
        if "output_index" in event:
            event = {**event, "output_index": self._first_index + int(event["output_index"] or 0)}
        return self._write_frame(event)

    def _open_response(self, event: Json) -> bytes:
        if self._usages:  # of an earlier round
            return b""
        self._first_response = self._first_response or as_dict(event.get("response"))
        return self._write_frame(event)

    def _item_for_client(self, item: Json) -> Json:
        if item.get("type") == "tool_search_call" and TOOL_SEARCH in self._tools:
            return {**item, "execution": "server", "call_id": None}
        return item

    def _end_round(self, event: Json) -> bytes:
        self._response, self.is_complete = as_dict(event.get("response")), True
        self._usages.append(as_dict(self._response.get("usage")))
        new_items = self._items[self._first_index :]
        self.needs_client = any(item.get("type") in ("function_call", "custom_tool_call") for item in new_items)
        if event.get("type") == "response.completed":
            self.calls = [
                ServerCall(str(item.get("id")), self._tools[TOOL_SEARCH], as_dict(item.get("arguments")))
                for item in new_items
                if item.get("type") == "tool_search_call" and TOOL_SEARCH in self._tools
            ]
        done_ids = {item.get("id") for item in new_items}  # a truncated item has no event that ends it
        self._items += [
            as_dict(item) for item in as_list(self._response.get("output")) if as_dict(item).get("id") not in done_ids
        ]
        return b""

    def write_outcome(self, call: ServerCall, outcome: Outcome) -> bytes:
        item = {
            "type": "tool_search_output",
            "id": call.id.replace("tsc_", "tso_"),
            "call_id": None,
            "execution": "server",
            "status": "completed" if not outcome.error else "incomplete",
            "tools": self._definitions(outcome.found),
        }
        index = len(self._items)
        self._items.append(item)
        return b"".join(
            self._write_frame({"type": event_type, "output_index": index, "item": item})
            for event_type in (_ITEM_ADDED, _ITEM_DONE)
        )

    def _definitions(self, found: list[Tool]) -> list[Json]:
        """Return the definitions of these tools as the client has sent them, with nothing else in their namespaces."""
        names = {tool.name for tool in found}
        definitions: list[Json] = []
        for definition in map(as_dict, as_list(self._body.get("tools"))):
            if definition.get("type") == "namespace":
                read = Tool.read_all(definition)
                inner = [item for item, tool in zip(definition["tools"], read, strict=True) if tool.name in names]
                if inner:
                    definitions.append({**definition, "tools": inner})
            elif definition.get("name") in names:
                definitions.append(definition)
        return definitions

    def finish(self, *, is_paused: bool) -> bytes:
        self._response = {
            **self._response,
            **{key: self._first_response[key] for key in ("id", "created_at") if key in self._first_response},
            "output": self._items,
            "usage": sum_usage(self._usages),
        }
        if is_paused:
            self._response |= {"status": "incomplete", "incomplete_details": {"reason": "max_tool_calls"}}
        is_incomplete = self._response.get("status") == "incomplete"
        return self._write_frame({"type": _FINAL_TYPES[is_incomplete], "response": self._response})

    def fail(self, error: Json) -> bytes:
        failed = {"code": error.get("code") or "server_error", "message": error.get("message")}
        response = {**self._first_response, "status": "failed", "error": failed, "output": self._items}
        return self._write_frame({"type": "response.failed", "response": response})

    def body(self) -> Json:
        return self._response

    def _write_frame(self, event: Json) -> bytes:
        event = {**event, "sequence_number": self._sequence_number}
        self._sequence_number += 1
        return encode_event(encode_json(event), str(event.get("type") or ""))


def _items_for_model(items: list[Any]) -> Iterator[Any]:
    """Yield the conversation with searches as a client would have run them: these have an id that joins them."""
    open_ids: deque[str] = deque()
    for position, item in enumerate(items):
        kind = item.get("type") if isinstance(item, dict) and item.get("execution") == "server" else None
        if kind == "tool_search_call":
            open_ids.append(str(item.get("call_id") or f"call_{item.get('id') or position}"))
            yield {**item, "execution": "client", "call_id": open_ids[-1]}
        elif kind == "tool_search_output" and open_ids:
            yield {**item, "execution": "client", "call_id": open_ids.popleft()}
        else:
            yield item
