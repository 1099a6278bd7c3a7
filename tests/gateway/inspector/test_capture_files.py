"""Exchanges in files and folders, for `interlingua inspect`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlingua.captures.capture_format import ClientRequestLine, EndLine, ReceivedLine, encode_capture
from interlingua.errors import BadInput
from interlingua.gateway.inspector.analyses import Analyses
from interlingua.gateway.inspector.capture_files import CaptureFiles, find_capture_files
from interlingua.gateway.inspector.exchange_source import UnknownExchange
from interlingua.inspection.what_if import Changes
from tests.support.captured_exchanges import capture_exchange, chat_stream
from tests.support.inspector_scenes import agent_session, write_captures

BODY = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]}


def ids(files: CaptureFiles) -> list[str]:
    return sorted(one.summary.id for one in files.list_exchanges())


def test_files_and_folders_are_searched(tmp_path: Path) -> None:
    folder = write_captures(tmp_path / "a" / "b", agent_session()[:2])
    single = tmp_path / "one.jsonl"
    single.write_bytes(encode_capture(agent_session()[2]))
    files = CaptureFiles([str(tmp_path / "a"), str(single)])
    files.read_new_files()
    assert len(ids(files)) == 3
    assert files.load(ids(files)[0]).lines_of(EndLine)
    assert len(find_capture_files([str(folder), str(folder)])) == 2
    assert files.problems == []


def test_missing_path_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file"):
        find_capture_files([str(tmp_path / "none")])


def test_files_that_are_no_captures_are_problems(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("{}\n")
    (tmp_path / "b.jsonl").write_text("")
    (tmp_path / "c.jsonl").write_bytes(b"\xff\xfe")
    write_captures(tmp_path, agent_session()[:1])
    files = CaptureFiles([str(tmp_path)])
    files.read_new_files()
    assert len(ids(files)) == 1
    assert len(files.problems) == 3
    assert all(str(tmp_path) in problem for problem in files.problems)


def test_folder_that_is_removed_during_the_search_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    write_captures(tmp_path / "kept", agent_session()[:1])
    scan_folder = os.scandir

    def scan(path: str | os.PathLike[str] = ".") -> Any:
        return scan_folder(tmp_path / "none" if Path(path).name == "gone" else path)

    monkeypatch.setattr(os, "scandir", scan)
    assert len(find_capture_files([str(tmp_path)])) == 1


def test_watching_goes_on_after_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interlingua.gateway.inspector.capture_files.WATCH_SECONDS", 0.01)
    files, read_new_files = CaptureFiles([str(tmp_path)]), CaptureFiles.read_new_files
    errors: list[OSError] = [PermissionError(13, "Permission denied")]

    def read(self: CaptureFiles) -> list[str]:
        if errors:
            raise errors.pop()
        return read_new_files(self)

    monkeypatch.setattr(CaptureFiles, "read_new_files", read)

    async def run() -> None:
        watcher = asyncio.create_task(files.watch(lambda: None))
        await wait_for_exchange(files)
        watcher.cancel()

    write_captures(tmp_path, agent_session()[:1])
    asyncio.run(run())
    assert len(ids(files)) == 1


def test_capture_without_an_end_is_open(tmp_path: Path) -> None:
    encoded = encode_capture(agent_session()[0])
    (tmp_path / "cut.jsonl").write_bytes(b"".join(encoded.splitlines(keepends=True)[:-1]))
    files = CaptureFiles([str(tmp_path)])
    files.read_new_files()
    (only,) = files.list_exchanges()
    assert only.summary.outcome == "open"


def test_copies_of_one_exchange_have_their_own_ids(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_bytes(encode_capture(agent_session()[0]))
    files = CaptureFiles([str(tmp_path)])
    files.read_new_files()
    assert len(set(ids(files))) == 2


def test_each_copy_is_an_exchange_until_it_is_removed(tmp_path: Path) -> None:
    """Copies in several folders have the same name."""
    copies = [tmp_path / name / "same.jsonl" for name in ("a", "b", "c")]
    for copy in copies:
        copy.parent.mkdir()
        copy.write_bytes(encode_capture(agent_session()[0]))
    files = CaptureFiles([str(tmp_path)])
    files.read_new_files()
    assert len(ids(files)) == 3
    copies[2].unlink()
    files.read_new_files()
    assert len(ids(files)) == 2
    copies[0].unlink()
    files.read_new_files()
    assert len(ids(files)) == 1


def test_incomplete_file_is_read_again_when_it_has_grown(tmp_path: Path) -> None:
    path, encoded = tmp_path / "a.jsonl", encode_capture(agent_session()[0])
    files = CaptureFiles([str(tmp_path)])
    path.touch()
    assert files.read_new_files() == []
    assert [problem.split(":")[1] for problem in files.problems] == [" the file is empty"]
    path.write_bytes(b"".join(encoded.splitlines(keepends=True)[:-1]))
    (id,) = files.read_new_files()
    assert (files.find_summary(id).summary.outcome, files.problems) == ("open", [])
    assert files.read_new_files() == []
    path.write_bytes(encoded)
    assert files.read_new_files() == [id] == ids(files)
    assert files.find_summary(id).summary.outcome == "ok"
    assert files.read_new_files() == []


def test_replaced_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    first, second = (encode_capture(captured) for captured in agent_session()[:2])
    path.write_bytes(first)
    files = CaptureFiles([str(tmp_path)])
    (old,) = files.read_new_files()
    (tmp_path / "part").write_bytes(second)
    (tmp_path / "part").replace(path)
    (new,) = files.read_new_files()
    assert (ids(files), old != new) == ([new], True)
    with pytest.raises(UnknownExchange):
        files.load(old)
    path.write_text("no capture\n")
    assert (files.read_new_files(), ids(files), len(files.problems)) == ([], [], 1)


def test_removed_files_are_forgotten(tmp_path: Path) -> None:
    folder = write_captures(tmp_path / "captures", agent_session()[:2])
    broken, single = folder / "broken.jsonl", tmp_path / "one.jsonl"
    broken.touch()
    single.write_bytes(encode_capture(agent_session()[2]))
    files = CaptureFiles([str(single), str(folder)])
    assert (len(files.read_new_files()), len(files.problems)) == (3, 1)
    broken.unlink()
    single.unlink()
    assert (files.read_new_files(), len(ids(files)), files.problems) == ([], 2, [])
    (folder / "new.jsonl").write_bytes(encode_capture(agent_session()[3]))
    assert len(files.read_new_files()) == 1, "a path that is gone does not keep others from being watched"
    single.write_bytes(encode_capture(agent_session()[2]))
    assert (len(files.read_new_files()), len(ids(files))) == (1, 4)


def test_what_is_no_regular_file_is_a_problem(tmp_path: Path) -> None:
    """None of these can be read, and a named pipe would be read for ever."""
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "loop.jsonl").symlink_to("loop.jsonl")
    (tmp_path / "dangling.jsonl").symlink_to("nothing.jsonl")
    os.mkfifo(tmp_path / "pipe.jsonl")
    write_captures(tmp_path, agent_session()[:1])
    files = CaptureFiles([str(tmp_path)])
    assert len(files.read_new_files()) == 1
    names = {Path(problem.split(":")[0]).name for problem in files.problems}
    assert names == {"folder.jsonl", "loop.jsonl", "dangling.jsonl", "pipe.jsonl"}
    assert len(files.problems) == 4, "a loop of folders is not followed"


def test_file_is_read_as_soon_as_that_is_permitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_captures(tmp_path, agent_session()[:1])
    (path,) = tmp_path.iterdir()
    files = CaptureFiles([str(tmp_path)])
    with monkeypatch.context() as patched:  # the owner of the test may be root, who may read everything

        def refuse(*_: object) -> None:
            raise PermissionError(13, "Permission denied", str(path))

        patched.setattr(Path, "open", refuse)
        assert files.read_new_files() == []
        assert "Permission denied" in files.problems[0]
    refused_at = path.stat().st_ctime_ns
    while path.stat().st_ctime_ns == refused_at:  # the clock of the file system ticks every few milliseconds
        path.chmod(0o600)
    assert (len(files.read_new_files()), files.problems) == (1, [])


def test_page_shows_a_replaced_file_as_it_is_now(tmp_path: Path) -> None:
    """A program may write other captures with the same id, such as a recording without an id."""
    path = tmp_path / "a.jsonl"

    def write(text: str) -> None:
        path.write_bytes(encode_capture(capture_exchange(BODY, chat_stream([text]), id="same")))

    async def use() -> None:
        files = CaptureFiles([str(tmp_path)])
        analyses = Analyses(files)
        write("before")
        watching = asyncio.create_task(files.watch(lambda: None))
        await wait_for_exchange(files)
        assert b"before" in b"".join(analyses.reply("same", Changes()))
        version = files.changes.version
        write("afterwards")
        await wait_for_exchange(files, version)
        assert b"afterwards" in b"".join(analyses.reply("same", Changes()))
        assert analyses.detail("same").summary.outcome == "ok"
        path.unlink()
        await wait_until(lambda: files.changes.since(version)[1] == ["same"])
        watching.cancel()

    asyncio.run(use())


async def wait_until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.02)


async def wait_for_exchange(files: CaptureFiles, version: int = 0) -> list[str]:
    """Wait until an exchange was announced after this version. Return the ids that have changed."""
    await wait_until(lambda: files.changes.since(version)[0])
    return files.changes.since(version)[0]


def test_folder_is_watched(tmp_path: Path) -> None:
    async def use() -> None:
        files = CaptureFiles([str(tmp_path)])
        watching = asyncio.create_task(files.watch(lambda: None))
        await asyncio.sleep(0)
        write_captures(tmp_path, agent_session()[:1])
        assert len(await wait_for_exchange(files)) == 1
        watching.cancel()

    asyncio.run(use())


def test_watching_goes_on_after_the_folder_was_away(tmp_path: Path) -> None:
    folder = tmp_path / "captures"

    async def use() -> None:
        looks = 0

        def count() -> None:
            nonlocal looks
            looks += 1

        files = CaptureFiles([str(folder)])
        watching = asyncio.create_task(files.watch(count))
        await wait_until(lambda: looks)
        write_captures(folder, agent_session()[:1])
        assert len(await wait_for_exchange(files)) == 1
        watching.cancel()

    asyncio.run(use())


def test_secrets_in_files_of_other_programs_are_redacted(tmp_path: Path) -> None:
    secret = "sk-proj-0123456789abcdefghij"
    captured = capture_exchange(
        {**BODY, "messages": [{"role": "user", "content": f"use {secret}"}]},
        chat_stream([secret[:9], secret[9:], f"Authorization: Bearer {secret}"]),
        headers={"x-api-key": secret, "cookie": "session=abcdefgh"},
    )
    (tmp_path / "a.jsonl").write_bytes(encode_capture(captured))
    files = CaptureFiles([str(tmp_path)])
    files.read_new_files()
    (id,) = ids(files)
    loaded = files.load(id)
    assert secret not in repr(files.list_exchanges())
    assert loaded.lines_of(ClientRequestLine)[0].headers["x-api-key"] == "***"
    shown = repr([line.data for line in loaded.lines_of(ClientRequestLine)]) + repr(
        b"".join(line.data for line in loaded.lines_of(ReceivedLine)[-3:])
    )
    assert secret not in shown


def test_unknown_exchange(tmp_path: Path) -> None:
    files = CaptureFiles([str(tmp_path)])
    with pytest.raises(UnknownExchange):
        files.load("../../etc/passwd")
    with pytest.raises(UnknownExchange):
        files.find_summary("x")
