"""Checks of replies and tool calls."""

from __future__ import annotations

from interlingua.dialects.native_text import parse
from interlingua.gateway.upstream.listed_models import MISSING_STATUSES
from interlingua.upstreams.refusals import recognize_refusal
from interlingua.verification.attribution import Attribution
from interlingua.verification.attribution.token_counts import TokenRatio, native_size
from interlingua.verification.doctor.check import CheckResult, odd_result, ok_result, skipped_result, wrong_result
from interlingua.verification.doctor.probe import MAX_REPLY_TOKENS, Probe
from interlingua.verification.doctor.probe_samples import CALL, COUNTING, PARALLEL, choice_sample
from interlingua.verification.doctor.server_checks import LOG_HINT, TRY_LATER_HINT
from interlingua.verification.engine_flags import fitting_parsers, parser_flags, template_advice, unparsed_start
from interlingua.verification.judging.failure import Failure
from interlingua.verification.judging.judge import LENGTH_REASONS, judge, judge_corrected
from interlingua.verification.judging.observation import Observation, offered_tools
from interlingua.verification.recording import Recording
from interlingua.verification.reply_reading import describe_unreadable
from interlingua.verification.run.preflight import URL_HINT
from interlingua.verification.samples.sample import Sample

__all__ = [
    "RATE_LIMIT_HINT",
    "RIGHT_CALL",
    "UNREADABLE",
    "check_calls",
    "check_choices",
    "check_parallel",
    "check_special_tokens",
    "check_stream",
    "check_template",
    "describe_error",
]

MIN_EVENTS = 12
"""Events that do not arrive together by chance."""
MIN_BUFFERED_SECONDS = 0.2
"""Time in which no model writes these events, so that something has collected them."""
MIN_TOKENS_OF_TOOLS = 20
"""Tokens that the two tools of the doctor take at least."""
MAX_ERROR_CHARS = 160
RATE_LIMIT_HINT = "try again later, or with --parallel 1"
RIGHT_CALL = "the call is right"
UNREADABLE = "the reply is not JSON"
CORRECTED = "works with Interlingua"
MIN_TOKENS_AT_LIMIT = MAX_REPLY_TOKENS * 9 // 10
"""Tokens from which on a reply has reached the limit: counts of servers differ a little."""
UNPARSED = {"skip_special_tokens": False}
"""Fields with which vLLM and SGLang send special tokens as text."""


def describe_error(observation: Observation) -> str:
    """Return status and message of a failed request, shortened."""
    recording = observation.recording
    error = observation.reply.error
    shortened = error if len(error) <= MAX_ERROR_CHARS else f"{error[:MAX_ERROR_CHARS]}…"
    return f"{recording.status}: {shortened}" if recording.status else shortened


def _describe_rate_limit(observation: Observation) -> str:
    delay = observation.recording.retry_after
    wait = f"; it asks to wait {delay:,.0f} s" if delay else ""
    return f"the server limits requests (status {describe_error(observation)}){wait}"


def _fix_for_status(recording: Recording) -> str:
    """Return what helps against the status of a simple request."""
    status = recording.status
    if status in (401, 402, 403):
        return "check the key, and the account at the provider"
    if status in MISSING_STATUSES:
        return "check --api, --model, and the URL, which ends in /v1 for most servers"
    return TRY_LATER_HINT if status >= 500 else LOG_HINT if not status else ""


def _is_too_short(observation: Observation) -> bool:
    """Return whether the reply has used all tokens that the request allows. Some providers end replies earlier."""
    tokens = observation.reply.output_tokens
    return observation.reply.finish_reason in LENGTH_REASONS and (not tokens or tokens >= MIN_TOKENS_AT_LIMIT)


async def check_stream(probe: Probe) -> CheckResult:
    """Check that a reply streams, ends properly and has its usage."""
    observation = await probe.ask(COUNTING, stream=True)
    recording, reply = observation.recording, observation.reply
    if recording.status == 429:
        return wrong_result("stream", _describe_rate_limit(observation), RATE_LIMIT_HINT)
    if not recording.is_success:
        return wrong_result(
            "stream", f"a simple request fails: {describe_error(observation)}", _fix_for_status(recording)
        )
    if reply.error:
        return wrong_result("stream", reply.error, LOG_HINT if recording.error else "")
    if reply.unreadable_events:
        return wrong_result("stream", describe_unreadable(recording, reply), URL_HINT if not reply.has_ended else "")
    if not recording.content_type.startswith("text/event-stream"):
        return odd_result(
            "stream", f"a stream was requested, and {recording.content_type} came", "Interlingua converts it"
        )
    if not reply.has_ended or not reply.finish_reason:
        return _without_finish_reason(observation)
    # The first reply of a server may come late for other reasons.
    if _is_collected(probe, observation) and _is_collected(probe, await probe.ask(COUNTING, stream=True)):
        return odd_result(
            "stream", "all events arrive at once", "look for a proxy that buffers: for nginx, proxy_buffering off"
        )
    usage = "" if reply.output_tokens else ", without usage"
    first = f"first text after {1000 * reply.first_content_seconds:.0f} ms" if reply.text else "no text"
    return ok_result("stream", f"{reply.events} events, {first}{usage}")


def _without_finish_reason(observation: Observation) -> CheckResult:
    """Return what is wrong with a stream without a finish reason: it is cut, or only Interlingua can read its end."""
    corrected = observation.corrected
    if corrected.failure is not None or not corrected.text:
        return wrong_result("stream", "the stream ends without a finish reason", "look for a proxy that cuts streams")
    message = next((finding.message for finding in corrected.findings), "its end has no finish reason")
    return odd_result("stream", message, f"{CORRECTED}; report it to the provider, or look for a proxy")


def _is_collected(probe: Probe, observation: Observation) -> bool:
    """Return whether all events of a stream have arrived together, after the time that a model needs to write them."""
    reply = observation.reply
    waited = reply.first_event_seconds - probe.target.facts.listing.seconds  # without the delay of the network
    is_together = reply.events >= MIN_EVENTS and len(observation.recording.arrivals) == 1
    return is_together and waited >= MIN_BUFFERED_SECONDS


async def check_calls(probe: Probe) -> list[CheckResult]:
    """Check that the model calls a tool, in a stream and whole, and that the server parses the call."""
    results = []
    for stream, name in ((True, "tool call, stream"), (False, "tool call, whole")):
        observation = await probe.ask(CALL, stream=stream)
        results.append(await _judge_call(probe, observation, CALL, name))
    return [*results, *_check_parser_name(probe)]


def _check_parser_name(probe: Probe) -> list[CheckResult]:
    """Return what is odd about the tool parser of a server that names it. A wrong parser may get easy calls right."""
    facts, fitting = probe.target.facts, fitting_parsers(probe.target.facts.engine, probe.dialect.name)
    if not facts.tool_parser or not fitting or facts.tool_parser in fitting:
        return []
    message = f"{facts.tool_parser}, which is that of other models"
    return [odd_result("tool parser", message, f"for this model use --tool-call-parser {fitting[0]}")]


async def _judge_call(probe: Probe, observation: Observation, sample: Sample, name: str) -> CheckResult:
    judgement = judge(observation, sample)
    if judgement.is_right:
        return ok_result(name, RIGHT_CALL)
    if _is_too_short(observation):
        return odd_result(
            name, f"the reply is longer than {MAX_REPLY_TOKENS} tokens: the model thinks for long; not judged"
        )
    refusal = recognize_refusal(observation.recording.status, observation.reply.error)
    if refusal is not None and refusal.kind == "no-tool-parser":
        return odd_result(
            name, "the server has no tool parser, and refuses tools", _fix_for_corrected(probe, "engine-parser")
        )
    if not observation.recording.is_success:
        return wrong_result(name, f"a request with tools fails: {describe_error(observation)}")
    attribution = await probe.explain(sample, observation)
    if judge_corrected(observation, sample).is_right:
        return _corrected_call(probe, observation, attribution, name)
    return _lost_call(probe, attribution, name)


def _corrected_call(probe: Probe, observation: Observation, attribution: Attribution, name: str) -> CheckResult:
    is_text = attribution.cause == "engine-parser" and len(observation.corrected.calls) > len(observation.reply.calls)
    place = "as text" if is_text else "damaged"
    message = f"the call arrives {place}: {attribution.reasons[0]}"
    return odd_result(name, message, _fix_for_corrected(probe, attribution.cause))


def _lost_call(probe: Probe, attribution: Attribution, name: str) -> CheckResult:
    facts = probe.target.facts
    failure, *evidence = attribution.reasons
    label = "Cause" if attribution.confidence == "certain" else "Likely cause"
    explained = "; ".join([f"{failure}. {label}: {attribution.cause.replace('-', ' ')}", *evidence])
    flags = parser_flags(facts.engine, probe.dialect.name)
    return wrong_result(name, explained, _fix_for(attribution.cause, facts.engine, flags))


def _fix_for_corrected(probe: Probe, cause: str) -> str:
    """Return what helps other clients if Interlingua delivers the right calls."""
    facts = probe.target.facts
    flags = parser_flags(facts.engine, probe.dialect.name)
    if cause == "engine-parser":
        return f"works with Interlingua; for other clients start the server with {flags}" if flags else CORRECTED
    others = "update the server" if facts.engine else "report it to the provider"
    return f"{CORRECTED}; for other clients look for a proxy that changes replies, or {others}"


def _fix_for(cause: str, engine: str, flags: str) -> str:
    match cause:
        case "engine-parser" if unparsed := unparsed_start(engine):
            own = f"with {flags}, or " if flags else ""
            return f"start the server {own}{unparsed}: then Interlingua reads the text"
        case "engine-parser":
            return "only the server's operator can correct it: use another tool parser, or another provider"
        case "template":
            return template_advice(engine)
        case "model":
            return "run `interlingua verify` to see how often this happens"
        case "transport":
            return (
                "look for a proxy in between, or use another provider; `interlingua verify` shows how often it happens"
            )
        case _:
            return "run `interlingua verify` for details"


async def check_template(probe: Probe) -> CheckResult:
    """Check that the prompt grows with the tools."""
    with_tools = await probe.ask(CALL, stream=False, max_tokens=1, tool_choice="none")
    without_tools = await probe.ask(CALL, stream=False, max_tokens=1, tools=None)
    tokens, base = with_tools.reply.input_tokens, without_tools.reply.input_tokens
    if not tokens or not base:
        return skipped_result("tools in prompt", _reason_without_tokens(with_tools, without_tools))
    if tokens - base < MIN_TOKENS_OF_TOOLS:
        as_auto = await probe.ask(CALL, stream=False, max_tokens=1)  # some servers hide tools that may not be called
        tokens = as_auto.reply.input_tokens or tokens
    if tokens - base < MIN_TOKENS_OF_TOOLS:
        message = f"the prompt has {tokens} tokens with two tools, and {base} without them"
        return wrong_result("tools in prompt", message, template_advice(probe.target.facts.engine))
    return ok_result("tools in prompt", f"two tools take {tokens - base} tokens")


def _reason_without_tokens(*observations: Observation) -> str:
    """Return why replies have no number of prompt tokens."""
    for observation in observations:
        if not observation.recording.is_success:
            return f"not known: {describe_error(observation)}"
        if observation.reply.unreadable_events:
            return UNREADABLE
    return "the server does not count prompt tokens"


async def check_special_tokens(probe: Probe) -> CheckResult:
    """Check that special tokens reach the client as text, which Interlingua needs if the server has no parser."""
    engine, tokens = probe.target.facts.engine, probe.dialect.tokens
    if engine not in ("vllm", "sglang") or not tokens:
        reason = "only vLLM and SGLang can be asked for them" if tokens else "the dialect has none, or is unknown"
        return skipped_result("special tokens", reason)
    observation = await probe.ask(CALL, stream=False, extra=UNPARSED, tool_choice="none")
    if not observation.recording.is_success:
        return odd_result("special tokens", f"a request for raw text fails: {describe_error(observation)}")
    text = observation.reply.reasoning + observation.reply.text
    if parse(text, probe.dialect, offered_tools(CALL)).calls or any(token in text for token in tokens):
        return ok_result("special tokens", "come through with skip_special_tokens: false")
    if engine == "sglang":
        return skipped_result("special tokens", "the server hides the tools if none may be called")
    fix = "set extra: {skip_special_tokens: false}, and start vLLM without --exclude-tools-when-tool-choice-none"
    return odd_result("special tokens", "the raw text of a call has none of the model's markers", fix)


async def check_choices(probe: Probe) -> CheckResult:
    """Check `tool_choice`: required, a named tool, and none."""
    problems, refused = [], []
    for mode in ("required", "named", "none"):
        sample = choice_sample(mode)
        observation = await probe.ask(sample, stream=False)
        if not observation.recording.is_success:
            refused.append(f"{mode} ({describe_error(observation)})")
        elif _is_too_short(observation):
            continue
        elif not judge(observation, sample).is_right:
            corrected = judge_corrected(observation, sample)
            problems += [_choice_problem(mode, failure) for failure in corrected.failures[:1]]
    if refused and any("requires --" in text for text in refused):
        return odd_result(
            "tool_choice", "refused: the server has no tool parser", "Interlingua sends none and reads the text"
        )
    if refused or problems:
        message = "; ".join([*problems, *(f"refused: {text}" for text in refused)])
        return odd_result("tool_choice", message, "Interlingua's profile of the upstream relaxes it; set `profile`")
    return ok_result("tool_choice", "required, named and none work")


def _choice_problem(mode: str, failure: Failure) -> str:
    is_ignored = failure.kind in ("no-call", "unwanted-call", "wrong-tool")
    return f"{mode} is ignored" if is_ignored else f"{mode}: {failure.message}"


async def check_parallel(probe: Probe) -> CheckResult:
    """Check that two calls arrive in one reply."""
    name = "parallel calls"
    observation = await probe.ask(PARALLEL, stream=True)
    judgement = judge(observation, PARALLEL)
    if judgement.is_right:
        return ok_result(name, "two calls in one reply")
    if not observation.recording.is_success:
        return odd_result(name, f"not tried: {describe_error(observation)}")
    if _is_too_short(observation):
        return skipped_result(name, f"the reply is longer than {MAX_REPLY_TOKENS} tokens")
    is_missing = judgement.failures[0].kind == "missing-call"
    ratio = await _measure_ratio(probe) if is_missing else None
    attribution = await probe.explain(PARALLEL, observation, ratio)
    if judge_corrected(observation, PARALLEL).is_right:
        return _corrected_call(probe, observation, attribution, name)
    if attribution.cause != "model":
        return _lost_call(probe, attribution, name)
    if is_missing:
        return odd_result(name, "the model makes one call at a time", "agents work, with more turns")
    return odd_result(
        name, f"{judgement.failures[0].message}. Likely cause: model", "run `interlingua verify` for details"
    )


async def _measure_ratio(probe: Probe) -> TokenRatio | None:
    """Return the tokens of a call for each byte, with which the tokens of two calls are compared."""
    observation = await probe.ask(CALL, stream=True)
    tokens, size = observation.reply.output_tokens, native_size(observation.reply, probe.dialect)
    return TokenRatio(tokens / size) if tokens and judge(observation, CALL).is_right else None
