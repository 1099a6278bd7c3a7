"""HTTP API of the inspector: lists, analyses, exports, live changes, and what is refused."""

from __future__ import annotations

import asyncio
import io
import json
import re
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import ClientResponse
from aiohttp.test_utils import TestClient, TestServer

from interlingua.captures.capture_format import (
    CapturedExchange,
    ClientRequestLine,
    EndLine,
    SentLine,
    decode_capture,
    encode_capture,
)
from interlingua.captures.capture_replay import plan_replay, replay_reply
from interlingua.cassettes import read_cassette, translate_recording
from interlingua.cli import main
from interlingua.gateway.inspector.analyses import Analyses
from interlingua.gateway.inspector.capture_files import CaptureFiles
from interlingua.gateway.inspector.exchange_export import EXPORTS
from interlingua.gateway.inspector.html_export import bundle_modules, export_page
from interlingua.gateway.inspector.http_api import make_inspector_app
from interlingua.gateway.inspector.page_access import PageAccess, page_key
from interlingua.gateway.settings.schema import Inspect, Settings
from interlingua.trace import decode_trace
from tests.support.inspector_scenes import (
    HOSTILE_TEXT,
    agent_session,
    agent_turn,
    hostile_exchange,
    kimi_call,
    section,
    write_captures,
)

IDS = [f"req_{number:032x}" for number in range(1, 6)]
HOSTILE_ID = "req_" + "f" * 32
Get = Callable[..., Awaitable[ClientResponse]]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> CaptureFiles:
    folder = write_captures(tmp_path_factory.mktemp("captures"), [*agent_session(), hostile_exchange()])
    source = CaptureFiles([str(folder)])
    source.read_new_files()
    return source


def run(files: CaptureFiles, use: Callable[[Get], Awaitable[None]], key: str = "") -> None:
    """Run the application for these files, and pass a function that sends GET requests to it."""

    async def run_server() -> None:
        access = PageAccess(Settings(), key)
        app = make_inspector_app(files, Analyses(files), lambda request: access.check(request.path, request.headers))
        async with TestClient(TestServer(app)) as client:

            async def get(path: str, **headers: str) -> ClientResponse:
                return await client.get(f"/inspector{path}", headers=headers, allow_redirects=False)

            await use(get)

    asyncio.run(run_server())


async def get_json(get: Get, path: str) -> Any:
    response = await get(f"/api/{path}")
    assert response.status == 200, await response.text()
    return await response.json()


def test_page_and_its_files_have_a_strict_policy(files: CaptureFiles) -> None:
    async def use(get: Get) -> None:
        assert (await get("")).headers["location"] == "/inspector/"
        page = await get("/")
        policy = page.headers["content-security-policy"]
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert "default-src 'none'" in policy
        html = await page.text()
        assert not re.search(r"<script[^>]*>[^<]", html), "no inline script"
        assert "http://" not in html
        assert "https://" not in html
        for name in ("main.js", "style.css", "icon.svg", "lib/dom.js", "views/reply.js"):
            response = await get(f"/page/{name}")
            assert response.status == 200, name
            assert response.headers["x-content-type-options"] == "nosniff"
            assert response.headers["cache-control"] == "no-store"

    run(files, use)


@pytest.mark.parametrize(
    "path", ["/page/../http_api.py", "/page/..%2fhttp_api.py", "/page/lib/../../http_api.py", "/page/none.js", "/x"]
)
def test_other_files_are_not_served(files: CaptureFiles, path: str) -> None:
    async def use(get: Get) -> None:
        assert (await get(path)).status == 404

    run(files, use)


def test_page_never_parses_captured_text() -> None:
    """All scripts of the page create text nodes: none of them has a way to turn text into elements or code."""
    script = bundle_modules()
    forbidden = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "srcdoc")
    assert [word for word in forbidden if word in script] == []


def test_lists(files: CaptureFiles) -> None:
    async def use(get: Get) -> None:
        listed = await get_json(get, "exchanges")
        assert sorted(one["id"] for one in listed["exchanges"]) == sorted([*IDS, HOSTILE_ID])
        sessions = await get_json(get, "sessions")
        agent = next(one for one in sessions if one["client"] == "Claude Code")
        assert [[turn["id"] for turn in thread["turns"]] for thread in agent["threads"]] == [
            [IDS[0], IDS[1], IDS[3], IDS[4]],
            [IDS[2]],
        ]
        numbers = await get_json(get, "numbers?upstream_model=moonshotai/kimi-k2.5")
        assert numbers["exchanges"] == 5
        assert await get_json(get, "numbers?model=moonshotai/kimi-k2.5") == numbers
        assert (await get_json(get, "numbers?finding=stop-reason"))["exchanges"] == 4
        info = await get_json(get, "info")
        assert info["is_live"] is False
        assert "kimi_k2" in info["dialects"]
        assert await get_json(get, "search?text=CART.total") != []
        assert await get_json(get, "search?text=nowhere-to-be-found") == []
        files.changes.add(IDS[4])
        version = files.changes.version
        files.changes.add(IDS[1])
        assert await get_json(get, f"search?text=checkout&since={version}") == [IDS[1]]

    run(files, use)


def test_views_of_one_exchange(files: CaptureFiles) -> None:
    async def use(get: Get) -> None:
        detail = await get_json(get, f"exchanges/{IDS[3]}")
        assert (detail["turn"], detail["turns"], detail["previous"], detail["next"]) == (3, 4, IDS[1], IDS[4])
        assert {finding["kind"] for finding in detail["findings"]} >= {"stop-reason", "repaired-arguments"}
        request = await get_json(get, f"exchanges/{IDS[3]}/request")
        assert request["upstream_wire"] == "openai-chat"
        cache = await get_json(get, f"exchanges/{IDS[3]}/cache")
        found = cache["report"]["prefix_break"]
        assert (found["part"], found["author"], found["difference"]["kind"]) == ("system", "client", "text")
        turns = await get_json(get, f"exchanges/{IDS[0]}/thread-cache")
        assert [bool(turn.get("report", {}).get("prefix_break")) for turn in turns] == [False, False, True, False]
        waterfall = await get_json(get, f"exchanges/{IDS[0]}/waterfall")
        assert [one["kind"] for one in waterfall["segments"]].count("failed") == 2
        what_if = await get_json(get, f"exchanges/{IDS[0]}/what-if?dialect=standard&target=openai-chat")
        assert what_if["changed"]["wire"] == "openai-chat"
        assert [part["kind"] for part in what_if["changed"]["parts"]] == ["text"]

    run(files, use)


def test_turn_is_compared_with_the_last_one_that_reached_an_upstream(tmp_path: Path) -> None:
    first, refused, third = agent_session()[0], agent_session()[1], agent_session()[1]
    request, end = refused.lines_of(ClientRequestLine)[0], refused.lines_of(EndLine)[0]
    end.exchange.update(status=429, outcome="refused", attempts=0)
    third.lines[0] = msgspec.structs.replace(
        third.lines_of(ClientRequestLine)[0], id=IDS[2], time="2026-03-04T05:09:00.000000+00:00"
    )
    write_captures(tmp_path, [first, CapturedExchange([request, end]), third])
    source = CaptureFiles([str(tmp_path)])
    source.read_new_files()

    async def use(get: Get) -> None:
        assert (await get_json(get, f"exchanges/{IDS[1]}/cache"))["problem"] == "no request was sent to an upstream"
        for _ in range(2):  # the second time from memory
            cache = await get_json(get, f"exchanges/{IDS[2]}/cache")
            assert (cache["previous"], cache["report"].get("prefix_break")) == (IDS[0], None)

    run(source, use)


def test_timeline_has_the_events_that_explain_prints(files: CaptureFiles, tmp_path: Path) -> None:
    """The page and `translate --trace` show the same events: both are those of one translator."""

    async def use(get: Get) -> None:
        for id in (IDS[0], IDS[3], IDS[4], HOSTILE_ID):
            lines = (await (await get(f"/api/exchanges/{id}/reply")).text()).splitlines()
            messages = [message for line in lines[1:-1] for message in json.loads(line)]
            steps = [step["event"] for message in messages for step in message.get("steps", [])]
            captured = files.load(id)
            events = [timed.event for timed in replay_reply(captured, plan_replay(captured, id)).events]
            path = tmp_path / f"{id}.jsonl"
            path.write_bytes(await (await get(f"/api/exchanges/{id}/export/capture")).read())
            traced = decode_trace(run_command("translate", "--trace", str(path)))
            assert traced == events
            shown = [
                json.loads(line)
                for line in run_command("translate", "--trace", str(path)).splitlines()
                if json.loads(line)["kind"] not in ("MessageReceived", "InputEnded", "FramesSent")
            ]
            assert steps == shown

    run(files, use)


def run_command(*argv: str) -> bytes:
    """Run a command of `interlingua`, and return its output."""
    buffer = io.BytesIO()
    before, sys.stdout = sys.stdout, io.TextIOWrapper(buffer)
    try:
        main(list(argv))
        sys.stdout.flush()
        return buffer.getvalue()
    finally:
        sys.stdout = before


@pytest.mark.parametrize("format", ["html", "capture", "cassette", "report", "curl", "curl-upstream", "fixture"])
def test_exports(files: CaptureFiles, format: str) -> None:
    async def use(get: Get) -> None:
        response = await get(f"/api/exchanges/{IDS[0]}/export/{format}")
        assert response.status == 200, await response.text()
        assert response.headers["content-disposition"].startswith("attachment")
        data = await response.read()
        assert data
        if format == "capture":
            assert decode_capture(data.splitlines(), "x") == files.load(IDS[0])
        if format == "cassette":
            (recorded,) = read_cassette(data.decode(), "x")
            sent = b"".join(line.data for line in files.load(IDS[0]).lines_of(SentLine))
            assert translate_recording(recorded, "anthropic-messages", stream=True) == sent

    run(files, use)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("exchanges/none", 404),
        ("exchanges/none/reply", 404),
        (f"exchanges/{IDS[0]}/export/none", 400),
        (f"exchanges/{IDS[0]}/what-if?dialect=none", 400),
        (f"exchanges/{IDS[0]}/what-if?delivery=sometimes", 400),
        (f"exchanges/{HOSTILE_ID}/export/fixture", 400),
        ("none", 404),
    ],
)
def test_errors_are_json(files: CaptureFiles, path: str, status: int) -> None:
    async def use(get: Get) -> None:
        response = await get(f"/api/{path}")
        assert response.status == status
        if path != "none":
            assert (await response.json())["error"]

    run(files, use)


def test_exchange_without_a_reply_is_no_error_in_the_console(tmp_path: Path) -> None:
    captured = agent_session()[0]
    (request,), (end,) = captured.lines_of(ClientRequestLine), captured.lines_of(EndLine)
    refused = msgspec.structs.replace(end, exchange={**end.exchange, "upstream_wire": "", "outcome": "refused"})
    write_captures(tmp_path, [CapturedExchange([request, refused])])

    async def use(get: Get) -> None:
        response = await get(f"/api/exchanges/{IDS[0]}/reply")
        assert (response.status, response.headers["x-inspector-problem"]) == (200, "true")
        assert "no request was sent to an upstream" in (await response.json())["error"]

    source = CaptureFiles([str(tmp_path)])
    source.read_new_files()
    run(source, use)


def test_secret_that_a_model_writes_token_by_token_is_shown_nowhere(tmp_path: Path) -> None:
    key = "sk-proj-AbCdEfGhIjKlMnOpQrStUvWx"
    reply = f"The key is {key}." + section(kimi_call("run", 0, json.dumps({"command": f"curl {key}"})))
    captured = agent_turn(1, [{"role": "user", "content": "hi"}], reply, "06:07.000000")
    assert key not in encode_capture(captured).decode(), "it is in no chunk"
    write_captures(tmp_path, [captured])
    source = CaptureFiles([str(tmp_path)])
    source.read_new_files()

    async def use(get: Get) -> None:
        timeline = await (await get(f"/api/exchanges/{IDS[0]}/reply")).text()
        messages = [message for line in timeline.splitlines() if line[0] == "[" for message in json.loads(line)]
        steps = [step["event"] for message in messages for step in message.get("steps", ())]
        events = [step["event"] for step in steps if "event" in step]
        joined = "".join(event.get("text", "") for event in events)
        assert "The key is ***." in joined
        assert '"curl ***"' in joined
        for path in ("what-if", *(f"export/{format}" for format in EXPORTS)):
            assert key not in await (await get(f"/api/exchanges/{IDS[0]}/{path}")).text(), path
        what_if = await get_json(get, f"exchanges/{IDS[0]}/what-if")
        assert what_if["recorded"]["parts"][0]["text"] == what_if["unchanged"]["parts"][0]["text"] == "The key is ***."

    run(source, use)


def test_exported_page_is_one_file_that_runs_only_its_own_script(files: CaptureFiles) -> None:
    page = export_page(Analyses(files), HOSTILE_ID).decode()
    assert HOSTILE_TEXT[:30] not in page
    assert page.count("<script") == 2
    assert page.count("</script>") == 2
    policy = re.search(r'content-security-policy" content="([^"]+)"', page)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert re.search(r"script-src 'sha256-[\w+/]+=*'", policy[1])
    assert "unsafe" not in policy[1]
    assert not re.search(r"<(?:img|link|iframe|a)[ >]", page)


def test_changes_are_sent_as_they_happen(tmp_path: Path) -> None:
    files = CaptureFiles([str(tmp_path)])

    async def use(get: Get) -> None:
        response = await get("/api/changes?version=0")
        assert await response.content.readline() == b": connected\n"
        write_captures(tmp_path, agent_session()[:1])
        for id in files.read_new_files():
            files.changes.add(id)
        async with asyncio.timeout(20):
            while not (line := await response.content.readline()).startswith(b"data: "):
                pass
        change = json.loads(line[6:])
        assert [one["id"] for one in change["changed"]] == [IDS[0]]
        response.close()

    run(files, use)


# ── access ────────────────────────────────────────────────────────────────────────────────────────────────────────────

KEY = "the-key-of-the-page"
RIGHT = {"authorization": f"Bearer {KEY}"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (RIGHT, 200),
        ({**RIGHT, "sec-fetch-site": "same-origin"}, 200),
        ({}, 401),
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": f"Basic {KEY}"}, 401),
        ({"x-api-key": KEY}, 401),
        ({**RIGHT, "host": "evil.example"}, 403),
        ({**RIGHT, "host": "127.0.0.1.evil.example"}, 403),
        ({**RIGHT, "origin": "http://evil.example"}, 403),
        ({**RIGHT, "sec-fetch-site": "cross-site"}, 403),
        ({**RIGHT, "sec-fetch-site": "same-site"}, 403),
    ],
)
def test_data_needs_the_key_and_the_right_origin(files: CaptureFiles, headers: dict[str, str], status: int) -> None:
    async def use(get: Get) -> None:
        assert (await get("/api/exchanges", **headers)).status == status
        assert (await get(f"/api/exchanges/{IDS[0]}/export/html", **headers)).status == status

    run(files, use, KEY)


def test_page_itself_needs_no_key_but_the_right_host(files: CaptureFiles) -> None:
    async def use(get: Get) -> None:
        assert (await get("/", **{"sec-fetch-site": "cross-site"})).status == 200
        assert (await get("/page/main.js")).status == 200
        assert (await get("/", host="evil.example")).status == 403

    run(files, use, KEY)


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        (Settings(), ""),
        (Settings(keys=["only"]), "only"),
        (Settings(keys=["a", "b"], inspect=Inspect(key="own")), "own"),
        (Settings(inspect=Inspect(key="own")), "own"),
    ],
)
def test_key_of_the_page(settings: Settings, key: str) -> None:
    assert page_key(settings) == key
