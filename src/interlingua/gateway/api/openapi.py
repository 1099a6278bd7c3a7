"""How the gateway is asked, in the words of OpenAPI: for people, and for programs that make clients or try servers."""

from __future__ import annotations

from typing import Any

from interlingua import __version__
from interlingua.gateway.api.openapi_schemas import SCHEMAS
from interlingua.gateway.observability.metrics import CONTENT_TYPE

__all__ = ["BASE_PATHS", "openapi_document"]

Json = dict[str, Any]

BASE_PATHS = ("/v1", "", "/v1/v1")
"""Clients differ in whether their base URL has the version in it, and so do the people who set it."""
ERROR_DESCRIPTIONS = {
    400: "The request cannot be understood, or not be sent on. The message says where it is wrong.",
    401: "No key, or none that is known here.",
    403: "A web page asks, or the gateway was called by a name that it does not have.",
    404: "No such model.",
    405: "The path has other methods: `allow` names them.",
    408: "The head of a request took longer than `limits.head`.",
    413: "More bytes than `limits.body`.",
    415: "A content-encoding that nobody knows here.",
    429: "The upstream says so: too many requests. `retry-after` says how long to wait.",
    500: "A fault of the gateway. Its log has more under `x-interlingua-id`.",
    502: "The upstream failed, or said what nobody understands.",
    503: "The gateway is stopping, or has too many connections; the model failed often and rests until `retry-after` "
    "(`rest`); or the upstream says so.",
    504: "The upstream took too long.",
    529: "As many requests are under way as are allowed, or the upstream is overloaded.",
}
AUTH_STATUSES = (401, 403)
COMMON_STATUSES = (405, 408, 503)
"""Whatever the path is."""
CONNECTION_STATUSES = (408, 503)
UPSTREAM_ERROR_DESCRIPTION = "What an upstream has refused, with its own status."
OTHER_ERROR_DESCRIPTION = "Any other refusal has the same form."
RESPONSE_HEADERS = {
    "x-interlingua-id": "The exchange in the gateway's log.",
    "request-id": "The same, where SDKs of Anthropic look for it.",
    "x-request-id": "The same, where SDKs of OpenAI look for it.",
    "x-interlingua-upstream": "Who was asked.",
    "x-interlingua-dialect": "How the model writes calls.",
    "x-interlingua-findings": "What was odd about the request and a whole reply: kinds, with commas between them.",
}
API_DESCRIPTION = """\
Three APIs in front of models that speak any of them. What a client sends beyond what is told here goes on to
the upstream, or is a finding. Streams end as their protocol says: also when the upstream fails on the way, which is an
error event then."""


def openapi_document() -> Json:
    """All paths. Those of the APIs stand under every base of `servers`."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Interlingua",
            "version": __version__,
            "description": API_DESCRIPTION.replace("\n", " "),
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": base or "/"} for base in BASE_PATHS],
        "security": [{"bearer": []}, {"key": []}, {}],
        "paths": {**_API_PATHS, **{path: {"servers": [{"url": "/"}], **item} for path, item in _GATEWAY_PATHS.items()}},
        "components": {"schemas": SCHEMAS, "securitySchemes": _SECURITY_SCHEMES},
    }


_SECURITY_SCHEMES: Json = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "One of `keys`, if the settings have any."},
    "key": {"type": "apiKey", "in": "header", "name": "x-api-key", "description": "The same, in another header."},
}


def _json_content(schema: str) -> Json:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}


def _response(summary: str, content: Json, headers: dict[str, str] | None = None) -> Json:
    header_specs = {name: {"description": text, "schema": {"type": "string"}} for name, text in (headers or {}).items()}
    return {"description": summary, **({"headers": header_specs} if header_specs else {}), "content": content}


def _error_responses(error: str, *statuses: int) -> Json:
    """A connection may be refused before it is known what it asks for, and in whose words."""
    return {
        str(status): _response(
            ERROR_DESCRIPTIONS[status], _json_content("EitherError" if status in CONNECTION_STATUSES else error)
        )
        for status in statuses
    }


def _relay_operation(summary: str, id: str, request: str, reply: str, error: str) -> Json:
    """An endpoint of an API."""
    content = {**_json_content(reply), "text/event-stream": {}}  # this version has no words for events
    return {
        "post": {
            "summary": summary,
            "operationId": id,
            "requestBody": {"required": True, "content": _json_content(request)},
            "responses": {
                "200": _response("The reply: whole, or as server-sent events.", content, RESPONSE_HEADERS),
                **_error_responses(error, *ERROR_DESCRIPTIONS),
                "default": _response(UPSTREAM_ERROR_DESCRIPTION, _json_content(error)),
            },
        }
    }


def _count_operation(id: str, reply: str, error: str) -> Json:
    """How many tokens a request has that is not answered."""
    headers = {"x-interlingua-estimate": "`true`, if nobody has counted"}
    return {
        "post": {
            "summary": "How many tokens a request has: the upstream's count, or an estimate",
            "operationId": id,
            "requestBody": {"required": True, "content": _json_content("CountedRequest")},
            "responses": {
                "200": _response("The count.", _json_content(reply), headers),
                **_error_responses(error, 400, *AUTH_STATUSES, *COMMON_STATUSES, 413, 415, 500),
                "default": _response(OTHER_ERROR_DESCRIPTION, _json_content(error)),
            },
        }
    }


def _get_operation(summary: str, id: str, content: Json, *statuses: int, **fields: Any) -> Json:
    """What the gateway answers itself."""
    responses = {"200": _response(summary, content), **_error_responses("EitherError", *statuses, *COMMON_STATUSES)}
    return {"get": {"summary": summary, "operationId": id, **fields, "responses": responses}}


def _public_operation(summary: str, id: str) -> Json:
    """A page for anyone who can reach the port."""
    return _get_operation(summary, id, _TEXT_CONTENT, security=[])


_TEXT_CONTENT = {"text/plain": {"schema": {"type": "string"}}}
_MODEL_ID_PARAMETER = {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
_API_PATHS: Json = {
    "/chat/completions": _relay_operation(
        "OpenAI Chat Completions", "chat_completions", "ChatRequest", "Completion", "OpenAIError"
    ),
    "/messages": _relay_operation(
        "Anthropic Messages", "messages", "MessagesRequest", "MessagesReply", "AnthropicError"
    ),
    "/messages/count_tokens": _count_operation("count_tokens", "Tokens", "AnthropicError"),
    "/responses": _relay_operation("OpenAI Responses", "responses", "ResponsesRequest", "Response", "OpenAIError"),
    "/responses/input_tokens": _count_operation("input_tokens", "Tokens", "OpenAIError"),
    "/models": _get_operation("All models that are known", "models", _json_content("Models"), *AUTH_STATUSES),
    "/models/{id}": _get_operation(
        "One model. Its id may have slashes",
        "model",
        _json_content("KnownModel"),
        *AUTH_STATUSES,
        404,
        parameters=[_MODEL_ID_PARAMETER],
    ),
}
_GATEWAY_PATHS: Json = {
    "/openapi.json": _get_operation(
        "This description", "openapi", {"application/json": {"schema": {"type": "object"}}}, *AUTH_STATUSES
    ),
    "/metrics": _get_operation(
        "For Prometheus", "metrics", {CONTENT_TYPE.partition(";")[0]: {"schema": {"type": "string"}}}, *AUTH_STATUSES
    ),
    "/": _public_operation("The gateway's name", "home"),
    "/healthz": _public_operation("Whether this process lives", "health"),
    "/readyz": _public_operation("Whether more requests should come", "readiness"),
}
_GATEWAY_PATHS["/readyz"]["get"]["responses"]["503"] = _response("None should: the gateway is stopping.", _TEXT_CONTENT)
