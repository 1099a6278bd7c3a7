"""HTTP side of a wire: paths, headers, keep-alive frame and errors, as data. Each wire declares its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

__all__ = ["EVENT_STREAM_TYPE", "JSON_TYPE", "VERSION_PATH", "HttpApi", "HttpError"]

VERSION_PATH = "/v1"
JSON_TYPE, EVENT_STREAM_TYPE = "application/json", "text/event-stream"
"""Content types of whole replies and of streams."""


class HttpError(msgspec.Struct, frozen=True, kw_only=True):
    """An error for the client, independent of its wire."""

    status: int
    type: str
    """Error type that the client's wire has for the status."""
    message: str
    request_id: str
    """Id of the request in the log."""
    code: str = ""
    """Machine-readable code of the error; empty if there is none."""
    param: str | None = None
    """Path of the field at fault in the request, empty for the whole request; None if the request is not at fault."""
    is_rejection: bool = False
    """True if the server has rejected the request, for the reason that the status states."""


class HttpApi(msgspec.Struct, frozen=True, kw_only=True):
    """Paths, headers and errors of one wire."""

    provider: str
    """Name of the vendor that defines the API, as traces name it (`gen_ai.provider.name`)."""
    path: str
    """Path that returns a reply, below the version path."""
    count_path: str = ""
    """Path that counts the tokens of a request; empty if the API has none."""
    counted_fields: tuple[str, ...] = ()
    """Fields that the count path accepts. Servers reject requests with other fields."""
    count_reply: Mapping[str, str] = {}
    """Fixed fields of a reply of the count path."""
    counts_by_default: bool = False
    """True if most servers of this API have the count path, and servers of other APIs do not."""
    version_headers: Mapping[str, str] = {}
    """Headers that every request needs."""
    stores_replies: bool = False
    """True if clients can refer to earlier replies by id, so that the server has to store them."""
    compact_path: str = ""
    """Path that returns a summary of a conversation, as a sealed item; empty if the API has none."""
    search_path: str = ""
    """Path that runs the commands of a client's own search tool; empty if the API has none."""
    has_websocket: bool = False
    """True if clients can send several requests over a WebSocket on `path`, as events."""
    client_header: str = ""
    """Header that only clients of this API send. It identifies them on paths that several APIs share."""
    forwarded_header_prefix: str = ""
    """Beginning of the names of headers that are forwarded to an upstream of the same wire; empty if there are none."""
    login_header: str = ""
    """Header that marks the bearer token of a client as a login instead of an API key."""
    login_marker: str = ""
    """Text in that header."""
    forwarded_query: str = ""
    """Query of a client that is forwarded to an upstream of the same wire."""
    returned_header_prefix: str = ""
    """Beginning of the names of response headers that clients of this API need; empty if there are none."""
    context_length_words: tuple[str, ...] = ()
    """Words in an error, in lower case, by which clients recognise that the conversation is too long."""
    key_header: Literal["authorization", "x-api-key"] = "authorization"
    """Header that carries the API key."""
    always_versioned: bool = False
    """True if the base URL needs the version path even if it has a path of its own. SDKs of such an API add the version
    themselves."""
    keepalive_frame: bytes = b": keep-alive\n\n"
    """Frame that keeps an idle stream open, once a reply has started."""
    error_types: Mapping[int, str]
    """Error type for each HTTP status that has its own."""
    server_error_type: str
    """Error type for all other statuses from 500."""
    error_body: Callable[[HttpError], dict[str, Any]]
    """Function that returns the JSON body of an error response."""

    def error_type(self, status: int) -> str:
        """Return the error type that clients expect for an HTTP status."""
        return self.error_types.get(status, "invalid_request_error" if status < 500 else self.server_error_type)

    def all_error_types(self) -> list[str]:
        """Return the error types for all statuses, sorted."""
        return sorted({*self.error_types.values(), self.error_type(400), self.error_type(500)})

    def request_headers(self, *, stream: bool) -> dict[str, str]:
        """Return the headers that every request needs, except the API key."""
        return {
            "content-type": JSON_TYPE,
            "accept": EVENT_STREAM_TYPE if stream else JSON_TYPE,
            "accept-encoding": "identity",  # decompression would delay the events of a stream
            **self.version_headers,
        }

    def endpoint(self, url: str) -> str:
        """Return the URL for requests. `url`: the configured one, see `base_url`."""
        return self.base_url(url) + self.path

    def base_url(self, url: str) -> str:
        """Return the base of all URLs, with a version path.

        Users configure URLs without the version, or with the path of the endpoint.
        """
        base = url.rstrip("/").removesuffix(self.path)
        path = urlsplit(base).path.strip("/")
        has_version = any(part[:1] == "v" and part[1:2].isdigit() for part in path.split("/"))
        return base if has_version or (path and not self.always_versioned) else base + VERSION_PATH
