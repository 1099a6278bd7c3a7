"""State of one request of the Responses API: what it continues is added to its input, and its response is stored."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import msgspec

from interlingua.common.coerce import as_dict, as_list
from interlingua.common.jsontext.codec import encode_json, read_full_list, read_full_object
from interlingua.errors import BadRequest
from interlingua.gateway.http.error_responses import NotFound
from interlingua.gateway.http.field_origins import Origin, Origins
from interlingua.gateway.http.input_items import add_response, input_items, input_origins
from interlingua.gateway.observability.log import GatewayLog
from interlingua.gateway.response_store.database import DatabaseFailed
from interlingua.gateway.response_store.store import ResponseStore, StoredResponse

__all__ = [
    "CONVERSATION",
    "PREVIOUS_ID",
    "STORED_STATUSES",
    "ItemNotFound",
    "StoredExchange",
    "item_ids",
    "output_items",
    "resolve_input",
    "resolve_references",
]

Json = dict[str, Any]

STORED_STATUSES = ("completed", "incomplete")
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


class StoredExchange(msgspec.Struct, frozen=True, kw_only=True):
    """Exchange that is stored when the response of its request is complete."""

    store: ResponseStore
    owner: str
    previous: str
    """Id of the response that it continues; empty if it continues none."""
    conversation: str
    """Id of the conversation that it continues; empty if it continues none."""
    input: bytes
    """The input items of the request, as a JSON list."""
    log: GatewayLog
    exchange_id: str
    """Id of the exchange in the log."""

    async def save(self, response: Json) -> None:
        """Store a finished response. A failed one is not stored.

        If the database fails, the client still gets its response: only requests that refer to it will fail.
        """
        id, status = response.get("id"), response.get("status")
        if not isinstance(id, str) or not id or status not in STORED_STATUSES:
            return
        stored = StoredResponse(
            id=id,
            previous=self.previous,
            status=str(status),
            created=time.time(),
            input=self.input,
            response=encode_json(response),
        )
        try:
            await self.store.save(self.owner, stored, item_ids(self.input, response), self.conversation)
        except DatabaseFailed as error:
            self.log.error("cannot store a response", id=self.exchange_id, error=error.log_message)


class ResolvedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request whose input has everything that it refers to."""

    body: Json
    own_items: list[Any]
    """Input items of the request itself, without those of earlier responses. References are replaced."""
    added_bytes: int
    """Size of the stored items that were added to its input, as JSON."""
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


async def resolve_input(store: ResponseStore, owner: str, body: Json, *, keep_unknown: bool) -> ResolvedRequest:
    """Return the request with the items that it refers to: previous response, conversation and item references.

    Args:
        store: The stored responses.
        owner: The client.
        body: The request. It is not changed.
        keep_unknown: Leave unknown ids in the request, because an upstream may know them.

    Raises:
        PreviousResponseNotFound: The previous response is not stored.
        BadRequest: The previous response is not complete, or a field has a wrong type.
        ItemNotFound: The conversation or an item is not stored.
    """
    _check_types(body)
    previous, conversation = body.get(PREVIOUS_ID) or "", _conversation_id(body)
    if previous and conversation:
        raise BadRequest(CONVERSATION, f"cannot be combined with {PREVIOUS_ID}", "send one of them")
    if conversation:
        found = await store.get_conversation(owner, conversation)
        if found is not None:
            previous = found.latest
        elif keep_unknown:
            conversation = ""
        else:
            raise ItemNotFound(CONVERSATION, conversation)
    chain = await store.chain(owner, previous) if previous else []
    if previous and not chain and not keep_unknown:
        raise PreviousResponseNotFound(previous)
    unfinished = next((stored for stored in chain if stored.status not in STORED_STATUSES), None)
    if unfinished is not None:  # the model would not see its reply
        problem = f"the response {unfinished.id!r:.100} is {unfinished.status}, so it cannot be continued"
        raise BadRequest(PREVIOUS_ID, problem, "wait for a response in the background before you continue it")
    items, added_bytes = await resolve_references(store, owner, input_items(body), keep_unknown)
    if chain or conversation:
        body = {key: value for key, value in body.items() if key not in (PREVIOUS_ID, CONVERSATION)}
    origins = Origins()
    history: list[Any] = []
    for stored in chain:
        history += _read_list(stored.input)
        add_response(history, output_items(stored))
    if history:
        origins.add(Origin(CONVERSATION if conversation else PREVIOUS_ID, is_same=False), len(history))
        origins.extend(input_origins(body))
    if history or added_bytes:
        body = {**body, "input": [*history, *items]}
    added_bytes += sum(len(stored.input) + len(stored.response) for stored in chain)
    is_known = bool(chain)
    return ResolvedRequest(
        body=body,
        own_items=items,
        added_bytes=added_bytes,
        previous=previous if is_known else "",
        conversation=conversation,
        origins=origins,
    )


def output_items(stored: StoredResponse) -> list[Any]:
    return as_list((read_full_object(stored.response) or {}).get("output"))


def item_ids(input: bytes, response: Json) -> Iterable[str]:
    """Return the ids of all items of a response and of its input. A reference is not the item that it names."""
    for item in (*_read_list(input), *as_list(response.get("output"))):
        if isinstance(id := as_dict(item).get("id"), str) and not _is_reference(item):
            yield id


async def resolve_references(
    store: ResponseStore, owner: str, items: list[Any], keep_unknown: bool
) -> tuple[list[Any], int]:
    """Replace references by the items that they name. Returns the items, and the size of the stored ones.

    Raises:
        ItemNotFound: An item is not stored. With `keep_unknown`, its reference stays instead.
    """
    ids = [str(item["id"]) for item in items if _is_reference(item)]
    if not ids:
        return items, 0
    stored_by_id = await store.find_items(owner, ids)
    found: Json = {}
    for id, stored in stored_by_id.items():
        for item in (*_read_list(stored.input), *output_items(stored)):
            if as_dict(item).get("id") == id:
                found[id] = item
    missing = next((id for id in ids if id not in found), None)
    if missing is not None and not keep_unknown:
        raise ItemNotFound("item", missing)
    size = sum(len(encode_json(item)) for item in found.values())
    return [found.get(item["id"], item) if _is_reference(item) else item for item in items], size


def _is_reference(item: Any) -> bool:
    """Return whether the item refers to a stored one. Its type is optional."""
    return (
        isinstance(item, dict)
        and isinstance(item.get("id"), str)
        and (item.get("type") == "item_reference" or (item.get("type") is None and "role" not in item))
    )


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


def _read_list(data: bytes) -> list[Any]:
    return read_full_list(data) or []
