"""Detection of a model server, and of its context windows, by what it answers to GET requests. Sans-IO."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

__all__ = [
    "MODEL_SERVERS",
    "SERVER_PATHS",
    "WINDOW_PATHS",
    "ServerAnswer",
    "context_windows",
    "detect_by_models",
    "detect_by_path",
]

OWNERS = {"vllm": "vllm", "sglang": "sglang", "llamacpp": "llama.cpp", "library": "ollama"}
"""Profile for the owner of the models in a model list (`owned_by`). Source: the servers' code."""
MODEL_SERVERS = frozenset(OWNERS.values())
"""Profiles of model servers, as opposed to those of providers."""
SERVER_HEADERS = {"llama.cpp": "llama.cpp"}
"""Profile for the value of the header `server`."""
SERVER_PATHS: dict[str, tuple[str, str]] = {
    "/api/version": ("version", "ollama"),
    "/props": ("default_generation_settings", "llama.cpp"),
    "/get_model_info": ("model_path", "sglang"),
    "/version": ("version", "vllm"),
}
"""Paths outside the API that only one server has: a field of its answer, and the profile. Asked in this order, because
SGLang and others may have `/version`, too."""
WINDOW_PATHS = {"llama.cpp": "/props", "ollama": "/api/ps"}
"""Path with the context window, for servers whose model list does not contain it."""


class ServerAnswer(msgspec.Struct, frozen=True):
    """Answer of a server to a GET request: its JSON, {} if it is no object, and its headers in lower case."""

    body: Mapping[str, Any] = {}
    headers: Mapping[str, str] = {}


def detect_by_models(answer: ServerAnswer) -> str:
    """Return the profile of the server with this model list; "" if it is unknown."""
    by_header = SERVER_HEADERS.get(answer.headers.get("server", "").lower(), "")
    owners = (OWNERS.get(str(model.get("owned_by")), "") for model in _models(answer, "data"))
    return by_header or next(filter(None, owners), "")


def detect_by_path(path: str, answer: ServerAnswer) -> str:
    """Return the profile of the server that answers so to one of `SERVER_PATHS`; "" if it is another."""
    field, profile = SERVER_PATHS[path]
    return profile if field in answer.body else ""


def context_windows(models: ServerAnswer, details: ServerAnswer) -> dict[str, int]:
    """Return the context window for each model id; under "" the window for all other ids.

    Args:
        models: The model list.
        details: The answer to the path in `WINDOW_PATHS`, if the server has one.
    """
    windows = {str(model.get("id")): _window_of(model) for model in _models(models, "data")}
    windows |= {str(model.get("name")): _tokens(model.get("context_length")) for model in _models(details, "models")}
    settings = details.body.get("default_generation_settings")
    if isinstance(settings, Mapping):  # llama.cpp: one model, under any name
        windows = dict.fromkeys([*windows, ""], _tokens(settings.get("n_ctx")))
    return {id: window for id, window in windows.items() if window}


def _models(answer: ServerAnswer, field: str) -> list[Mapping[str, Any]]:
    models = answer.body.get(field)
    return [model for model in models if isinstance(model, Mapping)] if isinstance(models, list) else []


def _window_of(model: Mapping[str, Any]) -> int:
    """Return the window in a model list: `max_model_len` of vLLM and SGLang, `meta.n_ctx` of llama.cpp."""
    meta = model.get("meta")
    return _tokens(model.get("max_model_len")) or _tokens(meta.get("n_ctx") if isinstance(meta, Mapping) else None)


def _tokens(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
