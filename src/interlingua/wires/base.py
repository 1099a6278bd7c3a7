"""What a wire is: a module with these names in it. The pipelines know no more of any wire than this.

A *reader* says what a chunk means, an *emitter* writes what is to be said. Where client and upstream speak the same
wire, each frame is made `like` the chunk that its events came from, and a chunk that says just what is to be said
passes as it came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec

from interlingua import events as ev
from interlingua.core.options import Limits, Options
from interlingua.core.request import Request
from interlingua.core.tools import ToolSet
from interlingua.upstreams.profile import Profile

__all__ = ["Choice", "ChoiceEvents", "Chunk", "Emitter", "Json", "Reader", "RequestCodec", "Wire"]

Json: TypeAlias = dict[str, Any]
ChoiceEvents: TypeAlias = Sequence[tuple[int, list[ev.Event]]]
"""What is to be said of each choice."""


class Choice(msgspec.Struct):
    """What a chunk says of one choice, and whether the upstream has written it just as clients expect it: `exact`."""

    index: int
    events: list[ev.Event]
    exact: bool

    def report(self, finding_kind: str, message: str) -> None:
        self.events.append(ev.Finding(finding_kind, message))
        self.exact = False


class Chunk(msgspec.Struct):
    """What one chunk says: of each choice in it, and of the whole reply. If it is `exact`, it may pass as it is.

    `last`: the upstream says with it that its stream is over.
    """

    choices: list[Choice]
    common: list[ev.Event]
    exact: bool
    last: bool = False
    model: str = ""
    """The model that the upstream names in it."""


class Reader(Protocol):
    """Reads the chunks of one reply."""

    def read(self, chunk: Json) -> Chunk: ...

    def read_fast(self, data: bytes) -> Chunk | None:
        """What `read` would say of this JSON, if all it does is to say more of what has begun: most chunks do, and are
        read in a fraction of the time. None if it does not: then nothing has been read."""

    def probe_delta(self, data: bytes) -> tuple[int, ev.TextDelta | ev.ReasoningDelta | ev.ArgsDelta] | None:
        """The choice and the text, if all that this JSON says is more of a text, and saying it changes nothing here, or
        of a call's arguments, which `more` reads. Nothing has been read."""

    def read_arguments(self, index: int, call: int, arguments: str) -> list[ev.Event] | None:
        """What `read` would say of a chunk with nothing but more arguments of this call, as `text_in` names it. None,
        and nothing has been read, if there is no such call."""

    def close(self, finished: bool) -> ChoiceEvents:
        """The stream is over: what is held of each choice. `finished`: the upstream has said so itself."""


class Emitter(Protocol):
    """Writes the frames of one reply."""

    findings: list[ev.Finding]
    """What was odd about what had to be written. Whoever tells it takes it out."""

    def forward(self, chunk: Json, raw: bytes) -> bytes | None:
        """The chunk as it came; None if it cannot pass, because what went before it was told anew."""

    def emit(self, choice_events: ChoiceEvents, common: Iterable[ev.Event] = (), template: Json | None = None) -> bytes:
        """The frames for what is said; `like` is the chunk that said it, if it is of this wire."""

    def delta_writer(self, index: int, event: ev.TextDelta | ev.ReasoningDelta) -> Callable[[str], bytes] | None:
        """Writes what `emit` would write for further texts of this kind, as long as nothing else is written; None if
        they are not to be written just so."""

    def fail(self, failure: ev.Failure) -> bytes:
        """The frame that ends a stream badly. Nothing follows it."""

    def finish(self, raw: bytes = b"") -> bytes:
        """The frames that end a stream well; `raw` is how the upstream ended it, if it speaks this wire."""


class RequestCodec(Protocol):
    """The requests of one wire: what a module of the wire has for them."""

    NAME: str

    def read_request(self, body: Json, options: Options, /) -> Request:
        """What the client asks. Raises BadRequest, with the place, if that cannot be understood."""

    def write_request(self, request: Request, profile: Profile, /) -> tuple[Json, list[ev.Finding]]:
        """The body for this upstream, and what is lost or changed in it."""


class Wire(RequestCodec, Protocol):
    """One protocol, as a module."""

    SINGLE_CHOICE: bool
    """Whether a reply has one choice only."""

    def reader(self, limits: Limits, /) -> Reader: ...

    def emitter(self, options: Options, tool_set: ToolSet, /) -> Emitter: ...

    def is_body(self, body: Json, /) -> bool:
        """Whether this is a whole reply, and not an error or something else."""

    def read_body(self, body: Json, reader: Any, /) -> Chunk:
        """A body says what its stream would have said, all at once. `reader` is one of this wire."""

    def write_body(
        self,
        choice_events: ChoiceEvents,
        common: Iterable[ev.Event],
        options: Options,
        tool_set: ToolSet,
        template: Json | None,
        /,
    ) -> tuple[Json, list[ev.Finding]]:
        """The whole reply, and what was odd about what had to be written. If it is `like` one of this wire, `said` are
        the choices to be told anew: all else stays."""
