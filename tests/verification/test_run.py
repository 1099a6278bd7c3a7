"""Runs: the log and its continuation, retries and rate limits, stops, costs and references."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlingua.dialects.registry import get_dialect
from interlingua.errors import BadInput
from interlingua.faults.engines import ENGINE_FAULTS, NO_ENGINE_FAULT, EngineFault, ScriptedEngine
from interlingua.verification.probing.engine_sender import EngineSender
from interlingua.verification.probing.request_writer import RequestSettings, RequestWriter
from interlingua.verification.probing.sender import Json, Sender
from interlingua.verification.probing.server_facts import Price, ServerFacts, collect_server_facts
from interlingua.verification.recording import Recording
from interlingua.verification.run.cost import TokenCount, count_tokens, estimate_tokens
from interlingua.verification.run.metrics import Rate, compute_metrics
from interlingua.verification.run.polite_sender import AdaptiveLimit, PoliteSender, RetryPolicy
from interlingua.verification.run.preflight import fit_settings, require_upstream
from interlingua.verification.run.reference import read_reference
from interlingua.verification.run.run_log import RunHeader, RunLog, read_run
from interlingua.verification.run.runner import Progress, Runner, plan_trials
from interlingua.verification.samples.answer_key import AnswerKey
from interlingua.verification.samples.builtin import builtin_samples
from interlingua.verification.samples.sample import Sample, request_digest
from interlingua.verification.samples.sample_files import read_samples

SAMPLES = builtin_samples()
FEW = SAMPLES[::20]
KIMI = get_dialect("kimi_k2")
HEADER = RunHeader(
    version="0",
    url="http://x/v1",
    api="openai-chat",
    model="m",
    dialect="kimi_k2",
    set_name="s",
    set_digest="d",
    trials=10,
)
NO_DELAY = RetryPolicy(attempts=3, first_delay_seconds=0.0)


def engine_sender(fault: EngineFault = NO_ENGINE_FAULT) -> EngineSender:
    return EngineSender(ScriptedEngine("m", KIMI, AnswerKey(SAMPLES), fault))


class FlakySender:
    """Sender that answers the first requests with these statuses. It is a `Sender`."""

    def __init__(self, inner: Sender, *statuses: int, retry_after: float | None = None) -> None:
        self._inner = inner
        self._statuses = list(statuses)
        self._retry_after = retry_after
        self.running = self.most_running = self.sent = 0

    async def send(self, body: Json, *, stream: bool, wire: str | None = None) -> Recording:
        self.running += 1
        self.sent += 1
        self.most_running = max(self.most_running, self.running)
        await asyncio.sleep(0)
        self.running -= 1
        if self._statuses:
            status = self._statuses.pop(0)
            error = f"error {status}"
            return Recording(
                wire="openai-chat", stream=stream, status=status, error=error, retry_after=self._retry_after
            )
        return await self._inner.send(body, stream=stream, wire=wire)

    def fail_next(self, *statuses: int) -> None:
        self._statuses += statuses

    async def list_models(self) -> Recording:
        return await self._inner.list_models()

    async def call_server(self, path: str, body: Json | None = None) -> Json | None:
        return await self._inner.call_server(path, body)


def run_samples(
    sender: Sender,
    path: Path,
    samples: list[Sample] = FEW,
    *,
    policy: RetryPolicy = NO_DELAY,
    on_runner: Callable[[Runner], Callable[[Progress], None]] | None = None,
    max_total_tokens: int = 0,
    resume: bool = False,
    parallel: int = 3,
) -> Runner:
    async def run() -> Runner:
        log = RunLog(path, HEADER, append=resume)
        polite = PoliteSender(sender, AdaptiveLimit(parallel), policy)
        reports: list[Callable[[Progress], None]] = []

        def report(progress: Progress) -> None:
            for call in reports:
                call(progress)

        writer = RequestWriter("openai-chat", "m", settings=RequestSettings(max_tokens=4096))
        runner = Runner(polite, writer, "vllm", KIMI, log, report, max_total_tokens)
        reports += [on_runner(runner)] if on_runner else []
        done = read_run(path).results if resume else ()
        await runner.run(plan_trials(samples, ("stream", "whole")), parallel, done)
        log.close()
        return runner

    return asyncio.run(run())


def stop_after(trials: int) -> Callable[[Runner], Callable[[Progress], None]]:
    """Interrupt a run when this number of trials is done."""
    return lambda runner: lambda progress: runner.stop("interrupted") if progress.done >= trials else None


def test_run_is_complete_and_logged(tmp_path: Path) -> None:
    runner = run_samples(engine_sender(), tmp_path / "run.jsonl")
    stored = read_run(tmp_path / "run.jsonl")
    assert stored.header == HEADER
    assert len(stored.results) == 10
    assert stored.is_complete
    assert all(result.is_right for result in stored.results)
    assert runner.stop_reason == ""


def test_every_failure_is_attributed(tmp_path: Path) -> None:
    run_samples(engine_sender(ENGINE_FAULTS["parser-swallows"]), tmp_path / "run.jsonl")
    failed = [result for result in read_run(tmp_path / "run.jsonl").results if not result.is_right]
    assert failed
    assert {result.attribution.cause for result in failed if result.attribution} == {"engine-parser"}
    assert all(result.attribution and result.attribution.raw_text and result.excerpt for result in failed)


def test_log_file_is_private(tmp_path: Path) -> None:
    run_samples(engine_sender(), tmp_path / "run.jsonl")
    assert (tmp_path / "run.jsonl").stat().st_mode & 0o077 == 0


def test_interrupted_run_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    first = run_samples(engine_sender(), path, on_runner=stop_after(3), parallel=1)
    assert first.stop_reason == "interrupted"
    done = len(read_run(path).results)
    assert 3 <= done < 10
    path.write_bytes(path.read_bytes() + b'{"kind":"result","result":{"id":"cut')
    sender = engine_sender()
    run_samples(sender, path, resume=True)
    assert read_run(path).is_complete
    assert sender.requests == 10 - done


def test_failures_of_an_interrupted_run_are_attributed_without_requests(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    sender = engine_sender(ENGINE_FAULTS["parser-off"])
    run_samples(sender, path, on_runner=stop_after(4), parallel=1)
    results = read_run(path).results
    assert all(result.attribution for result in results if not result.is_right)
    assert sender.requests == 4


def test_results_without_attribution_are_sent_again(tmp_path: Path) -> None:
    """A process that was killed may have logged a failure and not its cause.

    A failure stays one, although its repetition is right: otherwise an interruption would improve the rates.
    """
    path = tmp_path / "run.jsonl"
    run_samples(engine_sender(ENGINE_FAULTS["parser-off"]), path, FEW[:1])
    lines = [line for line in path.read_text().splitlines() if '"attribution"' not in line]
    path.write_text("\n".join(lines) + "\n")
    sender = engine_sender()
    run_samples(sender, path, FEW[:1], resume=True)
    assert sender.requests == 2
    results = read_run(path).results
    assert not any(result.is_right for result in results)
    assert {result.attribution.reasons[-1] for result in results if result.attribution} == {
        "a repetition is right: the model varies"
    }


def test_continued_run_collects_the_missing_evidence(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    stop = stop_after(2)
    run_samples(engine_sender(ENGINE_FAULTS["parser-swallows"]), path, FEW[:1], on_runner=stop, parallel=1)
    assert {result.lacks_evidence for result in read_run(path).results} == {True}
    run_samples(engine_sender(ENGINE_FAULTS["parser-swallows"]), path, FEW[:1], resume=True)
    attributions = [result.attribution for result in read_run(path).results]
    assert {(found.cause, found.confidence) for found in attributions if found} == {("engine-parser", "certain")}


def test_requests_without_a_reply_are_sent_again_when_the_run_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    run_samples(FlakySender(engine_sender(), *[503] * 6), path, FEW[:1], parallel=1)
    assert [result.attempts for result in read_run(path).results] == [3, 3]
    run_samples(engine_sender(), path, FEW[:1], resume=True)
    results = read_run(path).results
    assert all(result.is_right for result in results)
    assert [result.attempts for result in results] == [4, 4]


def test_tokens_are_counted_over_interruptions(tmp_path: Path) -> None:
    """The trials and the extra tokens of both parts of a run are all that the upstream has counted."""
    path = tmp_path / "run.jsonl"
    fault = ENGINE_FAULTS["parser-swallows"]
    counted, extra = TokenCount(), TokenCount()
    for on_runner in (stop_after(3), None):
        resume = on_runner is None
        runner = run_samples(engine_sender(fault), path, FEW, on_runner=on_runner, parallel=1, resume=resume)
        counted += runner._sender.tokens
        extra += runner.extra_tokens
    assert extra.total > 0
    assert count_tokens(read_run(path).results) + extra == counted


def test_budget_ends_the_run(tmp_path: Path) -> None:
    runner = run_samples(engine_sender(), tmp_path / "run.jsonl", max_total_tokens=10, parallel=1)
    assert runner.stop_reason == "budget"
    assert len(runner.results) < 10


def test_dead_upstream_ends_the_run(tmp_path: Path) -> None:
    sender = FlakySender(engine_sender(), *[0] * 1000)
    runner = run_samples(sender, tmp_path / "run.jsonl", SAMPLES, policy=RetryPolicy(attempts=1))
    assert runner.stop_reason == "no-replies"
    assert 20 <= len(runner.results) < 30
    assert {result.attribution.cause for result in runner.results if result.attribution} == {"transport"}


@pytest.mark.parametrize(
    ("statuses", "attempts", "status"), [((503,), 2, 200), ((429, 500), 3, 200), ((502,) * 3, 3, 502)]
)
def test_requests_without_a_reply_are_retried(statuses: tuple[int, ...], attempts: int, status: int) -> None:
    async def send() -> tuple[Recording, Any, int]:
        sender = PoliteSender(FlakySender(engine_sender(), *statuses), AdaptiveLimit(2), NO_DELAY)
        return await sender.send_counted(RequestWriter("openai-chat", "m").write(FEW[0], stream=False), stream=False)

    recording, _, counted = asyncio.run(send())
    assert (recording.status, counted) == (status, attempts)


def test_refused_requests_are_not_retried() -> None:
    async def send() -> int:
        flaky = FlakySender(engine_sender(), 400)
        await PoliteSender(flaky, AdaptiveLimit(2), NO_DELAY).send({"model": "m"}, stream=False)
        return flaky.sent

    assert asyncio.run(send()) == 1


class SlowSender(FlakySender):
    """Sender whose requests take longer than the time limit."""

    async def send(self, body: Json, *, stream: bool, wire: str | None = None) -> Recording:  # noqa: ARG002
        self.sent += 1
        error = "no complete reply within 2 s"
        return Recording(wire=wire or "openai-chat", stream=stream, error=error, has_timed_out=True)


def test_requests_that_take_too_long_are_not_retried() -> None:
    sender = SlowSender(engine_sender())
    polite = PoliteSender(sender, AdaptiveLimit(1), NO_DELAY)
    assert asyncio.run(polite.send({}, stream=False)).has_timed_out
    assert sender.sent == 1


def test_retry_after_of_the_server_is_used() -> None:
    policy = RetryPolicy(first_delay_seconds=1.0, max_delay_seconds=8.0)
    assert policy.delay(1, 3.0) == 3.0
    assert policy.delay(1, 500.0) == 8.0
    assert 0.75 <= policy.delay(1, None) <= 1.25
    assert 3.0 <= policy.delay(3, None) <= 5.0
    assert policy.delay(30, None) <= 10.0


def test_request_that_must_wait_for_too_long_is_not_retried() -> None:
    flaky = FlakySender(engine_sender(), *[429] * 5, retry_after=3600)
    polite = PoliteSender(flaky, AdaptiveLimit(2), RetryPolicy(max_delay_seconds=60))
    recording = asyncio.run(polite.send({}, stream=False))
    assert (recording.status, flaky.sent) == (429, 1)
    assert polite.refusal is recording


def test_waits_are_reported() -> None:
    waits: list[tuple[int, float]] = []
    flaky = FlakySender(engine_sender(), 503, 429, retry_after=0.01)
    polite = PoliteSender(flaky, AdaptiveLimit(1), NO_DELAY, lambda recording, s: waits.append((recording.status, s)))
    body = RequestWriter("openai-chat", "m").write(FEW[0], stream=False)
    assert asyncio.run(polite.send(body, stream=False)).is_success
    assert waits == [(503, 0.01), (429, 0.01)]


def test_long_rate_limit_ends_the_run(tmp_path: Path) -> None:
    sender = FlakySender(engine_sender(), *[429] * 1000, retry_after=3600)
    runner = run_samples(sender, tmp_path / "run.jsonl")
    assert runner.stop_reason == "long-wait"
    assert sender.sent <= 3
    assert not any(result.is_settled for result in runner.results)


def test_long_rate_limit_while_evidence_is_collected_ends_the_run(tmp_path: Path) -> None:
    """The failures are attributed by their replies, and again when the run is continued."""
    path = tmp_path / "run.jsonl"
    limited = FlakySender(engine_sender(ENGINE_FAULTS["parser-swallows"]), retry_after=3600)

    def limit_evidence(runner: Runner) -> Callable[[Progress], None]:  # noqa: ARG001
        def report(progress: Progress) -> None:
            if progress.phase == "requests" and progress.done == progress.total:
                limited.fail_next(*[429] * 1000)

        return report

    runner = run_samples(limited, path, on_runner=limit_evidence)
    assert runner.stop_reason == "long-wait"
    failed = [result for result in runner.results if not result.is_right]
    assert failed
    assert all(result.lacks_evidence for result in failed)


def test_rate_limit_halves_the_parallel_requests_until_requests_succeed() -> None:
    limit = AdaptiveLimit(8)
    limit.slow_down(0.0)
    assert limit.current == 4
    for _ in range(5):
        limit.slow_down(0.0)
    assert limit.current == 1
    for _ in range(1000):
        limit.report_success()
    assert limit.current == 8


def test_parallel_requests_are_limited(tmp_path: Path) -> None:
    sender = FlakySender(engine_sender())
    run_samples(sender, tmp_path / "run.jsonl", parallel=2)
    assert sender.most_running <= 2


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is not a run log"),
        ("hello\n", "line 1 is not a line of a run log"),
        ('{"kind":"tokens","tokens":{"prompt":1,"reply":1}}\n', "is not a run log"),
    ],
)
def test_files_that_are_no_run_log(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(text)
    with pytest.raises(BadInput, match=problem):
        read_run(path)


def test_existing_log_is_not_overwritten(tmp_path: Path) -> None:
    RunLog(tmp_path / "run.jsonl", HEADER).close()
    with pytest.raises(BadInput, match="exists"):
        RunLog(tmp_path / "run.jsonl", HEADER)


# ── reference and costs ───────────────────────────────────────────────────────────────────────────────────────────


def test_own_log_is_a_reference(tmp_path: Path) -> None:
    run_samples(engine_sender(), tmp_path / "run.jsonl")
    reference = read_reference(str(tmp_path / "run.jsonl"))
    assert len(reference.called) == 10
    assert set(reference.called.values()) == {True, False}
    assert reference.run is not None


def test_reference_is_paired_with_requests_that_its_verifier_has_rewritten(tmp_path: Path) -> None:
    """MiniMax-Provider-Verifier makes ids unique, and renames the field of past thinking, before it sends a request."""

    def request(id: str, **thinking: str) -> dict[str, Any]:
        call = {"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}}
        assistant = {"role": "assistant", "content": "", "tool_calls": [call], **thinking}
        return {"messages": [assistant, {"role": "tool", "tool_call_id": id, "content": "42"}], "tools": []}

    line = {"request": request("f:1", reasoning_content="hm"), "finish_reason": "tool_calls"}
    path = tmp_path / "results.jsonl"
    path.write_text(json.dumps(line) + "\n")
    (sample,) = read_samples([json.dumps(request("f:0", reasoning="hm"))], "sample.jsonl")
    assert (request_digest(sample.request), True) in read_reference(str(path)).called


def test_results_of_other_verifiers_are_a_reference(tmp_path: Path) -> None:
    """A line of results.jsonl, with the fields that K2-Vendor-Verifier and MiniMax-Provider-Verifier write."""
    request = {"model": "other", "messages": [{"role": "user", "content": "hi"}], "stream": True}
    lines = [
        {"data_index": 1, "request": request, "response": {}, "status": "success", "finish_reason": "tool_calls"},
        {"data_index": 2, "request": {"messages": []}, "response": {}, "status": "failed", "finish_reason": None},
    ]
    path = tmp_path / "results.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    reference = read_reference(str(path))
    assert sorted(reference.called.values()) == [False, False, True, True]
    assert reference.name == "results.jsonl"


@pytest.mark.parametrize("text", ["", "[]\n", '{"request": {}}\n', "{\n"])
def test_files_that_are_no_reference(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(text or '{"a": 1}\n')
    with pytest.raises(BadInput):
        read_reference(str(path))


def test_costs() -> None:
    tokens = TokenCount(2_000_000, 500_000)
    assert tokens.dollars(Price(0.6, 2.5)) == pytest.approx(1.2 + 1.25)
    assert tokens.dollars(None) is None
    assert TokenCount(1, 2) + TokenCount(3, 4) == TokenCount(4, 6)


def test_estimate_is_near_the_count(tmp_path: Path) -> None:
    runner = run_samples(engine_sender(), tmp_path / "run.jsonl")
    estimate = estimate_tokens((sample, 2) for sample in FEW)
    prompt = sum(result.input_tokens for result in runner.results)
    assert 0.4 * prompt < estimate.prompt < 2 * prompt


# ── preflight ─────────────────────────────────────────────────────────────────────────────────────────────────────


def facts_of(sender: Sender) -> ServerFacts:
    return asyncio.run(collect_server_facts(sender, "", is_local=True))


def test_server_facts_of_engines() -> None:
    rows = {"vllm": "0.24.0", "sglang": "0.6.1", "llama.cpp": "b9999-abcdef", "provider": ""}
    for kind, version in rows.items():
        engine = ScriptedEngine("m", KIMI, AnswerKey(SAMPLES), kind=kind)  # type: ignore[arg-type]
        facts = facts_of(EngineSender(engine))
        assert (facts.engine, facts.version) == ("" if kind == "provider" else kind, version)
        assert facts.models == ("m",)
        assert facts.window("m") == (0 if kind == "provider" else 32_768)


def test_unknown_model_gets_a_suggestion() -> None:
    facts = ServerFacts(
        listing=Recording(wire="openai-chat", stream=False, status=200), models=("moonshotai/Kimi-K2", "qwen3")
    )
    with pytest.raises(BadInput) as error:
        require_upstream(facts, "http://x", "kimi-k3")
    assert error.value.hint == "did you mean moonshotai/Kimi-K2?"


@pytest.mark.parametrize(
    ("listing", "problem", "hint"),
    [
        (
            Recording(wire="w", stream=False, error="cannot connect", is_unreachable=True),
            "cannot connect",
            "check the URL",
        ),
        (Recording(wire="w", stream=False, status=401, error="bad key"), "refuses the API key: bad key", "--key-env"),
    ],
)
def test_upstream_that_cannot_be_used(listing: Recording, problem: str, hint: str) -> None:
    with pytest.raises(BadInput, match=problem) as error:
        require_upstream(ServerFacts(listing=listing), "http://x", "m")
    assert hint in error.value.hint


def test_refused_settings_are_left_out() -> None:
    refusing = EngineFault(
        "fixed",
        "",
        "",
        refuse=lambda body: (400, "invalid temperature: only 1 is allowed") if "temperature" in body else None,
    )
    writer = RequestWriter("openai-chat", "m", settings=RequestSettings(temperature=0.0, seed=1))
    settings, notes = asyncio.run(fit_settings(engine_sender(refusing), writer))
    assert settings == RequestSettings(seed=1)
    assert len(notes) == 1
    assert "temperature" in notes[0]


def test_simple_request_that_is_refused_ends_the_preflight() -> None:
    refusing = EngineFault("closed", "", "", refuse=lambda _: (400, "we are closed"))
    with pytest.raises(BadInput, match="we are closed"):
        asyncio.run(fit_settings(engine_sender(refusing), RequestWriter("openai-chat", "m")))


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ({"body": b"<h1>Welcome</h1>", "content_type": "text/html"}, r"not a JSON object \(text/html\): Welcome"),
        ({"body": b""}, "the reply is empty"),
        ({"body": b"{}", "error": "no complete reply within 2 s"}, "no complete reply"),
    ],
)
def test_first_reply_that_is_none_ends_the_preflight(reply: dict[str, Any], problem: str) -> None:
    class PageSender(FlakySender):
        async def send(self, body: Json, *, stream: bool, wire: str | None = None) -> Recording:  # noqa: ARG002
            return Recording(wire=wire or "openai-chat", stream=stream, status=200, **reply)

    with pytest.raises(BadInput, match=problem) as error:
        asyncio.run(fit_settings(PageSender(engine_sender()), RequestWriter("openai-chat", "m")))
    assert error.value.hint


@pytest.mark.parametrize("fault", ["whole-not-json", "stream-error"])
def test_reply_that_no_client_can_read_counts_as_none(tmp_path: Path, fault: str) -> None:
    run_samples(engine_sender(ENGINE_FAULTS[fault]), tmp_path / "run.jsonl")
    metrics = compute_metrics(read_run(tmp_path / "run.jsonl").results)
    assert metrics.success == Rate(5, 10)
