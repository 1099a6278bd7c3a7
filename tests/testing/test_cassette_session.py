"""The context manager: a cassette in a program, without pytest."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import interlingua.testing
from interlingua.cassettes.reply_meaning import read_meaning
from interlingua.errors import BadInput, UsageError
from interlingua.faults.upstream.reply_writers import reply_writer_for
from interlingua.gateway.settings.schema import Settings, Upstream
from interlingua.testing import CassetteSession, use_cassette
from interlingua.wires import WIRES, get_wire
from tests.support import upstream_server as up
from tests.support.cassette_gateway import post
from tests.support.upstream_server import UpstreamServer

CHAT, MESSAGES, RESPONSES = "openai-chat", "anthropic-messages", "openai-responses"
BODIES: dict[str, dict[str, Any]] = {
    CHAT: {"messages": [{"role": "user", "content": "hi"}]},
    MESSAGES: {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 9},
    RESPONSES: {"input": "hi"},
}


def ask(cassette: CassetteSession, wire: str, model: str, **headers: Any) -> str:
    response = post(cassette.url, wire, {"model": model, **BODIES[wire]}, **headers)
    assert response.status == 200, response.body
    return read_meaning(response.body, wire).text


def test_cassette_is_recorded_and_replayed(tmp_path: Path, upstream: UpstreamServer) -> None:
    upstream.add("session", up.chat_stream("Hello"))
    path = tmp_path / "new" / "hello.yaml"
    with use_cassette(path, upstream=upstream.url) as cassette:
        assert ask(cassette, CHAT, "session") == "Hello"
    with use_cassette(path, upstream=upstream.url) as cassette:
        assert [ask(cassette, wire, "session") for wire in WIRES] == ["Hello"] * 3
        assert [exchange.meaning.text for exchange in cassette.exchanges] == ["Hello"]
        assert post(cassette.url, CHAT, {"model": "other", **BODIES[CHAT]}).status == 400
        assert "model: “other”, recorded “session”" in cassette.misses[0]
    assert upstream.count("session") == 1


def test_each_request_goes_to_the_vendor_of_its_api(tmp_path: Path, upstream: UpstreamServer) -> None:
    for wire in WIRES:
        api = get_wire(wire).HTTP_API.path.strip("/")
        writer = reply_writer_for(api)
        writer.is_streaming = False
        upstream.add(f"vendor-{wire}", *writer.reply_script("Hello"))
    environment = {
        "OPENAI_BASE_URL": upstream.url,
        "ANTHROPIC_BASE_URL": upstream.url.removesuffix("/v1"),
        "ANTHROPIC_API_KEY": "key-of-the-user",
        "HOME": str(tmp_path),
    }
    with use_cassette(tmp_path / "folder", environment=environment) as cassette:
        assert cassette.environment["ANTHROPIC_API_KEY"] == "key-of-the-user"
        assert cassette.environment["OPENAI_API_KEY"] == "cassette"
        for wire in WIRES:
            assert ask(cassette, wire, f"vendor-{wire}", authorization="Bearer key-of-the-user") == "Hello"
    requests = [upstream.wait_for_requests(f"vendor-{wire}")[0] for wire in WIRES]
    assert [request.path for request in requests] == ["/v1/chat/completions", "/v1/messages", "/v1/responses"]
    assert all("key-of-the-user" in str(request.headers) for request in requests)
    assert not any("key-of-the-user" in path.read_text() for path in (tmp_path / "folder").iterdir())


def test_settings_choose_the_upstream(tmp_path: Path, upstream: UpstreamServer) -> None:
    upstream.add("settings", up.chat_stream("Hello"))
    settings = Settings(upstreams={"local": Upstream(url=upstream.url, profile="any")})
    file = tmp_path / "interlingua.yaml"
    file.write_text(f"upstreams: {{local: {{url: {upstream.url}, profile: any}}}}\n")
    for number, options in enumerate(
        (
            {"settings": settings},
            {"settings": file},
            {"upstream": {"url": upstream.url, "api": CHAT}},
            {"environment": {"INTERLINGUA_UPSTREAM": upstream.url, "HOME": str(tmp_path)}},
        )
    ):
        with use_cassette(tmp_path / f"{number}.yaml", **options) as cassette:  # type: ignore[arg-type]
            assert ask(cassette, CHAT, "settings") == "Hello"
    assert upstream.count("settings") == 4


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"mode": "never"}, "no record mode is called 'never'"),
        ({"upstream": {"address": "x"}}, "not the settings of an upstream: Object contains unknown field `address`"),
        ({"upstream": {"api": "chat"}}, "not the settings of an upstream"),
        ({"cut": "words"}, "a reply cannot be cut by 'words'"),
        ({"fault": "none"}, "no fault for recorded replies is called 'none'"),
        ({"replace": {"(": ""}}, "not a regular expression"),
    ],
)
def test_wrong_option_is_an_error(tmp_path: Path, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=problem), use_cassette(tmp_path / "a.yaml", **options):
        pass


def test_unreadable_cassette_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("not a cassette")
    with pytest.raises(BadInput, match="is not a cassette"), use_cassette(tmp_path / "a.yaml"):
        pass


def test_program_environment_is_not_changed(tmp_path: Path) -> None:
    before = dict(os.environ)
    with use_cassette(tmp_path / "a.yaml", "none") as cassette:
        assert dict(os.environ) == before
        assert cassette.environment["OPENAI_BASE_URL"] == cassette.openai_url
    assert sorted(interlingua.testing.__all__) == ["CassetteMiss", "CassetteSession", "use_cassette"]
    assert all(name in dir(interlingua.testing) for name in interlingua.testing.__all__)
