"""Files of samples in the formats of this project and of other verifiers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlingua.errors import BadInput
from interlingua.verification.samples.builtin import builtin_samples
from interlingua.verification.samples.sample import request_digest
from interlingua.verification.samples.sample_files import SCHEMA_TOOL, read_samples, write_samples

USER = {"role": "user", "content": "hi"}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def read_one(line: Any) -> Any:
    (sample,) = read_samples([json.dumps(line)], "set.jsonl")
    return sample


def test_own_samples_survive_a_round_trip() -> None:
    samples = builtin_samples()
    assert read_samples(write_samples(samples).splitlines(), "set.jsonl") == samples


def test_request_body_of_k2_vendor_verifier() -> None:
    body = {"model": "m", "messages": [{"role": "_input", "content": "be kind"}, USER], "tools": [TOOL], "stream": True}
    sample = read_one(body | {"temperature": 0.6})
    assert sample.request["messages"][0]["role"] == "system"
    assert "model" not in sample.request
    assert (sample.stream, sample.expect.reply) == (True, "any")


def test_request_body_of_minimax_provider_verifier() -> None:
    checks = ["contains_russian_characters_unicode", "something-else"]
    sample = read_one({"messages": [USER], "check_type": checks})
    assert sample.checks == ("contains_russian_characters_unicode",)
    assert "check_type" not in sample.request
    assert sample.stream is None


@pytest.mark.parametrize(("expected", "reply"), [(True, "calls"), (False, "text"), (None, "any")])
def test_expected_decision_of_minimax_provider_verifier(expected: bool | None, reply: str) -> None:
    """Its labels are not sent: an upstream may refuse fields that it does not know."""
    sample = read_one({"messages": [USER], "expected_tool_call": expected, "scenario_check": {"x": 1}})
    assert sample.expect.reply == reply
    assert sample.request.keys() == {"messages"}


def test_prompt_token_case_of_kimi_vendor_verifier() -> None:
    sample = read_one({"id": "a", "description": "d", "request": {"messages": [USER]}, "expected_prompt_tokens": 12})
    assert (sample.id, sample.category, sample.prompt_tokens, sample.stream) == ("a", "prompt-tokens", 12, True)


@pytest.mark.parametrize(
    ("schema", "parameters"),
    [
        ({"type": "object", "properties": {"a": {}}}, {"type": "object", "properties": {"a": {}}}),
        ({"type": "string"}, {"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]}),
        (
            {"$defs": {"n": {"type": "number"}}, "anyOf": [{"$ref": "#/$defs/n"}]},
            {
                "type": "object",
                "properties": {"value": {"anyOf": [{"$ref": "#/$defs/n"}]}},
                "required": ["value"],
                "$defs": {"n": {"type": "number"}},
            },
        ),
        (
            {"type": "array", "items": {"$ref": "#"}},
            {
                "type": "object",
                "properties": {"value": {"$ref": "#/$defs/root_schema"}},
                "required": ["value"],
                "$defs": {"root_schema": {"type": "array", "items": {"$ref": "#/$defs/root_schema"}}},
            },
        ),
    ],
)
def test_schema_of_kimi_vendor_verifier_becomes_a_tool(schema: Any, parameters: Any) -> None:
    sample = read_one(schema)
    (tool,) = sample.tools
    assert tool["function"]["parameters"] == parameters
    assert sample.request["tool_choice"] == "required"
    assert [call.name for call in sample.expect.calls] == [SCHEMA_TOOL]


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ([], "has no samples"),
        (["", " "], "has no samples"),
        (["[1]"], "line 1 is not a JSON object"),
        (['{"a": 1}', "{"], "line 1 has an unknown format: a"),
        ([json.dumps({"messages": [USER]}), "{"], "line 2 is not JSON"),
        ([json.dumps({"id": "x", "request": {"messages": []}, "expect": {"reply": "song"}})], "line 1 is not a sample"),
        ([json.dumps({"id": "x", "request": {}, "expected_prompt_tokens": "many"})], "should be a positive number"),
        (["version https://git-lfs.github.com/spec/v1", "size 5"], "line 1 is a Git LFS pointer"),
        (
            [json.dumps({"id": "x", "request": {"messages": ["fixture://a.png"]}, "expected_prompt_tokens": 5})],
            "line 1 needs an image",
        ),
        ([json.dumps({"id": "x", "request": {"messages": []}})] * 2, "1 ids occur more than once"),
    ],
)
def test_errors_name_the_line(lines: list[str], problem: str) -> None:
    with pytest.raises(BadInput, match=r"set\.jsonl") as error:
        read_samples(lines, "set.jsonl")
    assert problem in str(error.value)
    assert error.value.hint


def test_digest_ignores_the_settings_of_a_run() -> None:
    body = {"messages": [USER], "tools": [TOOL]}
    settings = {"model": "m", "stream": True, "stream_options": {}, "temperature": 1, "max_tokens": 5}
    assert request_digest(body) == request_digest(body | settings)
    assert request_digest(body) != request_digest(body | {"tool_choice": "required"})
