"""Compaction of a conversation: the model writes a summary, which the client keeps as one sealed item.

Clients request it with an item at the end of the input (`compaction_trigger`), or with a request of its own. When the
sealed item comes back, it is replaced by the summary. Nothing is stored for that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from typing import Any
from uuid import uuid4

from aiohttp import web

from interlingua.common.coerce import as_dict, as_list
from interlingua.common.jsontext.codec import encode_json, read_full_object
from interlingua.core.reasoning_signatures import write_value_envelope
from interlingua.errors import BadRequest, UpstreamError
from interlingua.events import Finding
from interlingua.gateway.http.event_stream import EventStream
from interlingua.gateway.http.field_origins import Origins
from interlingua.gateway.http.input_items import COMPACTION, input_items, input_origins
from interlingua.gateway.http.sealed_values import SealedValues
from interlingua.gateway.relay.client_side import ClientSide, repeated_fields
from interlingua.gateway.relay.upstream_request import ClientRequest
from interlingua.gateway.response_store.history_reader import CONVERSATION, PREVIOUS_ID
from interlingua.translation.undecoded_request import UndecodedRequest
from interlingua.wires import get_wire
from interlingua.wires.streaming.sse import encode_event

__all__ = ["has_compaction", "is_triggered", "refers_to_state", "send_summary", "unseal_summaries"]

Json = dict[str, Any]

TRIGGER = "compaction_trigger"
_STATE_TYPES = (COMPACTION, TRIGGER, "item_reference")
SEAL_PURPOSE = "compaction"
"""Stands for the wire in envelopes of summaries, so that they are not taken for thinking."""
SUMMARY_PROMPT = (
    "Write a summary of this conversation for yourself. You will continue the work from the summary alone, without "
    "seeing the conversation again. Include: the goals of the user and all instructions that still hold; decisions and "
    "their reasons; what was done, with exact file names, commands, identifiers and values; results and errors that "
    "matter; what remains to be done, and the next step. Leave out what is no longer needed. Reply with the summary "
    "only, and call no tool."
)
SUMMARY_HEADER = "Summary of the conversation so far:\n\n"
_REPLACED_FIELDS = ("stream", "store", "background", "tool_choice", "text", "stream_options")


async def send_summary(client: ClientSide, client_request: ClientRequest) -> web.StreamResponse:
    """Ask the model for a summary of the conversation, and send it to the client as a sealed item.

    Raises:
        SummaryFailed: The model cannot be asked, or has written no summary.
    """
    body, origins = await client.work_on(client_request, summary_request, client_request.body.decode())
    stream = SummaryStream(client.request, body, echo=repeated_fields(client_request))
    stream.changes = (origins,)
    async with client.early_keepalive() if client_request.stream else nullcontext():
        await client.relay_to(stream).run()
    summary = stream.final_response()
    if summary.get("status") == "incomplete":
        client.exchange.findings.append(Finding("summary-cut", "the summary has reached the token limit of the reply"))
    response = compacted_response(summary, client_request.seal_key)
    if client.request.path.endswith(get_wire(client_request.wire).HTTP_API.compact_path):
        return await client.send_reply(compaction_object(response))
    if not client_request.stream:
        return await client.send_reply(response)
    await client.send_frames(response_frames(response))
    return await client.end_stream()


class SummaryFailed(UpstreamError):
    """The request for a summary failed."""

    def __init__(self, status: int, error: Json) -> None:
        super().__init__(f"cannot summarise the conversation: {error.get('message', '')}")
        self.status = status
        self.code = str(error.get("code") or "")
        self.path = error.get("param")
        """Field of the client's request that the error is about; None if there is none."""


class SummaryStream(EventStream):
    """Collects the response with the summary."""

    def __init__(self, request: web.Request, body: bytes, echo: Mapping[str, Any]) -> None:
        super().__init__(request, body, echo=echo)
        self._final_response: Json = {}
        self._error: tuple[int, Json] = (502, {})

    async def deliver(self, event: str) -> None:
        fields = read_full_object(event) or {}
        if str(fields.get("type")).startswith("response.") and isinstance(response := fields.get("response"), dict):
            self._final_response = response

    async def respond(self, status: int, body: bytes, headers: Mapping[str, str]) -> web.StreamResponse:  # noqa: ARG002
        self._error = status, as_dict((read_full_object(body) or {}).get("error"))
        return web.StreamResponse()

    def final_response(self) -> Json:
        """Return the complete response. Raises SummaryFailed if there is none, or if it has no text."""
        response = self._final_response
        if response.get("status") not in ("completed", "incomplete"):
            status, error = self._error
            raise SummaryFailed(status, error or as_dict(response.get("error")))
        if not _text(response).strip():
            raise SummaryFailed(502, {"message": "the model wrote no summary"})
        return response


def refers_to_state(request: UndecodedRequest) -> bool:
    """Return whether a request refers to something stored, has a sealed summary, or asks for one. True if unknown."""
    if any(name in request.fields for name in (PREVIOUS_ID, CONVERSATION, "background")):
        return True
    try:
        items = request.item_types() if request.has_items else []
    except (ValueError, RecursionError):
        return True
    return any(item.type in _STATE_TYPES or (item.type is None and item.role is None) for item in items)


def has_compaction(body: Json) -> bool:
    """Return whether the input contains a sealed summary."""
    return any(type(item) is dict and item.get("type") == COMPACTION for item in as_list(body.get("input")))


def is_triggered(body: Json) -> bool:
    """Return whether the input ends with the request for a summary."""
    items = as_list(body.get("input"))
    return bool(items) and as_dict(items[-1]).get("type") == TRIGGER


def unseal_summaries(body: Json, seals: SealedValues, *, keep_unknown: bool) -> Json:
    """Return the request with summaries in place of sealed items.

    Args:
        body: The request. It is not changed.
        seals: Reads what is sealed for the client.
        keep_unknown: Leave other sealed items in the request, because an upstream may have made them.

    Raises:
        BadRequest: An item cannot be read.
        TooLarge: The summaries exceed the maximum size.
    """
    items: list[Any] = []
    for position, item in enumerate(as_list(body.get("input"))):
        fields = as_dict(item)
        if fields.get("type") != COMPACTION:
            items.append(item)
            continue
        summary = seals.read(fields.get("encrypted_content"), SEAL_PURPOSE)
        if summary is None and not keep_unknown:
            problem = "cannot be read: another server made it, or the key of this gateway has changed"
            raise BadRequest(f"input[{position}].encrypted_content", problem, "start a new conversation")
        items.append(item if summary is None else _message(SUMMARY_HEADER + summary))
    return {**body, "input": items}


def summary_request(body: Json) -> tuple[bytes, Origins]:
    """Return the request that asks the model for a summary, as JSON, and the origins of its items.

    Tools stay, because the conversation contains calls. The last item is the gateway's own and has no origin.
    """
    located = zip(input_items(body), input_origins(body), strict=True)
    kept = [(item, origin) for item, origin in located if as_dict(item).get("type") != TRIGGER]
    items = [*(item for item, _ in kept), _message(SUMMARY_PROMPT)]
    fields = {key: value for key, value in body.items() if key not in _REPLACED_FIELDS}
    choice = {"tool_choice": "none"} if body.get("tools") else {}
    request = {**fields, **choice, "input": items, "stream": True, "store": False}
    return encode_json(request), Origins(origin for _, origin in kept)


def compacted_response(response: Json, key: bytes) -> Json:
    """Return the response with one sealed item in place of the summary."""
    sealed = write_value_envelope(_text(response), SEAL_PURPOSE, "", key)
    item = {"type": COMPACTION, "id": f"cmp_{uuid4().hex}", "encrypted_content": sealed}
    return {**response, "status": "completed", "incomplete_details": None, "output": [item]}


def compaction_object(response: Json) -> Json:
    """Return the reply to a request for a compaction."""
    fields = {key: response.get(key) for key in ("id", "created_at", "output", "usage")}
    return {**fields, "object": "response.compaction"}


def response_frames(response: Json) -> bytes:
    """Return the events of a stream with this response, whose items have no deltas."""
    events = [
        encode_event(encode_json({**event, "sequence_number": number}), str(event["type"]))
        for number, event in enumerate(_response_events(response))
    ]
    return b"".join(events)


def _response_events(response: Json) -> Iterator[Json]:
    started = {**response, "status": "in_progress", "output": [], "usage": None}
    for kind in ("created", "in_progress"):
        yield {"type": f"response.{kind}", "response": started}
    for index, item in enumerate(response["output"]):
        for kind in ("added", "done"):
            yield {"type": f"response.output_item.{kind}", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": response}


def _message(text: str) -> Json:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def _text(response: Json) -> str:
    items = [as_dict(item) for item in as_list(response.get("output"))]
    parts = [as_dict(part) for item in items if item.get("type") == "message" for part in as_list(item.get("content"))]
    return "".join(str(part.get("text") or "") for part in parts)
