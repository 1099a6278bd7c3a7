"""Judge: an engine in a process of its own, which answers whether a grammar accepts texts.

The process reads one JSON value per line and answers each with one. So the engine's packages stay in their environment.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from engines.environments import ROOT, python_of

__all__ = ["Judge", "Refused"]


class Refused(Exception):
    """A grammar that the engine does not compile. The message is the engine's."""


class Judge:
    """An engine. `script` is a program in `engines/scripts`, and `environment` the one that it runs in."""

    def __init__(self, environment: str, script: str) -> None:
        command = [str(python_of(environment)), "-u", str(ROOT / "engines" / "scripts" / script)]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )

    def __enter__(self) -> Judge:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._process.stdin:
            self._process.stdin.close()
        try:
            self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:  # threads of an engine may outlive its last answer
            self._process.kill()
            self._process.wait(timeout=60)
        if self._process.stdout:
            self._process.stdout.close()

    def ask(self, **request: Any) -> Any:
        """Send a request and return its answer.

        Raises:
            Refused: The engine reports an error.
        """
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline() or '{"error": "the engine has ended"}')
        if "error" in answer:
            raise Refused(answer["error"])
        return answer["value"]

    def compile(self, grammar: Any) -> float:
        """Compile the grammar that the next texts are compared with. Return the seconds that it took."""
        seconds: float = self.ask(do="compile", grammar=grammar)
        return seconds

    def accepts(self, texts: Sequence[str]) -> list[bool]:
        accepted: list[bool] = self.ask(do="accepts", texts=list(texts))
        return accepted
