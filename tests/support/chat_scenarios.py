"""Chat completion streams as upstreams send them, and what a client must understand of each."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import interlingua as il
from interlingua.core.options__limits import Limits
from tests.support.harness import tool
from tests.support.paths import DATA
from tests.support.sdk import Json, Said

FIXTURES = DATA / "fixtures" / "openai_chat"

SECTION, CALL, ARGS, END, CLOSE = (
    "<|tool_calls_section_begin|>",
    "<|tool_call_begin|>",
    "<|tool_call_argument_begin|>",
    "<|tool_call_end|>",
    "<|tool_calls_section_end|>",
)
KIMI = "moonshotai/kimi-k2.5"
USAGE = {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16}


@dataclass(frozen=True)
class Scenario:
    """`whole` is False where no whole body could say the same. `untouched`: what goes out is what came in."""

    name: str
    stream: bytes
    said: dict[int, Said]
    findings: list[str] = field(default_factory=list)
    usage: Json | None = None
    error: str = ""
    tools: list[Json] | None = None
    options: il.Options | None = None
    whole: bool = True
    untouched: bool = False

    def __str__(self) -> str:
        return self.name


# ── how streams are written down ──────────────────────────────────────────────────────────────────────────────────


def choice(delta: Any, finish: Any = None, index: int = 0, **extra: Any) -> Json:
    return {"index": index, "delta": delta, "finish_reason": finish, **extra}


def chunk(*choices: Any, model: str = KIMI, **extra: Any) -> Json:
    head = {"id": "gen-1", "object": "chat.completion.chunk", "created": 1763198400, "model": model}
    return {**head, "choices": list(choices), **extra}


def sse(*events: Json | str, done: bool = True) -> bytes:
    data = [event if isinstance(event, str) else json.dumps(event) for event in events]
    return "".join(f"data: {one}\n\n" for one in [*data, *(["[DONE]"] if done else [])]).encode()


def spoken(pieces: Iterable[str], field: str = "content", finish: str | None = "stop", done: bool = True) -> bytes:
    """A reply whose text comes in these pieces."""
    texts = [chunk(choice({field: piece})) for piece in pieces]
    ends = [chunk(choice({}, finish))] if finish else []
    return sse(chunk(choice({"role": "assistant", "content": ""})), *texts, *ends, done=done)


def called(*deltas: list[Json] | Json, finish: str | None = "tool_calls", done: bool = True, model: str = "m") -> bytes:
    """A reply of structured calls: the entries of each delta, or a whole delta."""
    said = [delta if isinstance(delta, dict) else {"tool_calls": delta} for delta in deltas]
    chunks = [chunk(choice(delta), model=model) for delta in said]
    ends = [chunk(choice({}, finish), model=model)] if finish else []
    return sse(chunk(choice({"role": "assistant", "content": None}), model=model), *chunks, *ends, done=done)


def start(name: str | None, args: Any = "", index: Any = 0, id: Any = "call_1", **extra: Any) -> Json:
    return {"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": args}, **extra}


def more(args: Any, index: Any = 0, **extra: Any) -> Json:
    return {"index": index, "function": {"arguments": args}, **extra}


def without(entry: Json, *keys: str) -> Json:
    return {key: value for key, value in entry.items() if key not in keys}


def kimi(header: str, args: str) -> str:
    return f"{CALL}{header}{ARGS}{args}{END}"


def calls(*calls: tuple[str, str, str], finish: str = "tool_calls", **said: str) -> dict[int, Said]:
    return {0: Said(calls=list(calls), finish=finish, **said)}


F = ("call_1", "f", '{"a": 1}')
G = ("call_2", "g", '{"b": 2}')
PARIS = ("functions.get_weather:0", "get_weather", '{"city": "Paris"}')
SECTION_OF_PARIS = SECTION + kimi("functions.get_weather:0", '{"city": "Paris"}') + CLOSE

# As OpenRouter streamed Kimi K2.5: one token a chunk, every marker alone in its chunk behind a space.
FIELD_LOG = [
    "I'll", " look", " at", " both", ".", f" {SECTION}", f" {CALL}", " functions", ".task", ":", "45", f" {ARGS}", " {",
    '"', "description", '":', ' "', "Explore", " core", " C", " headers", '",', ' "', "subagent", "_type", '":', ' "',
    "explore", '"}', f" {END}", f" {CALL}", " functions", ".task", ":", "46", f" {ARGS}", ' {"', "description", '":',
    ' "', "Explore", " network", '"}', f" {END}", f" {CLOSE}",
]  # fmt: skip
TASKS = (
    ("functions.task:45", "task", '{"description": "Explore core C headers", "subagent_type": "explore"}'),
    ("functions.task:46", "task", '{"description": "Explore network"}'),
)


def openrouter(pieces: list[str]) -> bytes:
    """With a role in every chunk, thinking in two fields, and the usage in a last chunk that has a choice."""

    def said(delta: Json, finish: str | None = None, **extra: Any) -> Json:
        given = choice(
            {"role": "assistant", "content": "", **delta}, finish, native_finish_reason=finish, logprobs=None
        )
        return chunk(given, provider="Moonshot AI", **extra)

    def thinking(text: str) -> Json:
        detail = {"type": "reasoning.text", "text": text, "format": "unknown", "index": 0}
        return {"reasoning": text, "reasoning_details": [detail]}

    thoughts = sse(*(said(thinking(piece)) for piece in pieces), done=False)
    return b": OPENROUTER PROCESSING\n\n" + thoughts + sse(said({}, "stop"), said({}, usage=USAGE))


# ── native text ───────────────────────────────────────────────────────────────────────────────────────────────────

NATIVE = [
    Scenario(
        "nothing native", spoken(["Hello", " there", "."]), calls(text="Hello there.", finish="stop"), untouched=True
    ),
    Scenario(
        "field log", spoken(FIELD_LOG, "reasoning"), calls(*TASKS, reasoning="I'll look at both. "), ["stop-reason"]
    ),
    Scenario(
        "field log from OpenRouter",
        openrouter(FIELD_LOG),
        calls(*TASKS, reasoning="I'll look at both. "),
        ["stop-reason"],
        usage=USAGE,
    ),
    Scenario(
        "marker cut at a chunk's end",
        spoken(
            [
                "Look: <|tool_calls_",
                "section_begin|><|tool",
                "_call_begin|>functions.f:0<|tool_call_argument_beg",
                'in|>{"a"',
                ": 1}<|tool_call_end",
                "|><|tool_calls_section_end|>",
            ]
        ),
        calls(("functions.f:0", "f", '{"a": 1}'), text="Look: "),
        ["stop-reason"],
    ),
    Scenario(
        "no marker after all",
        spoken(["a <", "|tool", "_box|> b <", "c"]),
        calls(text="a <|tool_box|> b <c", finish="stop"),
    ),
    Scenario(
        "text before and after",
        spoken(["Before.", SECTION_OF_PARIS, " After."]),
        calls(PARIS, text="Before. After."),
        ["stop-reason"],
    ),
    Scenario(
        "section in reasoning_content",
        spoken(["Hm. ", SECTION_OF_PARIS], "reasoning_content", finish="tool_calls"),
        calls(PARIS, reasoning="Hm. "),
    ),
    Scenario(
        "thinking, then text with the call",
        sse(
            chunk(choice({"role": "assistant", "content": None, "reasoning_content": "Hm."})),
            chunk(choice({"content": "Let me see.", "reasoning_content": None})),
            chunk(choice({"content": SECTION_OF_PARIS}, "stop"), usage=USAGE),
        ),
        calls(PARIS, text="Let me see.", reasoning="Hm."),
        ["stop-reason"],
        usage=USAGE,
    ),
    Scenario(
        "ids of another vendor, named by the params that fit",
        spoken([SECTION + kimi("call_59ad", '{"city": "Paris"}') + CLOSE]),
        calls(("call_59ad", "get_weather", '{"city": "Paris"}')),
        ["guessed-name", "stop-reason"],
        tools=[tool("get_weather", ["city"]), tool("ls", ["path"])],
    ),
    Scenario(
        "arguments in many pieces",
        spoken(
            [
                SECTION + CALL,
                "functions.w:3",
                ARGS + '{"te',
                'xt": "\\u00',
                "e9 <|tool_call_end|",
                '> 🚀"',
                "}" + END,
                CLOSE,
            ]
        ),
        calls(("functions.w:3", "w", '{"text": "\\u00e9 <|tool_call_end|> 🚀"}')),
        ["stop-reason"],
    ),
    Scenario(
        "two choices, interleaved, with calls of their own",
        sse(
            chunk(choice({"role": "assistant", "content": ""}), choice({"role": "assistant", "content": ""}, index=1)),
            chunk(choice({"content": SECTION + CALL})),
            chunk(choice({"content": "One: <|tool_calls"}, index=1)),
            chunk(choice({"content": "functions.f:0" + ARGS}), choice({"content": "_section_begin|>" + CALL}, index=1)),
            chunk(choice({"content": "functions.g:0" + ARGS + '{"b": 2}' + END}, index=1)),
            chunk(choice({"content": '{"a": 1}' + END + CLOSE})),
            chunk(choice({"content": CLOSE}, "stop", index=1)),
            chunk(choice({}, "stop")),
        ),
        {
            0: Said(calls=[("functions.f:0", "f", '{"a": 1}')], finish="tool_calls"),
            1: Said(text="One: ", calls=[("functions.g:0", "g", '{"b": 2}')], finish="tool_calls"),
        },
        ["stop-reason", "stop-reason"],
    ),
    Scenario(
        "length inside arguments",
        spoken([SECTION + CALL + "functions.f:0" + ARGS, '{"a": "lo'], finish="length"),
        calls(("functions.f:0", "f", '{"a": "lo'), finish="length"),
        ["section-not-closed", "cut-short"],
    ),
    Scenario(
        "stop inside arguments",
        spoken([SECTION + CALL + "functions.f:0" + ARGS, '{"a": "lo'], finish="stop"),
        calls(("functions.f:0", "f", '{"a": "lo'), finish="length"),
        ["section-not-closed", "cut-short", "stop-reason"],
    ),
    Scenario(
        "end inside arguments",
        spoken([SECTION + CALL + "functions.f:0" + ARGS, '{"a": "lo'], finish=None, done=False),
        {0: Said(calls=[("functions.f:0", "f", '{"a": "lo')])},
        ["section-not-closed", "no-finish-reason"],
        error="inside the call of 'f'",
        whole=False,
    ),
    Scenario(
        "end inside text",
        spoken(["Hello", " <|tool_ca"], finish=None, done=False),
        {0: Said(text="Hello <|tool_ca")},
        error="without finishing",
        whole=False,
    ),
    Scenario(
        "[DONE] without a finish, after a call",
        spoken([SECTION_OF_PARIS], finish=None),
        calls(PARIS),
        ["no-finish-reason"],
    ),
    Scenario(
        "[DONE] without a finish", spoken(["Hi"], finish=None), calls(text="Hi", finish="stop"), ["no-finish-reason"]
    ),
    Scenario(
        "finish, but no [DONE]",
        spoken(["Hi"], done=False),
        calls(text="Hi", finish="stop"),
    ),
    Scenario(
        "native and structured calls in one reply",
        called({"content": SECTION_OF_PARIS}, [start("f", '{"a": 1}')], model=KIMI),
        calls(PARIS, F),
    ),
]

# ── structured calls ──────────────────────────────────────────────────────────────────────────────────────────────

STRUCTURED = [
    Scenario(
        "two calls, as they should be",
        called([start("f")], [more('{"a"')], [more(": 1}")], [start("g", "", 1, "call_2")], [more('{"b": 2}', 1)]),
        calls(F, G),
        untouched=True,
    ),
    Scenario(
        "a whole call in one chunk",
        called([start("f", '{"a": 1}'), start("g", '{"b": 2}', 1, "call_2")]),
        calls(F, G),
        untouched=True,
    ),
    Scenario("stop after calls", called([start("f", '{"a": 1}')], finish="stop"), calls(F), ["stop-reason"]),
    Scenario(
        "tool_calls without calls",
        called({"content": "Done."}, finish="tool_calls"),
        calls(text="Done.", finish="stop"),
        ["stop-reason"],
    ),
    Scenario(
        "interleaved",
        called(
            [start("f", '{"a"')],
            [start("g", '{"b', 1, "call_2")],
            [more(": 1"), more('": 2', 1)],
            [more("}", 1)],
            [more("}")],
        ),
        calls(F, G),
        whole=False,
    ),
    Scenario(
        "interleaved with text",
        called([start("f", '{"a"')], {"content": "By the way."}, [more(": 1}")]),
        calls(F, text="By the way."),
    ),
    Scenario(
        "indexes from 1, with a gap",
        called([start("f", '{"a": 1}', 1)], [start("g", '{"b"', 3, "call_2")], [more(": 2}", 3)]),
        calls(F, G),
        ["renumbered", "renumbered"],
        whole=False,
    ),
    Scenario(
        "no index",
        called(
            [without(start("f", '{"a"'), "index")],
            [without(more(": 1}"), "index")],
            [without(start("g", '{"b": 2}', id="call_2"), "index")],
        ),
        calls(F, G),
        ["no-index", "no-index"],
        whole=False,
    ),
    Scenario(
        "several calls on one index",
        called([start("f", '{"a": 1}')], [start("g", "", id="call_2")], [more('{"b": 2}')]),
        calls(F, G),
        ["shared-index"],
        whole=False,
    ),
    Scenario(
        "id, type and name in every chunk",
        called([start("f")], [start("f", '{"a"')], [start("f", ": 1}")]),
        calls(F),
        ["repeated-id", "repeated-name"],
        whole=False,
    ),
    Scenario(
        "nulls and empty strings where nothing belongs",
        called(
            [start("f", None)],
            [{"index": 0, "id": None, "type": None, "function": {"name": None, "arguments": '{"a"'}}],
            [{"index": 0, "id": "", "type": "", "function": {"name": "", "arguments": ": 1}"}}],
            [more(None)],
        ),
        calls(F),
        whole=False,
    ),
    Scenario("no type", called([without(start("f", '{"a": 1}'), "type")]), calls(F), ["no-type"]),
    Scenario(
        "no id",
        called([without(start("f", '{"a": 1}'), "id")]),
        calls(("call_4af476bf9e28ab7c748cb8da", "f", '{"a": 1}')),
        ["no-id"],
    ),
    Scenario(
        "the same id twice",
        called([start("f", '{"a": 1}'), start("g", '{"b": 2}', 1)]),
        calls(F, ("call_1_2", "g", '{"b": 2}')),
        ["id-renamed"],
    ),
    Scenario(
        "a name that comes late",
        called([start(None, '{"a"')], [more(": ")], [{"index": 0, "function": {"name": "f", "arguments": "1}"}}]),
        calls(F),
        ["no-type"],
        whole=False,
    ),
    Scenario(
        "a name that never comes",
        called([start(None, '{"a"')], [more(": 1}")]),
        calls(text='{"a": 1}', finish="stop"),
        ["call-without-name", "stop-reason"],
    ),
    Scenario(
        "arguments as an object",
        called([start("f", {"a": 1})]),
        calls(("call_1", "f", '{"a":1}')),
        ["arguments-as-value"],
    ),
    Scenario("arguments as null", called([start("f", None)]), calls(("call_1", "f", "{}"))),
    Scenario("arguments as the word null", called([start("f", "nu")], [more("ll")]), calls(("call_1", "f", "{}"))),
    Scenario("no arguments", called([start("f", "")]), calls(("call_1", "f", "{}"))),
    Scenario("white space for arguments", called([start("f", " ")], [more("\n")]), calls(("call_1", "f", "{}"))),
    Scenario(
        "an object in a string",
        called([start("f", '"{\\"a\\": ')], [more('1}"')]),
        calls(F),
        ["unwrapped-arguments"],
    ),
    Scenario("more behind the arguments", called([start("f", '{"a": 1}')], [more("}")]), calls(F), ["after-arguments"]),
    Scenario(
        "arguments again at the end",
        called([start("f", '{"a"')], [more(": 1}")], [start("f", '{"a": 1}')]),
        calls(F),
        ["repeated-id", "repeated-name", "after-arguments"],
        whole=False,
    ),
    Scenario(
        "arguments again at the end, without the id",
        called([start("f", '{"a": 1}')], [without(start("f", '{"a": 1}'), "id")]),
        calls(F),
        ["repeated-name", "after-arguments"],
        whole=False,
    ),
    Scenario(
        "arguments all again in every chunk",
        called([start("f", "{")], [more('{"a": {')], [more('{"a": {"a": ')], [more('{"a": {"a": 1}}')]),
        calls(("call_1", "f", '{"a": {"a": 1}}')),
        ["resent-arguments"],
        whole=False,
    ),
    Scenario(
        "arguments that hold themselves",
        called([start("f", '{"a": ')], [more('{"a": 1}}')]),
        calls(("call_1", "f", '{"a": {"a": 1}}')),
        untouched=True,
    ),
    Scenario(
        "legacy function_call",
        called(
            {"function_call": {"name": "f", "arguments": ""}},
            {"function_call": {"arguments": '{"a": 1}'}},
            finish="function_call",
        ),
        calls(("call_4af476bf9e28ab7c748cb8da", "f", '{"a": 1}')),
        ["function-call", "no-id", "unknown-finish-reason"],
    ),
    Scenario(
        "length inside structured arguments",
        called([start("f", '{"a": 1}')], [start("g", '{"b"', 1, "call_2")], finish="length"),
        calls(F, ("call_2", "g", '{"b"'), finish="length"),
        ["cut-short"],
    ),
    Scenario(
        "length before structured arguments",
        called([start("f")], [start("g", "", 1, "call_2")], finish="length"),
        calls(("call_1", "f", "{}"), ("call_2", "g", ""), finish="length"),
        ["cut-short"],
    ),
    Scenario(
        "length inside a word",
        called([start("f", "nu")], finish="length"),
        calls(("call_1", "f", "nu"), finish="length"),
        ["cut-short"],
    ),
    Scenario(
        "end inside structured arguments",
        called([start("f", '{"a": 1}')], [start("g", '{"b"', 1, "call_2")], finish=None, done=False),
        {0: Said(calls=[F, ("call_2", "g", '{"b"')])},
        ["no-finish-reason"],
        error="inside the call of 'g'",
        whole=False,
    ),
    Scenario(
        "[DONE] without a finish, after a call without arguments",
        called([start("f")], finish=None),
        calls(("call_1", "f", "{}")),
        ["no-finish-reason"],
    ),
    Scenario(
        "a call, but no tool was offered",
        called([start("f", '{"a": 1}')]),
        calls(text='f{"a": 1}', finish="stop"),
        ["no-tools-offered", "stop-reason"],
        tools=[],
    ),
    Scenario(
        "an entry that is none",
        called(["f", start("f", '{"a": 1}')]),  # type: ignore[list-item]
        calls(F),
        ["bad-chunk"],
        whole=False,
    ),
    Scenario(
        "delivered whole",
        called([start("f", '{"a"')], [more(": 1}")], [start("g", '{"b"', 1, "call_2")], finish="length"),
        calls(F, finish="length"),
        ["cut-short", "call-withheld"],
        options=il.Options(delivery="whole"),
    ),
    Scenario(
        "arguments over the limit",
        called([start("f", '{"a": "')], [more("x" * 90)], [more('"}')], [start("g", '{"b": 2}', 1, "call_2")]),
        calls(("call_1", "f", '{"a": "' + "x" * 57), G, finish="length"),
        ["over-limit", "stop-reason"],
        options=il.Options(limits=Limits(args=64)),
    ),
    Scenario(
        "arguments over the limit, which is an error",
        called([start("f", '{"a": "')], [more("x" * 90)], [more('"}')]),
        {0: Said(calls=[("call_1", "f", '{"a": "' + "x" * 57)])},
        findings=["after-end"],
        error="longer than 64",
        options=il.Options(limits=Limits(args=64, over="error")),
        whole=False,
    ),
    Scenario(
        "a call without a name over the limit",
        called([start(None, "x" * 40)], [more("y" * 40)], [more("z")]),
        calls(text="x" * 40 + "y" * 40 + "z", finish="stop"),
        ["over-limit", "call-without-name", "stop-reason"],
        options=il.Options(limits=Limits(held=64)),
        whole=False,
    ),
    Scenario(
        "a call without a name over the limit, which is an error",
        called([start(None, "x" * 80)]),
        {0: Said()},
        findings=["after-end"],
        error="longer than 64",
        options=il.Options(limits=Limits(held=64, over="error")),
        whole=False,
    ),
]

# ── everything else on the wire ───────────────────────────────────────────────────────────────────────────────────

OPENAI = (FIXTURES / "openai.sse").read_bytes()
OPENAI_SAID = calls(
    ("call_Xk2", "get_weather", '{"city":"São Paulo"}'),
    ("call_Yz9", "get_time", "{}"),
)
OPENAI_USAGE = {
    "prompt_tokens": 61,
    "completion_tokens": 33,
    "total_tokens": 94,
    "prompt_tokens_details": {"cached_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 0},
}
HI = chunk(choice({"role": "assistant", "content": "Hi"}), model="m")
BYE = chunk(choice({}, "stop"), model="m")
ROCKET = "🚀"

WIRE = [
    Scenario("OpenAI", OPENAI, OPENAI_SAID, usage=OPENAI_USAGE, untouched=True),
    Scenario("OpenAI with CRLF", OPENAI.replace(b"\n", b"\r\n"), OPENAI_SAID, usage=OPENAI_USAGE, untouched=True),
    Scenario(
        "usage in a chunk of its own",
        sse(HI, BYE, chunk(model="m", usage=USAGE)),
        calls(text="Hi", finish="stop"),
        usage=USAGE,
        untouched=True,
    ),
    Scenario(
        "usage in every chunk",
        sse({**HI, "usage": {**USAGE, "completion_tokens": 1}}, {**BYE, "usage": USAGE}),
        calls(text="Hi", finish="stop"),
        usage=USAGE,
        untouched=True,
    ),
    Scenario(
        "usage in the choice",
        sse(HI, chunk(choice({}, "stop", usage=USAGE), model="m")),
        calls(text="Hi", finish="stop"),
        usage=USAGE,
    ),
    Scenario(
        "usage without choices",
        sse(HI, BYE, {**without(BYE, "choices"), "usage": USAGE}),
        calls(text="Hi", finish="stop"),
        usage=USAGE,
    ),
    Scenario(
        "text after the finish",
        sse(HI, BYE, chunk(choice({"content": " again"}), model="m"), BYE, chunk(model="m", usage=USAGE)),
        calls(text="Hi", finish="stop"),
        ["after-stop", "after-stop"],
        usage=USAGE,
        whole=False,
    ),
    Scenario(
        "not JSON",
        sse(HI, "{not JSON", BYE),
        calls(text="Hi", finish="stop"),
        ["bad-json"],
    ),
    Scenario("nothing but [DONE]", sse(), {}, untouched=True, whole=False),
    Scenario("nothing at all", b"", {}, error="without a reply", whole=False),
    Scenario(
        "an error at first",
        sse({"error": {"message": "overloaded", "code": 529, "metadata": {"x": 1}}}, done=False),
        {},
        error="overloaded",
        untouched=True,
        whole=False,
    ),
    Scenario(
        "an error amid text",
        sse(HI, {"error": {"message": "boom", "type": "server_error"}}, BYE),
        {0: Said(text="Hi")},
        ["after-end"],
        error="boom",
        whole=False,
    ),
    Scenario(
        "an error amid held text",
        sse(chunk(choice({"role": "assistant", "content": "a <|tool_"})), {"error": "boom"}, done=False),
        {0: Said(text="a <|tool_")},
        error="boom",
        whole=False,
    ),
    Scenario(
        "an error as vLLM writes it",
        sse(HI, {"object": "error", "message": "boom", "type": "BadRequest", "code": 400}, done=False),
        {0: Said(text="Hi")},
        error="boom",
        whole=False,
    ),
    Scenario(
        "an error for a finish",
        sse(HI, chunk(choice({"content": ""}, "error", error={"code": 502, "message": "gone"}), model="m")),
        {0: Said(text="Hi")},
        error="gone",
        whole=False,
    ),
    Scenario(
        "an error after the finish",
        sse(HI, BYE, {"error": {"message": "too late"}}),
        calls(text="Hi", finish="stop"),
        ["after-stop"],
        whole=False,
    ),
    Scenario(
        "an error in one of two choices",
        sse(
            chunk(
                choice({"role": "assistant", "content": "a <"}), choice({"role": "assistant", "content": "b"}, index=1)
            ),
            chunk(choice({}, "error", index=1)),
            done=False,
        ),
        {0: Said(text="a <"), 1: Said(text="b")},
        error="stopped with an error",
        whole=False,
    ),
    Scenario(
        "no role, no object, no index, no delta",
        sse(
            {"id": "c", "model": "m", "choices": [{"delta": {"content": "Hi"}}]},
            {"id": "c", "model": "m", "choices": [{"delta": None, "finish_reason": "stop"}]},
        ),
        calls(text="Hi", finish="stop"),
        whole=False,
    ),
    Scenario(
        "a message where a delta belongs",
        sse(
            {
                "id": "c",
                "object": "chat.completion",
                "model": "m",
                "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
            }
        ),
        calls(text="Hi", finish="stop"),
        whole=False,
    ),
    Scenario(
        "choices that are none",
        sse(chunk(7, choice({"role": "assistant", "content": "Hi"}), model="m"), BYE, {**BYE, "choices": "x"}),
        calls(text="Hi", finish="stop"),
        ["bad-chunk", "bad-chunk"],
        whole=False,
    ),
    Scenario(
        "empty finish reasons",
        sse(chunk(choice({"role": "assistant", "content": "Hi"}, ""), model="m"), chunk(choice({}, "EOS"), model="m")),
        calls(text="Hi", finish="stop"),
        ["unknown-finish-reason"],
    ),
    Scenario(
        "content in parts",
        called(
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}]},
            {"content": [{"type": "text", "text": "Hi"}, {"type": "text", "text": "!"}, {"type": "image"}]},
            finish="stop",
        ),
        calls(text="Hi!", reasoning="Hm.", finish="stop"),
        whole=False,
    ),
    Scenario(
        "a refusal",
        called({"refusal": "I"}, {"refusal": " won't."}, finish="stop"),
        {0: Said(refusal="I won't.", finish="stop")},
        untouched=True,
    ),
    Scenario(
        "thinking in reasoning_details only",
        called(
            {"reasoning_details": [{"type": "reasoning.summary", "summary": "Hm", "index": 0}]},
            {"reasoning_details": [{"type": "reasoning.summary", "summary": ". <|tool_", "index": 0}]},
            {"reasoning_details": [{"type": "reasoning.summary", "summary": "x", "index": 0}]},
            {"reasoning_details": [{"type": "reasoning.encrypted", "data": "AbC", "index": 0}]},
            finish="stop",
            model=KIMI,
        ),
        calls(reasoning="Hm. <|tool_x", finish="stop"),
        ["empty-turn"],
    ),
    Scenario(
        "half a character at a chunk's end",
        spoken(["a\ud83d", "\ude80b", "c\ud83d", "d", "\ude80"]),
        calls(text=f"a{ROCKET}bc\ufffdd\ufffd", finish="stop"),
        whole=False,
    ),
    Scenario(
        "half characters of two choices and in arguments",
        sse(
            chunk(choice({"role": "assistant", "content": "\ud83d"})),
            chunk(choice({"role": "assistant", "tool_calls": [start("f", '{"a": "\ud83d')]}, index=1)),
            chunk(choice({"tool_calls": [more('\ude80"}')]}, "tool_calls", index=1)),
            chunk(choice({"content": "\ude80"}, "stop")),
        ),
        {
            0: Said(text=ROCKET, finish="stop"),
            1: Said(calls=[("call_1", "f", f'{{"a": "{ROCKET}"}}')], finish="tool_calls"),
        },
        whole=False,
    ),
    Scenario(
        "half a character at the end",
        spoken(["a\ud83d"]),
        calls(text="a", finish="stop"),
        ["half-character"],
        whole=False,
    ),
    Scenario(
        "bytes that are no UTF-8, a control character and NaN",
        sse(HI, BYE).replace(b"Hi", b"H\xffi\t").replace(b'"stop"', b'"stop", "score": NaN'),
        calls(text="H\ufffdi\t", finish="stop"),
        whole=False,
    ),
    Scenario(
        "an empty event",
        sse(HI, "", BYE),
        calls(text="Hi", finish="stop"),
        ["empty-event"],
        whole=False,
    ),
    Scenario(
        "an event over the limit",
        sse(HI, chunk(choice({"content": "x" * 600}), model="m"), BYE),
        {0: Said(text="Hi")},
        error="more than 500 bytes",
        options=il.Options(limits=Limits(event=500)),
        whole=False,
    ),
]

SCENARIOS = NATIVE + STRUCTURED + WIRE
