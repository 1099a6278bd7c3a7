"""Routes: the upstreams for a client's model id, with the model id there and all its settings."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import Any

import msgspec

from interlingua.core.options import ArgumentsPolicy, Delivery, ReasoningPolicy
from interlingua.errors import BadInput, BadSetting, UnknownModel, UnknownUpstream, suggestion_hint
from interlingua.gateway.routing.model_dialects import DialectChoice, ModelDialects, find_dialect_problems
from interlingua.gateway.routing.model_patterns import ModelIds, ModelTarget
from interlingua.gateway.settings.checks import find_problems
from interlingua.gateway.settings.loader import LoadedSettings, raise_settings_errors
from interlingua.gateway.settings.schema import EmptyPolicy, Model, Settings, Timeouts, Upstream
from interlingua.translation.constraints import Strictness
from interlingua.translation.exchange import UpstreamTarget
from interlingua.upstreams import get_profile, profile_for_url
from interlingua.upstreams.profile import UNKNOWN, Profile

__all__ = [
    "DEMO_UPSTREAM",
    "REPLAY_UPSTREAM",
    "Route",
    "Routes",
    "find_settings_doubts",
    "find_settings_problems",
    "routes_for",
]

DEMO_UPSTREAM = "demo"
"""The upstream that `demo: true` adds. Its models are the dialects, as demo/<dialect>."""
REPLAY_UPSTREAM = "cassette"
"""The upstream of every model id if recorded replies are replayed. It is never asked: recordings have their own."""
DEMO_MODEL_PATTERN = f"{DEMO_UPSTREAM}/*"
MAX_MODEL_ID_CHARS = 500
"""Longer model ids are rejected as unknown."""
ROUTE_CACHE_SIZE = 1000
"""Number of cached lookups. Finding the dialect of a model takes longer than the rest of the request preparation."""


class Route(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One upstream for a model, with all settings that apply."""

    name: str
    """Name of the upstream in the settings."""
    upstream: Upstream
    profile: Profile
    model: str
    """Model id at the upstream."""
    dialect: DialectChoice
    timeouts: Timeouts
    prefill: str
    delivery: Delivery
    arguments: ArgumentsPolicy
    reasoning: ReasoningPolicy
    empty: EmptyPolicy
    strict: Strictness
    fallback_on: tuple[int, ...]
    """Additional 4xx statuses that lead to the next route."""
    extra: dict[str, Any]
    """Additional fields of the request body: those of the upstream, overridden by those of the model."""
    window: int = 0
    """Context window of the model in tokens, as its server reports it; 0: unknown."""
    is_profile_detected: bool = False
    """True if the profile was detected by the answers of the server."""

    @cached_property
    def target(self) -> UpstreamTarget:
        """The upstream for the translation of a request."""
        return UpstreamTarget(
            api=self.upstream.api,
            profile=self.profile,
            name=self.name,
            model=self.model,
            dialect=self.dialect,
            extra=self.extra,
            strict=self.strict,
            is_profile_detected=self.is_profile_detected,
        )

    @property
    def dialect_name(self) -> str:
        return self.dialect if isinstance(self.dialect, str) else self.dialect.name


class Routes:
    """Routing table of the gateway. The constructor raises BadSetting for wrong settings; lookups do not."""

    def __init__(self, settings: Settings, demo_url: str = "http://127.0.0.1/v1") -> None:
        for problem in find_route_problems(settings):
            raise problem
        self._settings = _with_built_in(settings, demo_url)
        self._dialects = ModelDialects(self._settings)
        self._profiles = {
            name: _upstream_profile(name, upstream) for name, upstream in self._settings.upstreams.items()
        }
        if self._settings.demo:
            demo_profile = self._profiles[DEMO_UPSTREAM]
            self._profiles[DEMO_UPSTREAM] = msgspec.structs.replace(demo_profile, constraint="structured_outputs")
        self._model_ids = ModelIds(self._settings)
        for problem in self._find_demo_problems():
            raise problem
        self._find_cached = lru_cache(ROUTE_CACHE_SIZE)(self._find)

    def model_ids(self) -> list[str]:
        """Return the ids for the model list. Ids that match a pattern with `*` are not known here."""
        demo = [f"{DEMO_UPSTREAM}/{dialect.name}" for dialect in self._dialects.native] if self._settings.demo else []
        return list(dict.fromkeys([*self._model_ids.listed_ids, *self._model_ids.tier_ids, *demo]))

    @cached_property
    def configured_targets(self) -> list[tuple[str, str]]:
        """Names of upstream and model of all routes that the settings list, without wildcards and demo models."""
        routes = [route for id in self._model_ids.listed_ids for route in self._find(id)]
        return list(dict.fromkeys((route.name, route.model) for route in routes if route.name != DEMO_UPSTREAM))

    @cached_property
    def configured_models(self) -> frozenset[str]:
        """Model ids at upstreams that the settings list."""
        return frozenset(model for _, model in self.configured_targets)

    def configured_routes(self, upstream: str) -> list[Route]:
        """Return the routes to this upstream that the settings list, each model once."""
        routes = [route for id in self._model_ids.listed_ids for route in self._find(id) if route.name == upstream]
        return list({route.model: route for route in routes}.values())

    def upstream_route(self, upstream: str, model: str = "") -> Route:
        """Return the route to a model of this upstream, with the upstream's settings only."""
        return self._route(ModelTarget(Model(upstream=upstream), model))

    def find(self, model_id: str, api: str = "") -> list[Route]:
        """Return the routes for this model id, in order. Raise UnknownModel if there is none.

        `api` is the API of the client, if it is known.
        """
        if len(model_id) > MAX_MODEL_ID_CHARS:
            raise UnknownModel(model_id, self.model_ids())
        return list(self._find_cached(model_id, api))

    @property
    def default(self) -> Route | None:
        """Route for ids that match nothing else, without a model id; None if there is no default upstream."""
        upstream = self._model_ids.default
        return self._route(ModelTarget(Model(upstream=upstream), "")) if upstream else None

    def _find(self, model_id: str, api: str = "") -> tuple[Route, ...]:
        targets = self._model_ids.find(model_id, api)
        if not targets or any(self._is_unknown_demo(target) for target in targets):
            raise UnknownModel(model_id, self.model_ids())
        routes: list[Route] = []
        for route in map(self._route, targets):
            if route not in routes:
                routes.append(route)
        return tuple(routes)

    def _route(self, target: ModelTarget) -> Route:
        entry, upstream = target.entry, self._settings.upstreams[target.entry.upstream]
        return Route(
            name=entry.upstream,
            upstream=upstream,
            profile=_model_profile(self._profiles[entry.upstream], entry),
            model=target.id,
            dialect=self._dialect(target, entry.dialect or upstream.dialect),
            timeouts=entry.timeouts or upstream.timeouts,
            prefill=entry.prefill,
            delivery=entry.delivery or self._settings.delivery,
            arguments=entry.arguments or self._settings.arguments,
            reasoning=entry.reasoning or self._settings.reasoning,
            fallback_on=tuple(entry.fallback_on),
            empty=entry.empty or self._settings.empty,
            strict=entry.strict or self._settings.strict,
            extra={**upstream.extra, **entry.extra},
        )

    def _dialect(self, target: ModelTarget, configured: str) -> DialectChoice:
        demo_dialect = self._dialects.get(target.id) if self._is_demo(target) else None
        return demo_dialect or self._dialects.resolve(target.id, configured)

    def _is_demo(self, target: ModelTarget) -> bool:
        return self._settings.demo and target.entry.upstream == DEMO_UPSTREAM

    def _is_unknown_demo(self, target: ModelTarget) -> bool:
        return self._is_demo(target) and self._dialects.get(target.id) is None

    def _find_demo_problems(self) -> Iterator[BadSetting]:
        """Yield an error for each reference to the demo upstream that names no dialect."""
        dialect_names = [dialect.name for dialect in self._dialects.native]
        references = [(("models", id), id) for id in self._model_ids.listed_ids]
        references += [(("tiers", tier), tier_target) for tier, tier_target in self._settings.tiers.items()]
        for path, id in references:
            for target in filter(self._is_unknown_demo, self._model_ids.find(id)):
                yield BadSetting(
                    path, f"the demo has no model {target.id!r}", suggestion_hint(target.id, dialect_names)
                )


def routes_for(loaded: LoadedSettings, demo_url: str = "") -> Routes:
    """Return the routes of these settings.

    Raises:
        BadInput: A setting is wrong. The error names its file and line.
        BadSettings: Several settings are wrong.
    """
    raise_settings_errors(find_settings_problems(loaded))
    try:
        return Routes(loaded.settings, demo_url) if demo_url else Routes(loaded.settings)
    except BadSetting as error:
        raise loaded.locate_error(error) from error


def find_settings_problems(loaded: LoadedSettings) -> list[BadInput]:
    """Return an error for each setting that cannot be read or is wrong, with its file and line.

    What depends on a setting that cannot be read is not checked. A field with an unknown name may be any setting.
    """
    unreadable = list(loaded.problems.values())
    if any(len(path) == 1 and path[0] not in Settings.__struct_fields__ for path in loaded.problems):
        return unreadable
    problems = [error for error in find_route_problems(loaded.settings) if not loaded.is_unreadable(error.path)]
    for error in problems if loaded.search_note else ():
        if error.path == ("upstreams",):
            error.args = (f"{error}, and {loaded.search_note}",)
    return [*unreadable, *map(loaded.locate_error, problems)]


def find_route_problems(settings: Settings) -> Iterator[BadSetting]:
    """Yield an error for each wrong setting. Those of demo models are found only if there are no others."""
    if settings.demo and DEMO_UPSTREAM in settings.upstreams:
        yield BadSetting(
            ("upstreams", DEMO_UPSTREAM),
            "the name is reserved for the upstream that `demo: true` adds",
            "choose another name",
        )
        return
    settings = _with_built_in(settings, "http://127.0.0.1/v1")
    yield from find_problems(settings)
    yield from find_dialect_problems(settings)
    for name, upstream in settings.upstreams.items():
        try:
            _upstream_profile(name, upstream)
        except BadSetting as error:
            yield error
    yield from ModelIds(settings).find_problems(settings)


def find_settings_doubts(loaded: LoadedSettings) -> list[str]:
    """Return warnings about settings that are valid, but probably not meant as they are."""
    doubts = ModelIds(loaded.settings).find_doubtful_tiers()
    return [f"{error}; {error.hint}" for error in map(loaded.locate_error, doubts)]


def _with_built_in(settings: Settings, demo_url: str) -> Settings:
    """Return the settings with the upstream of recorded replies, or of the demo model, if there is one."""
    if settings.cassettes is not None and settings.cassettes.mode == "replay":
        return _with_replay(settings)
    return _with_demo(settings, demo_url) if settings.demo else settings


def _with_demo(settings: Settings, url: str) -> Settings:
    default = settings.default or (next(iter(settings.upstreams)) if len(settings.upstreams) == 1 else "")
    return msgspec.structs.replace(
        settings,
        upstreams={**settings.upstreams, DEMO_UPSTREAM: Upstream(url=url)},
        models={DEMO_MODEL_PATTERN: Model(upstream=DEMO_UPSTREAM, model="*"), **settings.models},
        default=default,
    )


def _with_replay(settings: Settings) -> Settings:
    """Return the settings with nothing but the upstream of recorded replies, so that no other is ever asked."""
    upstream = Upstream(url="http://127.0.0.1/v1", profile=UNKNOWN, count_tokens="estimate")
    models: dict[str, Model | str] = {"*": Model(upstream=REPLAY_UPSTREAM, model="*")}
    return msgspec.structs.replace(
        settings,
        upstreams={REPLAY_UPSTREAM: upstream},
        models=models,
        tiers={},
        default="",
        api_defaults={},
        demo=False,
    )


def _upstream_profile(name: str, upstream: Upstream) -> Profile:
    try:
        profile = profile_for_url(upstream.url) if upstream.profile == "auto" else get_profile(upstream.profile)
    except UnknownUpstream as error:
        raise BadSetting(("upstreams", name, "profile"), str(error), error.hint) from error
    changes: dict[str, Any] = {} if upstream.ids == "auto" else {"ids": upstream.ids}
    if upstream.server_tools == "upstream":
        changes |= {"web_search_wires": (upstream.api,), "tool_search": True}
    return msgspec.structs.replace(profile, **changes, settled=tuple(changes)) if changes else profile


def _model_profile(profile: Profile, model: Model) -> Profile:
    if model.vision is None:
        return profile
    return msgspec.structs.replace(profile, vision=model.vision, settled=(*profile.settled, "vision"))
