"""Judge: the failures in a reply, for a client that corrects nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from interlingua.common.jsontext.codec import explain_invalid_object, read_full_object
from interlingua.common.schema.resolver import as_mapping
from interlingua.common.schema.validation import validation_errors
from interlingua.core.reply import Reply
from interlingua.core.tools import ToolSet
from interlingua.errors import BadInput
from interlingua.verification.judging.argument_match import describe_difference, pair_calls
from interlingua.verification.judging.failure import Failure, Judgement
from interlingua.verification.judging.observation import Observation, offered_tools, requested_choice
from interlingua.verification.judging.text_checks import has_cyrillic, names_parameters_in_order, repeats_itself
from interlingua.verification.reply_reading import ClientCall, ClientReply, describe_unreadable
from interlingua.verification.samples.sample import Sample

__all__ = ["ODD_FINDINGS", "are_calls_right", "judge", "judge_corrected", "valid_calls"]

REFUSAL_STATUSES = range(400, 500)
RETRYABLE_CLIENT_STATUSES = frozenset({408, 425, 429})
"""Statuses from 400 on that say nothing about the request."""
LENGTH_REASONS = frozenset({"length", "max_tokens", "max_output_tokens"})
PROMPT_TOKEN_TOLERANCE = 3
"""Tokens that Kimi-Vendor-Verifier allows above the expected number."""
ODD_FINDINGS = frozenset(
    {
        *("no-index", "renumbered", "no-type", "repeated-id", "changed-id", "repeated-name", "arguments-as-value"),
        *("resent-arguments", "function-call", "after-stop", "after-end", "unknown-finish-reason", "wrapped-chunk"),
        *("whole-reply", "streamed-reply", "empty-event", "half-character", "not-utf-8", "block-not-closed"),
        *("shared-index", "after-arguments", "unwrapped-arguments", "stray-delta", "no-message-start", "repeated-item"),
    }
)
"""Findings that some clients survive and others do not."""


def judge(observation: Observation, sample: Sample) -> Judgement:
    """Return the failures of a reply as a plain client reads it."""
    recording, reply = observation.recording, observation.reply
    if not recording.is_success:
        is_refusal = recording.status in REFUSAL_STATUSES and recording.status not in RETRYABLE_CLIENT_STATUSES
        status = f"{recording.status}: " if recording.status else ""
        return Judgement((Failure("refused" if is_refusal else "no-reply", f"{status}{reply.error}"),))
    failures = [
        *_delivery_failures(observation),
        *_content_failures(reply.calls, reply, sample, has_text=bool(reply.text.strip())),
        *_finish_failures(reply),
        *_text_failures(observation, sample),
        *_requested_checks(reply, sample),
    ]
    if any(failure.kind in ("no-call", "missing-call") for failure in failures):  # which says the same
        failures = [failure for failure in failures if failure.kind != "call-in-text"]
    oddities = dict.fromkeys(finding.kind for finding in observation.findings if finding.kind in ODD_FINDINGS)
    return Judgement(tuple(sorted(failures, key=lambda failure: failure.rank)), tuple(oddities))


def judge_corrected(observation: Observation, sample: Sample) -> Judgement:
    """Return the failures of the same reply as Interlingua delivers it."""
    recording, corrected = observation.recording, observation.corrected
    if not recording.is_success:
        return judge(observation, sample)
    reply = _as_client_reply(corrected, observation.reply)
    calls = [ClientCall(call.id, call.name, call.arguments) for call in corrected.calls]
    failures = [
        *([Failure("cut", corrected.failure.message)] if corrected.failure else []),
        *_content_failures(calls, reply, sample, has_text=bool(corrected.text.strip())),
    ]
    return Judgement(tuple(sorted(failures, key=lambda failure: failure.rank)))


def _as_client_reply(corrected: Reply, plain: ClientReply) -> ClientReply:
    return msgspec.structs.replace(
        plain,
        text=corrected.text,
        reasoning=corrected.reasoning,
        finish_reason=corrected.stop_reason or "",
    )


# ── delivery ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _delivery_failures(observation: Observation) -> Iterator[Failure]:
    reply = observation.reply
    if reply.unreadable_events and not observation.recording.error:  # which is the reason
        yield Failure("bad-event", describe_unreadable(observation.recording, reply))
    if reply.error:
        yield Failure("error-in-reply", reply.error)
    elif not reply.has_ended and not reply.unreadable_events:
        yield Failure("cut", "the stream ends without a finish reason")
    ids = [call.id for call in reply.calls]
    if missing := sum(not id for id in ids):
        yield Failure("call-id", f"{missing} of {len(ids)} calls have no id")
    elif len(set(ids)) < len(ids):
        yield Failure("call-id", f"{len(ids)} calls share {len(set(ids))} ids")


def _finish_failures(reply: ClientReply) -> Iterator[Failure]:
    if reply.error or not reply.has_ended or reply.finish_reason in LENGTH_REASONS:
        return
    if not reply.finish_reason:
        yield Failure("finish-reason", "there is no finish reason")
    elif bool(reply.calls) != reply.wants_tools:
        count = len(reply.calls)
        calls = "no call" if not count else "1 call" if count == 1 else f"{count} calls"
        yield Failure("finish-reason", f"the finish reason is {reply.finish_reason!r} with {calls}")


# ── content ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _content_failures(
    calls: Sequence[ClientCall], reply: ClientReply, sample: Sample, *, has_text: bool
) -> Iterator[Failure]:
    if reply.finish_reason in LENGTH_REASONS:
        yield Failure("length", f"the finish reason is {reply.finish_reason!r} after {reply.output_tokens} tokens")
    elif not calls and not has_text and not reply.error:
        kind = "only-thinking" if reply.reasoning.strip() else "empty"
        thinking = f"{len(reply.reasoning)} characters of thinking" if kind == "only-thinking" else "no thinking"
        yield Failure(kind, f"{thinking}, no text, no call")
    tools = offered_tools(sample)
    yield from _expectation_failures(calls, sample, tools)
    for call in calls:
        yield from _call_failures(call, tools)


def are_calls_right(calls: Sequence[ClientCall], sample: Sample) -> bool:
    """Return whether these are the expected calls, with arguments that fit their schemas."""
    tools = offered_tools(sample)
    failures = [*_expectation_failures(calls, sample, tools)]
    return not failures and not any(True for call in calls for _ in _call_failures(call, tools))


def valid_calls(calls: Sequence[ClientCall], sample: Sample) -> bool:
    """Return whether there are calls, and all of them are of offered tools and fit their schemas."""
    tools = offered_tools(sample)
    return bool(calls) and not any(True for call in calls for _ in _call_failures(call, tools))


def _call_failures(call: ClientCall, tools: ToolSet) -> Iterator[Failure]:
    """Yield what is wrong with one call, whatever was expected."""
    tool = tools.get(call.name)
    if tool is None:
        yield Failure("unknown-tool", f"{call.name!r} was not offered")
        return
    arguments = read_full_object(call.arguments)
    if arguments is None:
        yield Failure("bad-json", f"arguments of {call.name}: {explain_invalid_object(call.arguments)}")
        return
    try:
        problems = validation_errors(arguments, tool.schema, tool.name) if tool.schema else []
    except BadInput:  # our validator cannot use the schema, so that nothing can be said
        problems = []
    if problems:
        yield Failure("schema", f"arguments of {call.name}: {problems[0]}")


def _expectation_failures(calls: Sequence[ClientCall], sample: Sample, tools: ToolSet) -> Iterator[Failure]:
    expect, choice = sample.expect, requested_choice(sample)
    is_required = choice is not None and choice.mode == "required"
    if calls and (expect.reply == "text" or (choice is not None and choice.mode == "none")):
        yield Failure("unwanted-call", _state_calls([call.name for call in calls]))
    elif not calls and (expect.reply == "calls" or (is_required and not tools.is_empty)):
        expected = [call.name for call in expect.calls]
        yield Failure("no-call", _state_calls(expected, "no") if expected else "there is no call")
    elif expect.reply == "calls" and expect.calls:
        yield from _difference_failures(calls, sample)
    elif choice is not None and is_required and choice.names and any(call.name not in choice.names for call in calls):
        names = ", ".join(call.name for call in calls)
        yield Failure("wrong-tool", f"the tool choice names {choice.names[0]}, the call is of {names}")


def _state_calls(names: Sequence[str], word: Literal["", "no", "also"] = "") -> str:
    """Return a statement on calls, such as `there is also a call of ls` or `there are no calls of ls, cat`."""
    article = "" if word == "no" or len(names) > 1 else "a"
    words = ("there", "is" if len(names) == 1 else "are", word, article, "call" if len(names) == 1 else "calls")
    return f"{' '.join(filter(None, words))} of {', '.join(names)}"


def _difference_failures(calls: Sequence[ClientCall], sample: Sample) -> Iterator[Failure]:
    """Yield the differences between the calls and the expected ones."""
    expected = sample.expect.calls
    pairs = pair_calls(expected, [(call.name, call.arguments) for call in calls])
    missing = [wanted.name for wanted, number in zip(expected, pairs, strict=True) if number is None]
    surplus = [call.name for number, call in enumerate(calls) if number not in pairs]
    if missing and surplus:
        yield Failure("wrong-tool", f"called {', '.join(surplus)} instead of {', '.join(missing)}")
    elif missing:
        yield Failure("missing-call", f"missing: {', '.join(missing)}")
    elif surplus:
        yield Failure("unwanted-call", _state_calls(surplus, "also"))
    for wanted, number in zip(expected, pairs, strict=True):
        arguments = read_full_object(calls[number].arguments) if number is not None else None
        if arguments is not None and (difference := describe_difference(wanted.arguments or {}, arguments)):
            yield Failure("wrong-arguments", f"arguments of {wanted.name}: {difference}")


# ── text ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _text_failures(observation: Observation, sample: Sample) -> Iterator[Failure]:
    """Yield a failure if the text contains calls or their markers."""
    hidden = len(observation.corrected.calls) - len(observation.reply.calls)
    if hidden > 0 and sample.expect.reply != "text":
        yield Failure(
            "call-in-text", "the text contains a call" if hidden == 1 else f"the text contains {hidden} calls"
        )
    elif observation.leaked_marker:
        yield Failure("call-in-text", f"the text contains the marker {observation.leaked_marker}")


def _requested_checks(reply: ClientReply, sample: Sample) -> Iterator[Failure]:
    tokens, expected = reply.input_tokens, sample.prompt_tokens
    if expected and not expected <= tokens <= expected + PROMPT_TOKEN_TOLERANCE:
        yield Failure("prompt-tokens", f"{tokens} prompt tokens instead of {expected}")
    if "contains_russian_characters_unicode" in sample.checks and has_cyrillic(reply.text):
        yield Failure("language", "the text has Cyrillic characters")
    if "repeat_n_gram" in sample.checks and repeats_itself(reply.text):
        yield Failure("repetition", "three characters occur four times or more")
    if "scenario_check" in sample.checks and not names_parameters_in_order(reply.text, _first_parameters(sample)):
        yield Failure("parameter-order", "the text names the parameters of the tool in another order than the request")


def _first_parameters(sample: Sample) -> list[str]:
    """Return the parameters of the first tool, in their order."""
    first = next(iter(offered_tools(sample).tools), None)
    return list(as_mapping(first.schema.get("properties"))) if first else []
