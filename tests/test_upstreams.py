"""Upstreams are found by name and by address, and every row says only what is different."""

from __future__ import annotations

import msgspec
import pytest

from interlingua.cli.show import field_docs
from interlingua.errors import UnknownUpstream, UsageError
from interlingua.profile import ANY, Profile
from interlingua.upstreams import profile_for, profile_named, profiles

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
def test_an_address_tells_its_upstream(address: str) -> None:
    assert profile_for(address).name == ADDRESSES[address]


def test_an_address_is_text() -> None:
    with pytest.raises(UsageError):
        profile_for(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("profile", [*profiles(), ANY], ids=lambda profile: str(profile.name))
def test_a_name_tells_its_upstream(profile: Profile) -> None:
    assert profile_named(profile.name) is profile
    assert profile_named(profile) is profile


def test_an_unknown_name() -> None:
    with pytest.raises(UnknownUpstream, match="no upstream is called 'moonshoot'") as caught:
        profile_named("moonshoot")
    assert caught.value.hint == "did you mean 'moonshot'?"


@pytest.mark.parametrize("profile", profiles(), ids=lambda profile: str(profile.name))
def test_a_row_fits_its_types_and_itself(profile: Profile) -> None:
    assert msgspec.convert(msgspec.to_builtins(profile), Profile) == profile
    assert bool(profile.seal_wire) == profile.own_seals
    assert profile.summary != ANY.summary
    assert not (profile.thinking_with_calls and profile.replay == "none")


def test_names_and_hosts_are_unique() -> None:
    assert len({profile.name for profile in profiles()}) == len(profiles()) == 13
    hosts = [host for profile in profiles() for host in profile.hosts]
    assert len(set(hosts)) == len(hosts)


def test_every_field_is_explained() -> None:
    told = {"name", "summary"}
    assert {field.name for field in msgspec.structs.fields(Profile)} - told == field_docs(Profile).keys()
