"""Shape guesser: derive the shape from the positions of known names, keys and values in the rendered text."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import interlingua as il
from interlingua.cli.dialects.drafting.params_guesser import (
    DraftNotes,
    guess_line_params,
    guess_literals,
    guess_pythonic,
    guess_tagged_params,
)
from interlingua.cli.dialects.drafting.template_probe import ProbeCall
from interlingua.cli.dialects.drafting.template_tokens import decode_json_at, find_json, split_frame, tokenize
from interlingua.errors import UsageError
from interlingua.parsing.dialect import Shape
from interlingua.parsing.shapes.framed_json.grammar import FramedJson
from interlingua.parsing.shapes.json_envelope.grammar import JsonEnvelope

__all__ = ["guess_shape"]

CODE_FENCE = "```"
_NUMBER = re.compile(r"(\d+)")


def guess_shape(text: str, calls: Sequence[ProbeCall]) -> tuple[Shape | None, DraftNotes]:
    """Return the first shape that matches (None without any), and notes about what is uncertain."""
    params_guessers = (guess_tagged_params, guess_line_params, guess_literals, guess_pythonic)
    for guesser in (_guess_envelope, _guess_framed, *params_guessers):
        notes: DraftNotes = []
        try:
            shape = guesser(text, calls, notes)
            if shape is not None and shape.grammar(()).openers:
                return shape, notes
        except (IndexError, ValueError, UsageError):  # the text at this position cannot be a marker
            continue
    return None, []


# ── json_envelope ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _guess_envelope(text: str, calls: Sequence[ProbeCall], notes: DraftNotes) -> Shape | None:
    """Guess `json_envelope`: name and arguments in one JSON object."""
    positions: list[tuple[int, int]] = []
    for call in calls:
        object_start = text.find("{", positions[-1][1] if positions else 0)
        body, end = decode_json_at(text, object_start) if object_start >= 0 else (None, 0)
        if not isinstance(body, dict) or not _has_call(body, call):
            return None
        positions.append((object_start, end))
    (start, end), last = positions[0], positions[-1][1]
    between = text[end : positions[1][0]] if len(positions) > 1 else None
    markers = _envelope_markers(text[:start], between, text[last:], notes)
    templates = [_envelope_template(text[slice(*body)], call) for body, call in zip(positions, calls, strict=True)]
    template = _with_number(templates)
    if template is None:
        notes.append(("shape.json_envelope", "The position of the arguments in the call object was not found."))
        template = JsonEnvelope(open=()).call
    return JsonEnvelope(**markers, **_envelope_keys(decode_json_at(text, start)[0], calls[0]), call=template)


def _has_call(body: dict[str, Any], call: ProbeCall) -> bool:
    inner = body.get("function")
    return (
        call.name in body
        or call.name in map(str, body.values())
        or (isinstance(inner, dict) and _has_call(inner, call))
    )


def _envelope_template(body: str, call: ProbeCall) -> str | None:
    """Return the call object as a template with $name, $args and $id; None if the arguments are not found."""
    name, id = json.dumps(call.name), json.dumps(call.id)
    start, end = find_json(body, call.args, 1)
    if start < 0:
        return None
    positions = [(body.find(name), len(name), "$name"), (start, end - start, "$args"), (body.find(id), len(id), "$id")]
    template, position = "", 0
    for start, length, field in sorted(place for place in positions if place[0] >= 0):
        template += body[position:start].replace("$", "$$") + field
        position = start + length
    return template + body[position:].replace("$", "$$")


def _with_number(templates: Sequence[str | None]) -> str | None:
    """Return the first template, with $number in place of a number that counts the calls from 0."""
    first, *others = templates
    if first is None or not others or others[0] is None:
        return first
    pieces, pieces_of_second = _NUMBER.split(first), _NUMBER.split(others[0])
    differing = [pair for pair in zip(pieces, pieces_of_second, strict=False) if pair[0] != pair[1]]
    if not differing or len(pieces) != len(pieces_of_second) or set(differing) != {("0", "1")}:
        return first
    pairs = zip(pieces, pieces_of_second, strict=True)
    return "".join(piece if piece == other else "$number" for piece, other in pairs)


def _envelope_keys(body: dict[str, Any], call: ProbeCall) -> dict[str, Any]:
    defaults = JsonEnvelope(open=())
    keys: dict[str, Any] = {"name_is_key": True} if call.name in body else {}
    inner = body["function"] if isinstance(body.get("function"), dict) else body
    for key, value in {**body, **inner}.items():
        if value == call.name and key not in defaults.name_keys:
            keys["name_keys"] = (key,)
        elif value == call.args and key not in (*defaults.args_keys, call.name):
            keys["args_keys"] = (key,)
        elif value == call.id:
            keys["id_keys"] = (key,)
    return keys


def _envelope_markers(before: str, between: str | None, after: str, notes: DraftNotes) -> dict[str, Any]:
    call_frame = split_frame(before, between, after)
    if call_frame.open.strip():
        if call_frame.section:
            notes.append(
                ("shape.json_envelope.open", f"The marker {call_frame.section[0].open!r} before it was left out.")
            )
        markers = _split_markers(call_frame.open, call_frame.close) | {"between": call_frame.between}
    else:
        markers = _split_markers(before, after) | {"between": between or "", "together": True}
    if markers["close"] == (CODE_FENCE,):
        markers |= {"close": (), "fences": (CODE_FENCE,)}
    if not markers["open"]:
        markers["bare"] = True
        notes.append(
            ("shape.json_envelope.bare", "No marker opens a call, so an answer in JSON may be mistaken for a call.")
        )
    return markers


def _split_markers(before: str, after: str) -> dict[str, Any]:
    """Return the markers, and the whitespace and array brackets between them and the objects."""
    open, close = before.rstrip(" \n\t["), after.lstrip(" \n\t]")
    if before.endswith("]") or "[" in open:  # a control token: `[TOOL_CALLS]`
        open = before[: max(token.end for token in tokenize(before) if token.text != "[")]
    lead, tail = before[len(open) :], after[: len(after) - len(close)]
    return {"open": (open,) if open else (), "close": (close,) if close else (), "lead": lead, "tail": tail}


# ── framed_json ───────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class FramedCall:
    """Positions (start, end) of the header and the arguments of one call, and the header as a template."""

    header: tuple[int, int]
    template: str
    args: tuple[int, int]


def _guess_framed(text: str, calls: Sequence[ProbeCall], notes: DraftNotes) -> Shape | None:
    """Guess `framed_json`: the name in a header, the arguments as one JSON object."""
    framed_calls: list[FramedCall] = []
    for call in calls:
        framed_call = _locate_framed_call(text, call, framed_calls[-1].args[1] if framed_calls else 0)
        if framed_call is None:
            return None
        framed_calls.append(framed_call)
    first, last = framed_calls[0], framed_calls[-1]
    between = text[first.args[1] : last.header[0]] if len(framed_calls) > 1 else None
    call_frame = split_frame(text[: first.header[0]], between, text[last.args[1] :])
    separator = text[first.header[1] : first.args[0]]
    if not call_frame.open.strip():
        notes.append(("shape.framed_json.open", "No marker opens each call."))
    fences: tuple[il.Span, ...] = ()
    close = call_frame.close
    if CODE_FENCE in separator:
        inside = separator[len(separator.rstrip()) :]
        fences = (il.Span(separator.rstrip(), CODE_FENCE, inside=inside),)
        separator, close = "", close.partition(CODE_FENCE)[2]
    return FramedJson(
        open=(call_frame.open,),
        header=(first.template,),
        args=(separator,) if separator else (),
        close=(close,) if close else (),
        sections=call_frame.section,
        fences=fences,
        between=call_frame.between,
    )


def _locate_framed_call(text: str, call: ProbeCall, start: int) -> FramedCall | None:
    name_start = text.find(call.name, start)
    name_end = name_start + len(call.name)
    args = find_json(text, call.args, name_end)
    if name_start < 0 or args[0] < 0 or text[name_start - 1 : name_start] == '"' == text[name_end : name_end + 1]:
        return None
    id_start = text.find(call.id, start, args[0])
    id_end = id_start + len(call.id)
    if id_start < 0:
        return FramedCall((name_start, name_end), "{name}", args)
    if id_start <= name_start < id_end:
        return FramedCall((id_start, id_end), re.sub(r"\d+$", "{n}", call.id.replace(call.name, "{name}")), args)
    if id_start < name_start:
        return FramedCall((id_start, name_end), f"{{id}}{text[id_end:name_start]}{{name}}", args)
    return FramedCall((name_start, id_end), f"{{name}}{text[name_end:id_start]}{{id}}", args)
