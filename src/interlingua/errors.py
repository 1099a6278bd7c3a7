"""Exceptions of this library, grouped by the party at fault.

    InterlinguaError
    ├── UsageError          the caller's program: a wrong argument, a call after close()
    │   ├── UnknownDialect
    │   ├── UnknownUpstream
    │   ├── UnknownWire
    │   ├── RenderError     a reply that the dialect cannot express
    │   └── NotExpressible  a dialect or a tool that an export format cannot express
    ├── BadInput            the caller's data: a file or body that cannot be read at all
    │   ├── BadSetting      a setting of the gateway; `path` is its place in the settings
    │   ├── BadSettings     several of them; `problems` has one error for each
    │   └── BadRequest      a client's request; `path` is the place in its body
    │       └── UnknownModel
    ├── CallError           the model: invalid arguments of a call, raised when a program parses them
    └── UpstreamError       the model server: it violated the protocol or failed

Malformed model output never raises while it is parsed: it becomes a Finding. The message of an error states what is
wrong, and its `hint` states what to do about it. `status` and `type` are the HTTP status and the error type that the
gateway sends; all wires use the same types.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from functools import cache
from types import UnionType
from typing import Literal, get_args, get_origin

import msgspec

__all__ = [
    "BadInput",
    "BadRequest",
    "BadSetting",
    "BadSettings",
    "CallError",
    "InterlinguaError",
    "NotExpressible",
    "RenderError",
    "UnknownDialect",
    "UnknownModel",
    "UnknownUpstream",
    "UnknownWire",
    "UpstreamError",
    "UsageError",
    "check_field_types",
    "expect_type",
    "shorten",
    "suggestion_hint",
]


class InterlinguaError(Exception):
    """Base class of all exceptions of this library."""

    status = 500
    type = "api_error"
    internal_reason = ""
    """The cause, for the log only: it may describe internals of the gateway, such as the address of a database."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint
        if hint:
            self.add_note(f"hint: {hint}")  # tracebacks show it

    @property
    def log_message(self) -> str:
        """The message for the log."""
        return f"{self}: {self.internal_reason}" if self.internal_reason else str(self)


class UsageError(InterlinguaError):
    status = 400
    type = "invalid_request_error"


class UnknownDialect(UsageError):
    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"no dialect is called {name!r}", suggestion_hint(name, known))


class UnknownUpstream(UsageError):
    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"no upstream is called {name!r}", suggestion_hint(name, known))


class UnknownWire(UsageError):
    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"no wire is called {name!r}", suggestion_hint(name, known))


class RenderError(UsageError):
    pass


class NotExpressible(UsageError):
    """An export that its format cannot carry. The message is the reason."""


class BadInput(InterlinguaError):
    status = 400
    type = "invalid_request_error"


class BadRequest(BadInput):
    """A request that cannot be parsed or forwarded."""

    def __init__(self, path: str, message: str, hint: str = "", code: str = "") -> None:
        path, message = _elide_middle(path, 300), _elide_middle(message)
        super().__init__(f"{path}: {message}" if path else message, _elide_middle(hint))
        self.path = path
        self.code = code
        """Machine-readable error code, for clients that handle specific codes."""

    def move_to(self, path: str) -> None:
        """Name another field: the request was changed before it was read."""
        message = str(self).removeprefix(f"{self.path}: ")
        self.path = path
        self.args = (f"{path}: {message}" if path else message,)


class UnknownModel(BadRequest):
    status = 404
    type = "not_found_error"

    def __init__(self, name: str, known: Iterable[str]) -> None:
        requested, names = shorten(name), sorted(known)
        matches = " or ".join(map(repr, difflib.get_close_matches(requested, names, n=3)))
        hint = f"did you mean {matches}?" if matches else "GET /v1/models lists the known models"
        super().__init__("model", f"no model is called {requested!r}", hint, "model_not_found")


class BadSetting(BadInput):
    def __init__(self, path: tuple[str, ...], message: str, hint: str = "") -> None:
        super().__init__(f"{'.'.join(path)}: {message}", hint)
        self.path = path
        self.problem = message
        """The message without the path."""


class BadSettings(BadInput):
    """Several wrong settings, each of which has an error of its own."""

    def __init__(self, problems: list[BadInput]) -> None:
        super().__init__("; ".join(map(str, problems)), "`interlingua config check` has a hint for each of them")
        self.problems = problems


class CallError(InterlinguaError):
    """A call that cannot be run. Its message is written for the model: one problem per line."""

    status = 400
    type = "invalid_request_error"

    def __init__(self, name: str, kind: str, problems: list[str]) -> None:
        super().__init__(
            f"The call of {name!r} was not run.\n" + "\n".join(f"- {problem}" for problem in problems),
            "send this message to the model as the result of its call",
        )
        self.name = name
        self.kind = kind
        """empty, cut, not-json, not-object, misfit or unknown-tool"""
        self.problems = problems


class UpstreamError(InterlinguaError):
    status = 502


def shorten(text: str, max_chars: int = 100) -> str:
    """Truncate untrusted text so that it fits into a message."""
    return text if len(text) <= max_chars else f"{text[:max_chars]}…"


def _elide_middle(text: str, max_chars: int = 1000) -> str:
    """Shorten a message by cutting its middle. The end is kept because it may state the problem."""
    tail = max_chars // 4
    return text if len(text) <= max_chars else f"{text[: max_chars - tail]}…{text[-tail:]}"


def suggestion_hint(name: str, known_names: Iterable[str]) -> str:
    """Return a hint with the known names that start with this name, else the closest ones, else all known names."""
    requested, names = str(name), sorted(set(known_names))
    matches = [word for word in names if len(requested) > 2 and word.startswith(requested)][:4]
    if not matches:
        close = difflib.get_close_matches(requested, names, n=3)
        matches = sorted(word for word in close if _similarity(requested, word) == _similarity(requested, close[0]))
    return f"did you mean {' or '.join(map(repr, matches))}?" if matches else f"known: {', '.join(names)}"


def _similarity(requested: str, name: str) -> float:
    return difflib.SequenceMatcher(None, name, requested).ratio()


def check_field_types(settings: msgspec.Struct) -> None:
    """Raise UsageError if a field has the wrong type: msgspec does not validate a Struct that a program constructs."""
    for name, default, field_type, literals in _struct_fields(type(settings)):
        value = getattr(settings, name)
        if value is default or type(value) is field_type or (literals and type(value) is str and value in literals):
            continue  # most values; `convert` takes longer
        try:
            if not isinstance(value, msgspec.Struct):
                msgspec.convert(value, field_type)
        except msgspec.ValidationError as error:
            hint = suggestion_hint(str(value), literals) if literals else f"expected: {_type_in_words(field_type)}"
            raise UsageError(f"{type(settings).__name__}.{name}: {error}", hint) from None


def _type_in_words(field_type: object) -> str:
    return field_type.__name__ if isinstance(field_type, type) else str(field_type)


@cache
def _struct_fields(settings: type[msgspec.Struct]) -> list[tuple[str, object, object, frozenset[str]]]:
    """Return for each field its name, its default, its type, and the texts that a Literal allows.

    Cached: resolving the annotations takes longer than all other work of creating a Parser.
    """
    fields = msgspec.structs.fields(settings)
    texts = (get_args(field.type) if get_origin(field.type) is Literal else () for field in fields)
    return [
        (field.name, field.default, field.type, frozenset(literals))
        for field, literals in zip(fields, texts, strict=True)
    ]


def expect_type(value: object, expected_type: type | UnionType, message: str, hint: str) -> None:
    """Raise UsageError if the caller passed a value of another type."""
    if not isinstance(value, expected_type):
        raise UsageError(f"{message}, not {type(value).__name__}", hint)
