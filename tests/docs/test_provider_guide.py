"""Tests of docs/guides/choose-a-provider.md: its commands run, and its output and cards are real."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.example_card import CARD_END, CARD_FOLDER, CARD_START, GUIDE, example_files
from interlingua.cli import main
from tests.support.scripted_engine import MODEL, run_engine

PAGE = GUIDE.read_text(encoding="utf-8")
COMMANDS = [
    shlex.split(command, comments=True)[1:]
    for command in re.findall(r"^\$ (interlingua (?:doctor|verify|config|faults).*)$", PAGE, re.M)
]
STAND_INS = {
    "URL": "{url}",
    "NAME": MODEL,
    "OPENROUTER_API_KEY": "PATH",  # any variable that exists
    "KEY_A": "PATH",
    "KEY_B": "PATH",
    "moonshotai/kimi-k2": MODEL,
    "Qwen/Qwen3-Coder-30B-A3B-Instruct": MODEL,
}
"""Words of the guide that stand for something of the reader."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with run_engine() as engine_url:
        yield engine_url


def test_commands_run(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = f"upstreams: {{own: {{url: {url}}}}}\n"
    for name in ("interlingua.yaml", "gateway.yaml"):
        Path(name).write_text(settings, encoding="utf-8")
    assert len(COMMANDS) == 16
    for words in COMMANDS:
        argv = [re.sub(r"^https?://.*/v1$", url, STAND_INS.get(word, word).format(url=url)) for word in words]
        if argv[:2] == ["faults", "engine"]:
            argv.append("--list")
        elif ">" in argv:
            argv, target = argv[: argv.index(">")], argv[-1]
        elif argv[:1] == ["verify"] and argv[1] not in ("card", "samples") and "--limit" not in argv:
            argv += ["--limit", "3"]
        if "--against" in argv:
            argv[argv.index("--against") + 1] = "a.jsonl"
            argv[argv.index("--samples") + 1 :] = ["samples.jsonl", "--against", "a.jsonl", "--limit", "3"]
        capsys.readouterr()
        assert main(argv) == 0, argv
        if ">" in words:
            Path(target).write_text(capsys.readouterr().out, encoding="utf-8")
    for name in ("card.html", "comparison.html", "samples.jsonl", "card.json", "doctor.json"):
        assert Path(name).stat().st_size > 100


def test_output_of_doctor_is_real(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    (shown,) = re.findall(r"<!-- doctor: tried by a test -->\n```text\n(.*?)```", PAGE, re.S)
    with run_engine("parser-missing") as engine_url:
        main(["doctor", "--base-url", engine_url])
    assert _without_times(shown) in _without_times(capsys.readouterr().out)


def _without_times(text: str) -> str:
    return re.sub(r"\d+ ms", "N ms", text)


def test_guide_names_all_causes() -> None:
    from interlingua.verification.attribution import CAUSES

    table = PAGE.partition("### Who lost the calls")[2]
    assert re.findall(r"^\| (\w[\w ]*) \|", table, re.M)[1:6] == [cause.replace("-", " ") for cause in CAUSES]


def test_card_is_in_the_guide() -> None:
    card = PAGE.partition(CARD_START)[2].partition(CARD_END)[0]
    assert "who lost the calls" in card
    assert max(map(len, card.splitlines())) <= 80
    assert {path.name for path in CARD_FOLDER.iterdir()} == {"provider-a.html", "comparison.html"}


@pytest.mark.slow
def test_cards_are_up_to_date() -> None:
    """`python -m docs.example_card` writes them."""
    for path, text in example_files().items():
        assert path.read_text(encoding="utf-8") == text, path.name
