"""The shapes whose params are not JSON, from text with calls that are known: elements, or literals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import interlingua as il
from interlingua.cli.dialects.drafting.template_probe import Probe
from interlingua.cli.dialects.drafting.template_tokens import Token, alike, closer, find_json, tokens
from interlingua.parsing.dialect import Shape
from interlingua.parsing.shapes.literals.grammar import Literals
from interlingua.parsing.shapes.literals.pythonic_grammar import Pythonic
from interlingua.parsing.shapes.tagged_params.grammar import TaggedParams
from interlingua.parsing.shapes.tagged_params.tag import Tag

__all__ = ["literals", "pythonic", "tagged"]

Notes: TypeAlias = list[tuple[str, str]]
_ATTRIBUTE = re.compile(r'"?\s+(\w+)="(\w+)"')


@dataclass(frozen=True)
class _Param:
    """Where a param stands: its key from `start` to `key_end`, its value from `value` to `end`."""

    is_text: bool
    start: int
    key_end: int
    value: int
    end: int


def _params(text: str, call: Probe) -> list[_Param]:
    """Every param, in the order of the text; none if one is missing."""
    at = text.find(call.name) + len(call.name)
    params: list[_Param] = []
    for key, value in sorted(call.args.items(), key=lambda param: text.find(param[0], at)):
        start = text.find(key, at)
        begin, end = find_json(text, value, start) if isinstance(value, dict) else (-1, 0)
        if begin < 0:
            begin = text.find(str(value), start + len(key))
            end = begin + len(str(value))
        if start < 0 or begin < 0:
            return []
        params.append(_Param(isinstance(value, str), start, start + len(key), begin, end))
        at = end
    return params


# ── tagged_params ─────────────────────────────────────────────────────────────────────────────────────────────────────


def tagged(text: str, calls: Sequence[Probe], notes: Notes) -> Shape | None:
    """Each value in an element of its own."""
    name, params = calls[0].name, _params(text, calls[0])
    if name not in text or len(params) < 2:
        return None
    before = text.partition(name)[0]
    first, second = params[:2]
    head, to_next = text[len(before) + len(name) : first.start], text[first.end : second.start]
    opener = _opener(tokens(head), tokens(to_next))
    close = to_next.removesuffix(opener).strip()
    if not opener or not close:
        return None
    after = text[params[-1].end :].partition(close)[2]
    around = _around_elements(before, head.removesuffix(opener), after, calls, notes)
    if around is None:
        return None
    return TaggedParams(**around, **_param_fields(text, params, opener, close))


def _opener(before_first: list[Token], before_second: list[Token]) -> str:
    """What stands before both keys, from its last tag on."""
    count = alike(before_first[::-1], before_second[::-1])
    shared = before_first[-count:] if count else []
    start = max((n for n, token in enumerate(shared) if token.is_tag), default=0)
    return _joined(shared[start:])


def _joined(parts: Sequence[Token]) -> str:
    """Tokens as they stand in their text, one space for any."""
    text = ""
    for n, part in enumerate(parts):
        text += " " + part.text if n and part.start > parts[n - 1].end else part.text
    return text


def _param_fields(text: str, params: list[_Param], opener: str, close: str) -> dict[str, Any]:
    shown = next(param for param in params if param.is_text)
    to_value = text[shown.key_end : shown.value]
    others = {text[param.key_end : param.value] for param in params if not param.is_text}
    attribute = _ATTRIBUTE.match(to_value)
    typed = attribute if attribute and to_value not in others else None
    ends = tokens(to_value[attribute.end() if attribute else 0 :].lstrip('"'))
    end = ends[0].text if ends else ""
    value_open = to_value.partition(end)[2] if len(ends) > 1 else ""
    return {
        "param": Tag(open=(opener,), end=(end,) if end else (), close=(close,)),
        "value_open": tuple(dict.fromkeys((value_open, value_open.strip()))) if value_open.strip() else (),
        "lines": to_value.endswith("\n") and text[shown.end : shown.end + 1] == "\n",
        "string_when": f"{typed[1]}={typed[2]}" if typed else "",
    }


def _around_elements(before: str, head: str, after: str, calls: Sequence[Probe], notes: Notes) -> dict[str, Any] | None:
    """What stands around a call: the marker next to its name is its own, the others are a section's."""
    first = tokens(before)
    start = max((n for n, token in enumerate(first) if token.is_tag), default=-1)
    number = _ATTRIBUTE.match(head)
    end = (head[number.end() :] if number else head).strip().lstrip('"')
    between, _, last = after.partition(calls[1].name) if len(calls) > 1 else ("", "", after)
    ending = tokens(last.partition(end)[2] if len(calls) > 1 and end else last)
    close = _joined(ending[: closer(ending)])
    if start < 0 or not close:
        return None
    outer = before[: first[start].start]
    section = il.Span(outer.strip(), last.partition(close)[2].strip())
    inner = tokens(between)
    gap = between[inner[closer(inner) - 1].end : inner[-1].start] if inner else ""
    if len(calls) == 1:
        notes.append(
            ("shape.tagged_params", "The template writes one call only: what stands between two is not known.")
        )
    return {
        "call": Tag(open=(before[first[start].start :],), end=(end,) if end else (), close=(close,)),
        "sections": (section,) if section.open else (),
        "call_gap": outer[len(outer.rstrip()) :] if section.open else gap,
        "param_gap": head[len(head.rstrip()) :],
        "shared_section": not section.open or section.open not in between,
        "numbered": number[1] if number else "",
    }


# ── literals and pythonic ─────────────────────────────────────────────────────────────────────────────────────────────


def literals(text: str, calls: Sequence[Probe], notes: Notes) -> Shape | None:
    """`name{key:value}`, with a token of its own around strings."""
    before, _, rest = text.partition(calls[0].name)
    shown = re.match(r"\{.*?town:(.+?)Rio Grande\1", rest, re.S)
    opener = tokens(before)[:1]
    closer = tokens(text[text.rindex("}") + 1 :]) if "}" in text else []
    if shown is None or not opener or not closer:
        return None
    quoted = f"days:{shown[1]}17{shown[1]}" in rest
    if quoted:
        notes.append(("shape.literals.quoted", "Numbers stand in quotes as well, so the tools' schemas have to tell."))
    return Literals(
        open=opener[0].text,
        close=closer[0].text,
        quote=shown[1],
        prefix=before[opener[0].end :],
        quoted="any" if quoted else "string",
        in_order=-1 < rest.find("days") < rest.index("town"),
    )


def pythonic(text: str, calls: Sequence[Probe], notes: Notes) -> Shape | None:
    """`name(key=value)`, as Python writes it."""
    before, _, rest = text.partition(calls[0].name)
    shown = re.match(r"\(.*?town\s*=\s*(['\"])Rio Grande\1", rest, re.S)
    if shown is None or ")" not in rest:
        return None
    open, close = before.strip().removesuffix("["), rest[rest.rindex(")") + 1 :].strip().removeprefix("]")
    if not open:
        notes.append(("shape.pythonic.bare", "Nothing stands around the calls, so an answer may be taken for one."))
    return Pythonic(
        sections=(il.Span(open, close),) if open else (),
        bare=not open,
        lines=not before.strip().endswith("["),
        quote="'" if shown[1] == "'" else '"',
    )
