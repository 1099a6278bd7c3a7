"""Rules of the Open Responses specification: JSON Schemas of its objects and events, and the order of events."""

from __future__ import annotations

from typing import Any

import jsonschema  # type: ignore[import-untyped]

Json = dict[str, Any]


def _object(properties: Json, optional: Json | None = None, **more: Any) -> Json:
    """Return the schema of an object. Further fields are allowed, as in all objects of the specification."""
    every = {**properties, **(optional or {})}
    return {"type": "object", "properties": every, "required": list(properties), **more}


def _typed(type_name: str, properties: Json, optional: Json | None = None) -> Json:
    return _object({"type": {"const": type_name}, **properties}, optional)


def _list(items: Json) -> Json:
    return {"type": "array", "items": items}


def _nullable(schema: Json) -> Json:
    return {"anyOf": [schema, {"type": "null"}]}


def _one_of_types(schemas: list[Json]) -> Json:
    return {"anyOf": schemas}


TEXT, INTEGER, NUMBER, BOOLEAN = ({"type": name} for name in ("string", "integer", "number", "boolean"))
STATUS = {"enum": ["in_progress", "completed", "incomplete"]}

ANNOTATION = _typed("url_citation", {"url": TEXT, "start_index": INTEGER, "end_index": INTEGER, "title": TEXT})
OUTPUT_TEXT = _typed("output_text", {"text": TEXT, "annotations": _list(ANNOTATION)}, {"logprobs": _list({})})
CONTENT_PART = _one_of_types(
    [
        OUTPUT_TEXT,
        *(_typed(name, {"text": TEXT}) for name in ("input_text", "text", "summary_text", "reasoning_text")),
        _typed("refusal", {"refusal": TEXT}),
        _typed("input_image", {"image_url": _nullable(TEXT), "detail": {"enum": ["low", "high", "auto"]}}),
        _typed("input_file", {}),
    ]
)
ITEM = _one_of_types(
    [
        _typed(
            "message",
            {
                "id": TEXT,
                "status": STATUS,
                "role": {"enum": ["user", "assistant", "system", "developer"]},
                "content": _list(CONTENT_PART),
            },
            {"phase": {"enum": ["commentary", "final_answer"]}},
        ),
        _typed("function_call", {"id": TEXT, "call_id": TEXT, "name": TEXT, "arguments": TEXT, "status": STATUS}),
        _typed(
            "reasoning",
            {"id": TEXT, "summary": _list(CONTENT_PART)},
            {"content": _list(CONTENT_PART), "encrypted_content": TEXT},
        ),
        _typed("compaction", {"id": TEXT, "encrypted_content": TEXT}, {"created_by": TEXT}),
    ]
)
USAGE = _object(
    {
        **dict.fromkeys(("input_tokens", "output_tokens", "total_tokens"), INTEGER),
        "input_tokens_details": _object({"cached_tokens": INTEGER}),
        "output_tokens_details": _object({"reasoning_tokens": INTEGER}),
    }
)
FUNCTION_TOOL = _typed(
    "function",
    {
        "name": TEXT,
        "description": _nullable(TEXT),
        "parameters": _nullable({"type": "object"}),
        "strict": _nullable(BOOLEAN),
    },
)
NAMED_FUNCTION = _typed("function", {"name": TEXT})
TOOL_CHOICE = _one_of_types(
    [
        {"enum": ["none", "auto", "required"]},
        NAMED_FUNCTION,
        _typed("allowed_tools", {"tools": _list(NAMED_FUNCTION), "mode": {"enum": ["none", "auto", "required"]}}),
    ]
)
RESPONSE = _object(
    {
        **dict.fromkeys(("id", "model", "service_tier"), TEXT),
        "object": {"const": "response"},
        "status": {"enum": ["queued", "in_progress", "completed", "incomplete", "failed"]},
        **dict.fromkeys(("created_at", "top_logprobs"), INTEGER),
        **dict.fromkeys(("temperature", "top_p", "presence_penalty", "frequency_penalty"), NUMBER),
        **dict.fromkeys(("parallel_tool_calls", "store", "background"), BOOLEAN),
        "truncation": {"enum": ["auto", "disabled"]},
        "text": _object({"format": _object({"type": TEXT})}, {"verbosity": {"enum": ["low", "medium", "high"]}}),
        "tool_choice": TOOL_CHOICE,
        "tools": _list(FUNCTION_TOOL),
        "metadata": {},
        "output": _list(ITEM),
        **dict.fromkeys(("completed_at", "max_output_tokens", "max_tool_calls"), _nullable(INTEGER)),
        **dict.fromkeys(
            ("previous_response_id", "instructions", "safety_identifier", "prompt_cache_key"), _nullable(TEXT)
        ),
        "incomplete_details": _nullable(_object({"reason": TEXT})),
        "error": _nullable(_object({"code": TEXT, "message": TEXT})),
        "usage": _nullable(USAGE),
        "reasoning": _nullable(
            _object(
                {
                    "effort": {"enum": [None, "none", "low", "medium", "high", "xhigh"]},
                    "summary": {"enum": [None, "concise", "detailed", "auto"]},
                }
            )
        ),
    }
)
COMPACTION = _object(
    {
        "id": TEXT,
        "object": {"const": "response.compaction"},
        "created_at": INTEGER,
        "output": _list(ITEM),
        "usage": USAGE,
    }
)
ERROR = _object({"message": TEXT, "type": TEXT, "param": _nullable(TEXT), "code": _nullable(TEXT)})


def _event(name: str, fields: Json) -> Json:
    return _typed(name, {"sequence_number": INTEGER, **fields})


_IN_ITEM = {"item_id": TEXT, "output_index": INTEGER}
_IN_CONTENT = {**_IN_ITEM, "content_index": INTEGER}
_IN_SUMMARY = {**_IN_ITEM, "summary_index": INTEGER}
FINAL_TYPES = ("response.completed", "response.failed", "response.incomplete")
EVENTS = {
    schema["properties"]["type"]["const"]: schema
    for schema in [
        *(
            _event(name, {"response": RESPONSE})
            for name in ("response.created", "response.queued", "response.in_progress", *FINAL_TYPES)
        ),
        *(
            _event(f"response.output_item.{name}", {"output_index": INTEGER, "item": ITEM})
            for name in ("added", "done")
        ),
        *(_event(f"response.content_part.{name}", {**_IN_CONTENT, "part": CONTENT_PART}) for name in ("added", "done")),
        _event("response.output_text.delta", {**_IN_CONTENT, "delta": TEXT}),
        _event("response.output_text.done", {**_IN_CONTENT, "text": TEXT}),
        _event("response.refusal.delta", {**_IN_CONTENT, "delta": TEXT}),
        _event("response.refusal.done", {**_IN_CONTENT, "refusal": TEXT}),
        _event("response.function_call_arguments.delta", {**_IN_ITEM, "delta": TEXT}),
        _event("response.function_call_arguments.done", {**_IN_ITEM, "arguments": TEXT}),
        *(
            _event(f"response.reasoning_summary_part.{name}", {**_IN_SUMMARY, "part": CONTENT_PART})
            for name in ("added", "done")
        ),
        _event("response.reasoning_summary_text.delta", {**_IN_SUMMARY, "delta": TEXT}),
        _event("response.reasoning_summary_text.done", {**_IN_SUMMARY, "text": TEXT}),
        _event("error", {"error": ERROR}),
    ]
}
"""The schema of each event that a stream may contain."""
_VALIDATORS = {name: jsonschema.Draft202012Validator(schema) for name, schema in EVENTS.items()}


def check_schema(value: Any, schema: Json) -> None:
    """Raise an AssertionError that names the field if the value is not valid."""
    _check(value, jsonschema.Draft202012Validator(schema))


def check_event(event: Json) -> None:
    assert event["type"] in _VALIDATORS, f"an event of an unknown type: {event}"
    _check(event, _VALIDATORS[event["type"]])


def _check(value: Any, validator: Any) -> None:
    if errors := list(validator.iter_errors(value)):
        error = jsonschema.exceptions.best_match(errors)
        raise AssertionError(f"{error.json_path}: {error.message}")


def check_stream(events: list[Json]) -> Json:
    """Check all events of a stream and their order, and return its final response."""
    for event in events:
        check_event(event)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [event["type"] for event in events[:2]] == ["response.created", "response.in_progress"]
    assert events[-1]["type"] in FINAL_TYPES
    assert not any(event["type"] in FINAL_TYPES for event in events[:-1])
    final: Json = events[-1]["response"]
    assert all(event["response"]["id"] == final["id"] for event in events if "response" in event)
    _check_items(events, final)
    return final


def _check_items(events: list[Json], final: Json) -> None:
    """Check that each item starts, continues and ends once, and that its deltas are the text of the final item."""
    open_parts: set[tuple[int, int]] = set()
    texts: dict[int, str] = {}
    done: dict[int, Json] = {}
    for event in events:
        if "output_index" not in event:
            continue
        index, kind = int(event["output_index"]), event["type"]
        part = (index, next((int(event[name]) for name in ("content_index", "summary_index") if name in event), -1))
        if kind == "response.output_item.added":
            assert index == len(texts), "items start in order"
            texts[index] = ""
        elif kind == "response.output_item.done":
            done[index] = event["item"]
        elif kind.endswith("part.added"):
            open_parts.add(part)
        elif kind.endswith("part.done"):
            open_parts.remove(part)
        elif kind.endswith(".delta"):
            assert index not in done
            assert part[1] == -1 or part in open_parts, "the part of a delta is open"
            texts[index] += event["delta"]
    assert not open_parts
    assert [done[index] for index in sorted(done)] == final["output"]
    for index, item in done.items():
        assert texts[index] == _item_text(item), item


def _item_text(item: Json) -> str:
    if item["type"] == "function_call":
        return str(item["arguments"])
    parts = item.get("content") or item.get("summary") or []
    return "".join(str(part.get("text", "")) for part in parts)
