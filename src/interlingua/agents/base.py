"""What is known of a coding agent: which APIs it speaks, and how it is pointed at a gateway."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from interlingua.upstreams.profile import MESSAGES

__all__ = ["CONTEXT", "KEY", "Agent", "Setup", "Target"]

KEY = "IL_KEY"
"""The variable with the gateway's key, for agents that are told which one to read."""
CONTEXT = 128_000
"""How many tokens a model is taken to have room for, if nobody says otherwise. Most of today's have as much or more."""


class Target(Struct, frozen=True, kw_only=True):
    """Where an agent is to ask."""

    base: str
    """The gateway, without a path: http://127.0.0.1:8484"""
    api: str
    """One of the agent's `apis`."""
    model: str
    key: str
    """The gateway's, never an upstream's."""
    folder: str
    """Where the setup's files will be: an empty folder of this run's own."""
    context: int = CONTEXT
    """For how many tokens the model has room: an agent shortens its conversation before they are full."""

    @property
    def url(self) -> str:
        """What SDKs take as their base: those of Messages add the version themselves."""
        return self.base if self.api == MESSAGES else f"{self.base}/v1"

    @property
    def reply(self) -> int:
        """How much of the room a reply may take."""
        return self.context // 4


class Setup(Struct, frozen=True, kw_only=True):
    """What makes an agent ask there. The key is in the environment or in a file, and never in an argument: those can be
    read by everybody on the machine."""

    environment: dict[str, str]
    argv: list[str]
    """What is run. A user's arguments come behind."""
    firm: tuple[str, ...] = ()
    """Further arguments, with a file of the folder's: a user's own settings might say otherwise, and would win."""
    unset: tuple[str, ...] = ()
    """Variables with which the agent would ask elsewhere, or show a key here that is for somebody else."""
    files: dict[str, str] = {}
    """What stands in the folder: names and texts."""
    one_shot: tuple[str, ...] = ()
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
    setup: Callable[[Target], Setup]
    heeds_context: bool = True
    """Whether it can be told for how many tokens the model has room. One that cannot goes by the model's name."""
