"""Type-directed reader: dataclasses and Structs with defaults, bounds and collections, and errors with a path."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta, Struct

from interlingua.common.typed_yaml import TypedReader
from interlingua.common.yaml_reader import compose
from interlingua.errors import BadInput


class Limits(Struct):
    body: Annotated[int, Meta(ge=1)] = 5


@dataclass(frozen=True)
class Job:
    name: str
    tags: tuple[str, ...] = ()
    size: Annotated[float, Meta(gt=0)] = 1.5
    limits: Limits | None = None
    route: Limits | str = ""
    mode: Literal["fast", "safe"] = "safe"
    pair: tuple[str, int] = ("a", 1)
    extra: dict[str, Any] = field(default_factory=dict)


def read(text: str) -> Job:
    job = TypedReader("job.yaml").read(compose(text, "job.yaml"), Job)
    assert isinstance(job, Job)
    return job


def test_values_by_type() -> None:
    assert read("name: x") == Job("x")
    text = "{name: x, tags: a, size: 2, limits: {}, route: r, mode: fast, pair: [b, 2], extra: {a: [1, null, 0x_]}}"
    assert read(text) == Job("x", ("a",), 2.0, {}, "r", "fast", ("b", 2), {"a": [1, None, "0x_"]})  # type: ignore[arg-type]
    assert read("{name: x, tags: [a, b], limits: null, route: {body: 1}}") == Job(
        "x",
        ("a", "b"),
        route={"body": 1},  # type: ignore[arg-type]
    )


ERRORS = {
    "missing field": ("tags: a", "name: required field is missing; expected a text", ""),
    "unknown field": ("nam: x", "nam: unknown field", "did you mean 'name'?"),
    "unknown field with default": (
        "pairs: x",
        "pairs: unknown field",
        "did you mean 'pair'? for example: pair: [a, 1]",
    ),
    "value out of bounds": ("size: 0", "size: expected a number over 0, got the number 0", "for example: size: 1.5"),
    "item of a list": ("tags: [a, [b]]", "tags.1: expected a text, got a list", ""),
    "length of a list": ("pair: [a]", "pair: expected a list of 2, got a list", "for example: pair: [a, 1]"),
    "number for a text": (
        "tags: 3",
        "tags: expected a text, or a list of them, got the number 3; put it in quotes to make it text",
        "",
    ),
    "number for a mapping": ("extra: 3", "extra: expected a mapping, got the number 3", ""),
    "list for a union": ("route: []", "route: expected a mapping or a text, got a list", ""),
    "nested field": (
        "limits: {body: 0}",
        "limits.body: expected a whole number of at least 1, got the number 0",
        "for example: body: 5",
    ),
}


@pytest.mark.parametrize(("text", "message", "hint"), ERRORS.values(), ids=ERRORS)
def test_error_has_location_path_and_hint(text: str, message: str, hint: str) -> None:
    with pytest.raises(BadInput) as raised:
        read(text)
    assert (str(raised.value), raised.value.hint) == (f"job.yaml:1: {message}", hint)
