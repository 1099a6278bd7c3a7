"""Tests of the store itself: owners, chains, limits, look-up time, file mode, durability."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from interlingua.gateway.response_store.database import DatabaseFailed
from interlingua.gateway.response_store.store import Conversation, ResponseStore, StoredResponse, StoredTurn
from interlingua.gateway.settings.schema import State

T = TypeVar("T")
OWNER, OTHER = "owner", "other"
MAX_BYTES = 1024 * 1024


def stored(
    id: str, previous: str = "", status: str = "completed", size: int = 2, input: Any = (), output: Any = ()
) -> StoredResponse:
    response = {"id": id, "output": output, "text": "x" * size}
    return StoredResponse(
        id=id,
        previous=previous,
        status=status,
        created=1.0,
        input=json.dumps(input).encode(),
        response=json.dumps(response).encode(),
    )


def use_store(path: Path, use: Callable[[ResponseStore], Awaitable[T]], **fields: float) -> T:
    """Return the result of the function with a store in this folder."""

    async def run() -> T:
        store = ResponseStore.open(State(path=str(path / "state" / "responses.db"), **fields))  # type: ignore[arg-type]
        assert store is not None
        try:
            return await use(store)
        finally:
            store.close()

    return asyncio.run(run())


def test_response_is_read_as_it_was_stored(tmp_path: Path) -> None:
    async def use(store: ResponseStore) -> StoredResponse | None:
        await store.save(OWNER, stored("a"))
        return await store.get(OWNER, "a")

    found = use_store(tmp_path, use)
    assert found is not None
    assert found.used > time.time() - 60
    assert msgspec.structs.replace(found, used=0.0) == stored("a")


def test_only_owner_of_file_can_read_it(tmp_path: Path) -> None:
    use_store(tmp_path, lambda store: store.save(OWNER, stored("a")))
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "state").iterdir()}
    assert modes.pop("responses.db") == 0o600
    assert set(modes.values()) <= {0o600}
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700


def test_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    use_store(tmp_path, lambda store: store.save(OWNER, stored("a")))
    (tmp_path / "state" / "responses.db").chmod(0o644)
    with pytest.raises(DatabaseFailed) as caught:
        use_store(tmp_path, lambda store: store.get(OWNER, "a"))
    assert "other users can read" in caught.value.internal_reason


def test_nothing_is_opened_before_first_use(tmp_path: Path) -> None:
    async def use(_: ResponseStore) -> list[Path]:
        return list(tmp_path.iterdir())

    assert use_store(tmp_path, use) == []


def test_owner_sees_nothing_of_another(tmp_path: Path) -> None:
    async def use(store: ResponseStore) -> None:
        await store.save(OWNER, stored("a"), ["item"])
        await store.save_conversation(OWNER, Conversation(id="c", created=1.0))
        assert await store.get(OTHER, "a") is None
        assert await store.chain(OTHER, "a", MAX_BYTES) == []
        assert await store.find_items(OTHER, ["item"], MAX_BYTES) == {}
        assert await store.get_conversation(OTHER, "c") is None
        assert not await store.delete(OTHER, "a")
        assert not await store.delete_conversation(OTHER, "c")
        await store.save(OTHER, stored("b", previous="a"))
        assert await store.chain(OTHER, "b", MAX_BYTES) == []
        assert await store.get(OWNER, "a") is not None

    use_store(tmp_path, use)


def test_chain_is_complete_or_empty(tmp_path: Path) -> None:
    async def use(store: ResponseStore) -> tuple[list[str], list[str]]:
        for id, previous in (("a", ""), ("b", "a"), ("c", "b"), ("d", "b")):
            await store.save(OWNER, stored(id, previous))
        before = [found.id for found in await store.chain(OWNER, "c", MAX_BYTES)]
        await store.delete(OWNER, "a")
        return before, [found.id for found in await store.chain(OWNER, "c", MAX_BYTES)]

    assert use_store(tmp_path, use) == (["a", "b", "c"], [])


def test_responses_that_continue_a_conversation_at_once_are_both_in_it(tmp_path: Path) -> None:
    async def use(store: ResponseStore) -> list[str]:
        await store.save(OWNER, stored("first"))
        await store.save_conversation(OWNER, Conversation(id="c", latest="first", created=1.0))
        for id in ("a", "b", "b"):  # a transaction may run twice
            await store.save(OWNER, stored(id, previous="first"), conversation="c")
        conversation = await store.get_conversation(OWNER, "c")
        assert conversation is not None
        return [found.id for found in await store.chain(OWNER, conversation.latest, MAX_BYTES)]

    assert use_store(tmp_path, use) == ["first", "a", "b"]


def test_items_are_found_until_their_response_is_deleted(tmp_path: Path) -> None:
    async def use(store: ResponseStore) -> list[dict[str, Any]]:
        items = [{"id": id, "in": "a"} for id in "xy"]
        await store.save(OWNER, stored("a", input=items), ["x", "y"])
        await store.save(
            OWNER, stored("b", input=[{"id": "y", "in": "b"}], output=[{"id": "z", "in": "b"}]), ["y", "z"]
        )
        found = [await store.find_items(OWNER, "xyzw", MAX_BYTES)]
        await store.delete(OWNER, "b")
        found.append(await store.find_items(OWNER, "xyz", MAX_BYTES))
        return [{id: json.loads(item)["in"] for id, item in items.items()} for items in found]

    assert use_store(tmp_path, use) == [{"x": "a", "y": "b", "z": "b"}, {"x": "a"}]


def test_no_more_is_read_than_one_response_over_the_maximum_size(tmp_path: Path) -> None:
    async def use(store: ResponseStore) -> tuple[list[str], list[str]]:
        for n in range(300):
            item = {"id": f"item-{n}", "text": "x" * 1000}
            previous = f"{n - 1}" if n else ""
            await store.save(OWNER, stored(f"{n}", previous, input=[item], size=2000), [f"item-{n}"])
        chain = await store.chain(OWNER, "299", 150_000)
        items = await store.find_items(OWNER, [f"item-{n}" for n in range(300)], 10_000)
        assert len(await store.chain(OWNER, "299", MAX_BYTES)) == 300
        return [turn.id for turn in chain], list(items)

    turns, items = use_store(tmp_path, use)
    assert (turns[-1], len(items)) == ("299", 10)
    assert 140 <= len(turns) <= 150, "the maximum size is that of the items, without the rest of the responses"


def test_chain_begins_at_the_last_summary(tmp_path: Path) -> None:
    summary = {"type": "compaction", "encrypted_content": "x"}
    mentions = {"type": "message", "content": 'of the type "compaction"'}

    async def use(store: ResponseStore) -> tuple[list[StoredTurn], list[StoredTurn]]:
        await store.save(OWNER, stored("a", input=["x" * 2000]))
        await store.save(OWNER, stored("b", "a", input=["x" * 2000], output=[summary]))
        await store.save(OWNER, stored("c", "b", input=["c"], output=[mentions]))
        return (
            await store.chain(OWNER, "c", 1000),
            await store.chain(OWNER, "c", MAX_BYTES, from_summary=False),
        )

    turns, all_turns = use_store(tmp_path, use)
    assert [(turn.id, json.loads(turn.input), json.loads(turn.output)) for turn in turns] == [
        ("b", [], [summary]),
        ("c", ["c"], [mentions]),
    ]
    assert [turn.id for turn in all_turns] == ["a", "b", "c"]


def test_least_recently_used_responses_are_deleted_above_maximum_size(tmp_path: Path) -> None:
    async def use(store: ResponseStore) -> list[str]:
        for number in range(24):
            await store.save(OWNER, stored(f"{number}", size=64 * 1024), [f"item-{number}"])
            if number == 12:  # it continues the first one, which counts as used then
                await store.save(OWNER, stored("next", previous="0"))
        return [f"{number}" for number in range(24) if await store.get(OWNER, f"{number}")]

    kept = use_store(tmp_path, use, size=1024 * 1024)
    assert kept[0] == "0"
    assert kept[1:] == [f"{number}" for number in range(24 - len(kept) + 1, 24)]
    assert 12 <= len(kept) <= 17


def test_old_responses_are_deleted(tmp_path: Path) -> None:
    async def use(store: ResponseStore) -> bool:
        await store.save(OWNER, stored("a"))
        await asyncio.sleep(0.2)
        store._next_prune = 0
        await store.save(OWNER, stored("b"))
        return await store.get(OWNER, "a") is None and await store.get(OWNER, "b") is not None

    assert use_store(tmp_path, use, days=0.1 / 86_400)


def test_look_up_among_10_000_responses_takes_less_than_5_milliseconds(tmp_path: Path) -> None:
    async def use(store: ResponseStore) -> float:
        await store.save(OWNER, stored("first"))
        connection = sqlite3.connect(tmp_path / "state" / "responses.db")
        with connection:
            connection.executemany(
                "INSERT INTO responses VALUES (?, ?, ?, 'completed', 1, 4e9, 2048, ?, ?)",
                [
                    (f"owner-{n % 7}", f"resp-{n}", f"resp-{n - 7}" if n % 140 >= 7 else "", b"[]", b"x" * 2048)
                    for n in range(10_000)
                ],
            )
        connection.close()
        seconds = []
        for number in range(133, 10_000, 140):
            started = time.perf_counter()
            chain = await store.chain(f"owner-{number % 7}", f"resp-{number}", MAX_BYTES)
            seconds.append(time.perf_counter() - started)
            assert len(chain) == 20
        return sorted(seconds)[len(seconds) // 2]

    assert use_store(tmp_path, use) < 0.005


WRITER = """
import asyncio, sys
from interlingua.gateway.response_store.store import ResponseStore, StoredResponse
from interlingua.gateway.settings.schema import State

async def write():
    store = ResponseStore.open(State(path=sys.argv[1]))
    number = 0
    while True:
        id = f"{sys.argv[2]}-{number}"
        stored = StoredResponse(id=id, status="completed", created=1.0, input=b"[]", response=b"x" * 50_000)
        await store.save("owner", stored)
        print(id, flush=True)
        number += 1

asyncio.run(write())
"""


def test_kill_loses_no_response_that_was_reported_as_stored(tmp_path: Path) -> None:
    """Two processes write, as two workers do, and are killed in the middle of it."""
    path = tmp_path / "state" / "responses.db"
    reported: list[str] = []
    for round in range(3):
        writers = [
            subprocess.Popen(
                [sys.executable, "-c", WRITER, str(path), f"{round}{name}"], stdout=subprocess.PIPE, env=os.environ
            )
            for name in "ab"
        ]
        outputs: list[bytes] = []
        for writer in writers:
            assert writer.stdout is not None
            outputs.append(writer.stdout.readline())
        time.sleep(0.3)
        for writer, first_line in zip(writers, outputs, strict=True):
            assert writer.stdout is not None
            writer.send_signal(signal.SIGKILL)
            lines = (first_line + writer.stdout.read()).split(b"\n")[:-1]
            writer.stdout.close()
            writer.wait()
            reported += [line.decode() for line in lines]

    async def use(store: ResponseStore) -> list[str]:
        return [id for id in reported if not await store.get("owner", id)]

    assert len(reported) > 6
    assert use_store(tmp_path, use) == []
