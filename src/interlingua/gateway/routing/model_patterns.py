"""Lookup of a client's model id: an entry of `models` with its fallbacks, a tier, or the default upstream.

Precedence: an exact id of `models`, patterns with `*` (most specific first), Claude's tiers, the default upstream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from interlingua.errors import BadSetting, suggestion_hint
from interlingua.gateway.settings.schema import Model, Settings

__all__ = ["ModelIds", "ModelTarget", "match_wildcards", "most_specific_first"]

WILDCARD = "*"
TIER_PREFIX = "claude-"
"""Beginning of a tier's id in the model list. Claude Code ignores ids without `claude`."""
_WILDCARD_HINT = "each `*` is replaced by the text that a `*` of the id matched"


class ModelTarget(Struct, frozen=True):
    """Model at an upstream."""

    entry: Model
    id: str
    """Model id at the upstream."""


def match_wildcards(pattern: str, id: str) -> tuple[str, ...] | None:
    """Return the text that each `*` of the pattern matches in the id, or None if the id does not match.

    Only `*` is special. The first `*` is the greediest. The literals between wildcards are searched from the end,
    without backtracking, so the time is bounded; a regular expression would backtrack.
    """
    first, *remainder = pattern.split(WILDCARD)
    if not remainder:
        return () if id == pattern else None
    *middle, last = remainder
    if not id.startswith(first) or not id.endswith(last) or len(id) < len(first) + len(last):
        return None
    end = len(id) - len(last)
    matches = []
    for text in reversed(middle):
        position = id.rfind(text, len(first), end)
        if position < 0:
            return None
        matches.append(id[position + len(text) : end])
        end = position
    return (id[len(first) : end], *reversed(matches))


def most_specific_first(patterns: Iterable[str]) -> list[str]:
    return sorted(patterns, key=lambda pattern: -len(pattern.replace(WILDCARD, "")))


class ModelIds:
    def __init__(self, settings: Settings) -> None:
        self._table = settings.models
        self._patterns = most_specific_first(id for id in self._table if WILDCARD in id)
        self._tiers = settings.tiers
        self.default = _default_upstream(settings)
        self._api_defaults = _api_defaults(settings)
        self.listed_ids = [id for id in self._table if WILDCARD not in id]
        """Ids and aliases of the table, without patterns."""
        self.tier_ids = [f"{TIER_PREFIX}{tier}" for tier in self._tiers]
        """Ids of the tiers for the model list."""

    def find(self, id: str, api: str = "") -> list[ModelTarget]:
        """Return the target of the id and its fallbacks, in order. The list is empty if the id is unknown.

        `api` is the API of the client, if it is known.
        """
        if self._table_key(id) is not None:
            return list(self._resolve_chain(id, set()))
        for tier, target in self._tiers.items():
            if _is_tier(id.lower(), tier):
                return list(self._resolve_chain(target, set())) or self._default_target(target, api)
        return self._default_target(id, api)

    def _default_target(self, id: str, api: str) -> list[ModelTarget]:
        default = self._api_defaults.get(api, self.default)
        return [ModelTarget(Model(upstream=default), id)] if default and id else []

    def _resolve_chain(self, id: str, seen: set[str], path: tuple[str, ...] = ()) -> Iterator[ModelTarget]:
        """Yield the target of this id and, recursively, of its fallbacks; each id once.

        `path` are the keys on the way to this id. No key occurs twice in it: with `*` the recursion might not end.
        """
        key = self._table_key(id)
        if key is None or key in path or id in seen:
            return
        seen.add(id)
        entry, matches = self._table[key], match_wildcards(key, id) or ()
        if isinstance(entry, Model):
            yield ModelTarget(entry, _fill_wildcards(entry.model, matches) or id)
        for target in entry.fallback if isinstance(entry, Model) else (entry,):
            yield from self._resolve_chain(_fill_wildcards(target, matches), seen, (*path, key))

    def _table_key(self, id: str) -> str | None:
        """Return the key of the table that matches the id: the id itself or a pattern; None if there is none."""
        if id in self._table:
            return id
        return next((pattern for pattern in self._patterns if match_wildcards(pattern, id) is not None), None)

    # ── checks of the table ───────────────────────────────────────────────────────────────────────────────────────────

    def find_problems(self, settings: Settings) -> Iterator[BadSetting]:
        """Yield an error for each name that does not exist, and for each wrong pattern."""
        if settings.default and settings.default not in settings.upstreams:
            hint = suggestion_hint(settings.default, settings.upstreams)
            yield BadSetting(("default",), f"no upstream is called {settings.default!r}", hint)
        for id, entry in self._table.items():
            yield from (
                self._check_alias(id, entry) if isinstance(entry, str) else self._check_entry(id, entry, settings)
            )
        for tier, target in self._tiers.items():
            if not (target and (self.default or self._table_key(target))):
                yield BadSetting(("tiers", tier), f"no model is called {target!r}", self._hint(target))

    def find_doubtful_tiers(self) -> Iterator[BadSetting]:
        """Yield a warning for each tier whose model is not in the table, but resembles one that is.

        The default upstream gets such a model under the name in the settings, and may know it.
        """
        for tier, target in self._tiers.items():
            hint = suggestion_hint(target, self._table) if self.default and self._table else ""
            if hint.startswith("did you mean") and self._table_key(target) is None:
                problem = f"{target!r} is not in `models`, so it goes to {self.default} under this name"
                yield BadSetting(("tiers", tier), problem, hint)

    def _check_entry(self, id: str, entry: Model, settings: Settings) -> Iterator[BadSetting]:
        path = ("models", id)
        if entry.upstream not in settings.upstreams:
            yield BadSetting(
                (*path, "upstream"),
                f"no upstream is called {entry.upstream!r}",
                suggestion_hint(entry.upstream, settings.upstreams),
            )
        if entry.model.count(WILDCARD) > id.count(WILDCARD):
            yield BadSetting((*path, "model"), f"{entry.model!r} has more `*` than the id", _WILDCARD_HINT)
        for fallback in entry.fallback:
            yield from self._check_target((*path, "fallback"), id, fallback)

    def _check_alias(self, id: str, target: str) -> Iterator[BadSetting]:
        path, visited = ("models", id), [id]
        entry: Model | str = target
        while isinstance(entry, str):
            if problems := list(self._check_target(path, visited[-1], entry)):
                yield from problems
                return
            key = self._table_key(entry)
            assert key is not None
            if key in visited:
                loop = " → ".join((*visited, key))
                yield BadSetting(path, f"circular alias: {loop}", "give one of them an `upstream`")
                return
            visited.append(key)
            entry = self._table[key]

    def _check_target(self, path: tuple[str, ...], id: str, target: str) -> Iterator[BadSetting]:
        if target.count(WILDCARD) > id.count(WILDCARD):
            yield BadSetting(path, f"{target!r} has more `*` than the id", _WILDCARD_HINT)
        elif self._table_key(target) is None:
            yield BadSetting(path, f"no entry of `models` is called {target!r}", self._hint(target))

    def _hint(self, id: str) -> str:
        return suggestion_hint(id, self._table) if self._table else "add it to `models` with its upstream"


def _default_upstream(settings: Settings) -> str:
    """Return the upstream for ids that match nothing else, or "" if there is none."""
    if settings.default and settings.default not in settings.upstreams:
        return ""
    only_upstream = list(settings.upstreams) if len(settings.upstreams) == 1 else [""]
    return settings.default or only_upstream[0]


def _api_defaults(settings: Settings) -> dict[str, str]:
    for api, name in settings.api_defaults.items():
        if name not in settings.upstreams:
            hint = suggestion_hint(name, settings.upstreams)
            raise BadSetting(("api_defaults", api), f"no upstream is called {name!r}", hint)
    return {str(api): name for api, name in settings.api_defaults.items()}


def _fill_wildcards(target: str, matches: tuple[str, ...]) -> str:
    """Replace each `*` of the target by the matched texts, in order."""
    first, *remainder = target.split(WILDCARD)
    return first + "".join(matched + text for matched, text in zip(matches, remainder, strict=False))


def _is_tier(id: str, tier: str) -> bool:
    return id == tier or ("claude" in id and tier in id)
