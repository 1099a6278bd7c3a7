"""References of a request of the Responses API: earlier responses, conversations and items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ParamSpec, TypeVar

import msgspec

from interlingua.common.coerce import as_dict
from interlingua.common.jsontext.codec import read_full_list, read_full_object
from interlingua.common.jsontext.value_count import has_at_most_values
from interlingua.errors import BadRequest
from interlingua.gateway.http.error_responses import NotFound, TooLarge
from interlingua.gateway.http.field_origins import Origin, Origins
from interlingua.gateway.http.input_items import add_response, input_items, input_origins
from interlingua.gateway.http.memory_budget import MemoryShare, decoded_size
from interlingua.gateway.response_store.store import ResponseStore, StoredTurn
from interlingua.gateway.response_store.stored_exchange import STORED_STATUSES, is_reference
from interlingua.gateway.settings.schema import RequestLimits
from interlingua.gateway.work_threads import WorkThreads

__all__ = ["CONVERSATION", "PREVIOUS_ID", "HistoryReader", "ItemNotFound", "ResolvedRequest"]

Json = dict[str, Any]
P = ParamSpec("P")
T = TypeVar("T")

PREVIOUS_ID, CONVERSATION = "previous_response_id", "conversation"


class PreviousResponseNotFound(BadRequest):
    def __init__(self, id: str) -> None:
        problem = f"no stored response has the id {id!r:.100}"
        super().__init__(PREVIOUS_ID, problem, "send the whole conversation", "previous_response_not_found")


class ItemNotFound(NotFound):
    """The request refers to something that is not stored, or not for this client."""

    code = "not_found"

    def __init__(self, kind: str, id: str) -> None:
        super().__init__(
            f"no stored {kind} has the id {id!r:.100}", "it may have been deleted; `store: false` stores none"
        )


class ResolvedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request whose input has everything that it refers to."""

    body: Json
    own_items: list[Any]
    """Input items of the request itself, without those of earlier responses. References are replaced."""
    size: int
    """Size of its body in bytes, with the stored items that were added to it."""
    previous: str
    conversation: str
    origins: Origins
    """Origins of the items in its input; empty if nothing was added to it."""

    @property
    def echo(self) -> Json:
        """Fields of the request that the response repeats, although they are no longer in the body."""
        if self.conversation:
            return {CONVERSATION: {"id": self.conversation}}
        return {PREVIOUS_ID: self.previous} if self.previous else {}


class HistoryReader:
    """Reads what one request refers to, within its limits. Long histories are decoded in threads.

    Args:
        store: The stored responses.
        owner: The client, as the store knows it.
        client_id: The client, as the threads know it.
        limits: The limits of a request: what it refers to counts as if the client had sent it.
        memory: Counts the memory of what is read.
        work_threads: The threads.
    """

    def __init__(
        self,
        store: ResponseStore,
        owner: str,
        client_id: str,
        limits: RequestLimits,
        memory: MemoryShare,
        work_threads: WorkThreads,
    ) -> None:
        self._store = store
        self._owner = owner
        self._client_id = client_id
        self._limits = limits
        self._memory = memory
        self._work_threads = work_threads

    async def resolve_input(self, body: Json, size: int, *, keep_unknown: bool) -> ResolvedRequest:
        """Return the request with the items that it refers to: previous response, conversation and item references.

        Args:
            body: The request. It is not changed.
            size: Its size in bytes.
            keep_unknown: Leave unknown ids in the request, because an upstream may know them.

        Raises:
            PreviousResponseNotFound: The previous response is not stored.
            BadRequest: The previous response is not complete, or a field has a wrong type.
            ItemNotFound: The conversation or an item is not stored.
            TooLarge: The request with what it refers to is larger than a request may be.
        """
        _check_types(body)
        previous, conversation = await self._find_previous(body, keep_unknown)
        turns = await self._store.chain(self._owner, previous, self._limits.body - size) if previous else []
        if previous and not turns and not keep_unknown:
            raise PreviousResponseNotFound(previous)
        unfinished = next((turn for turn in turns if turn.status not in STORED_STATUSES), None)
        if unfinished is not None:  # the model would not see its reply
            problem = f"the response {unfinished.id!r:.100} is {unfinished.status}, so it cannot be continued"
            raise BadRequest(PREVIOUS_ID, problem, "wait for a response in the background before you continue it")
        history, full_size = await self._read_turns(turns, size)
        own_items, full_size = await self.replace_references(input_items(body), full_size, keep_unknown=keep_unknown)
        origins = Origins()
        if history:
            origins.add(Origin(CONVERSATION if conversation else PREVIOUS_ID, is_same=False), len(history))
            origins.extend(input_origins(body))
        if turns or conversation:
            body = {key: value for key, value in body.items() if key not in (PREVIOUS_ID, CONVERSATION)}
        if full_size > size:
            body = {**body, "input": [*history, *own_items]}
        return ResolvedRequest(
            body=body,
            own_items=own_items,
            size=full_size,
            previous=previous if turns else "",
            conversation=conversation,
            origins=origins,
        )

    async def replace_references(self, items: list[Any], size: int, *, keep_unknown: bool) -> tuple[list[Any], int]:
        """Replace references by the items that they name.

        Args:
            items: The items of the request.
            size: Its size in bytes.
            keep_unknown: Leave references to unknown items in the request.

        Returns: the items, and the size of the request with the stored ones.

        Raises:
            ItemNotFound: An item is not stored.
            TooLarge: The request with the stored items is larger than a request may be.
        """
        positions = await self._run(size, _reference_positions, items)
        if not positions:
            return items, size
        ids = [items[position]["id"] for position in positions]
        found = await self._store.find_items(self._owner, ids, self._limits.body)
        missing = next((id for id in ids if id not in found), None)
        if missing is not None and not keep_unknown:
            raise ItemNotFound("item", missing)
        size = await self._check_limits(size, [found[id] for id in ids if id in found])
        decoded = await self._decode(size, found.values(), lambda: _decode_items(found))
        return await self._run(size, _put_items, items, positions, decoded), size

    async def read_all_turns(self, id: str) -> list[tuple[str, list[Any]]]:
        """Return the id and the items of a response and of all that it continues, the oldest first, also those before
        a summary."""
        max_bytes = self._limits.memory
        turns = await self._store.chain(self._owner, id, max_bytes, from_summary=False)
        if (size := _size_of(turns)) > max_bytes:
            raise TooLarge(f"the conversation is larger than {max_bytes:,} bytes (limits.memory)")
        return await self._decode(size, _pieces(turns), lambda: [(turn.id, _decode_turn(turn)) for turn in turns])

    async def _find_previous(self, body: Json, keep_unknown: bool) -> tuple[str, str]:
        """Return the id of the response that a request continues, and that of its conversation; empty if none."""
        previous, conversation = body.get(PREVIOUS_ID) or "", _conversation_id(body)
        if previous and conversation:
            raise BadRequest(CONVERSATION, f"cannot be combined with {PREVIOUS_ID}", "send one of them")
        if not conversation:
            return previous, ""
        found = await self._store.get_conversation(self._owner, conversation)
        if found is not None:
            return found.latest, conversation
        if not keep_unknown:
            raise ItemNotFound(CONVERSATION, conversation)
        return "", ""

    async def _read_turns(self, turns: list[StoredTurn], size: int) -> tuple[list[Any], int]:
        """Return the items of a conversation, and the size of a request of this size that continues it."""
        if not turns:
            return [], size
        size = await self._check_limits(size, _pieces(turns))
        return await self._decode(size, _pieces(turns), lambda: _decode_history(turns)), size

    async def _check_limits(self, size: int, pieces: list[bytes]) -> int:
        """Return the size of a request of this size with these pieces of JSON. Raises TooLarge."""
        size += sum(map(len, pieces))
        if size > (limit := self._limits.body):
            problem = f"the request with what it continues is larger than {limit:,} bytes (limits.body)"
            raise TooLarge(problem, "start a new conversation, compact it earlier, or increase limits.body")
        values = self._limits.values
        if not await self._run(size, lambda: has_at_most_values(b",".join(pieces), values)):
            problem = f"what the request continues has more than {values:,} JSON values"
            raise TooLarge(problem, "send less, or increase limits.values")
        return size

    async def _decode(self, size: int, pieces: Iterable[bytes], decode: Callable[[], T]) -> T:
        """Return the result of decoding these pieces of JSON, when their memory is counted."""
        self._memory.grow(await self._run(size, lambda: sum(map(decoded_size, pieces))))
        return await self._run(size, decode)

    async def _run(self, size: int, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._work_threads.run(self._client_id, size, function, *args, **kwargs)


def _size_of(turns: Iterable[StoredTurn]) -> int:
    return sum(map(len, _pieces(turns)))


def _pieces(turns: Iterable[StoredTurn]) -> list[bytes]:
    return [data for turn in turns for data in (turn.input, turn.output)]


def _decode_history(turns: Iterable[StoredTurn]) -> list[Any]:
    history: list[Any] = []
    for turn in turns:
        history += read_full_list(turn.input) or []
        add_response(history, read_full_list(turn.output) or [])
    return history


def _decode_turn(turn: StoredTurn) -> list[Any]:
    return [*(read_full_list(turn.input) or []), *(read_full_list(turn.output) or [])]


def _decode_items(found: Mapping[str, bytes]) -> Json:
    return {id: read_full_object(data) for id, data in found.items()}


def _reference_positions(items: Iterable[Any]) -> list[int]:
    return [position for position, item in enumerate(items) if is_reference(item)]


def _put_items(items: list[Any], positions: Iterable[int], found: Json) -> list[Any]:
    """Return the items with stored ones in place of the references at these positions."""
    replaced = list(items)
    for position in positions:
        replaced[position] = found.get(items[position]["id"], items[position])
    return replaced


def _check_types(body: Json) -> None:
    """Raise BadRequest if a field that the gateway reads itself has a wrong type. Null stands for a missing field."""
    for field in ("store", "background"):
        if not isinstance(body.get(field), bool | None):
            raise BadRequest(field, "should be true or false")
    if not isinstance(body.get(PREVIOUS_ID), str | None):
        raise BadRequest(PREVIOUS_ID, "should be the id of a response")
    conversation = body.get(CONVERSATION)
    if conversation is not None and not isinstance(as_dict(conversation).get("id", conversation), str):
        raise BadRequest(CONVERSATION, "should be the id of a conversation, or an object with its id")


def _conversation_id(body: Json) -> str:
    value = body.get(CONVERSATION)
    return str(value["id"]) if isinstance(value, dict) else value or ""
