"""A conversation that upstreams take: what a client left out of it, doubled or misplaced is mended.

Upstreams refuse a whole request for one call without a result. Clients send such when a user interrupts, when a
history was cut or resumed, or when it was another program's. Each *turn*, what the model said and what answered it, is
mended by itself, with no look at what comes after. So what was mended once is mended the same in every later request,
and prompt caches hold:

- Every call has an id of its own and one result, and the results stand right behind the calls, in their order.
- A result without its call, or one that comes after the model has spoken again, is told as text of the user.
- Nothing is empty, and arguments are JSON objects.

Messages of one side in a row stay as they are, for most upstreams take them: `adapt` joins them for those that do not.
It also knows what becomes of system messages in the middle, of a last message of the model, and of speakers' names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

import msgspec

from interlingua import events as ev
from interlingua.common.jsontext.codec import read_json, read_object, wrapped, write_json
from interlingua.common.jsontext.literals import to_json
from interlingua.core.call_ids import Ids
from interlingua.core.reply import Call, Reasoning, Text
from interlingua.core.request import NO_CONTENT, CacheMark, Content, Message, Piece, Request, Result, Role
from interlingua.core.tools import short_name
from interlingua.errors import BadRequest

__all__ = ["NO_RESULT", "mend"]

NO_RESULT = "[no result: interrupted]"
UNNAMED = "unnamed"
LEGAL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")


def mend(request: Request, strict: bool = False) -> tuple[Request, list[ev.Finding]]:
    """The request with a history that upstreams take, and what was mended. Strict: BadRequest at the first place."""
    mender = _Mender(request, strict)
    system = mender.content(request.system, "system")
    messages = [message for turn in _turns(request.messages) for message in mender.turn(turn)]
    return msgspec.structs.replace(request, system=system, messages=messages), mender.findings


# ── messages on their way ─────────────────────────────────────────────────────────────────────────────────────────────


class _Item(msgspec.Struct, frozen=True):
    """A piece with the cache marks that stand behind it, and its place in the request."""

    piece: Piece
    path: str
    marks: tuple[CacheMark, ...] = ()


class _Said(msgspec.Struct):
    """A message."""

    role: Role
    name: str
    path: str
    items: list[_Item]

    def message(self) -> Message:
        return Message(self.role, [part for item in self.items for part in (item.piece, *item.marks)], self.name)


class _Asked(msgspec.Struct):
    """A call, the id that the client gave it, and its result once that is found."""

    call: Call
    given: str
    path: str
    result: Result | None = None
    marks: tuple[CacheMark, ...] = ()


def _turns(messages: Sequence[Message]) -> Iterator[list[tuple[int, Message]]]:
    """Each turn of the model with what answers it; before the first one stands what opens the conversation."""
    turn: list[tuple[int, Message]] = []
    for n, message in enumerate(messages):
        if turn and message.role == "assistant" != messages[n - 1].role:
            yield turn
            turn = []
        turn.append((n, message))
    yield turn


def _items(pieces: Iterable[Piece], path: str) -> list[_Item]:
    items: list[_Item] = []
    for n, piece in enumerate(pieces):
        if isinstance(piece, CacheMark) and items:
            items[-1] = msgspec.structs.replace(items[-1], marks=(*items[-1].marks, piece))
        else:
            items.append(_Item(piece, f"{path}[{n}]"))
    return items


def _told(result: Result, item: _Item) -> list[_Item]:
    """A result as text of the user, with its images."""
    said = f"[tool {'error' if result.error else 'result'}{f' {result.id}' if result.id else ''}]"
    items = _items([Text(said), *result.content], item.path)
    items[-1] = msgspec.structs.replace(items[-1], marks=(*items[-1].marks, *item.marks))
    return items


# ── mending ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Mender:
    """Mends one conversation, turn by turn."""

    def __init__(self, request: Request, strict: bool) -> None:
        self.findings: list[ev.Finding] = []
        self._place = request.place
        self._strict = strict
        self._offered = {tool.name for tool in request.tools}
        self._ids = Ids((), "history")
        self._calls = 0
        self._earlier: set[str] = set()  # the ids of calls in turns that are over, as the client wrote them

    def _report(self, kind: str, path: str, seen: str, done: str) -> None:
        path = self._place(path)
        if self._strict:
            raise BadRequest(path, seen, f"with histories mended, it is {done}")
        self.findings.append(ev.Finding(kind, f"{seen}: {done}", path))

    def content(self, content: list[Content], path: str) -> list[Content]:
        """Content without what is empty."""
        items = [item for item in _items(content, path) if self._piece(item, "system") is not None]
        pieces = _Said("system", "", path, items).message().pieces
        return [piece for piece in pieces if not isinstance(piece, Reasoning | Call | Result)]

    def turn(self, turn: list[tuple[int, Message]]) -> list[Message]:
        said = [self._read(n, message) for n, message in turn]
        model = [one for one in said if one.role == "assistant"]
        others = [one for one in said if one.role != "assistant"]
        answers = self._answers(model, others)
        if answers and others and others[0].role == "user":
            others[0].items[:0] = answers
        elif answers:
            others.insert(0, _Said("user", "", "", answers))
        return [one.message() for one in (*self._joined(model), *self._spoken(others))]

    def _joined(self, model: list[_Said]) -> list[_Said]:
        """One message of those that the model said in a row, if there are calls before the last: results follow it."""
        spoken = [one for one in model if one.items]
        if not any(isinstance(item.piece, Call) for one in spoken[:-1] for item in one.items):
            return spoken
        self._report("split-turn", spoken[1].path, "it stands between a call and its result", "joined with the call")
        first = spoken[0]
        return [_Said("assistant", first.name, first.path, [item for one in spoken for item in one.items])]

    def _spoken(self, others: list[_Said]) -> list[_Said]:
        """What the others said. That they had their turn is told, even if they said nothing."""
        spoken = [one for one in others if one.items]
        silent = next((one for one in others if one.role == "user"), None)
        if spoken or silent is None:
            return spoken
        self._report("empty-content", silent.path, "the user says nothing", f"told as {NO_CONTENT!r}")
        return [_Said("user", silent.name, silent.path, [_Item(Text(NO_CONTENT), silent.path)])]

    # ── calls and results ─────────────────────────────────────────────────────────────────────────────────────────────

    def _answers(self, model: list[_Said], others: list[_Said]) -> list[_Item]:
        """One result for each call, in their order, taken out of what was said; then what has no place there."""
        asked = [self._ask(one, n) for one in model for n, item in enumerate(one.items) if isinstance(item.piece, Call)]
        waiting: dict[str, list[_Asked]] = {}
        for call in reversed(asked):
            waiting.setdefault(call.given, []).append(call)
        said = [(one.role, item) for one in others for item in one.items]
        in_front = takewhile(lambda said: said[0] == "user" and isinstance(said[1].piece, Result), said)
        in_place = {item.path for _, item in in_front}
        strays: list[_Item] = []
        for one in (*model, *others):
            items, one.items = one.items, []
            for item in items:
                if isinstance(item.piece, Result):
                    told = self._take(item.piece, item, waiting, in_place)
                    (one.items if one.role == "user" else strays).extend(told)
                else:
                    one.items.append(item)
        self._earlier.update(waiting)
        return [*(self._result(call) for call in asked), *strays]

    def _ask(self, one: _Said, n: int) -> _Asked:
        """A call with an id of its own: clients reuse ids, and some give none."""
        item = one.items[n]
        call = item.piece
        assert isinstance(call, Call)
        id = self._ids.unique(call.id or None, self._calls)
        self._calls += 1
        if not call.id:
            self._report("no-id", f"{item.path}.id", "a call without an id", f"it gets {id!r}")
        elif id != call.id:
            self._report("id-renamed", f"{item.path}.id", f"an earlier call has the id {call.id!r}", f"now {id!r}")
        renamed = msgspec.structs.replace(call, id=id)
        one.items[n] = msgspec.structs.replace(item, piece=renamed)
        return _Asked(renamed, call.id, item.path)

    def _take(self, result: Result, item: _Item, waiting: dict[str, list[_Asked]], in_place: set[str]) -> list[_Item]:
        """Finds the call that this answers. What no call has asked for comes back, as text."""
        calls = waiting.get(result.id)
        if not calls:
            path, done = f"{item.path}.id", "told as text of the user"
            if result.id in self._earlier:
                self._report("late-result", path, "the model has spoken again since this call", done)
            else:
                self._report("orphan-result", path, "no call has this id", done)
            return _told(result, item)
        call = calls.pop() if len(calls) > 1 else calls[0]
        content, error = result.content, result.error
        if call.result is not None:
            same = content == call.result.content
            self._report(
                "several-results", f"{item.path}.id", "its call has one", "dropped" if same else "joined with it"
            )
            content, error = call.result.content + ([] if same else content), error or call.result.error
        elif item.path not in in_place:
            self._report("result-moved", item.path, "it is not right behind its call", "moved there")
        call.result, call.marks = Result(call.call.id, content, error), item.marks or call.marks
        return []

    def _result(self, asked: _Asked) -> _Item:
        if asked.result is None:
            self._report("no-result", asked.path, "no result follows this call", f"answered with {NO_RESULT!r}")
        return _Item(asked.result or Result(asked.call.id, [Text(NO_RESULT)]), asked.path, asked.marks)

    # ── pieces ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _read(self, n: int, message: Message) -> _Said:
        path = f"messages[{n}]"
        if not message.pieces:
            self._report("empty-content", path, "nothing is in it", "dropped")
        items = _items(message.pieces, f"{path}.pieces")
        pieces = [(item, self._piece(item, message.role)) for item in items]
        kept = [
            item if piece is item.piece else msgspec.structs.replace(item, piece=piece)
            for item, piece in pieces
            if piece is not None
        ]
        return _Said(message.role, message.name, path, kept)

    def _piece(self, item: _Item, role: Role) -> Piece | None:
        """The piece as it has to be; None if there is nothing in it."""
        piece, path = item.piece, item.path
        match piece:
            case Text(text) if text:
                return piece
            case Text() | Reasoning(text="", seal=None) | CacheMark():
                self._report("empty-content", path, "nothing is in it", "dropped")
                return None
            case Call() | Reasoning() if role != "assistant":
                self._report("misplaced", path, "only the model thinks and calls", "told as text")
                said = f"[call of {piece.name}: {piece.arguments}]" if isinstance(piece, Call) else piece.text
                return Text(said) if said else None
            case Call():
                name, arguments = self._name(piece, path), self._arguments(piece, path)
                return msgspec.structs.replace(piece, name=name, arguments=arguments)
            case Result():
                return Result(piece.id, [part for part in piece.content if part != Text("")], piece.error)
        return piece

    def _name(self, call: Call, path: str) -> str:
        """Models make names up that no tool can have, and upstreams refuse them ever after."""
        if call.name in self._offered or LEGAL_NAME.fullmatch(call.name):
            return call.name
        name = short_name(ILLEGAL.sub("_", call.name)) or UNNAMED
        self._report("odd-name", f"{path}.name", f"{call.name!r:.80} is no name of a tool", f"changed to {name!r}")
        return name

    def _arguments(self, call: Call, path: str) -> str:
        text, path = call.arguments, f"{path}.arguments"
        if read_object(text) is not None:
            return text
        if text.strip() in ("", "null"):
            self._report("no-arguments", path, "there are none", "taken as {}")
            return "{}"
        inner = read_json(text, str)
        if inner is not None and read_object(inner) is not None:
            self._report("unwrapped-arguments", path, "an object inside a string", "taken out of it")
            return inner
        literal = to_json(text)
        if literal is not None and read_object(literal) is not None:
            self._report("mended-arguments", path, "an object, but not as JSON writes it", "read as meant")
            return literal
        self._report("wrapped-arguments", path, "not a JSON object", "put into one")
        return write_json(wrapped(text))
