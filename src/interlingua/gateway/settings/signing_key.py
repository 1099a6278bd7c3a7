"""Key that encrypts reasoning if the settings contain none: generated once and stored for the current user."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from interlingua.errors import BadInput
from interlingua.gateway.settings.private_files import check_private_file, check_private_folder

__all__ = ["CASSETTE_KEY", "load_or_create_key", "state_folder"]

CASSETTE_KEY = b"recorded exchanges are not secret"
"""Key of a gateway that records or replays. Every machine has the same, so that a replay gives the same bytes. It
protects nothing: cassettes contain the reasoning that it encrypts."""

KEY_BYTES = 32
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)


def load_or_create_key(folder: Path | None = None) -> tuple[bytes, str]:
    """Return the key and a warning for the user.

    The warning is "" if the key is stored. If it cannot be stored, the gateway cannot read its own envelopes after a
    restart.

    Raises:
        BadInput: Other users can read or replace the stored key, or it is too short.
    """
    path = (folder or state_folder()) / "seal.key"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        check_private_folder(path.parent, "the directory of the seal key")
        if not os.path.lexists(path):
            _create_key(path)
        return _read_key(path), ""
    except OSError as error:
        return secrets.token_bytes(KEY_BYTES), f"cannot store the key in {path}: {error.strerror}"


def _create_key(path: Path) -> None:
    """Create the file with a new key. If several processes do so at once, the first one wins.

    The key is written to another file first, so that no process reads a part of it.
    """
    temporary_path = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    file = os.open(temporary_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW, 0o600)
    try:
        with os.fdopen(file, "wb") as stream:
            stream.write(secrets.token_bytes(KEY_BYTES))
        with suppress(FileExistsError):  # another process was faster
            os.link(temporary_path, path)
    finally:
        os.unlink(temporary_path)


def _read_key(path: Path) -> bytes:
    with os.fdopen(os.open(path, os.O_RDONLY | NO_FOLLOW), "rb") as stream:
        check_private_file(path, os.fstat(stream.fileno()))
        key = stream.read(KEY_BYTES)
    if len(key) < KEY_BYTES:
        raise BadInput(
            f"{path} has {len(key)} bytes, but a key has {KEY_BYTES}", "delete it, so that a new key is created"
        )
    return key


def state_folder() -> Path:
    """Return the folder for persistent state of the current user (XDG_STATE_HOME)."""
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser() / "interlingua"
