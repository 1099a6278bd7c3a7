"""A tool that the gateway runs, its outcome, and the rounds of one reply in which the model calls it.

To the model it is a function. When the model calls it, the gateway runs it, adds the outcome to the conversation and
asks the model again. The client receives one reply, with the blocks or items that its API has for such tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from interlingua.core.tools import Tool
from interlingua.gateway.http.field_origins import Origins

__all__ = [
    "ERROR_TEXT",
    "INVALID_INPUT",
    "MAX_USES_EXCEEDED",
    "UNAVAILABLE",
    "Json",
    "Outcome",
    "Page",
    "Rounds",
    "ServerCall",
    "ServerTool",
    "ServerToolKind",
    "ToolUses",
    "pages_text",
    "sum_usage",
    "text_parameter",
]

Json: TypeAlias = dict[str, Any]
ServerToolKind: TypeAlias = Literal["tool_search", "web_search", "web_fetch"]

INVALID_INPUT, UNAVAILABLE, MAX_USES_EXCEEDED = "invalid_tool_input", "unavailable", "max_uses_exceeded"
"""Error codes of the Messages API."""
ERROR_TEXT = "[{} failed: {}]"
"""Text of an error for the model, with the kind of tool and the error code."""


class Page(msgspec.Struct, frozen=True):
    """A page of the web, or what a search says about it."""

    url: str
    title: str
    text: str
    age: str = ""
    """Its date or age, as the search states it."""


class Outcome(msgspec.Struct, frozen=True):
    """Outcome of one call: what was found, or an error code of the Messages API."""

    found: list[Tool] = []
    pages: list[Page] = []
    error: str = ""


class ServerCall(msgspec.Struct, frozen=True):
    """A call of the model."""

    id: str
    tool: ServerTool
    arguments: Json


class ServerTool(Protocol):
    """A tool that the gateway runs."""

    kind: ServerToolKind
    name: str
    """Name of the function for the model."""
    description: str
    parameters: Json
    """JSON Schema of its arguments."""

    async def run(self, arguments: Json) -> Outcome:
        """Run one call. It never raises for arguments that the model wrote."""


class ToolUses:
    """Counts the calls of a tool in one request.

    Args:
        maximum: The number of calls that the client allows; 0: any number.
    """

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._count = 0

    def add(self) -> bool:
        """Count a call. Returns whether it is allowed."""
        self._count += 1
        return not self._maximum or self._count <= self._maximum


class Rounds(Protocol):
    """The reply of one client request that takes several rounds: the model is asked again after each outcome.

    Each client API has its own class. Frames are written as they come, and kept for the reply as a whole.
    """

    calls: list[ServerCall]
    """Calls of this round that the gateway has to run."""
    needs_client: bool
    """True if the model has also called a tool of the client, which has to answer before the model goes on."""
    is_complete: bool
    """True if the reply of this round has ended."""
    has_failed: bool
    """True if it has ended with an error, which is sent."""

    max_calls: int
    """Maximum number of calls in the reply that the gateway runs, as the client wants it; 0: no maximum."""

    origins: Origins
    """Origins of the items in the conversation of this round, in the request for the first one."""

    def start_round(self) -> Json:
        """Return the request of the next round, in the client's API: with all that was replied so far."""

    def read_event(self, event: Json) -> bytes:
        """Return the frames for the client for an event of this round."""

    def write_outcome(self, call: ServerCall, outcome: Outcome) -> bytes:
        """Return the frames for the outcome of a call."""

    def finish(self, *, is_paused: bool) -> bytes:
        """Return the frames that end the reply. `is_paused`: the model would go on, but has used up its rounds."""

    def fail(self, error: Json) -> bytes:
        """Return the frames that end the reply with this error of a round, in the client's API."""

    def body(self) -> Json:
        """Return the whole reply, after `finish`."""


def text_parameter(name: str, description: str) -> Json:
    """Return the JSON Schema of the arguments of a tool with one parameter, which is a text."""
    return {
        "type": "object",
        "properties": {name: {"type": "string", "description": description}},
        "required": [name],
    }


def pages_text(pages: Iterable[Page]) -> str:
    """Return pages as a text for the model."""
    texts = ("\n".join(filter(None, (page.title, page.url, page.age, page.text))) for page in pages)
    return "\n\n".join(texts) or "[nothing was found]"


def sum_usage(usages: Iterable[Mapping[str, Any]]) -> Json:
    """Return the sum of all counts in these objects. Other values are those of the last object that has them."""
    total: Json = {}
    for usage in usages:
        for key, value in usage.items():
            before = total.get(key)
            if isinstance(value, Mapping):
                total[key] = sum_usage([before, value] if isinstance(before, Mapping) else [value])
            elif type(value) is int and type(before) is int:
                total[key] = before + value
            else:
                total[key] = value
    return total
