"""Sessions: turns of one agent and its subagents, by the ids and the conversations in their requests."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlingua.inspection.sessions import TurnFacts, group_sessions, read_turn_facts


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def facts(*messages: dict[str, Any], headers: dict[str, str] | None = None, **fields: Any) -> TurnFacts:
    return read_turn_facts(headers or {}, json.dumps({**fields, "messages": list(messages)}).encode(), "messages")


def grouped(*turns: TurnFacts) -> list[list[list[str]]]:
    """Return the ids of the turns of each thread of each session. Ids are the positions of the arguments."""
    exchanges = [(str(index), float(index), "agent", turn) for index, turn in enumerate(turns)]
    return [[[turn.id for turn in thread.turns] for thread in one.threads] for one in group_sessions(exchanges)]


@pytest.mark.parametrize(
    ("headers", "fields", "session"),
    [
        ({"X-Claude-Code-Session-Id": "a7f7"}, {}, "a7f7"),
        ({"session-id": "01a1"}, {"prompt_cache_key": "other"}, "01a1"),
        ({"x-session-affinity": "ses_1"}, {}, "ses_1"),
        ({}, {"metadata": {"user_id": '{"device_id":"d","session_id":"a7f74645"}'}}, "a7f74645"),
        ({}, {"metadata": {"user_id": "user_1_account__session_0a1b2c3d-1234"}}, "0a1b2c3d-1234"),
        ({}, {"prompt_cache_key": "session_947192c4"}, "session_947192c4"),
        ({}, {"metadata": {"user_id": 5}, "prompt_cache_key": None}, ""),
        ({}, {}, ""),
    ],
)
def test_session_id_of_known_agents(headers: dict[str, str], fields: dict[str, Any], session: str) -> None:
    assert facts(user("hi"), headers=headers, **fields).session == session


def test_turns_of_one_conversation_are_one_thread() -> None:
    first = [user("fix it")]
    second = [*first, assistant("look"), user("ok")]
    third = [*second, assistant("done"), user("thanks")]
    assert grouped(facts(*first), facts(*second), facts(*third)) == [[["0", "1", "2"]]]


def test_subagents_are_threads_of_the_same_session() -> None:
    key: dict[str, Any] = {"prompt_cache_key": "s1"}
    main, sub = [user("fix the bug")], [user("search for usages of foo")]
    turns = [
        facts(*main, **key),
        facts(*sub, **key),
        facts(*sub, assistant("found"), user("ok"), **key),
        facts(*main, assistant("the subagent says"), user("go on"), **key),
    ]
    assert grouped(*turns) == [[["0", "3"], ["1", "2"]]]


def test_clients_without_an_id_have_a_session_per_conversation() -> None:
    one, two = [user("first task")], [user("second task")]
    turns = [facts(*one), facts(*two), facts(*one, assistant("a"), user("b"))]
    assert sorted(grouped(*turns)) == [[["0", "2"]], [["1"]]]


def test_changed_first_message_continues_the_thread() -> None:
    """A date in the first message breaks the prompt cache, but not the conversation."""
    rest = [assistant("a"), user("b"), assistant("c"), user("d")]
    key: dict[str, Any] = {"prompt_cache_key": "s"}
    turns = [facts(user("it is 10:00"), *rest, **key), facts(user("it is 10:01"), *rest, assistant("e"), **key)]
    assert grouped(*turns) == [[["0", "1"]]]


def test_moved_cache_marks_do_not_matter() -> None:
    marked = {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]}
    plain = {"role": "user", "content": [{"type": "text", "text": "hi"}]}
    assert grouped(facts(marked), facts(plain, assistant("x"), user("y"))) == [[["0", "1"]]]


def test_previous_turn_is_the_one_before_in_the_thread() -> None:
    exchanges = [("a", 2.0, "c", facts(user("x"), assistant("y"), user("z"))), ("b", 1.0, "c", facts(user("x")))]
    (session,) = group_sessions(exchanges)
    assert [(turn.id, turn.previous) for turn in session.threads[0].turns] == [("b", ""), ("a", "b")]


def test_title_is_the_users_own_text() -> None:
    content = [
        {"type": "text", "text": "<system-reminder>Today is …</system-reminder>\n"},
        {"type": "text", "text": "Why did\nit stop?"},
    ]
    assert facts({"role": "user", "content": content}).title == "Why did it stop?"


def test_title_is_not_the_environment_that_an_agent_describes_in_a_message_of_its_own() -> None:
    environment = {"role": "user", "content": "<environment_context> <cwd>/work</cwd> </environment_context>"}
    assert facts(environment, user("Fix it.")).title == "Fix it."
    assert facts(environment, user("Fix it."), environment).last_text == "Fix it."
    assert facts(environment).title.startswith("<environment_context>")


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"messages": 5}', b'{"messages": [5, {}]}', b"\xff"])
def test_bodies_that_are_no_requests_have_facts(body: bytes) -> None:
    assert read_turn_facts({}, body, "messages").title == ""


def test_newest_session_comes_first() -> None:
    turns = [facts(user("old")), facts(user("new"))]
    assert grouped(*turns) == [[["1"]], [["0"]]]


def test_requests_without_a_message_of_a_user_belong_to_no_session() -> None:
    assert grouped(facts(), facts(user("hi")), facts()) == [[["1"]]]
    assert grouped(facts(headers={"session-id": "s"})) == [[["0"]]]
