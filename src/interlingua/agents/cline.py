"""Cline's CLI: its own folder with the provider's settings, so that sessions of this run are apart from the user's."""

from __future__ import annotations

import json

from interlingua.agents.base import Agent, AgentSetup, AgentTarget

__all__ = ["AGENT"]

SETTINGS_FILE = "settings/providers.json"
PROVIDERS = {"openai-chat": "openai-compatible", "anthropic-messages": "anthropic"}


def setup(target: AgentTarget) -> AgentSetup:
    provider = PROVIDERS[target.api]
    settings = {
        "provider": provider,
        "apiKey": target.key,
        "model": target.model,
        "baseUrl": f"{target.gateway_url}/v1",
    }
    providers = {provider: {"settings": settings, "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}}
    config = {"version": 1, "lastUsedProvider": provider, "modes": {}, "providers": providers}
    return AgentSetup(
        argv=["cline", "--data-dir", target.folder, "--provider", provider, "--model", target.model],
        environment={},
        files={SETTINGS_FILE: json.dumps(config, indent=2)},
        one_shot_argv=(),
    )


AGENT = Agent(
    name="cline",
    title="Cline",
    command="cline",
    package="cline",
    apis=tuple(PROVIDERS),
    setup=setup,
    has_context_setting=False,
)
