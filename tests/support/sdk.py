"""Two clients for Chat Completions streams: a strict reader of our own, and the official SDK as the reference.

Both return the same type of view, so that they can be compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx2
import openai

Json = dict[str, Any]


@dataclass
class ChoiceView:
    """A client's view of one choice. A call is (id, name, arguments)."""

    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    calls: list[tuple[str, str, str]] = field(default_factory=list)
    finish: str | None = None


@dataclass
class StreamView:
    """A client's view of a stream. `done`: the stream ended with [DONE]."""

    choices: dict[int, ChoiceView] = field(default_factory=dict)
    usage: Json | None = None
    error: str | None = None
    done: bool = False
    unreadable: list[str] = field(default_factory=list)


# ── strict reader ─────────────────────────────────────────────────────────────────────────────────────────────────


def events(stream: bytes) -> Iterator[str]:
    """Yield the data of each event."""
    text = stream.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    for block in text.split("\n\n"):
        lines = [line.removeprefix("data:") for line in block.split("\n") if line.startswith("data:")]
        if lines:
            yield "\n".join(line.removeprefix(" ") for line in lines)


def frames(stream: bytes) -> list[Json]:
    return [json.loads(data) for data in events(stream) if data.startswith("{")]


def read_strict(stream: bytes) -> StreamView:
    """Read a stream and assert everything that any known client relies on."""
    view = StreamView()
    for data in events(stream):
        assert not view.done, f"after [DONE]: {data}"
        assert view.error is None, f"after an error: {data}"
        if data == "[DONE]":
            view.done = True
            continue
        chunk = _parse_chunk(data)
        if chunk is None:
            view.unreadable.append(data)
        elif chunk.get("error"):
            view.error = chunk["error"]["message"]
        elif chunk.get("choices") or chunk.get("usage"):
            _read_chunk(chunk, view)
    return view


def _parse_chunk(data: str) -> Json | None:
    try:
        chunk = json.loads(data)
    except ValueError:
        return None
    return chunk if isinstance(chunk, dict) else None


def _read_chunk(chunk: Json, view: StreamView) -> None:
    assert chunk["object"] == "chat.completion.chunk"
    view.usage = chunk.get("usage") or view.usage
    for choice in chunk["choices"]:
        delta = choice["delta"]
        is_first = choice["index"] not in view.choices
        choice_view = view.choices.setdefault(choice["index"], ChoiceView())
        assert bool(delta.get("role")) == is_first, f"a role belongs to the first delta only: {choice}"
        text = delta.get("content") or ""
        reasoning = _reasoning(delta)
        entries = delta.get("tool_calls") or ()
        payload = text or reasoning or entries or choice["finish_reason"]
        assert not (payload and choice_view.finish), f"after the finish: {choice}"
        choice_view.text += text
        choice_view.reasoning += reasoning
        choice_view.refusal += delta.get("refusal") or ""
        for entry in entries:
            _read_call(entry, choice_view)
        choice_view.finish = choice_view.finish or choice["finish_reason"]


def _reasoning(message: Json) -> str:
    """Return the reasoning in a delta or message, from whichever field holds it."""
    details = message.get("reasoning_details") or ()
    text = "".join(detail.get("text") or detail.get("summary") or "" for detail in details)
    return message.get("reasoning_content") or message.get("reasoning") or text


def _read_call(entry: Json, choice_view: ChoiceView) -> None:
    function = entry["function"]
    assert isinstance(function["arguments"], str), entry
    if entry["index"] == len(choice_view.calls):
        assert entry["type"] == "function"
        assert entry["id"] not in {id for id, _, _ in choice_view.calls}, f"duplicate id: {entry}"
        choice_view.calls.append((entry["id"], function["name"], function["arguments"]))
        return
    assert entry["index"] == len(choice_view.calls) - 1, f"another call is open: {entry}"
    assert not {"id", "type"} & set(entry), f"sent more than once: {entry}"
    assert "name" not in function, f"sent more than once: {entry}"
    id, name, arguments = choice_view.calls[-1]
    choice_view.calls[-1] = id, name, arguments + function["arguments"]


# ── official SDK ──────────────────────────────────────────────────────────────────────────────────────────────────


def sdk_client(stream: bytes) -> openai.OpenAI:
    def respond(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=stream)

    http = httpx2.Client(transport=httpx2.MockTransport(respond))
    return openai.OpenAI(api_key="none", base_url="http://upstream.test/v1", max_retries=0, http_client=http)


def iterate(stream: bytes) -> StreamView:
    """Read with `create(stream=True)` and a simple loop, as in tutorials."""
    view = StreamView(done=True)
    try:
        for chunk in sdk_client(stream).chat.completions.create(model="m", messages=[], stream=True):
            view.usage = chunk.usage.to_dict() if chunk.usage else view.usage
            for choice in chunk.choices:
                _read_sdk_delta(choice, view.choices.setdefault(choice.index, ChoiceView()))
    except openai.APIError as error:
        view.error, view.done = error.message, False
    return view


def _read_sdk_delta(choice: Any, choice_view: ChoiceView) -> None:
    delta = choice.delta
    choice_view.text += delta.content or ""
    choice_view.reasoning += _reasoning(delta.to_dict())
    choice_view.refusal += delta.refusal or ""
    for call in delta.tool_calls or ():
        if call.id:
            choice_view.calls.append((call.id, call.function.name, ""))
        id, name, arguments = choice_view.calls[call.index]
        choice_view.calls[call.index] = id, name, arguments + (call.function.arguments or "")
    choice_view.finish = choice.finish_reason or choice_view.finish


def accumulate(stream: bytes, tools: list[Json]) -> StreamView:
    """Read with the `stream` helper, which joins deltas and parses the arguments of strict tools incrementally."""
    completions = sdk_client(stream).chat.completions
    with completions.stream(model="m", messages=[], tools=tools) as helper:  # type: ignore[arg-type]
        helper.until_done()
        completion = helper.get_final_completion()
    view = StreamView(done=True, usage=completion.usage.to_dict() if completion.usage else None)
    for choice in completion.choices:
        message = choice.message
        assert message.role == "assistant"
        view.choices[choice.index] = ChoiceView(
            text=message.content or "",
            reasoning=_reasoning(message.to_dict()),
            refusal=message.refusal or "",
            calls=[(call.id, call.function.name, call.function.arguments) for call in message.tool_calls or ()],
            finish=choice.finish_reason,
        )
    return view


def function_tools(names: set[str], strict: bool) -> list[Json]:
    return [
        {"type": "function", "function": {"name": name, "strict": strict, "parameters": {"type": "object"}}}
        for name in sorted(names)
    ]
