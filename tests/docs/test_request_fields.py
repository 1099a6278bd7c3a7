"""Settings of requests: every field of the SDKs has a row, and none is lost silently between two APIs."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic.types import message_create_params as messages
from anthropic.types.beta import message_create_params as beta_messages
from openai.types.chat import completion_create_params as chat
from openai.types.responses import response_create_params as responses

from docs.request_fields import ALWAYS, FIELDS, NOT_SETTINGS, translate_field

SDK_TYPES: dict[str, list[Any]] = {
    "openai-chat": [chat.CompletionCreateParamsBase],
    "openai-responses": [responses.ResponseCreateParamsBase],
    "anthropic-messages": [messages.MessageCreateParamsBase, beta_messages.MessageCreateParamsBase],
}
PAIRS = [(wire, field, target) for wire in FIELDS for field in FIELDS[wire] for target in FIELDS if target != wire]
REQUIRED: dict[tuple[str, str, str], dict[str, Any]] = {
    ("anthropic-messages", "service_tier", "openai-chat"): {"service_tier": "default"},
    ("anthropic-messages", "service_tier", "openai-responses"): {"service_tier": "default"},
    ("openai-responses", "top_logprobs", "openai-chat"): {"top_logprobs": 3, "logprobs": True},
    ("openai-responses", "prompt_cache_options", "openai-chat"): {"prompt_cache_options.mode": "explicit"},
    ("openai-chat", "prompt_cache_options", "openai-responses"): {"prompt_cache_options.mode": "explicit"},
    ("openai-responses", "safety_identifier", "anthropic-messages"): {"metadata": {"user_id": "user-1"}},
    ("openai-chat", "verbosity", "openai-responses"): {"text.verbosity": "low"},
}
"""Translations that an SDK's user would miss; the reference has all of them."""


@pytest.mark.parametrize("wire", FIELDS)
def test_every_field_of_the_sdk_has_a_row(wire: str) -> None:
    rows = {field.partition(".")[0] for field in FIELDS[wire]} | set(NOT_SETTINGS[wire])
    fields = {field for sdk_type in SDK_TYPES[wire] for field in sdk_type.__annotations__}
    assert rows - {"stream"} == fields


@pytest.mark.parametrize(("wire", "field", "target"), PAIRS)
def test_no_setting_is_lost_silently(wire: str, field: str, target: str) -> None:
    outcome = translate_field(wire, field, target)
    assert outcome.is_silent == (field in ALWAYS[wire]), outcome


@pytest.mark.parametrize("pair", REQUIRED, ids=" ".join)
def test_translation_of_a_setting(pair: tuple[str, str, str]) -> None:
    outcome = translate_field(*pair)
    assert outcome.written == REQUIRED[pair]
    assert not outcome.kinds
