"""Causes of failures: the parties that can lose a call."""

from __future__ import annotations

from typing import Literal, TypeAlias

__all__ = ["CAUSES", "Cause", "Confidence"]

Cause: TypeAlias = Literal["model", "template", "engine-parser", "transport", "client-request"]
Confidence: TypeAlias = Literal["certain", "likely"]
CAUSES: dict[Cause, str] = {
    "model": "the model did not write the call, or wrote a wrong one",
    "template": "the chat template does not show the tools to the model, or fails",
    "engine-parser": "the model wrote the call, and the server did not parse it or parsed it wrongly",
    "transport": "the reply was cut, damaged or incomplete on its way",
    "client-request": "the server does not accept the request",
}
"""Each cause in words."""
