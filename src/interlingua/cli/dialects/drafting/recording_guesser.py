"""Dialect of recorded replies: a built-in one that reads them, or a guess from the markers around their calls.

A recording has less to go by than a template: the calls in it have to be found first. They are what `dialects check`
would expect, if the recording names them; else JSON objects next to a name, and elements with a name and parameters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import product

import interlingua as il
from interlingua.cli.dialects.drafting.dialect_guesser import DialectGuess
from interlingua.cli.dialects.drafting.draft_source import KnownCall, RecordedReply
from interlingua.cli.dialects.drafting.shape_guesser import guess_shape
from interlingua.cli.dialects.drafting.template_probe import ProbeCall
from interlingua.cli.dialects.drafting.template_tokens import TemplateToken, decode_json_at, tokenize
from interlingua.errors import InterlinguaError

__all__ = ["find_builtin_dialect", "find_calls", "guess_from_recording", "recording_problems"]

NAME_KEYS = ("name", "tool", "tool_name", "function", "function_name", "recipient_name", "action")
ARGS_KEYS = ("arguments", "parameters", "args", "input", "params", "tool_input", "action_input")
HARMLESS_FINDINGS = ("noise", "stop-reason", "detected")
_NAME = re.compile(r"[A-Za-z_][\w.-]*")
_NUMBERED_NAME = re.compile(r"functions\.([\w.-]+):\d+")
_THINKING = re.compile(r"<(think|thinking|thought|reasoning|seed:think)>.*?</\1>", re.S)
_NAMED_ELEMENT = re.compile(r"<[\w:|｜]+(?:=|\s+name=)\"?(?P<name>[A-Za-z_][\w.-]*)\"?[^<>]*>")
_PARAM_OPENER = r"<(?P<tag>[\w:|｜]+)(?:=|\s+(?:name|key)=)\"?(?P<key>[\w.-]+)\"?[^<>]*>"
_PARAM = re.compile(rf"{_PARAM_OPENER}(?P<value>(?:(?!<[\w:|｜]+(?:=|\s+(?:name|key)=)).)*?)</(?P=tag)[^<>]*>", re.S)
"""Element with a key whose value has no such element: otherwise it is a call."""


# ── built-in dialects ─────────────────────────────────────────────────────────────────────────────────────────────────


def find_builtin_dialect(replies: Sequence[RecordedReply]) -> il.Dialect | None:
    """Return a built-in dialect that reads all calls without a finding; first one that writes the same text again."""
    readers = [dialect for dialect in il.dialects() if dialect.shape and _reads(dialect, replies)]
    exact = [dialect for dialect in readers if all(_writes(dialect, reply.text) for reply in replies)]
    return next(iter([*exact, *readers]), None)


def _reads(dialect: il.Dialect, replies: Sequence[RecordedReply]) -> bool:
    parsed = [il.parse(reply.text, dialect) for reply in replies]
    has_findings = any(finding.kind not in HARMLESS_FINDINGS for reply in parsed for finding in reply.findings)
    return any(reply.calls for reply in parsed) and not has_findings and not recording_problems(dialect, replies)


def _writes(dialect: il.Dialect, text: str) -> bool:
    """Return whether the dialect writes the reply as it is recorded, white space and end-of-turn tokens aside."""
    try:
        written = il.render(il.parse(text, dialect), dialect)
    except InterlinguaError:
        return False
    for token in dialect.noise:
        text = text.replace(token, "")
    return "".join(written.split()) == "".join(text.split())


def recording_problems(dialect: il.Dialect, replies: Sequence[RecordedReply]) -> list[str]:
    """Parse each reply and return the differences from the calls that it has, and markers that stay in the text."""
    problems = []
    for number, reply in enumerate(replies, 1):
        parsed = il.parse(reply.text, dialect)
        calls = [(call.name, _decode(call.arguments)) for call in parsed.calls]
        expected = None if reply.calls is None else [(call.name, call.args) for call in reply.calls]
        if expected is not None and calls != expected:
            problems.append(f"reply {number} has {len(expected)} calls, but these were parsed: {calls or 'none'}")
        last_token = tokenize(parsed.text)[-1:] if parsed.calls else []
        if last_token and last_token[0].is_tag:
            problems.append(f"{last_token[0].text!r} is left in the text of reply {number}")
    return problems


def _decode(arguments: str) -> object:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


# ── guess ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def guess_from_recording(replies: Sequence[RecordedReply]) -> Iterator[DialectGuess]:
    """Yield guesses from the reply with the most calls.

    They differ in the number of calls that they are derived from, and in the markers at the end that are no part of
    the calls. A second call shows what is repeated, but not every shape can be derived from two calls with parameters.
    """
    candidates = [(reply.text, find_calls(reply)) for reply in replies]
    text, calls = max(candidates, key=lambda candidate: min(len(candidate[1]), 2))
    if not calls:
        return
    start = _calls_start(text, calls[0])
    end = _values_end(text, calls, start)
    endings = _tags_after(text, end)
    for shown_calls, noise_count in product(([calls[:2], calls[:1]]), range(len(endings) + 1)):
        kept = endings[: len(endings) - noise_count]
        shown_end = _values_end(text, shown_calls, start)
        calls_text = text[start:shown_end] + text[end : end + kept[-1].end if kept else end]
        shape, notes = guess_shape(calls_text, shown_calls)
        if shape is None:
            continue
        noise = tuple(dict.fromkeys(token.text for token in endings[len(kept) :]))
        guess = DialectGuess(reply=text, calls=calls_text, shape=shape, noise=noise, thinking=_thinking(text))
        guess.lead = text[len(text[:start].rstrip()) : start]
        guess.add_note("models", "Derived from the file name. Replace it by the ids of the models.")
        guess.add_note("sample", "Derived from recorded text: it shows only what the model has written there.")
        for path, note in notes:
            guess.add_note(path, note)
        yield guess


def _thinking(text: str) -> tuple[il.Span, ...]:
    match = _THINKING.search(text)
    return (il.Span(f"<{match[1]}>", f"</{match[1]}>"),) if match else ()


def find_calls(reply: RecordedReply) -> list[ProbeCall]:
    """Return the calls of a reply: those that are known, else those that its text seems to have."""
    if reply.calls is not None:
        return [_probe_call(reply.text, call) for call in reply.calls]
    return _json_calls(reply.text) or _element_calls(reply.text)


def _probe_call(text: str, call: KnownCall) -> ProbeCall:
    numbered = next((match[0] for match in _NUMBERED_NAME.finditer(text) if match[1] == call.name), "")
    return ProbeCall(call.name, call.args, numbered or f"no id of {call.name}")


def _json_calls(text: str) -> list[ProbeCall]:
    """Find JSON objects that are calls, or that follow the name of one."""
    calls: list[ProbeCall] = []
    position = text.find("{")
    while position >= 0:
        value, end = decode_json_at(text, position)
        if isinstance(value, dict) and (call := _envelope(value) or _named_object(text[:position], value)):
            calls.append(call)
        position = text.find("{", end or position + 1)
    return calls


def _envelope(value: dict[str, object]) -> ProbeCall | None:
    inner = value["function"] if isinstance(value.get("function"), dict) else value
    assert isinstance(inner, dict)
    name = next((inner[key] for key in NAME_KEYS if isinstance(inner.get(key), str)), None)
    args = next((inner[key] for key in ARGS_KEYS if isinstance(inner.get(key), dict)), None)
    return ProbeCall(str(name), args, str(value.get("id", "no id"))) if name and isinstance(args, dict) else None


def _named_object(before: str, args: dict[str, object]) -> ProbeCall | None:
    """Return the call whose arguments follow this text: its last word that is no tag is the name."""
    words = [token.text for token in tokenize(before[-300:]) if not token.is_tag]
    word = words[-1] if words else ""
    if numbered := _NUMBERED_NAME.fullmatch(word):
        return ProbeCall(numbered[1], args, word)
    return ProbeCall(word, args, "no id") if _NAME.fullmatch(word) else None


def _element_calls(text: str) -> list[ProbeCall]:
    """Find elements with a name whose parameters are elements, too."""
    params = list(_PARAM.finditer(text))
    heads = [head for head in _NAMED_ELEMENT.finditer(text) if not any(_is_within(head, param) for param in params)]
    calls = []
    for number, head in enumerate(heads):
        end = heads[number + 1].start() if number + 1 < len(heads) else len(text)
        args = {param["key"]: _value(param["value"]) for param in params if head.end() <= param.start() < end}
        if args:
            calls.append(ProbeCall(head["name"], args, "no id"))
    return calls


def _is_within(head: re.Match[str], param: re.Match[str]) -> bool:
    return param.start() <= head.start() < param.end()


def _value(text: str) -> object:
    """Return the value of a parameter: its JSON unless it is a text."""
    try:
        return json.loads(text)
    except ValueError:
        return text.strip("\n")


def _calls_start(text: str, first: ProbeCall) -> int:
    """Return where the calls begin, with the markers right before them."""
    name_start = text.find(first.id) if first.id in text else text.find(first.name)
    object_start = text.rfind("{", 0, name_start)
    envelope_end = decode_json_at(text, object_start)[1] if object_start >= 0 else 0
    start = object_start if envelope_end > name_start else name_start
    for token in reversed(tokenize(text[:start])):
        if not token.is_tag and token.text not in ("[", "```"):
            break
        start = token.start
    return start


def _values_end(text: str, calls: Sequence[ProbeCall], start: int) -> int:
    """Return the end of the last value of the last call."""
    position = start
    for call in calls:
        position = text.find(call.name, position) + len(call.name)
        for value in call.args.values():
            written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            found = text.find(written, position)
            position = found + len(written) if found >= 0 else position
    closing = re.compile(r"[\s\"}\]]*").match(text, position)
    return closing.end() if closing and closing[0].strip() else position


def _tags_after(text: str, end: int) -> list[TemplateToken]:
    """Return the tags right behind the calls, with positions relative to `end`."""
    tags: list[TemplateToken] = []
    for token in tokenize(text[end:]):
        if not token.is_tag:
            break
        tags.append(token)
    return tags
