"""Sessions: the turns of one agent and of its subagents, found in the requests.

Most agents send an id of their session, in a header or in the body. The turns of a session belong to threads: a turn
continues the thread whose conversation it repeats. The first thread is the agent's own, and the others are those of its
subagents, of titles and summaries.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from interlingua.common.coerce import as_dict
from interlingua.common.jsontext.codec import read_json

__all__ = ["Session", "Thread", "Turn", "TurnFacts", "group_sessions", "read_turn_facts"]

_SESSION_HEADERS = (
    "x-claude-code-session-id",
    "session-id",
    "session_id",
    "x-session-id",
    "x-session-affinity",
    "x-litellm-session-id",
    "conversation_id",
    "x-conversation-id",
)
_USER_SESSION = re.compile(r"session[_-]([0-9A-Za-z-]{8,})")
_ANGLE_BLOCK = re.compile(r"<([a-zA-Z][\w-]*)[^>]*>.*?</\1>\s*", re.DOTALL)
"""Text that an agent adds to the user's message, such as a reminder."""
MAX_TITLE_CHARS = 120
MAX_RETURNED_ITEMS = 50
"""Items at the end of a conversation in which results and their calls are looked for."""
MAX_DIGESTS = 400
"""Number of items of a conversation that are compared: the first ones."""
MIN_SHARED = 0.5
"""Part of the items of a turn that the next one must repeat."""
_CACHE_MARK = b'"cache_control"'
_SYSTEM_ROLE = re.compile(rb'"role"\s*:\s*"(?:system|developer)"')
_USER_ROLE = re.compile(rb'"role"\s*:\s*"user"')
_NULL = msgspec.Raw(b"null")


class TurnFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts in a request about the conversation that it belongs to."""

    session: str = ""
    """Id of the session that the client sent; "" if it sent none."""
    root: str = ""
    """Digest of the first message of the user."""
    digests: tuple[str, ...] = ()
    """Digests of the items of the conversation."""
    title: str = ""
    """The first text of the user."""
    last_text: str = ""
    """The last text of the user."""
    returned: tuple[str, ...] = ()
    """Names of the tools whose results the request returns to the model."""


class Turn(msgspec.Struct, frozen=True):
    """One exchange of a session."""

    id: str
    started: float
    """Time of its request in seconds since 1970."""
    previous: str = ""
    """Id of the turn before in its thread; "" for the first one."""


class Thread(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation of a session."""

    title: str
    turns: list[Turn]


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """Turns of one agent, and of its subagents."""

    id: str
    client: str
    threads: list[Thread]


def read_turn_facts(headers: Mapping[str, str], body: bytes, conversation_field: str) -> TurnFacts:
    """Return what a client's request says about its conversation. A body that cannot be read has only its headers.

    Requests are large, and lists of exchanges long: only what is needed of a body is decoded.
    """
    fields = read_json(body, dict[str, msgspec.Raw]) or {}
    lower_headers = {name.lower(): value for name, value in headers.items()}
    encoded = fields.get(conversation_field, msgspec.Raw(b"[]"))
    items = read_json(encoded, list[msgspec.Raw])
    if items is None:  # the input of a response can be one text
        items = [msgspec.Raw(b'{"role":"user","content":' + bytes(encoded) + b"}")]
    conversation = [item for item in items if not _SYSTEM_ROLE.search(item)]
    user_items = [item for item in conversation if _USER_ROLE.search(item)]
    return TurnFacts(
        session=_session_id(lower_headers, fields),
        root=_digest(user_items[0]) if user_items else "",
        digests=tuple(_digest(item) for item in conversation[:MAX_DIGESTS]),
        title=_first_text(user_items),
        last_text=_first_text(reversed(user_items)),
        returned=tuple(_returned_tools(items)),
    )


def _session_id(headers: Mapping[str, str], body: Mapping[str, msgspec.Raw]) -> str:
    by_header = next((headers[name] for name in _SESSION_HEADERS if headers.get(name)), "")
    if by_header:
        return by_header
    user_id = as_dict(read_json(body.get("metadata", _NULL), dict[str, Any])).get("user_id")
    if isinstance(user_id, str):
        described = read_json(user_id, dict[str, Any]) or {}
        if isinstance(described.get("session_id"), str):
            return str(described["session_id"])
        if match := _USER_SESSION.search(user_id):
            return match[1]
    return read_json(body.get("prompt_cache_key", _NULL), str) or ""


def _first_text(items: Iterable[msgspec.Raw]) -> str:
    """Return the first text that the user wrote in these messages, on one line; "" if there is none.

    What an agent adds about its environment counts only if there is no other text.
    """
    added = ""
    for item in items:
        text = _joined_text(read_json(item, dict[str, Any]) or {})
        if own := _on_one_line(_ANGLE_BLOCK.sub("", text)):
            return own
        added = added or _on_one_line(text)
    return added


def _returned_tools(items: list[msgspec.Raw]) -> list[str]:
    """Return the names of the tools whose results end the conversation."""
    ids: list[str] = []
    for encoded in reversed(items[-MAX_RETURNED_ITEMS:]):
        item = read_json(encoded, dict[str, Any]) or {}
        results = _result_ids(item)
        names = _call_names(item)
        if not results and not names:
            break
        ids = [*results, *ids]
        if names:
            return [names[id] for id in ids if id in names]
    return []


def _result_ids(item: dict[str, Any]) -> list[str]:
    """Return the ids of the calls whose results an item of a conversation has, on any wire."""
    content = item.get("content")
    blocks = content if isinstance(content, list) else []
    ids = [block.get("tool_use_id") for block in blocks if isinstance(block, dict)]
    ids.append(item.get("tool_call_id"))
    ids.append(item.get("call_id") if str(item.get("type")).endswith("_output") else None)
    return [id for id in ids if isinstance(id, str)]


def _call_names(item: dict[str, Any]) -> dict[str, str]:
    """Return the names of the calls in an item of a conversation by their ids, on any wire."""
    content = item.get("content")
    blocks = content if isinstance(content, list) else []
    calls = [(block.get("id"), block.get("name")) for block in blocks if isinstance(block, dict)]
    tool_calls = item.get("tool_calls")
    structured = map(as_dict, tool_calls if isinstance(tool_calls, list) else [])
    calls += [(call.get("id"), as_dict(call.get("function")).get("name")) for call in structured]
    calls.append((item.get("call_id"), item.get("name")))
    return {id: name for id, name in calls if isinstance(id, str) and isinstance(name, str)}


def _joined_text(item: dict[str, Any]) -> str:
    """Return all text of a message."""
    content = item.get("content")
    blocks = content if isinstance(content, list) else [{"text": content}]
    texts = [block.get("text") for block in blocks if isinstance(block, dict)]
    return "\n".join(text for text in texts if isinstance(text, str))


def _on_one_line(text: str) -> str:
    return " ".join(text.split())[:MAX_TITLE_CHARS]


def _digest(item: msgspec.Raw) -> str:
    """Return the digest of an item, without white space between tokens and without marks that move with each turn."""
    encoded = bytes(item)
    if _CACHE_MARK in encoded or b"\\u" in encoded:
        encoded = msgspec.json.encode(_without_marks(msgspec.json.decode(encoded)))
    else:
        encoded = msgspec.json.format(encoded, indent=-1)
    return hashlib.blake2b(encoded, digest_size=8).hexdigest()


def _without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_marks(inner) for key, inner in value.items() if key != "cache_control"}
    return [_without_marks(inner) for inner in value] if isinstance(value, list) else value


# ── grouping ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class _OpenThread:
    """Thread that turns are added to."""

    def __init__(self, facts: TurnFacts) -> None:
        self.last_facts = facts
        self.title = facts.title
        self.turns: list[Turn] = []

    def add(self, id: str, started: float, facts: TurnFacts) -> None:
        self.turns.append(Turn(id, started, self.turns[-1].id if self.turns else ""))
        self.last_facts = facts

    def overlap(self, facts: TurnFacts) -> float:
        """Return how much of the last turn's conversation this one repeats, from 0 to 1."""
        earlier, later = self.last_facts.digests, facts.digests
        if not earlier or not later:
            return 0.0
        same_place = sum(a == b for a, b in zip(earlier, later, strict=False))
        anywhere = len(set(earlier) & set(later))
        return max(same_place, anywhere) / len(earlier)


def group_sessions(exchanges: Iterable[tuple[str, float, str, TurnFacts]]) -> list[Session]:
    """Group exchanges into sessions, the newest one first. Exchanges without a message of a user belong to none.

    Args:
        exchanges: Id, time in seconds since 1970, client, and facts of each exchange.
    """
    threads: dict[tuple[str, str], list[_OpenThread]] = {}
    for id, started, client, facts in sorted(exchanges, key=lambda one: one[1]):
        if not facts.session and not facts.root:
            continue
        session = facts.session or f"conversation {facts.root}"
        open_threads = threads.setdefault((session, client), [])
        thread = _find_thread(open_threads, facts)
        if thread is None:
            thread = _OpenThread(facts)
            open_threads.append(thread)
        thread.add(id, started, facts)
    sessions = [
        Session(
            id=session,
            client=client,
            threads=[Thread(title=thread.title, turns=thread.turns) for thread in open_threads],
        )
        for (session, client), open_threads in threads.items()
    ]
    return sorted(sessions, key=_last_start, reverse=True)


def _find_thread(threads: list[_OpenThread], facts: TurnFacts) -> _OpenThread | None:
    """Return the thread that a turn continues; None if it begins one."""
    best = max(threads, key=lambda thread: thread.overlap(facts), default=None)
    if best is not None and best.overlap(facts) >= MIN_SHARED:
        return best
    same_root = [thread for thread in threads if facts.root and thread.last_facts.root == facts.root]
    return same_root[-1] if same_root else None


def _last_start(session: Session) -> float:
    return max(turn.started for thread in session.threads for turn in thread.turns)
