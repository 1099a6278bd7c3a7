"""pi: an extension for this run, which tells of one more provider. It has the name of the variable with the key."""

from __future__ import annotations

import json

from interlingua.agents.base import KEY, Agent, Setup, Target

__all__ = ["AGENT"]

APIS = {
    "openai-chat": "openai-completions",
    "anthropic-messages": "anthropic-messages",
    "openai-responses": "openai-responses",
}


def setup(target: Target) -> Setup:
    provider = {
        "name": "Interlingua",
        "baseUrl": target.url,
        "api": APIS[target.api],
        "apiKey": KEY,
        "models": [
            {
                "id": target.model,
                "name": target.model,
                "reasoning": False,
                "input": ["text"],
                "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
                "contextWindow": target.context,
                "maxTokens": target.reply,
            }
        ],
    }
    return Setup(
        argv=["pi", "-e", f"{target.folder}/interlingua.js", "--provider", "interlingua", "--model", target.model],
        environment={KEY: target.key, "PI_OFFLINE": "1"},
        files={
            "interlingua.js": f"export default (pi) => pi.registerProvider('interlingua', {json.dumps(provider)});\n"
        },
        one_shot=("-p",),
    )


AGENT = Agent(
    name="pi",
    title="pi",
    command="pi",
    package="@mariozechner/pi-coding-agent",
    apis=tuple(APIS),
    setup=setup,
)
