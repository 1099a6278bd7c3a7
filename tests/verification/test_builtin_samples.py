"""The built-in set: complete, consistent, and right replies to it pass."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from interlingua.common.schema.validation import validation_errors
from interlingua.dialects.registry import get_dialect
from interlingua.faults.engines import ScriptedEngine
from interlingua.verification.judging.judge import judge, judge_corrected
from interlingua.verification.judging.observation import observe, offered_tools
from interlingua.verification.probing.engine_sender import EngineSender
from interlingua.verification.probing.request_writer import RequestWriter
from interlingua.verification.samples.answer_key import AnswerKey
from interlingua.verification.samples.builtin import builtin_samples
from interlingua.verification.samples.sample import Sample

SAMPLES = builtin_samples()


def test_the_set_has_a_hundred_conversations_of_every_category() -> None:
    assert len(SAMPLES) == 100
    assert len({sample.id for sample in SAMPLES}) == 100
    assert Counter(sample.category for sample in SAMPLES).keys() == {
        *("one-of-many", "none-fitting", "tool-choice", "parallel", "empty-arguments", "sequential", "tool-errors"),
        *("thinking", "nested", "odd-schemas", "numbers", "non-ascii", "long-strings", "code"),
    }


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.id)
def test_expected_calls_fit_their_schemas(sample: Sample) -> None:
    tools = offered_tools(sample)
    for wanted in sample.expect.calls:
        tool = tools.get(wanted.name)
        assert tool is not None
        assert wanted.arguments is not None
        assert validation_errors(wanted.arguments, tool.schema, tool.name) == []


@pytest.mark.one_row_in(11)
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("wire", ["openai-chat", "anthropic-messages", "openai-responses"])
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.id)
def test_right_replies_pass_on_every_wire(sample: Sample, wire: str, stream: bool) -> None:
    dialect = get_dialect("kimi_k2")
    sender = EngineSender(ScriptedEngine("m", dialect, AnswerKey(SAMPLES)), wire)
    body = RequestWriter(wire, "m").write(sample, stream=stream)
    observation = observe(asyncio.run(sender.send(body, stream=stream)), sample, dialect)
    assert judge(observation, sample).failures == ()
    assert judge_corrected(observation, sample).failures == ()
