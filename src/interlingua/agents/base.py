"""What is known of a coding agent: which APIs it speaks, and how it is pointed at a gateway."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from interlingua.upstreams.profile import MESSAGES

__all__ = ["DEFAULT_CONTEXT_TOKENS", "KEY_VARIABLE", "Agent", "AgentSetup", "AgentTarget"]

KEY_VARIABLE = "IL_KEY"
"""The variable with the gateway's key, for agents that are told which one to read."""
DEFAULT_CONTEXT_TOKENS = 128_000
"""How many tokens a model is taken to have room for, if nobody says otherwise. Most of today's have as much or more."""


class AgentTarget(Struct, frozen=True, kw_only=True):
    """Where an agent is to ask."""

    gateway_url: str
    """The gateway, without a path: http://127.0.0.1:8484"""
    api: str
    """One of the agent's `apis`."""
    model: str
    key: str
    """The gateway's, never an upstream's."""
    folder: str
    """Where the setup's files will be: an empty folder of this run's own."""
    context_tokens: int = DEFAULT_CONTEXT_TOKENS
    """For how many tokens the model has room: an agent shortens its conversation before they are full."""

    @property
    def api_base_url(self) -> str:
        """What SDKs take as their base: those of Messages add the version themselves."""
        return self.gateway_url if self.api == MESSAGES else f"{self.gateway_url}/v1"

    @property
    def max_reply_tokens(self) -> int:
        """How much of the room a reply may take."""
        return self.context_tokens // 4


class AgentSetup(Struct, frozen=True, kw_only=True):
    """What makes an agent ask there. The key is in the environment or in a file, and never in an argument: those can be
    read by everybody on the machine."""

    environment: dict[str, str]
    argv: list[str]
    """What is run. A user's arguments come behind."""
    override_argv: tuple[str, ...] = ()
    """Further arguments, with a file of the folder's: a user's own settings might say otherwise, and would win."""
    unset_variables: tuple[str, ...] = ()
    """Variables with which the agent would ask elsewhere, or show a key here that is for somebody else."""
    files: dict[str, str] = {}
    """What stands in the folder: names and texts."""
    one_shot_argv: tuple[str, ...] = ()
    """What `argv` needs before a prompt, so that the agent does what it says, asks nobody, and ends."""


class Agent(Struct, frozen=True, kw_only=True):
    name: str
    """As in `interlingua run NAME`."""
    title: str
    command: str
    """The program."""
    package: str
    """What npm installs it by."""
    apis: tuple[str, ...]
    """What it speaks: names of wires, or its own name for a variety of one. The first is what it is best at."""
    setup: Callable[[AgentTarget], AgentSetup]
    has_context_setting: bool = True
    """Whether it can be told for how many tokens the model has room. One that cannot goes by the model's name."""
