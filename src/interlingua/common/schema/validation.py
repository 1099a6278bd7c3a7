"""Validation of arguments against a JSON Schema, with error messages that a model can act on.

jsonschema-rs does the validation. Its regular expressions take linear time for any pattern, and it fetches no remote
references.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from interlingua.common.schema.validation_cost import MAX_EVALUATIONS, count_evaluations
from interlingua.errors import BadInput

__all__ = ["validation_errors"]

MAX_REPORTED_ERRORS = 5
"""Maximum number of errors in one report. A model usually corrects one at a time."""
MAX_EVALUATIONS_WITH_LOCATION = 20_000
"""Maximum number of evaluations to locate the errors, which takes a thousand times longer than to detect one."""
_SCHEMA_KEYWORDS = (
    *("additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not"),
    *("propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
)
_SCHEMA_LIST_KEYWORDS = ("allOf", "anyOf", "items", "oneOf", "prefixItems")
_SCHEMA_MAP_KEYWORDS = ("$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties")
"""Keywords that contain a schema, a list of schemas, or schemas by name. All other keywords contain data."""
_NEGATING_KEYWORDS = {"not": ("not",), "oneOf": ("oneOf",), "if": ("if", "then", "else")}
"""Keywords that a missing constraint can make stricter, each with the keywords to remove if something inside it was
dropped."""
_lone_surrogate = re.compile("[\ud800-\udfff]")
_TYPE_DESCRIPTIONS = {
    "array": "an array",
    "boolean": "true or false",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}


def validation_errors(arguments: Any, schema: Mapping[str, Any], name: str) -> list[str]:
    """Return the first few validation errors; an empty list if the arguments are valid. `name` is the tool's name.

    Raises:
        BadInput: The schema is invalid, or its references multiply so much that the validation would take too long.
    """
    validator = _build_validator(schema, name)
    evaluations = count_evaluations(schema, arguments)
    if evaluations > MAX_EVALUATIONS:
        problem = f"its references multiply to more than {MAX_EVALUATIONS:,} checks of these arguments"
        raise BadInput(f"the schema of the tool {name!r} cannot be used: {problem}", "use fewer nested $ref and anyOf")
    try:
        if evaluations > MAX_EVALUATIONS_WITH_LOCATION:
            return [] if validator.is_valid(arguments) else ["the arguments do not match the schema"]
        errors = validator.iter_errors(arguments)
    except UnicodeError:  # jsonschema-rs rejects unpaired surrogates
        text = _lone_surrogate.sub("\ufffd", json.dumps(arguments, ensure_ascii=False))
        return validation_errors(json.loads(text), schema, name)
    except ValueError:
        return ["the arguments do not match the schema, and are nested too deeply to locate the error"]
    return [_describe_error(error, schema) for error, _ in zip(errors, range(MAX_REPORTED_ERRORS), strict=False)]


def _build_validator(schema: Mapping[str, Any], name: str) -> Any:
    try:
        return _compile_schema(dict(schema))
    except ValueError:
        pass
    try:  # drop patterns that have no linear-time implementation
        return _compile_schema(_drop_unsupported_patterns(dict(schema)))
    except (ValueError, RecursionError) as error:
        reason = str(error).partition("\n")[0]
        raise BadInput(f"the schema of the tool {name!r} cannot be used: {reason}", "fix the tool's schema") from None


def _compile_schema(schema: Any) -> Any:
    import jsonschema_rs  # lazy import: most programs never validate a call

    regex_options = jsonschema_rs.RegexOptions()
    return jsonschema_rs.validator_for(schema, pattern_options=regex_options, retriever=_reject_remote_reference)


def _reject_remote_reference(address: str) -> Any:
    raise ValueError(f"{address} is a remote reference, and remote references are not fetched")


# ── unsupported regular expressions ───────────────────────────────────────────────────────────────────────────────────


def _drop_unsupported_patterns(schema: Any) -> Any:
    """Remove the patterns that the linear-time engine rejects, and the keywords whose meaning would change by that."""
    if not isinstance(schema, dict):
        return schema
    cleaned = {
        key: _clean_subschemas(key, value) for key, value in schema.items() if key != "pattern" or _is_usable(value)
    }
    pattern_properties = schema.get("patternProperties")
    if isinstance(pattern_properties, dict) and not all(map(_is_usable, pattern_properties)):
        cleaned["patternProperties"] = {
            key: value for key, value in cleaned["patternProperties"].items() if _is_usable(key)
        }
        cleaned.pop("additionalProperties", None)
        cleaned.pop("unevaluatedProperties", None)
    for key, removed in _NEGATING_KEYWORDS.items():
        if key in schema and cleaned[key] != schema[key]:
            cleaned = {keyword: value for keyword, value in cleaned.items() if keyword not in removed}
    return cleaned


def _clean_subschemas(key: str, value: Any) -> Any:
    if isinstance(value, list) and key in _SCHEMA_LIST_KEYWORDS:
        return [_drop_unsupported_patterns(subschema) for subschema in value]
    if isinstance(value, dict) and key in _SCHEMA_MAP_KEYWORDS:
        return {name: _drop_unsupported_patterns(subschema) for name, subschema in value.items()}
    return _drop_unsupported_patterns(value) if key in _SCHEMA_KEYWORDS else value


def _is_usable(pattern: Any) -> bool:
    try:
        _compile_schema({"pattern": pattern})
    except ValueError:
        return not isinstance(pattern, str)  # a pattern that is not a string is reported as a schema error
    return True


# ── error messages ────────────────────────────────────────────────────────────────────────────────────────────────────


def _describe_error(error: Any, schema: Mapping[str, Any]) -> str:
    path, kind = list(error.instance_path), error.kind
    match kind.name:
        case "required":
            missing = [*path, kind.property]
            return f"{_format_path(missing)} is missing: it is required{_expected_suffix(_schema_at(schema, missing))}"
        case "type":
            expected = " or ".join(
                _TYPE_DESCRIPTIONS.get(type_name, type_name) for type_name in _iter_types(kind.types)
            )
            return f"{_format_path(path)} should be {expected} but is {_format_value(error.instance)}"
        case "additionalProperties" | "unevaluatedProperties":
            unexpected = ", ".join(f"`{key}`" for key in kind.unexpected)
            allowed = ", ".join(f"`{key}`" for key in _property_names(_schema_at(schema, path)))
            return f"{_format_path(path)} has unknown keys: {unexpected}" + (
                f"; allowed keys: {allowed}" if allowed else ""
            )
        case "enum":
            options = ", ".join(json.dumps(option, ensure_ascii=False) for option in kind.options)
            return f"{_format_path(path)} should be one of {options} but is {_format_value(error.instance)}"
        case "anyOf" | "oneOf":
            expected = _expected_suffix(_schema_at(schema, path))
            return f"{_format_path(path)} is {_format_value(error.instance)}, which matches no allowed schema{expected}"
        case _:
            return f"{_format_path(path)}: {error.message}"


def _format_path(path: list[str | int]) -> str:
    """Format a path, such as `edits[0].path`."""
    name = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")
    return f"`{name}`" if name else "the object"


def _format_value(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _iter_types(types: Any) -> Iterator[str]:
    yield from [types] if isinstance(types, str) else types


def _expected_suffix(schema: Any) -> str:
    """Return the expected type in parentheses, such as ` (a string)`; "" if it is unknown."""
    types = schema.get("type") if isinstance(schema, Mapping) else None
    descriptions = [
        _TYPE_DESCRIPTIONS[type_name] for type_name in _iter_types(types or ()) if type_name in _TYPE_DESCRIPTIONS
    ]
    return f" ({' or '.join(descriptions)})" if descriptions else ""


def _property_names(schema: Any) -> list[str]:
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    return list(properties) if isinstance(properties, Mapping) else []


def _schema_at(schema: Any, path: list[str | int]) -> Any:
    """Return the subschema for the value at this path; None if it cannot be determined."""
    for step in path:
        if not isinstance(schema, Mapping):
            return None
        inner = schema.get("items") if isinstance(step, int) else schema.get("properties")
        schema = inner.get(step) if isinstance(inner, Mapping) and isinstance(step, str) else inner
    return schema
