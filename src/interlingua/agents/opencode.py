"""opencode: the whole configuration in one environment variable, which overrides the user's files."""

from __future__ import annotations

import json

from interlingua.agents.base import Agent, AgentSetup, AgentTarget

__all__ = ["AGENT"]

SDK_PACKAGES = {
    "openai-chat": "@ai-sdk/openai-compatible",
    "anthropic-messages": "@ai-sdk/anthropic",
    "openai-responses": "@ai-sdk/openai",
}
"""Package of the AI SDK for each API. They are bundled with opencode."""
ALL = {"*": "allow"}


def setup(target: AgentTarget) -> AgentSetup:
    model = f"interlingua/{target.model}"
    limit = {"context": target.context_tokens, "output": target.max_reply_tokens}
    config = {
        "provider": {
            "interlingua": {
                "name": "Interlingua",
                "npm": SDK_PACKAGES[target.api],
                "options": {"baseURL": f"{target.gateway_url}/v1", "apiKey": target.key},
                "models": {target.model: {"name": target.model, "limit": limit}},
            }
        },
        "enabled_providers": ["interlingua"],
        "model": model,
        "small_model": model,
    }
    return AgentSetup(
        argv=["opencode"],
        environment={
            "OPENCODE_CONFIG_CONTENT": json.dumps(config, separators=(",", ":")),
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
        },
        one_shot_argv=("run",),
    )


AGENT = Agent(
    name="opencode",
    title="opencode",
    command="opencode",
    package="opencode-ai",
    apis=tuple(SDK_PACKAGES),
    setup=setup,
)
