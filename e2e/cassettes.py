"""Record real clients with the demo model, then run them again with nothing but the recording.

    python -m e2e.cassettes --only claude,codex --models kimi_k2

The second gateway has no model and no upstream. A run is green if the client does its task again, and receives for each
request the same bytes as in the recorded run.
"""

from __future__ import annotations

import argparse
import re
import secrets
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import structs

from e2e.__main__ import FOLDER
from e2e.clients import CLIENTS
from e2e.gateway import serve
from e2e.install import install_clients
from e2e.run import RunSpec, run
from interlingua.captures.capture_format import CapturedExchange, EndLine, SentLine, read_capture
from interlingua.cassettes.cassette_files import load_cassette, write_file

AGENTS = ("claude", "codex", "opencode", "qwen", "pi")
MODELS = ("kimi_k2", "qwen3_coder")
MAX_TEXT_CHARS = 300
"""Longer texts in a fixture are replaced: they are parts of the client's own prompts."""
BILLING_HEADER = "x-anthropic-billing-header"
CACHE_KEY = re.compile(rb'"prompt_cache_key":"[^"]*"')
"""Field of the request that replies of the Responses API repeat. Clients choose a new one at each start."""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m e2e.cassettes", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default=",".join(AGENTS), metavar="NAMES", help="clients, such as claude,codex")
    parser.add_argument("--models", default=",".join(MODELS), metavar="NAMES", help="dialects of the demo model")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the cassettes and captures in this folder")
    parser.add_argument(
        "--fixture", type=Path, metavar="DIR", help="write the cassette and what the client received, as data for tests"
    )
    args = parser.parse_args(argv)
    clients = [CLIENTS[name] for name in args.only.split(",")]
    unable = install_clients(FOLDER, clients)
    specs = [
        RunSpec(client, api, f"demo/{model}")
        for client in clients
        if client.name not in unable
        for api in client.apis
        for model in args.models.split(",")
    ]
    problems = [_record_and_replay(spec, args.keep, args.fixture) for spec in specs]
    print(f"{problems.count('')} of {len(problems)} runs are green")
    return 1 if any(problems) else 0


def _record_and_replay(spec: RunSpec, keep: Path | None, fixture: Path | None) -> str:
    """Run a client twice. Return the problem; "": none."""
    name = spec.name
    token = secrets.token_hex(8)
    with tempfile.TemporaryDirectory(prefix="e2e-", ignore_cleanup_errors=True) as place:
        folder = Path(place)
        cassette, work = folder / "cassette", folder / "run"  # the same folder: its path is a part of the requests
        outcomes = []
        for step, options in (("record", ["--demo", "--record"]), ("replay", ["--replay"])):
            with serve(folder / step, *options, str(cassette)) as gateway:
                outcomes.append(run(spec, gateway, FOLDER, work, token).why)
            shutil.rmtree(work, ignore_errors=True)
        recordings = len(load_cassette(cassette)) if cassette.exists() else 0
        problem = next(filter(None, outcomes), "") or _find_difference(folder / "record", folder / "replay")
        if keep is not None:
            shutil.copytree(folder, keep / name, dirs_exist_ok=True, ignore=shutil.ignore_patterns("run"))
        if fixture is not None and not problem:
            _write_fixture(cassette, folder / "record" / "captures", fixture)
    print(f"{name}: {problem or f'green, {recordings} recordings'}", flush=True)
    return problem


def _find_difference(recorded: Path, replayed: Path) -> str:
    """Return how the bytes that the client received differ; "" if they are the same for every request."""
    expected, actual = (_sent_replies(folder / "captures") for folder in (recorded, replayed))
    if not actual:
        return "no request was replayed"
    unknown = [data for data in actual if data not in expected]
    return f"{len(unknown)} of {len(actual)} replies have other bytes than the recorded ones" if unknown else ""


def _sent_replies(captures: Path) -> list[bytes]:
    """Return what the client received in each exchange that was not cut off."""
    exchanges: list[CapturedExchange] = [read_capture(path) for path in sorted(captures.glob("*.jsonl"))]
    replies = [
        b"".join(line.data for line in exchange.lines_of(SentLine))
        for exchange in exchanges
        if exchange.lines_of(EndLine)[-1].exchange["outcome"] == "ok"
    ]
    return [CACHE_KEY.sub(b'"prompt_cache_key":""', reply) for reply in replies]


def _write_fixture(cassette: Path, captures: Path, fixture: Path) -> None:
    """Write a recording for tests: without the long texts of the client, and with what the client received."""
    fixture.mkdir(parents=True, exist_ok=True)
    exchanges = [recording.exchange for recording in load_cassette(cassette).recordings]
    shortened = [
        structs.replace(one, request=structs.replace(one.request, body=_without_texts(one.request.body)))
        for one in exchanges
    ]
    write_file(fixture / "cassette.yaml", shortened)
    for number, data in enumerate(_sent_replies(captures), 1):
        (fixture / f"received-{number}.sse").write_bytes(data)


def _without_texts(value: Any, name: str = "") -> Any:
    """Return a request without the texts of the client's authors, which are not ours to copy: prompts, descriptions."""
    match value:
        case str() if (name in ("system", "description") and BILLING_HEADER not in value) or len(
            value
        ) > MAX_TEXT_CHARS:
            return f"[a text of {len(value)} characters]"
        case dict():
            is_schema = name == "properties"  # whose keys are names of params
            return {
                key: _without_texts(item, name if key == "text" else "" if is_schema else key)
                for key, item in value.items()
            }
        case list():
            return [_without_texts(item, name) for item in value]
    return value


if __name__ == "__main__":
    sys.exit(main())
