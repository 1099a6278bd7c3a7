"""Chat completion streams as upstreams send them, and the expected client view of each."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import interlingua as il
from interlingua.core.options import Limits
from tests.support.harness import tool
from tests.support.paths import DATA
from tests.support.sdk import ChoiceView, Json

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
class ChatScenario:
    """One stream and its expected translation.

    `has_body`: a whole body can represent the same reply. `untouched`: the stream is passed through on the same wire.
    """

    name: str
    stream: bytes
    expected: dict[int, ChoiceView]
    findings: list[str] = field(default_factory=list)
    usage: Json | None = None
    error: str = ""
    tools: list[Json] | None = None
    options: il.Options | None = None
    has_body: bool = True
    untouched: bool = False

    def __str__(self) -> str:
        return self.name


# ── building streams ──────────────────────────────────────────────────────────────────────────────────────────────


def choice(delta: Any, finish: Any = None, index: int = 0, **extra: Any) -> Json:
    return {"index": index, "delta": delta, "finish_reason": finish, **extra}


def chunk(*choices: Any, model: str = KIMI, **extra: Any) -> Json:
    head = {"id": "gen-1", "object": "chat.completion.chunk", "created": 1763198400, "model": model}
    return {**head, "choices": list(choices), **extra}


def sse(*events: Json | str, done: bool = True) -> bytes:
    data = [event if isinstance(event, str) else json.dumps(event) for event in events]
    return "".join(f"data: {payload}\n\n" for payload in [*data, *(["[DONE]"] if done else [])]).encode()


def text_stream(pieces: Iterable[str], field: str = "content", finish: str | None = "stop", done: bool = True) -> bytes:
    """Return the stream of a reply whose text is sent in these pieces."""
    texts = [chunk(choice({field: piece})) for piece in pieces]
    ends = [chunk(choice({}, finish))] if finish else []
    return sse(chunk(choice({"role": "assistant", "content": ""})), *texts, *ends, done=done)


def call_stream(
    *deltas: list[Json] | Json, finish: str | None = "tool_calls", done: bool = True, model: str = "m"
) -> bytes:
    """Return the stream of a reply with structured calls: the entries of each delta, or a whole delta."""
    delta_objects = [delta if isinstance(delta, dict) else {"tool_calls": delta} for delta in deltas]
    chunks = [chunk(choice(delta), model=model) for delta in delta_objects]
    ends = [chunk(choice({}, finish), model=model)] if finish else []
    return sse(chunk(choice({"role": "assistant", "content": None}), model=model), *chunks, *ends, done=done)


def call_start(name: str | None, args: Any = "", index: Any = 0, id: Any = "call_1", **extra: Any) -> Json:
    return {"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": args}, **extra}


def call_delta(args: Any, index: Any = 0, **extra: Any) -> Json:
    return {"index": index, "function": {"arguments": args}, **extra}


def without_keys(entry: Json, *keys: str) -> Json:
    return {key: value for key, value in entry.items() if key not in keys}


def kimi_call(header: str, args: str) -> str:
    return f"{CALL}{header}{ARGS}{args}{END}"


def expected_choice(*calls: tuple[str, str, str], finish: str = "tool_calls", **fields: str) -> dict[int, ChoiceView]:
    return {0: ChoiceView(calls=list(calls), finish=finish, **fields)}


F = ("call_1", "f", '{"a": 1}')
G = ("call_2", "g", '{"b": 2}')
PARIS = ("functions.get_weather:0", "get_weather", '{"city": "Paris"}')
SECTION_OF_PARIS = SECTION + kimi_call("functions.get_weather:0", '{"city": "Paris"}') + CLOSE

# Recorded from OpenRouter with Kimi K2.5: one token per chunk, every marker alone in its chunk after a space.
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


def openrouter_stream(pieces: list[str]) -> bytes:
    """Return a stream in OpenRouter's form: a role in every chunk, reasoning in two fields, usage with a choice."""

    def make_chunk(delta: Json, finish: str | None = None, **extra: Any) -> Json:
        full_choice = choice(
            {"role": "assistant", "content": "", **delta}, finish, native_finish_reason=finish, logprobs=None
        )
        return chunk(full_choice, provider="Moonshot AI", **extra)

    def thinking_delta(text: str) -> Json:
        detail = {"type": "reasoning.text", "text": text, "format": "unknown", "index": 0}
        return {"reasoning": text, "reasoning_details": [detail]}

    thoughts = sse(*(make_chunk(thinking_delta(piece)) for piece in pieces), done=False)
    return b": OPENROUTER PROCESSING\n\n" + thoughts + sse(make_chunk({}, "stop"), make_chunk({}, usage=USAGE))


# ── native text ───────────────────────────────────────────────────────────────────────────────────────────────────

NATIVE = [
    ChatScenario(
        "no native text",
        text_stream(["Hello", " there", "."]),
        expected_choice(text="Hello there.", finish="stop"),
        untouched=True,
    ),
    ChatScenario(
        "field log",
        text_stream(FIELD_LOG, "reasoning"),
        expected_choice(*TASKS, reasoning="I'll look at both. "),
        ["stop-reason"],
    ),
    ChatScenario(
        "field log from OpenRouter",
        openrouter_stream(FIELD_LOG),
        expected_choice(*TASKS, reasoning="I'll look at both. "),
        ["stop-reason"],
        usage=USAGE,
    ),
    ChatScenario(
        "marker cut at a chunk's end",
        text_stream(
            [
                "Look: <|tool_calls_",
                "section_begin|><|tool",
                "_call_begin|>functions.f:0<|tool_call_argument_beg",
                'in|>{"a"',
                ": 1}<|tool_call_end",
                "|><|tool_calls_section_end|>",
            ]
        ),
        expected_choice(("functions.f:0", "f", '{"a": 1}'), text="Look: "),
        ["stop-reason"],
    ),
    ChatScenario(
        "a prefix that does not become a marker",
        text_stream(["a <", "|tool", "_box|> b <", "c"]),
        expected_choice(text="a <|tool_box|> b <c", finish="stop"),
    ),
    ChatScenario(
        "text before and after",
        text_stream(["Before.", SECTION_OF_PARIS, " After."]),
        expected_choice(PARIS, text="Before. After."),
        ["stop-reason"],
    ),
    ChatScenario(
        "section in reasoning_content",
        text_stream(["Hm. ", SECTION_OF_PARIS], "reasoning_content", finish="tool_calls"),
        expected_choice(PARIS, reasoning="Hm. "),
    ),
    ChatScenario(
        "thinking, then text with the call",
        sse(
            chunk(choice({"role": "assistant", "content": None, "reasoning_content": "Hm."})),
            chunk(choice({"content": "Let me see.", "reasoning_content": None})),
            chunk(choice({"content": SECTION_OF_PARIS}, "stop"), usage=USAGE),
        ),
        expected_choice(PARIS, text="Let me see.", reasoning="Hm."),
        ["stop-reason"],
        usage=USAGE,
    ),
    ChatScenario(
        "ids of another vendor, named by the params that fit",
        text_stream([SECTION + kimi_call("call_59ad", '{"city": "Paris"}') + CLOSE]),
        expected_choice(("call_59ad", "get_weather", '{"city": "Paris"}')),
        ["guessed-name", "stop-reason"],
        tools=[tool("get_weather", ["city"]), tool("ls", ["path"])],
    ),
    ChatScenario(
        "arguments in many pieces",
        text_stream(
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
        expected_choice(("functions.w:3", "w", '{"text": "\\u00e9 <|tool_call_end|> 🚀"}')),
        ["stop-reason"],
    ),
    ChatScenario(
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
            0: ChoiceView(calls=[("functions.f:0", "f", '{"a": 1}')], finish="tool_calls"),
            1: ChoiceView(text="One: ", calls=[("functions.g:0", "g", '{"b": 2}')], finish="tool_calls"),
        },
        ["stop-reason", "stop-reason"],
    ),
    ChatScenario(
        "length inside arguments",
        text_stream([SECTION + CALL + "functions.f:0" + ARGS, '{"a": "lo'], finish="length"),
        expected_choice(("functions.f:0", "f", '{"a": "lo'), finish="length"),
        ["cut-short"],
    ),
    ChatScenario(
        "stop inside arguments",
        text_stream([SECTION + CALL + "functions.f:0" + ARGS, '{"a": "lo'], finish="stop"),
        expected_choice(("functions.f:0", "f", '{"a": "lo'), finish="length"),
        ["cut-short", "stop-reason"],
    ),
    ChatScenario(
        "end inside arguments",
        text_stream([SECTION + CALL + "functions.f:0" + ARGS, '{"a": "lo'], finish=None, done=False),
        {0: ChoiceView(calls=[("functions.f:0", "f", '{"a": "lo')])},
        ["no-finish-reason"],
        error="inside the call of 'f'",
        has_body=False,
    ),
    ChatScenario(
        "end inside text",
        text_stream(["Hello", " <|tool_ca"], finish=None, done=False),
        {0: ChoiceView(text="Hello <|tool_ca")},
        error="without finishing",
        has_body=False,
    ),
    ChatScenario(
        "[DONE] without a finish, after a call",
        text_stream([SECTION_OF_PARIS], finish=None),
        expected_choice(PARIS),
        ["no-finish-reason"],
    ),
    ChatScenario(
        "[DONE] without a finish",
        text_stream(["Hi"], finish=None),
        expected_choice(text="Hi", finish="stop"),
        ["no-finish-reason"],
    ),
    ChatScenario(
        "finish, but no [DONE]",
        text_stream(["Hi"], done=False),
        expected_choice(text="Hi", finish="stop"),
    ),
    ChatScenario(
        "native and structured calls in one reply",
        call_stream({"content": SECTION_OF_PARIS}, [call_start("f", '{"a": 1}')], model=KIMI),
        expected_choice(PARIS, F),
    ),
]

# ── structured calls ──────────────────────────────────────────────────────────────────────────────────────────────

STRUCTURED = [
    ChatScenario(
        "two valid calls",
        call_stream(
            [call_start("f")],
            [call_delta('{"a"')],
            [call_delta(": 1}")],
            [call_start("g", "", 1, "call_2")],
            [call_delta('{"b": 2}', 1)],
        ),
        expected_choice(F, G),
        untouched=True,
    ),
    ChatScenario(
        "a whole call in one chunk",
        call_stream([call_start("f", '{"a": 1}'), call_start("g", '{"b": 2}', 1, "call_2")]),
        expected_choice(F, G),
        untouched=True,
    ),
    ChatScenario(
        "stop after calls",
        call_stream([call_start("f", '{"a": 1}')], finish="stop"),
        expected_choice(F),
        ["stop-reason"],
    ),
    ChatScenario(
        "tool_calls without calls",
        call_stream({"content": "Done."}, finish="tool_calls"),
        expected_choice(text="Done.", finish="stop"),
        ["stop-reason"],
    ),
    ChatScenario(
        "interleaved",
        call_stream(
            [call_start("f", '{"a"')],
            [call_start("g", '{"b', 1, "call_2")],
            [call_delta(": 1"), call_delta('": 2', 1)],
            [call_delta("}", 1)],
            [call_delta("}")],
        ),
        expected_choice(F, G),
        has_body=False,
    ),
    ChatScenario(
        "interleaved with text",
        call_stream([call_start("f", '{"a"')], {"content": "By the way."}, [call_delta(": 1}")]),
        expected_choice(F, text="By the way."),
    ),
    ChatScenario(
        "indexes from 1, with a gap",
        call_stream([call_start("f", '{"a": 1}', 1)], [call_start("g", '{"b"', 3, "call_2")], [call_delta(": 2}", 3)]),
        expected_choice(F, G),
        ["renumbered", "renumbered"],
        has_body=False,
    ),
    ChatScenario(
        "no index",
        call_stream(
            [without_keys(call_start("f", '{"a"'), "index")],
            [without_keys(call_delta(": 1}"), "index")],
            [without_keys(call_start("g", '{"b": 2}', id="call_2"), "index")],
        ),
        expected_choice(F, G),
        ["no-index", "no-index"],
        has_body=False,
    ),
    ChatScenario(
        "several calls on one index",
        call_stream([call_start("f", '{"a": 1}')], [call_start("g", "", id="call_2")], [call_delta('{"b": 2}')]),
        expected_choice(F, G),
        ["shared-index"],
        has_body=False,
    ),
    ChatScenario(
        "id, type and name in every chunk",
        call_stream([call_start("f")], [call_start("f", '{"a"')], [call_start("f", ": 1}")]),
        expected_choice(F),
        ["repeated-id", "repeated-name"],
        has_body=False,
    ),
    ChatScenario(
        "nulls and empty strings in unused fields",
        call_stream(
            [call_start("f", None)],
            [{"index": 0, "id": None, "type": None, "function": {"name": None, "arguments": '{"a"'}}],
            [{"index": 0, "id": "", "type": "", "function": {"name": "", "arguments": ": 1}"}}],
            [call_delta(None)],
        ),
        expected_choice(F),
        has_body=False,
    ),
    ChatScenario(
        "no type", call_stream([without_keys(call_start("f", '{"a": 1}'), "type")]), expected_choice(F), ["no-type"]
    ),
    ChatScenario(
        "no id",
        call_stream([without_keys(call_start("f", '{"a": 1}'), "id")]),
        expected_choice(("call_4af476bf9e28ab7c748cb8da", "f", '{"a": 1}')),
        ["no-id"],
    ),
    ChatScenario(
        "the same id twice",
        call_stream([call_start("f", '{"a": 1}'), call_start("g", '{"b": 2}', 1)]),
        expected_choice(F, ("call_1_2", "g", '{"b": 2}')),
        ["id-renamed"],
    ),
    ChatScenario(
        "a name that comes late",
        call_stream(
            [call_start(None, '{"a"')], [call_delta(": ")], [{"index": 0, "function": {"name": "f", "arguments": "1}"}}]
        ),
        expected_choice(F),
        ["no-type"],
        has_body=False,
    ),
    ChatScenario(
        "a name that never comes",
        call_stream([call_start(None, '{"a"')], [call_delta(": 1}")]),
        expected_choice(text='{"a": 1}', finish="stop"),
        ["call-without-name", "stop-reason"],
    ),
    ChatScenario(
        "arguments as an object",
        call_stream([call_start("f", {"a": 1})]),
        expected_choice(("call_1", "f", '{"a":1}')),
        ["arguments-as-value"],
    ),
    ChatScenario("arguments as null", call_stream([call_start("f", None)]), expected_choice(("call_1", "f", "{}"))),
    ChatScenario(
        "arguments as the word null",
        call_stream([call_start("f", "nu")], [call_delta("ll")]),
        expected_choice(("call_1", "f", "{}")),
    ),
    ChatScenario("no arguments", call_stream([call_start("f", "")]), expected_choice(("call_1", "f", "{}"))),
    ChatScenario(
        "white space for arguments",
        call_stream([call_start("f", " ")], [call_delta("\n")]),
        expected_choice(("call_1", "f", "{}")),
    ),
    ChatScenario(
        "an object in a string",
        call_stream([call_start("f", '"{\\"a\\": ')], [call_delta('1}"')]),
        expected_choice(F),
        ["unwrapped-arguments"],
    ),
    ChatScenario(
        "text after the arguments",
        call_stream([call_start("f", '{"a": 1}')], [call_delta("}")]),
        expected_choice(F),
        ["after-arguments"],
    ),
    ChatScenario(
        "arguments again at the end",
        call_stream([call_start("f", '{"a"')], [call_delta(": 1}")], [call_start("f", '{"a": 1}')]),
        expected_choice(F),
        ["repeated-id", "repeated-name", "after-arguments"],
        has_body=False,
    ),
    ChatScenario(
        "arguments again at the end, without the id",
        call_stream([call_start("f", '{"a": 1}')], [without_keys(call_start("f", '{"a": 1}'), "id")]),
        expected_choice(F),
        ["repeated-name", "after-arguments"],
        has_body=False,
    ),
    ChatScenario(
        "all arguments repeated in every chunk",
        call_stream(
            [call_start("f", "{")],
            [call_delta('{"a": {')],
            [call_delta('{"a": {"a": ')],
            [call_delta('{"a": {"a": 1}}')],
        ),
        expected_choice(("call_1", "f", '{"a": {"a": 1}}')),
        ["resent-arguments"],
        has_body=False,
    ),
    ChatScenario(
        "arguments that contain their own text",
        call_stream([call_start("f", '{"a": ')], [call_delta('{"a": 1}}')]),
        expected_choice(("call_1", "f", '{"a": {"a": 1}}')),
        untouched=True,
    ),
    ChatScenario(
        "legacy function_call",
        call_stream(
            {"function_call": {"name": "f", "arguments": ""}},
            {"function_call": {"arguments": '{"a": 1}'}},
            finish="function_call",
        ),
        expected_choice(("call_4af476bf9e28ab7c748cb8da", "f", '{"a": 1}')),
        ["function-call", "no-id", "unknown-finish-reason"],
    ),
    ChatScenario(
        "length inside structured arguments",
        call_stream([call_start("f", '{"a": 1}')], [call_start("g", '{"b"', 1, "call_2")], finish="length"),
        expected_choice(F, ("call_2", "g", '{"b"'), finish="length"),
        ["cut-short"],
    ),
    ChatScenario(
        "length before structured arguments",
        call_stream([call_start("f")], [call_start("g", "", 1, "call_2")], finish="length"),
        expected_choice(("call_1", "f", "{}"), ("call_2", "g", ""), finish="length"),
        ["cut-short"],
    ),
    ChatScenario(
        "length inside a word",
        call_stream([call_start("f", "nu")], finish="length"),
        expected_choice(("call_1", "f", "nu"), finish="length"),
        ["cut-short"],
    ),
    ChatScenario(
        "end inside structured arguments",
        call_stream([call_start("f", '{"a": 1}')], [call_start("g", '{"b"', 1, "call_2")], finish=None, done=False),
        {0: ChoiceView(calls=[F, ("call_2", "g", '{"b"')])},
        ["no-finish-reason"],
        error="inside the call of 'g'",
        has_body=False,
    ),
    ChatScenario(
        "[DONE] without a finish, after a call without arguments",
        call_stream([call_start("f")], finish=None),
        expected_choice(("call_1", "f", "{}")),
        ["no-finish-reason"],
    ),
    ChatScenario(
        "a call, but no tool was offered",
        call_stream([call_start("f", '{"a": 1}')]),
        expected_choice(text='f{"a": 1}', finish="stop"),
        ["no-tools-offered", "stop-reason"],
        tools=[],
    ),
    ChatScenario(
        "a tool_calls entry of a wrong type",
        call_stream(["f", call_start("f", '{"a": 1}')]),  # type: ignore[list-item]
        expected_choice(F),
        ["bad-chunk"],
        has_body=False,
    ),
    ChatScenario(
        "delivered whole",
        call_stream(
            [call_start("f", '{"a"')], [call_delta(": 1}")], [call_start("g", '{"b"', 1, "call_2")], finish="length"
        ),
        expected_choice(F, finish="length"),
        ["cut-short", "call-withheld"],
        options=il.Options(delivery="whole"),
    ),
    ChatScenario(
        "arguments over the limit",
        call_stream(
            [call_start("f", '{"a": "')],
            [call_delta("x" * 90)],
            [call_delta('"}')],
            [call_start("g", '{"b": 2}', 1, "call_2")],
        ),
        expected_choice(("call_1", "f", '{"a": "' + "x" * 57), G, finish="length"),
        ["over-limit", "stop-reason"],
        options=il.Options(limits=Limits(args=64)),
    ),
    ChatScenario(
        "arguments over the limit, which is an error",
        call_stream([call_start("f", '{"a": "')], [call_delta("x" * 90)], [call_delta('"}')]),
        {0: ChoiceView(calls=[("call_1", "f", '{"a": "' + "x" * 57)])},
        findings=["after-end"],
        error="longer than 64",
        options=il.Options(limits=Limits(args=64, over="error")),
        has_body=False,
    ),
    ChatScenario(
        "a call without a name over the limit",
        call_stream([call_start(None, "x" * 40)], [call_delta("y" * 40)], [call_delta("z")]),
        expected_choice(text="x" * 40 + "y" * 40 + "z", finish="stop"),
        ["over-limit", "call-without-name", "stop-reason"],
        options=il.Options(limits=Limits(held=64)),
        has_body=False,
    ),
    ChatScenario(
        "a call without a name over the limit, which is an error",
        call_stream([call_start(None, "x" * 80)]),
        {0: ChoiceView()},
        findings=["after-end"],
        error="longer than 64",
        options=il.Options(limits=Limits(held=64, over="error")),
        has_body=False,
    ),
]

# ── other parts of the protocol ───────────────────────────────────────────────────────────────────────────────────

OPENAI = (FIXTURES / "openai.sse").read_bytes()
OPENAI_SAID = expected_choice(
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
    ChatScenario("OpenAI", OPENAI, OPENAI_SAID, usage=OPENAI_USAGE, untouched=True),
    ChatScenario("OpenAI with CRLF", OPENAI.replace(b"\n", b"\r\n"), OPENAI_SAID, usage=OPENAI_USAGE, untouched=True),
    ChatScenario(
        "usage in a chunk of its own",
        sse(HI, BYE, chunk(model="m", usage=USAGE)),
        expected_choice(text="Hi", finish="stop"),
        usage=USAGE,
        untouched=True,
    ),
    ChatScenario(
        "usage in every chunk",
        sse({**HI, "usage": {**USAGE, "completion_tokens": 1}}, {**BYE, "usage": USAGE}),
        expected_choice(text="Hi", finish="stop"),
        usage=USAGE,
        untouched=True,
    ),
    ChatScenario(
        "usage in the choice",
        sse(HI, chunk(choice({}, "stop", usage=USAGE), model="m")),
        expected_choice(text="Hi", finish="stop"),
        usage=USAGE,
    ),
    ChatScenario(
        "usage without choices",
        sse(HI, BYE, {**without_keys(BYE, "choices"), "usage": USAGE}),
        expected_choice(text="Hi", finish="stop"),
        usage=USAGE,
    ),
    ChatScenario(
        "text after the finish",
        sse(HI, BYE, chunk(choice({"content": " again"}), model="m"), BYE, chunk(model="m", usage=USAGE)),
        expected_choice(text="Hi", finish="stop"),
        ["after-stop", "after-stop"],
        usage=USAGE,
        has_body=False,
    ),
    ChatScenario(
        "not JSON",
        sse(HI, "{not JSON", BYE),
        expected_choice(text="Hi", finish="stop"),
        ["bad-json"],
    ),
    ChatScenario("nothing but [DONE]", sse(), {}, error="without a reply", has_body=False),
    ChatScenario(
        "junk, then [DONE]", b"data: junk\n\n" + sse(), {}, ["bad-json"], error="without a reply", has_body=False
    ),
    ChatScenario("nothing at all", b"", {}, error="without a reply", has_body=False),
    ChatScenario(
        "an error at first",
        sse({"error": {"message": "overloaded", "code": 529, "metadata": {"x": 1}}}, done=False),
        {},
        error="overloaded",
        untouched=True,
        has_body=False,
    ),
    ChatScenario(
        "an error amid text",
        sse(HI, {"error": {"message": "boom", "type": "server_error"}}, BYE),
        {0: ChoiceView(text="Hi")},
        ["after-end"],
        error="boom",
        has_body=False,
    ),
    ChatScenario(
        "an error after buffered text",
        sse(chunk(choice({"role": "assistant", "content": "a <|tool_"})), {"error": "boom"}, done=False),
        {0: ChoiceView(text="a <|tool_")},
        error="boom",
        has_body=False,
    ),
    ChatScenario(
        "an error as vLLM writes it",
        sse(HI, {"object": "error", "message": "boom", "type": "BadRequest", "code": 400}, done=False),
        {0: ChoiceView(text="Hi")},
        error="boom",
        has_body=False,
    ),
    ChatScenario(
        "an error for a finish",
        sse(HI, chunk(choice({"content": ""}, "error", error={"code": 502, "message": "gone"}), model="m")),
        {0: ChoiceView(text="Hi")},
        error="gone",
        has_body=False,
    ),
    ChatScenario(
        "an error after the finish",
        sse(HI, BYE, {"error": {"message": "too late"}}),
        expected_choice(text="Hi", finish="stop"),
        ["after-stop"],
        has_body=False,
    ),
    ChatScenario(
        "an error in one of two choices",
        sse(
            chunk(
                choice({"role": "assistant", "content": "a <"}), choice({"role": "assistant", "content": "b"}, index=1)
            ),
            chunk(choice({}, "error", index=1)),
            done=False,
        ),
        {0: ChoiceView(text="a <"), 1: ChoiceView(text="b")},
        error="stopped with an error",
        has_body=False,
    ),
    ChatScenario(
        "no role, no object, no index, no delta",
        sse(
            {"id": "c", "model": "m", "choices": [{"delta": {"content": "Hi"}}]},
            {"id": "c", "model": "m", "choices": [{"delta": None, "finish_reason": "stop"}]},
        ),
        expected_choice(text="Hi", finish="stop"),
        has_body=False,
    ),
    ChatScenario(
        "a message where a delta belongs",
        sse(
            {
                "id": "c",
                "object": "chat.completion",
                "model": "m",
                "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
            }
        ),
        expected_choice(text="Hi", finish="stop"),
        has_body=False,
    ),
    ChatScenario(
        "choices of a wrong type",
        sse(chunk(7, choice({"role": "assistant", "content": "Hi"}), model="m"), BYE, {**BYE, "choices": "x"}),
        expected_choice(text="Hi", finish="stop"),
        ["bad-chunk", "bad-chunk"],
        has_body=False,
    ),
    ChatScenario(
        "empty finish reasons",
        sse(chunk(choice({"role": "assistant", "content": "Hi"}, ""), model="m"), chunk(choice({}, "EOS"), model="m")),
        expected_choice(text="Hi", finish="stop"),
        ["unknown-finish-reason"],
    ),
    ChatScenario(
        "content in parts",
        call_stream(
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}]},
            {"content": [{"type": "text", "text": "Hi"}, {"type": "text", "text": "!"}, {"type": "image"}]},
            finish="stop",
        ),
        expected_choice(text="Hi!", reasoning="Hm.", finish="stop"),
        has_body=False,
    ),
    ChatScenario(
        "a refusal",
        call_stream({"refusal": "I"}, {"refusal": " won't."}, finish="stop"),
        {0: ChoiceView(refusal="I won't.", finish="stop")},
        untouched=True,
    ),
    ChatScenario(
        "thinking in reasoning_details only",
        call_stream(
            {"reasoning_details": [{"type": "reasoning.summary", "summary": "Hm", "index": 0}]},
            {"reasoning_details": [{"type": "reasoning.summary", "summary": ". <|tool_", "index": 0}]},
            {"reasoning_details": [{"type": "reasoning.summary", "summary": "x", "index": 0}]},
            {"reasoning_details": [{"type": "reasoning.encrypted", "data": "AbC", "index": 0}]},
            finish="stop",
            model=KIMI,
        ),
        expected_choice(reasoning="Hm. <|tool_x", finish="stop"),
        ["empty-turn"],
    ),
    ChatScenario(
        "half a character at a chunk's end",
        text_stream(["a\ud83d", "\ude80b", "c\ud83d", "d", "\ude80"]),
        expected_choice(text=f"a{ROCKET}bc\ufffdd\ufffd", finish="stop"),
        has_body=False,
    ),
    ChatScenario(
        "half characters of two choices and in arguments",
        sse(
            chunk(choice({"role": "assistant", "content": "\ud83d"})),
            chunk(choice({"role": "assistant", "tool_calls": [call_start("f", '{"a": "\ud83d')]}, index=1)),
            chunk(choice({"tool_calls": [call_delta('\ude80"}')]}, "tool_calls", index=1)),
            chunk(choice({"content": "\ude80"}, "stop")),
        ),
        {
            0: ChoiceView(text=ROCKET, finish="stop"),
            1: ChoiceView(calls=[("call_1", "f", f'{{"a": "{ROCKET}"}}')], finish="tool_calls"),
        },
        has_body=False,
    ),
    ChatScenario(
        "half a character at the end",
        text_stream(["a\ud83d"]),
        expected_choice(text="a", finish="stop"),
        ["half-character"],
        has_body=False,
    ),
    ChatScenario(
        "bytes that are no UTF-8, a control character and NaN",
        sse(HI, BYE).replace(b"Hi", b"H\xffi\t").replace(b'"stop"', b'"stop", "score": NaN'),
        expected_choice(text="H\ufffdi\t", finish="stop"),
        has_body=False,
    ),
    ChatScenario(
        "an empty event",
        sse(HI, "", BYE),
        expected_choice(text="Hi", finish="stop"),
        ["empty-event"],
        has_body=False,
    ),
    ChatScenario(
        "an event over the limit",
        sse(HI, chunk(choice({"content": "x" * 600}), model="m"), BYE),
        {0: ChoiceView(text="Hi")},
        error="more than 500 bytes",
        options=il.Options(limits=Limits(event=500)),
        has_body=False,
    ),
]

SCENARIOS = NATIVE + STRUCTURED + WIRE
