"""Scripted SearXNG server: `python -m e2e.search_server` prints its URL. Each query finds one page with its words."""

from __future__ import annotations

import asyncio

from aiohttp import web

__all__ = ["found_text"]


def found_text(query: str) -> str:
    """Return the excerpt of the page that a query finds."""
    return f"everything about {query[::-1]}"


async def _search(request: web.Request) -> web.Response:
    query = request.query["q"]
    if request.query.get("format") != "json":  # as SearXNG answers if the format is not enabled
        return web.Response(status=403)
    page = {"url": f"https://pages.example/{len(query)}", "title": f"On {query}", "content": found_text(query)}
    return web.json_response({"query": query, "results": [page]})


async def main() -> None:
    app = web.Application()
    app.router.add_get("/search", _search)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    print(f"http://{host}:{port}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
