"""Checks of features: system messages, thinking replay, images, structured output, and the other APIs."""

from __future__ import annotations

from interlingua.common.jsontext.codec import read_full_object
from interlingua.gateway.upstream.listed_models import MISSING_STATUSES
from interlingua.upstreams.refusals import recognize_refusal
from interlingua.verification.doctor.call_checks import RIGHT_CALL, UNREADABLE, describe_error
from interlingua.verification.doctor.check import CheckResult, odd_result, ok_result, skipped_result, wrong_result
from interlingua.verification.doctor.probe import Probe
from interlingua.verification.doctor.probe_samples import (
    CALL,
    IMAGE,
    JSON_ANSWER,
    STRUCTURAL_TAG,
    STRUCTURAL_TAG_FORMAT,
    SYSTEM_MESSAGE,
    THINKING_REPLAY,
)
from interlingua.verification.engine_flags import template_advice
from interlingua.verification.judging.judge import LENGTH_REASONS, judge, judge_corrected
from interlingua.verification.judging.observation import Observation
from interlingua.verification.probing.server_facts import GATEWAY
from interlingua.wires import WIRES

__all__ = [
    "check_api",
    "check_images",
    "check_structured_output",
    "check_system_message",
    "check_thinking_replay",
    "other_apis",
    "short_name",
]

RED_WORDS = ("red", "crimson", "scarlet", "红", "紅")
TOO_LONG = "the reply is too long to be judged"
MIN_TOKENS_OF_THINKING = 20
"""Tokens that the past thinking of the doctor takes at least."""


async def check_system_message(probe: Probe) -> CheckResult:
    """Check that a system message is accepted, which every agent sends."""
    observation = await probe.ask(SYSTEM_MESSAGE, stream=False)
    if observation.recording.is_success:
        return ok_result("system message", "accepted")
    fix = f"agents send one with each request: {template_advice(probe.target.facts.engine)}"
    return wrong_result("system message", f"refused: {describe_error(observation)}", fix)


async def check_thinking_replay(probe: Probe) -> CheckResult:
    """Check that past thinking is accepted, and whether it is in the prompt."""
    with_thinking = await probe.ask(THINKING_REPLAY, stream=False)
    if not with_thinking.recording.is_success:
        refusal = recognize_refusal(with_thinking.recording.status, with_thinking.reply.error)
        if refusal is not None and refusal.kind == "no-tool-parser":
            return skipped_result("thinking replay", "the server refuses tools")
        return odd_result(
            "thinking replay", f"refused: {describe_error(with_thinking)}", "set `profile` of the upstream"
        )
    messages = [
        {name: value for name, value in message.items() if name != "reasoning_content"}
        for message in THINKING_REPLAY.request["messages"]
    ]
    without = await probe.ask(THINKING_REPLAY, stream=False, messages=messages, max_tokens=1)
    if not without.recording.is_success:
        return ok_result("thinking replay", "accepted, and needed: without it the request is refused")
    tokens = with_thinking.reply.input_tokens - without.reply.input_tokens
    if not with_thinking.reply.input_tokens or not without.reply.input_tokens:
        return ok_result("thinking replay", "accepted")
    in_prompt = "it is in the prompt" if tokens >= MIN_TOKENS_OF_THINKING else "the template leaves it out"
    return ok_result("thinking replay", f"accepted; {in_prompt}")


async def check_images(probe: Probe) -> CheckResult:
    observation = await probe.ask(IMAGE, stream=False)
    if observation.reply.unreadable_events:
        return skipped_result("images", UNREADABLE)
    if observation.recording.is_success:
        return _judge_colour(probe, observation)
    if observation.recording.status in (0, 429) or observation.recording.status >= 500:
        return odd_result("images", f"not known: {describe_error(observation)}")
    return ok_result("images", "not accepted; Interlingua replaces them by a text (`vision: false` for the model)")


def _judge_colour(probe: Probe, observation: Observation) -> CheckResult:
    """Return whether the model sees the image. Servers may also leave it out, or replace it by a text."""
    text = observation.corrected.text.lower()
    if any(word in text for word in RED_WORDS):
        return ok_result("images", "accepted, and the model sees them")
    if observation.reply.finish_reason in LENGTH_REASONS:
        return skipped_result("images", TOO_LONG)
    if probe.target.facts.engine == GATEWAY:
        return ok_result("images", "accepted; this gateway replaces them by a text if the model cannot see them")
    return odd_result(
        "images",
        "accepted, but the model does not name the colour of a red image",
        "if it cannot see images, set `vision: false` for it: then Interlingua replaces them by a text",
    )


async def check_structured_output(probe: Probe) -> list[CheckResult]:
    checks = []
    observation = await probe.ask(JSON_ANSWER, stream=False)
    if not observation.recording.is_success:
        checks.append(odd_result("JSON schema", f"refused: {describe_error(observation)}"))
    elif observation.reply.unreadable_events:
        checks.append(skipped_result("JSON schema", UNREADABLE))
    elif observation.reply.finish_reason in LENGTH_REASONS:
        checks.append(skipped_result("JSON schema", TOO_LONG))
    elif "answer" in (read_full_object(observation.corrected.text.strip()) or {}):
        checks.append(ok_result("JSON schema", "response_format is enforced"))
    else:
        checks.append(odd_result("JSON schema", "response_format is ignored", "ask for JSON in the prompt"))
    if probe.target.facts.engine in ("vllm", "sglang"):
        tagged = await probe.ask(STRUCTURAL_TAG, stream=False, extra={"response_format": STRUCTURAL_TAG_FORMAT})
        message = "accepted" if tagged.recording.is_success else f"refused: {describe_error(tagged)}"
        status = ok_result if tagged.recording.is_success else odd_result
        checks.append(status("structural tags", message))
    return checks


def short_name(wire: str) -> str:
    """Return the last word of a wire's name: chat, messages or responses."""
    return wire.rpartition("-")[2]


def other_apis(api: str) -> list[str]:
    """Return the APIs that an upstream may have beside this one."""
    return [wire for wire in WIRES if wire != api]


async def check_api(probe: Probe, wire: str) -> CheckResult:
    """Make one real call in another API of the upstream."""
    name = f"API {short_name(wire)}"
    observation = await probe.ask(CALL, stream=True, wire=wire)
    recording = observation.recording
    if recording.status in MISSING_STATUSES:
        return ok_result(name, "not there; Interlingua provides it")
    if not recording.is_success:
        return odd_result(name, f"a call fails: {describe_error(observation)}")
    if judge(observation, CALL).is_right:
        return ok_result(name, RIGHT_CALL)
    if judge_corrected(observation, CALL).is_right:
        return odd_result(
            name,
            f"the call is damaged: {judge(observation, CALL).failures[0].message}",
            "Interlingua corrects it",
        )
    if not observation.reply.events or observation.reply.unreadable_events:
        return ok_result(name, "not there; Interlingua provides it")
    return wrong_result(name, judge(observation, CALL).failures[0].message, f"use {probe.target.route.upstream.api}")
