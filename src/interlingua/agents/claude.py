"""Claude Code: everything is in the environment, and again in a settings file: a user's own would win otherwise."""

from __future__ import annotations

import json

from interlingua.agents.base import Agent, Setup, Target

__all__ = ["AGENT"]

MODELS = (
    "ANTHROPIC_MODEL",
    "ANTHROPIC_DEFAULT_OPUS_MODEL",
    "ANTHROPIC_DEFAULT_SONNET_MODEL",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL",
)
"""The small one is asked in the background: a gateway need not know the names that it has elsewhere."""
ELSEWHERE = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_CUSTOM_HEADERS",
    "ANTHROPIC_SMALL_FAST_MODEL",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
)


def setup(target: Target) -> Setup:
    environment = {
        "ANTHROPIC_BASE_URL": target.base,
        "ANTHROPIC_AUTH_TOKEN": target.key,
        **dict.fromkeys(MODELS, target.model),
        "CLAUDE_CODE_MAX_CONTEXT_TOKENS": str(target.context),  # or it takes any unknown model for one of a million
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    return Setup(
        environment=environment,
        argv=["claude"],
        firm=("--settings", f"{target.folder}/settings.json"),
        unset=ELSEWHERE,
        files={"settings.json": json.dumps({"env": environment}, indent=2)},
        one_shot=("--dangerously-skip-permissions", "-p"),
    )


AGENT = Agent(
    name="claude",
    title="Claude Code",
    command="claude",
    package="@anthropic-ai/claude-code",
    apis=("anthropic-messages",),
    setup=setup,
)
