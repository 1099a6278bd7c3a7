"""opencode: its whole configuration may stand in one variable, which wins over the user's files."""

from __future__ import annotations

import json

from interlingua.agents.base import Agent, Setup, Target

__all__ = ["AGENT"]

PACKAGES = {
    "openai-chat": "@ai-sdk/openai-compatible",
    "anthropic-messages": "@ai-sdk/anthropic",
    "openai-responses": "@ai-sdk/openai",
}
"""Which part of the AI SDK speaks the API. They come with opencode."""
ALL = {"*": "allow"}


def setup(target: Target) -> Setup:
    model = f"interlingua/{target.model}"
    limit = {"context": target.context, "output": target.reply}
    config = {
        "provider": {
            "interlingua": {
                "name": "Interlingua",
                "npm": PACKAGES[target.api],
                "options": {"baseURL": f"{target.base}/v1", "apiKey": target.key},
                "models": {target.model: {"name": target.model, "limit": limit}},
            }
        },
        "enabled_providers": ["interlingua"],
        "model": model,
        "small_model": model,
    }
    return Setup(
        argv=["opencode"],
        environment={
            "OPENCODE_CONFIG_CONTENT": json.dumps(config, separators=(",", ":")),
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
        },
        one_shot=("run",),
    )


AGENT = Agent(
    name="opencode",
    title="opencode",
    command="opencode",
    package="opencode-ai",
    apis=tuple(PACKAGES),
    setup=setup,
)
