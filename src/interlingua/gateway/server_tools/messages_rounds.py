"""Server-run tools in the Messages API: `server_tool_use` blocks, and a result block of its own for each tool."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from interlingua.common.coerce import as_dict, as_list
from interlingua.common.jsontext.codec import encode_json, read_json
from interlingua.core.tools import NO_TOOL_FOUND_TEXT, Tool
from interlingua.gateway.server_tools.server_tool import Json, Outcome, ServerCall, ServerTool, sum_usage
from interlingua.gateway.server_tools.tool_search import ToolSearch
from interlingua.wires.streaming.sse import encode_event

__all__ = ["MessagesRounds", "find_tool_search"]

SEARCH_TYPES = {"tool_search_tool_bm25": "query", "tool_search_tool_regex": "pattern"}
"""Types of the search for tools, without their dates, and the argument with the words."""
ID_PREFIX = "srvtoolu_"
PAUSED = "pause_turn"
"""Stop reason of a reply that goes on when the client sends it back."""
_TOOL_SEARCH_RESULT = "tool_search_tool_result"
_FORCED_CHOICES = ("any", "tool")
_DELTA_FIELDS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
_INPUT_FIELD = "partial_json"


def find_tool_search(tools: list[Json]) -> dict[str, ServerTool]:
    """Return the search for tools that the client wants the server to run, by its name; empty if there is none."""
    deferred = [definition for definition in tools if definition.get("defer_loading") is True and "name" in definition]
    searches: dict[str, ServerTool] = {}
    for definition in tools:
        argument = next((SEARCH_TYPES[kind] for kind in SEARCH_TYPES if _has_type(definition, kind)), "")
        if argument:
            name = str(definition.get("name") or definition["type"])
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
        body: The client's request.
        tools: The tools that the gateway runs, by the name in the request.
    """

    def __init__(self, body: Json, tools: Mapping[str, ServerTool]) -> None:
        self._body = body
        self._tools = tools
        self._message: Json = {}
        self._content: list[Json] = []
        self._texts: dict[str, list[str]] = {}  # of the open block, by field
        self._first_index = 0  # of this round
        self._stop: Json = {}
        self._usages: list[Json] = []  # of each round
        self.calls: list[ServerCall] = []
        self.needs_client = self.is_complete = self.has_failed = False

    def start_round(self) -> Json:
        self._first_index = len(self._content)
        self.calls, self.needs_client, self.is_complete = [], False, False
        self._usages.append({})
        messages = as_list(self._body.get("messages"))
        if self._content:
            messages = [*messages, {"role": "assistant", "content": self._content}]
        request = {
            **self._body,
            "stream": True,
            "messages": list(self._messages_for_model(messages)),
            "tools": [self._tool_for_model(as_dict(tool)) for tool in as_list(self._body.get("tools"))],
        }
        if self._first_index and as_dict(request.get("tool_choice")).get("type") in _FORCED_CHOICES:
            request["tool_choice"] = {**request["tool_choice"], "type": "auto"}
            request["tool_choice"].pop("name", None)
        return request

    # ── the request for the model ─────────────────────────────────────────────────────────────────────────────────

    def _tool_for_model(self, definition: Json) -> Json:
        tool = self._tools.get(str(definition.get("name") or definition.get("type")))
        if tool is None or "input_schema" in definition:
            return definition
        return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}

    def _messages_for_model(self, messages: list[Any]) -> Iterator[Json]:
        """Yield the conversation with a call and a result in the place of each block of a server-run tool."""
        results: list[Json] = []  # of the message before
        for message in map(as_dict, messages):
            content, role = message.get("content"), message.get("role")
            if results and role == "user":
                blocks = [{"type": "text", "text": content}] if isinstance(content, str) else as_list(content)
                message = {**message, "content": [*results, *blocks]}
            elif results:
                yield {"role": "user", "content": results}
            results = []
            if role != "assistant" or not isinstance(content, list):
                yield message
                continue
            *turns, (last, results) = self._split_turns(content)
            for blocks, turn_results in turns:
                yield {**message, "content": blocks}
                yield {"role": "user", "content": turn_results}
            if last:
                yield {**message, "content": last}
        if results:
            yield {"role": "user", "content": results}

    def _split_turns(self, content: list[Any]) -> list[tuple[list[Json], list[Json]]]:
        """Divide the blocks of the model after each result of a server-run tool. Returns blocks, and the results."""
        turns: list[tuple[list[Json], list[Json]]] = [([], [])]
        for block in map(as_dict, content):
            if (result := self._result_for_model(block)) is not None:
                turns[-1][1].append(result)
                continue
            if turns[-1][1]:
                turns.append(([], []))
            if block.get("type") == "server_tool_use" and block.get("name") in self._tools:
                block = {**block, "type": "tool_use"}
            turns[-1][0].append(block)
        return turns

    def _result_for_model(self, block: Json) -> Json | None:
        """Return the tool result for the result block of a server-run tool; None for any other block."""
        if block.get("type") != _TOOL_SEARCH_RESULT:
            return None
        content = as_dict(block.get("content"))
        result: Json = {"type": "tool_result", "tool_use_id": block.get("tool_use_id")}
        if error := content.get("error_code"):
            return {**result, "content": str(error), "is_error": True}
        return {**result, "content": content.get("tool_references") or NO_TOOL_FOUND_TEXT}

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
                return self._write_shifted(event)
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
                block["input"] = read_json("".join(texts), dict[str, Any]) or {}
            else:
                block[field] = str(block.get(field) or "") + "".join(texts)
        self._texts = {}
        if block.get("type") == "server_tool_use":
            self.calls.append(ServerCall(block["id"], self._tools[block["name"]], as_dict(block.get("input"))))

    def _write_shifted(self, event: Json) -> bytes:
        return _write_frame({**event, "index": self._first_index + int(event.get("index") or 0)})

    def write_outcome(self, call: ServerCall, outcome: Outcome) -> bytes:
        block = self._result_block(call, outcome)
        index = len(self._content)
        self._content.append(block)
        start = {"type": "content_block_start", "index": index, "content_block": block}
        return _write_frame(start) + _write_frame({"type": "content_block_stop", "index": index})

    def _result_block(self, call: ServerCall, outcome: Outcome) -> Json:
        if outcome.error:
            content: Json = {"type": f"{_TOOL_SEARCH_RESULT}_error", "error_code": outcome.error}
        else:
            references = [{"type": "tool_reference", "tool_name": tool.name} for tool in outcome.found]
            content = {"type": "tool_search_tool_search_result", "tool_references": references}
        return {"type": _TOOL_SEARCH_RESULT, "tool_use_id": call.id, "content": content}

    def finish(self, *, is_paused: bool) -> bytes:
        if is_paused:
            self._stop = {"stop_reason": PAUSED, "stop_sequence": None}
        delta = {"type": "message_delta", "delta": self._stop, "usage": sum_usage(self._usages)}
        return _write_frame(delta) + _write_frame({"type": "message_stop"})

    def fail(self, error: Json) -> bytes:
        return _write_frame({"type": "error", "error": error})

    def body(self) -> Json:
        return {**self._message, "content": self._content, **self._stop, "usage": sum_usage(self._usages)}


def _server_id(id: str) -> str:
    """Return the id of a block of a server-run tool, which has a prefix of its own."""
    return ID_PREFIX + re.sub(r"[^A-Za-z0-9_]", "_", id.removeprefix("toolu_"))


def _write_frame(event: Json) -> bytes:
    return encode_event(encode_json(event), str(event.get("type") or ""))
