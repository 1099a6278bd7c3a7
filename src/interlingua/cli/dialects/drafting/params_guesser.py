"""Guessers for the shapes whose params are not JSON: tagged_params, line_params, literals, pythonic."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import interlingua as il
from interlingua.cli.dialects.drafting.template_probe import ProbeCall
from interlingua.cli.dialects.drafting.template_tokens import (
    TemplateToken,
    closer_length,
    common_token_count,
    find_json,
    tokenize,
)
from interlingua.parsing.dialect import Shape
from interlingua.parsing.shapes.line_params.grammar import LineParams
from interlingua.parsing.shapes.literals.grammar import Literals
from interlingua.parsing.shapes.literals.pythonic_grammar import Pythonic
from interlingua.parsing.shapes.tagged_params.grammar import TaggedParams
from interlingua.parsing.shapes.tagged_params.tag import Tag

__all__ = ["DraftNotes", "guess_line_params", "guess_literals", "guess_pythonic", "guess_tagged_params"]

DraftNotes: TypeAlias = list[tuple[str, str]]
"""Notes for fields of the drafted file, as (path of the field, text)."""
_ATTRIBUTE_PATTERN = re.compile(r'"?\s+(\w+)="(\w+)"')


@dataclass(frozen=True)
class _ParamPosition:
    """Position of a param: its key is [start:key_end], its value [value_start:end]."""

    is_text: bool
    start: int
    key_end: int
    value_start: int
    end: int


def _locate_params(text: str, call: ProbeCall) -> list[_ParamPosition]:
    """Return the positions of all params in text order; [] if any is missing."""
    position = text.find(call.name) + len(call.name)
    params: list[_ParamPosition] = []
    for key, value in sorted(call.args.items(), key=lambda param: text.find(param[0], position)):
        start = text.find(key, position)
        value_start, end = find_json(text, value, start) if isinstance(value, dict) else (-1, 0)
        if value_start < 0:
            value_start = text.find(str(value), start + len(key))
            end = value_start + len(str(value))
        if start < 0 or value_start < 0:
            return []
        params.append(_ParamPosition(isinstance(value, str), start, start + len(key), value_start, end))
        position = end
    return params


# ── tagged_params ─────────────────────────────────────────────────────────────────────────────────────────────────────


def guess_tagged_params(text: str, calls: Sequence[ProbeCall], notes: DraftNotes) -> Shape | None:
    """Guess `tagged_params`: each value in an element of its own."""
    name, params = calls[0].name, _locate_params(text, calls[0])
    if name not in text or len(params) < 2:
        return None
    before = text.partition(name)[0]
    first, second = params[:2]
    head, between_params = text[len(before) + len(name) : first.start], text[first.end : second.start]
    opener = _common_opener(tokenize(head), tokenize(between_params))
    close = between_params.removesuffix(opener).strip()
    if not opener or not close:
        return None
    after = text[params[-1].end :].partition(close)[2]
    call_fields = _call_fields(before, head.removesuffix(opener), after, calls, notes)
    if call_fields is None:
        return None
    return TaggedParams(**call_fields, **_param_fields(text, params, opener, close))


def _common_opener(before_first: list[TemplateToken], before_second: list[TemplateToken]) -> str:
    """Return the text before both keys that is the same, from its last tag on."""
    count = common_token_count(before_first[::-1], before_second[::-1])
    shared = before_first[-count:] if count else []
    start = max((n for n, token in enumerate(shared) if token.is_tag), default=0)
    return _join_tokens(shared[start:])


def _join_tokens(parts: Sequence[TemplateToken]) -> str:
    """Join tokens, with one space where the text has whitespace."""
    text = ""
    for n, part in enumerate(parts):
        text += " " + part.text if n and part.start > parts[n - 1].end else part.text
    return text


def _param_fields(text: str, params: list[_ParamPosition], opener: str, close: str) -> dict[str, Any]:
    text_param = next(param for param in params if param.is_text)
    before_value = text[text_param.key_end : text_param.value_start]
    other_separators = {text[param.key_end : param.value_start] for param in params if not param.is_text}
    attribute = _ATTRIBUTE_PATTERN.match(before_value)
    type_attribute = attribute if attribute and before_value not in other_separators else None
    end_tokens = tokenize(before_value[attribute.end() if attribute else 0 :].lstrip('"'))
    end = end_tokens[0].text if end_tokens else ""
    value_open = before_value.partition(end)[2] if len(end_tokens) > 1 else ""
    return {
        "param": Tag(open=(opener,), end=(end,) if end else (), close=(close,)),
        "value_open": tuple(dict.fromkeys((value_open, value_open.strip()))) if value_open.strip() else (),
        "lines": before_value.endswith("\n") and text[text_param.end : text_param.end + 1] == "\n",
        "string_when": f"{type_attribute[1]}={type_attribute[2]}" if type_attribute else "",
    }


def _call_fields(
    before: str, head: str, after: str, calls: Sequence[ProbeCall], notes: DraftNotes
) -> dict[str, Any] | None:
    """Return the fields for the call and its section; None if they are not found.

    The marker next to the name belongs to the call, the others belong to the section.
    """
    before_tokens = tokenize(before)
    start = max((n for n, token in enumerate(before_tokens) if token.is_tag), default=-1)
    number_attribute = _ATTRIBUTE_PATTERN.match(head)
    end = (head[number_attribute.end() :] if number_attribute else head).strip().lstrip('"')
    between, _, after_last_name = after.partition(calls[1].name) if len(calls) > 1 else ("", "", after)
    ending_tokens = tokenize(after_last_name.partition(end)[2] if len(calls) > 1 and end else after_last_name)
    close = _join_tokens(ending_tokens[: closer_length(ending_tokens)])
    if start < 0 or not close:
        return None
    section_text = before[: before_tokens[start].start]
    section = il.Span(section_text.strip(), after_last_name.partition(close)[2].strip())
    between_tokens = tokenize(between)
    gap = (
        between[between_tokens[closer_length(between_tokens) - 1].end : between_tokens[-1].start]
        if between_tokens
        else ""
    )
    if len(calls) == 1:
        notes.append(
            ("shape.tagged_params", "The template renders one call only, so the text between two calls is unknown.")
        )
    return {
        "call": Tag(open=(before[before_tokens[start].start :],), end=(end,) if end else (), close=(close,)),
        "sections": (section,) if section.open else (),
        "call_gap": section_text[len(section_text.rstrip()) :] if section.open else gap,
        "param_gap": head[len(head.rstrip()) :],
        "shared_section": not section.open or section.open not in between,
        "numbered": number_attribute[1] if number_attribute else "",
    }


# ── line_params ───────────────────────────────────────────────────────────────────────────────────────────────────────


def guess_line_params(text: str, calls: Sequence[ProbeCall], notes: DraftNotes) -> Shape | None:
    """Guess `line_params`: each param on a line of its own."""
    before, name, remainder = text.partition(calls[0].name)
    params = _locate_params(text, calls[0])
    if not name or not params:
        return None
    name_end, *gap = remainder[: params[0].start - len(before + name)].split("\n")
    after_values = [text[param.end :].partition("\n") for param in params]
    separators = {text[param.key_end : param.value_start] for param in params}
    at_line_start = all(text[param.start - 1] == "\n" for param in params)
    if gap != [""] or not at_line_start or any(end.strip() for end, _, _ in after_values) or len(separators) != 1:
        return None
    separator = separators.pop()
    notes += [("shape", "The template renders no value of several lines: check `indent` and `block`.")]
    return LineParams(
        open=(before,),
        close=(after_values[-1][2].partition("\n")[0],),
        name_end=name_end,
        separators=tuple(dict.fromkeys((separator, separator.rstrip() or separator))),
    )


# ── literals and pythonic ─────────────────────────────────────────────────────────────────────────────────────────────


def guess_literals(text: str, calls: Sequence[ProbeCall], notes: DraftNotes) -> Shape | None:
    """Guess `literals`: `name{key:value}`, with a special token as the quote."""
    before, _, remainder = text.partition(calls[0].name)
    match = re.match(r"\{.*?town:(.+?)Rio Grande\1", remainder, re.S)
    openers = tokenize(before)[:1]
    closers = tokenize(text[text.rindex("}") + 1 :]) if "}" in text else []
    if match is None or not openers or not closers:
        return None
    quoted = f"days:{match[1]}17{match[1]}" in remainder
    if quoted:
        notes.append(
            ("shape.literals.quoted", "Numbers are quoted too, so the types come from the schemas of the tools.")
        )
    return Literals(
        open=openers[0].text,
        close=closers[0].text,
        quote=match[1],
        prefix=before[openers[0].end :],
        quoted="any" if quoted else "string",
        in_order=-1 < remainder.find("days") < remainder.index("town"),
    )


def guess_pythonic(text: str, calls: Sequence[ProbeCall], notes: DraftNotes) -> Shape | None:
    """Guess `pythonic`: `name(key=value)`."""
    before, _, remainder = text.partition(calls[0].name)
    match = re.match(r"\(.*?town\s*=\s*(['\"])Rio Grande\1", remainder, re.S)
    if match is None or ")" not in remainder:
        return None
    open, close = before.strip().removesuffix("["), remainder[remainder.rindex(")") + 1 :].strip().removeprefix("]")
    if not open:
        notes.append(
            ("shape.pythonic.bare", "No marker surrounds the calls, so normal text may be mistaken for a call.")
        )
    return Pythonic(
        sections=(il.Span(open, close),) if open else (),
        bare=not open,
        lines=not before.strip().endswith("["),
        quote="'" if match[1] == "'" else '"',
    )
