"""Server-run tools in the Messages API: `server_tool_use` blocks, and a result block of its own for each tool."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from interlingua.common.coerce import as_dict, as_list
from interlingua.common.jsontext.codec import encode_json, read_full_object
from interlingua.core.reasoning_signatures import write_value_envelope
from interlingua.core.tools import Tool
from interlingua.gateway.http.field_origins import Origin, Origins
from interlingua.gateway.http.sealed_values import SealedValues
from interlingua.gateway.server_tools.citations import find_citations
from interlingua.gateway.server_tools.messages_history import RESULT_TYPES, SEAL_PURPOSE, messages_for_model
from interlingua.gateway.server_tools.server_tool import (
    Json,
    Outcome,
    Page,
    ServerCall,
    ServerTool,
    ServerToolKind,
    sum_usage,
)
from interlingua.gateway.server_tools.tool_search import ToolSearch
from interlingua.gateway.server_tools.web_access import WebAccess
from interlingua.wires.streaming.sse import encode_event

__all__ = ["MessagesRounds", "find_server_tools"]

SEARCH_TYPES = {"tool_search_tool_bm25": "query", "tool_search_tool_regex": "pattern"}
"""Types of the search for tools, without their dates, and the argument with the words."""
ID_PREFIX = "srvtoolu_"
PAUSED = "pause_turn"
"""Stop reason of a reply that goes on when the client sends it back."""
USAGE_FIELDS: dict[ServerToolKind, str] = {"web_search": "web_search_requests", "web_fetch": "web_fetch_requests"}
MAX_CITED_CHARS = 150
"""Length of the text that a citation quotes, as the API defines it."""
_FORCED_CHOICES = ("any", "tool")
_DELTA_FIELDS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
_INPUT_FIELD = "partial_json"


def find_server_tools(tools: list[Json], web: WebAccess | None) -> dict[str, ServerTool]:
    """Return the tools that the client wants the server to run, by name. Without `web`: no web search and fetch."""
    hosted = [definition for definition in tools if _is_hosted(definition)]
    return _find_tool_searches(hosted, tools) | (_find_web_tools(hosted, web) if web is not None else {})


def _is_hosted(definition: Json) -> bool:
    """Return whether the API's vendor defines the arguments of a tool, and not the client."""
    return "type" in definition and "input_schema" not in definition


def _name_of(definition: Json) -> str:
    """Return the name of a hosted tool."""
    return str(definition.get("name") or definition["type"])


def _find_web_tools(hosted: list[Json], web: WebAccess) -> dict[str, ServerTool]:
    found: dict[str, ServerTool] = {}
    for definition in hosted:
        name, max_uses = _name_of(definition), _count(definition, "max_uses")
        if _has_type(definition, "web_search"):
            found[name] = web.search_tool(name, definition, max_uses)
        elif _has_type(definition, "web_fetch"):
            found[name] = web.fetch_tool(name, definition, max_uses, _count(definition, "max_content_tokens"))
    return found


def _count(definition: Json, field: str) -> int:
    """Return a maximum in the definition of a tool; 0 if there is none."""
    value = definition.get(field)
    return value if isinstance(value, int) and value > 0 else 0


def _find_tool_searches(hosted: list[Json], tools: list[Json]) -> dict[str, ServerTool]:
    deferred = [definition for definition in tools if definition.get("defer_loading") is True and "name" in definition]
    searches: dict[str, ServerTool] = {}
    for definition in hosted:
        argument = next((SEARCH_TYPES[kind] for kind in SEARCH_TYPES if _has_type(definition, kind)), "")
        if argument:
            name = _name_of(definition)
            candidates = [tool for item in deferred if item is not definition for tool in Tool.read_all(item)]
            searches[name] = ToolSearch(name, candidates, argument)
    return searches


def _has_type(definition: Json, kind: str) -> bool:
    """Return whether a tool has this type, in any version: with or without a date."""
    tool_type = definition.get("type")
    return isinstance(tool_type, str) and (tool_type == kind or tool_type.startswith(f"{kind}_"))


class MessagesRounds:
    """Rounds of one reply. See `Rounds`.

    Args:
        body: The client's request. Its conversation has calls and results in the place of server-run tools.
        tools: The tools that the gateway runs, by the name in the request.
        seal_key: Key of the client's envelopes.
        max_seal_bytes: Maximum size of all excerpts of searches, unpacked.
    """

    def __init__(self, body: Json, tools: Mapping[str, ServerTool], seal_key: bytes, max_seal_bytes: int) -> None:
        self._body = body
        self._seal_key = seal_key
        self._max_seal_bytes = max_seal_bytes
        self._uses: Counter[ServerToolKind] = Counter()
        self._tools = tools
        self._message: Json = {}
        self._content: list[Json] = []
        self._texts: dict[str, list[str]] = {}  # of the open block, by field
        self._pages: list[Page] = []  # that a web search has found
        self._first_index = 0  # of this round
        self._stop: Json = {}
        self._usages: list[Json] = []  # of each round
        self.calls: list[ServerCall] = []
        self.needs_client = self.is_complete = self.has_failed = False
        self.max_calls = 0  # each tool has its own maximum
        self.origins = Origins()

    def start_round(self) -> Json:
        self._first_index = len(self._content)
        self.calls, self.needs_client, self.is_complete = [], False, False
        self._usages.append({})
        messages = as_list(self._body.get("messages"))
        reply = [{"role": "assistant", "content": self._content}] if self._content else []
        turns = [turn for _, turn in messages_for_model(reply, SealedValues(self._seal_key, self._max_seal_bytes))]
        self.origins = Origins()
        self.origins.add_items("messages", len(messages))
        self.origins.add(Origin("messages", is_same=False), len(turns))
        request = {
            **self._body,
            "stream": True,
            "messages": [*messages, *turns],
            "tools": [self._tool_for_model(as_dict(tool)) for tool in as_list(self._body.get("tools"))],
        }
        if self._first_index and as_dict(request.get("tool_choice")).get("type") in _FORCED_CHOICES:
            request["tool_choice"] = {**request["tool_choice"], "type": "auto"}
            request["tool_choice"].pop("name", None)
        return request

    # ── the request for the model ─────────────────────────────────────────────────────────────────────────────────

    def _tool_for_model(self, definition: Json) -> Json:
        tool = self._tools.get(_name_of(definition)) if _is_hosted(definition) else None
        if tool is None:
            return definition
        return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}

    # ── the reply ─────────────────────────────────────────────────────────────────────────────────────────────────

    def read_event(self, event: Json) -> bytes:
        match event.get("type"):
            case "message_start":
                return self._start_message(event)
            case "content_block_start":
                return self._start_block(event)
            case "content_block_delta":
                self._read_delta(as_dict(event.get("delta")))
                return self._write_shifted(event)
            case "content_block_stop":
                self._end_block()
                return self._write_citations(event) + self._write_shifted(event)
            case "message_delta":
                self._stop = as_dict(event.get("delta"))
                self._usages[-1] |= as_dict(event.get("usage"))
                return b""
            case "message_stop":
                self.is_complete = True
                if self._stop.get("stop_reason") != "tool_use":
                    self.calls = []  # the last call may be incomplete
                return b""
            case "error":
                self.is_complete = self.has_failed = True
        return _write_frame(event)

    def _start_message(self, event: Json) -> bytes:
        message = as_dict(event.get("message"))
        self._usages[-1] |= as_dict(message.get("usage"))
        if self._message:
            return b""
        self._message = message
        return _write_frame(event)

    def _start_block(self, event: Json) -> bytes:
        block = dict(as_dict(event.get("content_block")))
        if block.get("type") == "tool_use":
            if block.get("name") in self._tools:
                block |= {"type": "server_tool_use", "id": _server_id(str(block.get("id")))}
            else:
                self.needs_client = True
        self._content.append(block)
        self._texts = {}
        return self._write_shifted({**event, "content_block": dict(block)})

    def _read_delta(self, delta: Json) -> None:
        field = _DELTA_FIELDS.get(str(delta.get("type")), _INPUT_FIELD)
        self._texts.setdefault(field, []).append(str(delta.get(field) or ""))

    def _end_block(self) -> None:
        block = self._content[-1]
        for field, texts in self._texts.items():
            if field == _INPUT_FIELD:
                block["input"] = read_full_object("".join(texts)) or {}
            else:
                block[field] = str(block.get(field) or "") + "".join(texts)
        self._texts = {}
        if block.get("type") == "server_tool_use":
            self.calls.append(ServerCall(block["id"], self._tools[block["name"]], as_dict(block.get("input"))))

    def _write_citations(self, event: Json) -> bytes:
        """Return the frames for the pages that the text of the last block names."""
        block = self._content[-1]
        if block.get("type") != "text" or not self._pages:
            return b""
        found = [citation.page for citation in find_citations(str(block.get("text") or ""), self._pages)]
        citations = [self._citation(page) for page in dict.fromkeys(found)]
        if citations:
            block["citations"] = citations
        deltas = ({"type": "citations_delta", "citation": citation} for citation in citations)
        return b"".join(
            self._write_shifted({**event, "type": "content_block_delta", "delta": delta}) for delta in deltas
        )

    def _citation(self, page: Page) -> Json:
        sealed = write_value_envelope(page.url, SEAL_PURPOSE, "", self._seal_key)
        fields = {"url": page.url, "title": page.title, "encrypted_index": sealed}
        return {"type": "web_search_result_location", **fields, "cited_text": page.text[:MAX_CITED_CHARS]}

    def _write_shifted(self, event: Json) -> bytes:
        return _write_frame({**event, "index": self._first_index + int(event.get("index") or 0)})

    def write_outcome(self, call: ServerCall, outcome: Outcome) -> bytes:
        block = self._result_block(call, outcome)
        index = len(self._content)
        self._content.append(block)
        start = {"type": "content_block_start", "index": index, "content_block": block}
        return _write_frame(start) + _write_frame({"type": "content_block_stop", "index": index})

    def _result_block(self, call: ServerCall, outcome: Outcome) -> Json:
        block_type = RESULT_TYPES[call.tool.kind]
        content: Any
        if outcome.error:
            content = {"type": f"{block_type}_error", "error_code": outcome.error}
        elif call.tool.kind == "tool_search":
            references = [{"type": "tool_reference", "tool_name": tool.name} for tool in outcome.found]
            content = {"type": "tool_search_tool_search_result", "tool_references": references}
        elif call.tool.kind == "web_search":
            self._pages += outcome.pages
            content = [self._search_result(page) for page in outcome.pages]
        else:
            content = _fetch_result(outcome.pages[0])
        if not outcome.error:
            self._uses[call.tool.kind] += 1
        return {"type": block_type, "tool_use_id": call.id, "content": content}

    def _search_result(self, page: Page) -> Json:
        """Return a search result. Its text is for the model only, so it is sealed, as the API defines it."""
        sealed = write_value_envelope(page.text, SEAL_PURPOSE, "", self._seal_key)
        result = {"type": "web_search_result", "url": page.url, "title": page.title, "encrypted_content": sealed}
        return {**result, "page_age": page.age or None}

    def finish(self, *, is_paused: bool) -> bytes:
        if is_paused:
            self._stop = {"stop_reason": PAUSED, "stop_sequence": None}
        delta = {"type": "message_delta", "delta": self._stop, "usage": self._usage()}
        return _write_frame(delta) + _write_frame({"type": "message_stop"})

    def fail(self, error: Json) -> bytes:
        return _write_frame({"type": "error", "error": error})

    def body(self) -> Json:
        return {**self._message, "content": self._content, **self._stop, "usage": self._usage()}

    def _usage(self) -> Json:
        """Return the tokens of all rounds, and how often tools of the web were used."""
        uses = {field: self._uses[kind] for kind, field in USAGE_FIELDS.items()}
        return sum_usage(self._usages) | ({"server_tool_use": uses} if any(uses.values()) else {})


def _fetch_result(page: Page) -> Json:
    source = {"type": "text", "media_type": "text/plain", "data": page.text}
    document = {"type": "document", "source": source, "title": page.title, "citations": None}
    retrieved_at = datetime.now(UTC).isoformat(timespec="seconds")
    return {"type": "web_fetch_result", "url": page.url, "content": document, "retrieved_at": retrieved_at}


def _server_id(id: str) -> str:
    """Return the id of a block of a server-run tool, which has a prefix of its own."""
    return ID_PREFIX + re.sub(r"[^A-Za-z0-9_]", "_", id.removeprefix("toolu_"))


def _write_frame(event: Json) -> bytes:
    return encode_event(encode_json(event), str(event.get("type") or ""))
