"""Tests of the demo model: requested calls in every dialect, and a tool loop that always ends."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import interlingua as il
from interlingua.core.reply import Part, Reasoning, Reply
from interlingua.core.tools import ToolSet
from interlingua.dialects.registry import get_dialect
from interlingua.gateway.demo.argument_faker import ArgumentHints, fake_arguments
from interlingua.gateway.demo.planner import MAX_TOOL_TURNS, plan_reply
from interlingua.gateway.demo.prompt_language import parse_steps, user_text
from interlingua.gateway.demo.server import DEMO_DIALECTS, start_demo_server
from interlingua.gateway.demo.tokenizer import UNWRITABLE_REPLY, native_text, text_deltas, tokenize
from interlingua.translation.request_translation import prepare_request
from tests.support.budget import examples
from tests.support.harness import tool
from tests.support.request_forms import CHAT
from tests.support.sdk import read_strict
from tests.translation.test_recorded_requests import COMPLETE_REQUESTS, REQUESTS

Json = dict[str, Any]
ALL = pytest.mark.parametrize("dialect", il.dialects(), ids=lambda dialect: dialect.name)
HERMES, KIMI = get_dialect("hermes"), get_dialect("kimi_k2")


def tool_with_required(name: str, params: Json) -> Json:
    """Return a tool whose params are all required."""
    result = tool(name, params)
    result["function"]["parameters"]["required"] = list(params)
    return result


BASH = tool("Bash", {"command": "string", "timeout": "integer", "background": "boolean"})
BASH["function"]["parameters"]["required"] = ["command"]
WEATHER = tool_with_required("get_weather", {"city": "string"})
PLOT = tool("plot", {"points": "array", "style": "object", "title": "string"})
WRITE = tool_with_required("Write", {"file_path": "string", "content": "string"})
TOOLS = [
    BASH,
    WEATHER,
    PLOT,
    WRITE,
    tool_with_required("Read", {"path": "string"}),
    tool("get_time", {}),
    tool("now", {}),
]
FREE = {"type": "function", "function": {"name": "anything"}}


def body(prompt: str, *messages_after: Json, **fields: Any) -> Json:
    return {"messages": [{"role": "user", "content": prompt}, *messages_after], "tools": TOOLS, **fields}


def called(reply: Reply) -> list[tuple[str, Any]]:
    return [(call.name, json.loads(call.arguments)) for call in reply.calls]


def turn(reply: Reply, result: str = "ok") -> list[Json]:
    """Return the messages that an agent appends after a reply with calls."""
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in reply.calls
    ]
    results = [{"role": "tool", "tool_call_id": call.id, "content": result} for call in reply.calls]
    return [{"role": "assistant", "content": None, "tool_calls": calls}, *results]


# ── all dialects ──────────────────────────────────────────────────────────────────────────────────────────────────

PROMPTS = [
    "hello",
    "What is the weather in Paris and São Paulo?",
    "Use Bash command='echo \"one\" > a.txt && cat <a.txt' and Bash command=\"printf '🚀'\" timeout=5",
    'plot(points=[[1, 2.5], [3, 4]], style={"line": "dashed", "wide": true}, title=\'Año\') then get_time',
    "get_time and now()",
]


@pytest.mark.one_row_in(7)
@ALL
@pytest.mark.parametrize("prompt", PROMPTS)
def test_native_text_is_parsed_as_planned_reply(dialect: il.Dialect, prompt: str) -> None:
    planned = plan_reply(body(prompt), dialect)
    assert planned.calls
    if dialect.grammar is None:
        return
    text = native_text(planned, dialect)
    tokens = tokenize(text, dialect)
    assert "".join(tokens) == text
    parser = il.Parser(dialect, tools=TOOLS)
    piecewise = il.fold([event for piece in tokens for event in parser.feed(piece)] + parser.close())
    for read in (il.parse(text, dialect, tools=TOOLS), piecewise):
        assert called(read) == called(planned), text
        assert read.reasoning.strip() == planned.reasoning, text
        assert read.text.strip() == "", text
        assert [finding.kind for finding in read.findings] == [], text


@ALL
def test_special_tokens_are_not_split(dialect: il.Dialect) -> None:
    tokens = tokenize(dialect.sample, dialect)
    assert "".join(tokens) == dialect.sample
    for token in dialect.tokens:
        if token in dialect.sample and not any(token in other for other in dialect.tokens if other != token):
            assert token in tokens


@ALL
def test_text_reply_is_parsed_as_text(dialect: il.Dialect) -> None:
    marks = " ".join(dialect.markers[:3])
    for request in ({"messages": [{"role": "user", "content": f"Hi, {marks} you"}]}, body("now", tool_choice="none")):
        planned = plan_reply(request, dialect)
        assert dialect.name in planned.text
        if dialect.grammar is not None:
            assert il.parse(native_text(planned, dialect), dialect, tools=TOOLS).text == planned.text


@ALL
def test_tool_loop_in_every_dialect(dialect: il.Dialect) -> None:
    """Two calls, a third after their results, then text; ids are unique."""
    prompt = (
        "Use Bash command='echo one > a.txt' and Bash command='echo two > b.txt', "
        "then Bash command='cat a.txt b.txt > proof.txt'"
    )
    commands: list[list[str]] = []
    ids: list[str] = []
    messages_after: list[Json] = []
    for _ in range(3):
        reply = plan_reply(body(prompt, *messages_after), dialect)
        commands.append([args["command"] for _, args in called(reply)])
        ids += [call.id for call in reply.calls]
        messages_after += turn(reply, "it worked")
    assert commands == [["echo one > a.txt", "echo two > b.txt"], ["cat a.txt b.txt > proof.txt"], []]
    assert "it worked" in reply.text
    assert len(set(ids)) == 3


def test_kimi_ids_continue_over_the_conversation() -> None:
    first = plan_reply(body("get_time and now(), then get_time"), KIMI)
    assert [call.id for call in first.calls] == ["functions.get_time:0", "functions.now:1"]
    second = native_text(plan_reply(body("get_time and now(), then get_time", *turn(first)), KIMI), KIMI)
    assert "functions.get_time:2<" in second


def test_thinking_comes_first_unless_disabled() -> None:
    assert isinstance(plan_reply(body("hi"), KIMI).parts[0], Reasoning)
    for off in (
        {"reasoning_effort": "none"},
        {"thinking": {"type": "disabled"}},
        {"reasoning": {"enabled": False}},
        {"chat_template_kwargs": {"enable_thinking": False}},
    ):
        assert not plan_reply(body("hi", **off), KIMI).reasoning
    assert not any(
        plan_reply(body("hi"), d).reasoning for d in il.dialects() if d.grammar and not (d.thinking or d.router)
    )


def test_unwritable_reply_is_replaced_by_text() -> None:
    unwritable = Reply(parts=[Reasoning("hm"), il.Call("1", "a<|tool_call_end|>", "{}")])
    assert il.parse(native_text(unwritable, KIMI), KIMI).text == UNWRITABLE_REPLY


# ── prompt language ───────────────────────────────────────────────────────────────────────────────────────────────

LANGUAGE: list[tuple[str, list[list[tuple[str, Json]]]]] = [
    ("just prose about bash, and then some", []),
    ("x=1 PROOF_FILE=/tmp/x", []),
    ("anything x=1", [[("anything", {"x": 1})]]),
    ("city=Paris", [[("get_weather", {"city": "Paris"})]]),
    ("bash command=ls.", [[("Bash", {"command": "ls"})]]),
    ("Bash command='touch /tmp/x'", [[("Bash", {"command": "touch /tmp/x"})]]),
    ('Read path="a b.txt"', [[("Read", {"path": "a b.txt"})]]),
    ("get_weather city=“São Paulo”, please", [[("get_weather", {"city": "São Paulo"})]]),
    ("get_weather city=`東京`", [[("get_weather", {"city": "東京"})]]),
    (r"Bash command='it\'s \n \\'", [[("Bash", {"command": "it's \\n \\"})]]),
    ("Bash command='never closed", [[("Bash", {"command": "'never"})]]),
    ("Bash(command=ls, timeout=5, background=true)", [[("Bash", {"command": "ls", "timeout": 5, "background": True})]]),
    ('Bash({"command": "ls"}) Bash {"command": "pwd"}', [[("Bash", {"command": "ls"}), ("Bash", {"command": "pwd"})]]),
    ('Bash timeout="5" command="5"', [[("Bash", {"timeout": 5, "command": "5"})]]),
    ("city=Paris city=Rome", [[("get_weather", {"city": "Paris"}), ("get_weather", {"city": "Rome"})]]),
    ("Bash command=ls city=Rome", [[("Bash", {"command": "ls"}), ("get_weather", {"city": "Rome"})]]),
    ("Bash command=ls, Then read path=a", [[("Bash", {"command": "ls"})], [("Read", {"path": "a"})]]),
    ("Bash command='if x; then y; fi' and then stop", [[("Bash", {"command": "if x; then y; fi"})]]),
    ("get_time, then now() and now", [[("get_time", {})], [("now", {})]]),
    ("read it now, get_weather city=Rome", [[("get_weather", {"city": "Rome"})]]),
    ('plot points=[1, [2]] style={"a": {"b": null}}', [[("plot", {"points": [1, [2]], "style": {"a": {"b": None}}})]]),
    ("Bash command= and more", [[("Bash", {"command": ""})]]),
    ("if command==ls", []),
]


@pytest.mark.parametrize(("prompt", "expected"), LANGUAGE, ids=[prompt for prompt, _ in LANGUAGE])
def test_prompt_language(prompt: str, expected: list[list[tuple[str, Json]]]) -> None:
    assert [
        [(request.tool, request.args) for request in step] for step in parse_steps(prompt, ToolSet([*TOOLS, FREE]))
    ] == expected


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("<system-reminder>\nBash command=rm\n</system-reminder>\nhello", "hello"),
        (
            "hello<system-reminder>a</system-reminder> you <environment_context><cwd>/x</cwd></environment_context>",
            "hello you",
        ),
        ("<system-reminder>cut sh…", ""),
        ("hi<system-reminder>a</system-reminder><system-reminder>b", "hi"),
        ("<info>Bash</info>What is <context>?", "What is <context>?"),
        ('"Use Bash command=\\"ls -l\\""', 'Use Bash command="ls -l"'),
        ('"a" and "b"', '"a" and "b"'),
        ("<system-reminder>a</system-reminder>", ""),
        ("<system>\n# Environment\n</system>", ""),
    ],
)
def test_notes_of_agents_are_removed_from_user_text(message: str, text: str) -> None:
    assert user_text(message) == text


REMINDER = {"role": "user", "content": "<system-reminder>Bash command='rm -r x'</system-reminder>"}
ANSWER = {"role": "assistant", "content": "Done."}


def tool_turn(prompt: str) -> list[Json]:
    return turn(plan_reply(body(prompt), HERMES))


CONVERSATIONS: list[tuple[str, list[Json], Json, list[tuple[str, Json]]]] = [
    ("city=Paris", [REMINDER, REMINDER], {}, [("get_weather", {"city": "Paris"})]),
    ("city=Paris", [*tool_turn("city=Paris"), REMINDER], {}, []),
    (
        "city=Paris then city=Rome",
        [*tool_turn("city=Paris"), {"role": "user", "content": "Go on"}],
        {},
        [("get_weather", {"city": "Rome"})],
    ),
    (
        "city=Paris",
        [*tool_turn("city=Paris"), ANSWER, {"role": "user", "content": "now city=Rome"}],
        {},
        [("get_weather", {"city": "Rome"})],
    ),
    (
        "city=Paris then city=Rome",
        [*tool_turn("city=Paris"), ANSWER, {"role": "user", "content": "use read"}],
        {},
        [("Read", {"path": "README.md"})],
    ),
    ("hi", [*tool_turn("hi"), {"role": "user", "content": "Go on"}], {}, []),
    ("city=Paris city=Rome", [], {"parallel_tool_calls": False}, [("get_weather", {"city": "Paris"})]),
    (
        "city=Paris city=Rome",
        tool_turn("city=Paris"),
        {"parallel_tool_calls": False},
        [("get_weather", {"city": "Rome"})],
    ),
    ("hi", [], {"tool_choice": "none"}, []),
    (
        "hi city=Rome",
        tool_turn("city=Rome"),
        {"tool_choice": "required"},
        [("Bash", {"command": "echo hello from demo/hermes"})],
    ),
    (
        "hi",
        [],
        {"tool_choice": {"type": "function", "function": {"name": "get_weather"}}},
        [("get_weather", {"city": "Paris"})],
    ),
    (
        "Bash command=x city=Oslo",
        [],
        {"tool_choice": {"type": "function", "function": {"name": "get_weather"}}},
        [("get_weather", {"city": "Oslo"})],
    ),
    (
        "hi",
        [],
        {
            "tool_choice": {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "now"}}]},
            }
        },
        [("now", {})],
    ),
    ("hi", [], {"tools": []}, []),
    ("Summarize this. Respond with TEXT ONLY. Do NOT call any tools.", [], {}, []),
    ("hello", [], {}, [("Bash", {"command": "echo hello from demo/hermes"})]),
    ("write a poem", [], {}, [("Bash", {"command": "echo hello from demo/hermes"})]),
    ("read src/main.py and README.md", [], {}, [("Read", {"path": "src/main.py"}), ("Read", {"path": "README.md"})]),
    ("both", [], {"tools": [tool("now", {})]}, [("now", {})]),
]


@pytest.mark.parametrize(("prompt", "messages_after", "fields", "expected"), CONVERSATIONS)
def test_calls_by_state_of_conversation(
    prompt: str, messages_after: list[Json], fields: Json, expected: list[Any]
) -> None:
    assert called(plan_reply({**body(prompt, *messages_after), **fields}, HERMES)) == expected


@pytest.mark.parametrize(
    ("request_text", "fields", "notes"),
    [
        ("Write a summary. Do not call any tools.", {}, []),
        ("Write a summary. Call no tools.", {}, [REMINDER]),
        ("Summarize the conversation.", {"tool_choice": "none"}, []),
        ("Summarise the conversation.", {"tools": []}, []),
    ],
)
def test_summary_names_the_remaining_steps(request_text: str, fields: Json, notes: list[Json]) -> None:
    done = tool_turn("city=Paris")
    ask = {"role": "user", "content": request_text}
    summary = plan_reply({**body("city=Paris then city=Rome", *done, ask, *notes), **fields}, HERMES)
    assert not summary.calls
    assert called(plan_reply(body(summary.text), HERMES)) == [("get_weather", {"city": "Rome"})]


def test_summary_of_a_finished_task_names_no_steps() -> None:
    ask = {"role": "user", "content": "Write a summary. Do not call any tools."}
    assert "The task is done." in plan_reply(body("city=Paris", *tool_turn("city=Paris"), ask), HERMES).text


def test_required_tool_choice_ends_with_final_tool() -> None:
    tools = [BASH, tool_with_required("final_answer", {"answer": "string"})]
    first = {**body("Bash command=ls"), "tools": tools, "tool_choice": "required"}
    assert [name for name, _ in called(plan_reply(first, HERMES))] == ["Bash"]
    observation = [
        {"role": "assistant", "content": "Calling tools: …"},
        {"role": "user", "content": "Observation:\nok"},
    ]
    assert [name for name, _ in called(plan_reply({**first, "messages": first["messages"] + observation}, HERMES))] == [
        "final_answer"
    ]


@pytest.mark.parametrize("prompt", ["hi", "go on and on", "city=Paris", "get_time then get_time then now()"])
@pytest.mark.parametrize("nudge", ["", "Go on.", "<system-reminder>x</system-reminder>"])
def test_tool_loop_always_ends(prompt: str, nudge: str) -> None:
    messages: list[Json] = [{"role": "user", "content": prompt}]
    for _ in range(10):
        reply = plan_reply({"messages": messages, "tools": TOOLS}, HERMES)
        if not reply.calls:
            return
        messages += turn(reply) + ([{"role": "user", "content": nudge}] if nudge else [])
    raise AssertionError(messages)


def test_calls_stop_after_maximum_of_tool_turns() -> None:
    messages: list[Json] = []
    for _ in range(MAX_TOOL_TURNS):
        messages.append({"role": "user", "content": "Go on."})
        messages += [*turn(plan_reply({"messages": messages, "tools": TOOLS}, HERMES)), ANSWER]
    reply = plan_reply({"messages": [*messages, {"role": "user", "content": "Go on."}], "tools": TOOLS}, HERMES)
    assert not reply.calls


def test_titles_and_response_formats() -> None:
    system = {"role": "system", "content": "Write a title for this conversation."}
    titled = plan_reply({"messages": [system, {"role": "user", "content": "hi " * 500}]}, HERMES)
    assert len(titled.text) < 40
    schema = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
    request = {"messages": [system], "response_format": {"type": "json_schema", "json_schema": {"schema": schema}}}
    assert isinstance(json.loads(plan_reply(request, HERMES).text)["title"], str)
    assert json.loads(plan_reply({**request, "response_format": {"type": "json_object"}}, HERMES).text)


@pytest.mark.parametrize("name", COMPLETE_REQUESTS)
def test_recorded_requests_of_agents(name: str) -> None:
    wire, request = REQUESTS[name]
    request = prepare_request(json.loads(json.dumps(request)), wire, CHAT).body
    for dialect in (KIMI, HERMES, get_dialect("qwen3_coder"), get_dialect("pythonic")):
        reply = plan_reply(request, dialect)
        text = native_text(reply, dialect)
        assert called(il.parse(text, dialect, tools=request.get("tools"))) == called(reply), text


# ── arguments ─────────────────────────────────────────────────────────────────────────────────────────────────────

numbers = st.integers(-1000, 1000)


@st.composite
def schemas(draw: st.DrawFn, depth: int = 3) -> Json:
    """Generate sensible schemas."""
    kinds = ["string", "integer", "number", "boolean", "enum", "const", "format", "null"]
    kind = draw(st.sampled_from([*kinds, "array", "object", "anyOf", "allOf", "ref"] if depth else kinds))
    inner = schemas(depth=depth - 1)
    match kind:
        case "string":
            low = draw(st.integers(0, 60))
            return {"type": ["string", "null"], "minLength": low, "maxLength": low + draw(st.integers(0, 60))}
        case "integer" | "number":
            low = draw(numbers)
            words = draw(st.sampled_from([("minimum", "maximum"), ("exclusiveMinimum", "exclusiveMaximum")]))
            bounds = dict(zip(words, (low, low + draw(st.integers(2, 50))), strict=True))
            return {"type": kind, **{word: bounds[word] for word in words if draw(st.booleans())}}
        case "enum":
            return {"enum": draw(st.lists(st.text() | numbers | st.none(), min_size=1, max_size=4))}
        case "const":
            return {"const": draw(st.text() | numbers | st.none())}
        case "format":
            return {"type": "string", "format": draw(st.sampled_from(["date", "date-time", "email", "ipv4"]))}
        case "array":
            low = draw(st.integers(0, 3))
            return {"type": "array", "items": draw(inner), "minItems": low, "maxItems": low + draw(st.integers(0, 3))}
        case "object":
            return draw(objects(depth - 1))
        case "anyOf":
            return {draw(st.sampled_from(["anyOf"])): [draw(inner), draw(inner)], "description": "either"}
        case "allOf":
            return {"allOf": [draw(objects(depth - 1))]}
        case "ref":
            return {"$ref": "#/$defs/place"}
    return {"type": kind}


@st.composite
def objects(draw: st.DrawFn, depth: int = 2) -> Json:
    properties = draw(
        st.dictionaries(st.sampled_from(["path", "command", "city", "url", "x", "filePath"]), schemas(depth=depth))
    )
    required = draw(st.lists(st.sampled_from(sorted(properties)), unique=True)) if properties else []
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


PLACE = {"type": "object", "properties": {"lat": {"type": "number", "maximum": 90}}, "required": ["lat"]}


@settings(max_examples=examples(300))
@given(objects(), st.sampled_from(["", "Add 2 and 3.5 to a/b.txt in Oslo, see https://example.com/x", "-7 99999"]))
def test_fake_arguments_are_valid(schema: Json, prompt: str) -> None:
    schema = {**schema, "$defs": {"place": PLACE}}
    result = fake_arguments(schema, ArgumentHints("demo/x", prompt))
    jsonschema.Draft202012Validator(schema).validate(json.loads(json.dumps(result)))
    assert set(result) == set(schema["required"])


GUESSES: list[tuple[str, Any, Any]] = [
    ("command", {"type": "string"}, "echo hello from demo/x"),
    ("command", {"type": "array", "items": {"type": "string"}}, ["echo", "hello from demo/x"]),
    ("file_path", {"type": "string"}, "src/a.py"),
    ("city", {"type": "string"}, "New York"),
    ("url", {"type": "string"}, "https://example.com/q"),
    ("n", {"type": "integer"}, 12),
    ("n", {"type": "integer", "maximum": 5, "minimum": 4}, 4),
    ("n", {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0.5),
    ("n", {"type": "integer", "multipleOf": 5}, 5),
    ("n", {"type": "number", "multipleOf": 5e-324, "minimum": 2, "maximum": 3}, 2),
    ("unit", {"enum": ["c", "f"]}, "c"),
    ("limit", {"type": "integer", "default": 10}, 10),
    ("limit", {"type": "integer", "default": "ten", "examples": [7]}, 7),
    ("code", {"type": "string", "pattern": "^[A-Z]{3}$"}, "ABC"),
    ("code", {"type": "string", "pattern": "(", "maxLength": 5}, "print"),
    ("day", {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$"}, "2025-01-01"),
    ("mail", {"type": "string", "pattern": r"[a-z]+@[a-z]+\.[a-z]{2,}"}, "a@b.co"),
    ("pair", {"type": "array", "prefixItems": [{"const": 1}, {"const": "b"}]}, [1, "b"]),
    ("many", {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 2, "uniqueItems": True}, ["a", "b"]),
    ("many", {"type": "array", "items": {"type": "integer", "exclusiveMaximum": 1}, "minItems": 3}, [0, -1, -2]),
    ("many", {"type": "array", "items": {"type": "integer", "multipleOf": 3}, "minItems": 3}, [12, 6, 9]),
    ("many", {"type": "array", "items": {"type": "integer", "minimum": 4, "maximum": 4}, "minItems": 2}, [4, 4]),
    ("some", {"type": "object", "properties": {"id": {"type": "STRING"}}, "minProperties": 1}, {"id": "1"}),
    ("maybe", {"anyOf": [{"type": "null"}, {"type": "bool"}]}, False),
    ("odd", {"type": "teapot"}, "hello from demo/x"),
    ("odd", 5, "hello from demo/x"),
]


@pytest.mark.parametrize(("name", "schema", "expected"), GUESSES)
def test_fake_argument_values(name: str, schema: Any, expected: Any) -> None:
    prompt = "Look at src/a.py 12 times from New York, see https://example.com/q"
    assert fake_arguments({"properties": {name: schema}, "required": [name]}, ArgumentHints("demo/x", prompt)) == {
        name: expected
    }


@pytest.mark.parametrize(
    "pattern",
    [
        r"^(.|.|.|.|.|.|.|.)*$x",
        r"(\w+\w+\w+)+!",
        r"^(?=(\w*)*$).*!",
        r"\w*\w*\w*\w*\w*\w*\w*\w*\w*!",
        "(?:" * 200 + "a" + "{1,99})" * 200,
        "a{99999}",
        "\\w{0,99}" * 20,
    ],
)
def test_hostile_pattern_is_not_matched(pattern: str) -> None:
    """Patterns come from clients, and matching could take exponential time."""
    schema = {"properties": {"code": {"type": "string", "pattern": pattern}}, "required": ["code"]}
    start = time.process_time()
    assert fake_arguments(schema, ArgumentHints("demo/x"))["code"]
    assert time.process_time() - start < 0.5


def test_circular_schemas_end() -> None:
    node = {"$ref": "#"}
    for schema in (
        {"type": "object", "properties": {"a": node, "b": node}, "required": ["a", "b"]},
        {"allOf": [node, node, node]},
        {
            "anyOf": [node, node],
            "properties": {"l": {"type": "array", "items": node, "minItems": 64}},
            "required": ["l"],
        },
    ):
        assert isinstance(fake_arguments(schema, ArgumentHints("demo/x")), dict)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["user", "assistant", "tool"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["role", "content", "text", "tool_calls", "id", "function", "name", "parameters", "properties", "type"]
            ),
            inner,
            max_size=5,
        )
    ),
)


@given(
    st.fixed_dictionaries({}, optional=dict.fromkeys(["messages", "tools", "tool_choice", "response_format"], anything))
)
def test_any_request_has_a_reply(request: Json) -> None:
    reply = plan_reply(request, KIMI)
    assert list(text_deltas(native_text(reply, KIMI), KIMI))


# ── over HTTP ─────────────────────────────────────────────────────────────────────────────────────────────────────


def run_with_server(send_requests: Callable[[aiohttp.ClientSession, str], Awaitable[None]], pace: float = 0) -> None:
    async def run() -> None:
        url, runner = await start_demo_server(pace)
        try:
            async with aiohttp.ClientSession() as session:
                await asyncio.wait_for(send_requests(session, url), 10)
        finally:
            await runner.cleanup()

    asyncio.run(run())


async def streamed(session: aiohttp.ClientSession, url: str, request: Json) -> list[Json]:
    async with session.post(f"{url}/chat/completions", json={**request, "stream": True}) as response:
        events = (await response.text()).removesuffix("\n\n").split("\n\n")
    assert events.pop() == "data: [DONE]"
    return [json.loads(event.removeprefix("data: ")) for event in events]


@pytest.mark.parametrize("model", ["demo/kimi_k2", "demo/standard"])
def test_streamed_reply_equals_whole_reply(model: str) -> None:
    async def send_requests(session: aiohttp.ClientSession, url: str) -> None:
        request = body("get_time and city=Paris", model=model)
        async with session.post(f"{url}/chat/completions", json=request) as response:
            whole = await response.json()
        chunks = await streamed(session, url, {**request, "stream_options": {"include_usage": True}})
        message = whole["choices"][0]["message"]
        deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
        for field in ("content", "reasoning_content"):
            assert "".join(delta.get(field) or "" for delta in deltas) == (message.get(field) or "")
        args = "".join(call["function"]["arguments"] for delta in deltas for call in delta.get("tool_calls", ()))
        assert args == "".join(call["function"]["arguments"] for call in message.get("tool_calls", ()))
        assert chunks[-1]["usage"] == whole["usage"]
        assert whole["usage"]["completion_tokens"] == len(deltas) - 2
        assert chunks[0]["id"] != whole["id"]
        assert whole["choices"][0]["finish_reason"] == ("stop" if "kimi" in model else "tool_calls")

    run_with_server(send_requests)


def test_call_ids_of_a_server_with_a_tool_parser_are_random() -> None:
    async def send_requests(session: aiohttp.ClientSession, url: str) -> None:
        ids = []
        for _ in range(2):
            async with session.post(f"{url}/chat/completions", json=body("city=Paris", model="standard")) as response:
                message = (await response.json())["choices"][0]["message"]
            ids += [call["id"] for call in message["tool_calls"]]
        assert len(set(ids)) == 2

    run_with_server(send_requests)


@pytest.mark.one_row_in(5)
@ALL
def test_tool_loop_over_http(dialect: il.Dialect) -> None:
    """Run a tool loop like an agent behind a gateway: translate streams and return results until the reply is text."""

    async def send_requests(session: aiohttp.ClientSession, url: str) -> None:
        request = body("city=Paris and Bash command='ls -l', then get_time", model=f"demo/{dialect.name}", stream=True)
        turns = []
        for _ in range(3):
            translator = il.Translator("openai-chat", "openai-chat", dialect, tools=TOOLS)
            async with session.post(f"{url}/chat/completions", json=request) as response:
                sent = [translator.feed(piece) async for piece in response.content.iter_any()]
            choice = read_strict(b"".join([*sent, translator.close()])).choices[0]
            turns.append([(name, json.loads(arguments)) for _, name, arguments in choice.calls])
            calls: list[Part] = [il.Call(*call) for call in choice.calls]
            request["messages"] += turn(Reply(parts=calls), "all is well")
        assert turns == [[("get_weather", {"city": "Paris"}), ("Bash", {"command": "ls -l"})], [("get_time", {})], []]
        assert choice.finish == "stop"
        assert "all is well" in choice.text
        assert translator.findings == []

    run_with_server(send_requests)


def test_model_list_and_errors_over_http() -> None:
    async def send_requests(session: aiohttp.ClientSession, url: str) -> None:
        async with session.get(f"{url}/models") as response:
            assert [model["id"] for model in (await response.json())["data"]] == list(DEMO_DIALECTS)
        for sent, status in (
            (json.dumps(body("hi", model="gpt-5")), 404),
            ("[]", 400),
            ("{", 400),
            ('{"model": "demo/hermes"}', 400),
        ):
            async with session.post(f"{url}/chat/completions", data=sent) as response:
                assert response.status == status
                assert (await response.json())["error"]["message"]

    run_with_server(send_requests)


def test_max_tokens() -> None:
    async def send_requests(session: aiohttp.ClientSession, url: str) -> None:
        chunks = await streamed(session, url, body("hi", model="demo/hermes", max_tokens=3))
        assert chunks[-1]["choices"][0]["finish_reason"] == "length"
        assert len(chunks) == 1 + 3 + 1

    run_with_server(send_requests)


@pytest.mark.parametrize("stream", [True, False])
def test_request_is_cancelled_when_client_disconnects(stream: bool) -> None:
    async def send_requests(session: aiohttp.ClientSession, url: str) -> None:
        others = asyncio.all_tasks()
        posting = session.post(f"{url}/chat/completions", json=body("hi", model="demo/hermes", stream=stream))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3), posting as response:
                await response.text()
        await asyncio.sleep(0.2)
        assert asyncio.all_tasks() <= others

    run_with_server(send_requests, pace=30)


@pytest.mark.one_row_in(5)
@pytest.mark.parametrize("dialect", [dialect for dialect in il.dialects() if dialect.grammar], ids=lambda d: d.name)
def test_sloppy_calls_are_right_if_they_are_constrained(dialect: il.Dialect) -> None:
    """A prompt with `sloppily` makes the model stop inside its call, unless its request constrains it."""

    async def send_requests(session: aiohttp.ClientSession, url: str) -> None:
        request = body("sloppily: get_weather city=Paris", model=dialect.name, tools=[WEATHER])
        tag = il.export("structural-tag", dialect, [WEATHER], "required").content
        replies = []
        for fields in ({}, {"structured_outputs": {"structural_tag": json.dumps(tag)}}, {"response_format": tag}):
            async with session.post(f"{url}/chat/completions", json={**request, **fields}) as response:
                content = (await response.json())["choices"][0]["message"]["content"]
            replies.append(il.parse(content, dialect, tools=[WEATHER]))
        free, *constrained = replies
        assert not any(call.complete for call in free.calls)
        for reply in constrained:
            assert [(call.name, json.loads(call.arguments)) for call in reply.calls] == [
                ("get_weather", {"city": "Paris"})
            ]
            assert reply.findings == []

    run_with_server(send_requests)


@pytest.mark.parametrize(
    "fields",
    [
        {"structured_outputs": {"structural_tag": "{"}},
        {"response_format": {"type": "structural_tag", "format": {"type": "unknown"}}},
        {"response_format": {"type": "structural_tag", "format": {"type": "const_string", "value": "x"}}},
    ],
)
def test_invalid_constraint_is_refused(fields: Json) -> None:
    async def send_requests(session: aiohttp.ClientSession, url: str) -> None:
        request = {**body("hi", model="demo/hermes"), **fields}
        async with session.post(f"{url}/chat/completions", json=request) as response:
            assert response.status == 400
            assert "Invalid structural tag specification" in (await response.json())["error"]["message"]

    run_with_server(send_requests)
