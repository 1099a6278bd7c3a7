"""Matching of requests with recordings: by meaning, on every wire, and never wrong."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import interlingua as il
from interlingua.cassettes.cassette_format import read_cassette, write_cassette
from interlingua.cassettes.match_rules import PART_NAMES, MatchRules
from interlingua.cassettes.recorded_exchange import RecordedExchange, RecordedUpstream, record_exchange
from interlingua.cassettes.recording_index import CassetteMiss, RecordingIndex
from interlingua.cassettes.request_meaning import read_request_meaning
from interlingua.errors import UsageError
from interlingua.wires import WIRES
from interlingua.wires.openai_chat.request_reader import NUMERIC_SAMPLING_FIELDS, OTHER_SAMPLING_FIELDS
from tests.cassettes.requests import IRRELEVANT, OWN_WIRE, RELEVANT, SETTINGS, Change, changed, conversation

Json = dict[str, Any]
MESSAGES = "anthropic-messages"
UNCHANGED = Change("nothing", lambda _: None)


def recorded(body: Json, wire: str = MESSAGES, text: str = "Hi.", *, is_complete: bool = True) -> RecordedExchange:
    chunk = (
        b'data: {"choices": [{"index": 0, "delta": {"content": "%b"}, "finish_reason": "stop"}]}\n\n' % text.encode()
    )
    upstream = RecordedUpstream(wire="openai-chat", model="m")
    return record_exchange(wire=wire, body=body, upstream=upstream, pieces=[(0.1, chunk)], is_complete=is_complete)


def index_of(*exchanges: RecordedExchange, rules: MatchRules | None = None) -> RecordingIndex:
    index = RecordingIndex(rules or MatchRules())
    for number, exchange in enumerate(exchanges, 1):
        index.replace(f"{number}.yaml", [exchange])
    return index


def find(index: RecordingIndex, body: Json, wire: str = MESSAGES) -> list[str]:
    """Return the files of the recordings that answer the request."""
    return [one.source for one in index.find(read_request_meaning(wire, body, index.rules))]


def on_wire(body: Json, wire: str) -> Json:
    return body if wire == MESSAGES else il.translate_request(body, MESSAGES, wire)


def named(changes: list[Change]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("change", changes, ids=lambda change: change.name)


@pytest.mark.parametrize("wire", WIRES)
@named([UNCHANGED, *IRRELEVANT])
def test_change_without_meaning_matches_on_every_wire(change: Change, wire: str) -> None:
    assert find(index_of(recorded(conversation())), on_wire(changed(change, conversation()), wire), wire) == ["1.yaml"]


@pytest.mark.parametrize("wire", WIRES)
@named([*RELEVANT, *SETTINGS])
def test_change_of_meaning_is_a_miss_on_every_wire_that_shows_it(change: Change, wire: str) -> None:
    index = index_of(recorded(conversation("Oslo")), recorded(conversation()))
    with pytest.raises(CassetteMiss) as miss:
        find(index, on_wire(changed(change, conversation()), wire), wire)
    assert "The nearest one is 2.yaml, exchange 1" in str(miss.value)
    if wire == MESSAGES or change.name not in ("failed result", "missing result", "one message less"):
        assert change.shown in str(miss.value)  # other wires repair a broken history, and write failures as text


@named(OWN_WIRE)
def test_what_only_one_wire_has_counts_on_that_wire(change: Change) -> None:
    index, body = index_of(recorded(conversation())), changed(change, conversation())
    with pytest.raises(CassetteMiss) as miss:
        find(index, body)
    assert change.shown in str(miss.value)
    assert find(index_of(recorded(body)), on_wire(conversation(), "openai-responses"), "openai-responses") == ["1.yaml"]


WORDS = st.sampled_from(["Paris", "Oslo", "sunny", "2026-11-17", "Today's date is 2026-11-17.", "a: b", "é", ""])
TEXTS = st.lists(WORDS, max_size=4).map(" ".join)
TURNS = st.lists(st.tuples(TEXTS, TEXTS, TEXTS), max_size=3)


@given(TEXTS, TURNS, TEXTS, TURNS, st.sampled_from(WIRES), st.sampled_from(WIRES))
def test_random_requests_match_only_if_their_texts_are_equal(
    system: str, turns: Any, other_system: str, other_turns: Any, wire: str, other_wire: str
) -> None:
    """Dates of system prompts are left out, so that two of them may match although they differ."""
    body, other = _random_body(system, turns), _random_body(other_system, other_turns)
    request = read_request_meaning(wire, on_wire(body, wire))
    recording = read_request_meaning(other_wire, on_wire(other, other_wire))
    is_same = (_without_date(system), _shown(turns)) == (_without_date(other_system), _shown(other_turns))
    assert request.fits(recording) == is_same
    assert request.fits(request)


def _without_date(text: str) -> str:
    """Return a system prompt without its date. One without a letter is none."""
    return text.replace("Today's date is 2026-11-17.", "Today's date is <date>.") if text.strip() else ""


def _shown(turns: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Return the turns as `_random_body` writes them: without blank text."""
    return [(text if text.strip() else "", argument, result) for text, argument, result in turns]


def _random_body(system: str, turns: list[tuple[str, str, str]]) -> Json:
    messages: list[Json] = [{"role": "user", "content": "Go."}]
    for number, (text, argument, result) in enumerate(turns):
        call = {"type": "tool_use", "id": f"call_{number}", "name": "look", "input": {"key": argument}}
        texts = [{"type": "text", "text": text}] if text.strip() else []
        messages += [
            {"role": "assistant", "content": [*texts, call]},
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": f"call_{number}", "content": result or "-"}],
            },
        ]
    return {"model": "m", "max_tokens": 9, "messages": messages, **({"system": system} if system.strip() else {})}


@pytest.mark.parametrize("seed", range(3))
def test_two_hundred_random_requests_against_fifty_recordings(seed: int) -> None:
    """Recordings are near misses of each other. A request is one of them, changed so that it still means the same, or
    so that it means something else; on any wire."""
    choose = random.Random(seed)
    variants = choose.sample([*RELEVANT, *SETTINGS], 4)
    bodies = [changed(variant, conversation(f"city {n}")) for n in range(10) for variant in (UNCHANGED, *variants)]
    index = index_of(*map(recorded, bodies))
    assert len(index) == 50
    others = [change for change in (*RELEVANT, *SETTINGS) if change not in variants]
    wrong, outcomes = [], Counter[bool]()
    while sum(outcomes.values()) < 200:
        number, wire, is_near_miss = choose.randrange(50), choose.choice(WIRES), choose.random() < 0.5
        changes = [*choose.sample(IRRELEVANT, 3), *([choose.choice(others)] if is_near_miss else [])]
        try:
            body = bodies[number]
            for change in changes:
                body = changed(change, body)
        except LookupError:  # what is changed is not there any more
            continue
        try:
            found = find(index, on_wire(body, wire), wire)
        except CassetteMiss:
            found = []
        if found != ([] if is_near_miss else [f"{number + 1}.yaml"]):
            wrong.append((number, wire, [change.name for change in changes], found))
        outcomes[is_near_miss] += 1
    assert not wrong
    assert min(outcomes.values()) > 50


def user_message(*texts: str) -> Json:
    """Return a request with these parts; `image` is one."""
    parts = [IMAGE_PART if text == "image" else {"type": "text", "text": text} for text in texts]
    return {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": parts}]}


IMAGE_PART: Json = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}


@pytest.mark.parametrize("wire", WIRES)
def test_place_of_an_image_counts(wire: str) -> None:
    index = index_of(recorded(user_message("before", "image", "after")))
    assert find(index, on_wire(user_message("before", "image", "after"), wire), wire) == ["1.yaml"]
    with pytest.raises(CassetteMiss):
        find(index, on_wire(user_message("before", "after", "image"), wire), wire)


@pytest.mark.parametrize(
    "odd",
    [
        {"a.b": {"c]": [1]}},
        {"[0]": 1, "": 2},
        {"text": "half \ud83d"},
    ],
)
def test_odd_request_is_found_again(odd: Json) -> None:
    body = user_message("hi")
    body["messages"][0]["content"][0] |= odd
    body["messages"][0] |= {name: value for name, value in odd.items() if name != "text"}
    (exchange,) = read_cassette(write_cassette([recorded(body)]), "a.yaml")
    assert find(index_of(exchange), body) == ["1.yaml"]


# ── several recordings ────────────────────────────────────────────────────────────────────────────────────────────


def test_replies_to_the_same_request_are_found_in_order() -> None:
    index = RecordingIndex()
    index.replace("a.yaml", [recorded(conversation(), text="one"), recorded(conversation(), text="two")])
    found = index.find(read_request_meaning(MESSAGES, conversation()))
    assert [one.exchange.meaning.text for one in found] == ["one", "two"]


def test_recording_of_the_own_wire_is_preferred() -> None:
    body = conversation()
    chat = on_wire(body, "openai-chat")
    index = index_of(recorded(chat, "openai-chat"), recorded(body))
    assert find(index, body) == ["2.yaml"]
    assert find(index, chat, "openai-chat") == ["1.yaml"]


def test_recording_with_the_same_settings_is_preferred_on_another_wire() -> None:
    without = conversation()
    del without["temperature"]
    index, chat = index_of(recorded(without), recorded(conversation())), on_wire(conversation(), "openai-chat")
    assert find(index, chat, "openai-chat") == ["2.yaml"]


def test_ambiguous_recordings_of_another_wire_are_a_miss() -> None:
    warm = {**conversation(), "temperature": 1}
    chat = on_wire(conversation(), "openai-chat")
    del chat["temperature"]
    with pytest.raises(CassetteMiss, match=r"two recordings fit[^$]*temperature: 0\.5, recorded 1"):
        find(index_of(recorded(conversation()), recorded(warm)), chat, "openai-chat")


def test_incomplete_recording_is_used_if_there_is_no_other() -> None:
    cut = recorded(conversation(), is_complete=False)
    assert find(index_of(cut), conversation()) == ["1.yaml"]
    assert find(index_of(cut, recorded(conversation())), conversation()) == ["2.yaml"]


def test_empty_cassette_says_so() -> None:
    with pytest.raises(CassetteMiss, match="the cassette is empty"):
        find(index_of(), conversation())


# ── rules ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("ignore", "change"),
    [
        ("model", "model"),
        ("system", "system line"),
        ("tools", "one tool less"),
        ("tool_descriptions", "tool description"),
        ("tool_choice", "tool choice"),
        ("temperature", "temperature"),
        ("max_tokens", "max_tokens"),
        ("context_management", "field of the wire"),
        ("novelty", "unknown field"),
    ],
)
def test_ignored_part_does_not_count(ignore: str, change: str) -> None:
    body = changed(next(one for one in (*RELEVANT, *SETTINGS, *OWN_WIRE) if one.name == change), conversation())
    assert find(index_of(recorded(conversation()), rules=MatchRules([ignore])), body) == ["1.yaml"]


def test_miss_names_ignored_fields_that_no_request_has() -> None:
    rules = MatchRules(["top_p", "novelti", "novelty", "metadata"])
    body = conversation()
    with pytest.raises(CassetteMiss) as miss:
        find(index_of(recorded({**body, "novelty": 1}), rules=rules), {**body, "max_tokens": 7})
    assert str(miss.value).splitlines()[1:] == [
        "  max_tokens: 7, recorded 1000",
        "`ignore` has no effect for 'metadata', 'novelti': no request has a field of this name that counts",
    ]
    with pytest.raises(CassetteMiss) as miss:
        find(index_of(recorded(body), rules=MatchRules(["novelty"])), {**body, "max_tokens": 7, "novelty": 1})
    assert "`ignore`" not in str(miss.value)


def test_settings_of_every_request_are_known() -> None:
    assert {*NUMERIC_SAMPLING_FIELDS, *OTHER_SAMPLING_FIELDS} <= PART_NAMES


def test_replaced_text_does_not_count() -> None:
    rules = MatchRules(replace={r"/tmp/[\w-]+": "/tmp/X"})
    index = index_of(recorded(conversation("/tmp/pytest-1")), rules=rules)
    assert find(index, conversation("/tmp/pytest-2")) == ["1.yaml"]
    with pytest.raises(CassetteMiss):
        find(index, conversation("/home/pytest-2"))


def test_dates_count_without_default_rules() -> None:
    index = index_of(recorded(conversation()), rules=MatchRules(defaults=False))
    assert find(index, conversation()) == ["1.yaml"]
    body = conversation()
    body["system"][2]["text"] = "Today's date is 2027-01-02."
    with pytest.raises(CassetteMiss, match="2027-01-02"):
        find(index, body)


def test_invalid_pattern_is_an_error() -> None:
    with pytest.raises(UsageError, match="not a regular expression"):
        MatchRules(replace={"(": ""})


@pytest.mark.parametrize(
    "line",
    [
        "Today's date is {}.",
        "The current date is {}",
        "Current time: {}",
        "Today is {}",
        "<current_date>{}</current_date>",
        "  - Date: {}",
    ],
)
@pytest.mark.parametrize(
    "date",
    [
        "2026-11-17",
        "2026-11-17T08:05:00Z",
        "Tuesday, November 17, 2026",
        "17 Nov 2026",
        "11/17/2026 8:05 PM",
        "Nov. 17 2026",
    ],
)
def test_stated_date_of_a_system_prompt_does_not_count(line: str, date: str) -> None:
    rules = MatchRules()
    assert rules.clean_system(line.format(date)) == line.format("<date>")
    assert rules.clean_user(line.format(date)) == line.format(date)
    assert rules.clean_user(f"<env>\n{line.format(date)}\n</env>") == f"<env>\n{line.format('<date>')}\n</env>"


def test_other_dates_of_a_system_prompt_count() -> None:
    text = "Your knowledge ends on 2025-01-31. The law of 2001-09-01 applies."
    assert MatchRules().clean_system(text) == text


def test_wall_time_of_a_shell_tool_does_not_count() -> None:
    rules, result = MatchRules(), "Chunk ID: e50f0d\nWall time: 0.0012 seconds\nProcess exited with code 0\nOutput:\nhi"
    assert rules.clean_result(result) == "Process exited with code 0\nOutput:\nhi"
    assert rules.clean_result("Wall time: 0.03 seconds\nDone.") == "Done."
    assert rules.clean_result(f"> {result}") == f"> {result}"
    assert MatchRules(defaults=False).clean_result(result) == result


def test_secret_does_not_count() -> None:
    body, other = conversation("sk-abcdefghijklmnop"), conversation("sk-qrstuvwxyz012345")
    assert find(index_of(recorded(body)), other) == ["1.yaml"]
