"""History repair: each known client error, and properties that hold for every history."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.core.reply import Call, Reasoning, Text
from interlingua.core.request import NO_CONTENT, CacheMark, Image, Message, Request, Result
from interlingua.core.tools import Tool
from interlingua.errors import BadRequest
from interlingua.events import Seal
from interlingua.translation.history_repair import NO_RESULT, repair_history
from tests.support.histories import (
    call,
    message_lists,
    model,
    request,
    result,
    system,
    user,
)

IMAGE = Image("data:image/png;base64,AAAA")
MARK = CacheMark({"type": "ephemeral"})
MISSING = Result("a", [Text(NO_RESULT)])

Row = tuple[list[Message], list[Message], list[str]]
ROWS: dict[str, Row] = {
    # history, repaired history, kinds of the findings
    "valid history": (
        [user("hi"), model("so", call("a")), user(result("a"), "and"), model("done")],
        [user("hi"), model("so", call("a")), user(result("a"), "and"), model("done")],
        [],
    ),
    "a call without a result": (
        [model(call("a")), user("stop")],
        [model(call("a")), user(MISSING, "stop")],
        ["no-result"],
    ),
    "one of two calls": (
        [model(call("b"), call("a")), user(result("b"), "stop")],
        [model(call("b"), call("a")), user(result("b"), MISSING, "stop")],
        ["no-result"],
    ),
    "a call at the end": ([model(call("a"))], [model(call("a")), user(MISSING)], ["no-result"]),
    "a call, then the model again": (
        [model(call("a")), system("x"), model("so")],
        [model(call("a")), user(MISSING), system("x"), model("so")],
        ["no-result"],
    ),
    "a result without a call": (
        [user("hi"), model("so"), user(Result("z", [Text("42"), IMAGE]), "and")],
        [user("hi"), model("so"), user("[tool result z]", "42", IMAGE, "and")],
        ["orphan-result"],
    ),
    "a failed result without a call or an id": (
        [user(Result("", [Text("no")], error=True))],
        [user("[tool error]", "no")],
        ["orphan-result"],
    ),
    "a result before its call": (
        [user(result("a")), model(call("a"))],
        [user("[tool result a]", "ok"), model(call("a")), user(MISSING)],
        ["orphan-result", "no-result"],
    ),
    "a late result": (
        [model(call("a")), user("go on"), model("so"), user(result("a"))],
        [model(call("a")), user(MISSING, "go on"), model("so"), user("[tool result a]", "ok")],
        ["no-result", "late-result"],
    ),
    "several results": (
        [model(call("a")), user(Result("a", [Text("1")]), Result("a", [Text("2")], error=True))],
        [model(call("a")), user(Result("a", [Text("1"), Text("2")], error=True))],
        ["several-results"],
    ),
    "the same result twice": (
        [model(call("a")), user(result("a")), user(result("a"))],
        [model(call("a")), user(result("a"))],
        ["several-results"],
    ),
    "text before the result": (
        [model(call("a")), user("and", result("a"))],
        [model(call("a")), user(result("a"), "and")],
        ["result-moved"],
    ),
    "a message before the result": (
        [model(call("a"), call("b")), user(result("a")), user("and"), user(result("b"), MARK)],
        [model(call("a"), call("b")), user(result("a"), result("b"), MARK), user("and")],
        ["result-moved"],
    ),
    "a system message before the result": (
        [model(call("a")), system("x"), user(result("a"))],
        [model(call("a")), user(result("a")), system("x")],
        ["result-moved"],
    ),
    "a result in the model's message": (
        [model(call("a"), result("a")), user("and")],
        [model(call("a")), user(result("a"), "and")],
        ["result-moved"],
    ),
    "a result without a call in a system message": (
        [system("x", result("a"))],
        [user("[tool result a]", "ok"), system("x")],
        ["orphan-result"],
    ),
    "results in messages of their own": (
        [model(call("a"), call("b")), user(result("b")), user(result("a")), user("and")],
        [model(call("a"), call("b")), user(result("a"), result("b")), user("and")],
        [],
    ),
    "the model's turn in two messages": (
        [model(call("a")), model("so"), user(result("a"))],
        [model(call("a"), "so"), user(result("a"))],
        ["split-turn"],
    ),
    "two messages of the model without calls between": (
        [model("so"), model(call("a")), user(result("a"))],
        [model("so"), model(call("a")), user(result("a"))],
        [],
    ),
    "an id in two turns": (
        [model(call("a")), user(result("a")), model(call("a")), user(Result("a", [Text("2")]))],
        [model(call("a")), user(result("a")), model(call("a_2")), user(Result("a_2", [Text("2")]))],
        ["id-renamed"],
    ),
    "Kimi's ids, begun again": (
        [model(call("f:0")), user(result("f:0")), model(call("f:0"), call("f:1")), user(result("f:1"), result("f:0"))],
        [model(call("f:0")), user(result("f:0")), model(call("f:1"), call("f:2")), user(result("f:1"), result("f:2"))],
        ["id-renamed", "id-renamed"],
    ),
    "an id twice in one turn": (
        [model(call("a"), call("a")), user(result("a", "1"), result("a", "2"), result("a", "3"))],
        [model(call("a"), call("a_2")), user(result("a", "1"), Result("a_2", [Text("2"), Text("3")]))],
        ["id-renamed", "several-results"],
    ),
    "an id of an unanswered call": (
        [model(call("a")), user("no"), model(call("a")), user(result("a"))],
        [model(call("a")), user(MISSING, "no"), model(call("a_2")), user(result("a_2"))],
        ["no-result", "id-renamed"],
    ),
    "empty text": ([user("", "hi", ""), model("", call("a")), user(result("a"))],
                   [user("hi"), model(call("a")), user(result("a"))],
                   ["empty-content"] * 3),
    "a mark on empty text": ([user("", MARK, "hi")], [user("hi")], ["empty-content"]),
    "a mark on nothing": ([user(MARK, "hi")], [user("hi")], ["empty-content"]),
    "an empty result": ([model(call("a")), user(Result("a", [Text("")]))], [model(call("a")), user(Result("a"))], []),
    "empty messages": (
        [user("hi"), user(), model(), system(), user("so")],
        [user("hi"), user("so")],
        ["empty-content"] * 3,
    ),
    "an empty answer": (
        [model("so"), user(""), model("and")],
        [model("so"), user(NO_CONTENT), model("and")],
        ["empty-content"] * 2,
    ),
    "empty thinking": (
        [model(Reasoning(""), "so")],
        [model("so")],
        ["empty-content"],
    ),
    "thinking with only a signature": (
        [model(Reasoning("", Seal("anthropic-messages", {"signature": "s"})), "so")],
        [model(Reasoning("", Seal("anthropic-messages", {"signature": "s"})), "so")],
        [],
    ),
    "thinking and a call of the user": (
        [user(Reasoning("hm"), call("a", "ls", "{}"))],
        [user("hm", "[call of ls: {}]")],
        ["misplaced", "misplaced"],
    ),
    "a last message of the model": ([user("hi"), model("so")], [user("hi"), model("so")], []),
    "empty history": ([], [], []),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_repair(name: str) -> None:
    history, expected, kinds = ROWS[name]
    repaired, findings = repair_history(request(history))
    assert repaired == request(expected)
    assert [finding.kind for finding in findings] == kinds


@pytest.mark.parametrize("name", [name for name, (_, _, kinds) in ROWS.items() if kinds])
def test_strict_rejects_a_history_that_needs_repair(name: str) -> None:
    with pytest.raises(BadRequest) as caught:
        repair_history(request(ROWS[name][0]), strict=True)
    assert caught.value.path.startswith("messages[")


@pytest.mark.parametrize("name", [name for name, (_, _, kinds) in ROWS.items() if not kinds])
def test_strict_accepts_a_valid_history(name: str) -> None:
    assert repair_history(request(ROWS[name][0]), strict=True) == repair_history(request(ROWS[name][0]))


def test_strict_error_has_the_path() -> None:
    history = [user("hi"), model(call("a")), user("x", Result("toolu_1"))]
    with pytest.raises(BadRequest, match=r"(?m)^messages\[2\]\.pieces\[1\]\.id: no call has this id$"):
        repair_history(request(history), strict=True)


ARGUMENTS = {
    # arguments in the history, repaired arguments, kind of the finding
    '{"a": 1}': ('{"a": 1}', None),
    ' {"a" :1.0}\n': (' {"a" :1.0}\n', None),
    "": ("{}", "no-arguments"),
    "null": ("{}", "no-arguments"),
    '"{\\"a\\": 1}"': ('{"a": 1}', "unwrapped-arguments"),
    "{'a': True}": ('{"a": true}', "mended-arguments"),
    '{"a": ': ('{"INVALID_JSON":"{\\"a\\": "}', "wrapped-arguments"),
    "*** Begin Patch": ('{"INVALID_JSON":"*** Begin Patch"}', "wrapped-arguments"),
    "[1, 2]": ('{"INVALID_JSON":"[1, 2]"}', "wrapped-arguments"),
    "[" * 20_000: (json.dumps({"INVALID_JSON": "[" * 20_000}, separators=(",", ":")), "wrapped-arguments"),
}


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=lambda text: repr(text)[:20])
def test_arguments_are_repaired(arguments: str) -> None:
    expected, kind = ARGUMENTS[arguments]
    repaired, findings = repair_history(request([model(call("a", "f", arguments)), user(result("a"))]))
    assert repaired.messages[0] == model(call("a", "f", expected))
    assert [finding.kind for finding in findings] == ([kind] if kind else [])


@pytest.mark.parametrize(
    ("name", "expected"),
    [("ls", "ls"), ("multi_tool_use.parallel", "multi_tool_use_parallel"), ("", "unnamed"), ("my.tool", "my.tool"),
     ("x" * 99, f"{'x' * 55}_dfcef126")],
)  # fmt: skip
def test_tool_names_are_repaired(name: str, expected: str) -> None:
    repaired, findings = repair_history(request([model(call("a", name)), user(result("a"))], tools=[Tool("my.tool")]))
    assert repaired.messages[0] == model(call("a", expected))
    assert [finding.kind for finding in findings] == ([] if name == expected else ["odd-name"])


def test_call_without_an_id_gets_one() -> None:
    repaired, findings = repair_history(request([model(call(""), call("")), user(result(""), result(""))]))
    ids = [piece.id for message in repaired.messages for piece in message.pieces if isinstance(piece, Call | Result)]
    assert len(set(ids)) == 2
    assert ids[:2] == ids[2:]
    assert [finding.kind for finding in findings] == ["no-id", "no-id"]


def test_empty_system_text_is_dropped() -> None:
    repaired, findings = repair_history(Request(wire="w", model="m", system=[Text(""), MARK, Text("x"), MARK]))
    assert repaired.system == [Text("x"), MARK]
    assert [finding.kind for finding in findings] == ["empty-content"]


# ── properties ────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(message_lists())
def test_repair_is_idempotent(history: list[Message]) -> None:
    repaired, _ = repair_history(request(history))
    assert repair_history(repaired) == (repaired, [])
    assert repair_history(repaired, strict=True) == (repaired, [])


@given(message_lists())
def test_every_call_is_directly_followed_by_one_result(history: list[Message]) -> None:
    messages = repair_history(request(history))[0].messages
    calls = [piece.id for message in messages for piece in message.pieces if isinstance(piece, Call)]
    assert len(set(calls)) == len(calls)
    for n, message in enumerate(messages):
        call_ids = [piece.id for piece in message.pieces if isinstance(piece, Call)]
        # A cache mark may follow each result.
        next_pieces = messages[n + 1].pieces[: 2 * len(call_ids)] if call_ids else []
        leading = [piece for piece in next_pieces if not isinstance(piece, CacheMark)][: len(call_ids)]
        assert [piece.id for piece in leading if isinstance(piece, Result)] == call_ids
    assert sum(isinstance(piece, Result) for message in messages for piece in message.pieces) == len(calls)


@given(message_lists())
def test_no_piece_is_empty_and_arguments_are_objects(history: list[Message]) -> None:
    for message in repair_history(request(history))[0].messages:
        assert message.pieces
        assert all(piece not in (Text(""), Reasoning("")) for piece in message.pieces)
        assert all(isinstance(json.loads(piece.arguments), dict) for piece in message.pieces if isinstance(piece, Call))


@given(message_lists())
def test_no_text_is_lost(history: list[Message]) -> None:
    def texts(pieces: list[Any]) -> list[str]:
        nested = [
            texts(piece.content) if isinstance(piece, Result) else [getattr(piece, "text", "")] for piece in pieces
        ]
        return [text for piece_texts in nested for text in piece_texts if text]

    repaired = repair_history(request(history))[0]
    kept = {text for message in repaired.messages for text in texts(list(message.pieces))}
    assert {text for message in history for text in texts(list(message.pieces))} <= kept


@given(message_lists(), st.data())
def test_repair_is_the_same_in_the_next_turn(history: list[Message], data: st.DataObject) -> None:
    """A request ends where the model's turn starts. The next request adds the reply and the messages after it."""
    ends = [n for n in range(1, len(history)) if history[n].role == "assistant" != history[n - 1].role]
    end = data.draw(st.sampled_from([*ends, len(history)]))
    now, then = repair_history(request(history[:end]))[0].messages, repair_history(request(history))[0].messages
    assert then[: len(now)] == now
