"""What a client's model id stands for: an entry of the table and its fallbacks, a tier, or the upstream of all others.

An id of the table itself comes first, then those with `*`, the longest first, then Claude's tiers, then the default.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from interlingua.errors import BadSetting, suggestion_hint
from interlingua.gateway.settings.schema import Model, Settings

__all__ = ["ModelIds", "ModelTarget", "match_wildcards", "most_specific_first"]

WILDCARD = "*"
_WILDCARD_HINT = "each `*` is what one in the id has met"


class ModelTarget(Struct, frozen=True):
    """A model at an upstream."""

    entry: Model
    id: str
    """What the upstream calls it."""


def match_wildcards(pattern: str, id: str) -> tuple[str, ...] | None:
    """What each `*` of the pattern stands for in this id, the first as much as it can; None: the id is no such one.

    Nothing but `*` means anything. Each text between two of them is looked for from the end, and never again: a regular
    expression would try them all against each other.
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
        self.listed_ids = [id for id in self._table if WILDCARD not in id]
        """The ids that a client can be told of."""
        self._check_settings(settings)

    def find(self, id: str) -> list[ModelTarget]:
        """What it stands for, and what is asked in turn if that fails; nothing: it is not known."""
        if self._table_key(id) is not None:
            return list(self._resolve_chain(id, set()))
        for tier, target in self._tiers.items():
            if _is_tier(id.lower(), tier):
                return list(self._resolve_chain(target, set())) or self._default_target(target)
        return self._default_target(id)

    def _default_target(self, id: str) -> list[ModelTarget]:
        return [ModelTarget(Model(upstream=self.default), id)] if self.default and id else []

    def _resolve_chain(self, id: str, seen: set[str], path: tuple[str, ...] = ()) -> Iterator[ModelTarget]:
        """The entry of this id, and its fallbacks with theirs; each id once. Nothing, if there is none. No entry leads
        back to itself on the way: with `*` that might go on for ever."""
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
        """The id in the table that means this one."""
        if id in self._table:
            return id
        return next((pattern for pattern in self._patterns if match_wildcards(pattern, id) is not None), None)

    # ── what is wrong with the table ──────────────────────────────────────────────────────────────────────────────────

    def _check_settings(self, settings: Settings) -> None:
        for id, entry in self._table.items():
            if isinstance(entry, str):
                self._check_alias(id, entry)
            else:
                self._check_entry(id, entry, settings)
        for tier, target in self._tiers.items():
            if not (target and (self.default or self._table_key(target))):
                raise BadSetting(("tiers", tier), f"no model is called {target!r}", self._hint(target))

    def _check_entry(self, id: str, entry: Model, settings: Settings) -> None:
        path = ("models", id)
        if entry.upstream not in settings.upstreams:
            raise BadSetting(
                (*path, "upstream"),
                f"no upstream is called {entry.upstream!r}",
                suggestion_hint(entry.upstream, settings.upstreams),
            )
        if entry.model.count(WILDCARD) > id.count(WILDCARD):
            raise BadSetting((*path, "model"), f"{entry.model!r} has more `*` than the id", _WILDCARD_HINT)
        for fallback in entry.fallback:
            self._check_target((*path, "fallback"), id, fallback)

    def _check_alias(self, id: str, target: str) -> None:
        path, visited = ("models", id), [id]
        entry: Model | str = target
        while isinstance(entry, str):
            self._check_target(path, visited[-1], entry)
            key = self._table_key(entry)
            assert key is not None
            if key in visited:
                loop = " → ".join((*visited, key))
                raise BadSetting(
                    path, f"these ids only stand for each other: {loop}", "let one of them name its upstream"
                )
            visited.append(key)
            entry = self._table[key]

    def _check_target(self, path: tuple[str, ...], id: str, target: str) -> None:
        if target.count(WILDCARD) > id.count(WILDCARD):
            raise BadSetting(path, f"{target!r} has more `*` than the id", _WILDCARD_HINT)
        if self._table_key(target) is None:
            raise BadSetting(path, f"no entry of `models` is called {target!r}", self._hint(target))

    def _hint(self, id: str) -> str:
        return suggestion_hint(id, self._table) if self._table else "name its upstream in `models`"


def _default_upstream(settings: Settings) -> str:
    """The upstream of all ids that nothing else means; "": there is none."""
    if settings.default and settings.default not in settings.upstreams:
        raise BadSetting(
            ("default",),
            f"no upstream is called {settings.default!r}",
            suggestion_hint(settings.default, settings.upstreams),
        )
    only_upstream = list(settings.upstreams) if len(settings.upstreams) == 1 else [""]
    return settings.default or only_upstream[0]


def _fill_wildcards(target: str, matches: tuple[str, ...]) -> str:
    """Each `*` of it as what was met in turn."""
    first, *remainder = target.split(WILDCARD)
    return first + "".join(matched + text for matched, text in zip(matches, remainder, strict=False))


def _is_tier(id: str, tier: str) -> bool:
    return id == tier or ("claude" in id and tier in id)
