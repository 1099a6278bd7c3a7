"""Tags around a name: `<invoke name="NAME" …>`. How the head of one is read and written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from interlingua.core.tools import Offer
from interlingua.errors import RenderError
from interlingua.parsing.event_sink import Sink
from interlingua.parsing.markers import Markers, markers
from interlingua.parsing.text_buffer__source import Reading, Source

__all__ = ["Head", "Tag", "as_name", "names_in", "read_head", "read_head_to", "read_lost_key"]

LONGEST_NAME = 128
_QUOTES = "\"'"
_NAME = re.compile(r"""[^\s<>"'{}()\[\],=]*+""")
_KEY = re.compile(r"\s*+([\w:.-]++)\s*+=\s*+")
_VALUE = re.compile(r"""(?:"[^"]*+"|'[^']*+'|\S*+)""")
_ESCAPES = (("&quot;", '"'), ("&amp;", "&"))


@dataclass(frozen=True)
class Tag:
    """An element with a name in its head. Each marker may have several spellings; the first is how we write it."""

    open: tuple[str, ...]
    """What stands right before the name. Where an attribute holds that: before the attributes."""
    end: tuple[str, ...] = ()
    """What ends the head. Where nothing does, the name ends at the next marker."""
    close: tuple[str, ...] = ()
    """What ends the element."""
    slips: tuple[str, ...] = ()
    """Wrong spellings of a param's closer. They count only where another param or the end of the call follows."""
    attribute: tuple[str, ...] = ()
    """The attribute that holds the name, if one does. Any others may stand before and behind it, in any order."""
    escaped: bool = False
    """Whether `&` and `"` in the name are written as `&amp;` and `&quot;`."""

    def write(self, name: str, attribute: str = "", value: str = "") -> str:
        """The whole head."""
        written = _escape(name) if self.escaped else name
        if as_name(written) is None or any(end in written for end in self.end):
            raise RenderError(f"{name!r} cannot stand in a tag", "rename it: letters, digits, '.', ':', '-' and '_'")
        if self.attribute:
            written = f'{self.attribute[0]}="{written}"'
        elif self.open[0].endswith('"'):
            written += '"'
        attributes = f' {attribute}="{value}"' if attribute else ""
        return self.open[0] + written + attributes + "".join(self.end[:1])


@dataclass(frozen=True)
class Head:
    """What a head says: the name, and the other attributes as they stand there."""

    name: str
    attributes: str = ""

    @property
    def keys(self) -> list[str]:
        """What these attributes are called."""
        return [key[1] for key in _keys(self.attributes)]


def as_name(text: str) -> str | None:
    """The text if it may be a name. Prose may not: it has white space in it."""
    return text if 0 < len(text) <= LONGEST_NAME and _NAME.fullmatch(text) else None


def names_in(text: str, start: int) -> list[str]:
    """All that may be names behind this place, where a head may begin."""
    return [name for name in _NAME.findall(text, start, start + LONGEST_NAME * 4) if name]


def read_head(tag: Tag, source: Source, limit: int, after: Markers) -> Reading[Head]:
    """The head after its opener. Where nothing ends it, one of these markers must stand after it. What is no head comes
    back as the attributes of one without a name. Whatever marker stands in it, it is none."""
    if tag.end:
        text, marker = yield from source.take_until(markers(*tag.end, "\n", "<", *after.literals), limit)
        if marker in tag.end:
            return _head(text, tag)
        source.unread(marker or "")
        return Head("", text)
    if as_name((yield from source.next_char())) is None:
        return Head("")
    yield from source.skip_space()
    name = yield from source.take_while(_NAME, LONGEST_NAME + 1)
    follows = yield from source.peek(after)
    if as_name(name) and (follows or (follows is None and (yield from source.next_char()) == "{")):
        return Head(name)
    return Head("", name)


def read_head_to(body: Markers, tag: Tag, source: Source, sink: Sink, after: Markers) -> Reading[Head]:
    """A head, also one without its end if a marker follows that stands in no place but behind heads."""
    head = yield from read_head(tag, source, sink.limits.header, after)
    if head.name or not tag.end or not (yield from source.peek(body)):
        return head
    unended = _head(head.attributes, tag)
    if unended.name:
        sink.report("no-separator", f"{unended.name!r} without {tag.end[0]} behind it: taken as the name")
    return unended


def read_lost_key(word: str, param: Tag, values: Markers, source: Source, offer: Offer) -> Reading[tuple[str, str]]:
    """The offered tool and the key in what follows a call's opener up to the first value, where the key lacks its
    opener: it stands behind the name, with or without white space between. The key is empty if all of it is missing,
    and the tool is if that is not what stands there."""
    if not offer.has(word):
        whole = [(name, word.removeprefix(name)) for name in offer.names if word.startswith(name)]
        fused = [(name, key) for name, key in whole if offer.declares(name, key)]
        ended = yield from source.accept(markers(*param.end))
        return fused[0] if ended and len(fused) == 1 else ("", "")
    ends = {key + end: key for key in offer.params(word) for end in param.end}
    if found := (yield from source.accept_word(tuple(ends))):
        return word, ends[found]
    yield from source.accept(markers(*param.end))
    return (word, "") if (yield from source.peek(values)) else ("", "")


def _head(text: str, tag: Tag) -> Head:
    start, end = _attribute(text, tag.attribute) if tag.attribute else (0, 0)
    stripped = text[end:].strip().removesuffix("/")
    quote = stripped[:1] if stripped[:1] in _QUOTES else ""
    name, _, attributes = stripped.removeprefix(quote).partition(quote or _first_quote_or_space(stripped))
    if as_name(name) is None:
        return Head("", text)
    if tag.escaped:
        for escape, char in _ESCAPES:
            name = name.replace(escape, char)
    return Head(name, f"{text[:start]} {attributes}".strip())


def _attribute(text: str, names: tuple[str, ...]) -> tuple[int, int]:
    """Where one of these attributes begins, and where its value does; the text's end if there is none."""
    return next((key.span() for key in _keys(text) if key[1] in names), (len(text), len(text)))


def _keys(text: str) -> Iterator[re.Match[str]]:
    """Each attribute up to its value."""
    key = _KEY.match(text, 0)
    while key is not None:
        yield key
        value = _VALUE.match(text, key.end())
        key = _KEY.match(text, value.end()) if value else None


def _first_quote_or_space(text: str) -> str:
    return next((char for char in text if char in " \t\"'"), " ")


def _escape(name: str) -> str:
    return name.replace("&", "&amp;").replace('"', "&quot;")
