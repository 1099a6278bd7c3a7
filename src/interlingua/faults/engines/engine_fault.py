"""Fault of a scripted engine: its true cause, and the stage that it replaces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from interlingua.core.reply import Reply
from interlingua.parsing.dialect import Dialect

__all__ = ["NO_ENGINE_FAULT", "ApiCall", "ApiReply", "Delivery", "EngineFault", "ParserInput"]

Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class ApiCall:
    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class ApiReply:
    """Result of the parser: what the API returns."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[ApiCall, ...] = ()
    finish_reason: str = "stop"


@dataclass(frozen=True)
class ParserInput:
    """Native text of the model, and what a parser knows about the request."""

    text: str
    dialect: Dialect
    body: Json
    stream: bool

    @property
    def visible_text(self) -> str:
        """The text without special tokens, which servers remove unless the request says otherwise."""
        text = self.text
        for token in self.dialect.tokens if self.body.get("skip_special_tokens") is not False else ():
            text = text.replace(token, "")
        return text


@dataclass
class Delivery:
    """Events of a stream, and how the connection ends."""

    chunks: list[Json | bytes] = field(default_factory=list)
    """Chunks of chat completions; bytes are sent as the data of an event, whatever they are."""
    end: Literal["done", "eof", "reset"] = "done"


@dataclass(frozen=True)
class EngineFault:
    """One stage of an engine that is at fault. A stage that is None works."""

    name: str
    cause: str
    """The party at fault, in the words of the attribution: model, template, engine-parser, transport, client-request;
    "" for an engine without a fault."""
    description: str
    refuse: Callable[[Json], tuple[int, str] | None] | None = None
    """Returns the status and message with which the server refuses a request; None if it accepts it."""
    see: Callable[[Json], Json] | None = None
    """Returns the request as the chat template shows it to the model."""
    generate: Callable[[Reply, Json], Reply] | None = None
    """Changes what the model writes."""
    parse: Callable[[ParserInput], ApiReply] | None = None
    deliver_stream: Callable[[Delivery], Delivery] | None = None
    deliver_whole: Callable[[Json], Json | bytes] | None = None


NO_ENGINE_FAULT = EngineFault("none", "", "Every stage works.")
