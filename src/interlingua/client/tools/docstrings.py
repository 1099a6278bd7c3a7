"""What does a docstring say of a function, and of each of its params? In the ways of Google, NumPy and Sphinx."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Iterator

__all__ = ["read_docstring"]

_heading = re.compile(r"([A-Z][A-Za-z ]*):\s*")
_underline = re.compile(r"-{3,}\s*")
_item = re.compile(r"\*{0,2}(\w+)\s*(?:\(.*?\))?\s*:\s*(\S.*)?")
_numpy_item = re.compile(r"\*{0,2}(\w+)\s*(?::.*)?")
_field = re.compile(r"\s*[:@](\w+)(?:\s+[^:]*?(\w+))?\s*:\s*(.*)")
_PARAMS = {"args", "arguments", "parameters", "params", "keyword args", "keyword arguments", "other parameters"}
_NOT_TOLD = {"return", "returns", "raises", "yield", "yields", "example", "examples", "note", "notes", "see also"}
_FIELDS = {"param", "parameter", "arg", "argument", "key", "keyword"}
_OTHER_FIELDS = {"type", "return", "returns", "rtype", "raise", "raises", "except", "yield", "yields", "ytype"}


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """What is said of the function, and of each param by its name."""
    about: list[str] = []
    params: dict[str, str] = {}
    for heading, underlined, lines in _sections(inspect.cleandoc(text).splitlines()):
        if heading.lower() in _PARAMS:
            params |= _in_section(lines, _numpy_item if underlined else _item)
        elif heading.lower() not in _NOT_TOLD:
            told, fields = _without_fields(lines)
            about += [f"{heading}:", *told] if heading else told
            params |= fields
    return "\n".join(about).strip(), {name: said for name, said in params.items() if said}


def _sections(lines: list[str]) -> Iterator[tuple[str, bool, list[str]]]:
    """Each section: its heading, whether that is underlined, and its lines. Text under no heading has none."""
    heading, underlined, section = "", False, list[str]()
    for line, below in itertools.pairwise([*lines, ""]):
        found, over = _heading.fullmatch(line), bool(line.strip() and _underline.fullmatch(below))
        if found or over:
            yield heading, underlined, section
            heading, underlined, section = found[1] if found else line.strip(), over, []
        elif heading and not underlined and _is_further_in(section) and line.strip() and not line[:1].isspace():
            yield heading, underlined, section
            heading, section = "", [line]
        elif not (underlined and not section and _underline.fullmatch(line)):
            section.append(line)
    yield heading, underlined, section


def _is_further_in(section: list[str]) -> bool:
    return next((line[:1].isspace() for line in section if line.strip()), False)


def _in_section(lines: list[str], item: re.Pattern[str]) -> dict[str, str]:
    """`name (type): about`, or `name : type`; the rest is in the lines below, further in."""
    params: dict[str, str] = {}
    name = ""
    for line in inspect.cleandoc("\n".join(["", *lines])).splitlines():
        found = None if line[:1].isspace() else item.fullmatch(line.rstrip())
        if found:
            name = found[1]
            params[name] = (found[2] or "").strip() if item.groups > 1 else ""
        elif name:
            params[name] = f"{params[name]} {line.strip()}".strip()
    return params


def _without_fields(lines: list[str]) -> tuple[list[str], dict[str, str]]:
    """The text, and what `:param name: about` or `@param name: about` says, over as many lines as it takes."""
    told: list[str] = []
    params: dict[str, str] = {}
    in_field, name = False, ""
    for line in lines:
        found = _field.fullmatch(line)
        if found and found[1] in _FIELDS | _OTHER_FIELDS:
            in_field, name = True, found[2] if found[1] in _FIELDS and found[2] else ""
            if name:
                params[name] = found[3].strip()
        elif in_field and line[:1].isspace():
            if name:
                params[name] = f"{params[name]} {line.strip()}".strip()
        else:
            in_field = in_field and not line.strip()
            told.append(line)
    return told, params
