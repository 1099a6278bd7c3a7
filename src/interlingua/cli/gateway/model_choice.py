"""Model of `interlingua run`: chosen, and checked with the upstream's model list before the agent starts.

An agent hides errors of its upstream behind its own screen, and retries for minutes.
"""

from __future__ import annotations

import difflib

import msgspec

from interlingua.cli.common.terminal import progress
from interlingua.common.name_list import join_names
from interlingua.errors import BadInput, UnknownModel, UsageError
from interlingua.gateway.routing.routes import DEMO_UPSTREAM, REPLAY_UPSTREAM, Route, Routes
from interlingua.gateway.upstream.listed_models import MISSING_STATUSES, fetch_models
from interlingua.translation.upstream_errors import UpstreamFailed

__all__ = ["ModelChoice", "choose_model", "list_models"]

CONNECT_TIMEOUT_SECONDS = 3.0
LIST_TIMEOUT_SECONDS = 8.0
"""An upstream that accepts the connection but takes longer than this for its list is not checked."""
UNAUTHORIZED_STATUS = 401
REDIRECT_STATUSES = range(300, 400)
MAX_LISTED_MODELS = 20
MAX_LISTED_DEMO_MODELS = 5
DEFAULT_DEMO_MODEL = f"{DEMO_UPSTREAM}/kimi_k2"
COMPLETE_LIST_SERVERS = ("vllm", "sglang", "ollama")
"""Servers that answer requests only for the models in their list. Providers may have more than they list."""
ANY_NAME_SERVERS = ("llama.cpp",)
"""Servers with one model, which has any name."""
ANYWAY_HINT = "--no-check starts the agent anyway"


class UpstreamModels(msgspec.Struct, frozen=True):
    """Models of an upstream, as far as it lists them."""

    ids: list[str] = []
    server: str = ""
    """Profile of the model server; "" if it is unknown."""
    note: str = ""
    """Reason why the models are not known; "" if they are, or if the upstream has no list."""


class ModelChoice(msgspec.Struct, frozen=True):
    model: str
    """Model id that the agent requests."""
    route: Route
    """The first route of the model whose upstream can be reached, if they were asked."""
    fallbacks: list[Route] = []
    """The routes that follow it. Their upstreams answer if its upstream fails."""
    notes: list[str] = []
    """Notes for the user before the agent starts."""


def choose_model(routes: Routes, requested: str | None, *, is_checked: bool) -> ModelChoice:
    """Return the model for the agent: the requested one, the first of the settings, or the upstream's only model.

    Args:
        routes: The routing table of the gateway.
        requested: The model id from the command line; None if there is none.
        is_checked: Whether the upstream is asked for its models.

    Raises:
        UsageError: There is no such model, or the model is not specified and there are several.
        BadInput: The upstream cannot be reached, or refuses the key.
    """
    model = requested or _first_configured(routes)
    if model is None:
        return _choose_listed(routes, is_checked=is_checked)
    candidates = _find_routes(routes, model)
    if not is_checked or candidates[0].name in (DEMO_UPSTREAM, REPLAY_UPSTREAM):
        return ModelChoice(model, candidates[0], candidates[1:])
    route, notes = _find_reachable(candidates)
    return ModelChoice(model, route, candidates[candidates.index(route) + 1 :], notes)


def _first_configured(routes: Routes) -> str | None:
    ids = routes.model_ids()
    configured = [id for id in ids if not id.startswith(f"{DEMO_UPSTREAM}/")]
    return configured[0] if configured else DEFAULT_DEMO_MODEL if ids else None


def _choose_listed(routes: Routes, *, is_checked: bool) -> ModelChoice:
    """Return the only model that the default upstream lists."""
    default = routes.default
    if default is None or not is_checked:
        raise UsageError(
            "the model is not specified, and the settings list none",
            "add --model NAME, with the name that the upstream uses",
        )
    url, models = default.upstream.url, list_models(default)
    ids = models.ids
    if not ids:
        raise UsageError(
            f"the model is not specified, and {models.note or f'{url} lists none'}",
            "add --model NAME, with the name that the upstream uses",
        )
    if len(ids) > 1:
        raise UsageError(
            "the model is not specified",
            f"add --model with one of those that {url} has: {join_names(ids, MAX_LISTED_MODELS)}",
        )
    return ModelChoice(ids[0], routes.find(ids[0])[0], notes=[f"the upstream has one model: {ids[0]}"])


def _find_routes(routes: Routes, model: str) -> list[Route]:
    try:
        return routes.find(model)
    except UnknownModel as error:
        ids = sorted(routes.model_ids())
        known = f"known models: {join_names(ids, MAX_LISTED_DEMO_MODELS)}; see `interlingua config show`"
        hint = error.hint if error.hint.startswith("did you mean") else known if ids else "add --upstream URL"
        raise UsageError(f"--model: unknown model {model!r}", hint) from None


def _find_reachable(candidates: list[Route]) -> tuple[Route, list[str]]:
    """Return the first route whose upstream can be reached, and notes about the others.

    Raises:
        BadInput: No upstream can be reached, or the first one refuses the key or has no such model.
    """
    *candidates_with_fallback, last = candidates
    notes: list[str] = []
    for route in candidates_with_fallback:
        try:
            models = list_models(route)
        except BadInput as error:
            notes.append(f"{error}; its fallback answers")
        else:
            return route, [*notes, *_check_model(route, models)]
    return last, [*notes, *_check_model(last, list_models(last))]


def list_models(route: Route) -> UpstreamModels:
    """Return the models of an upstream; none, with a note, if it answers, but not with a list.

    Raises:
        BadInput: It cannot be reached, refuses the key, redirects, or answers with a web page.
    """
    url = route.upstream.url
    try:
        with progress(f"asking {url} for its models"):
            models = fetch_models(route, CONNECT_TIMEOUT_SECONDS, LIST_TIMEOUT_SECONDS)
    except TimeoutError:
        return UpstreamModels(note=f"{url} has not listed its models within {LIST_TIMEOUT_SECONDS:g} s; not checked")
    except UpstreamFailed as error:
        if error.upstream_status == UNAUTHORIZED_STATUS:
            raise BadInput(
                f"the upstream {url} refuses the key: {error}",
                "set it with --upstream-key-env NAME, or `key` in the settings",
            ) from error
        if error.upstream_status in MISSING_STATUSES:
            return UpstreamModels()
        if error.upstream_status and error.upstream_status not in REDIRECT_STATUSES:
            return UpstreamModels(note=f"the model list of {url} has status {error.upstream_status}: {error}")
        raise BadInput(
            f"the upstream cannot be used: {error}", f"start it, or correct its URL; {ANYWAY_HINT}"
        ) from error
    if models.is_web_page:
        raise BadInput(f"{url} answers with a web page", f"for most servers the URL ends in /v1; {ANYWAY_HINT}")
    return UpstreamModels(models.ids, models.server)


def _check_model(route: Route, models: UpstreamModels) -> list[str]:
    """Return a note if the upstream does not list the model. Raises BadInput if it cannot be meant as it is."""
    if models.note:
        return [models.note]
    if not models.ids or models.server in ANY_NAME_SERVERS or _is_listed(route.model, models.ids):
        return []
    problem = f"{route.upstream.url} does not list the model {route.model!r}"
    similar = _similar_ids(route.model, models.ids)
    if similar:
        raise BadInput(problem, f"did you mean {' or '.join(similar)}? {ANYWAY_HINT}")
    if models.server in COMPLETE_LIST_SERVERS:
        raise BadInput(problem, f"it has: {join_names(models.ids, MAX_LISTED_MODELS)}; {ANYWAY_HINT}")
    return [problem]


def _is_listed(model: str, ids: list[str]) -> bool:
    """Return whether a model is in the list. Ollama adds `:latest` to names, and OpenRouter takes a `:variant`."""
    return any(name in ids for name in (model, f"{model}:latest", model.partition(":")[0]))


def _similar_ids(model: str, ids: list[str]) -> list[str]:
    """Return at most three similar ids, the most similar first. Neither case nor the owner before a slash matters."""
    by_name = {_bare_name(id): id for id in reversed(ids)}
    matches = difflib.get_close_matches(_bare_name(model), by_name, n=3, cutoff=0.75)
    return [by_name[name] for name in matches]


def _bare_name(id: str) -> str:
    return id.rpartition("/")[2].lower()
