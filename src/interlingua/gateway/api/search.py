"""Web search outside of a reply: the commands of Codex's own search tool, `POST /v1/alpha/search`.

Codex offers the model one tool with many commands, and sends them here. It ends the turn at any error status. So errors
are only a field of a wrong type, which Codex never sends, an unknown model and a limit of the client; a command that
fails or is not available has a text for the model.
"""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import Any

from aiohttp import web
from yarl import URL

from interlingua.common.coerce import as_dict, as_list
from interlingua.common.jsontext.codec import encode_json
from interlingua.gateway.http.memory_budget import decoded_size
from interlingua.gateway.http.request_body import decode_body, read_body
from interlingua.gateway.routing.routes import Route
from interlingua.gateway.server_tools.request_tools import runs_web_search
from interlingua.gateway.server_tools.search_commands import PageReferences, SearchCommands, read_search_request
from interlingua.gateway.server_tools.server_tool import Json, Page
from interlingua.gateway.server_tools.web_access import WebAccess
from interlingua.gateway.state import GatewayState
from interlingua.gateway.upstream.http_client import headers_for, read_full_body, send_request
from interlingua.gateway.upstream.secret_filter import SecretFilter
from interlingua.translation.upstream_errors import UpstreamFailed
from interlingua.wires import get_wire

__all__ = ["SearchEndpoint"]

MAX_RESULT_SNIPPET_CHARS = 300
CHARS_PER_TOKEN = 4
MAX_OUTPUT_TOKENS = 50_000
MAX_FORWARDED_BYTES = 4 * 1024 * 1024
FORWARD_TIMEOUT_SECONDS = 120.0


class SearchEndpoint:
    """Handler of the endpoint for clients of one wire."""

    def __init__(self, gateway: GatewayState, wire: str) -> None:
        self._gateway = gateway
        self._wire = wire

    async def handle(self, request: web.Request) -> web.StreamResponse:
        config, work_threads = self._gateway.config, self._gateway.work_threads
        config.authenticator.check_origin(request.headers)
        client_id = config.authenticator.check_key(request.headers)
        limited_client, limits = client_id if config.settings.keys else "", config.settings.limits
        counted_request = self._gateway.client_limiter.begin(limited_client, config.settings.client_limits)
        try:
            with closing(self._gateway.memory_budget.open_share()) as memory:
                data = await read_body(request, limits, memory)
                memory.resize(await work_threads.run(client_id, len(data), decoded_size, data))
                body = await work_threads.run(client_id, len(data), decode_body, data, limits)
                route = self._upstream_with_search(body.get("model"))
                if route is not None:
                    if route.model != body["model"]:
                        data = await work_threads.run(client_id, len(data), encode_json, {**body, "model": route.model})
                    reply = await self._forward(data, route, request)
                else:
                    references = PageReferences(config.seal_key_for(client_id))
                    reply = encode_json(await self._run(body, references))
        finally:
            if counted_request is not None:
                counted_request.end(tokens=0)
        return web.Response(body=reply, content_type="application/json")

    def _upstream_with_search(self, model: Any) -> Route | None:
        """Return the route to an upstream that searches itself; None if the gateway searches."""
        config = self._gateway.config
        if config.settings.web_search.engine != "off" or not isinstance(model, str):
            return None
        route = config.routes.find(model)[0]
        return route if route.upstream.api == self._wire and runs_web_search(self._wire, route.profile) else None

    async def _forward(self, body: bytes, route: Route, request: web.Request) -> bytes:
        """Send the request to an upstream, and return its reply. Raises UpstreamFailed."""
        session, key = self._gateway.session, self._gateway.config.authenticator.passthrough_key(request.headers)
        assert session is not None, "the session is opened before the gateway listens"
        api = get_wire(self._wire).HTTP_API
        url = URL(api.base_url(route.upstream.url) + api.search_path, encoded=True)
        headers = headers_for(route, self._wire, request.headers, key, stream=False)
        try:
            async with asyncio.timeout(FORWARD_TIMEOUT_SECONDS):
                async with await send_request(session, route, url, body, headers) as response:
                    reply = await read_full_body(response, MAX_FORWARDED_BYTES)
        except TimeoutError:
            raise UpstreamFailed(
                f"{route.name}: the search took longer than {FORWARD_TIMEOUT_SECONDS:g} s", 504
            ) from None
        except UpstreamFailed as error:
            error.redact(self._gateway.config.redactor.with_credentials(request.headers).redact_text)
            raise
        secret_filter = SecretFilter(route.upstream)
        return secret_filter.feed(reply) + secret_filter.flush()

    async def _run(self, body: Json, references: PageReferences) -> Json:
        request, settings = read_search_request(body), as_dict(body.get("settings"))
        commands = SearchCommands(request, settings, self._web_access(body), references)
        outcomes = await asyncio.gather(*commands.run())
        text = "\n\n".join(outcome.text for outcome in outcomes) or "[no command]"
        max_tokens = min(request.max_output_tokens or MAX_OUTPUT_TOKENS, MAX_OUTPUT_TOKENS)
        results = [_result_object(page, references) for outcome in outcomes for page in outcome.pages]
        return {"encrypted_output": None, "output": text[: CHARS_PER_TOKEN * max_tokens], "results": results}

    def _web_access(self, body: Json) -> WebAccess:
        settings, log = self._gateway.config.settings, self._gateway.log
        given = body.get("input")
        user_messages = [item for item in map(as_dict, as_list(given)) if item.get("role") == "user"]
        return WebAccess(
            self._gateway.search_engine(settings.web_search),
            settings.web_search.results,
            settings.web_fetch,
            lambda problem: log.error("web search failed", problem=problem),
            lambda: given if isinstance(given, str) else user_messages,
        )


def _result_object(page: Page, references: PageReferences) -> dict[str, Any]:
    fields = {"ref_id": references.write(page.url), "url": page.url, "title": page.title}
    return {"type": "text_result", **fields, "snippet": page.text[:MAX_RESULT_SNIPPET_CHARS]}
