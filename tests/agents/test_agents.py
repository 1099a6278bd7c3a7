"""Setup of agents for a gateway. `make e2e` tests with the real programs that they then use it."""

from __future__ import annotations

import json
import shlex
from pathlib import PurePosixPath

import pytest

from interlingua.agents import AGENTS, Agent, AgentSetup, AgentTarget, format_shell_command

AGENT_APIS = [(agent, api) for agent in AGENTS.values() for api in agent.apis]


@pytest.fixture(params=AGENT_APIS, ids=[f"{agent.name}-{api}" for agent, api in AGENT_APIS])
def agent_setup(request: pytest.FixtureRequest) -> tuple[Agent, AgentSetup]:
    agent, api = request.param
    target = AgentTarget(
        gateway_url="http://127.0.0.1:4321", api=api, model="a/model-1", key="THE-KEY", folder="/run/x"
    )
    return agent, agent.setup(target)


def test_key_is_not_in_the_arguments(agent_setup: tuple[Agent, AgentSetup]) -> None:
    _, setup = agent_setup
    assert not any("THE-KEY" in argument for argument in (*setup.argv, *setup.override_argv, *setup.one_shot_argv))
    assert any("THE-KEY" in text for text in (*setup.environment.values(), *setup.files.values()))


def test_base_url_and_model_are_configured(agent_setup: tuple[Agent, AgentSetup]) -> None:
    agent, setup = agent_setup
    texts = [*setup.argv, *setup.environment.values(), *setup.files.values()]
    assert setup.argv[0] == agent.command
    assert any("http://127.0.0.1:4321" in text for text in texts)
    assert any("a/model-1" in text for text in texts)


def test_setup_files_are_in_the_run_folder(agent_setup: tuple[Agent, AgentSetup]) -> None:
    _, setup = agent_setup
    for name in setup.files:
        assert not PurePosixPath(name).is_absolute()
        assert ".." not in PurePosixPath(name).parts
        paths = {f"/run/x/{name}", *map(str, PurePosixPath("/run/x", name).parents)} - {"/run", "/"}
        assert any(path in text for path in paths for text in (*setup.argv, *setup.override_argv))


def test_set_variables_are_not_unset(agent_setup: tuple[Agent, AgentSetup]) -> None:
    _, setup = agent_setup
    assert not set(setup.unset_variables) & set(setup.environment)


def test_codex_catalogue_describes_the_model() -> None:
    """Without the entry, Codex prints a warning and offers no apply_patch."""
    target = AgentTarget(
        gateway_url="http://127.0.0.1:1", api="openai-responses", model="a/model-1", key="k", folder="/run/x"
    )
    setup = AGENTS["codex"].setup(target)
    [model] = json.loads(setup.files["models.json"])["models"]
    assert 'model_catalog_json="/run/x/models.json"' in setup.argv
    assert (model["slug"], model["context_window"]) == ("a/model-1", target.context_tokens)
    assert model["apply_patch_tool_type"] == "freeform"
    assert "apply_patch" in model["base_instructions"]


@pytest.mark.parametrize(("model", "has_catalogue"), [("gpt-5.5", False), ("gpt-oss-120b", True), ("kimi-k2", True)])
def test_codex_keeps_its_own_description_of_known_models(model: str, has_catalogue: bool) -> None:
    target = AgentTarget(
        gateway_url="http://127.0.0.1:1", api="openai-responses", model=model, key="k", folder="/run/x"
    )
    setup = AGENTS["codex"].setup(target)
    assert bool(setup.files) == any("model_catalog_json" in text for text in setup.argv) == has_catalogue


@pytest.mark.parametrize("api", AGENTS["copilot"].apis)
def test_limits_of_copilot_fit_into_the_window(api: str) -> None:
    target = AgentTarget(
        gateway_url="http://127.0.0.1:1", api=api, model="m", key="k", folder="/f", context_tokens=65_432
    )
    environment = AGENTS["copilot"].setup(target).environment
    limits = [int(environment[f"COPILOT_PROVIDER_MAX_{name}_TOKENS"]) for name in ("PROMPT", "OUTPUT")]
    assert sum(limits) == 65_432


@pytest.mark.parametrize(("agent", "api"), AGENT_APIS, ids=lambda value: getattr(value, "name", value))
def test_context_window_is_configured_if_supported(agent: Agent, api: str) -> None:
    target = AgentTarget(
        gateway_url="http://127.0.0.1:1", api=api, model="m", key="k", folder="/f", context_tokens=65_432
    )
    setup = agent.setup(target)
    config = " ".join([*setup.argv, *setup.environment.values(), *setup.files.values()])
    prompt_tokens = str(
        65_432 - target.max_reply_tokens
    )  # some agents have one limit for the prompt and one for the reply
    assert ("65432" in config or prompt_tokens in config) == agent.has_context_setting


def test_only_messages_base_url_has_no_version() -> None:
    def url(api: str) -> str:
        return AgentTarget(gateway_url="http://127.0.0.1:1", api=api, model="m", key="k", folder="/f").api_base_url

    assert url("anthropic-messages") == "http://127.0.0.1:1"
    assert {url(api) for api in ("openai-chat", "openai-responses", "kimi")} == {"http://127.0.0.1:1/v1"}


def test_keys_of_other_services_are_unset() -> None:
    target = AgentTarget(gateway_url="http://127.0.0.1:1", api="anthropic-messages", model="m", key="k", folder="/f")
    assert "ANTHROPIC_API_KEY" in AGENTS["claude"].setup(target).unset_variables
    assert "OPENAI_API_KEY" in AGENTS["qwen"].setup(target).unset_variables


def test_setup_as_a_shell_command(agent_setup: tuple[Agent, AgentSetup]) -> None:
    _, setup = agent_setup
    text = format_shell_command(setup)
    longest = max(map(len, text.splitlines()))
    variables = [f"{name}={value}" for name, value in setup.environment.items()]
    assert shlex.split(text.replace("\\\n", "")) == [*variables, *setup.argv]
    assert (
        longest <= 112 or longest < max(map(len, variables)) + 10
    )  # a value that cannot be split is on a separate line
