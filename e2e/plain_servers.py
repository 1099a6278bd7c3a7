"""Model servers as they are when they are started without any option: vLLM, llama.cpp and Ollama.

    python -m e2e.plain_servers vllm        prints its URL

A demo model answers behind the refusals and peculiarities of the server. All have a context window of 40,960 tokens,
and no vision. The messages and fields are those of the servers' code.

- vLLM 0.17 has no tool parser. Tools stay in the prompt of a request with `tool_choice: none`, and then the model
  writes its calls as text.
- llama.cpp parses calls itself. Its template (Qwen's) accepts a system message only at the beginning.
- Ollama refuses an effort for a model that cannot think, and draws the ids of replies from 999 numbers.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from typing import Any

import aiohttp
import msgspec
from aiohttp import web

from interlingua.gateway.demo import start_demo_server

__all__ = ["SERVERS", "WINDOW", "PlainServer", "Refusal"]

WINDOW = 40_960
BYTES_PER_TOKEN = 4
MAX_BODY_BYTES = 64 * 1024 * 1024
NO_PARSER = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
NO_PARSER_FOR_CHOICE = "tool_choice={choice} requires --tool-call-parser to be set"
TOO_MANY_TOKENS = (
    "'max_tokens' or 'max_completion_tokens' is too large: {limit}. This model's maximum context length is {window} "
    "tokens and your request has {prompt} input tokens ({limit} > {window} - {prompt})."
)
TOO_LONG = "This model's maximum context length is {window} tokens. However, your request has {prompt} input tokens."
LLAMA_CPP_TOO_LONG = "request ({prompt} tokens) exceeds the available context size ({window} tokens), try increasing it"
LLAMA_CPP_NO_IMAGES = "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"
LATE_SYSTEM_MESSAGE = "System message must be at the beginning."

Json = dict[str, Any]


class Refusal(msgspec.Struct, frozen=True):
    """Error response to a request."""

    status: int
    message: str


class PlainServer(msgspec.Struct, frozen=True, kw_only=True):
    """A model server, as data."""

    title: str
    model: str
    dialect: str
    """Dialect of the demo model that answers."""
    refuse: Callable[[Json], Refusal | None]
    """Returns the refusal of a request; None if the server accepts it."""
    answers: Mapping[str, Json]
    """Answers to GET requests, by path."""
    headers: Mapping[str, str] = {}
    chat_id: str = ""
    """Id of all replies; empty: each has its own."""
    thinks: bool = True


def _prompt_tokens(body: Json) -> int:
    encoded = msgspec.json.encode([body.get("messages"), body.get("tools")])
    return len(encoded) // BYTES_PER_TOKEN


def _has_image(body: Json) -> bool:
    return b'"image_url"' in msgspec.json.encode(body.get("messages"))


def refuse_like_vllm(body: Json) -> Refusal | None:
    prompt, limit = _prompt_tokens(body), body.get("max_completion_tokens") or body.get("max_tokens") or 1
    if _has_image(body):
        return Refusal(400, "At most 0 image(s) may be provided in one prompt.")
    choice = body.get("tool_choice", "auto")
    if body.get("tools") and choice != "none":
        forced = NO_PARSER_FOR_CHOICE.format(choice=msgspec.json.encode(choice).decode())
        return Refusal(400, NO_PARSER if choice == "auto" else forced)
    if prompt >= WINDOW:
        return Refusal(400, TOO_LONG.format(window=WINDOW, prompt=prompt))
    if prompt + limit > WINDOW:
        return Refusal(400, TOO_MANY_TOKENS.format(limit=limit, window=WINDOW, prompt=prompt))
    return None


def refuse_like_llama_cpp(body: Json) -> Refusal | None:
    prompt = _prompt_tokens(body)
    if _has_image(body):
        return Refusal(500, LLAMA_CPP_NO_IMAGES)
    if any(message.get("role") == "system" for message in body["messages"][1:]):
        return Refusal(500, LATE_SYSTEM_MESSAGE)
    return Refusal(400, LLAMA_CPP_TOO_LONG.format(window=WINDOW, prompt=prompt)) if prompt >= WINDOW else None


def refuse_like_ollama(body: Json) -> Refusal | None:
    prompt = _prompt_tokens(body)
    if body.get("reasoning_effort", "none") != "none":
        return Refusal(400, f'"{SERVERS["ollama"].model}" does not support thinking')
    if _has_image(body):
        return Refusal(500, LLAMA_CPP_NO_IMAGES)
    return Refusal(400, LLAMA_CPP_TOO_LONG.format(window=WINDOW, prompt=prompt)) if prompt >= WINDOW else None


def _model_list(id: str, owner: str, **fields: Any) -> Json:
    return {"object": "list", "data": [{"id": id, "object": "model", "created": 0, "owned_by": owner, **fields}]}


VLLM_MODEL, LLAMA_CPP_MODEL = "Qwen/Qwen3-Coder-30B-A3B-Instruct", "Qwen3-30B-A3B-Q4_K_M.gguf"
OLLAMA_MODEL = "llama3.1:8b"
SERVERS = {
    "vllm": PlainServer(
        title="plain vLLM",
        model=VLLM_MODEL,
        dialect="qwen3_coder",
        refuse=refuse_like_vllm,
        answers={
            "/v1/models": _model_list(VLLM_MODEL, "vllm", max_model_len=WINDOW),
            "/version": {"version": "0.17.0"},
        },
    ),
    "llama.cpp": PlainServer(
        title="plain llama.cpp",
        model=LLAMA_CPP_MODEL,
        dialect="standard",
        refuse=refuse_like_llama_cpp,
        answers={
            "/v1/models": _model_list(LLAMA_CPP_MODEL, "llamacpp", meta={"n_ctx_train": 131072}),
            "/props": {"default_generation_settings": {"n_ctx": WINDOW}},
        },
        headers={"Server": "llama.cpp"},
    ),
    "ollama": PlainServer(
        title="plain Ollama",
        model=OLLAMA_MODEL,
        dialect="standard",
        refuse=refuse_like_ollama,
        answers={
            "/v1/models": _model_list(OLLAMA_MODEL, "library"),
            "/api/version": {"version": "0.33.0"},
            "/api/ps": {"models": [{"name": OLLAMA_MODEL, "context_length": WINDOW}]},
        },
        chat_id="chatcmpl-417",
        thinks=False,
    ),
}


class _Handler:
    """Handler of the requests to one server, in front of a demo model at this URL."""

    def __init__(self, server: PlainServer, session: aiohttp.ClientSession, demo_url: str) -> None:
        self._server = server
        self._session = session
        self._demo_url = demo_url

    def app(self) -> web.Application:
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.router.add_post("/v1/chat/completions", self._complete)
        for path in self._server.answers:
            app.router.add_get(path, self._answer)
        return app

    async def _answer(self, request: web.Request) -> web.Response:
        return web.json_response(self._server.answers[request.path], headers=self._server.headers)

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        server, body = self._server, msgspec.json.decode(await request.read())
        if refusal := server.refuse(body):
            error = {"message": refusal.message, "type": "invalid_request_error", "param": None, "code": refusal.status}
            return web.json_response({"error": error}, status=refusal.status, headers=server.headers)
        # The demo model makes no calls if the choice is none. A model that sees tools in its prompt does.
        sent = {name: value for name, value in body.items() if name != "tool_choice"}
        if body.get("tool_choice") == "none" and server.dialect == "standard":
            sent["tool_choice"] = "none"  # a server with a tool parser does what it says
        if not server.thinks:
            sent["reasoning_effort"] = "none"
        async with self._session.post(
            f"{self._demo_url}/chat/completions", json={**sent, "model": server.dialect}
        ) as reply:
            headers = {**server.headers, "content-type": reply.headers["content-type"]}
            response = web.StreamResponse(status=reply.status, headers=headers)
            await response.prepare(request)
            async for line in reply.content:
                await response.write(self._change(line, _prompt_tokens(body)))
            return response

    def _change(self, line: bytes, prompt_tokens: int) -> bytes:
        """Return a line of a reply with the id of this server, and with the length of the prompt as it counts it."""
        start = line.find(b"{")
        if start < 0:
            return line
        chunk = msgspec.json.decode(line[start:])
        if self._server.chat_id:
            chunk["id"] = self._server.chat_id
        if usage := chunk.get("usage"):
            usage["prompt_tokens"] = prompt_tokens
        return line[:start] + msgspec.json.encode(chunk) + (b"\n" if line.endswith(b"\n") else b"")


async def main(name: str) -> None:
    demo_url, demo = await start_demo_server(0.001)
    async with aiohttp.ClientSession(read_bufsize=MAX_BODY_BYTES) as session:
        app = _Handler(SERVERS[name], session, demo_url).app()
        runner = web.AppRunner(app, handler_cancellation=True, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        print(f"http://{host}:{port}/v1", flush=True)
        try:
            await asyncio.Event().wait()
        finally:
            await runner.cleanup()
            await demo.cleanup()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
