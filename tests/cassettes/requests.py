"""Requests for the tests of matching: a conversation with tools, and changes that count or do not count."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

Json = dict[str, Any]

WEATHER_SCHEMA: Json = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
IMAGE = "data:image/png;base64,iVBORw0KGgo="


def conversation(topic: str = "Paris", model: str = "some-model") -> Json:
    """Return a Messages request with a system prompt, two tools, two parallel calls and their results."""
    return {
        "model": model,
        "max_tokens": 1000,
        "temperature": 0.5,
        "stream": True,
        "system": [
            {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.325.710; cch=5a3f;"},
            {
                "type": "text",
                "text": f"You help with {topic}.\nAnswer in one line.",
                "cache_control": {"type": "ephemeral"},
            },
            {"type": "text", "text": "Today's date is 2026-11-17."},
        ],
        "metadata": {"user_id": '{"device_id":"9d","session_id":"f17d54c0"}'},
        "tools": [
            {"name": "get_weather", "description": "Returns the weather.", "input_schema": WEATHER_SCHEMA},
            {
                "name": "get_time",
                "description": "Returns the time.",
                "input_schema": {"type": "object", "properties": {}},
            },
        ],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "<system-reminder>\nThe current date is 2026-11-17.\n</system-reminder>"},
                    {"type": "text", "text": f"What is the weather in {topic}?"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "I need both.", "signature": "il2.abc."},
                    {"type": "text", "text": "Let me see."},
                    {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": topic, "days": 2}},
                    {"type": "tool_use", "id": "toolu_2", "name": "get_time", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "toolu_1",
                        "content": f"{topic}: sunny, 20 °C, since 2026-11-16",
                    },
                    {"type": "tool_result", "tool_use_id": "toolu_2", "content": [{"type": "text", "text": "12:00"}]},
                ],
            },
        ],
    }


class Change(NamedTuple):
    """A change of `conversation()`, and the words by which a miss shows it; "" if it does not count."""

    name: str
    apply: Callable[[Json], Any]
    shown: str = ""


def changed(change: Change, body: Json) -> Json:
    body = copy.deepcopy(body)
    change.apply(body)
    return body


# ── parts of the conversation ─────────────────────────────────────────────────────────────────────────────────────


def _blocks(body: Json) -> list[Json]:
    return [*body.get("system", ()), *(block for message in body["messages"] for block in message["content"])]


def _find(body: Json, **fields: str) -> Json:
    """Return the first block whose fields have these endings. Raises LookupError."""
    blocks: list[Json] = [*_blocks(body), *body["tools"]]
    for block in blocks:
        if all(str(block.get(name, "")).endswith(end) for name, end in fields.items()):
            return block
    raise LookupError(fields)


def _replace_text(body: Json, old: str, new: str) -> None:
    """Replace a text in a block. Raises LookupError if there is none."""
    block = next((block for block in _blocks(body) if old in block.get("text", "")), None)
    if block is None:
        raise LookupError(old)
    block["text"] = block["text"].replace(old, new)


def _replace_result(body: Json, old: str, new: str) -> None:
    result = _find(body, tool_use_id="toolu_1")
    if old not in result["content"]:
        raise LookupError(old)
    result["content"] = result["content"].replace(old, new)


def _remove(body: Json, **fields: str) -> None:
    block = _find(body, **fields)
    for blocks in (body["tools"], body.get("system", []), *(message["content"] for message in body["messages"])):
        if block in blocks:
            blocks.remove(block)


# ── changes ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _rename_calls(body: Json) -> None:
    for block in _blocks(body):
        for field in {"id", "tool_use_id"} & block.keys():
            block[field] = "new_" + block[field]


def _swap_results(body: Json) -> None:
    first, second = _find(body, tool_use_id="toolu_1"), _find(body, tool_use_id="toolu_2")
    first["content"], second["content"] = second["content"], first["content"]


def _swap_calls(body: Json) -> None:
    calls = [_find(body, id="toolu_1"), _find(body, id="toolu_2")]
    content = body["messages"][1]["content"]
    content[content.index(calls[0]) : content.index(calls[1]) + 1] = calls[::-1]


def _reverse_results(body: Json) -> None:
    body["messages"][2]["content"].reverse()


def _merge_texts(body: Json) -> None:
    content = body["messages"][0]["content"]
    texts = [block["text"] for block in content if block["type"] == "text"]
    content[:] = [{"type": "text", "text": "\n\n".join(texts)}, *(b for b in content if b["type"] != "text")]


def _sort_arguments(body: Json) -> None:
    call = _find(body, id="toolu_1")
    call["input"] = dict(reversed(call["input"].items()))


def _add_schema(body: Json) -> None:
    tool = _find(body, description="the weather.")
    tool["input_schema"] = {"$schema": "x", **tool["input_schema"]}


def _set(**fields: Any) -> Callable[[Json], None]:
    return lambda body: body.update(fields)


IRRELEVANT = [
    Change("call ids", _rename_calls),
    Change("stream", lambda body: body.pop("stream")),
    Change("user id", _set(metadata={"user_id": "another"})),
    Change("no metadata", lambda body: body.pop("metadata")),
    Change("billing line", lambda body: _replace_text(body, "cc_version=2.1.325.710; cch=5a3f", "cc_version=3; cch=0")),
    Change("no billing line", lambda body: _remove(body, text="cch=5a3f;")),
    Change("date in the system prompt", lambda body: _replace_text(body, "date is 2026-11-17.", "date is 2027-01-02.")),
    Change("date in a reminder", lambda body: _replace_text(body, "date is 2026-11-17.\n<", "date is May 4, 2027.\n<")),
    Change("cache marks", lambda body: _find(body, text="one line.").pop("cache_control")),
    Change("moved cache mark", lambda body: _find(body, tool_use_id="toolu_2").update(cache_control={"type": "x"})),
    Change("order of tools", lambda body: body["tools"].reverse()),
    Change("order of keys in arguments", _sort_arguments),
    Change("order of parallel results", _reverse_results),
    Change("signature", lambda body: _find(body, type="thinking").update(signature="il2.other.")),
    Change("no past thinking", lambda body: _remove(body, type="thinking")),
    Change("result as text", lambda body: _find(body, content="12:00'}]").update(content="12:00")),
    Change("content as one text", _merge_texts),
    Change("is_error: false", lambda body: _find(body, tool_use_id="toolu_2").setdefault("is_error", False)),
    Change("tool choice auto", lambda body: body.setdefault("tool_choice", {"type": "auto"})),
    Change("service tier", _set(service_tier="auto")),
    Change("$schema", _add_schema),
    Change("number", lambda body: body.update(max_tokens=float(body["max_tokens"]))),
]
RELEVANT = [
    Change("model", _set(model="other-model"), "model: “other-model”, recorded “some-model”"),
    Change(
        "system line",
        lambda body: _replace_text(body, "in one line", "in two lines"),
        "system prompt: differs in line 2",
    ),
    Change("no system prompt", lambda body: body.pop("system"), "system prompt: only in the recording"),
    Change("question", lambda body: _replace_text(body, "What is the weather", "Say the weather"), "message 1 (user)"),
    Change(
        "date in a question",
        lambda body: _replace_text(body, "What is", "Today's date is 2026-11-17. What is"),
        "message 1 (user)",
    ),
    Change("tool result", lambda body: _replace_result(body, "20 °C", "21 °C"), "result of call 1 (get_weather)"),
    Change("date in a tool result", lambda body: _replace_result(body, "11-16", "11-15"), "result of call 1 (get_wea"),
    Change(
        "failed result",
        lambda body: _find(body, tool_use_id="toolu_1").update(is_error=True),
        "an error: only in the request",
    ),
    Change("results of the other call", _swap_results, "result of call 1 (get_weather)"),
    Change("missing result", lambda body: _remove(body, tool_use_id="toolu_2"), "result of call 2 (get_time): only in"),
    Change("arguments", lambda body: _find(body, id="toolu_1")["input"].update(days=3), "call 1 (get_weather)"),
    Change("called tool", lambda body: _find(body, id="toolu_2").update(name="get_date"), "call 2 (get_date)"),
    Change("order of calls", _swap_calls, "call 1"),
    Change("text of the assistant", lambda body: _replace_text(body, "Let me see", "Let me look"), "message 2 (assist"),
    Change(
        "one more message",
        lambda body: body["messages"].append({"role": "assistant", "content": [{"type": "text", "text": "So"}]}),
        "message 4 (assistant)",
    ),
    Change("one message less", lambda body: body["messages"].pop(2), "message 3 (user)"),
    Change(
        "image", lambda body: _find(body, type="image")["source"].update(data="iVBORw0KGgp="), "message 1 (user), im"
    ),
    Change("one tool less", lambda body: _remove(body, description="the time."), "tool get_time, parameters: o"),
    Change(
        "one more tool",
        lambda body: body["tools"].append({"name": "get_date", "input_schema": {"type": "object"}}),
        "tool get_date, parameters: only in the request",
    ),
    Change(
        "tool description",
        lambda body: _find(body, description="the weather.").update(description="Returns it."),
        "tool get_weather, description",
    ),
    Change(
        "tool schema",
        lambda body: _find(body, description="the weather.").update(input_schema={**WEATHER_SCHEMA, "required": []}),
        "tool get_weather, parameters",
    ),
    Change("tool choice", _set(tool_choice={"type": "any"}), "tool choice: only in the request: “required”"),
    Change(
        "no parallel calls",
        _set(tool_choice={"type": "auto", "disable_parallel_tool_use": True}),
        "parallel tool calls",
    ),
    Change(
        "response format",
        _set(output_config={"format": {"type": "json_schema", "schema": WEATHER_SCHEMA}}),
        "response format: only in the request",
    ),
]
SETTINGS = [
    Change("temperature", _set(temperature=1), "temperature: 1, recorded 0.5"),
    Change("max_tokens", _set(max_tokens=5), "max_tokens: 5, recorded 1000"),
]
"""Changes that count on every wire on which the setting is set."""
OWN_WIRE = [
    Change("no temperature", lambda body: body.pop("temperature"), "temperature: only in the recording: 0.5"),
    Change("top_k", _set(top_k=3), "top_k: only in the request: 3"),
    Change("stop", _set(stop_sequences=["END"]), "stop: only in the request"),
    Change("thinking", _set(thinking={"type": "enabled", "budget_tokens": 2000}), "thinking"),
    Change(
        "server tool",
        lambda body: body["tools"].append({"type": "web_search_20250305", "name": "web_search"}),
        "server tools",
    ),
    Change("field of the wire", _set(context_management={"edits": []}), "context_management"),
    Change("strict tool", lambda body: body["tools"][0].update(strict=True), "tool get_weather, strict"),
    Change(
        "unknown field", lambda body: _find(body, text="Paris?").update(novelty=1), "messages[0].content[1].novelty"
    ),
]
"""Changes that count only between requests of the same wire."""
