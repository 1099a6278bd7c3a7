"""The neutral request: a client's request, independent of its wire.

Each wire reads and writes it. Data that only one wire has is kept separately (`Extra`, `extra`), so that it is
restored when the request is sent on the wire it came from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from interlingua.core.reply import Call, Reasoning, Text
from interlingua.core.tool_choice import ToolChoice, ToolChoiceMode
from interlingua.core.tools import Tool

__all__ = [
    "EFFORT_BUDGET_TOKENS",
    "NO_CONTENT",
    "CacheMark",
    "Content",
    "Document",
    "Extra",
    "Image",
    "JsonFormat",
    "Message",
    "Piece",
    "Request",
    "Result",
    "Role",
    "Thinking",
    "ToolChoice",
    "ToolChoiceMode",
    "with_marks",
]

P = TypeVar("P")
Role: TypeAlias = Literal["system", "user", "assistant"]
EFFORT_BUDGET_TOKENS = {"minimal": 1024, "low": 4096, "medium": 10240, "high": 24576, "xhigh": 32768, "max": 65536}
"""Approximate number of thinking tokens for each effort."""
NO_CONTENT = "(no content)"
"""Placeholder for an empty user message, where the upstream rejects empty content."""


class Image(msgspec.Struct, frozen=True, tag_field="kind", tag="image", omit_defaults=True):
    """An image by its URL; `data:…;base64,…` if the request contains it. `detail` is the requested resolution."""

    url: str
    detail: str = ""


class Document(msgspec.Struct, frozen=True, tag_field="kind", tag="document", omit_defaults=True):
    """A file by its URL (`data:…;base64,…`), by its file id at the upstream, or as plain text."""

    url: str = ""
    file_id: str = ""
    text: str = ""
    name: str = ""


class CacheMark(msgspec.Struct, frozen=True, tag_field="kind", tag="cache", omit_defaults=True):
    """Cache hint: the upstream should cache the prompt up to here. It follows the piece that it was set on."""

    data: dict[str, Any]


class Extra(msgspec.Struct, frozen=True, tag_field="kind", tag="extra", omit_defaults=True):
    """A piece that only one wire has, such as a web search that a server has run."""

    wire: str
    data: dict[str, Any]


Content: TypeAlias = Text | Image | Document | CacheMark | Extra
"""Content of a user message or of a tool result."""


class Result(msgspec.Struct, frozen=True, tag_field="kind", tag="result", omit_defaults=True):
    """Result of the call with this id."""

    id: str
    content: list[Content] = []
    error: bool = False


Piece: TypeAlias = Content | Reasoning | Call | Result


def with_marks(pieces: Sequence[P]) -> list[tuple[P, CacheMark | None]]:
    """Return each piece with the mark that follows it. A mark without a piece before it is ignored."""
    marked: list[tuple[P, CacheMark | None]] = []
    for piece in pieces:
        if not isinstance(piece, CacheMark):
            marked.append((piece, None))
        elif marked:
            marked[-1] = (marked[-1][0], piece)
    return marked


class Message(msgspec.Struct, frozen=True):
    """One message of the conversation. In user messages, results come first. `name` is the author's name, if any."""

    role: Role
    pieces: list[Piece]
    name: str = ""


class JsonFormat(msgspec.Struct, frozen=True, omit_defaults=True):
    """JSON as the format of the reply's text; with a schema, if one is set."""

    schema: dict[str, Any] | None = None
    name: str = ""
    strict: bool | None = None


class Thinking(msgspec.Struct, frozen=True, omit_defaults=True):
    """Requested amount of thinking. None leaves it to the upstream."""

    on: bool | None = None
    effort: str | None = None
    budget: int | None = None
    """Maximum thinking tokens."""
    show: str | None = None
    """Form in which the client wants to receive the thinking, as a value of its own wire: a summary, or nothing."""
    effort_is_general: bool = False
    """True if the effort is one for the whole reply, which does not ask for thinking."""

    @property
    def requested(self) -> bool | None:
        """True if the model should think, False if not, None if the client sent nothing about it."""
        if self.on is not None:
            return self.on
        if self.effort_is_general and self.budget is None:
            return None
        return None if self.effort is None and self.budget is None else self.effort != "none" and self.budget != 0

    def as_effort(self) -> str | None:
        """Return the effort; if only a budget is set, the nearest effort."""
        if self.effort is not None or self.budget is None:
            return self.effort
        exact = (effort for effort, budget in EFFORT_BUDGET_TOKENS.items() if budget == self.budget)
        return next(exact, "low" if self.budget <= 6144 else "medium" if self.budget <= 16384 else "high")


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A complete client request. None means that the client did not send the field."""

    wire: str
    """Wire that the request came on: `extra` and every `Extra` belong to it."""
    file_store: str = ""
    """Vendor that stores the files of file ids. An id is valid on all wires of the vendor; empty: only on `wire`."""
    model: str
    system: list[Content] = []
    messages: list[Message] = []
    tools: list[Tool] = []
    found_tools: tuple[str, ...] = ()
    """Names of the deferred tools that a tool search in the conversation has found."""
    hosted: list[dict[str, Any]] = []
    """Tools that only this wire has, in its own format; the server runs most of them itself."""
    tool_choice: ToolChoice | None = None
    parallel: bool | None = None
    """True if the model may make several calls in one reply."""
    max_tokens: int | None = None
    sampling: dict[str, Any] = {}
    """`temperature`, `top_p`, `top_k`, `seed` and similar settings, under their chat completions names."""
    stop: list[str] = []
    format: JsonFormat | None = None
    thinking: Thinking = Thinking()
    stream: bool = False
    usage_wanted: bool = True
    """True if a stream should end with the usage."""
    user: str = ""
    """Id of the end user, so that the upstream can tell its users apart."""
    metadata: dict[str, Any] = {}
    cache_key: str = ""
    """Prompt cache key: requests with the same key share a prompt prefix."""
    continues: str = ""
    """Field that refers to a conversation stored by an upstream: only that upstream can reply."""
    extra: dict[str, Any] = {}
    """Other fields of the wire."""
    unread: tuple[str, ...] = ()
    """Paths of fields inside messages and settings that were not read: only a request that is forwarded unchanged
    keeps them."""
    source_paths: Mapping[str, str] = {}
    """Maps paths in this request, such as `messages[2].pieces[0].id`, to paths in the client's body."""

    def has_piece(self, *piece_types: type[Piece]) -> bool:
        """Return whether the conversation contains a piece of one of these types, also inside tool results."""
        for message in self.messages:
            for piece in message.pieces:
                if isinstance(piece, piece_types):
                    return True
                if isinstance(piece, Result) and any(isinstance(part, piece_types) for part in piece.content):
                    return True
        return any(isinstance(piece, piece_types) for piece in self.system)

    def source_path(self, path: str) -> str:
        """Return the path in the client's body. A path without a source returns the path of its nearest parent."""
        prefix = path
        while prefix and prefix not in self.source_paths:
            prefix = prefix[: max(prefix.rfind("."), prefix.rfind("["), 0)]
        return self.source_paths.get(prefix, path)
