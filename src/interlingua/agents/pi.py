"""pi: an extension file that registers one more provider. It names the environment variable with the key."""

from __future__ import annotations

import json

from interlingua.agents.base import KEY_VARIABLE, Agent, AgentSetup, AgentTarget

__all__ = ["AGENT"]

API_NAMES = {
    "openai-chat": "openai-completions",
    "anthropic-messages": "anthropic-messages",
    "openai-responses": "openai-responses",
}


def setup(target: AgentTarget) -> AgentSetup:
    provider = {
        "name": "Interlingua",
        "baseUrl": target.api_base_url,
        "api": API_NAMES[target.api],
        "apiKey": KEY_VARIABLE,
        "models": [
            {
                "id": target.model,
                "name": target.model,
                "reasoning": False,
                "input": ["text"],
                "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
                "contextWindow": target.context_tokens,
                "maxTokens": target.max_reply_tokens,
            }
        ],
    }
    return AgentSetup(
        argv=["pi", "-e", f"{target.folder}/interlingua.js", "--provider", "interlingua", "--model", target.model],
        environment={KEY_VARIABLE: target.key, "PI_OFFLINE": "1"},
        files={
            "interlingua.js": f"export default (pi) => pi.registerProvider('interlingua', {json.dumps(provider)});\n"
        },
        one_shot_argv=("-p",),
    )


AGENT = Agent(
    name="pi",
    title="pi",
    command="pi",
    package="@mariozechner/pi-coding-agent",
    apis=tuple(API_NAMES),
    setup=setup,
)
