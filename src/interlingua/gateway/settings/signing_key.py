"""Key that signs reasoning if the settings contain none: generated once and stored for the current user."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

__all__ = ["load_or_create_key", "state_folder"]

KEY_BYTES = 32


def load_or_create_key(folder: Path | None = None) -> tuple[bytes, str]:
    """Return the key and a warning for the user.

    The warning is "" if the key is stored. If it cannot be stored, the gateway does not recognise its own signatures
    after a restart.
    """
    path = (folder or state_folder()) / "seal.key"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        with os.fdopen(file, "r+b") as stream:
            key = stream.read(KEY_BYTES)
            if len(key) < KEY_BYTES:
                key = secrets.token_bytes(KEY_BYTES)
                stream.seek(0)
                stream.write(key)
        return key, ""
    except OSError as error:
        return secrets.token_bytes(KEY_BYTES), f"cannot store the key in {path}: {error.strerror}"


def state_folder() -> Path:
    """Return the folder for persistent state of the current user (XDG_STATE_HOME)."""
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser() / "interlingua"
