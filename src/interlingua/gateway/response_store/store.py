"""Stored responses, their events and conversations, each visible to its owner only."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any

import msgspec

from interlingua.gateway.response_store.database import Database, Transaction, open_database
from interlingua.gateway.response_store.stored_items import has_summary, output_json, pick_items
from interlingua.gateway.settings.schema import State

__all__ = ["LOST_SECONDS", "RUNNING_STATUSES", "Conversation", "ResponseStore", "StoredResponse", "StoredTurn"]

RUNNING_STATUSES = ("queued", "in_progress")
MAX_CHAIN_LENGTH = 10_000
"""Maximum number of responses that continue each other."""
READ_BATCH_ROWS, READ_BATCH_BYTES = 100, 8 * 1024 * 1024
"""Responses of a conversation that are read at once."""
LOST_SECONDS = 60.0
"""Time without a sign of life after which a running response counts as failed: its worker is gone."""
PRUNE_INTERVAL_SECONDS = 600.0
PRUNE_SHARE = 16
"""The limits are also checked when this fraction of the maximum size has been written."""
EVENTS_SECONDS = 3600.0
"""Time for which the events of a background response are kept after its last change."""
SECONDS_PER_DAY = 86_400.0

_PLAIN_ID = re.compile(r"[!-~]{0,200}")

_TABLES = (
    """CREATE TABLE IF NOT EXISTS responses (
        owner TEXT NOT NULL, id TEXT NOT NULL, previous TEXT NOT NULL, status TEXT NOT NULL,
        created DOUBLE PRECISION NOT NULL, used DOUBLE PRECISION NOT NULL, size BIGINT NOT NULL,
        input {blob} NOT NULL, response {blob} NOT NULL, PRIMARY KEY (owner, id))""",
    "CREATE INDEX IF NOT EXISTS responses_by_use ON responses (used, size)",
    """CREATE TABLE IF NOT EXISTS items (
        owner TEXT NOT NULL, id TEXT NOT NULL, response TEXT NOT NULL, PRIMARY KEY (owner, id))""",
    "CREATE INDEX IF NOT EXISTS items_by_response ON items (owner, response)",
    """CREATE TABLE IF NOT EXISTS events (
        owner TEXT NOT NULL, response TEXT NOT NULL, last_number BIGINT NOT NULL, events {blob} NOT NULL,
        PRIMARY KEY (owner, response, last_number))""",
    """CREATE TABLE IF NOT EXISTS conversations (
        owner TEXT NOT NULL, id TEXT NOT NULL, latest TEXT NOT NULL, created DOUBLE PRECISION NOT NULL,
        used DOUBLE PRECISION NOT NULL, metadata {blob} NOT NULL, PRIMARY KEY (owner, id))""",
)
_CHAIN = f"""WITH RECURSIVE chain (id, previous, position) AS (
        SELECT id, previous, 0 FROM responses WHERE owner = :owner AND id = :id
        UNION ALL
        SELECT r.id, r.previous, c.position + 1 FROM responses r JOIN chain c ON r.id = c.previous
        WHERE r.owner = :owner AND c.position < {MAX_CHAIN_LENGTH})"""


class StoredResponse(msgspec.Struct, frozen=True, kw_only=True):
    """One response, and the input items of its request."""

    id: str
    previous: str = ""
    """Id of the response that it continues; empty if it continues none."""
    status: str
    created: float
    used: float = 0.0
    """Time of the last request that stored, changed or continued it."""
    input: bytes
    """The input items of its own request, as a JSON list."""
    response: bytes
    """The response object, as JSON."""


class StoredTurn(msgspec.Struct, frozen=True):
    """A stored response as a part of a conversation."""

    id: str
    status: str
    input: bytes
    """The input items of its request, as a JSON list."""
    output: bytes
    """The output items of the response, as a JSON list."""


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation that requests continue by its own id."""

    id: str
    latest: str = ""
    """Id of the response that the next one continues; empty if there is none."""
    created: float
    metadata: bytes = b"{}"


class ResponseStore:
    """Responses of all owners. Every method needs the owner, and finds nothing of another one."""

    def __init__(self, database: Database, state: State) -> None:
        self._database = database
        self._state = state
        self._next_prune = 0.0
        self._written_bytes = 0

    @classmethod
    def open(cls, state: State) -> ResponseStore | None:
        """Return the store of these settings; None if it is off. Nothing is opened before it is used."""
        database = open_database(state, _TABLES)
        return None if database is None else cls(database, state)

    def close(self) -> None:
        self._database.close()

    async def save(
        self, owner: str, stored: StoredResponse, item_ids: Iterable[str] = (), conversation: str = ""
    ) -> None:
        """Store a response, or replace it. It is durable when this returns.

        Args:
            owner: The client that may see it.
            stored: The response.
            item_ids: Ids of the items in its input and output.
            conversation: Id of the conversation that it continues; empty if it continues none.
        """
        keys = [_key(id) for id in item_ids]
        await self._database.write(_save, owner, _with_keys(stored), keys, _key(conversation), time.time())
        await self._enforce_limits(len(stored.input) + len(stored.response))

    async def get(self, owner: str, id: str) -> StoredResponse | None:
        return await self._database.read(_get, owner, _key(id))

    async def is_running(self, owner: str, id: str) -> bool:
        """Return whether a response is queued or in progress, and its worker still shows signs of life."""
        return await self._database.read(_is_running, owner, _key(id), time.time() - LOST_SECONDS)

    async def chain(self, owner: str, id: str, max_bytes: int, *, from_summary: bool = True) -> list[StoredTurn]:
        """Return the response and all that it continues, the oldest first; [] if one of them is missing.

        Args:
            owner: The client that may see them.
            id: The response.
            max_bytes: Maximum size of the items. Only one response more is read, so that the caller notices the rest.
            from_summary: Leave out what the last summary replaces: everything before it.
        """
        return await self._database.read(_get_chain, owner, _key(id), max_bytes, from_summary)

    async def find_items(self, owner: str, ids: Iterable[str], max_bytes: int) -> dict[str, bytes]:
        """Return those of these items that are stored, each as JSON.

        With more than `max_bytes`, only those of one response more are read, so that the caller notices it.
        """
        return await self._database.read(_find_items, owner, {_key(id): id for id in ids}, max_bytes)

    async def delete(self, owner: str, id: str) -> bool:
        """Delete a response. Returns False if there is none."""
        return await self._database.write(_delete, owner, _key(id))

    async def _enforce_limits(self, written_bytes: int) -> None:
        """Delete what exceeds the maximum age and size, at intervals of time and of written data."""
        now = time.time()
        self._written_bytes += written_bytes
        if now >= self._next_prune or self._written_bytes > self._state.size // PRUNE_SHARE:
            self._next_prune, self._written_bytes = now + PRUNE_INTERVAL_SECONDS, 0
            await self._database.write(_prune, now, self._state.days * SECONDS_PER_DAY, self._state.size)

    # ── responses in the background ───────────────────────────────────────────────────────────────────────────────

    async def append_events(self, owner: str, id: str, last_number: int, events: bytes) -> str:
        """Store events of a running response, and return its status: another worker may have cancelled it.

        Args:
            owner: The client that may see it.
            id: The response.
            last_number: Sequence number of the last event.
            events: The events, one JSON object per line; empty if there is none.

        Returns: the status; "" if the response was deleted.
        """
        return await self._database.write(_append_events, owner, _key(id), last_number, events, time.time())

    async def events_after(self, owner: str, id: str, number: int) -> list[bytes]:
        """Return batches of events, one JSON object per line. The first one may begin at or before `number`."""
        return await self._database.read(_events_after, owner, _key(id), number)

    async def cancel(self, owner: str, id: str) -> None:
        """Cancel a running response. Its worker learns about it when it stores the next events."""
        await self._database.write(_cancel, owner, _key(id), time.time())

    async def finish(
        self,
        owner: str,
        stored: StoredResponse,
        last_number: int,
        events: bytes,
        item_ids: Iterable[str] = (),
        conversation: str = "",
    ) -> bool:
        """Replace a running response by its end, together with its last events: a client that has read the final event
        finds the response complete, whatever happens in between. The arguments are those of `append_events` and `save`.

        Returns: False if it is no longer running. Nothing is changed then.
        """
        keys, now = [_key(id) for id in item_ids], time.time()
        has_finished = await self._database.write(
            _finish, owner, _with_keys(stored), last_number, events, keys, _key(conversation), now
        )
        await self._enforce_limits(len(stored.input) + len(stored.response))
        return has_finished

    # ── conversations ─────────────────────────────────────────────────────────────────────────────────────────────

    async def save_conversation(self, owner: str, conversation: Conversation) -> None:
        await self._database.write(_save_conversation, owner, conversation, time.time())

    async def get_conversation(self, owner: str, id: str) -> Conversation | None:
        return await self._database.read(_get_conversation, owner, _key(id))

    async def delete_conversation(self, owner: str, id: str) -> bool:
        return await self._database.write(_delete_conversation, owner, _key(id))


def _key(id: str) -> str:
    """Return the id as it is stored: a hash if it is not plain, because databases refuse some characters and lengths.

    Clients and upstreams choose the ids of their items freely.
    """
    if _PLAIN_ID.fullmatch(id):
        return id
    return f"sha256 {sha256(id.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _with_keys(stored: StoredResponse) -> StoredResponse:
    return msgspec.structs.replace(stored, id=_key(stored.id), previous=_key(stored.previous))


_RESPONSE_COLUMNS = "id, previous, status, created, used, input, response"


def _stored_response(row: tuple[Any, ...]) -> StoredResponse:
    id, previous, status, created, used, input, response = row[:7]
    return StoredResponse(
        id=id,
        previous=previous,
        status=status,
        created=created,
        used=used,
        input=bytes(input),
        response=bytes(response),
    )


def _save(
    transaction: Transaction, owner: str, stored: StoredResponse, item_ids: list[str], conversation: str, now: float
) -> None:
    if conversation:
        stored = _append_to_conversation(transaction, owner, conversation, stored, now)
    transaction.execute(
        """INSERT INTO responses (owner, id, previous, status, created, used, size, input, response)
        VALUES (:owner, :id, :previous, :status, :created, :now, :size, :input, :response)
        ON CONFLICT (owner, id) DO UPDATE SET previous = excluded.previous, status = excluded.status,
        used = excluded.used, size = excluded.size, input = excluded.input, response = excluded.response""",
        **_values(owner, stored),
        created=stored.created,
        now=now,
    )
    transaction.execute_for_each(
        """INSERT INTO items (owner, id, response) VALUES (:owner, :id, :response)
        ON CONFLICT (owner, id) DO UPDATE SET response = excluded.response""",
        [{"owner": owner, "id": item_id, "response": stored.id} for item_id in dict.fromkeys(item_ids)],
    )
    if stored.previous:  # what it continues is as old as itself
        transaction.execute(
            f"""{_CHAIN} UPDATE responses SET used = :now
            WHERE owner = :owner AND id IN (SELECT id FROM chain)""",
            owner=owner,
            id=stored.previous,
            now=now,
        )


def _append_to_conversation(
    transaction: Transaction, owner: str, id: str, stored: StoredResponse, now: float
) -> StoredResponse:
    """Make a response the latest one of a conversation. Returns it as one that continues the latest one before.

    That need not be the one that its request has continued: several requests may continue a conversation at once.
    """
    # This update comes first, because it locks the row: no other replica reads it until the end of the transaction.
    transaction.execute(
        "UPDATE conversations SET used = :now WHERE owner = :owner AND id = :id", owner=owner, id=id, now=now
    )
    conversation = _get_conversation(transaction, owner, id)
    if conversation is None:  # it was deleted meanwhile
        return stored
    if conversation.latest == stored.id:  # the transaction runs again, because its connection was lost
        known = _get(transaction, owner, stored.id)
        return msgspec.structs.replace(stored, previous=known.previous if known is not None else "")
    transaction.execute(
        "UPDATE conversations SET latest = :latest WHERE owner = :owner AND id = :id",
        owner=owner,
        id=id,
        latest=stored.id,
    )
    return msgspec.structs.replace(stored, previous=conversation.latest)


def _values(owner: str, stored: StoredResponse) -> dict[str, Any]:
    return {
        "owner": owner,
        "id": stored.id,
        "previous": stored.previous,
        "status": stored.status,
        "size": len(stored.input) + len(stored.response),
        "input": stored.input,
        "response": stored.response,
    }


def _get(transaction: Transaction, owner: str, id: str) -> StoredResponse | None:
    rows = transaction.execute(
        f"SELECT {_RESPONSE_COLUMNS} FROM responses WHERE owner = :owner AND id = :id", owner=owner, id=id
    )
    return _stored_response(rows[0]) if rows else None


def _is_running(transaction: Transaction, owner: str, id: str, used_after: float) -> bool:
    rows = transaction.execute(
        """SELECT 1 FROM responses WHERE owner = :owner AND id = :id AND used > :used_after
        AND status IN ('queued', 'in_progress')""",
        owner=owner,
        id=id,
        used_after=used_after,
    )
    return bool(rows)


def _get_chain(transaction: Transaction, owner: str, id: str, max_bytes: int, from_summary: bool) -> list[StoredTurn]:
    chain = transaction.execute(
        f"""{_CHAIN} SELECT c.id, c.previous, r.size FROM chain c JOIN responses r ON r.id = c.id AND r.owner = :owner
        ORDER BY c.position""",
        owner=owner,
        id=id,
    )
    if not chain or chain[-1][1]:
        return []
    turns: list[StoredTurn] = []  # the newest first
    size = 0
    for ids in _read_batches((id, size) for id, _, size in chain):
        by_id = _get_turns(transaction, owner, ids)
        for turn_id in ids:
            if turn_id not in by_id:  # it was deleted meanwhile
                return []
            turn = by_id[turn_id]
            is_summary = from_summary and has_summary(turn.output)
            turns.append(msgspec.structs.replace(turn, input=b"[]") if is_summary else turn)
            size += len(turn.input) + len(turn.output)
            if is_summary or size > max_bytes:
                return turns[::-1]
    return turns[::-1]


def _read_batches(sizes: Iterable[tuple[str, int]]) -> Iterator[list[str]]:
    """Divide ids of responses with these sizes into batches that are read at once."""
    batch: list[str] = []
    batch_size = 0
    for id, size in sizes:
        if batch and (len(batch) == READ_BATCH_ROWS or batch_size + size > READ_BATCH_BYTES):
            yield batch
            batch, batch_size = [], 0
        batch.append(id)
        batch_size += size
    if batch:
        yield batch


def _get_turns(transaction: Transaction, owner: str, ids: list[str]) -> dict[str, StoredTurn]:
    placeholders = ", ".join(f":id{n}" for n in range(len(ids)))
    rows = transaction.execute(
        f"SELECT id, status, input, response FROM responses WHERE owner = :owner AND id IN ({placeholders})",
        owner=owner,
        **{f"id{n}": id for n, id in enumerate(ids)},
    )
    return {
        id: StoredTurn(id, status, bytes(input), output_json(bytes(response))) for id, status, input, response in rows
    }


def _find_items(transaction: Transaction, owner: str, ids: dict[str, str], max_bytes: int) -> dict[str, bytes]:
    """Return items as JSON. The keys of `ids` are the ids as they are stored."""
    wanted: dict[str, set[str]] = {}  # ids by the response that has them
    for key, id in ids.items():
        rows = transaction.execute("SELECT response FROM items WHERE owner = :owner AND id = :id", owner=owner, id=key)
        for (response,) in rows:
            wanted.setdefault(response, set()).add(id)
    found: dict[str, bytes] = {}
    size = 0
    for response, item_ids in wanted.items():
        for turn in _get_turns(transaction, owner, [response]).values():
            items = pick_items(turn.input, item_ids) | pick_items(turn.output, item_ids)
            found |= items
            size += sum(map(len, items.values()))
        if size > max_bytes:
            break
    return found


def _delete(transaction: Transaction, owner: str, id: str) -> bool:
    for table in ("items", "events"):
        transaction.execute(f"DELETE FROM {table} WHERE owner = :owner AND response = :id", owner=owner, id=id)
    transaction.execute("DELETE FROM responses WHERE owner = :owner AND id = :id", owner=owner, id=id)
    return transaction.changed_rows > 0


def _append_events(transaction: Transaction, owner: str, id: str, last_number: int, events: bytes, now: float) -> str:
    transaction.execute(
        "UPDATE responses SET used = :now, size = size + :size WHERE owner = :owner AND id = :id",
        owner=owner,
        id=id,
        now=now,
        size=len(events),
    )
    rows = transaction.execute("SELECT status FROM responses WHERE owner = :owner AND id = :id", owner=owner, id=id)
    status = str(rows[0][0]) if rows else ""
    if events and status in RUNNING_STATUSES:
        transaction.execute(
            "UPDATE responses SET status = 'in_progress' WHERE owner = :owner AND id = :id", owner=owner, id=id
        )
        transaction.execute(
            "INSERT INTO events (owner, response, last_number, events) VALUES (:owner, :id, :last_number, :events)",
            owner=owner,
            id=id,
            last_number=last_number,
            events=events,
        )
    return status


def _events_after(transaction: Transaction, owner: str, id: str, number: int) -> list[bytes]:
    rows = transaction.execute(
        """SELECT events FROM events WHERE owner = :owner AND response = :id AND last_number > :number
        ORDER BY last_number""",
        owner=owner,
        id=id,
        number=number,
    )
    return [bytes(events) for (events,) in rows]


def _cancel(transaction: Transaction, owner: str, id: str, now: float) -> None:
    transaction.execute(
        """UPDATE responses SET status = 'cancelled', used = :now
        WHERE owner = :owner AND id = :id AND status IN ('queued', 'in_progress')""",
        owner=owner,
        id=id,
        now=now,
    )


def _finish(
    transaction: Transaction,
    owner: str,
    stored: StoredResponse,
    last_number: int,
    events: bytes,
    item_ids: list[str],
    conversation: str,
    now: float,
) -> bool:
    if _append_events(transaction, owner, stored.id, last_number, events, now) not in RUNNING_STATUSES:
        return False
    _save(transaction, owner, stored, item_ids, conversation, now)
    return True


def _prune(transaction: Transaction, now: float, max_seconds: float, max_bytes: int) -> None:
    """Delete what is too old, and the oldest responses until the others fit into the maximum size."""
    transaction.execute("DELETE FROM responses WHERE used < :before", before=now - max_seconds)
    transaction.execute("DELETE FROM conversations WHERE used < :before", before=now - max_seconds)
    ((total,),) = transaction.execute("SELECT COALESCE(SUM(size), 0) FROM responses")
    excess = int(total) - max_bytes * (PRUNE_SHARE - 1) // PRUNE_SHARE
    if int(total) > max_bytes:
        rows = transaction.execute("SELECT owner, id, size FROM responses ORDER BY used LIMIT 100000")
        for owner, id, size in rows:
            if excess <= 0:
                break
            transaction.execute("DELETE FROM responses WHERE owner = :owner AND id = :id", owner=owner, id=id)
            excess -= size
    for table in ("items", "events"):
        transaction.execute(
            f"""DELETE FROM {table} WHERE NOT EXISTS (
            SELECT 1 FROM responses r WHERE r.owner = {table}.owner AND r.id = {table}.response)"""
        )
    transaction.execute(
        """DELETE FROM events WHERE EXISTS (SELECT 1 FROM responses r
        WHERE r.owner = events.owner AND r.id = events.response AND r.used < :before)""",
        before=now - EVENTS_SECONDS,
    )


def _save_conversation(transaction: Transaction, owner: str, conversation: Conversation, now: float) -> None:
    transaction.execute(
        """INSERT INTO conversations (owner, id, latest, created, used, metadata)
        VALUES (:owner, :id, :latest, :created, :now, :metadata)
        ON CONFLICT (owner, id) DO UPDATE SET used = excluded.used, metadata = excluded.metadata""",
        owner=owner,
        id=conversation.id,
        latest=conversation.latest,
        created=conversation.created,
        now=now,
        metadata=conversation.metadata,
    )


def _get_conversation(transaction: Transaction, owner: str, id: str) -> Conversation | None:
    rows = transaction.execute(
        "SELECT latest, created, metadata FROM conversations WHERE owner = :owner AND id = :id", owner=owner, id=id
    )
    if not rows:
        return None
    latest, created, metadata = rows[0]
    return Conversation(id=id, latest=latest, created=created, metadata=bytes(metadata))


def _delete_conversation(transaction: Transaction, owner: str, id: str) -> bool:
    transaction.execute("DELETE FROM conversations WHERE owner = :owner AND id = :id", owner=owner, id=id)
    return transaction.changed_rows > 0
