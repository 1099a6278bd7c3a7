r"""Reader for Hugging Face's response templates: a dialect from the `response_template` of a tokenizer_config.json.

A template describes regions by literals or regular expressions. Of these, the reader knows what describes text with a
name in it: `<tool_call>\s*<function=(?P<name>\w+)>`. Anything else is refused with the part that it does not know.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from interlingua.common.schema.resolver import as_list, as_mapping
from interlingua.dialects.validation import check_dialect
from interlingua.errors import BadInput, InterlinguaError
from interlingua.parsing.dialect import Dialect, Shape, Span
from interlingua.parsing.shapes.framed_json.grammar import FramedJson
from interlingua.parsing.shapes.json_envelope.grammar import JsonEnvelope
from interlingua.parsing.shapes.literals.grammar import Literals
from interlingua.parsing.shapes.tagged_params.grammar import TaggedParams
from interlingua.parsing.shapes.tagged_params.tag import Tag

__all__ = ["TEMPLATE_KEY", "dialect_from_template"]

TEMPLATE_KEY = "response_template"
"""Key of the template in a tokenizer_config.json."""
THINKING_FIELDS = ("thinking", "reasoning", "reasoning_content")
HINT = "describe the dialect in YAML instead: see `interlingua dialects draft --help`"
_PATTERN_PART = re.compile(
    r"""\(\?P<(?P<group>\w+)>(?:\\.|\[(?:\\.|[^\]])*\]|[^()\\\[])*\)  # a named group
    |(?P<space>\\s[*+]?\??)
    |(?P<newline>\\n\??)
    |(?P<digits>\\d[*+]?)
    |\\(?P<escaped>\W)
    |(?P<literal>[^\\()\[\]{}.*+?|^$])""",
    re.X | re.S,
)
_PLACEHOLDER = re.compile(r"\{(?:content\.)?(\w+)\}")
_LAST_TAG = re.compile(r"(.*?)(<[^<>]*>?)", re.S)
_ATTRIBUTE = re.compile(r'(.*?)(\w+)="', re.S)


class _Pattern(NamedTuple):
    """A regular expression that describes texts with values between them."""

    texts: tuple[str, ...]
    """The texts: before the first value, between two values, and after the last one."""
    values: tuple[str, ...]
    """The names of the values: those of the groups, and `n` for a number."""
    has_space: bool = False
    """True if white space is allowed between the texts."""
    lines_around: str = ""
    """The value with a line break before it, if there is one."""


def _read_pattern(pattern: str) -> _Pattern:
    """Read a regular expression.

    Raises:
        BadInput: It contains more than texts, white space and named groups.
    """
    texts, values, position = [""], list[str](), 0
    has_space, lines_around, after_newline = False, "", False
    while position < len(pattern):
        match = _PATTERN_PART.match(pattern, position)
        if match is None:
            raise BadInput(f"the pattern {pattern!r} contains {pattern[position : position + 20]!r}", HINT)
        if value := match["group"] or (match["digits"] and "n"):
            values.append(value)
            texts.append("")
            lines_around = value if after_newline else lines_around
        else:
            texts[-1] += match["escaped"] or match["literal"] or ""
        after_newline = match["newline"] is not None
        has_space = has_space or match["space"] is not None
        position = match.end()
    return _Pattern(tuple(texts), tuple(values), has_space, lines_around)


def dialect_from_template(config: Mapping[str, Any], source_name: str) -> Dialect:
    """Return the dialect that a response template describes.

    Args:
        config: The content of a tokenizer_config.json.
        source_name: The name of the file in errors.

    Raises:
        BadInput: The template contains something that no dialect can express.
    """
    try:
        dialect = _read_template(as_mapping(config[TEMPLATE_KEY]))
    except InterlinguaError as error:
        raise BadInput(f"{source_name}: {TEMPLATE_KEY}: {error}", error.hint or HINT) from error
    check_dialect(dialect, source_name)
    openers = dialect.grammar.openers if dialect.grammar else ()
    if any(span.open.startswith(openers) for span in (*dialect.thinking, *dialect.text)):
        problem = "thinking or text begins like a call: messages with headers"
        raise BadInput(f"{source_name}: {TEMPLATE_KEY}: {problem}", HINT)
    return dialect


def _read_template(template: Mapping[str, Any]) -> Dialect:
    fields = {name: as_mapping(field) for name, field in as_mapping(template.get("fields")).items()}
    calls, content = fields.get("tool_calls"), fields.get("content", {})
    if calls is None:
        raise BadInput("it has no field tool_calls", HINT)
    thinking = next((fields[name] for name in THINKING_FIELDS if name in fields), {})
    text = _spans(content) if "open" in content else ()
    return Dialect(
        name="response_template",
        summary="read from a response template",
        shape=_read_calls(calls),
        thinking=_spans(thinking),
        text=text,
        noise=() if text else _literals(content, "close"),
        special_tokens=False,
        trim="\n",
    )


def _spans(field: Mapping[str, Any]) -> tuple[Span, ...]:
    openers, closers = _literals(field, "open"), _literals(field, "close")
    pairs = zip(openers, (*closers, *closers[-1:] * len(openers)), strict=False)
    return tuple(Span(open_, close) for open_, close in pairs)


def _literals(field: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = field.get(key)
    return (value,) if isinstance(value, str) else tuple(map(str, as_list(value)))


# ── calls ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _read_calls(field: Mapping[str, Any]) -> Shape:
    content, arguments = field.get("content"), as_mapping(field.get("content_args"))
    if content == "json" and arguments.get("string_delims"):
        return _read_literals(field, arguments)
    if content == "json":
        return _read_envelope(field) if "open" in field else _read_framed(field)
    if content == "xml-inline":
        return _read_tagged(field, str(arguments.get("tag_pattern", "")))
    raise BadInput(f"tool_calls: content {content!r}", HINT)


def _read_envelope(field: Mapping[str, Any]) -> JsonEnvelope:
    function = as_mapping(field.get("transform")).get("function")
    name, arguments = "name", "arguments"
    if isinstance(function, Mapping):
        name, arguments = (_placeholder(function.get(key), key) for key in (name, arguments))
    is_array = field.get("transform_each") is True
    closers = _literals(field, "close")
    return JsonEnvelope(
        open=_literals(field, "open"),
        close=closers,
        write_close=bool(closers),
        name_keys=tuple(dict.fromkeys((name, "name", "tool_name"))),
        args_keys=tuple(dict.fromkeys((arguments, "arguments", "parameters", "args", "input"))),
        call=f'{{"{name}": $name, "{arguments}": $args}}',
        together=is_array,
        lead="[" if is_array else "",
        between=", " if is_array else "",
        tail="]" if is_array else "",
    )


def _placeholder(value: object, key: str) -> str:
    match = _PLACEHOLDER.fullmatch(str(value))
    if match is None:
        raise BadInput(f"tool_calls: transform: {key} is {value!r}", HINT)
    return match[1]


def _read_framed(field: Mapping[str, Any]) -> FramedJson:
    head = _read_head(field)
    open_, header = _split_header(head)
    return FramedJson(open=(open_,), header=(header,), args=(head.texts[-1],), close=_closers(field) or ("",))


def _read_head(field: Mapping[str, Any], following: str = "") -> _Pattern:
    """Read the pattern of the text before the arguments. `following` is what it may look at behind that text."""
    pattern = str(field.get("open_pattern", "")).removesuffix(following)
    head = _read_pattern(pattern)
    if "name" not in head.values:
        raise BadInput(f"tool_calls: the open_pattern {pattern!r} has no group `name`", HINT)
    return head


def _split_header(head: _Pattern) -> tuple[str, str]:
    """Split the text up to the arguments into the opening marker and the template of the header after it."""
    first, *others = head.texts[:-1]
    end_of_marker = max(first.rfind(end) for end in ">]") + 1 or len(first)
    header = first[end_of_marker:]
    for value, text in zip(head.values, (*others, ""), strict=True):
        header += f"{{{value}}}{text}"
    return first[:end_of_marker], header


def _read_literals(field: Mapping[str, Any], arguments: Mapping[str, Any]) -> Literals:
    open_, header = _split_header(_read_head(field, r"(?=\{)"))
    quote = _first_text(arguments["string_delims"])
    return Literals(
        open=open_, close="".join(_closers(field)), quote=quote, prefix=header.removesuffix("{name}"), quoted="typed"
    )


def _read_tagged(field: Mapping[str, Any], tag_pattern: str) -> TaggedParams:
    head, param = _read_pattern(str(field.get("open_pattern", ""))), _read_pattern(tag_pattern)
    tags = _LAST_TAG.fullmatch(head.texts[0])
    if head.values != ("name",) or param.values != ("key", "value") or tags is None:
        raise BadInput(f"tool_calls: the tags of {field.get('open_pattern')!r} and {tag_pattern!r}", HINT)
    section, call_open = tags.groups()
    closers = re.findall(r"<[^<>]*>", "".join(_closers(field)))
    if section and len(closers) == 1:  # a template needs only the last of the closing tags
        closers.insert(0, f"</{''.join(re.findall(r'[a-zA-Z:_]+', call_open)[:1])}>")
    if section and len(closers) < 2:
        raise BadInput(f"tool_calls: no closing tag for {section!r}", HINT)
    before_key, after_key, after_value = param.texts
    end, bracket, value_open = after_key.partition(">")
    gap = "\n" if head.has_space else ""
    return TaggedParams(
        call=_tag(call_open, head.texts[1], "".join(closers[:1])),
        param=_tag(before_key, end + bracket, after_value),
        value_open=(value_open,) if value_open else (),
        sections=(Span(section, closers[1]),) if section else (),
        shared_section=False,
        lines=param.lines_around == "value",
        call_gap=gap,
        param_gap=gap,
    )


def _first_text(delimiters: object) -> str:
    """Return the opening mark of the first pair of `string_delims`."""
    match delimiters:
        case [[str(quote), *_], *_]:
            return quote
        case _:
            raise BadInput(f"tool_calls: string_delims is {delimiters!r}", HINT)


def _tag(before: str, after: str, close: str) -> Tag:
    """Return a tag with the name between these texts: directly, or in an attribute."""
    attribute = _ATTRIBUTE.fullmatch(before)
    if attribute is None:
        return Tag(open=(before,), end=(after,) if after else (), close=(close,))
    return Tag(open=(attribute[1],), attribute=(attribute[2],), end=(after.removeprefix('"'),), close=(close,))


def _closers(field: Mapping[str, Any]) -> tuple[str, ...]:
    pattern = field.get("close_pattern")
    if not isinstance(pattern, str):
        return _literals(field, "close")
    return () if pattern.startswith("(?=") else _read_pattern(pattern).texts[:1]
