"""What clients of each wire understand of a stream or a body, in one form, so that all of them can be compared.

For each wire there are a strict client of our own and the helpers of the official SDK, the oracle.
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
from tests.support.pair_scenes import Scene, Tokens
from tests.support.pair_sources import CHAT, MESSAGES, RESPONSES
from tests.support.sdk import Json

Said: TypeAlias = tuple[str, ...]
"""One thing that was said: its kind, and its text, or a call's id, name and arguments."""
KINDS = ("thought", "text", "refusal", "call")


@dataclass
class Understood:
    said: list[Said] = field(default_factory=list)
    stop: str | None = None
    sequence: str | None = None
    tokens: Tokens | None = None
    seals: list[str] = field(default_factory=list)
    error: str | None = None


class City(pydantic.BaseModel):
    city: str


def joined(said: Iterable[Said]) -> list[Said]:
    """Neighbours of one kind are one, and what is empty is nothing."""
    out: list[Said] = []
    for one in said:
        if one[0] == "call":
            out.append(one)
        elif not one[1]:
            continue
        elif out and out[-1][0] == one[0]:
            out[-1] = (one[0], out[-1][1] + one[1])
        else:
            out.append(one)
    return out


def by_kind(said: Iterable[Said]) -> list[Said]:
    """For wires that have a field for each kind, and no order."""
    return joined(sorted(said, key=lambda one: KINDS.index(one[0])))


# ── upstreams for the official clients ────────────────────────────────────────────────────────────────────────────


class Upstream:
    """Answers requests with what it was given, and keeps them."""

    def __init__(self) -> None:
        self.requests: list[Json] = []
        self._answers: list[bytes | Json] = []
        http = httpx2.Client(transport=httpx2.MockTransport(self._answer))
        self._openai = openai.OpenAI(
            api_key="none", base_url="http://upstream.test/v1", max_retries=0, http_client=http
        )
        self._anthropic = anthropic.Anthropic(
            api_key="none", base_url="http://upstream.test", max_retries=0, http_client=http
        )

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(json.loads(request.content))
        answer = self._answers.pop(0)
        if isinstance(answer, dict):
            return httpx2.Response(500 if answer.get("error") else 200, json=answer)
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=answer)

    def _give(self, answers: Iterable[bytes | Json]) -> None:
        self._answers, self.requests = list(answers), []

    def openai(self, *answers: bytes | Json) -> Any:
        self._give(answers)
        return self._openai

    def anthropic(self, *answers: bytes | Json) -> Any:
        self._give(answers)
        return self._anthropic


UPSTREAM = Upstream()


def functions(scene: Scene, strict: bool) -> list[Json]:
    """The scene's tools as functions, under their flat names."""
    return sdk.tools({call.name for call in scene.calls}, strict)


# ── chat completions ──────────────────────────────────────────────────────────────────────────────────────────────

CUT = (openai.LengthFinishReasonError, openai.ContentFilterFinishReasonError)
"""What helpers that parse make of a reply that did not come to its end."""


def chat_tokens(usage: Json | None) -> Tokens | None:
    if not usage:
        return None
    prompt, completion = usage.get("prompt_tokens_details") or {}, usage.get("completion_tokens_details") or {}
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    return Tokens(
        usage["prompt_tokens"],
        usage["completion_tokens"],
        prompt.get("cached_tokens") or 0,
        prompt.get("cache_write_tokens") or 0,
        completion.get("reasoning_tokens") or 0,
    )


def chat_message(message: Json) -> tuple[list[Said], list[str]]:
    """What a message, or a delta of one, says, and the seals in it."""
    details = message.get("reasoning_details") or []
    seals = [seal for detail in details if (seal := detail.get("signature") or detail.get("data"))]
    texts = "".join(detail.get("text") or "" for detail in details)
    said: list[Said] = [
        ("thought", message.get("reasoning_content") or message.get("reasoning") or texts),
        ("text", message.get("content") or ""),
        ("refusal", message.get("refusal") or ""),
    ]
    return said, seals


def chat_call(call: Json) -> Said:
    assert call["type"] == "function"
    return "call", call["id"], call["function"]["name"], call["function"]["arguments"]


def chat_completion(completion: Json) -> Understood:
    (choice,) = completion["choices"]
    said, seals = chat_message(choice["message"])
    said += map(chat_call, choice["message"].get("tool_calls") or ())
    tokens = chat_tokens(completion.get("usage"))
    return Understood(joined(said), choice["finish_reason"], None, tokens, seals)


def chat_strict(stream: bytes, scene: Scene) -> Understood:  # noqa: ARG001
    heard = sdk.listen(stream)
    assert not heard.unreadable
    assert heard.done == (heard.error is None)
    told = [frame for frame in sdk.frames(stream) if "error" not in frame]
    assert len({(frame["id"], frame["created"], frame["model"]) for frame in told}) <= 1, "one reply"
    one = heard.choices.get(0, sdk.Said())
    assert set(heard.choices) <= {0}
    said: list[Said] = [("thought", one.reasoning), ("text", one.text), ("refusal", one.refusal)]
    said += [("call", *call) for call in one.calls]
    deltas = [choice["delta"] for frame in told for choice in frame["choices"]]
    seals = [seal for delta in deltas for seal in chat_message(delta)[1]]
    return Understood(joined(said), one.finish, None, chat_tokens(heard.usage), seals, heard.error)


def chat_create(stream: bytes, scene: Scene) -> Understood:  # noqa: ARG001
    """`create(stream=True)`, and a loop as every tutorial has it."""
    heard = Understood()
    calls: dict[int, Said] = {}
    try:
        for chunk in UPSTREAM.openai(stream).chat.completions.create(model="m", messages=[], stream=True):
            heard.tokens = chat_tokens(chunk.usage.to_dict()) if chunk.usage else heard.tokens
            for choice in chunk.choices:
                said, seals = chat_message(choice.delta.to_dict())
                heard.said += said
                heard.seals += seals
                for entry in choice.delta.tool_calls or ():
                    kind, id, name, args = calls.get(entry.index, ("call", "", "", ""))
                    function = entry.function
                    id, name = id + (entry.id or ""), name + (function.name or "")
                    calls[entry.index] = (kind, id, name, args + (function.arguments or ""))
                heard.stop = choice.finish_reason or heard.stop
    except openai.APIError as error:
        heard.error = error.message
    heard.said = by_kind([*heard.said, *calls.values()])
    return heard


def chat_helper(stream: bytes, scene: Scene, strict: bool = False, **how: Any) -> Understood:
    """The `stream` helper, which joins deltas by itself and, for strict tools, parses arguments on the way."""
    completions = UPSTREAM.openai(stream).chat.completions
    try:
        with completions.stream(model="m", messages=[], tools=functions(scene, strict), **how) as helper:
            helper.until_done()
            completion = helper.get_final_completion()
    except openai.APIError as error:
        return Understood(error=error.message)
    except CUT as error:
        heard = chat_cut(error)
        return replace(heard, tokens=heard.tokens or scene.tokens)  # it may give up before it has heard of them
    return chat_parsed(completion, strict, how)


def chat_cut(error: openai.LengthFinishReasonError | openai.ContentFilterFinishReasonError) -> Understood:
    assert error.completion is not None
    return chat_completion(error.completion.to_dict())


def chat_parsed(completion: Any, strict: bool, how: Any) -> Understood:
    message = completion.choices[0].message
    assert message.role == "assistant"
    if strict:
        for call in message.tool_calls or ():
            assert call.function.parsed_arguments == json.loads(call.function.arguments)
    assert not how or message.parsed == City(city="Paris")
    return chat_completion(completion.to_dict(warnings=False))


def chat_strict_helper(stream: bytes, scene: Scene) -> Understood:
    """With strict tools, and an answer that is parsed."""
    return chat_helper(stream, scene, True, **({"response_format": City} if scene.json_text else {}))


def chat_whole(body: Json, scene: Scene) -> Understood:
    """The `parse` helper."""
    how: Any = {"response_format": City} if scene.json_text else {}
    try:
        completions = UPSTREAM.openai(body).chat.completions
        completion = completions.parse(model="m", messages=[], tools=functions(scene, True), **how)
    except openai.APIStatusError as error:
        given: Any = error.body
        return Understood(error=given["message"])
    except CUT as error:
        return chat_cut(error)
    return chat_parsed(completion, True, how)


# ── Anthropic Messages ────────────────────────────────────────────────────────────────────────────────────────────

MESSAGES_STOPS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}


def messages_tokens(usage: Json) -> Tokens:
    cached, written = usage.get("cache_read_input_tokens") or 0, usage.get("cache_creation_input_tokens") or 0
    thought = (usage.get("output_tokens_details") or {}).get("thinking_tokens") or 0
    return Tokens(usage["input_tokens"] + cached + written, usage["output_tokens"], cached, written, thought)


def messages_heard(heard: anthropic_client.Heard, stop_details: Json | None) -> Understood:
    said: list[Said] = []
    seals = []
    for block in heard.blocks:
        match block["type"]:
            case "text":
                said.append(("text", block["text"]))
            case "thinking":
                said.append(("thought", block["thinking"]))
                seals += [block["signature"]] if block.get("signature") else []
            case "redacted_thinking":
                seals.append(block["data"])
            case _:
                assert block["type"] == "tool_use"
                said.append(("call", block["id"], block["name"], block["input"] or "{}"))
    said.append(("refusal", (stop_details or {}).get("explanation") or ""))
    error = heard.error[1] if heard.error else None
    stop = MESSAGES_STOPS[heard.stop] if heard.stop else None
    tokens = messages_tokens(heard.usage) if heard.usage and stop else None
    return Understood(joined(said), stop, heard.sequence, tokens, seals, error)


def messages_strict(stream: bytes, scene: Scene) -> Understood:  # noqa: ARG001
    heard = anthropic_client.listen(stream)
    assert heard.done == (heard.error is None)
    anthropic_client.check_args(heard)
    ends = [data["delta"] for name, data in anthropic_client.events(stream) if name == "message_delta"]
    return messages_heard(heard, ends[-1].get("stop_details") if ends else None)


def messages_helper(stream: bytes, scene: Scene) -> Understood:
    """The `stream` helper, and the message that it ends with."""
    how: Any = {"output_format": City} if scene.json_text else {}
    try:
        with UPSTREAM.anthropic(stream).messages.stream(model="m", max_tokens=1, messages=[], **how) as helper:
            helper.until_done()
            message = helper.get_final_message()
            assert not how or message.parsed_output == City(city="Paris")
    except anthropic.APIStatusError as error:
        body: Any = error.body
        return Understood(error=body["error"]["message"])
    return messages_message(json.loads(message.to_json(warnings=False)))


def messages_message(message: Json) -> Understood:
    return messages_heard(anthropic_client.of_message(message, done=True), message.get("stop_details"))


def messages_whole(body: Json, scene: Scene) -> Understood:
    how: Any = {"output_format": City} if scene.json_text else {}
    try:
        message = UPSTREAM.anthropic(body).messages.parse(model="m", max_tokens=1, messages=[], **how)
        assert not how or message.parsed_output == City(city="Paris")
    except anthropic.APIStatusError as error:
        given: Any = error.body
        return Understood(error=given["error"]["message"])
    return messages_message(json.loads(message.to_json(warnings=False)))


def run_tools(turns: Iterable[bytes], names: Iterable[str]) -> tuple[list[tuple[str, Json]], list[Json], str]:
    """The tool runner of the SDK: which calls it made, what it asked, and the text that it ended with."""
    called: list[tuple[str, Json]] = []

    def tool(name: str) -> Any:
        def run(**given: Any) -> str:
            called.append((name, given))
            return f"{name} is done"

        return anthropic.beta_tool(run, name=name, description="", input_schema={"type": "object"})

    tools = [tool(name) for name in sorted(set(names))]
    asked: Any = {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "Go."}], "stream": True}
    text = ""
    for turn in UPSTREAM.anthropic(*turns).beta.messages.tool_runner(**asked, tools=tools, thread=False):
        text = "".join(block.text for block in turn.get_final_message().content if block.type == "text")
    return called, UPSTREAM.requests, text


# ── Responses ─────────────────────────────────────────────────────────────────────────────────────────────────────


def responses_item(item: Json) -> list[Said]:
    text = responses_clients.said(item)
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


def responses_response(response: Json) -> Understood:
    if response.get("error"):
        return Understood(error=response["error"]["message"])
    output, usage = response["output"], response["usage"]
    said = joined(one for item in output for one in responses_item(item))
    details = response.get("incomplete_details")
    stop = "tool_calls" if any(one[0] == "call" for one in said) else "stop"
    if details:
        stop = {"max_output_tokens": "length", "content_filter": "content_filter"}[details["reason"]]
    assert response["status"] == ("incomplete" if details else "completed")
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    inputs, outputs = usage["input_tokens_details"], usage["output_tokens_details"]
    counts = usage["input_tokens"], usage["output_tokens"], inputs["cached_tokens"], inputs["cache_write_tokens"]
    seals = [item["encrypted_content"] for item in output if item.get("encrypted_content")]
    return Understood(said, stop, None, Tokens(*counts, outputs["reasoning_tokens"]), seals)


def responses_strict(stream: bytes, scene: Scene) -> Understood:
    responses_clients.listen(stream)
    custom = {call.name for call in scene.calls if call.text is not None}
    told = responses_clients.frames(stream)
    ids: dict[int, set[tuple[str, str]]] = {}
    for frame in told:
        if "item" in frame:
            assert (frame["item"]["type"] == "custom_tool_call") == (frame["item"].get("name") in custom)
            ids.setdefault(frame["output_index"], set()).add((frame["item"]["id"], frame["item"].get("call_id", "")))
    assert all(len(of_one) == 1 for of_one in ids.values()), "one id from start to end"
    return responses_response(told[-1]["response"])


def responses_create(stream: bytes, scene: Scene) -> Understood:  # noqa: ARG001
    """`create(stream=True)`: as an agent does it, text from deltas and calls from what is done."""
    said: list[Said] = []
    kinds = {
        "response.output_text.delta": "text",
        "response.refusal.delta": "refusal",
        "response.reasoning_summary_text.delta": "thought",
        "response.reasoning_text.delta": "thought",
    }
    last: Any = None
    for event in UPSTREAM.openai(stream).responses.create(model="m", input="x", stream=True):
        if event.type in kinds:
            said.append((kinds[event.type], event.delta))
        elif event.type == "response.output_item.done" and event.item.type.endswith("_call"):
            said += responses_item(event.item.to_dict())
        last = event
    heard = responses_response(last.response.to_dict())
    heard.said = joined(said)
    return heard


def responses_helper(stream: bytes, scene: Scene) -> Understood:
    """The `stream` helper, which keeps a response of its own and parses what is strict."""
    how: Any = {"text_format": City} if scene.json_text else {}
    tools = scene.tools or flat(functions(scene, True))
    with UPSTREAM.openai(stream).responses.stream(model="m", input="x", tools=tools, **how) as helper:
        events = list(helper)
        last: Any = events[-1]
        if last.type != "response.completed":
            try:
                helper.get_final_response()
            except RuntimeError:
                return responses_response(last.response.to_dict())
            raise AssertionError("no final response was to be expected")
        response = helper.get_final_response()
    assert not how or response.output_parsed == City(city="Paris")
    responses_parsed(response, scene)
    return responses_response(response.to_dict(warnings=False))


def responses_parsed(response: Any, scene: Scene) -> None:
    for item in response.output:
        if item.type == "function_call" and not scene.tools:
            assert item.parsed_arguments == json.loads(item.arguments)


def responses_whole(body: Json, scene: Scene) -> Understood:
    how: Any = {"text_format": City} if scene.json_text else {}
    tools = scene.tools or flat(functions(scene, True))
    try:
        if scene.stop in ("length", "content_filter"):  # what was cut is no JSON
            response = UPSTREAM.openai(body).responses.create(model="m", input="x")
        else:
            response = UPSTREAM.openai(body).responses.parse(model="m", input="x", tools=tools, **how)
            responses_parsed(response, scene)
            assert not how or response.output_parsed == City(city="Paris")
    except openai.APIStatusError as error:
        given: Any = error.body
        return Understood(error=given["message"])
    return responses_response(response.to_dict(warnings=False))


def flat(tools: list[Json]) -> list[Json]:
    return [{"type": "function", **tool["function"]} for tool in tools]


Listener: TypeAlias = Callable[[bytes, Scene], Understood]

STRICT: dict[str, Listener] = {
    CHAT: chat_strict,
    MESSAGES: messages_strict,
    RESPONSES: responses_strict,
}
OFFICIAL: dict[str, list[Listener]] = {
    CHAT: [chat_create, chat_helper, chat_strict_helper],
    MESSAGES: [messages_helper],
    RESPONSES: [responses_create, responses_helper],
}
WHOLE: dict[str, Callable[[Json, Scene], Understood]] = {
    CHAT: chat_whole,
    MESSAGES: messages_whole,
    RESPONSES: responses_whole,
}


# ── what a client sends next ──────────────────────────────────────────────────────────────────────────────────────


def chat_next(stream: bytes, scene: Scene) -> Json:
    """The message as the SDK has it, and a result for each of its calls."""
    tools = functions(scene, strict=False)
    with UPSTREAM.openai(stream).chat.completions.stream(model="m", messages=[], tools=tools) as helper:
        message = helper.get_final_completion().choices[0].message.to_dict(warnings=False)
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "done"} for call in message["tool_calls"]]
    return {"model": "m", "tools": tools, "messages": [{"role": "user", "content": "Go."}, message, *results]}


def messages_next(stream: bytes, scene: Scene) -> Json:
    """What the tool runner of the SDK sends."""
    done = [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}]
    last = anthropic_scenarios.sse(anthropic_scenarios.begin(), *done, {"type": "message_stop"})
    _, requests, _ = run_tools([stream, last], [call.name for call in scene.calls])
    return requests[1]


def responses_next(stream: bytes, scene: Scene) -> Json:
    """All items that are done, as Codex sends them back, and a result for each call."""
    told = responses_clients.frames(stream)
    items = [frame["item"] for frame in told if frame["type"] == "response.output_item.done"]
    kinds = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
    calls = [item for item in items if item["type"] in kinds]
    results = [{"type": kinds[call["type"]], "call_id": call["call_id"], "output": "done"} for call in calls]
    tools = scene.tools or flat(functions(scene, strict=False))
    go = {"role": "user", "content": "Go."}
    return {"model": "m", "store": False, "tools": tools, "input": [go, *items, *results]}


NEXT = {CHAT: chat_next, MESSAGES: messages_next, RESPONSES: responses_next}


def chat_replayed(request: Json) -> Understood:
    (message,) = [message for message in request["messages"] if message["role"] == "assistant"]
    said, seals = chat_message(message)
    said += map(chat_call, message["tool_calls"])
    ids = [call["id"] for call in message["tool_calls"]]
    assert [one["tool_call_id"] for one in request["messages"] if one["role"] == "tool"] == ids
    return Understood(joined(said), seals=seals)


def messages_replayed(request: Json) -> Understood:
    (message,) = [message for message in request["messages"] if message["role"] == "assistant"]
    blocks = [{**block, "input": json.dumps(block.get("input"))} for block in message["content"]]
    heard = messages_heard(anthropic_client.Heard(blocks=blocks), None)
    ids = [one[1] for one in heard.said if one[0] == "call"]
    assert [block["tool_use_id"] for block in request["messages"][-1]["content"]] == ids
    return heard


def responses_replayed(request: Json) -> Understood:
    items = [item for item in request["input"] if item.get("role") != "user"]
    for item in items:
        if isinstance(item.get("content"), str):
            item["content"] = [{"type": "output_text", "text": item["content"]}]
    results = [item for item in items if item.get("type", "").endswith("_output")]
    said = [one for item in items if item not in results for one in responses_item({"type": "message", **item})]
    assert [item["call_id"] for item in results] == [one[1] for one in said if one[0] == "call"]
    seals = [item["encrypted_content"] for item in items if item.get("encrypted_content")]
    return Understood(joined(said), seals=seals)


REPLAYED = {CHAT: chat_replayed, MESSAGES: messages_replayed, RESPONSES: responses_replayed}
