"""Two clients for what a Translator has sent: a strict one of our own, and the official SDK, the oracle.

Both tell what they have heard in the same form, so that they can be compared.
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
class Said:
    """What a client has understood of one choice. A call is (id, name, arguments)."""

    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    calls: list[tuple[str, str, str]] = field(default_factory=list)
    finish: str | None = None


@dataclass
class Heard:
    """What a client has understood of a stream. It ended with [DONE], or with an error, or not at all."""

    choices: dict[int, Said] = field(default_factory=dict)
    usage: Json | None = None
    error: str | None = None
    done: bool = False
    unreadable: list[str] = field(default_factory=list)


# ── the strict one ────────────────────────────────────────────────────────────────────────────────────────────────


def events(stream: bytes) -> Iterator[str]:
    """The data of each event."""
    text = stream.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    for block in text.split("\n\n"):
        lines = [line.removeprefix("data:") for line in block.split("\n") if line.startswith("data:")]
        if lines:
            yield "\n".join(line.removeprefix(" ") for line in lines)


def frames(stream: bytes) -> list[Json]:
    return [json.loads(data) for data in events(stream) if data.startswith("{")]


def listen(stream: bytes) -> Heard:
    """Insists on everything that some client somewhere relies on."""
    heard = Heard()
    for data in events(stream):
        assert not heard.done, f"after [DONE]: {data}"
        assert heard.error is None, f"after an error: {data}"
        if data == "[DONE]":
            heard.done = True
            continue
        chunk = _read(data)
        if chunk is None:
            heard.unreadable.append(data)
        elif chunk.get("error"):
            heard.error = chunk["error"]["message"]
        elif chunk.get("choices") or chunk.get("usage"):
            _hear_chunk(chunk, heard)
    return heard


def _read(data: str) -> Json | None:
    try:
        chunk = json.loads(data)
    except ValueError:
        return None
    return chunk if isinstance(chunk, dict) else None


def _hear_chunk(chunk: Json, heard: Heard) -> None:
    assert chunk["object"] == "chat.completion.chunk"
    heard.usage = chunk.get("usage") or heard.usage
    for choice in chunk["choices"]:
        delta = choice["delta"]
        fresh = choice["index"] not in heard.choices
        said = heard.choices.setdefault(choice["index"], Said())
        assert bool(delta.get("role")) == fresh, f"a role belongs to the first delta only: {choice}"
        text = delta.get("content") or ""
        reasoning = _reasoning(delta)
        entries = delta.get("tool_calls") or ()
        more = text or reasoning or entries or choice["finish_reason"]
        assert not (more and said.finish), f"after the finish: {choice}"
        said.text += text
        said.reasoning += reasoning
        said.refusal += delta.get("refusal") or ""
        for entry in entries:
            _hear_call(entry, said)
        said.finish = said.finish or choice["finish_reason"]


def _reasoning(message: Json) -> str:
    """The thinking in a delta or message, in whichever field it is."""
    details = message.get("reasoning_details") or ()
    text = "".join(detail.get("text") or detail.get("summary") or "" for detail in details)
    return message.get("reasoning_content") or message.get("reasoning") or text


def _hear_call(entry: Json, said: Said) -> None:
    function = entry["function"]
    assert isinstance(function["arguments"], str), entry
    if entry["index"] == len(said.calls):
        assert entry["type"] == "function"
        assert entry["id"] not in {id for id, _, _ in said.calls}, f"an id twice: {entry}"
        said.calls.append((entry["id"], function["name"], function["arguments"]))
        return
    assert entry["index"] == len(said.calls) - 1, f"one call after another: {entry}"
    assert not {"id", "type"} & set(entry), f"once is enough: {entry}"
    assert "name" not in function, f"once is enough: {entry}"
    id, name, arguments = said.calls[-1]
    said.calls[-1] = id, name, arguments + function["arguments"]


# ── the official one ──────────────────────────────────────────────────────────────────────────────────────────────


def client(stream: bytes) -> openai.OpenAI:
    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=stream)

    http = httpx2.Client(transport=httpx2.MockTransport(answer))
    return openai.OpenAI(api_key="none", base_url="http://upstream.test/v1", max_retries=0, http_client=http)


def iterate(stream: bytes) -> Heard:
    """`create(stream=True)`, and a loop as every tutorial has it."""
    heard = Heard(done=True)
    try:
        for chunk in client(stream).chat.completions.create(model="m", messages=[], stream=True):
            heard.usage = chunk.usage.to_dict() if chunk.usage else heard.usage
            for choice in chunk.choices:
                _hear_delta(choice, heard.choices.setdefault(choice.index, Said()))
    except openai.APIError as error:
        heard.error, heard.done = error.message, False
    return heard


def _hear_delta(choice: Any, said: Said) -> None:
    delta = choice.delta
    said.text += delta.content or ""
    said.reasoning += _reasoning(delta.to_dict())
    said.refusal += delta.refusal or ""
    for call in delta.tool_calls or ():
        if call.id:
            said.calls.append((call.id, call.function.name, ""))
        id, name, arguments = said.calls[call.index]
        said.calls[call.index] = id, name, arguments + (call.function.arguments or "")
    said.finish = choice.finish_reason or said.finish


def accumulate(stream: bytes, offered: list[Json]) -> Heard:
    """The `stream` helper, which joins deltas by itself and, for strict tools, parses arguments on the way."""
    completions = client(stream).chat.completions
    with completions.stream(model="m", messages=[], tools=offered) as helper:  # type: ignore[arg-type]
        helper.until_done()
        completion = helper.get_final_completion()
    heard = Heard(done=True, usage=completion.usage.to_dict() if completion.usage else None)
    for choice in completion.choices:
        message = choice.message
        assert message.role == "assistant"
        heard.choices[choice.index] = Said(
            text=message.content or "",
            reasoning=_reasoning(message.to_dict()),
            refusal=message.refusal or "",
            calls=[(call.id, call.function.name, call.function.arguments) for call in message.tool_calls or ()],
            finish=choice.finish_reason,
        )
    return heard


def tools(names: set[str], strict: bool) -> list[Json]:
    return [
        {"type": "function", "function": {"name": name, "strict": strict, "parameters": {"type": "object"}}}
        for name in sorted(names)
    ]
