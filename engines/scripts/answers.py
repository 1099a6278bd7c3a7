"""Answers of a judge: one JSON value per line on standard output for each one on standard input."""

import json
import sys
from collections.abc import Callable
from typing import Any


def answer_requests(**actions: Callable[..., Any]) -> None:
    """Answer each request with the action that its `do` names."""
    for line in sys.stdin:
        request = json.loads(line)
        action = actions[request.pop("do")]
        try:
            answer = {"value": action(**request)}
        except Exception as error:  # noqa: BLE001 (an engine raises what it likes)
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)
