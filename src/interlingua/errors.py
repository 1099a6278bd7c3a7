"""Everything this library raises, and whose fault each one is.

    InterlinguaError
    ├── UsageError          the caller's program: a wrong argument, a call after close()
    │   ├── UnknownDialect
    │   ├── UnknownUpstream
    │   ├── UnknownWire
    │   └── RenderError     a reply that this dialect has no way to write
    ├── BadInput            the caller's data: a file or body that cannot be read at all
    │   ├── BadSetting      a setting of the gateway; `path` is its place among them
    │   └── BadRequest      a client's request; `path` is the place in it
    │       └── UnknownModel
    ├── CallError           the model: the arguments of a call, once a program asks for them as an object
    └── UpstreamError       the model server: it broke the protocol or failed

What a *model* wrote never raises while it is read: that is a Finding. An error says what is wrong, and its `hint` what
to do about it. `status` and `type` say how it goes out over HTTP, in the words that the wires share.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from functools import cache
from types import UnionType

import msgspec

__all__ = [
    "BadInput",
    "BadRequest",
    "BadSetting",
    "CallError",
    "InterlinguaError",
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
    """The root of the tree: catch this one to catch them all."""

    status = 500
    type = "api_error"

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


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


class BadInput(InterlinguaError):
    status = 400
    type = "invalid_request_error"


class BadRequest(BadInput):
    """A request that cannot be understood or sent on."""

    def __init__(self, path: str, message: str, hint: str = "", code: str = "") -> None:
        path, message = _elide_middle(path, 300), _elide_middle(message)
        super().__init__(f"{path}: {message}" if path else message, _elide_middle(hint))
        self.path = path
        self.code = code
        """A word for programs, where a client acts on one."""


class UnknownModel(BadRequest):
    status = 404
    type = "not_found_error"

    def __init__(self, name: str, known: Iterable[str]) -> None:
        requested, names = shorten(name), sorted(known)
        matches = " or ".join(map(repr, difflib.get_close_matches(requested, names, n=3)))
        hint = f"did you mean {matches}?" if matches else "GET /v1/models lists those that are known"
        super().__init__("model", f"no model is called {requested!r}", hint, "model_not_found")


class BadSetting(BadInput):
    def __init__(self, path: tuple[str, ...], message: str, hint: str = "") -> None:
        super().__init__(f"{'.'.join(path)}: {message}", hint)
        self.path = path


class CallError(InterlinguaError):
    """A call that cannot be run. Its text is for the model: what is wrong, one problem in each line."""

    status = 400
    type = "invalid_request_error"

    def __init__(self, name: str, kind: str, problems: list[str]) -> None:
        super().__init__(
            f"The call of {name!r} was not run.\n" + "\n".join(f"- {problem}" for problem in problems),
            "give this text to the model as the result of its call",
        )
        self.name = name
        self.kind = kind
        """empty, cut, not-json, not-object, misfit or unknown-tool"""
        self.problems = problems


class UpstreamError(InterlinguaError):
    status = 502


def shorten(text: str, max_chars: int = 100) -> str:
    """What a stranger sent, with no more of it than a message has room for."""
    return text if len(text) <= max_chars else f"{text[:max_chars]}…"


def _elide_middle(text: str, max_chars: int = 1000) -> str:
    """A message with no more of what a stranger sent than it has room for: what is wrong may stand behind that."""
    tail = max_chars // 4
    return text if len(text) <= max_chars else f"{text[: max_chars - tail]}…{text[-tail:]}"


def suggestion_hint(name: str, known_names: Iterable[str]) -> str:
    """A hint that names the known words that begin with this one, the closest, or all of them."""
    requested, names = str(name), sorted(known_names)
    extensions = [word for word in names if len(requested) > 2 and word.startswith(requested)][:4]
    matches = extensions or difflib.get_close_matches(requested, names, n=1)
    return f"did you mean {' or '.join(map(repr, matches))}?" if matches else f"known: {', '.join(names)}"


def check_field_types(settings: msgspec.Struct) -> None:
    """Raises UsageError if a setting is not of its type: a Struct does not look when a program makes it."""
    for field in _struct_fields(type(settings)):
        value = getattr(settings, field.name)
        try:
            if not isinstance(value, msgspec.Struct):
                msgspec.convert(value, field.type)
        except msgspec.ValidationError as error:
            raise UsageError(f"{type(settings).__name__}.{field.name}: {error}", f"it takes: {field.type}") from None


@cache
def _struct_fields(settings: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    """Looked up once for each type: resolving its annotations takes longer than all the rest of making a Parser."""
    return msgspec.structs.fields(settings)


def expect_type(value: object, expected_type: type | UnionType, message: str, hint: str) -> None:
    """Raises UsageError if a program gave something else."""
    if not isinstance(value, expected_type):
        raise UsageError(f"{message}, not {type(value).__name__}", hint)
