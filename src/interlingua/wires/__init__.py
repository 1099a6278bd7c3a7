"""Every wire, by its name."""

from __future__ import annotations

from interlingua.errors import UnknownWire
from interlingua.wires import anthropic_messages, openai_chat, openai_responses
from interlingua.wires.base import Wire

__all__ = ["WIRES", "wire_named"]

_ALL: tuple[Wire, ...] = (openai_chat, anthropic_messages, openai_responses)
_BY_NAME = {wire.NAME: wire for wire in _ALL}
WIRES = tuple(_BY_NAME)


def wire_named(name: str) -> Wire:
    if name not in _BY_NAME:
        raise UnknownWire(name, WIRES)
    return _BY_NAME[name]
