"""The timeline of a reply: messages, steps and frames, and the bytes that each step came from."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlingua import events as ev
from interlingua import trace
from interlingua.captures.capture_format import CapturedExchange
from interlingua.captures.capture_replay import plan_replay, replay_reply
from interlingua.dialects.registry import list_dialects
from interlingua.inspection.reply_timeline import TimelineMessage, TimelineStep, build_timeline
from tests.support.captured_exchanges import DONE, capture_exchange, chat_chunk, chat_stream
from tests.support.harness import FIXTURES, Case, load_cases, tool

TOOLS = [tool("ls", ["path"])]
BODY: dict[str, Any] = {"model": "kimi-k2", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
KIMI_CALL = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.ls:0<|tool_call_argument_begin|>"
    '{"path": "/etc"}<|tool_call_end|><|tool_calls_section_end|>'
)


def timeline(captured: CapturedExchange) -> list[TimelineMessage]:
    replay = plan_replay(captured, "test")
    return list(build_timeline(replay_reply(captured, replay).events, replay.source))


def capture_pieces(*pieces: str, **more: Any) -> CapturedExchange:
    return capture_exchange({**BODY, "tools": TOOLS}, chat_stream(pieces), **more)


def source_text(messages: list[TimelineMessage], step: TimelineStep) -> str:
    """Return the text of the message that the step came from, as the browser marks it."""
    texts = []
    for source in step.sources:
        data = messages[source.message - 1].data.encode("utf-16-le")
        texts.append(data[2 * source.start : 2 * source.end].decode("utf-16-le") if source.end else "")
    return "".join(texts)


def steps_of(messages: list[TimelineMessage], kind: type[Any]) -> list[TimelineStep]:
    return [
        step
        for message in messages
        for step in message.steps
        if isinstance(step.event, kind) or isinstance(getattr(step.event, "event", None), kind)
    ]


def test_messages_have_time_position_and_frames() -> None:
    captured = capture_pieces("Hello", " world", first_byte=0.5, pace=0.25)
    first, hello, world, stop, done = timeline(captured)
    assert [message.at for message in (first, hello, world, stop, done)] == [0.5, 0.75, 1.0, 1.25, 1.5]
    assert (first.offset, hello.offset) == (0, len(first.data.encode()))
    assert [message.is_unchanged for message in (hello, world, done)] == [True, True, True]
    assert [frame.data for frame in hello.frames] == [""], "the bytes are those of the message"
    assert done.data == DONE.decode()


def test_held_back_text_has_its_reason_and_comes_from_several_messages() -> None:
    messages = timeline(capture_pieces("a <", "|tool", " b"))
    held = steps_of(messages, trace.HeldBack)
    assert [step.words for step in held] == [
        'buffered: "<" (may become a marker)',
        'buffered: "<|tool" (may become a marker)',
    ]
    assert [source_text(messages, step) for step in held] == ["<", "<|tool"]
    assert [source.message for source in held[1].sources] == [2, 3]
    text = steps_of(messages, ev.TextDelta)[-1]
    assert source_text(messages, text) == "<|tool b"
    assert [source.message for source in text.sources] == [2, 3, 4]


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_markers_name_and_arguments_come_from_their_bytes(size: int) -> None:
    messages = timeline(capture_pieces(*(KIMI_CALL[at : at + size] for at in range(0, len(KIMI_CALL), size))))
    assert [source_text(messages, step) for step in steps_of(messages, trace.MarkerSeen)] == [
        "<|tool_calls_section_begin|>",
        "<|tool_call_begin|>",
        "<|tool_call_argument_begin|>",
        "<|tool_call_end|>",
        "<|tool_calls_section_end|>",
    ]
    (start,) = steps_of(messages, ev.CallStart)
    assert source_text(messages, start) == "ls"
    arguments = [source_text(messages, step) for step in steps_of(messages, ev.ArgsDelta)]
    assert json.loads(f'"{"".join(arguments)}"') == '{"path": "/etc"}'


def test_structured_call_comes_from_its_own_strings() -> None:
    calls = [
        {"index": 0, "id": "call_1", "type": "function", "function": {"name": "ls", "arguments": ""}},
        {"index": 0, "function": {"arguments": '{"path": "naïve 🚀'}},
        {"index": 0, "function": {"arguments": '/x"}'}},
    ]
    reads = [chat_chunk({"tool_calls": [call]}) for call in calls]
    messages = timeline(
        capture_exchange({**BODY, "tools": TOOLS}, [*reads, chat_chunk({}, "tool_calls"), DONE], wire="openai-chat")
    )
    assert [source_text(messages, step) for step in steps_of(messages, ev.CallStart)] == ["ls"]
    assert [source_text(messages, step) for step in steps_of(messages, ev.ArgsDelta)] == [
        r"{\"path\": \"naïve 🚀",
        r"/x\"}",
    ]
    (stop,) = steps_of(messages, ev.Stop)
    assert source_text(messages, stop) == "tool_calls"


def test_frames_of_another_api_name_the_steps_that_they_carry() -> None:
    body = {"model": "k", "stream": True, "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    body["tools"] = [{"name": "ls", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}]
    captured = capture_exchange(body, chat_stream(["Look. " + KIMI_CALL]), wire="anthropic-messages")
    messages = timeline(captured)
    carried = {
        json.loads(frame.data.partition("data: ")[2])["type"]: [message.steps[index].words for index in frame.steps]
        for message in messages
        for frame in message.frames
        if frame.steps
    }
    assert [words.partition(",")[0] for words in carried["content_block_start"]] == ["call opened: ls"]
    assert carried["content_block_delta"] == ["arguments forwarded"]


def test_whole_reply_is_one_message() -> None:
    message = {"role": "assistant", "content": "Look. " + KIMI_CALL}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    reply = {"id": "c", "object": "chat.completion", "created": 1, "model": "kimi-k2", "choices": [choice]}
    captured = capture_exchange({**BODY, "stream": False, "tools": TOOLS}, [json.dumps(reply).encode()])
    (only,) = timeline(captured)
    assert only.is_whole
    assert json.loads(only.frames[0].data)["choices"][0]["finish_reason"] == "tool_calls"
    (start,) = steps_of([only], ev.CallStart)
    assert source_text([only], start) == "ls"


def test_end_of_a_stream_that_was_cut_off_is_a_message() -> None:
    *_, end = timeline(capture_exchange(BODY, [chat_chunk({"content": "cut"})]))
    assert end.is_end
    assert any(isinstance(getattr(step.event, "event", None), ev.Failure) for step in end.steps)


BUILT_IN = {dialect.name for dialect in list_dialects()}
CASES = [case for path in sorted(FIXTURES.glob("*.toml")) if path.stem in BUILT_IN for case in load_cases(path.stem)]


@pytest.mark.one_row_in(17)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_text_that_is_sent_unchanged_is_found_in_every_dialect(case: Case) -> None:
    """Each text of the reply comes from bytes that contain it, however the stream is cut."""
    text = case.full_text
    body = {**BODY, **({"tools": case.offered_tools} if case.offered_tools is not None else {})}
    pieces = [text[at : at + 5] for at in range(0, len(text), 5)]
    options = {"prefill": case.prefill} if case.prefill else {}
    captured = capture_exchange(body, chat_stream(pieces), dialect=case.dialect, options=options)
    messages = timeline(captured)
    for step in steps_of(messages, ev.TextDelta) + steps_of(messages, ev.ReasoningDelta):
        sent = getattr(getattr(step.event, "event", None), "text", "")
        found = json.loads(f'"{source_text(messages, step)}"')
        assert sent in found or not sent.strip() or sent not in text, (sent, found)
