"""The model's own text, as engines show it: token ids, log probabilities, debug fields, or a raw prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from interlingua.common.jsontext.codec import read_full_object
from interlingua.common.schema.resolver import as_list, as_mapping
from interlingua.verification.probing.request_writer import CHAT_WIRE, RequestWriter
from interlingua.verification.probing.sender import Json, Sender
from interlingua.verification.recording import Recording
from interlingua.verification.reply_reading.client_reply import as_count, as_text
from interlingua.verification.samples.sample import Sample

__all__ = ["RawText", "RawTextSource"]

TOKEN_ID_ENGINES = ("vllm", "sglang")
"""Servers that return token ids and turn them into text."""
MAX_UNCOUNTED_TOKENS = 2
"""Tokens that a server may count without listing them, such as the end of the turn."""


class RawText(msgspec.Struct, frozen=True, kw_only=True):
    """A repeated reply, and what the model wrote in it."""

    recording: Recording | None = None
    """The reply that the server made of the text; None if the prompt was sent raw."""
    text: str | None = None
    source: str = ""
    prompt: str | None = None


class RawTextSource:
    """Repeats requests so that the server shows the model's text.

    Args:
        sender: Sends the requests.
        writer: Writes their bodies.
        engine: The profile name of the server; "" if it is unknown.
    """

    def __init__(self, sender: Sender, writer: RequestWriter, engine: str) -> None:
        self._sender = sender
        self._writer = writer
        self._engine = engine

    async def repeat(self, sample: Sample) -> RawText:
        """Repeat the request as a whole reply, with the fields that make this server show the model's text.

        Only chat completions have such fields. Model servers have that API beside the others.
        """
        if self._writer.wire != CHAT_WIRE and self._engine not in (*TOKEN_ID_ENGINES, "llama.cpp"):
            return RawText()
        if self._engine in TOKEN_ID_ENGINES:
            raw = await self._repeat_with(sample, return_token_ids=True)
            if raw.text is not None:
                return raw
        if self._engine == "llama.cpp":
            return await self._repeat_with(sample, verbose=True)
        raw = await self._repeat_with(sample, logprobs=True, top_logprobs=1)
        if raw.text is None and self._engine in TOKEN_ID_ENGINES:
            return await self._ask_raw(sample)
        return raw

    async def _repeat_with(self, sample: Sample, **fields: Any) -> RawText:
        body = self._writer.write(sample, stream=False, wire=CHAT_WIRE) | fields
        recording = await self._sender.send(body, stream=False, wire=CHAT_WIRE)
        reply = read_full_object(recording.body.decode("utf-8", "replace")) if recording.is_success else None
        if reply is None:
            return RawText()
        choice = as_mapping(next(iter(as_list(reply.get("choices"))), None))
        verbose = as_mapping(reply.get("__verbose"))
        if verbose:
            text, prompt = as_text(verbose.get("content")), as_text(verbose.get("prompt"))
            return RawText(recording=recording, text=text, source="llama.cpp's verbose field", prompt=prompt or None)
        if token_ids := as_list(choice.get("token_ids")):
            prompt_ids = as_list(reply.get("prompt_token_ids")) or as_list(choice.get("prompt_token_ids"))
            prompt_text = await self._decode(prompt_ids) if prompt_ids else None
            text_of_ids = await self._decode(token_ids)
            return RawText(recording=recording, text=text_of_ids, source="its token ids", prompt=prompt_text)
        return RawText(recording=recording, text=_join_logprobs(reply, choice), source="its log probabilities")

    async def _decode(self, token_ids: list[Any]) -> str | None:
        answer = await self._sender.call_server(
            "/detokenize", {"model": self._writer.model, "tokens": token_ids, "skip_special_tokens": False}
        )
        fields = as_mapping(answer)
        text = fields.get("prompt", fields.get("text"))
        return text if isinstance(text, str) else None

    async def _ask_raw(self, sample: Sample) -> RawText:
        """Render the prompt with /tokenize and complete it without the chat API."""
        body = self._writer.write(sample, stream=False, wire=CHAT_WIRE)
        names = ("model", "messages", "tools", "chat_template_kwargs")
        rendered = await self._sender.call_server(
            "/tokenize", {name: body[name] for name in names if name in body} | {"add_generation_prompt": True}
        )
        prompt_ids = as_list(as_mapping(rendered).get("tokens"))
        if not prompt_ids:
            return RawText()
        completion: Json = {"model": self._writer.model, "prompt": prompt_ids, "skip_special_tokens": False}
        completion |= {name: body[name] for name in ("max_tokens", "temperature", "seed") if name in body}
        answer = await self._sender.call_server("/v1/completions", completion)
        choices = as_list(as_mapping(answer).get("choices"))
        text = as_mapping(choices[0]).get("text") if choices else None
        prompt = await self._decode(prompt_ids)
        return RawText(
            text=text if isinstance(text, str) else None,
            source="the reply to the same prompt as plain text",
            prompt=prompt,
        )


def _join_logprobs(reply: Mapping[str, Any], choice: Mapping[str, Any]) -> str | None:
    """Return the text of the tokens; None if they are not all tokens of the reply."""
    entries = as_list(as_mapping(choice.get("logprobs")).get("content"))
    tokens = [as_text(as_mapping(entry).get("token")) for entry in entries]
    counted = as_count(reply.get("usage"), "completion_tokens")
    return "".join(tokens) if tokens and len(tokens) >= counted - MAX_UNCOUNTED_TOKENS > 0 else None
