"""Private attributes of aiohttp that the gateway uses, all in this module.

aiohttp has no public equivalent for them and may change them in any minor release. `pyproject.toml` allows only minor
releases with which `tests/gateway/test_aiohttp_internals.py` passes, which has a test for each attribute.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import aiohttp
from aiohttp import web
from aiohttp.client_proto import ResponseHandler

__all__ = ["PatchedResponseHandler", "current_request", "install_response_handler", "is_idle", "request_count"]


def request_count(connection: web.RequestHandler) -> int:
    """Return the number of requests of which the connection has received the headers.

    The timeout for request headers ends when this number grows: aiohttp has no callback for complete headers.
    """
    return connection._request_count


def is_idle(connection: web.RequestHandler) -> bool:
    """Return whether the connection waits for the headers of a request.

    Data on an idle connection starts the timeout for request headers. Other data belongs to the body of a request.
    """
    waiter = connection._waiter
    return waiter is not None and not waiter.done()


def current_request(connection: web.RequestHandler) -> web.BaseRequest | None:
    """Return the request that a handler is processing.

    A client that closes its sending side gets an error response to this request: aiohttp ignores the event.
    """
    return connection._current_request


class PatchedResponseHandler(ResponseHandler):
    """Response handler that resumes reading only if reading is paused.

    Since version 3.14, aiohttp resumes the connection after every read, paused or not, and runs its parser on the
    remaining data. That is a tenth of the CPU time per token.
    """

    def resume_reading(self, *args: Any, **options: Any) -> None:  # before version 3.14 there are no parameters
        if self._reading_paused:
            super().resume_reading(*args, **options)


def install_response_handler(connector: aiohttp.BaseConnector) -> None:
    """Make the connector use PatchedResponseHandler: aiohttp has no option for the protocol class.

    A connector without the expected attribute keeps aiohttp's response handler, which is only slower.
    """
    if isinstance(getattr(connector, "_factory", None), partial):
        connector._factory = partial(PatchedResponseHandler, loop=asyncio.get_running_loop())  # type: ignore[assignment]
