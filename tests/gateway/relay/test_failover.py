"""How an upstream is found that answers, apart from sockets: those are in test_gateway_faults."""

from __future__ import annotations

import asyncio
import time

import aiohttp
import pytest

from interlingua.gateway.observability.exchange_record import ExchangeRecord
from interlingua.gateway.relay.failover import UpstreamFailover
from interlingua.gateway.relay.upstream_request import ClientRequest
from interlingua.gateway.routing.routes import Routes
from interlingua.gateway.settings.schema import Retries, Settings, Upstream
from interlingua.gateway.tokens.calibration import EstimateCalibration
from interlingua.gateway.upstream.errors import UpstreamFailed
from interlingua.gateway.upstream.retry_policy import RetryPolicies

NOBODY = Upstream(url="http://127.0.0.1:9/v1", retries=Retries(attempts=1))


def test_a_body_is_not_kept_once_all_is_asked() -> None:
    """A stream may last for an hour, and what an agent sends has megabytes."""
    settings = Settings(upstreams={"nobody": NOBODY})
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    question = ClientRequest("openai-chat", body, "m", True, {}, "", 0, 0, b"", "")
    exchange = ExchangeRecord(id="req_1", path="/v1/chat/completions", wire="openai-chat", started=time.monotonic())

    restraints = RetryPolicies(lambda *_: None)

    async def ask() -> None:
        async with aiohttp.ClientSession() as session:
            asker = UpstreamFailover(session, settings, question, exchange, None, {}, EstimateCalibration(), restraints)
            await asker.open_reply(Routes(settings).find("m"))

    with pytest.raises(UpstreamFailed, match="cannot connect"):
        asyncio.run(ask())
    assert body == {}
