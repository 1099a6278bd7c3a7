"""Runner: sends all trials in parallel, judges the replies, and then collects evidence for the failures."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import msgspec

from interlingua.errors import BadRequest
from interlingua.parsing.dialect import Dialect
from interlingua.upstreams.refusals import recognize_refusal
from interlingua.verification.attribution import Attribution, Evidence, attribute, missing_evidence
from interlingua.verification.attribution.token_counts import TokenRatio, measure_token_ratio
from interlingua.verification.judging.failure import Judgement
from interlingua.verification.judging.judge import judge_corrected
from interlingua.verification.judging.observation import Observation, observe
from interlingua.verification.probing.evidence_collector import EvidenceCollector
from interlingua.verification.probing.request_writer import RequestWriter
from interlingua.verification.recording import Recording
from interlingua.verification.run.cost import TokenCount, count_tokens
from interlingua.verification.run.polite_sender import PoliteSender
from interlingua.verification.run.run_log import RunLog
from interlingua.verification.run.trial_result import TrialResult, summarize_trial
from interlingua.verification.samples.sample import Sample

__all__ = ["Progress", "Runner", "StopReason", "Trial", "plan_trials"]

Trial: TypeAlias = tuple[Sample, bool]
"""A sample, and whether it is sent as a stream."""
StopReason: TypeAlias = Literal["", "interrupted", "budget", "no-replies", "long-wait"]
"""Reason why a run ended early; "" if it is complete."""
MAX_KEPT_BYTES = 64 * 1024 * 1024
"""Bytes of failed replies that wait for their evidence. More of them are attributed at once."""
MAX_TRIALS_WITHOUT_REPLY = 20
"""The run ends after this number of trials in a row without a reply."""


def plan_trials(samples: Iterable[Sample], modes: Sequence[str]) -> list[Trial]:
    """Return the trials of a set. A sample whose file says whether it streams is sent once."""
    return [
        (sample, stream)
        for sample in samples
        for stream in (True, False)
        if (sample.stream is None and ("stream" if stream else "whole") in modes) or sample.stream is stream
    ]


@dataclass
class Progress:
    """State of a run, for the display."""

    total: int
    phase: Literal["requests", "evidence"] = "requests"
    done: int = 0
    right: int = 0
    wrong: int = 0
    evidence_total: int = 0
    evidence_done: int = 0
    tokens: TokenCount = field(default_factory=TokenCount)
    parallel: int = 0
    rate_limited: int = 0


@dataclass(frozen=True)
class _FailedTrial:
    sample: Sample
    observation: Observation
    result: TrialResult


class Runner:
    """One run.

    Args:
        sender: Sends the requests.
        writer: Writes their bodies.
        engine: The profile name of the server; "" if it is unknown.
        dialect: The dialect of the model.
        log: Receives every result.
        on_progress: Called after each trial and each attribution.
        max_total_tokens: The run ends if the upstream has counted more tokens; 0: no limit.
    """

    def __init__(
        self,
        sender: PoliteSender,
        writer: RequestWriter,
        engine: str,
        dialect: Dialect,
        log: RunLog,
        on_progress: Callable[[Progress], None] = lambda _: None,
        max_total_tokens: int = 0,
    ) -> None:
        self._sender = sender
        self._writer = writer
        self._dialect = dialect
        self._collector = EvidenceCollector(sender, writer, engine, dialect)
        self._log = log
        self._on_progress = on_progress
        self._max_total_tokens = max_total_tokens
        self._results: dict[tuple[str, bool], TrialResult] = {}
        self._waiting: list[_FailedTrial] = []
        self._kept_bytes = 0
        self._unsettled: dict[tuple[str, bool], TrialResult] = {}
        """Results of an interrupted run whose requests are sent again."""
        self._earlier_tokens = TokenCount()
        """Tokens of all results of the interrupted run."""
        self._without_reply = 0
        self._progress = Progress(0)
        self._stop = asyncio.Event()
        self.stop_reason: StopReason = ""

    @property
    def results(self) -> tuple[TrialResult, ...]:
        return tuple(self._results.values())

    @property
    def extra_tokens(self) -> TokenCount:
        """Tokens that belong to no trial: of this process, and of earlier trials that it has repeated."""
        counted, trials = self._sender.tokens + self._earlier_tokens, count_tokens(self.results)
        return TokenCount(max(0, counted.prompt - trials.prompt), max(0, counted.reply - trials.reply))

    def stop(self, reason: StopReason) -> None:
        """End the run as soon as possible. Results so far are kept."""
        self.stop_reason = self.stop_reason or reason
        self._stop.set()

    async def run(self, trials: Sequence[Trial], parallel: int, done: Sequence[TrialResult] = ()) -> None:
        """Send the trials and attribute their failures.

        Args:
            trials: All trials of the run.
            parallel: Largest number of parallel requests.
            done: Results of an interrupted run. Those that are not settled are sent again.
        """
        self._results = {result.key: result for result in done if result.is_settled}
        self._unsettled = {result.key: result for result in done if not result.is_settled}
        self._earlier_tokens = count_tokens(done)
        waiting = deque(trial for trial in trials if (trial[0].id, trial[1]) not in self._results)
        self._progress = Progress(len(trials), parallel=parallel)
        self._report()
        await self._run_workers([self._run_trials(waiting) for _ in range(parallel)])
        ratio = self._token_ratio()
        if not self._stop.is_set():
            self._progress.phase, self._progress.evidence_total = "evidence", len(self._waiting)
            failed = deque(self._waiting)
            await self._run_workers([self._attribute_trials(failed, ratio) for _ in range(parallel)])
            self._waiting = list(failed)
        self._attribute_rest(ratio)

    async def _run_workers(self, workers: list[Coroutine[Any, Any, None]]) -> None:
        """Run workers until all are finished or the run is stopped."""
        tasks = {asyncio.ensure_future(worker) for worker in workers}
        stop = asyncio.ensure_future(self._stop.wait())
        try:
            running: set[asyncio.Future[Any]] = {*tasks}
            while running and not stop.done():
                finished, running = await asyncio.wait({*running, stop}, return_when=asyncio.FIRST_COMPLETED)
                running -= {stop}
                for task in finished - {stop}:
                    task.result()  # raises what the worker raised
        finally:
            for task in (*tasks, stop):
                task.cancel()
            await asyncio.gather(*tasks, stop, return_exceptions=True)

    # ── trials ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _run_trials(self, waiting: deque[Trial]) -> None:
        while waiting and not self._stop.is_set():
            sample, stream = waiting.popleft()
            recording, attempts = await self._send(sample, stream)
            observation = observe(recording, sample, self._dialect)
            result = summarize_trial(sample, observation, self._dialect, attempts)
            if result.has_failed("refused") and _lacks_tool_parser(observation):
                result = msgspec.structs.replace(result, corrected_failures=await self._send_unparsed(sample, stream))
            if (earlier := self._unsettled.get(result.key)) is not None:
                result = _merge_results(earlier, result)
            await self._record(sample, observation, result)

    async def _send(self, sample: Sample, stream: bool) -> tuple[Recording, int]:
        try:
            body = self._writer.write(sample, stream=stream)
        except BadRequest as error:  # the sample has something that the upstream's wire cannot express
            return Recording(wire=self._writer.wire, stream=stream, status=400, error=str(error)), 1
        recording, _, attempts = await self._sender.send_counted(body, stream=stream)
        return recording, attempts

    async def _send_unparsed(self, sample: Sample, stream: bool) -> tuple[str, ...]:
        """Send a request as the gateway does it for a server without a tool parser. Returns the kinds of failures."""
        body = self._writer.write(sample, stream=stream, tool_choice="none") | {"skip_special_tokens": False}
        recording, _, _ = await self._sender.send_counted(body, stream=stream)
        return tuple(judge_corrected(observe(recording, sample, self._dialect), sample).kinds)

    async def _record(self, sample: Sample, observation: Observation, result: TrialResult) -> None:
        self._results[result.key] = result
        self._log.add_result(result)
        self._without_reply = 0 if result.has_reply or result.has_failed("refused") else self._without_reply + 1
        if self._sender.refusal is not None:
            self.stop("long-wait")
        if self._without_reply >= MAX_TRIALS_WITHOUT_REPLY:
            self.stop("no-replies")
        if self._max_total_tokens and self._sender.tokens.total > self._max_total_tokens:
            self.stop("budget")
        if not result.is_right and result.attribution is None:
            failed = _FailedTrial(sample, observation, result)
            size = len(observation.recording.body)
            if self._kept_bytes + size > MAX_KEPT_BYTES:
                await self._attribute(failed, self._token_ratio())
            else:
                self._kept_bytes += size
                self._waiting.append(failed)
        self._report()

    def _report(self) -> None:
        progress, results = self._progress, self._results.values()
        progress.done = len(results)
        progress.right = sum(result.is_right for result in results)
        progress.wrong = progress.done - progress.right
        progress.tokens = self._sender.tokens
        progress.rate_limited = self._sender.rate_limited
        self._on_progress(progress)

    # ── attribution ───────────────────────────────────────────────────────────────────────────────────────────────

    def _token_ratio(self) -> TokenRatio | None:
        right = [result for result in self._results.values() if result.is_right]
        return measure_token_ratio((result.output_tokens, result.native_bytes) for result in right)

    async def _attribute_trials(self, failed: deque[_FailedTrial], ratio: TokenRatio | None) -> None:
        while failed and not self._stop.is_set():
            trial = failed.popleft()
            try:
                await self._attribute(trial, ratio)
            except asyncio.CancelledError:
                failed.append(trial)
                raise
            if self._sender.refusal is not None:  # the evidence is not complete
                failed.append(trial)
                self.stop("long-wait")
                return
            self._progress.evidence_done += 1
            self._report()

    async def _attribute(self, trial: _FailedTrial, ratio: TokenRatio | None) -> None:
        judgement = Judgement(trial.result.failures)
        attribution = await self._collector.attribute(trial.sample, trial.observation, judgement, ratio)
        self._store(msgspec.structs.replace(trial.result, attribution=attribution))

    def _attribute_rest(self, ratio: TokenRatio | None) -> None:
        """Attribute failures whose evidence was not collected, by their replies alone."""
        for trial in self._waiting:
            judgement, evidence = Judgement(trial.result.failures), Evidence(token_ratio=ratio)
            case = (trial.sample, trial.observation, judgement, evidence, self._dialect)
            lacks_evidence = missing_evidence(*case) is not None
            self._store(
                msgspec.structs.replace(trial.result, attribution=attribute(*case), lacks_evidence=lacks_evidence)
            )
        self._waiting = []

    def _store(self, result: TrialResult) -> None:
        self._results[result.key] = result
        self._log.add_result(result)


def _merge_results(earlier: TrialResult, repeated: TrialResult) -> TrialResult:
    """Return the result of a trial that was sent again because its earlier result was not settled.

    A failed reply stays failed although its repetition is right: otherwise an interruption would improve the rates.
    """
    if earlier.has_failed("no-reply"):
        return msgspec.structs.replace(repeated, attempts=earlier.attempts + repeated.attempts)
    if not repeated.is_right:
        return repeated
    failure = earlier.failures[0]
    attribution = Attribution(
        cause="model",
        kind=failure.kind,
        confidence="likely",
        reasons=(failure.message, "a repetition is right: the model varies"),
    )
    return msgspec.structs.replace(earlier, attribution=attribution, lacks_evidence=False)


def _lacks_tool_parser(observation: Observation) -> bool:
    refusal = recognize_refusal(observation.recording.status, observation.reply.error)
    return refusal is not None and refusal.kind == "no-tool-parser"
