"""Faults of an engine's tool parser."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from interlingua.dialects.native_text import parse
from interlingua.faults.engines.engine_fault import ApiCall, ApiReply, EngineFault, ParserInput
from interlingua.faults.engines.scripted_engine import parse_natively

__all__ = ["PARSER_FAULTS"]

Json = dict[str, Any]


def _refuse_tools(body: Json) -> tuple[int, str] | None:
    """Refuse as vLLM does it without `--enable-auto-tool-choice`."""
    if not body.get("tools") or body.get("tool_choice") == "none":
        return None
    return 400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'


def _leave_text(parser_input: ParserInput) -> ApiReply:
    return ApiReply(text=parser_input.text)


def _leave_text_without_tokens(parser_input: ParserInput) -> ApiReply:
    return ApiReply(text=parser_input.visible_text)


def _swallow(parser_input: ParserInput) -> ApiReply:
    reply = parse_natively(parser_input)
    return replace(reply, calls=(), finish_reason="stop", text="") if reply.calls else reply


def _leave_in_thinking(parser_input: ParserInput) -> ApiReply:
    reply = parse_natively(parser_input)
    return ApiReply(reasoning=parser_input.text) if reply.calls else reply


def _change_calls(change: Callable[[list[ApiCall]], list[ApiCall]]) -> Callable[[ParserInput], ApiReply]:
    def parse_and_change(parser_input: ParserInput) -> ApiReply:
        reply = parse_natively(parser_input)
        return replace(reply, calls=tuple(change(list(reply.calls))))

    return parse_and_change


def _change_arguments(change: Callable[[str], str]) -> Callable[[ParserInput], ApiReply]:
    return _change_calls(lambda calls: [replace(call, arguments=change(call.arguments)) for call in calls])


def _stringify_values(arguments: str) -> str:
    """Turn every value into a string, as a parser does that ignores the schema."""
    values = json.loads(arguments)
    return json.dumps({name: value if isinstance(value, str) else json.dumps(value) for name, value in values.items()})


def _cut_at_quote(arguments: str) -> str:
    """End every string at its first escaped quote or line break, as a regular expression does."""
    values = json.loads(arguments)
    cut = {name: _first_line(value) if isinstance(value, str) else value for name, value in values.items()}
    return json.dumps(cut)


def _first_line(text: str) -> str:
    return text.strip().split("\n")[0].split('"')[0]


def _lose_stream_tail(parser_input: ParserInput) -> ApiReply:
    """Lose the last characters of the arguments, in streams only."""
    reply = parse_natively(parser_input)
    if not parser_input.stream:
        return reply
    return replace(reply, calls=tuple(replace(call, arguments=call.arguments[:-2]) for call in reply.calls))


def _garble_name(parser_input: ParserInput) -> ApiReply:
    reply = parse_natively(parser_input)
    calls = [replace(call, name=f"functions.{call.name}:{n}") for n, call in enumerate(reply.calls)]
    return replace(reply, calls=tuple(calls))


def _parse_quotes(parser_input: ParserInput) -> ApiReply:
    """Make a call of the first offered tool whose name the text mentions."""
    reply = parse_natively(parser_input)
    tools = [tool["function"]["name"] for tool in parser_input.body.get("tools") or ()]
    if reply.calls or not tools:
        return reply
    return ApiReply(calls=(ApiCall("call_00000000", tools[0], "{}"),), finish_reason="tool_calls")


def _parse_with_other_dialect(parser_input: ParserInput) -> ApiReply:
    """Parse as another model family writes, so that no call is found and the special tokens are lost."""
    other = "hermes" if parser_input.dialect.name != "hermes" else "kimi_k2"
    reply = parse(parser_input.visible_text, other, parser_input.body.get("tools") or [])
    calls = tuple(ApiCall(f"call_{n:08d}", call.name, call.arguments) for n, call in enumerate(reply.calls))
    return ApiReply(reply.text, reply.reasoning, calls, "tool_calls" if calls else "stop")


PARSER_FAULTS = (
    EngineFault(
        "parser-missing",
        "engine-parser",
        "The server has no tool parser and refuses tools, as vLLM does.",
        refuse=_refuse_tools,
        parse=_leave_text_without_tokens,
    ),
    EngineFault("parser-off", "engine-parser", "The server leaves the calls in the text.", parse=_leave_text),
    EngineFault(
        "parser-off-no-tokens",
        "engine-parser",
        "The same, and the server removes the special tokens.",
        parse=_leave_text_without_tokens,
    ),
    EngineFault(
        "parser-of-another-model",
        "engine-parser",
        "The parser is that of another model family.",
        parse=_parse_with_other_dialect,
    ),
    EngineFault(
        "parser-swallows",
        "engine-parser",
        "The parser removes the call from the text and returns none.",
        parse=_swallow,
    ),
    EngineFault("parser-in-thinking", "engine-parser", "The call stays in the thinking.", parse=_leave_in_thinking),
    EngineFault(
        "parser-first-call-only",
        "engine-parser",
        "The parser returns the first of several calls.",
        parse=_change_calls(lambda calls: calls[:1]),
    ),
    EngineFault(
        "parser-no-arguments",
        "engine-parser",
        "The parser loses the arguments.",
        parse=_change_arguments(lambda _: "{}"),
    ),
    EngineFault(
        "parser-strings-only",
        "engine-parser",
        "The parser turns every value into a string.",
        parse=_change_arguments(_stringify_values),
    ),
    EngineFault(
        "parser-cuts-strings",
        "engine-parser",
        "The parser cuts texts at a quote or a line break.",
        parse=_change_arguments(_cut_at_quote),
    ),
    EngineFault(
        "parser-encodes-twice",
        "engine-parser",
        "The parser returns the arguments as JSON in a JSON string.",
        parse=_change_arguments(json.dumps),
    ),
    EngineFault(
        "parser-loses-stream-tail",
        "engine-parser",
        "The parser loses the last characters of the arguments in streams.",
        parse=_lose_stream_tail,
    ),
    EngineFault(
        "parser-garbles-names", "engine-parser", "The parser leaves native text in the name.", parse=_garble_name
    ),
    EngineFault("parser-invents-calls", "engine-parser", "The parser makes a call out of text.", parse=_parse_quotes),
)
