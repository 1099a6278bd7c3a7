"""Which upstreams are asked for a client's model, as what, and how."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from interlingua.core.options import Delivery, ReasoningPolicy
from interlingua.errors import BadSetting, UnknownModel, UnknownUpstream, nearest
from interlingua.gateway.routing.model_dialects import ModelDialects, Spoken
from interlingua.gateway.routing.model_patterns import Meant, ModelIds
from interlingua.gateway.settings.checks import check
from interlingua.gateway.settings.loader import Loaded
from interlingua.gateway.settings.schema import EmptyPolicy, Model, Settings, Timeouts, Upstream
from interlingua.upstreams import profile_for, profile_named
from interlingua.upstreams.profile import Profile

__all__ = ["DEMO", "Route", "Routes", "routes_for"]

DEMO = "demo"
"""The upstream that `demo: true` adds. Its models are the dialects, as demo/<dialect>."""
DEMO_MODELS = f"{DEMO}/*"
LONGEST = 500
"""No model has a longer id."""
KEPT = 1000
"""How many answers are kept: finding a model's dialect among all takes longer than the rest of asking."""


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One upstream that may be asked for a model, and all that is set for it."""

    name: str
    """The upstream's, among the settings."""
    upstream: Upstream
    profile: Profile
    model: str
    """The model's id there."""
    dialect: Spoken
    timeouts: Timeouts
    prefill: str
    delivery: Delivery
    reasoning: ReasoningPolicy
    empty: EmptyPolicy
    fallback_on: tuple[int, ...]
    """Of statuses that are answers otherwise."""
    extra: dict[str, Any]
    """Further fields of the request body: the upstream's, and over them the model's."""

    @property
    def dialect_name(self) -> str:
        return self.dialect if isinstance(self.dialect, str) else self.dialect.name


class Routes:
    """What is wrong among the settings raises BadSetting when this is made, never when a client asks."""

    def __init__(self, settings: Settings, demo_url: str = "http://127.0.0.1/v1") -> None:
        self._settings = _with_demo(settings, demo_url) if settings.demo else settings
        check(self._settings)
        self._dialects = ModelDialects(self._settings)
        self._profiles = {name: _profile(name, one) for name, one in self._settings.upstreams.items()}
        self._ids = ModelIds(self._settings)
        self._check_demo()
        self._known = lru_cache(KEPT)(self._find)

    def ids(self) -> list[str]:
        """What clients can be told of; what `*` may stand for is not known here."""
        demo = [f"{DEMO}/{dialect.name}" for dialect in self._dialects.native] if self._settings.demo else []
        return [*self._ids.listed, *demo]

    def find(self, model_id: str) -> list[Route]:
        """Whom to ask for this model, in turn. UnknownModel if there is nobody."""
        if len(model_id) > LONGEST:
            raise UnknownModel(model_id, self.ids())
        return list(self._known(model_id))

    @property
    def default(self) -> Route | None:
        """Who is asked for models that no entry names, if there is one. No model is named in it."""
        upstream = self._ids.default
        return self._route(Meant(Model(upstream=upstream), "")) if upstream else None

    def _find(self, model_id: str) -> tuple[Route, ...]:
        meant = self._ids.find(model_id)
        if not meant or any(self._is_unknown_demo(one) for one in meant):
            raise UnknownModel(model_id, self.ids())
        routes: list[Route] = []
        for route in map(self._route, meant):
            if route not in routes:
                routes.append(route)
        return tuple(routes)

    def _route(self, meant: Meant) -> Route:
        entry, upstream = meant.entry, self._settings.upstreams[meant.entry.upstream]
        return Route(
            name=entry.upstream,
            upstream=upstream,
            profile=self._profiles[entry.upstream],
            model=meant.id,
            dialect=self._dialect(meant, entry.dialect or upstream.dialect),
            timeouts=entry.timeouts or upstream.timeouts,
            prefill=entry.prefill,
            delivery=entry.delivery or self._settings.delivery,
            reasoning=entry.reasoning or self._settings.reasoning,
            fallback_on=tuple(entry.fallback_on),
            empty=entry.empty or self._settings.empty,
            extra={**upstream.extra, **entry.extra},
        )

    def _dialect(self, meant: Meant, said: str) -> Spoken:
        named = self._dialects.named(meant.id) if self._is_demo(meant) else None
        return named or self._dialects.spoken_by(meant.id, said)

    def _is_demo(self, meant: Meant) -> bool:
        return self._settings.demo and meant.entry.upstream == DEMO

    def _is_unknown_demo(self, meant: Meant) -> bool:
        return self._is_demo(meant) and self._dialects.named(meant.id) is None

    def _check_demo(self) -> None:
        """What leads to the demo names a dialect."""
        known = [dialect.name for dialect in self._dialects.native]
        ways = [(("models", id), id) for id in self._ids.listed]
        ways += [(("tiers", tier), target) for tier, target in self._settings.tiers.items()]
        for path, id in ways:
            for meant in filter(self._is_unknown_demo, self._ids.find(id)):
                raise BadSetting(path, f"the demo speaks no dialect {meant.id!r}", nearest(meant.id, known))


def routes_for(loaded: Loaded, demo_url: str = "") -> Routes:
    """Return the routes of these settings. An error names the file and line of the setting."""
    try:
        return Routes(loaded.settings, demo_url) if demo_url else Routes(loaded.settings)
    except BadSetting as error:
        raise loaded.located(error) from error


def _with_demo(settings: Settings, url: str) -> Settings:
    if DEMO in settings.upstreams:
        raise BadSetting(("upstreams", DEMO), "`demo: true` adds an upstream of this name", "call yours otherwise")
    default = settings.default or (next(iter(settings.upstreams)) if len(settings.upstreams) == 1 else "")
    return msgspec.structs.replace(
        settings,
        upstreams={**settings.upstreams, DEMO: Upstream(url=url)},
        models={DEMO_MODELS: Model(upstream=DEMO, model="*"), **settings.models},
        default=default,
    )


def _profile(name: str, upstream: Upstream) -> Profile:
    try:
        profile = profile_for(upstream.url) if upstream.profile == "auto" else profile_named(upstream.profile)
    except UnknownUpstream as error:
        raise BadSetting(("upstreams", name, "profile"), str(error), error.hint) from error
    return profile if upstream.ids == "auto" else msgspec.structs.replace(profile, ids=upstream.ids, settled=("ids",))
