"""Requests of any size on each wire, one kind for each list that a request can have, for tests of growth.

A conversation is a list of turns that do not depend on a wire; `_CHAT`, `_MESSAGES` and `_RESPONSES` write it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeAlias

import msgspec

from interlingua.core.options import Options
from interlingua.translation.exchange import Exchange, UpstreamTarget
from interlingua.upstreams.catalog import MISTRAL, OPENROUTER, PROFILES
from interlingua.upstreams.profile import UNKNOWN_PROFILE, Profile
from tests.support.growth import GrowthCase
from tests.support.request_forms import CHAT, MESSAGES, RESPONSES

__all__ = ["CATALOG_CASES", "PROFILE_CASES", "SOURCES", "SOURCE_CASES"]

Json: TypeAlias = dict[str, Any]
SEAL_KEY = b"a key for the tests"
PNG = "data:image/png;base64,iVBORw0KGgo="

STRICT = msgspec.structs.replace(
    MISTRAL,
    name="strict",
    blank_text=False,
    thinking_with_calls=True,
    images_in_results=False,
    own_seals=True,
    thinking_first=True,
    known_fields=(),
)
"""Profile that rules out all that a profile can rule out, so that every step of the adaptation has work."""
GENEROUS = msgspec.structs.replace(OPENROUTER, name="generous", allowed_tools=True, images_in_results=True)
"""Profile of an upstream that accepts nearly everything."""


# ── turns of a conversation ───────────────────────────────────────────────────────────────────────────────────────────


class Say(msgspec.Struct, frozen=True):
    """A message with one text, or with several parts."""

    role: str
    texts: list[str]
    fields: Json = {}
    """Additional fields of each part."""


class Show(msgspec.Struct, frozen=True):
    """A message of the user with images."""

    count: int


class Think(msgspec.Struct, frozen=True):
    """Thinking of the model in several pieces, before an answer."""

    texts: list[str]


class Calls(msgspec.Struct, frozen=True):
    """Calls in one message of the model: ids and names."""

    calls: list[tuple[str, str]]


class Results(msgspec.Struct, frozen=True):
    """Results of calls, in as few messages as the wire allows: ids and texts. `images`: images in each."""

    results: list[tuple[str, str]]
    images: int = 0


Turn: TypeAlias = Say | Show | Think | Calls | Results


def _user(text: str = "hi") -> Say:
    return Say("user", [text])


# ── the three wires ───────────────────────────────────────────────────────────────────────────────────────────────────


def _chat_turn(turn: Turn) -> list[Json]:
    match turn:
        case Say(role, [text], {}):
            return [{"role": role, "content": text}]
        case Say(role, texts, fields):
            return [{"role": role, "content": [{"type": "text", "text": text, **fields} for text in texts]}]
        case Show(count):
            image = {"type": "image_url", "image_url": {"url": PNG}}
            return [{"role": "user", "content": [image] * count}]
        case Think(texts):
            details = [{"type": "reasoning.text", "text": text, "signature": "s"} for text in texts]
            return [{"role": "assistant", "content": "done", "reasoning_details": details}]
        case Calls(calls):
            entries = [
                {"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}} for id, name in calls
            ]
            return [{"role": "assistant", "content": None, "tool_calls": entries}]
        case Results(results, images):
            image = {"type": "image_url", "image_url": {"url": PNG}}
            contents = [[{"type": "text", "text": text}, *[image] * images] if images else text for _, text in results]
            return [
                {"role": "tool", "tool_call_id": id, "content": content}
                for (id, _), content in zip(results, contents, strict=True)
            ]


def _messages_turn(turn: Turn) -> list[Json]:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    match turn:
        case Say(role, [text], {}):
            return [{"role": role, "content": text}]
        case Say(role, texts, fields):
            return [{"role": role, "content": [{"type": "text", "text": text, **fields} for text in texts]}]
        case Show(count):
            return [{"role": "user", "content": [image] * count}]
        case Think(texts):
            blocks = [{"type": "thinking", "thinking": text, "signature": "s"} for text in texts]
            return [{"role": "assistant", "content": [*blocks, {"type": "text", "text": "done"}]}]
        case Calls(calls):
            return [
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": id, "name": name, "input": {}} for id, name in calls],
                }
            ]
        case Results(results, images):
            result_blocks = [
                {
                    "type": "tool_result",
                    "tool_use_id": id,
                    "content": [{"type": "text", "text": text}, *[image] * images],
                }
                for id, text in results
            ]
            return [{"role": "user", "content": result_blocks}]


def _responses_turn(turn: Turn) -> list[Json]:
    match turn:
        case Say(role, texts, fields):
            part_type = "output_text" if role == "assistant" else "input_text"
            parts = [{"type": part_type, "text": text, **fields} for text in texts]
            return [{"type": "message", "role": role, "content": parts}]
        case Show(count):
            image = {"type": "input_image", "image_url": PNG}
            return [{"type": "message", "role": "user", "content": [image] * count}]
        case Think(texts):
            items = [
                {"type": "reasoning", "id": f"rs_{n}", "summary": [{"type": "summary_text", "text": text}]}
                for n, text in enumerate(texts)
            ]
            return [*items, {"type": "message", "role": "assistant", "content": "done"}]
        case Calls(calls):
            return [{"type": "function_call", "call_id": id, "name": name, "arguments": "{}"} for id, name in calls]
        case Results(results, images):
            image = {"type": "input_image", "image_url": PNG}
            outputs = [
                [{"type": "input_text", "text": text}, *[image] * images] if images else text for _, text in results
            ]
            return [
                {"type": "function_call_output", "call_id": id, "output": output}
                for (id, _), output in zip(results, outputs, strict=True)
            ]


_TURN_WRITERS: dict[str, tuple[str, Callable[[Turn], list[Json]]]] = {
    CHAT: ("messages", _chat_turn),
    MESSAGES: ("messages", _messages_turn),
    RESPONSES: ("input", _responses_turn),
}
"""The field of the conversation, and the function that writes a turn."""


def _tool(wire: str, name: str, schema: Json | None = None, **fields: Any) -> Json:
    schema = schema or {"type": "object", "properties": {}}
    match wire:
        case "openai-chat":
            return {"type": "function", "function": {"name": name, "parameters": schema}, **fields}
        case "anthropic-messages":
            return {"name": name, "input_schema": schema, **fields}
    return {"type": "function", "name": name, "parameters": schema, **fields}


def _body(wire: str, turns: Iterable[Turn] = (), tools: Iterable[Json] = (), **fields: Any) -> Json:
    field, write_turn = _TURN_WRITERS[wire]
    conversation = [entry for turn in turns for entry in write_turn(turn)] or write_turn(_user())
    limits = {"max_tokens": 8000} if wire == MESSAGES else {}
    offered = {"tools": list(tools)} if tools else {}
    return {"model": "m", field: conversation, "stream": True, **limits, **offered, **fields}


# ── kinds of requests ─────────────────────────────────────────────────────────────────────────────────────────────────


def _turns(make_turns: Callable[[int], list[Turn]]) -> Callable[[str, int], Json]:
    return lambda wire, n: _body(wire, make_turns(n))


def _tools(make_tool: Callable[[str, int], Json], **fields: Any) -> Callable[[str, int], Json]:
    return lambda wire, n: _body(wire, tools=[make_tool(wire, k) for k in range(n)], **fields)


def _schema(make_schema: Callable[[int], Json]) -> Callable[[str, int], Json]:
    def make(wire: str, n: int) -> Json:
        return _body(wire, [Calls([("a", "f")]), Results([("a", "ok")])], [_tool(wire, "f", make_schema(n))])

    return make


def _numbered(n: int, name: str = "f", text: str = "ok") -> tuple[Calls, Results]:
    ids = [f"call_{k}" for k in range(n)]
    return Calls([(id, name) for id in ids]), Results([(id, text) for id in ids])


def _exchanges(n: int) -> list[Turn]:
    """Turns with a call and its result each."""
    pairs = ((Calls([(f"c{k}", "f")]), Results([(f"c{k}", "ok")])) for k in range(n))
    return [_user(), *(turn for pair in pairs for turn in pair)]


def _chosen_tools(wire: str, n: int) -> Json:
    names = [f"tool_{k}" for k in range(n)]
    entries = [{"type": "function", "name": name} for name in names]
    choice: Any = {"type": "allowed_tools", "mode": "required", "tools": entries}
    if wire == CHAT:
        functions = [{"type": "function", "function": {"name": name}} for name in names]
        choice = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": functions}}
    if wire == MESSAGES:  # its choice names one tool
        choice = {"type": "tool", "name": names[-1]}
    return _body(wire, tools=[_tool(wire, name) for name in names], tool_choice=choice)


def _references(n: int) -> Json:
    definitions = {f"d{k}": {"$ref": f"#/$defs/d{k + 1}"} for k in range(n)} | {f"d{n}": {"type": "string"}}
    return {"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions}


def _object_schema(n: int) -> Json:
    names = [f"p{k}" for k in range(n)]
    return {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": names}


CACHE_MARK = {"cache_control": {"type": "ephemeral"}}
KINDS: dict[str, Callable[[str, int], Json]] = {
    "messages": _turns(lambda n: [Say(role, ["x"]) for role in ("user", "assistant") * (n // 2)]),
    "messages of one role": _turns(lambda n: [_user() for _ in range(n)]),
    "messages of the model": _turns(lambda n: [_user(), *(Say("assistant", ["x"]) for _ in range(n))]),
    "empty messages": _turns(lambda n: [Say("user", [""]) for _ in range(n)]),
    "system messages": _turns(lambda n: [*(Say("system", ["x"]) for _ in range(n)), _user()]),
    "late system messages": _turns(lambda n: [_user(), *(Say("system", ["x"]) for _ in range(n))]),
    "parts": _turns(lambda n: [Say("user", ["x"] * n)]),
    "parts of the model": _turns(lambda n: [_user(), Say("assistant", ["x"] * n)]),
    "parts with unknown fields": _turns(lambda n: [Say("user", ["x"] * n, {"unknown": 1})]),
    "cache marks": _turns(lambda n: [Say("user", ["x"] * n, CACHE_MARK)]),
    "cache marks of empty parts": _turns(lambda n: [Say("user", ["x", *[""] * n], CACHE_MARK)]),
    "images": _turns(lambda n: [Show(n)]),
    "thinking": _turns(lambda n: [_user(), Think(["x"] * n), _user()]),
    "calls and results": _turns(lambda n: [_user(), *_numbered(n)]),
    "calls without results": _turns(lambda n: [_user(), _numbered(n)[0]]),
    "turns with a call": _turns(_exchanges),
    "results without calls": _turns(lambda n: [_numbered(n)[1]]),
    "results after text": _turns(lambda n: [_user(), *(Results([(f"c{k}", "x")]) for k in range(n))]),
    "results of one call": _turns(
        lambda n: [_user(), Calls([("a", "f")]), Results([("a", f"text {k}") for k in range(n)])]
    ),
    "images in results": _turns(
        lambda n: [_user(), _numbered(n)[0], msgspec.structs.replace(_numbered(n)[1], images=1)]
    ),
    "images in one result": _turns(lambda n: [_user(), Calls([("a", "f")]), Results([("a", "x")], images=n)]),
    "equal ids": _turns(lambda n: [_user(), Calls([("a", "f")] * n), Results([("a", "ok")] * n)]),
    "equal ids with numbers": _turns(lambda n: [_user(), Calls([("f:0", "f")] * n), Results([("f:0", "ok")] * n)]),
    "ids that collide after renaming": _turns(
        lambda n: [_user(), Calls([*((f"a_{k}", "f") for k in range(n // 2)), *[("a", "f")] * (n // 2)])]
    ),
    "odd ids and names": _turns(lambda n: [_user(), Calls([(f"{k}.ü", f"näme {k}") for k in range(n)])]),
    "tools": _tools(lambda wire, k: _tool(wire, f"tool_{k}")),
    "tools of equal names": _tools(lambda wire, _: _tool(wire, "f")),
    "tools of long names": _tools(lambda wire, k: _tool(wire, f"{'tool' * 20}_{k}")),
    "tools with unknown fields": _tools(lambda wire, k: _tool(wire, f"tool_{k}") | {f"field_{k}": 1}),
    "deferred tools": _tools(lambda wire, k: _tool(wire, f"tool_{k}", defer_loading=True)),
    "hosted tools": _tools(lambda _, k: {"type": f"web_search_{k}"}),
    "chosen tools": _chosen_tools,
    "enum": _schema(
        lambda n: {"type": "object", "properties": {"a": {"type": "string", "enum": [f"e{k}" for k in range(n)]}}}
    ),
    "properties": _schema(_object_schema),
    "references": _schema(_references),
    "stop sequences": lambda wire, n: (
        _body(wire) | {"stop_sequences" if wire == MESSAGES else "stop": [f"s{k}" for k in range(n)]}
    ),
    "unknown settings": lambda wire, n: _body(wire) | {f"field_{k}": 1 for k in range(n)},
    "metadata": lambda wire, n: _body(wire) | {"metadata": {f"field_{k}": "x" for k in range(n)}},
}
"""Functions that return a request with a list of n items, by what the list holds."""


def _moved_images(n: int) -> Json:
    """Images of n results in messages of the user, as this project writes them for upstreams."""
    calls, results = _numbered(n)
    body = _body(CHAT, [_user(), calls, results])
    image = {"type": "image_url", "image_url": {"url": PNG}}
    for id, _ in results.results:
        origin = {"type": "text", "text": f"[image from tool call {id}]"}
        body["messages"].append({"role": "user", "content": [origin, image]})
    return body


def _images_moved_from_one_result(n: int) -> Json:
    body = _body(CHAT, [_user(), Calls([("a", "f")]), Results([("a", "[see the next message]")])])
    image = {"type": "image_url", "image_url": {"url": PNG}}
    origin = {"type": "text", "text": "[image from tool call a]"}
    body["messages"].append({"role": "user", "content": [origin, image] * n})
    return body


def _legacy_calls(n: int) -> Json:
    pairs = [
        (
            {"role": "assistant", "content": None, "function_call": {"name": f"f{k}", "arguments": "{}"}},
            {"role": "function", "name": f"f{k}", "content": "ok"},
        )
        for k in range(n)
    ]
    return _body(CHAT) | {"messages": [message for pair in pairs for message in pair]}


def _namespaces(n: int) -> Json:
    tools = [
        {"type": "namespace", "name": f"space_{k}", "description": "d", "tools": [_tool(RESPONSES, "f")]}
        for k in range(n)
    ]
    return _body(RESPONSES, tools=tools)


def _found_tools(n: int) -> Json:
    found = {"type": "tool_search_output", "tools": [_tool(RESPONSES, f"tool_{k}") for k in range(n)]}
    return _body(RESPONSES) | {"input": [{"role": "user", "content": "hi"}, found]}


def _tool_references(n: int) -> Json:
    references = [{"type": "tool_reference", "tool_name": f"tool_{k}"} for k in range(n)]
    result = {"type": "tool_result", "tool_use_id": "a", "content": references}
    tools = [_tool(MESSAGES, f"tool_{k}", defer_loading=True) for k in range(n)]
    body = _body(MESSAGES, [_user(), Calls([("a", "f")])], tools)
    body["messages"].append({"role": "user", "content": [result]})
    return body


def _marks_in_result(n: int) -> Json:
    """Cache marks of empty texts, in a result without a call."""
    texts = [{"type": "text", "text": "", **CACHE_MARK}] * n
    result = {"type": "tool_result", "tool_use_id": "a", "content": texts}
    return _body(MESSAGES) | {"messages": [{"role": "user", "content": [result]}]}


def _moved_images_of_one_result(n: int) -> Json:
    body = _images_moved_from_one_result(1)
    return body | {"messages": [*body["messages"][:-1], *body["messages"][-1:] * n]}


ONE_WIRE_KINDS: dict[str, tuple[str, Callable[[int], Json]]] = {
    "images moved out of results": (CHAT, _moved_images),
    "images moved out of one result": (CHAT, _images_moved_from_one_result),
    "images moved out of one result, in many messages": (CHAT, _moved_images_of_one_result),
    "cache marks in a result": (MESSAGES, _marks_in_result),
    "legacy calls": (CHAT, _legacy_calls),
    "namespaces": (RESPONSES, _namespaces),
    "tools found by a search": (RESPONSES, _found_tools),
    "references to tools": (MESSAGES, _tool_references),
}
"""The same for lists that only one wire has."""


# ── cases ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _translate(body: Json, source: str, targets: Iterable[str], profiles: Iterable[Profile]) -> None:
    """Translate the request for each upstream, and prepare for the reply, as the gateway does."""
    options = Options(seal_key=SEAL_KEY)
    for target in targets:
        for profile in profiles:
            upstream = UpstreamTarget(api=target, profile=profile, name="u", model="m", dialect="standard")
            Exchange(source, body, upstream, options).receive("text/event-stream")


def _sources() -> Iterable[tuple[str, str, Callable[[int], Json]]]:
    for kind, make in KINDS.items():
        for source in (CHAT, MESSAGES, RESPONSES):
            yield kind, source, partial(make, source)
    for kind, (source, make_body) in ONE_WIRE_KINDS.items():
        yield kind, source, make_body


SOURCES = list(_sources())
"""Each kind from each client: its name, the client's wire, and the function that makes a request of any size."""
ALL_WIRES = (CHAT, MESSAGES, RESPONSES)
SOURCE_CASES = [
    GrowthCase(f"{kind}, {source}", make, partial(_translate, source=source, targets=ALL_WIRES, profiles=(STRICT,)))
    for kind, source, make in SOURCES
]
"""Each kind from each client, for strict upstreams of all wires."""
PROFILE_CASES = [
    GrowthCase(
        f"{kind}, {source}, {profile.name}",
        make,
        partial(_translate, source=source, targets=ALL_WIRES, profiles=(profile,)),
    )
    for kind, source, make in SOURCES
    for profile in (UNKNOWN_PROFILE, STRICT, GENEROUS)
]
"""Each kind from each client, for upstreams of all wires, with each profile of the tests."""
CATALOG_CASES = [
    GrowthCase(
        f"{kind}, {source} to all profiles",
        make,
        partial(_translate, source=source, targets=(CHAT,), profiles=PROFILES),
    )
    for kind, source, make in SOURCES
]
"""Each kind for all upstreams of the catalog, one after the other."""
