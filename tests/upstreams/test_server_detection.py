"""Detection of model servers by their answers."""

from __future__ import annotations

from typing import Any

import pytest

from interlingua.upstreams.server_detection import (
    ServerAnswer,
    context_windows,
    detect_by_models,
    detect_by_path,
)

VLLM = {"object": "list", "data": [{"id": "Qwen/Qwen3-8B", "owned_by": "vllm", "max_model_len": 40960}]}
SGLANG = {"object": "list", "data": [{"id": "glm", "owned_by": "sglang", "max_model_len": 202752}]}
LLAMA_CPP = {"data": [{"id": "a.gguf", "owned_by": "llamacpp", "meta": {"n_ctx": 16384, "n_ctx_train": 131072}}]}
OLLAMA = {"object": "list", "data": [{"id": "qwen3-coder:30b", "owned_by": "library"}]}


@pytest.mark.parametrize(
    ("body", "headers", "profile"),
    [
        (VLLM, {"server": "uvicorn"}, "vllm"),
        (SGLANG, {"server": "uvicorn"}, "sglang"),
        (LLAMA_CPP, {}, "llama.cpp"),
        ({}, {"server": "llama.cpp"}, "llama.cpp"),
        (OLLAMA, {}, "ollama"),
        ({"data": [{"id": "m", "owned_by": "system"}]}, {"server": "nginx"}, ""),
        ({"data": [1, None]}, {}, ""),
        ({"data": "x"}, {}, ""),
        ({}, {}, ""),
    ],
)
def test_detect_by_models(body: dict[str, Any], headers: dict[str, str], profile: str) -> None:
    assert detect_by_models(ServerAnswer(body, headers)) == profile


@pytest.mark.parametrize(
    ("path", "body", "profile"),
    [
        ("/version", {"version": "0.15.0"}, "vllm"),
        ("/api/version", {"version": "0.12.0"}, "ollama"),
        ("/props", {"default_generation_settings": {"n_ctx": 8192}}, "llama.cpp"),
        ("/get_model_info", {"model_path": "x"}, "sglang"),
        ("/props", {}, ""),
    ],
)
def test_detect_by_path(path: str, body: dict[str, Any], profile: str) -> None:
    assert detect_by_path(path, ServerAnswer(body)) == profile


@pytest.mark.parametrize(
    ("models", "details", "windows"),
    [
        (VLLM, {}, {"Qwen/Qwen3-8B": 40960}),
        (LLAMA_CPP, {}, {"a.gguf": 16384}),
        ({}, {"default_generation_settings": {"n_ctx": 8192}}, {"": 8192}),
        (OLLAMA, {"models": [{"name": "qwen3-coder:30b", "context_length": 4096}]}, {"qwen3-coder:30b": 4096}),
        (OLLAMA, {"models": [{"name": "x", "context_length": "no"}]}, {}),
        ({"data": [{"id": "m", "max_model_len": True}]}, {}, {}),
    ],
)
def test_context_windows(models: dict[str, Any], details: dict[str, Any], windows: dict[str, int]) -> None:
    assert context_windows(ServerAnswer(models), ServerAnswer(details)) == windows
