"""Tests of what a request refers to: limits, and long histories in threads."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from interlingua.gateway.http import input_items
from interlingua.gateway.http.error_responses import OutOfMemory, TooLarge
from interlingua.gateway.http.memory_budget import MemoryBudget, MemoryShare
from interlingua.gateway.response_store.history_reader import PREVIOUS_ID, HistoryReader
from interlingua.gateway.response_store.store import Conversation, ResponseStore
from interlingua.gateway.settings.schema import RequestLimits
from interlingua.gateway.work_threads import WorkThreads
from tests.gateway.response_store.test_store import OWNER, stored, use_store

MIB = 1024 * 1024


def resolve(path: Path, items: list[Any], body: Any, limits: RequestLimits, memory: MemoryShare) -> Any:
    """Return the request that continues a stored response with these items, which has the id `a`."""

    async def use(store: ResponseStore) -> Any:
        await store.save(OWNER, stored("a", input=items, output=[{"type": "message", "id": "out"}]), ["out"])
        await store.save_conversation(OWNER, Conversation(id="c", latest="a", created=1.0))
        threads = WorkThreads()
        try:
            reader = HistoryReader(store, OWNER, "client", limits, memory, threads)
            return await reader.resolve_input(body, 100, keep_unknown=False)
        finally:
            threads.close()

    return use_store(path, use)


def open_share(limit: int = 1024 * MIB) -> MemoryShare:
    return MemoryBudget(lambda: limit).open_share()


@pytest.mark.parametrize("body", [{PREVIOUS_ID: "a"}, {"conversation": "c"}])
@pytest.mark.parametrize(("count", "is_in_thread"), [(10, False), (20_000, True)])
def test_long_history_is_decoded_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: dict[str, str], count: int, is_in_thread: bool
) -> None:
    threads: list[int] = []
    add_response = input_items.add_response

    def record(*args: Any) -> None:
        threads.append(threading.get_ident())
        add_response(*args)

    monkeypatch.setattr("interlingua.gateway.response_store.history_reader.add_response", record)
    memory = open_share()
    items = [{"type": "message", "role": "user", "content": f"{n}"} for n in range(count)]
    resolved = resolve(tmp_path, items, {**body, "input": "new"}, RequestLimits(), memory)
    assert [thread != threading.get_ident() for thread in threads] == [is_in_thread]
    assert len(resolved.body["input"]) == count + 2
    assert memory.size >= 200 * count, "the estimated memory of the decoded items"
    assert [resolved.origins.find(n).path for n in (0, count, count + 1)] == [
        next(iter(body)),
        next(iter(body)),
        "input",
    ]


def test_limits_count_what_is_continued(tmp_path: Path) -> None:
    items = ["x" * 100] * 1000
    body = {PREVIOUS_ID: "a", "input": "new"}
    with pytest.raises(TooLarge, match=r"limits\.body"):
        resolve(tmp_path, items, body, RequestLimits(body=50_000), open_share())
    with pytest.raises(TooLarge, match="1,000 JSON values"):
        resolve(tmp_path, items, body, RequestLimits(values=1000), open_share())
    with pytest.raises((TooLarge, OutOfMemory)):
        resolve(tmp_path, items, body, RequestLimits(), open_share(limit=100_000))


def test_conversation_is_read_with_what_a_summary_has_replaced(tmp_path: Path) -> None:
    async def use(store: ResponseStore) -> list[tuple[str, list[Any]]]:
        await store.save(OWNER, stored("a", input=["first"], output=["one"]))
        await store.save(OWNER, stored("b", "a", input=["trigger"], output=[{"type": "compaction"}]))
        await store.save(OWNER, stored("c", "b", input=["last"]))
        threads = WorkThreads()
        try:
            reader = HistoryReader(store, OWNER, "client", RequestLimits(values=2), open_share(), threads)
            return await reader.read_all_turns("c")
        finally:
            threads.close()

    assert use_store(tmp_path, use) == [
        ("a", ["first", "one"]),
        ("b", ["trigger", {"type": "compaction"}]),
        ("c", ["last"]),
    ]
