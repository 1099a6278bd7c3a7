"""Recorded requests of real clients, as far as the recordings are beside the checkout, translated to every wire."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from interlingua.core.options import Options
from interlingua.errors import BadRequest
from interlingua.translation.request_translation import prepare_request
from tests.support.paths import DATA, SHARED
from tests.support.request_forms import CHAT, FULL_PROFILE, MESSAGES, RESPONSES, WIRES, normalize_request

RECORDED = SHARED / "requests"
FIXTURES = DATA / "fixtures" / "requests"
WIRE_BY_PATH = {"/v1/chat/completions": CHAT, "/v1/messages": MESSAGES, "/v1/responses": RESPONSES}
OWNERS = {CHAT: "openai", MESSAGES: "anthropic", RESPONSES: "openai"}
LISTS = {CHAT: "messages", MESSAGES: "messages", RESPONSES: "input"}
OPTIONS = Options(seal_key=b"key")


def load(folder: Path) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return wire and body by name. A recording with only the end of a conversation takes the rest from the first."""
    requests = {}
    for path in sorted(folder.glob("*.json")):
        recorded = json.loads(path.read_text(encoding="utf-8"))
        wire = WIRE_BY_PATH[recorded["path"].partition("?")[0]]
        body = recorded.get("body")
        if body is None:
            first = json.loads(path.with_name(path.name.replace(".2.", ".1.")).read_text(encoding="utf-8"))
            body = {**first["body"], LISTS[wire]: recorded["tail"]}
        requests[path.stem] = (wire, body)
    return requests


REQUESTS = load(FIXTURES) | load(RECORDED)
THREAD_REQUESTS = [name for name, (_, body) in REQUESTS.items() if "thread" in body]
COMPLETE_REQUESTS = [name for name in REQUESTS if name not in THREAD_REQUESTS]
PAIRS = [name for name in COMPLETE_REQUESTS if name.endswith(".1") and f"{name[:-2]}.2" in COMPLETE_REQUESTS]
TAILS = ("smol.1", "openhands.1")
CROSS_WIRE_PAIRS = [
    (name, target) for name in PAIRS if name not in TAILS for target in WIRES if target != REQUESTS[name][0]
]  # on the same wire a request is passed through


@pytest.mark.parametrize("target", WIRES)
@pytest.mark.parametrize("name", COMPLETE_REQUESTS)
def test_round_trip_over_another_wire_keeps_the_request(name: str, target: str) -> None:
    source, body = REQUESTS[name]
    first = WIRES[source].read_request(body, OPTIONS)
    there, _ = WIRES[target].write_request(first, FULL_PROFILE)
    json.dumps(there)
    second = WIRES[target].read_request(there, OPTIONS)
    back, _ = WIRES[source].write_request(second, FULL_PROFILE)
    third = WIRES[source].read_request(back, OPTIONS)
    unset_fields = {"max_tokens"} if first.max_tokens is None else set()
    normalized = [
        {key: value for key, value in normalize_request(request, target).items() if key not in unset_fields}
        for request in (first, second, third)
    ]
    assert normalized[1] == normalized[0]
    assert normalized[2] == normalized[0]


@pytest.mark.parametrize(("name", "target"), CROSS_WIRE_PAIRS)
def test_next_turn_starts_with_the_same_messages(name: str, target: str) -> None:
    """Prompt caches need this. Cache marks are ignored, because clients move them with each turn."""
    source, turn = REQUESTS[name]
    _, next_turn = REQUESTS[f"{name[:-2]}.2"]
    first, second, repeated = (
        prepare_request(json.loads(json.dumps(body)), source, target, upstream=FULL_PROFILE).body
        for body in (turn, next_turn, next_turn)
    )
    assert json.dumps(repeated) == json.dumps(second)
    before, after = ([_without_cache_marks(item) for item in body[LISTS[target]]] for body in (first, second))
    assert json.dumps(after[: len(before)]) == json.dumps(before)
    assert _without_cache_marks(second.get("system")) == _without_cache_marks(first.get("system"))
    assert second.get("instructions") == first.get("instructions")


def _without_cache_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_cache_marks(inner) for key, inner in value.items() if key != "cache_control"}
    return [_without_cache_marks(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", COMPLETE_REQUESTS)
def test_request_on_the_same_wire_is_unchanged(name: str) -> None:
    wire, body = REQUESTS[name]
    prepared = prepare_request(body, wire, wire, model="other")  # a model of which nothing is known
    assert (prepared.body, prepared.findings) == ({**body, "model": "other"}, [])


@pytest.mark.parametrize("upstream", ["unknown", "known"])
@pytest.mark.parametrize("name", COMPLETE_REQUESTS)
def test_text_that_looks_like_a_signature_changes_nothing(name: str, upstream: str) -> None:
    """Signatures start with `il2.`, which may also occur in a file name such as util2.py or in image data."""
    wire, body = REQUESTS[name]
    profile, name = (OWNERS[wire], OWNERS[wire]) if upstream == "known" else (None, "")
    conversation = body[LISTS[wire]]
    items = [{"role": "user", "content": conversation}] if isinstance(conversation, str) else conversation

    def upstream_body(file: str) -> dict[str, Any]:
        request = {**body, LISTS[wire]: [*items, {"role": "user", "content": file}]}
        return prepare_request(request, wire, wire, "other", profile, Options(seal_key=b"key", upstream=name)).body

    with_prefix, without_prefix = json.dumps(upstream_body("util2.py")), json.dumps(upstream_body("util3.py"))
    assert with_prefix == without_prefix.replace("util3.py", "util2.py")
    if profile is None:
        assert upstream_body("util2.py")[LISTS[wire]][:-1] == items


@pytest.mark.parametrize("name", THREAD_REQUESTS)
def test_thread_is_rejected_with_its_error_code(name: str) -> None:
    wire, body = REQUESTS[name]
    with pytest.raises(BadRequest) as rejected:
        prepare_request(body, wire, CHAT)
    assert (rejected.value.path, rejected.value.code) == ("thread", "thread_unsupported_request")
