"""Kimi Code: a model defined by environment variables, which is then the default model."""

from __future__ import annotations

from interlingua.agents.base import Agent, AgentSetup, AgentTarget

__all__ = ["AGENT"]

PROVIDER_TYPES = {
    "kimi": "kimi",
    "openai-chat": "openai",
    "anthropic-messages": "anthropic",
    "openai-responses": "openai_responses",
}
"""Its name for each API. `kimi` is the Chat Completions variant of Kimi's own platform."""


def setup(target: AgentTarget) -> AgentSetup:
    return AgentSetup(
        argv=["kimi"],
        environment={
            "KIMI_MODEL_NAME": target.model,
            "KIMI_MODEL_PROVIDER_TYPE": PROVIDER_TYPES[target.api],
            "KIMI_MODEL_BASE_URL": target.api_base_url,
            "KIMI_MODEL_API_KEY": target.key,
            "KIMI_MODEL_MAX_CONTEXT_SIZE": str(target.context_tokens),
            "KIMI_CODE_NO_AUTO_UPDATE": "1",
        },
        unset_variables=("KIMI_API_KEY", "KIMI_BASE_URL"),
        one_shot_argv=("-p",),
    )


AGENT = Agent(
    name="kimi",
    title="Kimi Code",
    command="kimi",
    package="@moonshot-ai/kimi-code",
    apis=tuple(PROVIDER_TYPES),
    setup=setup,
)
