"""Claude Code: everything is in the environment, and again in a settings file: a user's own would win otherwise."""

from __future__ import annotations

import json

from interlingua.agents.base import Agent, AgentSetup, AgentTarget

__all__ = ["AGENT"]

MODEL_VARIABLES = (
    "ANTHROPIC_MODEL",
    "ANTHROPIC_DEFAULT_OPUS_MODEL",
    "ANTHROPIC_DEFAULT_SONNET_MODEL",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL",
)
"""The small one is asked in the background: a gateway need not know the names that it has elsewhere."""
CONFLICTING_VARIABLES = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_CUSTOM_HEADERS",
    "ANTHROPIC_SMALL_FAST_MODEL",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
)


def setup(target: AgentTarget) -> AgentSetup:
    environment = {
        "ANTHROPIC_BASE_URL": target.gateway_url,
        "ANTHROPIC_AUTH_TOKEN": target.key,
        **dict.fromkeys(MODEL_VARIABLES, target.model),
        "CLAUDE_CODE_MAX_CONTEXT_TOKENS": str(
            target.context_tokens
        ),  # or it takes any unknown model for one of a million
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    return AgentSetup(
        environment=environment,
        argv=["claude"],
        override_argv=("--settings", f"{target.folder}/settings.json"),
        unset_variables=CONFLICTING_VARIABLES,
        files={"settings.json": json.dumps({"env": environment}, indent=2)},
        one_shot_argv=("--dangerously-skip-permissions", "-p"),
    )


AGENT = Agent(
    name="claude",
    title="Claude Code",
    command="claude",
    package="@anthropic-ai/claude-code",
    apis=("anthropic-messages",),
    setup=setup,
)
