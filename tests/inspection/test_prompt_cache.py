"""Breaks of the prompt's prefix between two turns: their place, their kind, their author and their cost."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from interlingua.common.jsontext.codec import encode_json
from interlingua.errors import InterlinguaError
from interlingua.inspection.prompt_cache import CacheReport, TurnRequests, compare_turns
from interlingua.translation.request_translation import translate_request

Body = dict[str, Any]
Change = Callable[[Body], Body | None]

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
SYSTEM = "You are a coding agent.\nToday is 2026-03-04 05:06:07.\nWorking directory: /work/app\nBe brief."
READ = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "limit": {"type": "integer", "maximum": 2000, "default": 1}},
    "required": ["path"],
}
BASH = {"type": "object", "properties": {"command": {"type": "string", "description": "the command"}}}


def chat_body() -> Body:
    return {
        "model": "some-vision-model",
        "temperature": 0.5,
        "reasoning_effort": "high",
        "prompt_cache_key": "session-1",
        "tools": [
            {"type": "function", "function": {"name": name, "description": about, "parameters": schema}}
            for name, about, schema in (("read", "Read a file", READ), ("bash", "Run a command", BASH))
        ],
        "messages": [
            {"role": "system", "content": SYSTEM},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is in this picture? " + "Look closely. " * 40},
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
                ],
            },
            {
                "role": "assistant",
                "content": "I look at naïve.py and café.txt.",
                "reasoning_content": "The user wants a look.",
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "read", "arguments": '{"path": "naïve.py", "limit": 20}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "line 1\nline 2\n"},
        ],
    }


def messages_body() -> Body:
    mark = {"cache_control": {"type": "ephemeral"}}
    return {
        "model": "some-vision-model",
        "max_tokens": 4096,
        "thinking": {"type": "enabled", "budget_tokens": 2048},
        "system": [{"type": "text", "text": "You are a CLI."}, {"type": "text", "text": SYSTEM, **mark}],
        "tools": [
            {"name": "read", "description": "Read a file", "input_schema": READ},
            {"name": "bash", "description": "Run a command", "input_schema": BASH},
        ],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is in this picture? " + "Look closely. " * 40},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "I look at naïve.py and café.txt."},
                    {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "naïve.py", "limit": 20}},
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "line 1\n"}]},
        ],
    }


def next_turn(body: Body) -> Body:
    """Return the next request of the conversation."""
    continued = copy.deepcopy(body)
    continued["messages"] += [{"role": "assistant", "content": "Done."}, {"role": "user", "content": "Thanks, go on."}]
    return continued


class Scene(NamedTuple):
    body: Callable[[], Body]
    client_wire: str
    upstream_wire: str

    def translate(self, body: bytes) -> bytes:
        return encode_json(translate_request(json.loads(body), self.client_wire, self.upstream_wire))

    def try_to_translate(self, body: bytes, turn: TurnRequests) -> bytes | None:  # noqa: ARG002
        try:
            return self.translate(body)
        except (ValueError, InterlinguaError):
            return None


CHAT = Scene(chat_body, "openai-chat", "openai-chat")
MESSAGES = Scene(messages_body, "anthropic-messages", "anthropic-messages")
ACROSS = Scene(messages_body, "anthropic-messages", "openai-chat")


def encode(body: Body) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode()


def report_of(
    scene: Scene, client_bodies: tuple[bytes, bytes], upstream_bodies: tuple[bytes, bytes], **usage: int
) -> CacheReport:
    turns = [
        TurnRequests(
            client_wire=scene.client_wire,
            client_body=client,
            upstream_wire=scene.upstream_wire,
            upstream_body=upstream,
            cached_tokens=usage.get("cached_tokens"),
            input_tokens=usage.get("input_tokens"),
        )
        for client, upstream in zip(client_bodies, upstream_bodies, strict=True)
    ]
    return compare_turns(turns[0], turns[1], scene.try_to_translate)


def client_break(scene: Scene, change: Change) -> CacheReport:
    """Return the report of two turns of which the client changed the second one."""
    first, second = scene.body(), next_turn(scene.body())
    second = change(second) or second
    client = encode(first), encode(second)
    return report_of(scene, client, (scene.translate(client[0]), scene.translate(client[1])))


def gateway_break(scene: Scene, change: Change) -> CacheReport:
    """Return the report of two turns of which the second one was changed on its way to the upstream."""
    client = encode(scene.body()), encode(next_turn(scene.body()))
    first, second = (json.loads(scene.translate(body)) for body in client)
    second = change(second) or second
    return report_of(scene, client, (encode(first), encode(second)))


# ── changes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def at(*path: str | int, change: Callable[[Any], Any]) -> Change:
    """Return a change of the value at this path."""

    def apply(body: Body) -> None:
        target: Any = body
        for step in path[:-1]:
            target = target[step]
        target[path[-1]] = change(target[path[-1]])

    return apply


def set_to(value: Any) -> Callable[[Any], Any]:
    return lambda _: value


def swap(old: str, new: str) -> Callable[[Any], Any]:
    def change(text: str) -> str:
        assert old in text
        return text.replace(old, new, 1)

    return change


def reverse(value: Any) -> Any:
    return dict(reversed(value.items())) if isinstance(value, dict) else value[::-1]


def without(*path: str | int) -> Change:
    def apply(body: Body) -> None:
        target: Any = body
        for step in path[:-1]:
            target = target[step]
        del target[path[-1]]

    return apply


def insert(*path: str | int, value: Any) -> Change:
    def apply(body: Body) -> None:
        target: Any = body
        for step in path[:-1]:
            target = target[step]
        target.insert(path[-1], value)

    return apply


def put(*path: str | int, value: Any) -> Change:
    def apply(body: Body) -> None:
        target: Any = body
        for step in path[:-1]:
            target = target[step]
        target[path[-1]] = value

    return apply


TOOL = ("tools", 0, "function")
ARGUMENTS = ("messages", 2, "tool_calls", 0, "function", "arguments")
SYSTEM_TEXT = ("messages", 0, "content")
USER_TEXT = ("messages", 1, "content", 0, "text")
IMAGE = ("messages", 1, "content", 1, "image_url", "url")
DATA_URL = "data:image/png;base64,"

KINDS: dict[str, tuple[Change, str, str]] = {
    # name: change of a chat body, path and kind of the first difference
    "date in the system prompt": (
        at(*SYSTEM_TEXT, change=swap("2026-03-04", "2026-03-05")),
        "messages[0].content",
        "text",
    ),
    "time in the system prompt": (at(*SYSTEM_TEXT, change=swap("05:06:07", "05:06:41")), "messages[0].content", "text"),
    "directory in the system prompt": (at(*SYSTEM_TEXT, change=swap("/app", "/lib")), "messages[0].content", "text"),
    "line added to the system prompt": (
        at(*SYSTEM_TEXT, change=swap("\nBe", "\nGit status: clean\nBe")),
        "messages[0].content",
        "text",
    ),
    "line removed from the system prompt": (
        at(*SYSTEM_TEXT, change=swap("\nBe brief.", "")),
        "messages[0].content",
        "text",
    ),
    "text added at the end of the system prompt": (
        at(*SYSTEM_TEXT, change=lambda text: text + " Always."),
        "messages[0].content",
        "extended",
    ),
    "text added at the start of the system prompt": (
        at(*SYSTEM_TEXT, change=lambda text: "Note: " + text),
        "messages[0].content",
        "text",
    ),
    "white space at the end of the system prompt": (
        at(*SYSTEM_TEXT, change=lambda text: text.rstrip(".") + ". "),
        "messages[0].content",
        "extended",
    ),
    "line ends": (
        at(*SYSTEM_TEXT, change=lambda text: text.replace("\n", "\r\n")),
        "messages[0].content",
        "white space",
    ),
    "double space": (at(*SYSTEM_TEXT, change=swap("a coding", "a  coding")), "messages[0].content", "white space"),
    "tab for spaces": (at(*SYSTEM_TEXT, change=swap(" a ", "\ta ")), "messages[0].content", "white space"),
    "letter case": (at(*SYSTEM_TEXT, change=swap("coding", "Coding")), "messages[0].content", "letter case"),
    "Unicode form": (at("messages", 2, "content", change=swap("é", "e\u0301")), "messages[2].content", "Unicode form"),
    "no-break space": (
        at(*SYSTEM_TEXT, change=swap("a coding", "a\u00a0coding")),
        "messages[0].content",
        "white space",
    ),
    "quotation marks": (
        at("messages", 2, "content", change=swap("naïve.py", "“naïve.py”")),
        "messages[2].content",
        "text",
    ),
    "system prompt as a list of parts": (
        at(*SYSTEM_TEXT, change=lambda text: [{"type": "text", "text": text}]),
        "messages[0].content",
        "type",
    ),
    "role of the system prompt": (put("messages", 0, "role", value="developer"), "messages[0].role", "text"),
    "second system message": (
        insert("messages", 1, value={"role": "system", "content": "Also."}),
        "messages[1]",
        "item added",
    ),
    "tools in another order": (at("tools", change=reverse), "tools[0]", "item order"),
    "tool added in front": (
        insert("tools", 0, value={"type": "function", "function": {"name": "new", "parameters": {}}}),
        "tools[0]",
        "item added",
    ),
    "tool added at the end": (
        insert("tools", 9, value={"type": "function", "function": {"name": "new", "parameters": {}}}),
        "tools[2]",
        "item added",
    ),
    "tool removed": (without("tools", 0), "tools[0]", "item removed"),
    "last tool removed": (without("tools", 1), "tools[1]", "item removed"),
    "all tools removed": (without("tools"), "tools[0]", "item removed"),
    "tool renamed": (put(*TOOL, "name", value="Read"), "tools[0].function.name", "letter case"),
    "description of a tool": (
        at(*TOOL, "description", change=swap("file", "file of 7 in /work")),
        "tools[0].function.description",
        "extended",
    ),
    "keys of a tool in another order": (
        at("tools", 0, "function", change=reverse),
        "tools[0].function.parameters",
        "key order",
    ),
    "params of a tool in another order": (
        at(*TOOL, "parameters", "properties", change=reverse),
        "tools[0].function.parameters.properties.limit",
        "key order",
    ),
    "required params in another form": (
        at(*TOOL, "parameters", "required", change=lambda names: [*names, "limit"]),
        "tools[0].function.parameters.required[1]",
        "extended",
    ),
    "number form in a schema": (
        put(*TOOL, "parameters", "properties", "limit", "maximum", value=2000.0),
        "tools[0].function.parameters.properties.limit.maximum",
        "number form",
    ),
    "number in a schema": (
        put(*TOOL, "parameters", "properties", "limit", "maximum", value=500),
        "tools[0].function.parameters.properties.limit.maximum",
        "value",
    ),
    "default of a param": (
        put(*TOOL, "parameters", "properties", "limit", "default", value="1"),
        "tools[0].function.parameters.properties.limit.default",
        "type",
    ),
    "schema with one more key": (
        put(*TOOL, "parameters", "additionalProperties", value=False),
        "tools[0].function.parameters.additionalProperties",
        "key added",
    ),
    "schema with one key less": (
        without(*TOOL, "parameters", "required"),
        "tools[0].function.parameters.required",
        "key removed",
    ),
    "strict tool": (put(*TOOL, "strict", value=True), "tools[0].function.strict", "key added"),
    "first message of the user": (at(*USER_TEXT, change=swap("this", "that")), "messages[1].content[0].text", "text"),
    "reminder in front of a message": (
        insert("messages", 1, "content", 0, value={"type": "text", "text": "<system-reminder>…</system-reminder>"}),
        "messages[1].content[0]",
        "item added",
    ),
    "image encoded once more": (
        at(*IMAGE, change=lambda url: url.replace("AAAADUlEQVR42mP8", "AAAADUlEQVR4nGP8")),
        "messages[1].content[1].image_url.url",
        "image",
    ),
    "image of another type": (
        put(*IMAGE, value=f"{DATA_URL.replace('png', 'jpeg')}/9j/4AAQ"),
        "messages[1].content[1].image_url.url",
        "image",
    ),
    "detail of an image": (
        put("messages", 1, "content", 1, "image_url", "detail", value="low"),
        "messages[1].content[1].image_url.detail",
        "key added",
    ),
    "image replaced by text": (
        put("messages", 1, "content", 1, value={"type": "text", "text": "[image]"}),
        "messages[1].content[1].type",
        "text",
    ),
    "id of a call": (
        lambda body: json.loads(json.dumps(body).replace("call_1", "call_7f3a")),
        "messages[2].tool_calls[0].id",
        "id",
    ),
    "arguments in another order": (
        put(*ARGUMENTS, value='{"limit": 20, "path": "naïve.py"}'),
        "messages[2].tool_calls[0].function.arguments",
        "JSON form",
    ),
    "arguments without white space": (
        at(*ARGUMENTS, change=lambda text: text.replace(": ", ":").replace(", ", ",")),
        "messages[2].tool_calls[0].function.arguments",
        "white space",
    ),
    "arguments with escapes": (
        at(*ARGUMENTS, change=swap("ï", "\\u00ef")),
        "messages[2].tool_calls[0].function.arguments",
        "JSON form",
    ),
    "number form in arguments": (
        at(*ARGUMENTS, change=swap("20", "20.0")),
        "messages[2].tool_calls[0].function.arguments",
        "JSON form",
    ),
    "thinking of an earlier turn removed": (
        without("messages", 2, "reasoning_content"),
        "messages[2].reasoning_content",
        "key removed",
    ),
    "text of an earlier reply removed": (put("messages", 2, "content", value=None), "messages[2].content", "type"),
    "result of a tool cut": (at("messages", 3, "content", change=swap("\nline 2", "")), "messages[3].content", "text"),
    "result of a tool cleared": (put("messages", 3, "content", value="[cleared]"), "messages[3].content", "text"),
    "message removed from the middle": (without("messages", 1), "messages[1]", "item removed"),
    "conversation replaced by a summary": (
        lambda body: {**body, "messages": [body["messages"][0], {"role": "user", "content": "Summary: done."}]},
        "messages[1].content",
        "type",
    ),
    "another model": (put("model", value="some-other-model"), "model", "text"),
    "another effort": (put("reasoning_effort", value="low"), "reasoning_effort", "text"),
    "format of the reply": (put("response_format", value={"type": "json_object"}), "response_format", "key added"),
    "another cache key": (put("prompt_cache_key", value="session-2"), "prompt_cache_key", "text"),
    "another tool choice": (put("tool_choice", value="required"), "tool_choice", "key added"),
}


def test_there_are_fifty_kinds() -> None:
    assert len(KINDS) >= 50


@pytest.mark.parametrize("name", KINDS)
def test_break_by_the_client_is_named(name: str) -> None:
    change, path, kind = KINDS[name]
    found = client_break(CHAT, change).prefix_break
    assert found is not None
    assert (found.path, found.difference.kind, found.author) == (path, kind, "client"), found


@pytest.mark.parametrize("name", KINDS)
def test_break_by_the_gateway_is_named(name: str) -> None:
    change, path, kind = KINDS[name]
    found = gateway_break(CHAT, change).prefix_break
    assert found is not None
    assert (found.path, found.difference.kind, found.author) == (path, kind, "gateway"), found


@pytest.mark.parametrize(
    ("name", "change", "path", "kind"),
    [
        ("date", at("system", 1, "text", change=swap("03-04", "03-05")), "messages[0].content", "text"),
        ("tools", at("tools", change=reverse), "tools[0]", "item order"),
        ("keys", at("tools", 0, "input_schema", change=reverse), "tools[0].function.parameters.required", "key order"),
        ("input", at("messages", 1, "content", 1, "input", change=reverse),
         "messages[2].tool_calls[0].function.arguments", "JSON form"),
        ("image", at("messages", 0, "content", 1, "source", "data", change=swap("DUlEQVR42", "DUlEQVR4n")),
         "messages[1].content[1].image_url.url", "image"),
        ("result", at("messages", 2, "content", 0, "content", change=swap("1", "2")), "messages[3].content", "text"),
    ],
)  # fmt: skip
def test_break_by_a_client_of_another_api_is_named(name: str, change: Change, path: str, kind: str) -> None:  # noqa: ARG001
    found = client_break(ACROSS, change).prefix_break
    assert found is not None
    assert (found.path, found.difference.kind, found.author) == (path, kind, "client"), found


@pytest.mark.parametrize("scene", [CHAT, MESSAGES, ACROSS])
def test_next_turn_continues_the_prompt(scene: Scene) -> None:
    report = client_break(scene, lambda _: None)
    assert report.prefix_break is None
    assert 0 < report.shared_tokens == report.previous_tokens < report.total_tokens


def test_first_character_and_cost_are_named() -> None:
    report = client_break(CHAT, at(*USER_TEXT, change=swap("closely. Look", "closely! Look")))
    assert report.prefix_break is not None
    difference = report.prefix_break.difference
    assert difference.offset == len("What is in this picture? Look closely")
    assert difference.before.startswith("is picture? Look closely.")
    assert difference.after.startswith("is picture? Look closely!")
    assert report.prefix_break.lost_tokens == report.previous_tokens - report.shared_tokens
    assert report.shared_tokens > 50, "tools and system prompt come first"


def test_earlier_break_costs_more() -> None:
    costs = [
        client_break(CHAT, KINDS[name][0]).prefix_break
        for name in ("another model", "tools in another order", "date in the system prompt", "result of a tool cut")
    ]
    tokens = [found.lost_tokens for found in costs if found is not None]
    assert len(tokens) == 4
    assert tokens == sorted(tokens, reverse=True)
    assert len(set(tokens)) >= 3


def test_moving_cache_marks_is_no_break_but_their_loss_is() -> None:
    def move_marks(body: Body) -> None:
        del body["system"][1]["cache_control"]
        body["messages"][-1]["content"] = [
            {"type": "text", "text": "Thanks, go on.", "cache_control": {"type": "ephemeral"}}
        ]

    assert client_break(MESSAGES, move_marks).prefix_break is None
    lost = client_break(MESSAGES, without("system", 1, "cache_control")).prefix_break
    assert lost is not None
    assert (lost.part, lost.path, lost.author) == ("cache marks", "system[1].cache_control", "client")


def test_white_space_and_escapes_of_the_json_itself_are_no_break() -> None:
    first, second = chat_body(), next_turn(chat_body())
    client = encode(first), json.dumps(second, indent=2, ensure_ascii=True).encode()
    assert report_of(CHAT, client, client).prefix_break is None


def test_client_change_that_the_gateway_removes_does_not_hide_its_own() -> None:
    """The client changes a setting that never reaches the prompt; the gateway changes a message."""
    first, second = chat_body(), next_turn(chat_body())
    second["messages"][0]["content"] += " "  # the gateway would send it
    upstream_first, upstream_second = (
        json.loads(CHAT.translate(encode(first))),
        json.loads(CHAT.translate(encode(first))),
    )
    upstream_second["messages"][3]["content"] = "changed on the way"
    found = report_of(CHAT, (encode(first), encode(second)), (encode(upstream_first), encode(upstream_second)))
    assert found.prefix_break is not None
    assert (found.prefix_break.path, found.prefix_break.author) == ("messages[3].content", "gateway")


def routed_turn(body: Body, model: str, upstream: str = "local") -> TurnRequests:
    """Return a turn that the gateway has sent to this model of this upstream."""
    client = encode(body)
    return TurnRequests(
        client_wire="openai-chat",
        client_body=client,
        upstream_wire="openai-chat",
        upstream_body=translate_routed(client, model),
        upstream=upstream,
        model=model,
    )


def translate_routed(body: bytes, model: str) -> bytes:
    return encode_json(translate_request(json.loads(body), "openai-chat", "openai-chat", model=model))


@pytest.mark.parametrize(
    ("client_models", "routes", "path", "author"),
    [
        (("demo/a", "demo/b"), (("a", "local"), ("b", "local")), "model", "client"),
        (("demo/a", "demo/a"), (("a", "local"), ("b", "local")), "model", "gateway"),
        (("demo/a", "demo/a"), (("a", "local"), ("a", "other")), "upstream", "gateway"),
        (("demo/a", "other/a"), (("a", "local"), ("a", "other")), "upstream", "client"),
    ],
)
@pytest.mark.parametrize("is_extended", [False, True])
def test_author_of_another_route_is_named(
    client_models: tuple[str, str], routes: tuple[tuple[str, str], ...], path: str, author: str, is_extended: bool
) -> None:
    bodies = [{**chat_body(), "model": client_models[0]}, {**next_turn(chat_body()), "model": client_models[1]}]
    if is_extended:  # the client also changes something that is behind the model
        bodies[1]["messages"][0]["content"] += " Always."
    previous, current = (routed_turn(body, *route) for body, route in zip(bodies, routes, strict=True))
    report = compare_turns(previous, current, lambda body, turn: translate_routed(body, turn.model))
    found = report.prefix_break
    assert found is not None
    assert (found.path, found.author) == (path, author), found
    assert report.shared_tokens == 0
    assert found.lost_tokens == report.previous_tokens


def test_another_api_of_the_client_is_its_change() -> None:
    client = encode(chat_body()), encode(messages_body())
    previous, current = (
        TurnRequests(client_wire=wire, client_body=body, upstream_wire="openai-chat", upstream_body=upstream)
        for wire, body, upstream in (
            ("openai-chat", client[0], CHAT.translate(client[0])),
            ("anthropic-messages", client[1], ACROSS.translate(client[1])),
        )
    )
    found = compare_turns(previous, current, lambda _body, _turn: None).prefix_break
    assert found is not None
    assert found.author == "client"
    assert found.reason == "the client used another API: anthropic-messages after openai-chat"


def test_usage_of_the_upstream_is_reported() -> None:
    client = encode(chat_body()), encode(next_turn(chat_body()))
    report = report_of(CHAT, client, client, cached_tokens=120, input_tokens=400)
    assert (report.cached_tokens, report.input_tokens) == (120, 400)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"messages": 5}', b"\xff"])
def test_bodies_that_are_no_requests_have_a_result(body: bytes) -> None:
    report = report_of(CHAT, (encode(chat_body()), body), (encode(chat_body()), body))
    assert report.total_tokens >= 0


def test_hint_names_the_date() -> None:
    found = client_break(CHAT, KINDS["date in the system prompt"][0]).prefix_break
    assert found is not None
    assert "a date or time changes with each turn" in found.hint
