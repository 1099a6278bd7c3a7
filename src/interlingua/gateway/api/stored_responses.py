"""Endpoints for stored responses and conversations: get, follow, cancel, delete, list the items."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import closing
from typing import Any
from uuid import uuid4

import msgspec
from aiohttp import web

from interlingua.common.coerce import as_dict, as_list
from interlingua.common.jsontext.codec import encode_json, read_full_list, read_full_object, read_json
from interlingua.errors import BadRequest
from interlingua.gateway.http.deadline import DeadlineExceeded, MovingDeadline
from interlingua.gateway.http.error_responses import NotFound
from interlingua.gateway.http.memory_budget import MemoryShare
from interlingua.gateway.http.request_body import RequestBody, read_body
from interlingua.gateway.http.response_stream import EarlyKeepAlive, ResponseStream
from interlingua.gateway.response_store.background_stream import current_response, follow_events
from interlingua.gateway.response_store.database import DatabaseFailed
from interlingua.gateway.response_store.history_reader import HistoryReader, ItemNotFound
from interlingua.gateway.response_store.store import Conversation, ResponseStore, StoredResponse
from interlingua.gateway.response_store.stored_exchange import item_ids
from interlingua.gateway.state import GatewayState

__all__ = ["Conversations", "StoredResponses"]

Json = dict[str, Any]

DEFAULT_PAGE_ITEMS, MAX_PAGE_ITEMS = 20, 100
ITEMS = "items"


class StoredResponses:
    """Handlers of the endpoints that read and delete stored responses. A client sees its own responses only."""

    def __init__(self, gateway: GatewayState) -> None:
        self._gateway = gateway

    async def get(self, request: web.Request) -> web.StreamResponse:
        """Return a response, or with `stream=true` the events of a response in the background."""
        stored, id = await self._find(request)
        if request.query.get("stream", "").lower() != "true":
            return await self._send_current(request, stored)
        after = request.query.get("starting_after", "-1")
        if not after.removeprefix("-").isdecimal():
            raise BadRequest("starting_after", "should be the sequence number of an event")
        if not _is_background(stored):
            raise BadRequest(
                "stream", "only responses in the background can be followed", "create it with background: true"
            )
        return await self._follow(request, id, int(after[:18]))

    async def _follow(self, request: web.Request, id: str, after: int) -> web.StreamResponse:
        store, owner, _ = self._locate(request)
        settings, stream = self._gateway.config.settings, ResponseStream(request)

        def report(error: DatabaseFailed) -> None:
            self._gateway.log.error("cannot follow a response", error=error.log_message)

        try:
            async with EarlyKeepAlive(stream, settings.keepalive, dict):
                async for frames in follow_events(store, owner, id, after, report):
                    with MovingDeadline() as deadline:
                        deadline.set_timeout("the client", settings.limits.send)
                        if frames:
                            await stream.write(frames)
            return await stream.end()
        except (ConnectionError, DeadlineExceeded):
            stream.abort()
            return stream.response or web.StreamResponse()

    async def cancel(self, request: web.Request) -> web.StreamResponse:
        stored, id = await self._find(request)
        if not _is_background(stored):
            raise BadRequest("id", "only responses in the background can be cancelled")
        store, owner, _ = self._locate(request)
        await store.cancel(owner, id)
        return await self._send_current(request, (await self._find(request))[0])

    async def delete(self, request: web.Request) -> web.StreamResponse:
        store, owner, id = self._locate(request)
        if not await store.delete(owner, id):
            raise ItemNotFound("response", id)
        return _json_response(encode_json({"id": id, "object": "response", "deleted": True}))

    async def input_items(self, request: web.Request) -> web.StreamResponse:
        stored, id = await self._find(request)
        owner, size = self._locate(request)[1], len(stored.input)
        page = await self._gateway.work_threads.run(
            owner, size, lambda: list_page([(id, read_full_list(stored.input) or [])], request)
        )
        return _json_response(encode_json(page))

    async def _send_current(self, request: web.Request, stored: StoredResponse) -> web.Response:
        owner, size = self._locate(request)[1], len(stored.response)
        body = await self._gateway.work_threads.run(owner, size, lambda: encode_json(current_response(stored)))
        return _json_response(body)

    async def _find(self, request: web.Request) -> tuple[StoredResponse, str]:
        store, owner, id = self._locate(request)
        stored = await store.get(owner, id)
        if stored is None:
            raise ItemNotFound("response", id)
        return stored, id

    def _locate(self, request: web.Request) -> tuple[ResponseStore, str, str]:
        """Return the store, the owner and the id of a request. Raises Unauthorized, Forbidden or NotFound."""
        return *locate_store(self._gateway, request), request.match_info["id"]


class Conversations:
    """Handlers of the endpoints for conversations, which requests continue by one id (`conversation`).

    The items of a conversation are those of the responses in it. Its first items are stored like a response.
    """

    def __init__(self, gateway: GatewayState) -> None:
        self._gateway = gateway

    async def create(self, request: web.Request) -> web.StreamResponse:
        store, owner = locate_store(self._gateway, request)
        with closing(self._gateway.memory_budget.open_share()) as memory:
            limits, work_threads = self._gateway.config.settings.limits, self._gateway.work_threads
            data = await read_body(request, limits, memory)
            body = await RequestBody(data or b"{}", limits, ITEMS).decode_in_thread(owner, work_threads, memory)
            metadata = encode_json(_read_metadata(body))
            reader = self._history_reader(store, owner, memory)
            items, size = await reader.replace_references(_read_items(body), len(data), keep_unknown=False)
            items_json, ids = await work_threads.run(owner, size, lambda: (encode_json(items), item_ids(items)))
        id, created, latest = f"conv_{uuid4().hex}", time.time(), ""
        if items:
            latest = f"resp_{uuid4().hex}"
            first = StoredResponse(
                id=latest, status="completed", created=created, input=items_json, response=b'{"output":[]}'
            )
            await store.save(owner, first, ids)
        conversation = Conversation(id=id, latest=latest, created=created, metadata=metadata)
        await store.save_conversation(owner, conversation)
        return _json_response(_conversation_object(conversation))

    async def get(self, request: web.Request) -> web.StreamResponse:
        conversation, _, _ = await self._find(request)
        return _json_response(_conversation_object(conversation))

    async def delete(self, request: web.Request) -> web.StreamResponse:
        """Delete a conversation. The responses in it stay, as the API defines it."""
        conversation, store, owner = await self._find(request)
        await store.delete_conversation(owner, conversation.id)
        return _json_response(encode_json({"id": conversation.id, "object": "conversation.deleted", "deleted": True}))

    async def items(self, request: web.Request) -> web.StreamResponse:
        conversation, store, owner = await self._find(request)
        with closing(self._gateway.memory_budget.open_share()) as memory:
            reader = self._history_reader(store, owner, memory)
            turns = await reader.read_all_turns(conversation.latest) if conversation.latest else []
            size = memory.size
            page = await self._gateway.work_threads.run(owner, size, list_page, turns, request)
        return _json_response(encode_json(page))

    def _history_reader(self, store: ResponseStore, owner: str, memory: MemoryShare) -> HistoryReader:
        limits, work_threads = self._gateway.config.settings.limits, self._gateway.work_threads
        return HistoryReader(store, owner, owner, limits, memory, work_threads)

    async def _find(self, request: web.Request) -> tuple[Conversation, ResponseStore, str]:
        store, owner = locate_store(self._gateway, request)
        id = request.match_info["id"]
        conversation = await store.get_conversation(owner, id)
        if conversation is None:
            raise ItemNotFound("conversation", id)
        return conversation, store, owner


def locate_store(gateway: GatewayState, request: web.Request) -> tuple[ResponseStore, str]:
    """Return the store, and the owner of what the client may see. Raises Unauthorized, Forbidden or NotFound."""
    config = gateway.config
    config.authenticator.check_origin(request.headers)
    owner = config.owner_for(config.authenticator.check_key(request.headers))
    if gateway.response_store is None:
        raise NotFound("this gateway stores no responses", "see `state` in its settings")
    return gateway.response_store, owner


def _read_items(body: Json) -> list[Any]:
    items = [] if body.get(ITEMS) is None else body[ITEMS]
    if not isinstance(items, list):
        raise BadRequest(ITEMS, "should be a list of items")
    position = next((n for n, item in enumerate(items) if not isinstance(item, dict)), None)
    if position is not None:
        raise BadRequest(f"{ITEMS}[{position}]", "should be an object")
    return items


def _read_metadata(body: Json) -> Json:
    metadata = {} if body.get("metadata") is None else body["metadata"]
    if not isinstance(metadata, dict):
        raise BadRequest("metadata", "should be an object with texts")
    key = next((key for key, value in metadata.items() if not isinstance(value, str)), None)
    if key is not None:
        raise BadRequest(f"metadata.{key}", "should be a text")
    return metadata


def _conversation_object(conversation: Conversation) -> bytes:
    metadata = read_full_object(conversation.metadata)
    fields = {"id": conversation.id, "object": "conversation", "created_at": int(conversation.created)}
    return encode_json({**fields, "metadata": metadata or {}})


def _is_background(stored: StoredResponse) -> bool:
    found = read_json(stored.response, _BackgroundField)
    return found is not None and found.background is True


class _BackgroundField(msgspec.Struct):
    background: bool | None = None


def list_page(turns: Iterable[tuple[str, list[Any]]], request: web.Request) -> Json:
    """Return the page of a list of items that the query asks for: `order`, `after` and `limit`.

    Args:
        turns: The id of each response, and the items that belong to it.
        request: The request with the query.
    """
    items = [(_listed_id(item, id, n), item) for id, items in turns for n, item in enumerate(items)]
    query = request.query
    order = query.get("order", "desc")
    if order not in ("asc", "desc"):
        raise BadRequest("order", "should be asc or desc")
    if order == "desc":
        items = items[::-1]
    if after := query.get("after"):
        position = next((n for n, (id, _) in enumerate(items) if id == after), None)
        if position is None:
            raise BadRequest("after", f"no item of this list has the id {after!r:.100}")
        items = items[position + 1 :]
    limit = query.get("limit", str(DEFAULT_PAGE_ITEMS))
    if not limit.isdecimal() or not 1 <= int(limit[:9]) <= MAX_PAGE_ITEMS:
        raise BadRequest("limit", f"should be a number from 1 to {MAX_PAGE_ITEMS}")
    page = [_listed_item(item, id) for id, item in items[: int(limit)]]
    return {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
        "has_more": len(items) > len(page),
    }


def _listed_id(item: Any, response_id: str, position: int) -> str:
    """Return the id of an item as the API lists it."""
    id = as_dict(item).get("id")
    return id if isinstance(id, str) and id else f"item_{response_id.removeprefix('resp_')}_{position}"


def _listed_item(item: Any, id: str) -> Json:
    """Return an item as the API lists it: with an id, a type, and content in parts."""
    listed: Json = {"type": "message", **as_dict(item), "id": id}
    if listed["type"] == "message":
        content = listed.get("content")
        listed["content"] = [{"type": "input_text", "text": content}] if isinstance(content, str) else as_list(content)
        listed.setdefault("status", "completed")
    return listed


def _json_response(body: bytes) -> web.Response:
    return web.Response(body=body, content_type="application/json")
