"""A recording of Claude Code, as `python -m e2e.cassettes` has made it with the real program.

Its prompts and descriptions are replaced. `received-N.sse` is what Claude Code received in the recorded run.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

import interlingua as il
from interlingua.cassettes.cassette_check import find_problems
from interlingua.cassettes.cassette_files import read_file
from interlingua.cassettes.reply_meaning import read_meaning
from interlingua.wires import WIRES
from tests.support.cassette_gateway import cassette_gateway, post
from tests.support.paths import TESTS

MESSAGES = "anthropic-messages"
FOLDER = TESTS / "data" / "cassettes" / "claude_code"
EXCHANGES = read_file(FOLDER / "cassette.yaml")
TURNS = range(1, 5)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("claude") / "cassette"
    folder.mkdir()
    (folder / "claude.yaml").write_bytes((FOLDER / "cassette.yaml").read_bytes())
    with cassette_gateway(folder, "replay") as url:
        yield url


def test_recording_has_the_turns_of_the_run() -> None:
    assert [[call.name for call in one.meaning.calls] for one in EXCHANGES] == [
        ["Read"],
        ["Bash", "Bash"],
        ["Bash"],
        [],
    ]
    assert EXCHANGES[-1].meaning.text.startswith("Done.")


@pytest.mark.parametrize("turn", TURNS)
def test_replay_has_the_bytes_that_claude_code_received(gateway: str, turn: int) -> None:
    response = post(gateway, MESSAGES, _next_run(EXCHANGES[turn - 1].request.body))
    assert response.status == 200
    assert response.body == (FOLDER / f"received-{turn}.sse").read_bytes()


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("turn", TURNS)
def test_replay_on_every_api_has_the_same_meaning(gateway: str, turn: int, wire: str, stream: bool) -> None:
    exchange = EXCHANGES[turn - 1]
    body = il.translate_request(exchange.request.body, MESSAGES, wire)
    response = post(gateway, wire, {**body, "stream": stream})
    assert response.status == 200, response.body
    assert read_meaning(response.body, wire) == exchange.meaning


@pytest.mark.parametrize("turn", TURNS)
def test_translation_still_gives_what_was_recorded(turn: int) -> None:
    assert find_problems(EXCHANGES[turn - 1]) == []


def _next_run(body: Any) -> Any:
    """Return the request with what another run of Claude Code changes: session, version, cache marks, signatures."""
    body = copy.deepcopy(body)
    body["metadata"]["user_id"] = '{"device_id":"1","session_id":"another"}'
    body["system"][0]["text"] = "x-anthropic-billing-header: cc_version=9.9.9.000; cc_entrypoint=cli; cch=12345;"
    for message in body["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else ():
            block.pop("cache_control", None)
            block |= {"signature": "il2.another."} if "signature" in block else {}
    return body
