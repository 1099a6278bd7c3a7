"""Result of one trial: a sample that was sent once, as a stream or whole. It is a line of the run log."""

from __future__ import annotations

import msgspec

from interlingua.parsing.dialect import Dialect
from interlingua.verification.attribution import Attribution
from interlingua.verification.attribution.token_counts import native_size
from interlingua.verification.judging.failure import Failure
from interlingua.verification.judging.judge import judge, judge_corrected, valid_calls
from interlingua.verification.judging.observation import Observation
from interlingua.verification.samples.sample import Sample, request_digest

__all__ = ["TrialResult", "summarize_trial"]

MAX_EXCERPT_CHARS = 6000
"""Length of the texts that a result keeps of a failed reply."""


UNREADABLE_KINDS = frozenset({"error-in-reply", "bad-event"})
"""Kinds of failures for which SDKs raise an exception."""


class TrialResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str
    """Id of the sample."""
    category: str
    stream: bool
    digest: str
    """Digest of the request, by which two runs are compared."""
    expects: str = "any"
    checks: tuple[str, ...] = ()
    """Additional checks that the sample asks for."""
    status: int = 0
    attempts: int = 1
    """Number of requests until there was a reply."""
    failures: tuple[Failure, ...] = ()
    corrected_failures: tuple[str, ...] = ()
    """Kinds of the failures that remain if Interlingua corrects the reply."""
    oddities: tuple[str, ...] = ()
    finish_reason: str = ""
    wants_tools: bool = False
    """True if the finish reason tells the client to run tools."""
    calls: int = 0
    are_calls_valid: bool | None = None
    """True if all calls fit their schemas; None if the finish reason does not tell the client to run tools."""
    is_only_thinking: bool = False
    input_tokens: int = 0
    output_tokens: int = 0
    native_bytes: int = 0
    """Size of the reply in the model's own notation."""
    seconds: float = 0.0
    first_content_seconds: float = 0.0
    attribution: Attribution | None = None
    lacks_evidence: bool = False
    """True if the run ended before the evidence for the cause was collected."""
    excerpt: str = ""
    """Beginning of the response, for a failed trial."""
    prompt: str = ""
    """Last message of the request, for a failed trial."""

    @property
    def key(self) -> tuple[str, bool]:
        return self.id, self.stream

    @property
    def has_reply(self) -> bool:
        """True if there is a reply that a client can read, right or wrong."""
        return 200 <= self.status < 300 and not any(failure.kind in UNREADABLE_KINDS for failure in self.failures)

    @property
    def is_right(self) -> bool:
        return not self.failures

    @property
    def is_settled(self) -> bool:
        """True if a continued run needs no further request: the reply is right, or the cause of its failure is known.

        A request that got no reply is not settled: the upstream may answer when the run is continued.
        """
        is_explained = self.attribution is not None and not self.lacks_evidence
        return self.is_right or (is_explained and not self.has_failed("no-reply"))

    def has_failed(self, kind: str) -> bool:
        return any(failure.kind == kind for failure in self.failures)


def summarize_trial(sample: Sample, observation: Observation, dialect: Dialect, attempts: int) -> TrialResult:
    """Judge a reply and keep what the metrics and the card need."""
    recording, reply = observation.recording, observation.reply
    judgement = judge(observation, sample)
    return TrialResult(
        id=sample.id,
        category=sample.category,
        stream=recording.stream,
        digest=request_digest(sample.request),
        expects=sample.expect.reply,
        checks=sample.checks,
        status=recording.status,
        attempts=attempts,
        failures=judgement.failures,
        corrected_failures=tuple(judge_corrected(observation, sample).kinds),
        oddities=judgement.oddities,
        finish_reason=reply.finish_reason,
        wants_tools=reply.wants_tools,
        calls=len(reply.calls),
        are_calls_valid=valid_calls(reply.calls, sample) if reply.wants_tools else None,
        is_only_thinking=bool(reply.reasoning) and not reply.text and not reply.calls,
        input_tokens=reply.input_tokens,
        output_tokens=reply.output_tokens,
        native_bytes=native_size(reply, dialect),
        seconds=round(recording.seconds, 4),
        first_content_seconds=round(reply.first_content_seconds, 4),
        excerpt=_excerpt(recording.body) if judgement.failures else "",
        prompt=_last_prompt(sample) if judgement.failures else "",
    )


def _excerpt(body: bytes) -> str:
    text = body[: 4 * MAX_EXCERPT_CHARS].decode("utf-8", "replace")
    return text if len(text) <= MAX_EXCERPT_CHARS else f"{text[:MAX_EXCERPT_CHARS]}…"


def _last_prompt(sample: Sample) -> str:
    messages = [message for message in sample.request.get("messages") or () if isinstance(message, dict)]
    texts = [message.get("content") for message in messages if message.get("role") == "user"]
    return _excerpt(str(texts[-1]).encode()) if texts else ""
