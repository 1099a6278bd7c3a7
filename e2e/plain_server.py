"""Server of a plain vLLM: a demo model behind the refusals that vLLM sends when it is started without any option.

    python -m e2e.plain_server        prints its URL

It has no tool parser, no vision and a context window of 40,960 tokens. Tools stay in the prompt of a request with
`tool_choice: none`, and then the model writes its calls as text.
"""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import msgspec
from aiohttp import web

from interlingua.gateway.demo import start_demo_server

__all__ = ["MODEL", "WINDOW", "PlainServer", "refusal"]

MODEL, DIALECT = "Qwen/Qwen3-Coder-30B-A3B-Instruct", "qwen3_coder"
WINDOW = 40_960
BYTES_PER_TOKEN = 4
MAX_BODY_BYTES = 64 * 1024 * 1024
NO_PARSER = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
NO_IMAGES = "At most 0 image(s) may be provided in one prompt."
TOO_MANY_TOKENS = (
    "'max_tokens' or 'max_completion_tokens' is too large: {limit}. This model's maximum context length is {window} "
    "tokens and your request has {prompt} input tokens ({limit} > {window} - {prompt})."
)
TOO_LONG = "This model's maximum context length is {window} tokens. However, your request has {prompt} input tokens."

Json = dict[str, Any]


def refusal(body: Json) -> str:
    """Return the message with which vLLM refuses this request; "" if it accepts it."""
    encoded = msgspec.json.encode(body.get("messages"))
    prompt = (len(encoded) + len(msgspec.json.encode(body.get("tools")))) // BYTES_PER_TOKEN
    limit = body.get("max_completion_tokens") or body.get("max_tokens") or 1
    if b'"image_url"' in encoded:
        return NO_IMAGES
    if body.get("tools") and body.get("tool_choice", "auto") != "none":
        return NO_PARSER
    if prompt >= WINDOW:
        return TOO_LONG.format(window=WINDOW, prompt=prompt)
    return TOO_MANY_TOKENS.format(limit=limit, window=WINDOW, prompt=prompt) if prompt + limit > WINDOW else ""


class PlainServer:
    """The server, in front of a demo model at this URL."""

    def __init__(self, session: aiohttp.ClientSession, demo_url: str) -> None:
        self._session = session
        self._demo_url = demo_url

    def app(self) -> web.Application:
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_get("/v1/models", self._list_models)
        app.router.add_get("/version", self._tell_version)
        return app

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body = msgspec.json.decode(await request.read())
        if message := refusal(body):
            error = {"message": message, "type": "BadRequestError", "param": None, "code": 400}
            return web.json_response({"error": error}, status=400)
        # The demo model makes no calls if the choice is none. A model that sees tools in its prompt does.
        sent = {name: value for name, value in body.items() if name != "tool_choice"} | {"model": DIALECT}
        async with self._session.post(f"{self._demo_url}/chat/completions", json=sent) as reply:
            response = web.StreamResponse(status=reply.status, headers={"content-type": reply.headers["content-type"]})
            await response.prepare(request)
            async for data in reply.content.iter_any():
                await response.write(data)
            return response

    async def _list_models(self, _: web.Request) -> web.Response:
        model = {"id": MODEL, "object": "model", "created": 0, "owned_by": "vllm", "max_model_len": WINDOW}
        return web.json_response({"object": "list", "data": [model]})

    async def _tell_version(self, _: web.Request) -> web.Response:
        return web.json_response({"version": "0.17.0"})


async def main() -> None:
    demo_url, demo = await start_demo_server(0.001)
    async with aiohttp.ClientSession() as session:
        runner = web.AppRunner(PlainServer(session, demo_url).app(), handler_cancellation=True, access_log=None)
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
    asyncio.run(main())
