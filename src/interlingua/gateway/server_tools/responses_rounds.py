"""Server-run tools in the Responses API: items of their own for the call and the result of each tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.common.coerce import as_dict, as_list
from interlingua.common.jsontext.codec import encode_json, read_full_object
from interlingua.core.tools import TOOL_SEARCH, Tool, is_client_search
from interlingua.gateway.http.field_origins import Origin, Origins
from interlingua.gateway.http.final_event import FINAL_TYPES
from interlingua.gateway.http.input_items import input_items, input_origins
from interlingua.gateway.server_tools.citations import Citation, find_citations
from interlingua.gateway.server_tools.responses_history import WEB_SEARCH, items_for_model, seal_results
from interlingua.gateway.server_tools.server_tool import (
    ERROR_TEXT,
    Json,
    Outcome,
    Page,
    ServerCall,
    ServerTool,
    pages_text,
    sum_usage,
)
from interlingua.gateway.server_tools.tool_search import ToolSearch
from interlingua.gateway.server_tools.web_access import WebAccess
from interlingua.wires.streaming.sse import encode_event

__all__ = ["ALLOWED_TOOLS", "ResponsesRounds", "find_server_tools", "is_web_search"]

_OPENING_TYPES = ("response.created", "response.in_progress", "response.queued")
_FAILED_TYPES = ("response.failed", "error")
_ITEM_ADDED, _ITEM_DONE = "response.output_item.added", "response.output_item.done"
MAX_TOOL_CALLS = "max_tool_calls"
ALLOWED_TOOLS = "allowed_tools"
"""Type of a tool choice that names several tools."""
_ANNOTATION_ADDED = "response.output_text.annotation.added"


def find_server_tools(tools: list[Json], web: WebAccess | None) -> dict[str, ServerTool]:
    """Return the tools that the client wants the server to run, by the name of their function. Without `web`: no web
    search."""
    found: dict[str, ServerTool] = {}
    if any(tool.get("type") == TOOL_SEARCH and not is_client_search(tool) for tool in tools):
        found[TOOL_SEARCH] = ToolSearch(TOOL_SEARCH, _deferred_tools(tools))
    search = next((tool for tool in tools if is_web_search(tool)), None)
    if web is not None and search is not None:
        found[WEB_SEARCH] = web.search_tool(WEB_SEARCH, search)
    return found


def is_web_search(definition: Json) -> bool:
    """Return whether this is a web search, or the choice of one, in any version: `web_search`, `web_search_preview`,
    with a date."""
    return str(definition.get("type")).startswith(WEB_SEARCH)


def _deferred_tools(tools: list[Json]) -> list[Tool]:
    """Return the tools that a search can find, also those in namespaces."""
    definitions = (tool for tool in tools if tool.get("type") in ("function", "custom", "namespace"))
    read = (tool for definition in definitions for tool in Tool.read_all(definition))
    return [tool for tool in read if tool.extra.get("defer_loading") is True]


class ResponsesRounds:
    """Rounds of one reply. See `Rounds`.

    Args:
        body: The client's request. Its conversation has calls and results in the place of server-run tools.
        tools: The tools that the gateway runs, by the name of their function.
        seal_key: Key of the client's envelopes.
    """

    def __init__(self, body: Json, tools: Mapping[str, ServerTool], seal_key: bytes) -> None:
        self._seal_key = seal_key
        self._results: dict[str, str] = {}  # of the web searches, by the id of their item
        self._sealed_ids: set[str] = set()  # of the items with these results, which are not for the model
        self._pages: list[Page] = []  # that this reply has found
        self._annotations: dict[tuple[object, object], list[Json]] = {}  # of texts, by item and part
        self._body = body
        self._tools = tools
        self._response: Json = {}
        self._first_response: Json = {}
        self._items: list[Json] = []
        self._searches: dict[str, int] = {}  # index of each web search, by the id of the function call
        self._first_index = 0  # of this round
        self._sequence_number = 0
        self._usages: list[Json] = []  # of each round
        self.calls: list[ServerCall] = []
        self.needs_client = self.is_complete = self.has_failed = False
        self.max_calls = _max_calls(body)
        self.origins = Origins()

    def start_round(self) -> Json:
        self._first_index = len(self._items)
        self.calls, self.needs_client, self.is_complete = [], False, False
        own = Origin("input", is_same=False)
        reply = [(own, item) for item in self._items if item.get("id") not in self._sealed_ids]
        turns = [item for _, item in items_for_model(reply, self._results)]
        self.origins = input_origins(self._body)
        self.origins.add(own, len(turns))
        request = {
            **{key: value for key, value in self._body.items() if key != MAX_TOOL_CALLS},
            "stream": True,
            "store": False,
            "input": [*input_items(self._body), *turns],
            "tools": [self._tool_for_model(as_dict(tool)) for tool in as_list(self._body.get("tools"))],
        }
        choice = request.get("tool_choice")
        if self._first_index and (choice == "required" or isinstance(choice, dict)):
            request["tool_choice"] = "auto"
        elif WEB_SEARCH in self._tools and isinstance(choice, dict):
            request["tool_choice"] = _choice_for_model(choice)
        return request

    # ── the request for the model ─────────────────────────────────────────────────────────────────────────────────

    def _tool_for_model(self, definition: Json) -> Json:
        if WEB_SEARCH in self._tools and is_web_search(definition):
            search = self._tools[WEB_SEARCH]
            function = {"type": "function", "name": search.name, "description": search.description}
            return {**function, "parameters": search.parameters, "strict": False}
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
        if event_type in FINAL_TYPES:
            return self._end_round(event)
        if event_type in _FAILED_TYPES:
            self.is_complete = self.has_failed = True
        elif self._is_web_search_event(event):
            return self._read_web_search(event)
        elif event_type in (_ITEM_ADDED, _ITEM_DONE):
            event = {**event, "item": self._item_for_client(as_dict(event.get("item")))}
            if event_type == _ITEM_DONE:
                self._items.append(event["item"])
        if "output_index" in event:
            event = {**event, "output_index": self._index_of(event)}
        annotations = self._write_annotations(event) if event_type == "response.output_text.done" else b""
        if event_type == "response.content_part.done":
            part = self._annotate(as_dict(event.get("part")), event.get("item_id"), event.get("content_index"))
            event = {**event, "part": part}
        return annotations + self._write_frame(event)

    def _write_annotations(self, event: Json) -> bytes:
        """Return the frames for the pages that a text names."""
        found = find_citations(str(event.get("text") or ""), self._pages) if self._pages else []
        annotations = [_url_citation(citation) for citation in found]
        self._annotations[event.get("item_id"), event.get("content_index")] = annotations
        place = {key: event.get(key) for key in ("item_id", "output_index", "content_index")}
        return b"".join(
            self._write_frame({"type": _ANNOTATION_ADDED, **place, "annotation_index": n, "annotation": annotation})
            for n, annotation in enumerate(annotations)
        )

    def _annotate(self, part: Json, item_id: object, index: object) -> Json:
        annotations = self._annotations.get((item_id, index))
        return {**part, "annotations": annotations} if annotations else part

    def _index_of(self, event: Json) -> int:
        return self._first_index + int(event.get("output_index") or 0)

    def _is_web_search_event(self, event: Json) -> bool:
        """Return whether an event is about a call of the web search, which the client sees as an item of its own."""
        item = as_dict(event.get("item"))
        is_call = item.get("type") == "function_call" and item.get("name") == WEB_SEARCH
        return WEB_SEARCH in self._tools and (is_call or event.get("item_id") in self._searches)

    def _read_web_search(self, event: Json) -> bytes:
        """Return the frames for an event of a web search. Its item ends with its outcome."""
        call, index = as_dict(event.get("item")), self._index_of(event)
        id = str(call.get("id"))
        item: Json = {"type": "web_search_call", "id": id.replace("fc_", "ws_"), "status": "in_progress"}
        if event.get("type") == _ITEM_ADDED:
            self._searches[id] = index
            item["action"] = {"type": "search", "query": ""}
            added = self._write_frame({"type": _ITEM_ADDED, "output_index": index, "item": item})
            return added + self._write_search_event("in_progress", item, index)
        if event.get("type") == _ITEM_DONE:
            arguments = read_full_object(str(call.get("arguments"))) or {}
            item["action"] = {"type": "search", "query": str(arguments.get("query") or "")}
            self._items.append(item)
            return self._write_search_event("searching", item, index)
        return b""  # its arguments

    def _write_search_event(self, state: str, item: Json, index: int) -> bytes:
        return self._write_frame(
            {"type": f"response.web_search_call.{state}", "output_index": index, "item_id": item["id"]}
        )

    def _open_response(self, event: Json) -> bytes:
        if self._usages:  # of an earlier round
            return b""
        self._first_response = self._first_response or as_dict(event.get("response"))
        return self._write_frame(event)

    def _item_for_client(self, item: Json) -> Json:
        if item.get("type") == "tool_search_call" and TOOL_SEARCH in self._tools:
            return {**item, "execution": "server", "call_id": None}
        if item.get("type") == "message" and self._annotations:
            parts = [as_dict(part) for part in as_list(item.get("content"))]
            return {**item, "content": [self._annotate(part, item.get("id"), n) for n, part in enumerate(parts)]}
        return item

    def _end_round(self, event: Json) -> bytes:
        self._response, self.is_complete = as_dict(event.get("response")), True
        self._usages.append(as_dict(self._response.get("usage")))
        new_items = self._items[self._first_index :]
        self.needs_client = any(item.get("type") in ("function_call", "custom_tool_call") for item in new_items)
        if event.get("type") == "response.completed":
            self.calls = [call for item in new_items if (call := self._server_call(item)) is not None]
        done_ids = {
            item.get("id") for item in new_items
        } | self._searches.keys()  # a truncated item has no event that ends it
        self._items += [
            as_dict(item) for item in as_list(self._response.get("output")) if as_dict(item).get("id") not in done_ids
        ]
        return b""

    def _server_call(self, item: Json) -> ServerCall | None:
        """Return the call that the gateway has to run for this item; None if it has none."""
        id = str(item.get("id"))
        if item.get("type") == "tool_search_call" and TOOL_SEARCH in self._tools:
            return ServerCall(id, self._tools[TOOL_SEARCH], as_dict(item.get("arguments")))
        if item.get("type") == "web_search_call" and item.get("status") == "in_progress":
            return ServerCall(id, self._tools[WEB_SEARCH], {"query": as_dict(item.get("action")).get("query")})
        return None

    def write_outcome(self, call: ServerCall, outcome: Outcome) -> bytes:
        return self._end_web_search(call, outcome) if call.tool.kind == "web_search" else self._add_tools(call, outcome)

    def _end_web_search(self, call: ServerCall, outcome: Outcome) -> bytes:
        index = next(n for n, item in enumerate(self._items) if item.get("id") == call.id)
        sources = [{"type": "url", "url": page.url} for page in outcome.pages]
        status = "failed" if outcome.error else "completed"
        action = {**self._items[index]["action"], "sources": sources}
        self._items[index] = item = {**self._items[index], "status": status, "action": action}
        done = {"type": _ITEM_DONE, "output_index": index, "item": item}
        if outcome.error:
            self._results[call.id] = ERROR_TEXT.format(call.tool.kind, outcome.error)
            return self._write_frame(done)
        self._results[call.id] = results = pages_text(outcome.pages)
        self._pages += outcome.pages
        sealed = seal_results(call.id, results, self._seal_key)
        self._sealed_ids.add(sealed["id"])
        return self._write_search_event("completed", item, index) + self._write_frame(done) + self._add_item(sealed)

    def _add_tools(self, call: ServerCall, outcome: Outcome) -> bytes:
        item = {
            "type": "tool_search_output",
            "id": call.id.replace("tsc_", "tso_"),
            "call_id": None,
            "execution": "server",
            "status": "completed" if not outcome.error else "incomplete",
            "tools": self._definitions(outcome.found),
        }
        return self._add_item(item)

    def _add_item(self, item: Json) -> bytes:
        """Add a whole item to the reply, and return its frames."""
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
            self._response |= {"status": "incomplete", "incomplete_details": {"reason": MAX_TOOL_CALLS}}
        is_incomplete = self._response.get("status") == "incomplete"
        return self._write_frame({"type": FINAL_TYPES[is_incomplete], "response": self._response})

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


def _choice_for_model(choice: Json) -> Json:
    """Return the tool choice with the function in the place of the web search."""
    if is_web_search(choice):
        return {"type": "function", "name": WEB_SEARCH}
    tools = choice.get("tools")
    if choice.get("type") != ALLOWED_TOOLS or not isinstance(tools, list):
        return choice
    return {**choice, "tools": [_choice_for_model(tool) if isinstance(tool, dict) else tool for tool in tools]}


def _max_calls(body: Mapping[str, Any]) -> int:
    """Return the maximum number of calls that the server runs for this request; 0 if there is none."""
    value = body.get(MAX_TOOL_CALLS)
    return max(0, value) if isinstance(value, int) else 0


def _url_citation(citation: Citation) -> Json:
    place = {"start_index": citation.start, "end_index": citation.end}
    return {"type": "url_citation", "url": citation.page.url, "title": citation.page.title, **place}
