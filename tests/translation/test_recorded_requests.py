"""Requests of real clients, where their recordings lie beside the checkout: they pass every wire with their meaning."""

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
OWN = DATA / "fixtures" / "requests"
OF_PATH = {"/v1/chat/completions": CHAT, "/v1/messages": MESSAGES, "/v1/responses": RESPONSES}
OWNERS = {CHAT: "openai", MESSAGES: "anthropic", RESPONSES: "openai"}
LISTS = {CHAT: "messages", MESSAGES: "messages", RESPONSES: "input"}
OPTIONS = Options(seal_key=b"key")


def load(folder: Path) -> dict[str, tuple[str, dict[str, Any]]]:
    """By name: the wire and the body. Where only the end of a conversation was kept, the rest is as in the first."""
    requests = {}
    for path in sorted(folder.glob("*.json")):
        recorded = json.loads(path.read_text(encoding="utf-8"))
        wire = OF_PATH[recorded["path"].partition("?")[0]]
        body = recorded.get("body")
        if body is None:
            first = json.loads(path.with_name(path.name.replace(".2.", ".1.")).read_text(encoding="utf-8"))
            body = {**first["body"], LISTS[wire]: recorded["tail"]}
        requests[path.stem] = (wire, body)
    return requests


REQUESTS = load(OWN) | load(RECORDED)
HELD = [name for name, (_, body) in REQUESTS.items() if "thread" in body]
WHOLE = [name for name in REQUESTS if name not in HELD]
PAIRS = [name for name in WHOLE if name.endswith(".1") and f"{name[:-2]}.2" in WHOLE]
TAILS = ("smol.1", "openhands.1")
CROSSING = [
    (name, target) for name in PAIRS if name not in TAILS for target in WIRES if target != REQUESTS[name][0]
]  # on its own wire a request passes as the client sends it


@pytest.mark.parametrize("target", WIRES)
@pytest.mark.parametrize("name", WHOLE)
def test_a_request_keeps_its_meaning_there_and_back(name: str, target: str) -> None:
    source, body = REQUESTS[name]
    first = WIRES[source].read_request(body, OPTIONS)
    there, _ = WIRES[target].write_request(first, FULL_PROFILE)
    json.dumps(there)
    second = WIRES[target].read_request(there, OPTIONS)
    back, _ = WIRES[source].write_request(second, FULL_PROFILE)
    third = WIRES[source].read_request(back, OPTIONS)
    unsaid = {"max_tokens"} if first.max_tokens is None else set()
    told = [
        {key: value for key, value in normalize_request(it, target).items() if key not in unsaid}
        for it in (first, second, third)
    ]
    assert told[1] == told[0]
    assert told[2] == told[0]


@pytest.mark.parametrize(("name", "target"), CROSSING)
def test_the_next_turn_begins_like_the_last(name: str, target: str) -> None:
    """Only then do prompt caches hold. Marks of a cache move with each turn, as the clients move them."""
    source, turn = REQUESTS[name]
    _, next_turn = REQUESTS[f"{name[:-2]}.2"]
    one, two, again = (
        prepare_request(json.loads(json.dumps(body)), source, target, upstream=FULL_PROFILE).body
        for body in (turn, next_turn, next_turn)
    )
    assert json.dumps(again) == json.dumps(two)
    before, after = ([_unmarked(item) for item in body[LISTS[target]]] for body in (one, two))
    assert json.dumps(after[: len(before)]) == json.dumps(before)
    assert _unmarked(two.get("system")) == _unmarked(one.get("system"))
    assert two.get("instructions") == one.get("instructions")


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unmarked(inner) for key, inner in value.items() if key != "cache_control"}
    return [_unmarked(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", WHOLE)
def test_on_the_same_wire_it_passes_as_it_came(name: str) -> None:
    wire, body = REQUESTS[name]
    assert prepare_request(body, wire, wire, model="other").body == {**body, "model": "other"}
    assert prepare_request(body, wire, wire).findings == []


@pytest.mark.parametrize("upstream", ["stranger", "known"])
@pytest.mark.parametrize("name", WHOLE)
def test_what_only_looks_like_a_seal_changes_nothing(name: str, upstream: str) -> None:
    """A file may be called util1.py, and an image have these four characters in it."""
    wire, body = REQUESTS[name]
    profile, name = (OWNERS[wire], OWNERS[wire]) if upstream == "known" else (None, "")
    said = body[LISTS[wire]]
    items = [{"role": "user", "content": said}] if isinstance(said, str) else said

    def told(file: str) -> dict[str, Any]:
        asked = {**body, LISTS[wire]: [*items, {"role": "user", "content": file}]}
        return prepare_request(asked, wire, wire, None, profile, Options(seal_key=b"key", upstream=name)).body

    assert json.dumps(told("util1.py")) == json.dumps(told("util2.py")).replace("util2.py", "util1.py")
    if profile is None:
        assert told("util1.py")[LISTS[wire]][:-1] == items


@pytest.mark.parametrize("name", HELD)
def test_a_thread_is_refused_so_that_the_client_sends_all(name: str) -> None:
    wire, body = REQUESTS[name]
    with pytest.raises(BadRequest) as refused:
        prepare_request(body, wire, CHAT)
    assert (refused.value.path, refused.value.code) == ("thread", "thread_unsupported_request")
