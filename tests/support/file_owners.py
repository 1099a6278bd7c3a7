"""Files and folders of another user, whether or not the tests run as root."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ANOTHER_USER = 65534


def give_to_another_user(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make another user the owner of this path. Only root can: otherwise this process gets another user id."""
    if os.geteuid() == 0:
        os.chown(path, ANOTHER_USER, ANOTHER_USER)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: ANOTHER_USER)
