"""HTTP server of the demo model: a chat completions upstream on loopback with one model per dialect."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Mapping
from typing import Any

from aiohttp import web
from msgspec.structs import replace

from interlingua.common.jsontext.codec import read_full_object, write_json
from interlingua.common.schema.resolver import as_list, as_mapping
from interlingua.core.reply import Call
from interlingua.dialects.registry import list_dialects
from interlingua.errors import BadInput, InterlinguaError
from interlingua.exports.request_constraint import read_constraint
from interlingua.gateway.demo.planner import is_sloppy, plan_reply
from interlingua.gateway.demo.tokenizer import native_text, structured_deltas, text_deltas, tokenize
from interlingua.parsing.dialect import Dialect

__all__ = ["DEMO_DIALECTS", "create_app", "start_demo_server"]

DEMO_DIALECTS: Mapping[str, Dialect] = {dialect.name: dialect for dialect in list_dialects()}
MAX_REQUEST_BODY_BYTES = 64 * 1024 * 1024
_PACE_KEY = web.AppKey("pace", float)


async def start_demo_server(pace: float) -> tuple[str, web.AppRunner]:
    """Start the server on a free port.

    Args:
        pace: Seconds between two tokens.

    Returns:
        The base URL, and the runner, whose `cleanup()` stops the server.
    """
    runner = web.AppRunner(create_app(pace), handler_cancellation=True, access_log=None, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    return f"http://{host}:{port}/v1", runner


def create_app(pace: float) -> web.Application:
    app = web.Application(client_max_size=MAX_REQUEST_BODY_BYTES)
    app[_PACE_KEY] = pace
    app.router.add_post("/v1/chat/completions", _complete)
    app.router.add_get("/v1/models", _list_models)
    return app


async def _list_models(_: web.Request) -> web.Response:
    data = [{"id": id, "object": "model", "created": 0, "owned_by": "interlingua"} for id in DEMO_DIALECTS]
    return _json_response({"object": "list", "data": data})


async def _complete(request: web.Request) -> web.StreamResponse:
    body = read_full_object((await request.read()).decode(errors="replace"))
    if body is None:
        return _error_response(400, "the body is not a JSON object")
    if not as_list(body.get("messages")):
        return _error_response(400, "messages should be a non-empty list")
    dialect = DEMO_DIALECTS.get(str(body.get("model")).removeprefix("demo/"))
    if dialect is None:
        return _error_response(404, f"no model is called {body.get('model')!r:.80}", "model_not_found")
    try:
        deltas = _plan_deltas(body, dialect)
    except InterlinguaError as error:
        return _error_response(400, f"Invalid structural tag specification. {error}")
    completion = _Completion(body, dialect, deltas)
    pace = request.app[_PACE_KEY]
    if body.get("stream") is True:
        return await completion.stream(request, pace)
    await asyncio.sleep(pace * len(completion.deltas))
    return _json_response(completion.response_body())


def _plan_deltas(body: Mapping[str, Any], dialect: Dialect) -> list[dict[str, Any]]:
    """Return the deltas of the reply. If the request constrains the model, it writes the first planned text that the
    constraint allows, as a decoder that prefers these texts would.

    Raises:
        InterlinguaError: The constraint is invalid, or allows none of the planned texts.
    """
    reply = plan_reply(body, dialect)
    if dialect.grammar is None:  # servers that send calls in fields of their own give them random ids
        parts = [replace(part, id=_call_id()) if isinstance(part, Call) else part for part in reply.parts]
        return list(structured_deltas(replace(reply, parts=parts), dialect))
    text = native_text(reply, dialect)
    texts = [text[: -len(text) // 4], text] if reply.calls and is_sloppy(body) else [text]
    matcher = read_constraint(body)
    if matcher is not None:
        texts.append(native_text(plan_reply({**body, "tool_choice": "required"}, dialect), dialect))
        texts = [text for text in texts if matcher.accepts(text)]
    if not texts:
        raise BadInput("the demo model has no reply that the constraint allows", "offer the tools of the constraint")
    return list(text_deltas(texts[0], dialect))


class _Completion:
    """One completion: its deltas, finish reason and usage."""

    def __init__(self, body: Mapping[str, Any], dialect: Dialect, deltas: list[dict[str, Any]]) -> None:
        self.deltas = deltas
        has_tool_calls = any("tool_calls" in delta for delta in self.deltas)
        self._finish_reason = "tool_calls" if has_tool_calls else "stop"
        max_tokens = body.get("max_completion_tokens") or body.get("max_tokens")
        if isinstance(max_tokens, int) and 0 < max_tokens < len(self.deltas):
            self.deltas, self._finish_reason = self.deltas[:max_tokens], "length"
        prompt_tokens = len(tokenize(write_json(body.get("messages")) + write_json(body.get("tools")), dialect))
        completion_tokens = len(self.deltas)
        self._usage = {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
        }
        self._include_usage = as_mapping(body.get("stream_options")).get("include_usage") is True
        self._base_fields = {
            "id": f"chatcmpl-{secrets.token_hex(12)}",
            "created": int(time.time()),
            "model": body.get("model"),
        }

    def response_body(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": _concatenate_field(self.deltas, "content") or None}
        thinking = _concatenate_field(self.deltas, "reasoning_content")
        if thinking:
            message["reasoning_content"] = thinking
        calls = _merge_tool_calls(self.deltas)
        if calls:
            message["tool_calls"] = calls
        choice = {"index": 0, "message": message, "finish_reason": self._finish_reason, "logprobs": None}
        return {**self._base_fields, "object": "chat.completion", "choices": [choice], "usage": self._usage}

    async def stream(self, request: web.Request, pace: float) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream", "cache-control": "no-cache"})
        await response.prepare(request)
        await response.write(self._chunk({"role": "assistant", "content": ""}))
        for delta in self.deltas:
            if pace:
                await asyncio.sleep(pace)
            await response.write(self._chunk(delta))
        await response.write(self._chunk({}, self._finish_reason))
        if self._include_usage:
            await response.write(self._event({"choices": [], "usage": self._usage}))
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response

    def _chunk(self, delta: Mapping[str, Any], finish_reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
        return self._event({"choices": [choice]} | ({"usage": None} if self._include_usage else {}))

    def _event(self, fields: Mapping[str, Any]) -> bytes:
        return f"data: {write_json({**self._base_fields, 'object': 'chat.completion.chunk', **fields})}\n\n".encode()


def _call_id() -> str:
    return f"call_{secrets.token_hex(12)}"


def _concatenate_field(deltas: list[dict[str, Any]], field: str) -> str:
    return "".join(delta.get(field, "") for delta in deltas)


def _merge_tool_calls(deltas: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Merge the tool call deltas into complete calls."""
    calls: list[dict[str, Any]] = []
    for delta in deltas:
        for call_delta in delta.get("tool_calls", ()):
            if "id" in call_delta:
                calls.append({"id": call_delta["id"], "type": "function", "function": dict(call_delta["function"])})
            else:
                calls[-1]["function"]["arguments"] += call_delta["function"]["arguments"]
    return calls


def _error_response(status: int, message: str, code: str | None = None) -> web.Response:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return _json_response({"error": error}, status)


def _json_response(value: object, status: int = 200) -> web.Response:
    return web.Response(text=write_json(value), status=status, content_type="application/json")
