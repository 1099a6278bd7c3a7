"""Do these arguments fit this schema? If not: what is wrong with which of them, in words that a model can act on.

The checking itself is jsonschema-rs. Its expressions take linear time, whatever their pattern, and it fetches nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from interlingua.errors import BadInput

__all__ = ["misfits"]

MOST = 5
"""So many are told. A model mends one after the other all the same."""
_ONE = (
    *("additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not"),
    *("propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
)
_LISTS = ("allOf", "anyOf", "items", "oneOf", "prefixItems")
_NAMED = ("$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties")
"""The keywords under which there is a schema, a list of them, or some by name. All else is data."""
_TURNED = {"not": ("not",), "oneOf": ("oneOf",), "if": ("if", "then", "else")}
"""Where less to fit can mean that less fits: what goes if something is left out inside."""
_half_pair = re.compile("[\ud800-\udfff]")
_ARTICLES = {
    "array": "an array",
    "boolean": "true or false",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}


def misfits(arguments: Any, schema: Mapping[str, Any], name: str) -> list[str]:
    """What does not fit, the first few of it; nothing if all is well. `name` is the tool's."""
    validator = _validator(schema, name)
    try:
        found = validator.iter_errors(arguments)
    except UnicodeError:  # it takes no half of a surrogate pair
        text = _half_pair.sub("\ufffd", json.dumps(arguments, ensure_ascii=False))
        return misfits(json.loads(text), schema, name)
    except ValueError:
        return ["the arguments do not fit, and are nested too deep to say where"]
    return [_in_words(error, schema) for error, _ in zip(found, range(MOST), strict=False)]


def _validator(schema: Mapping[str, Any], name: str) -> Any:
    try:
        return _built(dict(schema))
    except ValueError:
        pass
    try:  # an expression that cannot be looked for in linear time is not looked for
        return _built(_without_hard_patterns(dict(schema)))
    except (ValueError, RecursionError) as error:
        why = str(error).partition("\n")[0]
        raise BadInput(f"the schema of the tool {name!r} cannot be used: {why}", "mend the tool's schema") from None


def _built(schema: Any) -> Any:
    import jsonschema_rs  # here, for most programs never check a call

    linear = jsonschema_rs.RegexOptions()
    return jsonschema_rs.validator_for(schema, pattern_options=linear, retriever=_fetch_nothing)


def _fetch_nothing(address: str) -> Any:
    raise ValueError(f"{address} is elsewhere, and nothing is fetched")


# ── expressions that cannot be used ───────────────────────────────────────────────────────────────────────────────────


def _without_hard_patterns(schema: Any) -> Any:
    """The schema without the expressions that the linear engine refuses, and without what means something else then."""
    if not isinstance(schema, dict):
        return schema
    left = {key: _inside(key, value) for key, value in schema.items() if key != "pattern" or _is_usable(value)}
    named = schema.get("patternProperties")
    if isinstance(named, dict) and not all(map(_is_usable, named)):
        left["patternProperties"] = {key: value for key, value in left["patternProperties"].items() if _is_usable(key)}
        left.pop("additionalProperties", None)
        left.pop("unevaluatedProperties", None)
    for key, gone in _TURNED.items():
        if key in schema and left[key] != schema[key]:
            left = {kept: value for kept, value in left.items() if kept not in gone}
    return left


def _inside(key: str, value: Any) -> Any:
    if isinstance(value, list) and key in _LISTS:
        return [_without_hard_patterns(one) for one in value]
    if isinstance(value, dict) and key in _NAMED:
        return {name: _without_hard_patterns(one) for name, one in value.items()}
    return _without_hard_patterns(value) if key in _ONE else value


def _is_usable(pattern: Any) -> bool:
    try:
        _built({"pattern": pattern})
    except ValueError:
        return not isinstance(pattern, str)  # what is no expression at all is told as the schema's fault
    return True


# ── in words ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _in_words(error: Any, schema: Mapping[str, Any]) -> str:
    path, kind = list(error.instance_path), error.kind
    match kind.name:
        case "required":
            missing = [*path, kind.property]
            return f"{_called(missing)} is missing: it is required{_wanted(_schema_at(schema, missing))}"
        case "type":
            wanted = " or ".join(_ARTICLES.get(one, one) for one in _types(kind.types))
            return f"{_called(path)} should be {wanted} but is {_shown(error.instance)}"
        case "additionalProperties" | "unevaluatedProperties":
            unknown = ", ".join(f"`{one}`" for one in kind.unexpected)
            known = ", ".join(f"`{one}`" for one in _properties(_schema_at(schema, path)))
            return f"{_called(path)} has {unknown}, which is not known" + (f"; it may have {known}" if known else "")
        case "enum":
            options = ", ".join(json.dumps(one, ensure_ascii=False) for one in kind.options)
            return f"{_called(path)} should be one of {options} but is {_shown(error.instance)}"
        case "anyOf" | "oneOf":
            wanted = _wanted(_schema_at(schema, path))
            return f"{_called(path)} is {_shown(error.instance)}, which is none of what it may be{wanted}"
        case _:
            return f"{_called(path)}: {error.message}"


def _called(path: list[str | int]) -> str:
    """`edits[0].path`"""
    name = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")
    return f"`{name}`" if name else "the object"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _types(types: Any) -> Iterator[str]:
    yield from [types] if isinstance(types, str) else types


def _wanted(schema: Any) -> str:
    """` (a string)`, if that is known."""
    kinds = schema.get("type") if isinstance(schema, Mapping) else None
    words = [_ARTICLES[one] for one in _types(kinds or ()) if one in _ARTICLES]
    return f" ({' or '.join(words)})" if words else ""


def _properties(schema: Any) -> list[str]:
    known = schema.get("properties") if isinstance(schema, Mapping) else None
    return list(known) if isinstance(known, Mapping) else []


def _schema_at(schema: Any, path: list[str | int]) -> Any:
    """What a schema says of the value at this path; None where that is not plain."""
    for step in path:
        if not isinstance(schema, Mapping):
            return None
        inner = schema.get("items") if isinstance(step, int) else schema.get("properties")
        schema = inner.get(step) if isinstance(inner, Mapping) and isinstance(step, str) else inner
    return schema
