"""Probe: sends the requests of the doctor and reads the replies."""

from __future__ import annotations

from typing import Any

from interlingua.parsing.dialect import Dialect
from interlingua.verification.attribution import Attribution
from interlingua.verification.attribution.token_counts import TokenRatio
from interlingua.verification.judging.judge import judge
from interlingua.verification.judging.observation import Observation, observe
from interlingua.verification.probing.evidence_collector import EvidenceCollector
from interlingua.verification.probing.request_writer import RequestSettings, RequestWriter
from interlingua.verification.probing.sender import Sender
from interlingua.verification.recording import Recording
from interlingua.verification.samples.sample import Sample
from interlingua.verification.target import Target

__all__ = ["Probe"]

MAX_REPLY_TOKENS = 768
"""Token limit of a request. Models that think need some hundred tokens before a call."""


class Probe:
    """Requests to the model of one target.

    Args:
        sender: Sends the requests.
        target: The model and its server.
    """

    def __init__(self, sender: Sender, target: Target) -> None:
        self.target = target
        self.dialect: Dialect = target.dialect
        self.sender = sender
        self.tokens = 0
        """Tokens that the upstream has counted so far."""
        route = target.route
        settings = RequestSettings(max_tokens=MAX_REPLY_TOKENS, extra=dict(route.extra))
        self._writer = RequestWriter(route.upstream.api, route.model, target.profile, settings)
        self._collector = EvidenceCollector(sender, self._writer, target.facts.engine, self.dialect)

    async def ask(
        self,
        sample: Sample,
        *,
        stream: bool,
        wire: str | None = None,
        extra: dict[str, Any] | None = None,
        **changes: Any,
    ) -> Observation:
        """Send a request.

        Args:
            sample: The request.
            stream: Whether a stream is requested.
            wire: Another API of the upstream.
            extra: Fields that are added to the body as they are.
            changes: Fields of the chat request that differ from the sample.
        """
        body = self._writer.write(sample, stream=stream, wire=wire, **changes) | (extra or {})
        recording: Recording = await self.sender.send(body, stream=stream, wire=wire)
        observation = observe(recording, sample, self.dialect)
        self.tokens += observation.reply.input_tokens + observation.reply.output_tokens
        return observation

    async def explain(
        self, sample: Sample, observation: Observation, token_ratio: TokenRatio | None = None
    ) -> Attribution:
        """Return the cause of a failure, after the requests that are needed to say so."""
        return await self._collector.attribute(sample, observation, judge(observation, sample), token_ratio)
