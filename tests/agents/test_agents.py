"""How agents are pointed at a gateway. That they then ask there is seen by `make e2e`, with the real programs."""

from __future__ import annotations

import shlex
from pathlib import PurePosixPath

import pytest

from interlingua.agents import AGENTS, Agent, AgentSetup, AgentTarget, format_shell_command

WAYS = [(agent, api) for agent in AGENTS.values() for api in agent.apis]


@pytest.fixture(params=WAYS, ids=[f"{agent.name}-{api}" for agent, api in WAYS])
def way(request: pytest.FixtureRequest) -> tuple[Agent, AgentSetup]:
    agent, api = request.param
    target = AgentTarget(
        gateway_url="http://127.0.0.1:4321", api=api, model="a/model-1", key="THE-KEY", folder="/run/x"
    )
    return agent, agent.setup(target)


def test_the_key_is_in_no_argument(way: tuple[Agent, AgentSetup]) -> None:
    _, setup = way
    assert not any("THE-KEY" in word for word in (*setup.argv, *setup.override_argv, *setup.one_shot_argv))
    assert any("THE-KEY" in text for text in (*setup.environment.values(), *setup.files.values()))


def test_base_and_model_are_told(way: tuple[Agent, AgentSetup]) -> None:
    agent, setup = way
    told = [*setup.argv, *setup.environment.values(), *setup.files.values()]
    assert setup.argv[0] == agent.command
    assert any("http://127.0.0.1:4321" in text for text in told)
    assert any("a/model-1" in text for text in told)


def test_files_are_in_the_folder_of_the_run(way: tuple[Agent, AgentSetup]) -> None:
    _, setup = way
    for name in setup.files:
        assert not PurePosixPath(name).is_absolute()
        assert ".." not in PurePosixPath(name).parts
        assert any(f"/run/x/{name}" in text for text in (*setup.argv, *setup.override_argv))


def test_what_is_set_is_not_unset(way: tuple[Agent, AgentSetup]) -> None:
    _, setup = way
    assert not set(setup.unset_variables) & set(setup.environment)


@pytest.mark.parametrize(("agent", "api"), WAYS, ids=lambda way: getattr(way, "name", way))
def test_how_much_the_model_takes_is_told(agent: Agent, api: str) -> None:
    target = AgentTarget(
        gateway_url="http://127.0.0.1:1", api=api, model="m", key="k", folder="/f", context_tokens=65_432
    )
    setup = agent.setup(target)
    told = " ".join([*setup.argv, *setup.environment.values(), *setup.files.values()])
    assert ("65432" in told) == agent.has_context_setting


def test_only_messages_has_no_version_in_its_base() -> None:
    def url(api: str) -> str:
        return AgentTarget(gateway_url="http://127.0.0.1:1", api=api, model="m", key="k", folder="/f").api_base_url

    assert url("anthropic-messages") == "http://127.0.0.1:1"
    assert {url(api) for api in ("openai-chat", "openai-responses", "kimi")} == {"http://127.0.0.1:1/v1"}


def test_keys_for_others_are_not_shown_to_the_gateway() -> None:
    target = AgentTarget(gateway_url="http://127.0.0.1:1", api="anthropic-messages", model="m", key="k", folder="/f")
    assert "ANTHROPIC_API_KEY" in AGENTS["claude"].setup(target).unset_variables
    assert "OPENAI_API_KEY" in AGENTS["qwen"].setup(target).unset_variables


def test_a_setup_is_a_line_for_a_shell(way: tuple[Agent, AgentSetup]) -> None:
    _, setup = way
    text = format_shell_command(setup)
    longest = max(map(len, text.splitlines()))
    variables = [f"{name}={value}" for name, value in setup.environment.items()]
    assert shlex.split(text.replace("\\\n", "")) == [*variables, *setup.argv]
    assert longest <= 112 or longest < max(map(len, variables)) + 10  # what cannot be cut has a line of its own
