"""Golden tests of `translate --explain`: the whole output for representative replies, in tests/data/explain.

A missing file is written by the test, which then fails. To accept a change of the output, delete the files, run the
test, and read the difference.
"""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from interlingua.cli import main
from tests.support.harness import tool
from tests.support.paths import DATA, ROOT

GOLDEN_FOLDER = DATA / "explain"
KIMI_STREAM = ROOT / "examples" / "kimi_stream.sse"
DONE = "data: [DONE]\n\n"
TOOLS = [
    tool("weather", {"city": "string", "days": "integer"}),
    tool("ls", ["path"]),
]


class Case(NamedTuple):
    stdin: str
    argv: tuple[str, ...] = ()
    width: int = 99
    tools: bool = True
    captured_to: str = ""
    """The client's wire, if the reply is a capture of the gateway with one read per message."""


def chunk(delta: dict[str, Any], finish: str | None = None, model: str = "kimi-k2", index: int = 0, **more: Any) -> str:
    envelope = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": model}
    choice = {"index": index, "delta": delta, "finish_reason": finish}
    return f"data: {json.dumps({**envelope, 'choices': [choice], **more}, ensure_ascii=False)}\n\n"


def stream(model: str, *pieces: str, field: str = "content", finish: str = "stop") -> str:
    """Return a stream of chat completions with one chunk per piece."""
    first, *others = pieces
    chunks = [chunk({"role": "assistant", field: first}, model=model)]
    chunks += [chunk({field: piece}, model=model) for piece in others]
    return "".join(chunks) + chunk({}, finish, model) + DONE


def call_delta(index: int, arguments: str = "", **start: Any) -> dict[str, Any]:
    function = {"arguments": arguments} | ({"name": start["name"]} if start else {})
    head = {"id": f"call_{index}", "type": "function"} if start else {}
    return {"tool_calls": [{"index": index, **head, "function": function}]}


KIMI_CALL = (
    "<|tool_calls_section_begin|>",
    "<|tool_call_begin|>functions.",
    "weather:0<|tool_call_argument_begin|>",
    '{"city": "Par',
    'is"}<|tool_call_',
    "end|><|tool_calls_section_end|>",
)
KIMI_PIECES = ("<think>", "Two ", "cities.", "</thi", "nk>\n\n", "Look", "ing <b", ">now.", *KIMI_CALL)
PROSE = ("This ", "is ", "the ", "answer ", "of a ", "model.")
MESSAGES_STREAM = """\
event: message_start
data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"kimi-k2","content":[],\
"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":1}}}

event: ping
data: {"type":"ping"}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi <|tool_call_begin|>"}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\
functions.ls:0<|tool_call_argument_begin|>{}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}

event: message_stop
data: {"type":"message_stop"}

"""
WHOLE_REPLY = json.dumps(
    {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "kimi-k2",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "".join(KIMI_PIECES)},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12},
    }
)

CASES: dict[str, Case] = {
    # layout
    "kimi_stream_wide": Case(KIMI_STREAM.read_text(), width=140, tools=False),
    "kimi_stream_narrow": Case(KIMI_STREAM.read_text(), width=80, tools=False),
    # thinking and calls in every shape
    "kimi_pieces": Case(stream("kimi-k2", *KIMI_PIECES)),
    "kimi_reasoning_channel": Case(stream("kimi-k2", "Hm.", *KIMI_CALL, field="reasoning_content")),
    "kimi_to_messages": Case(stream("kimi-k2", *KIMI_PIECES), ("--to", "anthropic-messages"), width=120),
    "kimi_to_responses": Case(stream("kimi-k2", *KIMI_PIECES), ("--to", "openai-responses")),
    "messages_to_chat": Case(MESSAGES_STREAM, ("--from", "anthropic-messages", "--dialect", "kimi_k2")),
    "messages_to_messages": Case(MESSAGES_STREAM, ("--from", "anthropic-messages", "--to", "anthropic-messages")),
    "hermes": Case(
        stream(
            "hermes-3",
            "Let me look.\n",
            "<tool_call>\n",
            '{"name": "wea',
            'ther", "arguments": ',
            '{"city": "Paris"}',
            "}\n</tool_call>",
        )
    ),
    "hermes_mention": Case(stream("hermes-3", "The tag <tool_call> ", "begins a ", "call, </tool_call> ends it.")),
    "hermes_refused": Case(
        stream("hermes-3", '<tool_call>{"name": "rm", ', '"arguments": {"path"', ': "/"}}</tool_call>', " done")
    ),
    "hermes_arguments_first": Case(
        stream("hermes-3", '<tool_call>{"arguments": {"path"', ': "/"}, ', '"name": "ls"}</tool_call>')
    ),
    "qwen3_coder": Case(
        stream(
            "qwen3-coder-480b",
            "Now.\n<tool_call>\n<function=wea",
            "ther>\n<parameter=city>\nPa",
            "ris\n</parameter>\n<parameter=days>\n1",
            "0\n</param",
            "eter>\n</function>\n</tool_call>",
        )
    ),
    "glm": Case(
        stream(
            "glm-4.6",
            "<think>",
            "x</think>",
            "\n<tool_call>weather",
            "\n<arg_key>city</arg_key>",
            "\n<arg_value>Par",
            "is</arg_value>\n<arg_key>days</arg_key><arg_value>",
            "3</arg_value>",
            "\n</tool_call>",
        )
    ),
    "gpt_oss": Case(
        stream(
            "gpt-oss-120b",
            "<|channel|>analysis<|message|>Thin",
            "king.<|end|><|start|>assist",
            "ant<|channel|>commentary to=functions.ls <|constrain|>json",
            '<|message|>{"path": ',
            '"."}<|call|>',
        )
    ),
    "gemma": Case(
        stream("gemma-4-27b", "<|tool_call>call:wea", 'ther{city:<|"|>Par', 'is<|"|>,days:1', "0}<tool_call|>")
    ),
    "pythonic": Case(stream("llama-4-scout", "[weather(city='Par", "is', days=", "3)]")),
    "llama_bare_json": Case(
        stream("llama-3.1-8b", '{"name": "ls", ', '"parameters": {"pa', 'th": "."}}'), ("--dialect", "llama3_json")
    ),
    "kimi_bare_json": Case(stream("kimi-k2", '{"name": "ls", ', '"arguments": {"pa', 'th": "."}}')),
    "kimi_bare_json_is_text": Case(stream("kimi-k2", '{"name": "ls", ', '"other": {"pa', 'th": "."}}')),
    "kimi_lost_opener": Case(
        stream("kimi-k2", "functions.", "ls:0<|tool_call_argument_begin|>", '{"path": ', '"."}<|tool_call_end|>')
    ),
    "detect": Case(stream("unknown-1", "Hi.", *KIMI_CALL, "Bye."), ("--dialect", "detect")),
    "unknown_model": Case(stream("unknown-1", "Hi.", *KIMI_CALL)),
    "whitespace": Case(stream("kimi-k2", "<think>", "\n", "x", "</think>", "\n\n", "y ", "\n", "z")),
    # structured calls
    "interleaved_calls": Case(
        chunk({"role": "assistant", **call_delta(0, name="weather")}, model="gpt-5")
        + chunk(call_delta(0, '{"city":'), model="gpt-5")
        + chunk(call_delta(1, name="ls"), model="gpt-5")
        + chunk(call_delta(1, "{}"), model="gpt-5")
        + chunk({"content": "text"}, model="gpt-5")
        + chunk(call_delta(0, '"Paris"}'), model="gpt-5")
        + chunk({}, "tool_calls", model="gpt-5")
        + DONE
    ),
    "delivery_whole": Case(stream("kimi-k2", *KIMI_CALL), ("--delivery", "whole")),
    "reasoning_as_content": Case(stream("kimi-k2", *KIMI_PIECES), ("--reasoning", "as_content")),
    "reasoning_dropped": Case(stream("kimi-k2", *KIMI_PIECES), ("--reasoning", "drop")),
    "two_choices": Case(
        chunk({"role": "assistant", "content": "a <thi"})
        + chunk({"role": "assistant", "content": "<think>b"}, index=1)
        + chunk({"content": "nk>c"})
        + chunk({"content": "</think>"}, index=1)
        + chunk({}, "stop", index=1)
        + chunk({}, "stop")
        + DONE
    ),
    # broken replies and keep-alives
    "truncated_call": Case(stream("kimi-k2", *KIMI_CALL[:4], finish="length")),
    "cut_in_header": Case("".join(chunk({"content": piece}) for piece in KIMI_CALL[:2])),
    "cut_event": Case(chunk({"content": "a"}) + 'data: {"id":'),
    "no_tools_offered": Case(stream("kimi-k2", *KIMI_CALL), ("--tools", "empty.json"), tools=False),
    "noise": Case(
        ": keep-alive\n\n"
        + chunk({"role": "assistant", "content": "a<|im_end|>b<|tool_call_end|>c</think>d"})
        + ": ping\n\n"
        + "data: no JSON\n\n"
        + chunk({"role": "assistant", "content": "e"})
        + chunk({}, "stop", usage={"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3})
        + DONE
        + chunk({"content": "late"})
    ),
    "failure": Case(chunk({"content": "a <|tool_"}) + 'data: {"error": {"message": "overloaded"}}\n\n'),
    "empty": Case(""),
    # whole replies and captures
    "whole_reply": Case(WHOLE_REPLY),
    "whole_reply_to_messages": Case(WHOLE_REPLY, ("--to", "anthropic-messages")),
    "whole_error": Case('{"error": {"message": "no"}}'),
    "read_by_read": Case(stream("kimi-k2", *KIMI_PIECES, *PROSE), captured_to="openai-chat"),
    "read_by_read_to_messages": Case(stream("kimi-k2", *KIMI_PIECES, *PROSE), captured_to="anthropic-messages"),
    "read_by_read_unknown_model": Case(stream("unknown-1", *PROSE, *KIMI_CALL), captured_to="openai-chat"),
    "capture": Case("", (str(GOLDEN_FOLDER / "capture.jsonl"),), width=120),
}


def capture(stream: str, target: str) -> str:
    """Return a capture of the gateway with one read per message."""
    reads = [{"kind": "received", "at": 0, "text": f"{message}\n\n"} for message in stream.split("\n\n") if message]
    exchange = {"upstream_wire": "openai-chat", "wire": target, "dialect": "", "status": 200, "outcome": "ok"}
    return "\n".join(map(json.dumps, [*reads, {"kind": "end", "at": 0, "exchange": exchange}]))


def run(case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the standard output, then the standard error if there is any."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", str(case.width))
    (folder / "tools.json").write_text(json.dumps(TOOLS))
    (folder / "empty.json").write_text("[]")
    tools = ("--tools", "tools.json") if case.tools else ()
    streams = [io.TextIOWrapper(io.BytesIO(data), encoding="utf-8") for data in (case.stdin.encode(), b"", b"")]
    for name, standard_stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
        monkeypatch.setattr(sys, name, standard_stream)
    if case.captured_to:
        (folder / "capture.jsonl").write_text(capture(case.stdin, case.captured_to))
    file = ("capture.jsonl",) if case.captured_to else ()
    main(["translate", "--explain", *tools, *case.argv, *file])
    out, err = (standard_stream.buffer.getvalue().decode() for standard_stream in streams[1:])
    return f"{out}\nstderr:\n{err}" if err else out


@pytest.mark.parametrize(("name", "case"), CASES.items(), ids=CASES)
def test_explain_output(name: str, case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    actual = run(case, tmp_path, monkeypatch)
    golden = GOLDEN_FOLDER / f"{name}.txt"
    if not golden.exists():
        golden.write_text(actual, encoding="utf-8")
        pytest.fail(f"{golden} is written: read it")
    assert actual == golden.read_text(encoding="utf-8")


def test_every_golden_file_has_a_case() -> None:
    assert {path.stem for path in GOLDEN_FOLDER.glob("*.txt")} == set(CASES)
