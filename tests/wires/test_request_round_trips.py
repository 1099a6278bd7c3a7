"""Round trips of requests through each wire, and validation of written requests with the types of the SDKs."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import anthropic.types
import openai.types.chat
import openai.types.responses
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua.core.options import Options
from interlingua.core.reply import Call, Reasoning, Text
from interlingua.core.request import (
    CacheMark,
    Content,
    Document,
    Image,
    JsonFormat,
    Message,
    Piece,
    Request,
    Result,
    Thinking,
    ToolChoice,
)
from interlingua.core.tools import TEXT_INPUT_SCHEMA, Tool, qualified_name
from interlingua.translation.request_translation import prepare_request
from interlingua.upstreams.profile import UNKNOWN_PROFILE, Profile
from interlingua.wires.safe_ids import decode_id, encode_id
from tests.support.budget import examples
from tests.support.request_forms import CHAT, FULL_PROFILE, MESSAGES, RESPONSES, WIRES, normalize_request
from tests.translation.test_recorded_requests import COMPLETE_REQUESTS, REQUESTS

# ── random requests ───────────────────────────────────────────────────────────────────────────────────────────────

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\r"), min_size=1, max_size=12).filter(str.strip)
NAMES = st.text("abcXYZ019_-", min_size=1, max_size=8)
URLS = st.sampled_from(["data:image/png;base64,AA==", "https://a/b.png"])
FILES = st.builds(Document, st.just("data:application/pdf;base64,AA=="), name=NAMES)
MARKS = st.just(CacheMark({"type": "ephemeral"}))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
ARGUMENTS = st.dictionaries(NAMES, JSON, max_size=3).map(json.dumps) | st.sampled_from(["", "{}", '{"a": ', "[1]"])
SCHEMAS = st.dictionaries(NAMES, st.just({"type": "string"}), max_size=2).map(
    lambda properties: {"type": "object", "properties": properties}
)


@st.composite
def tools(draw: st.DrawFn) -> list[Tool]:
    names = draw(st.lists(NAMES, unique=True, max_size=4))
    result = []
    for name in names:
        about = draw(st.just("") | WORDS)
        kind = draw(st.sampled_from(["function", "custom", "namespace"]))
        if kind == "custom":
            result.append(Tool(name, TEXT_INPUT_SCHEMA, about, "custom"))
        elif kind == "namespace":
            result.append(Tool(qualified_name("space", name), draw(SCHEMAS), about, namespace="space", local=name))
        else:
            result.append(Tool(name, draw(SCHEMAS), about))
    return sorted(result, key=lambda tool: tool.namespace)  # tools of one namespace are adjacent


def contents(files: bool) -> st.SearchStrategy[list[Content]]:
    texts: st.SearchStrategy[Content] = st.builds(Text, WORDS)
    return st.lists(texts | st.builds(Image, URLS) | FILES if files else texts, min_size=1, max_size=3)


@st.composite
def requests(draw: st.DrawFn) -> Request:
    offered = draw(tools())
    names = [tool.name for tool in offered if tool.kind == "function"] or ["gone"]
    messages: list[Message] = [Message("user", list(draw(contents(files=True))))]
    for turn in range(draw(st.integers(0, 3))):
        ids = [f"{draw(NAMES)}.{turn}:{n}" for n in range(draw(st.integers(0, 3)))]
        pieces: list[Piece] = [Reasoning(draw(WORDS))] if draw(st.booleans()) else []
        pieces += [Text(draw(WORDS))] if draw(st.booleans()) or not ids else []
        pieces += [Call(id, draw(st.sampled_from(names)), draw(ARGUMENTS)) for id in ids]
        answers: list[Piece] = [
            Result(id, draw(contents(files=True) | st.just([])), draw(st.booleans()))
            for id in draw(st.permutations(ids))
        ]
        answers += draw(st.lists(MARKS, max_size=1)) if answers else []
        answers += draw(contents(files=True)) if draw(st.booleans()) or not answers else []
        messages += [Message("assistant", pieces), Message("user", answers)]
        messages += [Message("system", list(draw(contents(files=False))))] if draw(st.booleans()) else []
    return Request(
        wire=CHAT,
        model=draw(NAMES),
        system=draw(contents(files=False) | st.just([])),
        messages=messages,
        tools=offered,
        tool_choice=draw(st.sampled_from([None, ToolChoice(), ToolChoice("required"), ToolChoice("none")]))
        if offered
        else None,
        parallel=draw(st.sampled_from([None, True, False])) if offered else None,
        max_tokens=draw(st.integers(40000, 90000)),
        sampling=draw(st.sampled_from([{}, {"temperature": 1}, {"top_p": 0.5}])),
        stop=draw(st.lists(WORDS, max_size=2)),
        format=draw(st.sampled_from([None, JsonFormat({"type": "object"}, "reply")])),
        thinking=draw(
            st.sampled_from([Thinking(), Thinking(on=False), Thinking(effort="low"), Thinking(effort="high")])
        ),
        stream=draw(st.booleans()),
        user=draw(st.just("") | NAMES),
    )


@pytest.mark.parametrize("wire", WIRES)
@given(request=requests())
def test_request_round_trips_through_wire(wire: str, request: Request) -> None:
    first, _ = WIRES[wire].write_request(request, FULL_PROFILE)
    read = WIRES[wire].read_request(json.loads(json.dumps(first)), Options())
    assert normalize_request(read, wire) == normalize_request(request, wire)
    second, _ = WIRES[wire].write_request(read, FULL_PROFILE)
    if wire != CHAT:  # chat joins several texts into one
        assert WIRES[wire].read_request(second, Options()) == read


@given(request=requests(), source=st.sampled_from([*WIRES]), target=st.sampled_from([*WIRES]))
def test_longer_conversation_keeps_written_prefix(request: Request, source: str, target: str) -> None:
    """The messages written for the first turns are a prefix of those written for all turns (prompt cache)."""
    cuts = [n for n, message in enumerate(request.messages) if message.role == "assistant"]
    full_body, _ = WIRES[source].write_request(request, FULL_PROFILE)
    written = prepare_request(full_body, source, target, upstream=FULL_PROFILE).body
    field = "input" if target == RESPONSES else "messages"
    for cut in cuts:
        shorter = {"messages": request.messages[:cut]}
        body, _ = WIRES[source].write_request(Request(**{**_fields(request), **shorter}), FULL_PROFILE)
        items = prepare_request(body, source, target, upstream=FULL_PROFILE).body[field]
        assert json.dumps(written[field][: len(items)]) == json.dumps(items)


def _fields(request: Request) -> dict[str, Any]:
    return {name: getattr(request, name) for name in request.__struct_fields__}


@given(st.text(min_size=1, max_size=20))
def test_any_id_round_trips_through_encoding(id: str) -> None:
    legal = encode_id(id)
    assert decode_id(legal) == id
    assert all(character.isascii() and (character.isalnum() or character in "_-") for character in legal)


@pytest.mark.parametrize("id", ["toolu_01", "call-1", "il_1"])
def test_legal_ids_are_unchanged(id: str) -> None:
    assert encode_id(id) == decode_id(id) == id


@pytest.mark.parametrize("id", ["il-", "il-abc", "il-1", "il-MZ2W4"])
def test_id_that_only_looks_encoded_round_trips(id: str) -> None:
    assert decode_id(encode_id(decode_id(id))) == decode_id(id)


# ── SDK types ─────────────────────────────────────────────────────────────────────────────────────────────────────


@cache
def adapter(kind: Any) -> pydantic.TypeAdapter[Any]:
    return pydantic.TypeAdapter(kind)


def check_sdk_types(body: dict[str, Any], wire: str) -> None:
    """Validate each part by itself: pydantic checks the SDKs' iterables only when they are iterated."""
    if wire == CHAT:
        adapter(openai.types.chat.completion_create_params.CompletionCreateParamsNonStreaming).validate_python(
            body | {"stream": False}
        )
        for message in body["messages"]:
            adapter(openai.types.chat.ChatCompletionMessageParam).validate_python(message)
            for part in message["content"] if isinstance(message.get("content"), list) else []:
                adapter(openai.types.chat.ChatCompletionContentPartParam).validate_python(part)
        for tool in body.get("tools", []):
            adapter(openai.types.chat.ChatCompletionToolUnionParam).validate_python(tool)
    elif wire == MESSAGES:
        adapter(anthropic.types.message_create_params.MessageCreateParamsNonStreaming).validate_python(
            body | {"stream": False}
        )
        for message in body["messages"]:
            adapter(anthropic.types.MessageParam).validate_python(message)
            for block in message["content"]:
                adapter(anthropic.types.ContentBlockParam).validate_python(block)
        for tool in body.get("tools", []):
            adapter(anthropic.types.ToolUnionParam).validate_python(tool)
    else:
        adapter(openai.types.responses.response_create_params.ResponseCreateParamsNonStreaming).validate_python(
            body | {"stream": False}
        )
        for item in body["input"]:
            adapter(openai.types.responses.ResponseInputItemParam).validate_python(item)
        for tool in body.get("tools", []):
            adapter(openai.types.responses.ToolParam).validate_python(tool)


@pytest.mark.parametrize("target", WIRES)
@pytest.mark.parametrize("name", COMPLETE_REQUESTS)
def test_recorded_requests_match_sdk_types(name: str, target: str) -> None:
    source, body = REQUESTS[name]
    if source != target:
        check_sdk_types(
            prepare_request(body, source, target, upstream=Profile(name="own", own_seals=True)).body, target
        )


@pytest.mark.parametrize("target", WIRES)
@settings(max_examples=examples(25))  # validation of the SDK types is slow
@given(request=requests())
def test_random_requests_match_sdk_types(target: str, request: Request) -> None:
    written, _ = WIRES[target].write_request(request, UNKNOWN_PROFILE)
    if target == RESPONSES:  # OpenAI requires an id for reasoning, other servers do not
        written["input"] = [item for item in written["input"] if item["type"] != "reasoning"]
    check_sdk_types(written, target)
