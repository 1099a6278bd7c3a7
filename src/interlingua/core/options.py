"""Options for the processing of a reply: the caller's choices, and values taken from the request."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from copy import copy
from typing import Any, Literal, TypeAlias

import msgspec

from interlingua.errors import UsageError, check_field_types

__all__ = ["ArgumentsPolicy", "Delivery", "Limits", "Options", "ReasoningPolicy", "replace_options"]

KIB, MIB = 1024, 1024 * 1024


_MINIMUMS = {
    **dict.fromkeys(("header", "held", "args", "event", "values", "choices", "calls", "text", "stream", "seals"), 1),
    "blanks": 64,
    "name": 64,
}


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Size limits. All are counted in characters, except `event`, `stream` and `seals` (in bytes), and the numbers of
    `values`, `choices` and `calls`.

    `over` applies to `header`, `held` and `args`: above these limits, `flush` sends the buffered text to the client and
    restarts parsing; `error` ends the reply. More than any other limit allows is always an error.
    """

    header: int = 1 * KIB
    """Header of a call: the text between the start of the call and its arguments."""
    held: int = 1 * MIB
    """Buffered data: a call without a name yet, calls queued behind an open one, arguments of unknown kind."""
    args: int = 16 * MIB
    """Arguments of one call."""
    blanks: int = 16 * KIB
    """Whitespace between two tokens of a call's arguments, outside of strings; some models never stop writing
    it."""
    event: int = 32 * MIB
    """Size of one stream event. An event of more than 8,192 lines is an error, too."""
    values: int = 250_000
    """JSON values in one request, one stream event or one reply that is not streamed, counted by commas and opening
    brackets outside of strings."""
    choices: int = 128
    """Choices (`n`) of one reply."""
    calls: int = 1024
    """Calls in one reply, also items in the Responses API, and blocks of the Messages API that are open at the same
    time."""
    name: int = 16 * KIB
    """Id of a reply or of a call, name of a model or of a tool. Other fields that a chat chunk repeats are dropped if
    they are longer."""
    text: int = 32 * MIB
    """Text, thinking and arguments of a streamed reply together. The Responses API repeats all of them at the end, so
    they have to be kept."""
    stream: int = 512 * MIB
    """Size of a streamed reply."""
    seals: int = 32 * MIB
    """Sealed thinking that a client sends back, unpacked: in one request, in bytes."""
    over: Literal["flush", "error"] = "flush"
    """Action above `header`, `held` or `args`: `flush` or `error`."""

    def __post_init__(self) -> None:
        check_field_types(self)
        for name, minimum in _MINIMUMS.items():
            if getattr(self, name) < minimum:
                raise UsageError(f"Limits.{name}: less than {minimum}", f"set it to {minimum} or more")


ArgumentsPolicy: TypeAlias = Literal["repair", "exact"]
Delivery: TypeAlias = Literal["stream", "whole"]
ReasoningPolicy: TypeAlias = Literal["keep", "as_content", "drop"]
_REPLY_ID = re.compile(r"[A-Za-z0-9]{1,64}")


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Options for the processing of a reply, independent of the wires."""

    prefill: str = ""
    """Beginning of the reply that the prompt already contains, such as `<think>`."""
    delivery: Delivery = "stream"
    """`whole`: a call is sent only when it is complete and its arguments are a JSON object."""
    arguments: ArgumentsPolicy = "repair"
    """Arguments that are almost JSON: corrected if that cannot change their meaning (`repair`), or forwarded as the
    model wrote them (`exact`)."""
    reasoning: ReasoningPolicy = "keep"
    """Thinking: sent as thinking (`keep`), sent as text (`as_content`), or removed (`drop`)."""
    limits: Limits = Limits()
    taken_ids: Collection[str] = ()
    """Call ids that the conversation already contains."""
    served_as: str = ""
    """Model name that is sent to the client. Empty: the upstream's model name."""
    reply_id: str = ""
    """Id of this reply, unlike that of any other: 1 to 64 letters and digits. Ids that the client sees are made from
    it, because those of an upstream may repeat: clients treat two replies with one id as one. Empty: the ids are made
    from the upstream's. The library has no source of randomness."""
    created: int = 0
    """Time of the request in seconds since 1970, used if the upstream sends none. The library never reads the clock."""
    clock: Callable[[], float] | None = None
    """Function that returns the time in seconds since 1970, for replies that contain the time of their end. None: they
    do not contain it."""
    echo: Mapping[str, Any] = {}
    """Fields of the reply that repeat the request, on wires whose replies do so. `Exchange` adds those of its request;
    the ones given here take precedence."""
    input_tokens: int = 0
    """Estimated input tokens, for clients that expect usage before the upstream reports it, or if the upstream never
    reports it; then the output is estimated, too. 0 disables estimates."""
    upstream: str = ""
    """Name of the upstream that receives the request and replies. Data that it signs or encrypts is returned only to
    this upstream, so use the same name in the reply and in the next request. Empty: the owner of thinking is unknown.
    Use `anthropic` for Anthropic and `openai` for OpenAI: data that they sign on their own wires is forwarded
    unchanged."""
    seal_key: bytes = b""
    """Key that encrypts thinking which is sent to the client and returned by it. Use the same key for all replies to
    one client, and different keys for clients that must not read each other's thinking."""

    def __post_init__(self) -> None:
        check_field_types(self)
        if self.reply_id and not _REPLY_ID.fullmatch(self.reply_id):
            raise UsageError("Options.reply_id: 1 to 64 letters and digits expected", "for example uuid4().hex")


def replace_options(options: Options, **values: Any) -> Options:
    """Return the options with other values, which are not checked: for values that no caller of the library has chosen.

    A check of all fields takes longer than most steps of a translation.
    """
    replaced = copy(options)
    for name, value in values.items():
        msgspec.structs.force_setattr(replaced, name, value)
    return replaced
