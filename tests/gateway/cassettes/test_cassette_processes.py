"""Cassettes of a gateway process: options, several workers, and a restart without anything but the cassette."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from interlingua.cassettes.cassette_files import load_cassette
from interlingua.cassettes.reply_meaning import read_meaning
from interlingua.cli import main
from tests.support import upstream_server as up
from tests.support.cassette_gateway import post
from tests.support.gateway_process import run_gateway
from tests.support.upstream_server import UpstreamServer

CHAT = "openai-chat"
Report = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, without settings of the user."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def ask(base: str, text: str) -> str:
    response = post(base, CHAT, {"model": "workers", "messages": [{"role": "user", "content": text}], "stream": True})
    assert response.status == 200, response.body
    return read_meaning(response.body, CHAT).text


def test_workers_share_recordings(tmp_path: Path, upstream: UpstreamServer) -> None:
    upstream.add("workers", up.chat_stream("Hello"))
    folder, questions = tmp_path / "cassette", [f"Question {number}" for number in range(12)]
    with ThreadPoolExecutor(6) as pool:
        options = ("--upstream", upstream.url, "--upstream-profile", "any", "--workers", "2")
        with run_gateway(*options, "--record", str(folder)) as gateway:
            assert set(pool.map(lambda text: ask(gateway.base, text), questions)) == {"Hello"}
            assert gateway.stop() == 0
            assert "records" in gateway.log.read_text()
        assert len(load_cassette(folder)) == 12
        with run_gateway("--workers", "2", "--replay", str(folder)) as gateway:
            assert set(pool.map(lambda text: ask(gateway.base, text), questions * 2)) == {"Hello"}
            assert "no upstream is asked" in gateway.log.read_text()
    assert upstream.count("workers") == 12


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--replay", "missing"], "error: no cassette at missing"),
        (["--replay", "a", "--record", "b"], "error: --record and --replay exclude each other"),
        (["--demo", "--record", "file/new"], "file is not a folder"),
        (["--demo", "--hybrid", "file/new/a.yaml"], "file is not a folder"),
        (["--record", "new"], "error: upstreams: no upstream is configured"),
    ],
)
def test_wrong_options_are_reported(folder: Path, capsys: Report, options: list[str], problem: str) -> None:
    (folder / "file").touch()
    assert main(["serve", "--port", "0", *options]) in (1, 2)
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ("{dir: ., cut: words}", "interlingua.yaml:1: cassettes: a reply cannot be cut by 'words'"),
        (
            "{dir: ., fault: nothing}",
            "interlingua.yaml:1: cassettes: no fault for recorded replies is called 'nothing'",
        ),
        ("{dir: ., replace: {'(': x}}", "interlingua.yaml:1: cassettes: not a regular expression"),
        ("{mode: replay}", "interlingua.yaml:1: cassettes.dir: required field is missing"),
        ("{dir: ., mode: play}", "cassettes.mode: expected one of record, replay, hybrid"),
    ],
)
def test_wrong_settings_are_reported_with_their_line(folder: Path, capsys: Report, fields: str, problem: str) -> None:
    (folder / "interlingua.yaml").write_text(f"cassettes: {fields}\n")
    assert main(["serve", "--port", "0"]) == 1
    assert problem in capsys.readouterr().err


def test_ignored_field_that_no_recording_has_is_noted_once(folder: Path, upstream: UpstreamServer) -> None:
    upstream.add("workers", up.chat_stream("Hello"))
    settings, recorded = folder / "interlingua.yaml", str(folder / "recorded")
    settings.write_text("cassettes: {dir: /nowhere, ignore: [model, promt, stop]}\n")
    options = ("--config", str(settings), "--workers", "2")
    with run_gateway(
        *options, "--upstream", upstream.url, "--upstream-profile", "any", "--hybrid", recorded
    ) as gateway:
        ask(gateway.base, "Question")
        assert gateway.stop() == 0
        assert "`ignore`" not in gateway.log.read_text()
    with run_gateway(*options, "--replay", recorded) as gateway:
        ask(gateway.base, "Question")
        assert gateway.stop() == 0
        notes = [line for line in gateway.log.read_text().splitlines() if "`ignore`" in line]
    problem = "`ignore` has no effect for 'promt': no request has a field of this name that counts"
    assert notes == [f"interlingua: note: cassettes: {problem}"]
