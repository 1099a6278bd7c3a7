"""Scripted engine: a model server that answers requests in stages, one of which may be at fault. It does no I/O."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import msgspec

from interlingua.core.reply import Reasoning, Reply, Text
from interlingua.core.wire_traits import DEFAULT_WIRE
from interlingua.dialects.native_text import parse, render
from interlingua.errors import InterlinguaError, RenderError
from interlingua.faults.apis import api_for_path
from interlingua.faults.engines.engine_fault import (
    NO_ENGINE_FAULT,
    ApiCall,
    ApiReply,
    Delivery,
    EngineFault,
    ParserInput,
)
from interlingua.faults.engines.token_vocabulary import TokenVocabulary
from interlingua.parsing.dialect import Dialect
from interlingua.translation.request_translation import translate_request
from interlingua.translation.translator import Translator
from interlingua.wires import WIRES, get_wire

__all__ = ["EngineKind", "EngineResponse", "ScriptedEngine", "parse_natively"]

Json: TypeAlias = dict[str, Any]
EngineKind: TypeAlias = Literal["vllm", "sglang", "llama.cpp", "provider"]
"""Server that the engine imitates. A provider shows nothing but its API."""
Answer: TypeAlias = Callable[[Json], Reply]
"""Returns what a good model answers to a request as it sees it."""

CONTEXT_WINDOW = 32_768
SSE_TYPE, JSON_TYPE = "text/event-stream", "application/json"
DEFAULT_MAX_TOKENS = 100_000
_WIRE_BY_API = {get_wire(name).HTTP_API.path.removeprefix("/"): name for name in WIRES}


@dataclass(frozen=True)
class EngineResponse:
    status: int = 200
    content_type: str = JSON_TYPE
    body: bytes = b"{}"
    is_reset: bool = False
    """True if the connection is reset at the end of the body."""


@dataclass(frozen=True)
class _Generation:
    """Prompt that the model saw, and text that it wrote."""

    prompt: str
    text: str
    is_cut: bool
    """True if the reply reached its token limit."""


class ScriptedEngine:
    """Engine with one model.

    Args:
        model: The id of the model.
        dialect: The dialect in which the model writes.
        answer: Returns what a good model answers.
        fault: The stage at fault.
        kind: The server that it imitates.
        vocabulary: The tokens of the model; engines of one server share them.
    """

    def __init__(
        self,
        model: str,
        dialect: Dialect,
        answer: Answer,
        fault: EngineFault = NO_ENGINE_FAULT,
        kind: EngineKind = "vllm",
        vocabulary: TokenVocabulary | None = None,
    ) -> None:
        self.model = model
        self.fault = fault
        self._dialect = dialect
        self._answer = answer
        self._kind = kind
        self._vocabulary = vocabulary or TokenVocabulary(dialect)

    def respond(self, path: str, body: Json) -> EngineResponse:
        """Return the response to a request. An empty body is that of a GET request."""
        path = path.partition("?")[0]
        own_path = self._own_paths().get(path)
        if own_path is not None:
            return _json_response(own_path(body))
        api = api_for_path(path)
        if api is None or not body:
            return _error_response(404, f"there is no {path}")
        if body.get("model") != self.model:
            return _error_response(404, f"The model `{body.get('model')}` does not exist.")
        wire = _WIRE_BY_API[api]
        try:
            chat_body = body if wire == DEFAULT_WIRE else translate_request(body, wire, DEFAULT_WIRE)
        except InterlinguaError as error:
            return _error_response(400, str(error))
        if _has_image(chat_body):
            return _error_response(400, f"{self.model} is not a multimodal model")
        if self.fault.refuse is not None and (refusal := self.fault.refuse(chat_body)) is not None:
            return _error_response(*refusal)
        return self._complete({**chat_body, "stream": body.get("stream") is True}, wire)

    # ── paths beside the API ──────────────────────────────────────────────────────────────────────────────────────

    def _own_paths(self) -> dict[str, Callable[[Json], Json]]:
        owners = {"vllm": "vllm", "sglang": "sglang", "llama.cpp": "llamacpp", "provider": "acme"}
        card: Json = {"id": self.model, "object": "model", "owned_by": owners[self._kind]}
        if self._kind in ("vllm", "sglang"):
            card["max_model_len"] = CONTEXT_WINDOW
        paths: dict[str, Callable[[Json], Json]] = {"/v1/models": lambda _: {"object": "list", "data": [card]}}
        match self._kind:
            case "vllm":
                paths |= {"/version": lambda _: {"version": "0.24.0"}}
                paths |= {"/tokenize": self._tokenize, "/detokenize": self._detokenize}
            case "sglang":
                paths |= {"/model_info": lambda _: {"model_path": self.model, "tool_call_parser": self._dialect.name}}
                paths |= {"/get_model_info": paths["/model_info"], "/server_info": lambda _: {"version": "0.6.1"}}
                paths |= {"/tokenize": self._tokenize, "/detokenize": self._detokenize}
            case "llama.cpp":
                settings = {"n_ctx": CONTEXT_WINDOW}
                paths["/props"] = lambda _: {"default_generation_settings": settings, "build_info": "b9999-abcdef"}
        return paths

    def _tokenize(self, body: Json) -> Json:
        tokens = self._vocabulary.encode(self._prompt(self._see(body)))
        return {"count": len(tokens), "max_model_len": CONTEXT_WINDOW, "tokens": tokens}

    def _detokenize(self, body: Json) -> Json:
        text = self._vocabulary.decode(body.get("tokens") or ())
        return {"prompt": text} if self._kind == "vllm" else {"text": text}

    # ── stages ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _complete(self, body: Json, wire: str) -> EngineResponse:
        generation = self._generate(body)
        reply = self._parse(generation, body)
        if wire != DEFAULT_WIRE:
            return self._complete_translated(generation, reply, body, wire)
        if body["stream"]:
            return self._stream(generation, reply, body)
        whole: Json | bytes = self._whole_body(generation, reply, body)
        if self.fault.deliver_whole is not None and isinstance(whole, dict):
            whole = self.fault.deliver_whole(whole)
        return _json_response(whole)

    def _complete_translated(self, generation: _Generation, reply: ApiReply, body: Json, wire: str) -> EngineResponse:
        translator = Translator(DEFAULT_WIRE, wire, "standard")
        if not body["stream"]:
            return _json_response(translator.reply(self._whole_body(generation, reply, body)))
        data = translator.feed(self._stream(generation, reply, body).body) + translator.close()
        return EngineResponse(content_type=SSE_TYPE, body=data)

    def _see(self, body: Json) -> Json:
        return self.fault.see(body) if self.fault.see is not None else body

    def _prompt(self, seen: Json) -> str:
        """Return the prompt of a simple chat template."""
        parts = [f"<tools>{json.dumps(seen['tools'])}</tools>\n"] if seen.get("tools") else []
        parts += [f"<{message.get('role')}>{_message_text(message)}</>\n" for message in seen.get("messages") or ()]
        return "".join([*parts, "<assistant>"])

    def _generate(self, body: Json) -> _Generation:
        seen = self._see(body)
        is_forbidden = seen.get("tool_choice") == "none"  # no template shows that to the model
        reply = self._answer({**seen, "tool_choice": "auto"} if is_forbidden else seen)
        if self.fault.generate is not None and body.get("tool_choice") in (None, "auto", "none"):
            reply = self.fault.generate(reply, seen)  # a choice that forces a call is enforced by the engine
        if body.get("response_format"):  # the grammar has no place for thinking
            reply = msgspec.structs.replace(
                reply, parts=[part for part in reply.parts if not isinstance(part, Reasoning)]
            )
        tokens = self._vocabulary.split(_native_text(reply, self._dialect))
        limit = body.get("max_completion_tokens") or body.get("max_tokens") or DEFAULT_MAX_TOKENS
        return _Generation(self._prompt(seen), "".join(tokens[:limit]), len(tokens) > limit)

    def _parse(self, generation: _Generation, body: Json) -> ApiReply:
        parser_input = ParserInput(generation.text, self._dialect, body, bool(body["stream"]))
        parser = self.fault.parse or parse_natively
        reply = parser(parser_input)
        return replace(reply, finish_reason="length") if generation.is_cut else reply

    # ── delivery ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _whole_body(self, generation: _Generation, reply: ApiReply, body: Json) -> Json:
        message: Json = {"role": "assistant", "content": reply.text or None}
        if reply.reasoning:
            message["reasoning_content"] = reply.reasoning
        if reply.calls:
            message["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in reply.calls
            ]
        choice: Json = {"index": 0, "message": message, "finish_reason": reply.finish_reason}
        whole: Json = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": self.model}
        whole |= {"choices": [choice], "usage": self._usage(generation)}
        self._add_raw_fields(whole, choice, generation, body)
        return whole

    def _add_raw_fields(self, whole: Json, choice: Json, generation: _Generation, body: Json) -> None:
        """Add the fields with which engines show what the model saw and wrote."""
        if self._kind in ("vllm", "sglang") and body.get("return_token_ids"):
            owner = whole if self._kind == "vllm" else choice
            owner["prompt_token_ids"] = self._vocabulary.encode(generation.prompt)
            choice["token_ids"] = self._vocabulary.encode(generation.text)
        if self._kind == "llama.cpp" and body.get("verbose"):
            whole["__verbose"] = {"content": generation.text, "prompt": generation.prompt}

    def _stream(self, generation: _Generation, reply: ApiReply, body: Json) -> EngineResponse:
        delivery = Delivery([*self._chunks(reply)])
        if (body.get("stream_options") or {}).get("include_usage"):
            delivery.chunks.append({**self._chunk({}), "choices": [], "usage": self._usage(generation)})
        if self.fault.deliver_stream is not None:
            delivery = self.fault.deliver_stream(delivery)
        pieces = [chunk if isinstance(chunk, bytes) else json.dumps(chunk).encode() for chunk in delivery.chunks]
        pieces += [b"[DONE]"] if delivery.end == "done" else []
        data = b"".join(b"data: " + piece + b"\n\n" for piece in pieces)
        return EngineResponse(content_type=SSE_TYPE, body=data, is_reset=delivery.end == "reset")

    def _chunks(self, reply: ApiReply) -> Iterator[Json]:
        yield self._chunk({"role": "assistant", "content": ""})
        for piece in self._vocabulary.split(reply.reasoning):
            yield self._chunk({"reasoning_content": piece})
        for piece in self._vocabulary.split(reply.text):
            yield self._chunk({"content": piece})
        for index, call in enumerate(reply.calls):
            function = {"name": call.name, "arguments": ""}
            yield self._chunk(
                {"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": function}]}
            )
            for piece in self._vocabulary.split(call.arguments):
                yield self._chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        yield self._chunk({}, reply.finish_reason)

    def _chunk(self, delta: Json, finish_reason: str | None = None) -> Json:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": self.model}
        return {**head, "choices": [choice]}

    def _usage(self, generation: _Generation) -> Json:
        prompt, completion = (len(self._vocabulary.split(text)) for text in (generation.prompt, generation.text))
        return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def parse_natively(parser_input: ParserInput) -> ApiReply:
    """Parse the model's text as the right parser does it."""
    body = parser_input.body
    if body.get("tool_choice") == "none":
        return ApiReply(text=parser_input.visible_text)
    reply = parse(parser_input.text, parser_input.dialect, body.get("tools") or [])
    if any(finding.kind == "not-a-tool" for finding in reply.findings):  # the parsers of engines do not check names
        reply = parse(parser_input.text, parser_input.dialect)
    calls = tuple(ApiCall(f"call_{n:08d}", call.name, call.arguments) for n, call in enumerate(reply.calls))
    return ApiReply(reply.text, reply.reasoning, calls, "tool_calls" if calls else "stop")


def _has_image(body: Json) -> bool:
    contents = [message.get("content") for message in body.get("messages") or ()]
    parts = [part for content in contents if isinstance(content, list) for part in content]
    return any(isinstance(part, dict) and part.get("type") == "image_url" for part in parts)


def _native_text(reply: Reply, dialect: Dialect) -> str:
    try:
        return render(reply, dialect)
    except RenderError:
        return render(Reply(parts=[Text("The reply cannot be written in this format.")]), dialect)


def _message_text(message: Json) -> str:
    """Return what the template shows of a message."""
    content = message.get("content")
    fields = [message.get("reasoning_content") or "", content if isinstance(content, str) else json.dumps(content)]
    return " ".join([*fields, json.dumps(message["tool_calls"])] if message.get("tool_calls") else fields)


def _json_response(value: Json | bytes) -> EngineResponse:
    return EngineResponse(body=value if isinstance(value, bytes) else json.dumps(value).encode())


def _error_response(status: int, message: str) -> EngineResponse:
    kind = "invalid_request_error" if status < 500 else "server_error"
    body = json.dumps({"error": {"message": message, "type": kind, "param": None, "code": status}})
    return EngineResponse(status=status, body=body.encode())
