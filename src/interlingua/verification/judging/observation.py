"""Observation: one recorded reply, read as a plain client reads it and as Interlingua reads it."""

from __future__ import annotations

from typing import Any

import msgspec

from interlingua.client.accumulator import Accumulator
from interlingua.common.jsontext.codec import write_json
from interlingua.core.reply import Reply
from interlingua.core.tool_choice import ToolChoice, read_tool_choice
from interlingua.core.tools import Tool, ToolSet
from interlingua.dialects.registry import DETECT_DIALECT, STANDARD_DIALECT
from interlingua.errors import BadInput
from interlingua.events import Finding
from interlingua.parsing.dialect import Dialect
from interlingua.verification.recording import Recording
from interlingua.verification.reply_reading import ClientReply, read_reply
from interlingua.verification.samples.sample import Sample

__all__ = ["Observation", "observe", "offered_tools"]


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    recording: Recording
    reply: ClientReply
    """The reply without any correction."""
    findings: tuple[Finding, ...] = ()
    """Irregularities of its structured part."""
    corrected: Reply = Reply()
    """The reply as Interlingua delivers it: calls in the text are calls, and irregularities are corrected."""
    leaked_marker: str = ""
    """A special token of the model in the text of the reply, which the request does not contain."""


def observe(recording: Recording, sample: Sample, dialect: str | Dialect) -> Observation:
    """Read a recorded reply in both ways.

    Args:
        recording: The response.
        sample: The sample that was sent.
        dialect: The dialect of the model, as for an `Accumulator`.
    """
    reply = read_reply(recording)
    if not recording.is_success:
        return Observation(recording=recording, reply=reply)
    tools, choice = offered_tools(sample), requested_choice(sample)
    standard = _accumulate(recording, STANDARD_DIALECT, tools, choice)
    corrected = _accumulate(recording, dialect, tools, choice)
    return Observation(
        recording=recording,
        reply=reply,
        findings=tuple(standard.findings),
        corrected=corrected,
        leaked_marker=_leaked_marker(reply, sample, dialect),
    )


def _leaked_marker(reply: ClientReply, sample: Sample, dialect: str | Dialect) -> str:
    """Return a special token in the text; "" if there is none. A name of a dialect, or the detection, names none."""
    tokens = dialect.tokens if isinstance(dialect, Dialect) and dialect.name != DETECT_DIALECT.name else ()
    found = [token for token in tokens if token in reply.text]
    if not found:
        return ""
    request = write_json(sample.request)
    return next((token for token in found if token not in request), "")


def _accumulate(recording: Recording, dialect: str | Dialect, tools: ToolSet, choice: ToolChoice | None) -> Reply:
    accumulator = Accumulator(recording.wire, dialect=dialect, tools=tools, tool_choice=choice)
    accumulator.add(recording.body)
    accumulator.close()
    return accumulator.reply()


def offered_tools(sample: Sample) -> ToolSet:
    """Return the tools of the request; malformed ones are left out."""
    tools: list[Tool] = []
    for tool in sample.tools:
        try:
            tools += Tool.read_all(tool)
        except BadInput:
            continue
    return ToolSet(tools)


def requested_choice(sample: Sample) -> ToolChoice | None:
    choice: Any = sample.request.get("tool_choice")
    try:
        return read_tool_choice(choice)
    except BadInput:
        return None
