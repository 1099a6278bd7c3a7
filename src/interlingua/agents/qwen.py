"""Qwen Code: everything is in the environment, and which of its APIs is meant in an argument."""

from __future__ import annotations

from interlingua.agents.base import Agent, Setup, Target

__all__ = ["AGENT"]

PREFIXES = {"openai-chat": "OPENAI", "anthropic-messages": "ANTHROPIC"}
"""How the variables of an API begin; in small letters it is what --auth-type takes."""
ELSEWHERE = tuple(f"{prefix}_{name}" for prefix in PREFIXES.values() for name in ("API_KEY", "BASE_URL", "MODEL"))


def setup(target: Target) -> Setup:
    prefix = PREFIXES[target.api]
    environment = {
        f"{prefix}_BASE_URL": target.url,
        f"{prefix}_API_KEY": target.key,
        f"{prefix}_MODEL": target.model,
    }
    return Setup(
        argv=["qwen", "--auth-type", prefix.lower(), "--model", target.model],
        environment=environment,
        unset=tuple(name for name in ELSEWHERE if name not in environment),
        one_shot=("--approval-mode", "yolo", "-p"),
    )


AGENT = Agent(
    name="qwen",
    title="Qwen Code",
    command="qwen",
    package="@qwen-code/qwen-code",
    apis=tuple(PREFIXES),
    setup=setup,
    heeds_context=False,
)
