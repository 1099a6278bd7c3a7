"""Console I/O: input as a stream of bytes, data to standard output, everything else to standard error."""

from __future__ import annotations

import codecs
import errno
import io
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from enum import Enum
from typing import Any, TypeVar, cast

import msgspec

from interlingua import events as ev
from interlingua.cli.common.terminal import is_terminal, stderr_styler, stderr_width, wrap, wrap_line
from interlingua.common.ansi import Style
from interlingua.core.finding_severity import Severity, advice_for, severity_of
from interlingua.errors import BadInput

__all__ = [
    "SEVERITY_STYLES",
    "STDIN",
    "FindingFormat",
    "Utf8Decoder",
    "abandon_stdout",
    "flush",
    "print_error",
    "print_explain_hint",
    "print_findings",
    "print_labelled",
    "print_note",
    "print_prompt",
    "print_stderr",
    "printable",
    "read_all",
    "read_chunks",
    "read_json",
    "stdout_is_terminal",
    "write",
    "write_json",
    "write_json_line",
    "write_lines",
]

T = TypeVar("T")
SEVERITY_STYLES: dict[Severity, Style] = {"info": Style.FAINT, "warning": Style.WARNING, "error": Style.ERROR}
STDIN = "-"
READ_CHUNK_BYTES = 64 * 1024
MAX_HINTED_KINDS = 4
"""Number of kinds of findings that one hint names."""

# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_chunks(path: str, description: str) -> Iterator[bytes]:
    """Yield the bytes of a file or of standard input, each chunk as soon as it is available.

    Args:
        path: A file, or `-` for standard input.
        description: The expected input, for the prompt on a terminal.
    """
    try:
        with _open_input(path, description) as stream:
            while chunk := stream.read1(READ_CHUNK_BYTES):
                yield chunk
    except OSError as error:
        raise BadInput(
            f"cannot read {path}: {_error_reason(error)}", "pass a file name, or - for standard input"
        ) from error


def read_all(path: str, description: str) -> bytes:
    return b"".join(read_chunks(path, description))


def read_json(raw: bytes, value_type: type[T], description: str, hint: str) -> T:
    """Decode `raw` as JSON of this type. Raises `BadInput`, with the position of the error."""
    if not raw.strip():
        raise BadInput(f"{description} is empty", hint)
    try:
        return msgspec.json.decode(raw, type=value_type)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise BadInput(f"{description} cannot be used: {error}", hint) from error


def _open_input(path: str, description: str) -> AbstractContextManager[io.BufferedIOBase]:
    if path != STDIN:
        return open(path, "rb")
    if sys.stdin is None:
        raise BadInput("standard input is closed", "pass a file name, or send the input through a pipe")
    if sys.stdin.isatty():
        print_stderr(f"reading {description} from the terminal; press Ctrl-D to finish")
    return nullcontext(cast(io.BufferedIOBase, sys.stdin.buffer))  # typed as any BinaryIO, which may lack read1


def _error_reason(error: OSError) -> str:
    reasons = {
        errno.ENOENT: "no such file",
        errno.EISDIR: "it is a directory",
        errno.EACCES: "permission denied",
    }
    return reasons.get(error.errno or 0, error.strerror or str(error))


class Utf8Decoder:
    """Incremental UTF-8 decoder. Each byte that is not valid UTF-8 becomes U+FFFD."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._decoded_chars = 0
        self._invalid_bytes = 0
        self._first_invalid_index = 0

    def decode(self, data: bytes, final: bool = False) -> str:
        escaped = self._decoder.decode(data, final)
        text, invalid = _ESCAPED_BYTE.subn("\ufffd", escaped)
        if invalid and not self._invalid_bytes:
            self._first_invalid_index = self._decoded_chars + text.index("\ufffd")
        self._decoded_chars += len(text)
        self._invalid_bytes += invalid
        return text

    def findings(self) -> list[ev.Finding]:
        """Return one finding for all invalid bytes together, because a binary file has very many; [] without any."""
        if not self._invalid_bytes:
            return []
        subject = "1 byte is" if self._invalid_bytes == 1 else f"{self._invalid_bytes} bytes are"
        return [
            ev.Finding(
                "not-utf-8",
                f"{subject} not valid UTF-8 and decoded as U+FFFD",
                f"character {self._first_invalid_index}",
            )
        ]


_ESCAPED_BYTE = re.compile("[\udc80-\udcff]")

# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def write(data: bytes) -> None:
    """Write data to standard output and flush it."""
    if not data:
        return
    if sys.stdout is None:
        raise BadInput("standard output is closed, but the command has output", "remove `>&-` from the command")
    sys.stdout.buffer.write(data)
    flush()


def flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def write_lines(lines: Iterable[str]) -> None:
    """Write lines to standard output. On a terminal, those that are too long are wrapped between words."""
    if stdout_is_terminal():
        lines = [part for line in lines for part in wrap_line(line)]
    write("".join(f"{line}\n" for line in lines).encode())


def write_json_line(value: Any) -> None:
    """Write a JSON value on one line."""
    write(printable(msgspec.json.encode(value).decode()).encode() + b"\n")


def write_json(value: Any) -> None:
    """Write a JSON value: indented on a terminal, otherwise on one line."""
    if not stdout_is_terminal():
        write_json_line(value)
        return
    indented = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    write("".join(f"{printable(line)}\n" for line in indented.split("\n")).encode())


def stdout_is_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()


def abandon_stdout() -> None:
    """Redirect standard output to /dev/null, so that the interpreter does not fail when it flushes it at exit."""
    with suppress(OSError):  # it may not be a real file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# ── standard error ────────────────────────────────────────────────────────────────────────────────────────────────────


class FindingFormat(Enum):
    """Format of the findings on standard error."""

    LINES = "lines"
    JSON = "json"
    NONE = "nothing"


def print_stderr(text: str) -> None:
    """Print to standard error. On a terminal, lines that are too long are wrapped between words."""
    lines = text.split("\n")
    if is_terminal(sys.stderr):
        lines = [part for line in lines for part in wrap_line(line, stderr_width())]
    print_unwrapped("\n".join(lines))


def print_unwrapped(text: str) -> None:
    """Print to standard error what is copied or parsed: commands and JSON, which a line break would change."""
    if sys.stderr is None:  # print() would write to standard output
        return
    with suppress(OSError):  # the reader has closed it
        print(text, file=sys.stderr, flush=True)


def print_prompt(text: str) -> None:
    """Print a question without a line break behind it."""
    if sys.stderr is not None:
        print(text, end="", file=sys.stderr, flush=True)


def print_error(message: str, hint: str) -> None:
    print_labelled("error", message, Style.ERROR)
    print_labelled("hint", hint, Style.MARKER)


def print_note(text: str) -> None:
    print_labelled("note", text, Style.WARNING)


def print_labelled(label: str, text: str, style: Style) -> None:
    """Print `label: text`, on a terminal with the label in colour and the text wrapped between words."""
    prefix, line = f"{label}: ", printable(text)
    if is_terminal(sys.stderr):
        line = "\n".join(wrap(line, prefix, " " * len(prefix), stderr_width())).removeprefix(prefix)
    if sys.stderr is not None:
        with suppress(OSError):
            print(f"{stderr_styler()(prefix.strip(), style)} {line}", file=sys.stderr, flush=True)


def print_findings(findings: Iterable[ev.Finding], finding_format: FindingFormat) -> None:
    for finding in findings:
        severity = severity_of(finding.kind)
        if finding_format is FindingFormat.JSON:
            fields = {**msgspec.to_builtins(finding), "severity": severity}
            print_unwrapped(printable(msgspec.json.encode(fields).decode()))
        elif finding_format is FindingFormat.LINES:
            label = "finding" if severity == "info" else f"finding ({severity})"
            location = f" at {finding.place}" if finding.place else ""
            print_labelled(label, f"{finding.kind}{location}: {finding.message}", SEVERITY_STYLES[severity])


def print_explain_hint(findings: Iterable[ev.Finding], finding_format: FindingFormat) -> None:
    """Print the command that says what to do about these findings, if there is something to do about any of them."""
    kinds = [*dict.fromkeys(finding.kind for finding in findings if advice_for(finding.kind))]
    if kinds and finding_format is FindingFormat.LINES:
        print_labelled("hint", f"what to do: `interlingua explain {' '.join(kinds[:MAX_HINTED_KINDS])}`", Style.MARKER)


def printable(text: str) -> str:
    """Return the text with control characters and other unprintable characters escaped as in JSON."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)
