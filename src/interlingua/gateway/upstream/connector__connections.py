"""The connections to upstreams, kept open between requests, as many as are asked for."""

from __future__ import annotations

import asyncio
from functools import partial

import aiohttp
from aiohttp.client_proto import ResponseHandler

__all__ = ["make_connector"]

IDLE_CONNECTION_SECONDS = 60.0
"""Seconds for which one is kept that nobody uses."""


class _PatchedResponseHandler(ResponseHandler):
    """aiohttp resumes a connection behind every read, paused or not, and has its parser look for what is left over:
    a tenth of what a token costs."""

    def resume_reading(self, resume_parser: bool = True) -> None:
        if self._reading_paused:
            super().resume_reading(resume_parser)


def make_connector() -> aiohttp.TCPConnector:
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_CONNECTION_SECONDS)
    if isinstance(getattr(connector, "_factory", None), partial):  # it has no public way to say which protocol to take
        connector._factory = partial(_PatchedResponseHandler, loop=asyncio.get_running_loop())  # type: ignore[assignment]
    return connector
