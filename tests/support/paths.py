"""Folders that tests read from."""

from pathlib import Path

__all__ = ["DATA", "ROOT", "SHARED", "TESTS"]

TESTS = Path(__file__).parents[1]
DATA = TESTS / "data"
ROOT = TESTS.parent
SHARED = ROOT.parent / "shared"
"""Material beside the checkout that users do not have. Tests that read it are skipped where it is missing."""
