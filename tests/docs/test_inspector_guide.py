"""Tests of docs/guides/inspector.md: its pictures exist and are small, and it counts as many clicks as its test."""

from __future__ import annotations

import re

from tests.support.paths import ROOT

GUIDE = ROOT / "docs" / "guides" / "inspector.md"
PICTURES = GUIDE.with_suffix("")
PAGE_TESTS = ROOT / "tests" / "gateway" / "inspector" / "test_page.py"
MAX_PICTURE_BYTES = 150_000


def test_pictures_are_those_that_the_browser_test_takes() -> None:
    shown = re.findall(r"!\[[^\]]+\]\(inspector/([\w-]+)\.webp\)", GUIDE.read_text(encoding="utf-8"))
    taken = re.findall(r'picture\(opened, "([\w-]+)"\)', PAGE_TESTS.read_text(encoding="utf-8"))
    assert sorted(shown) == sorted(taken)
    assert sorted(path.stem for path in PICTURES.iterdir()) == sorted(shown)
    assert all(path.stat().st_size < MAX_PICTURE_BYTES for path in PICTURES.iterdir())


def test_reason_is_found_in_five_clicks() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    steps = re.findall(r"(?:\*\*|and )(\d)\. ", text)
    clicks = re.findall(r"\.click\(.*# (\d)$", PAGE_TESTS.read_text(encoding="utf-8"), re.MULTILINE)
    assert steps == clicks == ["1", "2", "3", "4", "5"]
