"""Samples on schemas: nested objects, and keywords that few servers handle."""

from __future__ import annotations

import json
from typing import Any

from interlingua.verification.samples.builtin.offered_tools import GET_WEATHER, SAVE_NOTE
from interlingua.verification.samples.builtin.sample_builder import (
    array,
    call,
    calling,
    enum,
    integer,
    number,
    obj,
    string,
    tool,
)
from interlingua.verification.samples.sample import Sample

__all__ = ["SAMPLES"]

_ADDRESS = obj({"street": string(), "city": string(), "zip": string()})
_LINE = obj({"product": string(), "quantity": integer(minimum=1), "price": number()})
_NESTED: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
    (
        "create_customer",
        obj({"name": string(), "address": _ADDRESS}),
        {"name": "Lena Ott", "address": {"street": "Am Markt 3", "city": "Jena", "zip": "07743"}},
    ),
    (
        "create_invoice",
        obj({"customer": string(), "lines": array(_LINE)}),
        {
            "customer": "C-17",
            "lines": [
                {"product": "bolt", "quantity": 100, "price": 0.12},
                {"product": "nut", "quantity": 80, "price": 0.05},
            ],
        },
    ),
    (
        "update_settings",
        obj({"theme": obj({"name": enum("dark", "light"), "font": obj({"size": integer(), "family": string()})})}),
        {"theme": {"name": "dark", "font": {"size": 14, "family": "Inter"}}},
    ),
    (
        "plot_points",
        obj({"points": array(array(number(), minItems=2, maxItems=2))}),
        {"points": [[0, 1.5], [2, -3], [4.25, 0]]},
    ),
    (
        "edit_file",
        obj({"path": string(), "edits": array(obj({"old": string(), "new": string()}))}),
        {"path": "app.py", "edits": [{"old": "x = 1", "new": "x = 2"}, {"old": "print(x)", "new": "log(x)"}]},
    ),
    (
        "set_permissions",
        obj({"user": string(), "rights": obj({"read": {"type": "boolean"}, "write": {"type": "boolean"}})}),
        {"user": "kim", "rights": {"read": True, "write": False}},
    ),
    (
        "make_tree",
        obj({"root": obj({"name": string(), "children": array(obj({"name": string(), "children": array(string())}))})}),
        {"root": {"name": "a", "children": [{"name": "b", "children": ["c", "d"]}, {"name": "e", "children": []}]}},
    ),
    (
        "schedule_jobs",
        obj({"jobs": array(obj({"id": integer(), "after": array(integer()), "tags": array(string())}))}),
        {"jobs": [{"id": 1, "after": [], "tags": ["fast"]}, {"id": 2, "after": [1], "tags": []}]},
    ),
    (
        "store_record",
        obj({"record": {"type": "object", "additionalProperties": {"type": "integer"}}}),
        {"record": {"apples": 3, "pears": 0, "plums": 12}},
    ),
)
_ODD: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
    (
        "ship_parcel",
        {
            "type": "object",
            "$defs": {"place": obj({"city": string(), "country": string()})},
            "properties": {"from": {"$ref": "#/$defs/place"}, "to": {"$ref": "#/$defs/place"}},
            "required": ["from", "to"],
        },
        {"from": {"city": "Gent", "country": "BE"}, "to": {"city": "Porto", "country": "PT"}},
    ),
    (
        "set_limit",
        obj({"limit": {"anyOf": [{"type": "integer"}, {"type": "string", "enum": ["none"]}]}, "name": string()}),
        {"limit": "none", "name": "cpu"},
    ),
    (
        "rename_item",
        obj({"id": integer(), "parent": {"type": ["string", "null"]}}),
        {"id": 9, "parent": None},
    ),
    (
        "pay",
        obj({"method": {"oneOf": [obj({"card": string()}), obj({"iban": string()})]}}),
        {"method": {"iban": "DE02120300000000202051"}},
    ),
    (
        "tag-photo.v2",
        obj({"photo-id": string(), "x.tags": array(string())}),
        {"photo-id": "p-1", "x.tags": ["sea", "sun"]},
    ),
    (
        "set_version",
        obj({"kind": {"const": "release"}, "version": string(pattern="^[0-9]+\\.[0-9]+$")}),
        {"kind": "release", "version": "2.14"},
    ),
    (
        "move",
        obj(
            {
                "to": {"type": "array", "prefixItems": [integer(), integer()], "minItems": 2},
                "speed": enum("slow", "fast"),
            }
        ),
        {"to": [3, 4], "speed": "fast"},
    ),
    (
        "log_entry",
        {
            "type": "object",
            "properties": {"type": string(), "properties": string(), "required": {"type": "boolean"}},
            "required": ["type", "properties", "required"],
        },
        {"type": "note", "properties": "none", "required": True},
    ),
    (
        "synchronise_the_remote_inventory_of_the_warehouse_with_the_shop",
        obj({"warehouse": string(), "dry_run": {"type": "boolean", "default": False}}, ["warehouse"]),
        {"warehouse": "north"},
    ),
)


def _schema_sample(category: str, number_: int, name: str, schema: dict[str, Any], arguments: dict[str, Any]) -> Sample:
    values = " ".join(f"{key}={json.dumps(value)}" for key, value in arguments.items())
    return calling(
        f"{category}-{number_:02d}",
        f"Make this call, with exactly these arguments: {name} {values}",
        [tool(name, f"Handles a {name.replace('_', ' ')} request.", schema), GET_WEATHER, SAVE_NOTE],
        call(name, **arguments),
    )


SAMPLES = [
    *(_schema_sample("nested", n, *row) for n, row in enumerate(_NESTED, 1)),
    *(_schema_sample("odd-schemas", n, *row) for n, row in enumerate(_ODD, 1)),
]
