"""One exchange of the Responses API that is stored when its response is complete."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Any

import msgspec

from interlingua.common.coerce import as_dict, as_list
from interlingua.common.jsontext.codec import encode_json
from interlingua.gateway.observability.log import GatewayLog
from interlingua.gateway.response_store.database import DatabaseFailed
from interlingua.gateway.response_store.store import ResponseStore, StoredResponse

__all__ = ["STORED_STATUSES", "StoredExchange", "is_reference", "item_ids"]

Json = dict[str, Any]

STORED_STATUSES = ("completed", "incomplete")


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
    input_ids: list[str]
    """Their ids."""
    log: GatewayLog
    exchange_id: str
    """Id of the exchange in the log."""

    async def save(self, response: Json) -> bool:
        """Store a finished response. Returns False for one that is not stored: a failed one, or if the database fails.

        If the database fails, the client still gets its response: only requests that refer to it will fail.
        """
        id, status = response.get("id"), response.get("status")
        if not isinstance(id, str) or not id or status not in STORED_STATUSES:
            return False
        # Encoding a long response would hold up other requests, and writing it takes longer than starting a thread.
        encoded = await asyncio.to_thread(encode_json, response)
        stored = StoredResponse(
            id=id, previous=self.previous, status=str(status), created=time.time(), input=self.input, response=encoded
        )
        try:
            await self.store.save(self.owner, stored, self.all_item_ids(response), self.conversation)
        except DatabaseFailed as error:
            self.log.error("cannot store a response", id=self.exchange_id, error=error.log_message)
            return False
        return True

    def all_item_ids(self, response: Json) -> list[str]:
        """Return the ids of the items in the input and in the response."""
        return [*self.input_ids, *item_ids(as_list(response.get("output")))]


def item_ids(items: Iterable[Any]) -> list[str]:
    """Return the ids of these items. A reference is not the item that it names."""
    return [item["id"] for item in map(as_dict, items) if isinstance(item.get("id"), str) and not is_reference(item)]


def is_reference(item: Any) -> bool:
    """Return whether the item refers to a stored one. Its type is optional."""
    return (
        isinstance(item, dict)
        and isinstance(item.get("id"), str)
        and (item.get("type") == "item_reference" or (item.get("type") is None and "role" not in item))
    )
