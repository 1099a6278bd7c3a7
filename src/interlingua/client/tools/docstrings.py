"""Docstring parser: the description of a function and of its params, in Google, NumPy and Sphinx style."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Iterator

__all__ = ["read_docstring"]

_heading_pattern = re.compile(r"([A-Z][A-Za-z ]*):\s*")
_underline_pattern = re.compile(r"-{3,}\s*")
_item_pattern = re.compile(r"\*{0,2}(\w+)\s*(?:\(.*?\))?\s*:\s*(\S.*)?")
_numpy_item_pattern = re.compile(r"\*{0,2}(\w+)\s*(?::.*)?")
_field_pattern = re.compile(r"\s*[:@](\w+)(?:\s+[^:]*?(\w+))?\s*:\s*(.*)")
_PARAM_HEADINGS = {"args", "arguments", "parameters", "params", "keyword args", "keyword arguments", "other parameters"}
_IGNORED_HEADINGS = {
    "return",
    "returns",
    "raises",
    "yield",
    "yields",
    "example",
    "examples",
    "note",
    "notes",
    "see also",
}
_PARAM_FIELDS = {"param", "parameter", "arg", "argument", "key", "keyword"}
_IGNORED_FIELDS = {"type", "return", "returns", "rtype", "raise", "raises", "except", "yield", "yields", "ytype"}


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Return the description of the function, and of each param by name."""
    description: list[str] = []
    params: dict[str, str] = {}
    for heading, underlined, lines in _sections(inspect.cleandoc(text).splitlines()):
        if heading.lower() in _PARAM_HEADINGS:
            params |= _parse_param_section(lines, _numpy_item_pattern if underlined else _item_pattern)
        elif heading.lower() not in _IGNORED_HEADINGS:
            text_lines, fields = _split_fields(lines)
            description += [f"{heading}:", *text_lines] if heading else text_lines
            params |= fields
    return "\n".join(description).strip(), {name: param_text for name, param_text in params.items() if param_text}


def _sections(lines: list[str]) -> Iterator[tuple[str, bool, list[str]]]:
    """Yield each section: heading ("" for text without one), whether the heading is underlined, and lines."""
    heading, underlined, section = "", False, list[str]()
    for line, next_line in itertools.pairwise([*lines, ""]):
        heading_match, is_underlined = (
            _heading_pattern.fullmatch(line),
            bool(line.strip() and _underline_pattern.fullmatch(next_line)),
        )
        if heading_match or is_underlined:
            yield heading, underlined, section
            heading, underlined, section = heading_match[1] if heading_match else line.strip(), is_underlined, []
        elif heading and not underlined and _is_indented(section) and line.strip() and not line[:1].isspace():
            yield heading, underlined, section
            heading, section = "", [line]
        elif not (underlined and not section and _underline_pattern.fullmatch(line)):
            section.append(line)
    yield heading, underlined, section


def _is_indented(section: list[str]) -> bool:
    return next((line[:1].isspace() for line in section if line.strip()), False)


def _parse_param_section(lines: list[str], item_pattern: re.Pattern[str]) -> dict[str, str]:
    """Parse `name (type): description` or `name : type`, with continuation lines that are indented further."""
    params: dict[str, str] = {}
    name = ""
    for line in inspect.cleandoc("\n".join(["", *lines])).splitlines():
        match = None if line[:1].isspace() else item_pattern.fullmatch(line.rstrip())
        if match:
            name = match[1]
            params[name] = (match[2] or "").strip() if item_pattern.groups > 1 else ""
        elif name:
            params[name] = f"{params[name]} {line.strip()}".strip()
    return params


def _split_fields(lines: list[str]) -> tuple[list[str], dict[str, str]]:
    """Split text from fields `:param name: description` or `@param name: description`, which may span several lines."""
    text_lines: list[str] = []
    params: dict[str, str] = {}
    in_field, name = False, ""
    for line in lines:
        match = _field_pattern.fullmatch(line)
        if match and match[1] in _PARAM_FIELDS | _IGNORED_FIELDS:
            in_field, name = True, match[2] if match[1] in _PARAM_FIELDS and match[2] else ""
            if name:
                params[name] = match[3].strip()
        elif in_field and line[:1].isspace():
            if name:
                params[name] = f"{params[name]} {line.strip()}".strip()
        else:
            in_field = in_field and not line.strip()
            text_lines.append(line)
    return text_lines, params
