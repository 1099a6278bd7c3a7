"""First difference between two JSON values, as a model's prompt sees it.

Servers write JSON into the prompt: the order of keys and the form of numbers matter, but white space between tokens and
escapes in strings do not.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

import msgspec

from interlingua.common.common_prefix import common_prefix_length

__all__ = ["SNIPPET_CHARS", "Difference", "DifferenceKind", "RawNumber", "decode_exactly", "first_difference"]

SNIPPET_CHARS = 80
"""Characters of a value that are shown on either side."""
SNIPPET_BEFORE_CHARS = 24
"""Characters that are shown before the first different one."""
MAX_DEPTH = 200

DifferenceKind: TypeAlias = Literal[
    "text",
    "white space",
    "letter case",
    "Unicode form",
    "JSON form",
    "image",
    "id",
    "value",
    "type",
    "number form",
    "key order",
    "key added",
    "key removed",
    "item added",
    "item removed",
    "item order",
    "extended",
]
"""extended: the later text begins with the earlier one. JSON form: JSON inside a string, with the same meaning. item
removed: also the end of the later list, if it is shorter."""
_ID_KEYS = frozenset(("id", "call_id", "tool_call_id", "tool_use_id", "item_id"))
_IMAGE_STARTS = ("data:image/", "/9j/", "iVBOR", "R0lGOD", "UklGR")


class RawNumber(str):
    """Number as it is written in JSON text."""

    __slots__ = ()


class Difference(msgspec.Struct, frozen=True, omit_defaults=True):
    """First difference between two JSON values."""

    path: str
    """Place of the difference, such as `content[0].text`; "" for the value itself."""
    kind: DifferenceKind
    offset: int | None = None
    """Index of the first different character; None if the difference is not inside a text."""
    before: str = ""
    """The earlier value around the difference."""
    after: str = ""


def decode_exactly(data: bytes | str) -> Any:
    """Decode JSON and keep the form of its numbers. Raises ValueError."""
    return json.loads(data, parse_int=RawNumber, parse_float=RawNumber, parse_constant=RawNumber)


def first_difference(before: Any, after: Any, ignored_keys: frozenset[str] = frozenset()) -> Difference | None:
    """Return the first difference between two values that `decode_exactly` returned; None if they are equal.

    Args:
        before: The earlier value.
        after: The later value.
        ignored_keys: Keys of objects that are not compared, at any depth.
    """
    return _compare(before, after, "", ignored_keys, MAX_DEPTH)


def _compare(before: Any, after: Any, path: str, ignored: frozenset[str], depth: int) -> Difference | None:
    if isinstance(before, RawNumber) or isinstance(after, RawNumber):
        return _compare_scalars(before, after, path)
    if isinstance(before, str) and isinstance(after, str):
        return _compare_texts(before, after, path)
    if isinstance(before, dict) and isinstance(after, dict) and depth:
        return _compare_objects(before, after, path, ignored, depth)
    if isinstance(before, list) and isinstance(after, list) and depth:
        return _compare_lists(before, after, path, ignored, depth)
    return _compare_scalars(before, after, path)


def _compare_scalars(before: Any, after: Any, path: str) -> Difference | None:
    if type(before) is type(after) and before == after:
        return None
    kind: DifferenceKind = "type" if _json_type(before) != _json_type(after) else "value"
    if isinstance(before, RawNumber) and isinstance(after, RawNumber) and _number(before) == _number(after):
        kind = "number form"
    return Difference(path, kind, None, _snippet(before), _snippet(after))


def _compare_texts(before: str, after: str, path: str) -> Difference | None:
    if before == after:
        return None
    offset = common_prefix_length(before, after)
    start = max(offset - SNIPPET_BEFORE_CHARS, 0)
    snippets = (text[start : start + SNIPPET_CHARS] for text in (before, after))
    return Difference(path, _text_kind(before, after, path), offset, *snippets)


def _text_kind(before: str, after: str, path: str) -> DifferenceKind:
    key = path.rpartition(".")[2].partition("[")[0]
    checks: Iterator[tuple[DifferenceKind, bool]] = iter(
        (
            ("id", key in _ID_KEYS),
            ("image", before.startswith(_IMAGE_STARTS) and after.startswith(_IMAGE_STARTS)),
            ("extended", after.startswith(before)),
            ("white space", "".join(before.split()) == "".join(after.split())),
            ("letter case", before.casefold() == after.casefold()),
            ("Unicode form", unicodedata.normalize("NFKC", before) == unicodedata.normalize("NFKC", after)),
            ("JSON form", _is_same_json(before, after)),
        )
    )
    return next((kind for kind, holds in checks if holds), "text")


def _is_same_json(before: str, after: str) -> bool:
    if not (before.startswith(("{", "[")) and after.startswith(("{", "["))):
        return False
    try:
        return bool(json.loads(before) == json.loads(after))
    except (ValueError, RecursionError):
        return False


def _compare_objects(
    before: dict[str, Any], after: dict[str, Any], path: str, ignored: frozenset[str], depth: int
) -> Difference | None:
    before_keys, after_keys = ([key for key in one if key not in ignored] for one in (before, after))
    for index in range(max(len(before_keys), len(after_keys))):
        earlier = before_keys[index] if index < len(before_keys) else None
        later = after_keys[index] if index < len(after_keys) else None
        if earlier is not None and earlier == later:
            inner = _compare(before[earlier], after[earlier], _join(path, earlier), ignored, depth - 1)
            if inner is not None:
                return inner
        elif later is None or (earlier is not None and earlier not in after and later in before):
            assert earlier is not None
            return Difference(_join(path, earlier), "key removed", None, _snippet(before[earlier]), "")
        elif earlier is None or later not in before:
            return Difference(_join(path, later), "key added", None, "", _snippet(after[later]))
        else:
            return Difference(_join(path, later), "key order", None, ", ".join(before_keys), ", ".join(after_keys))
    return None


def _compare_lists(
    before: list[Any], after: list[Any], path: str, ignored: frozenset[str], depth: int
) -> Difference | None:
    for index, (earlier, later) in enumerate(zip(before, after, strict=False)):
        place = f"{path}[{index}]"
        inner = _compare(earlier, later, place, ignored, depth - 1)
        if inner is None:
            continue
        is_kept, is_known = earlier in after[index + 1 :], later in before[index + 1 :]
        if is_kept and is_known:
            return Difference(place, "item order", None, _snippet(earlier), _snippet(later))
        if is_kept:
            return Difference(place, "item added", None, "", _snippet(later))
        if is_known:
            return Difference(place, "item removed", None, _snippet(earlier), "")
        return inner
    if len(before) > len(after):
        return Difference(f"{path}[{len(after)}]", "item removed", None, _snippet(before[len(after)]), "")
    if len(after) > len(before):
        return Difference(f"{path}[{len(before)}]", "extended", None, "", _snippet(after[len(before)]))
    return None


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _json_type(value: Any) -> str:
    if isinstance(value, RawNumber):
        return "number"
    return "null" if value is None else type(value).__name__


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _snippet(value: Any) -> str:
    if isinstance(value, RawNumber):
        return str(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SNIPPET_CHARS else text[: SNIPPET_CHARS - 1] + "…"
