"""Description of a coding agent: the APIs that it supports, and the setup that makes it use a gateway."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from interlingua.wires import WIRES, get_wire
from interlingua.wires.http_api import VERSION_PATH

__all__ = ["DEFAULT_CONTEXT_TOKENS", "KEY_VARIABLE", "Agent", "AgentSetup", "AgentTarget"]

KEY_VARIABLE = "IL_KEY"
"""Environment variable with the gateway's key, for agents whose configuration names the variable to read."""
DEFAULT_CONTEXT_TOKENS = 128_000
"""Context window in tokens if none is configured. Most current models have at least that."""


class AgentTarget(Struct, frozen=True, kw_only=True):
    """Gateway, API and model that an agent should use."""

    gateway_url: str
    """URL of the gateway without a path: http://127.0.0.1:8484"""
    api: str
    """One of the agent's `apis`."""
    model: str
    key: str
    """API key of the gateway, never of an upstream."""
    folder: str
    """Folder for the files of the setup: empty, and used by this run only. "": no file can be written."""
    context_tokens: int = DEFAULT_CONTEXT_TOKENS
    """Context window of the model. An agent compacts its conversation before the window is full."""

    @property
    def api_base_url(self) -> str:
        """Base URL for SDKs, without the version path if the SDKs of the API add it themselves."""
        adds_version = self.api in WIRES and get_wire(self.api).HTTP_API.always_versioned
        return self.gateway_url if adds_version else self.gateway_url + VERSION_PATH

    @property
    def max_reply_tokens(self) -> int:
        """Maximum length of a reply: a quarter of the context window."""
        return self.context_tokens // 4


class AgentSetup(Struct, frozen=True, kw_only=True):
    """Command, environment and files that make an agent use a target.

    The key is in the environment or in a file, never in an argument: every user of the machine can read those.
    """

    environment: dict[str, str]
    argv: list[str]
    """Command to run. The user's arguments are appended."""
    override_argv: tuple[str, ...] = ()
    """Additional arguments that name a file in the folder. They override the user's own settings."""
    unset_variables: tuple[str, ...] = ()
    """Variables to remove. With them, the agent would use another server or send the gateway another service's key."""
    files: dict[str, str] = {}
    """Files to write into the folder: text by file name."""
    one_shot_argv: tuple[str, ...] = ()
    """Arguments between `argv` and a prompt that make the agent execute the prompt without questions, and exit."""


class Agent(Struct, frozen=True, kw_only=True):
    name: str
    """Name in `interlingua run NAME`."""
    title: str
    command: str
    """Name of the executable."""
    package: str
    """Name of the npm package."""
    apis: tuple[str, ...]
    """APIs that it supports: names of wires, or its own name for a variant of a wire. The best-supported is first."""
    setup: Callable[[AgentTarget], AgentSetup]
    has_context_setting: bool = True
    """True if its context window can be configured. Otherwise the agent derives it from the model's name."""
