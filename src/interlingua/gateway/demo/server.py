"""The demo model behind HTTP: an upstream of chat completions on loopback, for every dialect a model."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from interlingua.common.jsontext.codec import read_values, write_json
from interlingua.common.schema.resolver import as_list, as_mapping
from interlingua.dialects.registry import dialects
from interlingua.gateway.demo.planner import reply_to
from interlingua.gateway.demo.tokenizer import deltas, pieces
from interlingua.parsing.dialect import Dialect

__all__ = ["MODELS", "app", "start"]

MODELS: Mapping[str, Dialect] = {dialect.name: dialect for dialect in dialects()}
LARGEST = 64 * 1024 * 1024
_PACE = web.AppKey("pace", float)


async def start(pace: float) -> tuple[str, web.AppRunner]:
    """Listens on a port that is free; `pace` is in seconds from token to token. The base URL, and what to `cleanup()`
    in the end."""
    runner = web.AppRunner(app(pace), handler_cancellation=True, access_log=None, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    return f"http://{host}:{port}/v1", runner


def app(pace: float) -> web.Application:
    app = web.Application(client_max_size=LARGEST)
    app[_PACE] = pace
    app.router.add_post("/v1/chat/completions", _complete)
    app.router.add_get("/v1/models", _models)
    return app


async def _models(_: web.Request) -> web.Response:
    data = [{"id": id, "object": "model", "created": 0, "owned_by": "interlingua"} for id in MODELS]
    return _json({"object": "list", "data": data})


async def _complete(request: web.Request) -> web.StreamResponse:
    body = read_values((await request.read()).decode(errors="replace"))
    if body is None:
        return _refusal(400, "the body is no JSON object")
    if not as_list(body.get("messages")):
        return _refusal(400, "messages should be a list with something in it")
    dialect = MODELS.get(str(body.get("model")).removeprefix("demo/"))
    if dialect is None:
        return _refusal(404, f"no model is called {body.get('model')!r:.80}", "model_not_found")
    completion = _Completion(body, dialect)
    pace = request.app[_PACE]
    if body.get("stream") is True:
        return await completion.stream(request, pace)
    await asyncio.sleep(pace * len(completion.deltas))
    return _json(completion.whole())


class _Completion:
    """One answer: its tokens, and what is said around them."""

    def __init__(self, body: Mapping[str, Any], dialect: Dialect) -> None:
        reply = reply_to(body, dialect)
        self.deltas = list(deltas(reply, dialect))
        structured = any("tool_calls" in delta for delta in self.deltas)
        self._finish = "tool_calls" if structured else "stop"
        most = body.get("max_completion_tokens") or body.get("max_tokens")
        if isinstance(most, int) and 0 < most < len(self.deltas):
            self.deltas, self._finish = self.deltas[:most], "length"
        asked = len(pieces(write_json(body.get("messages")) + write_json(body.get("tools")), dialect))
        written = len(self.deltas)
        self._usage = {"prompt_tokens": asked, "completion_tokens": written, "total_tokens": asked + written}
        self._tells_usage = as_mapping(body.get("stream_options")).get("include_usage") is True
        self._head = {
            "id": f"chatcmpl-{secrets.token_hex(12)}",
            "created": int(time.time()),
            "model": body.get("model"),
        }

    def whole(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": _joined(self.deltas, "content") or None}
        thinking = _joined(self.deltas, "reasoning_content")
        if thinking:
            message["reasoning_content"] = thinking
        calls = _calls(self.deltas)
        if calls:
            message["tool_calls"] = calls
        choice = {"index": 0, "message": message, "finish_reason": self._finish, "logprobs": None}
        return {**self._head, "object": "chat.completion", "choices": [choice], "usage": self._usage}

    async def stream(self, request: web.Request, pace: float) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream", "cache-control": "no-cache"})
        await response.prepare(request)
        await response.write(self._chunk({"role": "assistant", "content": ""}))
        for delta in self.deltas:
            if pace:
                await asyncio.sleep(pace)
            await response.write(self._chunk(delta))
        await response.write(self._chunk({}, self._finish))
        if self._tells_usage:
            await response.write(self._event({"choices": [], "usage": self._usage}))
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response

    def _chunk(self, delta: Mapping[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return self._event({"choices": [choice]} | ({"usage": None} if self._tells_usage else {}))

    def _event(self, said: Mapping[str, Any]) -> bytes:
        return f"data: {write_json({**self._head, 'object': 'chat.completion.chunk', **said})}\n\n".encode()


def _joined(deltas: list[dict[str, Any]], field: str) -> str:
    return "".join(delta.get(field, "") for delta in deltas)


def _calls(deltas: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The calls that these deltas tell."""
    calls: list[dict[str, Any]] = []
    for delta in deltas:
        for told in delta.get("tool_calls", ()):
            if "id" in told:
                calls.append({"id": told["id"], "type": "function", "function": dict(told["function"])})
            else:
                calls[-1]["function"]["arguments"] += told["function"]["arguments"]
    return calls


def _refusal(status: int, message: str, code: str | None = None) -> web.Response:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return _json({"error": error}, status)


def _json(value: object, status: int = 200) -> web.Response:
    return web.Response(text=write_json(value), status=status, content_type="application/json")
