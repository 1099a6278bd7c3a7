"""Parser for message headers that tolerates mistakes of the model.

A header is a sequence of markers, each followed by text: the role after one, the channel after another. Models
duplicate, omit and swap them, so words are recognised wherever they occur in the header.
"""

from __future__ import annotations

import re

import msgspec

from interlingua.core.tools import ToolSet
from interlingua.parsing.markers import compile_markers

__all__ = ["HeaderParser", "MessageHeader"]

_WORD_PATTERN = re.compile(r"\w+")


class MessageHeader(msgspec.Struct, frozen=True):
    """The parsed header of a message."""

    channel: str | None
    """The first known channel."""
    recipient: str | None
    """The last recipient."""
    guessed_tool: str | None
    """An offered tool that the header mentions, but not as the recipient."""
    lacks_recipient: bool
    """True if the header is that of a call, except that the recipient is missing."""
    is_malformed: bool
    is_prose: bool
    """True if the header is prose: no known channel or recipient, and many words."""


class HeaderParser:
    """Parser for message headers.

    Args:
        parts: The markers in the order of a correct header: start, channel, constrain.
        role: The role after the start marker.
        recipient: The text before a recipient.
        prefix: The prefix of a recipient that is a tool.
        routes: All known channels and recipients that are not tools.
        types: The known content types.
    """

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
        self._positions = {marker: position for position, marker in enumerate(parts) if marker} | {"": 0}
        self._markers = compile_markers(*filter(None, parts))
        self._role = role
        self._recipient = recipient
        self._recipient_pattern = re.compile(re.escape(recipient) + r"\s*+(\S*+)")
        self._prefix = prefix
        self._routes = routes
        self._types = [[word] for word in types]
        self._known_words = (role, *routes, *types)

    def read(self, header: str, offer: ToolSet) -> MessageHeader:
        slots = self._split_slots(header)
        recipients: list[str] = []
        words_by_marker: list[tuple[str, list[str]]] = []
        for marker, text in slots:
            if self._recipient in text:
                recipients += self._recipient_pattern.findall(text)
                text = self._recipient_pattern.sub(" ", text)
            words_by_marker.append((marker, text.split()))
        named_recipients = [recipient for recipient in recipients if recipient not in ("", self._role, self._prefix)]
        positions = [self._positions[marker] for marker, _ in slots]
        channel = self._first_channel([word for _, words in words_by_marker for word in words])
        guessed_tool = self._find_tool(
            [word for marker, words in words_by_marker if self._positions[marker] for word in words], offer
        )
        return MessageHeader(
            channel=channel,
            recipient=named_recipients[-1] if named_recipients else None,
            guessed_tool=guessed_tool,
            lacks_recipient=bool(self._constrain and self._constrain in dict(slots))
            or "" in recipients
            or self._prefix in recipients,
            is_malformed=positions != sorted(set(positions))
            or len(recipients) > 1
            or named_recipients != recipients
            or not all(self._is_well_formed(marker, words) for marker, words in words_by_marker)
            or bool(self._channel and not channel and not named_recipients),
            is_prose=not (channel or named_recipients or guessed_tool)
            and any(len(words) > 2 for _, words in words_by_marker),
        )

    def tool_name(self, recipient: str, offer: ToolSet) -> str:
        """Return the name of the tool for a recipient."""
        return recipient if offer.has(recipient) else recipient.removeprefix(self._prefix)

    def find_tool_name(self, text: str, offer: ToolSet) -> str:
        """Return the name of the tool in a text that may contain other parts of a header."""
        texts = [slot for _, slot in self._split_slots(text)]
        words = (
            [word for slot in texts for word in self._recipient_pattern.sub(r"\1", slot).split()]
            if len(texts) > 1
            else texts
        )
        names = [self.tool_name(word, offer) for word in words if word not in self._known_words]
        return offer.first_offered(names) or next(iter(names), text)

    def has_only_known_words(self, header: str) -> bool:
        """Return whether a header contains only known header words, or prefixes of them.

        Punctuation after a marker is ignored. In a header without a marker, punctuation may be prose, and so may a
        recipient that is not a tool.
        """
        if not self._markers.match(header, 0) and not all(
            map(self._is_tool_prefix, self._recipient_pattern.findall(header))
        ):
            return False
        remainder = " ".join(self._recipient_pattern.sub(" ", text) for _, text in self._split_slots(header))
        words = _WORD_PATTERN.findall(remainder) if self._markers.match(header, 0) else remainder.split()
        return all(any(word.startswith(beginning) for word in self._known_words) for beginning in words)

    def has_tool_without_prefix(self, header: str) -> bool:
        """Return whether a recipient in the header is neither a known route nor a tool with the prefix of tools."""
        return not self._prefix and not all(
            any(route.startswith(recipient) for route in self._routes)
            for recipient in self._recipient_pattern.findall(header)
        )

    def _is_tool_prefix(self, recipient: str) -> bool:
        return bool(recipient) and (recipient.startswith(self._prefix) or self._prefix.startswith(recipient))

    def _split_slots(self, header: str) -> list[tuple[str, str]]:
        """Split a header into its texts, each with the marker before it."""
        slots, marker, pos = [], "", 0
        while match := self._markers.search(header, pos):
            slots.append((marker, header[pos : match.start()]))
            marker, pos = match.group(), match.end()
        slots.append((marker, header[pos:]))
        return slots if slots[0][1] else slots[1:]

    def _first_channel(self, words: list[str]) -> str | None:
        return next((route for word in words for route in self._routes if route in word), None)

    def _find_tool(self, words: list[str], offer: ToolSet) -> str | None:
        names = [self.tool_name(word, offer) for word in words if word not in self._known_words]
        return offer.first_offered(names) if names else None

    def _is_well_formed(self, marker: str, words: list[str]) -> bool:
        """Return whether these are the expected words after this marker (recipients are already removed)."""
        if marker == "":
            return not words
        if marker == self._start:
            return words == [self._role]
        if marker == self._channel:
            return len(words) > 0 and words[0] in self._routes and (len(words) == 1 or words[1:] in self._types)
        return words in self._types
