"""Tags with a name in their head, such as `<invoke name="NAME" …>`: reading and writing of heads."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from interlingua.core.tools import ToolSet
from interlingua.errors import RenderError
from interlingua.parsing.event_sink import EventSink
from interlingua.parsing.markers import MarkerSet, compile_markers
from interlingua.parsing.text_buffer import Read, TextBuffer

__all__ = [
    "MAX_HEAD_CHARS",
    "MAX_NAME_CHARS",
    "NAME_PATTERN",
    "NO_NAME_CHARS",
    "PLAIN_SPACE",
    "HeadLookahead",
    "HeadReader",
    "Tag",
    "TagHead",
    "name_prefixes",
    "plain_marker",
    "read_unopened_key",
    "valid_name",
]

MAX_NAME_CHARS = 128
MAX_HEAD_CHARS = 4 * MAX_NAME_CHARS
"""Maximum length of a head that is recognised inside a value."""
_QUOTES = "\"'"
NAME_PATTERN = re.compile(r"""[^\s<>"'{}()\[\],=]*+""")
NO_NAME_CHARS = r"""\s<>"'{}()\[\],=&"""
"""The characters that a name in a plain head does not contain, for a character class."""
PLAIN_SPACE = r"\s{0,64}+"
"""Pattern for whitespace in plain markup. It is limited, like all of a head, so that longer texts are read step by
step, whether they arrive whole or in pieces."""
_NEVER = r"(?!)"
"""A pattern that never matches."""
_SPACE_PATTERN = re.compile(r"\s*+")
_ATTRIBUTE_NAME_PATTERN = re.compile(r"\s*+([\w:.-]++)\s*+=\s*+")
_ATTRIBUTE_VALUE_PATTERN = re.compile(r"""(?:"[^"]*+"|'[^']*+'|\S*+)""")
_ESCAPES = (("&quot;", '"'), ("&amp;", "&"))


@dataclass(frozen=True)
class Tag:
    """An element with a name in its head.

    Each marker may have several spellings: all are read, the first is written.
    """

    open: tuple[str, ...]
    """Markers directly before the name, or before the attributes if the name is in an attribute."""
    end: tuple[str, ...] = ()
    """Markers that end the head. Without one, the name ends at the next marker."""
    close: tuple[str, ...] = ()
    """Markers that end the element."""
    slips: tuple[str, ...] = ()
    """Wrong spellings of a param's closer. They are recognised only before another param or the end of the call."""
    attribute: tuple[str, ...] = ()
    """The attribute that contains the name, if there is one. Other attributes may come before and after it."""
    escaped: bool = False
    """True if `&` and `"` in the name are written as `&amp;` and `&quot;`."""

    def write_head(self, name: str, attribute: str = "", value: str = "", before_name: bool = False) -> str:
        """Write the whole head, with one more attribute if one is given, after or before the name."""
        written = _escape_name(name) if self.escaped else name
        if valid_name(written) is None or any(end in written for end in self.end):
            raise RenderError(f"{name!r} cannot be written in a tag", "use letters, digits, '.', ':', '-' and '_'")
        if self.attribute:
            written = f'{self.attribute[0]}="{written}"'
        elif self.open[0].endswith('"'):
            written += '"'
        more = [f'{attribute}="{value}"'] if attribute else []
        attributes = [*more, written] if before_name else [written, *more]
        return self.open[0] + " ".join(attributes) + "".join(self.end[:1])


class TagHead(NamedTuple):
    """A parsed head: the name, and the text of the other attributes."""

    name: str
    attributes: str = ""
    is_ended: bool = True
    """False if its end marker is missing."""

    @property
    def attribute_names(self) -> list[str]:
        """The names of the other attributes."""
        return [] if not self.attributes else [key[1] for key in _iter_attributes(self.attributes)]


def valid_name(text: str) -> str | None:
    """Return the text if it can be a name, else None. Prose cannot: it contains whitespace."""
    return text if 0 < len(text) <= MAX_NAME_CHARS and NAME_PATTERN.fullmatch(text) else None


class HeadLookahead:
    """Recognises a complete head that comes next: a lookahead for `TextBuffer.look_ahead`, whose word is the name.

    Args:
        tag: The tag of the head.
        body: The markers that must follow the head; any text may follow if there are none.
        openers: The openers before the head, if they are still to come.
        sections: Openers that may come before these.
        is_named: True if the head must contain a name. Otherwise the word is the text of the head.
    """

    def __init__(
        self,
        tag: Tag,
        body: MarkerSet | None = None,
        openers: MarkerSet | None = None,
        sections: MarkerSet | None = None,
        *,
        is_named: bool = True,
    ) -> None:
        self._tag = tag
        self._is_named = is_named
        self._body = body
        self._openers = openers
        self._sections = sections
        self._ends = compile_markers(*tag.end)
        first_chars = "".join(re.escape(end[0]) for end in tag.end)
        self._head_pattern = re.compile(rf"[^<\n{first_chars}]*+") if tag.end else NAME_PATTERN

    def find_word(self, text: str, pos: int, end: int, words: Collection[str] | None) -> tuple[str | None, bool]:  # noqa: ARG002
        """Return the name in the head at `pos`, or None; and whether a head is still possible if more text follows."""
        for markers, is_optional in ((self._sections, True), (self._openers, False)):
            if markers is not None:
                start = _skip_space(text, pos)
                match = markers.match(text, start)
                if match is not None:
                    pos = match.end()
                elif _may_follow(markers, text, start):
                    return None, True
                elif not is_optional:
                    return None, False
        start = pos if self._tag.end else _skip_space(text, pos)
        match = self._head_pattern.match(text, start, end)
        pos = match.end() if match else start
        head = text[start:pos]
        if self._tag.end:
            match = self._ends.match(text, pos)
            if match is None:
                return None, _may_follow(self._ends, text, pos)
            pos = match.end()
            name = _parse_head(head, self._tag).name if self._is_named else head
        else:
            name = head
        if self._is_named and valid_name(name) is None:
            return None, not name and pos == len(text)
        if self._body is not None:
            pos = _skip_space(text, pos)
            match = self._body.match(text, pos)
            if match is None:
                return None, _may_follow(self._body, text, pos)
            pos = match.end()
        return name if pos <= end else None, False


def _may_follow(markers: MarkerSet, text: str, pos: int) -> bool:
    """Return whether more text could make a marker at `pos`."""
    return pos == len(text) or markers.is_partial(text, pos)


def _skip_space(text: str, pos: int) -> int:
    match = _SPACE_PATTERN.match(text, pos)
    return match.end() if match else pos


def name_prefixes(tag: Tag) -> tuple[str, ...]:
    """Return the texts that can come between the opener of a tag and its name."""
    return tuple(f"{key}={quote}" for key in tag.attribute for quote in ('"', "'", "")) or ("",)


class HeadReader:
    """Reads heads of one tag, after their opener.

    Args:
        tag: The tag.
        after: Markers that cannot occur in a head. If the tag has no end marker, one of them must follow the name.
    """

    def __init__(self, tag: Tag, after: MarkerSet) -> None:
        self._tag = tag
        self._after = after
        self._stops = compile_markers(*tag.end, "\n", "<", *after.literals)
        self._plain_head = re.compile(_plain_head(tag, self._stops if tag.end else after))
        self._plain_element = re.compile(plain_marker(tag.open, after, has_name=True) + self._plain_head.pattern)

    def read(self, source: TextBuffer, limit: int) -> Read[TagHead]:
        """Read a head, at most `limit` characters.

        Returns:
            The head. If the text is not a head: an empty name, and the text as the attributes.
        """
        match = source.take_match(self._plain_head, limit)
        if match is not None:
            return _read_groups(match.groups(), source)
        if self._tag.end:
            text, marker = yield from source.take_until(self._stops, limit)
            if marker in self._tag.end:
                return _parse_head(text, self._tag)
            source.put_back(marker or "")
            return TagHead("", text)
        if valid_name((yield from source.peek_after_space())) is None:
            return TagHead("")
        yield from source.skip_space()
        name = yield from source.take_while(NAME_PATTERN, MAX_NAME_CHARS + 1)
        marker = yield from source.peek(self._after)
        if valid_name(name) and (marker or (marker is None and (yield from source.peek_after_space()) == "{")):
            return TagHead(name)
        return TagHead("", name)

    def read_before(self, body_markers: MarkerSet, source: TextBuffer, sink: EventSink) -> Read[TagHead]:
        """Read a head. Accept one without its end marker if one of `body_markers`, which only follow heads, is next."""
        head = yield from self.read(source, sink.limits.header)
        if head.name or not self._tag.end or not (yield from source.peek(body_markers)):
            return head
        unended_head = _parse_head(head.attributes, self._tag)
        if not unended_head.name:
            return unended_head
        sink.report("no-separator", f"{unended_head.name!r} without {self._tag.end[0]} after it: used as the name")
        return unended_head._replace(is_ended=False)

    def take_element(self, source: TextBuffer, limit: int) -> tuple[str, TagHead] | None:
        """Consume and return the opener and the head of an element, if they come next as templates write them.

        None, consuming nothing, if they are written in another way, or if the buffer does not contain all of them.
        """
        match = source.take_match(self._plain_element, limit)
        if match is None:
            return None
        opener, *head = match.groups()
        source.trace_marker(opener, source.offset - match.end() + match.end(1))
        return opener, _read_groups(head, source)


def _read_groups(groups: Sequence[str], source: TextBuffer) -> TagHead:
    """Return the head with these groups of `_plain_head`, which was just read."""
    before, name, after, end = groups
    source.trace_marker(end)
    return TagHead(name, f"{before} {after}".strip())


def _plain_head(tag: Tag, stops: MarkerSet) -> str:
    """Return a pattern for a head as templates write it: the most frequent case, from which `_parse_head` would read
    the same.

    Its groups are the attributes before the name, the name, the attributes after it, and the end marker. They contain
    no character with which one of `stops` begins. If the tag has no end marker, one of these must follow.
    """
    ends = tag.end or stops.literals
    if any(stop != end and stop.startswith(end) for end in ends for stop in stops.literals):
        return _NEVER
    end = "|".join(map(re.escape, ends))
    if not tag.end:
        return rf"{PLAIN_SPACE}()([^{NO_NAME_CHARS}]{{1,{MAX_NAME_CHARS}}}+)()()(?={PLAIN_SPACE}(?:{end}))"
    first_chars = {stop[0] for stop in stops.literals}
    no_stop = "".join(map(re.escape, sorted(first_chars)))
    name = rf"([^{NO_NAME_CHARS}{no_stop}]{{1,{MAX_NAME_CHARS}}}+)(?<!/)"
    if not tag.attribute:
        return rf"(){name}()({end})"
    keys = "|".join(map(re.escape, tag.attribute))
    if first_chars & set(f' "={keys}'):
        return _NEVER
    before = rf'((?:(?!(?:{keys})=)[\w:.-]{{1,64}}+="[^"{no_stop}]{{0,64}}+")?+) {{0,64}}+'
    return rf'{before}(?:{keys})="{name}"([^/{no_stop}]{{0,64}}+)({end})'


def plain_marker(spellings: tuple[str, ...], markers: MarkerSet, *, has_name: bool = False) -> str:
    """Return a pattern for one of these spellings of a marker after whitespace. Its group is the marker.

    It does not match the beginning of a longer marker. If a name must follow (`has_name`), this name tells them apart.
    """
    longer_markers = set()
    for spelling in spellings:
        for marker in markers.literals:
            bare_marker = marker.lstrip()
            if bare_marker != marker and (bare_marker.startswith(spelling) or spelling.startswith(bare_marker)):
                return _NEVER
            if marker == spelling or not marker.startswith(spelling):
                continue
            if not has_name:
                return _NEVER
            if marker not in spellings:
                name = NAME_PATTERN.match(marker, len(spelling))
                longer_markers.add(spelling + (name.group() if name else ""))
    others = rf"(?!{'|'.join(map(re.escape, sorted(longer_markers)))})" if longer_markers else ""
    literals = "|".join(map(re.escape, sorted(spellings, key=len, reverse=True)))
    return f"{PLAIN_SPACE}{others}({literals})"


def read_unopened_key(
    word: str, param: Tag, value_openers: MarkerSet, source: TextBuffer, offer: ToolSet
) -> Read[tuple[str, str]]:
    """Read the tool and the first key of a call in which the key lacks its opener.

    The key follows the name, with or without whitespace between them.

    Args:
        word: The word after the opener of the call: the name, or name and key without a space.
        param: The tag of a param.
        value_openers: Markers before a value.
        source: The text.
        offer: The offered tools.

    Returns:
        The name of the tool and the key. The key is "" if it is missing altogether. Both are "" if the text does not
        have this form.
    """
    if not offer.has(word):
        name_and_rest = [(name, word.removeprefix(name)) for name in offer.names if word.startswith(name)]
        fused = [(name, key) for name, key in name_and_rest if offer.has_param(name, key)]
        ended = yield from source.accept(compile_markers(*param.end))
        return fused[0] if ended and len(fused) == 1 else ("", "")
    key_by_text = {key + end: key for key in offer.param_names(word) for end in param.end}
    if key_text := (yield from source.accept_word(tuple(key_by_text))):
        return word, key_by_text[key_text]
    yield from source.accept(compile_markers(*param.end))
    return (word, "") if (yield from source.peek(value_openers)) else ("", "")


def _parse_head(text: str, tag: Tag) -> TagHead:
    """Parse the text of a head. The name is "" if it has none."""
    start, end = _find_attribute(text, tag.attribute) if tag.attribute else (0, 0)
    stripped = text[end:].strip().removesuffix("/")
    quote = stripped[:1] if stripped[:1] in _QUOTES else ""
    name, _, attributes = stripped.removeprefix(quote).partition(quote or _first_quote_or_space(stripped))
    if valid_name(name) is None:
        return TagHead("", text)
    if tag.escaped:
        for escape, char in _ESCAPES:
            name = name.replace(escape, char)
    return TagHead(name, f"{text[:start]} {attributes}".strip())


def _find_attribute(text: str, names: tuple[str, ...]) -> tuple[int, int]:
    """Return the start of the first of these attributes, and of its value; the end of the text if there is none."""
    return next((key.span() for key in _iter_attributes(text) if key[1] in names), (len(text), len(text)))


def _iter_attributes(text: str) -> Iterator[re.Match[str]]:
    """Iterate over the attributes. Each match ends before the value."""
    key = _ATTRIBUTE_NAME_PATTERN.match(text, 0)
    while key is not None:
        yield key
        value = _ATTRIBUTE_VALUE_PATTERN.match(text, key.end())
        key = _ATTRIBUTE_NAME_PATTERN.match(text, value.end()) if value else None


def _first_quote_or_space(text: str) -> str:
    return next((char for char in text if char in " \t\"'"), " ")


def _escape_name(name: str) -> str:
    return name.replace("&", "&amp;").replace('"', "&quot;")
