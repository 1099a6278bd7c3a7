r"""Response templates of Hugging Face's transformers: how a reply is split into thinking, text and calls.

A template names regions of the text by the literals or regular expressions around them. It reads what the model's own
chat template writes, and little else: it has no rules for malformed calls.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from string import Template
from typing import Any

from interlingua.errors import NotExpressible
from interlingua.exports.arguments.base import SAMPLE_KEY, SAMPLE_STRING
from interlingua.exports.calls import SAMPLE_ID, SAMPLE_NUMBER, CallFrame, CallsGrammar
from interlingua.exports.grammar import GrammarBuilder
from interlingua.parsing.dialect import Dialect
from interlingua.parsing.shapes.channels.grammar import Channels, ChannelsGrammar
from interlingua.parsing.shapes.json_envelope.grammar import JsonEnvelope
from interlingua.parsing.shapes.line_params.grammar import LineParams
from interlingua.parsing.shapes.literals.grammar import Literals
from interlingua.parsing.shapes.literals.pythonic_grammar import Pythonic
from interlingua.parsing.shapes.tagged_params.grammar import TaggedParams, TaggedParamsGrammar

__all__ = ["write_response_template"]

NO_ANCHOR = r"\A"
"""Pattern of an anchor that keeps all of the prompt."""
SAMPLE_NAME = "qzname"
NAME_PATTERN = r"[\w.:/\-]+"
KEY_PATTERN = r"[^<>\"']+?"
FUNCTION = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}
_LINE_BREAK = re.compile(r"\s*\n\s*")


def write_response_template(dialect: Dialect, start_anchor: str = "") -> dict[str, Any]:
    """Return the response template of a dialect.

    Args:
        dialect: The dialect.
        start_anchor: The text that the chat template writes before a reply, such as `<|im_start|>assistant\n`. Without
            it, the template is right only for prompts that contain no earlier reply.

    Raises:
        NotExpressible: Templates cannot describe the dialect's calls.
    """
    anchor = {"start_anchor": start_anchor} if start_anchor else {"start_anchor_pattern": NO_ANCHOR}
    fields = _message_fields(dialect) if isinstance(dialect.shape, Channels) else _span_fields(dialect)
    return {"version": 1, "defaults": {"role": "assistant"}, **anchor, "fields": fields}


def _span_fields(dialect: Dialect) -> dict[str, Any]:
    """Return the fields of a dialect with spans. Its text is what is left, without markers that mean nothing."""
    calls, around_calls = _call_field(dialect)
    # A marker with which a region begins would be dropped before the rest of it has arrived.
    openers = [*(span.open for span in dialect.thinking), *(dialect.grammar.openers if dialect.grammar else ())]
    candidates = [*around_calls, *dialect.noise, *dialect.text_markers]
    dropped = [marker for marker in candidates if not _begins_another(marker, (*openers, *candidates))]
    fields: dict[str, Any] = {}
    if dialect.thinking:
        spans = [span for span in dialect.thinking if not _begins_another(span.open, openers)]
        fields["thinking"] = {
            "open": _one_or_list(span.open for span in spans),
            "close": _one_or_list(span.close for span in spans),
            "repeats": True,
            "join": "",
        }
    fields["tool_calls"] = calls
    fields["content"] = {**({"close": _one_or_list(dropped)} if dropped else {}), "repeats": True, "join": ""}
    return fields


def _begins_another(marker: str, markers: Iterable[str]) -> bool:
    return any(other.startswith(marker) and other != marker for other in markers)


def _message_fields(dialect: Dialect) -> dict[str, Any]:
    """Return the fields of a dialect with messages. Everything outside of them is dropped."""
    shape = dialect.shape
    assert isinstance(shape, Channels)
    texts = [span for span in (shape.answer, shape.text) if span]
    ends = [*shape.ends, *([shape.last_end] if shape.last_end else [])]
    calls, _ = _call_field(dialect)
    text_fields = {"close": _one_or_list(ends), "repeats": True, "join": ""}
    return {
        "thinking": {"open": shape.thinking.open, **text_fields},
        "tool_calls": calls,
        "content": {"open": _one_or_list(span.open for span in texts), **text_fields},
    }


def _call_field(dialect: Dialect) -> tuple[dict[str, Any], list[str]]:
    """Return the field of calls, and the markers around calls that mean nothing."""
    frame = CallsGrammar(dialect, GrammarBuilder()).frame(SAMPLE_NAME)
    shape = dialect.shape
    match shape:
        case JsonEnvelope():
            return _envelope_field(shape), []
        case Literals():
            arguments = {"unquoted_keys": True, "string_delims": [[shape.quote, shape.quote]]}
            opening = _pattern(frame.open + frame.head.removesuffix("{")) + r"(?=\{)"
            field = {"open_pattern": opening, "close": shape.close, "content": "json", "content_args": arguments}
            return {**field, "repeats": True, "transform": FUNCTION}, []
        case Pythonic() | LineParams():
            raise NotExpressible(f"calls of the shape {shape.NAME}: templates read JSON and tags", "use another format")
    if any(marker.startswith(frame.head.split(SAMPLE_NAME)[0]) for marker in dialect.text_markers):
        raise NotExpressible("text is written like a call of a tool", "use another format")
    body = _tagged_body(dialect) if _tagged_shape(dialect) else {"content": "json"}
    return _framed_field(frame, body), [marker.strip() for marker in (frame.open, frame.close) if marker.strip()]


def _framed_field(frame: CallFrame, body: dict[str, Any]) -> dict[str, Any]:
    """Return the field of calls whose name is in the text before the arguments."""
    end = frame.tail.strip() or frame.separator.strip() or frame.close.strip()
    closing = _pattern(end) if end else f"(?={_pattern(frame.head.split(SAMPLE_NAME)[0])})"
    has_id = SAMPLE_ID in frame.head
    transform = {**FUNCTION, "id": "{id}"} if has_id else FUNCTION
    return {
        "open_pattern": _pattern(frame.head),
        "close_pattern": closing,
        **body,
        "repeats": True,
        "transform": transform,
    }


def _envelope_field(shape: JsonEnvelope) -> dict[str, Any]:
    """Return the field of calls that are JSON objects."""
    name, arguments, id_ = _call_keys(shape)
    is_array = shape.together and shape.lead.strip().endswith("[")
    if shape.together and not is_array and not shape.open[0].endswith("["):
        raise NotExpressible("several objects between two markers, without an array", "use another format")
    if shape.open[0].endswith("["):
        raise NotExpressible("an array whose bracket is part of the opening marker", "use another format")
    prefix = "" if is_array else "content."
    function = {"name": f"{{{prefix}{name}}}", "arguments": f"{{{prefix}{arguments}}}"}
    transform = {"type": "function", "function": function, **({"id": f"{{{prefix}{id_}}}"} if id_ else {})}
    each = {"transform_each": True} if is_array else {"repeats": True}
    return {**_envelope_limits(shape), "content": "json", **each, "transform": transform}


def _envelope_limits(shape: JsonEnvelope) -> dict[str, Any]:
    closers = [*shape.close, *shape.fences] if shape.write_close else []
    if shape.bare:
        if not shape.lead.startswith("["):
            raise NotExpressible("calls without markers and without an array", "use another format")
        return {"open_pattern": rf"(?={re.escape(shape.lead)}\{{)"}
    if closers:
        return {"open": _one_or_list(shape.open), "close": _one_or_list(closers)}
    if shape.together:
        return {"open": _one_or_list(shape.open)}
    return {"open": _one_or_list(shape.open), "close_pattern": f"(?={'|'.join(map(re.escape, shape.open))})"}


def _call_keys(shape: JsonEnvelope) -> tuple[str, str, str]:
    """Return the keys of the name, the arguments and the id in a call."""
    written = Template(shape.call).substitute(name='"N"', args='"A"', id='"I"', number="0")
    keys = {value: key for key, value in json.loads(written).items()}
    if shape.name_is_key:
        raise NotExpressible("the name of the tool is the key of its arguments", "use another format")
    return keys["N"], keys["A"], keys.get("I", "")


# ── params in tags ────────────────────────────────────────────────────────────────────────────────────────────────────


def _tagged_shape(dialect: Dialect) -> tuple[TaggedParams, TaggedParamsGrammar] | None:
    shape, grammar = dialect.shape, dialect.grammar
    if isinstance(shape, Channels) and isinstance(grammar, ChannelsGrammar):
        shape, grammar = shape.body, grammar.body_grammar
    return (shape, grammar) if isinstance(shape, TaggedParams) and isinstance(grammar, TaggedParamsGrammar) else None


def _tagged_body(dialect: Dialect) -> dict[str, Any]:
    """Return the content of calls whose params are elements."""
    tagged = _tagged_shape(dialect)
    assert tagged
    shape, grammar = tagged
    if shape.nested or shape.nested_types:
        raise NotExpressible("params that contain elements: templates read one level of tags", "use another format")
    heads: dict[str, None] = {}
    samples: tuple[Any, ...] = (SAMPLE_STRING, SAMPLE_NUMBER, True, None, [], {})
    for value in samples:
        written = grammar.write_param(SAMPLE_KEY, value)
        head, _, close = written.rpartition(value if isinstance(value, str) else json.dumps(value))
        before, _, after = head.partition(SAMPLE_KEY)
        heads[_exact_pattern(after)] = None
    quote_open, quote_close = (
        (f"(?:{re.escape(mark)})?" for mark in (shape.quote.open, shape.quote.close)) if shape.quote else ("", "")
    )
    after_key = next(iter(heads)) if len(heads) == 1 else f"(?:{'|'.join(heads)})"
    value = f"{quote_open}(?P<value>.*?){quote_close}"
    tag = f"{_pattern(before)}(?P<key>{KEY_PATTERN}){after_key}{value}{_exact_pattern(close)}"
    return {"content": "xml-inline", "content_args": {"tag_pattern": tag}}


# ── patterns ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _pattern(text: str) -> str:
    """Return a pattern for a text with sample values. Line breaks may be missing, or other white space."""
    pattern = r"\s*".join(map(re.escape, _LINE_BREAK.split(text)))
    pattern = pattern.replace(SAMPLE_NAME, f"(?P<name>{NAME_PATTERN})", 1).replace(SAMPLE_NAME, "(?P=name)")
    return pattern.replace(SAMPLE_ID, rf"(?P<id>{NAME_PATTERN})").replace(str(SAMPLE_NUMBER), r"\d+")


def _exact_pattern(text: str) -> str:
    """Return a pattern for text next to a value. Only a line break may be missing: other white space is the value's."""
    return re.escape(text).replace("\\\n", r"\n?")


def _one_or_list(literals: Iterable[str]) -> str | list[str]:
    unique = list(dict.fromkeys(filter(None, literals)))
    return unique[0] if len(unique) == 1 else unique
