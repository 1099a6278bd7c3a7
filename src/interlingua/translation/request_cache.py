"""Memory of earlier requests: their tools and their conversations, translated.

An agent sends all of its tools and its whole conversation with each request. What is the same as in an earlier request
is translated once. The translation is a pure function, so an equal request has an equal result, whatever is in memory.
The key of an entry has everything that the result depends on, and the client: its requests never find what another
client has sent. Clients without a key of their own count as one client.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeAlias, TypeVar

import msgspec

from interlingua.common.common_prefix import common_prefix_length
from interlingua.translation.request_translation import Translated
from interlingua.translation.turn_translation import ConversationState
from interlingua.wires.base import Json
from interlingua.wires.requests.shared_tools import SharedToolList

__all__ = [
    "DEFAULT_CACHE_BYTES",
    "MAX_TOOL_LIST_BYTES",
    "ConversationMatch",
    "Cut",
    "RequestCache",
    "TranslatedConversation",
    "TranslatedHead",
]

DEFAULT_CACHE_BYTES = 32 * 1024 * 1024
MAX_CONVERSATIONS_PER_KEY = 256
"""Conversations with the same key: they are compared one by one."""
MAX_PROMPTS = 16
MAX_PROMPT_BYTES = 64 * 1024
"""Size up to which the measure of a system prompt is kept."""
MAX_CUTS = 8
"""Places of a conversation at which the translation can resume: the last ones, because agents change little else."""
MAX_TOOL_LISTS = 256
"""Number of tool lists that are kept: a client and each of its subagents have their own."""
MAX_TOOL_LIST_BYTES = 256 * 1024
"""Larger tool lists, in bytes of JSON, are not kept, nor are conversations with them."""
MAX_ALL_TOOL_LISTS_BYTES = 2 * 1024 * 1024
"""Size of all tool lists that are kept, in bytes of JSON. They need `TOOL_COPIES` times as much memory."""
TOOL_COPIES = 10
"""Memory of tools for each byte of their JSON: decoded, read, and written for the upstream."""
ITEM_BYTES = 400
"""Memory of the states of a conversation for each of its items."""
MAX_BEGINNINGS = 4
"""Conversations of which the common beginning is looked for, if there is no cut in it."""
PROBE_BYTES = 64
"""Bytes at the end of a conversation, and before a cut, that are compared first."""

CacheKey: TypeAlias = Hashable
T = TypeVar("T")
Measure: TypeAlias = Callable[[Any, list[Json], str], Any]


def _measure_nothing(_before: Any, _items: list[Json], _model: str) -> None:
    return None


class Cut(msgspec.Struct, frozen=True):
    """End of a turn, at which the translation of a longer conversation can resume."""

    source_end: int
    """Size of the client's JSON up to here."""
    output_count: int
    """Number of outputs up to here."""
    separators: int
    """Commas and brackets in the client's JSON up to here, see `count_separators`."""
    state: ConversationState


class TranslatedHead(msgspec.Struct, frozen=True):
    """Translation of the rest of a request: settings, tools and system prompt."""

    fields: tuple[tuple[str, bytes], ...]
    """The client's JSON of each field, in order. That of the conversation and of the tools is empty."""
    largest: int
    """The token limit of the upstream."""
    signed_loop: bool | None
    """The fact about the conversation on which the settings depend, see `AdaptedTurns`."""
    translated: Translated
    echo: Json
    """Fields of the client's request that the reply repeats."""
    is_written_alike: bool
    """True if the client's own fields are kept, and would be written with the same meaning: see `is_written_alike`."""

    @property
    def size(self) -> int:
        """Approximate memory in bytes, without the tools."""
        return 2 * sum(len(name) + len(encoded) for name, encoded in self.fields)


class TranslatedConversation(msgspec.Struct, frozen=True):
    """A conversation and its translation."""

    source: bytes
    """The client's JSON: the list of items from its bracket to the end of the last item."""
    outputs: tuple[bytes, ...]
    """The upstream's JSON for these items but the system prompt: for each part of the conversation that was translated
    at once, its items, separated by commas."""
    system_items: list[Json]
    """Items at the beginning that are the system prompt, decoded."""
    cuts: tuple[Cut, ...]
    """Cuts in order. The last one is the end of `source`."""
    head: TranslatedHead | None
    """The rest of the request that had this conversation; None if it cannot be used again."""

    @property
    def size(self) -> int:
        """Approximate memory in bytes."""
        items = ITEM_BYTES * self.cuts[-1].state.item_count
        head_size = self.head.size if self.head is not None else 0
        return len(self.source) + sum(map(len, self.outputs)) + items + head_size


class ConversationMatch(msgspec.Struct, frozen=True):
    """A conversation with the same beginning as that of a request."""

    conversation: TranslatedConversation
    cut: Cut | None
    """The last cut in what both have in common; None if there is none."""
    common_bytes: int
    """Size of what both have in common."""

    @property
    def is_same_conversation(self) -> bool:
        """True if the request continues this conversation, perhaps with changes near its end."""
        return self.cut is not None and 4 * self.common_bytes > 3 * len(self.conversation.source)


class RequestCache:
    """Bounded memory of tools and conversations; the least recently used ones are evicted. Threads can share it.

    Args:
        max_bytes: Maximum size of all conversations and their tools. With 0, none are kept.
        measure: Function that returns any measure of a conversation: its arguments are the measure of the items before
            (None at the beginning), items, and the model.
    """

    def __init__(self, max_bytes: int = DEFAULT_CACHE_BYTES, measure: Measure | None = None) -> None:
        self.max_bytes = max_bytes
        self.measure: Measure = measure or _measure_nothing
        self.size = 0
        """Approximate memory of the conversations and their tools in bytes."""
        self._lock = threading.Lock()
        self._tool_lists: list[tuple[str, SharedToolList]] = []  # with their clients, the most recently used last
        self._tool_lists_bytes = 0
        self._prompts: list[tuple[tuple[str, str, bytes], Any]] = []  # keys and measures, the most recent ones last
        # By id(), with the key and the size in bytes.
        self._conversations: OrderedDict[int, tuple[CacheKey, TranslatedConversation, int]] = OrderedDict()
        self._by_key: dict[CacheKey, _SameKey] = {}

    # ── tools ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def find_tools(self, owner: str, encoded: bytes) -> SharedToolList | None:
        """Return the list of tools that was decoded from this JSON of this client; None if there is none.

        Comparing the lists takes less time than hashing the JSON: nearly all differ in their client or their size.
        """
        with self._lock:
            for position in range(len(self._tool_lists) - 1, -1, -1):
                entry = self._tool_lists[position]
                if entry[0] == owner and entry[1].source == encoded:
                    if entry is not self._tool_lists[-1]:
                        self._tool_lists.append(self._tool_lists.pop(position))
                    return entry[1]
        return None

    def share_tools(self, owner: str, encoded: bytes) -> list[Any]:
        """Return the list of tools in this JSON. Equal JSON of one client has the same list.

        Raises:
            ValueError: It is not valid.
            RecursionError: It is nested too deeply.
        """
        known = self.find_tools(owner, encoded)
        if known is not None:
            return known
        tools = msgspec.json.decode(encoded)
        if not isinstance(tools, list) or not tools or len(encoded) > MAX_TOOL_LIST_BYTES:
            return tools  # type: ignore[no-any-return]  # the reader rejects what is not a list
        shared = SharedToolList(tools, encoded)
        with self._lock:
            self._tool_lists.append((owner, shared))
            self._tool_lists_bytes += len(encoded)
            while len(self._tool_lists) > MAX_TOOL_LISTS or self._tool_lists_bytes > MAX_ALL_TOOL_LISTS_BYTES:
                self._tool_lists_bytes -= len(self._tool_lists.pop(0)[1].source)
        return shared

    def measure_prompt(self, owner: str, model: str, encoded: bytes, measure: Callable[[], T]) -> T:
        """Return the measure of the system prompt in this JSON of this client, which is computed once."""
        key = owner, model, encoded
        with self._lock:
            for known, size in reversed(self._prompts):
                if known == key:
                    result: T = size
                    return result
        result = measure()
        if len(encoded) <= MAX_PROMPT_BYTES:
            with self._lock:
                self._prompts.append((key, result))
                del self._prompts[:-MAX_PROMPTS]
        return result

    # ── conversations ─────────────────────────────────────────────────────────────────────────────────────────────

    def find(self, key: CacheKey, source: bytes) -> ConversationMatch | None:
        """Return the conversation that has most in common with this one; None if none has anything."""
        with self._lock:
            same = self._by_key.get(key)
            candidates = [*same.conversations.values()][::-1] if same is not None else []
        match = _find_whole(candidates, source) or _find_cut(candidates, source) or _find_beginning(candidates, source)
        if match is not None:
            found = id(match.conversation)
            with self._lock:
                if found in self._conversations:
                    self._conversations.move_to_end(found)
                    self._by_key[key].conversations.move_to_end(found)
        return match

    def resize(self, max_bytes: int) -> None:
        """Change the maximum size."""
        with self._lock:
            self.max_bytes = max_bytes
            self._evict()

    def store(
        self, key: CacheKey, conversation: TranslatedConversation, tool_bytes: int, match: ConversationMatch | None
    ) -> None:
        """Keep a conversation, instead of the one that it continues.

        Args:
            key: All that its translation depends on.
            conversation: The conversation.
            tool_bytes: Size of the JSON of its tools. Conversations with the same key share them.
            match: The conversation that it continues.
        """
        size = conversation.size
        if size + TOOL_COPIES * tool_bytes > self.max_bytes // 4:
            return
        with self._lock:
            if key not in self._by_key:
                self._by_key[key] = _SameKey(TOOL_COPIES * tool_bytes)
                self.size += TOOL_COPIES * tool_bytes
            same = self._by_key[key].conversations
            newest = same[next(reversed(same))] if same else None
            same[id(conversation)] = conversation
            self._conversations[id(conversation)] = (key, conversation, size)
            self.size += size
            if match is not None and match.is_same_conversation:
                self._remove(id(match.conversation))
            if newest is not None and newest.source == conversation.source:  # of the same request, sent concurrently
                self._remove(id(newest))
            if len(same) > MAX_CONVERSATIONS_PER_KEY:
                self._remove(next(iter(same)))
            self._evict()

    def _evict(self) -> None:
        while self.size > self.max_bytes:
            self._remove(next(iter(self._conversations)))

    def _remove(self, conversation_id: int) -> None:
        removed = self._conversations.pop(conversation_id, None)
        if removed is None:
            return
        key, _, size = removed
        same = self._by_key[key]
        self.size -= size
        del same.conversations[conversation_id]
        if not same.conversations:
            self.size -= same.tool_bytes
            del self._by_key[key]


class _SameKey:
    """Conversations with the same key, the least recently used first, and the memory of their tools in bytes."""

    def __init__(self, tool_bytes: int) -> None:
        self.conversations: OrderedDict[int, TranslatedConversation] = OrderedDict()  # by id()
        self.tool_bytes = tool_bytes


def _find_whole(candidates: list[TranslatedConversation], source: bytes) -> ConversationMatch | None:
    """Return the longest conversation with which the source begins.

    Their last bytes are compared first: many conversations of an agent begin with the same long instructions.
    """
    matches = [
        candidate
        for candidate in candidates
        if source.endswith(candidate.source[-PROBE_BYTES:], 0, len(candidate.source))
        and source.startswith(candidate.source)
    ]
    if not matches:
        return None
    longest = max(matches, key=lambda match: len(match.source))
    return ConversationMatch(longest, longest.cuts[-1], len(longest.source))


def _find_cut(candidates: list[TranslatedConversation], source: bytes) -> ConversationMatch | None:
    """Return the conversation of which the source has most, up to a cut."""
    best: ConversationMatch | None = None
    for candidate in candidates:
        known, cuts = candidate.source, candidate.cuts
        probe = slice(max(0, cuts[0].source_end - PROBE_BYTES), cuts[0].source_end)
        if source[probe] != known[probe]:
            continue
        count = bisect_left(cuts, True, key=lambda cut: not source.startswith(known[: cut.source_end]))
        if count and (best is None or best.cut is None or cuts[count - 1].source_end > best.cut.source_end):
            common = common_prefix_length(source, known, cuts[count - 1].source_end)
            best = ConversationMatch(candidate, cuts[count - 1], common)
    return best


def _find_beginning(candidates: list[TranslatedConversation], source: bytes) -> ConversationMatch | None:
    """Return the one of the latest conversations that has most in common with the source, but no cut."""
    lengths = [(common_prefix_length(source, candidate.source), candidate) for candidate in candidates[:MAX_BEGINNINGS]]
    length, candidate = max(lengths, key=lambda pair: pair[0], default=(0, None))
    return ConversationMatch(candidate, None, length) if candidate is not None else None
