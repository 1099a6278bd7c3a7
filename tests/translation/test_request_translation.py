"""Request translation: pass-through on the same wire, model-specific settings, rejected requests and findings."""

from __future__ import annotations

import json

import pytest

import interlingua as il
from interlingua.errors import BadRequest, UnknownWire, UsageError
from interlingua.translation.request_translation import prepare_request
from interlingua.upstreams import list_profiles
from interlingua.upstreams.profile import Profile
from tests.support.request_forms import CHAT, MESSAGES, RESPONSES
from tests.support.request_tables import (
    IMAGE,
    MINIMAL_REQUESTS,
    PING_SCHEMA,
    TEXT,
    TOOL,
    TOOL_RESULT,
    TOOL_USE,
    WITH_TOOL,
    Json,
    chat_call,
    input_items,
    translate,
    user,
)


def test_prepared_request_has_offered_tools_and_call_ids() -> None:
    call = {"type": "tool_use", "id": "t1", "name": "ping", "input": {}}
    body = {
        "tools": [TOOL[MESSAGES], {**TOOL[MESSAGES], "name": "later", "defer_loading": True}],
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [call]},
            *user(TOOL_RESULT)["messages"],
        ],
    }
    prepared = prepare_request({**MINIMAL_REQUESTS[MESSAGES], "model": "m", **body}, MESSAGES, CHAT)
    assert ([tool.name for tool in prepared.tools], prepared.taken_ids) == (["ping"], ("t1",))


# ── the same wire ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_same_wire_changes_only_what_the_profile_requires() -> None:
    call = {**chat_call(arguments=" {} "), "extra_content": {"google": {"thought_signature": "x"}}}
    body = {
        "model": "m",
        "messages": [
            {"role": "developer", "content": "A"},
            {"role": "user", "content": [TEXT[CHAT]]},
            {"role": "assistant", "content": "a", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "t1", "content": "ok"},
        ],
        "max_completion_tokens": 5,
        "unknown": {"a": 1},
        "reasoning_effort": "low",
        "tools": [{"type": "function", "function": {"name": "ping", "strict": True}}],
    }
    changed = il.translate_request(body, CHAT, CHAT, upstream=Profile(name="x", thinking="type", strict_tools=False))
    assert changed == {
        "model": "m",
        "messages": [{"role": "system", "content": "A"}, *body["messages"][1:]],  # type: ignore[index]
        "max_tokens": 5,
        "unknown": {"a": 1},
        "thinking": {"type": "enabled"},
        "tools": [TOOL[CHAT]],
    }


def test_same_wire_changes_only_the_repaired_history() -> None:
    odd = {"role": "user", "content": [TEXT[CHAT]], "odd": 1}
    called = {"role": "assistant", "content": "a", "tool_calls": [chat_call()], "odd": 2}
    body = {"model": "m", "messages": [odd, called, odd], "max_completion_tokens": 5, "unknown": 1, "stream": False}
    changed = prepare_request(body, CHAT, CHAT)
    result = {"role": "tool", "tool_call_id": chat_call()["id"], "content": "[no result: interrupted]"}
    assert changed.body == {**body, "messages": [odd, called, result, odd]}
    assert [finding.kind for finding in changed.findings] == ["no-result"]
    with pytest.raises(BadRequest, match=r"messages\[1\]"):
        prepare_request(body, CHAT, CHAT, strict=True)


def test_same_wire_keeps_all_messages_if_their_indexes_shift() -> None:
    """Two system messages are merged and an image moves out of its result: the same number of different messages."""
    shot = {"role": "tool", "tool_call_id": "t1", "content": [IMAGE[CHAT]]}
    systems = [{"role": "system", "content": "A"}, {"role": "system", "content": "B"}]
    called = {"role": "assistant", "content": "a", "tool_calls": [chat_call()]}
    body = {"model": "m", "messages": [*systems, {"role": "user", "content": "hi"}, called, shot]}
    messages = il.translate_request(body, CHAT, CHAT, upstream=Profile(name="x"))["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool", "user"]
    assert messages[0]["content"] == "A\n\nB"
    assert messages[-1]["content"][1] == IMAGE[CHAT]


@pytest.mark.parametrize(("upstream", "model"), [("moonshot", "m"), ("mistral", "m"), ("vllm", "kimi-k2")])
def test_same_wire_rewrites_legacy_function_calls(upstream: str, model: str) -> None:
    body = {
        "model": model,
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
            {"role": "function", "name": "f", "content": "ok"},
        ],
    }
    call, result = il.translate_request(body, CHAT, CHAT, upstream=upstream)["messages"][1:3]
    assert result == {"role": "tool", "tool_call_id": call["tool_calls"][0]["id"], "content": "ok"}


def test_unknown_upstream_on_same_wire_gets_request_unchanged() -> None:
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": [{**TEXT[CHAT], "cache_control": {"type": "ephemeral"}}]}],
        "top_k": 5,
        "prompt_cache_key": "k",
        "tools": [{"type": "function", "function": {"name": "ping", "strict": False}}],
    }
    assert prepare_request(body, CHAT, CHAT, upstream="any") == prepare_request(body, CHAT, CHAT)
    assert prepare_request(body, CHAT, CHAT).body == body


def test_same_wire_drops_fields_that_the_upstream_rejects() -> None:
    tool = {"type": "function", "function": {"name": "ping", "parameters": PING_SCHEMA, "strict": False}}
    body = {"model": "m", **MINIMAL_REQUESTS[CHAT], "tools": [tool]}
    assert il.translate_request(body, CHAT, CHAT, upstream="zai")["tools"] == [TOOL[CHAT]]
    assert il.translate_request(body, CHAT, CHAT, upstream="openai")["tools"] == [tool]


def test_model_name_is_replaced() -> None:
    body = {"model": "m", **MINIMAL_REQUESTS[CHAT], "odd": 1}
    assert il.translate_request(body, CHAT, CHAT, model="n") == {**body, "model": "n"}
    assert il.translate_request(body, CHAT, MESSAGES, model="n")["model"] == "n"
    assert body["model"] == "m"


# ── models ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("upstream", ["moonshot", "vllm", "sglang", "openrouter", "any"])
def test_kimi_models_get_kimi_call_ids_on_every_upstream(upstream: str) -> None:
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [TOOL_USE]},
        *user(TOOL_RESULT)["messages"],
    ]
    body = {"model": "x", "max_tokens": 9, "messages": messages}
    request = il.translate_request(body, MESSAGES, CHAT, model="moonshotai/Kimi-K2-Instruct", upstream=upstream)
    call, result = request["messages"][1:3]
    assert [call["tool_calls"][0]["id"], result["tool_call_id"]] == ["functions.ping:0"] * 2


MODELS: list[tuple[str, str, Json, Json, str]] = [
    # upstream, model, fields of the client's request, fields of the upstream's request, kinds of the findings
    ("openai", "o3", {"thinking": {"type": "disabled"}}, {"reasoning_effort": "low"}, "thinking-wish"),
    ("openai", "gpt-5.1", {"thinking": {"type": "disabled"}}, {"reasoning_effort": "none"}, ""),
    ("vllm", "openai/gpt-oss-20b", {"thinking": {"type": "disabled"}}, {"chat_template_kwargs": None}, "thinking-wish"),
    ("zai", "glm-5.3", {"thinking": {"type": "disabled"}}, {"reasoning_effort": "low"}, "thinking-wish"),
    ("zai", "glm-4.6", {"thinking": {"type": "disabled"}}, {"thinking": {"type": "disabled"}}, ""),
    (
        "moonshot",
        "kimi-k2.6",
        WITH_TOOL[MESSAGES] | {"tool_choice": {"type": "any"}},
        {"tool_choice": "required", "thinking": {"type": "disabled"}},
        "thinking-stopped",
    ),
    (
        "moonshot",
        "kimi-k2.7-code",
        WITH_TOOL[MESSAGES] | {"tool_choice": {"type": "any"}},
        {"tool_choice": "auto", "thinking": None},
        "choice-relaxed",
    ),
    (
        "moonshot",
        "kimi-k3",
        WITH_TOOL[MESSAGES] | {"tool_choice": {"type": "tool", "name": "ping"}},
        {"tool_choice": "required", "thinking": None},
        "",
    ),
    (
        "moonshot",
        "kimi-k2.6",
        {"temperature": 0.5, "top_p": 1},
        {"temperature": None, "top_p": None},
        "setting-dropped",
    ),
    ("moonshot", "kimi-k2-0905-preview", {"temperature": 0.5}, {"temperature": 0.5}, ""),
    ("openai", "o4-mini", {"temperature": 0.5}, {"temperature": None}, "setting-dropped"),
    ("openai", "gpt-4.1", {"temperature": 0.5}, {"temperature": 0.5}, ""),
    (
        "openrouter",
        "deepseek/deepseek-v4-flash",
        WITH_TOOL[MESSAGES] | {"tool_choice": {"type": "any"}},
        {"tool_choice": "required", "reasoning": {"enabled": False}},
        "thinking-stopped",
    ),
    ("moonshot", "kimi-k2-0905-preview", {"thinking": {"type": "disabled"}}, {"thinking": None}, ""),
    ("minimax", "MiniMax-M3", {"thinking": {"type": "disabled"}}, {"thinking": {"type": "disabled"}}, ""),
    ("minimax", "MiniMax-M2.5", {"thinking": {"type": "disabled"}}, {"thinking": None}, "thinking-wish"),
    (
        "deepseek",
        "deepseek-v4-pro",
        {"output_config": {"effort": "high"}, "thinking": {"type": "adaptive"}},
        {"reasoning_effort": "high"},
        "",
    ),
    (
        "deepseek",
        "deepseek-v4-pro",
        {"output_config": {"effort": "high"}},
        {"reasoning_effort": None, "thinking": {"type": "disabled"}},
        "thinking-wish",
    ),
    (
        "vllm",
        "gpt-oss-120b",
        {"output_config": {"effort": "high"}},
        {"reasoning_effort": None},
        "thinking-wish thinking-wish",
    ),
]


@pytest.mark.parametrize(("upstream", "model", "fields", "expected", "kinds"), MODELS)
def test_model_specific_settings(upstream: str, model: str, fields: Json, expected: Json, kinds: str) -> None:
    request = {"model": model, **MINIMAL_REQUESTS[MESSAGES], **fields}
    prepared = prepare_request(request, MESSAGES, CHAT, upstream=upstream)
    assert {key: prepared.body.get(key) for key in expected} == expected
    assert [finding.kind for finding in prepared.findings] == kinds.split()


# ── tools ─────────────────────────────────────────────────────────────────────────────────────────────────────────

LONG = "mcp__claude_ai_Company_Wide_Knowledge_Base__search_everything_in_it_by_meaning"
ARGS = '{"a":1}'


@pytest.mark.parametrize("target", [CHAT, RESPONSES])
def test_long_tool_name_is_shortened_and_restored(target: str) -> None:
    tool = {**TOOL[MESSAGES], "name": LONG}
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{**TOOL_USE, "name": LONG}]},
        *user(TOOL_RESULT)["messages"],
    ]
    choice = {"type": "tool", "name": LONG}
    body = {"model": "m", "max_tokens": 9, "messages": messages, "tools": [tool], "tool_choice": choice}
    prepared = prepare_request(body, MESSAGES, target)
    assert LONG not in json.dumps(prepared.body)
    assert [finding.kind for finding in prepared.findings] == ["name-shortened"]
    if target == CHAT:
        short = prepared.body["tools"][0]["function"]["name"]
        past = prepared.body["messages"][1]["tool_calls"][0]["function"]["name"]
        call = {"id": "c", "type": "function", "function": {"name": short, "arguments": ARGS}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        reply: Json = {"choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]}
    else:
        short, past = prepared.body["tools"][0]["name"], prepared.body["input"][1]["name"]
        item = {"type": "function_call", "id": "fc", "call_id": "c", "name": short, "arguments": ARGS}
        reply = {"object": "response", "status": "completed", "output": [{**item, "status": "completed"}]}
    assert len(short) == 64
    assert short == past
    assert short in json.dumps(prepared.body["tool_choice"])
    translated = il.translate_reply(reply, target, MESSAGES, tools=prepared.tools)
    assert [block["name"] for block in translated["content"] if block["type"] == "tool_use"] == [LONG]


def test_choice_of_several_tools() -> None:
    names = [{"type": "function", "name": name} for name in ("ping", "pong")]
    offered = [TOOL[RESPONSES], {**TOOL[RESPONSES], "name": "pong"}, {**TOOL[RESPONSES], "name": "pang"}]
    choice = {"type": "allowed_tools", "mode": "auto", "tools": names}
    body = {"model": "m", "input": "hi", "tools": offered, "tool_choice": choice}
    known = prepare_request(body, RESPONSES, CHAT, upstream="openai")
    named = [{"type": "function", "function": {"name": name}} for name in ("ping", "pong")]
    assert known.body["tool_choice"] == {
        "type": "allowed_tools",
        "allowed_tools": {"mode": "auto", "tools": named},
    }
    assert (len(known.body["tools"]), known.findings) == (3, [])
    unknown = prepare_request(body, RESPONSES, CHAT)
    assert (len(unknown.body["tools"]), unknown.body["tool_choice"]) == (2, "auto")
    assert [finding.kind for finding in unknown.findings] == ["tools-narrowed"]


def test_hosted_tool_in_allowed_tools() -> None:
    tools = [{"type": "function", "name": "ping"}, {"type": "web_search"}]
    choice = {"type": "allowed_tools", "mode": "auto", "tools": tools}
    body = {"model": "m", "input": "hi", "tools": [TOOL[RESPONSES]], "tool_choice": choice}
    prepared = prepare_request(body, RESPONSES, CHAT)
    assert [(finding.kind, finding.place) for finding in prepared.findings] == [
        ("field-dropped", "tool_choice.tools[1].type")
    ]
    same = prepare_request(body, RESPONSES, RESPONSES, upstream="openai")
    assert (same.body["tool_choice"], same.findings) == (choice, [])


def test_moved_image_is_labelled_with_the_new_call_id() -> None:
    result = {**TOOL_RESULT, "content": [TEXT[MESSAGES], IMAGE[MESSAGES]]}
    turn = [{"role": "assistant", "content": [TOOL_USE]}, {"role": "user", "content": [result]}]
    body = {
        "model": "m",
        **MINIMAL_REQUESTS[MESSAGES],
        "messages": [*MINIMAL_REQUESTS[MESSAGES]["messages"], *turn, *turn],
    }
    messages = il.translate_request(body, MESSAGES, CHAT, upstream="moonshot")["messages"]
    ids = [call["id"] for message in messages for call in message.get("tool_calls", ())]
    assert ids == ["functions.ping:0", "functions.ping:1"]
    user_contents = [message["content"] for message in messages if message["role"] == "user"]
    labels = [content[0]["text"] for content in user_contents if isinstance(content, list)]
    assert labels == [f"[image from tool call {id}]" for id in ids]


@pytest.mark.parametrize("upstream", [profile.name for profile in list_profiles()])
def test_moving_cache_mark_changes_nothing_else(upstream: str) -> None:
    """Prompt caches need this: clients mark the last content, which is no longer the last in the next turn."""
    mark = {"cache_control": {"type": "ephemeral"}}
    two = [{"type": "text", "text": "l1"}, {"type": "text", "text": "l2"}]
    turns: list[list[Json]] = [
        [{"role": "user", "content": [TEXT[MESSAGES]]}],
        [{"role": "assistant", "content": [TOOL_USE]}, {"role": "user", "content": [{**TOOL_RESULT, "content": two}]}],
        [{"role": "assistant", "content": [TEXT[MESSAGES]]}, {"role": "user", "content": [TEXT[MESSAGES]]}],
        [{"role": "assistant", "content": [TEXT[MESSAGES]]}, {"role": "system", "content": two}],
        [{"role": "assistant", "content": [TEXT[MESSAGES]]}, {"role": "user", "content": [TEXT[MESSAGES]]}],
    ]

    def upstream_messages(n: int) -> list[Json]:
        history = json.loads(json.dumps([message for turn in turns[:n] for message in turn]))
        last = history[-1]["content"][-1]
        (last["content"][-1] if last["type"] == "tool_result" else last).update(mark)
        system = [{"type": "text", "text": "s"}]
        body = {"model": "m", **MINIMAL_REQUESTS[MESSAGES], "system": system, "messages": history}
        written = json.dumps(il.translate_request(body, MESSAGES, CHAT, upstream=upstream)["messages"])
        messages: list[Json] = json.loads(written.replace(f", {json.dumps(mark)[1:-1]}", ""))
        return messages

    assert upstream not in ("openrouter", "qwen") or isinstance(upstream_messages(2)[-1]["content"], list)
    for n in range(1, len(turns)):
        before, after = upstream_messages(n), upstream_messages(n + 1)
        assert after[: len(before)] == before


# ── rejected requests ─────────────────────────────────────────────────────────────────────────────────────────────

INVALID_REQUESTS: list[tuple[str, Json, str]] = [
    (CHAT, {"model": 5}, "model: should be a string, not an integer (5)"),
    (CHAT, {"messages": {}}, "messages: should be a list, not an object"),
    (CHAT, {"n": "two"}, "n: should be an integer, not a string ('two')"),
    (CHAT, {"messages": [{"role": "user", "content": {}}]}, "messages[0].content: should be a string or a list"),
    (MESSAGES, {"system": {}}, "system: should be a string or a list, not an object"),
    (RESPONSES, {"input": {}}, "input: should be a string or a list, not an object"),
    (RESPONSES, {"input": None}, "input: should be a string or a list, but is missing"),
    (CHAT, {"messages": ["hi"]}, "messages[0]: should be an object, not a string ('hi')"),
    (CHAT, {"messages": [{"role": "robot"}]}, "messages[0].role: should be one of system, developer, user,"),
    (
        CHAT,
        {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
        "messages[0].content[0].text: missing or null;",
    ),
    (
        CHAT,
        {"messages": [{"role": "tool", "content": "x"}]},
        "messages[0].tool_call_id: missing or null; should be a string",
    ),
    (CHAT, {"tool_choice": "maybe"}, "tool_choice: should be 'auto', 'required', 'none' or an object, not 'maybe'"),
    (CHAT, {"tool_choice": {"type": "x"}}, "tool_choice.type: should be 'function', 'custom' or"),
    (
        CHAT,
        {"tools": [{"type": "function", "function": {}}]},
        "tools[0].function.name: missing or null; should be a string",
    ),
    (CHAT, {"tools": [{"type": "function", "function": {"name": ""}}]}, "tools[0].function.name: should be a name"),
    (CHAT, {"response_format": {"type": "xml"}}, "response_format.type: should be 'text' or"),
    (CHAT, {"stop": [5]}, "stop[0]: should be a string"),
    (CHAT, {"temperature": "hot"}, "temperature: should be a number, not a string ('hot')"),
    (MESSAGES, {"messages": [{"role": "tool", "content": ""}]}, "messages[0].role: should be 'user', 'assistant' or"),
    (
        MESSAGES,
        {"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]},
        "messages[0].content[0].tool_use_id:",
    ),
    (
        MESSAGES,
        {"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "base64"}}]}]},
        "messages[0].content[0].source.media_type:",
    ),
    (
        MESSAGES,
        user({"type": "tool_result", "tool_use_id": "t", "content": [{"type": "tool_reference", "tool_name": []}]}),
        "messages[0].content[0].content[0].tool_name: should be a string, not a list",
    ),
    (MESSAGES, {"tool_choice": {"type": "x"}}, "tool_choice.type: should be 'auto', 'any', 'tool' or 'none', not 'x'"),
    (
        MESSAGES,
        {"tools": [{"name": "a", "input_schema": []}]},
        "tools[0].input_schema: should be an object, not a list",
    ),
    (MESSAGES, {"thread": {"type": "create"}}, "thread: stored conversations (threads) are not supported"),
    (RESPONSES, {"input": [{"role": "robot", "content": ""}]}, "input[0].role: should be 'user', 'assistant',"),
    (
        RESPONSES,
        {"input": [{"type": "function_call", "call_id": "c"}]},
        "input[0].name: missing or null; should be a string",
    ),
    (
        RESPONSES,
        {"tools": [{"type": "namespace", "name": "n", "tools": [{"type": "function"}]}]},
        "tools[0].tools[0].name:",
    ),
    (RESPONSES, {"tool_choice": 5}, "tool_choice: should be 'auto' or 'required' or 'none', not an integer (5)"),
    (RESPONSES, {"previous_response_id": "resp_1"}, "previous_response_id: refers to a conversation stored by another"),
    (RESPONSES, {"conversation": {"id": "c"}}, "conversation: refers to"),
    (RESPONSES, {"input": [{"type": "item_reference", "id": "i"}]}, "input[0]: refers to"),
    (RESPONSES, {"input": [{"id": "i"}]}, "input[0]: refers to"),
]


@pytest.mark.parametrize(("source", "body", "message"), INVALID_REQUESTS)
def test_invalid_request_reports_the_path(source: str, body: Json, message: str) -> None:
    target = MESSAGES if source == CHAT else CHAT
    with pytest.raises(BadRequest) as rejected:
        prepare_request({"model": "m", **MINIMAL_REQUESTS[source], **body}, source, target)
    assert str(rejected.value).startswith(message)
    assert message.startswith(rejected.value.path)


def _chat(*messages: Json) -> Json:
    return {"messages": [{"role": "user", "content": "hi"}, *messages]}


def _result(id: str) -> Json:
    return {"role": "tool", "tool_call_id": id, "content": "ok"}


_PING: Json = {"type": "function_call", "call_id": "a", "name": "ping", "arguments": "{}"}
_PONG: Json = {"type": "function_call_output", "call_id": "a", "output": "ok"}
HISTORY_PROBLEMS: list[tuple[str, Json, str, str]] = [
    (
        CHAT,
        {
            "messages": [
                {"role": "system", "content": "s"},
                *_chat()["messages"],
                {"role": "assistant", "content": None, "tool_calls": [chat_call("a"), chat_call("b")]},
                *map(_result, "abz"),
            ]
        },
        "messages[5].tool_call_id",
        "no call has this id",
    ),
    (
        CHAT,
        _chat(
            {"role": "assistant", "tool_calls": [chat_call("a")]},
            _result("a"),
            *user({"type": "text", "text": "[image from tool call a]"}, IMAGE[CHAT])["messages"],
            _result("z"),
        ),
        "messages[4].tool_call_id",
        "no call has this id",
    ),
    (
        CHAT,
        _chat({"role": "assistant", "content": "x", "tool_calls": [chat_call("a"), chat_call("b", "[")]}, _result("a")),
        "messages[1].tool_calls[1].function.arguments",
        "the arguments are not a JSON object",
    ),
    (
        CHAT,
        _chat({"role": "assistant", "function_call": {"name": "f", "arguments": "["}}),
        "messages[1].function_call.arguments",
        "the arguments are not a JSON object",
    ),
    (CHAT, _chat({"role": "function", "name": "f", "content": ""}), "messages[1].name", "no call has this id"),
    (
        CHAT,
        _chat({"role": "user", "content": [TEXT[CHAT], {"type": "text", "text": ""}]}),
        "messages[1].content[1]",
        "",
    ),
    (CHAT, {"messages": [{"role": "system", "content": [{"type": "text", "text": ""}]}]}, "messages[0].content[0]", ""),
    (
        MESSAGES,
        {
            "messages": [
                *MINIMAL_REQUESTS[MESSAGES]["messages"],
                {"role": "user", "content": [TEXT[MESSAGES], TOOL_RESULT]},
            ]
        },
        "messages[1].content[1].tool_use_id",
        "no call has this id",
    ),
    (
        MESSAGES,
        {
            "messages": [
                *MINIMAL_REQUESTS[MESSAGES]["messages"],
                {"role": "assistant", "content": [TEXT[MESSAGES], TOOL_USE]},
            ]
        },
        "messages[1].content[1]",
        "no result follows this call",
    ),
    (
        MESSAGES,
        {"system": [{**TEXT[MESSAGES], "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": ""}]},
        "system[1]",
        "the content is empty",
    ),
    (RESPONSES, input_items(_PONG), "input[1].call_id", "no call has this id"),
    (RESPONSES, input_items(_PING), "input[1]", "no result follows this call"),
    (
        RESPONSES,
        input_items({"type": "message", "role": "assistant", "content": "x"}, _PING, _PONG, {**_PONG, "call_id": "z"}),
        "input[4].call_id",
        "no call has this id",
    ),
    (
        RESPONSES,
        input_items({**_PING, "type": "custom_tool_call", "name": "a b", "input": "x"}),
        "input[1].name",
        "'a b' is not a valid tool name",
    ),
    (RESPONSES, input_items({"role": "user", "content": []}), "input[1]", "the message is empty"),
]


@pytest.mark.parametrize(("source", "body", "place", "problem"), HISTORY_PROBLEMS)
def test_history_problem_reports_the_path_in_the_clients_body(
    source: str, body: Json, place: str, problem: str
) -> None:
    body = {"model": "m", **MINIMAL_REQUESTS[source], **body}
    with pytest.raises(BadRequest) as rejected:
        prepare_request(body, source, CHAT, strict=True)
    assert rejected.value.path == place
    assert str(rejected.value).startswith(f"{place}: {problem}")
    assert place in [finding.place for finding in prepare_request(body, source, CHAT).findings]


def test_finding_of_the_writer_has_the_path_in_the_clients_body() -> None:
    failed = {"role": "user", "content": [{**TOOL_RESULT, "is_error": True}]}
    called = {"role": "assistant", "content": [TOOL_USE]}
    first_messages = MINIMAL_REQUESTS[MESSAGES]["messages"]
    for body, place in (
        ({"messages": [*first_messages, called, failed]}, "messages[2]"),
        ({"messages": [*first_messages, called, called, failed]}, "messages"),
    ):
        findings = prepare_request({"model": "m", **MINIMAL_REQUESTS[MESSAGES], **body}, MESSAGES, CHAT).findings
        assert [finding.place for finding in findings if finding.kind == "error-as-text"] == [place]


@pytest.mark.parametrize("target", [MESSAGES, RESPONSES])
def test_several_choices_on_a_single_choice_wire_are_rejected(target: str) -> None:
    with pytest.raises(BadRequest, match=r"^n: the upstream's wire returns one choice, not 2"):
        translate(CHAT, {"n": 2}, target)


def test_server_state_is_passed_through_on_the_same_wire() -> None:
    body = {"model": "m", "input": [{"type": "item_reference", "id": "i"}], "previous_response_id": "r"}
    assert il.translate_request(body, RESPONSES, RESPONSES) == body


@pytest.mark.parametrize(
    ("source", "body", "message"),
    [
        (CHAT, {"model": "m"}, "messages: missing or null; should be a list"),
        (MESSAGES, {"model": "m"}, "messages: missing or null; should be a list"),
        (RESPONSES, {"model": "m"}, "input: should be a string or a list, but is missing"),
        (CHAT, {"model": "m", "messages": [], "tool_choice": []}, "tool_choice: should be"),
    ],
)
def test_missing_required_field_is_rejected(source: str, body: Json, message: str) -> None:
    with pytest.raises(BadRequest) as rejected:
        prepare_request(body, source, CHAT)
    assert str(rejected.value).startswith(message)


def test_untranslatable_items_leave_no_empty_message() -> None:
    items = [{"type": "mcp_approval_response", "id": "a"}, {"type": "web_search_call", "id": "w"}]
    chat_messages = translate(RESPONSES, input_items(*items), CHAT).body["messages"]
    assert [message["role"] for message in chat_messages] == ["user"]
    assert len(translate(RESPONSES, input_items(*items), MESSAGES).body["messages"]) == 1


def test_no_tools_are_offered_if_tool_choice_is_none() -> None:
    body = {"model": "m", **MINIMAL_REQUESTS[CHAT], **WITH_TOOL[CHAT], "tool_choice": "none"}
    assert prepare_request(body, CHAT, MESSAGES).tools == []


def test_wrong_usage_raises() -> None:
    with pytest.raises(UnknownWire):
        il.translate_request({}, "chat", MESSAGES)
    with pytest.raises(UsageError):
        il.translate_request([], CHAT, MESSAGES)  # type: ignore[arg-type]
