"""`interlingua inspect`: what it prints, and when the page can be opened."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from pathlib import Path

from tests.support.inspector_scenes import agent_session, write_captures


def test_page_can_be_opened_at_once_and_other_files_are_named(tmp_path: Path) -> None:
    write_captures(tmp_path, agent_session()[:2])
    (tmp_path / "other.jsonl").write_text("no capture\n")
    command = [sys.executable, "-m", "interlingua", "inspect", "--no-browser", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            url = process.stdout.readline().strip()
            with urllib.request.urlopen(url.partition("#")[0], timeout=60) as response:
                assert response.status == 200
            assert process.stderr.readline() == "interlingua: 2 captures\n"
            assert "left out" in (problem := process.stderr.readline())
            assert "other.jsonl: line 1 is not a line of a capture" in problem
            (tmp_path / "other.jsonl").rename(tmp_path / "third.jsonl")  # one problem less, and a new one
            assert "third.jsonl: line 1 is not a line of a capture" in process.stderr.readline()
        finally:
            process.terminate()
