"""Translation of messages and content parts between wires."""

from __future__ import annotations

import json

import pytest

from interlingua.core.options import Options
from interlingua.core.reasoning_signatures import write_envelope
from interlingua.core.reply import Call, Reasoning
from interlingua.core.request import Message, Request, Result
from interlingua.events import Seal
from interlingua.translation.history_repair import repair_history
from interlingua.translation.request_translation import prepare_request
from interlingua.upstreams.profile import UNKNOWN_PROFILE, Profile
from tests.support.request_forms import CHAT, MESSAGES, RESPONSES, WIRES
from tests.support.request_tables import (
    FAILED_RESULT,
    FILE,
    IMAGE,
    IMAGE_LINK,
    KEY,
    MINIMAL_REQUESTS,
    PNG,
    TEXT,
    TOOL_RESULT,
    TOOL_USE,
    Json,
    assistant_history,
    chat_call,
    check_translation,
    input_items,
    responses_message,
    translate,
    user,
)

DOCUMENT_LINK = {"type": "document", "source": {"type": "url", "url": "https://a/b.pdf"}}
PARTS: list[tuple[str, Json, str, Json, str]] = [
    *[
        (source, kind[source], target, kind[target], "")
        for kind in (IMAGE, FILE, IMAGE_LINK, TEXT)
        for source in WIRES
        for target in WIRES
        if source != target
    ],
    (CHAT, {"type": "image_url", "image_url": PNG}, MESSAGES, IMAGE[MESSAGES], ""),
    (
        CHAT,
        {"type": "image_url", "image_url": {"url": "data:image/jpg;base64,AA=="}},
        MESSAGES,
        {**IMAGE[MESSAGES], "source": {"type": "base64", "media_type": "image/jpeg", "data": "AA=="}},
        "",
    ),
    (
        CHAT,
        {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}},
        RESPONSES,
        {**IMAGE[RESPONSES], "detail": "low"},
        "",
    ),
    (
        MESSAGES,
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "long"}, "title": "T"},
        CHAT,
        {"type": "text", "text": "T\n\nlong"},
        "document-as-text",
    ),
    (
        CHAT,
        {"type": "file", "file": {"file_data": "data:text/plain;base64,bG9uZw=="}},
        MESSAGES,
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "long"}},
        "",
    ),
    (MESSAGES, DOCUMENT_LINK, RESPONSES, {"type": "input_file", "file_url": "https://a/b.pdf"}, ""),
    (
        MESSAGES,
        DOCUMENT_LINK,
        CHAT,
        {"type": "text", "text": "[a document that cannot be shown here: https://a/b.pdf]"},
        "content-dropped",
    ),
    (
        MESSAGES,
        {"type": "document", "source": {"type": "file", "file_id": "f"}},
        CHAT,
        {"type": "text", "text": "[a document that cannot be shown here: f]"},
        "content-dropped",
    ),
    (CHAT, {"type": "file", "file": {"file_id": "f"}}, RESPONSES, {"type": "input_file", "file_id": "f"}, ""),
    (MESSAGES, {"type": "text", "text": "see", "citations": [{}]}, CHAT, TEXT[CHAT], "content-as-text"),
    (
        MESSAGES,
        {"type": "search_result", "source": "s", "title": "T", "content": [TEXT[MESSAGES], TEXT[MESSAGES]]},
        CHAT,
        {"type": "text", "text": "T\n\nsee\nsee"},
        "content-as-text",
    ),
    *[
        (
            MESSAGES,
            {"type": "document", "source": {"type": "content", "content": content}},
            CHAT,
            TEXT[CHAT],
            "content-as-text",
        )
        for content in ("see", [TEXT[MESSAGES]])
    ],
]


@pytest.mark.parametrize(("source", "part", "target", "expected", "kinds"), PARTS)
def test_content_parts(source: str, part: Json, target: str, expected: Json, kinds: str) -> None:
    body = (responses_message if source == RESPONSES else user)(TEXT[source], part)
    translated = translate(source, body, target)
    messages = translated.body["input" if target == RESPONSES else "messages"]
    assert messages[0]["content"][1:] == [expected]
    assert {finding.kind for finding in translated.findings} - {"no-max-tokens"} == set(kinds.split())


def test_image_detail_is_dropped_for_messages() -> None:
    image = {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}}
    check_translation(CHAT, user(image), MESSAGES, user(IMAGE[MESSAGES]), "field-dropped")


@pytest.mark.parametrize("target", [MESSAGES, RESPONSES])
def test_dropped_content_is_reported(target: str) -> None:
    audio = {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}
    translated = translate(CHAT, user(TEXT[CHAT], audio), target)
    assert "content-dropped" in {finding.kind for finding in translated.findings}
    assert len(translated.body["input" if target == RESPONSES else "messages"][0]["content"]) == 1


MESSAGE_ROWS: list[tuple[str, list[Json], list[Json], str]] = [
    (
        "results first, then the user's text",
        [{"role": "user", "content": [{"type": "text", "text": "go"}, TOOL_RESULT]}],
        [{"role": "tool", "tool_call_id": "t1", "content": "ok"}, {"role": "user", "content": "go"}],
        "",
    ),
    (
        "a call and its arguments",
        assistant_history({"type": "text", "text": "a"}, TOOL_USE),
        [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "a", "tool_calls": [chat_call()]}],
        "",
    ),
    (
        "text after a call is moved before it",
        assistant_history(TOOL_USE, {"type": "text", "text": "a"}),
        [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "a", "tool_calls": [chat_call()]}],
        "reordered",
    ),
    (
        "a failed result is marked in its text",
        [{"role": "user", "content": [FAILED_RESULT]}],
        [{"role": "tool", "tool_call_id": "t1", "content": "[tool error] ok"}],
        "error-as-text",
    ),
    (
        "a failed result without text",
        [{"role": "user", "content": [{**FAILED_RESULT, "content": []}]}],
        [{"role": "tool", "tool_call_id": "t1", "content": "[tool error]"}],
        "error-as-text",
    ),
    (
        "a failed result with an image before its text",
        [{"role": "user", "content": [{**FAILED_RESULT, "content": [IMAGE[MESSAGES], TEXT[MESSAGES]]}]}],
        [
            {"role": "tool", "tool_call_id": "t1", "content": "[tool error] see"},
            {"role": "user", "content": [{"type": "text", "text": "[image from tool call t1]"}, IMAGE[CHAT]]},
        ],
        "error-as-text image-moved",
    ),
    (
        "an image moves out of its result",
        [{"role": "user", "content": [{**TOOL_RESULT, "content": [IMAGE[MESSAGES]]}, {"type": "text", "text": "go"}]}],
        [
            {"role": "tool", "tool_call_id": "t1", "content": "[see the next message]"},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "[image from tool call t1]"},
                    IMAGE[CHAT],
                    {"type": "text", "text": "go"},
                ],
            },
        ],
        "image-moved",
    ),
    (
        "several texts of a result",
        [{"role": "user", "content": [{**TOOL_RESULT, "content": [TEXT[MESSAGES], TEXT[MESSAGES]]}]}],
        [{"role": "tool", "tool_call_id": "t1", "content": "see\nsee"}],
        "",
    ),
    (
        "an encoded id is decoded",
        [{"role": "user", "content": [{**TOOL_RESULT, "tool_use_id": "il-functions_2ebash_3a0"}]}],
        [{"role": "tool", "tool_call_id": "functions.bash:0", "content": "ok"}],
        "",
    ),
    (
        "thinking signed by another upstream",
        assistant_history({"type": "thinking", "thinking": "hm", "signature": "Eq"}, {"type": "text", "text": "a"}),
        [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "a", "reasoning_content": "hm"}],
        "seal-dropped",
    ),
    (
        "thinking without a signature",
        assistant_history({"type": "thinking", "thinking": "hm", "signature": ""}, {"type": "text", "text": "a"}),
        [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "a", "reasoning_content": "hm"}],
        "",
    ),
    (
        "redacted thinking",
        assistant_history({"type": "redacted_thinking", "data": "xx"}, {"type": "text", "text": "a"}),
        [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "a"}],
        "thinking-dropped",
    ),
    (
        "a server-side search",
        assistant_history(
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}, {"type": "text", "text": "a"}
        ),
        [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "a"}],
        "content-dropped",
    ),
    (
        "a system message in the middle, with a cache mark",
        [{"role": "user", "content": "hi"}, {"role": "system", "content": [{**TEXT[MESSAGES], "cache_control": {}}]}],
        [{"role": "user", "content": "hi"}, {"role": "system", "content": "see"}],
        "",
    ),
]


@pytest.mark.parametrize(("name", "messages", "expected", "kinds"), MESSAGE_ROWS)
def test_anthropic_messages_to_chat(name: str, messages: list[Json], expected: list[Json], kinds: str) -> None:
    check_translation(MESSAGES, {"messages": messages}, CHAT, {"messages": expected}, kinds)
    first = translate(MESSAGES, {"messages": messages}, CHAT)
    back = translate(CHAT, {"messages": first.body["messages"]}, MESSAGES)
    second = translate(MESSAGES, {"messages": back.body["messages"]}, CHAT)
    assert second.body["messages"] == first.body["messages"], name


SHOT = {
    "type": "function_call_output",
    "call_id": "c1",
    "output": [{"type": "input_text", "text": "see"}, IMAGE[RESPONSES]],
}
ITEM_ROWS: list[tuple[str, Json, str, list[Json], str]] = [
    (
        "output items of the model become one message",
        input_items(
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
            {"role": "assistant", "content": [{"type": "output_text", "text": "a"}]},
            {"type": "function_call", "call_id": "t1", "name": "ping", "arguments": '{"a":1}'},
            {"type": "function_call", "call_id": "t2", "name": "ping", "arguments": ""},
            {"type": "function_call_output", "call_id": "t1", "output": "ok"},
            {
                "type": "function_call_output",
                "call_id": "t2",
                "output": [{"type": "input_text", "text": "[tool error] no"}],
            },
        ),
        MESSAGES,
        [
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": ""},
                    {"type": "text", "text": "a"},
                    TOOL_USE,
                    {**TOOL_USE, "id": "t2", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {**TOOL_RESULT, "content": [{"type": "text", "text": "ok"}]},
                    {**FAILED_RESULT, "tool_use_id": "t2", "content": [{"type": "text", "text": "no"}]},
                ],
            },
        ],
        "",
    ),
    (
        "calls of a namespace",
        input_items(
            {"type": "function_call", "call_id": "t1", "name": "look", "namespace": "mcp__a", "arguments": "{}"}
        ),
        CHAT,
        [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "t1", "type": "function", "function": {"name": "mcp__a__look", "arguments": "{}"}}
                ],
            }
        ],
        "",
    ),
    (
        "calls of custom tools",
        input_items(
            {"type": "custom_tool_call", "call_id": "c1", "name": "patch", "input": "a\n"},
            {"type": "custom_tool_call_output", "call_id": "c1", "output": "done"},
        ),
        CHAT,
        [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "patch", "arguments": '{"input":"a\\n"}'}}
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "done"},
        ],
        "",
    ),
    (
        "images in results",
        input_items(SHOT),
        MESSAGES,
        [{"type": "tool_result", "tool_use_id": "c1", "content": [TEXT[MESSAGES], IMAGE[MESSAGES]]}],
        "",
    ),
    (
        "items that only this wire has",
        input_items({"type": "web_search_call", "id": "w"}, {"role": "assistant", "content": "a"}),
        CHAT,
        [{"role": "assistant", "content": "a"}],
        "content-dropped",
    ),
    (
        "developer message in the middle",
        input_items({"role": "developer", "content": "d"}),
        CHAT,
        [{"role": "system", "content": "d"}],
        "",
    ),
]


ITEMS_WITH_TEXT: list[Json] = [
    {"type": "agent_message", "author": "a", "content": [{"type": "input_text", "text": "see"}]},
    {"type": "local_shell_call_output", "id": "l", "output": "see"},
    {"type": "shell_call_output", "call_id": "l", "output": [{"stdout": "see", "stderr": ""}]},
]


@pytest.mark.parametrize("item", ITEMS_WITH_TEXT)
def test_items_with_text_are_sent_as_text(item: Json) -> None:
    expected = [*MINIMAL_REQUESTS[CHAT]["messages"], {"role": "user", "content": "see"}]
    check_translation(RESPONSES, input_items(item), CHAT, {"messages": expected}, "content-as-text")


@pytest.mark.parametrize(("name", "body", "target", "expected", "kinds"), ITEM_ROWS)
def test_responses_items(name: str, body: Json, target: str, expected: list[Json], kinds: str) -> None:
    translated = translate(RESPONSES, body, target)
    written = translated.body["messages"][1:] or translated.body["messages"][0]["content"][:1]
    assert written == expected, name
    assert {finding.kind for finding in translated.findings} - {"no-max-tokens"} == set(kinds.split())


SYSTEMS: dict[str, list[Json]] = {
    CHAT: [{"role": "system", "content": "A"}, {"role": "developer", "content": [{"type": "text", "text": "B"}]}],
    MESSAGES: [
        {"type": "text", "text": "x-anthropic-billing-header: v;"},
        {"type": "text", "text": "A"},
        {"type": "text", "text": "B"},
    ],
}


def test_system_prompt() -> None:
    hi = {"role": "user", "content": "hi"}
    chat = {"messages": [*SYSTEMS[CHAT], hi]}
    check_translation(CHAT, chat, MESSAGES, {"system": SYSTEMS[MESSAGES][1:]})
    check_translation(CHAT, chat, RESPONSES, {"instructions": "A\n\nB"})
    system = {"system": SYSTEMS[MESSAGES]}
    check_translation(
        MESSAGES, system, CHAT, {"messages": [{"role": "system", "content": "A\n\nB"}, hi]}, "billing-line"
    )
    check_translation(MESSAGES, system, RESPONSES, {"instructions": "A\n\nB"}, "billing-line")
    check_translation(MESSAGES, {"system": "A"}, CHAT, {"messages": [{"role": "system", "content": "A"}, hi]})
    developer = {"input": [{"role": "developer", "content": "B"}, hi], "instructions": "A"}
    check_translation(RESPONSES, developer, CHAT, {"messages": [{"role": "system", "content": "A\n\nB"}, hi]})
    check_translation(RESPONSES, developer, MESSAGES, {"system": SYSTEMS[MESSAGES][1:]})


def test_legacy_function_call_becomes_tool_call() -> None:
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "function_call": {"name": "ping", "arguments": "{}"}},
        {"role": "function", "name": "ping", "content": "ok"},
    ]
    written = translate(CHAT, {"messages": messages}, MESSAGES).body["messages"]
    assert written[1]["content"][0]["id"] == written[2]["content"][0]["tool_use_id"]


@pytest.mark.parametrize(("arguments", "input"), [("", {}), (" ", {}), ('{"a": 1}', {"a": 1})])
def test_arguments_become_an_object(arguments: str, input: Json) -> None:
    body = {"messages": [{"role": "assistant", "content": "", "tool_calls": [chat_call(arguments=arguments)]}]}
    check_translation(
        CHAT, body, MESSAGES, {"messages": [{"role": "assistant", "content": [{**TOOL_USE, "input": input}]}]}
    )


@pytest.mark.parametrize("arguments", ['{"a": ', '"text"', "[1]", "null"])
def test_invalid_arguments_are_wrapped_and_unwrapped(arguments: str) -> None:
    body = {"messages": [{"role": "assistant", "content": "", "tool_calls": [chat_call(arguments=arguments)]}]}
    translated = translate(CHAT, body, MESSAGES)
    assert "wrapped-arguments" in {finding.kind for finding in translated.findings}
    messages = translate(MESSAGES, {"messages": translated.body["messages"]}, CHAT).body["messages"]
    assert messages[0]["tool_calls"][0]["function"]["arguments"] == arguments


def test_client_arguments_that_are_not_an_object() -> None:
    """Clients of every wire return the malformed arguments that a model wrote."""
    translated = translate(MESSAGES, {"messages": assistant_history({**TOOL_USE, "input": [1]})}, CHAT)
    assert translated.body["messages"][1]["tool_calls"][0]["function"]["arguments"] == "[1]"


@pytest.mark.parametrize("wire", WIRES)
def test_wrapped_arguments_are_unwrapped_on_reading(wire: str) -> None:
    broken = Call("c", "ping", '{"a": \ud83d')
    request = Request(wire=wire, model="m", messages=[Message("assistant", [broken]), Message("user", [Result("c")])])
    written, _ = WIRES[wire].write_request(repair_history(request)[0], UNKNOWN_PROFILE)
    assert WIRES[wire].read_request(json.loads(json.dumps(written)), Options()).messages[0].pieces == [broken]


# ── unread fields ─────────────────────────────────────────────────────────────────────────────────────────────────

UNREAD: list[tuple[str, Json, list[str]]] = [
    (CHAT, {"messages": [{"role": "user", "content": "hi", "odd": 1}]}, ["messages[0].odd"]),
    (CHAT, user({**TEXT[CHAT], "odd": 1}), ["messages[0].content[0].odd"]),
    (CHAT, user({**TEXT[CHAT], "odd": None, "none": [], "nothing": {}}), []),
    (
        CHAT,
        {"messages": [{"role": "assistant", "tool_calls": [{**chat_call(), "extra_content": {"x": 1}, "index": 0}]}]},
        ["messages[0].tool_calls[0].extra_content"],
    ),
    (
        CHAT,
        {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}, "description": "d"}}},
        ["response_format.json_schema.description"],
    ),
    (CHAT, user({"type": "video", "odd": 1}) | {"odd": 1}, []),
    (
        MESSAGES,
        user({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a"}}),
        [],
    ),
    (RESPONSES, input_items({"type": "additional_tools", "role": "developer", "tools": []}), []),
    (
        MESSAGES,
        user({**FILE[MESSAGES], "citations": {"enabled": True}, "context": "c"}),
        ["messages[0].content[0].citations", "messages[0].content[0].context"],
    ),
    (
        MESSAGES,
        {
            "messages": assistant_history(
                {**TOOL_USE, "caller": {"type": "direct"}, "cache_control": {"type": "ephemeral"}}
            )
        },
        ["messages[1].content[0].caller"],
    ),
    (MESSAGES, {"metadata": {"user_id": "u", "odd": 1}, "output_config": {"effort": "low", "odd": 1}}, []),
    (MESSAGES, {"tools": [{"name": "a", "input_schema": {}, "odd": 1}]}, []),
    (RESPONSES, input_items({"role": "assistant", "content": "a", "mood": "x", "id": "i"}), ["input[1].mood"]),
    (
        RESPONSES,
        input_items(
            {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "t"}], "status": "x"}
        ),
        [],
    ),
    (
        RESPONSES,
        {"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "ping"}]}},
        [],
    ),
]


@pytest.mark.parametrize(("wire", "body", "paths"), UNREAD)
def test_unread_fields_are_reported_with_their_path(wire: str, body: Json, paths: list[str]) -> None:
    full_body = {"model": "m", **MINIMAL_REQUESTS[wire], **body}
    request = WIRES[wire].read_request(full_body, Options())
    assert list(request.unread) == paths
    findings = prepare_request(full_body, wire, MESSAGES if wire == CHAT else CHAT).findings
    reported = [finding.place for finding in findings if finding.kind == "field-dropped"]
    assert set(paths) <= set(reported)
    assert not {finding.place for finding in prepare_request(full_body, wire, wire).findings} & set(paths)


# ── thinking ──────────────────────────────────────────────────────────────────────────────────────────────────────

DETAILS = {"reasoning_details": [{"type": "reasoning.text", "signature": "S", "format": "f"}]}
REASONING_FORMS = [
    ("chat, text only", Reasoning("hm"), {"reasoning_content": "hm"}),
    (
        "chat, with details",
        Reasoning("hm", Seal(CHAT, DETAILS)),
        {
            "reasoning_content": "hm",
            "reasoning_details": [{"type": "reasoning.text", "text": "hm", "signature": "S", "format": "f"}],
        },
    ),
    (
        "chat, encrypted",
        Reasoning("hm", Seal(CHAT, {"reasoning_details": [{"type": "reasoning.encrypted", "data": "D"}]})),
        {
            "reasoning_content": "hm",
            "reasoning_details": [
                {"type": "reasoning.summary", "summary": "hm"},
                {"type": "reasoning.encrypted", "data": "D"},
            ],
        },
    ),
    (
        "messages",
        Reasoning("hm", Seal(MESSAGES, {"signature": "Eq"})),
        {"type": "thinking", "thinking": "hm", "signature": "Eq"},
    ),
    (
        "messages, redacted",
        Reasoning("", Seal(MESSAGES, {"redacted": "xx"})),
        {"type": "redacted_thinking", "data": "xx"},
    ),
    (
        "responses",
        Reasoning("hm", Seal(RESPONSES, {"encrypted_content": "gA", "id": "rs_1"})),
        {
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": "hm"}],
            "encrypted_content": "gA",
            "id": "rs_1",
        },
    ),
]


@pytest.mark.parametrize("client", WIRES)
@pytest.mark.parametrize(("name", "thinking", "native"), REASONING_FORMS)
def test_reasoning_is_restored_as_upstream_sent_it(client: str, name: str, thinking: Reasoning, native: Json) -> None:
    """For clients of every wire: the reasoning is in an envelope in the signature field of the client's wire."""
    upstream = thinking.seal.wire if thinking.seal else CHAT
    sealed = write_envelope(thinking, CHAT, KEY)
    body: Json = {
        CHAT: {
            "messages": [
                {
                    "role": "assistant",
                    "content": "a",
                    "reasoning_content": thinking.text,
                    "reasoning_details": [{"type": "reasoning.encrypted", "data": sealed, "format": "interlingua-v1"}],
                }
            ]
        },
        MESSAGES: {"messages": assistant_history({"type": "thinking", "thinking": "shown", "signature": sealed})[1:]},
        RESPONSES: {"input": [{"type": "reasoning", "id": "rs_x", "summary": [], "encrypted_content": sealed}]},
    }[client]
    written = translate(client, body, upstream, Profile(own_seals=True)).body
    if upstream == CHAT:
        message = written["messages"][0]
        assert {key: message[key] for key in native} == native, name
    else:
        block = written["input"][0] if upstream == RESPONSES else written["messages"][0]["content"][0]
        assert block == native, name


@pytest.mark.parametrize("target", [MESSAGES, RESPONSES])
def test_upstream_with_own_seals_gets_no_other_reasoning(target: str) -> None:
    message = {"role": "assistant", "content": "a", "reasoning_content": "hm"}
    translated = translate(CHAT, {"messages": [message]}, target, Profile(own_seals=True))
    assert "hm" not in json.dumps(translated.body)
    assert "thinking-dropped" in {finding.kind for finding in translated.findings}


def test_unsigned_thinking_is_not_sent_to_anthropic() -> None:
    body = {
        "model": "claude",
        "max_tokens": 9,
        "messages": assistant_history(
            {"type": "thinking", "thinking": "hm", "signature": ""}, {"type": "text", "text": "a"}
        ),
    }
    prepared = prepare_request(body, MESSAGES, MESSAGES, upstream="anthropic")
    assert prepared.body["messages"][1]["content"] == [{"type": "text", "text": "a"}]
    assert [finding.kind for finding in prepared.findings] == ["thinking-dropped"]
    assert prepare_request(body, MESSAGES, MESSAGES, upstream="any").body == body


def test_envelope_of_another_key_is_dropped() -> None:
    sealed = write_envelope(Reasoning("hm", Seal(CHAT, {})), CHAT, b"another")
    body = {"messages": assistant_history({"type": "thinking", "thinking": "hm", "signature": sealed})[1:]}
    translated = translate(MESSAGES, body, MESSAGES)
    assert translated.body["messages"][0]["content"] == [{"type": "thinking", "thinking": "hm", "signature": ""}]
    assert translate(MESSAGES, body, CHAT).body["messages"][0]["reasoning_content"] == "hm"


@pytest.mark.parametrize("client", [CHAT, MESSAGES])
@pytest.mark.parametrize("upstream", ["moonshot", "deepseek", "vllm"])
def test_reasoning_details_are_sent_only_to_upstreams_that_use_them(client: str, upstream: str) -> None:
    details = [{"type": "reasoning.text", "text": "hm", "signature": "S"}]
    sealed = write_envelope(Reasoning("hm", Seal(CHAT, {"reasoning_details": details})), CHAT, KEY)
    message: Json = {
        CHAT: {"role": "assistant", "content": "a", "reasoning_details": details},
        MESSAGES: assistant_history({"type": "thinking", "thinking": "hm", "signature": sealed}, TEXT[MESSAGES])[1],
    }[client]
    body = {
        "model": "m",
        **MINIMAL_REQUESTS[client],
        "messages": [*MINIMAL_REQUESTS[client]["messages"], message, *MINIMAL_REQUESTS[client]["messages"]],
    }
    prepared, openrouter = (
        prepare_request(body, client, CHAT, upstream=name, options=Options(seal_key=KEY))
        for name in (upstream, "openrouter")
    )
    assistant = prepared.body["messages"][1]
    assert "reasoning_details" not in assistant
    assert (assistant.get("reasoning_content") or assistant.get("reasoning")) == "hm"
    assert "seal-dropped" in {finding.kind for finding in prepared.findings}
    assert openrouter.body["messages"][1]["reasoning_details"] == details


def test_native_reasoning_details_keep_their_signatures() -> None:
    details = [
        {"type": "reasoning.text", "text": "one", "signature": "1"},
        {"type": "reasoning.text", "text": "two", "signature": "2"},
        {"type": "reasoning.text", "text": "three"},
    ]
    message = {"role": "assistant", "content": "a", "reasoning_details": details}
    written = translate(CHAT, {"messages": [message]}, CHAT, Profile(replay="reasoning_details", top_k=True)).body
    assert written["messages"][0]["reasoning_details"] == details
