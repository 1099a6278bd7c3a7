"""Continue's CLI: a configuration file with one model, which takes the place of the user's for this run."""

from __future__ import annotations

import json

from interlingua.agents.base import Agent, AgentSetup, AgentTarget

__all__ = ["AGENT"]

CONFIG_FILE = "config.yaml"
PROVIDERS = {"openai-chat": "openai", "anthropic-messages": "anthropic"}


def setup(target: AgentTarget) -> AgentSetup:
    model = {
        "name": target.model,
        "provider": PROVIDERS[target.api],
        "model": target.model,
        "apiBase": f"{target.gateway_url}/v1",
        "apiKey": target.key,
        "roles": ["chat"],
        "capabilities": ["tool_use"],
        "defaultCompletionOptions": {"contextLength": target.context_tokens, "maxTokens": target.max_reply_tokens},
    }
    config = {"name": "Interlingua", "version": "1.0.0", "schema": "v1", "models": [model]}
    return AgentSetup(
        argv=["cn", "--config", f"{target.folder}/{CONFIG_FILE}"],
        environment={"CONTINUE_TELEMETRY_ENABLED": "0"},
        files={CONFIG_FILE: json.dumps(config, indent=2)},  # JSON is YAML
        one_shot_argv=("--auto", "-p"),
    )


AGENT = Agent(
    name="cn",
    title="Continue CLI",
    command="cn",
    package="@continuedev/cli",
    apis=tuple(PROVIDERS),
    setup=setup,
)
