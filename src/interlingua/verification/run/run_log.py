"""Run log: JSON lines with the settings of a run and the result of each trial. An interrupted run continues it.

The first line is the header. A result that occurs twice counts as it occurs last: attributions are added at the end.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Any, TypeAlias

import msgspec

from interlingua.errors import BadInput
from interlingua.verification.probing.request_writer import RequestSettings
from interlingua.verification.run.cost import TokenCount
from interlingua.verification.run.trial_result import TrialResult

__all__ = ["RunHeader", "RunLog", "StoredRun", "is_run_log", "read_run"]

FORMAT = 1
HINT = "pass a file that `interlingua verify` has written"


class RunHeader(msgspec.Struct, frozen=True, kw_only=True, tag="run", tag_field="kind"):
    """Target and settings of a run. They contain no key."""

    format: int = FORMAT
    version: str
    """Version of Interlingua."""
    url: str
    api: str
    model: str
    dialect: str
    engine: str = ""
    engine_version: str = ""
    set_name: str
    set_digest: str
    trials: int
    """Number of trials of the complete run."""
    modes: tuple[str, ...] = ("stream", "whole")
    settings: RequestSettings = RequestSettings()
    started_at: str = ""
    samples_path: str = ""
    """File of the samples; "" for the built-in set."""
    only: str = ""
    limit: int = 0
    """Selection of the samples; 0: all."""
    key_env: str = ""
    """Name of the environment variable with the API key."""
    profile: str = ""
    notes: tuple[str, ...] = ()
    """Changes for this upstream, such as a setting that it refuses."""

    def is_same_run(self, other: RunHeader) -> bool:
        """Return whether results of the other run can be used in this one."""
        names = ("format", "url", "api", "model", "dialect", "set_digest", "settings")
        return all(getattr(self, name) == getattr(other, name) for name in names)


class ResultLine(msgspec.Struct, frozen=True, tag="result", tag_field="kind"):
    result: TrialResult


class TokensLine(msgspec.Struct, frozen=True, tag="tokens", tag_field="kind"):
    """Tokens of requests that are not trials: of evidence, and of attempts that failed."""

    tokens: TokenCount


Line: TypeAlias = RunHeader | ResultLine | TokensLine
_DECODER: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)


class StoredRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run as its log has it."""

    header: RunHeader
    results: tuple[TrialResult, ...] = ()
    extra_tokens: TokenCount = TokenCount()

    @property
    def is_complete(self) -> bool:
        return len(self.results) >= self.header.trials


def is_run_log(first_line: str) -> bool:
    """Return whether this is the first line of a run log."""
    return first_line.lstrip().startswith('{"kind":"run"')


def read_run(path: str | Path) -> StoredRun:
    """Read a run log. A last line that is cut is ignored: the process may have ended while it wrote it.

    Raises:
        BadInput: The file cannot be read, or is not a run log.
    """
    try:
        lines = Path(path).read_bytes().splitlines()
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}", HINT) from error
    header: RunHeader | None = None
    results: dict[tuple[str, bool], TrialResult] = {}
    extra_tokens = TokenCount()
    for number, line in enumerate(lines, 1):
        try:
            entry = _DECODER.decode(line)
        except (msgspec.MsgspecError, UnicodeError) as error:
            if number == len(lines) and header is not None:
                break
            raise BadInput(f"{path}, line {number} is not a line of a run log: {error}", HINT) from None
        if isinstance(entry, RunHeader):
            header = header or entry
        elif isinstance(entry, ResultLine):
            results[entry.result.key] = entry.result
        else:
            extra_tokens += entry.tokens
    if header is None:
        raise BadInput(f"{path} is not a run log", HINT)
    if header.format != FORMAT:
        raise BadInput(f"{path} has format {header.format}; this version reads format {FORMAT}", HINT)
    return StoredRun(header=header, results=tuple(results.values()), extra_tokens=extra_tokens)


class RunLog:
    """Log that is being written, one line at a time, so that nothing is lost if the process ends."""

    def __init__(self, path: Path, header: RunHeader, *, append: bool = False) -> None:
        self.path = path
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | (os.O_APPEND if append else os.O_EXCL), 0o600)
        except FileExistsError:
            raise BadInput(f"{path} exists", "choose another --log, or continue that run with --resume") from None
        except OSError as error:
            raise BadInput(f"cannot write {path}: {error.strerror}", "choose another --log") from error
        self._file: IO[bytes] = os.fdopen(descriptor, "ab")
        if append:
            self._end_cut_line()
        else:
            self._write(header)

    def add_result(self, result: TrialResult) -> None:
        self._write(ResultLine(result))

    def add_tokens(self, tokens: TokenCount) -> None:
        if tokens != TokenCount():
            self._write(TokensLine(tokens))

    def close(self) -> None:
        self._file.close()

    def _write(self, line: Any) -> None:
        self._file.write(msgspec.json.encode(line) + b"\n")
        self._file.flush()

    def _end_cut_line(self) -> None:
        """Remove the rest of a line that an earlier process did not finish."""
        data = self.path.read_bytes()
        if data and not data.endswith(b"\n"):
            os.truncate(self.path, data.rfind(b"\n") + 1)
