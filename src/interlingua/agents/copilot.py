"""GitHub Copilot CLI: a custom provider, configured by environment variables. It needs no GitHub account."""

from __future__ import annotations

from interlingua.agents.base import Agent, AgentSetup, AgentTarget

__all__ = ["AGENT"]

PROVIDERS = {
    "openai-responses": ("openai", "responses"),
    "openai-chat": ("openai", "completions"),
    "anthropic-messages": ("anthropic", ""),
}
"""Its names for each API: the type of the provider, and the API if the type has several."""
CONFLICTING_VARIABLES = (
    "COPILOT_PROVIDER_API_KEY_COMMAND",
    "COPILOT_PROVIDER_BEARER_TOKEN",
    "COPILOT_PROVIDER_HEADERS",
    "COPILOT_PROVIDER_MODEL_ID",
    "COPILOT_PROVIDER_TRANSPORT",
    "COPILOT_PROVIDER_WIRE_MODEL",
)


def setup(target: AgentTarget) -> AgentSetup:
    provider_type, wire_api = PROVIDERS[target.api]
    return AgentSetup(
        argv=["copilot"],
        environment={
            "COPILOT_PROVIDER_BASE_URL": target.api_base_url,
            "COPILOT_PROVIDER_TYPE": provider_type,
            **({"COPILOT_PROVIDER_WIRE_API": wire_api} if wire_api else {}),
            "COPILOT_PROVIDER_API_KEY": target.key,
            "COPILOT_MODEL": target.model,
            "COPILOT_PROVIDER_MAX_PROMPT_TOKENS": str(target.context_tokens - target.max_reply_tokens),
            "COPILOT_PROVIDER_MAX_OUTPUT_TOKENS": str(target.max_reply_tokens),
            "COPILOT_OFFLINE": "true",  # otherwise it contacts GitHub
            "COPILOT_AUTO_UPDATE": "false",
        },
        unset_variables=CONFLICTING_VARIABLES if wire_api else (*CONFLICTING_VARIABLES, "COPILOT_PROVIDER_WIRE_API"),
        one_shot_argv=("--allow-all-tools", "-p"),
    )


AGENT = Agent(
    name="copilot",
    title="GitHub Copilot CLI",
    command="copilot",
    package="@github/copilot",
    apis=tuple(PROVIDERS),
    setup=setup,
)
