"""Translation of a captured reply with another dialect, other options or for another API ("what if")."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from interlingua.captures.capture_format import CapturedExchange, SentLine
from interlingua.captures.capture_replay import CaptureReplay, ReplayedReply, plan_replay, replay_reply
from interlingua.client.accumulator import Accumulator
from interlingua.core.options import ArgumentsPolicy, Delivery, ReasoningPolicy
from interlingua.core.reply import Call, Reasoning, Reply
from interlingua.dialects.registry import STANDARD_DIALECT, get_dialect
from interlingua.errors import InterlinguaError, UnknownDialect
from interlingua.events import Finding
from interlingua.wires import get_wire

__all__ = [
    "Changes",
    "OutcomePart",
    "ReplyOutcome",
    "WhatIf",
    "apply_changes",
    "compare_changes",
    "plan_known_replay",
    "recorded_outcome",
]


class Changes(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Changes to the translation of a reply. A field that is not set stays as it was recorded."""

    dialect: str = ""
    target: str = ""
    """API of the client."""
    model: str = ""
    delivery: Delivery | Literal[""] = ""
    arguments: ArgumentsPolicy | Literal[""] = ""
    reasoning: ReasoningPolicy | Literal[""] = ""
    prefill: str | None = None
    tools: Literal["", "unknown", "none"] = ""
    """unknown: as if the tools were not known. none: as if no tool was offered."""


class OutcomePart(msgspec.Struct, frozen=True, omit_defaults=True):
    """One part of a reply: text, reasoning or a call."""

    kind: Literal["text", "reasoning", "call"]
    text: str
    """Text, or the arguments of the call."""
    name: str = ""
    id: str = ""
    complete: bool = True


class ReplyOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The reply as the client receives it in the end."""

    label: str
    wire: str
    dialect: str
    parts: list[OutcomePart]
    stop_reason: str
    findings: list[Finding] = []
    failure: str = ""
    frames: int = 0
    """Number of frames for the client."""
    frame_bytes: int = 0
    problem: str = ""
    """The reason why there is no reply; "" if there is one."""


class WhatIf(msgspec.Struct, frozen=True, kw_only=True):
    """The reply as the client received it, as it is translated now, and as it would be with the changes."""

    recorded: ReplyOutcome
    unchanged: ReplyOutcome
    changed: ReplyOutcome


def apply_changes(replay: CaptureReplay, changes: Changes) -> CaptureReplay:
    """Return how a reply is translated with these changes.

    Raises:
        InterlinguaError: A dialect or an API is unknown.
    """
    options = {name: value for name in ("delivery", "arguments", "reasoning") if (value := getattr(changes, name))}
    if changes.prefill is not None:
        options["prefill"] = changes.prefill
    replacements: dict[str, Any] = {"options": msgspec.structs.replace(replay.options, **options)}
    if changes.dialect:
        if changes.dialect not in ("auto", "detect"):
            get_dialect(changes.dialect)
        replacements["dialect"] = changes.dialect
    if changes.target:
        get_wire(changes.target)
        replacements["target"] = changes.target
    if changes.model:
        replacements["model"] = changes.model
    if changes.tools:
        replacements["tools"] = None if changes.tools == "unknown" else []
    return msgspec.structs.replace(replay, **replacements)


def compare_changes(captured: CapturedExchange, changes: Changes) -> WhatIf:
    """Translate a captured reply without and with the changes. Raises InterlinguaError."""
    replay = plan_known_replay(captured)
    return WhatIf(
        recorded=recorded_outcome(captured, replay),
        unchanged=_outcome("now", captured, replay),
        changed=_outcome("with the changes", captured, apply_changes(replay, changes)),
    )


def plan_known_replay(captured: CapturedExchange, name: str = "the capture") -> CaptureReplay:
    """Return how a reply was translated. A dialect of the settings that is not known here is chosen by the model.

    Raises BadInput if there is no reply.
    """
    replay = plan_replay(captured, name)
    if replay.dialect in ("auto", "detect"):
        return replay
    try:
        get_dialect(replay.dialect)
    except UnknownDialect:
        return msgspec.structs.replace(replay, dialect="auto")
    return replay


def recorded_outcome(captured: CapturedExchange, replay: CaptureReplay) -> ReplyOutcome:
    """Return what the client received, folded by an accumulator of its API."""
    sent = b"".join(line.data for line in captured.lines_of(SentLine))
    return _fold("recorded", sent, replay, [], str(replay.dialect))


def _outcome(label: str, captured: CapturedExchange, replay: CaptureReplay) -> ReplyOutcome:
    try:
        reply = replay_reply(captured, replay)
    except InterlinguaError as error:
        return ReplyOutcome(
            label=label, wire=replay.target, dialect=str(replay.dialect), parts=[], stop_reason="", problem=str(error)
        )
    return _fold(label, reply.sent, replay, reply.findings, _dialect_name(reply, replay))


def _dialect_name(reply: ReplayedReply, replay: CaptureReplay) -> str:
    return reply.dialect or (replay.dialect if isinstance(replay.dialect, str) else replay.dialect.name)


def _fold(label: str, sent: bytes, replay: CaptureReplay, findings: list[Finding], dialect: str) -> ReplyOutcome:
    """Return the outcome of these bytes for a client. It reads no calls in text, unlike the gateway."""
    accumulator = Accumulator(replay.target, dialect=STANDARD_DIALECT)
    problem = ""
    try:
        accumulator.add(sent)
        accumulator.close()
        reply = accumulator.reply()
    except InterlinguaError as error:
        reply, problem = Reply(), str(error)
    return ReplyOutcome(
        label=label,
        wire=replay.target,
        dialect=dialect,
        parts=[_part(part) for part in reply.parts],
        stop_reason=reply.stop_reason or "",
        findings=findings,
        failure=reply.failure.message if reply.failure else "",
        frames=sent.count(b"\n\n") if replay.wants_stream else int(bool(sent)),
        frame_bytes=len(sent),
        problem=problem,
    )


def _part(part: Any) -> OutcomePart:
    if isinstance(part, Call):
        return OutcomePart("call", part.arguments, part.name, part.id, part.complete)
    return OutcomePart("reasoning" if isinstance(part, Reasoning) else "text", part.text)
