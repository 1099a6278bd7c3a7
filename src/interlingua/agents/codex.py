"""Codex: a provider of its own beside the user's, in arguments; they hold the name of the variable that has the key."""

from __future__ import annotations

import json

from interlingua.agents.base import KEY, Agent, Setup, Target

__all__ = ["AGENT"]


def setup(target: Target) -> Setup:
    provider = {
        "name": "Interlingua",
        "base_url": target.url,
        "wire_api": "responses",
        "env_key": KEY,
    }
    said: dict[str, str | int] = {
        "model": target.model,
        "model_provider": "il",
        "model_context_window": target.context,
    }
    said |= {f"model_providers.il.{name}": text for name, text in provider.items()}
    return Setup(
        argv=["codex", *(word for name, text in said.items() for word in ("-c", f"{name}={json.dumps(text)}"))],
        environment={KEY: target.key},
        unset=("OPENAI_API_KEY", "OPENAI_BASE_URL", "CODEX_API_KEY"),
        one_shot=("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
    )


AGENT = Agent(
    name="codex",
    title="Codex",
    command="codex",
    package="@openai/codex",
    apis=("openai-responses",),
    setup=setup,
)
