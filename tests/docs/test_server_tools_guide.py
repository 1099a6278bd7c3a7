"""Tests of docs/guides/server-tools.md: its settings are valid."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from interlingua.gateway.settings.loader import load_settings
from tests.support.paths import ROOT

GUIDE = (ROOT / "docs" / "guides" / "server-tools.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```", GUIDE, re.M | re.S)
VARIABLES = {"BRAVE_API_KEY": "brave-0123456789abcdef", "SEARCH_KEY": "search-0123456789abcdef"}


@pytest.mark.parametrize("example", EXAMPLES)
def test_settings_are_valid_and_their_keys_are_secrets(example: str, tmp_path: Path) -> None:
    path = tmp_path / "interlingua.yaml"
    path.write_text(f"demo: true\n{example}", encoding="utf-8")
    path.chmod(0o600)
    loaded = load_settings(path, VARIABLES)
    settings = loaded.settings
    key = settings.web_search.key
    assert not key or key in loaded.all_secrets
    runs_tools = [upstream.server_tools for upstream in settings.upstreams.values()] == ["upstream"]
    assert settings.web_search.engine != "off" or settings.web_fetch.enabled or runs_tools


def test_all_examples_are_found() -> None:
    assert len(EXAMPLES) == 6
