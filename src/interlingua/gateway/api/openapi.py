"""How the gateway is asked, in the words of OpenAPI: for people, and for programs that make clients or try servers."""

from __future__ import annotations

from typing import Any

from interlingua import __version__
from interlingua.gateway.api.openapi_schemas import SCHEMAS
from interlingua.gateway.observability.metrics import CONTENT_TYPE

__all__ = ["BASES", "description"]

Json = dict[str, Any]

BASES = ("/v1", "", "/v1/v1")
"""Clients differ in whether their base URL has the version in it, and so do the people who set it."""
REFUSED = {
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
CLOSED = (401, 403)
ANYWHERE = (405, 408, 503)
"""Whatever the path is."""
EARLY = (408, 503)
ANY = "What an upstream has refused, with its own status."
OTHER = "Any other refusal has the same form."
TALKS = {
    "x-interlingua-id": "The exchange in the gateway's log.",
    "request-id": "The same, where SDKs of Anthropic look for it.",
    "x-request-id": "The same, where SDKs of OpenAI look for it.",
    "x-interlingua-upstream": "Who was asked.",
    "x-interlingua-dialect": "How the model writes calls.",
    "x-interlingua-findings": "What was odd about the request and a whole reply: kinds, with commas between them.",
}
ABOUT = """Three APIs in front of models that speak any of them. What a client sends beyond what is told here goes on to
the upstream, or is a finding. Streams end as their protocol says: also when the upstream fails on the way, which is an
error event then."""


def description() -> Json:
    """All paths. Those of the APIs stand under every base of `servers`."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Interlingua",
            "version": __version__,
            "description": ABOUT.replace("\n", " "),
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": base or "/"} for base in BASES],
        "security": [{"bearer": []}, {"key": []}, {}],
        "paths": {**_API, **{path: {"servers": [{"url": "/"}], **item} for path, item in _PAGES.items()}},
        "components": {"schemas": SCHEMAS, "securitySchemes": _KEYS},
    }


_KEYS: Json = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "One of `keys`, if the settings have any."},
    "key": {"type": "apiKey", "in": "header", "name": "x-api-key", "description": "The same, in another header."},
}


def _json(schema: str) -> Json:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}


def _response(about: str, content: Json, headers: dict[str, str] | None = None) -> Json:
    told = {name: {"description": text, "schema": {"type": "string"}} for name, text in (headers or {}).items()}
    return {"description": about, **({"headers": told} if told else {}), "content": content}


def _refusals(error: str, *statuses: int) -> Json:
    """A connection may be refused before it is known what it asks for, and in whose words."""
    return {
        str(status): _response(REFUSED[status], _json("EitherError" if status in EARLY else error))
        for status in statuses
    }


def _asked(summary: str, id: str, request: str, reply: str, error: str) -> Json:
    """An endpoint of an API."""
    content = {**_json(reply), "text/event-stream": {}}  # this version has no words for events
    return {
        "post": {
            "summary": summary,
            "operationId": id,
            "requestBody": {"required": True, "content": _json(request)},
            "responses": {
                "200": _response("The reply: whole, or as server-sent events.", content, TALKS),
                **_refusals(error, *REFUSED),
                "default": _response(ANY, _json(error)),
            },
        }
    }


def _counted(id: str, answer: str, error: str) -> Json:
    """How many tokens a request has that is not answered."""
    estimated = {"x-interlingua-estimate": "`true`, if nobody has counted"}
    return {
        "post": {
            "summary": "How many tokens a request has: the upstream's count, or an estimate",
            "operationId": id,
            "requestBody": {"required": True, "content": _json("CountedRequest")},
            "responses": {
                "200": _response("The count.", _json(answer), estimated),
                **_refusals(error, 400, *CLOSED, *ANYWHERE, 413, 415, 500),
                "default": _response(OTHER, _json(error)),
            },
        }
    }


def _page(summary: str, id: str, content: Json, *refused: int, **more: Any) -> Json:
    """What the gateway answers itself."""
    answered = {"200": _response(summary, content), **_refusals("EitherError", *refused, *ANYWHERE)}
    return {"get": {"summary": summary, "operationId": id, **more, "responses": answered}}


def _open(summary: str, id: str) -> Json:
    """A page for anyone who can reach the port."""
    return _page(summary, id, _TEXT, security=[])


_TEXT = {"text/plain": {"schema": {"type": "string"}}}
_ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
_API: Json = {
    "/chat/completions": _asked(
        "OpenAI Chat Completions", "chat_completions", "ChatRequest", "Completion", "OpenAIError"
    ),
    "/messages": _asked("Anthropic Messages", "messages", "MessagesRequest", "MessagesReply", "AnthropicError"),
    "/messages/count_tokens": _counted("count_tokens", "Tokens", "AnthropicError"),
    "/responses": _asked("OpenAI Responses", "responses", "ResponsesRequest", "Response", "OpenAIError"),
    "/responses/input_tokens": _counted("input_tokens", "Tokens", "OpenAIError"),
    "/models": _page("All models that are known", "models", _json("Models"), *CLOSED),
    "/models/{id}": _page(
        "One model. Its id may have slashes", "model", _json("KnownModel"), *CLOSED, 404, parameters=[_ID]
    ),
}
_PAGES: Json = {
    "/openapi.json": _page(
        "This description", "openapi", {"application/json": {"schema": {"type": "object"}}}, *CLOSED
    ),
    "/metrics": _page(
        "For Prometheus", "metrics", {CONTENT_TYPE.partition(";")[0]: {"schema": {"type": "string"}}}, *CLOSED
    ),
    "/": _open("The gateway's name", "home"),
    "/healthz": _open("Whether this process lives", "health"),
    "/readyz": _open("Whether more requests should come", "readiness"),
}
_PAGES["/readyz"]["get"]["responses"]["503"] = _response("None should: the gateway is stopping.", _TEXT)
