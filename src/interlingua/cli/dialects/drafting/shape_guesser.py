"""The shape of calls from text with calls that are known: told by where their names, keys and values stand in it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import interlingua as il
from interlingua.cli.dialects.drafting.params_guesser import literals, pythonic, tagged
from interlingua.cli.dialects.drafting.template_probe import Probe
from interlingua.cli.dialects.drafting.template_tokens import find_json, frame, json_at, tokens
from interlingua.errors import UsageError
from interlingua.parsing.dialect import Shape
from interlingua.parsing.shapes.framed_json.grammar import FramedJson
from interlingua.parsing.shapes.json_envelope.grammar import JsonEnvelope

__all__ = ["shape_of"]

Notes: TypeAlias = list[tuple[str, str]]
FENCE = "```"


def shape_of(text: str, calls: Sequence[Probe]) -> tuple[Shape | None, Notes]:
    """The first shape that fits, and what is not certain about it."""
    for reader in (_envelope, _framed, tagged, literals, pythonic):
        notes: Notes = []
        try:
            shape = reader(text, calls, notes)
            if shape is not None and shape.grammar(()).openers:
                return shape, notes
        except (IndexError, UsageError):  # what stands there does not do as a marker
            continue
    return None, []


# ── json_envelope ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _envelope(text: str, calls: Sequence[Probe], notes: Notes) -> Shape | None:
    """The name and the arguments in one object."""
    places: list[tuple[int, int]] = []
    for call in calls:
        at = text.find("{", places[-1][1] if places else 0)
        body, end = json_at(text, at) if at >= 0 else (None, 0)
        if not isinstance(body, dict) or not _has(body, call):
            return None
        places.append((at, end))
    (start, end), last = places[0], places[-1][1]
    between = text[end : places[1][0]] if len(places) > 1 else None
    around = _around_envelope(text[:start], between, text[last:], notes)
    template = _envelope_call(text[start:end], calls[0])
    if template is None:
        notes.append(("shape.json_envelope", "Where the arguments stand in a call's object was not found."))
        template = JsonEnvelope(open=()).call
    return JsonEnvelope(**around, **_envelope_keys(json_at(text, start)[0], calls[0]), call=template)


def _has(body: dict[str, Any], call: Probe) -> bool:
    inner = body.get("function")
    return call.name in body or call.name in map(str, body.values()) or (isinstance(inner, dict) and _has(inner, call))


def _envelope_call(body: str, call: Probe) -> str | None:
    """The object as a template."""
    name, id = json.dumps(call.name), json.dumps(call.id)
    start, end = find_json(body, call.args, 1)
    if start < 0:
        return None
    places = [(body.find(name), len(name), "$name"), (start, end - start, "$args"), (body.find(id), len(id), "$id")]
    written, at = "", 0
    for start, length, field in sorted(place for place in places if place[0] >= 0):
        written += body[at:start].replace("$", "$$") + field
        at = start + length
    return written + body[at:].replace("$", "$$")


def _envelope_keys(body: dict[str, Any], call: Probe) -> dict[str, Any]:
    known = JsonEnvelope(open=())
    keys: dict[str, Any] = {"name_is_key": True} if call.name in body else {}
    inner = body["function"] if isinstance(body.get("function"), dict) else body
    for key, value in {**body, **inner}.items():
        if value == call.name and key not in known.name_keys:
            keys["name_keys"] = (key,)
        elif value == call.args and key not in (*known.args_keys, call.name):
            keys["args_keys"] = (key,)
        elif value == call.id:
            keys["id_keys"] = (key,)
    return keys


def _around_envelope(before: str, between: str | None, after: str, notes: Notes) -> dict[str, Any]:
    around_each = frame(before, between, after)
    if around_each.open.strip():
        if around_each.section:
            notes.append(
                ("shape.json_envelope.open", f"Before it stands {around_each.section[0].open!r}, which was left out.")
            )
        around = _split(around_each.open, around_each.close) | {"between": around_each.between}
    else:
        around = _split(before, after) | {"between": between or "", "together": True}
    if around["close"] == (FENCE,):
        around |= {"close": (), "fences": (FENCE,)}
    if not around["open"]:
        around["bare"] = True
        notes.append(("shape.json_envelope.bare", "Nothing opens a call, so an answer in JSON may be taken for one."))
    return around


def _split(before: str, after: str) -> dict[str, Any]:
    """The markers, and what stands between them and the objects: white space, and the brackets of an array."""
    open, close = before.rstrip(" \n\t["), after.lstrip(" \n\t]")
    if before.endswith("]") or "[" in open:  # a control token: `[TOOL_CALLS]`
        open = before[: max(token.end for token in tokens(before) if token.text != "[")]
    lead, tail = before[len(open) :], after[: len(after) - len(close)]
    return {"open": (open,) if open else (), "close": (close,) if close else (), "lead": lead, "tail": tail}


# ── framed_json ───────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Framed:
    """One call: where its header begins and ends, and where its arguments do."""

    header: tuple[int, int]
    template: str
    args: tuple[int, int]


def _framed(text: str, calls: Sequence[Probe], notes: Notes) -> Shape | None:
    """The name outside, the arguments as one JSON object."""
    places: list[Framed] = []
    for call in calls:
        place = _place_framed(text, call, places[-1].args[1] if places else 0)
        if place is None:
            return None
        places.append(place)
    first, last = places[0], places[-1]
    between = text[first.args[1] : last.header[0]] if len(places) > 1 else None
    around_each = frame(text[: first.header[0]], between, text[last.args[1] :])
    separator = text[first.header[1] : first.args[0]]
    if not around_each.open.strip():
        notes.append(("shape.framed_json.open", "No marker opens each call."))
    fences: tuple[il.Span, ...] = ()
    close = around_each.close
    if FENCE in separator:
        inside = separator[len(separator.rstrip()) :]
        fences = (il.Span(separator.rstrip(), FENCE, inside=inside),)
        separator, close = "", close.partition(FENCE)[2]
    return FramedJson(
        open=(around_each.open,),
        header=(first.template,),
        args=(separator,) if separator else (),
        close=(close,) if close else (),
        sections=around_each.section,
        fences=fences,
        between=around_each.between,
    )


def _place_framed(text: str, call: Probe, start: int) -> Framed | None:
    at = text.find(call.name, start)
    end = at + len(call.name)
    args = find_json(text, call.args, end)
    if at < 0 or args[0] < 0 or text[at - 1 : at] == '"' == text[end : end + 1]:
        return None
    id_at = text.find(call.id, start, args[0])
    id_end = id_at + len(call.id)
    if id_at < 0:
        return Framed((at, end), "{name}", args)
    if id_at <= at < id_end:
        return Framed((id_at, id_end), re.sub(r"\d+$", "{n}", call.id.replace(call.name, "{name}")), args)
    if id_at < at:
        return Framed((id_at, end), f"{{id}}{text[id_end:at]}{{name}}", args)
    return Framed((at, id_end), f"{{name}}{text[end:id_at]}{{id}}", args)
