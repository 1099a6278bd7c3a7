"""Incremental translation: with any earlier requests in the cache, a request is translated as without a cache."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from bench.traffic import agent_session
from interlingua.common.jsontext.value_count import count_separators
from interlingua.core.options import Limits, Options
from interlingua.errors import BadRequest
from interlingua.translation import incremental_translation
from interlingua.translation.exchange import Exchange, UpstreamTarget, plan_translation
from interlingua.translation.request_cache import MAX_TOOL_LIST_BYTES, TOOL_COPIES, RequestCache
from interlingua.translation.request_translation import translate_body
from interlingua.translation.turn_translation import translate_turns
from interlingua.translation.undecoded_request import UndecodedRequest
from interlingua.upstreams import get_profile, list_profiles
from interlingua.upstreams.profile import UNKNOWN_PROFILE
from tests.support.agent_sessions import FIELDS, KEYS, RandomSession
from tests.support.budget import examples
from tests.support.request_forms import CHAT, MESSAGES, RESPONSES, WIRES
from tests.translation.test_recorded_requests import PAIRS, REQUESTS
from tests.wires.test_request_fuzz import FUZZED_REQUESTS, corrupt

Json = dict[str, Any]
LEARNED_PROFILES = [
    replace(UNKNOWN_PROFILE, vision=False),
    replace(UNKNOWN_PROFILE, largest=50),
    replace(UNKNOWN_PROFILE, unparsed_choices=("auto", "required")),
    replace(UNKNOWN_PROFILE, token_limit=False),
]
"""Profiles of upstreams of which nothing but the model is known."""
PROFILES = [*LEARNED_PROFILES, *list_profiles()]
OPTIONS = Options(seal_key=KEYS[0])


def target_of(wire: str, profile: str = "any", model: str | None = "other") -> UpstreamTarget:
    return UpstreamTarget(api=wire, profile=get_profile(profile), name="x", model=model)


def translate(
    wire: str,
    data: bytes,
    target: UpstreamTarget,
    options: Options = OPTIONS,
    *,
    cache: RequestCache | None,
    strict: bool = False,
    owner: str = "",
) -> tuple[Any, ...]:
    """Return all that a translation results in; the error if there is one."""
    try:
        prepared = None
        if cache is not None:
            request = UndecodedRequest.read(data, FIELDS[wire])
            assert request is not None
            translation = plan_translation(wire, request, target, options, cache, strict=strict, owner=owner)
            prepared = translation.run() if translation is not None else None
        exchange = Exchange(wire, json.loads(data), target, options, strict=strict, prepared=prepared)
    except BadRequest as error:
        return str(error), error.path
    findings = sorted((finding.kind, finding.message, finding.place) for finding in exchange.findings)
    tools = [tool.for_reply() for tool in exchange._tools.tools]
    return exchange.body, findings, tools, exchange._tools._choice, exchange._options


def encode(body: Json) -> bytes:
    return json.dumps(body).encode()


@pytest.fixture
def translated_items(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the number of items that each translation of turns had. It grows with each translation."""
    counts: list[int] = []

    def counting(items: list[Json], *args: Any, **options: Any) -> Any:
        counts.append(len(items))
        return translate_turns(items, *args, **options)

    monkeypatch.setattr(incremental_translation, "translate_turns", counting)
    return counts


@pytest.fixture
def incremental_count(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the number of requests that were not translated as a whole, in a list. It grows with each request."""
    count = [0]
    run = incremental_translation.IncrementalTranslation._run

    def counting(self: Any, fit: Any) -> Any:
        result = run(self, fit)
        count[0] += 1
        return result

    monkeypatch.setattr(incremental_translation.IncrementalTranslation, "_run", counting)
    return count


# ── the same result ───────────────────────────────────────────────────────────────────────────────────────────────────


def random_target(rng: random.Random) -> UpstreamTarget:
    profile = rng.choice(PROFILES) if rng.random() < 0.7 else UNKNOWN_PROFILE
    model = rng.choice(("kimi-k2", "mistral-large", "claude-opus-4-7", "other", None))
    extra = rng.choice(({}, {}, {"extra": {"a": 1}}))
    return UpstreamTarget(api=rng.choice([*WIRES]), profile=profile, name="x", model=model, extra=extra)


def check_sequence(wire: str, bodies: Iterable[bytes], rng: random.Random) -> int:
    """Check that each request is translated as without a cache. Return the number of requests."""
    cache = RequestCache(rng.choice((1 << 20, 20_000)))
    targets = [random_target(rng) for _ in range(2)]
    options = [Options(seal_key=key, limits=Limits(seals=rng.choice((10_000, 10_000, 20)))) for key in KEYS]
    count = 0
    for data in bodies:
        count += 1
        choice = (rng.choice(targets), rng.choice(options))
        strict = rng.random() < 0.1
        expected = translate(wire, data, *choice, strict=strict, cache=None)
        assert translate(wire, data, *choice, strict=strict, cache=cache) == expected, (choice, data)
    return count


def random_requests(wire: str, rng: random.Random) -> Iterator[bytes]:
    sessions = [RandomSession(wire, rng) for _ in range(2)]
    for _ in range(12):
        session = rng.choice(sessions)
        yield session.encode()
        session.next()


@pytest.mark.sampled
@pytest.mark.parametrize("wire", WIRES)
def test_random_sessions_are_translated_as_without_cache(wire: str, incremental_count: list[int]) -> None:
    rng = random.Random(wire)
    requests = sum(check_sequence(wire, random_requests(wire, rng), rng) for _ in range(examples(300, quick=20)))
    assert incremental_count[0] > requests / 3


def corrupted_requests(body: Json, rng: random.Random) -> Iterator[bytes]:
    for _ in range(6):
        yield encode(body)
        corrupted = json.loads(json.dumps(body))
        corrupt(corrupted, rng)
        if isinstance(corrupted, dict) and isinstance(corrupted.get("model"), str):
            yield encode(corrupted)


@pytest.mark.sampled
@pytest.mark.one_row_in(4)
@pytest.mark.parametrize("name", FUZZED_REQUESTS)
def test_corrupted_requests_are_translated_as_without_cache(name: str) -> None:
    wire, body = FUZZED_REQUESTS[name]
    rng = random.Random(name)
    for _ in range(examples(20, quick=2)):
        check_sequence(wire, corrupted_requests(body, rng), rng)


@pytest.mark.parametrize("target", WIRES)
@pytest.mark.parametrize("name", PAIRS)
def test_recorded_conversations_are_translated_as_without_cache(name: str, target: str) -> None:
    wire = REQUESTS[name][0]
    for profile in ("any", "moonshot", "anthropic"):
        cache = RequestCache()
        for body in (REQUESTS[name][1], REQUESTS[f"{name[:-2]}.2"][1], REQUESTS[name][1]):
            data = encode(body)
            expected = translate(wire, data, target_of(target, profile), cache=None)
            assert translate(wire, data, target_of(target, profile), cache=cache) == expected


@pytest.mark.parametrize("target", WIRES)
def test_turn_whose_first_item_is_not_written_is_joined_to_the_one_before(target: str) -> None:
    """The Messages API has no place for this item: what the user says before and after it becomes one message."""
    items: list[Json] = [
        {"role": "user", "content": "one"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"role": "user", "content": "two"},
        {"role": "assistant", "content": "three"},
        {"role": "user", "content": "four"},
    ]
    cache = RequestCache()
    for count in (1, 3, 5):
        data = encode({"model": "m", "input": items[:count]})
        expected = translate(RESPONSES, data, target_of(target), cache=None)
        assert translate(RESPONSES, data, target_of(target), cache=cache) == expected


# ── less work ─────────────────────────────────────────────────────────────────────────────────────────────────────────

SESSIONS = {wire: [encode(body) for body in agent_session(wire, "m", 40_000)] for wire in WIRES}


@pytest.mark.parametrize("target", WIRES)
@pytest.mark.parametrize("source", WIRES)
def test_only_new_turns_are_translated(source: str, target: str, translated_items: list[int]) -> None:
    cache = RequestCache()
    for data in SESSIONS[source]:
        translate(source, data, target_of(target), cache=cache)
    counts = [len(json.loads(data)[FIELDS[source]]) for data in SESSIONS[source]]
    assert translated_items[1:] == [later - earlier for earlier, later in pairwise(counts)]


@pytest.mark.parametrize("target", WIRES)
@pytest.mark.parametrize("source", WIRES)
def test_settings_and_tools_are_translated_once(source: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 0

    def counting(*args: Any) -> Any:
        nonlocal count
        count += 1
        return translate_body(*args)

    monkeypatch.setattr(incremental_translation, "translate_body", counting)
    cache = RequestCache()
    for data in SESSIONS[source]:
        translate(source, data, target_of(target), cache=cache)
    assert count == 2  # for the first question and for results of tools: some upstreams cannot think between them
    changed = {**json.loads(SESSIONS[source][-1]), "temperature": 0.5}
    translate(source, encode(changed), target_of(target), cache=cache)
    assert count == 3


@pytest.mark.parametrize("wire", WIRES)
def test_bound_of_the_number_of_values(wire: str) -> None:
    cache = RequestCache()
    for data in SESSIONS[wire]:
        request = UndecodedRequest.read(data, FIELDS[wire])
        assert request is not None
        translation = plan_translation(wire, request, target_of(wire), OPTIONS, cache)
        assert translation is not None
        assert count_separators(data) <= translation.max_value_count + 1 < 1.2 * count_separators(data)
        translation.run()


def with_marks_at_end(body: Json) -> bytes:
    """Return the request with cache marks in its last two messages of the user, as Claude Code sends it."""
    marked = json.loads(json.dumps(body))
    for message in [message for message in marked["messages"] if message["role"] == "user"][-2:]:
        if isinstance(message["content"], str):
            message["content"] = [{"type": "text", "text": message["content"]}]
        message["content"][-1]["cache_control"] = {"type": "ephemeral"}
    return encode(marked)


@pytest.mark.parametrize("target", WIRES)
def test_moving_cache_marks_change_only_the_last_turns(target: str, translated_items: list[int]) -> None:
    cache = RequestCache()
    bodies = agent_session(MESSAGES, "m", 40_000)
    for body in bodies:
        data = with_marks_at_end(body)
        assert translate(MESSAGES, data, target_of(target), cache=cache) == translate(
            MESSAGES, data, target_of(target), cache=None
        )
    assert sum(translated_items) < 8 * len(bodies)


def test_conversations_side_by_side(translated_items: list[int]) -> None:
    cache = RequestCache()
    for step in range(10):
        for number in range(5):
            body = json.loads(SESSIONS[CHAT][step])
            body["messages"][1]["content"] = f"session {number}"
            translate(CHAT, encode(body), target_of(MESSAGES), cache=cache)
    assert sum(translated_items) == 5 * (1 + 2 * 9)


def test_repeated_request_translates_the_last_turn_again(translated_items: list[int]) -> None:
    cache = RequestCache()
    for data in SESSIONS[CHAT][:4]:
        translate(CHAT, data, target_of(MESSAGES), cache=cache)
    translated_items.clear()
    translate(CHAT, SESSIONS[CHAT][3], target_of(MESSAGES), cache=cache)
    assert translated_items == [2]


CHANGES: dict[str, dict[str, Any]] = {
    "owner": {"owner": "another"},
    "seal key": {"options": Options(seal_key=KEYS[1])},
    "strict": {"strict": True},
    "target": {"target": target_of(RESPONSES)},
    "profile": {"target": target_of(MESSAGES, "moonshot")},
    "model": {"target": target_of(MESSAGES, model="kimi-k2")},
    "limit": {"options": Options(seal_key=KEYS[0], limits=Limits(seals=1))},
}


@pytest.mark.parametrize("change", CHANGES)
def test_requests_with_another_context_have_nothing_in_common(change: str, translated_items: list[int]) -> None:
    context: dict[str, Any] = {"target": target_of(MESSAGES), "cache": RequestCache()}
    translate(CHAT, SESSIONS[CHAT][5], **context)
    translate(CHAT, SESSIONS[CHAT][6], **context | CHANGES[change])
    assert translated_items == [11, 13]


def test_tools_are_part_of_the_context(translated_items: list[int]) -> None:
    cache = RequestCache()
    translate(CHAT, SESSIONS[CHAT][5], target_of(MESSAGES), cache=cache)
    body = json.loads(SESSIONS[CHAT][6])
    body["tools"].reverse()
    translate(CHAT, encode(body), target_of(MESSAGES), cache=cache)
    assert translated_items == [11, 13]


# ── bounds ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("max_bytes", [0, 1000, 100_000, 1_000_000])
def test_cache_is_bounded(max_bytes: int) -> None:
    cache = RequestCache(max_bytes)
    for number in range(50):
        body = json.loads(SESSIONS[CHAT][number % 20])
        body["messages"][1]["content"] = f"session {number}"
        body["tools"] = body["tools"][number % 3 : number % 3 + 2]
        translate(CHAT, encode(body), target_of(MESSAGES), cache=cache)
        assert 0 <= cache.size <= max_bytes
        tool_bytes = sum(same.tool_bytes for same in cache._by_key.values())
        assert cache.size == tool_bytes + sum(conversation.size for _, conversation, _ in cache._conversations.values())
        assert sum(len(same.conversations) for same in cache._by_key.values()) == len(cache._conversations)
    assert bool(cache.size) == (max_bytes > 1000)


def test_conversation_is_kept_once() -> None:
    cache = RequestCache()
    for data in SESSIONS[CHAT]:
        translate(CHAT, data, target_of(MESSAGES), cache=cache)
    assert len(cache._conversations) == 1
    assert cache.size < 4 * len(SESSIONS[CHAT][-1]) + TOOL_COPIES * len(
        json.dumps(json.loads(SESSIONS[CHAT][0])["tools"])
    )


def test_concurrent_requests_that_are_the_same_are_kept_once() -> None:
    cache, data = RequestCache(), SESSIONS[CHAT][5]
    request = UndecodedRequest.read(data, FIELDS[CHAT])
    assert request is not None
    planned = [plan_translation(CHAT, request, target_of(MESSAGES), Options(), cache) for _ in range(3)]
    bodies = [translation.run() for translation in planned if translation is not None]
    assert bodies == [bodies[0]] * 3
    assert len(cache._conversations) == 1


def test_least_recently_used_conversation_is_evicted(translated_items: list[int]) -> None:
    cache = RequestCache(300_000)

    def send(step: int, number: int) -> None:
        body = json.loads(SESSIONS[CHAT][step])
        body["tools"] = body["tools"][:1]
        body["messages"][1]["content"] = f"session {number}"
        translate(CHAT, encode(body), target_of(MESSAGES), cache=cache)

    for step in range(10):
        send(step, 0)
        send(10, step + 1)
    send(10, 0)
    assert translated_items[-1] == 2
    send(11, 1)
    assert translated_items[-1] == 23, "the first of the others was evicted"


def test_sessions_that_take_turns_are_all_continued(translated_items: list[int]) -> None:
    cache = RequestCache()
    for step in range(3):
        for number in range(100):
            body = json.loads(SESSIONS[CHAT][step])
            body["messages"][1]["content"] = f"session {number}"
            translate(CHAT, encode(body), target_of(MESSAGES), cache=cache)
    assert translated_items[100:] == [2] * 200


def test_large_tools_are_not_kept() -> None:
    cache = RequestCache()
    body = json.loads(SESSIONS[CHAT][3])
    body["tools"][0]["function"]["description"] = "x" * MAX_TOOL_LIST_BYTES
    assert translate(CHAT, encode(body), target_of(MESSAGES), cache=cache)
    assert not cache.size
    assert not cache._tool_lists


def plan(body: Json, cache: RequestCache) -> incremental_translation.IncrementalTranslation | None:
    request = UndecodedRequest.read(encode(body), "messages")
    assert request is not None
    return plan_translation(CHAT, request, target_of(MESSAGES, model=None), OPTIONS, cache)


def test_new_json_is_all_that_is_decoded() -> None:
    """The gateway decides by its size where the work runs."""
    cache = RequestCache()
    body = json.loads(SESSIONS[CHAT][0])
    body["messages"][1]["content"] = "x" * 100_000
    first = plan(body, cache)
    assert first is not None
    assert len(first.new_json) > 100_000 + len(encode(body["tools"])), "tools that are new are decoded, too"
    assert first.run() is not None
    answer = {"role": "assistant", "content": "hi"}
    question = {"role": "user", "content": "and?"}
    continued = plan({**body, "messages": [*body["messages"], answer, question]}, cache)
    assert continued is not None
    assert len(continued.new_json) < 1000
    asked_again = plan({**body, "messages": [*body["messages"], question]}, cache)
    assert asked_again is not None
    assert len(asked_again.new_json) > 100_000, "two messages of the user are one turn: it is translated again"


@pytest.mark.parametrize("model", [None, 5, ["a"]], ids=str)
def test_request_without_a_model_is_translated_as_a_whole(model: Any) -> None:
    assert plan({"model": model, "messages": [{"role": "user", "content": "hi"}]}, RequestCache()) is None


@pytest.mark.parametrize(
    "item", [{"type": "web_search_call", "id": "w", "status": "completed"}, {"type": "compaction"}]
)
def test_added_message_joins_the_one_before(item: Json) -> None:
    result = {"type": "function_call_output", "call_id": "c", "output": "o"}
    data = encode({"model": "m", "input": [result, item]})
    target = target_of(MESSAGES, "any", "claude-opus-4-7")
    assert translate(RESPONSES, data, target, cache=RequestCache()) == translate(RESPONSES, data, target, cache=None)


def test_item_that_the_system_prompt_contains(translated_items: list[int]) -> None:
    """The end of an item is looked for behind the items before it."""
    question = {"role": "user", "content": "hi"}
    system = {"role": "system", "content": "x", "metadata": question}
    answer = {"role": "assistant", "content": "hello"}
    cache = RequestCache()
    for messages in ([question], [question, answer, question], [question, answer, question, answer, question]):
        data = encode({"model": "m", "messages": [system, *messages]})
        expected = translate(CHAT, data, target_of(MESSAGES), cache=None)
        assert translate(CHAT, data, target_of(MESSAGES), cache=cache) == expected
    assert translated_items == [1, 2, 2]


@pytest.mark.parametrize(
    "data",
    [
        b'{"x":[' + b"0," * 1000 + b'0],"x":1,"model":"m","messages":[]}',
        b'{"messages":[' + b"{}," * 1000 + b'{}],"model":"m","messages":[]}',
    ],
    ids=["other field", "messages"],
)
def test_field_that_is_there_twice(data: bytes) -> None:
    assert UndecodedRequest.read(data, "messages") is None
