"""Reading, writing and telling: bytes as they come, data on standard output, everything else on standard error."""

from __future__ import annotations

import codecs
import errno
import io
import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from enum import Enum
from typing import Any, TypeVar, cast

import msgspec

from interlingua import events as ev
from interlingua.errors import BadInput

__all__ = [
    "STDIN",
    "Tell",
    "Utf8",
    "abandon_stdout",
    "flush",
    "pieces",
    "printable",
    "read_all",
    "read_json",
    "stdout_is_terminal",
    "tell",
    "tell_error",
    "tell_findings",
    "terminal_width",
    "write",
    "write_json",
    "write_line",
]

T = TypeVar("T")
STDIN = "-"
PIECE = 64 * 1024

# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def pieces(path: str, what: str) -> Iterator[bytes]:
    """The bytes of a file or of standard input, each piece as soon as it is there."""
    try:
        with _open(path, what) as stream:
            while piece := stream.read1(PIECE):
                yield piece
    except OSError as error:
        raise BadInput(f"cannot read {path}: {_reason(error)}", "give a file, or - for standard input") from error


def read_all(path: str, what: str) -> bytes:
    return b"".join(pieces(path, what))


def read_json(raw: bytes, type: type[T], what: str, hint: str) -> T:
    """The value that `raw` writes as JSON. Whatever is wrong with it is told with its place."""
    if not raw.strip():
        raise BadInput(f"{what} is empty", hint)
    try:
        return msgspec.json.decode(raw, type=type)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise BadInput(f"{what} cannot be used: {error}", hint) from error


def _open(path: str, what: str) -> AbstractContextManager[io.BufferedIOBase]:
    if path != STDIN:
        return open(path, "rb")
    if sys.stdin is None:
        raise BadInput("there is no standard input", "give a file, or send the input through a pipe")
    if sys.stdin.isatty():
        tell(f"reading {what} from the terminal: end it with Ctrl-D")
    return nullcontext(cast(io.BufferedIOBase, sys.stdin.buffer))  # typed as any BinaryIO, which may lack read1


def _reason(error: OSError) -> str:
    reasons = {
        errno.ENOENT: "there is no such file",
        errno.EISDIR: "it is a directory",
        errno.EACCES: "permission denied",
    }
    return reasons.get(error.errno or 0, error.strerror or str(error))


class Utf8:
    """Bytes in, text out, however the bytes are cut. A byte that is not UTF-8 becomes U+FFFD."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._decoded = 0
        self._bad = 0
        self._first_bad = 0

    def decode(self, data: bytes, final: bool = False) -> str:
        escaped = self._decoder.decode(data, final)
        text, bad = _ESCAPED_BYTE.subn("\ufffd", escaped)
        if bad and not self._bad:
            self._first_bad = self._decoded + text.index("\ufffd")
        self._decoded += len(text)
        self._bad += bad
        return text

    def findings(self) -> list[ev.Finding]:
        """At most one, for all the bytes that are not UTF-8: a binary file has very many."""
        if not self._bad:
            return []
        bytes_are = "1 byte is" if self._bad == 1 else f"{self._bad} bytes are"
        return [ev.Finding("not-utf-8", f"{bytes_are} not UTF-8: read as U+FFFD", f"character {self._first_bad}")]


_ESCAPED_BYTE = re.compile("[\udc80-\udcff]")

# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def write(data: bytes) -> None:
    """Gives data out at once."""
    if not data:
        return
    if sys.stdout is None:
        raise BadInput("the standard output is closed, and data should go there", "leave `>&-` out")
    sys.stdout.buffer.write(data)
    flush()


def flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def write_line(value: Any) -> None:
    """One JSON value on one line."""
    write(printable(msgspec.json.encode(value).decode()).encode() + b"\n")


def write_json(value: Any) -> None:
    """One JSON value: indented on a terminal, else on one line."""
    if not stdout_is_terminal():
        write_line(value)
        return
    indented = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    write("".join(f"{printable(line)}\n" for line in indented.split("\n")).encode())


def stdout_is_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()


def terminal_width() -> int:
    """$COLUMNS, else the terminal's, else 120."""
    return max(40, shutil.get_terminal_size((120, 24)).columns)


def abandon_stdout() -> None:
    """Nobody reads it any more, so what is still buffered must not be flushed when the interpreter ends."""
    with suppress(OSError):  # it may be no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# ── telling ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class Tell(Enum):
    """How findings are told."""

    LINES = "lines"
    JSON = "json"
    NOTHING = "nothing"


def tell(line: str) -> None:
    if sys.stderr is not None:  # or print would take standard output instead
        with suppress(OSError):  # there is nobody left to tell
            print(line, file=sys.stderr, flush=True)


def tell_error(message: str, hint: str) -> None:
    tell(f"error: {printable(message)}")
    tell(f"hint: {printable(hint)}")


def tell_findings(findings: Iterable[ev.Finding], how: Tell) -> None:
    for finding in findings:
        if how is Tell.JSON:
            tell(printable(msgspec.json.encode(finding).decode()))
        elif how is Tell.LINES:
            place = f" at {finding.place}" if finding.place else ""
            tell(printable(f"finding: {finding.kind}{place}: {finding.message}"))


def printable(text: str) -> str:
    """The text, with everything escaped as in JSON that a terminal might obey or not show."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)
