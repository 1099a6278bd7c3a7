"""Server-run tools in the Responses API: items of their own for the call and the result of each tool."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from interlingua.common.coerce import as_dict, as_list
from interlingua.common.jsontext.codec import encode_json, read_full_object, write_json
from interlingua.core.reasoning_signatures import read_value_envelope, unpacked_size, write_value_envelope
from interlingua.core.tools import TOOL_SEARCH, Tool, is_client_search
from interlingua.gateway.http.error_responses import TooLarge
from interlingua.gateway.server_tools.citations import Citation, find_citations
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

__all__ = ["ResponsesRounds", "find_server_tools"]

WEB_SEARCH = "web_search"
SEAL_PURPOSE = "web_search_call"
"""Stands for the wire in the envelopes of results, so that they are not taken for thinking."""
RESULTS_NOT_KEPT = "[the results of this search are not kept; search again if you need them]"
"""Result of a web search in an earlier reply whose sealed results the client has not sent back."""

_OPENING_TYPES = ("response.created", "response.in_progress", "response.queued")
_FINAL_TYPES = ("response.completed", "response.incomplete")
_FAILED_TYPES = ("response.failed", "error")
_ITEM_ADDED, _ITEM_DONE = "response.output_item.added", "response.output_item.done"
_ANNOTATION_ADDED = "response.output_text.annotation.added"


def find_server_tools(tools: list[Json], web: WebAccess | None) -> dict[str, ServerTool]:
    """Return the tools that the client wants the server to run, by the name of their function. Without `web`: no web
    search."""
    found: dict[str, ServerTool] = {}
    if any(tool.get("type") == TOOL_SEARCH and not is_client_search(tool) for tool in tools):
        found[TOOL_SEARCH] = ToolSearch(TOOL_SEARCH, _deferred_tools(tools))
    search = next((tool for tool in tools if _is_web_search(tool)), None)
    if web is not None and search is not None:
        found[WEB_SEARCH] = web.search_tool(WEB_SEARCH, search)
    return found


def _is_web_search(definition: Json) -> bool:
    """Return whether this is a web search, in any version: `web_search`, `web_search_preview`, with a date."""
    return str(definition.get("type")).startswith(WEB_SEARCH)


def _deferred_tools(tools: list[Json]) -> list[Tool]:
    """Return the tools that a search can find, also those in namespaces."""
    definitions = (tool for tool in tools if tool.get("type") in ("function", "custom", "namespace"))
    read = (tool for definition in definitions for tool in Tool.read_all(definition))
    return [tool for tool in read if tool.extra.get("defer_loading") is True]


class ResponsesRounds:
    """Rounds of one reply. See `Rounds`.

    The items of the API have no place for the results of a web search. So they are sealed into a reasoning item of
    their own behind the search, which clients send back with the conversation.

    Args:
        body: The client's request.
        tools: The tools that the gateway runs, by the name of their function.
        seal_key: Key of the client's envelopes.
        max_seal_bytes: Maximum size of all sealed results in the request, unpacked.

    Raises:
        TooLarge: The sealed results exceed the maximum size.
    """

    def __init__(self, body: Json, tools: Mapping[str, ServerTool], seal_key: bytes, max_seal_bytes: int) -> None:
        given = body.get("input")
        items = [{"role": "user", "content": given}] if isinstance(given, str) else as_list(given)
        self._given_items, self._result_texts = _unseal_results(items, seal_key, max_seal_bytes)
        """The conversation, and the results of its searches, by the id of their item."""
        self._seal_key = seal_key
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

    def start_round(self) -> Json:
        self._first_index = len(self._items)
        self.calls, self.needs_client, self.is_complete = [], False, False
        request = {
            **self._body,
            "stream": True,
            "store": False,
            "input": list(_items_for_model([*self._given_items, *self._items], self._result_texts)),
            "tools": [self._tool_for_model(as_dict(tool)) for tool in as_list(self._body.get("tools"))],
        }
        choice = request.get("tool_choice")
        if self._first_index and (choice == "required" or isinstance(choice, dict)):
            request["tool_choice"] = "auto"
        return request

    # ── the request for the model ─────────────────────────────────────────────────────────────────────────────────

    def _tool_for_model(self, definition: Json) -> Json:
        if WEB_SEARCH in self._tools and _is_web_search(definition):
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
        if event_type in _FINAL_TYPES:
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
        self._result_texts[call.id] = (
            ERROR_TEXT.format(call.tool.kind, outcome.error) if outcome.error else pages_text(outcome.pages)
        )
        completed = b"" if outcome.error else self._write_search_event("completed", item, index)
        done = self._write_frame({"type": _ITEM_DONE, "output_index": index, "item": item})
        if outcome.error:
            return completed + done
        self._pages += outcome.pages
        return completed + done + self._add_item(self._sealed_results(call.id))

    def _sealed_results(self, id: str) -> Json:
        """Return the item that carries the results of a search to the next request."""
        value = write_json({"id": id, "results": self._result_texts[id]})
        sealed = write_value_envelope(value, SEAL_PURPOSE, "", self._seal_key)
        return {"type": "reasoning", "id": id.replace("ws_", "rs_"), "summary": [], "encrypted_content": sealed}

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


def _url_citation(citation: Citation) -> Json:
    place = {"start_index": citation.start, "end_index": citation.end}
    return {"type": "url_citation", "url": citation.page.url, "title": citation.page.title, **place}


def _unseal_results(items: list[Any], key: bytes, max_bytes: int) -> tuple[list[Any], dict[str, str]]:
    """Return the items without sealed results, and the results by the id of their search. Raises TooLarge."""
    others: list[Any] = []
    texts: dict[str, str] = {}
    searches = 0  # whose results have not come yet: the thinking of the model is not read here
    for item in items:
        fields = as_dict(item)
        sealed, value = fields.get("encrypted_content"), None
        if searches and fields.get("type") == "reasoning" and isinstance(sealed, str):
            max_bytes -= unpacked_size(sealed, key, max_bytes)
            if max_bytes < 0:
                raise TooLarge("the sealed results of web searches exceed limits.seals")
            value = read_value_envelope(sealed, SEAL_PURPOSE, key)
        if value is not None:
            results = read_full_object(value.value) or {}
            texts[str(results.get("id"))] = str(results.get("results"))
            searches -= 1
            continue
        others.append(item)
        if fields.get("type") == "web_search_call":
            searches += 1
        elif "role" in fields:
            searches = 0
    return others, texts


def _items_for_model(items: list[Any], result_texts: Mapping[str, str]) -> Iterator[Any]:
    """Yield the conversation with searches as a client would have run them: these have an id that joins them.

    Args:
        items: The items of the conversation.
        result_texts: Results of the web searches, by the id of their item.
    """
    open_ids: deque[str] = deque()
    for position, item in enumerate(items):
        kind = item.get("type") if isinstance(item, dict) and item.get("execution") == "server" else None
        if kind == "tool_search_call":
            open_ids.append(str(item.get("call_id") or f"call_{item.get('id') or position}"))
            yield {**item, "execution": "client", "call_id": open_ids[-1]}
        elif kind == "tool_search_output" and open_ids:
            yield {**item, "execution": "client", "call_id": open_ids.popleft()}
        elif isinstance(item, dict) and item.get("type") == "web_search_call":
            id = str(item.get("id") or f"ws_{position}")
            arguments = write_json({"query": as_dict(item.get("action")).get("query")})
            yield {"type": "function_call", "call_id": id, "name": WEB_SEARCH, "arguments": arguments}
            yield {"type": "function_call_output", "call_id": id, "output": result_texts.get(id, RESULTS_NOT_KEPT)}
        else:
            yield item
