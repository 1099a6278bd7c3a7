"""The neutral request: what a client asks of a model, whatever the wire it asks on.

Each wire reads and writes it. What a wire has and the others have no word for is kept beside it (`Extra`, `extra`), so
that it is there again when the request goes out on the wire it came from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from interlingua.core.reply import Call, Reasoning, Text
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
ToolChoiceMode: TypeAlias = Literal["auto", "required", "none"]
EFFORT_BUDGET_TOKENS = {"minimal": 1024, "low": 4096, "medium": 10240, "high": 24576, "xhigh": 32768, "max": 65536}
"""About how many tokens of thinking an effort is."""
NO_CONTENT = "(no content)"
"""What a user says who says nothing, where something has to be said."""


class Image(msgspec.Struct, frozen=True, tag_field="kind", tag="image", omit_defaults=True):
    """An image by its URL; `data:…;base64,…` where it came with the request. `detail` is how closely to look."""

    url: str
    detail: str = ""


class Document(msgspec.Struct, frozen=True, tag_field="kind", tag="document", omit_defaults=True):
    """A file by its URL (`data:…;base64,…`), or by the id under which the upstream has it, or as plain text."""

    url: str = ""
    file_id: str = ""
    text: str = ""
    name: str = ""


class CacheMark(msgspec.Struct, frozen=True, tag_field="kind", tag="cache", omit_defaults=True):
    """A hint: the prompt up to here is worth keeping. It stands behind the piece that it was written on."""

    data: dict[str, Any]


class Extra(msgspec.Struct, frozen=True, tag_field="kind", tag="extra", omit_defaults=True):
    """A piece of one wire that the others have no word for, such as the search that a server has made."""

    wire: str
    data: dict[str, Any]


Content: TypeAlias = Text | Image | Document | CacheMark | Extra
"""What a user says and what a tool answers."""


class Result(msgspec.Struct, frozen=True, tag_field="kind", tag="result", omit_defaults=True):
    """What a tool answered to the call with this id."""

    id: str
    content: list[Content] = []
    error: bool = False


Piece: TypeAlias = Content | Reasoning | Call | Result


def with_marks(pieces: Sequence[P]) -> list[tuple[P, CacheMark | None]]:
    """Each piece with the mark that stands behind it. A mark behind nothing marks nothing."""
    marked: list[tuple[P, CacheMark | None]] = []
    for piece in pieces:
        if not isinstance(piece, CacheMark):
            marked.append((piece, None))
        elif marked:
            marked[-1] = (marked[-1][0], piece)
    return marked


class Message(msgspec.Struct, frozen=True):
    """What one side said. Results stand first in messages of the user. `name` is the speaker's, where one is given."""

    role: Role
    pieces: list[Piece]
    name: str = ""


class ToolChoice(msgspec.Struct, frozen=True):
    """Which tools may or must be called. `names` restricts `auto` and `required` to these tools."""

    mode: ToolChoiceMode = "auto"
    names: tuple[str, ...] = ()


class JsonFormat(msgspec.Struct, frozen=True, omit_defaults=True):
    """The reply's text shall be JSON; of this schema, if there is one."""

    schema: dict[str, Any] | None = None
    name: str = ""
    strict: bool | None = None


class Thinking(msgspec.Struct, frozen=True, omit_defaults=True):
    """How much the model shall think. None is to leave it to the upstream."""

    on: bool | None = None
    effort: str | None = None
    budget: int | None = None
    """In tokens."""
    show: str | None = None
    """What the client wants to see of it, in its own wire's word: a summary, or nothing."""

    @property
    def requested(self) -> bool | None:
        """Whether the model shall think at all; None if nothing was said."""
        if self.on is not None:
            return self.on
        return None if self.effort is None and self.budget is None else self.effort != "none" and self.budget != 0

    def as_effort(self) -> str | None:
        """The effort; the nearest one where only a budget was given."""
        if self.effort is not None or self.budget is None:
            return self.effort
        exact = (effort for effort, budget in EFFORT_BUDGET_TOKENS.items() if budget == self.budget)
        return next(exact, "low" if self.budget <= 6144 else "medium" if self.budget <= 16384 else "high")


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """All that a client asks. None is what it did not say."""

    wire: str
    """The wire that it came on: `extra` and every `Extra` in it are of that wire."""
    model: str
    system: list[Content] = []
    messages: list[Message] = []
    tools: list[Tool] = []
    hosted: list[dict[str, Any]] = []
    """Tools that only this wire knows, as it writes them: the server runs most of them itself."""
    tool_choice: ToolChoice | None = None
    parallel: bool | None = None
    """Whether the model may make several calls in one reply."""
    max_tokens: int | None = None
    sampling: dict[str, Any] = {}
    """`temperature`, `top_p`, `top_k`, `seed` and their like, under the names that chat completions have for them."""
    stop: list[str] = []
    format: JsonFormat | None = None
    thinking: Thinking = Thinking()
    stream: bool = False
    usage_wanted: bool = True
    """Whether a stream shall end with the usage."""
    user: str = ""
    """Who asks, for the upstream to tell its users apart."""
    metadata: dict[str, Any] = {}
    cache_key: str = ""
    """Requests with the same key share a prompt's beginning."""
    continues: str = ""
    """The field that refers to what an upstream keeps of the conversation: only that one can answer."""
    extra: dict[str, Any] = {}
    """Fields of the wire that have no place above."""
    unread: tuple[str, ...] = ()
    """Places of fields inside of messages and settings that were not read: only a request that stays as it is has
    them."""
    source_paths: Mapping[str, str] = {}
    """Where the client's body has what stands here: its own path of each path, such as `messages[2].pieces[0].id`."""

    def has_piece(self, *piece_types: type[Piece]) -> bool:
        """Whether a piece of one of these kinds is in the conversation, in what tools have answered too."""
        for message in self.messages:
            for piece in message.pieces:
                if isinstance(piece, piece_types):
                    return True
                if isinstance(piece, Result) and any(isinstance(part, piece_types) for part in piece.content):
                    return True
        return any(isinstance(piece, piece_types) for piece in self.system)

    def source_path(self, path: str) -> str:
        """The place in the client's body: of what has none there, that of what it is part of."""
        prefix = path
        while prefix and prefix not in self.source_paths:
            prefix = prefix[: max(prefix.rfind("."), prefix.rfind("["), 0)]
        return self.source_paths.get(prefix, path)
