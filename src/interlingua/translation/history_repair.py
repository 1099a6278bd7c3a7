"""Repair of the conversation history: missing, duplicate and misplaced calls and results.

Upstreams reject a whole request for one call without a result. Clients send such histories after an interruption by the
user, after truncating or resuming a history, or with a history of another program. Each *turn* (the model's messages
and the messages that follow them) is repaired on its own, independent of later turns. So every later request gets the
same repair, and prompt caches stay valid. After the repair:

- Every call has a unique id and one result. The results follow directly after the calls, in the same order.
- A result without its call, or one after a later message of the model, is text of the user.
- No content is empty, and arguments are JSON objects.

Consecutive messages of one role stay separate, because most upstreams accept them. `adapt` merges them for the others.
It also handles system messages in the middle, a final message of the model, and names of speakers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import takewhile

import msgspec

from interlingua import events as ev
from interlingua.common.jsontext.codec import read_json, read_shallow_object, wrap_invalid_arguments, write_json
from interlingua.common.jsontext.literals import literal_to_json
from interlingua.core.call_ids import CallIdAllocator, native_call_id
from interlingua.core.reply import Call, Reasoning, Text
from interlingua.core.request import NO_CONTENT, CacheMark, Content, Message, Piece, Request, Result, Role
from interlingua.core.tools import shorten_name
from interlingua.errors import BadRequest

__all__ = ["NO_CALLS", "NO_RESULT", "CallHistory", "repair_history", "repair_turns", "restore_result_ids"]

NO_RESULT = "[no result: interrupted]"
UNNAMED_TOOL = "unnamed"
VALID_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
INVALID_NAME_CHAR = re.compile(r"[^A-Za-z0-9_-]")


def repair_history(request: Request, strict: bool = False) -> tuple[Request, list[ev.Finding]]:
    """Repair the history of a request, and return the request with a finding for each repair.

    Raises:
        BadRequest: In strict mode, at the first problem.
    """
    repairer = _HistoryRepairer(request, strict)
    system = repairer.repair_content(request.system, "system")
    messages = [message for turn in _split_turns(request.messages) for message in repairer.repair_turn(turn)]
    return msgspec.structs.replace(request, system=system, messages=messages), repairer.findings


class CallHistory(msgspec.Struct, frozen=True):
    """The calls of the turns before: all that the repair of the next turns depends on."""

    client_ids: tuple[str, ...] = ()
    """Ids of the calls as the client sent them, in order."""
    ids: tuple[str, ...] = ()
    """Their unique ids."""
    last_numbers: Mapping[str, int] = {}
    """The last number that made an id with this prefix unique."""


NO_CALLS = CallHistory()


def repair_turns(
    request: Request, earlier: CallHistory, strict: bool = False
) -> tuple[list[Message], list[ev.Finding], CallHistory]:
    """Repair complete turns of a conversation, of which the request has no others.

    Args:
        request: The messages of these turns, and the tools on offer.
        earlier: The calls of the turns before.
        strict: Raise BadRequest at the first problem.

    Returns: the messages, the findings, and the calls for the turns that follow.
    """
    repairer = _HistoryRepairer(request, strict, earlier)
    messages = [message for turn in _split_turns(request.messages) for message in repairer.repair_turn(turn)]
    return messages, repairer.findings, repairer.history


def restore_result_ids(request: Request) -> Request:
    """Return a request that continues a stored conversation with the call ids of the upstream, which has the calls."""

    def restore(piece: Piece) -> Piece:
        return (
            msgspec.structs.replace(piece, id=native_call_id(piece.id)) if isinstance(piece, Call | Result) else piece
        )

    messages = [Message(message.role, [*map(restore, message.pieces)], message.name) for message in request.messages]
    return msgspec.structs.replace(request, messages=messages)


# ── messages under repair ─────────────────────────────────────────────────────────────────────────────────────────────


class _PieceAt(msgspec.Struct, frozen=True):
    """A piece with its path in the request and the cache marks that follow it."""

    piece: Piece
    path: str
    marks: list[CacheMark] = []


class _MessageDraft(msgspec.Struct):
    """A message under repair."""

    role: Role
    name: str
    path: str
    items: list[_PieceAt]

    def message(self) -> Message:
        return Message(self.role, [part for item in self.items for part in (item.piece, *item.marks)], self.name)


class _PendingCall(msgspec.Struct):
    """A call, the id that the client gave it, and its result once it is matched."""

    call: Call
    client_id: str
    path: str
    result: Result | None = None
    marks: list[CacheMark] = []


def _split_turns(messages: Sequence[Message]) -> Iterator[list[tuple[int, Message]]]:
    """Yield each turn: the model's messages and those that follow. The first turn is what precedes the first reply."""
    turn: list[tuple[int, Message]] = []
    for n, message in enumerate(messages):
        if turn and message.role == "assistant" != messages[n - 1].role:
            yield turn
            turn = []
        turn.append((n, message))
    yield turn


def _locate_pieces(pieces: Iterable[Piece], path: str) -> list[_PieceAt]:
    items: list[_PieceAt] = []
    for n, piece in enumerate(pieces):
        if isinstance(piece, CacheMark) and items:
            items[-1].marks.append(piece)
        else:
            items.append(_PieceAt(piece, f"{path}[{n}]"))
    return items


def _result_as_text(result: Result, item: _PieceAt) -> list[_PieceAt]:
    """Convert a result to text of the user. Its images are kept."""
    label = f"[tool {'error' if result.error else 'result'}{f' {result.id}' if result.id else ''}]"
    items = _locate_pieces([Text(label), *result.content], item.path)
    items[-1].marks.extend(item.marks)
    return items


# ── repair ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class _HistoryRepairer:
    """Repairs one conversation, turn by turn."""

    def __init__(self, request: Request, strict: bool, earlier: CallHistory = NO_CALLS) -> None:
        self.findings: list[ev.Finding] = []
        self._source_path = request.source_path
        self._strict = strict
        self._tools = request.tools
        self._earlier = earlier
        self._ids = CallIdAllocator(frozenset(earlier.ids), "history", last_numbers=earlier.last_numbers)
        self._calls: list[_PendingCall] = []
        self._earlier_ids = set(earlier.client_ids)  # of the calls in earlier turns

    @cached_property
    def _offered_names(self) -> set[str]:
        return {tool.name for tool in self._tools}

    @property
    def history(self) -> CallHistory:
        """The calls so far."""
        return CallHistory(
            (*self._earlier.client_ids, *(call.client_id for call in self._calls)),
            (*self._earlier.ids, *(call.call.id for call in self._calls)),
            self._ids.last_numbers,
        )

    def _report(self, kind: str, path: str, problem: str, action: str) -> None:
        path = self._source_path(path)
        if self._strict:
            raise BadRequest(path, problem, f"with `history: mend` it is {action}")
        self.findings.append(ev.Finding(kind, f"{problem}: {action}", path))

    def repair_content(self, content: list[Content], path: str) -> list[Content]:
        """Return the content without empty pieces."""
        items = [item for item in _locate_pieces(content, path) if self._repair_piece(item, "system") is not None]
        pieces = _MessageDraft("system", "", path, items).message().pieces
        return [piece for piece in pieces if not isinstance(piece, Reasoning | Call | Result)]

    def repair_turn(self, turn: list[tuple[int, Message]]) -> list[Message]:
        drafts = [self._draft_message(n, message) for n, message in turn]
        assistant_drafts = [draft for draft in drafts if draft.role == "assistant"]
        other_drafts = [draft for draft in drafts if draft.role != "assistant"]
        results = self._match_results(assistant_drafts, other_drafts)
        if results and other_drafts and other_drafts[0].role == "user":
            other_drafts[0].items[:0] = results
        elif results:
            other_drafts.insert(0, _MessageDraft("user", "", "", results))
        return [
            draft.message()
            for draft in (*self._merge_assistant_drafts(assistant_drafts), *self._keep_other_turn(other_drafts))
        ]

    def _merge_assistant_drafts(self, drafts: list[_MessageDraft]) -> list[_MessageDraft]:
        """Merge consecutive messages of the model if one before the last has calls, so that results follow directly."""
        non_empty = [draft for draft in drafts if draft.items]
        if not any(isinstance(item.piece, Call) for draft in non_empty[:-1] for item in draft.items):
            return non_empty
        self._report(
            "split-turn", non_empty[1].path, "a message between a call and its result", "merged with the call's message"
        )
        first = non_empty[0]
        items = [item for draft in non_empty for item in draft.items]
        return [_MessageDraft("assistant", first.name, first.path, items)]

    def _keep_other_turn(self, drafts: list[_MessageDraft]) -> list[_MessageDraft]:
        """Return the messages that are not empty. If all are, keep one with a placeholder, so that roles alternate."""
        non_empty = [draft for draft in drafts if draft.items]
        empty_user_draft = next((draft for draft in drafts if draft.role == "user"), None)
        if non_empty or empty_user_draft is None:
            return non_empty
        self._report(
            "empty-content", empty_user_draft.path, "the user's message is empty", f"replaced by {NO_CONTENT!r}"
        )
        return [
            _MessageDraft(
                "user",
                empty_user_draft.name,
                empty_user_draft.path,
                [_PieceAt(Text(NO_CONTENT), empty_user_draft.path)],
            )
        ]

    # ── calls and results ─────────────────────────────────────────────────────────────────────────────────────────────

    def _match_results(
        self, assistant_drafts: list[_MessageDraft], other_drafts: list[_MessageDraft]
    ) -> list[_PieceAt]:
        """Return one result for each call, in the order of the calls, then results that have no other place.

        The results are removed from their messages.
        """
        pending_calls = [
            self._assign_call_id(draft, n)
            for draft in assistant_drafts
            for n, item in enumerate(draft.items)
            if isinstance(item.piece, Call)
        ]
        waiting_by_id: dict[str, list[_PendingCall]] = {}
        for call in reversed(pending_calls):
            waiting_by_id.setdefault(call.client_id, []).append(call)
        role_items = [(draft.role, item) for draft in other_drafts for item in draft.items]
        leading_results = takewhile(lambda pair: pair[0] == "user" and isinstance(pair[1].piece, Result), role_items)
        leading_paths = {item.path for _, item in leading_results}
        strays: list[_PieceAt] = []
        for draft in (*assistant_drafts, *other_drafts):
            items, draft.items = draft.items, []
            for item in items:
                if isinstance(item.piece, Result):
                    leftover = self._attach_result(item.piece, item, waiting_by_id, leading_paths)
                    (draft.items if draft.role == "user" else strays).extend(leftover)
                else:
                    draft.items.append(item)
        self._earlier_ids.update(waiting_by_id)
        return [*(self._result_item(call) for call in pending_calls), *strays]

    def _assign_call_id(self, draft: _MessageDraft, n: int) -> _PendingCall:
        """Give a call a unique id, because clients reuse ids and some send none. It is the upstream's own if it can."""
        item = draft.items[n]
        call = item.piece
        assert isinstance(call, Call)
        native_id = native_call_id(call.id)
        call_id = self._ids.allocate(native_id or None, len(self._earlier.ids) + len(self._calls))
        if not call.id:
            self._report("no-id", f"{item.path}.id", "the call has no id", f"set to {call_id!r}")
        elif call_id != call.id == native_id:  # several replies may have one native id
            self._report(
                "id-renamed", f"{item.path}.id", f"an earlier call has the id {call.id!r}", f"changed to {call_id!r}"
            )
        renamed = msgspec.structs.replace(call, id=call_id)
        draft.items[n] = msgspec.structs.replace(item, piece=renamed)
        pending_call = _PendingCall(renamed, call.id, item.path)
        self._calls.append(pending_call)
        return pending_call

    def _attach_result(
        self, result: Result, item: _PieceAt, waiting_by_id: dict[str, list[_PendingCall]], leading_paths: set[str]
    ) -> list[_PieceAt]:
        """Attach a result to its call. A result without a call is returned as text."""
        calls = waiting_by_id.get(result.id)
        if not calls:
            path, action = f"{item.path}.id", "converted to text of the user"
            if result.id in self._earlier_ids:
                self._report("late-result", path, "the result follows a later message of the model", action)
            else:
                self._report("orphan-result", path, "no call has this id", action)
            return _result_as_text(result, item)
        call = calls.pop() if len(calls) > 1 else calls[0]
        content, error = result.content, result.error
        if call.result is not None:
            is_same = content == call.result.content
            self._report(
                "several-results",
                f"{item.path}.id",
                "the call already has a result",
                "dropped" if is_same else "merged into it",
            )
            if not is_same:
                call.result.content.extend(content)  # in place, because one call may have thousands of results
            content, error = call.result.content, error or call.result.error
        elif item.path not in leading_paths:
            self._report("result-moved", item.path, "the result does not directly follow its call", "moved there")
        call.result, call.marks = Result(call.call.id, content, error), item.marks or call.marks
        return []

    def _result_item(self, pending_call: _PendingCall) -> _PieceAt:
        if pending_call.result is None:
            self._report(
                "no-result", pending_call.path, "no result follows this call", f"given the result {NO_RESULT!r}"
            )
        return _PieceAt(
            pending_call.result or Result(pending_call.call.id, [Text(NO_RESULT)]),
            pending_call.path,
            pending_call.marks,
        )

    # ── pieces ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _draft_message(self, n: int, message: Message) -> _MessageDraft:
        path = f"messages[{n}]"
        if not message.pieces:
            self._report("empty-content", path, "the message is empty", "dropped")
        items = _locate_pieces(message.pieces, f"{path}.pieces")
        pieces = [(item, self._repair_piece(item, message.role)) for item in items]
        kept_items = [
            item if piece is item.piece else msgspec.structs.replace(item, piece=piece)
            for item, piece in pieces
            if piece is not None
        ]
        return _MessageDraft(message.role, message.name, path, kept_items)

    def _repair_piece(self, item: _PieceAt, role: Role) -> Piece | None:
        """Return the repaired piece, or None if it is empty."""
        piece, path = item.piece, item.path
        match piece:
            case Text(text) if text:
                return piece
            case Text() | Reasoning(text="", seal=None) | CacheMark():
                self._report("empty-content", path, "the content is empty", "dropped")
                return None
            case Call() | Reasoning() if role != "assistant":
                self._report(
                    "misplaced",
                    path,
                    "only messages of the assistant may hold calls and reasoning",
                    "converted to text",
                )
                replacement = f"[call of {piece.name}: {piece.arguments}]" if isinstance(piece, Call) else piece.text
                return Text(replacement) if replacement else None
            case Call():
                name, arguments = self._repair_name(piece, path), self._repair_arguments(piece, path)
                return msgspec.structs.replace(piece, name=name, arguments=arguments)
            case Result():
                return Result(piece.id, [part for part in piece.content if part != Text("")], piece.error)
        return piece

    def _repair_name(self, call: Call, path: str) -> str:
        """Replace a tool name with invalid characters. Models invent such names, and upstreams reject the history."""
        if VALID_TOOL_NAME.fullmatch(call.name) or call.name in self._offered_names:
            return call.name
        name = shorten_name(INVALID_NAME_CHAR.sub("_", call.name)) or UNNAMED_TOOL
        self._report("odd-name", f"{path}.name", f"{call.name!r:.80} is not a valid tool name", f"changed to {name!r}")
        return name

    def _repair_arguments(self, call: Call, path: str) -> str:
        text, path = call.arguments, f"{path}.arguments"
        if read_shallow_object(text) is not None:
            return text
        if text.strip() in ("", "null"):
            self._report("no-arguments", path, "the arguments are empty", "replaced by {}")
            return "{}"
        inner = read_json(text, str)
        if inner is not None and read_shallow_object(inner) is not None:
            self._report("unwrapped-arguments", path, "the arguments are a JSON object inside a string", "unwrapped")
            return inner
        literal = literal_to_json(text)
        if literal is not None and read_shallow_object(literal) is not None:
            self._report("mended-arguments", path, "the arguments are an object, but not valid JSON", "repaired")
            return literal
        self._report("wrapped-arguments", path, "the arguments are not a JSON object", "wrapped in one")
        return write_json(wrap_invalid_arguments(text))
