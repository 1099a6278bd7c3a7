"""Key of the envelopes of thinking: created once, and refused if other users can read or replace it."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

import pytest

from interlingua.errors import BadInput
from interlingua.gateway.settings import signing_key
from interlingua.gateway.settings.signing_key import KEY_BYTES, load_or_create_key
from tests.support.file_owners import give_to_another_user


def test_key_is_created_once_and_private(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    key, warning = load_or_create_key(folder)
    assert (len(key), warning) == (KEY_BYTES, "")
    assert load_or_create_key(folder) == (key, "")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [(path.name, stat.S_IMODE(path.stat().st_mode)) for path in folder.iterdir()] == [("seal.key", 0o600)]


def test_concurrent_starts_get_the_same_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process creates the key while this one does."""
    keys: list[bytes] = []

    def token_bytes(size: int) -> bytes:
        monkeypatch.undo()
        keys.append(load_or_create_key(tmp_path)[0])
        return secrets.token_bytes(size)

    monkeypatch.setattr(secrets, "token_bytes", token_bytes)
    keys.append(load_or_create_key(tmp_path)[0])
    keys.append(load_or_create_key(tmp_path)[0])
    assert len(keys) == 3
    assert len(set(keys)) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["seal.key"]


@pytest.mark.parametrize("mode", [0o666, 0o644, 0o640, 0o620, 0o604])
def test_key_that_others_can_read_or_write_is_refused(tmp_path: Path, mode: int) -> None:
    load_or_create_key(tmp_path)
    (tmp_path / "seal.key").chmod(mode)
    with pytest.raises(BadInput, match=rf"other users can read or write .*seal\.key \(mode {mode:o}\)") as raised:
        load_or_create_key(tmp_path)
    assert raised.value.hint.startswith("delete it, so that a new key is created")


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777])
def test_folder_that_others_can_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    with pytest.raises(
        BadInput, match=f"the directory of the seal key: other users can write to .* {mode:o}"
    ) as raised:
        load_or_create_key(tmp_path)
    assert raised.value.hint.startswith(f"run chmod 700 {tmp_path}")
    assert list(tmp_path.iterdir()) == []


def test_key_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_or_create_key(tmp_path)
    give_to_another_user(tmp_path / "seal.key", monkeypatch)
    monkeypatch.setattr(signing_key, "check_private_folder", lambda *_: None)  # without root it has the same owner
    with pytest.raises(BadInput, match=r"another user owns .*seal\.key \(user id \d+\)") as raised:
        load_or_create_key(tmp_path)
    assert raised.value.hint == "delete it, so that a new key is created"


def test_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give_to_another_user(tmp_path, monkeypatch)
    with pytest.raises(BadInput, match="the directory of the seal key: another user owns ") as raised:
        load_or_create_key(tmp_path)
    assert raised.value.hint.startswith(f"run chown {os.geteuid()} {tmp_path}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"too short"])
def test_short_key_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "seal.key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(BadInput, match=f"has {len(content)} bytes, but a key has 32"):
        load_or_create_key(tmp_path)
    assert path.read_bytes() == content


def test_key_behind_a_symbolic_link_is_not_used(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"x" * KEY_BYTES)
    target.chmod(0o600)
    (tmp_path / "seal.key").symlink_to(target)
    key, warning = load_or_create_key(tmp_path)
    assert key != b"x" * KEY_BYTES
    assert "cannot store the key" in warning
