"""Lines of a capture without secrets, from the traffic of one exchange."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, assert_never

import msgspec

from interlingua.captures.capture_format import (
    AnsweredLine,
    CapturedExchange,
    CaptureLine,
    ClientRequestLine,
    EndLine,
    FindingsLine,
    ReceivedLine,
    RouteFacts,
    SentLine,
    UpstreamRequestLine,
    encode_data_fields,
)
from interlingua.common.split_secrets import find_secrets, replace_in_pieces, replace_split_secrets
from interlingua.events import Finding
from interlingua.gateway.settings.redaction import Redactor

__all__ = ["DataLine", "RedactedLines", "redact_capture", "redact_streams"]

DataLine: TypeAlias = type[ReceivedLine] | type[SentLine]


class RedactedLines:
    """Writes the lines of one capture, in the order of the calls, without the secrets that the redactor knows.

    Args:
        redactor: Knows the secrets of the settings. The client's own key is added with its request.
        write_line: Receives each line.
    """

    def __init__(self, redactor: Redactor, write_line: Callable[[CaptureLine], None]) -> None:
        self._redactor = redactor
        self._write_line = write_line
        self._buffered: dict[DataLine, list[tuple[float, bytes]]] = {}
        self._last_bytes: dict[DataLine, bytes] = {}
        """End of the buffered chunks, as long as a secret can be."""

    def write_request(
        self, at: float, id: str, time: str, path: str, wire: str, headers: Mapping[str, str], body: bytes
    ) -> None:
        self._redactor = self._redactor.with_credentials(headers)
        self._write_line(
            ClientRequestLine(
                at=at,
                id=id,
                time=time,
                path=self._redact_text(path),
                wire=wire,
                headers=self._redact_headers(headers),
                **encode_data_fields(self._redactor.redact_bytes(body)),
            )
        )

    def write_upstream_request(
        self, at: float, url: str, headers: Mapping[str, str], body: bytes, route: RouteFacts | None
    ) -> None:
        self._flush(ReceivedLine, SentLine)
        self._write_line(
            UpstreamRequestLine(
                at=at,
                url=self._redact_text(url),
                headers=self._redact_headers(headers),
                route=self._redact_route(route) if route is not None else None,
                **encode_data_fields(self._redactor.redact_bytes(body)),
            )
        )

    def write_response(self, at: float, status: int, headers: Mapping[str, str], connect_seconds: float | None) -> None:
        headers = self._redact_headers(headers)
        self._write_line(AnsweredLine(at=at, status=status, headers=headers, connect_seconds=connect_seconds))

    def write_data(self, at: float, line_type: DataLine, data: bytes) -> None:
        """Write a chunk. A chunk that ends with a prefix of a secret is buffered until the next one arrives."""
        self._buffered.setdefault(line_type, []).append((at, data))
        last_bytes = self._last_bytes.get(line_type, b"") + data
        self._last_bytes[line_type] = last_bytes[-self._redactor.longest_secret_bytes :]
        if not self._redactor.has_partial_secret_at_end(last_bytes):
            self._flush(line_type)

    def finish(self, at: float, findings: Iterable[Finding], summary: dict[str, Any], truncated: bool) -> None:
        """Write the end of the exchange. `summary`: see `exchange_record.summary`."""
        self.flush()
        redacted = [
            Finding(one.kind, self._redact_text(one.message), _escape_surrogates(one.place)) for one in findings
        ]
        if redacted:
            self._write_line(FindingsLine(at=at, findings=redacted))
        fields = self._redactor.redact_value(summary)
        fields = {
            name: _escape_surrogates(value) if isinstance(value, str) else value for name, value in fields.items()
        }
        self._write_line(EndLine(at=at, exchange=fields, truncated=truncated))

    @property
    def redactor(self) -> Redactor:
        """The redactor, with the client's own key after its request."""
        return self._redactor

    def flush(self) -> None:
        """Write what is buffered because it may be the beginning of a secret."""
        self._flush(ReceivedLine, SentLine)

    def _flush(self, *line_types: DataLine) -> None:
        """Write the buffered chunks unchanged; if they contain a secret, as one redacted chunk."""
        for line_type in line_types:
            pieces = self._buffered.pop(line_type, [])
            self._last_bytes.pop(line_type, None)
            joined = b"".join(data for _, data in pieces)
            redacted = self._redactor.redact_bytes(joined)
            for at, data in pieces if redacted == joined else [(pieces[0][0], redacted)]:
                self._write_line(line_type(at=at, **encode_data_fields(data)))

    def _redact_headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        return {
            _escape_surrogates(name): _escape_surrogates(value)
            for name, value in self._redactor.redact_headers(headers).items()
        }

    def _redact_route(self, route: RouteFacts) -> RouteFacts:
        fields = {name: self._redact_text(getattr(route, name)) for name in ("model", "prefill")}
        return msgspec.structs.replace(route, **fields)

    def _redact_text(self, text: str) -> str:
        return _escape_surrogates(self._redactor.redact_text(text))


def redact_capture(captured: CapturedExchange, redactor: Redactor) -> CapturedExchange:
    """Return a capture without the secrets that the redactor finds."""
    lines: list[CaptureLine] = []
    writer = RedactedLines(redactor, lines.append)
    credentials = {name: value for line in captured.lines_of(ClientRequestLine) for name, value in line.headers.items()}
    captured = redact_streams(captured, redactor.with_credentials(credentials))
    findings: list[Finding] = []
    for line in captured.lines:
        match line:
            case ClientRequestLine():
                writer.write_request(line.at, line.id, line.time, line.path, line.wire, line.headers, line.data)
            case UpstreamRequestLine():
                writer.write_upstream_request(line.at, line.url, line.headers, line.data, line.route)
            case AnsweredLine():
                writer.write_response(line.at, line.status, line.headers, line.connect_seconds)
            case ReceivedLine() | SentLine():
                lines.append(line)
            case FindingsLine():
                findings += line.findings
            case EndLine():
                writer.finish(line.at, findings, line.exchange, line.truncated)
            case _:
                assert_never(line)
    return CapturedExchange(sorted(lines, key=lambda line: line.at))


def redact_streams(captured: CapturedExchange, redactor: Redactor) -> CapturedExchange:
    """Return a capture whose received and sent data has no secrets, also none that several chunks or events have only
    together. Return the same object if there is nothing to change.
    """
    for line_type in (ReceivedLine, SentLine):
        for find in (find_secrets, replace_split_secrets):
            pieces = [line.data for line in captured.lines if isinstance(line, line_type)]
            if replacements := find(b"".join(pieces), redactor):
                captured = _with_data(captured, line_type, replace_in_pieces(pieces, replacements))
    return captured


def _with_data(captured: CapturedExchange, line_type: DataLine, pieces: Iterable[bytes]) -> CapturedExchange:
    """Return a capture with other data in its lines of this type."""
    data = iter(pieces)
    return CapturedExchange(
        [
            line_type(at=line.at, **encode_data_fields(next(data))) if isinstance(line, line_type) else line
            for line in captured.lines
        ]
    )


def _escape_surrogates(text: str) -> str:
    """Escape lone surrogates, which headers that are not UTF-8 contain and JSON cannot encode."""
    return text.encode("utf-8", "backslashreplace").decode()
