"""Polite sender: a limit on parallel requests that adapts to rate limits, retries with backoff, and token counts."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from types import TracebackType

import msgspec

from interlingua.verification.probing.sender import Json, Sender
from interlingua.verification.recording import Recording
from interlingua.verification.reply_reading import ClientReply, read_reply
from interlingua.verification.run.cost import TokenCount

__all__ = ["RATE_LIMIT_STATUSES", "AdaptiveLimit", "PoliteSender", "RetryPolicy"]

RETRYABLE_STATUSES = frozenset({0, 408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
RATE_LIMIT_STATUSES = frozenset({429, 529})
REQUESTS_TO_RECOVER = 20
"""Successful requests after which one more parallel request is allowed again."""


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Retries of requests that got no reply."""

    attempts: int = 5
    """Largest number of requests for one trial."""
    first_delay_seconds: float = 1.0
    """Delay before the first retry. It doubles with each further one."""
    max_delay_seconds: float = 60.0
    statuses: frozenset[int] = RETRYABLE_STATUSES
    """Statuses after which a request is repeated; 0: no response."""

    def allows(self, recording: Recording, attempt: int) -> bool:
        """Return whether a request is repeated after this attempt.

        One that took longer than the time limit is not: each repetition would take as long.
        """
        is_soon = not self.must_wait_long(recording)
        is_possible = recording.status in self.statuses and not recording.has_timed_out and is_soon
        return is_possible and attempt < self.attempts

    def must_wait_long(self, recording: Recording) -> bool:
        """Return whether the server wants no further request for longer than the maximum delay."""
        delay = recording.retry_after if recording.status in RETRYABLE_STATUSES else None
        return delay is not None and delay > self.max_delay_seconds

    def delay(self, attempt: int, retry_after: float | None) -> float:
        """Return the delay after this attempt: what the server asks for, or an exponential backoff with jitter."""
        if retry_after is not None:
            return min(retry_after, self.max_delay_seconds)
        backoff = min(self.first_delay_seconds * 2.0 ** (attempt - 1), self.max_delay_seconds)
        return backoff * random.uniform(0.75, 1.25)


class AdaptiveLimit:
    """Limit on parallel requests. A rate limit halves it and pauses all requests; success raises it again."""

    def __init__(self, limit: int) -> None:
        self._max_limit = limit
        self._limit = limit
        self._running = 0
        self._successes = 0
        self._not_before = 0.0
        self._changed = asyncio.Condition()

    @property
    def current(self) -> int:
        return self._limit

    async def __aenter__(self) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self._running < self._limit)
            self._running += 1
        while (pause := self._not_before - time.monotonic()) > 0:
            await asyncio.sleep(pause)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        async with self._changed:
            self._running -= 1
            self._changed.notify_all()

    def slow_down(self, seconds: float) -> None:
        """Halve the limit, and start no request for this time."""
        self._limit = max(1, self._limit // 2)
        self._successes = 0
        self._not_before = max(self._not_before, time.monotonic() + seconds)

    def report_success(self) -> None:
        self._successes += 1
        if self._successes >= REQUESTS_TO_RECOVER and self._limit < self._max_limit:
            self._limit += 1
            self._successes = 0


class PoliteSender:
    """Sender that waits, retries and counts. It is a `Sender` itself, so that evidence is collected politely, too.

    Args:
        sender: Sends the requests.
        limit: The limit on parallel requests.
        policy: The retries.
        on_wait: Called before the delay of each retry, with the failed response and the delay in seconds.
    """

    def __init__(
        self,
        sender: Sender,
        limit: AdaptiveLimit,
        policy: RetryPolicy,
        on_wait: Callable[[Recording, float], None] = lambda *_: None,
    ) -> None:
        self._sender = sender
        self._limit = limit
        self._policy = policy
        self._on_wait = on_wait
        self.tokens = TokenCount()
        """Tokens of all replies so far."""
        self.requests = 0
        self.rate_limited = 0
        """Number of responses with a rate limit so far."""
        self.refusal: Recording | None = None
        """First response that asks for a longer delay than the policy allows; None if there was none."""

    async def send_counted(
        self, body: Json, *, stream: bool, wire: str | None = None
    ) -> tuple[Recording, ClientReply, int]:
        """Send a request, again if there is no reply. Returns the last response, its reply, and the attempts."""
        attempt = 0
        while True:
            attempt += 1
            self.requests += 1
            async with self._limit:
                recording = await self._sender.send(body, stream=stream, wire=wire)
            reply = read_reply(recording)
            self.tokens += TokenCount(reply.input_tokens, reply.output_tokens)
            delay = self._policy.delay(attempt, recording.retry_after)
            if recording.status in RATE_LIMIT_STATUSES:
                self.rate_limited += 1
            if self._policy.must_wait_long(recording):
                self.refusal = self.refusal or recording
            elif recording.status in RATE_LIMIT_STATUSES:
                self._limit.slow_down(delay)
            elif recording.status not in RETRYABLE_STATUSES:
                self._limit.report_success()
            if not self._policy.allows(recording, attempt):
                return recording, reply, attempt
            self._on_wait(recording, delay)
            await asyncio.sleep(delay)

    async def send(self, body: Json, *, stream: bool, wire: str | None = None) -> Recording:
        return (await self.send_counted(body, stream=stream, wire=wire))[0]

    async def list_models(self) -> Recording:
        return await self._sender.list_models()

    async def call_server(self, path: str, body: Json | None = None) -> Json | None:
        async with self._limit:
            return await self._sender.call_server(path, body)
