"""Attribution of a failure: model, template, engine parser, transport or client request, with the evidence.

The rules are tried in this order, and each needs less certain evidence than the one before:

1. The kind of the failure or the error message names the cause.
2. The reply itself contains the lost call, as text or in a damaged structure.
3. A repetition shows what the model wrote, and that is right: the call was lost after the model.
4. The prompt does not contain the tools, or does not grow with them: the template does not show them.
5. A repetition shows that the model wrote what was delivered.
6. The stream, its token counts or its end show damage.
7. Otherwise the model is at fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from interlingua.common.jsontext.codec import read_full_object, read_json, write_json
from interlingua.common.jsontext.scanner import JsonScanner
from interlingua.core.reply import Part, Reasoning, Reply, Text
from interlingua.dialects.native_text import parse
from interlingua.parsing.dialect import Dialect
from interlingua.verification.attribution.bare_calls import contains_bare_reply, find_bare_calls
from interlingua.verification.attribution.causes import Cause, Confidence
from interlingua.verification.attribution.delivery_hypotheses import explain_damage
from interlingua.verification.attribution.error_causes import cause_of_error
from interlingua.verification.attribution.evidence import Evidence, EvidenceKind, PromptCheck, Repetition
from interlingua.verification.attribution.token_counts import native_size
from interlingua.verification.judging.failure import Judgement
from interlingua.verification.judging.judge import are_calls_right, judge_corrected
from interlingua.verification.judging.observation import Observation, offered_tools, requested_choice
from interlingua.verification.reply_reading import ClientCall, ClientReply
from interlingua.verification.samples.answer_key import ideal_reply
from interlingua.verification.samples.sample import Sample

__all__ = ["Attribution", "attribute", "missing_evidence"]

_ERROR_KINDS = frozenset({"refused", "no-reply", "error-in-reply"})
_DELIVERY_KINDS = frozenset({"cut", "bad-event", "call-id", "finish-reason"})
_FIXED_CAUSES: dict[str, tuple[Cause, str]] = {
    "prompt-tokens": ("template", "the prompt has another number of tokens than the reference"),
    "language": ("model", "the text is in another language, which wrong sampling settings of the server can cause"),
    "repetition": ("model", "the text repeats itself, which wrong sampling settings of the server can cause"),
    "parameter-order": ("template", "the server may sort the keys of the tools before the model sees them"),
}
_PARSER_FINDINGS = frozenset({"unwrapped-arguments", "renamed", "call-in-text"})
"""Findings in structured calls that only a parser causes; the others come from the delivery."""
_UNKNOWN_TOOL_FINDINGS = frozenset({"not-a-tool", "unknown-tool"})
MIN_TOKENS_PER_TOOL = 4
"""Tokens that any template needs to show a tool: its name and the punctuation around it."""
MIN_SWALLOWED_TOKENS = 8
MAX_STREAM_REPETITIONS = 2
UNTYPED_SHAPE = "tagged_params"
"""Shape of the dialects that write all values as text."""


class Attribution(msgspec.Struct, frozen=True, kw_only=True):
    cause: Cause
    kind: str
    """Kind of the failure."""
    confidence: Confidence = "certain"
    reasons: tuple[str, ...] = ()
    """The evidence, in words."""
    raw_text: str = ""
    """Text that the model wrote or the server delivered, as far as it is known."""


def attribute(
    sample: Sample, observation: Observation, judgement: Judgement, evidence: Evidence, dialect: Dialect
) -> Attribution:
    """Return who caused the gravest failure of a reply.

    Args:
        sample: The sample that was sent.
        observation: The reply.
        judgement: The failures of the reply; at least one.
        evidence: What further requests have shown.
        dialect: The dialect of the model.
    """
    return _Case(sample, observation, judgement, evidence, dialect).attribute()


def missing_evidence(
    sample: Sample, observation: Observation, judgement: Judgement, evidence: Evidence, dialect: Dialect
) -> EvidenceKind | None:
    """Return the further request that would make the attribution more certain; None if none would."""
    return _Case(sample, observation, judgement, evidence, dialect).missing_evidence()


class _Case:
    """One failure."""

    def __init__(
        self, sample: Sample, observation: Observation, judgement: Judgement, evidence: Evidence, dialect: Dialect
    ) -> None:
        self._sample = sample
        self._observation = observation
        self._reply: ClientReply = observation.reply
        self._failure = judgement.failures[0]
        self._evidence = evidence
        self._dialect = dialect

    def missing_evidence(self) -> EvidenceKind | None:
        kind, evidence = self._failure.kind, self._evidence
        if kind == "refused":
            needs_control = evidence.control is None and self._named_error() is None
            return "control" if needs_control else None
        if kind in _ERROR_KINDS | _DELIVERY_KINDS or kind in _FIXED_CAUSES or self._lost_in_reply() is not None:
            return None
        if evidence.repetition is None:
            return "repetition"
        if self._needs_streams():
            return "streams"
        if evidence.prompt is None and self._lost_after_model() is None and self._sample.tools:
            return "prompt"
        return None

    def attribute(self) -> Attribution:
        rules: Iterable[Callable[[], Attribution | None]] = (
            self._named_cause,
            self._lost_in_reply,
            self._lost_after_model,
            self._hidden_by_template,
            self._written_by_model,
            self._called_unknown_tool,
            self._damaged_on_the_way,
            self._ignored_choice,
        )
        for rule in rules:
            if (attribution := rule()) is not None:
                return attribution
        varies = self._is_repetition_right() or any(judgement.is_right for judgement in self._evidence.streams)
        reason = (
            "a repetition is right: the model varies" if varies else "no sign that anything was lost after the model"
        )
        return self._result("model", reason, confidence="likely")

    def _result(
        self, cause: Cause, *reasons: str, confidence: Confidence = "certain", raw_text: str = ""
    ) -> Attribution:
        return Attribution(
            cause=cause,
            kind=self._failure.kind,
            confidence=confidence,
            reasons=tuple(filter(None, (self._failure.message, *reasons))),
            raw_text=raw_text,
        )

    # ── 1. named by the failure ───────────────────────────────────────────────────────────────────────────────────

    def _named_cause(self) -> Attribution | None:
        kind = self._failure.kind
        if kind in _FIXED_CAUSES:
            return self._result(*_FIXED_CAUSES[kind])
        if kind in _DELIVERY_KINDS:
            return self._result("transport", raw_text=self._delivered_text())
        if kind not in _ERROR_KINDS:
            return None
        named = self._named_error()
        if named is not None:
            return named
        return self._refused_request() if kind == "refused" else self._result("transport")

    def _named_error(self) -> Attribution | None:
        named = cause_of_error(self._observation.recording.status, self._reply.error)
        return self._result(*named) if named else None

    def _refused_request(self) -> Attribution:
        control = self._evidence.control
        if control is None:
            return self._result("client-request", confidence="likely")
        if control.is_accepted:
            return self._result("client-request", "the same conversation with a plain tool is accepted")
        return self._result(
            "client-request",
            f"the same conversation with a plain tool is refused, too: {control.message}",
            confidence="likely",
        )

    # ── 2. lost in the reply ──────────────────────────────────────────────────────────────────────────────────────

    def _lost_in_reply(self) -> Attribution | None:
        """Attribute a call that the reply contains, where a plain client does not find it."""
        corrected = self._observation.corrected
        if self._failure.kind == "call-in-text":
            return self._result("engine-parser", raw_text=self._delivered_text())
        text = self._delivered_text()
        if not judge_corrected(self._observation, self._sample).is_right:
            return self._lost_its_markers()
        if len(corrected.calls) > len(self._reply.calls) and not self._has_delivery_findings():
            place = "thinking" if self._reply.reasoning and not self._reply.text else "text"
            return self._result("engine-parser", f"the call is in the {place} of the reply", raw_text=text)
        kinds = dict.fromkeys(finding.kind for finding in (*self._observation.findings, *corrected.findings))
        if not _PARSER_FINDINGS.isdisjoint(kinds):
            return self._result("engine-parser", f"findings: {', '.join(kinds)}", raw_text=text)
        if self._has_delivery_findings():
            return self._result("transport", f"findings: {', '.join(kinds)}", raw_text=text)
        return None

    def _lost_its_markers(self) -> Attribution | None:
        """Attribute a call in the text whose special tokens the server has removed."""
        if self._reply.calls or self._sample.expect.reply == "text":
            return None
        text = f"{self._reply.reasoning}\n{self._reply.text}"
        calls = find_bare_calls(text, offered_tools(self._sample))
        is_found = bool(calls) and are_calls_right(calls, self._sample)
        if not is_found and not contains_bare_reply(text, ideal_reply(self._sample), self._dialect):
            return None
        return self._result("engine-parser", "the call is in the text, without its special tokens", raw_text=text)

    def _has_delivery_findings(self) -> bool:
        return any(finding.kind in _DELIVERY_FINDINGS for finding in self._observation.findings)

    def _delivered_text(self) -> str:
        reply = self._reply
        calls = "".join(f"\n{call.name} {call.arguments}" for call in reply.calls)
        return f"{reply.reasoning}{reply.text}{calls}".strip() or reply.error

    # ── 3. lost after the model ──────────────────────────────────────────────────────────────────────────────────

    def _is_raw_right(self, repetition: Repetition) -> bool:
        """Return whether the model's own text is a right reply."""
        reply = parse(repetition.raw_text or "", self._dialect, offered_tools(self._sample))
        calls = [ClientCall(call.id, call.name, call.arguments) for call in reply.calls]
        return are_calls_right(calls, self._sample) and (bool(calls) or bool(reply.text.strip()))

    def _lost_after_model(self) -> Attribution | None:
        """Attribute a reply that differs from what the model wrote."""
        repetition = self._evidence.repetition
        if repetition is None or repetition.raw_text is None or not self._is_raw_right(repetition):
            return None
        written = f"what the model wrote is right (seen in {repetition.source})"
        if repetition.is_same_reply and not repetition.judgement.is_right:
            problem = repetition.judgement.failures[0].message
            other_problem = f": {problem}" if problem != self._failure.message else ""
            reason = f"{written}, and the reply made of it is not{other_problem}"
            cause: Cause = "transport" if self._is_truncated() else "engine-parser"
            return self._result(cause, reason, self._truncation(), raw_text=repetition.raw_text)
        if damage := self._damage():
            return self._result("transport", written, damage, raw_text=repetition.raw_text)
        if self._observation.recording.stream and self._fails_in_every_stream():
            reason = f"{written}, and so is the whole reply: only streams are wrong, each time"
            return self._result("engine-parser", reason, confidence="likely", raw_text=repetition.raw_text)
        return None  # the repetition is right: the model may have written something else the first time

    def _needs_streams(self) -> bool:
        """Return whether the stream has to be requested again, because the whole reply is right."""
        streams = self._evidence.streams
        is_open = len(streams) < MAX_STREAM_REPETITIONS and all(not judgement.is_right for judgement in streams)
        return is_open and self._observation.recording.stream and self._is_repetition_right() and not self._damage()

    def _fails_in_every_stream(self) -> bool:
        streams = self._evidence.streams
        return bool(streams) and not any(judgement.is_right for judgement in streams)

    # ── 4. hidden by the template ─────────────────────────────────────────────────────────────────────────────────

    def _hidden_by_template(self) -> Attribution | None:
        repetition, prompt = self._evidence.repetition, self._evidence.prompt
        if not self._sample.tools:
            return None
        prompt_text = repetition.prompt_text if repetition else None
        words = _words_of_tools(self._sample) if prompt_text is not None else []
        if prompt_text is not None and words:
            is_shown = any(word in prompt_text for word in words)
            return None if is_shown else self._result("template", "the prompt does not describe the tools")
        if prompt is None or not _lacks_tools(prompt, len(self._sample.tools)):
            return None
        return self._result(
            "template",
            f"the prompt has {prompt.with_tools} tokens with the tools, and {prompt.without_tools} without them",
        )

    # ── 5. written by the model ───────────────────────────────────────────────────────────────────────────────────

    def _written_by_model(self) -> Attribution | None:
        """Attribute a reply whose faults the model wrote itself."""
        repetition = self._evidence.repetition
        if repetition is None or repetition.raw_text is None or self._is_raw_right(repetition):
            return None
        reason = f"the model wrote it so (seen in {repetition.source})"
        return self._result("model", reason, raw_text=repetition.raw_text)

    def _called_unknown_tool(self) -> Attribution | None:
        """Attribute a call of a tool that was not offered, which stayed in the text."""
        finding = next((f for f in self._observation.corrected.findings if f.kind in _UNKNOWN_TOOL_FINDINGS), None)
        if finding is None:
            return None
        return self._result("model", finding.message, confidence="likely", raw_text=self._delivered_text())

    # ── 6. damaged on the way ─────────────────────────────────────────────────────────────────────────────────────

    def _damaged_on_the_way(self) -> Attribution | None:
        text = self._delivered_text()
        if reason := self._damage():
            return self._result("transport", reason, raw_text=text)
        if reason := self._truncation():
            is_stream_only = self._fails_in_every_stream() and self._is_repetition_right()
            cause: Cause = "engine-parser" if is_stream_only else "transport"
            note = "the whole reply is complete" if is_stream_only else ""
            return self._result(cause, reason, note, confidence="likely", raw_text=text)
        if reason := self._untyped_values():
            return self._result("engine-parser", reason, confidence="likely", raw_text=text)
        if reason := self._swallowed_tokens():
            return self._result("engine-parser", reason, confidence="likely", raw_text=text)
        if self._fails_in_every_stream():
            reason = "the whole reply is right, and streams are wrong each time"
            return self._result("engine-parser", reason, confidence="likely", raw_text=text)
        return None

    def _is_repetition_right(self) -> bool:
        repetition = self._evidence.repetition
        return repetition is not None and repetition.is_same_reply and repetition.judgement.is_right

    def _swallowed_tokens(self) -> str:
        """Return the tokens that the server counts and does not deliver; "" if there are none."""
        tokens, ratio = self._reply.output_tokens, self._evidence.token_ratio
        delivered = native_size(self._reply, self._dialect)
        if tokens >= MIN_SWALLOWED_TOKENS and delivered < tokens:
            return f"the server counts {tokens} tokens, and the reply has {delivered} bytes"
        if ratio is None or self._sample.expect.reply == "any":
            return ""
        if self._failure.kind == "wrong-tool":  # parsers lose calls, and do not replace one tool by another
            return ""
        expected = native_size(self._complete_reply(), self._dialect)
        if not ratio.fits_expected(tokens, delivered, expected):
            return ""
        return f"the server counts {tokens} tokens, as for the expected reply"

    def _complete_reply(self) -> Reply:
        """Return the expected reply behind the thinking and, before calls, the text that were delivered."""
        ideal = ideal_reply(self._sample)
        texts: list[Part] = [Reasoning(self._reply.reasoning)] if self._reply.reasoning else []
        if ideal.calls and self._reply.text:
            texts.append(Text(self._reply.text))
        return Reply(parts=[*texts, *ideal.parts], stop_reason=ideal.stop_reason)

    def _untyped_values(self) -> str:
        """Return the sign of a parser that ignores the schema, in dialects whose notation has no types."""
        shape = self._dialect.shape
        if shape is None or shape.NAME != UNTYPED_SHAPE or self._failure.kind not in ("schema", "wrong-arguments"):
            return ""
        calls = [msgspec.structs.replace(call, arguments=_restore_types(call.arguments)) for call in self._reply.calls]
        if not are_calls_right(calls, self._sample):
            return ""
        return "values are strings that the parser should have converted: the model's notation has no types"

    def _damage(self) -> str:
        """Return the damage of the stream that explains the failure; "" if none does."""
        if self._failure.kind not in ("bad-json", "schema", "wrong-arguments"):
            return ""
        return explain_damage(self._reply, lambda calls: are_calls_right(calls, self._sample))

    def _is_truncated(self) -> bool:
        return bool(self._truncation())

    def _truncation(self) -> str:
        """Return how the arguments are cut; "" if they are not."""
        if self._failure.kind == "length":
            limit, tokens = self._evidence.max_tokens, self._reply.output_tokens
            if limit and tokens and tokens < limit:
                return f"the reply ends after {tokens} tokens although {limit} were allowed"
            return ""
        cut = [call.name for call in self._reply.calls if _is_cut_json(call.arguments)]
        return f"the arguments of {cut[0]} end in the middle" if cut else ""

    def _ignored_choice(self) -> Attribution | None:
        choice = requested_choice(self._sample)
        if choice is not None and choice.mode == "required" and self._failure.kind in ("no-call", "wrong-tool"):
            return self._result("engine-parser", "the server does not enforce the tool choice", confidence="likely")
        return None


_DELIVERY_FINDINGS = frozenset(
    {
        *("no-index", "shared-index", "renumbered", "resent-arguments", "repeated-id", "changed-id", "repeated-name"),
        *("bad-json", "cut-event", "changed-text", "stray-delta", "block-not-closed", "odd-deltas", "no-such-call"),
        *("wrapped-chunk", "after-stop", "after-end", "after-arguments"),
    }
)


def _words_of_tools(sample: Sample) -> list[str]:
    """Return names and descriptions of the tools that only a template can have put into the prompt."""
    messages = write_json(sample.request.get("messages"))
    words = [word for tool in offered_tools(sample).tools for word in (tool.name, tool.description)]
    return [word for word in words if word and word not in messages]


def _lacks_tools(prompt: PromptCheck, tools: int) -> bool:
    is_known = prompt.with_tools > 0 and prompt.without_tools > 0
    return is_known and prompt.with_tools - prompt.without_tools < MIN_TOKENS_PER_TOOL * tools


def _restore_types(arguments: str) -> str:
    """Return the arguments with strings that hold other JSON values replaced by these."""
    values = read_full_object(arguments) or {}
    for name, value in values.items():
        restored = read_json(value, object) if isinstance(value, str) else None
        if restored is not None:
            values[name] = restored
    return write_json(values)


def _is_cut_json(arguments: str) -> bool:
    scanner = JsonScanner()
    scanner.scan_all(arguments)
    return bool(arguments) and not scanner.ended and scanner.problem is None
