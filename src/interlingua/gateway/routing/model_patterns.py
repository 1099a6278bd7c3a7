"""What a client's model id stands for: an entry of the table and its fallbacks, a tier, or the upstream of all others.

An id of the table itself comes first, then those with `*`, the longest first, then Claude's tiers, then the default.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from interlingua.errors import BadSetting, nearest
from interlingua.gateway.settings.schema import Model, Settings

__all__ = ["Meant", "ModelIds", "met", "most_telling_first"]

ANYTHING = "*"
_ASTERISK_HINT = "each `*` is what one in the id has met"


class Meant(Struct, frozen=True):
    """A model at an upstream."""

    entry: Model
    id: str
    """What the upstream calls it."""


def met(pattern: str, id: str) -> tuple[str, ...] | None:
    """What each `*` of the pattern stands for in this id, the first as much as it can; None: the id is no such one.

    Nothing but `*` means anything. Each text between two of them is looked for from the end, and never again: a regular
    expression would try them all against each other.
    """
    first, *rest = pattern.split(ANYTHING)
    if not rest:
        return () if id == pattern else None
    *between, last = rest
    if not id.startswith(first) or not id.endswith(last) or len(id) < len(first) + len(last):
        return None
    end = len(id) - len(last)
    words = []
    for text in reversed(between):
        at = id.rfind(text, len(first), end)
        if at < 0:
            return None
        words.append(id[at + len(text) : end])
        end = at
    return (id[len(first) : end], *reversed(words))


def most_telling_first(patterns: Iterable[str]) -> list[str]:
    return sorted(patterns, key=lambda pattern: -len(pattern.replace(ANYTHING, "")))


class ModelIds:
    def __init__(self, settings: Settings) -> None:
        self._table = settings.models
        self._patterns = most_telling_first(id for id in self._table if ANYTHING in id)
        self._tiers = settings.tiers
        self.default = _default(settings)
        self.listed = [id for id in self._table if ANYTHING not in id]
        """The ids that a client can be told of."""
        self._check(settings)

    def find(self, id: str) -> list[Meant]:
        """What it stands for, and what is asked in turn if that fails; nothing: it is not known."""
        if self._key(id) is not None:
            return list(self._in_turn(id, set()))
        for tier, target in self._tiers.items():
            if _is_tier(id.lower(), tier):
                return list(self._in_turn(target, set())) or self._left_to_default(target)
        return self._left_to_default(id)

    def _left_to_default(self, id: str) -> list[Meant]:
        return [Meant(Model(upstream=self.default), id)] if self.default and id else []

    def _in_turn(self, id: str, seen: set[str], way: tuple[str, ...] = ()) -> Iterator[Meant]:
        """The entry of this id, and its fallbacks with theirs; each id once. Nothing, if there is none. No entry leads
        back to itself on the way: with `*` that might go on for ever."""
        key = self._key(id)
        if key is None or key in way or id in seen:
            return
        seen.add(id)
        entry, words = self._table[key], met(key, id) or ()
        if isinstance(entry, Model):
            yield Meant(entry, _filled(entry.model, words) or id)
        for other in entry.fallback if isinstance(entry, Model) else (entry,):
            yield from self._in_turn(_filled(other, words), seen, (*way, key))

    def _key(self, id: str) -> str | None:
        """The id in the table that means this one."""
        if id in self._table:
            return id
        return next((pattern for pattern in self._patterns if met(pattern, id) is not None), None)

    # ── what is wrong with the table ──────────────────────────────────────────────────────────────────────────────────

    def _check(self, settings: Settings) -> None:
        for id, entry in self._table.items():
            if isinstance(entry, str):
                self._check_alias(id, entry)
            else:
                self._check_entry(id, entry, settings)
        for tier, target in self._tiers.items():
            if not (target and (self.default or self._key(target))):
                raise BadSetting(("tiers", tier), f"no model is called {target!r}", self._hint(target))

    def _check_entry(self, id: str, entry: Model, settings: Settings) -> None:
        path = ("models", id)
        if entry.upstream not in settings.upstreams:
            raise BadSetting(
                (*path, "upstream"),
                f"no upstream is called {entry.upstream!r}",
                nearest(entry.upstream, settings.upstreams),
            )
        if entry.model.count(ANYTHING) > id.count(ANYTHING):
            raise BadSetting((*path, "model"), f"{entry.model!r} has more `*` than the id", _ASTERISK_HINT)
        for other in entry.fallback:
            self._check_known((*path, "fallback"), id, other)

    def _check_alias(self, id: str, target: str) -> None:
        path, way = ("models", id), [id]
        entry: Model | str = target
        while isinstance(entry, str):
            self._check_known(path, way[-1], entry)
            key = self._key(entry)
            assert key is not None
            if key in way:
                loop = " → ".join((*way, key))
                raise BadSetting(
                    path, f"these ids only stand for each other: {loop}", "let one of them name its upstream"
                )
            way.append(key)
            entry = self._table[key]

    def _check_known(self, path: tuple[str, ...], id: str, other: str) -> None:
        if other.count(ANYTHING) > id.count(ANYTHING):
            raise BadSetting(path, f"{other!r} has more `*` than the id", _ASTERISK_HINT)
        if self._key(other) is None:
            raise BadSetting(path, f"no entry of `models` is called {other!r}", self._hint(other))

    def _hint(self, id: str) -> str:
        return nearest(id, self._table) if self._table else "name its upstream in `models`"


def _default(settings: Settings) -> str:
    """The upstream of all ids that nothing else means; "": there is none."""
    if settings.default and settings.default not in settings.upstreams:
        raise BadSetting(
            ("default",),
            f"no upstream is called {settings.default!r}",
            nearest(settings.default, settings.upstreams),
        )
    only = list(settings.upstreams) if len(settings.upstreams) == 1 else [""]
    return settings.default or only[0]


def _filled(target: str, words: tuple[str, ...]) -> str:
    """Each `*` of it as what was met in turn."""
    first, *rest = target.split(ANYTHING)
    return first + "".join(word + text for word, text in zip(words, rest, strict=False))


def _is_tier(id: str, tier: str) -> bool:
    return id == tier or ("claude" in id and tier in id)
