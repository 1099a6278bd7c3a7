"""Sets of samples in JSON lines, in the formats of this and of three other verifiers.

Each line is one of:

- a sample of this project: `{"id", "category", "request", "expect"}`;
- a request body (K2-Vendor-Verifier, MiniMax-Provider-Verifier). `check_type` asks for additional checks, and
  `expected_tool_call` says whether a right reply calls a tool;
- a case of Kimi-Vendor-Verifier with its number of prompt tokens: `{"id", "request", "expected_prompt_tokens"}`;
- a JSON Schema (Kimi-Vendor-Verifier's `valid.jsonl`), which becomes the parameters of a tool that must be called.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, get_args

import msgspec

from interlingua.common.schema.resolver import as_list, as_mapping
from interlingua.errors import BadInput
from interlingua.verification.samples.sample import Check, Expectation, ExpectedCall, Sample

__all__ = ["read_samples", "write_samples"]

Json = dict[str, Any]
MAX_LINE_CHARS = 4 * 1024 * 1024
SCHEMA_TOOL = "submit_value"
"""Tool whose parameters are the schema of a line."""
ROOT_DEFINITION = "root_schema"
"""Definition that takes the place of a schema that refers to itself."""
_LFS_POINTER = "version https://git-lfs.github.com/"
_IMAGE_FIXTURE = '"fixture://'
"""Beginning of an image URL that only Kimi-Vendor-Verifier can resolve."""
_LABEL_FIELDS = ("check_type", "expected_tool_call", "scenario_check", "stream", "model")
"""Fields of a line that are not sent with its request."""
_EXPECTATIONS = {True: Expectation("calls"), False: Expectation("text")}
"""Expectation by `expected_tool_call`."""
_SCHEMA_KEYWORDS = frozenset(
    {
        *("type", "properties", "items", "anyOf", "oneOf", "allOf", "enum", "const", "$ref", "$defs", "required"),
        *("additionalProperties", "description", "title", "default", "minimum", "maximum", "pattern", "$id"),
    }
)
_HINT = "each line is a request body, a sample, a case with expected_prompt_tokens, or a JSON Schema"
_SCHEMA_PROMPT = (
    f"Call {SCHEMA_TOOL} once. Choose small arguments that are valid for its JSON Schema, with every required "
    "property. Write values, not the schema, and no text."
)


def read_samples(lines: Iterable[str], source: str) -> list[Sample]:
    """Read the samples of a file.

    Args:
        lines: The lines of the file. Empty lines are skipped.
        source: The name of the file, for errors.

    Raises:
        BadInput: A line has none of the formats, or there is no line.
    """
    samples: list[Sample] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            samples.append(_read_line(line, f"{source}, line {number}", number))
    if not samples:
        raise BadInput(f"{source} has no samples", _HINT)
    repeated = len(samples) - len({sample.id for sample in samples})
    if repeated:
        raise BadInput(f"{source}: {repeated} ids occur more than once", "give each sample an id of its own")
    return samples


def _read_line(line: str, place: str, number: int) -> Sample:
    if len(line) > MAX_LINE_CHARS:
        raise BadInput(f"{place} is longer than {MAX_LINE_CHARS:,} characters", "split the file into smaller requests")
    if line.startswith(_LFS_POINTER):
        raise BadInput(
            f"{place} is a Git LFS pointer instead of the file itself", "run `git lfs pull` in its repository"
        )
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{place} is not JSON: {error}", _HINT) from None
    if not isinstance(value, dict):
        raise BadInput(f"{place} is not a JSON object", _HINT)
    id = str(value.get("id") or f"line-{number:04d}")
    if isinstance(value.get("messages"), list):
        return _read_request(value, f"line-{number:04d}")
    if isinstance(value.get("request"), dict) and "expected_prompt_tokens" in value:
        return _read_prompt_token_case(value, id, place)
    if isinstance(value.get("request"), dict):
        return _read_own_sample(value, place)
    if not value or not _SCHEMA_KEYWORDS.isdisjoint(value):
        return _schema_sample(value, f"schema-{number:04d}")
    raise BadInput(f"{place} has an unknown format: {', '.join(list(value)[:5])}", _HINT)


def _read_request(body: Json, id: str) -> Sample:
    """Read a request body of K2-Vendor-Verifier or MiniMax-Provider-Verifier."""
    checks = tuple(check for check in get_args(Check) if check in as_list(body.get("check_type")))
    stream, calls_tool = body.get("stream"), body.get("expected_tool_call")
    request = {name: value for name, value in body.items() if name not in _LABEL_FIELDS}
    return Sample(
        id=id,
        request={**request, "messages": [_read_message(message) for message in body["messages"]]},
        expect=_EXPECTATIONS[calls_tool] if isinstance(calls_tool, bool) else Expectation(),
        checks=checks,
        stream=stream if isinstance(stream, bool) else None,
    )


def _read_message(message: Any) -> Any:
    """Return the message. K2-Vendor-Verifier marks some system messages with the role `_input`."""
    is_input = as_mapping(message).get("role") == "_input"
    return {**message, "role": "system"} if is_input else message


def _read_prompt_token_case(value: Json, id: str, place: str) -> Sample:
    expected = value["expected_prompt_tokens"]
    if not isinstance(expected, int) or isinstance(expected, bool) or expected <= 0:
        raise BadInput(f"{place}: expected_prompt_tokens should be a positive number", _HINT)
    if _IMAGE_FIXTURE in json.dumps(value["request"]):
        raise BadInput(
            f"{place} needs an image of Kimi-Vendor-Verifier", "leave this line out, or embed the image as data:"
        )
    sample = _read_request({"messages": [], **value["request"]}, id)
    return msgspec.structs.replace(sample, category="prompt-tokens", prompt_tokens=expected, stream=True)


def _read_own_sample(value: Json, place: str) -> Sample:
    try:
        return msgspec.convert(value, Sample)
    except msgspec.ValidationError as error:
        raise BadInput(f"{place} is not a sample: {error}", _HINT) from None


def _schema_sample(schema: Json, id: str) -> Sample:
    """Return a request that must call a tool with this schema. A schema of another type becomes its only property."""
    parameters = schema if _describes_object(schema) else _wrap_schema(schema)
    function = {"name": SCHEMA_TOOL, "description": "Takes any valid value.", "parameters": parameters, "strict": True}
    request = {
        "messages": [{"role": "user", "content": _SCHEMA_PROMPT}],
        "tools": [{"type": "function", "function": function}],
        "tool_choice": "required",
    }
    expect = Expectation("calls", (ExpectedCall(SCHEMA_TOOL),))
    return Sample(id=id, category="schemas", request=request, expect=expect)


def _describes_object(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "object" and isinstance(schema.get("properties"), dict)


def _wrap_schema(schema: Json) -> Json:
    """Return an object schema with this schema as its property `value`. Definitions stay at the root."""
    definitions = as_mapping(schema.get("$defs"))
    inner = {name: value for name, value in schema.items() if name not in ("$defs", "$id")}
    if _refers_to_root(schema):
        definitions = {**definitions, ROOT_DEFINITION: inner}
        inner = {"$ref": f"#/$defs/{ROOT_DEFINITION}"}
        definitions = _replace_root_references(definitions)
    wrapped: Json = {"type": "object", "properties": {"value": inner}, "required": ["value"]}
    return wrapped | ({"$defs": dict(definitions)} if definitions else {})


def _refers_to_root(schema: object) -> bool:
    if isinstance(schema, dict):
        return schema.get("$ref") == "#" or any(map(_refers_to_root, schema.values()))
    return isinstance(schema, list) and any(map(_refers_to_root, schema))


def _replace_root_references(schema: Any) -> Any:
    if isinstance(schema, dict):
        is_root = schema.get("$ref") == "#"
        return {**{name: _replace_root_references(value) for name, value in schema.items()}} | (
            {"$ref": f"#/$defs/{ROOT_DEFINITION}"} if is_root else {}
        )
    return [_replace_root_references(item) for item in schema] if isinstance(schema, list) else schema


def write_samples(samples: Iterable[Sample]) -> str:
    """Return the samples as JSON lines."""
    return "".join(f"{msgspec.json.encode(sample).decode()}\n" for sample in samples)
