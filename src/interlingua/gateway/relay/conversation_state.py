"""State of conversations in a request: what it continues is added to its input, and its response is stored."""

from __future__ import annotations

import msgspec

from interlingua.common.jsontext.codec import encode_json
from interlingua.errors import BadRequest
from interlingua.gateway.http.field_origins import Origins, name_client_field
from interlingua.gateway.http.memory_budget import MemoryShare
from interlingua.gateway.http.request_body import RequestBody
from interlingua.gateway.http.sealed_values import SealedValues
from interlingua.gateway.relay.compaction import has_compaction, is_triggered, refers_to_state, unseal_summaries
from interlingua.gateway.relay.upstream_request import ClientRequest
from interlingua.gateway.response_store.history_reader import HistoryReader
from interlingua.gateway.response_store.store import ResponseStore
from interlingua.gateway.response_store.stored_exchange import StoredExchange, item_ids
from interlingua.gateway.routing.routes import Route
from interlingua.gateway.state import ActiveConfig, GatewayState
from interlingua.wires import get_wire
from interlingua.wires.http_api import HttpApi

__all__ = ["ConversationState", "StatefulRequest"]


class StatefulRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request with everything that it refers to."""

    client_request: ClientRequest
    stored_exchange: StoredExchange | None
    """Stores its response; None if that is not stored."""
    origins: Origins
    """Origins of the items in its conversation; empty if they are those of the client's request."""
    compacts: bool
    """The client wants a summary of the conversation instead of a reply."""


class ConversationState:
    """State of the conversations of one API, for one request.

    Args:
        gateway: The gateway.
        config: The configuration for this request.
        api: The client's API.
        memory: Counts the memory of what is added to the request.
        exchange_id: Id of the exchange in the log.
        compacts: The request has come to the endpoint for summaries.
    """

    def __init__(
        self,
        gateway: GatewayState,
        config: ActiveConfig,
        api: HttpApi,
        memory: MemoryShare,
        exchange_id: str,
        *,
        compacts: bool,
    ) -> None:
        self._store = gateway.response_store if api.stores_replies else None
        self._gateway = gateway
        self._config = config
        self._api = api
        self._memory = memory
        self._exchange_id = exchange_id
        self._compacts = compacts

    def may_concern(self, body: RequestBody) -> bool:
        """Return whether the gateway may have to change what the request refers to, or to store it. Raises TooLarge."""
        is_stored = self._store is not None and body.get("store") is not False
        if self._compacts or is_stored or body.undecoded is None:
            return True
        body.check_value_count()
        return refers_to_state(body.undecoded)

    async def resolve(self, client_request: ClientRequest, routes: list[Route]) -> StatefulRequest:
        """Return the request with what it continues in its input, and with summaries in place of sealed ones.

        Raises:
            InterlinguaError: What it refers to is not stored, or cannot be read.
        """
        # An upstream of the client's API may know ids and items that the gateway does not.
        has_same_wire = any(route.upstream.api == client_request.wire for route in routes)
        if (cassettes := self._gateway.cassettes) is not None:  # so may the upstream of a recording
            has_same_wire = has_same_wire or cassettes.is_same_wire(client_request.wire)
        if not client_request.body.is_decoded:  # it refers to nothing, and nothing is stored
            if self._store is not None and not has_same_wire:
                client_request.body.drop("store")
            return StatefulRequest(
                client_request=client_request, stored_exchange=None, origins=Origins(), compacts=self._compacts
            )
        stored_exchange, origins = None, Origins()
        if self._store is not None:
            client_request, stored_exchange, origins = await self._add_history(
                self._store, client_request, has_same_wire
            )
        compacts = self._compacts
        if self._api.compact_path:
            try:
                compacts = await self._gateway.work_threads.run(
                    client_request.client_id,
                    client_request.body_size,
                    self._read_compaction,
                    client_request,
                    has_same_wire,
                )
            except BadRequest as error:
                name_client_field(error, get_wire(client_request.wire).TRAITS.conversation_field, (origins,))
                raise
        return StatefulRequest(
            client_request=client_request, stored_exchange=stored_exchange, origins=origins, compacts=compacts
        )

    async def _add_history(
        self, store: ResponseStore, client_request: ClientRequest, has_same_wire: bool
    ) -> tuple[ClientRequest, StoredExchange | None, Origins]:
        """Add what the request continues to its input.

        Returns: the request, what stores its response, and the origins of the items in its input.
        """
        body, owner = client_request.body.decode(), self._config.owner_for(client_request.client_id)
        limits, work_threads = self._config.settings.limits, self._gateway.work_threads
        client_id = client_request.client_id
        reader = HistoryReader(store, owner, client_id, limits, self._memory, work_threads)
        resolved = await reader.resolve_input(body, client_request.body_size, keep_unknown=has_same_wire)
        stored_exchange = None
        if body.get("store") is not False and not self._compacts:
            input_json, input_ids = await work_threads.run(
                client_id, resolved.size, lambda: (encode_json(resolved.own_items), item_ids(resolved.own_items))
            )
            stored_exchange = StoredExchange(
                store=store,
                owner=owner,
                previous=resolved.previous,
                conversation=resolved.conversation,
                input=input_json,
                input_ids=input_ids,
                log=self._gateway.log,
                exchange_id=self._exchange_id,
            )
        elif body.get("background") is True:
            raise BadRequest("background", "needs the store", "remove `store: false`")
        client_request.body.replace(resolved.body)
        if not has_same_wire:  # the gateway has done what they ask for, and no upstream has these fields
            client_request.body.drop("store")
        echo = {**resolved.echo, "store": stored_exchange is not None, **client_request.echo}
        client_request = msgspec.structs.replace(client_request, body_size=resolved.size, echo=echo)
        return client_request, stored_exchange, resolved.origins

    def _read_compaction(self, client_request: ClientRequest, has_same_wire: bool) -> bool:
        """Read the sealed summaries in the input. Returns whether the client wants a new one."""
        body = client_request.body.decode()
        if has_compaction(body):
            seals = SealedValues(client_request.seal_key, self._config.settings.limits.seals)
            body = unseal_summaries(body, seals, keep_unknown=has_same_wire)
            client_request.body.replace(body)
        return self._compacts or (is_triggered(body) and not has_same_wire)
