"""Probe of upstreams: which model server runs there, and the context windows of its models.

A URL such as http://localhost:8000/v1 identifies no server. The first request to such an upstream starts a probe and
waits a short time for it; later requests never wait.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import aiohttp
import msgspec
from yarl import URL

from interlingua.common.jsontext.codec import read_full_object
from interlingua.common.jsontext.value_count import has_at_most_values
from interlingua.errors import InterlinguaError
from interlingua.gateway.routing.routes import DEMO_UPSTREAM, Route
from interlingua.gateway.upstream.http_client import headers_for, models_url, read_full_body, send_request
from interlingua.translation.upstream_errors import UpstreamFailed
from interlingua.upstreams import get_profile
from interlingua.upstreams.profile import UNKNOWN, Profile
from interlingua.upstreams.server_detection import (
    MODEL_SERVERS,
    SERVER_PATHS,
    WINDOW_PATHS,
    ServerAnswer,
    context_windows,
    detect_by_models,
    detect_by_path,
)

__all__ = ["ServerProbes", "find_window", "is_probed"]

PROBED_PROFILES = MODEL_SERVERS | {UNKNOWN}
"""Profiles of upstreams that are probed: unknown ones, and servers that report their context windows."""
PROBE_TIMEOUT_SECONDS = 2.0
FIRST_WAIT_SECONDS = 0.5
"""Longest time for which the first request to an upstream waits for its probe."""
PROBE_INTERVAL_SECONDS = 600.0
"""Seconds after which an upstream is probed again: it may run with another model or window."""
RETRY_INTERVAL_SECONDS = 20.0
"""The same after a probe without an answer, and for a model that Ollama had not loaded yet: then it has no window."""
MAX_ANSWER_BYTES = 4 * 1024 * 1024
MAX_ANSWER_VALUES = 100_000

RunInBackground = Callable[[Coroutine[Any, Any, None]], None]


class _Server(msgspec.Struct):
    """Known facts about the server at one URL."""

    probed_at: float
    profile: Profile | None = None
    """Detected profile; None if the server is unknown."""
    windows: dict[str, int] = {}
    """Context window by model id; under "" for all other ids."""
    answered: bool = False
    lists_loaded_models: bool = False
    """True if the server reports the windows of loaded models only."""
    finished: asyncio.Event = msgspec.field(default_factory=asyncio.Event)

    def window(self, model: str) -> int:
        return _find_window(self.windows, model)

    def is_due(self, model: str, now: float) -> bool:
        is_complete = self.answered and (not self.lists_loaded_models or self.window(model) > 0)
        interval = PROBE_INTERVAL_SECONDS if is_complete else RETRY_INTERVAL_SECONDS
        return self.finished.is_set() and now - self.probed_at > interval


class ServerProbes:
    """Servers by URL. Each is probed at its first request, and again from time to time.

    Args:
        run_in_background: Runs a probe while requests go on.
        on_detected: Called with the route and the profile of a server that was detected.
    """

    def __init__(self, run_in_background: RunInBackground, on_detected: Callable[[Route, Profile], None]) -> None:
        self._run_in_background = run_in_background
        self._on_detected = on_detected
        self._servers: dict[str, _Server] = {}

    async def describe(
        self, session: aiohttp.ClientSession, route: Route, client_headers: Mapping[str, str], passthrough_key: str
    ) -> Route:
        """Return the route with the profile of its server and the context window of its model, if they are known."""
        if not is_probed(route):
            return route
        url, now = route.upstream.url, time.monotonic()
        server = self._servers.get(url)
        if server is None:
            server = self._servers[url] = _Server(now)
            self._start(server, session, route, client_headers, passthrough_key)
            try:
                await asyncio.wait_for(server.finished.wait(), FIRST_WAIT_SECONDS)
            except TimeoutError:
                return route
        elif server.is_due(route.model, now):
            server.probed_at = now
            self._start(server, session, route, client_headers, passthrough_key)
        return _apply(server, route)

    def _start(
        self,
        server: _Server,
        session: aiohttp.ClientSession,
        route: Route,
        client_headers: Mapping[str, str],
        passthrough_key: str,
    ) -> None:
        headers = headers_for(route, "", client_headers, passthrough_key, stream=False)
        self._run_in_background(self._probe(server, session, route, headers))

    async def _probe(
        self, server: _Server, session: aiohttp.ClientSession, route: Route, headers: Mapping[str, str]
    ) -> None:
        try:
            name, server.windows = await _ask_server(session, route, headers)
            server.answered, server.lists_loaded_models = True, name == "ollama"
            if name and route.profile.name == UNKNOWN and server.profile is None:
                server.profile = get_profile(name)
                self._on_detected(route, server.profile)
        except (TimeoutError, InterlinguaError):
            server.answered = False  # it may be starting
        finally:
            server.finished.set()


def is_probed(route: Route) -> bool:
    """Return whether the upstream is probed. The profile `any` in the settings disables it."""
    is_excluded = route.upstream.profile == UNKNOWN or route.name == DEMO_UPSTREAM
    return route.profile.name in PROBED_PROFILES and not is_excluded


async def find_window(session: aiohttp.ClientSession, route: Route) -> int:
    """Return the context window of the route's model, as its server reports it; 0 if it is unknown."""
    try:
        _, windows = await _ask_server(session, route, headers_for(route, "", {}, "", stream=False))
    except (TimeoutError, InterlinguaError):
        return 0
    return _find_window(windows, route.model)


async def _ask_server(
    session: aiohttp.ClientSession, route: Route, headers: Mapping[str, str]
) -> tuple[str, dict[str, int]]:
    """Return the profile of the server, "" if it is unknown, and its context windows.

    Raises:
        InterlinguaError: There is no answer.
        TimeoutError: The answer takes too long.
    """
    async with asyncio.timeout(PROBE_TIMEOUT_SECONDS):
        models = await _get(session, route, models_url(route.upstream), headers)
        name = route.profile.name if route.profile.name != UNKNOWN else detect_by_models(models)
        name = name or await _detect_by_paths(session, route)
        details = ServerAnswer()
        if path := WINDOW_PATHS.get(name):
            details = await _get(session, route, _root_url(route, path), {})
    return name, context_windows(models, details)


def _find_window(windows: Mapping[str, int], model: str) -> int:
    """Return the window of a model; 0 if it is unknown. Ollama adds `:latest` to names without a tag."""
    return windows.get(model) or windows.get(f"{model}:latest") or windows.get("", 0)


async def _detect_by_paths(session: aiohttp.ClientSession, route: Route) -> str:
    """Return the profile of the server by the paths that only it has; "" if it is unknown.

    These requests contain no key, because the paths are outside the API. Providers on the internet use TLS and have no
    such paths, so they are not asked.
    """
    for path in SERVER_PATHS if models_url(route.upstream).scheme == "http" else ():
        if name := detect_by_path(path, await _get(session, route, _root_url(route, path), {})):
            return name
    return ""


async def _get(session: aiohttp.ClientSession, route: Route, url: URL, headers: Mapping[str, str]) -> ServerAnswer:
    """Return the answer to a GET request; an empty one if the server answers with an error.

    Raises:
        InterlinguaError: There is no answer.
    """
    try:
        async with await send_request(session, route, url, None, headers) as response:
            data = await read_full_body(response, MAX_ANSWER_BYTES)
    except UpstreamFailed as error:
        if error.upstream_status:
            return ServerAnswer()
        raise
    body = read_full_object(data.decode("utf-8", "replace")) if has_at_most_values(data, MAX_ANSWER_VALUES) else None
    return ServerAnswer(body or {}, {name.lower(): value for name, value in response.headers.items()})


def _root_url(route: Route, path: str) -> URL:
    return URL(str(models_url(route.upstream).origin()) + path, encoded=True)


def _apply(server: _Server, route: Route) -> Route:
    window = server.window(route.model)
    if server.profile is None or route.profile.name != UNKNOWN:
        return msgspec.structs.replace(route, window=window) if window else route
    settled = {name: getattr(route.profile, name) for name in route.profile.settled}
    profile = msgspec.structs.replace(server.profile, **settled, settled=route.profile.settled)
    return msgspec.structs.replace(route, profile=profile, is_profile_detected=True, window=window)
