"""Registry of the wires by name."""

from __future__ import annotations

from interlingua.errors import UnknownWire
from interlingua.wires import anthropic_messages, openai_chat, openai_responses
from interlingua.wires.base import Wire

__all__ = ["WIRES", "get_wire"]

_MODULES: tuple[Wire, ...] = (openai_chat, anthropic_messages, openai_responses)
_BY_NAME = {wire.NAME: wire for wire in _MODULES}
WIRES = tuple(_BY_NAME)


def get_wire(name: str) -> Wire:
    if name not in _BY_NAME:
        raise UnknownWire(name, WIRES)
    return _BY_NAME[name]
