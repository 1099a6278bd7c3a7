"""Attribution: scripted engines whose true causes are known, and single pieces of evidence."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace

import pytest

from interlingua.core.tools import ToolSet
from interlingua.dialects.registry import get_dialect
from interlingua.faults.engines import ENGINE_FAULTS, EngineFault, EngineKind, ScriptedEngine
from interlingua.verification.attribution import CAUSES, Attribution, Evidence, PromptCheck, Repetition, attribute
from interlingua.verification.attribution.bare_calls import contains_bare_reply, find_bare_calls
from interlingua.verification.attribution.error_causes import cause_of_error
from interlingua.verification.attribution.token_counts import TokenRatio, measure_token_ratio
from interlingua.verification.judging.judge import judge
from interlingua.verification.judging.observation import observe
from interlingua.verification.probing.engine_sender import EngineSender
from interlingua.verification.probing.evidence_collector import EvidenceCollector
from interlingua.verification.probing.request_writer import RequestSettings, RequestWriter
from interlingua.verification.samples.answer_key import AnswerKey, ideal_reply
from interlingua.verification.samples.builtin import builtin_samples
from interlingua.verification.samples.sample import Sample

SAMPLES = builtin_samples()
ANSWERS = AnswerKey(SAMPLES)
QUICK_SAMPLES = [
    *(sample for sample in SAMPLES if sample.id in ("one-of-many-02", "none-fitting-01", "parallel-02", "nested-02")),
    *(sample for sample in SAMPLES if sample.id in ("odd-schemas-05", "odd-schemas-01", "code-04", "tool-choice-02")),
]


def find_sample(id: str) -> Sample:
    return next(sample for sample in SAMPLES if sample.id == id)


async def attribute_failures(
    fault: EngineFault, dialect_name: str, kind: EngineKind, samples: list[Sample], wire: str = "openai-chat"
) -> list[tuple[str, Attribution]]:
    """Send the samples to an engine with this fault, and attribute the failures."""
    dialect = get_dialect(dialect_name)
    sender = EngineSender(ScriptedEngine("m", dialect, ANSWERS, fault, kind), wire)
    writer = RequestWriter(wire, "m", settings=RequestSettings(max_tokens=4096))
    collector = EvidenceCollector(sender, writer, "" if kind == "provider" else kind, dialect)
    attributions = []
    for sample in samples:
        for stream in (True, False):
            recording = await sender.send(writer.write(sample, stream=stream), stream=stream)
            observation = observe(recording, sample, dialect)
            judgement = judge(observation, sample)
            if not judgement.is_right:
                attributions.append((sample.id, await collector.attribute(sample, observation, judgement)))
    return attributions


STEADY_FAULTS = {name: fault for name, fault in ENGINE_FAULTS.items() if name != "model-varies"}


@pytest.mark.parametrize("fault", STEADY_FAULTS.values(), ids=STEADY_FAULTS)
def test_every_fault_is_attributed_to_its_cause(fault: EngineFault) -> None:
    attributions = asyncio.run(attribute_failures(fault, "kimi_k2", "vllm", QUICK_SAMPLES))
    assert attributions, "the fault causes no failure"
    assert {attribution.cause for _, attribution in attributions} == {fault.cause}, attributions
    assert all(attribution.reasons for _, attribution in attributions)
    for _, attribution in attributions:
        message = attribution.reasons[0]
        assert "; ".join(attribution.reasons).count(message) == 1, "the evidence repeats the failure"


@pytest.mark.parametrize("wire", ["anthropic-messages", "openai-responses"])
@pytest.mark.parametrize(
    "fault", ["model-wrong-tool", "template-drops-tools", "parser-no-arguments", "parser-missing", "refuses-names"]
)
def test_faults_are_attributed_in_every_api(fault: str, wire: str) -> None:
    attributions = asyncio.run(attribute_failures(ENGINE_FAULTS[fault], "kimi_k2", "vllm", QUICK_SAMPLES, wire))
    assert attributions
    assert {attribution.cause for _, attribution in attributions} == {ENGINE_FAULTS[fault].cause}, attributions


def test_model_that_varies_is_not_mistaken_for_a_parser() -> None:
    """A repeated request that is right proves nothing about a model that calls in three of four cases."""
    varying = ENGINE_FAULTS["model-varies"]
    fault = replace(varying, generate=type(varying.generate)())  # type: ignore[misc]  # with a new random generator
    attributions = asyncio.run(attribute_failures(fault, "kimi_k2", "vllm", SAMPLES[::3]))
    causes = Counter(attribution.cause for _, attribution in attributions)
    assert causes["model"] >= 0.9 * causes.total() >= 9


@pytest.mark.slow
@pytest.mark.parametrize("dialect", ["kimi_k2", "hermes", "qwen3_coder"])
@pytest.mark.parametrize(("kind", "share"), [("vllm", 0.99), ("sglang", 0.99), ("llama.cpp", 0.99), ("provider", 0.9)])
def test_nearly_all_failures_are_attributed_right(kind: EngineKind, share: float, dialect: str) -> None:
    """Engines show what the model wrote. A provider that shows nothing leaves some failures open."""
    outcomes: Counter[bool] = Counter()
    for fault in ENGINE_FAULTS.values():
        attributions = asyncio.run(attribute_failures(fault, dialect, kind, SAMPLES[::4]))
        outcomes.update(attribution.cause == fault.cause for _, attribution in attributions)
    assert outcomes[True] / outcomes.total() >= share


def test_every_cause_has_faults() -> None:
    assert {fault.cause for fault in ENGINE_FAULTS.values()} == CAUSES.keys()


# ── single pieces of evidence ─────────────────────────────────────────────────────────────────────────────────────


async def first_failure(fault_name: str, evidence: Evidence, sample_id: str = "one-of-many-02") -> Attribution:
    """Attribute the failure of one sample at a provider by this evidence alone."""
    dialect, sample = get_dialect("kimi_k2"), find_sample(sample_id)
    sender = EngineSender(ScriptedEngine("m", dialect, ANSWERS, ENGINE_FAULTS[fault_name], "provider"))
    recording = await sender.send(RequestWriter("openai-chat", "m").write(sample, stream=False), stream=False)
    observation = observe(recording, sample, dialect)
    return attribute(sample, observation, judge(observation, sample), evidence, dialect)


@pytest.mark.parametrize(
    ("fault", "evidence", "cause"),
    [
        ("model-never-calls", Evidence(), "model"),
        ("model-never-calls", Evidence(prompt=PromptCheck(50, 49)), "template"),
        ("model-never-calls", Evidence(prompt=PromptCheck(900, 40)), "model"),
        ("model-never-calls", Evidence(prompt=PromptCheck(900, 0)), "model"),
        ("model-never-calls", Evidence(repetition=Repetition(raw_text="No.", prompt_text="Hi")), "template"),
        ("parser-swallows", Evidence(), "engine-parser"),
        ("parser-no-arguments", Evidence(), "model"),
        ("parser-no-arguments", Evidence(token_ratio=TokenRatio(0.45)), "engine-parser"),
        ("truncates-early", Evidence(max_tokens=4096), "transport"),
        ("truncates-early", Evidence(max_tokens=16), "model"),
    ],
)
def test_evidence_decides(fault: str, evidence: Evidence, cause: str) -> None:
    assert asyncio.run(first_failure(fault, evidence)).cause == cause


def test_token_count_does_not_excuse_another_tool() -> None:
    evidence = Evidence(token_ratio=TokenRatio(0.3))
    assert asyncio.run(first_failure("model-wrong-tool", evidence, "non-ascii-05")).cause == "model"


@pytest.mark.parametrize(
    ("status", "message", "cause"),
    [
        (400, '"auto" tool choice requires --enable-auto-tool-choice', "engine-parser"),
        (400, "chat template error: Conversation roles must alternate", "template"),
        (500, "Failed to parse input at pos 12", "engine-parser"),
        (400, "Invalid schema", None),
    ],
)
def test_error_messages_name_their_cause(status: int, message: str, cause: str | None) -> None:
    named = cause_of_error(status, message)
    assert (named[0] if named else None) == cause


def test_token_ratio_needs_enough_replies_that_agree() -> None:
    assert measure_token_ratio([(30, 100)] * 7) is None
    assert measure_token_ratio([(30, 100)] * 8) == TokenRatio(0.3)
    assert measure_token_ratio([(30, 100), (300, 100)] * 8) is None
    ratio = TokenRatio(0.3)
    assert ratio.fits_expected(30, delivered_bytes=10, expected_bytes=100) is True
    assert ratio.fits_expected(4, delivered_bytes=10, expected_bytes=100) is False
    assert ratio.fits_expected(30, delivered_bytes=95, expected_bytes=100) is None


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('functions.get_weather:0{"city": "Paris"}', ["get_weather"]),
        ('I call get_weather with {"city": "Rome"} and get_time {}', ["get_weather", "get_time"]),
        ("I would call get_weather now.", []),
        ('my_get_weather {"city": "Paris"}', []),
        ("get_weather {city", []),
    ],
)
def test_calls_without_markers_are_found(text: str, names: list[str]) -> None:
    tools = ToolSet([{"name": "get_weather", "parameters": {}}, {"name": "get_time", "parameters": {}}])
    assert [call.name for call in find_bare_calls(text, tools)] == names


MISTRAL_REMAINS = 'get_stock_pricea1b2c3d4e{"symbol": "MSFT"}'
DEEPSEEK_REMAINS = '\nname="get_stock_price">\nname="symbol" string="true">MSFT\n\n'


@pytest.mark.parametrize(
    ("dialect", "text", "expected"),
    [
        ("gemma4", "call:get_stock_price{symbol:MSFT}", True),
        ("gemma4", "I call get_stock_price with the symbol MSFT.", False),
        ("gemma4", "call:get_stock_price{symbol:AAPL}", False),
        ("deepseek_v32", DEEPSEEK_REMAINS, True),
        ("deepseek_v32", f"I look it up.{DEEPSEEK_REMAINS}", True),
        ("mistral_v11", MISTRAL_REMAINS, True),
        ("mistral_v11", 'a1b2c3d4e{"symbol": "MSFT"}', False),
        ("qwen3_coder", "get_stock_price symbol MSFT", False),  # its markers are ordinary text, which stays
        ("detect", MISTRAL_REMAINS, False),
    ],
)
def test_expected_calls_without_special_tokens_are_found(dialect: str, text: str, expected: bool) -> None:
    expected_reply = ideal_reply(find_sample("one-of-many-06"))
    assert contains_bare_reply(text, expected_reply, get_dialect(dialect)) is expected


@pytest.mark.parametrize("dialect", ["deepseek_v32", "gemma4", "kimi_k3", "mistral_v11"])
def test_lost_special_tokens_are_seen_without_raw_text(dialect: str) -> None:
    fault = ENGINE_FAULTS["parser-off-no-tokens"]
    attributions = asyncio.run(attribute_failures(fault, dialect, "provider", QUICK_SAMPLES))
    assert {(attribution.cause, attribution.confidence) for _, attribution in attributions} == {
        ("engine-parser", "certain")
    }
