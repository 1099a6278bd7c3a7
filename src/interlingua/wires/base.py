"""Protocol classes for wires. A wire is a module with the names in `Wire`; the pipelines use nothing else of it.

A *reader* turns chunks into events, an *emitter* turns events into frames. If client and upstream use the same wire,
each frame is built from the chunk that its events came from (the `template`), and a chunk that needs no change is
forwarded as it was received.

Both may have a *fast codec* for the most common chunks, which only `translation/fast_path.py` uses. Without one
(`fast = None`) the translation is the same, but slower.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec

from interlingua import events as ev
from interlingua.core.options import Options
from interlingua.core.request import Request
from interlingua.core.text_forwarder import TextForwarder
from interlingua.core.tools import ToolSet
from interlingua.core.wire_traits import WireTraits
from interlingua.upstreams.profile import Profile
from interlingua.wires.http_api import HttpApi
from interlingua.wires.openapi import ApiDescription
from interlingua.wires.reasoning_fields import ReasoningFields

__all__ = [
    "Affixes",
    "Choice",
    "ChoiceEvents",
    "Chunk",
    "ContentDelta",
    "Emitter",
    "FastReader",
    "FastWriter",
    "Json",
    "Reader",
    "RepeatReader",
    "RequestCodec",
    "StreamedDelta",
    "TextCounter",
    "TextWriter",
    "TurnCodec",
    "Wire",
]

Json: TypeAlias = dict[str, Any]
ChoiceEvents: TypeAlias = Sequence[tuple[int, list[ev.Event]]]
"""The events of each choice, with the index of the choice."""
ContentDelta: TypeAlias = ev.TextDelta | ev.ReasoningDelta
StreamedDelta: TypeAlias = ContentDelta | ev.ArgsDelta
TextCounter: TypeAlias = Callable[[list[str], str], None]
"""Takes texts that are forwarded unread, and all of them as one."""
TextWriter: TypeAlias = Callable[[list[str], str], bytes]
"""The same, and returns a frame for each text."""
Affixes: TypeAlias = tuple[bytes, bytes]
"""The bytes of a chunk before and after its text, with the quotes around it."""


class Choice(msgspec.Struct):
    """The events of one choice in a chunk. `exact`: the upstream wrote the choice just as clients expect it."""

    index: int
    events: list[ev.Event]
    exact: bool

    def report(self, finding_kind: str, message: str) -> None:
        self.events.append(ev.Finding(finding_kind, message))
        self.exact = False


class Chunk(msgspec.Struct):
    """The events of one chunk: those of each choice, and those of the whole reply (`common`).

    `exact`: the chunk may be forwarded unchanged. `last`: the upstream ends its stream with this chunk.
    """

    choices: list[Choice]
    common: list[ev.Event]
    exact: bool
    last: bool = False
    model: str = ""
    """The model that the upstream names in the chunk; "" if it names none."""


class Reader(Protocol):
    """Reader for the chunks of one reply."""

    @property
    def fast(self) -> FastReader | None:
        """The fast codec, which shares this reader's state; None if the wire has none."""

    def read(self, chunk: Json) -> Chunk: ...

    def close(self, finished: bool) -> ChoiceEvents:
        """End the stream and return the buffered events of each choice. `finished`: the upstream itself ended it."""


class Emitter(Protocol):
    """Writer for the frames of one reply."""

    findings: list[ev.Finding]
    """Findings about the events written so far. The caller that reports them removes them from the list."""

    @property
    def fast(self) -> FastWriter | None:
        """The fast codec, which shares this emitter's state; None if the wire has none."""

    @property
    def kept_chars(self) -> int:
        """Number of characters that the emitter keeps, because later frames repeat or sign them."""

    def forward(self, chunk: Json, raw: bytes) -> bytes | None:
        """Return the frame of a chunk that is forwarded unchanged; None if it cannot be, because earlier parts of the
        reply were rewritten."""

    def emit(self, choice_events: ChoiceEvents, common: Iterable[ev.Event] = (), template: Json | None = None) -> bytes:
        """Return the frames for these events. `template`: the chunk they came from, if it is of this wire."""

    def fail(self, failure: ev.Failure) -> bytes:
        """Return the error frame that ends a failed stream. No frame follows it."""

    def finish(self, raw: bytes = b"") -> bytes:
        """Return the frames that end a stream normally. `raw`: the upstream's own last frame, if it is of this wire."""


class FastReader(Protocol):
    """Fast codec of a reader, for chunks that only continue text, reasoning or arguments, as most chunks do."""

    @property
    def repeats(self) -> RepeatReader | None:
        """The codec for repeated chunks; None if the wire has none."""

    def read(self, data: bytes) -> Chunk | None:
        """Return what `Reader.read` would return for this JSON, in a fraction of the time.

        Returns None if the chunk is of another kind. In that case the reader's state is unchanged.
        """


class RepeatReader(Protocol):
    """Fast codec of a reader, for repeated chunks: nothing that has a meaning differs from the last chunk but the text.

    `find_texts` changes nothing. Its caller then counts the texts as read: one text with `read_text`, texts that are
    forwarded unread with `forwarded_counter` and, if they are arguments, with `arguments_forwarder` before that.
    """

    @property
    def affixes(self) -> Affixes | None:
        """The bytes of a repeated chunk before and after its text; None if they are not the same in all of them."""

    @property
    def are_affixes_exact(self) -> bool:
        """True if a repeated chunk is written just as clients expect it, unless its text is not."""

    def learn(self, raw: bytes, index: int, delta: StreamedDelta, *, is_next: bool) -> bool:
        """Learn the chunk that the next ones may repeat. Return whether texts can be found in them.

        Args:
            raw: the chunk, which was read last, as a whole event.
            index: the index of the choice.
            delta: the only event of the chunk.
            is_next: it follows the chunk that was learned last, so that no chunk has repeated that one unread.
        """

    def find_texts(self, data: bytes) -> tuple[list[str], int]:
        """Return the texts of the events that repeat the chunk that was learned last, from the first event on, and the
        size of these events. None of the texts is empty."""

    def read_text(self, text: str) -> Choice | None:
        """Return the choice that `Reader.read` would return for a repeated chunk with this text, for another wire.

        Returns None if there is no such call any more. In that case the reader's state is unchanged.
        """

    def arguments_forwarder(self) -> TextForwarder | None:
        """Return a function for more arguments that `read_text` would return unchanged. It is valid until anything else
        is read. None if there is no such call."""

    def forwarded_counter(self) -> TextCounter | None:
        """Return a function that counts the texts of repeated chunks as read. None if the reader keeps no count."""


class FastWriter(Protocol):
    """Fast codec of an emitter, for texts and arguments that continue those before."""

    @property
    def forward_tracker(self) -> Callable[[Json], TextCounter | None] | None:
        """A function that takes a chunk that was forwarded, and returns a function for the texts of further chunks like
        it that are forwarded, too; or None if the emitter rewrites them. None if the emitter keeps nothing of the texts
        that it forwards."""

    def delta_writer(self, index: int, event: StreamedDelta, template: Json | None) -> TextWriter | None:
        """Return a function that writes further texts of this kind, a frame for each, as `Emitter.emit` would.

        It is valid until anything else is written. Returns None if such text needs more than a fixed frame.

        Args:
            index: the index of the choice.
            event: the event that `emit` has written last.
            template: the chunk it came from, if it is of this wire. The chunks of further texts differ only in the
                text.
        """


class RequestCodec(Protocol):
    """Functions of a wire's module that read and write requests."""

    NAME: str

    def read_request(self, body: Json, options: Options, /) -> Request:
        """Parse the client's request. Raises BadRequest, with the path of the field, if the body is malformed."""

    def write_request(self, request: Request, profile: Profile, /) -> tuple[Json, list[ev.Finding]]:
        """Return the body for this upstream, and findings for what is dropped or changed in it."""


class TurnCodec(msgspec.Struct, frozen=True, kw_only=True):
    """Functions of a wire that read and write some turns of a conversation without the rest of the request.

    A turn begins where an item of the model follows one of another side. Turns that are read, or written, one by one
    give the same as all of them together.
    """

    is_from_model: Callable[[Json], bool | None]
    """Function that returns whether the model wrote this item of a conversation; None for items that change how others
    are read, such as a list of further tools."""
    is_system_prompt: Callable[[Json], bool]
    """Function that returns whether this item is a part of the system prompt, if only such items precede it."""
    read: Callable[[list[Json], Options, int], Request]
    """Function that reads these items, of which the first has this number: a Request with nothing but messages."""
    write: Callable[[Request, Profile], tuple[list[Json], list[ev.Finding]]]
    """Function that returns the items for the messages of a request, and findings as `write_request` does."""
    depends_on_tools: bool = False
    """True if the items of a call depend on the tools that the upstream is offered."""


class Wire(RequestCodec, Protocol):
    """Module of one wire (protocol)."""

    SINGLE_CHOICE: bool
    """True if a reply can have only one choice."""
    TRAITS: WireTraits
    """Capabilities and requirements of the protocol, to which requests are adapted."""
    REASONING_FIELDS: ReasoningFields
    """Places of signed and encrypted reasoning in requests and replies."""
    HTTP_API: HttpApi
    """Paths, headers and errors."""
    API_DESCRIPTION: ApiDescription
    """Operations and JSON Schemas for OpenAPI documents."""

    @property
    def TURNS(self) -> TurnCodec | None:  # noqa: N802 (a constant of a module)
        """Functions for parts of a conversation. None: a request is always translated as a whole."""

    @property
    def ECHO_REQUEST(self) -> Callable[[Json], Json] | None:  # noqa: N802
        """Function that returns the fields of a request that replies repeat, for `Options.echo`. None: they repeat
        none."""

    def reader(self, options: Options, /) -> Reader: ...

    def emitter(self, options: Options, tool_set: ToolSet, /) -> Emitter: ...

    def is_body(self, body: Json, /) -> bool:
        """Return whether this is a complete reply, not an error or another object."""

    def read_body(self, body: Json, reader: Any, /) -> Chunk:
        """Read a complete reply as one chunk with all the events of its stream. `reader`: a reader of this wire."""

    def write_body(
        self,
        choice_events: ChoiceEvents,
        common: Iterable[ev.Event],
        options: Options,
        tool_set: ToolSet,
        template: Json | None,
        /,
    ) -> tuple[Json, list[ev.Finding]]:
        """Return the complete reply, and findings about what had to be written.

        Args:
            choice_events: the events of each choice. With a `template`: only the choices that have to be rewritten.
            common: the events of the whole reply.
            options: the options of this translation.
            tool_set: the tools that the client offered.
            template: the upstream's own body, if it is of this wire. What is not rewritten stays as it is.
        """
