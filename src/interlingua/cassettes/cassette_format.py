"""File format of cassettes: YAML, version 1.

    version: 1
    exchanges:
    - request: {wire: …, body: …}                 the client's request, as it was sent
      meaning: {text: …, calls: …, …}             what the reply means
      upstream: {wire: …, model: …, dialect: …}   how the reply is read
      reply:
        status: 200
        type: text/event-stream
        id, created, completed, input_tokens      what the gateway added, so that a replay gives the same bytes
        pieces: 312/214 320/198                   for each read: milliseconds since the request, bytes
        body: |                                   the bytes of the upstream; `base64` if they are not UTF-8
          data: …

The parts that a reviewer reads come first. A value that occurs again, such as the tools in the next turn, is an alias.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import yaml

from interlingua.cassettes.recorded_exchange import (
    RecordedExchange,
    RecordedReply,
    RecordedRequest,
    RecordedUpstream,
    ReplyPiece,
)
from interlingua.cassettes.reply_meaning import ReplyMeaning
from interlingua.cassettes.yaml_writer import write_yaml
from interlingua.errors import BadInput, UnknownWire
from interlingua.wires import get_wire
from interlingua.wires.http_api import EVENT_STREAM_TYPE

__all__ = ["VERSION", "read_cassette", "write_cassette"]

VERSION = 1
MAX_VALUES = 5_000_000
"""Number of values in a cassette, with its aliases expanded: a few lines of aliases can stand for billions."""
MAX_FILE_DEPTH = 300
"""Levels of nesting in a file, more than `MAX_DEPTH` of its requests. libyaml crashes on much deeper files."""
PIECES_PER_LINE = 12
HEADER = "# Recorded by Interlingua. Show it: interlingua cassettes show FILE\n"
_HINT = "record it again, or take the file from the version control"
_SURROGATE = re.compile("[\ud800-\udfff]")


class _ReplyFields(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fields of a reply in a file."""

    status: int = 200
    type: str = EVENT_STREAM_TYPE
    id: str = ""
    created: int = 0
    completed: int = 0
    input_tokens: int = 0
    complete: bool = True
    pieces: str = ""
    body: str = ""
    base64: str = ""


class _ExchangeFields(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    request: RecordedRequest
    upstream: RecordedUpstream
    reply: _ReplyFields
    meaning: ReplyMeaning = ReplyMeaning()


class _CassetteFields(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    version: int
    exchanges: list[_ExchangeFields]


def write_cassette(exchanges: Iterable[RecordedExchange]) -> str:
    """Return the text of a cassette with these exchanges."""
    fields = [
        {
            "request": _set_fields(exchange.request),
            "meaning": _set_fields(exchange.meaning),
            "upstream": _set_fields(exchange.upstream),
            "reply": _set_fields(_reply_fields(exchange.reply)),
        }
        for exchange in exchanges
    ]
    return HEADER + write_yaml(_without_surrogates({"version": VERSION, "exchanges": fields}))


def read_cassette(text: str, source_name: str) -> list[RecordedExchange]:
    """Return the exchanges of a cassette.

    Args:
        text: The text of the file.
        source_name: The name of the file, for error messages.

    Raises:
        BadInput: The text is not a cassette that this version can read.
    """
    value = _load(text, source_name)
    version = value.get("version") if isinstance(value, dict) else None
    if version != VERSION:
        problem = "is not a cassette" if version is None else f"has version {version} of the format, not {VERSION}"
        raise BadInput(f"{source_name} {problem}", _HINT if version is None else "install a newer interlingua")
    try:
        fields = msgspec.convert(value, _CassetteFields)
        return [_exchange(entry) for entry in fields.exchanges]
    except (msgspec.ValidationError, ValueError, UnknownWire) as error:
        raise BadInput(f"{source_name}: {error}", _HINT) from None


def _set_fields(struct: msgspec.Struct) -> dict[str, Any]:
    """Return the fields that differ from their defaults. `omit_defaults` leaves out only some of the others."""
    fields = {}
    for field in msgspec.structs.fields(struct):
        value = getattr(struct, field.name)
        if value != field.default or field.required:
            fields[field.name] = [_set_fields(item) for item in value] if _is_struct_list(value) else value
    return {name: value for name, value in fields.items() if value != []}


def _is_struct_list(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(item, msgspec.Struct) for item in value)


def _load(text: str, source_name: str) -> Any:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml is ten times as fast, and nearly always there
    try:
        _check_depth(text, loader, source_name)
        value = yaml.load(text, loader)
        _check_size(value, source_name)
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise BadInput(f"{source_name}{line}: {error.problem or error.context}", _HINT) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise BadInput(f"{source_name}: {str(error).splitlines()[0]}", _HINT) from None
    return value


def _check_depth(text: str, loader: Any, source_name: str) -> None:
    """Raise BadInput if a document is nested too deeply. The parser, unlike the loader, is not recursive."""
    depth = 0
    for event in yaml.parse(text, loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_FILE_DEPTH:
                line = f":{event.start_mark.line + 1}" if event.start_mark else ""
                raise BadInput(f"{source_name}{line}: nested more than {MAX_FILE_DEPTH} levels deep", _HINT)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _check_size(value: Any, source_name: str) -> None:
    """Raise BadInput if a document has too many values. What is aliased is measured once, and counted each time."""
    sizes: dict[int, int] = {}

    def measure(node: Any) -> int:
        if not isinstance(node, dict | list):
            return 1
        if id(node) not in sizes:
            sizes[id(node)] = MAX_VALUES  # a value that contains itself is too large
            sizes[id(node)] = 1 + sum(map(measure, node.values() if isinstance(node, dict) else node))
        return sizes[id(node)]

    if measure(value) > MAX_VALUES:
        raise BadInput(f"{source_name} has more than {MAX_VALUES:,} values", _HINT)


def _reply_fields(reply: RecordedReply) -> _ReplyFields:
    try:
        body, base64 = reply.body.decode(), ""
    except UnicodeDecodeError:
        body, base64 = "", b64encode(reply.body).decode("ascii")
    return _ReplyFields(
        status=reply.status,
        type=reply.content_type,
        id=reply.id,
        created=reply.created,
        completed=reply.completed,
        input_tokens=reply.input_tokens,
        complete=reply.is_complete,
        pieces=_write_pieces(reply.pieces),
        body=body,
        base64=base64,
    )


def _exchange(fields: _ExchangeFields) -> RecordedExchange:
    reply = fields.reply
    get_wire(fields.request.wire)
    get_wire(fields.upstream.wire)
    return RecordedExchange(
        request=fields.request,
        upstream=fields.upstream,
        meaning=fields.meaning,
        reply=RecordedReply(
            body=b64decode(reply.base64, validate=True) if reply.base64 else reply.body.encode(),
            pieces=_read_pieces(reply.pieces),
            status=reply.status,
            content_type=reply.type,
            id=reply.id,
            created=reply.created,
            completed=reply.completed,
            input_tokens=reply.input_tokens,
            is_complete=reply.complete,
        ),
    )


def _write_pieces(pieces: Sequence[ReplyPiece]) -> str:
    texts = [f"{round(piece.seconds * 1000)}/{piece.size}" for piece in pieces]
    lines = [" ".join(texts[start : start + PIECES_PER_LINE]) for start in range(0, len(texts), PIECES_PER_LINE)]
    return "\n".join(lines)


def _read_pieces(text: str) -> tuple[ReplyPiece, ...]:
    pieces = (entry.partition("/") for entry in text.split())
    return tuple(ReplyPiece(int(milliseconds) / 1000, int(size)) for milliseconds, _, size in pieces)


def _without_surrogates(value: Any) -> Any:
    """Return a JSON value that can be encoded: unpaired surrogates become replacement characters."""
    match value:
        case str():
            return _SURROGATE.sub("\ufffd", value)
        case dict():
            return {_SURROGATE.sub("\ufffd", name): _without_surrogates(item) for name, item in value.items()}
        case list():
            return [_without_surrogates(item) for item in value]
    return value
