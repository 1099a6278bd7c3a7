"""Claude Code: configured by environment variables, repeated in a settings file that overrides the user's settings."""

from __future__ import annotations

import json

from interlingua.agents.base import Agent, AgentSetup, AgentTarget

__all__ = ["AGENT"]

MODEL_VARIABLES = (
    "ANTHROPIC_MODEL",
    "ANTHROPIC_DEFAULT_OPUS_MODEL",
    "ANTHROPIC_DEFAULT_SONNET_MODEL",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL",
    "ANTHROPIC_DEFAULT_FABLE_MODEL",
)
"""All are set to the target model. Claude Code uses the small model in the background, under a name that the gateway
need not know."""
MAX_REPLY_TOKENS = 32_000
"""Claude Code's own limit for unknown models."""
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
        ),  # otherwise it assumes a window of a million tokens for unknown models
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(
            min(target.max_reply_tokens, MAX_REPLY_TOKENS)
        ),  # otherwise it requests 32,000 tokens, which servers with a smaller window refuse
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
