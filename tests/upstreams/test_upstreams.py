"""Profile lookup by name and by URL, and validity of the catalog and the model overrides."""

from __future__ import annotations

import msgspec
import pytest

from interlingua.cli.dialects.show import field_docs
from interlingua.errors import UnknownUpstream, UsageError
from interlingua.upstreams import get_profile, list_profiles, profile_for_model, profile_for_url
from interlingua.upstreams.model_overrides import MODEL_OVERRIDES, ModelOverride
from interlingua.upstreams.profile import UNKNOWN_PROFILE, Profile
from interlingua.wires import anthropic_messages, openai_chat, openai_responses

CHAT, MESSAGES, RESPONSES = "openai-chat", "anthropic-messages", "openai-responses"

ADDRESSES = {
    "https://api.openai.com/v1": "openai",
    "https://my-team.openai.azure.com/openai/v1": "openai",
    "https://api.anthropic.com": "anthropic",
    "https://openrouter.ai/api/v1": "openrouter",
    "https://api.moonshot.ai/v1": "moonshot",
    "https://api.moonshot.cn/anthropic": "moonshot",
    "https://api.kimi.com/coding/v1": "moonshot",
    "https://api.deepseek.com/anthropic": "deepseek",
    "https://dashscope.aliyuncs.com/compatible-mode/v1": "qwen",
    "https://dashscope-intl.aliyuncs.com/compatible-mode/v1": "qwen",
    "https://api.z.ai/api/paas/v4": "zai",
    "https://open.bigmodel.cn/api/paas/v4": "zai",
    "https://api.minimax.io/v1": "minimax",
    "https://api.minimaxi.com/v1": "minimax",
    "https://api.mistral.ai/v1": "mistral",
    "http://localhost:11434/v1": "ollama",
    "http://10.0.0.7:30000": "sglang",
    "API.OpenAI.com": "openai",
    "api.openai.com:443": "openai",
    "localhost:11434": "ollama",
    "[::1]:11434": "ollama",
    "http://localhost:8000/v1": "any",
    "https://api.openai.com.evil.example/v1": "any",
    "https://evil.example/api.openai.com": "any",
    "https://user@evil.example:1/": "any",
    "http://[::1": "any",
    "http://host:port": "any",
    "": "any",
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_profile_for_url(address: str) -> None:
    assert profile_for_url(address).name == ADDRESSES[address]


def test_url_must_be_str() -> None:
    with pytest.raises(UsageError):
        profile_for_url(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("profile", [*list_profiles(), UNKNOWN_PROFILE], ids=lambda profile: str(profile.name))
def test_profile_by_name(profile: Profile) -> None:
    assert get_profile(profile.name) is profile
    assert get_profile(profile) is profile


def test_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(UnknownUpstream, match="no upstream is called 'moonshoot'") as caught:
        get_profile("moonshoot")
    assert caught.value.hint == "did you mean 'moonshot'?"


@pytest.mark.parametrize("profile", list_profiles(), ids=lambda profile: str(profile.name))
def test_profile_is_valid_and_consistent(profile: Profile) -> None:
    assert msgspec.convert(msgspec.to_builtins(profile), Profile) == profile
    assert bool(profile.seal_wire) == profile.own_seals
    assert profile.summary != UNKNOWN_PROFILE.summary
    assert not (profile.thinking_with_calls and profile.replay == "none")


def test_names_and_hosts_are_unique() -> None:
    assert len({profile.name for profile in list_profiles()}) == len(list_profiles()) == 14
    hosts = [host for profile in list_profiles() for host in profile.hosts]
    assert len(set(hosts)) == len(hosts)


@pytest.mark.parametrize("row", MODEL_OVERRIDES, ids=lambda row: str(row.ids[0]))
def test_model_override_is_a_valid_profile_change(row: ModelOverride) -> None:
    changed = msgspec.convert(msgspec.to_builtins(UNKNOWN_PROFILE) | row.changes, Profile)
    assert changed != UNKNOWN_PROFILE or row.upstreams
    assert set(row.upstreams) <= {profile.name for profile in list_profiles()}
    assert all(pattern == pattern.lower() for pattern in row.ids)


@pytest.mark.parametrize(
    ("model", "field", "value"),
    [
        ("moonshotai/Kimi-K2-Instruct", "ids", "functions"),
        ("kimi-k2.6", "can_stop_thinking", True),
        ("Kimi-K2-Thinking", "can_stop_thinking", False),
        ("mistralai/Mistral-7B-Instruct-v0.3", "ids", "nine"),
        ("openai/o3-mini", "can_stop_thinking", False),
        ("gpt-5-codex", "can_stop_thinking", False),
        ("gpt-5.2", "can_stop_thinking", True),
        ("gpt-4o", "can_stop_thinking", True),
        ("Qwen/Qwen3-235B-A22B-Thinking-2507", "can_stop_thinking", False),
        ("Qwen/Qwen3-235B-A22B-Instruct-2507", "thinking", "none"),
        ("Qwen/Qwen3-32B", "thinking", "effort"),
        ("anthropic/claude-opus-4.6", "prefill", False),
        ("us.anthropic.claude-sonnet-4-6-v1:0", "prefill", False),
        ("claude-opus-4-7", "prefill", False),
        ("claude-sonnet-5-5", "prefill", False),
        ("claude-sonnet-4-5-20250929", "prefill", True),
        ("claude-opus-4-20250514", "prefill", True),
        ("moonshotai/Kimi-K2-Instruct-0905", "vision", False),
        ("moonshotai/Kimi-K2.5", "vision", True),
        ("zai-org/GLM-4.6-FP8", "vision", False),
        ("zai-org/GLM-4.6V", "vision", True),
        ("Qwen/Qwen3-Coder-480B-A35B-Instruct", "vision", False),
        ("Qwen/Qwen3-VL-32B-Instruct", "vision", True),
        ("openai/gpt-oss-120b", "vision", False),
        ("", "ids", "any"),
    ],
)
def test_profile_for_model(model: str, field: str, value: object) -> None:
    assert getattr(profile_for_model(UNKNOWN_PROFILE, model), field) == value


def test_wire_constants_equal_wire_names() -> None:
    assert [wire.NAME for wire in (openai_chat, anthropic_messages, openai_responses)] == [CHAT, MESSAGES, RESPONSES]


def test_every_profile_field_has_a_docstring() -> None:
    documented = {"name", "summary"}
    assert {field.name for field in msgspec.structs.fields(Profile)} - documented == field_docs(Profile).keys()
