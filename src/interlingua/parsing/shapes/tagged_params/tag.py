"""Tags around a name: `<invoke name="NAME" …>`. How the head of one is read and written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from interlingua.core.tools import ToolSet
from interlingua.errors import RenderError
from interlingua.parsing.event_sink import EventSink
from interlingua.parsing.markers import MarkerSet, compile_markers
from interlingua.parsing.text_buffer import Read, TextBuffer

__all__ = ["Tag", "TagHead", "find_names", "read_head", "read_head_before", "read_unopened_key", "valid_name"]

MAX_NAME_CHARS = 128
_QUOTES = "\"'"
_NAME_PATTERN = re.compile(r"""[^\s<>"'{}()\[\],=]*+""")
_ATTRIBUTE_NAME_PATTERN = re.compile(r"\s*+([\w:.-]++)\s*+=\s*+")
_ATTRIBUTE_VALUE_PATTERN = re.compile(r"""(?:"[^"]*+"|'[^']*+'|\S*+)""")
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

    def write_head(self, name: str, attribute: str = "", value: str = "") -> str:
        """The whole head."""
        written = _escape_name(name) if self.escaped else name
        if valid_name(written) is None or any(end in written for end in self.end):
            raise RenderError(f"{name!r} cannot stand in a tag", "rename it: letters, digits, '.', ':', '-' and '_'")
        if self.attribute:
            written = f'{self.attribute[0]}="{written}"'
        elif self.open[0].endswith('"'):
            written += '"'
        attributes = f' {attribute}="{value}"' if attribute else ""
        return self.open[0] + written + attributes + "".join(self.end[:1])


@dataclass(frozen=True)
class TagHead:
    """What a head says: the name, and the other attributes as they stand there."""

    name: str
    attributes: str = ""

    @property
    def attribute_names(self) -> list[str]:
        """What these attributes are called."""
        return [key[1] for key in _iter_attributes(self.attributes)]


def valid_name(text: str) -> str | None:
    """The text if it may be a name. Prose may not: it has white space in it."""
    return text if 0 < len(text) <= MAX_NAME_CHARS and _NAME_PATTERN.fullmatch(text) else None


def find_names(text: str, start: int) -> list[str]:
    """All that may be names behind this place, where a head may begin."""
    return [name for name in _NAME_PATTERN.findall(text, start, start + MAX_NAME_CHARS * 4) if name]


def read_head(tag: Tag, source: TextBuffer, limit: int, after: MarkerSet) -> Read[TagHead]:
    """The head after its opener. Where nothing ends it, one of these markers must stand after it. What is no head comes
    back as the attributes of one without a name. Whatever marker stands in it, it is none."""
    if tag.end:
        text, marker = yield from source.take_until(compile_markers(*tag.end, "\n", "<", *after.literals), limit)
        if marker in tag.end:
            return _parse_head(text, tag)
        source.put_back(marker or "")
        return TagHead("", text)
    if valid_name((yield from source.peek_after_space())) is None:
        return TagHead("")
    yield from source.skip_space()
    name = yield from source.take_while(_NAME_PATTERN, MAX_NAME_CHARS + 1)
    next_marker = yield from source.peek(after)
    if valid_name(name) and (next_marker or (next_marker is None and (yield from source.peek_after_space()) == "{")):
        return TagHead(name)
    return TagHead("", name)


def read_head_before(
    body_markers: MarkerSet, tag: Tag, source: TextBuffer, sink: EventSink, after: MarkerSet
) -> Read[TagHead]:
    """A head, also one without its end if a marker follows that stands in no place but behind heads."""
    head = yield from read_head(tag, source, sink.limits.header, after)
    if head.name or not tag.end or not (yield from source.peek(body_markers)):
        return head
    unended_head = _parse_head(head.attributes, tag)
    if unended_head.name:
        sink.report("no-separator", f"{unended_head.name!r} without {tag.end[0]} behind it: taken as the name")
    return unended_head


def read_unopened_key(
    word: str, param: Tag, value_openers: MarkerSet, source: TextBuffer, offer: ToolSet
) -> Read[tuple[str, str]]:
    """The offered tool and the key in what follows a call's opener up to the first value, where the key lacks its
    opener: it stands behind the name, with or without white space between. The key is empty if all of it is missing,
    and the tool is if that is not what stands there."""
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
    """Where one of these attributes begins, and where its value does; the text's end if there is none."""
    return next((key.span() for key in _iter_attributes(text) if key[1] in names), (len(text), len(text)))


def _iter_attributes(text: str) -> Iterator[re.Match[str]]:
    """Each attribute up to its value."""
    key = _ATTRIBUTE_NAME_PATTERN.match(text, 0)
    while key is not None:
        yield key
        value = _ATTRIBUTE_VALUE_PATTERN.match(text, key.end())
        key = _ATTRIBUTE_NAME_PATTERN.match(text, value.end()) if value else None


def _first_quote_or_space(text: str) -> str:
    return next((char for char in text if char in " \t\"'"), " ")


def _escape_name(name: str) -> str:
    return name.replace("&", "&amp;").replace('"', "&quot;")
