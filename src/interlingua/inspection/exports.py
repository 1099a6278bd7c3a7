"""Exports of one exchange as text: a curl command, a row for the fixtures of a dialect, a bug report."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from interlingua import events as ev
from interlingua.captures.capture_format import (
    CapturedExchange,
    ClientRequestLine,
    EndLine,
    FindingsLine,
    UpstreamRequestLine,
)
from interlingua.captures.capture_replay import CaptureReplay, describe_outcome, replay_reply
from interlingua.common.jsontext.codec import read_full_object
from interlingua.core.options import Options
from interlingua.core.reply import Call, Reasoning, Reply
from interlingua.core.tools import Tool
from interlingua.dialects.native_text import parse
from interlingua.dialects.registry import STANDARD_DIALECT, get_dialect
from interlingua.errors import BadInput, InterlinguaError
from interlingua.inspection.finding_help import finding_help
from interlingua.inspection.what_if import plan_known_replay
from interlingua.trace import MessageReceived
from interlingua.wires import get_wire
from interlingua.wires.streaming import sse

__all__ = ["bug_report", "curl_command", "fixture_row", "native_text"]

_HOP_HEADERS = frozenset(
    ("host", "content-length", "transfer-encoding", "connection", "accept-encoding", "content-encoding", "accept")
)
"""Headers that curl sets itself, or that are not part of the request."""
REDACTED = "***"
KEY_VARIABLE = "$API_KEY"
MAX_ARGUMENT_BYTES = 100_000
"""Longest body in one argument of a command: Linux allows 128 KiB."""
MAX_REPORTED_MESSAGES = 40
"""Messages of the upstream in a bug report: the first and the last ones."""
_ENVELOPE_FIELDS = ("created", "model", "stream", "upstream", "upstream_wire", "upstream_model", "dialect", "attempts")


# ── curl ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def curl_command(captured: CapturedExchange, base_url: str, *, to_upstream: bool = False) -> str:
    """Return a command for POSIX shells that sends the request again. Keys are in the environment variable API_KEY.

    Captured text is data: neither the shell nor curl acts upon it.

    Args:
        captured: The exchange.
        base_url: URL of the gateway.
        to_upstream: Send the upstream's request to the upstream, instead of the client's to the gateway.

    Raises:
        BadInput: There is no such request, or its body is not text.
    """
    line: ClientRequestLine | UpstreamRequestLine
    if to_upstream:
        asked = captured.lines_of(UpstreamRequestLine)
        if not asked:
            raise BadInput("no request was sent to an upstream", "export the request of the client")
        line, url = asked[-1], asked[-1].url
    else:
        requests = captured.lines_of(ClientRequestLine)
        if not requests:
            raise BadInput("the capture has no request of a client", "export another exchange")
        line, url = requests[0], base_url.rstrip("/") + requests[0].path
    headers = {name.lower(): value for name, value in line.headers.items() if name.lower() not in _HOP_HEADERS}
    options = [
        f"-H {_quote(_header_line(name, value))}"
        for name, value in {"content-type": _JSON, **headers}.items()
        if _HEADER_NAME.fullmatch(name) and _HEADER_VALUE.fullmatch(value)
    ]
    curl = [f"curl -sNg --url {_quote(quote(url, safe=_URL_CHARACTERS))}", *options]
    # A *** in the body stays: it may be what the client wrote.
    body = shlex.quote(_text_of(line.data))
    if len(line.data) > MAX_ARGUMENT_BYTES:
        return f"printf %s {body} | " + _LINE_BREAK.join([*curl, "--data-binary @-"])
    return _LINE_BREAK.join([*curl, f"--data-raw {body}"])


_JSON = "application/json"
_URL_CHARACTERS = "!#$%&'()*+,/:;=?@[]~"
"""Characters with a meaning in URLs. Others, such as spaces, curl refuses."""
_LINE_BREAK = " \\\n  "
_HEADER_NAME = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
_HEADER_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
"""Value of a header without control characters, which a terminal or curl would act upon."""


def _header_line(name: str, value: str) -> str:
    """Return a header for curl, which leaves out a header without a value unless a semicolon ends its name."""
    if not value:
        return f"{name};"
    return f"{name}: {f'Bearer {REDACTED}' if name == 'authorization' and value == REDACTED else value}"


def _quote(text: str) -> str:
    """Quote a text for the shell. A redacted key is replaced by a variable, which the shell inserts."""
    quoted = (shlex.quote(part) if part else "" for part in text.split(REDACTED))
    return f'"{KEY_VARIABLE}"'.join(quoted)


def _text_of(body: bytes) -> str:
    """Return a body as the argument of a command. Raises BadInput if it cannot be one."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise BadInput("the body of the request is not text", "export the capture instead")
    return text


# ── a row of the fixtures ─────────────────────────────────────────────────────────────────────────────────────────────


class FixtureRow(msgspec.Struct, frozen=True):
    """Row for `tests/data/fixtures`."""

    file: str
    """Name of the file that the row belongs into."""
    text: str
    """The row in TOML."""


def fixture_row(captured: CapturedExchange, name: str) -> FixtureRow:
    """Return the native text of a reply as a row of the fixtures, with the reply that it is read as now.

    Raises:
        BadInput: The reply has no native text, or the upstream sent structured calls.
    """
    replay = plan_known_replay(captured)
    text, has_calls = native_text(captured, replay)
    if has_calls or not text:
        problem = "the upstream sent structured calls" if has_calls else "the reply has no text"
        raise BadInput(f"{problem}: a row of the fixtures is native text", "export the capture instead")
    dialect = replay_reply(captured, replay).dialect
    if not dialect or get_dialect(dialect) is STANDARD_DIALECT:
        raise BadInput("the dialect of the model is unknown", "choose a dialect under “What if” first")
    reply = parse(text, dialect, replay.tools, replay.options.prefill)
    fields: dict[str, Any] = {"name": name, "text": text}
    if replay.tools is not None:
        fields["tools"] = {tool.name: _params(tool) for tool in replay.tools}
    if replay.options.prefill:
        fields["prefill"] = replay.options.prefill
    fields["parts"] = _row_parts(reply)
    if reply.stop_reason != "tool_calls":
        fields["stop"] = reply.stop_reason
    if reply.findings:
        fields["findings"] = [finding.kind for finding in reply.findings]
    lines = [f"{key} = {_toml(value)}" for key, value in fields.items()]
    return FixtureRow(f"{dialect}.toml", "\n".join(["[[case]]", *lines]) + "\n")


def native_text(captured: CapturedExchange, replay: CaptureReplay) -> tuple[str, bool]:
    """Return all text that the model wrote, and whether the upstream sent structured calls."""
    wire = get_wire(replay.source)
    reader = wire.reader(Options())
    texts: list[str] = []
    has_calls = False
    for timed in replay_reply(captured, replay).events:
        if not isinstance(message := timed.event, MessageReceived):
            continue
        for body in _bodies(message):
            chunk = wire.read_body(body, reader) if message.whole else reader.read(body)
            for event in (event for choice in chunk.choices[:1] for event in choice.events):
                if isinstance(event, ev.TextDelta | ev.ReasoningDelta):
                    texts.append(event.text)
                has_calls = has_calls or isinstance(event, ev.CallStart)
    return "".join(texts), has_calls


def _bodies(message: MessageReceived) -> list[dict[str, Any]]:
    if message.whole:
        datas = [message.data]
    else:
        decoder = sse.SseDecoder(len(message.data) * 4 + 1)
        datas = [one.data for one in decoder.feed(message.data.encode()) + decoder.close() if one.has_data]
    return [body for data in datas if (body := read_full_object(data)) is not None]


def _params(tool: Tool) -> Any:
    """Return the params of a tool as fixtures have them: names if all are strings, else their schemas."""
    properties = tool.schema.get("properties")
    properties = properties if isinstance(properties, Mapping) else {}
    if all(schema == {"type": "string"} or not isinstance(schema, Mapping) for schema in properties.values()):
        return list(properties)
    return {name: _without_null(schema) for name, schema in properties.items()}


def _without_null(value: Any) -> Any:
    """Return the value without null, which TOML cannot hold."""
    if isinstance(value, Mapping):
        return {key: _without_null(inner) for key, inner in value.items() if inner is not None}
    return [_without_null(inner) for inner in value if inner is not None] if isinstance(value, list) else value


def _row_parts(reply: Reply) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    for part in reply.parts:
        if isinstance(part, Call):
            row: dict[str, Any] = {"call": part.name, "id": part.id, "args": part.arguments}
            parts.append(row if part.complete else {**row, "complete": False})
        else:
            parts.append({"reasoning" if isinstance(part, Reasoning) else "text": part.text})
    return parts


def _toml(value: Any) -> str:
    """Return a JSON value as an inline TOML value."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_toml_key(str(key))} = {_toml(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)


def _toml_key(key: str) -> str:
    is_bare = key.isascii() and key.replace("_", "").replace("-", "").isalnum()
    return key if is_bare else json.dumps(key, ensure_ascii=False)


# ── a bug report ──────────────────────────────────────────────────────────────────────────────────────────────────────


def bug_report(captured: CapturedExchange, versions: Mapping[str, str]) -> str:
    """Return a report in Markdown: versions, facts, findings, and the messages of the upstream.

    Args:
        captured: The exchange.
        versions: Versions of the software, by name.
    """
    ends, requests = captured.lines_of(EndLine), captured.lines_of(ClientRequestLine)
    exchange = ends[-1].exchange if ends else {}
    facts = {
        "outcome": describe_outcome(captured),
        "client": next((v for r in requests for k, v in r.headers.items() if k.lower() == "user-agent"), "unknown"),
        "client API": requests[0].wire if requests else "unknown",
        **{name.replace("_", " "): str(exchange[name]) for name in _ENVELOPE_FIELDS if exchange.get(name)},
    }
    sections = [
        "# Report of an exchange",
        "What I expected:\n\nWhat happened instead:",
        "## Versions\n\n" + "\n".join(f"- {name}: {version}" for name, version in versions.items()),
        "## Exchange\n\n" + "\n".join(f"- {name}: {value}" for name, value in facts.items()),
        "## Findings\n\n" + (_report_findings(captured) or "None."),
        "## Messages of the upstream\n\n" + _report_messages(captured),
        "## Reproduce\n\n"
        "Save the attached capture, then run:\n\n"
        "```console\n$ interlingua translate --explain capture.jsonl\n$ interlingua inspect capture.jsonl\n```",
    ]
    return "\n\n".join(sections) + "\n"


def _report_findings(captured: CapturedExchange) -> str:
    explanations = finding_help()
    lines: list[str] = []
    for line in captured.lines_of(FindingsLine):
        for finding in line.findings:
            place = f" at `{finding.place}`" if finding.place else ""
            help_text = explanations.get(finding.kind)
            setting = f" ({help_text.setting})" if help_text and help_text.setting else ""
            lines.append(f"- **{finding.kind}**{place}: {finding.message}{setting}")
    return "\n".join(lines)


def _report_messages(captured: CapturedExchange) -> str:
    try:
        replay = plan_known_replay(captured)
        events = replay_reply(captured, replay).events
    except InterlinguaError as error:
        return f"There is no reply: {error}"
    messages = [timed.event.data for timed in events if isinstance(timed.event, MessageReceived)]
    if len(messages) > MAX_REPORTED_MESSAGES:
        half = MAX_REPORTED_MESSAGES // 2
        left_out = f"… {len(messages) - MAX_REPORTED_MESSAGES} messages are left out; the capture has them …\n\n"
        messages = [*messages[:half], left_out, *messages[-half:]]
    fence = "```"
    joined = "".join(messages).rstrip()
    while fence in joined:
        fence += "`"
    return f"{fence}text\n{joined}\n{fence}"
