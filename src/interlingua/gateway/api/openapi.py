"""OpenAPI document of the gateway, for readers, client generators and API testers."""

from __future__ import annotations

from typing import Any

from interlingua import __version__
from interlingua.gateway.api.openapi_schemas import (
    COMPACTED_REQUEST,
    COMPACTION,
    CONVERSATION,
    COUNTED_REQUEST,
    DELETED,
    EITHER_ERROR,
    ITEM_LIST,
    KNOWN_MODEL,
    MODELS,
    NEW_CONVERSATION,
    SEARCH,
    SEARCH_REQUEST,
    STATUS,
    STORED_REPLY,
    TOKENS,
    gateway_schemas,
)
from interlingua.gateway.observability.metrics import CONTENT_TYPE
from interlingua.wires import WIRES, get_wire
from interlingua.wires.base import Wire
from interlingua.wires.openapi import ApiDescription, schema_reference

__all__ = ["BASE_PATHS", "openapi_document"]

Json = dict[str, Any]

BASE_PATHS = ("/v1", "", "/v1/v1")
"""Prefixes of all API paths. Some clients append `/v1` to their base URL, and some users already include it."""
ERROR_DESCRIPTIONS = {
    400: "The request is malformed or cannot be translated for the upstream. The message names the field.",
    401: "The API key is missing or unknown.",
    403: "The request comes from a web page, or its `host` header is not allowed (see `hosts`).",
    404: "The model, the stored reply or a stored item that the request refers to is unknown.",
    405: "The path does not support this method. `allow` lists the supported methods.",
    408: "The request headers took longer than `limits.head` to arrive.",
    413: "The request exceeds a limit: its size (`limits.body`), its number of JSON values (`limits.values`), the "
    "memory that it needs (`limits.memory`), or its sealed thinking (`limits.seals`).",
    415: "The content-encoding is not supported.",
    429: "The client has reached one of its limits (`client_limits`), or the upstream reports too many requests. "
    "`retry-after` contains the time to wait.",
    500: "Internal gateway error. Search the gateway log for the id in `x-interlingua-id`.",
    502: "The upstream failed or sent an invalid reply.",
    503: "The gateway is stopping or has too many connections; or the circuit breaker of the model is open (`rest`; "
    "`retry-after` contains the time to wait); or the upstream returned this status.",
    504: "The upstream timed out.",
    529: "The gateway handles `limits.streams` requests already, or the upstream is overloaded.",
}
AUTH_STATUSES = (401, 403)
COMMON_STATUSES = (405, 408, 503)
"""Statuses that every path can return."""
CONNECTION_STATUSES = (408, 503)
UPSTREAM_ERROR_DESCRIPTION = "An error of the upstream, with the status that the upstream returned."
OTHER_ERROR_DESCRIPTION = "Any other error. It has the same format."
RESPONSE_HEADERS = {
    "x-interlingua-id": "Id of the exchange in the gateway log.",
    "request-id": "The same id, for Anthropic SDKs.",
    "x-request-id": "The same id, for OpenAI SDKs.",
    "x-interlingua-upstream": "Name of the upstream that received the request.",
    "x-interlingua-failed": "Failed attempts before this response, as a list of RFC 8941: name of the upstream, with"
    " `model`, `reason` (HTTP status, unreachable, timeout, no-answer, stream or circuit-open) and `attempts`. Those"
    " after the first keep-alive of a stream are missing.",
    "x-interlingua-dialect": "Dialect in which the model writes tool calls.",
    "x-interlingua-upstream-id": "The upstream's own id of the reply, if it is known before the first data is sent.",
    "x-should-retry": "The upstream's advice about a retry.",
    "x-interlingua-findings": "Kinds of findings about the request and the complete reply, separated by commas.",
}
DESCRIPTION = """\
{apis} in front of upstreams that support any one of them. Request fields that are not described here are
forwarded to the upstream or reported as a finding. Streams always end as their protocol requires: if the upstream fails
in the middle of a reply, the stream ends with an error event."""


def openapi_document() -> Json:
    """Return the OpenAPI document. The paths of the LLM APIs exist under every base URL of `servers`."""
    wires = [get_wire(name) for name in WIRES]
    titles = [wire.API_DESCRIPTION.title for wire in wires]
    api_paths = {path: operation for wire in wires for path, operation in _wire_operations(wire).items()}
    gateway_paths = {path: {"servers": [{"url": "/"}], **item} for path, item in _GATEWAY_PATHS.items()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Interlingua",
            "version": __version__,
            "description": DESCRIPTION.format(apis=f"{', '.join(titles[:-1])} and {titles[-1]}").replace("\n", " "),
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": base or "/"} for base in BASE_PATHS],
        "security": [{"bearer": []}, {"key": []}, {}],
        "paths": {**api_paths, **_MODEL_PATHS, **gateway_paths},
        "components": {"schemas": gateway_schemas(wires), "securitySchemes": _SECURITY_SCHEMES},
    }


_SECURITY_SCHEMES: Json = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "One of `keys`, if the settings contain any."},
    "key": {"type": "apiKey", "in": "header", "name": "x-api-key", "description": "The same key, in another header."},
}


def _json_content(schema: str) -> Json:
    return {"application/json": {"schema": schema_reference(schema)}}


def _response(summary: str, content: Json, headers: dict[str, str] | None = None) -> Json:
    header_specs = {name: {"description": text, "schema": {"type": "string"}} for name, text in (headers or {}).items()}
    return {"description": summary, **({"headers": header_specs} if header_specs else {}), "content": content}


def _error_responses(error: str, *statuses: int) -> Json:
    """Return the error responses for these statuses.

    A connection can be refused before the gateway knows which API the client uses; those errors have their own schema.
    """
    return {
        str(status): _response(
            ERROR_DESCRIPTIONS[status], _json_content(EITHER_ERROR if status in CONNECTION_STATUSES else error)
        )
        for status in statuses
    }


def _wire_operations(wire: Wire) -> Json:
    """Describe the endpoints of a wire, by path."""
    api, description = wire.HTTP_API, wire.API_DESCRIPTION
    operations = {api.path: _relay_operation(description)}
    if api.count_path:
        operations[api.count_path] = _count_operation(description)
    if api.has_websocket:
        operations[api.path] |= _websocket_operation(description)
    if api.compact_path:
        operations[api.compact_path] = _compact_operation(description)
    if api.search_path:
        operations[api.search_path] = _search_operation(description)
    return operations | (_stored_reply_operations(wire) if api.stores_replies else {})


def _relay_operation(api: ApiDescription) -> Json:
    """Describe an endpoint that is relayed to an upstream."""
    content = {**_json_content(api.reply), "text/event-stream": {}}  # OpenAPI 3.1 cannot describe server-sent events
    return {
        "post": {
            "summary": api.title,
            "operationId": api.operation_id,
            "requestBody": {"required": True, "content": _json_content(api.request)},
            "responses": {
                "200": _response("The reply, as one JSON object or as server-sent events.", content, RESPONSE_HEADERS),
                **_error_responses(api.error, *ERROR_DESCRIPTIONS),
                "default": _response(UPSTREAM_ERROR_DESCRIPTION, _json_content(api.error)),
            },
        }
    }


def _count_operation(api: ApiDescription) -> Json:
    """Describe an endpoint that counts tokens."""
    headers = {"x-interlingua-estimate": "`true` if the count is an estimate of the gateway"}
    return {
        "post": {
            "summary": "Count the input tokens of a request: by the upstream, or as an estimate",
            "operationId": api.count_operation_id,
            "requestBody": {"required": True, "content": _json_content(COUNTED_REQUEST)},
            "responses": {
                "200": _response("The count.", _json_content(TOKENS), headers),
                **_error_responses(api.error, 400, *AUTH_STATUSES, *COMMON_STATUSES, 413, 415, 429, 500, 529),
                "default": _response(OTHER_ERROR_DESCRIPTION, _json_content(api.error)),
            },
        }
    }


def _websocket_operation(api: ApiDescription) -> Json:
    """Describe the handshake of a WebSocket. OpenAPI cannot describe the messages."""
    return {
        "get": {
            "summary": f"{api.title} over a WebSocket: several replies on one connection",
            "operationId": f"{api.operation_id}_websocket",
            "responses": {
                "101": {"description": "The WebSocket is open."},
                **_error_responses(api.error, *AUTH_STATUSES, *COMMON_STATUSES),
                "426": _response("The gateway accepts no WebSockets (`websocket`).", _json_content(api.error)),
            },
        }
    }


def _compact_operation(api: ApiDescription) -> Json:
    """Describe an endpoint that returns a summary of a conversation."""
    return {
        "post": {
            "summary": "Summarise a conversation, as an item that only this gateway can read",
            "operationId": f"{api.operation_id}_compact",
            "requestBody": {"required": True, "content": _json_content(COMPACTED_REQUEST)},
            "responses": {
                "200": _response("The items that replace the conversation.", _json_content(COMPACTION)),
                **_error_responses(api.error, *ERROR_DESCRIPTIONS),
                "default": _response(UPSTREAM_ERROR_DESCRIPTION, _json_content(api.error)),
            },
        }
    }


def _search_operation(api: ApiDescription) -> Json:
    """Describe an endpoint that runs the commands of a client's search tool."""
    return {
        "post": {
            "summary": "Run the commands of Codex's search tool: search the web, open pages, find text in them",
            "operationId": f"{api.operation_id}_search",
            "requestBody": {"required": True, "content": _json_content(SEARCH_REQUEST)},
            "responses": {
                "200": _response("The outcome of all commands, also of those that failed.", _json_content(SEARCH)),
                **_error_responses(api.error, *ERROR_DESCRIPTIONS),
                "default": _response(UPSTREAM_ERROR_DESCRIPTION, _json_content(api.error)),
            },
        }
    }


def _stored_reply_operations(wire: Wire) -> Json:
    """Describe the endpoints for stored replies, by path."""
    path, api = f"{wire.HTTP_API.path}/{{id}}", wire.API_DESCRIPTION
    return {
        path: {
            "get": _stored_reply_operation(
                "Get a stored reply, or follow one in the background",
                "stored_reply",
                STORED_REPLY,
                api.error,
                _query_parameter("stream", {"type": "boolean"}),
                _query_parameter("starting_after", {"type": "integer"}),
                content={"text/event-stream": {}},
            ),
            "delete": _stored_reply_operation("Delete a stored reply", "delete_reply", DELETED, api.error),
        },
        f"{path}/input_items": {
            "get": _stored_reply_operation(
                "List the input items of a stored reply",
                "input_items",
                ITEM_LIST,
                api.error,
                *_PAGE_PARAMETERS,
            )
        },
        f"{path}/cancel": {
            "post": _stored_reply_operation("Cancel a reply in the background", "cancel_reply", STORED_REPLY, api.error)
        },
        "/conversations": {"post": _create_conversation_operation(api.error)},
        "/conversations/{id}": {
            "get": _stored_reply_operation("Get a conversation", "conversation", CONVERSATION, api.error),
            "delete": _stored_reply_operation("Delete a conversation", "delete_conversation", DELETED, api.error),
        },
        "/conversations/{id}/items": {
            "get": _stored_reply_operation(
                "List the items of a conversation", "conversation_items", ITEM_LIST, api.error, *_PAGE_PARAMETERS
            )
        },
    }


def _stored_reply_operation(
    summary: str, id: str, schema: str, error: str, *parameters: Json, content: Json | None = None
) -> Json:
    statuses = (400, *AUTH_STATUSES, *COMMON_STATUSES, 404)
    all_content = {**_json_content(schema), **(content or {})}
    return {
        "summary": f"{summary}. A client finds only what was stored for it",
        "operationId": id,
        "parameters": [_STORED_ID_PARAMETER, *parameters],
        "responses": {"200": _response(f"{summary}.", all_content), **_error_responses(error, *statuses)},
    }


def _create_conversation_operation(error: str) -> Json:
    statuses = (400, *AUTH_STATUSES, *COMMON_STATUSES, 404, 413, 415)
    return {
        "summary": "Create a conversation, which requests continue by its id",
        "operationId": "create_conversation",
        "requestBody": {"required": False, "content": _json_content(NEW_CONVERSATION)},
        "responses": {
            "200": _response("The conversation.", _json_content(CONVERSATION)),
            **_error_responses(error, *statuses),
        },
    }


def _query_parameter(name: str, schema: Json) -> Json:
    return {"name": name, "in": "query", "required": False, "schema": schema}


def _get_operation(summary: str, id: str, content: Json, *statuses: int, **fields: Any) -> Json:
    """Describe a GET endpoint that the gateway answers itself."""
    responses = {"200": _response(summary, content), **_error_responses(EITHER_ERROR, *statuses, *COMMON_STATUSES)}
    return {"get": {"summary": summary, "operationId": id, **fields, "responses": responses}}


def _public_operation(summary: str, id: str) -> Json:
    """Describe a GET endpoint without authentication."""
    return _get_operation(summary, id, _TEXT_CONTENT, security=[])


_TEXT_CONTENT = {"text/plain": {"schema": {"type": "string"}}}
_PAGE_PARAMETERS = (
    _query_parameter("limit", {"type": "integer", "minimum": 1, "maximum": 100}),
    _query_parameter("order", {"enum": ["asc", "desc"]}),
    _query_parameter("after", {"type": "string"}),
)
_STORED_ID_PARAMETER = {
    "name": "id",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]+$"},
}
_MODEL_ID_PARAMETER = {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
_MODEL_PATHS: Json = {
    "/models": _get_operation("List all known models", "models", _json_content(MODELS), *AUTH_STATUSES),
    "/models/{id}": _get_operation(
        "Get one model. The id may contain slashes",
        "model",
        _json_content(KNOWN_MODEL),
        *AUTH_STATUSES,
        404,
        parameters=[_MODEL_ID_PARAMETER],
    ),
}
_GATEWAY_PATHS: Json = {
    "/openapi.json": _get_operation(
        "This OpenAPI document", "openapi", {"application/json": {"schema": {"type": "object"}}}, *AUTH_STATUSES
    ),
    "/status": _get_operation(
        "Status of all workers: requests, memory, circuit breakers", "status", _json_content(STATUS), *AUTH_STATUSES
    ),
    "/metrics": _get_operation(
        "Metrics in the Prometheus format",
        "metrics",
        {CONTENT_TYPE.partition(";")[0]: {"schema": {"type": "string"}}},
        *AUTH_STATUSES,
    ),
    "/": _public_operation("Name of the gateway", "home"),
    "/healthz": _public_operation("Liveness check", "health"),
    "/readyz": _public_operation("Readiness check", "readiness"),
}
_GATEWAY_PATHS["/readyz"]["get"]["responses"]["503"] = _response("The gateway is stopping.", _TEXT_CONTENT)
