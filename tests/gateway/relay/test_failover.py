"""Failover without a gateway process. Tests with real sockets are in test_faults.py."""

from __future__ import annotations

import asyncio
import time

import aiohttp
import pytest

from interlingua.gateway.http.memory_budget import MemoryBudget
from interlingua.gateway.http.request_body import RequestBody
from interlingua.gateway.observability.exchange_record import ExchangeRecord
from interlingua.gateway.observability.failing_models import FailingModels
from interlingua.gateway.relay.failover import UpstreamAccess, UpstreamFailover
from interlingua.gateway.relay.upstream_request import ClientRequest
from interlingua.gateway.routing.routes import Routes
from interlingua.gateway.settings.redaction import Redactor
from interlingua.gateway.settings.schema import Retries, Settings, Upstream
from interlingua.gateway.token_calibration import EstimateCalibration
from interlingua.gateway.upstream.capabilities import CapabilityMemory
from interlingua.gateway.upstream.retry_policy import RetryPolicies
from interlingua.gateway.upstream.server_probe import ServerProbes
from interlingua.gateway.work_threads import WorkThreads
from interlingua.translation.request_cache import RequestCache
from interlingua.translation.upstream_errors import UpstreamFailed

UNREACHABLE = Upstream(url="http://127.0.0.1:9/v1", retries=Retries(attempts=1))


def test_request_body_is_released_after_the_last_attempt() -> None:
    """A stream can last an hour, and the request of an agent has megabytes."""
    settings = Settings(upstreams={"nobody": UNREACHABLE})
    data = b'{"model": "m", "messages": [{"role": "user", "content": "hi"}]}'
    body = RequestBody(data, settings.limits, "messages")
    body.scan()
    client_request = ClientRequest("openai-chat", body, "m", True, {}, "", 0, 0, b"", "", "")
    exchange = ExchangeRecord(id="req_1", path="/v1/chat/completions", wire="openai-chat", started=time.monotonic())

    retry_policies, capabilities = RetryPolicies(lambda *_: None), CapabilityMemory(lambda *_: None)

    failing_models = FailingModels(lambda _: None, lambda _: None)
    probes = ServerProbes(lambda probe: probe.close(), lambda *_: None)

    async def send() -> None:
        async with aiohttp.ClientSession() as session:
            memory = MemoryBudget(lambda: settings.limits.memory).open_share()
            access = UpstreamAccess(
                session,
                settings,
                EstimateCalibration(),
                retry_policies,
                failing_models,
                Redactor(),
                capabilities,
                probes,
                WorkThreads(),
                RequestCache(),
            )
            failover = UpstreamFailover(access, client_request, exchange, None, memory)
            await failover.open_reply(Routes(settings).find("m"))

    with pytest.raises(UpstreamFailed, match="cannot connect"):
        asyncio.run(send())
    assert body.undecoded is None
    assert body.decode() == {}
