"""Codex: an additional provider, defined in arguments that name the environment variable with the key."""

from __future__ import annotations

import json

from interlingua.agents.base import KEY_VARIABLE, Agent, AgentSetup, AgentTarget

__all__ = ["AGENT"]


def setup(target: AgentTarget) -> AgentSetup:
    provider = {
        "name": "Interlingua",
        "base_url": target.api_base_url,
        "wire_api": "responses",
        "env_key": KEY_VARIABLE,
    }
    config: dict[str, str | int] = {
        "model": target.model,
        "model_provider": "il",
        "model_context_window": target.context_tokens,
    }
    config |= {f"model_providers.il.{name}": text for name, text in provider.items()}
    return AgentSetup(
        argv=[
            "codex",
            *(argument for name, text in config.items() for argument in ("-c", f"{name}={json.dumps(text)}")),
        ],
        environment={KEY_VARIABLE: target.key},
        unset_variables=("OPENAI_API_KEY", "OPENAI_BASE_URL", "CODEX_API_KEY"),
        one_shot_argv=("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
    )


AGENT = Agent(
    name="codex",
    title="Codex",
    command="codex",
    package="@openai/codex",
    apis=("openai-responses",),
    setup=setup,
)
