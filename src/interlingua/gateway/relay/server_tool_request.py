"""Tools in a request that the gateway has to run, and their calls in its conversation."""

from __future__ import annotations

from interlingua.common.jsontext.value_count import has_at_most_values
from interlingua.events import Finding
from interlingua.gateway.http.field_origins import Origins
from interlingua.gateway.http.memory_budget import MemoryShare
from interlingua.gateway.http.sealed_values import SealedValues
from interlingua.gateway.observability.exchange_record import ExchangeRecord
from interlingua.gateway.relay.upstream_request import ClientRequest
from interlingua.gateway.routing.routes import Route
from interlingua.gateway.server_tools.request_tools import (
    convert_server_calls,
    find_server_tools,
    given_texts,
    has_server_tools,
    may_be_server_tools,
    may_have_server_calls,
    may_have_web_calls,
    may_run_tool_search,
    offers_web_search,
    reports_missing_search,
    runs_web_search,
    without_web_search,
)
from interlingua.gateway.server_tools.server_tool import ServerTool
from interlingua.gateway.server_tools.web_access import WebAccess
from interlingua.gateway.settings.schema import Settings
from interlingua.gateway.state import GatewayState
from interlingua.translation.undecoded_request import TOOLS
from interlingua.upstreams.profile import Profile

__all__ = ["convert_earlier_calls", "find_tools_to_run"]

NO_SEARCH = "web_search: not offered, because the gateway has no search engine, and the upstream is not known to search"


async def convert_earlier_calls(
    gateway: GatewayState, max_seal_bytes: int, client_request: ClientRequest, route: Route, memory: MemoryShare
) -> Origins:
    """Replace calls of server-run tools in the conversation by calls and results, unless the upstream can read them.

    Returns: the origins of the items in the conversation; empty if it was not changed.

    Raises:
        TooLarge: The sealed results exceed the maximum size.
    """
    body, wire, client_id = client_request.body, client_request.wire, client_request.client_id
    if not await gateway.work_threads.scan(client_id, client_request.body_size, may_have_server_calls, wire, body):
        return Origins()
    cassettes = gateway.cassettes
    if cassettes is not None and cassettes.is_same_wire(wire):  # requests are compared with those that were recorded
        return Origins()
    if route.upstream.api == wire:
        profile = await _profile(gateway, client_request, route)
        if runs_web_search(wire, profile):
            return Origins()
        if may_run_tool_search(wire, profile) and not may_have_web_calls(wire, body):
            return Origins()
    decoded = await body.decode_in_thread(client_id, gateway.work_threads, memory)
    seals = SealedValues(client_request.seal_key, max_seal_bytes)
    converted = await gateway.work_threads.run(
        client_id, client_request.body_size, convert_server_calls, wire, decoded, seals
    )
    if converted is None:
        return Origins()
    request, origins = converted
    body.replace(request)
    return origins


async def find_tools_to_run(
    gateway: GatewayState,
    settings: Settings,
    client_request: ClientRequest,
    route: Route,
    exchange: ExchangeRecord,
    memory: MemoryShare,
) -> dict[str, ServerTool]:
    """Return the tools that the gateway has to run, by name. An upstream of the same API may run them itself.

    A web search that nobody can run is removed from the request, if its API has no error for that.
    """
    undecoded, wire = client_request.body.undecoded, client_request.wire
    encoded = undecoded.encoded(TOOLS) if undecoded is not None else b""
    if undecoded is not None and not _may_have_server_tools(gateway, client_request, encoded):
        return {}
    is_same_wire, is_tool_search_left = route.upstream.api == wire, False
    if is_same_wire:
        profile = await _profile(gateway, client_request, route)
        is_tool_search_left = may_run_tool_search(wire, profile)
        if runs_web_search(wire, profile):
            return {}
    if undecoded is None:
        tools = client_request.body.decode().get(TOOLS)
    elif not has_at_most_values(encoded, settings.limits.values):
        return {}  # the request is refused when it is translated
    else:
        share_tools, client_id = gateway.request_cache.share_tools, client_request.client_id
        try:
            tools = await gateway.work_threads.run(client_id, len(encoded), share_tools, client_id, encoded)
        except (ValueError, RecursionError):
            return {}  # the same
    is_offered = settings.web_search.engine != "off" or reports_missing_search(wire)
    if is_same_wire and not is_offered and offers_web_search(wire, tools):
        await _drop_web_search(gateway, client_request, exchange, memory)
    web_access = _web_access(gateway, settings, client_request, exchange.id) if is_offered else None
    found = find_server_tools(wire, tools, web_access)
    return {name: tool for name, tool in found.items() if not (is_tool_search_left and tool.kind == "tool_search")}


async def _drop_web_search(
    gateway: GatewayState, client_request: ClientRequest, exchange: ExchangeRecord, memory: MemoryShare
) -> None:
    """Remove the web search from a request to an upstream of its own API."""
    cassettes = gateway.cassettes
    if cassettes is not None and cassettes.is_same_wire(client_request.wire):  # the request is the key of its recording
        return
    body = await client_request.body.decode_in_thread(client_request.client_id, gateway.work_threads, memory)
    client_request.body.replace(without_web_search(body))
    exchange.findings.append(Finding("hosted-tool", NO_SEARCH, "tools"))


def _may_have_server_tools(gateway: GatewayState, client_request: ClientRequest, encoded: bytes) -> bool:
    """Return whether it is worth decoding these tools. The gateway knows it of tools that it has seen before."""
    if not has_server_tools(client_request.wire):
        return False
    known = gateway.request_cache.find_tools(client_request.client_id, encoded)
    if known is None:
        return may_be_server_tools(encoded)
    return known.derive(may_be_server_tools, lambda: may_be_server_tools(encoded))


def _web_access(
    gateway: GatewayState, settings: Settings, client_request: ClientRequest, exchange_id: str
) -> WebAccess:
    return WebAccess(
        gateway.search_engine(settings.web_search),
        settings.web_search.results,
        settings.web_fetch,
        lambda problem: gateway.log.error("web search failed", id=exchange_id, problem=problem),
        lambda: given_texts(client_request.body.decode()),
    )


async def _profile(gateway: GatewayState, client_request: ClientRequest, route: Route) -> Profile:
    """Return the profile of the upstream: that of its server, if the URL does not identify it."""
    assert gateway.session is not None, "the session is opened before the gateway listens"
    described = await gateway.server_probes.describe(
        gateway.session, route, client_request.headers, client_request.passthrough_key
    )
    return described.profile
