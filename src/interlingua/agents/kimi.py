"""Kimi Code: a model of the environment's, which is the default then."""

from __future__ import annotations

from interlingua.agents.base import Agent, Setup, Target

__all__ = ["AGENT"]

TYPES = {
    "kimi": "kimi",
    "openai-chat": "openai",
    "anthropic-messages": "anthropic",
    "openai-responses": "openai_responses",
}
"""What it calls each API; `kimi` is Chat Completions as Kimi's own platform has it."""


def setup(target: Target) -> Setup:
    return Setup(
        argv=["kimi"],
        environment={
            "KIMI_MODEL_NAME": target.model,
            "KIMI_MODEL_PROVIDER_TYPE": TYPES[target.api],
            "KIMI_MODEL_BASE_URL": target.url,
            "KIMI_MODEL_API_KEY": target.key,
            "KIMI_MODEL_MAX_CONTEXT_SIZE": str(target.context),
            "KIMI_CODE_NO_AUTO_UPDATE": "1",
        },
        unset=("KIMI_API_KEY", "KIMI_BASE_URL"),
        one_shot=("-p",),
    )


AGENT = Agent(
    name="kimi",
    title="Kimi Code",
    command="kimi",
    package="@moonshot-ai/kimi-code",
    apis=tuple(TYPES),
    setup=setup,
)
