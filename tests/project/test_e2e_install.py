"""Tests of the installation of end-to-end clients. Nothing is installed here."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

from e2e.client import DEV, Client, Launch
from e2e.install import install_clients, search_path
from e2e.script import HERE, pins

REQUIREMENTS = sorted((HERE / "requirements").glob("*.txt"))


def toy(venv: str, needs_python: tuple[int, int] = (3, 11)) -> Client:
    return Client(
        name="toy",
        title="Toy",
        version="1.2",
        apis=("openai-chat",),
        start=lambda _: Launch(argv=["toy"]),
        python={"toy": "1.2"},
        venv=venv,
        needs_python=needs_python,
    )


def test_client_that_cannot_be_installed_does_not_stop_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    unavailable = install_clients(tmp_path / "e2e", [toy("new", needs_python=(3, 99)), toy(DEV)])
    assert unavailable == {"toy": "Python 3.99 or newer is required, and none was found"}


def test_packages_of_dev_environment_are_not_installed_again(tmp_path: Path) -> None:
    assert install_clients(tmp_path / "e2e", [toy(DEV)]) == {}
    assert not (tmp_path / "e2e").exists()
    assert search_path(tmp_path, toy(DEV), "/bin") == f"{Path(sys.executable).parent}:/bin"
    assert search_path(tmp_path, toy("own"), "/bin") == f"{tmp_path}/own/bin:/bin"


@pytest.mark.parametrize("path", REQUIREMENTS, ids=lambda path: str(path.stem))
def test_requirements_are_exact_pins(path: Path) -> None:
    lines = path.read_text("utf-8").splitlines()
    assert [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.+!]+", line)] == []
    assert len(pins(path.stem)) == len(lines)
