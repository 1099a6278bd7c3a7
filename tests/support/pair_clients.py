"""Clients of each wire that return the same type of view for a stream or a body, so that they can be compared.

For each wire there are a strict reader of our own, and the helpers of the official SDK as the reference.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import anthropic
import httpx2
import openai
import pydantic

from tests.support import anthropic_client, anthropic_scenarios, responses_clients, sdk
from tests.support.pair_scenes import Scene, TokenUsage
from tests.support.pair_sources import CHAT, MESSAGES, RESPONSES
from tests.support.sdk import Json

ReplyPart: TypeAlias = tuple[str, ...]
"""One part of a reply: its kind, and its text or a call's id, name and arguments."""
KINDS = ("thought", "text", "refusal", "call")


@dataclass
class ReplyView:
    parts: list[ReplyPart] = field(default_factory=list)
    stop: str | None = None
    sequence: str | None = None
    tokens: TokenUsage | None = None
    signatures: list[str] = field(default_factory=list)
    error: str | None = None


class City(pydantic.BaseModel):
    city: str


def merge_parts(parts: Iterable[ReplyPart]) -> list[ReplyPart]:
    """Merge neighbours of one kind, and drop empty parts."""
    merged: list[ReplyPart] = []
    for part in parts:
        if part[0] == "call":
            merged.append(part)
        elif not part[1]:
            continue
        elif merged and merged[-1][0] == part[0]:
            merged[-1] = (part[0], merged[-1][1] + part[1])
        else:
            merged.append(part)
    return merged


def sort_by_kind(parts: Iterable[ReplyPart]) -> list[ReplyPart]:
    """Sort the parts by kind, for wires that have one field per kind and no order."""
    return merge_parts(sorted(parts, key=lambda part: KINDS.index(part[0])))


# ── upstream for the official SDKs ────────────────────────────────────────────────────────────────────────────────


class MockUpstream:
    """Returns scripted responses, and records the requests."""

    def __init__(self) -> None:
        self.requests: list[Json] = []
        self._responses: list[bytes | Json] = []
        http = httpx2.Client(transport=httpx2.MockTransport(self._respond))
        self._openai = openai.OpenAI(
            api_key="none", base_url="http://upstream.test/v1", max_retries=0, http_client=http
        )
        self._anthropic = anthropic.Anthropic(
            api_key="none", base_url="http://upstream.test", max_retries=0, http_client=http
        )

    def _respond(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(json.loads(request.content))
        response = self._responses.pop(0)
        if isinstance(response, dict):
            return httpx2.Response(500 if response.get("error") else 200, json=response)
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=response)

    def _script(self, responses: Iterable[bytes | Json]) -> None:
        self._responses, self.requests = list(responses), []

    def openai(self, *responses: bytes | Json) -> Any:
        self._script(responses)
        return self._openai

    def anthropic(self, *responses: bytes | Json) -> Any:
        self._script(responses)
        return self._anthropic


UPSTREAM = MockUpstream()


def scene_tools(scene: Scene, strict: bool) -> list[Json]:
    """Return the tools of the scene as functions with their flat names."""
    return sdk.function_tools({call.name for call in scene.calls}, strict)


# ── chat completions ──────────────────────────────────────────────────────────────────────────────────────────────

TRUNCATION_ERRORS = (openai.LengthFinishReasonError, openai.ContentFilterFinishReasonError)
"""Errors that parsing helpers raise for a truncated reply."""


def chat_tokens(usage: Json | None) -> TokenUsage | None:
    if not usage:
        return None
    prompt, completion = usage.get("prompt_tokens_details") or {}, usage.get("completion_tokens_details") or {}
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    return TokenUsage(
        usage["prompt_tokens"],
        usage["completion_tokens"],
        prompt.get("cached_tokens") or 0,
        prompt.get("cache_write_tokens") or 0,
        completion.get("reasoning_tokens") or 0,
    )


def chat_message_parts(message: Json) -> tuple[list[ReplyPart], list[str]]:
    """Return the parts and the signatures of a message or a delta."""
    details = message.get("reasoning_details") or []
    signatures = [signature for detail in details if (signature := detail.get("signature") or detail.get("data"))]
    texts = "".join(detail.get("text") or "" for detail in details)
    parts: list[ReplyPart] = [
        ("thought", message.get("reasoning_content") or message.get("reasoning") or texts),
        ("text", message.get("content") or ""),
        ("refusal", message.get("refusal") or ""),
    ]
    return parts, signatures


def chat_call_part(call: Json) -> ReplyPart:
    assert call["type"] == "function"
    return "call", call["id"], call["function"]["name"], call["function"]["arguments"]


def chat_completion_view(completion: Json) -> ReplyView:
    (choice,) = completion["choices"]
    parts, signatures = chat_message_parts(choice["message"])
    parts += map(chat_call_part, choice["message"].get("tool_calls") or ())
    tokens = chat_tokens(completion.get("usage"))
    return ReplyView(merge_parts(parts), choice["finish_reason"], None, tokens, signatures)


def chat_strict(stream: bytes, scene: Scene) -> ReplyView:  # noqa: ARG001
    view = sdk.read_strict(stream)
    assert not view.unreadable
    assert view.done == (view.error is None)
    frames = [frame for frame in sdk.frames(stream) if "error" not in frame]
    assert len({(frame["id"], frame["created"], frame["model"]) for frame in frames}) <= 1, "one reply"
    choice_view = view.choices.get(0, sdk.ChoiceView())
    assert set(view.choices) <= {0}
    parts: list[ReplyPart] = [
        ("thought", choice_view.reasoning),
        ("text", choice_view.text),
        ("refusal", choice_view.refusal),
    ]
    parts += [("call", *call) for call in choice_view.calls]
    deltas = [choice["delta"] for frame in frames for choice in frame["choices"]]
    signatures = [signature for delta in deltas for signature in chat_message_parts(delta)[1]]
    return ReplyView(merge_parts(parts), choice_view.finish, None, chat_tokens(view.usage), signatures, view.error)


def chat_create(stream: bytes, scene: Scene) -> ReplyView:  # noqa: ARG001
    """Read with `create(stream=True)` and a simple loop, as in tutorials."""
    view = ReplyView()
    calls: dict[int, ReplyPart] = {}
    try:
        for chunk in UPSTREAM.openai(stream).chat.completions.create(model="m", messages=[], stream=True):
            view.tokens = chat_tokens(chunk.usage.to_dict()) if chunk.usage else view.tokens
            for choice in chunk.choices:
                parts, signatures = chat_message_parts(choice.delta.to_dict())
                view.parts += parts
                view.signatures += signatures
                for entry in choice.delta.tool_calls or ():
                    kind, id, name, args = calls.get(entry.index, ("call", "", "", ""))
                    function = entry.function
                    id, name = id + (entry.id or ""), name + (function.name or "")
                    calls[entry.index] = (kind, id, name, args + (function.arguments or ""))
                view.stop = choice.finish_reason or view.stop
    except openai.APIError as error:
        view.error = error.message
    view.parts = sort_by_kind([*view.parts, *calls.values()])
    return view


def chat_helper(stream: bytes, scene: Scene, strict: bool = False, **options: Any) -> ReplyView:
    """Read with the `stream` helper, which joins deltas and parses the arguments of strict tools incrementally."""
    completions = UPSTREAM.openai(stream).chat.completions
    try:
        with completions.stream(model="m", messages=[], tools=scene_tools(scene, strict), **options) as helper:
            helper.until_done()
            completion = helper.get_final_completion()
    except openai.APIError as error:
        return ReplyView(error=error.message)
    except TRUNCATION_ERRORS as error:
        view = chat_truncated_view(error)
        return replace(view, tokens=view.tokens or scene.tokens)  # it may raise before the usage arrives
    return chat_parsed_view(completion, strict, options)


def chat_truncated_view(error: openai.LengthFinishReasonError | openai.ContentFilterFinishReasonError) -> ReplyView:
    assert error.completion is not None
    return chat_completion_view(error.completion.to_dict())


def chat_parsed_view(completion: Any, strict: bool, options: Any) -> ReplyView:
    message = completion.choices[0].message
    assert message.role == "assistant"
    if strict:
        for call in message.tool_calls or ():
            assert call.function.parsed_arguments == json.loads(call.function.arguments)
    assert not options or message.parsed == City(city="Paris")
    return chat_completion_view(completion.to_dict(warnings=False))


def chat_strict_helper(stream: bytes, scene: Scene) -> ReplyView:
    """Read with the `stream` helper, strict tools and a parsed response format."""
    return chat_helper(stream, scene, True, **({"response_format": City} if scene.json_text else {}))


def chat_body_view(body: Json, scene: Scene) -> ReplyView:
    """Read a body with the `parse` helper."""
    options: Any = {"response_format": City} if scene.json_text else {}
    try:
        completions = UPSTREAM.openai(body).chat.completions
        completion = completions.parse(model="m", messages=[], tools=scene_tools(scene, True), **options)
    except openai.APIStatusError as error:
        body_error: Any = error.body
        return ReplyView(error=body_error["message"])
    except TRUNCATION_ERRORS as error:
        return chat_truncated_view(error)
    return chat_parsed_view(completion, True, options)


# ── Anthropic Messages ────────────────────────────────────────────────────────────────────────────────────────────

MESSAGES_STOPS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}


def messages_tokens(usage: Json) -> TokenUsage:
    cached, written = usage.get("cache_read_input_tokens") or 0, usage.get("cache_creation_input_tokens") or 0
    reasoning = (usage.get("output_tokens_details") or {}).get("thinking_tokens") or 0
    return TokenUsage(usage["input_tokens"] + cached + written, usage["output_tokens"], cached, written, reasoning)


def messages_view(view: anthropic_client.MessageView, stop_details: Json | None) -> ReplyView:
    parts: list[ReplyPart] = []
    signatures = []
    for block in view.blocks:
        match block["type"]:
            case "text":
                parts.append(("text", block["text"]))
            case "thinking":
                parts.append(("thought", block["thinking"]))
                signatures += [block["signature"]] if block.get("signature") else []
            case "redacted_thinking":
                signatures.append(block["data"])
            case _:
                assert block["type"] == "tool_use"
                parts.append(("call", block["id"], block["name"], block["input"] or "{}"))
    parts.append(("refusal", (stop_details or {}).get("explanation") or ""))
    error = view.error[1] if view.error else None
    stop = MESSAGES_STOPS[view.stop] if view.stop else None
    tokens = messages_tokens(view.usage) if view.usage and stop else None
    return ReplyView(merge_parts(parts), stop, view.sequence, tokens, signatures, error)


def messages_strict(stream: bytes, scene: Scene) -> ReplyView:  # noqa: ARG001
    view = anthropic_client.read_strict(stream)
    assert view.done == (view.error is None)
    anthropic_client.check_args(view)
    ends = [data["delta"] for name, data in anthropic_client.events(stream) if name == "message_delta"]
    return messages_view(view, ends[-1].get("stop_details") if ends else None)


def messages_helper(stream: bytes, scene: Scene) -> ReplyView:
    """Read with the `stream` helper, and return its final message."""
    options: Any = {"output_format": City} if scene.json_text else {}
    try:
        with UPSTREAM.anthropic(stream).messages.stream(model="m", max_tokens=1, messages=[], **options) as helper:
            helper.until_done()
            message = helper.get_final_message()
            assert not options or message.parsed_output == City(city="Paris")
    except anthropic.APIStatusError as error:
        body: Any = error.body
        return ReplyView(error=body["error"]["message"])
    return messages_message_view(json.loads(message.to_json(warnings=False)))


def messages_message_view(message: Json) -> ReplyView:
    return messages_view(anthropic_client.view_of_message(message, done=True), message.get("stop_details"))


def messages_body_view(body: Json, scene: Scene) -> ReplyView:
    options: Any = {"output_format": City} if scene.json_text else {}
    try:
        message = UPSTREAM.anthropic(body).messages.parse(model="m", max_tokens=1, messages=[], **options)
        assert not options or message.parsed_output == City(city="Paris")
    except anthropic.APIStatusError as error:
        body_error: Any = error.body
        return ReplyView(error=body_error["error"]["message"])
    return messages_message_view(json.loads(message.to_json(warnings=False)))


def run_tools(turns: Iterable[bytes], names: Iterable[str]) -> tuple[list[tuple[str, Json]], list[Json], str]:
    """Run the tool runner of the SDK. Returns the calls that it ran, its requests and its final text."""
    called: list[tuple[str, Json]] = []

    def make_tool(name: str) -> Any:
        def run(**arguments: Any) -> str:
            called.append((name, arguments))
            return f"{name} is done"

        return anthropic.beta_tool(run, name=name, description="", input_schema={"type": "object"})

    tools = [make_tool(name) for name in sorted(set(names))]
    request: Any = {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "Go."}], "stream": True}
    text = ""
    for turn in UPSTREAM.anthropic(*turns).beta.messages.tool_runner(**request, tools=tools, thread=False):
        text = "".join(block.text for block in turn.get_final_message().content if block.type == "text")
    return called, UPSTREAM.requests, text


# ── Responses ─────────────────────────────────────────────────────────────────────────────────────────────────────


def responses_item_parts(item: Json) -> list[ReplyPart]:
    text = responses_clients.item_text(item)
    match item["type"]:
        case "reasoning":
            return [("thought", text)]
        case "message":
            refused = [part["type"] for part in item["content"]] == ["refusal"]
            return [("refusal" if refused else "text", text)]
        case "custom_tool_call":
            return [("call", item["call_id"], item["name"], json.dumps({"input": item["input"]}))]
        case _:
            assert item["type"] == "function_call"
            space = f"{item['namespace']}__" if item.get("namespace") else ""
            return [("call", item["call_id"], space + item["name"], item["arguments"])]


def responses_view(response: Json) -> ReplyView:
    if response.get("error"):
        return ReplyView(error=response["error"]["message"])
    output, usage = response["output"], response["usage"]
    parts = merge_parts(part for item in output for part in responses_item_parts(item))
    details = response.get("incomplete_details")
    stop = "tool_calls" if any(part[0] == "call" for part in parts) else "stop"
    if details:
        stop = {"max_output_tokens": "length", "content_filter": "content_filter"}[details["reason"]]
    assert response["status"] == ("incomplete" if details else "completed")
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    inputs, outputs = usage["input_tokens_details"], usage["output_tokens_details"]
    counts = usage["input_tokens"], usage["output_tokens"], inputs["cached_tokens"], inputs["cache_write_tokens"]
    signatures = [item["encrypted_content"] for item in output if item.get("encrypted_content")]
    return ReplyView(parts, stop, None, TokenUsage(*counts, outputs["reasoning_tokens"]), signatures)


def responses_strict(stream: bytes, scene: Scene) -> ReplyView:
    responses_clients.read_strict(stream)
    custom = {call.name for call in scene.calls if call.text is not None}
    frames = responses_clients.frames(stream)
    ids: dict[int, set[tuple[str, str]]] = {}
    for frame in frames:
        if "item" in frame:
            assert (frame["item"]["type"] == "custom_tool_call") == (frame["item"].get("name") in custom)
            ids.setdefault(frame["output_index"], set()).add((frame["item"]["id"], frame["item"].get("call_id", "")))
    assert all(len(item_ids) == 1 for item_ids in ids.values()), "the id of an item must not change"
    return responses_view(frames[-1]["response"])


def responses_create(stream: bytes, scene: Scene) -> ReplyView:  # noqa: ARG001
    """Read with `create(stream=True)` as agents do: text from deltas, calls from `output_item.done`."""
    parts: list[ReplyPart] = []
    kinds = {
        "response.output_text.delta": "text",
        "response.refusal.delta": "refusal",
        "response.reasoning_summary_text.delta": "thought",
        "response.reasoning_text.delta": "thought",
    }
    last: Any = None
    for event in UPSTREAM.openai(stream).responses.create(model="m", input="x", stream=True):
        if event.type in kinds:
            parts.append((kinds[event.type], event.delta))
        elif event.type == "response.output_item.done" and event.item.type.endswith("_call"):
            parts += responses_item_parts(event.item.to_dict())
        last = event
    view = responses_view(last.response.to_dict())
    view.parts = merge_parts(parts)
    return view


def responses_helper(stream: bytes, scene: Scene) -> ReplyView:
    """Read with the `stream` helper, which accumulates the response and parses strict arguments."""
    options: Any = {"text_format": City} if scene.json_text else {}
    tools = scene.tools or flatten_tools(scene_tools(scene, True))
    with UPSTREAM.openai(stream).responses.stream(model="m", input="x", tools=tools, **options) as helper:
        events = list(helper)
        last: Any = events[-1]
        if last.type != "response.completed":
            try:
                helper.get_final_response()
            except RuntimeError:
                return responses_view(last.response.to_dict())
            raise AssertionError("get_final_response() should have raised")
        response = helper.get_final_response()
    assert not options or response.output_parsed == City(city="Paris")
    check_parsed_arguments(response, scene)
    return responses_view(response.to_dict(warnings=False))


def check_parsed_arguments(response: Any, scene: Scene) -> None:
    for item in response.output:
        if item.type == "function_call" and not scene.tools:
            assert item.parsed_arguments == json.loads(item.arguments)


def responses_body_view(body: Json, scene: Scene) -> ReplyView:
    options: Any = {"text_format": City} if scene.json_text else {}
    tools = scene.tools or flatten_tools(scene_tools(scene, True))
    try:
        if scene.stop in ("length", "content_filter"):  # truncated text is not valid JSON
            response = UPSTREAM.openai(body).responses.create(model="m", input="x")
        else:
            response = UPSTREAM.openai(body).responses.parse(model="m", input="x", tools=tools, **options)
            check_parsed_arguments(response, scene)
            assert not options or response.output_parsed == City(city="Paris")
    except openai.APIStatusError as error:
        body_error: Any = error.body
        return ReplyView(error=body_error["message"])
    return responses_view(response.to_dict(warnings=False))


def flatten_tools(tools: list[Json]) -> list[Json]:
    return [{"type": "function", **tool["function"]} for tool in tools]


StreamReader: TypeAlias = Callable[[bytes, Scene], ReplyView]

STRICT_READERS: dict[str, StreamReader] = {
    CHAT: chat_strict,
    MESSAGES: messages_strict,
    RESPONSES: responses_strict,
}
SDK_READERS: dict[str, list[StreamReader]] = {
    CHAT: [chat_create, chat_helper, chat_strict_helper],
    MESSAGES: [messages_helper],
    RESPONSES: [responses_create, responses_helper],
}
BODY_READERS: dict[str, Callable[[Json, Scene], ReplyView]] = {
    CHAT: chat_body_view,
    MESSAGES: messages_body_view,
    RESPONSES: responses_body_view,
}


# ── follow-up requests ────────────────────────────────────────────────────────────────────────────────────────────


def chat_follow_up(stream: bytes, scene: Scene) -> Json:
    """Return a request with the message of the SDK and a result for each call."""
    tools = scene_tools(scene, strict=False)
    with UPSTREAM.openai(stream).chat.completions.stream(model="m", messages=[], tools=tools) as helper:
        message = helper.get_final_completion().choices[0].message.to_dict(warnings=False)
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "done"} for call in message["tool_calls"]]
    return {"model": "m", "tools": tools, "messages": [{"role": "user", "content": "Go."}, message, *results]}


def messages_follow_up(stream: bytes, scene: Scene) -> Json:
    """Return the second request of the SDK's tool runner."""
    done = [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}]
    last = anthropic_scenarios.sse(anthropic_scenarios.message_start(), *done, {"type": "message_stop"})
    _, requests, _ = run_tools([stream, last], [call.name for call in scene.calls])
    return requests[1]


def responses_follow_up(stream: bytes, scene: Scene) -> Json:
    """Return a request with all items that are done, as Codex sends them back, and a result for each call."""
    frames = responses_clients.frames(stream)
    items = [frame["item"] for frame in frames if frame["type"] == "response.output_item.done"]
    output_types = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
    calls = [item for item in items if item["type"] in output_types]
    results = [{"type": output_types[call["type"]], "call_id": call["call_id"], "output": "done"} for call in calls]
    tools = scene.tools or flatten_tools(scene_tools(scene, strict=False))
    user = {"role": "user", "content": "Go."}
    return {"model": "m", "store": False, "tools": tools, "input": [user, *items, *results]}


FOLLOW_UPS = {CHAT: chat_follow_up, MESSAGES: messages_follow_up, RESPONSES: responses_follow_up}


def chat_replay_view(request: Json) -> ReplyView:
    (message,) = [message for message in request["messages"] if message["role"] == "assistant"]
    parts, signatures = chat_message_parts(message)
    parts += map(chat_call_part, message["tool_calls"])
    ids = [call["id"] for call in message["tool_calls"]]
    assert [result["tool_call_id"] for result in request["messages"] if result["role"] == "tool"] == ids
    return ReplyView(merge_parts(parts), signatures=signatures)


def messages_replay_view(request: Json) -> ReplyView:
    (message,) = [message for message in request["messages"] if message["role"] == "assistant"]
    blocks = [{**block, "input": json.dumps(block.get("input"))} for block in message["content"]]
    view = messages_view(anthropic_client.MessageView(blocks=blocks), None)
    ids = [part[1] for part in view.parts if part[0] == "call"]
    assert [block["tool_use_id"] for block in request["messages"][-1]["content"]] == ids
    return view


def responses_replay_view(request: Json) -> ReplyView:
    items = [item for item in request["input"] if item.get("role") != "user"]
    for item in items:
        if isinstance(item.get("content"), str):
            item["content"] = [{"type": "output_text", "text": item["content"]}]
    results = [item for item in items if item.get("type", "").endswith("_output")]
    parts = [
        part for item in items if item not in results for part in responses_item_parts({"type": "message", **item})
    ]
    assert [item["call_id"] for item in results] == [part[1] for part in parts if part[0] == "call"]
    signatures = [item["encrypted_content"] for item in items if item.get("encrypted_content")]
    return ReplyView(merge_parts(parts), signatures=signatures)


REPLAY_READERS = {CHAT: chat_replay_view, MESSAGES: messages_replay_view, RESPONSES: responses_replay_view}
