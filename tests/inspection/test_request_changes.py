"""Changes of a request on its way to the upstream, and their reasons."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlingua.captures.capture_format import CapturedExchange
from interlingua.errors import BadInput
from interlingua.inspection.request_changes import ChangeRow, RequestChanges, compare_requests
from tests.support.captured_exchanges import capture_exchange, chat_stream

READS = chat_stream(["Hello"])
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
MESSAGES: dict[str, Any] = {
    "model": "claude-sonnet",
    "max_tokens": 1000,
    "stream": True,
    "top_k": 5,
    "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
    "tools": [{"name": "read", "description": "Read a file", "input_schema": {"type": "object", "properties": {}}}],
    "messages": [
        {"role": "user", "content": "look"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "I should look.", "signature": "abc"},
                {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a"}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "x", "is_error": True}],
        },
    ],
}


def changes(body: dict[str, Any], **options: Any) -> RequestChanges:
    return compare_requests(capture_exchange(body, READS, **options))


def row(found: RequestChanges, kind: str, label: str = "") -> ChangeRow:
    rows = [
        one
        for one in found.rows
        if (entry := one.client or one.upstream) is not None
        and entry.kind == kind
        and (not label or entry.label == label)
    ]
    assert rows, (kind, label)
    return rows[0]


def test_same_request_has_no_changes_but_the_model() -> None:
    body = {"model": "kimi", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    found = changes(body)
    assert [(one.change, (one.client or one.upstream).label) for one in found.rows if one.change != "same"] == [  # type: ignore[union-attr]
        ("changed", "model")
    ]


def test_other_api_alone_is_no_change_of_the_conversation() -> None:
    found = changes(MESSAGES, wire="anthropic-messages")
    same = {(one.client.kind, one.client.text) for one in found.rows if one.client and one.change == "same"}
    assert ("text", "Be brief.") in same
    assert ("text", "look") in same
    assert row(found, "tool", "read").change == "same"
    call = row(found, "call", "read")
    assert call.client is not None
    assert json.loads(call.client.text) == {"path": "a"}


def test_reason_of_a_removed_cache_mark_is_its_finding() -> None:
    mark = row(changes(MESSAGES, wire="anthropic-messages"), "cache mark")
    assert mark.change == "removed"
    assert [reason.finding for reason in mark.reasons] == ["cache-mark-dropped"]


def test_reason_of_an_error_result_is_its_finding() -> None:
    result = row(changes(MESSAGES, wire="anthropic-messages"), "result")
    assert result.change == "changed"
    assert "error-as-text" in [reason.finding for reason in result.reasons]
    assert result.client_path == "messages[2].content[0]"


def test_repaired_history_is_its_own_reason() -> None:
    body = {**MESSAGES, "messages": [*MESSAGES["messages"][:2], {"role": "user", "content": "never mind"}]}
    found = changes(body, wire="anthropic-messages")
    added = [one for one in found.rows if one.change == "added" and one.upstream and one.upstream.kind == "result"]
    assert [reason.step for one in added for reason in one.reasons] == ["history repair"]


def test_profile_is_the_reason_of_other_call_ids() -> None:
    found = changes(MESSAGES, wire="anthropic-messages", profile="moonshot")
    call = row(found, "call", "read")
    assert call.fields == ["id"]
    assert [reason.step for reason in call.reasons] == ["profile"]


def test_field_that_only_the_settings_add_is_their_change() -> None:
    body = {"model": "kimi-k2", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    upstream_body = json.dumps({**body, "provider": {"order": ["x"]}}).encode()
    found = changes(body, upstream_body=upstream_body)
    provider = row(found, "setting", "provider")
    assert (provider.change, [reason.step for reason in provider.reasons]) == ("added", ["settings"])


def test_changed_text_has_its_equal_ends() -> None:
    body = {"model": "kimi-k2", "stream": True, "messages": [{"role": "user", "content": "one two three"}]}
    upstream_body = json.dumps({**body, "messages": [{"role": "user", "content": "one 2 three"}]}).encode()
    text = row(changes(body, upstream_body=upstream_body), "text")
    assert (text.change, text.equal_start, text.equal_end) == ("changed", len("one "), len(" three"))


def test_image_for_a_model_without_vision_is_replaced() -> None:
    content = [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
    ]
    body = {"model": "kimi-k2", "stream": True, "messages": [{"role": "user", "content": content}]}
    image = row(changes(body, model="qwen3-coder"), "image")
    assert image.change == "removed"
    assert [reason.finding for reason in image.reasons] == ["image-omitted"]


def test_tokens_by_part() -> None:
    found = changes(MESSAGES, wire="anthropic-messages")
    parts = {part.name: part for part in found.client_tokens}
    assert {"system prompt", "tools", "user text", "calls", "tool results", "assistant thinking"} <= parts.keys()
    assert all(part.tokens > 0 for part in parts.values())
    assert [part.tokens for part in found.client_tokens] == sorted(
        (part.tokens for part in found.client_tokens), reverse=True
    )


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b'{"messages": 7}', b"\xff\xfe"])
def test_request_that_cannot_be_read_is_a_problem_not_an_error(data: bytes) -> None:
    body = {"model": "kimi-k2", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    found = changes(body, upstream_body=data)
    assert found.rows
    assert "cannot be read" in found.problem or not data


def test_capture_without_a_request_is_an_error() -> None:
    with pytest.raises(BadInput, match="no request of a client"):
        compare_requests(CapturedExchange([]))
