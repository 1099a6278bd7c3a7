"""Whom the header of a message addresses, whatever is wrong with the header.

A header is texts with markers between them: the role behind one, the channel behind another. Models double them, leave
them out and mix them up, so the words are looked at wherever they stand.
"""

from __future__ import annotations

import re

import msgspec

from interlingua.core.tools import Offer
from interlingua.parsing.markers import markers

__all__ = ["Address", "Addresses"]

_WORD = re.compile(r"\w+")


class Address(msgspec.Struct, frozen=True):
    """Where a header sends the body."""

    channel: str | None
    """The first channel that is known."""
    recipient: str | None
    """The last recipient."""
    guess: str | None
    """An offered tool that the header names, but not as the recipient."""
    nameless: bool
    """Whether the body is a call's by all signs but one: nothing says whose."""
    odd: bool
    prose: bool
    """Whether it addresses nobody and says much."""


class Addresses:
    """Reads headers. Its markers are in the order in which a right header has them: start, channel, constrain."""

    def __init__(
        self,
        parts: tuple[str, str, str],
        role: str,
        recipient: str,
        prefix: str,
        routes: tuple[str, ...],
        types: tuple[str, ...],
    ) -> None:
        self._start, self._channel, self._constrain = parts
        self._places = {marker: place for place, marker in enumerate(parts) if marker} | {"": 0}
        self._marks = markers(*filter(None, parts))
        self._role = role
        self._to = re.compile(re.escape(recipient) + r"\s*+(\S*+)")
        self._prefix = prefix
        self._routes = routes
        self._types = [[word] for word in types]
        self._sayable = (role, *routes, *types)

    def read(self, header: str, offer: Offer) -> Address:
        slots = self._slots(header)
        said = [recipient for _, text in slots for recipient in self._to.findall(text)]
        named = [recipient for recipient in said if recipient not in ("", self._role, self._prefix)]
        rest = [(marker, self._to.sub(" ", text).split()) for marker, text in slots]
        places = [self._places[marker] for marker, _ in slots]
        channel = self._first_channel([word for _, words in rest for word in words])
        guess = self._tool_among([word for marker, words in rest for word in words if self._places[marker]], offer)
        return Address(
            channel=channel,
            recipient=named[-1] if named else None,
            guess=guess,
            nameless=bool(self._constrain and self._constrain in dict(slots)) or "" in said or self._prefix in said,
            odd=places != sorted(set(places))
            or len(said) > 1
            or named != said
            or not all(self._is_usual(marker, words) for marker, words in rest)
            or bool(self._channel and not channel and not named),
            prose=not (channel or named or guess) and any(len(words) > 2 for _, words in rest),
        )

    def name(self, recipient: str, offer: Offer) -> str:
        """The tool that is meant by a recipient."""
        return recipient if offer.has(recipient) else recipient.removeprefix(self._prefix)

    def name_in(self, text: str, offer: Offer) -> str:
        """The tool's name in a text that may hold more of a header."""
        texts = [slot for _, slot in self._slots(text)]
        words = [word for slot in texts for word in self._to.sub(r"\1", slot).split()] if len(texts) > 1 else texts
        names = [self.name(word, offer) for word in words if word not in self._sayable]
        return offer.pick(names) or next(iter(names), text)

    def says_nothing(self, header: str) -> bool:
        """Whether there is nothing in a header but what headers say, or the beginning of that. Punctuation behind a
        marker is no more than that, but without a marker it may be prose, and so may an address that is no tool's."""
        if not self._marks.match(header, 0) and not all(map(self._begins_tool, self._to.findall(header))):
            return False
        rest = " ".join(self._to.sub(" ", text) for _, text in self._slots(header))
        said = _WORD.findall(rest) if self._marks.match(header, 0) else rest.split()
        return all(any(word.startswith(beginning) for word in self._sayable) for beginning in said)

    def _begins_tool(self, recipient: str) -> bool:
        return bool(recipient) and (recipient.startswith(self._prefix) or self._prefix.startswith(recipient))

    def _slots(self, header: str) -> list[tuple[str, str]]:
        """The texts in a header, each with the marker that it follows."""
        slots, marker, at = [], "", 0
        while found := self._marks.search(header, at):
            slots.append((marker, header[at : found.start()]))
            marker, at = found.group(), found.end()
        slots.append((marker, header[at:]))
        return slots if slots[0][1] else slots[1:]

    def _first_channel(self, words: list[str]) -> str | None:
        return next((route for word in words for route in self._routes if route in word), None)

    def _tool_among(self, words: list[str], offer: Offer) -> str | None:
        return offer.pick(self.name(word, offer) for word in words if word not in self._sayable)

    def _is_usual(self, marker: str, words: list[str]) -> bool:
        """Whether this is all that a header has after this marker, but for the recipient."""
        if marker == "":
            return not words
        if marker == self._start:
            return words == [self._role]
        if marker == self._channel:
            return words[:1] in [[route] for route in self._routes] and words[1:] in ([], *self._types)
        return words in self._types
