"""Facts about a server: its engine and version, its models with their windows and prices, and its tool parser."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Mapping
from typing import Any

import msgspec

from interlingua.common.jsontext.codec import read_full_object
from interlingua.common.schema.resolver import as_list, as_mapping
from interlingua.upstreams.server_detection import (
    SERVER_PATHS,
    WINDOW_PATHS,
    ServerAnswer,
    context_windows,
    detect_by_models,
    detect_by_path,
)
from interlingua.verification.probing.sender import Json, Sender
from interlingua.verification.recording import Recording
from interlingua.verification.reply_reading.client_reply import as_text

__all__ = ["ENGINES", "GATEWAY", "Price", "ServerFacts", "collect_server_facts"]

ENGINES = frozenset({"vllm", "sglang", "llama.cpp", "ollama"})
"""Profiles of model servers; the others are providers."""
GATEWAY = "interlingua"
"""Owner of the models in the list of this project's own gateway."""
VERSION_FIELDS: dict[str, tuple[tuple[str, str], ...]] = {
    "vllm": (("/version", "version"),),
    "sglang": (("/server_info", "version"), ("/get_server_info", "version")),
    "llama.cpp": (("/props", "build_info"),),
    "ollama": (("/api/version", "version"),),
}
"""Paths and fields with the version of each engine; the first that answers counts."""
PARSER_PATHS = ("/model_info", "/get_model_info", "/server_info")
"""Paths of SGLang that may name its tool parser."""


class Price(msgspec.Struct, frozen=True):
    """US dollars for a million tokens of the prompt and of the reply."""

    prompt: float
    reply: float


class ServerFacts(msgspec.Struct, frozen=True, kw_only=True):
    listing: Recording
    """Response to the request for the model list."""
    has_list: bool = False
    """True if that response is a list of models."""
    engine: str = ""
    """Profile of the server; "" if it is unknown."""
    version: str = ""
    models: tuple[str, ...] = ()
    windows: Mapping[str, int] = {}
    prices: Mapping[str, Price] = {}
    tool_parser: str | None = None
    """Tool parser of the server; "" if it has none, None if it does not say."""

    def window(self, model: str) -> int:
        return self.windows.get(model) or self.windows.get(f"{model}:latest") or self.windows.get("", 0)

    def has_model(self, model: str) -> bool:
        return model in self.models or f"{model}:latest" in self.models

    def similar_models(self, model: str) -> list[str]:
        """Return the ids that are most like this one. Letter case and the vendor's prefix do not count."""
        by_short_name = {id.rpartition("/")[2].lower(): id for id in reversed(self.models)}
        short_name = model.rpartition("/")[2].lower()
        return [by_short_name[name] for name in difflib.get_close_matches(short_name, by_short_name, n=3, cutoff=0.5)]


async def collect_server_facts(sender: Sender, profile: str, *, is_local: bool) -> ServerFacts:
    """Ask a server about itself.

    Args:
        sender: Sends the requests.
        profile: The profile of the upstream; "" if it is unknown.
        is_local: Whether the paths of model servers are tried if the model list does not name the server. Providers on
            the internet have none of them.
    """
    listing = await sender.list_models()
    body = read_full_object(listing.body.decode("utf-8", "replace")) if listing.is_success else None
    models = ServerAnswer(body or {}, {})
    engine = profile or detect_by_models(models) or _detect_gateway(models)
    if listing.is_unreachable:
        return ServerFacts(listing=listing, engine=engine)
    if not engine and is_local:
        engine = await _detect_by_paths(sender)
    details: Json = {}
    if path := WINDOW_PATHS.get(engine):
        details = await sender.call_server(path) or {}
    return ServerFacts(
        listing=listing,
        has_list=isinstance(models.body.get("data"), list),
        engine=engine,
        version=await _read_version(sender, engine),
        models=tuple(as_text(as_mapping(entry).get("id")) for entry in as_list(models.body.get("data"))),
        windows=context_windows(models, ServerAnswer(details, {})) | _provider_windows(models.body),
        prices=_read_prices(models.body),
        tool_parser=await _read_tool_parser(sender) if engine == "sglang" else None,
    )


def _detect_gateway(models: ServerAnswer) -> str:
    owners = {as_mapping(entry).get("owned_by") for entry in as_list(models.body.get("data"))}
    return GATEWAY if owners == {GATEWAY} else ""


async def _detect_by_paths(sender: Sender) -> str:
    answers = await asyncio.gather(*(sender.call_server(path) for path in SERVER_PATHS))
    names = (
        detect_by_path(path, ServerAnswer(answer or {}, {})) for path, answer in zip(SERVER_PATHS, answers, strict=True)
    )
    return next(filter(None, names), "")


async def _read_version(sender: Sender, engine: str) -> str:
    for path, field in VERSION_FIELDS.get(engine, ()):
        if version := as_text((await sender.call_server(path) or {}).get(field)):
            return version
    return ""


async def _read_tool_parser(sender: Sender) -> str | None:
    for path in PARSER_PATHS:
        answer = await sender.call_server(path) or {}
        if "tool_call_parser" in answer:
            return as_text(answer["tool_call_parser"])
    return None


def _provider_windows(body: Mapping[str, Any]) -> dict[str, int]:
    """Return the windows in the model lists of providers, such as `context_length` of OpenRouter."""
    windows: dict[str, int] = {}
    for entry in map(as_mapping, as_list(body.get("data"))):
        window = entry.get("context_length") or entry.get("context_window")
        if isinstance(window, int) and window > 0:
            windows[as_text(entry.get("id"))] = window
    return windows


def _read_prices(body: Mapping[str, Any]) -> dict[str, Price]:
    """Return the prices in OpenRouter's model list, which has them for each token, as text."""
    prices: dict[str, Price] = {}
    for entry in map(as_mapping, as_list(body.get("data"))):
        pricing = as_mapping(entry.get("pricing"))
        try:
            price = Price(float(pricing["prompt"]) * 1e6, float(pricing["completion"]) * 1e6)
        except (KeyError, TypeError, ValueError):
            continue
        prices[as_text(entry.get("id"))] = price
    return prices
