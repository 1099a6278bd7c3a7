"""Collection of evidence for a failure: further requests, as long as they make the attribution more certain."""

from __future__ import annotations

from typing import Any

import msgspec

from interlingua.parsing.dialect import Dialect
from interlingua.verification.attribution import (
    Attribution,
    Control,
    Evidence,
    PromptCheck,
    Repetition,
    attribute,
    missing_evidence,
)
from interlingua.verification.attribution.token_counts import TokenRatio
from interlingua.verification.judging.failure import Judgement
from interlingua.verification.judging.judge import judge
from interlingua.verification.judging.observation import Observation, observe
from interlingua.verification.probing.raw_text import TOKEN_ID_ENGINES, RawTextSource
from interlingua.verification.probing.request_writer import CHAT_WIRE, RequestWriter
from interlingua.verification.probing.sender import Sender
from interlingua.verification.reply_reading import read_reply
from interlingua.verification.samples.sample import Sample, request_digest

__all__ = ["EvidenceCollector"]

MAX_REQUESTS_PER_FAILURE = 6
_PLAIN_TOOL = {
    "type": "function",
    "function": {
        "name": "note",
        "description": "Save a note.",
        "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    },
}
_TOOL_FIELDS = ("tools", "tool_choice", "parallel_tool_calls")


class EvidenceCollector:
    """Collects evidence at one upstream. The tokens that tools take are measured once for each set of tools.

    Args:
        sender: Sends the requests.
        writer: Writes their bodies.
        engine: The profile name of the server; "" if it is unknown.
        dialect: The dialect of the model.
    """

    def __init__(self, sender: Sender, writer: RequestWriter, engine: str, dialect: Dialect) -> None:
        self._sender = sender
        self._writer = writer
        self._engine = engine
        self._dialect = dialect
        self._raw_texts = RawTextSource(sender, writer, engine)
        self._prompt_checks: dict[str, PromptCheck] = {}

    async def attribute(
        self,
        sample: Sample,
        observation: Observation,
        judgement: Judgement,
        token_ratio: TokenRatio | None = None,
    ) -> Attribution:
        """Return who caused a failure, after the requests that are needed to say so."""
        evidence = Evidence(max_tokens=_token_limit(sample, self._writer), token_ratio=token_ratio)
        for _ in range(MAX_REQUESTS_PER_FAILURE):
            match missing_evidence(sample, observation, judgement, evidence, self._dialect):
                case "repetition":
                    evidence = msgspec.structs.replace(evidence, repetition=await self._repeat(sample))
                case "streams":
                    judgements = (*evidence.streams, await self._repeat_stream(sample))
                    evidence = msgspec.structs.replace(evidence, streams=judgements)
                case "prompt":
                    check = await self._check_prompt(sample, observation.reply.input_tokens)
                    evidence = msgspec.structs.replace(evidence, prompt=check)
                case "control":
                    evidence = msgspec.structs.replace(evidence, control=await self._control(sample))
                case None:
                    break
        return attribute(sample, observation, judgement, evidence, self._dialect)

    async def _repeat(self, sample: Sample) -> Repetition:
        raw = await self._raw_texts.repeat(sample)
        repetition = Repetition(raw_text=raw.text, source=raw.source, prompt_text=raw.prompt, is_same_reply=False)
        if raw.recording is None:
            return repetition
        judgement = judge(observe(raw.recording, sample, self._dialect), sample)
        return msgspec.structs.replace(repetition, is_same_reply=True, judgement=judgement)

    async def _repeat_stream(self, sample: Sample) -> Judgement:
        recording = await self._sender.send(self._writer.write(sample, stream=True), stream=True)
        return judge(observe(recording, sample, self._dialect), sample)

    async def _check_prompt(self, sample: Sample, tokens_with_tools: int) -> PromptCheck:
        digest = request_digest({"tools": sample.tools})
        if digest not in self._prompt_checks:
            self._prompt_checks[digest] = await self._measure_prompt(sample, tokens_with_tools)
        return self._prompt_checks[digest]

    async def _measure_prompt(self, sample: Sample, tokens_with_tools: int) -> PromptCheck:
        if self._engine in TOKEN_ID_ENGINES:
            counts = [await self._count_tokens(sample, with_tools=with_tools) for with_tools in (True, False)]
            if all(counts):
                return PromptCheck(*counts)
        without_tools: dict[str, Any] = dict.fromkeys(_TOOL_FIELDS)
        body = self._writer.write(sample, stream=False, **without_tools, max_tokens=1)
        reply = read_reply(await self._sender.send(body, stream=False))
        return PromptCheck(tokens_with_tools, reply.input_tokens)

    async def _count_tokens(self, sample: Sample, *, with_tools: bool) -> int:
        body = self._writer.write(sample, stream=False, wire=CHAT_WIRE)
        names = ("model", "messages", *(("tools",) if with_tools else ()), "chat_template_kwargs")
        answer = await self._sender.call_server("/tokenize", {name: body[name] for name in names if name in body})
        count = (answer or {}).get("count")
        return count if isinstance(count, int) else 0

    async def _control(self, sample: Sample) -> Control:
        body = self._writer.write(
            sample, stream=False, tools=[_PLAIN_TOOL], tool_choice=None, parallel_tool_calls=None, max_tokens=1
        )
        recording = await self._sender.send(body, stream=False)
        return Control(recording.is_success, "" if recording.is_success else read_reply(recording).error)


def _token_limit(sample: Sample, writer: RequestWriter) -> int:
    limit = (
        writer.settings.max_tokens or sample.request.get("max_tokens") or sample.request.get("max_completion_tokens")
    )
    return limit if isinstance(limit, int) else 0
