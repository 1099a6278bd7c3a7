"""Qwen Code: configured by environment variables, with the API in an argument."""

from __future__ import annotations

from interlingua.agents.base import Agent, AgentSetup, AgentTarget

__all__ = ["AGENT"]

VARIABLE_PREFIXES = {"openai-chat": "OPENAI", "anthropic-messages": "ANTHROPIC"}
"""Prefix of the environment variables of each API. In lower case it is the value of --auth-type."""
CONFLICTING_VARIABLES = tuple(
    f"{prefix}_{name}" for prefix in VARIABLE_PREFIXES.values() for name in ("API_KEY", "BASE_URL", "MODEL")
)


def setup(target: AgentTarget) -> AgentSetup:
    prefix = VARIABLE_PREFIXES[target.api]
    environment = {
        f"{prefix}_BASE_URL": target.api_base_url,
        f"{prefix}_API_KEY": target.key,
        f"{prefix}_MODEL": target.model,
    }
    return AgentSetup(
        argv=["qwen", "--auth-type", prefix.lower(), "--model", target.model],
        environment=environment,
        unset_variables=tuple(name for name in CONFLICTING_VARIABLES if name not in environment),
        one_shot_argv=("--approval-mode", "yolo", "-p"),
    )


AGENT = Agent(
    name="qwen",
    title="Qwen Code",
    command="qwen",
    package="@qwen-code/qwen-code",
    apis=tuple(VARIABLE_PREFIXES),
    setup=setup,
    has_context_setting=False,
)
